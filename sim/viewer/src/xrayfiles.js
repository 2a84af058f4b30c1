// What each file of a log's directory is; and the idea behind it, as a book.
import { clean, html, number } from "./dom.js";
import { data, panel, segment } from "./xraystate.js";

const OTHERS_MOST = 300;

function Modelled({ value }) {
  const look = value === "modelled" ? "good" : value === "not modelled" ? "warn" : "";
  return html`<span class=${`xr-tag ${look}`}>${clean(value, 30)}</span>`;
}

function Row({ row }) {
  return html`<tr class=${row.file === null ? "absent" : ""}>
    <th scope="row">${row.file === null ? html`<span class="quiet">not here</span>` : html`<code>${clean(row.file, 80)}</code>`}
      <span class="xr-small">${row.size_bytes === null ? "" : `${number(row.size_bytes)} bytes`}</span></th>
    <td data-name="Type">${clean(row.type, 60)} <${Modelled} value=${row.modelled} /></td>
    <td data-name="Structure">${clean(row.structure, 200)}</td>
    <td data-name="Purpose">${clean(row.purpose, 200)}</td>
    <td data-name="Life cycle">${clean(row.life, 200)}${row.note ? html` <i>${clean(row.note, 200)}</i>` : ""}</td>
  </tr>`;
}

function Table({ rows, caption }) {
  return html`<table class="xr-table xr-directory"><caption>${caption}</caption>
    <thead><tr>${["File", "Type", "Structure", "Purpose", "Life cycle"].map((each) => html`<th scope="col" key=${each}>${each}</th>`)}</tr></thead>
    <tbody>${rows.map((each, i) => html`<${Row} key=${i} row=${each} />`)}</tbody></table>`;
}

/** The directory: the files of the segment that is shown, and those of the log and the broker. */
export function Directory() {
  const { directory, segments, name } = data.value;
  const base = segments.length ? segments[segment.value].file.slice(0, 20) : "none";
  const isSegment = (each) => each.file !== null && each.where === "log" && /^\d{20}\./.test(each.file);
  const own = directory.filter((each) => each.where === "log" && (!isSegment(each) || each.file.startsWith(`${base}.`)));
  const others = directory.filter((each) => isSegment(each) && !each.file.startsWith(`${base}.`));
  const broker = directory.filter((each) => each.where === "broker");
  return html`<div>
    <${Table} rows=${own} caption=${html`In <bdi><code>${clean(name, 60)}</code></bdi>: files of this segment and of the whole log`} />
    ${others.length > 0 && html`<details><summary>Files of the other ${number(segments.length - 1)} segments (${number(others.length)})</summary>
      <ul class="xr-names">${others.slice(0, OTHERS_MOST).map((each) => html`<li key=${each.file}><code>${clean(each.file, 80)}</code> <span class="quiet">${each.size_bytes === null ? clean(each.note || "", 80) : number(each.size_bytes)}</span></li>`)}
        ${others.length > OTHERS_MOST && html`<li class="quiet">and ${number(others.length - OTHERS_MOST)} more</li>`}</ul></details>`}
    ${broker.length > 0 && html`<${Table} rows=${broker} caption="In the broker's directory above it" />`}
  </div>`;
}

/** The book, folded. */
export function Book() {
  const { book } = panel();
  return html`${book.length > 0 && html`<details class="xr-book"><summary>The idea first: a diary in volumes</summary>
    <div class="xr-book-parts">${book.map((each, i) => html`<div key=${i}><h3>${clean(each.title, 120)}</h3><p>${clean(each.text, 1000)}</p></div>`)}</div></details>`}`;
}
