// What this page does not have, and short messages.
import { clean, html } from "./dom.js";
import { message, model } from "./store.js";

function textsOf(head) {
  const texts = [...(head.notices || [])];
  if (!head.is_complete && !texts.length) texts.push(`What came behind event ${model.last} is not shown.`);
  if (!model.last) texts.push("The trace has no events.");
  return texts;
}

export function Notices() {
  const texts = textsOf(model.tracks.head);
  return html`${texts.length > 0 && html`<ul class="notices" aria-label="Notices">
      ${texts.map((each, i) => html`<li key=${i}>${clean(each, 400)}</li>`)}
    </ul>`}
    <div class="message ${message.value ? "on" : ""}" role="status">${message.value}</div>`;
}
