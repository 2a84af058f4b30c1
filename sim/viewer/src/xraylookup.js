// Look-ups in an X-ray, step by step; the same as sim/xray/lookup.py, which says what they return.
// A test runs both on the same data.

const OUTSIDE = {
  "below-start": (offset, start) => `Offset ${offset} is below the log start, ${start}: out of range.`,
  "at-end": (offset) => `Offset ${offset} is the log end: the next record will get it, nothing is there yet.`,
  "beyond-end": (offset, start, end) => `Offset ${offset} is behind the log end, ${end}: out of range.`,
  unknown: () => "There is no segment to look into.",
};

/** Look an offset up. */
export function lookup(data, offset) {
  const found = begin("offset", offset);
  const { segments, marks } = data;
  const start = marks.log_start.offset;
  const end = marks.log_end.offset;
  const verdict = outside(offset, start, end, segments.length > 0);
  if (verdict) {
    found.verdict = verdict;
    found.text = OUTSIDE[verdict](offset, start, end);
    return found;
  }
  const [number, probes] = bisect(segments.map((each) => each.base_offset), offset);
  found.segment_probes = probes;
  find(found, segments, Math.max(number, 0), offset);
  found.text = sentence(found, segments);
  return found;
}

/** Look for the first record, by offset, that is this late or later. */
export function lookupTime(data, timestampMs) {
  const anew = () => ({ ...begin("time", timestampMs), time_probes: [], time_anchor: null });
  let found = anew();
  const { segments, marks } = data;
  const start = marks.log_start.offset;
  found.verdict = "at-end";
  for (const [number, segment] of segments.entries()) {
    if (segment.max_timestamp_ms < timestampMs || segment.next_offset <= start) {
      found.segment_probes.push(passed(number, segment, "on"));
      continue;
    }
    const step = anew();
    step.segment_probes = [...found.segment_probes, passed(number, segment, "here")];
    const floor = Math.max(timeFloor(step, segment, timestampMs), start);
    anchor(step, segment, number, floor);
    scanTimes(step, segment, number, timestampMs, floor, start);
    if (step.verdict !== "at-end") {
      found = step;
      break;
    }
    found.segment_probes.push(passed(number, segment, "on"));
  }
  found.text = timeSentence(found, segments);
  return found;
}

// Steps -------------------------------------------------------------------------------------------

function begin(kind, target) {
  return {
    kind,
    target,
    verdict: "unknown",
    segment_probes: [],
    segment: null,
    probes: [],
    anchor: null,
    seek: null,
    batches: [],
    batches_scanned: 0,
    bytes_scanned: 0,
    records_scanned: 0,
    result: null,
    notes: [],
    text: "",
  };
}

function outside(offset, start, end, hasSegments) {
  if (offset < start) return "below-start";
  if (offset > end) return "beyond-end";
  if (offset === end) return "at-end";
  return hasSegments ? null : "unknown";
}

/** The last of rising values at or below a target, -1 for none, and the probes. */
export function bisect(values, target) {
  let low = 0;
  let high = values.length;
  const probes = [];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const goes = target < values[middle] ? "left" : "right";
    probes.push({ number: middle, value: values[middle], low, high, goes });
    if (goes === "left") high = middle;
    else low = middle + 1;
  }
  return [low - 1, probes];
}

function anchor(found, segment, number, offset) {
  found.segment = number;
  found.seek = 0;
  const { index } = segment;
  if (index === null) {
    found.notes.push("there is no offset index: reading begins at byte 0");
    return;
  }
  if (index.unusable) {
    found.notes.push(`${index.file}: ${index.unusable}: reading begins at byte 0`);
    return;
  }
  const { entries } = index;
  const [entry, probes] = bisect(entries.map((each) => each[0]), offset);
  found.probes = probes.map((each) => ({ ...each, position: entries[each.number][1] }));
  if (entry < 0) return;
  const [at, position] = entries[entry];
  if (!leads(segment, at, position)) {
    found.notes.push(
      `${index.file}: entry ${entry} does not lead to the batch of offset ${at}: it is not `
        + "believed, and reading begins at byte 0",
    );
    return;
  }
  found.anchor = { number: entry, offset: at, position };
  found.seek = position;
}

// Whether a batch with the entry's offset begins at its byte, as far as batches are listed.
function leads(segment, offset, position) {
  const [first, end] = segment.listed;
  if (!(first <= position && position < end)) return true;
  const row = segment.batches[firstFrom(segment.batches, position)];
  if (segment.format === "Kafka") return row[0] === position && row[2] <= offset;
  return row[0] === position && row[2] === offset;
}

// The number of the first batch that begins at a byte or behind it.
function firstFrom(batches, position) {
  let low = 0;
  let high = batches.length;
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (batches[middle][0] < position) low = middle + 1;
    else high = middle;
  }
  return low;
}

function find(found, segments, number, offset) {
  const segment = segments[number];
  anchor(found, segment, number, offset);
  if (!isListed(segment, found.seek)) {
    found.notes.push("the batches there are not listed");
    return;
  }
  const { batches } = segment;
  for (let each = firstFrom(batches, found.seek); each < batches.length; each += 1) {
    const row = batches[each];
    take(found, each, row);
    if (row[3] > offset) {
      found.records_scanned += before(row, offset) - row[6];
      end(found, number, each, row, offset);
      return;
    }
  }
  if (segment.listed[1] < segment.good_bytes) {
    found.notes.push("the batches behind are not listed");
    return;
  }
  if (number + 1 < segments.length) {
    found.notes.push(`${segment.file} ends before it: the next segment follows`);
    find(found, segments, number + 1, offset);
    return;
  }
  found.verdict = "hole";
}

