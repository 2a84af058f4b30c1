// The current event, what it changed, and the fields of the selected node.
import { clean, html, number, plain, time, useMemo } from "./dom.js";
import { Empty, EventLink, NodeName, Section } from "./parts.js";
import { register } from "./registry.js";
import { at, changedOnly, eventOf, model, node, since, step } from "./store.js";

const CHANGES_MOST = 200;
const CAUSES_MOST = 10;
const TOKENS_MOST = 160;

// Words that differ -------------------------------------------------------------------------------

function tokens(text) {
  return text.match(/[\p{L}\p{N}_.+-]+|\s+|[^\p{L}\p{N}\s]/gu) || [];
}

/** Which tokens of two texts are in both, in order (the longest common sequence). */
function common(one, other) {
  const rows = one.length + 1;
  const table = Array.from({ length: rows }, () => new Uint16Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i -= 1) {
    for (let j = other.length - 1; j >= 0; j -= 1) {
      table[i][j] = one[i] === other[j] ? table[i + 1][j + 1] + 1 : Math.max(table[i + 1][j], table[i][j + 1]);
    }
  }
  const kept = [new Set(), new Set()];
  for (let i = 0, j = 0; i < one.length && j < other.length;) {
    if (one[i] === other[j]) {
      kept[0].add(i);
      kept[1].add(j);
      i += 1;
      j += 1;
    } else if (table[i + 1][j] >= table[i][j + 1]) i += 1;
    else j += 1;
  }
  return kept;
}

// Neighbours that differ are one emphasis, spaces between them included.
function Words({ list, kept, tag }) {
  const parts = [];
  list.forEach((each, i) => {
    const isKept = kept.has(i);
    const last = parts[parts.length - 1];
    if (last && last.isKept === isKept) last.text += each;
    else parts.push({ isKept, text: each });
  });
  return parts.map(({ isKept, text }, i) => (isKept ? text : html`<${tag} key=${i}>${text}<//>`));
}

/** Two values, with the words emphasised that only one of them has. */
export function Change({ old, now }) {
  const [one, other] = [plain(old, 600), plain(now, 600)];
  const [left, right] = [tokens(one), tokens(other)];
  if (old === null || old === undefined) return html`<span class="new"><ins>${other}</ins></span>`;
  if (now === null || now === undefined) return html`<span class="old"><del>${one}</del></span> <span class="to">→</span> <span class="quiet">none</span>`;
  const isLong = left.length > TOKENS_MOST || right.length > TOKENS_MOST || (left.length < 2 && right.length < 2);
  const kept = isLong ? [new Set(), new Set()] : common(left, right);
  return html`<span class="old"><${Words} list=${left} kept=${kept[0]} tag="del" /></span> <span class="to" aria-label="becomes">→</span> <span class="new"><${Words} list=${right} kept=${kept[1]} tag="ins" /></span>`;
}

// Parts -------------------------------------------------------------------------------------------

function Path({ path, without }) {
  const shown = without && path.startsWith(`${without}/`) ? path.slice(without.length + 1) : path;
  const parts = clean(shown, 160).split("/");
  // Words of a name may be broken at their underscores.
  const field = parts.pop().split("_").flatMap((each, i) => (i ? [html`<wbr />`, `_${each}`] : [each]));
  return html`<span class="path">${parts.length > 0 && html`<span class="path-front">${parts.join("/")}/</span>`}${field}</span>`;
}

function EventCard({ event }) {
  const { cause } = event;
  return html`<section class="part event-card">
    <p class="event-line"><span class="event-n">#${event.n}</span> <time>${time(event.t)}</time></p>
    <p class="event-line"><${NodeName} name=${event.node} /> <span class="event-kind">${clean(event.kind, 40)}</span></p>
    <p class="event-text"><bdi>${clean(event.text, 1200)}</bdi></p>
    <p class="event-causes">${cause.length
      ? html`caused by ${cause.slice(0, CAUSES_MOST).map((each) => html`<${EventLink} key=${each} n=${each} /> `)}${cause.length > CAUSES_MOST ? `and ${cause.length - CAUSES_MOST} more` : ""}`
      : "caused by no other event"}</p>
    ${model.bad.filter((each) => each.n === event.n).map((each, i) => html`<p key=${i} class="event-bad"><b>${{ loss: "Lost", check: "Broken", expect: "Failed" }[each.what]}</b> ${clean(each.text, 500)}</p>`)}
  </section>`;
}

function Changes({ event }) {
  if (model.tracks.head.level === "events") {
    return html`<${Section} title="Changes"><p class="quiet">A trace of level “events” keeps no fields.</p><//>`;
  }
  const { set } = event;
  return html`<${Section} title="Changed with this event" count=${set.length}>
    ${!set.length && html`<p class="quiet">no field</p>`}
    <dl class="fields changes">${set.slice(0, CHANGES_MOST).map(([path, old, now], i) => html`<div key=${i}>
      <dt><${Path} path=${path} /></dt><dd><${Change} old=${old} now=${now} /></dd></div>`)}</dl>
    ${set.length > CHANGES_MOST && html`<p class="quiet">and ${number(set.length - CHANGES_MOST)} more</p>`}
  <//>`;
}

function fieldsOf(name) {
  const front = `${name}/`;
  return Object.keys(model.tracks.fields).filter((each) => each.startsWith(front)).sort();
}

let owners = null;
/** The nodes that have fields, in the run's order. */
function ownersOf() {
  if (!owners) {
    const found = new Set(Object.keys(model.tracks.fields).map((path) => path.split("/", 1)[0]));
    const known = model.tracks.nodes.map((each) => each.name);
    owners = [...known.filter((each) => found.has(each)), ...[...found].filter((each) => !known.includes(each)).sort()];
  }
  return owners;
}

function NodeFields({ name, owners }) {
  const n = step.value;
  const paths = useMemo(() => fieldsOf(name), [name]);
  const all = paths.map((path) => [path, at(model.tracks.fields[path], n), since(model.tracks.fields[path], n)])
    .filter((each) => each[1] !== undefined && each[1] !== null);
  return html`<${Section} title="Fields of" name=${name || "no node"} count=${all.length}>
    <p class="owners">${owners.map((each) => html`<button type="button" key=${each} class="owner" aria-pressed=${each === name}
      onClick=${() => { node.value = each; }}><bdi>${clean(each, 40)}</bdi></button>`)}</p>
    ${!all.length && html`<p class="quiet">none that is set</p>`}
    <dl class="fields">${all.map(([path, value, from]) => html`<div key=${path} class=${from === n ? "fresh" : ""}>
      <dt><${Path} path=${path} without=${name} /></dt><dd>${plain(value, 300)} <${EventLink} n=${from} /></dd></div>`)}</dl>
  <//>`;
}

function StateView() {
  const event = eventOf(step.value);
  if (!event) return html`<${Empty}>Before the first event nothing is set.<//>`;
  const owners = ownersOf();
  const name = node.value || (owners.includes(event.node) ? event.node : owners[0]);
  const only = changedOnly.value;
  return html`<div class="state">
    <${EventCard} event=${event} />
    <${Changes} event=${event} />
    <p class="only"><label><input type="checkbox" checked=${only} aria-keyshortcuts="d" onChange=${() => { changedOnly.value = !only; }} /> only what changed <kbd>d</kbd></label></p>
    ${!only && model.tracks.head.level !== "events" && html`<${NodeFields} name=${name} owners=${owners} />`}
  </div>`;
}

register({ id: "state", title: "State", place: "right", order: 10, component: StateView });
