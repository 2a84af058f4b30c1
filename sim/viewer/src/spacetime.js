// The space-time diagram: a lane a node, events on it, messages between, time to the right.
import { signal } from "@preact/signals";
import { clean, counted, html, number, time, useEffect, useLayoutEffect, useMemo, useRef, useState, useWidth } from "./dom.js";
import { saveDiagram } from "./exportsvg.js";
import { Empty } from "./parts.js";
import { register } from "./registry.js";
import { FAMILIES, drawn, hidden, tables } from "./spacedata.js";
import { around, axis, clamped, following, scaleOf, sight, timePlaces, zoomed } from "./spacescale.js";
import { lanesFor, sceneOf } from "./spacescene.js";
import { Shapes, glyphOf } from "./spaceshapes.js";
import { bisect, filters, go, model, node, step, timeOf } from "./store.js";

const TEXT_MOST = 120;
const BANDS_MOST = 3;

/** Whether what led to the current event is emphasised. */
const emphasis = signal(true);
/** Whose leader and ISR are shown on the lanes: a partition's name, "" for a few, "-" for none. */
const banded = signal("");

/** The partitions whose leaders and in-sync replicas are on the lanes. */
export function bandedPartitions() {
  const all = model.tracks.partitions;
  if (banded.value === "-") return [];
  const one = all.find((each) => each.name === banded.value);
  if (one) return [one];
  // What was lost or broken with the current event is among those that are shown.
  const { losses, checks } = model.tracks;
  const told = [...losses, ...checks].find((each) => each.n === step.value);
  const first = all.slice(0, BANDS_MOST);
  const wanted = told && all.find((each) => each.name === told.partition);
  return !wanted || first.includes(wanted) ? first : [wanted, ...first.slice(1)];
}

/** Scale and window for a width, as they are to be drawn now. */
export function windowFor(width, gutter) {
  const scale = scaleOf(axis.value, drawn.value);
  const kept = sight.value;
  const count = Math.max(10, Math.round((width - gutter) / 19));
  const window = kept && kept.kind === scale.kind ? clamped(scale, kept.from, kept.to - kept.from) : around(scale, drawn.value, step.value, count);
  return { scale, window };
}

/** The diagram in a sentence, for who cannot see it. */
export function summary(scene) {
  const { messages, arrowsLeft, count, low, high, frame } = scene;
  const parts = [`Space-time diagram: events ${number(low)} to ${number(high)}, ${time(timeOf(low))} to ${time(timeOf(high))}`,
    `${counted(count, "event")} on ${counted(frame.lanes.length, "lane")}`, counted(messages, "message")];
  if (arrowsLeft) parts.push(`${number(arrowsLeft)} of them not drawn one by one`);
  if (scene.past.events.size > 1) parts.push(`${scene.past.isCut ? "at least " : ""}${counted(scene.past.events.size - 1, "event")} in sight led to event ${scene.now}`);
  return `${parts.join("; ")}.`;
}

// Controls ----------------------------------------------------------------------------------------

function Families() {
  const { counts } = tables();
  const toggle = (id) => {
    hidden.value = hidden.value.includes(id) ? hidden.value.filter((each) => each !== id) : [...hidden.value, id];
  };
  return html`<div class="families" role="group" aria-label="What is drawn">
    ${FAMILIES.map((each, i) => counts[i] > 0 && html`<button type="button" key=${each.id} class="family" aria-pressed=${!hidden.value.includes(each.id)}
      title=${`${counted(counts[i], "event")}: ${hidden.value.includes(each.id) ? "show" : "leave out"}`} onClick=${() => toggle(each.id)}>
      <i class="sign ${each.id}" aria-hidden="true"></i>${each.title} <span class="count">${number(counts[i])}</span></button>`)}
  </div>`;
}

function Controls({ zoom, fit, centre, save }) {
  const { partitions } = model.tracks;
  const pick = (kind) => {
    axis.value = kind;
    sight.value = null;
  };
  return html`<div class="space-tools">
    <div class="choice" role="group" aria-label="Axis">
      <button type="button" aria-pressed=${axis.value === "even"} title="Causal order: every event has as much room" onClick=${() => pick("even")}>even spacing</button>
      <button type="button" aria-pressed=${axis.value === "time"} title="Virtual time; quiet stretches are drawn shorter" onClick=${() => pick("time")}>virtual time</button>
    </div>
    <div class="choice" role="group" aria-label="Zoom">
      <button type="button" aria-label="Zoom out" title="Zoom out (−)" onClick=${() => zoom(1.6)}>−</button>
      <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick=${() => zoom(0.625)}>+</button>
      <button type="button" title="The whole run (0)" onClick=${fit}>all</button>
      <button type="button" title="Back to the current event (.)" onClick=${centre}>here</button>
    </div>
    ${partitions.length > 0 && html`<label class="space-bands">leader, ISR <select value=${banded.value} onChange=${(event) => { banded.value = event.currentTarget.value; }}>
      <option value="">${partitions.length > BANDS_MOST ? `${BANDS_MOST} of ${partitions.length}` : partitions.length > 1 ? "all" : "shown"}</option>
      ${partitions.length > 1 && partitions.slice(0, 200).map((each) => html`<option key=${each.name} value=${each.name}>${clean(each.name, 40)}</option>`)}
      <option value="-">hidden</option></select></label>`}
    <label class="space-past"><input type="checkbox" checked=${emphasis.value} onChange=${() => { emphasis.value = !emphasis.value; }} />what led here</label>
    <button type="button" class="plain-button" onClick=${save}>Save SVG</button>
  </div>`;
}

