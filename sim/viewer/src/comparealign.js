// Two runs aligned: rows of events that correspond. No state, and nothing of the page.

/** How the two events of a row correspond. */
export const SAME = 0;
export const CHANGED = 1;
export const ALIKE = 2;
export const ONLY = 3;
/** It has a partner, but in another order than what is around it. */
export const MOVED = 4;

// Numbers of the longest rising run in a list, by patience.
function longestRising(values) {
  const tails = [];
  const before = new Int32Array(values.length).fill(-1);
  for (let i = 0; i < values.length; i += 1) {
    let low = 0;
    let high = tails.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (values[tails[middle]] < values[i]) low = middle + 1;
      else high = middle;
    }
    if (low > 0) before[i] = tails[low - 1];
    tails[low] = i;
  }
  const found = [];
  for (let i = tails.length ? tails[tails.length - 1] : -1; i >= 0; i = before[i]) found.push(i);
  return found.reverse();
}

/**
 * Rows of two runs. Pairs that keep their order stand in one row; between them come the events of
 * either run without such a partner, by the time since the pair before. Two events with which the
 * runs part (`parting`: {a, b}) share a row, too. Columns by row: `a`, `b` (numbers, 0 none),
 * `how`, and `atA`, `atB`: the last event of each run up to the row. `rowA`, `rowB`: by event.
 */
export function makeRows(pairs, timesA, timesB, parting) {
  const countA = timesA.length;
  const countB = timesB.length;
  const partnerA = new Int32Array(countA + 1);
  const partnerB = new Int32Array(countB + 1);
  const kept = pairs.a.map((_, i) => i).filter((i) => pairs.a[i] <= countA && pairs.b[i] <= countB);
  for (const i of kept) {
    partnerA[pairs.a[i]] = pairs.b[i];
    partnerB[pairs.b[i]] = pairs.a[i];
  }
  const a = [];
  const b = [];
  const how = [];
  let [nextA, nextB] = [1, 1];
  const together = (rowA, rowB, rowHow) => {
    a.push(rowA);
    b.push(rowB);
    how.push(rowHow);
    nextA = rowA + 1;
    nextB = rowB + 1;
  };
  const alone = (endA, endB) => {
    if (parting && parting.a && parting.b && nextA <= parting.a && parting.a < endA && nextB <= parting.b && parting.b < endB) {
      apart(parting.a, parting.b);
      together(parting.a, parting.b, ONLY);
    }
    apart(endA, endB);
  };
  const apart = (endA, endB) => {
    // Another seed has other times: what counts is how long ago the runs were at one point.
    const ahead = nextA > 1 && nextB > 1 ? timesA[nextA - 2] - timesB[nextB - 2] : 0;
    while (nextA < endA || nextB < endB) {
      const isA = nextB >= endB || (nextA < endA && timesA[nextA - 1] <= timesB[nextB - 1] + ahead);
      a.push(isA ? nextA : 0);
      b.push(isA ? 0 : nextB);
      how.push((isA ? partnerA[nextA] : partnerB[nextB]) ? MOVED : ONLY);
      if (isA) nextA += 1;
      else nextB += 1;
    }
  };
  for (const i of longestRising(kept.map((each) => pairs.b[each])).map((each) => kept[each])) {
    alone(pairs.a[i], pairs.b[i]);
    together(pairs.a[i], pairs.b[i], pairs.how[i]);
  }
  alone(countA + 1, countB + 1);
  const rows = { count: a.length, a, b, how, partnerA, partnerB, atA: [], atB: [], rowA: new Int32Array(countA + 1), rowB: new Int32Array(countB + 1) };
  let [lastA, lastB] = [0, 0];
  for (let row = 0; row < a.length; row += 1) {
    lastA = a[row] || lastA;
    lastB = b[row] || lastB;
    rows.atA.push(lastA);
    rows.atB.push(lastB);
    if (a[row]) rows.rowA[a[row]] = row;
    if (b[row]) rows.rowB[b[row]] = row;
  }
  return rows;
}
