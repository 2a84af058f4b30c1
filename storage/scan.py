"""One pass over a segment's bytes: frames, CRC, continuity, epochs, and what the indexes must say.

Memory is one reused buffer, whatever the file's size; no record is decoded. A scan never changes a
file and never judges: it stops at the first frame that cannot be part of the log and says where
and why. ``storage.recovery`` decides what that means.

Left out: which bytes were durable, what to cut, what to refuse.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from attrs import Factory, define, frozen

from storage.batch import OFFSET_END
from storage.codec import Codec
from storage.config import LogConfig
from storage.disk import DiskFile
from storage.errors import CorruptBatch

__all__ = [
    "Fault",
    "GoodRange",
    "LookAhead",
    "Resume",
    "SegmentScan",
    "look_ahead",
    "ranges_behind",
    "scan_segment",
]

BUFFER_BYTES: Final = 1 << 19
GOOD_RANGES_MAX: Final = 16
INDEX_VALUE_MAX: Final = 2**31 - 1
SEARCH_END: Final = 2**32
"""No segment reaches further, and so no look-ahead, whatever a file's size claims."""


@frozen
class Fault:
    """Why a scan stopped before the end.

    Attributes:
        position: where the bad frame begins.
        reason: ``CorruptBatch.reason``, or ``offset-gap``, ``offset-back``, ``epoch-back``.
        detail: figures for people.
        frame_bytes: size of the frame where it is intact and only does not belong here, else 0.
    """

    position: int
    reason: str
    detail: str
    frame_bytes: int = 0

    @property
    def is_whole(self) -> bool:
        """Whether the frame itself is intact."""
        return self.frame_bytes > 0


@frozen
class Resume:
    """Where a scan may begin other than at byte 0: at a batch that the offset index names.

    Attributes:
        position: byte position of the batch.
        offset: its base offset.
        entries: how many offset index entries stay below it.
        time_entries: how many time index entries hold at or below it.
        max_timestamp_ms: the largest timestamp before it, -1 if none.
    """

    position: int
    offset: int
    entries: int
    time_entries: int
    max_timestamp_ms: int


@frozen
class GoodRange:
    """Whole, consecutive frames that look-ahead found behind damage."""

    position: int
    size_bytes: int
    base_offset: int
    next_offset: int


@define
class SegmentScan:
    """What one segment holds, as far as it is whole.

    Attributes:
        base_offset: from the file's name.
        file_size_bytes: of the ``.log`` file.
        start_position: where the scan began.
        end_position: behind the last good frame.
        next_offset: behind the last good batch; the base offset where there is none.
        last_position: where the last good frame begins, -1 for none.
        batches: good frames scanned.
        max_timestamp_ms: the largest timestamp up to the end, -1 if none.
        last_epoch: of the last good frame, or the epoch before the segment; -1 for none.
        epoch_starts: ``(epoch, base offset, position)`` wherever the epoch rose.
        offsets, positions: offset index entries from the start position on, relative offsets.
        timestamps, time_offsets: time index entries likewise.
        fault: why the scan stopped early, or None.
    """

    base_offset: int
    file_size_bytes: int
    start_position: int
    end_position: int
    next_offset: int
    last_position: int = -1
    batches: int = 0
    max_timestamp_ms: int = -1
    last_epoch: int = -1
    epoch_starts: list[tuple[int, int, int]] = Factory(list)
    offsets: array[int] = Factory(lambda: array("I"))
    positions: array[int] = Factory(lambda: array("I"))
    timestamps: array[int] = Factory(lambda: array("Q"))
    time_offsets: array[int] = Factory(lambda: array("I"))
    fault: Fault | None = None


