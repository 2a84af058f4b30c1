// Tracks over the run: what was expected and held, faults, nodes, leaders, in-sync replicas, lags.
import { signal } from "@preact/signals";
import { counted, html, number, time, useMemo, useRef, useWidth } from "./dom.js";
import { Empty, epochClass } from "./parts.js";
import { register } from "./registry.js";
import { drawn } from "./spacedata.js";
import { axis, scaleOf, sight, timePlaces } from "./spacescale.js";
import { bisect, go, model, step, tell, timeOf } from "./store.js";
import { groups, lagColumns } from "./trackdata.js";

const NARROW = 520;
const LAG_HIGH = 24;
const CAPTION = 15;

/** "run" for all of it, "window" for what the space-time diagram has in sight. */
const reach = signal("run");
/** "steps": one place an event, as on the slider; "time": virtual time, quiet stretches shorter. */
const ruler = signal("steps");
const folded = signal(new Map());

function reachOf() {
  if (reach.value === "run" || !sight.value) return [1, Math.max(2, model.last)];
  const scale = scaleOf(axis.value, drawn.value);
  return [Math.max(1, scale.nearest(Math.max(0, sight.value.from))), Math.max(2, scale.nearest(sight.value.to))];
}

// Where an event stands, and which event stands at a place.
function makePlace(width) {
  const [low, high] = reachOf();
  const room = Math.max(40, width);
  if (ruler.value === "time") {
    const { places } = timePlaces();
    const [from, size] = [places[low], places[high] - places[low] || 1];
    const x = (n) => (room * (places[Math.max(low, Math.min(high, n))] - from)) / size;
    const nAt = (px) => Math.max(low, Math.min(high, bisect(places, from + (px / room) * size) - 1));
    return { low, high, room, x, nAt };
  }
  const x = (n) => (room * (Math.max(low, Math.min(high, n)) - low)) / Math.max(1, high - low);
  const nAt = (px) => Math.max(low, Math.min(high, Math.round(low + (px / room) * (high - low))));
  return { low, high, room, x, nAt };
}

function r(value) {
  return Math.round(value * 10) / 10;
}

function fitted(text, room) {
  const most = Math.floor((room - 8) / 5.9);
  if (text.length <= most) return text;
  return most < 4 ? "" : `${text.slice(0, most - 1)}…`;
}

function fittedCode(text, room) {
  const most = Math.floor(room / 6.7);
  return text.length <= most ? text : `${text.slice(0, Math.max(1, most - 1))}…`;
}

function Bar({ bar, place, next, row, height, top }) {
  const [n0, n1, { text, tone, epoch, share }] = bar;
  if (n0 > place.high || n1 <= place.low) return null;
  const from = place.x(n0);
  const size = Math.max(2, place.x(n1) - from);
  // A short bar of a step or fault has its words behind it, up to the next one.
  const isOutside = row.isOpen && size < text.length * 5.9 + 8;
  const inset = (row.marks || []).includes(n0) ? 11 : 5;
  const label = isOutside ? fitted(text, Math.min(next, place.room) - from - size) : fitted(text, size - inset + 5);
  const high = share === undefined ? height : 4 + (height - 4) * share;
  return html`<g class=${`bar tone-${tone}`}>
    <rect class=${tone === "epoch" ? epochClass(epoch) : ""} x=${r(from)} y=${r(top + 1 + height - high)} width=${r(size - (size > 4 ? 1 : 0))} height=${r(high)} rx="2" />
    ${label && html`<text x=${r(isOutside ? from + size + 3 : from + inset)} y=${top + height / 2 + 5} class=${isOutside ? "outside" : ""}>${label}</text>`}
    <title>${`${text}, from #${number(n0)} ${n1 > model.last ? "to the end" : `to #${number(n1)}`}`}</title></g>`;
}

function Bars({ row, place }) {
  const height = row.caption ? 15 : 17;
  const top = row.caption ? CAPTION : 0;
  let free = -1;
  const list = row.bars.filter((each) => each[0] <= place.high && each[1] > place.low);
  const shown = [];
  // Bars that would fall on the same few px are drawn as one.
  let left = 0;
  for (const each of list) {
    const end = place.x(each[1]);
    if (end < free + 1.5 && end - place.x(each[0]) < 2) left += 1;
    else {
      shown.push(each);
      free = Math.max(free, end);
    }
  }
  return html`${row.caption && html`<text class="caption" x="0" y="11">${fittedCode(row.caption, place.room)}<title>${row.full}</title></text>`}
    ${shown.slice(0, 1200).map((each, i) => html`<${Bar} key=${i} bar=${each} row=${row} place=${place} height=${height} top=${top} next=${i + 1 < shown.length ? place.x(shown[i + 1][0]) : place.room} />`)}
    ${(row.strikes || []).length > 0 && html`<path class="strikes" d=${ticksOf(row.strikes, place, 14, 6)} />`}
    ${(row.marks || []).length > 0 && html`<path class="marks-bad" d=${diamonds(row.marks, place)} />`}
    ${left > 0 && html`<title>${counted(left, "short stretch", "short stretches")} are too short to be seen</title>`}`;
}

