// One log as a strip of SVG.
import { clean, counted, html, number } from "./dom.js";
import { epochClass } from "./parts.js";
import { recordText } from "./logs.js";

const BAND = 18;
const HIGH = 24;
const TICKS_APART = 5;
const BELOW = BAND + HIGH;
export const STRIP_HEIGHT = 64;

/** The log in a sentence, for a screen reader and as a hint. */
export function describe(log) {
  const parts = log.spans.map((each) => `${each.epoch === null ? "unknown epoch" : `epoch ${each.epoch}`} ${each.base} to ${each.end - 1}`);
  const words = [`${clean(log.node, 40)}, ${log.status}, ${log.role}`];
  words.push(parts.length ? `records: ${parts.slice(-12).join(", ")}` : "no records");
  if (log.start > 0) words.push(`log start ${log.start}`);
  if (log.hw !== undefined && log.hw !== null) words.push(`high watermark ${log.hw}`);
  words.push(`log end ${log.end}`);
  if (log.durable !== undefined && log.durable !== null && log.durable < log.end) words.push(`synced to ${log.durable}`);
  if (log.differs.length) words.push("differs from the leader's log");
  const now = log.cuts.find((each) => each.isNow);
  if (now) words.push(`${now.how} just now: ${now.spans.map((each) => `${each.base} to ${each.end - 1}`).join(", ")}`);
  return `${words.join("; ")}.`;
}

// Where the sign stands that a run is drawn shorter.
function breakAt([from, to]) {
  return from + (to - from) * 0.8;
}

function Span({ span, axis }) {
  const from = axis.x(span.base);
  const size = Math.max(1, axis.x(span.end) - from);
  const label = span.epoch === null ? "?" : `e${span.epoch}`;
  const count = span.end - span.base;
  const broken = axis.breaks.find((each) => each[1] > from && each[0] < from + size);
  const room = broken ? Math.min(size, breakAt(broken) - from - 8) : size;
  return html`<g>
    <rect class="span ${epochClass(span.epoch)}" x=${from} y=${BAND} width=${size} height=${HIGH}>
      <title>${`epoch ${span.epoch === null ? "unknown" : span.epoch}: offsets ${number(span.base)} to ${number(span.end - 1)}`}</title></rect>
    ${room > label.length * 7 + 4 && html`<text class="span-label" x=${axis.isLinear ? from + Math.min(size, axis.unit) / 2 : from + 7}
      text-anchor=${axis.isLinear ? "middle" : "start"} y=${BAND + 16}>${label}${!axis.isLinear && count > 1 && room > 110 ? ` · ${counted(count, "record")}` : ""}</text>`}
  </g>`;
}

// Lines between records where they are wide enough, as one path.
function cells(log, axis) {
  if (!axis.isLinear || axis.unit < 5) return null;
  let d = "";
  for (const span of log.spans) {
    for (let offset = span.base + 1; offset < span.end; offset += 1) d += `M${axis.x(offset).toFixed(1)} ${BAND}v${HIGH}`;
  }
  return d && html`<path class="cells" d=${d} />`;
}

function ticksOf(log, axis) {
  let d = "";
  let free = -TICKS_APART;
  for (const each of log.index) {
    const x = axis.x(each);
    if (x < free) continue;
    d += `M${x.toFixed(1)} ${BELOW + 1}v4`;
    free = x + TICKS_APART;
  }
  return d && html`<path class="index-ticks" d=${d}><title>${`${number(log.index.length)} index entries`}</title></path>`;
}

function Segments({ log, axis }) {
  const shown = log.segments.filter((each) => each >= log.start - 1 || log.segments.length < 3).slice(-60);
  let free = -99;
  return shown.map((base) => {
    const x = axis.x(base);
    const text = number(base);
    const hasRoom = x > free;
    if (hasRoom) free = x + text.length * 6 + 14;
    return html`<g key=${base} class="segment"><path d=${`M${x} ${BAND - 3}v7M${x} ${BELOW - 6}V${BELOW + 9}h4`} />
      ${hasRoom && html`<text x=${x + 6} y=${BELOW + 12}>${text}</text>`}<title>${`segment from offset ${text}`}</title></g>`;
  });
}

function Ghosts({ log, axis, pattern }) {
  return log.cuts.map((cut) => cut.spans.map((span, i) => {
    const from = axis.x(span.base);
    const size = Math.max(2, axis.x(span.end) - from);
    const said = `${cut.how} with #${cut.n}: offsets ${number(span.base)} to ${number(span.end - 1)}${span.epoch === null ? "" : ` of epoch ${span.epoch}`}`;
    const isCovered = log.spans.some((each) => each.base < span.end && span.base < each.end);
    if (isCovered && !cut.isNow) {
      return html`<rect key=${`${cut.n}-${i}`} class="ghost old ${epochClass(span.epoch)}" x=${from + 0.5} y=${BELOW + 15.5} width=${size - 1} height="4"><title>${said}</title></rect>`;
    }
    return html`<g key=${`${cut.n}-${i}`} class=${`ghost${cut.isNow ? " now" : ""}`}>
      <rect class=${epochClass(span.epoch)} x=${from + 0.75} y=${BAND + 0.75} width=${Math.max(1, size - 1.5)} height=${HIGH - 1.5} />
      <line x1=${from} x2=${from + size} y1=${BAND + HIGH / 2} y2=${BAND + HIGH / 2} />
      ${size > 30 && span.epoch !== null && html`<text x=${from + 5} y=${BAND + 9.5}>${`e${span.epoch}`}</text>`}
      <title>${said}</title></g>`;
  }));
}

