// A look-up, step by step: the segment, the index entry, the bytes.
import { clean, counted, html, number, useWidth } from "./dom.js";
import { Ladder } from "./xrayladder.js";
import { SeekStrip } from "./xrayseek.js";
import { ask, askTime, clock, data, date, found, kind, offset, range, time, timeRange } from "./xraystate.js";

const PAD = 8;

// Sliders -----------------------------------------------------------------------------------------

function marksOf(marks) {
  const list = [{ at: marks.log_start.offset, text: "log start", title: marks.log_start.source }];
  if (marks.durable_end) list.push({ at: marks.durable_end.offset, text: "synced to", title: marks.durable_end.source });
  if (marks.high_watermark) list.push({ at: marks.high_watermark.offset, text: "HW", title: marks.high_watermark.source, look: "hw" });
  list.push({ at: marks.log_end.offset, text: "LEO", title: marks.log_end.source, look: "leo" });
  return list;
}

function Rail({ width, low, high, ticks, flags, children }) {
  const room = Math.max(1, width - 2 * PAD);
  const x = (value) => PAD + (room * (value - low)) / Math.max(1, high - low);
  const path = ticks.map((each) => `M${x(each).toFixed(1)} 11v10`).join("");
  return html`<svg class="xr-rail" width=${width} height="32" aria-hidden="true">
    <line x1=${PAD} x2=${width - PAD} y1="16" y2="16" />
    ${path && html`<path class="xr-tick" d=${path} />`}
    ${flags.map((each) => html`<path key=${each.text} class=${`xr-flag ${each.look || ""}`} d=${`M${x(each.at)} 4v24`} />`)}
    ${children && children(x)}
  </svg>`;
}

function Field({ label, value, low, step, onValue, width }) {
  const take = (event) => {
    const wanted = Number(event.currentTarget.value);
    if (event.currentTarget.value.trim() !== "" && Number.isSafeInteger(wanted) && wanted >= low) onValue(wanted);
  };
  return html`<input class="xr-number" type="number" min=${low} step=${step} style=${{ width }} aria-label=${label} value=${value} onInput=${take}
    onKeyDown=${(event) => event.key === "Enter" && event.currentTarget.select()} />`;
}

function OffsetSlider() {
  const [ref, width] = useWidth(600);
  const { marks } = data.value;
  const [low, high] = range.value;
  const result = found.value.result;
  const isMine = kind.value === "offset";
  const value = isMine ? offset.value : result && result.offset !== null ? result.offset : offset.value;
  const flags = marksOf(marks);
  return html`<div class=${`xr-slider${isMine ? " on" : ""}`}>
    <div class="xr-ask"><label for="xr-offset">Look up an offset</label>
      <${Field} label="Offset" value=${value} low=${0} step=${1} width="9ch" onValue=${ask} /></div>
    <div class="xr-track" ref=${ref}>
      <${Rail} width=${width} low=${low} high=${high} ticks=${marks.segment_bases.length <= 500 ? marks.segment_bases : []} flags=${flags} />
      <input type="range" id="xr-offset" class="slider" min=${low} max=${high} step="1" value=${Math.min(Math.max(value, low), high)}
        aria-valuetext=${`offset ${value}`} onInput=${(event) => ask(Number(event.currentTarget.value))} />
    </div>
    <p class="xr-marks">${flags.map((each) => html`<button key=${each.text} type="button" class=${`xr-mark ${each.look || ""}`} title=${clean(each.title, 200)}
      onClick=${() => ask(each.at)}>${each.text} <b>${number(each.at)}</b></button>`)}
      <span class="quiet">${counted(marks.segment_bases.length, "segment begins", "segments begin")} at a tick</span></p>
  </div>`;
}