def scan_segment(
    file: DiskFile,
    codec: Codec,
    config: LogConfig,
    *,
    base_offset: int,
    gaps_end: int = 0,
    latest_epoch: int = -1,
    resume: Resume | None = None,
    stop_at: int | None = None,
) -> SegmentScan:
    """Walk a segment file to its end or to the first frame that cannot follow.

    Args:
        gaps_end: offsets below this may be missing (compaction declared them gone).
        latest_epoch: epoch of the batch before the segment, -1 for none.
        resume: begin here instead of at byte 0.
        stop_at: look at the bytes before this position only.

    Raises:
        DiskError: the file cannot be read.
    """
    size_bytes = file.size()
    if stop_at is not None:
        size_bytes = min(size_bytes, stop_at)
    start = resume or Resume(0, base_offset, 0, 0, -1)
    scan = SegmentScan(base_offset, size_bytes, start.position, start.position, start.offset)
    scan.max_timestamp_ms = start.max_timestamp_ms
    scan.last_epoch = latest_epoch
    walk = _Walk(scan, codec, config, gaps_end, start.max_timestamp_ms)
    buffer = bytearray(max(1, min(BUFFER_BYTES, size_bytes - start.position)))
    while scan.fault is None and scan.end_position < size_bytes:
        position = scan.end_position
        wanted = min(len(buffer), size_bytes - position)
        count = file.read_into(position, memoryview(buffer)[:wanted])
        if count == 0:
            scan.fault = Fault(position, "torn", "the file became shorter while it was read")
            break
        is_tail = position + count >= size_bytes or count < wanted
        walk.run(buffer, count, position, is_tail=is_tail)
        if scan.end_position == position and scan.fault is None:
            buffer = bytearray(min(4 * len(buffer), max(BUFFER_BYTES, config.read_limit_bytes)))
    return scan


class _Walk:
    """The loop over the frames of one buffer after another; the results go into ``scan``."""

    __slots__ = ("check", "gaps_end", "interval", "max_batch_bytes", "scan", "time_floor")

    def __init__(
        self, scan: SegmentScan, codec: Codec, config: LogConfig, gaps_end: int, time_floor: int
    ) -> None:
        self.scan = scan
        self.check = codec.check
        self.interval = config.index_interval_bytes
        self.max_batch_bytes = config.read_limit_bytes
        self.gaps_end = gaps_end
        self.time_floor = time_floor

    def run(self, buffer: bytearray, count: int, file_position: int, *, is_tail: bool) -> None:
        """Take the whole frames among the first ``count`` bytes of ``buffer``.

        Stops without a fault at a frame that the buffer, but not the file, cuts off.
        """
        scan, check, limit = self.scan, self.check, self.max_batch_bytes
        view = memoryview(buffer)
        expected, epoch_before = scan.next_offset, scan.last_epoch
        largest, at, last = scan.max_timestamp_ms, 0, -1
        interval = self.interval
        due = scan.positions[-1] + interval if scan.positions else file_position
        batches = 0
        try:
            while at < count:
                size, base, next_offset, epoch, timestamp_ms = check(view, at, count, limit)
                if base != expected and not expected < base <= self.gaps_end:
                    scan.fault = _misplaced(file_position + at, base, expected, size)
                    break
                if epoch != epoch_before:
                    if epoch < epoch_before:
                        detail = f"epoch {epoch} behind epoch {epoch_before} at offset {base}"
                        scan.fault = Fault(file_position + at, "epoch-back", detail, size)
                        break
                    scan.epoch_starts.append((epoch, base, file_position + at))
                    epoch_before = epoch
                if next_offset >= OFFSET_END:
                    scan.fault = Fault(
                        file_position + at, "offset-end", "no offset is left behind it", size
                    )
                    break
                if file_position + at >= due:
                    if max(base - scan.base_offset, file_position + at) > INDEX_VALUE_MAX:
                        detail = f"batch {base} at byte {file_position + at} passes the index"
                        scan.fault = Fault(file_position + at, "offset-span", detail, size)
                        break
                    self._index(base, file_position + at, largest)
                    due = file_position + at + interval
                if timestamp_ms > largest:
                    largest = timestamp_ms
                expected = next_offset
                last = at
                at += size
                batches += 1
        except CorruptBatch as error:
            if error.reason != "torn" or is_tail:
                scan.fault = Fault(file_position + at, error.reason, error.detail)
        if last >= 0:
            scan.last_position = file_position + last
            scan.last_epoch = epoch_before
            scan.max_timestamp_ms = largest
            scan.next_offset = expected
            scan.batches += batches
        scan.end_position = file_position + at

    def _index(self, base: int, position: int, largest_before: int) -> None:
        scan = self.scan
        scan.offsets.append(base - scan.base_offset)
        scan.positions.append(position)
        if largest_before >= 0 and largest_before > self.time_floor:
            scan.timestamps.append(largest_before)
            scan.time_offsets.append(base - scan.base_offset)
            self.time_floor = largest_before


