// Two runs compared: where they part, why, and what each has then.
import { clean, counted, html, number, time } from "./dom.js";
import { BothLogs } from "./comparelogs.js";
import { ALIKE, CHANGED, MOVED, ONLY, SAME } from "./comparealign.js";
import { eventOfB, panel, place, rowsNow, toDifference, toPoint, toRow } from "./comparerows.js";
import { columns } from "./layout.js";
import { register } from "./registry.js";
import { eventOf, model, tell } from "./store.js";

const AROUND_WIDE = 8;
const AROUND_NARROW = 4;
const LISTED_MOST = 60;
const SIGNS = {
  [SAME]: ["=", "the same in both runs"],
  [CHANGED]: ["≠", "the same event with other content"],
  [ALIKE]: ["≈", "the same content with other causes"],
  [ONLY]: ["", "only in one run"],
  [MOVED]: ["⇅", "in both runs, in another order"],
};

/** A place in A or B that can be gone to. */
function Place({ side, n }) {
  if (!n) return null;
  const rows = rowsNow();
  const row = (side === "A" ? rows.rowA : rows.rowB)[n];
  return html`<button type="button" class="cmp-place" onClick=${() => toRow(row)}>${side} #${n}</button>`;
}

function Run({ side, run }) {
  const verdict = run.verdict === null ? "cut short" : run.verdict;
  const look = verdict === "passed" ? "good" : run.verdict === null ? "cut" : "bad";
  return html`<div class="cmp-run"><span class=${`cmp-side ${side}`}>${side}</span>
    <div><p><b><bdi>${clean(run.scenario || run.name, 80)}</bdi></b>${run.variant ? html` <bdi>${clean(run.variant, 60)}</bdi>` : ""}${" "}
      <span class=${`verdict ${look}`}>${clean(verdict, 30)}</span></p>
      <p class="quiet">seed ${clean(run.seed, 30)}; ${counted(run.last, "event")} up to ${time(run.end_us)}${side === "A" ? "; the run of this page" : ""}</p></div></div>`;
}

/** JSON text as it may be shown, in the terminal's words: a header names only guards that are off. */
function value(text, what) {
  if (what === "guard" && [null, "true", "false"].includes(text)) return html`<code>${text === "false" ? "off" : "on"}</code>`;
  return text === null || text === "null" ? html`<span class="quiet">absent</span>` : html`<code>${clean(text, 200)}</code>`;
}

function Unlike({ rows, caption }) {
  return html`<table class="cmp-table"><caption>${caption}</caption>
    <thead><tr><th scope="col">What</th><th scope="col">A</th><th scope="col">B</th></tr></thead>
    <tbody>${rows.slice(0, LISTED_MOST).map((each, i) => html`<tr key=${i}><th scope="row"><code>${clean(each.path, 120)}</code></th><td>${value(each.a, each.what)}</td><td>${value(each.b, each.what)}</td></tr>`)}
    ${rows.length > LISTED_MOST && html`<tr><td colspan="3">and ${counted(rows.length - LISTED_MOST, "more difference")}</td></tr>`}</tbody></table>`;
}

function Chain({ side, chain }) {
  if (!chain.length) return null;
  return html`<details><summary>What led to it in ${side} (${counted(chain.length, "event")})</summary>
    <ol class="cmp-chain">${chain.map(([n, node, text]) => html`<li key=${n}><${Place} side=${side} n=${n} /> <b><bdi>${clean(node, 40)}</bdi></b> <span>${clean(text, 300)}</span></li>`)}</ol></details>`;
}

