// The keys and signs, on one sheet.
import { html, useEffect, useRef } from "./dom.js";
import { COMMANDS } from "./keys.js";
import { Epoch } from "./parts.js";
import { help } from "./store.js";

const SIGNS = [
  [html`<${Epoch} epoch=${0} /> <${Epoch} epoch=${1} />`, "records, by the leader epoch in which they were written"],
  [html`<i class="sample unsynced"></i>`, "hatched: written, but not synced; a power loss may take it"],
  [html`<i class="sample ghost"></i>`, "dashed, struck out: cut from this log, or lost"],
  [html`<i class="sample hw"></i>`, "HW: the replica's high watermark; below it records are committed"],
  [html`<i class="sample leo"></i>`, "LEO: the log end offset, where the next record goes"],
  [html`<i class="sample start"></i>`, "log start: what is below was deleted"],
  [html`<i class="sample segment"></i>`, "a segment begins"],
  [html`<i class="sample index"></i>`, "an entry of the offset index"],
];

function Sheet() {
  const ref = useRef(null);
  useEffect(() => {
    const back = document.activeElement;
    ref.current.showModal();
    return () => back && back.focus && back.focus();
  }, []);
  return html`<dialog class="help" ref=${ref} aria-labelledby="help-title" onClose=${() => { help.value = false; }}
    onClick=${(event) => event.target === ref.current && ref.current.close()}>
    <div class="sheet">
      <header><h2 id="help-title">Keys and signs</h2>
        <button type="button" class="tool" aria-label="Close" onClick=${() => ref.current.close()}>✕</button></header>
      <div class="help-parts">
        <dl class="keys">${COMMANDS.map((each) => html`<div key=${each.id}>
          <dt>${each.shown.split(" ").map((key) => html`<kbd key=${key}>${key}</kbd>`)}</dt><dd>${each.text}</dd></div>`)}
        </dl>
        <dl class="signs">${SIGNS.map(([sign, text], i) => html`<div key=${i}><dt>${sign}</dt><dd>${text}</dd></div>`)}
        </dl>
      </div>
      <p>The address has the step, the node and the view: copy it to show somebody this moment. All of the run is in
        this file; it loads nothing and sends nothing.</p>
    </div>
  </dialog>`;
}

export function Help() {
  return help.value ? html`<${Sheet} />` : null;
}