function ticksOf(numbers, place, y, size) {
  let d = "";
  let last = -9;
  for (const n of numbers) {
    if (n < place.low || n > place.high) continue;
    const x = r(place.x(n));
    if (x - last < 1.5) continue;
    last = x;
    d += `M${x} ${y}v${size}`;
  }
  return d;
}

function diamonds(numbers, place) {
  let d = "";
  let last = -9;
  for (const n of numbers) {
    const x = r(place.x(n));
    if (n < place.low || n > place.high || x - last < 4) continue;
    last = x;
    d += `M${x} 3l6 6l-6 6l-6-6z`;
  }
  return d;
}

const lags = new Map();
function columnsOf(row, place) {
  const key = `${row.key}|${place.low}|${place.high}|${place.room}|${ruler.value}`;
  if (!lags.has(key)) {
    if (lags.size > 60) lags.clear();
    const count = Math.max(1, Math.floor(place.room / 2));
    lags.set(key, lagColumns(row, count, (c) => (c >= count ? place.high + 1 : place.nAt(c * 2))));
  }
  return lags.get(key);
}

function lagWords(row, place) {
  const columns = columnsOf(row, place).filter(Boolean);
  if (!columns.length) return "nothing to compare with";
  return `at most ${counted(Math.max(...columns.map((each) => each[0])), "record")} behind the leader's log end, its high watermark at most ${number(Math.max(...columns.map((each) => each[1])))}`;
}

function Lag({ row, place }) {
  const columns = columnsOf(row, place);
  const most = Math.max(1, ...columns.map((each) => (each ? Math.max(each[0], each[1]) : 0)));
  const y = (value) => r(2 + (LAG_HIGH - 4) * (1 - value / most));
  const line = (i) => {
    let d = "";
    let isOn = false;
    columns.forEach((each, c) => {
      if (!each) isOn = false;
      else {
        d += isOn ? `H${c * 2}V${y(each[i])}` : `M${c * 2} ${y(each[i])}`;
        isOn = true;
        if (c === columns.length - 1) d += `H${r(place.room)}`;
      }
    });
    return d;
  };
  let area = "";
  columns.forEach((each, c) => {
    if (each && each[0] > 0) area += `M${c * 2} ${LAG_HIGH - 2}V${y(each[0])}h2V${LAG_HIGH - 2}z`;
  });
  return html`<line class="lag-zero" x1="0" x2=${place.room} y1=${LAG_HIGH - 2} y2=${LAG_HIGH - 2} />
    <path class="lag-area" d=${area} /><path class="lag-hw" d=${line(1)} /><path class="lag-leo" d=${line(0)} />
    <text class="lag-most" x=${place.room - 2} y="10" text-anchor="end">${most > 1 || columns.some((each) => each && (each[0] || each[1])) ? `max ${number(most)}` : ""}</text>`;
}

function nextChange(row) {
  const n = step.value;
  const index = bisect(row.changes, n);
  if (!row.changes.length) tell("This row never changes.");
  else go(index < row.changes.length ? row.changes[index] : row.changes[0]);
}

function Row({ row, place, width }) {
  const n = step.value;
  const height = row.shape === "lag" ? LAG_HIGH : row.caption ? CAPTION + 18 : 19;
  const [word, tone] = row.now(n);
  const drawing = useMemo(() => (row.shape === "lag" ? html`<${Lag} row=${row} place=${place} />` : html`<${Bars} row=${row} place=${place} />`), [row, place]);
  const words = row.shape === "lag" ? lagWords(row, place) : row.words;
  const pick = (event) => go(place.nAt(event.clientX - event.currentTarget.getBoundingClientRect().left));
  const name = row.label || "more steps";
  return html`<div class="track" role="row">
    <div class="track-name" role="rowheader">${row.label
      ? html`<button type="button" title=${`${row.full || row.label}; go to its next change`} aria-label=${`${row.full || row.label}: next change`} onClick=${() => nextChange(row)}><bdi>${row.label}</bdi></button>`
      : html`<span class="unseen">${name}</span>`}</div>
    <div class="track-line" role="cell"><svg class=${`track-svg ${row.shape}`} width=${width} height=${height} role="img" aria-label=${`${name}: ${words}.`} onClick=${pick}>
      ${drawing}
      ${n >= place.low && n <= place.high && html`<line class="playhead" x1=${r(place.x(n))} x2=${r(place.x(n))} y1="0" y2=${height} />`}
    </svg></div>
    <div class=${`track-now ${tone}`} role="cell"><bdi>${word}</bdi></div>
  </div>`;
}