function Divergence() {
  const { divergence, shift, is_same: isSame } = panel().comparison;
  if (!divergence) {
    return html`<p class="cmp-told same">${isSame ? "Both runs have the same events at the same times, and the same outcome." : "Every event of one run has its like in the other."}
      ${shift ? html` ${clean(shift.text, 400)} <${Place} side="A" n=${shift.a} /> <${Place} side="B" n=${shift.b} />` : ""}</p>`;
  }
  const { origin } = divergence;
  return html`<div class="cmp-divergence">
    <p class="cmp-told"><b>They part here.</b> ${clean(divergence.text, 500)}</p>
    <p><b>It goes back to:</b> ${clean(origin.text, 500)} <${Place} side="A" n=${origin.a} /> <${Place} side="B" n=${origin.b} /></p>
    ${shift && html`<p><b>Times differ before:</b> ${clean(shift.text, 400)} <${Place} side="A" n=${shift.a} /> <${Place} side="B" n=${shift.b} /></p>`}
    ${divergence.unlike.length > 0 && html`<${Unlike} rows=${divergence.unlike} caption="What the two events say otherwise" />`}
    <${Chain} side="A" chain=${divergence.chain_a} /><${Chain} side="B" chain=${divergence.chain_b} />
  </div>`;
}

function Event({ event, side }) {
  if (!event) return html`<td class=${`cmp-cell none ${side}`}><span class="unseen">nothing in ${side}</span></td>`;
  return html`<td class=${`cmp-cell ${side}`}><span class="cmp-n">#${event.n}</span> <time>${time(event.t)}</time> <b><bdi>${clean(event.node, 30)}</bdi></b>${" "}
    <span class="cmp-text" title=${clean(event.text, 400)}>${clean(event.text, 160)}</span></td>`;
}

