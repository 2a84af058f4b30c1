"""Look-ups in the plain data of ``sim.xray.reading``, step by step: by offset, and by time.

The steps are those of storage: a bisection finds the segment, another the last index entry at or
below the offset, then headers are hopped over from the byte that it names. ``lookup`` returns::

    {
     "kind": "offset", "target": N,
     "verdict": "found"|"hole"|"below-start"|"at-end"|"beyond-end"|"unknown",
     "segment_probes": [{"number", "value": base_offset, "low", "high", "goes": "left"|"right"}...],
     "segment": number|null,                       where it lies: a number in "segments"
     "probes": [{"number", "value": offset, "position", "low", "high", "goes"}, ...],
     "anchor": {"number", "offset", "position"}|null,    the entry; null: the segment's beginning
     "seek": position|null,                        where reading begins
     "batches": [number, ...],                     in "batches": hopped over, the found one last
     "batches_scanned": N, "bytes_scanned": N, "records_scanned": N,
     "result": {"segment", "batch", "position", "size_bytes", "base_offset", "next_offset",
                "offset", "timestamp_ms": N|null}|null,
     "notes": [text, ...], "text": text}           all of it in a sentence

``low`` and ``high`` are the half-open range of entries that is left before the probe. A probe that
goes right keeps the entry as the best so far. ``records_scanned`` counts the records from where
reading begins up to the one that was looked for, without it. An index that does not rise, or leads
past the file, is not searched, and one whose entry does not lead to its batch is not believed:
reading begins at byte 0 then. Storage rebuilds it at this point.

``lookup_time`` returns the same with ``"kind": "time"``, ``time_probes`` and ``time_anchor``: the
time index tells an offset below which no record is that late, the offset index leads there, and the
records are looked at in order. Of a batch whose timestamps are not listed, only the batch is found.
A segment without any timestamp that late is passed over. Kafka's time index names the record that
has the timestamp, so there an entry of exactly the time counts; ours names the offset below which
all are earlier.

Kafka bisects the end of its index first, which is warm in the page cache; it finds the same entry.

Left out: reading anything: a look-up that would need batches that are not listed is "unknown".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["floor_of_offset", "floor_of_time", "lookup", "lookup_time"]

Plain = dict[str, Any]


def lookup(data: Plain, offset: int) -> Plain:
    """Look an offset up; see the module."""
    found = _new("offset", offset)
    segments = data["segments"]
    start, end = data["marks"]["log_start"]["offset"], data["marks"]["log_end"]["offset"]
    verdict = _outside(offset, start, end, bool(segments))
    if verdict is not None:
        found["verdict"] = verdict
        found["text"] = _OUTSIDE[verdict].format(offset=offset, start=start, end=end)
        return found
    number, found["segment_probes"] = _bisect([each["base_offset"] for each in segments], offset)
    _find(found, segments, max(number, 0), offset)
    found["text"] = _sentence(found, segments)
    return found


def lookup_time(data: Plain, timestamp_ms: int) -> Plain:
    """Look for the first record, by offset, that is this late or later; see the module."""
    found = _new("time", timestamp_ms) | {"time_probes": [], "time_anchor": None}
    segments = data["segments"]
    start = data["marks"]["log_start"]["offset"]
    found["verdict"] = "at-end"
    for number, segment in enumerate(segments):
        if segment["max_timestamp_ms"] < timestamp_ms or segment["next_offset"] <= start:
            found["segment_probes"] = [*found["segment_probes"], _passed(number, segment, "on")]
            continue
        step = _new("time", timestamp_ms) | {"time_probes": [], "time_anchor": None}
        step["segment_probes"] = [*found["segment_probes"], _passed(number, segment, "here")]
        floor = _time_floor(step, segment, timestamp_ms)
        _anchor(step, segment, number, max(floor, start))
        _scan_times(step, segment, number, timestamp_ms, max(floor, start), start)
        if step["verdict"] != "at-end":
            found = step
            break
        found["segment_probes"] = [*found["segment_probes"], _passed(number, segment, "on")]
    found["text"] = _time_sentence(found, segments)
    return found


def floor_of_offset(data: Plain, offset: int) -> int:
    """The offset from which batches must be listed, so that a look-up of ``offset`` is answered."""
    segments = data["segments"]
    number, _ = _bisect([each["base_offset"] for each in segments], offset)
    if number < 0:
        return 0
    index = segments[number]["index"]
    entries = index["entries"] if index and not index["unusable"] else []
    entry, _ = _bisect([each[0] for each in entries], offset)
    # One entry more, to have something in front of it.
    base: int = segments[number]["base_offset"]
    return int(entries[entry - 1][0]) if entry > 0 else base


def floor_of_time(data: Plain, timestamp_ms: int) -> int:
    """The same for a look-up by time."""
    for segment in data["segments"]:
        if segment["max_timestamp_ms"] >= timestamp_ms:
            step: Plain = {"time_probes": [], "time_anchor": None, "notes": []}
            return floor_of_offset(data, _time_floor(step, segment, timestamp_ms))
    return 0


# Steps -----------------------------------------------------------------------------------------

_OUTSIDE = {
    "below-start": "Offset {offset} is below the log start, {start}: out of range.",
    "at-end": "Offset {offset} is the log end: the next record will get it, nothing is there yet.",
    "beyond-end": "Offset {offset} is behind the log end, {end}: out of range.",
    "unknown": "There is no segment to look into.",
}


def _new(kind: str, target: int) -> Plain:
    return {
        "kind": kind,
        "target": target,
        "verdict": "unknown",
        "segment_probes": [],
        "segment": None,
        "probes": [],
        "anchor": None,
        "seek": None,
        "batches": [],
        "batches_scanned": 0,
        "bytes_scanned": 0,
        "records_scanned": 0,
        "result": None,
        "notes": [],
        "text": "",
    }


def _outside(offset: int, start: int, end: int, has_segments: bool) -> str | None:
    if offset < start:
        return "below-start"
    if offset > end:
        return "beyond-end"
    if offset == end:
        return "at-end"
    return None if has_segments else "unknown"


def _bisect(values: Sequence[int], target: int) -> tuple[int, list[Plain]]:
    """The last of rising values at or below a target, -1 for none, and the probes."""
    low, high = 0, len(values)
    probes = []
    while low < high:
        middle = (low + high) // 2
        goes = "left" if target < values[middle] else "right"
        probes.append(
            {"number": middle, "value": values[middle], "low": low, "high": high, "goes": goes}
        )
        if goes == "left":
            high = middle
        else:
            low = middle + 1
    return low - 1, probes


def _anchor(found: Plain, segment: Plain, number: int, offset: int) -> None:
    """Search the offset index: where reading begins."""
    found["segment"], found["seek"] = number, 0
    index = segment["index"]
    if index is None:
        found["notes"].append("there is no offset index: reading begins at byte 0")
        return
    if index["unusable"]:
        found["notes"].append(f"{index['file']}: {index['unusable']}: reading begins at byte 0")
        return
    entries = index["entries"]
    entry, probes = _bisect([each[0] for each in entries], offset)
    found["probes"] = [each | {"position": entries[each["number"]][1]} for each in probes]
    if entry < 0:
        return
    at, position = entries[entry]
    if not _leads(segment, at, position):
        found["notes"].append(
            f"{index['file']}: entry {entry} does not lead to the batch of offset {at}: it is not "
            "believed, and reading begins at byte 0"
        )
        return
    found["anchor"] = {"number": entry, "offset": at, "position": position}
    found["seek"] = position


def _leads(segment: Plain, offset: int, position: int) -> bool:
    """Whether a batch with the entry's offset begins at its byte, as far as batches are listed."""
    first, end = segment["listed"]
    if not first <= position < end:
        return True
    number = _first_from(segment["batches"], position)
    row = segment["batches"][number]
    if segment["format"] == "Kafka":
        # Kafka indexes what was appended at once, maybe several batches, by its last offset.
        return bool(row[0] == position and row[2] <= offset)
    return bool(row[0] == position and row[2] == offset)


