// What every view uses of preact, and how text from a trace is made safe to look at.
import { Fragment, h, render } from "preact";
import htm from "htm";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

export const html = htm.bind(h);
export { Fragment, h, render, useEffect, useLayoutEffect, useMemo, useRef, useState };

// Controls, bidirectional marks, other invisible signs and lone surrogates.
const UNSEEN =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** Text as it may be shown: what cannot be seen is written out, and what is huge is cut. */
export function clean(text, most = 2000) {
  let found = typeof text === "string" ? text : String(text);
  let rest = 0;
  if (found.length > most) {
    rest = found.length - most;
    found = found.slice(0, most);
  }
  found = found.replace(UNSEEN, (sign) => {
    const code = sign.charCodeAt(0);
    if (code === 10) return "\\n";
    if (code === 9) return "\\t";
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
  return rest ? `${found}… (${number(rest)} more characters)` : found;
}

/** A value of a field in few words: none, yes, 5, text, [b1 b2], {a: 1}. */
export function plain(value, most = 2000) {
  return clean(words(value, most), most);
}

function words(value, most) {
  if (value === null || value === undefined) return "none";
  if (value === true) return "yes";
  if (value === false) return "no";
  if (Array.isArray(value)) return value.length ? `[${listed(value.map((each) => [null, each]), most)}]` : "[]";
  if (typeof value === "object") {
    const entries = Object.entries(value);
    return entries.length ? `{${listed(entries, most)}}` : "{}";
  }
  return String(value);
}

function listed(entries, most) {
  const parts = [];
  let length = 0;
  for (const [key, value] of entries) {
    if (length > most) return `${parts.join(", ")}, …`;
    const part = key === null ? words(value, most) : `${key}: ${words(value, most)}`;
    parts.push(part);
    length += part.length + 2;
  }
  return parts.join(", ");
}

const GROUPED = new Intl.NumberFormat("en-US");

/** 12345 → 12,345 */
export function number(value) {
  return GROUPED.format(value);
}

/** Microseconds of virtual time → "3.500 s", with µs only where they are needed. */
export function time(us) {
  const sign = us < 0 ? "−" : "";
  const size = Math.abs(us);
  const whole = Math.floor(size / 1e6);
  const rest = String(size % 1e6).padStart(6, "0");
  const digits = rest.endsWith("000") ? rest.slice(0, 3) : `${rest.slice(0, 3)} ${rest.slice(3)}`;
  return `${sign}${number(whole)}.${digits} s`;
}

/** A span of time → "120 µs", "3.5 ms", "2 s". */
export function duration(us) {
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${+(us / 1000).toFixed(us < 1e4 ? 2 : 1)} ms`;
  return `${+(us / 1e6).toFixed(us < 1e7 ? 3 : 1)} s`;
}

/** "1 event", "3 events" */
export function counted(count, one, many = `${one}s`) {
  return `${number(count)} ${count === 1 ? one : many}`;
}

/** The width of an element in px, kept up to date; `[ref, width]`. */
export function useWidth(first = 800) {
  const ref = useRef(null);
  const [width, setWidth] = useState(first);
  useLayoutEffect(() => {
    const element = ref.current;
    if (!element) return undefined;
    // While it is hidden, as in print, it keeps the width that it had.
    const measure = () => element.clientWidth && setWidth(Math.max(1, Math.floor(element.clientWidth)));
    measure();
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
