// The replicas' logs, one strip each, aligned by offset; below them, the cluster now.
import { makeAxis } from "./axis.js";
import { clean, counted, html, number, useState, useWidth } from "./dom.js";
import { saveStrips } from "./exportsvg.js";
import { partitionAt, recordText, wholeOf } from "./logs.js";
import { ClusterNow, Status } from "./now.js";
import { Empty, Epoch, EventLink, NodeName, Some } from "./parts.js";
import { register } from "./registry.js";
import { model, node, step } from "./store.js";
import { STRIP_HEIGHT, Strip } from "./strip.js";

const PARTITIONS_MOST = 30;

function knotsOf(now) {
  const found = [];
  for (const log of now.logs) {
    for (const each of log.spans) found.push(each.base, each.end);
    for (const cut of log.cuts) for (const each of cut.spans) found.push(each.base, each.end);
    found.push(log.start, log.end);
    if (log.hw) found.push(log.hw);
    if (log.durable) found.push(log.durable);
    if (log.segments.length <= 12) found.push(...log.segments);
  }
  return found;
}

export function axisOf(partition, now, width) {
  const [low, high] = wholeOf(partition);
  const axis = makeAxis(low, high, [], width);
  if (axis.isLinear) return { axis, low, high };
  const knots = knotsOf(now);
  const first = Math.min(...now.logs.map((each) => each.start), ...knots);
  const last = Math.max(1, ...knots);
  return { axis: makeAxis(first, last, knots, width), low: first, high: last };
}

function Badges({ now, log }) {
  const isLeader = now.leader === log.node;
  const isIn = now.isr && now.isr.includes(log.node);
  return html`<span class="badges">
    ${isLeader && html`<span class="badge leader" title=${`leader of epoch ${now.epoch}`}>leader</span>`}
    ${now.isr && html`<span class=${`badge ${isIn ? "isr" : "out"}`} title=${isIn ? "an in-sync replica" : "not in the ISR"}>${isIn ? "ISR" : "not ISR"}</span>`}
    ${now.elr.includes(log.node) && html`<span class="badge elr" title="an eligible leader replica">ELR</span>`}
    ${now.lastKnown.includes(log.node) && html`<span class="badge elr" title="the leader known last">last known</span>`}
    <${Status} status=${log.status} />
    ${log.differs.length > 0 && html`<span class="badge bad" title="it has other records than the leader at some offsets">differs</span>`}
  </span>`;
}

function Facts({ log }) {
  const hasSync = log.durable !== undefined && log.durable !== null;
  return html`<p class="log-facts">
    ${log.role !== "no role" && html`<span>${clean(log.role, 30)}${log.roleEpoch === null || log.roleEpoch < 0 ? "" : ` in epoch ${log.roleEpoch}`}</span>`}
    ${hasSync && html`<span>${log.durable >= log.end ? "all synced" : `synced to ${number(log.durable)}`}</span>`}
    ${log.segments.length > 0 && html`<span>${counted(log.segments.length, "segment")}</span>`}
    ${log.index.length > 0 && html`<span>${counted(log.index.length, "index entry", "index entries")}</span>`}
    ${(log.epochs.length > 0 || log.status === "up") && html`<span class="cache">epoch cache ${log.epochs.length
      ? log.epochs.slice(-8).map(([epoch, start]) => html`<span key=${epoch} class="cache-entry"><${Epoch} epoch=${epoch} /> from ${number(start)}</span>`)
      : "empty"}</span>`}
    ${log.cuts.length > 0 && html`<span class="cut-fact">${log.cuts.slice(-1).map((cut) => html`${cut.how} ${cut.spans.map((each) => (each.end - each.base === 1 ? number(each.base) : `${number(each.base)}–${number(each.end - 1)}`)).join(", ")} with <${EventLink} n=${cut.n} />`)}</span>`}
  </p>`;
}