function TimeSlider() {
  const [ref, width] = useWidth(600);
  if (!timeRange.value) return html`<p class="quiet">No timestamps are listed, so nothing can be looked up by time.</p>`;
  const [low, high] = timeRange.value;
  const result = found.value.result;
  const isMine = kind.value === "time";
  const value = isMine ? time.value : result && result.timestamp_ms !== null ? result.timestamp_ms : time.value;
  const ticks = data.value.segments.map((each) => each.max_timestamp_ms).filter((each) => each >= low);
  return html`<div class=${`xr-slider${isMine ? " on" : ""}`}>
    <div class="xr-ask"><label for="xr-time">Look up a time <span class="quiet">(offsetsForTimes)</span></label>
      <${Field} label="Timestamp in ms" value=${value} low=${0} step=${1} width="17ch" onValue=${askTime} /></div>
    <div class="xr-track" ref=${ref}>
      <${Rail} width=${width} low=${low} high=${high} ticks=${ticks.length <= 500 ? ticks : []} flags=${[]} />
      <input type="range" id="xr-time" class="slider" min=${low} max=${high} step="1" value=${Math.min(Math.max(value, low), high)}
        aria-valuetext=${`${date(value)}, ${value} ms`} onInput=${(event) => askTime(Number(event.currentTarget.value))} />
    </div>
    <p class="xr-marks"><b class="xr-date">${date(value)}</b>
      <span class="quiet">a tick is the latest timestamp of a segment</span></p>
  </div>`;
}

// Steps -------------------------------------------------------------------------------------------

/** A probe in words: what was compared, and where the search goes on. */
function saying(probe, target, words) {
  const sign = probe.goes === "left" ? "<" : "≥";
  const rest = probe.goes === "left" ? "to the left" : "keep it, to the right";
  return html`<span class="xr-compare"><b>${words(target)}</b> ${sign} <b>${words(probe.value)}</b></span> <span class="xr-goes">${rest}</span>`;
}

function SegmentStep({ look }) {
  const { segments } = data.value;
  if (look.kind === "time") {
    const on = look.segment_probes.filter((each) => each.goes === "on").length;
    const here = look.segment === null ? null : segments[look.segment];
    return html`<p>${on > 0 ? `${counted(on, "segment is", "segments are")} passed over: no timestamp in them is that late. ` : ""}
      ${here ? html`The latest in <code>${clean(here.file, 40)}</code> is ${clock(here.max_timestamp_ms)}: it is looked into.` : "No segment is left."}</p>`;
  }
  if (segments.length === 1) return html`<p>There is one segment, so there is nothing to choose.</p>`;
  return html`<${Ladder} what="segment" probes=${look.segment_probes} chosen=${look.segment_probes.length ? lastRight(look.segment_probes) : -1}
    values=${segments.map((each) => each.base_offset)} words=${number} titles=${(i) => segments[i].file}
    saying=${(each) => saying(each, look.target, number)} />`;
}

function lastRight(probes) {
  const right = probes.filter((each) => each.goes === "right");
  return right.length ? right[right.length - 1].number : 0;
}

function IndexStep({ look, segment }) {
  const { index } = segment;
  if (!index || index.unusable) return null;
  if (!index.entries.length) return html`<p>The index has no entries yet: so short a log is read from its beginning.</p>`;
  const target = look.time_anchor ? Math.max(look.time_anchor.offset, data.value.marks.log_start.offset)
    : look.kind === "time" ? Math.max(segment.base_offset, data.value.marks.log_start.offset) : look.target;
  return html`<${Ladder} what="entry" probes=${look.probes} chosen=${look.anchor ? look.anchor.number : -1}
    values=${index.entries.map((each) => each[0])} below=${(i) => `@${number(index.entries[i][1])}`} words=${number}
    titles=${(i) => `entry ${i}: offset ${number(index.entries[i][0])} at byte ${number(index.entries[i][1])}`}
    saying=${(each) => saying(each, target, number)} />`;
}

function TimeStep({ look, segment }) {
  const index = segment.time_index;
  if (!index || index.unusable) return null;
  if (!index.entries.length) return html`<p>The time index has no entries: the segment is read from its beginning.</p>`;
  const isKafka = segment.format === "Kafka";
  const say = (each) => html`<span class="xr-compare"><b>${clock(look.target)}</b> ${each.goes === "left" ? (isKafka ? "<" : "≤") : isKafka ? "≥" : ">"} <b>${clock(each.value)}</b></span>
    <span class="xr-goes">${each.goes === "left" ? "to the left" : "keep it, to the right"}</span>`;
  return html`<${Ladder} what="entry" probes=${look.time_probes} chosen=${look.time_anchor ? look.time_anchor.number : -1}
    values=${index.entries.map((each) => each[0])} below=${(i) => number(index.entries[i][1])} words=${clock}
    titles=${(i) => `entry ${i}: ${date(index.entries[i][0])}, offset ${number(index.entries[i][1])}`} saying=${say} />`;
}

