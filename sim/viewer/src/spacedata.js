// What the diagram asks of a run: which family an event belongs to, which message it sends or ends,
// what led to it. Made once, of numbers only, so that a long run costs little.
import { computed, signal } from "@preact/signals";
import { at, bisect, listed, model } from "./store.js";

/** What can be switched off in the diagram; a kind that stands in none is "other". */
export const FAMILIES = [
  { id: "scenario", title: "scenario", kinds: "step fault heal failpoint script check expect loss" },
  { id: "life", title: "starts and crashes", kinds: "start crash shutdown stop pause resume lost" },
  { id: "control", title: "elections, ISR", kinds: "isr-proposed isr elect role metadata register fence unfence open leave close" },
  { id: "records", title: "records", kinds: "append replicate truncate recover quarantine salvage restart-at roll log-start compact expire delete hw produce ack reject unknown poll position commit" },
  { id: "messages", title: "data messages", kinds: "send transmit deliver drop hold delay duplicate corrupt reset refuse disconnect" },
  { id: "chatter", title: "control messages", kinds: "" },
  { id: "disk", title: "disk", kinds: "write fsync synced disk disk-error background checkpoint" },
  { id: "timers", title: "timers", kinds: "timer" },
  { id: "other", title: "other", kinds: "" },
];
const MESSAGES = 4;
const CHATTER = 5;
const OTHER = 8;
const CHATTY = /Heartbeat|Metadata|Registration|CreateTopics/;

/** Ids of the families that are not drawn. */
export const hidden = signal(["disk", "timers"]);
/** Kinds that are drawn on their own and with words, however dense it gets. */
export const MAJOR = new Set(["fault", "heal", "start", "crash", "shutdown", "stop", "pause", "resume", "elect", "fence", "truncate", "isr", "check", "loss", "quarantine"]);

let made = null;

/** Tables by event number: family, lane, sends and ends (message or -1), isMajor; lanes; counts. */
export function tables() {
  if (made) return made;
  const { tracks, strings, last } = model;
  const { node, kind } = tracks.events;
  const familyOf = new Map();
  FAMILIES.forEach((each, i) => each.kinds.split(" ").forEach((name) => name && familyOf.set(name, i)));
  const ofKind = strings.map((each) => (familyOf.has(each) ? familyOf.get(each) : OTHER));
  const isChatty = strings.map((each) => CHATTY.test(each));
  const major = strings.map((each) => MAJOR.has(each));
  const lanes = lanesOf();
  const laneOf = new Map(lanes.map((each, i) => [each.name, i]));
  const ofNode = strings.map((each) => (laneOf.has(each) ? laneOf.get(each) : -1));
  const family = new Uint8Array(last + 1);
  const lane = new Int16Array(last + 1).fill(-1);
  const isMajor = new Uint8Array(last + 1);
  for (let i = 0; i < last; i += 1) {
    family[i + 1] = ofKind[kind[i]];
    lane[i + 1] = ofNode[node[i]];
    isMajor[i + 1] = major[kind[i]] ? 1 : 0;
  }
  for (const each of tracks.steps) if (each.begin >= 1 && each.begin <= last) isMajor[each.begin] = 1;
  const { sent, end, type } = tracks.messages;
  const sends = new Int32Array(last + 1).fill(-1);
  const ends = new Int32Array(last + 1).fill(-1);
  for (let i = 0; i < sent.length; i += 1) {
    if (sent[i] <= last) sends[sent[i]] = i;
    if (end[i] !== null && end[i] <= last) ends[end[i]] = i;
    if (!isChatty[type[i]]) continue;
    if (family[sent[i]] === MESSAGES) family[sent[i]] = CHATTER;
    if (end[i] !== null && family[end[i]] === MESSAGES) family[end[i]] = CHATTER;
  }
  const counts = new Array(FAMILIES.length).fill(0);
  for (let n = 1; n <= last; n += 1) counts[family[n]] += 1;
  made = { lanes, laneOf, family, lane, isMajor, sends, ends, counts };
  return made;
}

const ORDER = { world: 0, controller: 1, broker: 2, client: 3, other: 4 };