function Readout({ now, offset }) {
  if (offset === null) return html`<p class="readout quiet">Point at a log, or focus it and use ↑ ↓, to read its records.</p>`;
  return html`<p class="readout"><b>offset ${number(offset)}</b>
    ${now.logs.map((log) => {
      const { text, n } = recordText(log, offset);
      return html`<span key=${log.node}><b><bdi>${clean(log.node, 30)}</bdi></b> ${text}${n ? html` <${EventLink} n=${n} />` : ""}</span>`;
    })}</p>`;
}

function Names({ names }) {
  if (!names) return html`<span class="quiet">not told</span>`;
  if (!names.length) return html`<span class="quiet">empty</span>`;
  return names.map((each) => html`<${NodeName} key=${each} name=${each} /> `);
}

function Partition({ partition }) {
  const n = step.value;
  const [offset, pick] = useState(null);
  const [ref, width] = useWidth(700);
  const now = partitionAt(partition, n);
  const { axis, low, high } = axisOf(partition, now, width);
  const isEmpty = !now.logs.length;
  return html`<section class="partition" aria-label=${`Partition ${clean(partition.name, 60)}`}>
    <header class="partition-head">
      <h2><bdi>${clean(partition.name, 60)}</bdi></h2>
      <span>leader <${NodeName} name=${now.leader} />${now.epoch !== null && now.epoch >= 0 && html` <${Epoch} epoch=${now.epoch} />`}</span>
      <span>ISR <${Names} names=${now.isr} /></span>
      ${now.elr.length > 0 && html`<span>ELR <${Names} names=${now.elr} /></span>`}
      ${now.lastKnown.length > 0 && html`<span>last known <${Names} names=${now.lastKnown} /></span>`}
    </header>
    <div class="logs">
      <div class="log-row axis-row"><div class="log-head">offset${axis.isLinear ? "" : html`<span>not to scale</span>`}</div>
        <div class="log-strip" ref=${ref}><svg width=${width} height="18" aria-hidden="true" class="axis">
          ${!isEmpty && axis.labels.map(([x, text]) => html`<text key=${text} x=${x} y="13" text-anchor="middle">${number(text)}</text>`)}
          ${offset !== null && html`<rect class="picked" x=${axis.x(offset)} y="15" width=${Math.max(2, axis.x(offset + 1) - axis.x(offset))} height="3" />`}
        </svg></div></div>
      ${now.logs.map((log) => html`<div key=${log.node} class=${`log-row${node.value === log.node ? " selected" : ""}`}>
        <div class="log-head"><${NodeName} name=${log.node} /><${Badges} now=${now} log=${log} /></div>
        <div class="log-strip" style=${{ minHeight: `${STRIP_HEIGHT}px` }}>
          <${Strip} log=${log} axis=${axis} width=${width} picked=${offset} pick=${pick} low=${low} high=${high} />
          <${Facts} log=${log} /></div></div>`)}
    </div>
    ${isEmpty ? html`<${Empty}>No replica of it is there yet.<//>` : html`<${Readout} now=${now} offset=${offset} />`}
  </section>`;
}

function LogView() {
  const { partitions } = model.tracks;
  return html`<div class="log-view">
    ${partitions.length > 0 && html`<button type="button" class="plain-button save-strips" onClick=${(event) => saveStrips(event.currentTarget.parentElement)}>Save SVG</button>`}
    <svg width="0" height="0" class="defs" aria-hidden="true"><defs>
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" class="hatch-line" /></pattern>
    </defs></svg>
    <${Some} list=${partitions} most=${PARTITIONS_MOST} word="partitions" draw=${(each) => html`<${Partition} key=${each.name} partition=${each} />`} />
    ${!partitions.length && html`<${Empty}>The run has no partition with a log.<//>`}
    <${ClusterNow} />
  </div>`;
}

register({ id: "log", title: "Logs", place: "main", order: 10, component: LogView });