function Step({ n, title, answer, children }) {
  return html`<li class="xr-step"><h3><span class="xr-n" aria-hidden="true">${n}</span>${title}</h3>
    ${children}${answer && html`<p class="xr-answer">${answer}</p>`}</li>`;
}

function Figures({ look, segment }) {
  const { result } = look;
  const share = segment && segment.size_bytes ? (100 * look.bytes_scanned) / segment.size_bytes : 0;
  const parts = [[look.kind === "offset" ? look.segment_probes.length : 0, "of segments"], [(look.time_probes || []).length, "of times"], [look.probes.length, "of offsets"]];
  const probes = parts.reduce((sum, [each]) => sum + each, 0);
  const whole = result ? result.position + result.size_bytes : 0;
  return html`<dl class="xr-figures">
    <div><dt>Byte seek</dt><dd>${look.seek === null ? "–" : number(look.seek)}</dd><dd class="xr-small">${result ? `${clean(segment.file, 40)}` : "nothing to seek"}</dd></div>
    <div><dt>Probes</dt><dd>${number(probes)}</dd><dd class="xr-small">${parts.filter(([each]) => each).map(([each, what]) => `${each} ${what}`).join(", ") || "nothing to compare"}</dd></div>
    <div><dt>Records scanned</dt><dd>${number(look.records_scanned)}</dd><dd class="xr-small">passed; ${counted(look.batches_scanned, "batch", "batches")} looked at</dd></div>
    <div><dt>Bytes scanned</dt><dd>${number(look.bytes_scanned)}</dd><dd class="xr-small">${result ? `${share < 10 ? share.toFixed(1) : Math.round(share)} % of the file; ${number(whole)} without an index` : "of the file"}</dd></div>
  </dl>`;
}

/** Sliders, figures, and the look-up's steps. */
export function Search() {
  const look = found.value;
  const { segments } = data.value;
  const segment = look.segment === null ? null : segments[look.segment];
  const steps = [];
  if (segments.length) {
    steps.push(["Which segment?", html`<${SegmentStep} look=${look} />`,
      segment && html`<code>${clean(segment.file, 40)}</code> holds offsets ${number(segment.base_offset)} to ${number(Math.max(segment.base_offset, segment.next_offset - 1))}.`]);
  }
  if (segment && look.kind === "time") {
    steps.push(["Which entry of the time index?", html`<${TimeStep} look=${look} segment=${segment} />`,
      look.time_anchor ? html`All records below offset <b>${number(look.time_anchor.offset)}</b> are earlier.` : html`No entry is early enough: the segment's beginning it is.`]);
  }
  if (segment) {
    steps.push(["Which entry of the sparse offset index?", html`<${IndexStep} look=${look} segment=${segment} />`,
      look.anchor ? html`Jumped to entry ${number(look.anchor.number)}: offset <b>${number(look.anchor.offset)}</b>, byte <b>${number(look.anchor.position)}</b>.` : html`No entry is at or below it: reading begins at byte <b>0</b>.`]);
    steps.push(["From that byte on, batch by batch", html`<${SeekStrip} look=${look} segment=${segments[look.result ? look.result.segment : look.segment]} />`, null]);
  }
  return html`<div class="xr-search">
    <div class="xr-sliders"><${OffsetSlider} /><${TimeSlider} /></div>
    <p class=${`xr-verdict ${look.verdict}`} role="status">${clean(look.text, 400)}</p>
    ${segment && html`<${Figures} look=${look} segment=${segment} />`}
    ${look.notes.length > 0 && html`<ul class="xr-notices">${look.notes.map((each, i) => html`<li key=${i}>${clean(each, 300)}</li>`)}</ul>`}
    ${segment && html`<ol class="xr-steps">${steps.map(([title, part, answer], i) => html`<${Step} key=${title} n=${i + 1} title=${title} answer=${answer}>${part}<//>`)}</ol>`}
  </div>`;
}
