// The step slider with its marks: scenario steps, faults, broken rules, losses.
import { clean, counted, html, number, time, useWidth } from "./dom.js";
import { eventOf, go, model, step, timeOf } from "./store.js";

const PAD = 8;
const MARKS_MOST = 400;

// Marks that fall on the same few px are one mark with several texts.
function bunch(items, place, gap) {
  const bunches = [];
  for (const item of items) {
    const x = place(item.n);
    const last = bunches[bunches.length - 1];
    if (last && x - last.x < gap) last.items.push(item);
    else bunches.push({ x, items: [item] });
  }
  return bunches.slice(0, MARKS_MOST);
}

function titleOf(items) {
  const lines = items.slice(0, 6).map((each) => `#${each.n} ${clean(each.text, 120)}`);
  if (items.length > 6) lines.push(`and ${items.length - 6} more`);
  return lines.join("\n");
}

export function Marks() {
  const [ref, width] = useWidth(1000);
  const { tracks, last, bad, falls } = model;
  const room = Math.max(1, width - 2 * PAD);
  const place = (n) => PAD + (room * Math.min(n, last)) / Math.max(1, last);
  const steps = tracks.steps.map((each) => ({ n: each.begin, text: each.text || each.id }));
  const faults = tracks.faults;
  const event = eventOf(step.value);
  const said = event ? `event ${step.value} of ${last}, ${time(event.t)}, ${clean(event.node, 40)}: ${clean(event.text, 120)}` : "before the first event";
  const x = place(step.value);
  return html`<div class="scrub" ref=${ref}>
    <svg class="marks" width=${width} height="34" aria-hidden="true">
      <line class="rail" x1=${PAD} x2=${width - PAD} y1="24.5" y2="24.5" />
      ${bootEnd() > 1 && html`<rect class="boot" x=${PAD} y="22" width=${place(bootEnd()) - PAD} height="5"><title>booting, before the scenario begins</title></rect>`}
      ${faults.slice(0, MARKS_MOST).map((each, i) => {
        const from = place(each.begin);
        const to = place(each.end === null || each.end === undefined ? last : each.end);
        return html`<rect key=${`f${i}`} class="fault-bar" x=${from} y=${28.5} width=${Math.max(2, to - from)} height="4"
          onClick=${() => go(each.begin)}><title>${`fault ${clean(each.text || each.id, 120)}, from #${each.begin}${each.end ? ` to #${each.end}` : " on"}`}</title></rect>`;
      })}
      ${bunch(falls.filter((each) => each.what === "fall"), place, 4).map((each, i) => html`<path key=${`d${i}`} class="fall-mark" d=${`M${each.x - 3} 27.5l6 6m0 -6l-6 6`}
        onClick=${() => go(each.items[0].n)}><title>${titleOf(each.items)}</title></path>`)}
      ${bunch(steps, place, 4).map((each, i) => html`<path key=${`s${i}`} class="step-mark" d=${`M${each.x - 4} 11h8l-4 7z`}
        onClick=${() => go(each.items[0].n)}><title>${titleOf(each.items)}</title></path>`)}
      ${bunch(bad, place, 3).map((each, i) => html`<path key=${`b${i}`} class="bad-mark ${each.items[0].what}" d=${`M${each.x} 0l5 5-5 5-5-5z`}
        onClick=${() => go(each.items[0].n)}><title>${titleOf(each.items)}</title></path>`)}
      <line class="cursor" x1=${x} x2=${x} y1="10" y2="34" />
    </svg>
    <input type="range" class="slider" min="0" max=${last} step="1" value=${step.value} aria-label="Step"
      aria-valuetext=${said} onInput=${(event) => go(Number(event.currentTarget.value))} />
    <p class="legend" aria-hidden="true">
      <span><i class="key step"></i>${counted(steps.length, "step")}</span>
      <span><i class="key fault"></i>${counted(faults.length, "fault")}</span>
      ${falls.some((each) => each.what === "fall") && html`<span><i class="key fall">×</i>node falls</span>`}
      <span>${bad.length > 0 && html`<i class="key bad"></i>`}${bad.length ? `${number(bad.length)} broken or lost` : "nothing broken, nothing lost"}</span>
      <span class="ends">${time(timeOf(1))} to ${time(timeOf(last))}</span>
    </p>
  </div>`;
}

let boot = -1;
/** The last event of booting, whose time is negative; 0 if there is none. */
function bootEnd() {
  if (boot < 0) {
    const { t } = model.tracks.events;
    boot = t.findIndex((each) => each >= 0);
    if (boot < 0) boot = 0;
  }
  return boot;
}