def _first_from(batches: list[list[Any]], position: int) -> int:
    """The number of the first batch that begins at a byte or behind it."""
    low, high = 0, len(batches)
    while low < high:
        middle = (low + high) // 2
        if batches[middle][0] < position:
            low = middle + 1
        else:
            high = middle
    return low


def _find(found: Plain, segments: list[Plain], number: int, offset: int) -> None:
    """Hop to the first batch that ends behind the offset; the next segment has it behind a hole."""
    segment = segments[number]
    _anchor(found, segment, number, offset)
    if not _is_listed(segment, found["seek"]):
        found["notes"].append("the batches there are not listed")
        return
    batches = segment["batches"]
    for each in range(_first_from(batches, found["seek"]), len(batches)):
        row = batches[each]
        _take(found, each, row)
        if row[3] > offset:
            found["records_scanned"] += _before(row, offset) - row[6]
            _found(found, number, each, row, offset)
            return
    if segment["listed"][1] < segment["good_bytes"]:
        found["notes"].append("the batches behind are not listed")
        return
    if number + 1 < len(segments):
        found["notes"].append(f"{segment['file']} ends before it: the next segment follows")
        _find(found, segments, number + 1, offset)
        return
    found["verdict"] = "hole"


def _is_listed(segment: Plain, position: int) -> bool:
    first, end = segment["listed"]
    return bool(first <= position and (position < end or end >= segment["good_bytes"]))


def _take(found: Plain, number: int, row: list[Any]) -> None:
    found["batches"].append(number)
    found["batches_scanned"] += 1
    found["bytes_scanned"] += row[1]
    found["records_scanned"] += row[6]


def _before(row: list[Any], offset: int) -> int:
    """How many records of a batch are below an offset."""
    if row[7] is not None:
        return sum(1 for each in row[7] if each[0] < offset)
    passed: int = max(offset - row[2], 0)
    return min(passed, int(row[6]))


