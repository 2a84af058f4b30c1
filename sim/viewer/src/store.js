// What the page knows: the run (model, never changes) and where the reader is (signals).
import { batch, computed, effect, signal } from "@preact/signals";
import { clean } from "./dom.js";

/**
 * The run: `tracks` as in sim/present/plain_tracks.py, `panels` by name, `last` event number;
 * `bad` (broken rules, losses, failed expectations) and `falls` (faults that begin or end, nodes
 * that fall) are lists of {n, what, text}, by event.
 */
export const model = {
  tracks: null,
  panels: {},
  last: 0,
  strings: [],
  bad: [],
  falls: [],
  kinds: [],
};

// Where the reader is -----------------------------------------------------------------------------

/** The current event, 0..last; all views show the state behind it. */
export const step = signal(0);
/** The selected node's name, or null. */
export const node = signal(null);
/** Id of the view of the middle. */
export const view = signal("log");
/** What the event list leaves out; names, not numbers, so that they outlive a re-run. */
export const filters = signal({ hideNodes: [], hideKinds: [], text: "" });
/** Only the fields that the event changed (`d`). */
export const changedOnly = signal(false);
/** "auto", "light" or "dark". */
export const theme = signal("auto");
/** Whether the help is open. */
export const help = signal(false);
/** A short message to the reader, shown and read out. */
export const message = signal("");

// Asking the model --------------------------------------------------------------------------------

/** How many of the rising numbers are <= n. */
export function bisect(numbers, n) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= n) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The value of a series behind event n; undefined before the first. */
export function at(series, n) {
  if (!series) return undefined;
  const index = bisect(series[0], n);
  return index ? series[1][index - 1] : undefined;
}

/** With which event the value behind event n came; 0 before the first. */
export function since(series, n) {
  if (!series) return 0;
  const index = bisect(series[0], n);
  return index ? series[0][index - 1] : 0;
}

/** The entries of a list that are there behind event n; `i` is where n0 stands, n1 follows it. */
export function alive(lives, n, i) {
  return lives.filter((each) => each[i] <= n && (each[i + 1] === null || n < each[i + 1]));
}

/** Whether something that begins and ends is there behind event n. */
export function isOn(each, n) {
  return each.begin <= n && (each.end === null || each.end === undefined || n < each.end);
}

/** Event n, 1..last: {n, t, node, kind, text, cause: [n...], set: [[path, old, new]...]}. */
export function eventOf(n) {
  const { events } = model.tracks;
  const i = n - 1;
  if (i < 0 || i >= events.t.length) return null;
  return {
    n,
    t: events.t[i],
    node: model.strings[events.node[i]],
    kind: model.strings[events.kind[i]],
    text: model.strings[events.text[i]],
    cause: events.cause[i] || [],
    set: (events.set[i] || []).map(([path, old, now]) => [model.strings[path], old, now]),
  };
}

/** The time of event n in µs; 0 for event 0. */
export function timeOf(n) {
  const { t } = model.tracks.events;
  return n > 0 && n <= t.length ? t[n - 1] : t.length ? t[0] : 0;
}

/** What `v` goes to. */
function badOf(tracks) {
  const checks = tracks.checks.map((each) => ({
    n: each.n,
    what: "check",
    text: `${each.check}${each.partition ? ` of ${each.partition}` : ""} broken: ${each.detail || each.kind}`,
    data: each,
  }));
  const losses = tracks.losses.map((each) => ({ n: each.n, what: "loss", text: each.text, data: each }));
  const expects = tracks.expects
    .filter((each) => each.judged !== null && !each.verdict)
    .map((each) => ({ n: each.judged, what: "expect", text: `expectation ${each.id} failed: ${each.text}`, data: each }));
  return byEvent([...checks, ...losses, ...expects]);
}

/** What `f` goes to. */
function fallsOf(tracks) {
  const found = [];
  for (const each of tracks.faults) {
    found.push({ n: each.begin, what: "begin", text: `fault ${each.id} begins: ${each.text}` });
    if (each.end !== null) found.push({ n: each.end, what: "end", text: `fault ${each.id} ends` });
  }
  for (const each of tracks.nodes) {
    const [numbers, statuses] = each.status;
    numbers.forEach((n, i) => {
      const status = statuses[i];
      if (["down", "off", "paused"].includes(status)) found.push({ n, what: "fall", text: `${each.name} is ${status}` });
    });
  }
  return byEvent(found);
}

function byEvent(list) {
  return list.sort((one, other) => one.n - other.n);
}

// Going somewhere ---------------------------------------------------------------------------------

/** Make an event the current one. */
export function go(n) {
  step.value = Math.max(0, Math.min(model.last, Math.round(n) || 0));
}

/** Go to the next (1) or previous (-1) event that a test holds for; says whether there is one. */
export function seek(direction, isWanted) {
  for (let n = step.value + direction; n >= 1 && n <= model.last; n += direction) {
    if (isWanted(n)) {
      go(n);
      return true;
    }
  }
  return false;
}