// One lane a node: the world, the controller, brokers, clients, others, and in each group by name.
function lanesOf() {
  const { tracks, strings } = model;
  const known = new Map(tracks.nodes.map((each) => [each.name, each]));
  const names = [...known.keys()];
  for (const index of new Set(tracks.events.node)) if (!known.has(strings[index])) names.push(strings[index]);
  const found = names.map((name) => {
    const owner = known.get(name);
    return { name, what: name === "world" ? "world" : owner ? owner.what : "other", status: owner ? owner.status : null };
  });
  const collator = new Intl.Collator("en", { numeric: true });
  return found.sort((one, other) => (ORDER[one.what] ?? 4) - (ORDER[other.what] ?? 4) || collator.compare(one.name, other.name));
}

/** Numbers of the events that are drawn, rising: what the filters leave, without hidden families. */
export const drawn = computed(() => {
  const shown = listed.value;
  const isOut = FAMILIES.map((each) => hidden.value.includes(each.id));
  if (!isOut.some(Boolean)) return shown;
  const { family } = tables();
  return shown.filter((n) => !isOut[family[n]]);
});

const PAST_MOST = 3000;

/** What led to event n and is not before `low`: {events: Set, line: Set of first causes, edges, isCut}. */
export function pastOf(n, low) {
  const { cause } = model.tracks.events;
  const events = new Set();
  const line = new Set();
  const edges = [];
  if (n < 1) return { events, line, edges };
  for (let each = n; each; ) {
    line.add(each);
    const [first] = cause[each - 1] || [0];
    each = first && first < each ? first : 0;
    if (each && each < low) break;
  }
  const open = [n];
  events.add(n);
  while (open.length && events.size < PAST_MOST) {
    const to = open.shift();
    (cause[to - 1] || []).forEach((from, i) => {
      if (from < 1 || from >= to) return;
      edges.push([from, to, i === 0 && line.has(to)]);
      if (from < low || events.has(from)) return;
      events.add(from);
      open.push(from);
    });
  }
  return { events, line, edges, isCut: open.length > 0 };
}

const NEAR_MOST = 2000;
let long = null;

// Messages that are on their way while so many others are sent: few, looked at one by one.
function longOnes() {
  if (!long) {
    const { sent, end } = model.tracks.messages;
    long = [];
    for (let i = 0; i < sent.length; i += 1) if ((end[i] === null ? sent.length : bisect(sent, end[i])) - i > NEAR_MOST) long.push(i);
  }
  return long;
}

/** Messages that are on their way somewhere between two events. */
export function messagesIn(low, high) {
  const { sent, end } = model.tracks.messages;
  const first = bisect(sent, low - 1);
  const beyond = bisect(sent, high);
  const found = [];
  const near = Math.max(0, first - NEAR_MOST);
  for (const i of longOnes()) if (i < near && (end[i] === null || end[i] >= low)) found.push(i);
  for (let i = near; i < first; i += 1) if (end[i] === null || end[i] >= low) found.push(i);
  for (let i = first; i < beyond; i += 1) found.push(i);
  return found;
}

/** Stretches in which a series has values that a test holds for: [n0, n1 or null, value]; `isOne` joins them all. */
export function stretches(series, isWanted, low, high, isOne = false) {
  const found = [];
  if (!series) return found;
  const [numbers, values] = series;
  for (let i = Math.max(0, bisect(numbers, low) - 1); i < numbers.length && numbers[i] <= high; i += 1) {
    const n1 = i + 1 < numbers.length ? numbers[i + 1] : null;
    if (!isWanted(values[i])) continue;
    const before = found[found.length - 1];
    if (before && before[1] === numbers[i] && (isOne || JSON.stringify(before[2]) === JSON.stringify(values[i]))) before[1] = n1;
    else found.push([numbers[i], n1, values[i]]);
  }
  return found;
}

/** The leader and the in-sync replicas of a partition behind event n. */
export function stateOf(partition, n) {
  const [leader, epoch] = at(partition.leader, n) || [null, null];
  return { leader, epoch, isr: at(partition.isr, n) || [] };
}
