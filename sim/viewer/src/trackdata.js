// The rows of the tracks: what they are called, their bars or lines, and each in words.
import { clean, counted, number } from "./dom.js";
import { at, bisect, isOn, model } from "./store.js";

const EXPECTS_MOST = 60;
const FAULTS_MOST = 40;
const STEPS_ROWS = 3;

function over(end) {
  return end === null || end === undefined ? model.last + 1 : end;
}

/** A series as bars [n0, n1, value]; neighbours with the same value are one. */
export function bars(series, wordOf) {
  const [numbers, values] = series;
  const found = [];
  numbers.forEach((n, i) => {
    const value = wordOf(values[i]);
    const last = found[found.length - 1];
    if (last && JSON.stringify(last[2]) === JSON.stringify(value)) last[1] = i + 1 < numbers.length ? numbers[i + 1] : model.last + 1;
    else found.push([n, i + 1 < numbers.length ? numbers[i + 1] : model.last + 1, value]);
  });
  return found;
}

function barAt(list, n) {
  return list.find((each) => each[0] <= n && n < each[1]);
}

function told(list, most = 8) {
  const some = list.slice(0, most).map(([n0, , { text }]) => `${text} from #${number(n0)}`);
  return `${some.join("; ")}${list.length > most ? `; and ${number(list.length - most)} more` : ""}`;
}

// Bars: {text on it, tone, title?}
function barRow(key, label, list, more = {}) {
  return { key, label, shape: "bars", bars: list, words: list.length ? told(list) : "nothing", changes: list.map((each) => each[0]),
    now: (n) => { const found = barAt(list, n); return found ? [found[2].text, found[2].tone] : ["–", ""]; }, ...more };
}

// The scenario ------------------------------------------------------------------------------------

function stepRows() {
  const list = model.tracks.steps.map((each) => [each.begin, Math.max(over(each.end), each.begin + 1), { text: clean(each.text || each.id, 120), tone: "step" }]);
  // A step that lasts takes the next row, so that none hides another.
  const rows = [];
  for (const each of list) {
    const row = rows.find((one) => one[one.length - 1][1] <= each[0]) || (rows.length < STEPS_ROWS && (rows.push([]), rows[rows.length - 1])) || rows[rows.length - 1];
    row.push(each);
  }
  return rows.map((each, i) => barRow(`steps${i}`, i ? "" : "steps", each, { isOpen: true, now: (n) => {
    const on = each.filter((one) => one[0] <= n && n < one[1]);
    return on.length ? [on[on.length - 1][2].text, ""] : ["–", ""];
  } }));
}

function faultRows() {
  const all = model.tracks.faults;
  return all.slice(0, FAULTS_MOST).map((each, i) => ({
    ...barRow(`fault${i}`, clean(each.id, 30), [[each.begin, Math.max(over(each.end), each.begin + 1), { text: clean(each.text, 120), tone: "fault" }]], { isOpen: true }),
    strikes: each.strikes || [],
    words: `${clean(each.text, 200)}, from #${number(each.begin)} ${each.end ? `to #${number(each.end)}` : "to the end"}, struck ${counted((each.strikes || []).length, "time")}`,
    now: (n) => (isOn(each, n) ? ["on", "fault"] : [n < each.begin ? "to come" : "over", ""]),
  }));
}

// Judgements --------------------------------------------------------------------------------------

function expectRow(each, i) {
  const list = bars(each.holds, (value) => (value ? { text: "holds", tone: "good" } : { text: "does not hold", tone: "bad" }));
  if (each.judged && each.verdict !== null) {
    const word = each.verdict ? { text: "met", tone: "good" } : { text: "failed", tone: "bad" };
    const before = list.filter((one) => one[0] < each.judged).map((one) => [one[0], Math.min(one[1], each.judged), one[2]]);
    list.splice(0, list.length, ...before, [each.judged, model.last + 1, word]);
  }
  if (!list.length || list[0][0] > 1) list.unshift([1, list.length ? list[0][0] : model.last + 1, { text: "open", tone: "open" }]);
  return barRow(`expect${i}`, clean(each.form || each.id, 24), list, { caption: clean(each.text, 300), full: `${clean(each.form, 24)} ${clean(each.text, 600)}` });
}

function checkRows() {
  const byRule = new Map();
  for (const each of model.tracks.checks) {
    const name = `${each.check}${each.partition ? ` of ${each.partition}` : ""}`;
    if (!byRule.has(name)) byRule.set(name, []);
    byRule.get(name).push(each);
  }
  return [...byRule].slice(0, EXPECTS_MOST).map(([name, all], i) => {
    const first = all[0].n;
    const list = [[first, model.last + 1, { text: `broken${all.length > 1 ? ` ${number(all.length)} times` : ""}: ${clean(all[0].detail || all[0].kind, 160)}`, tone: "bad" }]];
    if (first > 1) list.unshift([1, first, { text: "kept", tone: "good" }]);
    return barRow(`check${i}`, clean(name, 80), list, { marks: all.map((each) => each.n), changes: all.map((each) => each.n),
      now: (n) => (n >= first ? ["broken", "bad"] : ["kept", "good"]) });
  });
}

