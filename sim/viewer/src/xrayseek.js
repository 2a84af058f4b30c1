// The bytes that a look-up reads: the whole file, and below it the part from the entry on.
import { counted, html, number, useWidth } from "./dom.js";
import { epochClass } from "./parts.js";

const SHOWN_MOST = 120;

// The batches around those that were read: from the seek up to the next index entry.
function windowOf(look, segment) {
  const { batches } = segment;
  const seek = look.seek || 0;
  let first = batches.findIndex((each) => each[0] >= seek);
  if (first < 0) first = batches.length;
  const found = look.result ? look.result.batch : first;
  const entries = segment.index ? segment.index.entries : [];
  const next = entries.find((each) => each[1] > seek);
  const until = Math.max(next ? next[1] : segment.good_bytes, look.result ? look.result.position + look.result.size_bytes : 0);
  let last = found;
  while (last + 1 < batches.length && batches[last + 1][0] < until && last + 1 - first < SHOWN_MOST) last += 1;
  if (last - first > SHOWN_MOST) first = last - SHOWN_MOST;
  return { rows: batches.slice(first, last + 1), first, found };
}

function Batch({ row, i, first, found, x, height, top }) {
  const from = x(row[0]);
  const size = Math.max(1, x(row[0] + row[1]) - from - 1);
  const isFound = first + i === found;
  const offsets = row[3] - row[2] > 1 ? `${number(row[2])}–${number(row[3] - 1)}` : number(row[2]);
  const label = size > offsets.length * 7 + 4 ? offsets : "";
  const role = isFound ? "found" : first + i < found ? "passed" : "ahead";
  return html`<g class=${`xr-batch ${role}`}>
    <rect class=${epochClass(row[4])} x=${from} y=${top} width=${size} height=${height} />
    ${role === "passed" && html`<rect class="xr-passed" x=${from} y=${top} width=${size} height=${height} fill="url(#xr-hatch)" />`}
    ${isFound && html`<rect class="xr-found" x=${from - 1} y=${top - 2.5} width=${size + 2} height=${height + 5} />`}
    ${label && html`<text x=${from + size / 2} y=${top + height / 2 + 4} text-anchor="middle">${label}</text>`}
    <title>${`batch at byte ${number(row[0])}, ${number(row[1])} bytes, offsets ${offsets}, epoch ${row[4]}${isFound ? ": found" : role === "passed" ? ": passed over" : ""}`}</title>
  </g>`;
}

/** What a reader does from the byte on that the index gave. */
export function SeekStrip({ look, segment }) {
  const [ref, width] = useWidth(600);
  const { rows, first, found } = windowOf(look, segment);
  const size = Math.max(1, segment.size_bytes);
  const far = (byte) => (width * byte) / size;
  const low = rows.length ? rows[0][0] : 0;
  const high = rows.length ? rows[rows.length - 1][0] + rows[rows.length - 1][1] : 1;
  const near = (byte) => (width * (byte - low)) / Math.max(1, high - low);
  const readTo = look.result ? look.result.position + look.result.size_bytes : low;
  const before = rows.slice(0, Math.max(0, found - first));
  return html`<div class="xr-seek" ref=${ref}>
    <svg width=${width} height="116" aria-hidden="true">
      <defs><pattern id="xr-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="xr-hatch-line" x1="0" x2="0" y1="0" y2="6" /></pattern></defs>
      <rect class="xr-file" x="0" y="14" width=${width} height="10" rx="2" />
      <rect class="xr-window" x=${far(low)} y="12" width=${Math.max(2, far(high) - far(low))} height="14" rx="2" />
      <path class="xr-zoom" d=${`M${far(low)} 27L0 54H${width}L${Math.max(far(high), far(low) + 2)} 27Z`} />
      <text class="xr-label" x="0" y="9">byte 0</text><text class="xr-label" x=${width} y="9" text-anchor="end">${number(segment.size_bytes)}</text>
      ${rows.map((row, i) => html`<${Batch} key=${row[0]} row=${row} i=${i} first=${first} found=${found} x=${near} top=${58} height=${30} />`)}
      ${look.result && html`<path class="xr-read" d=${`M1 96v4H${Math.max(2, near(readTo) - 1)}v-4`} />`}
      ${look.result && html`<text class="xr-label strong" x="0" y="113">${`read ${number(readTo - low)} bytes from byte ${number(low)}`}</text>`}
      ${near(readTo) < width - 90 && html`<text class="xr-label" x=${width} y="113" text-anchor="end">byte ${number(high)}</text>`}
    </svg>
    ${look.result ? html`<p class="xr-answer">${before.length ? `${counted(before.length, "batch is", "batches are")} passed over by header. ` : ""}
      ${look.verdict === "hole" ? "No record has the offset; the next batch is " : "Found in "}the batch at byte <b>${number(look.result.position)}</b>: ${number(look.result.size_bytes)} bytes, ${look.result.next_offset - look.result.base_offset === 1 ? `offset ${number(look.result.base_offset)}` : `offsets ${number(look.result.base_offset)} to ${number(look.result.next_offset - 1)}`}.</p>`
      : html`<p class="xr-answer">The answer is not in what is listed here.</p>`}
  </div>`;
}