function Note({ scene }) {
  const parts = [`${number(scene.low)}–${number(scene.high)} of ${number(model.last)}`];
  if (scene.isDense) parts.push(`${counted(scene.count, "event")}, too dense to draw one by one: bars show how many`);
  else if (scene.clusters.some((each) => each.count > 1)) parts.push("a number stands for so many events");
  if (scene.arrowsLeft) parts.push(`${counted(scene.arrowsLeft, "message")} not drawn; zoom in`);
  if (scene.breaksLeft) parts.push(`${counted(scene.breaksLeft, "quiet stretch", "quiet stretches")} drawn shorter`);
  if (scene.faultsLeft) parts.push(`${counted(scene.faultsLeft, "more fault")} in sight`);
  const { hideNodes, hideKinds, text } = filters.value;
  if (hideNodes.length || hideKinds.length || text) parts.push("the filters of the event list hold here, too");
  return html`<p class="space-note">${parts.join(" · ")}</p>`;
}

function told(n) {
  const { events } = model.tracks;
  return `#${number(n)} ${time(events.t[n - 1])} ${clean(model.strings[events.node[n - 1]], 40)}: ${clean(model.strings[events.text[n - 1]], 260)}`;
}

function fateOf(n) {
  const { sends } = tables();
  const i = sends[n];
  if (i < 0) return "";
  const { fate, end, fault } = model.tracks.messages;
  if (fate[i] === "delivered") return ` (delivered with #${number(end[i])})`;
  if (fate[i] === "dropped") return ` (lost with #${number(end[i])}${fault[i] >= 0 ? ` by fault ${clean(model.strings[fault[i]], 40)}` : ""})`;
  return " (still under way at the end)";
}

function Readout({ pointed }) {
  if (!pointed) return html`<p class="space-readout quiet">Point at an event, or focus the diagram: arrows choose an event, Enter goes to it, + − 0 zoom, Shift with arrows pans.</p>`;
  const rest = pointed.count > 1 ? ` and ${counted(pointed.count - 1, "more event")} up to #${number(pointed.end)}` : "";
  return html`<p class="space-readout" aria-live="polite"><bdi>${told(pointed.n)}</bdi>${fateOf(pointed.n)}${rest}</p>`;
}

function AsText({ scene }) {
  const shown = drawn.value;
  const { laneOf, lane } = tables();
  const gone = new Set(filters.value.hideNodes.map((each) => laneOf.get(each)));
  const first = bisect(shown, scene.low - 1);
  const all = [];
  for (let i = first; i < shown.length && shown[i] <= scene.high && all.length < TEXT_MOST; i += 1) if (!gone.has(lane[shown[i]])) all.push(shown[i]);
  const left = scene.count - all.length;
  return html`<details class="space-text"><summary>These ${counted(scene.count, "event")} as text</summary>
    <ol>${all.map((n) => html`<li key=${n}><button type="button" aria-current=${n === step.value ? "step" : undefined} onClick=${() => go(n)}><bdi>${told(n)}</bdi>${fateOf(n)}${scene.past.events.has(n) && n !== step.value ? html` <b>led here</b>` : ""}</button></li>`)}</ol>
    ${left > 0 && html`<p class="quiet">and ${counted(left, "more event")}; zoom in to have them listed</p>`}
  </details>`;
}

const STATES = [["status-paused", "paused"], ["status-down", "down, or without power"], ["arrow lost", "a message that is lost"], ["arrow pending", "still under way at the end"], ["chain main", "what led to the current event"]];

