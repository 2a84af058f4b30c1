// Small parts that several views use.
import { clean, html, number, time, useState } from "./dom.js";
import { go, model, node, step, timeOf } from "./store.js";

/** A link to an event: "#812"; the current one is marked. */
export function EventLink({ n, label }) {
  if (!n) return html`<span class="quiet">–</span>`;
  const follow = (event) => {
    event.preventDefault();
    go(n);
  };
  return html`<a class="event-link" href=${`#step=${n}`} onClick=${follow}
    aria-current=${n === step.value ? "step" : undefined}
    title=${`event ${number(n)}, ${time(timeOf(n))}`}>${label || `#${n}`}</a>`;
}

const NUMBER = /#(\d{1,9})\b/g;

/** Numbers of events that a text names as #812. */
export function numbersIn(text) {
  return [...text.matchAll(NUMBER)].map((each) => Number(each[1])).filter((n) => n >= 1 && n <= model.last);
}

/** A sentence whose event numbers are links. */
export function Linked({ text }) {
  const parts = clean(text, 1000).split(NUMBER);
  return parts.map((part, i) => {
    const n = Number(part);
    if (i % 2 === 0) return part;
    return n >= 1 && n <= model.last ? html`<${EventLink} key=${i} n=${n} />` : `#${part}`;
  });
}

/** A node's name; a click selects it, or lets it go. */
export function NodeName({ name }) {
  if (name === null || name === undefined) return html`<span class="quiet">nobody</span>`;
  const isKnown = model.tracks.nodes.some((each) => each.name === name);
  if (!isKnown) return html`<bdi class="node-name">${clean(name, 60)}</bdi>`;
  const isPicked = node.value === name;
  return html`<button type="button" class="node-name" aria-pressed=${isPicked}
    title=${isPicked ? "let this node go" : "select this node"}
    onClick=${() => { node.value = isPicked ? null : name; }}><bdi>${clean(name, 60)}</bdi></button>`;
}

/** The class of an epoch's colour. */
export function epochClass(epoch) {
  return epoch === null || epoch === undefined || epoch < 0 ? "epoch-unknown" : `epoch-${epoch % 8}`;
}

/** An epoch as a patch of its colour with its number in it. */
export function Epoch({ epoch }) {
  const label = epoch === null || epoch === undefined ? "?" : `e${epoch}`;
  return html`<span class="patch ${epochClass(epoch)}">${label}</span>`;
}

/** What stands where there is nothing. */
export function Empty({ children }) {
  return html`<p class="empty">${children}</p>`;
}

/** A part of a view with a heading of its own; a name from the trace stands as it is written. */
export function Section({ title, name, count, children }) {
  return html`<section class="part">
    <h3>${title}${name && html` <span class="part-name"><bdi>${clean(name, 40)}</bdi></span>`}${count !== undefined && html` <span class="count">${number(count)}</span>`}</h3>
    ${children}
  </section>`;
}

/** The first `most` things of a list, drawn; a button draws as many more. A run may have thousands. */
export function Some({ list, most, word, draw, tag = "p" }) {
  const [count, setCount] = useState(most);
  const left = list.length - count;
  return html`${list.slice(0, count).map(draw)}${left > 0 && html`<${tag} key="more" class="quiet more">${number(left)} more ${word}
    <button type="button" class="plain-button" onClick=${() => setCount(count + most)}>show ${number(Math.min(most, left))} of them</button></${tag}>`}`;
}
