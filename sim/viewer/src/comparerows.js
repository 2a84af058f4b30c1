// Where the reader is in two runs that are compared.
import { computed, signal } from "@preact/signals";
import { SAME, makeRows } from "./comparealign.js";
import { go, model, step } from "./store.js";

/** The panel's data; see sim/present/page_panels.py. */
export function panel() {
  return model.panels.compare;
}

let made = null;
/** The rows of this page's two runs. */
export function rowsNow() {
  if (!made) {
    const { pairs, divergence } = panel().comparison;
    // Of an event that changed, both sides are a pair already.
    const parting = divergence && divergence.what === "both" ? divergence : null;
    made = makeRows(pairs, model.tracks.events.t, panel().b.events.t, parting);
  }
  return made;
}

/** Event n of the other run: {n, t, node, kind, text}. */
export function eventOfB(n) {
  const { events, strings } = panel().b;
  const i = n - 1;
  if (i < 0 || i >= events.t.length) return null;
  return { n, t: events.t[i], node: strings[events.node[i]], kind: strings[events.kind[i]], text: strings[events.text[i]] };
}

const picked = signal({ a: -1, b: 0, row: 0 });

/** Where the reader is: {row, a, b}; the page's own step is that of A, B follows by the pairs. */
export const place = computed(() => {
  const n = step.value;
  const rows = rowsNow();
  if (picked.value.a === n) return picked.value;
  const row = n > 0 ? rows.rowA[Math.min(n, rows.rowA.length - 1)] : -1;
  return { row, a: n, b: row < 0 ? 0 : rows.atB[row] };
});

/** Go to a row. */
export function toRow(row) {
  const rows = rowsNow();
  const to = Math.max(0, Math.min(rows.count - 1, row));
  if (!rows.count) return;
  picked.value = { row: to, a: rows.atA[to], b: rows.atB[to] };
  go(rows.atA[to]);
}

/** Go to the point behind an event of each run. */
export function toPoint(a, b) {
  const rows = rowsNow();
  const own = a > 0 ? rows.rowA[Math.min(a, rows.rowA.length - 1)] : -1;
  const other = b > 0 ? rows.rowB[Math.min(b, rows.rowB.length - 1)] : -1;
  picked.value = { row: Math.max(own, other), a, b };
  go(a);
}

/** Go to where the next (1) or previous (-1) rows begin that are not the same in both runs. */
export function toDifference(direction) {
  const rows = rowsNow();
  for (let row = place.value.row + direction; row >= 0 && row < rows.count; row += direction) {
    if (rows.how[row] !== SAME && (row === 0 || rows.how[row - 1] === SAME)) {
      toRow(row);
      return true;
    }
  }
  return false;
}
