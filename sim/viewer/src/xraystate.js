// What the X-ray shows: which log, and what is looked up in it.
import { computed, signal } from "@preact/signals";
import { model, node } from "./store.js";
import { bisect, lookup, lookupTime } from "./xraylookup.js";

/** The panel's data; see sim/xray/panel.py. */
export function panel() {
  return model.panels.xray;
}

/** Whether there is a log to show. */
export function hasLogs() {
  const data = panel();
  return Boolean(data && data.directories && data.directories.length);
}

// The reader's choice; null: not chosen yet.
const chosen = signal(null);
const wanted = signal(null);
const wantedTime = signal(null);
/** What is looked up: "offset" or "time". */
export const kind = signal("offset");

/** The number of the log that is shown: the selected node's, until the reader chooses. */
export const number = computed(() => {
  const { directories } = panel();
  if (chosen.value !== null) return Math.min(chosen.value, directories.length - 1);
  const own = directories.findIndex((each) => each.node === node.value);
  return Math.max(own, 0);
});
/** The X-ray that is shown. */
export const data = computed(() => panel().directories[number.value]);

/** Show the log of a number. */
export function choose(n) {
  chosen.value = n;
}

/** The lowest and the highest offset that can be asked for with the slider. */
export const range = computed(() => {
  const { marks } = data.value;
  const low = Math.min(marks.log_start.offset, ...marks.segment_bases.slice(0, 1));
  return [low, Math.max(low, marks.log_end.offset)];
});

/** The earliest and the latest timestamp in ms; null where none are listed. */
export const timeRange = computed(() => {
  let first = Infinity;
  let last = -1;
  for (const segment of data.value.segments) {
    last = Math.max(last, segment.max_timestamp_ms);
    for (const row of segment.batches) {
      if (row[7] === null) first = row[5] < 0 ? first : Math.min(first, row[5]);
      else for (const [, time] of row[7]) if (time < first) first = time;
    }
  }
  return last < 0 || first === Infinity ? null : [Math.max(0, first), last];
});

/** The offset that is asked for; about a third into the log until the reader asks. */
export const offset = computed(() => {
  if (wanted.value !== null) return wanted.value;
  const [low, high] = range.value;
  const start = Math.max(low, data.value.marks.log_start.offset);
  return start + Math.floor((high - start) * 0.34);
});

/** The timestamp in ms that is asked for. */
export const time = computed(() => {
  if (wantedTime.value !== null) return wantedTime.value;
  const [first, last] = timeRange.value || [0, 0];
  return first + Math.floor((last - first) * 0.34);
});

/** The look-up, step by step. */
export const found = computed(() =>
  kind.value === "time" ? lookupTime(data.value, time.value) : lookup(data.value, offset.value));

/** The number of the segment whose files are shown; -1 for none. */
export const segment = computed(() => {
  const { segments } = data.value;
  if (found.value.segment !== null) return found.value.segment;
  if (kind.value === "time") return segments.length - 1;
  const [at] = bisect(segments.map((each) => each.base_offset), offset.value);
  return segments.length ? Math.max(at, 0) : -1;
});

/** Look up an offset. */
export function ask(value) {
  kind.value = "offset";
  wanted.value = value;
}

/** Look up a time. */
export function askTime(value) {
  kind.value = "time";
  wantedTime.value = value;
}

/** Milliseconds as a date and a time; "none" for what has none. */
export function date(ms) {
  if (ms === null || ms < 0) return "none";
  const when = new Date(ms);
  return Number.isNaN(when.getTime()) ? `${ms} ms` : when.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** The time of day of it, for where the day is clear. */
export function clock(ms) {
  const when = new Date(ms);
  return ms < 0 || Number.isNaN(when.getTime()) ? `${ms} ms` : when.toISOString().slice(11, 23);
}
