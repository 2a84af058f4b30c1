// The replicas of two runs, one strip over the other, on one axis.
import { makeAxis } from "./axis.js";
import { clean, html, number, useState, useWidth } from "./dom.js";
import { logAt, recordText, wholeOf } from "./logs.js";
import { Epoch, Some } from "./parts.js";
import { Empty } from "./parts.js";
import { at, model } from "./store.js";
import { STRIP_HEIGHT, Strip } from "./strip.js";
import { panel, place } from "./comparerows.js";

const WORDS = {
  status: "status", role: "role", roleEpoch: "leader epoch", spans: "records", start: "log start", end: "LEO", hw: "HW",
};

function logIn(tracks, replica, n) {
  if (!replica || replica.since > n) return null;
  const owner = tracks.nodes.find((each) => each.name === replica.node);
  return { ...logAt(replica, n), differs: [], status: (owner && at(owner.status, n)) || "not started" };
}

/** Names of what is unlike in two copies of a log. */
export function unlike(a, b, hasWatermarks) {
  if (!a || !b) return [a || b ? "only one run has it" : ""].filter(Boolean);
  const simple = (log, key) => (key === "spans" ? JSON.stringify(log.spans) : log[key]);
  return Object.keys(WORDS).filter((key) => (key !== "hw" || (hasWatermarks && a.hw !== undefined && b.hw !== undefined)) && simple(a, key) !== simple(b, key))
    .map((key) => WORDS[key]);
}

// Offsets at which the other log has a record of another epoch, or none.
function parted(log, other) {
  const found = [];
  for (const span of log.spans) {
    let base = span.base;
    while (base < span.end) {
      const their = other.spans.find((each) => each.base <= base && base < each.end);
      const next = other.spans.find((each) => each.base > base);
      const end = Math.min(span.end, their ? their.end : next ? next.base : span.end);
      if (!their || their.epoch !== span.epoch) found.push([base, end]);
      base = end;
    }
  }
  return found;
}

function Pair({ node, a, b, axis, width, picked, pick, low, high, hasWatermarks }) {
  const words = unlike(a, b, hasWatermarks);
  const sides = [["A", a, b], ["B", b, a]];
  return html`<div class=${`cmp-replica${words.length ? " unlike" : ""}`}>
    <p class="cmp-replica-head"><b><bdi>${clean(node, 40)}</bdi></b> ${words.length
      ? html`<span class="cmp-unlike">unlike: ${words.join(", ")}</span>` : html`<span class="quiet">the same in both</span>`}</p>
    ${sides.map(([name, log, other]) => html`<div key=${name} class="cmp-strip"><span class=${`cmp-side ${name}`}>${name}</span>
      ${log ? html`<${Strip} log=${{ ...log, differs: other ? parted(log, other) : [] }} axis=${axis} width=${width} picked=${picked} pick=${pick} low=${low} high=${high} />`
        : html`<span class="quiet" style=${{ lineHeight: `${STRIP_HEIGHT}px` }}>not there</span>`}</div>`)}
  </div>`;
}

function knotsOf(logs) {
  const found = [];
  for (const log of logs) {
    for (const each of log.spans) found.push(each.base, each.end);
    found.push(log.start, log.end);
    if (log.hw) found.push(log.hw);
  }
  return found;
}

function Leads({ name, partition, n }) {
  if (!partition) return html`<span><b class=${`cmp-side ${name}`}>${name}</b> does not have it</span>`;
  const [leader, epoch] = at(partition.leader, n) || [null, null];
  const isr = at(partition.isr, n);
  return html`<span><b class=${`cmp-side ${name}`}>${name}</b> leader ${leader === null ? "nobody" : html`<bdi>${clean(leader, 40)}</bdi>`}
    ${epoch !== null && epoch >= 0 && html` <${Epoch} epoch=${epoch} />`}${isr && html`, ISR ${isr.length ? isr.map((each) => clean(each, 40)).join(", ") : "empty"}`}</span>`;
}

function Partition({ name, mine, theirs }) {
  const { a, b } = place.value;
  const [offset, pick] = useState(null);
  const [ref, width] = useWidth(600);
  const other = panel().b;
  const { comparison } = panel();
  const hasWatermarks = comparison.a.has_watermarks === comparison.b.has_watermarks;
  const nodes = [...new Set([mine, theirs].flatMap((each) => (each ? each.replicas.map((replica) => replica.node) : [])))];
  const find = (partition, node) => (partition ? partition.replicas.find((each) => each.node === node) : undefined);
  const pairs = nodes.map((node) => [node, logIn(model.tracks, find(mine, node), a), logIn(other, find(theirs, node), b)]);
  const logs = pairs.flatMap(([, one, two]) => [one, two]).filter(Boolean);
  const wholes = [mine, theirs].filter(Boolean).map(wholeOf);
  let [low, high] = [Math.min(...wholes.map((each) => each[0])), Math.max(...wholes.map((each) => each[1]))];
  const room = width - 28;
  let axis = makeAxis(low, high, [], room);
  if (!axis.isLinear) {
    const knots = knotsOf(logs);
    low = Math.min(...knots, high);
    high = Math.max(1, ...knots);
    axis = makeAxis(low, high, knots, room);
  }
  return html`<section class="cmp-partition" ref=${ref} aria-label=${`Partition ${clean(name, 60)} in both runs`}>
    <h3><bdi>${clean(name, 60)}</bdi></h3>
    <p class="cmp-leads"><${Leads} name="A" partition=${mine} n=${a} /> <${Leads} name="B" partition=${theirs} n=${b} /></p>
    ${pairs.filter(([, one, two]) => one || two).map(([node, one, two]) => html`<${Pair} key=${node} node=${node} a=${one} b=${two} axis=${axis} width=${room}
      picked=${offset} pick=${pick} low=${low} high=${high} hasWatermarks=${hasWatermarks} />`)}
    ${!logs.length && html`<${Empty}>No replica of it is there yet.<//>`}
    <p class="cmp-read" aria-live="off">${offset === null ? html`<span class="quiet">Point at a log, or focus it and use ↑ ↓, to read its records. A red line marks what the other run's copy does not have.</span>`
      : html`<b>offset ${number(offset)}</b> ${pairs.flatMap(([node, one, two]) => [["A", one], ["B", two]].filter(([, log]) => log)
        .map(([side, log]) => html`<span key=${`${node}${side}`}><b class=${`cmp-side ${side}`}>${side}</b> <bdi>${clean(node, 30)}</bdi> ${recordText(log, offset).text}</span> `))}`}</p>
  </section>`;
}

/** The logs of both runs where the reader is. */
export function BothLogs() {
  const own = model.tracks.partitions;
  const other = panel().b.partitions;
  const names = [...new Set([...own, ...other].map((each) => each.name))];
  return html`<div class="cmp-logs">
    <svg width="0" height="0" class="defs" aria-hidden="true"><defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" class="hatch-line" /></pattern>
    </defs></svg>
    <${Some} list=${names} most=${30} word="partitions" draw=${(name) => html`<${Partition} key=${name} name=${name} mine=${own.find((each) => each.name === name)} theirs=${other.find((each) => each.name === name)} />`} />
    ${!names.length && html`<${Empty}>Neither run has a partition with a log.<//>`}
  </div>`;
}
