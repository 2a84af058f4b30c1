// The keys, with the words of the terminal's stepper.
import { signal } from "@preact/signals";
import { show } from "./layout.js";
import { viewOf } from "./registry.js";
import { changedOnly, eventOf, go, goAmong, help, model, node, seek, step, tell } from "./store.js";

/** Whether the search or the number field asks for the cursor: "search", "go" or "". */
export const asked = signal("");

function ofNode(direction) {
  const name = node.value || (eventOf(step.value) || {}).node;
  if (!name) return;
  if (!node.value) node.value = name;
  const { events } = model.tracks;
  const index = model.strings.indexOf(name);
  if (!seek(direction, (n) => events.node[n - 1] === index)) {
    tell(`No ${direction > 0 ? "later" : "earlier"} event of ${name}.`);
  }
}

function among(list, direction, what) {
  if (goAmong(list, direction)) return;
  const which = direction > 0 ? "behind" : "before";
  tell(`There is no ${what} ${which} this event; the run has ${list.length}.`);
}

function turn(direction) {
  const to = step.value + direction;
  if (to < 0 || to > model.last) tell(direction > 0 ? "This is the last event." : "This is the beginning.");
  else go(to);
}

function compare() {
  if (viewOf("compare")) show("compare");
  else tell("This page has one run only. leaderfall diff A B puts two beside each other.");
}

/** What a key does: keys, word, what it is for, deed. */
export const COMMANDS = [
  { id: "next", keys: ["n", "ArrowRight"], shown: "n →", text: "next event", run: () => turn(1) },
  { id: "previous", keys: ["p", "ArrowLeft"], shown: "p ←", text: "previous event", run: () => turn(-1) },
  { id: "next-of-node", keys: ["N"], shown: "N", text: "next event of the selected node", run: () => ofNode(1) },
  { id: "previous-of-node", keys: ["P"], shown: "P", text: "previous event of the selected node", run: () => ofNode(-1) },
  { id: "violation", keys: ["v"], shown: "v", text: "next broken rule, lost record or failed expectation", run: () => among(model.bad, 1, "violation or loss") },
  { id: "violation-back", keys: ["V"], shown: "V", text: "the one before", run: () => among(model.bad, -1, "violation or loss") },
  { id: "fault", keys: ["f"], shown: "f", text: "next fault: one begins, ends, or a node falls", run: () => among(model.falls, 1, "fault") },
  { id: "fault-back", keys: ["F"], shown: "F", text: "the one before", run: () => among(model.falls, -1, "fault") },
  { id: "go", keys: ["g"], shown: "g", text: "go to an event (812) or a time (3.5s)", run: () => { asked.value = "go"; } },
  { id: "search", keys: ["/"], shown: "/", text: "search; Enter for the next event with this text", run: () => { asked.value = "search"; } },
  { id: "why", keys: ["w"], shown: "w", text: "why: the causes, back to a step or a fault", run: () => show("why") },
  { id: "changed", keys: ["d"], shown: "d", text: "only what changed, or everything", run: () => { changedOnly.value = !changedOnly.value; show("state"); } },
  { id: "compare", keys: ["c"], shown: "c", text: "compare with the other run", run: compare },
  { id: "first", keys: ["Home"], shown: "Home", text: "first event", run: () => go(1) },
  { id: "last", keys: ["End"], shown: "End", text: "last event", run: () => go(model.last) },
  { id: "help", keys: ["?"], shown: "?", text: "these keys", run: () => { help.value = !help.value; } },
];

/** Do what a command's id says. */
export function run(id) {
  COMMANDS.find((each) => each.id === id).run();
}

function isWriting(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.isContentEditable || ["TEXTAREA", "SELECT"].includes(target.tagName)
    || (target.tagName === "INPUT" && !["range", "checkbox", "radio", "button"].includes(target.type));
}

// A slider has its own arrows; this page's own slider does the same with them.
function isSliding(target, key) {
  return target instanceof HTMLInputElement && target.type === "range"
    && ["ArrowLeft", "ArrowRight", "Home", "End"].includes(key);
}

/** Begin to listen to the keys. */
export function listen() {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === "Escape" && help.value) {
      help.value = false;
      return;
    }
    if (isWriting(event.target) || isSliding(event.target, event.key) || help.value && event.key !== "?") return;
    const found = COMMANDS.find((each) => each.keys.includes(event.key));
    if (!found) return;
    event.preventDefault();
    found.run();
  });
}