function Signs() {
  return html`<details class="space-text"><summary>What the signs mean</summary><ul class="space-signs">
    ${model.kinds.map((kind) => {
      const [path, look] = glyphOf(kind);
      return html`<li key=${kind}><svg class="space-svg" width="18" height="18" viewBox="-9 -9 18 18" aria-hidden="true"><path class=${`glyph ${look}`} d=${path} /></svg>${clean(kind, 40)}</li>`;
    })}
    ${STATES.map(([look, text]) => html`<li key=${look}><svg class="space-svg" width="30" height="18" viewBox="0 0 30 18" aria-hidden="true">${/^status/.test(look)
      ? html`<g class=${look}><line x1="1" x2="29" y1="9" y2="9" /></g>` : /^chain/.test(look) ? html`<line class=${look} x1="1" x2="29" y1="9" y2="9" />` : html`<g class=${look}><line x1="1" x2="29" y1="9" y2="9" /></g>`}</svg>${text}</li>`)}
    <li><svg width="18" height="18" viewBox="0 0 18 18" class="space-svg" aria-hidden="true"><g class="pill"><rect x="1" y="3" width="16" height="13" rx="6.5" /><text x="9" y="13" text-anchor="middle">3</text></g></svg>so many events</li>
  </ul></details>`;
}

// The diagram -------------------------------------------------------------------------------------

// What stands nearest to a point, within a finger's reach.
function nearestTo(scene, px, py) {
  let best = null;
  let least = 15;
  const look = (each, x) => {
    const far = Math.hypot(x - px, each.y - py);
    if (far < least) {
      least = far;
      best = { n: each.n, x, y: each.y, count: each.count || 1 + (each.more || 0), end: each.end || each.n };
    }
  };
  for (const each of scene.majors) look(each, each.x);
  for (const each of scene.extra) look(each, each.x);
  for (const each of scene.clusters) look(each, Math.max(each.x0, Math.min(each.x1, px)));
  if (best) return best;
  for (const each of scene.arrows) {
    const size = (each.x2 - each.x1) ** 2 + (each.y2 - each.y1) ** 2 || 1;
    const share = Math.max(0, Math.min(1, ((px - each.x1) * (each.x2 - each.x1) + (py - each.y1) * (each.y2 - each.y1)) / size));
    const far = Math.hypot(each.x1 + share * (each.x2 - each.x1) - px, each.y1 + share * (each.y2 - each.y1) - py);
    if (far < Math.min(6, least)) {
      least = far;
      best = { n: each.sent, x: each.x1, y: each.y1, count: 1, end: each.sent };
    }
  }
  return best;
}

// The neighbour of a chosen event: along its lane, or the nearest in time on the next lane.
function neighbour(scene, from, key) {
  const all = [...scene.clusters.map((each) => ({ ...each, x: each.x0 })), ...scene.majors].map((each) => ({ n: each.n, x: each.x, y: each.y, count: each.count || 1 + (each.more || 0), end: each.end || each.n }));
  if (!all.length) return null;
  const base = from || all.find((each) => each.n === scene.now) || all[Math.floor(all.length / 2)];
  if (!from) return base;
  const isAlong = key === "ArrowLeft" || key === "ArrowRight";
  const turn = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
  if (isAlong) {
    const row = all.filter((each) => each.y === base.y && (each.n - base.n) * turn > 0);
    return row.sort((one, other) => (one.n - other.n) * turn)[0] || base;
  }
  const rows = [...new Set(all.map((each) => each.y))].filter((y) => (y - base.y) * turn > 0).sort((one, other) => (one - other) * turn);
  if (!rows.length) return base;
  return all.filter((each) => each.y === rows[0]).sort((one, other) => Math.abs(one.x - base.x) - Math.abs(other.x - base.x))[0];
}

