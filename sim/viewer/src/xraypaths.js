// The two ways from the page cache to a consumer, with their copies and switches counted.
import { signal } from "@preact/signals";
import { clean, html, number, useWidth } from "./dom.js";
import { Choice } from "./xraychoice.js";
import { panel } from "./xraystate.js";

const way = signal(0);
const isTls = signal(false);

const HIGH = 40;
const LANES = [["process", 22], ["kernel", 116], ["hardware", 210]];
// Where each place stands: lane, and 0 left, 1 middle, 2 right.
const PLACES = new Map([
  ["buffer of the process", [0, 1]],
  ["page cache", [1, 0]],
  ["socket buffer", [1, 2]],
  ["disk", [2, 0]],
  ["network card", [2, 2]],
]);

function boxOf(name, width) {
  const found = PLACES.get(name);
  if (!found) return null;
  const size = Math.min(190, (width - 24) / 2.4);
  const x = [1, (width - size) / 2, width - size - 1][found[1]];
  return { x, y: LANES[found[0]][1], size };
}

// The middle of an edge, on the side that the other box lies on.
function ends(from, to) {
  const [fx, tx] = [from.x + from.size / 2, to.x + to.size / 2];
  if (from.y === to.y) {
    return [from.x < to.x ? from.x + from.size : from.x, from.y + HIGH / 2, from.x < to.x ? to.x - 7 : to.x + to.size + 7, to.y + HIGH / 2];
  }
  const isUp = to.y < from.y;
  const shift = Math.sign(tx - fx) * from.size * 0.28;
  return [fx + shift, isUp ? from.y : from.y + HIGH, tx - Math.sign(tx - fx) * to.size * 0.28, isUp ? to.y + HIGH + 7 : to.y - 7];
}

function Arrow({ step, n, width }) {
  const from = boxOf(step.from, width);
  const to = boxOf(step.to, width);
  if (!from || !to) return null;
  const [x1, y1, x2, y2] = ends(from, to);
  const [mx, my] = [(x1 + x2) / 2, (y1 + y2) / 2];
  const label = step.how === "CPU" ? "CPU copy" : step.how === "DMA" ? "DMA copy" : "descriptor only";
  const isLeft = mx > width * 0.7;
  const isFlat = y1 === y2;
  const isSteep = Math.abs(x2 - x1) < 60;
  return html`<g class=${`xr-arrow ${step.how === "CPU" ? "cpu" : step.how === "DMA" ? "dma" : "handle"}`}>
    <line x1=${x1} y1=${y1} x2=${x2} y2=${y2} marker-end=${`url(#xr-tip-${step.how === "CPU" ? "cpu" : step.how === "DMA" ? "dma" : "handle"})`} />
    <circle cx=${mx} cy=${my} r="9.5" /><text class="xr-dot-n" x=${mx} y=${my + 4} text-anchor="middle">${n}</text>
    <text class="xr-arrow-label" x=${isFlat || !isSteep ? mx : isLeft ? mx - 14 : mx + 14} y=${isFlat ? my - 15 : isSteep ? my + 4 : my + 23} text-anchor=${isFlat || !isSteep ? "middle" : isLeft ? "end" : "start"}>${label}</text>
  </g>`;
}

function Drawing({ path }) {
  const [ref, width] = useWidth(600);
  const used = new Set(path.steps.flatMap((each) => [each.from, each.to]));
  return html`<div class="xr-path" ref=${ref}><svg width=${width} height="262" aria-hidden="true">
    <defs>${["cpu", "dma", "handle"].map((each) => html`<marker key=${each} id=${`xr-tip-${each}`} viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse" orient="auto"><path class=${`xr-tip ${each}`} d="M0 0l8 4-8 4z" /></marker>`)}</defs>
    ${LANES.map(([name, y], i) => html`<g key=${name}><rect class=${`xr-lane lane-${i}`} x="0" y=${y - 22} width=${width} height="78" /><text class="xr-lane-name" x=${width - 8} y=${y - 7} text-anchor="end">${name}</text></g>`)}
    ${[...PLACES.keys()].map((name) => {
      const box = boxOf(name, width);
      return html`<g key=${name} class=${`xr-box${used.has(name) ? "" : " unused"}`}><rect x=${box.x} y=${box.y} width=${box.size} height=${HIGH} rx="5" />
        <text x=${box.x + box.size / 2} y=${box.y + HIGH / 2 + 4.5} text-anchor="middle">${name}</text></g>`;
    })}
    ${path.steps.map((each, i) => html`<${Arrow} key=${i} step=${each} n=${i + 1} width=${width} />`)}
  </svg></div>`;
}

/** Both ways, one of them drawn. */
export function Transfer() {
  const paths = panel().transfer;
  if (!paths.length) return html`<p class="quiet">This page has no data for it.</p>`;
  const copying = paths.findIndex((each) => each.cpu_copies > 0);
  const now = isTls.value && copying >= 0 ? copying : Math.min(way.value, paths.length - 1);
  const path = paths[now];
  const options = paths.map((each, i) => [i, each.cpu_copies ? `${clean(each.name, 30)}` : `${clean(each.name, 30)} (zero-copy)`, isTls.value && !each.cpu_copies]);
  const rows = [["Context switches", "switches"], ["Copies by the CPU", "cpu_copies"], ["Copies by DMA", "dma_copies"]];
  return html`<div class="xr-transfer">
    <div class="xr-bar"><${Choice} label="Way to the consumer" options=${options} now=${now} pick=${(each) => { way.value = each; }} />
      <label class="xr-check"><input type="checkbox" checked=${isTls.value} onChange=${(event) => { isTls.value = event.currentTarget.checked; }} /> with TLS</label></div>
    <${Drawing} path=${path} />
    <div class="xr-two">
      <ol class="xr-path-steps" aria-label="The steps in order">${path.steps.map((each, i) => html`<li key=${i}><span class="xr-n">${i + 1}</span>
        <span>${clean(each.from, 40)} → ${clean(each.to, 40)} <b>${each.how === "descriptor" ? "descriptor, no copy" : `${clean(each.how, 12)} copy`}</b><br /><span class="quiet">${clean(each.text, 120)}</span></span></li>`)}</ol>
      <table class="xr-table xr-counts"><caption class="unseen">Both ways, counted</caption><thead><tr><td></td>${paths.map((each, i) => html`<th scope="col" key=${i} class=${i === now ? "on" : ""}>${clean(each.name, 30)}</th>`)}</tr></thead>
        <tbody>${rows.map(([title, key]) => html`<tr key=${key}><th scope="row">${title}</th>${paths.map((each, i) => html`<td key=${i} class=${i === now ? "on" : ""}>${number(each[key])}</td>`)}</tr>`)}
        <tr><th scope="row">System calls</th>${paths.map((each, i) => html`<td key=${i} class=${`xr-calls${i === now ? " on" : ""}`}><code>${clean(each.system_calls, 80)}</code></td>`)}</tr></tbody></table>
    </div>
    <p>${clean(path.note, 300)}</p>
    ${isTls.value && html`<p class="xr-lost"><b>TLS forces the copying way.</b> What is to be enciphered has to pass through the process, so a broker with TLS listeners copies, whatever it is set to.</p>`}
    <p class="quiet">What it saves in time depends on the machine, so no figure stands here. Measure your own: <code>leaderfall xray --transfer</code></p>
  </div>`;
}
