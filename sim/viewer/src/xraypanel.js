// The X-ray of a log: how an offset becomes bytes, what is durable, what each file is.
import { clean, counted, html, number as digits, useEffect, useRef } from "./dom.js";
import { register } from "./registry.js";
import { Book, Directory } from "./xrayfiles.js";
import { HexView } from "./xrayhex.js";
import { PageMap } from "./xraypages.js";
import { Transfer } from "./xraypaths.js";
import { Search } from "./xraysearch.js";
import { ask, choose, data, hasLogs, number, panel, segment } from "./xraystate.js";

/** A list of tabs; the arrow keys go through them. */
function Tabs({ label, names, now, pick, children, controls }) {
  const list = useRef(null);
  useEffect(() => {
    const tab = list.current && list.current.children[now];
    if (!tab) return;
    const { offsetLeft, offsetWidth } = tab;
    const { scrollLeft, clientWidth } = list.current;
    if (offsetLeft < scrollLeft + 24) list.current.scrollLeft = offsetLeft - 24;
    else if (offsetLeft + offsetWidth > scrollLeft + clientWidth - 24) {
      list.current.scrollLeft = offsetLeft + offsetWidth - clientWidth + 24;
    }
  }, [now, names.length]);
  const turn = (event) => {
    const to = { ArrowRight: now + 1, ArrowLeft: now - 1, Home: 0, End: names.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    const next = (to + names.length) % names.length;
    pick(next);
    list.current.children[next].focus();
  };
  return html`<div class="xr-tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${turn}>
    ${names.map((each, i) => html`<button type="button" role="tab" key=${i} aria-selected=${i === now}
      aria-controls=${controls} tabindex=${i === now ? 0 : -1} onClick=${() => pick(i)}>${children(each)}</button>`)}
  </div>`;
}

/** The twenty digits of a segment's name; zeros in front are only there to sort. */
export function SegmentName({ base, suffix = "" }) {
  const name = String(base).padStart(20, "0");
  const zeros = name.length - (base === 0 ? 1 : String(base).length);
  return html`<span class="xr-name"><span class="xr-zeros">${name.slice(0, zeros)}</span>${name.slice(zeros)}${suffix}</span>`;
}

function Configuration() {
  const { configuration, format, epochs } = data.value;
  const { measured } = configuration;
  const gaps = measured.gap_bytes_least === null ? null
    : measured.gap_bytes_least === measured.gap_bytes_most ? digits(measured.gap_bytes_least)
      : `${digits(measured.gap_bytes_least)} to ${digits(measured.gap_bytes_most)}`;
  return html`<dl class="xr-facts">
    <div><dt>index.interval.bytes</dt><dd><b>${digits(configuration.index_interval_bytes)}</b> <span class="quiet">${clean(configuration.index_interval_source, 120)}</span></dd></div>
    <div><dt>Measured here</dt><dd>${counted(measured.entries, "index entry", "index entries")} for ${counted(measured.batches, "batch", "batches")} in ${digits(measured.log_bytes)} bytes${gaps ? `; ${gaps} bytes from one entry to the next` : ""}</dd></div>
    <div><dt>Format</dt><dd>${clean(format, 20)}, pages of ${digits(configuration.page_bytes)} bytes${epochs.length ? `; epochs ${epochs.slice(-6).map(([epoch, start]) => `e${epoch} from ${digits(start)}`).join(", ")}` : ""}</dd></div>
  </dl>`;
}

function Left({ notices }) {
  return html`${notices.length > 0 && html`<ul class="xr-notices" aria-label="What this X-ray leaves out">
    ${notices.map((each, i) => html`<li key=${i}>${clean(each, 400)}</li>`)}</ul>`}`;
}

const PARTS = [
  ["search", "Look-up", Search],
  ["hex", "Batch in hex", HexView],
  ["pages", "Page cache", PageMap],
  ["transfer", "To a consumer", Transfer],
  ["files", "Directory", Directory],
];

function jump(event, id) {
  event.preventDefault();
  const part = document.getElementById(`xr-${id}`);
  part.scrollIntoView({ block: "start" });
  part.focus({ preventScroll: true });
}

function XrayView() {
  const all = panel();
  const { segments, name } = data.value;
  return html`<div class="xr">
    <header class="xr-head">
      <${Tabs} label="Logs of the run" names=${all.directories} now=${number.value} pick=${choose} controls="xr-panel">
        ${(each) => html`<bdi>${clean(each.name, 60)}</bdi>`}<//>
      ${segments.length > 0 && html`<${Tabs} label="Segments" names=${segments} now=${segment.value} controls="xr-panel"
        pick=${(i) => ask(Math.max(segments[i].base_offset, data.value.marks.log_start.offset))}>
        ${(each) => html`<${SegmentName} base=${each.base_offset} suffix=".log" />`}<//>`}
    </header>
    <div id="xr-panel" role="tabpanel" aria-label=${`X-ray of ${clean(name, 60)}`}>
      <div class="xr-intro">
        <p>The real files of <bdi><b>${clean(name, 60)}</b></bdi>, as the run left them: behind its last event, whichever
          event is chosen above.</p>
        <nav aria-label="Parts of the X-ray">${PARTS.map(([id, title]) => html`<a key=${id} href=${`#xr-${id}`}
          onClick=${(event) => jump(event, id)}>${title}</a>`)}</nav>
        <${Left} notices=${[...all.notices, ...data.value.notices]} />
        <${Configuration} />
        <${Book} />
      </div>
      ${PARTS.map(([id, title, Part]) => html`<section class="xr-part" key=${id} id=${`xr-${id}`} tabindex="-1" aria-labelledby=${`xr-${id}-title`}>
        <h2 id=${`xr-${id}-title`}>${title}</h2><${Part} /></section>`)}
    </div>
  </div>`;
}

register({ id: "xray", title: "X-ray", place: "main", order: 60, component: XrayView, isShown: hasLogs });
