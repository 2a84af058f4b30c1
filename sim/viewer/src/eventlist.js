// All events, one a line. Only the lines in sight are in the document, however many there are.
import { clean, counted, html, number, useEffect, useLayoutEffect, useRef, useState } from "./dom.js";
import { columns } from "./layout.js";
import { Empty } from "./parts.js";
import { register } from "./registry.js";
import { bisect, filters, go, listed, model, step } from "./store.js";

const AROUND = 12;

// Filters -----------------------------------------------------------------------------------------

function change(what) {
  filters.value = { ...filters.value, ...what };
}

function toggled(list, name) {
  return list.includes(name) ? list.filter((each) => each !== name) : [...list, name];
}

/** A folded list of names to tick; `key` is the filter's list of those that are hidden. */
function Picker({ title, names, counts, hiddenKey }) {
  const hidden = filters.value[hiddenKey];
  const gone = names.filter((each) => hidden.includes(each)).length;
  const ref = useRef(null);
  useEffect(() => {
    const shut = (event) => {
      if (ref.current && !ref.current.contains(event.target)) ref.current.open = false;
    };
    document.addEventListener("pointerdown", shut);
    return () => document.removeEventListener("pointerdown", shut);
  }, []);
  const escape = (event) => {
    if (event.key !== "Escape" || !ref.current.open) return;
    event.preventDefault();
    ref.current.open = false;
    ref.current.firstElementChild.focus();
  };
  const others = hidden.filter((each) => !names.includes(each));
  return html`<details class="picker" ref=${ref} onKeyDown=${escape}>
    <summary>${title}${gone > 0 && html` <b>${names.length - gone} of ${names.length}</b>`}</summary>
    <div class="picker-sheet">
      <p><button type="button" class="link" onClick=${() => change({ [hiddenKey]: others })}>all</button>
        <button type="button" class="link" onClick=${() => change({ [hiddenKey]: [...others, ...names] })}>none</button></p>
      <ul>${names.map((each) => html`<li key=${each}><label>
        <input type="checkbox" checked=${!hidden.includes(each)} onChange=${() => change({ [hiddenKey]: toggled(hidden, each) })} />
        <bdi>${clean(each, 40)}</bdi> <span class="count">${number(counts.get(each) || 0)}</span></label></li>`)}
      </ul>
    </div>
  </details>`;
}

let tallies = null;
function countsOf() {
  if (tallies) return tallies;
  const { events } = model.tracks;
  const count = (column) => {
    const found = new Map();
    for (const each of events[column]) found.set(each, (found.get(each) || 0) + 1);
    return new Map([...found].map(([index, sum]) => [model.strings[index], sum]));
  };
  tallies = { nodes: count("node"), kinds: count("kind") };
  return tallies;
}

function Filters({ shown }) {
  const { nodes, kinds } = countsOf();
  const order = model.tracks.nodes.map((each) => each.name);
  const names = [...order.filter((each) => nodes.has(each)), ...[...nodes.keys()].filter((each) => !order.includes(each)).sort()];
  const { hideNodes, hideKinds, text } = filters.value;
  const isFiltered = hideNodes.length || hideKinds.length || text;
  return html`<div class="list-filters">
    <input type="search" class="list-text" placeholder="Filter by text" aria-label="Filter by text" value=${text}
      spellcheck=${false} autocomplete="off" onInput=${(event) => change({ text: event.currentTarget.value })}
      onKeyDown=${(event) => event.key === "Escape" && event.currentTarget.blur()} />
    <${Picker} title="Nodes" names=${names} counts=${nodes} hiddenKey="hideNodes" />
    <${Picker} title="Kinds" names=${model.kinds} counts=${kinds} hiddenKey="hideKinds" />
    <p class="list-count" role="status">${isFiltered
      ? html`${number(shown)} of ${counted(model.last, "event")}
        <button type="button" class="link" onClick=${() => change({ hideNodes: [], hideKinds: [], text: "" })}>clear</button>`
      : counted(model.last, "event")}</p>
  </div>`;
}

// Lines -------------------------------------------------------------------------------------------

const failures = new Map();
function failureAt(n) {
  if (!failures.size && model.bad.length) for (const each of model.bad) failures.set(each.n, each.what);
  return failures.get(n);
}