function isListed(segment, position) {
  const [first, last] = segment.listed;
  return first <= position && (position < last || last >= segment.good_bytes);
}

function take(found, number, row) {
  found.batches.push(number);
  found.batches_scanned += 1;
  found.bytes_scanned += row[1];
  found.records_scanned += row[6];
}

// How many records of a batch are below an offset.
function before(row, offset) {
  if (row[7] !== null) return row[7].filter((each) => each[0] < offset).length;
  return Math.min(Math.max(offset - row[2], 0), row[6]);
}

function end(found, number, batch, row, offset) {
  const record = row[7] === null ? undefined : row[7].findLast((each) => each[0] === offset);
  const hasIt = row[7] === null ? row[2] <= offset : record !== undefined;
  found.verdict = hasIt ? "found" : "hole";
  found.result = {
    segment: number,
    batch,
    position: row[0],
    size_bytes: row[1],
    base_offset: row[2],
    next_offset: row[3],
    offset,
    timestamp_ms: record === undefined ? null : record[1],
  };
}

// By time -----------------------------------------------------------------------------------------

function passed(number, segment, goes) {
  return { number, value: segment.max_timestamp_ms, low: number, high: number + 1, goes };
}

function timeFloor(found, segment, timestampMs) {
  const base = segment.base_offset;
  const index = segment.time_index;
  if (index === null) {
    found.notes.push("there is no time index: the whole segment is read");
    return base;
  }
  if (index.unusable) {
    found.notes.push(`${index.file}: ${index.unusable}: the whole segment is read`);
    return base;
  }
  const { entries } = index;
  // Ours counts entries that are earlier, Kafka's those that are not later.
  const target = segment.format === "Kafka" ? timestampMs : timestampMs - 1;
  const [entry, probes] = bisect(entries.map((each) => each[0]), target);
  found.time_probes = probes.map((each) => ({ ...each, offset: entries[each.number][1] }));
  if (entry < 0) return base;
  const [at, offset] = entries[entry];
  found.time_anchor = { number: entry, timestamp_ms: at, offset };
  return offset;
}

function scanTimes(found, segment, number, timestampMs, floor, start) {
  if (!isListed(segment, found.seek)) {
    found.notes.push("the batches there are not listed");
    return;
  }
  const { batches } = segment;
  const isKafka = segment.format === "Kafka";
  for (let each = firstFrom(batches, found.seek); each < batches.length; each += 1) {
    const row = batches[each];
    take(found, each, row);
    // Storage hops to the batch that holds the floor; Kafka looks at all from the anchor on.
    if ((row[3] <= floor && !isKafka) || row[5] < timestampMs) continue;
    if (row[7] === null) {
      found.records_scanned -= row[6];
      end(found, number, each, row, row[2]);
      found.result.offset = null;
      found.verdict = "found";
      found.notes.push("the timestamps in the batch are not listed: only it is found");
      return;
    }
    const record = row[7].find(([offset, time]) => time >= timestampMs && offset >= start);
    if (record) {
      found.records_scanned += before(row, record[0]) - row[6];
      end(found, number, each, row, record[0]);
      return;
    }
  }
  if (segment.listed[1] < segment.good_bytes) {
    found.notes.push("the batches behind are not listed");
    return;
  }
  found.verdict = "at-end";
}

// Words -------------------------------------------------------------------------------------------

function count(number, noun) {
  const plural = noun.endsWith("ch") ? "es" : "s";
  return `${number} ${noun}${number === 1 ? "" : plural}`;
}

function sentence(found, segments) {
  if (found.segment === null) return found.text;
  const first = `${segments[found.segment].file}: ${opening(found)}`;
  if (found.result === null) return `${first} The answer is not in what is listed.`;
  return `${first} ${closing(found)}`;
}

function opening(found) {
  const probes = count(found.probes.length, "probe");
  if (found.anchor === null) return `${probes}, no entry: reading begins at byte 0.`;
  const { number, offset, position } = found.anchor;
  return `${probes}, entry ${number} (offset ${offset}): reading begins at byte ${position}.`;
}

function closing(found) {
  const gone = count(found.records_scanned, "record");
  const where = `the batch at byte ${found.result.position} (${count(found.batches_scanned, "batch")})`;
  if (found.verdict === "hole") return `${gone} passed; no record has the offset, ${where} is the next.`;
  return `${gone} passed, found in ${where}.`;
}

function timeSentence(found, segments) {
  if (found.segment === null) return `No record has a timestamp of ${found.target} ms or later.`;
  const { file } = segments[found.segment];
  const floor = found.time_anchor === null ? "no entry is early enough" : `offset ${found.time_anchor.offset}`;
  const probes = count(found.time_probes.length, "probe");
  const first = `${file}: ${probes} of the time index, ${floor}; ${opening(found)}`;
  if (found.result === null) return `${first} The answer is not in what is listed.`;
  const { offset } = found.result;
  const which = offset === null ? "The first record that is late enough" : `Offset ${offset}`;
  return `${first} ${which}: ${closing(found)}`;
}
