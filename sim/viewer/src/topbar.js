// The top bar: which run this is, where the reader is in it, and how to get elsewhere.
import { computed, signal } from "@preact/signals";
import { clean, counted, html, number, time, useEffect, useRef } from "./dom.js";
import { COMMANDS, asked, run } from "./keys.js";
import { Marks } from "./marks.js";
import { bisect, eventOf, go, help, matches, model, step, tell, theme, timeOf } from "./store.js";

// Which run ---------------------------------------------------------------------------------------

function verdictOf(head) {
  if (head.verdict === null || head.verdict === undefined) return head.is_complete ? ["none", "no verdict"] : ["cut", "cut short"];
  return [/^(passed|ok|pass)$/i.test(head.verdict) ? "good" : "bad", clean(head.verdict, 40)];
}

function Title() {
  const { head } = model.tracks;
  const [tone, verdict] = verdictOf(head);
  const bad = model.bad.length;
  const failed = model.bad.filter((each) => each.what === "expect").length;
  return html`<div class="title">
    <span class="brand">Leaderfall</span>
    <h1><bdi>${clean(head.scenario || "run", 80)}</bdi></h1>
    ${head.variant && html`<span class="fact">variant <b><bdi>${clean(head.variant, 40)}</bdi></b></span>`}
    <span class="fact">seed <b>${head.seed === null || head.seed === undefined ? "–" : clean(head.seed, 30)}</b></span>
    <span class="verdict ${tone}">${verdict}</span>
    ${bad > 0 && html`<span class="fact">${[
      model.tracks.checks.length && counted(model.tracks.checks.length, "violation"),
      model.tracks.losses.length && counted(model.tracks.losses.length, "loss", "losses"),
      failed && counted(failed, "failed expectation"),
    ].filter(Boolean).join(", ")}</span>`}
  </div>`;
}

// Search ------------------------------------------------------------------------------------------

const sought = signal("");
const hits = computed(() => {
  const words = sought.value.trim();
  if (!words) return [];
  const { events } = model.tracks;
  const isIn = matches(words);
  const found = [];
  for (let i = 0; i < model.last; i += 1) {
    if (isIn[events.text[i]] || isIn[events.kind[i]] || isIn[events.node[i]]) found.push(i + 1);
  }
  return found;
});

function turnTo(direction) {
  const found = hits.value;
  if (!found.length) {
    if (sought.value.trim()) tell(`No event says “${clean(sought.value.trim(), 60)}”.`);
    return;
  }
  const behind = bisect(found, step.value);
  const isOnHit = behind > 0 && found[behind - 1] === step.value;
  const index = direction > 0 ? behind : behind - (isOnHit ? 2 : 1);
  if (index >= found.length || index < 0) tell(`No event ${direction > 0 ? "behind" : "before"} this one says “${clean(sought.value.trim(), 60)}”.`);
  else go(found[index]);
}

function Search() {
  const input = useRef(null);
  useEffect(() => {
    if (asked.value !== "search") return;
    input.current.focus();
    input.current.select();
    asked.value = "";
  }, [asked.value]);
  const press = (event) => {
    if (event.key === "Enter") {
      event.preventDefault();
      turnTo(event.shiftKey ? -1 : 1);
    } else if (event.key === "Escape") {
      event.currentTarget.blur();
    }
  };
  const found = hits.value;
  const index = bisect(found, step.value);
  const place = index && found[index - 1] === step.value ? `${number(index)} of ${number(found.length)}` : number(found.length);
  return html`<div class="search" role="search">
    <input ref=${input} type="search" placeholder="Search events" aria-label="Search events; Enter for the next one"
      aria-keyshortcuts="/" value=${sought.value} spellcheck=${false} autocomplete="off"
      onInput=${(event) => { sought.value = event.currentTarget.value; }} onKeyDown=${press} />
    ${sought.value.trim()
      ? html`<span class="hits" role="status">${place}</span>`
      : html`<kbd aria-hidden="true">/</kbd>`}
  </div>`;
}

// Getting about -----------------------------------------------------------------------------------

function Button({ id, children, label }) {
  const { keys, shown, text } = COMMANDS.find((each) => each.id === id);
  return html`<button type="button" class="tool" title=${`${text} (${shown})`} aria-label=${label ? undefined : text}
    aria-keyshortcuts=${keys.join(" ")} onClick=${() => run(id)}>${children}</button>`;
}

function icon(path) {
  return html`<svg viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d=${path} /></svg>`;
}

const UNITS = { s: 1e6, ms: 1e3, us: 1 };

