// The scene as SVG.
import { clean, html, number } from "./dom.js";
import { epochClass } from "./parts.js";
import { tables } from "./spacedata.js";
import { model } from "./store.js";

/** A glyph by kind, as a path round 0 0; what it is filled with, its class says. */
export function glyphOf(kind) {
  switch (kind) {
    case "send": return ["M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z", "hollow"];
    case "deliver": return ["M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z", "solid"];
    case "drop": case "corrupt": case "reset": case "refuse": return ["M-3.5-3.5l7 7M3.5-3.5l-7 7", "line bad"];
    case "append": case "produce": return ["M-3.5-3.5h7v7h-7z", "record"];
    case "replicate": return ["M-3.2-3.2h6.4v6.4h-6.4z", "record hollow"];
    case "ack": return ["M-4 0l3 3.5l5-7", "line good"];
    case "reject": case "lost": return ["M-3.5-3.5l7 7M3.5-3.5l-7 7M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z", "line bad"];
    case "hw": return ["M-2.5 5v-9h6l-2 2.5l2 2.5h-6", "line accent"];
    case "truncate": case "quarantine": return ["M-5-4h10v8h-10zM-5 4l10-8", "line bad"];
    case "step": return ["M-5-5h10l-5 9z", "step"];
    case "fault": return ["M1-7l-5 8h3.5l-1.5 6l5.5-8h-3.5l2-6z", "fault"];
    case "heal": return ["M-5 0h10M0-5v10", "line fault"];
    case "expect": return ["M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z", "hollow step"];
    case "check": case "loss": return ["M0-6.5l6.5 6.5l-6.5 6.5l-6.5-6.5z", "bad"];
    case "crash": return ["M-5.5-5.5h11v11h-11zM-3-3l6 6M3-3l-6 6", "crash"];
    case "start": case "resume": return ["M-4-5.5l9 5.5l-9 5.5z", "good"];
    case "shutdown": case "stop": return ["M-4.5-4.5h9v9h-9z", "crash"];
    case "pause": return ["M-4-5h3v10h-3zM1-5h3v10h-3z", "warn"];
    case "elect": return ["M0-7l2 4.6l5 .4l-3.8 3.3l1.2 4.9l-4.4-2.6l-4.4 2.6l1.2-4.9l-3.8-3.3l5-.4z", "accent"];
    case "isr": case "isr-proposed": return ["M-3-5h6l3 5l-3 5h-6l-3-5z", kind === "isr" ? "accent" : "hollow accent"];
    case "role": case "register": case "unfence": case "fence": case "open": return ["M0-5l5 5l-5 5l-5-5z", kind === "fence" ? "warn" : "hollow accent"];
    case "timer": return ["M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0zM0-1.8v1.8h1.5", "line"];
    case "write": case "fsync": case "synced": case "disk": case "checkpoint": return [kind === "fsync" || kind === "synced" ? "M0-5v10M-2.5 5h5" : "M0-4v8", "line"];
    default: return ["M0-3.5l3.5 3.5l-3.5 3.5l-3.5-3.5z", "hollow"];
  }
}

function kindOf(n) {
  return model.strings[model.tracks.events.kind[n - 1]];
}

function Glyph({ n, x, y, more, past, isNow }) {
  const [path, look] = glyphOf(kindOf(n));
  return html`<path class=${`glyph ${look}${past ? " past" : ""}${isNow ? " is-now" : ""}${more ? " more" : ""}`} transform=${`translate(${r(x)} ${r(y)})`} d=${path} />`;
}

function r(value) {
  return Math.round(value * 10) / 10;
}