def _found(found: Plain, number: int, batch: int, row: list[Any], offset: int) -> None:
    times = {each[0]: each[1] for each in row[7]} if row[7] is not None else None
    has_it = row[2] <= offset if times is None else offset in times
    found["verdict"] = "found" if has_it else "hole"
    found["result"] = {
        "segment": number,
        "batch": batch,
        "position": row[0],
        "size_bytes": row[1],
        "base_offset": row[2],
        "next_offset": row[3],
        "offset": offset,
        "timestamp_ms": times.get(offset) if times is not None else None,
    }


# By time ---------------------------------------------------------------------------------------


def _passed(number: int, segment: Plain, goes: str) -> Plain:
    largest = segment["max_timestamp_ms"]
    return {"number": number, "value": largest, "low": number, "high": number + 1, "goes": goes}


def _time_floor(found: Plain, segment: Plain, timestamp_ms: int) -> int:
    """Search the time index: an offset below which no record is that late."""
    base: int = segment["base_offset"]
    index = segment["time_index"]
    if index is None:
        found["notes"].append("there is no time index: the whole segment is read")
        return base
    if index["unusable"]:
        found["notes"].append(f"{index['file']}: {index['unusable']}: the whole segment is read")
        return base
    entries = index["entries"]
    # Ours counts entries that are earlier, Kafka's those that are not later.
    target = timestamp_ms if segment["format"] == "Kafka" else timestamp_ms - 1
    entry, probes = _bisect([each[0] for each in entries], target)
    found["time_probes"] = [each | {"offset": entries[each["number"]][1]} for each in probes]
    if entry < 0:
        return base
    at, offset = entries[entry]
    found["time_anchor"] = {"number": entry, "timestamp_ms": at, "offset": offset}
    return int(offset)


def _scan_times(
    found: Plain, segment: Plain, number: int, timestamp_ms: int, floor: int, start: int
) -> None:
    """Read records from the anchor on until one is late enough."""
    if not _is_listed(segment, found["seek"]):
        found["notes"].append("the batches there are not listed")
        return
    batches = segment["batches"]
    is_kafka = segment["format"] == "Kafka"
    for each in range(_first_from(batches, found["seek"]), len(batches)):
        row = batches[each]
        _take(found, each, row)
        # Storage hops to the batch that holds the floor; Kafka looks at all from the anchor on.
        if (row[3] <= floor and not is_kafka) or row[5] < timestamp_ms:
            continue
        if row[7] is None:
            found["records_scanned"] -= row[6]
            _found(found, number, each, row, row[2])
            found["result"]["offset"] = None
            found["verdict"] = "found"
            found["notes"].append("the timestamps in the batch are not listed: only it is found")
            return
        for offset, time in row[7]:
            if time >= timestamp_ms and offset >= start:
                found["records_scanned"] += _before(row, offset) - row[6]
                _found(found, number, each, row, offset)
                return
    if segment["listed"][1] < segment["good_bytes"]:
        found["notes"].append("the batches behind are not listed")
        return
    found["verdict"] = "at-end"


# Words -----------------------------------------------------------------------------------------


def _count(number: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{number} {noun}{'' if number == 1 else plural}"


def _sentence(found: Plain, segments: list[Plain]) -> str:
    if found["segment"] is None:
        return str(found["text"])
    name = segments[found["segment"]]["file"]
    begin = f"{name}: {_begin(found)}"
    if found["result"] is None:
        return f"{begin} The answer is not in what is listed."
    return f"{begin} {_end(found)}"


def _begin(found: Plain) -> str:
    anchor = found["anchor"]
    if anchor is None:
        return f"{_count(len(found['probes']), 'probe')}, no entry: reading begins at byte 0."
    probes = _count(len(found["probes"]), "probe")
    return (
        f"{probes}, entry {anchor['number']} (offset {anchor['offset']}): "
        f"reading begins at byte {anchor['position']}."
    )


def _end(found: Plain) -> str:
    result = found["result"]
    passed = _count(found["records_scanned"], "record")
    where = f"the batch at byte {result['position']} ({_count(found['batches_scanned'], 'batch')})"
    if found["verdict"] == "hole":
        return f"{passed} passed; no record has the offset, {where} is the next."
    return f"{passed} passed, found in {where}."


def _time_sentence(found: Plain, segments: list[Plain]) -> str:
    if found["segment"] is None:
        return f"No record has a timestamp of {found['target']} ms or later."
    name = segments[found["segment"]]["file"]
    anchor = found["time_anchor"]
    floor = "no entry is early enough" if anchor is None else f"offset {anchor['offset']}"
    probes = _count(len(found["time_probes"]), "probe")
    begin = f"{name}: {probes} of the time index, {floor}; {_begin(found)}"
    if found["result"] is None:
        return f"{begin} The answer is not in what is listed."
    offset = found["result"]["offset"]
    which = "the first record that is late enough" if offset is None else f"offset {offset}"
    return f"{begin} {which[0].upper()}{which[1:]}: {_end(found)}"
