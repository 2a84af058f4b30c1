// What the logs of a partition have behind an event: plain data for the strips.
import { alive, at, model } from "./store.js";

const CUTS_MOST = 3;
const OLD = /log start|with the replica/;

function merged(pieces) {
  const found = [];
  for (const [base, end, epoch] of pieces) {
    const last = found[found.length - 1];
    if (last && last.end === base && last.epoch === epoch) last.end = end;
    else found.push({ base, end, epoch });
  }
  return found;
}

function cutsOf(replica, n) {
  const byEvent = new Map();
  for (const each of replica.pieces) {
    const gone = each[4];
    if (gone === null || gone > n || (OLD.test(each[6] || "") && gone !== n)) continue;
    if (!byEvent.has(gone)) byEvent.set(gone, []);
    byEvent.get(gone).push(each);
  }
  const numbers = [...byEvent.keys()].sort((one, other) => one - other).slice(-CUTS_MOST);
  return numbers.map((gone) => {
    const pieces = byEvent.get(gone).sort((one, other) => one[0] - other[0]);
    return { n: gone, how: pieces[0][6] || "gone", isNow: gone === n, spans: merged(pieces) };
  });
}

/** One copy behind event n. */
export function logAt(replica, n) {
  const pieces = alive(replica.pieces, n, 3).sort((one, other) => one[0] - other[0]);
  const spans = merged(pieces);
  const role = at(replica.role, n);
  const end = at(replica.log_end, n) ?? (spans.length ? spans[spans.length - 1].end : 0);
  const owner = model.tracks.nodes.find((each) => each.name === replica.node);
  return {
    node: replica.node,
    status: (owner && at(owner.status, n)) || "not started",
    role: role && role[0] !== "none" ? role[0] : "no role",
    roleEpoch: role ? role[1] : null,
    pieces,
    spans,
    cuts: cutsOf(replica, n),
    start: at(replica.log_start, n) ?? (spans.length ? spans[0].base : 0),
    end,
    hw: at(replica.high_watermark, n),
    durable: at(replica.durable_end, n),
    epochs: at(replica.epochs, n) || [],
    segments: alive(replica.segments, n, 1).map((each) => each[0]),
    index: alive(replica.index, n, 1).map((each) => each[0]),
  };
}

/** Where a log has other records than the leader's: ranges. */
export function differences(spans, others) {
  const found = [];
  for (const mine of spans) {
    for (const other of others) {
      const base = Math.max(mine.base, other.base);
      const end = Math.min(mine.end, other.end);
      if (base < end && mine.epoch !== other.epoch && mine.epoch !== null && other.epoch !== null) found.push([base, end]);
    }
  }
  return found;
}

/** One partition behind event n. */
export function partitionAt(partition, n) {
  const [leader, epoch] = at(partition.leader, n) || [null, null];
  const logs = partition.replicas.filter((each) => each.since <= n).map((each) => logAt(each, n));
  const lead = logs.find((each) => each.node === leader);
  return {
    name: partition.name,
    leader,
    epoch,
    isr: at(partition.isr, n),
    elr: at(partition.elr, n) || [],
    lastKnown: at(partition.last_known, n) || [],
    logs: logs.map((each) => ({ ...each, differs: lead && lead !== each ? differences(each.spans, lead.spans) : [] })),
  };
}

const wholes = new Map();
/** The lowest and the highest offset that any log of a partition ever had. */
export function wholeOf(partition) {
  if (!wholes.has(partition)) {
    let low = Infinity;
    let high = 0;
    for (const replica of partition.replicas) {
      for (const [base, end] of replica.pieces) {
        if (base < low) low = base;
        if (end > high) high = end;
      }
    }
    wholes.set(partition, [Math.min(low, high), high]);
  }
  return wholes.get(partition);
}

/** What a log has at an offset, in words. */
export function recordText(log, offset) {
  const piece = log.pieces.find((each) => each[0] <= offset && offset < each[1]);
  if (!piece) {
    const gone = log.cuts.find((each) => each.spans.some((span) => span.base <= offset && offset < span.end));
    if (gone) return { text: `nothing; it had one, ${gone.how}`, n: gone.n };
    return { text: offset < log.start ? "nothing, below the log start" : "nothing", n: 0 };
  }
  const words = [piece[2] === null ? "epoch unknown" : `epoch ${piece[2]}`, piece[5]];
  if (log.durable !== undefined && log.durable !== null) words.push(offset < log.durable ? "synced" : "not synced");
  if (log.hw !== undefined && log.hw !== null) words.push(offset < log.hw ? "below HW" : "above HW");
  return { text: words.join(", "), n: piece[3] };
}