function lossRows() {
  const byPartition = new Map();
  for (const each of model.tracks.losses) {
    if (!byPartition.has(each.partition)) byPartition.set(each.partition, []);
    byPartition.get(each.partition).push(each);
  }
  return [...byPartition].map(([name, all], i) => {
    let sum = 0;
    const list = all.map((each, k) => {
      sum += each.count;
      return [each.n, k + 1 < all.length ? all[k + 1].n : model.last + 1, { text: `${counted(sum, "record")} lost`, tone: "bad" }];
    });
    return barRow(`loss${i}`, `lost of ${clean(name, 40)}`, list, { marks: all.map((each) => each.n) });
  });
}

// Nodes and partitions ----------------------------------------------------------------------------

const STATUS = new Map([["up", ["up", "up"]], ["paused", ["paused", "warn"]], ["down", ["down", "bad"]], ["off", ["power off", "bad"]], ["stopped", ["stopped", "open"]]]);

function nodeRows() {
  return model.tracks.nodes.filter((each) => each.what === "controller" || each.what === "broker" || each.status[0].length > 1).map((each) => barRow(
    `node${each.name}`, clean(each.name, 40), bars(each.status, (value) => {
      const [text, tone] = STATUS.get(value) || [clean(value, 20), "open"];
      return { text, tone };
    })));
}

function names(list) {
  return list && list.length ? clean(list.join(" "), 120) : "nobody";
}

function partitionRows(partition, i) {
  const most = Math.max(1, partition.replicas.length);
  const found = [
    barRow(`leader${i}`, "leader", bars(partition.leader, ([leader, epoch]) => (leader === null
      ? { text: epoch < 0 ? "none" : `none, e${epoch}`, tone: "bad" } : { text: `${clean(leader, 40)} e${epoch}`, tone: "epoch", epoch }))),
    barRow(`isr${i}`, "ISR", bars(partition.isr, (value) => ({ text: names(value), tone: (value || []).length ? "isr" : "bad", share: Math.min(1, (value || []).length / most), size: (value || []).length }))),
  ];
  if (partition.elr[1].some((each) => each && each.length)) {
    found.push(barRow(`elr${i}`, "ELR", bars(partition.elr, (value) => (value && value.length ? { text: names(value), tone: "isr" } : { text: "", tone: "none" }))));
  }
  for (const replica of partition.replicas) found.push(lagRow(partition, replica, i));
  return found;
}

// How far a replica's log end and its high watermark are behind the leader's log end.
function lagRow(partition, replica, i) {
  const byNode = new Map(partition.replicas.map((each) => [each.node, each]));
  const lagAt = (n) => {
    const [leader] = at(partition.leader, n) || [null];
    const ahead = leader !== null && byNode.get(leader);
    const end = at(replica.log_end, n);
    if (!ahead || end === undefined) return null;
    const top = at(ahead.log_end, n) ?? 0;
    return [Math.max(0, top - end), Math.max(0, top - (at(replica.high_watermark, n) ?? 0)), leader === replica.node];
  };
  return {
    key: `lag${i}${replica.node}`, label: `${clean(replica.node, 30)} behind`, shape: "lag", lagAt,
    sources: () => [partition.leader[0], replica.log_end[0], replica.high_watermark[0], ...partition.replicas.filter((each) => each !== replica).map((each) => each.log_end[0])],
    now: (n) => {
      const lag = lagAt(n);
      if (!lag) return ["no leader", ""];
      if (lag[2]) return [`leads; HW ${number(lag[1])} behind`, ""];
      return [`${number(lag[0])} behind; HW ${number(lag[1])}`, lag[0] ? "warn" : ""];
    },
    words: "", changes: replica.log_end[0],
  };
}

/** The highest lag in each of `count` columns of a window: [[leo, hw] or null...]; `edge(c)` is a column's first event. */
export function lagColumns(row, count, edge) {
  const sources = row.sources();
  const found = [];
  for (let c = 0; c < count; c += 1) {
    const [n0, n1] = [edge(c), edge(c + 1)];
    let most = row.lagAt(n0);
    // Values change only where a source does; a crowded column is looked at in some places only.
    for (const numbers of sources) {
      const [first, beyond] = [bisect(numbers, n0), bisect(numbers, Math.max(n0, n1 - 1))];
      const stride = Math.max(1, Math.ceil((beyond - first) / 6));
      for (let k = first; k < beyond; k += stride) {
        const lag = row.lagAt(numbers[k]);
        if (lag) most = most ? [Math.max(most[0], lag[0]), Math.max(most[1], lag[1]), lag[2]] : lag;
      }
    }
    found.push(most);
  }
  return found;
}

let made = null;
/** All rows, in groups: [{title, rows, left}]. */
export function groups() {
  if (made) return made;
  const { tracks } = model;
  const all = [
    { title: "Scenario", rows: [...stepRows(), ...faultRows()], left: Math.max(0, tracks.faults.length - FAULTS_MOST), leftWord: "fault" },
    { title: "Expectations", rows: tracks.expects.slice(0, EXPECTS_MOST).map(expectRow), left: Math.max(0, tracks.expects.length - EXPECTS_MOST), leftWord: "expectation" },
    { title: "Rules and losses", rows: [...checkRows(), ...lossRows()] },
    { title: "Nodes", rows: nodeRows() },
    ...tracks.partitions.slice(0, 24).map((each, i) => ({ title: clean(each.name, 60), rows: partitionRows(each, i), isFolded: i > 2 })),
  ];
  made = all.filter((each) => each.rows.length);
  return made;
}
