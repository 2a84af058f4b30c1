// A batch as bytes, with its fields marked.
import { signal } from "@preact/signals";
import { clean, html, number, useRef, useWidth } from "./dom.js";
import { ask, data, found, panel } from "./xraystate.js";

const TINTS = 6;
/** The number of the field that is pointed at, or -1. */
const field = signal(-1);

/** The batches that are there in hex, as [[segment, batch, view], ...], and that of the look-up. */
function chosen(xray, look) {
  const { hex } = xray;
  if (!hex.length) return null;
  const { result } = look;
  if (!result) return { entry: hex[0], isExact: false };
  let best = hex[0];
  for (const each of hex) {
    if (each[0] < result.segment || (each[0] === result.segment && each[1] <= result.batch)) best = each;
  }
  return { entry: best, isExact: best[0] === result.segment && best[1] === result.batch };
}

function printable(code) {
  return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : "·";
}

function Grid({ bytes, owners, per, position }) {
  const rows = [];
  for (let start = 0; start < bytes.length; start += per) rows.push(start);
  const active = field.value;
  const cell = (at, text) => {
    const owner = owners[at];
    const isOn = owner === active && active >= 0;
    return html`<span key=${at} class=${`xr-byte f${owner % TINTS}${isOn ? " on" : ""}`} onMouseEnter=${() => { field.value = owner; }}>${text}</span>`;
  };
  return html`<div class="xr-bytes" aria-hidden="true" onMouseLeave=${() => { field.value = -1; }}>
    ${rows.map((start) => html`<div class="xr-line" key=${start}><span class="xr-at">${(position + start).toString(16).padStart(8, "0")}</span>
      <span class="xr-hexes">${bytes.slice(start, start + per).map((each, i) => cell(start + i, each.toString(16).padStart(2, "0")))}</span>
      ${per === 16 && html`<span class="xr-chars">${bytes.slice(start, start + per).map((each, i) => cell(start + i, printable(each)))}</span>`}</div>`)}
  </div>`;
}

function Fields({ fields, names }) {
  const list = useRef(null);
  const move = (event) => {
    const rows = [...list.current.querySelectorAll("button")];
    const at = rows.indexOf(event.target);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    rows[Math.max(0, Math.min(rows.length - 1, to))].focus();
  };
  const now = field.value < 0 ? 0 : Math.min(field.value, fields.length - 1);
  return html`<ol class="xr-fields" aria-label="Fields of the batch; the arrow keys go through them" ref=${list} onKeyDown=${move}>
    ${fields.map(([name, , , value], i) => html`<li key=${i}><button type="button" tabindex=${i === now ? 0 : -1} class=${i === field.value ? "on" : ""}
      onFocus=${() => { field.value = i; }} onMouseEnter=${() => { field.value = i; }} onClick=${() => { field.value = i; }}>
      <i class=${`xr-swatch f${i % TINTS}`}></i><span class="xr-field">${clean(names[name][0], 60)}</span> <span class="xr-value">${clean(value, 60)}</span></button></li>`)}
  </ol>`;
}

function Telling({ view, names, position }) {
  const each = view.fields[field.value];
  if (!each) return html`<p class="xr-telling quiet" role="status">Point at a byte or a field, or focus a field and use ↑ ↓.</p>`;
  const [name, start, end, value] = each;
  const shown = view.bytes.slice(2 * start, 2 * Math.min(end, start + 16)).replace(/../g, "$& ").trim();
  return html`<p class="xr-telling" role="status"><b>${clean(names[name][0], 60)}</b> ${clean(value, 200)}: ${clean(names[name][1], 300)}. <span class="quiet">${end - start === 1 ? `Byte ${number(start)}` : `Bytes ${number(start)} to ${number(end - 1)}`} of the batch, ${number(position + start)} of the file${shown ? html`: <code>${shown}${end - start > 16 ? " …" : ""}</code>` : ""}</span></p>`;
}

/** The batch that the look-up found, or the nearest one that the page has. */
export function HexView() {
  const [ref, width] = useWidth(600);
  const xray = data.value;
  const look = found.value;
  const here = chosen(xray, look);
  if (!here) return html`<p class="quiet">No batch of this log is in the page.</p>`;
  const { fields: names, views } = panel();
  const [s, b, v] = here.entry;
  const view = views[v];
  const row = xray.segments[s].batches[b];
  const bytes = (view.bytes.match(/../g) || []).map((each) => parseInt(each, 16));
  const owners = new Array(bytes.length).fill(0);
  view.fields.forEach(([, start, end], i) => owners.fill(i, start, Math.min(end, bytes.length)));
  const per = width >= 520 ? 16 : 8;
  return html`<div class="xr-hex" ref=${ref}>
    <p>${here.isExact ? "The batch that the look-up found" : look.result ? "The batch that was found is not in the page in hex; the nearest one in front of it" : "No batch was found; one of this log"}: <code>${clean(xray.segments[s].file, 40)}</code>, byte ${number(row[0])}, ${number(row[1])} bytes, ${row[3] - row[2] === 1 ? `offset ${number(row[2])}` : `offsets ${number(row[2])} to ${number(row[3] - 1)}`}.
      ${!here.isExact && look.result && html` <code>leaderfall xray DIRECTORY --offset ${look.result.base_offset}</code> shows it in a terminal.`}</p>
    <div class="xr-bar xr-steps-bar"><button type="button" class="xr-button" disabled=${row[2] <= xray.marks.log_start.offset} onClick=${() => ask(Math.max(xray.marks.log_start.offset, row[2] - 1))}>← batch before</button>
      <button type="button" class="xr-button" disabled=${row[3] >= xray.marks.log_end.offset} onClick=${() => ask(row[3])}>batch behind →</button>
      <span class="quiet">${clean(view.format, 12)}${view.is_whole ? "" : `; the first ${number(bytes.length)} bytes`}</span></div>
    <${Telling} view=${view} names=${names} position=${row[0]} />
    <div class="xr-hex-two"><${Grid} bytes=${bytes} owners=${owners} per=${per} position=${row[0]} />
      <${Fields} fields=${view.fields} names=${names} /></div>
  </div>`;
}
