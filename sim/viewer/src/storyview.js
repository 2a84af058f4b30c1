// The run in sentences; the last one told is marked.
import { clean, html, time, useLayoutEffect, useRef } from "./dom.js";
import { Empty, EventLink } from "./parts.js";
import { register } from "./registry.js";
import { bisect, model, step, timeOf } from "./store.js";

// Tones of sim/present/timeline.py that have a sign of their own.
const TONES = { bad: "bad", fault: "fault", good: "good" };

// Only where the view scrolls by itself: on a narrow screen the page would move under the reader.
function reveal(item) {
  const box = item.closest(".view");
  if (!box || box.scrollHeight <= box.clientHeight) return;
  const [inner, outer] = [item.getBoundingClientRect(), box.getBoundingClientRect()];
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top - outer.top - (outer.height - inner.height) / 2;
  }
}

function StoryView() {
  const { stories } = model.tracks;
  const told = bisect(stories.map((each) => each[0]), step.value) - 1;
  const list = useRef(null);
  useLayoutEffect(() => {
    if (list.current && list.current.children[told]) reveal(list.current.children[told]);
  }, [told]);
  if (!stories.length) return html`<${Empty}>The run has no story to tell.<//>`;
  return html`<ol class="story" ref=${list}>
    ${stories.map(([n, text, tone], i) => html`<li key=${i} class=${i === told ? "here" : i > told ? "later" : ""}
      aria-current=${i === told ? "step" : undefined}>
      <span class="story-when">${TONES[tone] && html`<i class="tone ${TONES[tone]}"></i>`}<time>${time(timeOf(n))}</time> <${EventLink} n=${n} /></span>
      <span class="story-text">${clean(text, 600)}</span></li>`)}
  </ol>`;
}

register({ id: "story", title: "Story", place: "left", order: 20, component: StoryView });
