// A binary search over a row of entries: below the row, each probe with the range that was left.
import { clean, html, number, useWidth } from "./dom.js";

const TOP = 34;
const ROW = 24;
const CELL_LEAST = 5;
const CELL_MOST = 90;
const ALL_MOST = 300;

// Labels as far as they do not run into each other; those in front matter more.
function apart(wanted, width) {
  const kept = [];
  for (const each of wanted) {
    const half = each.size / 2;
    const x = Math.min(Math.max(each.x, half), width - half);
    if (kept.every((other) => Math.abs(other.x - x) > (other.size + each.size) / 2 + 6)) kept.push({ ...each, x });
  }
  return kept;
}

function Cells({ width, values, place, cell, chosen, probed, words, below, titles }) {
  const labelOf = (i) => clean(words(values[i]), 30);
  const sizeOf = (i) => 6.6 * Math.max(labelOf(i).length, below ? below(i).length : 0);
  const important = [...new Set([chosen, ...probed.slice().reverse(), 0, values.length - 1])].filter((i) => i >= 0);
  const rest = values.length <= ALL_MOST ? values.keys() : [];
  const order = [...new Set([...important, ...rest])].filter((i) => i < values.length);
  const labels = apart(order.map((i) => ({ i, x: place(i) + cell / 2, size: sizeOf(i) })), width);
  return html`
    ${cell >= CELL_LEAST && values.length <= ALL_MOST
      ? values.map((each, i) => html`<rect key=${i} class=${`xr-cell${i === chosen ? " chosen" : probed.includes(i) ? " probed" : ""}`}
          x=${place(i) + 0.5} y=${TOP - 7} width=${Math.max(1, cell - 1.5)} height="11" rx="1.5"><title>${clean(titles(i), 120)}</title></rect>`)
      : html`<rect class="xr-cell" x="0" y=${TOP - 7} width=${width} height="11" rx="1.5"><title>${`${number(values.length)} entries`}</title></rect>
        ${[...new Set([...probed, chosen])].filter((i) => i >= 0).map((i) => html`<rect key=${i} class=${`xr-cell ${i === chosen ? "chosen" : "probed"}`}
          x=${place(i)} y=${TOP - 7} width="3" height="11"><title>${clean(titles(i), 120)}</title></rect>`)}`}
    ${labels.map(({ i, x }) => html`<text key=${i} class=${`xr-label${i === chosen ? " chosen" : ""}`} x=${x} y=${below ? 9 : 20} text-anchor="middle">${labelOf(i)}
      ${below && html`<tspan class="xr-below" x=${x} dy="11.5">${below(i)}</tspan>`}</text>`)}`;
}

/** The row, the probes in order, and what each compared. */
export function Ladder({ what, probes, chosen, values, words, below, titles, saying }) {
  const [ref, width] = useWidth(420);
  const cell = Math.min(CELL_MOST, width / Math.max(1, values.length));
  const place = (i) => i * cell;
  const height = TOP + 8 + probes.length * ROW;
  return html`<div class="xr-ladder">
    <div class="xr-ladder-draw" ref=${ref}><svg width=${width} height=${height} aria-hidden="true">
      <${Cells} width=${width} values=${values} place=${place} cell=${cell} chosen=${chosen} probed=${probes.map((each) => each.number)}
        words=${words} below=${below} titles=${titles} />
      ${probes.map((each, i) => {
        const y = TOP + 8 + i * ROW + ROW / 2;
        const x = Math.min(Math.max(place(each.number) + cell / 2, 9), width - 9);
        return html`<g key=${i}>
          <rect class="xr-range" x=${place(each.low)} y=${y - 3} width=${Math.max(2, place(each.high) - place(each.low))} height="6" rx="3" />
          <rect class="xr-range kept" x=${each.goes === "left" ? place(each.low) : place(each.number)} y=${y - 3}
            width=${Math.max(2, (each.goes === "left" ? place(each.number) : place(each.high)) - (each.goes === "left" ? place(each.low) : place(each.number)))} height="6" rx="3" />
          <line class="xr-drop" x1=${x} x2=${x} y1=${TOP + 5} y2=${y - 9} />
          <circle class=${`xr-dot${each.number === chosen ? " chosen" : ""}`} cx=${x} cy=${y} r="9" />
          <text class="xr-dot-n" x=${x} y=${y + 3.8} text-anchor="middle">${i + 1}</text></g>`;
      })}
      ${probes.length === 0 && html`<text class="xr-label" x="0" y=${TOP + 20}>no entries</text>`}
    </svg></div>
    <ol class="xr-probes" aria-label=${`Probes of the binary search, ${probes.length}`} style=${{ paddingTop: `${TOP + 8}px` }}>
      ${probes.map((each, i) => html`<li key=${i}><span class="xr-probe-n">${i + 1}</span><span class="xr-probe-what">${what} ${number(each.number)}</span> ${saying(each)}</li>`)}
    </ol>
  </div>`;
}
