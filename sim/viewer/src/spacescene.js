// The diagram as plain shapes for one window: what stands where, and what is too dense to be drawn
// one by one. Nothing here knows of the document.
import { clean, duration, number, time } from "./dom.js";
import { messagesIn, pastOf, stretches, tables } from "./spacedata.js";
import { timePlaces } from "./spacescale.js";
import { bisect, filters, isOn, model } from "./store.js";

const ARROWS_MOST = 420;
const GLYPHS_MOST = 700;
const PILED_FROM = 3000;
/** How wide a bar is that stands for many events, in px. */
const PILE = 5;
const NEAR = 9;
const BAND = 12;
const AXIS = 34;
const FAULT = 16;
const FAULTS_MOST = 3;
const STATUS = new Map([["paused", "paused"], ["down", "down"], ["off", "power off"], ["stopped", "stopped"]]);

/** The lanes with their heights: {top, lanes: [{name, y, bands...}], bottom}. */
export function lanesFor(partitions, room, isNarrow) {
  const { lanes } = tables();
  const gone = new Set(filters.value.hideNodes);
  const shown = lanes.map((each, index) => ({ ...each, index })).filter((each) => !gone.has(each.name));
  const faults = Math.min(FAULTS_MOST, model.tracks.faults.length);
  const top = AXIS + faults * FAULT + 10;
  const sized = shown.map((each) => {
    const bands = partitions.filter((one) => one.replicas.some((replica) => replica.node === each.name));
    return { ...each, bands, isTight: each.what === "other" || each.what === "world", height: (each.what === "other" ? 30 : 40) + (bands.length ? bands.length * BAND + 2 : 0) };
  });
  const sum = sized.reduce((total, each) => total + each.height, 0);
  const loose = sized.filter((each) => !each.isTight).length;
  const more = loose ? Math.max(0, Math.min(34, (room - top - sum - 8) / loose)) : 0;
  let y = top;
  for (const each of sized) {
    const extra = each.isTight ? 0 : more;
    each.y = Math.round(y + 20 + extra / 2) + 0.5;
    y += each.height + extra;
  }
  return { top, lanes: sized, height: Math.round(y + 4), gutter: isNarrow ? 62 : 92, faults };
}

/** The scene of a window [from, to] of the scale, `width` px wide, at event `now`. */
export function sceneOf({ scale, window, drawn, frame, width, now, emphasis }) {
  const left = frame.gutter;
  const room = Math.max(60, width - left - 14);
  const unit = room / (window.to - window.from);
  const x = (n) => left + (scale.at(n) - window.from) * unit;
  const low = scale.kind === "even" ? scale.nearest(Math.max(0, window.from)) : scale.nearest(window.from);
  let high = scale.nearest(window.to);
  if (scale.kind === "time" && scale.at(high) > window.to) high -= 1;
  const begin = bisect(drawn, low - 1);
  const end = bisect(drawn, high);
  const laneAt = new Map(frame.lanes.map((each) => [each.index, each]));
  const past = emphasis ? pastOf(now, low) : { events: new Set(), line: new Set(), edges: [] };
  const scene = { x, left, right: left + room, low, high, unit, count: end - begin, frame, past, labels: [], isDense: false };
  const place = { x, laneAt, scene, drawn, begin, end, now, window, scale };
  clusters(place);
  arrows(place);
  chain(place);
  scene.nowX = now ? x(now) : left;
  scene.isNowIn = now >= 1 && scale.at(now) >= window.from && scale.at(now) <= window.to;
  stateBands(place);
  faultBands(place);
  ticks(place);
  words(place);
  return scene;
}

// Events ------------------------------------------------------------------------------------------