function Aligned() {
  const rows = rowsNow();
  const AROUND = columns.value === 1 ? AROUND_NARROW : AROUND_WIDE;
  const { row: here } = place.value;
  const { divergence } = panel().comparison;
  const parting = divergence ? (divergence.b ? rows.rowB[divergence.b] : rows.rowA[divergence.a]) : -1;
  const first = Math.max(0, Math.min(here - AROUND, rows.count - 2 * AROUND - 1));
  const shown = [];
  for (let row = first; row < Math.min(rows.count, first + 2 * AROUND + 1); row += 1) shown.push(row);
  const key = (event) => {
    const turn = { ArrowDown: 1, ArrowUp: -1, PageDown: 2 * AROUND, PageUp: -2 * AROUND }[event.key];
    if (!turn) return;
    event.preventDefault();
    event.stopPropagation();
    toRow(here + turn);
  };
  return html`<div class="cmp-aligned" tabindex="0" role="group" aria-label="Aligned events; arrow up and down step through both runs" onKeyDown=${key}>
    <table><caption class="unseen">Events of both runs, aligned, around the current ones</caption>
      <thead><tr><th scope="col"><span class="cmp-side A">A</span></th><th scope="col"><span class="unseen">how they correspond</span></th><th scope="col"><span class="cmp-side B">B</span></th></tr></thead>
      <tbody>${shown.map((row) => {
        const how = rows.how[row];
        const a = rows.a[row] ? eventOf(rows.a[row]) : null;
        const b = rows.b[row] ? eventOfB(rows.b[row]) : null;
        const partner = how === MOVED ? (a ? `B #${rows.partnerA[a.n]}` : `A #${rows.partnerB[b.n]}`) : "";
        const sign = how === ONLY ? (a && b ? "✕" : a ? "A" : "B") : SIGNS[how][0];
        const said = how === ONLY ? (a && b ? "two events, each only in its own run" : `only in ${a ? "A" : "B"}`) : `${SIGNS[how][1]}${partner ? `: ${partner}` : ""}`;
        const look = ["same", "changed", "alike", "only", "moved"][how];
        return html`<tr key=${row} class=${`${look}${row === here ? " here" : ""}${row === parting ? " parting" : ""}`} aria-current=${row === here ? "step" : undefined}
          onClick=${() => toRow(row)}><${Event} event=${a} side="A" /><td class="cmp-how" title=${said}><span aria-hidden="true">${sign}</span><span class="unseen">${said}${row === parting ? "; the first divergence" : ""}</span></td><${Event} event=${b} side="B" /></tr>`;
      })}</tbody></table>
  </div>`;
}

function Steps() {
  const { divergence, states } = panel().comparison;
  const rows = rowsNow();
  const { row } = place.value;
  const seek = (direction) => () => toDifference(direction) || tell(direction > 0 ? "No difference behind this one." : "No difference in front of this one.");
  const parting = states.find((each) => each.what === "parting");
  const end = states.find((each) => each.what === "end");
  return html`<div class="cmp-bar">
    ${divergence && html`<button type="button" class="cmp-button main" onClick=${() => toPoint(divergence.at_a, divergence.at_b)}>To the divergence</button>`}
    ${parting && html`<button type="button" class="cmp-button" title=${clean(parting.text, 200)} onClick=${() => toPoint(parting.a, parting.b)}>Where replicas differ first</button>`}
    ${end && html`<button type="button" class="cmp-button" onClick=${() => toPoint(end.a, end.b)}>To the end</button>`}
    <span class="cmp-group"><button type="button" class="cmp-button" onClick=${() => toRow(row - 1)} disabled=${row <= 0}>↑ row</button>
    <button type="button" class="cmp-button" onClick=${() => toRow(row + 1)} disabled=${row >= rows.count - 1}>↓ row</button>
    <button type="button" class="cmp-button" onClick=${seek(-1)}>↑ difference</button>
    <button type="button" class="cmp-button" onClick=${seek(1)}>↓ difference</button></span>
  </div>`;
}

function Outcome({ title, found, one }) {
  const count = found.a.length + found.b.length;
  return html`<section class="cmp-outcome"><h3>${title}</h3>
    <p class="quiet">${found.both.length ? `${counted(found.both.length, one)} in both. ` : ""}${count ? "" : found.both.length ? "None in one run only." : "None in either run."}</p>
    ${count > 0 && html`<div class="cmp-two">${["A", "B"].map((side) => {
      const items = found[side.toLowerCase()];
      return html`<div key=${side}><p><span class=${`cmp-side ${side}`}>${side}</span> ${items.length ? "only here" : html`<span class="quiet">nothing more</span>`}</p>
        <ul>${items.slice(0, LISTED_MOST).map((each, i) => html`<li key=${i}><${Place} side=${side} n=${each.n} /> ${clean(each.text, 400)}</li>`)}
        ${items.length > LISTED_MOST && html`<li class="quiet">and ${number(items.length - LISTED_MOST)} more</li>`}</ul></div>`;
    })}</div>`}
  </section>`;
}

function CompareView() {
  const { comparison } = panel();
  const { a, b } = place.value;
  return html`<div class="cmp">
    <div class="cmp-runs"><${Run} side="A" run=${comparison.a} /><${Run} side="B" run=${comparison.b} /></div>
    <div class="cmp-part"><${Divergence} />
      ${comparison.header.length > 0 && html`<details open=${comparison.header.length <= 6}><summary>How the runs were set up: ${counted(comparison.header.length, "difference")}</summary>
        <${Unlike} rows=${comparison.header} caption="Differences of the headers" /></details>`}</div>
    <div class="cmp-part cmp-stage"><h2>Both runs, step by step</h2><${Steps} />
      <${Aligned} />
      <p class="cmp-legend"><span><b>=</b> the same</span> <span><b>≠</b> other content</span> <span><b>≈</b> other causes</span>
        <span><b>⇅</b> another order</span> <span><b>A</b> or <b>B</b> only there</span> <span><b>✕</b> only there, each</span></p>
      <p class="cmp-where" role="status">Behind A #${number(a)} and B #${number(b)}. Stepping in A, with any key of the page, moves B along.</p></div>
    <div class="cmp-part"><h2>Replicas there</h2><${BothLogs} /></div>
    <div class="cmp-part"><h2>What came of it</h2>
      <${Outcome} title="Losses" one="loss" found=${comparison.losses} />
      <${Outcome} title="Broken rules" one="finding" found=${comparison.findings} />
      <${Outcome} title="Expectations" one="expectation" found=${comparison.expectations} /></div>
  </div>`;
}

register({
  id: "compare", title: "Compare", place: "main", order: 70, component: CompareView,
  isShown: () => Boolean(model.panels.compare),
});
