// The page on paper: which run, what it came to, what went wrong and why, the diagram's window and
// the logs at the current event. It is made when the browser is about to print, and goes afterwards.
import { clean, counted, html, number, render, time } from "./dom.js";
import { partitionAt } from "./logs.js";
import { axisOf } from "./logview.js";
import { drawn } from "./spacedata.js";
import { lanesFor, sceneOf } from "./spacescene.js";
import { Shapes } from "./spaceshapes.js";
import { bandedPartitions, summary, windowFor } from "./spacetime.js";
import { at, eventOf, model, step } from "./store.js";
import { STRIP_HEIGHT, Strip, describe } from "./strip.js";

const WIDTH = 690;
const STRIP_WIDTH = 590;
const FAILURES_MOST = 60;
const PARTITIONS_MOST = 12;

function Head() {
  const { head } = model.tracks;
  const verdict = !head.is_complete ? "cut short" : head.verdict === null || head.verdict === undefined ? "no verdict" : head.verdict;
  const facts = [["variant", head.variant], ["seed", head.seed], ["verdict", verdict], ["events", number(model.last)],
    ["Leaderfall", head.version], ["digest", head.digest]].filter((each) => each[1] !== null && each[1] !== undefined && each[1] !== "");
  return html`<header><h1>${clean(head.scenario || "run", 120)}</h1>
    <dl>${facts.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${clean(value, 120)}</dd></div>`)}</dl>
    ${(head.notices || []).map((each, i) => html`<p key=${i} class="print-notice">${clean(each, 400)}</p>`)}</header>`;
}

function Failures() {
  const { chains } = model.tracks;
  if (!model.bad.length) return html`<section><h2>Violations and losses</h2><p>No rule was broken, and nothing was lost.</p></section>`;
  const told = new Set(chains.map((each) => each.n));
  const bare = model.bad.filter((each) => !told.has(each.n));
  const left = Math.max(0, bare.length - FAILURES_MOST);
  return html`<section><h2>Violations and losses</h2>
    ${chains.map((each, i) => html`<article key=${i} class="print-chain"><h3>#${each.n} ${clean(each.title, 500)}</h3>
      <ol>${each.sentences.map(([text, numbers, isCause], k) => html`<li key=${k}>${isCause && html`<b>cause: </b>`}${clean(text, 1000)}${numbers.length > 0 && html` <span class="print-n">${numbers.slice(0, 6).map((n) => `#${n}`).join(" ")}</span>`}</li>`)}</ol></article>`)}
    ${bare.length > 0 && html`<ul>${bare.slice(0, FAILURES_MOST).map((each, i) => html`<li key=${i}>#${each.n} ${clean(each.text, 500)}</li>`)}</ul>`}
    ${left > 0 && html`<p>and ${counted(left, "more")}</p>`}
  </section>`;
}

function Expectations() {
  const { expects } = model.tracks;
  if (!expects.length) return null;
  return html`<section><h2>Expectations</h2><table><tbody>${expects.slice(0, 100).map((each, i) => html`<tr key=${i}>
    <td>${clean(each.form, 30)}</td><td class="print-code">${clean(each.text, 600)}</td>
    <td>${each.judged === null || each.judged === undefined ? "never judged" : `${each.verdict ? "met" : "failed"} #${each.judged}`}</td></tr>`)}</tbody></table>
    ${expects.length > 100 && html`<p>and ${counted(expects.length - 100, "more expectation")}</p>`}</section>`;
}

function Now() {
  const event = eventOf(step.value);
  return html`<section><h2>At event ${number(step.value)} of ${number(model.last)}</h2>
    <p>${event ? html`${time(event.t)}, <b>${clean(event.node, 60)}</b>: <span class="print-code">${clean(event.text, 600)}</span>` : "Before the first event."}</p></section>`;
}

function Diagram() {
  if (!drawn.value.length) return null;
  const partitions = bandedPartitions();
  const frame = lanesFor(partitions, 0, false);
  const { scale, window } = windowFor(WIDTH, frame.gutter);
  const scene = sceneOf({ scale, window, drawn: drawn.value, frame, width: WIDTH, now: step.value, emphasis: true });
  const said = summary(scene);
  return html`<section class="print-figure"><h2>Space and time</h2>
    <${Shapes} scene=${scene} width=${WIDTH} label=${said} selected=${null} isSeveral=${partitions.length > 1} id="print-clip" pointed=${null} />
    <p>${said}</p></section>`;
}

function Logs() {
  const n = step.value;
  const { partitions, nodes } = model.tracks;
  const down = nodes.filter((each) => !["up", undefined].includes(at(each.status, n)));
  return html`<section><h2>Logs</h2>
    <svg width="0" height="0" class="print-defs" aria-hidden="true"><defs><pattern id="print-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" class="hatch-line" /></pattern></defs></svg>
    ${down.length > 0 && html`<p>${down.map((each) => `${clean(each.name, 40)} is ${clean(at(each.status, n), 20)}`).join(", ")}.</p>`}
    ${partitions.slice(0, PARTITIONS_MOST).map((partition) => {
      const now = partitionAt(partition, n);
      const { axis, low, high } = axisOf(partition, now, STRIP_WIDTH);
      return html`<article key=${partition.name} class="print-partition"><h3>${clean(partition.name, 60)}: leader ${now.leader === null ? "nobody" : clean(now.leader, 40)}${now.epoch === null ? "" : ` in epoch ${now.epoch}`}, ISR ${now.isr && now.isr.length ? clean(now.isr.join(" "), 200) : "empty"}</h3>
        ${now.logs.map((log) => html`<div key=${log.node} class="print-log"><b>${clean(log.node, 24)}</b>
          <div class="log-view"><${Strip} log=${log} axis=${axis} width=${STRIP_WIDTH} picked=${null} pick=${() => {}} low=${low} high=${high} /></div>
          <p>${describe(log)}</p></div>`)}</article>`;
    })}
    ${partitions.length > PARTITIONS_MOST && html`<p>and ${counted(partitions.length - PARTITIONS_MOST, "more partition")}</p>`}
  </section>`;
}

function Sheet() {
  return html`<${Head} /><${Now} /><${Failures} /><${Expectations} /><${Diagram} /><${Logs} />`;
}

/** Make the sheet when the browser prints. */
export function listenToPrint() {
  const root = document.createElement("div");
  root.id = "print";
  document.body.append(root);
  const begin = () => render(html`<${Sheet} />`, root);
  const end = () => render(null, root);
  addEventListener("beforeprint", begin);
  addEventListener("afterprint", end);
  // Some browsers only tell by the media; for others this is the same once more.
  const media = matchMedia("print");
  media.addEventListener("change", () => (media.matches ? begin() : end()));
}
