// One of a few, as a row of radio buttons.
import { html } from "./dom.js";

let count = 0;
const names = new Map();

/** `options`: [value, text, isOff]; the arrow keys go through them. */
export function Choice({ label, options, now, pick }) {
  if (!names.has(label)) names.set(label, `xr-choice-${(count += 1)}`);
  const group = names.get(label);
  // The page's own keys would take the arrows.
  const keep = (event) => event.key.startsWith("Arrow") && event.stopPropagation();
  return html`<div class="xr-choice" role="radiogroup" aria-label=${label} onKeyDown=${keep}>
    ${options.map(([value, text, isOff]) => html`<label key=${value} class=${value === now ? "on" : isOff ? "off" : ""}><input type="radio" name=${group} value=${value}
      checked=${value === now} disabled=${Boolean(isOff)} onChange=${() => pick(value)} />${text}</label>`)}
  </div>`;
}
