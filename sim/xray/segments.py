"""One segment of a log as plain data: what it is, its two indexes, and its batches.

Segments of ours are measured with their checksums, and their indexes compared with their batches,
as ``storage.dump`` does it; those of Kafka's are walked by their headers.

Left out: the log as a whole (``sim.xray.reading``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from sim.xray.kafka_frames import KafkaFault, record_times, walk
from storage.config import LogConfig
from storage.disk import FileKind, LockState
from storage.errors import CorruptBatch, DiskError
from storage.inspection.indexes import IndexFile, audit_indexes, index_entries, index_problems
from storage.inspection.segments import Measured, is_kafka_log, measure, segment_rows
from storage.inspection.views import BatchRow, Options, Problem
from storage.read_only import ReadOnlyDisk, opened

__all__ = ["BATCH_COLUMNS", "Segment", "read_segment"]

BATCH_COLUMNS: Final = (
    "position",
    "size_bytes",
    "base_offset",
    "next_offset",
    "leader_epoch",
    "max_timestamp_ms",
    "record_count",
    "records",
)
_PROBLEMS_MAX: Final = 20


@define
class Segment:
    """A segment that was looked at; ``plain`` is what is said of it."""

    path: Path
    plain: dict[str, Any]
    measured: Measured | None = None
    problems: list[Problem] = field(factory=list)

    @property
    def base_offset(self) -> int:
        """The offset in its name."""
        return int(self.path.name[:20])

    def batches(
        self, disk: ReadOnlyDisk, config: LogConfig, from_offset: int
    ) -> Iterator[list[Any]]:
        """Its good batches that end behind an offset, in the order of ``BATCH_COLUMNS``.

        The records of each are an iterator, to be read before the next batch is asked for, or None.
        """
        if self.measured is None:
            yield from self._kafka_batches(disk, from_offset)
            return
        options = Options(with_records=True, from_offset=from_offset, config=config)
        for row in segment_rows(disk, self.measured, options, LockState(None), self.problems):
            if not isinstance(row, BatchRow) or row.position >= self.measured.scan.end_position:
                continue
            records = ([each.offset, each.timestamp_ms] for each in row.records or ())
            yield [
                row.position,
                row.size_bytes,
                row.base_offset,
                row.next_offset,
                row.leader_epoch,
                row.max_timestamp_ms,
                row.record_count,
                records,
            ]

    def _kafka_batches(self, disk: ReadOnlyDisk, from_offset: int) -> Iterator[list[Any]]:
        end = self.plain["good_bytes"]
        with opened(disk, self.path) as file:
            for batch in walk(disk, self.path):
                if batch.position >= end:
                    return
                if batch.next_offset <= from_offset:
                    continue
                records: list[list[int]] | None = None
                try:
                    frame = file.read_at(batch.position, batch.size_bytes)
                    records = record_times(batch, frame)
                except KafkaFault as fault:
                    reason = f"records do not decode: {fault}"
                    self.problems.append(Problem(self.path.name, reason, batch.position))
                yield [
                    batch.position,
                    batch.size_bytes,
                    batch.base_offset,
                    batch.next_offset,
                    batch.leader_epoch,
                    batch.max_timestamp_ms,
                    batch.record_count,
                    None if records is None else iter(records),
                ]


def read_segment(
    disk: ReadOnlyDisk,
    path: Path,
    config: LogConfig,
    *,
    gaps_end: int,
    is_active: bool,
    entries_max: int,
) -> Segment:
    """Look at a segment file and the indexes beside it.

    Raises:
        DiskError: the file cannot be read.
    """
    stat = disk.stat(path)
    if stat.kind is not FileKind.FILE:
        raise DiskError("read", path, "EINVAL", f"it is no regular file but a {stat.kind.value}")
    indexes = {
        suffix: _index_file(disk, path.with_suffix(suffix)) for suffix in (".index", ".timeindex")
    }
    if stat.size_bytes == 0:
        segment = Segment(path, _facts(path, "empty", 0))
    elif is_kafka_log(disk, path):
        segment = _kafka_segment(disk, path)
    else:
        segment = _own_segment(disk, path, config, gaps_end)
    segment.plain["is_active"] = is_active
    complaints = _audit(disk, segment, config, indexes, is_active=is_active)
    for key, suffix in (("index", ".index"), ("time_index", ".timeindex")):
        file = indexes[suffix]
        plain = None
        if file is not None:
            plain = _index(disk, segment, file, complaints.get(suffix, []), entries_max)
        segment.plain[key] = plain
    return segment


def _own_segment(disk: ReadOnlyDisk, path: Path, config: LogConfig, gaps_end: int) -> Segment:
    base = int(path.name[:20])
    found = measure(disk, path, config, base_offset=base, gaps_end=gaps_end, looks_ahead=False)
    scan = found.scan
    damage = found.damage(LockState(None))
    plain = _facts(path, "MKB1", scan.file_size_bytes)
    plain.update(
        next_offset=scan.next_offset,
        batch_count=scan.batches,
        good_bytes=scan.end_position,
        max_timestamp_ms=scan.max_timestamp_ms,
    )
    if damage is not None:
        plain["damage"] = _damage(damage.position, damage.size_bytes, damage.reason)
    return Segment(path, plain, found)


def _kafka_segment(disk: ReadOnlyDisk, path: Path) -> Segment:
    size = disk.stat(path).size_bytes
    plain = _facts(path, "Kafka", size)
    last, count, end, largest = int(path.name[:20]), 0, 0, -1
    try:
        for batch in walk(disk, path):
            last, end = batch.next_offset, batch.position + batch.size_bytes
            count, largest = count + 1, max(largest, batch.max_timestamp_ms)
    except KafkaFault as fault:
        plain["damage"] = _damage(end, size - end, str(fault))
    plain.update(next_offset=last, batch_count=count, good_bytes=end, max_timestamp_ms=largest)
    return Segment(path, plain)


def _facts(path: Path, frame_format: str, size: int) -> dict[str, Any]:
    return {
        "file": path.name,
        "format": frame_format,
        "size_bytes": size,
        "base_offset": int(path.name[:20]),
        "next_offset": int(path.name[:20]),
        "batch_count": 0,
        "good_bytes": 0,
        "max_timestamp_ms": -1,
        "damage": None,
    }


def _damage(position: int, size: int, reason: str) -> dict[str, Any]:
    return {"position": position, "size_bytes": size, "reason": reason}


# Indexes ---------------------------------------------------------------------------------------


def _index_file(disk: ReadOnlyDisk, path: Path) -> IndexFile | None:
    stat = disk.stat(path)
    return IndexFile(path, stat.size_bytes) if stat.kind is FileKind.FILE else None


def _audit(
    disk: ReadOnlyDisk,
    segment: Segment,
    config: LogConfig,
    indexes: dict[str, IndexFile | None],
    *,
    is_active: bool,
) -> dict[str, list[Problem]]:
    """What is wrong with the indexes beside a segment of ours."""
    found = segment.measured
    if found is None:
        return {}
    offsets, times = indexes[".index"], indexes[".timeindex"]
    try:
        audits = audit_indexes(
            disk, found, Options(config=config), offsets, times, is_active=is_active
        )
    except (CorruptBatch, DiskError) as error:
        segment.problems.append(Problem(segment.path.name, f"changed while it was read: {error}"))
        return {}
    complaints = {}
    for suffix, audit in zip((".index", ".timeindex"), audits, strict=True):
        file = indexes[suffix]
        if file is not None:
            problems = index_problems(file, audit, may_lag=False)
            complaints[suffix] = list(islice(problems, _PROBLEMS_MAX + 1))
    return complaints


def _index(
    disk: ReadOnlyDisk,
    segment: Segment,
    file: IndexFile,
    problems: list[Problem],
    entries_max: int,
) -> dict[str, Any]:
    base = segment.base_offset
    entries: list[list[int]] = []
    padding = left_out = 0
    try:
        with opened(disk, file.path) as handle:
            for number, (key, value) in enumerate(index_entries(handle, file)):
                if number and (key, value) == (0, 0) and segment.measured is None:
                    padding = file.entry_count - number
                    break
                if number >= entries_max:
                    left_out = file.entry_count - number
                    break
                entries.append([key, base + value] if file.is_time else [base + key, value])
    except DiskError as error:
        problems.append(Problem(file.path.name, f"cannot be read: {error}"))
    told = [{"reason": each.reason, "position": each.position} for each in problems[:_PROBLEMS_MAX]]
    fault = _fault(entries, left_out, segment.plain["size_bytes"], is_time=file.is_time)
    return {
        "file": file.path.name,
        "size_bytes": file.size_bytes,
        "entry_bytes": file.entry.size,
        "entries": entries,
        "left_out": left_out,
        "padding_entries": padding,
        "problems": told,
        "has_more_problems": len(problems) > len(told),
        "unusable": fault,
    }


def _fault(entries: list[list[int]], left_out: int, size: int, *, is_time: bool) -> str | None:
    """Why a binary search over the entries cannot be trusted; None where it can."""
    if left_out:
        return f"{left_out} entries were left out here, so it cannot be searched"
    for number in range(1, len(entries)):
        before, entry = entries[number - 1], entries[number]
        # Kafka's own time index may close with a second entry of the same time.
        falls = entry[0] < before[0] or entry[1] < before[1]
        if falls or (not is_time and entry == before):
            return f"entry {number} does not rise"
    if not is_time and entries and entries[-1][1] >= max(size, 1):
        return f"entry {len(entries) - 1} leads to byte {entries[-1][1]}, the log has {size}"
    return None
