// Why: what led to the current event, each cause a link.
import { clean, html, time } from "./dom.js";
import { Empty, EventLink, Linked, Section, numbersIn } from "./parts.js";
import { register } from "./registry.js";
import { eventOf, model, step, timeOf } from "./store.js";

const CAUSES_MOST = 60;
const CHAIN_MOST = 400;

/** Numbers behind an event by first causes: the line back to a step, a fault or a beginning. */
export function lineOf(n) {
  const found = [];
  const seen = new Set();
  let at = n;
  while (at && !seen.has(at) && found.length < CHAIN_MOST) {
    seen.add(at);
    found.push(at);
    const event = eventOf(at);
    at = event && event.cause.length ? event.cause[0] : 0;
  }
  return found;
}

function beginningOf(n) {
  const { steps, faults } = model.tracks;
  const one = steps.find((each) => each.begin === n);
  if (one) return ["step", one.text || one.id];
  const fault = faults.find((each) => each.begin === n);
  return fault ? ["fault", fault.text || fault.id] : null;
}

function Cause({ n, isNow }) {
  const event = eventOf(n);
  if (!event) return null;
  const beginning = beginningOf(n);
  const others = event.cause.slice(1);
  return html`<li class=${`cause${isNow ? " here" : ""}`}>
    <p class="cause-head"><${EventLink} n=${n} /> <b><bdi>${clean(event.node, 40)}</bdi></b> <time>${time(event.t)}</time></p>
    ${beginning && html`<p class="cause-begin ${beginning[0]}">${beginning[0]}: ${clean(beginning[1], 200)}</p>`}
    <p class="cause-text"><bdi>${clean(event.text, 300)}</bdi></p>
    ${others.length > 0 && html`<p class="cause-others">also of ${others.slice(0, 8).map((each) => html`<${EventLink} key=${each} n=${each} /> `)}${others.length > 8 && "…"}</p>`}
  </li>`;
}

function Causes({ n }) {
  const line = lineOf(n);
  const shown = line.slice(0, CAUSES_MOST);
  const isShort = shown.length < line.length;
  const event = eventOf(n);
  if (event && !event.cause.length) {
    return html`<${Section} title="Causes">
      <p class="quiet">Nothing caused this event: it is ${beginningOf(n) ? "where a step or fault begins" : "a beginning of its own, as a timer set long ago or a start"}.</p>
      <ol class="causes"><${Cause} n=${n} isNow /></ol>
    <//>`;
  }
  return html`<${Section} title="Causes, back to the beginning">
    <ol class="causes" reversed>${shown.map((each) => html`<${Cause} key=${each} n=${each} isNow=${each === n} />`)}</ol>
    ${isShort && html`<p class="quiet">${line.length - shown.length} earlier causes are left out; <${EventLink} n=${shown[shown.length - 1]} label="go on from the last one" />.</p>`}
  <//>`;
}

// Events of a sentence that it does not name itself.
function others(numbers, text) {
  const named = numbersIn(text);
  return numbers.filter((each) => !named.includes(each));
}

function Sentences({ chain }) {
  return html`<section class="chain">
    <h3><${Linked} text=${chain.title} /></h3>
    <ol>${chain.sentences.map(([text, numbers, isCause], i) => html`<li key=${i} class=${isCause ? "root" : ""}>
      <span class="chain-text">${isCause && html`<b class="root-word">cause</b> `}<${Linked} text=${text} /></span>
      ${others(numbers, text).length > 0 && html`<span class="chain-links">${others(numbers, text).slice(0, 8).map((each) => html`<${EventLink} key=${each} n=${each} /> `)}</span>`}
    </li>`)}</ol>
  </section>`;
}

function WhyView() {
  const n = step.value;
  const { chains } = model.tracks;
  if (!n) return html`<${Empty}>Before the first event there is nothing to explain.<//>`;
  const mine = chains.filter((each) => each.n === n);
  const others = chains.filter((each) => each.n !== n);
  return html`<div class="why">
    ${mine.map((each, i) => html`<${Sentences} key=${i} chain=${each} />`)}
    <${Causes} n=${n} />
    ${others.length > 0 && html`<${Section} title=${mine.length ? "Other failures of this run" : "Failures of this run"}>
      <ul class="failures">${others.slice(0, 40).map((each, i) => html`<li key=${i}>
        <${EventLink} n=${each.n} /> <span><time class="quiet">${time(timeOf(each.n))}</time> ${clean(each.title, 300)}</span></li>`)}</ul>
    <//>`}
  </div>`;
}

register({ id: "why", title: "Why", place: "right", order: 20, component: WhyView });
