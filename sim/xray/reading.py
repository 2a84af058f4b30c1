"""A log's directory as plain data: the X-ray.

``xray`` gives what JSON has and nothing else, so that the terminal and the page show the same;
every offset can be looked up in it as ``sim.xray.lookup`` does, with no further reading. The
shape, where ``[x, ...]`` is a list and a bar means "or"::

    {
     "v": 1,
     "path": text, "name": text,          the directory; below a run "b1/orders-0"
     "node": text|null,                   whose it is, of a run
     "format": "MKB1"|"Kafka"|"mixed"|"empty",
     "configuration": {
        "index_interval_bytes": N, "index_interval_source": text,
        "page_bytes": 4096,
        "measured": {"entries": N, "batches": N, "log_bytes": N, "records_listed": N,
                     "gap_bytes_least": N|null, "gap_bytes_most": N|null}},      between two entries
     "marks": {
        "log_start": {"offset": N, "source": text},
        "high_watermark": {"offset": N, "source": text}|null,
        "log_end": {"offset": N, "source": text},
        "durable_end": {"offset": N, "source": text}|null,
        "segment_bases": [N, ...]},
     "epochs": [[epoch, start_offset], ...],
     "batch_columns": ["position", "size_bytes", "base_offset", "next_offset", "leader_epoch",
                       "max_timestamp_ms", "record_count", "records"],
     "segments": [{
        "file": text, "format": "MKB1"|"Kafka"|"empty", "size_bytes": N,
        "base_offset": N, "next_offset": N,
        "batch_count": N, "good_bytes": N, "max_timestamp_ms": N, "is_active": bool,
        "damage": {"position": N, "size_bytes": N, "reason": text}|null,
        "index": null | {
            "file", "size_bytes", "entry_bytes": 8, "entries": [[offset, position], ...],
            "left_out": N, "padding_entries": N, "problems": [{"reason", "position": N|null}, ...],
            "has_more_problems": bool, "unusable": text|null},       why it is not searched
        "time_index": the same with "entry_bytes": 12, "entries": [[timestamp_ms, offset], ...],
        "listed": [position, end_position],           the batches below lie there, without a hole
        "batches": [[..., records], ...]}, ...],      records: [[offset, timestamp_ms], ...]|null
     "pages": {see sim.xray.pages},
     "directory": {see sim.xray.directory},
     "hex": [{see sim.xray.hexview}, ...],
     "book": [{"title": text, "text": text}, ...],    the analogy
     "transfer": {see sim.xray.transfer.paths},
     "notices": [text, ...]                           what was left out, what is damaged
    }

Offsets, positions and sizes are integers, ranges half-open, times milliseconds, -1 for none. Texts
may hold any characters of the directory's names: whoever shows them escapes them.

Left out: keys and values (``storage.dump`` shows them), and writing anything.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from sim.xray.book import BOOK
from sim.xray.directory import directory_table
from sim.xray.hexview import hex_views
from sim.xray.lookup import floor_of_offset, floor_of_time
from sim.xray.pages import page_maps
from sim.xray.pending import Pending
from sim.xray.segments import BATCH_COLUMNS, Segment, read_segment
from sim.xray.transfer import paths
from storage.config import LogConfig
from storage.disk import Disk, FileKind, OsDisk
from storage.epochs import EPOCH_FILE
from storage.errors import CorruptCheckpoint, DiskError
from storage.inspection.files import EPOCHS, text_rows
from storage.inspection.known import Known, known_state
from storage.inspection.look import SEGMENT_NAME, is_new
from storage.read_only import ReadOnlyDisk

__all__ = ["BATCHES_MAX", "xray"]

BATCHES_MAX: Final = 5_000
RECORDS_MAX: Final = 50_000
ENTRIES_MAX: Final = 50_000
HEX_MAX: Final = 8
SEGMENTS_MAX: Final = 1_000
_EPOCHS_MAX: Final = 1_000


@define
class _Work:
    """What the parts of one X-ray share."""

    disk: ReadOnlyDisk
    directory: Path
    config: LogConfig
    notices: list[str] = field(factory=list)
    segments: list[Segment] = field(factory=list)


def xray(
    path: Path,
    *,
    name: str | None = None,
    node: str | None = None,
    folder: str = "",
    pending: Pending | None = None,
    why_unknown: str | None = None,
    around: int | None = None,
    at_time_ms: int | None = None,
    batches_max: int = BATCHES_MAX,
    records_max: int = RECORDS_MAX,
    entries_max: int = ENTRIES_MAX,
    hex_at: int | None = None,
    hex_max: int = HEX_MAX,
    config: LogConfig | None = None,
    disk: Disk | None = None,
) -> dict[str, Any]:
    """What is in the directory of one log; see the module for the shape. Nothing is written.

    Args:
        name: what to call it; of a run, its place below the run's folder.
        node, folder: of a run, whose it is, and where it lies below that node's directory.
        pending: what the run's trace says is not durable (``sim.xray.pending``); without it, that
            is unknown, and ``why_unknown`` says why, where there is a run.
        around, at_time_ms: where not all batches are listed, list those from shortly before this
            offset, or the first record with this timestamp, on.
        batches_max, records_max, entries_max: so many batches and timestamps of records in all, and
            entries of each index; the rest is left out with a notice. 0 or more.
        hex_at: the offset whose batch is shown in hex; without it the first and last ones are.
        config: limits to read with; ``index_interval_bytes`` is what indexes are judged by.

    Raises:
        DiskError: the directory cannot be listed.
    """
    work = _Work(ReadOnlyDisk(disk or OsDisk()), path, config or _config_of(path, pending))
    names = work.disk.listdir(path)
    known = known_state(work.disk, path, is_new=is_new(names))
    work.notices += [f"{each.file}: {each.reason}" for each in known.problems]
    _read_segments(work, names, known, entries_max)
    data: dict[str, Any] = {
        "v": 1,
        "path": str(path),
        "name": name or path.name or str(path),
        "node": node,
        "format": _format(work.segments),
        "configuration": {},
        "marks": _marks(work.segments, known),
        "epochs": _epochs(work),
        "batch_columns": list(BATCH_COLUMNS),
        "segments": [each.plain for each in work.segments],
    }
    _list_batches(work, data, around, at_time_ms, batches_max, records_max)
    data["configuration"] = _configuration(work, config, pending)
    for each in work.segments:
        work.notices += [f"{problem.file}: {problem.reason}" for problem in each.problems]
    place = None if node is None else (node, folder)
    data["pages"] = page_maps(work.disk, path, names, data["segments"], pending, place)
    if why_unknown is not None:
        work.notices.append(why_unknown)
        data["pages"]["why_unknown"] = why_unknown
    data["directory"] = directory_table(work.disk, path, names, work.notices)
    data["hex"] = hex_views(work.disk, path, data, hex_at, hex_max)
    data["book"] = [dict(each) for each in BOOK]
    data["transfer"] = paths()
    data["notices"] = work.notices
    return data


def _config_of(path: Path, pending: Pending | None) -> LogConfig:
    interval = _interval_of(path, pending)
    return LogConfig() if interval is None else LogConfig(index_interval_bytes=interval)


def _interval_of(path: Path, pending: Pending | None) -> int | None:
    return None if pending is None else pending.index_interval_of(path.name.rpartition("-")[0])


def _read_segments(work: _Work, names: list[str], known: Known, entries_max: int) -> None:
    files = sorted(each for each in names if SEGMENT_NAME.match(each))
    if len(files) > SEGMENTS_MAX:
        work.notices.append(f"{len(files) - SEGMENTS_MAX} older segments are left out")
        files = files[-SEGMENTS_MAX:]
    for file in files:
        try:
            segment = read_segment(
                work.disk,
                work.directory / file,
                work.config,
                gaps_end=known.state.gaps_end,
                is_active=file == files[-1],
                entries_max=entries_max,
            )
        except DiskError as error:
            work.notices.append(f"{file}: cannot be read: {error}")
            continue
        work.segments.append(segment)
        damage = segment.plain["damage"]
        if damage is not None:
            work.notices.append(
                f"{file}: damaged at byte {damage['position']}: {damage['reason']}; "
                "what follows is not shown"
            )
        for key in ("index", "time_index"):
            index = segment.plain[key]
            if index is None:
                continue
            if index["unusable"]:
                work.notices.append(f"{index['file']}: not searched: {index['unusable']}")
            elif index["problems"]:
                work.notices.append(f"{index['file']}: {index['problems'][0]['reason']}")


def _format(segments: list[Segment]) -> str:
    formats = sorted({each.plain["format"] for each in segments if each.plain["size_bytes"]})
    if len(formats) > 1:
        return "mixed"
    return formats[0] if formats else "empty"


def _marks(segments: list[Segment], known: Known) -> dict[str, Any]:
    first = segments[0].base_offset if segments else 0
    told = known.state.log_start_offset
    start, source = first, "base of the first segment"
    if told is not None and told > first:
        start, source = told, "log-start-offset-checkpoint or durable boundary"
    mark, boundary = known.high_watermark, known.state.boundary
    end = segments[-1].plain["next_offset"] if segments else start
    return {
        "log_start": {"offset": start, "source": source},
        "high_watermark": None
        if mark is None
        else {"offset": mark, "source": "replication-offset-checkpoint, written now and then"},
        "log_end": {"offset": end, "source": "end of the last good batch"},
        "durable_end": None
        if boundary is None
        else {"offset": boundary.end_offset, "source": "durable boundary: raised behind an fsync"},
        "segment_bases": [each.base_offset for each in segments],
    }


def _epochs(work: _Work) -> list[list[int]]:
    found: list[list[int]] = []
    if work.disk.stat(work.directory / EPOCH_FILE).kind is not FileKind.FILE:
        return found
    try:
        for epoch, start in text_rows(work.disk, work.directory / EPOCH_FILE, EPOCHS):
            if len(found) >= _EPOCHS_MAX:
                work.notices.append(f"{EPOCH_FILE}: only {_EPOCHS_MAX} epochs are shown")
                break
            found.append([epoch, start])
    except (CorruptCheckpoint, DiskError) as error:
        work.notices.append(f"{EPOCH_FILE}: {error}")
    return found


def _list_batches(
    work: _Work,
    data: dict[str, Any],
    around: int | None,
    at_time_ms: int | None,
    batches_max: int,
    records_max: int,
) -> None:
    """Put the batches where they belong, as many as there is room for."""
    total = sum(each.plain["batch_count"] for each in work.segments)
    start = 0
    if total > batches_max:
        if around is None and at_time_ms is not None:
            around = floor_of_time(data, at_time_ms)
        start = 0 if around is None else floor_of_offset(data, around)
    room, listed = batches_max, 0
    records_left_out = 0
    for segment in work.segments:
        plain = segment.plain
        rows: list[list[Any]] = []
        plain["batches"] = rows
        plain["listed"] = [plain["good_bytes"], plain["good_bytes"]]
        if plain["next_offset"] <= start and plain["batch_count"]:
            continue
        if room <= 0:
            plain["listed"] = [0, 0]
            continue
        try:
            for row in segment.batches(work.disk, work.config, start):
                records, row[-1] = row[-1], None
                if records is not None and row[6] <= records_max:
                    row[-1] = list(records)
                    records_max -= len(row[-1])
                elif records is not None:
                    records_left_out += row[6]
                rows.append(row)
                room -= 1
                if room <= 0:
                    break
        except DiskError as error:
            work.notices.append(f"{segment.path.name}: cannot be read: {error}")
        listed += len(rows)
        end = rows[-1][0] + rows[-1][1] if rows else plain["good_bytes"]
        plain["listed"] = [rows[0][0] if rows else end, end]
    if listed < total:
        work.notices.append(f"{listed} of {total} batches are listed, from offset {start} on")
    if records_left_out:
        work.notices.append(f"the timestamps of {records_left_out} records are left out")


def _configuration(
    work: _Work, config: LogConfig | None, pending: Pending | None
) -> dict[str, Any]:
    gaps: list[int] = []
    entries = 0
    for segment in work.segments:
        index = segment.plain["index"]
        found = index["entries"] if index is not None else []
        entries += len(found)
        gaps += [b[1] - a[1] for a, b in pairwise(found)]
    source = "the default: the directory does not say"
    if config is not None:
        source = "as given"
    elif _interval_of(work.directory, pending) is not None:
        source = "the run's configuration"
    elif pending is not None:
        source = "the default: the run's configuration names no other"
    return {
        "index_interval_bytes": work.config.index_interval_bytes,
        "index_interval_source": source,
        "page_bytes": 4096,
        "measured": {
            "entries": entries,
            "batches": sum(each.plain["batch_count"] for each in work.segments),
            "log_bytes": sum(each.plain["size_bytes"] for each in work.segments),
            "records_listed": sum(
                row[6] for each in work.segments for row in each.plain["batches"]
            ),
            "gap_bytes_least": min(gaps, default=None),
            "gap_bytes_most": max(gaps, default=None),
        },
    }