function clusters({ x, laneAt, scene, drawn, begin, end, now }) {
  const { lane, isMajor } = tables();
  const { past } = scene;
  const last = new Map();
  const isPiled = scene.count > PILED_FROM;
  const isWith = isPiled
    ? (before, place) => Math.floor(place / PILE) === Math.floor(before.x0 / PILE)
    : (before, place) => place - before.x1 < NEAR && place - before.x0 < 30;
  const found = [];
  const majors = [];
  const extra = [];
  for (let i = begin; i < end; i += 1) {
    const n = drawn[i];
    const row = laneAt.get(lane[n]);
    if (!row) continue;
    const place = x(n);
    if (isMajor[n] || n === now) {
      const before = majors.length ? last.get(`m${lane[n]}`) : null;
      if (before && place - before.x < NEAR && n !== now && before.n !== now) before.more += 1;
      else {
        const major = { n, x: place, y: row.y, row, more: 0 };
        majors.push(major);
        last.set(`m${lane[n]}`, major);
      }
      continue;
    }
    const before = last.get(lane[n]);
    if (before && isWith(before, place)) {
      before.x1 = place;
      before.count += 1;
      before.end = n;
      if (past.events.has(n)) before.past += 1;
    } else {
      const made = { n, end: n, x0: place, x1: place, y: row.y, row, count: 1, past: past.events.has(n) ? 1 : 0 };
      found.push(made);
      last.set(lane[n], made);
    }
  }
  // What led here is drawn even where its kind is switched off.
  for (const n of past.events) {
    const row = laneAt.get(lane[n]);
    if (row && n <= scene.high && !isListed(drawn, n)) extra.push({ n, x: x(n), y: row.y, row });
  }
  scene.isDense = isPiled || found.length > GLYPHS_MOST;
  scene.pile = isPiled ? PILE : 0;
  scene.clusters = found;
  scene.majors = majors;
  scene.extra = scene.isDense ? [] : extra.slice(0, 300);
  scene.most = found.reduce((most, each) => Math.max(most, each.count), 1);
}

function isListed(drawn, n) {
  const behind = bisect(drawn, n);
  return behind > 0 && drawn[behind - 1] === n;
}

// Messages ----------------------------------------------------------------------------------------

function arrows({ x, laneAt, scene, drawn }) {
  const { messages } = model.tracks;
  const { family, laneOf } = tables();
  const { past } = scene;
  const rows = new Map();
  const rowOf = (index) => {
    if (!rows.has(index)) rows.set(index, laneAt.get(laneOf.get(model.strings[index])));
    return rows.get(index);
  };
  const found = [];
  let left = 0;
  for (const i of messagesIn(scene.low, scene.high)) {
    const sent = messages.sent[i];
    const isPast = past.events.has(sent) && messages.end[i] !== null && past.events.has(messages.end[i]);
    if (!isPast && !isListed(drawn, sent) && !(family[sent] === 4 && isListed(drawn, messages.end[i] || 0))) continue;
    const from = rowOf(messages.from[i]);
    const to = rowOf(messages.to[i]);
    if (!from || !to || from === to) continue;
    found.push({ i, sent, from, to, isPast });
  }
  const isMany = found.length > ARROWS_MOST;
  scene.arrows = [];
  for (const each of found) {
    const fate = messages.fate[each.i];
    const isKept = fate === "dropped" ? scene.arrows.length < 120 : each.isPast && !scene.isDense && scene.arrows.length < ARROWS_MOST;
    if (isMany && !isKept) {
      left += 1;
      continue;
    }
    scene.arrows.push(arrow(each, x, scene, messages, fate));
  }
  scene.arrowsLeft = left;
  scene.messages = found.length;
}

function arrow({ i, sent, from, to, isPast }, x, scene, messages, fate) {
  const { lane } = tables();
  const end = messages.end[i];
  const x1 = x(sent);
  const y1 = from.y;
  let x2 = end === null ? scene.right + 40 : x(end);
  let y2 = to.y;
  if (fate === "dropped") {
    // A message that is lost where it was sent ends on its way; one that nobody takes, at the door.
    const share = lane[end] === to.index ? 1 : 0.45;
    y2 = y1 + (to.y - y1) * share;
    x2 = Math.max(x2, x1 + Math.min(14, Math.abs(y2 - y1) * 0.3));
  } else if (end !== null && x2 - x1 < 1.5) x2 = x1 + 1.5;
  return {
    i, n: end === null ? sent : end, sent, end, x1, y1, x2, y2, fate, isPast, from, to,
    type: clean(model.strings[messages.type[i]], 200).slice(0, 32),
    fault: messages.fault[i] >= 0 ? clean(model.strings[messages.fault[i]], 200).slice(0, 24) : "",
    isMain: isPast && scene.past.line.has(end),
  };
}