/** The event that a text means: 812, #812, start, end, or the last one not later than 3.5s. */
function placeOf(text) {
  const words = text.trim().replace(/,/g, "");
  if (words === "start" || words === "end") return words === "start" ? 0 : model.last;
  if (/^#?\d{1,12}$/.test(words)) {
    const n = Number(words.replace("#", ""));
    return n <= model.last ? n : null;
  }
  const found = /^([-−]?\d+(?:\.\d{1,6})?)\s*(s|ms|us)$/.exec(words);
  if (!found) return null;
  return bisect(model.tracks.events.t, Math.round(Number(found[1].replace("−", "-")) * UNITS[found[2]]));
}

function Where() {
  const input = useRef(null);
  useEffect(() => {
    if (asked.value !== "go") return;
    input.current.focus();
    input.current.select();
    asked.value = "";
  }, [asked.value]);
  const leave = () => {
    const n = placeOf(input.current.value);
    if (n === null) tell(`“${clean(input.current.value, 30)}” is no event: write 0 (the beginning) to ${model.last}, or a time as 3.5s.`);
    else go(n);
    input.current.value = String(step.value);
  };
  const press = (event) => {
    if (event.key === "Enter") {
      leave();
      event.currentTarget.blur();
    } else if (event.key === "Escape") {
      event.currentTarget.value = String(step.value);
      event.currentTarget.blur();
    }
  };
  return html`<label class="where">
    <span class="where-word">event</span>
    <input ref=${input} class="where-n" autocomplete="off" value=${String(step.value)}
      style=${{ width: `${String(model.last).length + 1.6}ch` }}
      aria-label="Current event; type a number or a time and press Enter" aria-keyshortcuts="g" onKeyDown=${press} onChange=${leave} />
    <span>of ${number(model.last)}</span>
  </label>`;
}

function Now() {
  const event = eventOf(step.value);
  return html`<p class="now" aria-live="polite">
    <time>${time(timeOf(step.value))}</time>
    ${event
      ? html`<span class="now-node"><bdi>${clean(event.node, 40)}</bdi></span><span class="now-text"><bdi>${clean(event.text, 300)}</bdi></span>`
      : html`<span class="now-text">before the first event</span>`}
  </p>`;
}

function Tools() {
  return html`<div class="tools">
    <div class="group" role="group" aria-label="Steps">
      <${Button} id="first">${icon("M3 3h2v10H3zM13 3v10L6 8z")}<//>
      <${Button} id="previous">${icon("M11 3v10L4 8z")}<//>
      <${Button} id="next">${icon("M5 3v10l7-5z")}<//>
      <${Button} id="last">${icon("M11 3h2v10h-2zM3 3v10l7-5z")}<//>
    </div>
    <${Where} />
    <div class="group words" role="group" aria-label="Jumps">
      <${Button} id="violation" label><span class="dot bad"></span>violation<//>
      <${Button} id="fault" label><span class="dot fault"></span>fault<//>
      <${Button} id="why" label>why<//>
    </div>
    <${Now} />
  </div>`;
}

const LOOKS = { auto: "light", light: "dark", dark: "auto" };

function Aside() {
  const look = theme.value;
  return html`<div class="aside">
    <${Search} />
    <button type="button" class="tool" title="Colours: ${look}; switch to ${LOOKS[look]}"
      aria-label=${`Colours: ${look}. Switch to ${LOOKS[look]}`} onClick=${() => { theme.value = LOOKS[look]; }}>
      ${icon(look === "light"
        ? "M8 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM7.4 1h1.2v2H7.4zm0 12h1.2v2H7.4zM1 7.4h2v1.2H1zm12 0h2v1.2h-2zM2.6 3.5l.9-.9 1.4 1.4-.9.9zm8.5 8.5.9-.9 1.4 1.4-.9.9zM12.5 2.6l.9.9L12 4.9l-.9-.9zM4 11.1l.9.9-1.4 1.4-.9-.9z"
        : look === "dark"
          ? "M6 2a6 6 0 1 0 8 8A6.5 6.5 0 0 1 6 2z"
          : "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2zm0 1.4v9.2A4.6 4.6 0 0 1 8 3.4z")}
    </button>
    <button type="button" class="tool" title="Help (?)" aria-label="Help" aria-keyshortcuts="?" aria-expanded=${help.value}
      onClick=${() => run("help")}><b aria-hidden="true">?</b></button>
  </div>`;
}

export function TopBar() {
  return html`<header class="top">
    <div class="row"><${Title} /><${Aside} /></div>
    <div class="row"><${Tools} /></div>
    <${Marks} />
  </header>`;
}
