"""Looking at the indexes of a segment: their entries, and whether they lead where they say.

Entries are read one by one, so a file that claims gigabytes costs no memory; nothing of this uses
``storage.index``, which loads whole files.

Left out: what open does about a wrong index (``storage.segment_indexes``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, Final

from attrs import frozen

from storage.batch import OFFSET_END
from storage.disk import Disk, DiskFile
from storage.errors import CorruptBatch, DiskError
from storage.index import INDEX_FILE_MAX_BYTES, OffsetIndex, TimeIndex
from storage.inspection.audits import COMPLAINTS_MAX, OffsetAudit, RisingAudit, TimeAudit
from storage.inspection.segments import Measured, batches, measure
from storage.inspection.views import FileView, Options, Problem
from storage.read_only import opened

__all__ = ["IndexFile", "audit_indexes", "describe_index", "index_problems"]

CHUNK_BYTES: Final = 1 << 16


@frozen
class IndexFile:
    """An index file as it was when it was first looked at: a live one may grow meanwhile."""

    path: Path
    size_bytes: int

    @property
    def is_time(self) -> bool:
        """Whether it is a time index."""
        return ".timeindex" in self.path.name

    @property
    def entry(self) -> Struct:
        """The layout of an entry."""
        return TimeIndex.entry if self.is_time else OffsetIndex.entry

    @property
    def entry_count(self) -> int:
        """How many whole entries there are."""
        return self.size_bytes // self.entry.size


def index_entries(file: DiskFile, index: IndexFile) -> Iterator[tuple[int, int]]:
    """The whole entries of an index file, as they stand there."""
    size = index.entry.size
    end = index.entry_count * size
    chunk_bytes = CHUNK_BYTES // size * size
    for position in range(0, end, chunk_bytes):
        chunk = file.read_at(position, min(chunk_bytes, end - position))
        yield from index.entry.iter_unpack(chunk[: len(chunk) // size * size])


def audit_indexes(
    disk: Disk,
    found: Measured,
    options: Options,
    offsets: IndexFile | None,
    times: IndexFile | None,
    see: Callable[[int, int, int], None] | None = None,
    *,
    is_active: bool,
) -> tuple[OffsetAudit, TimeAudit]:
    """Compare the indexes of a measured segment with its good batches, in one pass.

    Args:
        offsets, times: None for one that is not there; its audit means nothing then.
        see: told base offset, next offset and epoch of each batch.
        is_active: the segment is its log's last: its time index has no closing entry yet.

    Raises:
        CorruptBatch: the log changed meanwhile.
        DiskError: a file cannot be read.
    """
    scan = found.scan
    with ExitStack() as files:

        def entries(index: IndexFile | None) -> Iterator[tuple[int, int]]:
            if index is None:
                return iter(())
            return index_entries(files.enter_context(opened(disk, index.path)), index)

        log = files.enter_context(opened(disk, found.path))
        interval = options.config.index_interval_bytes
        base_offset = scan.base_offset
        by_offset = OffsetAudit(entries(offsets), base_offset=base_offset, interval=interval)
        by_time = TimeAudit(entries(times), base_offset=base_offset, is_closed=not is_active)
        for position, facts, _ in batches(log, options.config, 0, scan.end_position):
            _, base, next_offset, epoch, timestamp_ms = facts
            is_indexed = by_offset.see(position, base)
            by_time.see(base, timestamp_ms, is_indexed=is_indexed, is_due=by_offset.is_due)
            if see is not None:
                see(base, next_offset, epoch)
        is_damaged = scan.fault is not None
        by_offset.finish(scan.end_position, is_damaged=is_damaged)
        is_right = offsets is not None and not by_offset.complaints and not by_offset.lack
        by_time.finish(scan.next_offset, is_damaged=is_damaged, trusts_index=is_right)
        return by_offset, by_time


def index_problems(
    index: IndexFile, audit: RisingAudit | None, *, may_lag: bool
) -> Iterator[Problem]:
    """What is wrong with an index file by itself, and by an audit of it.

    Args:
        may_lag: a process writes the segment: an entry may come a moment later than its batch.
    """
    name, size = index.path.name, index.entry.size
    if index.size_bytes % size:
        whole = index.size_bytes - index.size_bytes % size
        yield Problem(name, f"length {index.size_bytes} is not whole {size}s", whole)
    if index.size_bytes > INDEX_FILE_MAX_BYTES:
        yield Problem(name, f"{index.size_bytes} bytes, at most {INDEX_FILE_MAX_BYTES} are read")
    if audit is None:
        return
    for number, reason in sorted(audit.complaints.items()):
        yield Problem(name, f"entry {number}: {reason}", number * size)
    if audit.lack and not may_lag:
        yield Problem(name, audit.lack)


# The view --------------------------------------------------------------------------------------


def describe_index(
    disk: Disk,
    index: IndexFile,
    base_offset: int,
    options: Options,
    log: Path | None,
    *,
    is_kafka: bool,
    is_active: bool,
    is_live: bool,
) -> FileView:
    """An offset or time index, compared with its log where that is beside it.

    Args:
        log: the segment's log file, None where it is not there or not MKB1.
        is_kafka: the log is Kafka's: entries follow other rules, and are not judged.

    Raises:
        DiskError: it cannot be read.
    """
    columns = ("timestamp_ms", "offset") if index.is_time else ("offset", "position")
    kind = "time-index" if index.is_time else "offset-index"
    view = FileView(index.path, kind, index.size_bytes)
    view.columns = ("entry", *columns, "problem")
    view.facts = {"base_offset": base_offset, "compared_with": log.name if log else None}
    view.row_count = index.entry_count
    audit: RisingAudit | None = None
    if log is not None:
        audit = _compare(disk, view, index, log, base_offset, options, is_active=is_active)
    elif not is_kafka:
        with opened(disk, index.path) as file:
            audit = RisingAudit(index_entries(file, index))
            audit.read_all()
    shown = view.row_count
    if is_kafka:
        view.notes.append("beside a log in Kafka's format: not compared, and not judged")
        shown = _count_before_padding(disk, index)
        if shown < view.row_count:
            rest = f"{view.row_count - shown} more entries"
            view.notes.append(f"{rest} not shown: the first is zeros, as where Kafka preallocates")
    elif audit is not None and len(audit.complaints) >= COMPLAINTS_MAX:
        shown = audit.number + 1
        view.notes.append(f"{view.row_count - shown} more entries not looked at")
    view.problems = list(index_problems(index, audit, may_lag=is_live and is_active))
    complaints = audit.complaints if audit is not None else {}
    rows = islice(_rows(disk, index, base_offset, view, complaints), shown)
    wanted = (row for row in rows if row["offset"] >= options.from_offset)
    view.rows = islice(wanted, options.count)
    return view


def _count_before_padding(disk: Disk, index: IndexFile) -> int:
    """How many entries stand before the first of zeros that is not the index's first."""
    with opened(disk, index.path) as file:
        for number, entry in enumerate(index_entries(file, index)):
            if number and entry == (0, 0):
                return number
    return index.entry_count