// The causes that are no messages: along a lane, or from the world onto one.
function chain({ x, laneAt, scene, now }) {
  const { lane, sends, ends } = tables();
  scene.chain = [];
  scene.now = now;
  if (scene.isDense) return;
  for (const [from, to, isMain] of scene.past.edges) {
    if (to < scene.low || from > scene.high || to > scene.high) continue;
    if (sends[from] >= 0 && sends[from] === ends[to]) continue;
    const [one, other] = [laneAt.get(lane[from]), laneAt.get(lane[to])];
    if (!one || !other) continue;
    scene.chain.push({ from, to, isMain, x1: x(from), y1: one.y, x2: x(to), y2: other.y, isSame: one === other });
    if (scene.chain.length >= 500) break;
  }
}

// State -------------------------------------------------------------------------------------------

function stateBands({ x, scene, frame = scene.frame }) {
  const { low, high, left, right } = scene;
  const cut = (n0, n1) => [Math.max(left, n0 <= low ? left : x(n0)), n1 === null || n1 > high ? right : Math.min(right, x(n1))];
  scene.bands = [];
  scene.statuses = [];
  for (const row of frame.lanes) {
    const alive = row.status ? stretches(row.status, () => true, low, high) : [[0, null, "up"]];
    if (!alive.length || alive[0][0] > low) {
      const [x1, x2] = [left, alive.length ? cut(alive[0][0], null)[0] : right];
      if (x2 > x1) scene.statuses.push({ row, x1, x2, status: "none" });
    }
    for (const [n0, n1, status] of alive) {
      const [x1, x2] = cut(n0, n1);
      if (x2 > x1) scene.statuses.push({ row, x1, x2, status, n: n0 });
    }
    row.bands.forEach((partition, i) => {
      const y = row.y + 12 + i * BAND;
      for (const [n0, n1] of stretches(partition.isr, (names) => (names || []).includes(row.name), low, high, true)) {
        const [x1, x2] = cut(n0, n1);
        if (x2 > x1) scene.bands.push({ what: "isr", row, partition, x1, x2, y, n0 });
      }
      for (const [n0, n1, [, epoch]] of stretches(partition.leader, (value) => value[0] === row.name, low, high)) {
        const [x1, x2] = cut(n0, n1);
        if (x2 > x1) scene.bands.push({ what: "leader", row, partition, epoch, x1, x2, y, n0 });
      }
    });
  }
}

function faultBands({ x, scene }) {
  const { low, high, left, right, frame } = scene;
  const ends = [];
  scene.faults = [];
  scene.faultsLeft = 0;
  for (const fault of model.tracks.faults) {
    const over = fault.end === null || fault.end === undefined ? Infinity : fault.end;
    if (fault.begin > high || over < low) continue;
    const x1 = fault.begin < low ? left : x(fault.begin);
    const x2 = Math.max(x1 + 3, over > high ? right : x(over));
    let row = ends.findIndex((each) => each < x1 - 4);
    if (row < 0) row = ends.length;
    const text = clean(`${fault.id}: ${fault.text}`, 400).slice(0, 160);
    ends[row] = Math.max(x2, x1 + Math.min(text.length * 5.6, 180));
    if (row >= FAULTS_MOST || scene.faults.length > 60) scene.faultsLeft += 1;
    else scene.faults.push({ fault, x1, x2, y: AXIS + 2 + row * FAULT, text, isNow: isOn(fault, scene.now) });
  }
  for (const each of scene.faults) {
    const next = scene.faults.filter((other) => other.y === each.y && other.x1 > each.x1).reduce((least, other) => Math.min(least, other.x1), right);
    each.room = next - each.x1 - 6;
  }
  scene.frameBottom = frame.height;
}

// Words -------------------------------------------------------------------------------------------

function ticks({ x, scene, drawn, begin, end, window, scale }) {
  const { t } = model.tracks.events;
  const found = [];
  const step = scale.kind === "even" ? Math.max(1, Math.ceil(72 / scene.unit)) : 1;
  const nice = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500].find((each) => each >= step) || Math.ceil(step / 1000) * 1000;
  const stride = scale.kind === "even" ? nice : Math.max(1, Math.floor((end - begin) / 4000));
  let free = scene.left + (scale.kind === "even" ? 8 : 0);
  for (let i = begin - (scale.kind === "even" ? begin % nice : 0); i < end; i += stride) {
    if (i < begin) continue;
    const place = x(drawn[i]);
    if (place < free || place > scene.right - 20) continue;
    const isCovered = scene.isNowIn && Math.abs(place - scene.nowX) < 8 + 7 * String(drawn[i]).length;
    found.push({ x: place, n: isCovered ? 0 : drawn[i], t: briefly(t[drawn[i] - 1]) });
    free = place + 76;
  }
  scene.ticks = found;
  scene.breaks = [];
  scene.breaksLeft = 0;
  if (scale.kind !== "time") return;
  const { breaks, places } = timePlaces();
  const first = bisect(breaks, scene.low - 1);
  const beyond = bisect(breaks, scene.high);
  if (beyond - first > 70) {
    scene.breaksLeft = beyond - first;
    return;
  }
  for (let i = first; i < beyond; i += 1) {
    const n = breaks[i];
    const x1 = scene.left + (places[n - 1] - window.from) * scene.unit;
    const x2 = scene.left + (places[n] - window.from) * scene.unit;
    if (n > 1) scene.breaks.push({ x1: Math.max(scene.left, x1), x2, text: duration(t[n - 1] - t[n - 2]) });
  }
}