function Diagram() {
  const [ref, width] = useWidth(700);
  const [pointed, setPointed] = useState(null);
  // Keys may come faster than it is drawn.
  const chosen = useRef(null);
  const point = (each) => {
    chosen.current = each;
    setPointed(each);
  };
  const box = useRef(null);
  const drag = useRef(null);
  const n = step.value;
  const shown = drawn.value;
  const partitions = bandedPartitions();
  const isNarrow = width < 520;
  const bands = partitions.map((each) => each.name).join("\n");
  const hiddenNodes = filters.value.hideNodes;
  const frame = useMemo(() => lanesFor(partitions, isNarrow ? 0 : innerHeight - 360, isNarrow), [bands, isNarrow, hiddenNodes]);
  const { scale, window } = windowFor(width, frame.gutter);
  const scene = useMemo(
    () => sceneOf({ scale, window, drawn: shown, frame, width, now: n, emphasis: emphasis.value }),
    [shown, frame, width, n, emphasis.value, axis.value, window.from, window.to],
  );
  const latest = useRef(null);
  latest.current = { scale, window, scene };

  useLayoutEffect(() => {
    // A window kept from before is moved to where the reader has gone meanwhile.
    const { scale: now, window: seen } = latest.current;
    sight.value = following(now, seen, n);
  }, [n, shown, axis.value]);
  useEffect(() => point(null), [n, window.from, window.to]);
  useEffect(() => {
    const wheel = (event) => {
      const { scale: now, window: seen, scene: drawnNow } = latest.current;
      const place = seen.from + (event.clientX - box.current.getBoundingClientRect().left - drawnNow.left) / drawnNow.unit;
      const isSide = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
      if (!event.ctrlKey && !isSide) return;
      event.preventDefault();
      const delta = event.deltaX || event.deltaY;
      sight.value = event.ctrlKey ? zoomed(now, seen, Math.exp(event.deltaY / 300), place) : clamped(now, seen.from + delta / drawnNow.unit, seen.to - seen.from);
    };
    const element = box.current;
    element.addEventListener("wheel", wheel, { passive: false });
    return () => element.removeEventListener("wheel", wheel);
  }, []);

  const freshly = () => sight.value || window;
  const zoom = (factor) => {
    const { from, to } = freshly();
    const place = scale.at(n) >= from && scale.at(n) <= to ? scale.at(n) : (from + to) / 2;
    sight.value = zoomed(scale, freshly(), factor, place);
  };
  const fit = () => { sight.value = clamped(scale, 0, scale.size * 1.04); };
  const centre = () => { sight.value = around(scale, shown, n, Math.max(10, Math.round((width - frame.gutter) / 19))); };
  const pan = (share) => {
    const { from, to } = freshly();
    sight.value = clamped(scale, from + share * (to - from), to - from);
  };
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const deed = {
      "+": () => zoom(0.625), "=": () => zoom(0.625), "-": () => zoom(1.6), 0: fit, ".": centre, Escape: () => point(null),
      Enter: () => chosen.current && go(chosen.current.n), " ": () => chosen.current && go(chosen.current.n),
    }[event.key];
    if (deed) deed();
    else if (/^Arrow(Left|Right)$/.test(event.key) && event.shiftKey) pan(event.key === "ArrowLeft" ? -0.25 : 0.25);
    else if (/^Arrow/.test(event.key)) point(neighbour(latest.current.scene, chosen.current, event.key));
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  const spot = (event) => {
    const { left, top } = box.current.getBoundingClientRect();
    return [event.clientX - left, event.clientY - top];
  };
  const down = (event) => {
    if (event.button !== 0) return;
    const [px] = spot(event);
    drag.current = { px, from: window.from, isMoved: false };
    if (event.pointerType === "mouse") event.currentTarget.setPointerCapture(event.pointerId);
  };
  const move = (event) => {
    const [px, py] = spot(event);
    if (drag.current) {
      if (Math.abs(px - drag.current.px) > 4) drag.current.isMoved = true;
      if (drag.current.isMoved) sight.value = clamped(scale, drag.current.from - (px - drag.current.px) / scene.unit, window.to - window.from);
      return;
    }
    const found = nearestTo(scene, px, py);
    if ((found && found.n) !== (pointed && pointed.n)) point(found);
  };
  const up = (event) => {
    const was = drag.current;
    drag.current = null;
    if (!was || was.isMoved) return;
    const found = nearestTo(scene, ...spot(event));
    if (found) go(found.n);
  };
  const label = summary(scene);
  const save = () => saveDiagram(box.current.querySelector("svg"), label);
  return html`<div class="space" ref=${ref}>
    <${Controls} zoom=${zoom} fit=${fit} centre=${centre} save=${save} />
    <${Families} />
    <div class=${`space-box${drag.current && drag.current.isMoved ? " dragged" : ""}`} ref=${box} tabindex="0" role="application" aria-roledescription="space-time diagram"
      aria-label=${`${label} Arrows choose an event, Enter goes to it; plus, minus and 0 zoom; Shift with arrows pans.`}
      onKeyDown=${press} onPointerDown=${down} onPointerMove=${move} onPointerUp=${up} onPointerCancel=${() => { drag.current = null; }} onPointerLeave=${() => !drag.current && point(null)}>
      <${Shapes} scene=${scene} width=${width} label=${label} selected=${node.value} isSeveral=${partitions.length > 1} id="space-clip" pointed=${pointed} />
    </div>
    <${Readout} pointed=${pointed} />
    <${Note} scene=${scene} />
    <${AsText} scene=${scene} />
    <${Signs} />
  </div>`;
}

function SpaceTime() {
  if (!model.last) return html`<${Empty}>Nothing happened.<//>`;
  if (!drawn.value.length) return html`<div class="space"><${Families} /><${Empty}>No event passes the filters.<//></div>`;
  if (axis.value === "time") timePlaces();
  return html`<${Diagram} />`;
}

register({ id: "spacetime", title: "Space-time", place: "main", order: 20, component: SpaceTime });
