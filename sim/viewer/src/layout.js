// Where views stand: three columns where it is wide, two on a tablet, one tab at a time on a phone.
import { signal } from "@preact/signals";
import { Component } from "preact";
import { html, useRef } from "./dom.js";
import { viewOf, viewsOf } from "./registry.js";
import { view } from "./store.js";

const WIDE = matchMedia("(min-width: 1180px)");
const MIDDLE = matchMedia("(min-width: 760px)");

function columnsNow() {
  return WIDE.matches ? 3 : MIDDLE.matches ? 2 : 1;
}

/** How many columns there are. */
export const columns = signal(columnsNow());
for (const each of [WIDE, MIDDLE]) {
  each.addEventListener("change", () => {
    columns.value = columnsNow();
  });
}

// The tab that is open in each side column.
const open = { left: signal(""), right: signal("") };

/** Bring a view to the front, wherever it stands. */
export function show(id) {
  const found = viewOf(id);
  if (!found) return false;
  if (found.place !== "main") open[sideOf(found)].value = id;
  if (found.place === "main" || columns.value === 1) view.value = id;
  return true;
}

function sideOf(found) {
  return columns.value === 2 ? "right" : found.place;
}

/** The tabs of a place, with the one that is open. */
function tabsOf(place) {
  const asked = viewOf(view.value);
  if (columns.value === 1) {
    const all = [...viewsOf("main"), ...viewsOf("left"), ...viewsOf("right")];
    return [all, asked || all[0]];
  }
  if (place === "main") {
    const all = viewsOf("main");
    return [all, asked && asked.place === "main" ? asked : all[0]];
  }
  const all = columns.value === 2 ? [...viewsOf("left"), ...viewsOf("right")] : viewsOf(place);
  const wanted = viewOf(open[place].value) || (asked && asked.place !== "main" ? asked : null);
  return [all, all.includes(wanted) ? wanted : all[0]];
}

/** Keeps the rest of the page when one view cannot be drawn, as with data that makes no sense. */
class Guard extends Component {
  constructor() {
    super();
    this.state = { error: null };
  }

  componentDidCatch(error) {
    this.setState({ error });
  }

  render({ children, title }, { error }) {
    if (!error) return children;
    return html`<p class="empty" role="alert">${title} cannot be drawn from this data: ${String(error.message).slice(0, 200)}
      ${" "}<button type="button" class="link" onClick=${() => this.setState({ error: null })}>try again</button></p>`;
  }
}

function Column({ place, label }) {
  const [tabs, now] = tabsOf(place);
  const list = useRef(null);
  if (!now) return null;
  const pick = (event) => {
    const turn = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!turn) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(tabs.indexOf(now) + turn + tabs.length) % tabs.length];
    show(next.id);
    list.current.querySelector(`#tab-${next.id}`).focus();
  };
  const View = now.component;
  return html`<section class="column ${place}" aria-label=${label}>
    <div class="tabs" role="tablist" aria-label=${label} ref=${list} onKeyDown=${pick}>
      ${tabs.map(
        (each) => html`<button role="tab" key=${each.id} id=${`tab-${each.id}`} type="button"
          aria-selected=${each === now} aria-controls=${each === now ? `view-${each.id}` : undefined}
          tabindex=${each === now ? 0 : -1} onClick=${() => show(each.id)}>${each.title}</button>`,
      )}
    </div>
    <div class="view" role="tabpanel" key=${now.id} id=${`view-${now.id}`} aria-labelledby=${`tab-${now.id}`}>
      <${Guard} title=${now.title}><${View} /><//>
    </div>
  </section>`;
}

/** The columns below the top bar. */
export function Layout() {
  const count = columns.value;
  return html`<main class="columns of-${count}" id="main">
    ${count === 3 && html`<${Column} place="left" label="Events" />`}
    <${Column} place="main" label="Views" />
    ${count > 1 && html`<${Column} place="right" label="State" />`}
  </main>`;
}
