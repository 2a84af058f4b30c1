// The cluster behind the current event: nodes, faults, expectations, rules, messages, timers.
import { clean, counted, duration, html, number } from "./dom.js";
import { Empty, EventLink, NodeName, Section, Some } from "./parts.js";
import { at, isOn, model, node, step, timeOf } from "./store.js";

const LINES_MOST = 12;
const STATUS = { up: "up", paused: "paused", down: "down", off: "power off", stopped: "stopped" };

/** A node's status as a badge; a node that is up needs none. */
export function Status({ status, isAlways }) {
  if (status === "up" && !isAlways) return null;
  return html`<span class=${`badge status-${clean(status, 12).replace(/[^a-z]/g, "-")}`}>${STATUS[status] || clean(status, 30)}</span>`;
}

function Nodes() {
  const n = step.value;
  return html`<${Section} title="Nodes"><ul class="chips">
    <${Some} list=${model.tracks.nodes} most=${100} word="nodes" tag="li" draw=${(each) => html`<li key=${each.name}><${NodeName} name=${each.name} />
      <${Status} status=${at(each.status, n) || "not started"} isAlways /></li>`} /></ul><//>`;
}

function Faults() {
  const n = step.value;
  const on = model.tracks.faults.filter((each) => isOn(each, n));
  const later = model.tracks.faults.filter((each) => each.begin > n).length;
  return html`<${Section} title="Active faults" count=${on.length}>
    ${on.length === 0 && html`<p class="quiet">none${later ? `; ${number(later)} to come` : ""}</p>`}
    <ul class="rows">${on.slice(0, LINES_MOST).map((each, i) => html`<li key=${i}><span class="tone fault"></span>
      <span class="row-text">${clean(each.text || each.id, 200)}</span> <span class="row-more">since <${EventLink} n=${each.begin} />${each.strikes && each.strikes.length ? `, struck ${counted(each.strikes.filter((hit) => hit <= n).length, "time")}` : ""}</span></li>`)}</ul>
    ${on.length > LINES_MOST && html`<p class="quiet">and ${on.length - LINES_MOST} more</p>`}
  <//>`;
}

function stateOf(each, n) {
  if (each.judged !== null && each.judged !== undefined && each.judged <= n && each.verdict !== null && each.verdict !== undefined) {
    return each.verdict ? ["good", "met"] : ["bad", "failed"];
  }
  const holds = at(each.holds, n);
  if (holds === undefined || holds === null) return ["none", "not judged yet"];
  return holds ? ["good", "holds"] : ["bad", "does not hold"];
}

function Expects() {
  const n = step.value;
  const { expects } = model.tracks;
  return html`<${Section} title="Expectations" count=${expects.length}>
    ${!expects.length && html`<p class="quiet">the scenario states none</p>`}
    <ul class="rows">${expects.slice(0, 40).map((each, i) => {
      const [tone, word] = stateOf(each, n);
      return html`<li key=${i}><span class="tone ${tone}"></span><span class="row-text">${each.form && html`<b>${clean(each.form, 30)}</b> `}<code>${clean(each.text || each.id, 240)}</code></span>${" "}
        <span class="row-more ${tone}">${word}${each.judged ? html` <${EventLink} n=${each.judged} />` : ""}</span></li>`;
    })}</ul><//>`;
}

function Rules() {
  const n = step.value;
  const before = model.bad.filter((each) => each.n <= n);
  const later = model.bad.length - before.length;
  return html`<${Section} title="Rules and losses" count=${before.length}>
    ${!before.length && html`<p class="quiet">nothing broken and nothing lost so far${later ? `; ${number(later)} to come` : ""}</p>`}
    <ul class="rows">${before.slice(-LINES_MOST).map((each, i) => html`<li key=${i}><span class="tone bad"></span>
      <span class="row-text">${clean(each.text, 300)}</span> <span class="row-more"><${EventLink} n=${each.n} /></span></li>`)}</ul>
    ${before.length > LINES_MOST && html`<p class="quiet">the last ${LINES_MOST} of ${number(before.length)}</p>`}
  <//>`;
}

function onTheWay(n) {
  const { sent, end } = model.tracks.messages;
  const found = [];
  for (let i = 0; i < sent.length && sent[i] <= n; i += 1) if (end[i] === null || n < end[i]) found.push(i);
  return found;
}

export function Messages() {
  const n = step.value;
  const { messages } = model.tracks;
  const all = onTheWay(n);
  const name = node.value;
  const index = name === null ? -1 : model.strings.indexOf(name);
  const mine = name === null ? all : all.filter((i) => messages.from[i] === index || messages.to[i] === index);
  const shown = mine.slice(-LINES_MOST).reverse();
  const text = (i, column) => clean(model.strings[messages[column][i]], 40);
  return html`<${Section} title=${name === null ? "Messages in flight" : "Messages in flight,"} name=${name} count=${mine.length}>
    ${!mine.length && html`<p class="quiet">none</p>`}
    <ul class="rows">${shown.map((i) => html`<li key=${i}><span class="row-text"><b><bdi>${text(i, "from")}</bdi></b> → <b><bdi>${text(i, "to")}</bdi></b> ${text(i, "type")}</span>${" "}
      <span class="row-more">${messages.fate[i] === "dropped" ? "will be lost, " : ""}sent ${duration(timeOf(n) - timeOf(messages.sent[i]))} ago <${EventLink} n=${messages.sent[i]} /></span></li>`)}</ul>
    ${mine.length > LINES_MOST && html`<p class="quiet">the newest ${LINES_MOST} of ${number(mine.length)}</p>`}
  <//>`;
}

export function Timers() {
  const n = step.value;
  const name = node.value;
  const all = model.tracks.timers.filter((each) => each[2] <= n && (each[3] === null || n < each[3]));
  const mine = name === null ? all : all.filter((each) => each[0] === name);
  return html`<${Section} title=${name === null ? "Timers" : "Timers of"} name=${name} count=${mine.length}>
    ${!mine.length && html`<p class="quiet">none armed</p>`}
    <ul class="rows">${mine.slice(0, LINES_MOST).map((each, i) => html`<li key=${i}><span class="row-text"><b><bdi>${clean(each[0], 30)}</bdi></b> ${clean(each[1], 80)}</span>${" "}
      <span class="row-more">set <${EventLink} n=${each[2]} />${each[3] !== null ? html`, ${"goes off"} <${EventLink} n=${each[3]} />` : ""}</span></li>`)}</ul>
    ${mine.length > LINES_MOST && html`<p class="quiet">and ${number(mine.length - LINES_MOST)} more${name === null ? "; select a node to see its own" : ""}</p>`}
  <//>`;
}

export function ClusterNow() {
  if (!model.last) return html`<${Empty}>Nothing happened.<//>`;
  return html`<div class="cluster"><${Nodes} /><${Rules} /><${Faults} /><${Expects} /><${Messages} /><${Timers} /></div>`;
}