function briefly(us) {
  return time(Math.round(us / 1000) * 1000);
}

// Words stand above their lane, and only where no others are.
function words({ scene }) {
  const boxes = [];
  const { events } = model.tracks;
  const stepText = new Map(model.tracks.steps.map((each) => [each.begin, each.text || each.id]));
  const put = (text, x, y, kind, anchor = "start") => {
    const size = text.length * 5.7 + 4;
    const from = anchor === "middle" ? x - size / 2 : x;
    if (from < scene.left - 2 || from + size > scene.right + 12) return false;
    if (boxes.some((each) => from < each[1] && each[0] < from + size && Math.abs(y - each[2]) < 11)) return false;
    boxes.push([from, from + size, y]);
    scene.labels.push({ text, x, y, kind, anchor });
    return true;
  };
  const ordered = [...scene.majors].sort((one, other) => weight(other, scene) - weight(one, scene) || one.n - other.n);
  for (const each of ordered.slice(0, 160)) {
    const kind = model.strings[events.kind[each.n - 1]];
    const full = stepText.get(each.n) || wordsOf(kind, model.strings[events.text[each.n - 1]]);
    const more = each.more ? ` +${number(each.more)}` : "";
    const tone = kind === "loss" || kind === "check" || kind === "crash" ? "bad" : kind === "fault" || kind === "heal" ? "fault" : each.n === scene.now ? "now" : "";
    const text = clean(full, 200);
    const sizes = scene.isDense ? [14] : [30, 18, 10];
    const isPut = sizes.some((size) => put(`${text.length > size ? `${text.slice(0, size - 1)}…` : text}${more}`, each.x - 4, each.y - 10, tone));
    if (!isPut && !scene.isDense) {
      const short = `${text.slice(0, 17)}${text.length > 17 ? "…" : ""}${more}`;
      put(short, Math.min(each.x + 4, scene.right + 6) - short.length * 5.7, each.y - 10, tone);
    }
  }
  for (const each of scene.statuses) {
    const text = STATUS.get(each.status);
    if (text && each.x2 - each.x1 > text.length * 6 + 20) {
      const isPut = put(text, each.x1 + 10, each.row.y - 9, `status-${each.status}`);
      if (!isPut && each.x2 - each.x1 > 150) put(text, each.x1 + 90, each.row.y - 9, `status-${each.status}`);
    }
  }
  const placed = scene.arrows.filter((each) => each.fate === "dropped" || each.isMain);
  for (const each of placed.slice(0, 60)) {
    if (each.fate === "dropped") {
      if (each.fault) put(each.fault, each.x2 + 6, each.y2 + 3, "fault");
    } else if (Math.abs(each.y2 - each.y1) > 34) {
      // Between lanes, where no event is.
      const isFree = (share) => scene.frame.lanes.every((row) => Math.abs(row.y - each.y1 - share * (each.y2 - each.y1)) > 13);
      const share = [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8].find(isFree);
      if (share) put(each.type, each.x1 + share * (each.x2 - each.x1), each.y1 + share * (each.y2 - each.y1) + 3, "past", "middle");
    }
  }
}

function weight(each, scene) {
  const kind = model.strings[model.tracks.events.kind[each.n - 1]];
  if (each.n === scene.now) return 9;
  return { loss: 8, check: 8, fault: 7, crash: 6, step: 5, elect: 5, truncate: 4, isr: 3 }[kind] || 1;
}

function wordsOf(kind, text) {
  if (kind === "loss") return "records lost";
  if (kind === "start" || kind === "crash") return kind;
  return text;
}
