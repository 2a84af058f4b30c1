// Where an offset stands on the strips of one partition.
//
// A log that fits is drawn to scale, on an axis that stays the same for the whole run. A longer one
// is cut into runs at every offset where something happens in one of the logs (an epoch, a
// watermark, an end); a run grows with the logarithm of its length, so that what is one offset
// apart can still be told apart.
import { ticks } from "d3-array";

const UNIT_MOST = 38;
const UNIT_LEAST = 8;
const LEFT = 6;
const BREAKS_MOST = 4;
/** Room to the right of the last offset, for the label of the log end. */
export const RIGHT = 76;

/** An axis: {x(offset), offsetAt(x), unit, isLinear, labels: [[x, text, anchor]...], breaks: [[x0, x1, count]...]}. */
export function makeAxis(low, high, knots, width) {
  const room = Math.max(40, width - LEFT - RIGHT);
  const count = Math.max(1, high - low);
  return count * UNIT_LEAST <= room ? linear(low, high, room) : inRuns(low, high, knots, room);
}

function linear(low, high, room) {
  const count = Math.max(1, high - low);
  const unit = Math.min(UNIT_MOST, room / count);
  const x = (offset) => LEFT + (offset - low) * unit;
  const wanted = Math.max(1, Math.min(count, Math.floor((count * unit) / 48)));
  const marks = [...new Set([low, ...ticks(low, high, wanted).filter(Number.isInteger)])].filter((each) => each < high);
  return {
    x,
    unit,
    isLinear: true,
    breaks: [],
    labels: apart(marks.map((each) => [x(each) + Math.min(unit / 2, 10), each])),
    offsetAt: (place) => within(Math.floor((place - LEFT) / unit) + low, low, high),
  };
}

function inRuns(low, high, knots, room) {
  const borders = [...new Set([low, ...knots.filter((each) => each > low && each < high), high])].sort((one, other) => one - other);
  const sizes = [];
  for (let i = 1; i < borders.length; i += 1) {
    const count = borders[i] - borders[i - 1];
    sizes.push(Math.min(count * 10, 14 + 12 * Math.log2(count)));
  }
  const sum = sizes.reduce((one, other) => one + other, 0);
  const scale = Math.min(3, room / Math.max(1, sum));
  const places = [LEFT];
  for (const each of sizes) places.push(places[places.length - 1] + each * scale);
  const runOf = (offset) => {
    let run = 0;
    while (run < sizes.length - 1 && borders[run + 1] <= offset) run += 1;
    return run;
  };
  const x = (offset) => {
    const run = runOf(offset);
    const part = (offset - borders[run]) / Math.max(1, borders[run + 1] - borders[run]);
    return places[run] + part * (places[run + 1] - places[run]);
  };
  const breaks = [];
  for (let i = 0; i < sizes.length; i += 1) {
    const count = borders[i + 1] - borders[i];
    if ((places[i + 1] - places[i]) / count < 4 && places[i + 1] - places[i] > 26) breaks.push([places[i], places[i + 1], count]);
  }
  return {
    x,
    unit: 0,
    isLinear: false,
    // A sign at each of many runs would say no more than that the axis is not to scale.
    breaks: breaks.length > BREAKS_MOST ? [] : breaks,
    labels: apart(borders.map((each, i) => [places[i], each])),
    offsetAt: (place) => {
      let run = 0;
      while (run < sizes.length - 1 && places[run + 1] <= place) run += 1;
      const part = (place - places[run]) / Math.max(1, places[run + 1] - places[run]);
      return within(Math.floor(borders[run] + part * (borders[run + 1] - borders[run])), low, high);
    },
  };
}

function within(offset, low, high) {
  return Math.max(low, Math.min(high - 1, offset));
}

/** Labels as far as they do not run into each other; the first and the last come first. */
function apart(labels) {
  const kept = [];
  const wide = (each) => 10 + String(each[1]).length * 7;
  const take = (each) => {
    if (kept.every((other) => Math.abs(other[0] - each[0]) > (wide(each) + wide(other)) / 2)) kept.push(each);
  };
  if (labels.length) take(labels[labels.length - 1]);
  for (const each of labels) take(each);
  return kept;
}
