"""Looking at one segment file: how far it is whole, and its batches one by one.

``measure`` is the pass that recovery makes, CRC and all; it tells how much of the file is good. The
batches are read in a second pass over what the first found whole, so the rules of a log stand in
one place (``storage.scan``). A file may change between the two where a process has the log open:
the second pass checks every frame again and ends where one is not what it was.

Left out: other files (``storage.inspection.files``), a log as a whole
(``storage.inspection.partitions``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import evolve, frozen

from storage.codec import FrameFacts
from storage.config import INT32_MAX, LogConfig
from storage.disk import Disk, DiskFile, LockState
from storage.errors import CorruptBatch, DiskError, FileMissing
from storage.inspection.views import (
    BatchRow,
    ChangedRow,
    Damage,
    DamageRow,
    GapRow,
    HeaderRow,
    Options,
    Problem,
    RecordRow,
    Row,
    SegmentView,
    Shown,
)
from storage.mkb1 import MKB1
from storage.mkb1_header import MAGIC, FrameHeader, peek_header
from storage.read_only import opened
from storage.scan import BUFFER_BYTES, GoodRange, SegmentScan, look_ahead, scan_segment

__all__ = [
    "Measured",
    "batches",
    "describe_segment",
    "is_kafka_log",
    "limited",
    "measure",
    "segment_rows",
    "with_ranges",
]

RANGES_MAX: Final = 1_000
HEADERS_MAX: Final = 16
_KAFKA_MAGIC_AT: Final = 16
_KAFKA_MAGIC: Final = 2


@frozen
class Measured:
    """What ``measure`` found in a segment file.

    Attributes:
        scan: without index entries.
        ranges: whole batches behind the fault.
    """

    path: Path
    scan: SegmentScan
    ranges: tuple[GoodRange, ...] = ()
    has_more_ranges: bool = False

    def damage(self, lock: LockState) -> Damage | None:
        """What is wrong, None for a whole file."""
        scan = self.scan
        if scan.fault is None:
            return None
        is_torn = scan.fault.reason == "torn" and not self.ranges
        return Damage(
            self.path.name,
            scan.end_position,
            scan.file_size_bytes - scan.end_position,
            f"{scan.fault.reason}: {scan.fault.detail}",
            scan.next_offset,
            self.ranges,
            self.has_more_ranges,
            is_unfinished=is_torn and lock.is_held is True,
        )


def is_kafka_log(disk: Disk, path: Path) -> bool:
    """Whether a file begins with a record batch of Kafka's (magic 2 at byte 16).

    Raises:
        DiskError: it cannot be read.
    """
    with opened(disk, path) as file:
        head = file.read_at(0, _KAFKA_MAGIC_AT + 1)
    return head[_KAFKA_MAGIC_AT:] == bytes([_KAFKA_MAGIC]) and not head.startswith(MAGIC)


def measure(
    disk: Disk,
    path: Path,
    config: LogConfig,
    *,
    base_offset: int | None,
    gaps_end: int,
    looks_ahead: bool = True,
) -> Measured:
    """Walk a segment file.

    Args:
        base_offset: None to take the first batch's.
        looks_ahead: search what is behind damage, too.

    Raises:
        DiskError: it cannot be read.
    """
    with opened(disk, path) as file:
        if base_offset is None:
            base_offset = _first_offset(file)
        # One index entry is enough: what indexes must hold is not asked of this scan.
        coarse = evolve(config, index_interval_bytes=INT32_MAX)
        scan = scan_segment(file, MKB1, coarse, base_offset=base_offset, gaps_end=gaps_end)
    if scan.fault is None or not looks_ahead:
        return Measured(path, scan)
    return with_ranges(disk, path, scan, config)


def with_ranges(disk: Disk, path: Path, scan: SegmentScan, config: LogConfig) -> Measured:
    """A scan that met a fault, with the whole ranges from there on, 1,000 at most."""
    ranges: list[GoodRange] = []
    position, is_complete = scan.end_position, False
    with opened(disk, path) as file:
        while len(ranges) < RANGES_MAX and not is_complete:
            found = look_ahead(file, MKB1, config, position=position, min_offset=scan.next_offset)
            is_complete = found.is_complete
            if not found.ranges:
                break
            ranges += found.ranges
            position = ranges[-1].position + ranges[-1].size_bytes
    has_more = not is_complete or len(ranges) > RANGES_MAX
    return Measured(path, scan, tuple(ranges[:RANGES_MAX]), has_more)


def _first_offset(file: DiskFile) -> int:
    try:
        return max(peek_header(file.read_at(0, 64)).base_offset, 0)
    except CorruptBatch:
        return 0


def batches(
    file: DiskFile, config: LogConfig, start: int, end: int
) -> Iterator[tuple[int, FrameFacts, memoryview]]:
    """Position, facts and bytes of each frame between two places of a file that was found whole.

    The bytes are gone when the next frame is asked for.

    Raises:
        CorruptBatch: a frame is not whole any more.
        DiskError: the file cannot be read.
    """
    check, limit = MKB1.check, config.read_limit_bytes
    buffer = bytearray(max(1, min(BUFFER_BYTES, end - start)))
    position = start
    while position < end:
        view = memoryview(buffer)
        wanted = min(len(buffer), end - position)
        count = file.read_into(position, view[:wanted])
        at = 0
        while at < count:
            try:
                facts = check(view, at, count, limit)
            except CorruptBatch as error:
                if error.reason != "torn" or count < wanted or position + count >= end:
                    raise
                break
            yield position + at, facts, view[at : at + facts[0]]
            at += facts[0]
        if count == 0:
            raise CorruptBatch("torn", f"the file ends at byte {position}")
        if at == 0:
            buffer = bytearray(min(4 * len(buffer), max(BUFFER_BYTES, limit)))
        position += at


# The view --------------------------------------------------------------------------------------


def describe_segment(
    disk: Disk,
    path: Path,
    options: Options,
    *,
    base_offset: int | None,
    gaps_end: int,
    lock: LockState,
) -> SegmentView:
    """One segment file, batch by batch.

    Raises:
        DiskError: it cannot be read.
    """
    found = measure(disk, path, options.config, base_offset=base_offset, gaps_end=gaps_end)
    scan = found.scan
    view = SegmentView(
        path=path,
        size_bytes=scan.file_size_bytes,
        base_offset=scan.base_offset,
        next_offset=scan.next_offset,
        batch_count=scan.batches,
        good_bytes=scan.end_position,
        first_epoch=scan.epoch_starts[0][0] if scan.epoch_starts else -1,
        last_epoch=scan.last_epoch,
        max_timestamp_ms=scan.max_timestamp_ms,
        lock=lock,
        damage=found.damage(lock),
        rows=iter(()),
    )
    rows = segment_rows(disk, found, options, lock, view.late_problems)
    view.rows = limited(rows, options.count)
    return view


def limited(rows: Iterator[Row], count: int | None) -> Iterator[Row]:
    """The rows up to the last of ``count`` batches; all for None."""
    left = count
    for row in rows:
        if isinstance(row, BatchRow) and left is not None:
            if left == 0:
                return
            left -= 1
        yield row


def segment_rows(
    disk: Disk, found: Measured, options: Options, lock: LockState, problems: list[Problem]
) -> Iterator[Row]:
    """The batches of a measured file, with gaps and damage in their places.

    What goes wrong while they are read is added to ``problems``.
    """
    scan, name = found.scan, found.path.name
    parts = [GoodRange(0, scan.end_position, scan.base_offset, scan.next_offset), *found.ranges]
    try:
        with opened(disk, found.path) as file:
            end = 0
            reason = f"{scan.fault.reason}: {scan.fault.detail}" if scan.fault else ""
            for number, part in enumerate(parts):
                # A whole batch that does not belong there is damage of no bytes.
                if part.position > end or number == 1:
                    yield DamageRow(end, part.position - end, reason)
                    reason = "no whole batch of this log"
                end = part.position + part.size_bytes
                yield from _part_rows(file, part, options, name, problems)
            if end < scan.file_size_bytes and not found.has_more_ranges:
                damage = found.damage(lock)
                is_unfinished = damage is not None and damage.is_unfinished
                yield DamageRow(end, scan.file_size_bytes - end, reason, is_unfinished)
    except (CorruptBatch, FileMissing) as error:
        yield ChangedRow(name, str(error))
        if not lock.is_held:
            problems.append(Problem(name, f"changed while it was read: {error}"))
    except DiskError as error:
        problems.append(Problem(name, f"cannot be read: {error}"))


def _part_rows(
    file: DiskFile, part: GoodRange, options: Options, name: str, problems: list[Problem]
) -> Iterator[Row]:
    expected = part.base_offset
    end = part.position + part.size_bytes
    for position, facts, frame in batches(file, options.config, part.position, end):
        _, base, next_offset, _, timestamp_ms = facts
        if next_offset > options.from_offset:
            if base > expected:
                yield GapRow(expected, base)
            row = _batch_row(position, peek_header(frame), timestamp_ms, options)
            if options.with_records:
                row = evolve(row, records=_records(bytes(frame), position, options, name, problems))
            yield row
        expected = next_offset


def _batch_row(
    position: int, header: FrameHeader, max_timestamp_ms: int, options: Options
) -> BatchRow:
    name = header.transactional_id[: options.shown_bytes_max]
    control = header.control
    return BatchRow(
        position,
        header.size_bytes,
        header.base_offset,
        header.next_offset,
        header.leader_epoch,
        header.record_count,
        max_timestamp_ms,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        Shown(header.id_bytes, name) if header.id_bytes else None,
        control.value if control is not None else None,
        header.flags,
        header.version,
    )


def _records(
    frame: bytes, position: int, options: Options, name: str, problems: list[Problem]
) -> Iterator[RecordRow]:
    try:
        batch = MKB1.decode(frame, options.config.read_limit_bytes)
    except CorruptBatch as error:
        # The CRC is right, so these bytes were written like that.
        problems.append(Problem(name, f"records do not decode: {error}", position))
        return
    limit = options.shown_bytes_max
    assert batch.base_offset is not None, "a decoded batch has its offset"
    for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
        headers = record.headers if options.is_full else record.headers[:HEADERS_MAX]
        shown = tuple(
            HeaderRow(_required(header.key.encode(), limit), _shown(header.value, limit))
            for header in headers
        )
        yield RecordRow(
            batch.base_offset + delta,
            record.timestamp_ms,
            _shown(record.key, limit),
            _shown(record.value, limit),
            len(record.headers),
            shown,
        )


def _required(data: bytes, limit: int | None) -> Shown:
    return Shown(len(data), data[:limit])


def _shown(data: bytes | None, limit: int | None) -> Shown | None:
    return None if data is None else _required(data, limit)
