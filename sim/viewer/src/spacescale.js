// The two axes of time: even spacing, one place an event; and virtual time, quiet stretches shorter.
import { signal } from "@preact/signals";
import { bisect, model } from "./store.js";

/** "even" or "time". */
export const axis = signal("even");
/** What of the axis is in sight, in its own units; null until it is first drawn. */
export const sight = signal(null);

let compressed = null;

function quietFrom() {
  const { sent, end, fate } = model.tracks.messages;
  const { t } = model.tracks.events;
  const spans = [];
  const stride = Math.max(1, Math.floor(sent.length / 2000));
  for (let i = 0; i < sent.length; i += stride) {
    if (fate[i] === "delivered" && end[i] !== null) spans.push(t[end[i] - 1] - t[sent[i] - 1]);
  }
  spans.sort((one, other) => one - other);
  return Math.max(60, 1.6 * (spans[spans.length >> 1] || 500));
}

/** Virtual time with quiet stretches cut: place of each event (0 is before the first), and from which span on. */
export function timePlaces() {
  if (compressed) return compressed;
  const { t } = model.tracks.events;
  const least = quietFrom();
  const places = new Float64Array(t.length + 1);
  const breaks = [];
  for (let i = 1; i < t.length; i += 1) {
    const gap = Math.max(0, t[i] - t[i - 1]);
    const size = gap <= least ? gap : least * (1 + 0.04 * Math.log2(gap / least));
    if (gap > least) breaks.push(i + 1);
    places[i + 1] = places[i] + size;
  }
  compressed = { places, breaks, least };
  return compressed;
}

/** An axis over the drawn events: {kind, size, at(n), nearest(place)}; `at` takes any event. */
export function scaleOf(kind, drawn) {
  if (kind === "time") {
    const { places } = timePlaces();
    const last = places.length - 1;
    const nearest = (place) => {
      let [low, high] = [1, last];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (places[middle] < place) low = middle + 1;
        else high = middle;
      }
      return low;
    };
    return { kind, size: places[last] || 1, least: 40, at: (n) => places[Math.max(0, Math.min(last, n))], nearest };
  }
  const at = (n) => {
    const behind = bisect(drawn, n);
    return behind && drawn[behind - 1] === n ? behind - 0.5 : behind;
  };
  const nearest = (place) => drawn[Math.max(0, Math.min(drawn.length - 1, Math.floor(place)))] || 0;
  return { kind, size: Math.max(1, drawn.length), least: 6, at, nearest };
}

/** Keep a window on the axis: it begins at the first event and ends at the last. */
export function clamped(scale, from, span) {
  const pad = scale.kind === "even" ? 0 : span * 0.02;
  const size = Math.max(scale.least, Math.min(span, scale.size + 2 * pad));
  const begin = Math.max(-pad, Math.min(from, scale.size + pad - size));
  return { kind: scale.kind, from: begin, to: begin + size };
}

/** The window to begin with: about so many drawn events round event n. */
export function around(scale, drawn, n, count) {
  if (scale.kind === "even") return clamped(scale, scale.at(n) - count * 0.6, count);
  const index = bisect(drawn, n);
  const low = drawn[Math.max(0, index - Math.floor(count * 0.6))] || 1;
  const high = drawn[Math.min(drawn.length - 1, index + Math.floor(count * 0.4))] || model.last;
  const span = Math.max(scale.least, (scale.at(high) - scale.at(low)) * 1.08);
  return clamped(scale, scale.at(low) - span * 0.04, span);
}

/** The window moved so far that event n is in it, or as it was. */
export function following(scale, window, n) {
  const place = scale.at(n);
  const span = window.to - window.from;
  const [low, high] = [window.from + span * 0.06, window.to - span * 0.08];
  if (place >= low && place <= high) return window;
  const isNear = place > window.from - span * 0.3 && place < window.to + span * 0.3;
  if (!isNear) return clamped(scale, place - span * 0.6, span);
  return clamped(scale, window.from + (place < low ? place - low : place - high), span);
}

/** Zoomed by a factor, with `place` staying where it is. */
export function zoomed(scale, window, factor, place) {
  const span = Math.max(scale.least, Math.min(scale.size * 1.04, (window.to - window.from) * factor));
  const share = (place - window.from) / (window.to - window.from);
  return clamped(scale, place - share * span, span);
}