/** Go to the next (1) or previous (-1) of a list of {n}; says whether there is one. */
export function goAmong(list, direction) {
  const numbers = list.map((each) => each.n);
  const index = direction > 0 ? bisect(numbers, step.value) : bisect(numbers, step.value - 1) - 1;
  if (index < 0 || index >= numbers.length) return false;
  go(numbers[index]);
  return true;
}

let quiet = 0;
/** Tell the reader something, for a while. */
export function tell(text) {
  message.value = text;
  clearTimeout(quiet);
  quiet = setTimeout(() => {
    message.value = "";
  }, 6000);
}

// Which events the list has -----------------------------------------------------------------------

/** For every string of the table, whether it contains the words, whatever their case. */
export function matches(words) {
  const wanted = words.toLowerCase();
  return model.strings.map((each) => each.toLowerCase().includes(wanted));
}

/** Numbers of the events that the filters leave, rising. */
export const listed = computed(() => {
  const { hideNodes, hideKinds, text } = filters.value;
  const { events } = model.tracks;
  const hiddenNodes = new Set(hideNodes);
  const hiddenKinds = new Set(hideKinds);
  const isOutNode = model.strings.map((each) => hiddenNodes.has(each));
  const isOutKind = model.strings.map((each) => hiddenKinds.has(each));
  const isIn = text ? matches(text) : null;
  const found = [];
  for (let i = 0; i < model.last; i += 1) {
    if (isOutNode[events.node[i]] || isOutKind[events.kind[i]]) continue;
    if (isIn && !isIn[events.text[i]] && !isIn[events.kind[i]] && !isIn[events.node[i]]) continue;
    found.push(i + 1);
  }
  return found;
});

// Opening -----------------------------------------------------------------------------------------

async function decode(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** Read the run out of the page, and go where the hash says. */
export async function open() {
  const payload = await decode(document.getElementById("payload").textContent.trim());
  const { tracks } = payload;
  if (!tracks || tracks.v !== 1) {
    throw new Error(`its data has version ${tracks ? tracks.v : "none"}, and this page knows version 1`);
  }
  document.getElementById("payload").remove();
  model.tracks = tracks;
  model.panels = payload.panels || {};
  model.strings = tracks.strings;
  model.last = tracks.events.t.length;
  model.bad = badOf(tracks);
  model.falls = fallsOf(tracks);
  model.kinds = [...new Set(tracks.events.kind)].map((each) => tracks.strings[each]).sort();
  if (tracks.head.scenario) document.title = `${clean(tracks.head.scenario, 80)} – Leaderfall`;
  recall();
  step.value = opening();
  followHash(location.hash);
  // The address that is asked for, not the one that the page may have written since.
  addEventListener("hashchange", (event) => followHash(new URL(event.newURL).hash));
  effect(writeHash);
  effect(remember);
  effect(() => {
    document.documentElement.dataset.theme = theme.value;
  });
}

/** Where people want to begin: the first broken rule or loss, else the first failed expectation, else the end. */
function opening() {
  const found = model.bad.find((each) => each.what !== "expect") || model.bad[0];
  return found ? found.n : model.last;
}

// The address and what is kept --------------------------------------------------------------------

function followHash(hash) {
  const asked = new URLSearchParams(hash.slice(1));
  batch(() => {
    const n = Number(asked.get("step"));
    if (asked.has("step") && Number.isFinite(n)) go(n);
    const name = asked.get("node");
    if (asked.has("node")) node.value = model.tracks.nodes.some((each) => each.name === name) ? name : null;
    if (asked.get("view")) view.value = asked.get("view");
  });
}

let writing = 0;

function writeHash() {
  // Read here, so that the effect depends on them; written later, since browsers limit how often.
  const [n, name, shown] = [step.value, node.value, view.value];
  clearTimeout(writing);
  writing = setTimeout(() => writeHashNow(n, name, shown), 120);
}

function writeHashNow(n, name, shown) {
  const said = new URLSearchParams({ step: String(n) });
  if (name) said.set("node", name);
  said.set("view", shown);
  try {
    history.replaceState(null, "", `#${said}`);
  } catch {
    // Too often: the next change writes it.
  }
}

function key() {
  const { scenario, variant } = model.tracks.head;
  return `leaderfall:${scenario || ""}:${variant || ""}`;
}

function recall() {
  try {
    const kept = JSON.parse(localStorage.getItem(key()) || "{}");
    const texts = (list) => (Array.isArray(list) ? list.filter((each) => typeof each === "string") : []);
    if (kept.filters) {
      const { hideNodes, hideKinds, text } = kept.filters;
      filters.value = { hideNodes: texts(hideNodes), hideKinds: texts(hideKinds), text: String(text || "") };
    }
    changedOnly.value = kept.changedOnly === true;
    const look = localStorage.getItem("leaderfall:theme");
    theme.value = ["light", "dark"].includes(look) ? look : "auto";
  } catch {
    // Nothing is kept where storage is switched off.
  }
}

function remember() {
  const kept = JSON.stringify({ filters: filters.value, changedOnly: changedOnly.value });
  const look = theme.value;
  try {
    localStorage.setItem(key(), kept);
    localStorage.setItem("leaderfall:theme", look);
  } catch {
    // As above.
  }
}