function short(name, most) {
  const text = clean(name, 200);
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function Lanes({ scene, selected }) {
  return scene.frame.lanes.map((row) => html`<g key=${row.name} class=${`lane ${row.what}${row.name === selected ? " selected" : ""}`}>
    ${row.name === selected && html`<rect class="lane-back" x="0" y=${r(row.y - 18)} width=${scene.right + 14} height=${row.height - 2} />`}
    <text class="lane-name" x="10" y=${r(row.y + (row.what === "world" ? 4 : 1))}>${short(row.name, scene.left < 80 ? 7 : 12)}<title>${clean(row.name, 80)}</title></text>
    ${row.what !== "world" && html`<text class="lane-what" x="10" y=${r(row.y + 13)}>${row.what === "other" ? "" : row.what}</text>`}
  </g>`);
}

function Statuses({ scene }) {
  return scene.statuses.map(({ row, x1, x2, status, n }, i) => html`<g key=${i} class=${`status status-${clean(status, 10).replace(/[^a-z]/g, "-")}`}>
    <line x1=${r(x1)} x2=${r(x2)} y1=${row.y} y2=${row.y}>${n ? html`<title>${`${clean(row.name, 40)} ${clean(status, 20)} since #${n}`}</title>` : null}</line></g>`);
}

function Bands({ scene, isSeveral }) {
  const name = (each) => short(each.partition.name, 18);
  return scene.bands.map((each, i) => {
    const size = each.x2 - each.x1;
    if (each.what === "isr") return html`<g key=${i} class="isr-band"><rect x=${r(each.x1)} y=${r(each.y - 0.5)} width=${r(size)} height="10" rx="1.5"><title>${`${clean(each.row.name, 30)} is in the ISR of ${name(each)}, from #${each.n0}`}</title></rect>
      ${size > (isSeveral ? name(each).length * 5 + 50 : 40) && !scene.bands.some((other) => other.what === "leader" && other.row === each.row && other.partition === each.partition && other.x1 < each.x1 + 50 && other.x2 > each.x1) && html`<text x=${r(each.x1 + 4)} y=${r(each.y + 7.5)}>${isSeveral ? `in sync, ${name(each)}` : "in sync"}</text>`}</g>`;
    const text = [`leader of ${name(each)} e${each.epoch}`, isSeveral ? `${name(each)} e${each.epoch}` : `leader e${each.epoch}`, `e${each.epoch}`].find((one) => one.length * 5.6 + 8 < size);
    return html`<g key=${i} class="leader-band"><rect class=${epochClass(each.epoch)} x=${r(each.x1)} y=${r(each.y - 1)} width=${r(size)} height="11" rx="1.5"><title>${`${clean(each.row.name, 30)} leads ${name(each)} in epoch ${each.epoch}, from #${each.n0}`}</title></rect>
      ${text && html`<text x=${r(each.x1 + 4)} y=${r(each.y + 7.5)}>${text}</text>`}</g>`;
  });
}

function Faults({ scene }) {
  return scene.faults.map((each, i) => html`<g key=${i} class="fault-band">
    <rect class="tint" x=${r(each.x1)} y=${each.y} width=${r(each.x2 - each.x1)} height=${r(scene.frame.height - each.y)} />
    <rect class="head" x=${r(each.x1)} y=${each.y} width=${r(each.x2 - each.x1)} height="3" />
    ${each.room > 24 && html`<text x=${r(each.x1 + 1)} y=${each.y + 13}>${cut(each.text, each.room)}<title>${each.text}</title></text>`}</g>`);
}

function cut(text, room) {
  const most = Math.floor(room / 5.8);
  return text.length > most ? `${text.slice(0, Math.max(1, most - 1))}…` : text;
}

function Axis({ scene }) {
  const bottom = scene.frame.height;
  return html`<g class="space-axis">
    ${scene.breaks.map((each, i) => html`<g key=${`b${i}`} class="quiet-stretch"><rect x=${r(each.x1)} y=${scene.frame.top - 8} width=${r(Math.max(1, each.x2 - each.x1))} height=${r(bottom - scene.frame.top + 4)} />
      ${each.x2 - each.x1 > each.text.length * 5.4 + 8 && html`<text x=${r((each.x1 + each.x2) / 2)} y=${bottom - 5} text-anchor="middle">⟷ ${each.text}</text>`}<title>${`${each.text} in which nothing happened, drawn shorter`}</title></g>`)}
    ${scene.ticks.map((each) => html`<g key=${each.x}><line class="tick" x1=${r(each.x)} x2=${r(each.x)} y1="30" y2=${bottom - 2} />
      ${each.n > 0 && html`<text class="tick-n" x=${r(each.x)} y="12" text-anchor="middle">#${each.n}</text>`}<text x=${r(each.x)} y="25" text-anchor="middle">${each.t}</text></g>`)}
  </g>`;
}

function Arrow({ each }) {
  const size = Math.hypot(each.x2 - each.x1, each.y2 - each.y1) || 1;
  const [ux, uy] = [(each.x2 - each.x1) / size, (each.y2 - each.y1) / size];
  const [hx, hy] = [each.x2 - ux * 4, each.y2 - uy * 4];
  const look = `arrow ${each.fate === "delivered" ? "" : each.fate === "dropped" ? "lost" : "pending"}${each.isPast ? " past" : ""}${each.isMain ? " main" : ""}`;
  const head = each.fate === "dropped"
    ? html`<path class="cross" d=${`M${r(each.x2 - 4)} ${r(each.y2 - 4)}l8 8m0-8l-8 8`} />`
    : each.end !== null && html`<path class="head" d=${`M${r(hx)} ${r(hy)}L${r(hx - ux * 6 - uy * 3)} ${r(hy - uy * 6 + ux * 3)}L${r(hx - ux * 6 + uy * 3)} ${r(hy - uy * 6 - ux * 3)}z`} />`;
  return html`<g class=${look}><line x1=${r(each.x1)} y1=${r(each.y1)} x2=${r(each.fate === "dropped" ? each.x2 : hx)} y2=${r(each.fate === "dropped" ? each.y2 : hy)} />${head}</g>`;
}

function Chain({ scene }) {
  return scene.chain.map((each, i) => {
    const look = `chain${each.isMain ? " main" : ""}${each.isSame ? "" : " across"}`;
    return html`<line key=${i} class=${look} x1=${r(Math.max(each.x1, scene.left - 10))} y1=${r(each.y1)} x2=${r(each.x2)} y2=${r(each.y2)} />`;
  });
}

// A pill makes room for the current event's ring.
function besideNow(middle, size, each, scene) {
  const { lane } = tables();
  if (!scene.isNowIn || lane[scene.now] !== each.row.index || Math.abs(middle - scene.nowX) > size / 2 + 11) return middle;
  return each.n < scene.now ? scene.nowX - size / 2 - 12 : scene.nowX + size / 2 + 12;
}

function Events({ scene }) {
  const { past, now, most } = scene;
  const hasPast = past.events.size > 1;
  if (scene.isDense) {
    return scene.clusters.map((each, i) => {
      const height = 4 + 15 * Math.sqrt(each.count / most);
      return html`<rect key=${i} class=${`pile${each.past ? " past" : ""}`} x=${r(scene.pile ? Math.floor(each.x0 / scene.pile) * scene.pile : each.x0 - 1)} y=${r(each.y - height / 2)} width=${r(scene.pile ? scene.pile - 0.7 : Math.max(2, each.x1 - each.x0 + 2))} height=${r(height)} />`;
    });
  }
  return scene.clusters.map((each) => {
    if (each.count === 1) return html`<${Glyph} key=${each.n} n=${each.n} x=${each.x0} y=${each.y} past=${each.past > 0 && hasPast} isNow=${each.n === now} />`;
    const text = number(each.count);
    const size = Math.max(each.x1 - each.x0 + 8, text.length * 6 + 7);
    const middle = besideNow((each.x0 + each.x1) / 2, size, each, scene);
    return html`<g key=${each.n} class=${`pill${each.past && hasPast ? " past" : ""}`}><rect x=${r(middle - size / 2)} y=${r(each.y - 6.5)} width=${r(size)} height="13" rx="6.5" />
      <text x=${r(middle)} y=${r(each.y + 3.5)} text-anchor="middle">${text}</text></g>`;
  });
}

function Majors({ scene }) {
  return html`${scene.extra.map((each) => html`<circle key=${`x${each.n}`} class="extra past" cx=${r(each.x)} cy=${r(each.y)} r="2.2" />`)}
    ${scene.majors.map((each) => html`<${Glyph} key=${each.n} n=${each.n} x=${each.x} y=${each.y} more=${each.more} past=${scene.past.events.has(each.n) && scene.past.events.size > 1} isNow=${each.n === scene.now} />`)}`;
}

function Now({ scene }) {
  if (!scene.isNowIn) return null;
  const { lane } = tables();
  const row = scene.frame.lanes.find((each) => each.index === lane[scene.now]);
  const text = `#${scene.now}`;
  const size = text.length * 6.6 + 10;
  const x = Math.max(scene.left, Math.min(scene.right + 14 - size, scene.nowX - size / 2));
  return html`<g class="now-mark"><line x1=${r(scene.nowX)} x2=${r(scene.nowX)} y1="16" y2=${scene.frame.height} />
    ${row && html`<circle cx=${r(scene.nowX)} cy=${r(row.y)} r="10" />`}
    <rect x=${r(x)} y="1" width=${r(size)} height="15" rx="3" /><text x=${r(x + size / 2)} y="12" text-anchor="middle">${text}</text></g>`;
}

/** The drawing; `label` is its name for a screen reader. */
export function Shapes({ scene, width, label, selected, isSeveral, id, pointed }) {
  const { frame, left, right } = scene;
  return html`<svg class=${`space-svg${scene.past.events.size > 1 ? " has-past" : ""}${scene.isDense ? " is-dense" : ""}`} width=${width} height=${frame.height} viewBox=${`0 0 ${width} ${frame.height}`} role="img" aria-label=${label}>
    <defs><clipPath id=${id}><rect x=${left - 11} y="0" width=${right - left + 25} height=${frame.height} /></clipPath></defs>
    <${Lanes} scene=${scene} selected=${selected} />
    <g clip-path=${`url(#${id})`}>
      <${Faults} scene=${scene} /><${Axis} scene=${scene} /><${Statuses} scene=${scene} /><${Bands} scene=${scene} isSeveral=${isSeveral} />
      ${scene.arrows.filter((each) => !each.isPast).map((each) => html`<${Arrow} key=${each.i} each=${each} />`)}
      <${Chain} scene=${scene} />
      ${scene.arrows.filter((each) => each.isPast).map((each) => html`<${Arrow} key=${each.i} each=${each} />`)}
      <${Events} scene=${scene} /><${Majors} scene=${scene} />
      ${scene.labels.map((each, i) => html`<text key=${i} class=${`word ${each.kind}`} x=${r(each.x)} y=${r(each.y)} text-anchor=${each.anchor}>${each.text}</text>`)}
      <${Now} scene=${scene} />
      ${pointed && html`<circle class="pointed" cx=${r(pointed.x)} cy=${r(pointed.y)} r="9" />`}
    </g>
  </svg>`;
}