def _misplaced(position: int, base: int, expected: int, frame_bytes: int) -> Fault:
    reason = "offset-gap" if base > expected else "offset-back"
    return Fault(position, reason, f"batch {base} where {expected} must follow", frame_bytes)


class LookAhead(NamedTuple):
    """What lies behind damage: whole ranges, and whether the search saw everything."""

    ranges: tuple[GoodRange, ...]
    is_complete: bool


def ranges_behind(
    file: DiskFile, codec: Codec, config: LogConfig, fault: Fault, good_end: int
) -> tuple[GoodRange, ...]:
    """The whole ranges behind a fault, without the frame that the fault is about.

    A frame behind a gap counts where others follow it: then what lies between is missing.
    """
    ranges = look_ahead(file, codec, config, position=fault.position, min_offset=good_end).ranges
    if not ranges or ranges[0].position != fault.position:
        return ranges
    first = ranges[0]
    if first.size_bytes > fault.frame_bytes and fault.reason == "offset-gap":
        return ranges
    behind = fault.position + fault.frame_bytes
    return look_ahead(file, codec, config, position=behind, min_offset=good_end).ranges


def look_ahead(
    file: DiskFile, codec: Codec, config: LogConfig, *, position: int, min_offset: int
) -> LookAhead:
    """Whole frames at or behind ``position`` with offsets from ``min_offset`` on, as ranges.

    At most 16 ranges, none of them behind 4 GiB. The work is bounded by a multiple of the bytes
    searched, whatever they hold; where it ends early, there may be more.
    """
    file_size_bytes = file.size()
    size_bytes = min(file_size_bytes, SEARCH_END)
    budget = 4 * (size_bytes - position) + (64 << 20)
    ranges: list[GoodRange] = []
    skip_to = position
    for candidate in _find_magic(file, codec.magic, position, size_bytes):
        if candidate < skip_to:
            continue
        frame = file.read_at(candidate, min(config.read_limit_bytes, size_bytes - candidate, 4096))
        size, facts, spent = _check_at(file, codec, config, candidate, frame, size_bytes)
        budget -= spent
        if budget < 0:
            return LookAhead(tuple(ranges), False)
        if facts is None or facts[1] < min_offset:
            continue
        skip_to = candidate + size
        last = ranges[-1] if ranges else None
        if last and last.position + last.size_bytes == candidate and last.next_offset == facts[1]:
            ranges[-1] = GoodRange(
                last.position, last.size_bytes + size, last.base_offset, facts[2]
            )
        elif len(ranges) == GOOD_RANGES_MAX:
            return LookAhead(tuple(ranges), False)
        else:
            ranges.append(GoodRange(candidate, size, facts[1], facts[2]))
    return LookAhead(tuple(ranges), size_bytes == file_size_bytes)


def _check_at(
    file: DiskFile, codec: Codec, config: LogConfig, position: int, head: bytes, size_bytes: int
) -> tuple[int, tuple[int, int, int, int, int] | None, int]:
    """Size, facts (None if not whole) and bytes read of a possible frame."""
    if len(head) < codec.hop_bytes:
        try:
            facts = codec.check(head, 0, len(head), config.read_limit_bytes)
        except CorruptBatch:
            return 0, None, len(head)
        return facts[0], facts, len(head)
    frame = head
    try:
        size = codec.hop(head, 0)[0]
        if size > min(config.read_limit_bytes, size_bytes - position):
            return 0, None, len(head)
        if size > len(head):
            frame = file.read_at(position, size)
        facts = codec.check(memoryview(frame), 0, len(frame), config.read_limit_bytes)
    except CorruptBatch:
        # Not whole, or changed since its magic was found: a dump reads a log that others write.
        return 0, None, len(frame)
    return facts[0], facts, len(frame)


def _find_magic(file: DiskFile, magic: bytes, position: int, end: int) -> Iterator[int]:
    """Positions where ``magic`` stands, rising; none for a format without one."""
    if not magic:
        return
    overlap = len(magic) - 1
    while position < end:
        chunk = file.read_at(position, min(BUFFER_BYTES, end - position))
        at = chunk.find(magic)
        while at >= 0:
            yield position + at
            at = chunk.find(magic, at + 1)
        if len(chunk) <= overlap:
            return
        position += len(chunk) - overlap