def _compare(
    disk: Disk,
    view: FileView,
    index: IndexFile,
    log: Path,
    base_offset: int,
    options: Options,
    *,
    is_active: bool,
) -> RisingAudit | None:
    found = measure(
        disk,
        log,
        options.config,
        base_offset=base_offset,
        gaps_end=OFFSET_END,
        looks_ahead=False,
    )
    if found.scan.fault is not None:
        view.notes.append(f"{log.name} is damaged at byte {found.scan.end_position}")
    offsets = index
    if index.is_time:
        beside = index.path.with_name(index.path.name.replace(".timeindex", ".index"))
        offsets = IndexFile(beside, disk.stat(beside).size_bytes)
    try:
        by_offset, by_time = audit_indexes(
            disk,
            found,
            options,
            offsets if offsets.size_bytes else None,
            index if index.is_time else None,
            is_active=is_active,
        )
    except CorruptBatch as error:
        view.notes.append(f"not compared: {log.name} changed while it was read ({error})")
        return None
    if not index.is_time and by_offset.other_interval:
        view.notes.append(f"spaced for an index interval of {by_offset.other_interval}")
    return by_time if index.is_time else by_offset


def _rows(
    disk: Disk, index: IndexFile, base_offset: int, view: FileView, complaints: dict[int, str]
) -> Iterator[dict[str, Any]]:
    try:
        with opened(disk, index.path) as file:
            for number, (key, value) in enumerate(index_entries(file, index)):
                pair = (key, base_offset + value) if index.is_time else (base_offset + key, value)
                row = (number, *pair, complaints.get(number))
                yield dict(zip(view.columns, row, strict=True))
    except DiskError as error:
        reason = f"changed while it was read: {error}"
        view.late_problems.append(Problem(index.path.name, reason))