function Flags({ log, axis }) {
  const end = axis.x(log.end);
  const hasHw = log.hw !== undefined && log.hw !== null;
  const hw = hasHw ? axis.x(Math.min(log.hw, Math.max(log.end, log.hw))) : 0;
  const hwText = `HW ${number(log.hw || 0)}`;
  const isLeft = hw - hwText.length * 6.4 - 6 > 0;
  // Where there is no room for its own label, the LEO's has it.
  const isBeside = hasHw && !isLeft && end - hw < 60;
  return html`
    ${log.start > 0 && html`<g class="flag start"><path d=${`M${axis.x(log.start)} ${BAND - 4}v${HIGH + 8}h5M${axis.x(log.start)} ${BAND - 4}h5`} /><title>${`log start ${number(log.start)}`}</title></g>`}
    <g class="flag leo"><path d=${`M${end} ${BAND - 12}V${BELOW + 3}`} /><text x=${end + 4} y=${BAND - 5}>${isBeside ? `${hwText}, ` : ""}LEO ${number(log.end)}</text><title>${`log end offset ${number(log.end)}`}</title></g>
    ${hasHw && html`<g class="flag hw"><path d=${`M${hw} ${BAND - 12}V${BELOW + 3}`} />
      ${isLeft ? html`<text x=${hw - 4} y=${BAND - 5} text-anchor="end">${hwText}</text>` : isBeside ? null : html`<text x=${hw + 4} y=${BAND - 5}>${hwText}</text>`}
      <title>${`high watermark ${number(log.hw)}`}</title></g>`}`;
}

/** A log; `picked` is the offset under the pointer or null, `pick` sets it. */
export function Strip({ log, axis, width, picked, pick, low, high }) {
  const name = clean(log.node, 40);
  const key = (event) => {
    const turn = { ArrowUp: 1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (event.key === "Escape") pick(null);
    if (!turn) return;
    event.preventDefault();
    event.stopPropagation();
    const from = picked === null ? log.end : picked;
    pick(Math.max(low, Math.min(high - 1, from + turn)));
  };
  const move = (event) => pick(axis.offsetAt(event.clientX - event.currentTarget.getBoundingClientRect().left));
  const isUp = log.status === "up";
  const value = picked === null ? log.end : picked;
  const unsyncedFrom = log.durable === undefined || log.durable === null ? log.end : Math.max(log.start, log.durable);
  return html`<svg class=${`strip${isUp ? "" : " is-down"}`} width=${width} height=${STRIP_HEIGHT} role="slider" tabindex="0"
    aria-label=${`Log of ${name}: ${describe(log)}`} aria-orientation="vertical" aria-valuemin=${low} aria-valuemax=${Math.max(low, high)} aria-valuenow=${value}
    aria-valuetext=${picked === null ? `log end ${log.end}` : `offset ${picked}: ${recordText(log, picked).text}`}
    onMouseMove=${move} onMouseLeave=${() => pick(null)} onKeyDown=${key} onBlur=${() => pick(null)}>
    <line class="base" x1="0" x2=${axis.x(high) + 8} y1=${BELOW + 0.5} y2=${BELOW + 0.5} />
    ${log.spans.map((each) => html`<${Span} key=${`${each.base}-${each.epoch}`} span=${each} axis=${axis} />`)}
    ${cells(log, axis)}
    ${unsyncedFrom < log.end && html`<rect class="unsynced" x=${axis.x(unsyncedFrom)} y=${BAND} width=${Math.max(1, axis.x(log.end) - axis.x(unsyncedFrom))} height=${HIGH} fill="url(#hatch)"><title>${`not synced: ${number(unsyncedFrom)} to ${number(log.end - 1)}`}</title></rect>`}
    ${axis.breaks.map(([from, to, count], i) => from < axis.x(log.end) && html`<g key=${i} class="break"><path d=${`M${breakAt([from, to])} ${BELOW + 2}l4-${HIGH + 4}m4 0l-4 ${HIGH + 4}`} /><title>${`${number(count)} offsets, drawn shorter`}</title></g>`)}
    ${log.differs.map(([base, end], i) => html`<rect key=${i} class="differs" x=${axis.x(base)} y=${BELOW - 3} width=${axis.x(end) - axis.x(base)} height="3"><title>${`differs from the leader's log: ${number(base)} to ${number(end - 1)}`}</title></rect>`)}
    <${Ghosts} log=${log} axis=${axis} />
    ${ticksOf(log, axis)}
    <${Segments} log=${log} axis=${axis} />
    <${Flags} log=${log} axis=${axis} />
    ${picked !== null && html`<rect class="picked" x=${axis.x(picked)} y=${BAND - 2} width=${Math.max(2, axis.x(picked + 1) - axis.x(picked))} height=${HIGH + 4} />`}
  </svg>`;
}
