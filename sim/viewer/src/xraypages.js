// The page cache: which pages were synced, and what a crash would take.
import { signal } from "@preact/signals";
import { clean, counted, html, number, useWidth } from "./dom.js";
import { ask, data, found, segment } from "./xraystate.js";
import { Choice } from "./xraychoice.js";

const CELLS_MOST = 2000;
const LOST_MOST = 8;

/** "now", "kill" or "power". */
const crash = signal("now");

const CRASHES = [
  ["now", "As it is"],
  ["kill", "Process killed"],
  ["power", "Power lost"],
];

/** What a power cut may take: batches that are not synced as a whole, and all behind the first. */
export function lostBatches(xray) {
  const byName = new Map(xray.pages.files.map((each) => [each.file, each]));
  const lost = [];
  let isGone = false;
  for (const [number_, each] of xray.segments.entries()) {
    const map = byName.get(each.file);
    const isWhole = map && map.name === "not synced" && each.batch_count > 0;
    const from = map && map.dirty.length ? map.dirty[0][0] : Infinity;
    for (const row of each.batches) {
      isGone = isGone || isWhole || row[0] + row[1] > from;
      if (isGone) lost.push({ segment: number_, row });
    }
    // Batches that are not listed cannot be told, but the log ends in front of them all the same.
    isGone = isGone || isWhole || from < each.good_bytes;
  }
  return lost;
}

function touched(look, xray, file, size) {
  if (!look.result || look.seek === null || xray.segments[look.result.segment].file !== file) return null;
  const end = look.result.position + look.result.size_bytes;
  return [Math.floor(look.seek / size), Math.floor((end - 1) / size)];
}

function Pages({ file, pageBytes, width, read }) {
  const cell = Math.min(22, width / Math.max(1, file.pages));
  const isPower = crash.value === "power";
  const height = 18;
  const parts = [];
  for (const [first, end, state] of file.runs) {
    const isLost = isPower && state === "dirty";
    const look = isLost ? "lost" : state;
    if (cell >= 4 && end - first <= CELLS_MOST) {
      for (let page = first; page < end; page += 1) parts.push([page, page + 1, look]);
    } else parts.push([first, end, look]);
  }
  const states = file.runs.map(([first, end, state]) => `${counted(end - first, "page")} ${state}`).join(", ");
  return html`<svg class="xr-pages" width=${Math.max(1, Math.min(width, cell * file.pages + 1))} height="26" role="img"
    aria-label=${`${clean(file.file, 60)}: ${file.pages ? states : "no pages"}${isPower && file.dirty.length ? "; the dirty ones may be lost" : ""}`}>
    ${parts.map(([first, end, look]) => {
      const x = first * cell;
      const size = Math.max(1, (end - first) * cell - (cell >= 4 ? 1.5 : 0));
      return html`<g key=${first} class=${`xr-page ${look}`}><rect x=${x + 0.75} y="1" width=${Math.max(1, size - 0.5)} height=${height} rx="2" />
        ${look === "dirty" && html`<rect class="xr-passed" x=${x + 0.75} y="1" width=${Math.max(1, size - 0.5)} height=${height} rx="2" fill="url(#xr-dirty)" />`}
        ${look === "lost" && html`<path d=${`M${x + 2} 3L${x + size - 1} ${height - 1}M${x + size - 1} 3L${x + 2} ${height - 1}`} />`}
        <title>${`${end - first > 1 ? `pages ${number(first)} to ${number(end - 1)}` : `page ${number(first)}`}, bytes ${number(first * pageBytes)} to ${number(Math.min(end * pageBytes, file.size_bytes) - 1)}: ${look === "lost" ? "may be lost" : look}`}</title></g>`;
    })}
    ${read && html`<path class="xr-touch" d=${`M${read[0] * cell + 1} 24H${(read[1] + 1) * cell - 1}`}><title>read by the look-up above</title></path>`}
  </svg>`;
}

function FileRow({ file, look, xray, width }) {
  const bytes = file.dirty.reduce((sum, [from, to]) => sum + to - from, 0);
  const read = touched(look, xray, file.file, xray.pages.page_bytes);
  return html`<div class="xr-file-row">
    <p><code>${clean(file.file, 60)}</code> <span class="xr-small">${counted(file.size_bytes, "byte")}${file.size_bytes ? `, ${counted(file.pages, "page")}` : ""}: ${bytes ? `${counted(bytes, "byte")} not synced` : file.runs.some((each) => each[2] === "unknown") ? "not known" : "all synced"}${file.name === "not synced" ? "; its name is not synced" : ""}${file.is_cut ? "; was cut: the tail may come back" : ""}${read ? `; the look-up reads ${read[0] === read[1] ? `page ${read[0]}` : `pages ${read[0]} to ${read[1]}`}` : ""}${file.note ? `; ${clean(file.note, 200)}` : ""}</span></p>
    <${Pages} file=${file} pageBytes=${xray.pages.page_bytes} width=${width} read=${read} />
  </div>`;
}