function Ruler({ place, width }) {
  const n = step.value;
  const count = Math.max(2, Math.floor(width / 110));
  const marks = [];
  let free = -1;
  for (let i = 0; i <= count; i += 1) {
    const each = place.nAt((i * place.room) / count);
    const x = place.x(each);
    if (x >= free) marks.push([each, x]);
    free = Math.max(free, x + 80);
  }
  const text = `#${n}`;
  const size = text.length * 6.6 + 10;
  const at = Math.max(0, Math.min(width - size, place.x(n) - size / 2));
  const isIn = n >= place.low && n <= place.high;
  return html`<svg class="track-svg ruler" width=${width} height="32" aria-hidden="true" onClick=${(event) => go(place.nAt(event.clientX - event.currentTarget.getBoundingClientRect().left))}>
    ${marks.map(([each, x], i) => {
      const anchor = i === 0 && x < 20 ? "start" : x > width - 30 ? "end" : "middle";
      return html`<g key=${each}>${(!isIn || Math.abs(x - place.x(n)) > 62) && html`<text class="tick-n" x=${r(x)} y="12" text-anchor=${anchor}>#${each}</text>`}<text x=${r(x)} y="25" text-anchor=${anchor}>${time(Math.round(timeOf(each) / 1000) * 1000)}</text></g>`;
    })}
    ${isIn && html`<g class="now-mark"><rect x=${r(at)} y="1" width=${r(size)} height="15" rx="3" /><text x=${r(at + size / 2)} y="12" text-anchor="middle">${text}</text><line x1=${r(place.x(n))} x2=${r(place.x(n))} y1="16" y2="32" /></g>`}
  </svg>`;
}

function Group({ group, place, width }) {
  const isShut = folded.value.has(group) ? folded.value.get(group) : group.isFolded || false;
  const turn = () => { folded.value = new Map(folded.value).set(group, !isShut); };
  return html`<section class="track-group" aria-label=${group.title}>
    <h3><button type="button" aria-expanded=${!isShut} onClick=${turn}><span aria-hidden="true">${isShut ? "▸" : "▾"}</span> <bdi>${group.title}</bdi></button></h3>
    ${!isShut && html`<div role="table" aria-label=${group.title}>${group.rows.map((each) => html`<${Row} key=${each.key} row=${each} place=${place} width=${width} />`)}</div>`}
    ${group.left > 0 && html`<p class="quiet track-left">and ${counted(group.left, `more ${group.leftWord}`)}</p>`}
  </section>`;
}

function Choice({ of, options, label }) {
  return html`<div class="choice" role="group" aria-label=${label}>${options.map(([value, text]) => html`<button type="button" key=${value}
    aria-pressed=${of.value === value} onClick=${() => { of.value = value; }}>${text}</button>`)}</div>`;
}

function Tracks() {
  const [ref, all] = useWidth(700);
  const box = useRef(null);
  const isNarrow = all < NARROW;
  const width = isNarrow ? all - 24 : Math.max(120, all - 32 - 132 - 122);
  const [low, high] = reachOf();
  const place = useMemo(() => makePlace(width), [width, ruler.value, low, high]);
  if (!model.last) return html`<${Empty}>Nothing happened.<//>`;
  return html`<div class=${`tracks${isNarrow ? " narrow" : ""}`} ref=${ref}>
    <div class="space-tools"><${Choice} of=${ruler} label="Axis" options=${[["steps", "even spacing"], ["time", "virtual time"]]} />
      <${Choice} of=${reach} label="Reach" options=${[["run", "whole run"], ["window", "the diagram's window"]]} />
      ${reach.value === "window" && !sight.value && html`<span>open Space-time to set a window</span>`}</div>
    <div ref=${box} class="track-head"><div></div><${Ruler} place=${place} width=${width} /><div class="track-now head">at #${number(step.value)}</div></div>
    ${groups().map((each) => html`<${Group} key=${each.title} group=${each} place=${place} width=${width} />`)}
    <p class="track-key">Lag: <span class="key-leo"></span> log end behind the leader's, <span class="key-hw"></span> high watermark behind the leader's log end. ISR: the higher, the more are in sync. Click a row to go there; a row's name goes to its next change.</p>
  </div>`;
}

register({ id: "tracks", title: "Tracks", place: "main", order: 30, component: Tracks });