function stamp(us) {
  return `${us < 0 ? "−" : ""}${Math.floor(Math.abs(us) / 1e6)}.${String(Math.floor((Math.abs(us) % 1e6) / 1000)).padStart(3, "0")}`;
}

function Line({ n, index, total, top, height, isNow, before }) {
  const { events } = model.tracks;
  const i = n - 1;
  const when = stamp(events.t[i]);
  const failure = failureAt(n);
  const node = clean(model.strings[events.node[i]], 40);
  const text = clean(model.strings[events.text[i]], 300);
  const isSame = before !== undefined && stamp(events.t[before - 1]) === when;
  return html`<div role="option" id=${`event-${n}`} class=${`line${isNow ? " here" : ""}${failure ? " bad" : ""}`}
    style=${{ top: `${top}px`, height: `${height}px` }} aria-selected=${isNow} aria-posinset=${index + 1} aria-setsize=${total}
    title=${`#${n} ${node}: ${text}`} onClick=${() => go(n)}>
    <span class="line-n">${n}</span><span class=${`line-t${isSame ? " same" : ""}`}>${when}</span>
    <span class="line-node"><bdi>${node}</bdi></span>
    <span class="line-text">${failure && html`<b>${{ loss: "LOST", check: "BROKEN", expect: "FAILED" }[failure]} </b>`}<bdi>${text}</bdi></span>
  </div>`;
}

function EventList() {
  const shown = listed.value;
  const n = step.value;
  const height = columns.value === 1 ? 34 : 22;
  const box = useRef(null);
  const [[top, room], setPlace] = useState([0, 600]);
  const index = bisect(shown, n) - 1;
  const isListed = index >= 0 && shown[index] === n;

  const measure = () => {
    if (!box.current) return; // A scroll may be told when the list has gone.
    const { scrollTop, clientHeight } = box.current;
    setPlace((old) => (old[0] === scrollTop && old[1] === clientHeight ? old : [scrollTop, clientHeight]));
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(measure);
    observer.observe(box.current);
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    const { scrollTop, clientHeight } = box.current;
    const y = Math.max(0, index) * height;
    if (y < scrollTop + height || y > scrollTop + clientHeight - 2 * height) {
      const isNear = y > scrollTop - 4 * height && y < scrollTop + clientHeight + 4 * height;
      if (isNear) box.current.scrollTop = y < scrollTop + height ? y - height : y - clientHeight + 2 * height;
      else box.current.scrollTop = y - clientHeight / 2;
    }
    measure();
  }, [n, shown, height]);

  const press = (event) => {
    const page = Math.max(1, Math.floor(room / height) - 2);
    const here = isListed ? index : index + 0.5;
    const target = {
      ArrowDown: Math.floor(here + 1), ArrowUp: Math.ceil(here - 1), PageDown: Math.floor(here) + page,
      PageUp: Math.ceil(here) - page, Home: 0, End: shown.length - 1,
    }[event.key];
    if (target === undefined || !shown.length) return;
    event.preventDefault();
    event.stopPropagation();
    go(shown[Math.max(0, Math.min(shown.length - 1, target))]);
  };

  const first = Math.max(0, Math.floor(top / height) - AROUND);
  const end = Math.min(shown.length, Math.ceil((top + room) / height) + AROUND);
  const rows = [];
  for (let i = first; i < end; i += 1) {
    rows.push(html`<${Line} key=${shown[i]} n=${shown[i]} index=${i} total=${shown.length} top=${i * height} height=${height}
      isNow=${shown[i] === n} before=${i ? shown[i - 1] : undefined} />`);
  }
  const isInSight = isListed && index >= first && index < end;
  return html`<div class="list">
    <${Filters} shown=${shown.length} />
    <div class="list-box" ref=${box} role="listbox" tabindex="0" aria-label="Events" onScroll=${measure} onKeyDown=${press}
      aria-activedescendant=${isInSight ? `event-${n}` : undefined}>
      <div class="list-all" role="presentation" style=${{ height: `${shown.length * height}px` }}>${rows}</div>
    </div>
    ${!shown.length && html`<${Empty}>No event passes the filters.<//>`}
    ${shown.length > 0 && !isListed && n > 0 && html`<p class="list-foot">The current event #${n} is left out by the filters.</p>`}
  </div>`;
}

register({ id: "events", title: "Events", place: "left", order: 10, component: EventList });