function Segments({ xray, width }) {
  const byName = new Map(xray.pages.files.map((each) => [each.file, each]));
  const cell = width / xray.segments.length;
  const dirtyOf = (each) => {
    const map = byName.get(each.file);
    if (!map || map.runs.some((run) => run[2] === "unknown")) return "unknown";
    return map.dirty.length ? "dirty" : "clean";
  };
  const states = xray.segments.map(dirtyOf);
  const count = states.filter((each) => each === "dirty").length;
  return html`<div class="xr-all">
    <p class="xr-small">All ${number(xray.segments.length)} segments: ${states.includes("unknown") ? "some are not known" : count ? `${number(count)} not wholly synced` : "all synced"}</p>
    <svg width=${width} height="14" aria-hidden="true">${xray.segments.map((each, i) => html`<rect key=${i}
      class=${`xr-segment ${states[i]}${i === segment.value ? " here" : ""}`} x=${i * cell + 0.5} y="1.5" width=${Math.max(1, cell - 1.5)} height="11" rx="1.5"
      onClick=${() => ask(Math.max(each.base_offset, xray.marks.log_start.offset))}><title>${clean(`${each.file}: ${states[i]}`, 100)}</title></rect>`)}</svg>
  </div>`;
}

function Preview({ xray }) {
  const { pages } = xray;
  if (crash.value === "now") {
    if (!pages.known) return html`<p>What was synced is not known: ${clean(pages.why_unknown || "nothing tells it", 300)}.</p>`;
    const waiting = pages.files.reduce((sum, each) => sum + each.dirty.reduce((one, [from, to]) => one + to - from, 0), 0);
    return html`<p>Every write and every fsync is in the run's trace. At its end ${waiting ? `${counted(waiting, "byte is", "bytes are")} in memory alone, in ${counted(pages.files.filter((each) => each.dirty.length).length, "file")}` : "all bytes are synced"}.</p>`;
  }
  if (crash.value === "kill") return html`<p>${clean(pages.kill.text, 400)}</p>`;
  const lost = lostBatches(xray);
  const records = lost.reduce((sum, { row }) => sum + row[6], 0);
  return html`<div><p>${clean(pages.power.text, 500)}</p>
    ${pages.power.lost_bytes !== null && html`<p class=${lost.length ? "xr-lost" : "xr-safe"}>${lost.length
      ? html`<b>${counted(records, "record")} may go</b>, offsets ${number(lost[0].row[2])} to ${number(lost[lost.length - 1].row[3] - 1)}, in ${counted(lost.length, "batch", "batches")}. What lies behind a gap is cut off with it, so the log may end at ${number(pages.power.log_end)}.`
      : html`<b>No record goes.</b> The log still ends at ${number(pages.power.log_end)}.`}</p>
    ${lost.length > 0 && html`<ul class="xr-lost-list">${lost.slice(0, LOST_MOST).map(({ row, segment: s }) => html`<li key=${`${s}-${row[0]}`}>
      ${row[3] - row[2] > 1 ? `offsets ${number(row[2])} to ${number(row[3] - 1)}` : `offset ${number(row[2])}`} <span class="quiet">byte ${number(row[0])}, ${number(row[1])} bytes</span></li>`)}
      ${lost.length > LOST_MOST && html`<li class="quiet">and ${counted(lost.length - LOST_MOST, "more batch", "more batches")}</li>`}</ul>`}
    <p class="quiet">Whether that is a loss is up to the copies on other brokers: this is what replication is for.</p>`}</div>`;
}

/** The map of pages, with a preview of crashes. */
export function PageMap() {
  const [ref, width] = useWidth(600);
  const xray = data.value;
  const { pages, segments } = xray;
  const base = segments.length ? segments[segment.value].file.slice(0, 20) : "none";
  const own = pages.files.filter((each) => each.file.startsWith(`${base}.`));
  own.sort((one, other) => (other.file.endsWith(".log") ? 1 : 0) - (one.file.endsWith(".log") ? 1 : 0));
  const common = pages.files.filter((each) => !/^\d{20}\./.test(each.file));
  const others = pages.files.filter((each) => /^\d{20}\./.test(each.file) && !own.includes(each) && each.dirty.length);
  const look = found.value;
  return html`<div class="xr-cache" ref=${ref}>
    <svg class="unseen" aria-hidden="true"><defs><pattern id="xr-dirty" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="xr-hatch-line" x1="0" x2="0" y1="0" y2="5" /></pattern></defs></svg>
    <${Choice} label="Preview of a crash" options=${CRASHES} now=${crash.value} pick=${(each) => { crash.value = each; }} />
    <div class="xr-preview" role="status"><${Preview} xray=${xray} /></div>
    ${segments.length > 1 && html`<${Segments} xray=${xray} width=${width} />`}
    ${own.map((each) => html`<${FileRow} key=${each.file} file=${each} look=${look} xray=${xray} width=${width} />`)}
    ${common.length > 0 && html`<details><summary>Files of the whole log (${number(common.length)})</summary>
      ${common.map((each) => html`<${FileRow} key=${each.file} file=${each} look=${look} xray=${xray} width=${width} />`)}</details>`}
    ${others.length > 0 && html`<details><summary>Files of other segments that are not wholly synced (${number(others.length)})</summary>
      ${others.slice(0, 100).map((each) => html`<${FileRow} key=${each.file} file=${each} look=${look} xray=${xray} width=${width} />`)}</details>`}
    <dl class="xr-legend">${pages.states.map((each) => html`<div key=${each.state}><dt><svg width="18" height="18" aria-hidden="true"><g class=${`xr-page ${each.state}`}><rect x="1" y="1" width="16" height="16" rx="2" />${each.state === "dirty" && html`<rect class="xr-passed" x="1" y="1" width="16" height="16" rx="2" fill="url(#xr-dirty)" />`}</g></svg> ${clean(each.state, 20)}</dt>
      <dd>${clean(each.meaning, 200)}</dd></div>`)}
      <div><dt><svg width="18" height="18" aria-hidden="true"><path class="xr-touch" d="M1 12H17" /></svg> read</dt><dd>the look-up above needs it</dd></div></dl>
  </div>`;
}
