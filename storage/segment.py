"""One segment: a ``.log`` file of whole frames and its two sparse indexes.

The last segment of a log is active and takes appends; the others are closed and never change. A
closed segment opens its files on first use. Its log file is the truth; an index that proves wrong
is rebuilt from it on the spot and noted in ``rebuilt``.

Left out: offsets across segments, epochs, rolling policy, durability (``storage.partition_log``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from storage.batch import OFFSET_END, RecordBatch
from storage.codec import Codec, FrameFacts
from storage.config import INT32_MAX, LogConfig
from storage.disk import Disk, DiskFile, FileKind, OsDisk
from storage.errors import (
    CorruptBatch,
    CorruptIndex,
    CorruptLog,
    DiskError,
    FileMissing,
    NotRegularFile,
    StorageError,
)
from storage.index import OffsetIndex, TimeIndex
from storage.mkb1 import MKB1
from storage.scan import Resume, SegmentScan, find_good_ranges, scan_segment
from storage.state import SegmentSeal

__all__ = ["Segment", "segment_stem"]

IndexT = TypeVar("IndexT", OffsetIndex, TimeIndex)

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"


def segment_stem(base_offset: int) -> str:
    """The twenty-digit file stem of a segment: 2 is ``00000000000000000002``."""
    if not 0 <= base_offset < OFFSET_END:
        raise ValueError(f"base offset is {base_offset}, allowed is 0..2^63-1")
    return f"{base_offset:020d}"


class Segment:
    """See the module. Made by ``create`` or ``open``; a log adopts what a scan or a seal says."""

    __slots__ = (
        "_file",
        "_index",
        "_index_due",
        "_on_open",
        "_time_index",
        "base_offset",
        "codec",
        "config",
        "created_ms",
        "directory",
        "disk",
        "expires_ms",
        "hint",
        "is_active",
        "last_position",
        "log_path",
        "max_timestamp_ms",
        "next_offset",
        "rebuilt",
        "size_bytes",
        "size_limit_bytes",
        "writes",
    )

    def __init__(
        self, disk: Disk, directory: Path, base_offset: int, config: LogConfig, codec: Codec
    ) -> None:
        self.disk = disk
        self.config = config
        self.codec = codec
        self._file: DiskFile | None = None
        self._index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._index_due = 0
        self.hint = (-1, 0)
        self._on_open: Callable[[Segment], None] | None = None
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = directory / (segment_stem(base_offset) + LOG_SUFFIX)
        self.size_bytes = 0
        self.size_limit_bytes = config.segment_max_bytes
        self.next_offset = base_offset
        self.last_position = -1
        self.max_timestamp_ms = -1
        self.expires_ms = OFFSET_END
        self.created_ms: int | None = None
        self.writes = 0
        self.is_active = False
        self.rebuilt: list[str] = []

    # Making one --------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        *,
        disk: Disk | None = None,
        codec: Codec = MKB1,
    ) -> Segment:
        """A new, empty segment. Files that bear its names go first."""
        segment = cls(disk or OsDisk(), directory, base_offset, config, codec)
        for path in segment.paths:
            if segment.disk.stat(path).kind is not FileKind.MISSING:
                segment.disk.unlink(path)
        segment._file = segment.disk.open(segment.log_path, create=True)
        segment._index = OffsetIndex.create(segment.index_path, base_offset, disk=segment.disk)
        segment._time_index = TimeIndex.create(
            segment.time_index_path, base_offset, disk=segment.disk
        )
        segment.writes = 1
        segment.is_active = True
        return segment

    @classmethod
    def open(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig | None = None,
        *,
        active: bool,
        disk: Disk | None = None,
        codec: Codec = MKB1,
    ) -> Segment:
        """Scan a segment file by itself, rebuild its indexes where they differ, and open it.

        The active segment is cut behind its last whole frame; a closed one must be whole. A log
        as a whole knows more (its durable boundary): ``PartitionLog.open`` refuses where this
        would cut.

        Raises:
            CorruptLog: a closed segment is damaged.
            DiskError: a file is missing or cannot be read.
        """
        segment = cls(disk or OsDisk(), directory, base_offset, config or LogConfig(), codec)
        file = segment.file()
        scan = scan_segment(file, codec, segment.config, base_offset=base_offset)
        if scan.fault is not None:
            if not active:
                raise segment.damage(scan)
            file.truncate(scan.end_position)
        segment.adopt(scan, None, is_active=active)
        return segment

    def adopt(self, scan: SegmentScan, resume: Resume | None, *, is_active: bool) -> None:
        """Take over what a scan found (its good part) and bring the indexes in line with it."""
        self.size_bytes = scan.end_position
        self.next_offset = scan.next_offset
        self.last_position = scan.last_position
        self.max_timestamp_ms = scan.max_timestamp_ms
        keys, values = scan.offsets, scan.positions
        times, marks = scan.timestamps, scan.time_offsets
        if resume is not None:
            assert self._index is not None
            assert self._time_index is not None
            keys = self._index.keys[: resume.entries] + keys
            values = self._index.values[: resume.entries] + values
            times = self._time_index.keys[: resume.time_entries] + times
            marks = self._time_index.values[: resume.time_entries] + marks
        if not is_active and scan.max_timestamp_ms > (times[-1] if times else -1):
            times = times + array("Q", [scan.max_timestamp_ms])
            marks = marks + array("I", [scan.next_offset - self.base_offset])
        self._index = self._matching(OffsetIndex, self.index_path, keys, values)
        self._time_index = self._matching(TimeIndex, self.time_index_path, times, marks)
        if is_active:
            self._become_active()

    def _matching(
        self, kind: type[IndexT], path: Path, keys: array[int], values: array[int]
    ) -> IndexT:
        """The index with these entries, rewriting its file only where it differs."""
        try:
            index = kind.open(path, self.base_offset, disk=self.disk)
            if index.keys == keys and index.values == values:
                return index
        except (CorruptIndex, FileMissing, NotRegularFile):
            index = kind(self.disk, path, self.base_offset)
        index.rewrite(keys, values)
        self.writes += 1
        self.rebuilt.append(path.name)
        return index

    def adopt_seal(self, seal: SegmentSeal, *, is_active: bool) -> None:
        """Take over what the clean-close seal says; the indexes are loaded on first use."""
        self.size_bytes = seal.size_bytes
        self.next_offset = seal.next_offset
        self.last_position = seal.last_position
        self.max_timestamp_ms = seal.max_timestamp_ms
        if is_active:
            self._become_active()

    def _become_active(self) -> None:
        self.is_active = True
        self._note_index_due()
        self._note_index_room()
        self.expires_ms = OFFSET_END
        if not self.size_bytes:
            return
        try:
            head = self.file().read_at(0, self.codec.hop_bytes)
            size = min(self.codec.hop(head, 0)[0], self.config.max_batch_bytes, self.size_bytes)
            frame = self.file().read_at(0, size)
            facts = self.codec.check(frame, 0, len(frame), self.config.max_batch_bytes)
        except CorruptBatch as error:
            raise self.frame_damage(0, error) from error
        self._note_first_timestamp(facts[4])

    def seal(self) -> SegmentSeal:
        """What a clean close remembers of this segment."""
        return SegmentSeal(
            self.base_offset,
            self.size_bytes,
            self.next_offset,
            self.last_position,
            self.max_timestamp_ms,
        )

    # Facts -------------------------------------------------------------------------------------

    @property
    def leo(self) -> int:
        """The seed's name for ``next_offset``: the offset behind the last batch."""
        return self.next_offset

    @property
    def has_data(self) -> bool:
        """Whether there is at least one batch."""
        return self.size_bytes > 0

    @property
    def index_path(self) -> Path:
        """Path of the offset index."""
        return self.log_path.with_suffix(INDEX_SUFFIX)

    @property
    def time_index_path(self) -> Path:
        """Path of the time index."""
        return self.log_path.with_suffix(TIME_INDEX_SUFFIX)

    @property
    def paths(self) -> tuple[Path, Path, Path]:
        """Log, offset index and time index."""
        return (self.log_path, self.index_path, self.time_index_path)

    @property
    def total_size_bytes(self) -> int:
        """Log and indexes together."""
        return self.size_bytes + self.index.size_bytes + self.time_index.size_bytes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, loaded or rebuilt if need be."""
        if self._index is None:
            self._load_indexes()
            assert self._index is not None
        return self._index

    @property
    def time_index(self) -> TimeIndex:
        """The time index, loaded or rebuilt if need be."""
        if self._time_index is None:
            self._load_indexes()
            assert self._time_index is not None
        return self._time_index

    def _load_indexes(self) -> None:
        try:
            index = OffsetIndex.open(self.index_path, self.base_offset, disk=self.disk)
            times = TimeIndex.open(self.time_index_path, self.base_offset, disk=self.disk)
            self._check_index_bounds(index, times)
        except (CorruptIndex, FileMissing, NotRegularFile):
            self.rebuild_indexes()
            return
        self._index, self._time_index = index, times

    def preload_indexes(self) -> bool:
        """Load the indexes before the segment's end is known; False if they are of no use."""
        try:
            index = OffsetIndex.open(self.index_path, self.base_offset, disk=self.disk)
            times = TimeIndex.open(self.time_index_path, self.base_offset, disk=self.disk)
        except (CorruptIndex, DiskError):
            return False
        size = self.disk.stat(self.log_path).size_bytes
        if len(index) == 0 or index.values[0] != 0 or index.values[-1] >= size:
            return False
        self._index, self._time_index = index, times
        return True

    def _check_index_bounds(self, index: OffsetIndex, times: TimeIndex) -> None:
        limit = self.next_offset - self.base_offset
        if len(index) == 0 and self.size_bytes:
            raise CorruptIndex(index.path, "empty, but the segment has data")
        if len(index) and (index.values[-1] >= self.size_bytes or index.keys[-1] >= limit):
            raise CorruptIndex(index.path, f"entry {index.entries[-1]} is behind the log's end")
        if len(index) and index.values[0] != 0:
            raise CorruptIndex(index.path, "the first batch has no entry")
        if len(times) and (times.values[-1] > limit or times.keys[-1] > self.max_timestamp_ms):
            raise CorruptIndex(times.path, f"entry {times.entries[-1]} is behind the log's end")

    # Files -------------------------------------------------------------------------------------

    def file(self) -> DiskFile:
        """The open log file."""
        if self._file is None:
            self._file = self.disk.open(self.log_path)
            if self._on_open is not None:
                self._on_open(self)
        return self._file

    def on_open(self, callback: Callable[[Segment], None]) -> None:
        """Have ``callback`` told whenever the log file is opened again."""
        self._on_open = callback

    def release(self) -> None:
        """Close the files and forget the indexes; the next use brings both back."""
        self.close()
        self._index = self._time_index = None

    def close(self) -> None:
        """Close the files. Writes nothing."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for index in (self._index, self._time_index):
            if index is not None:
                index.close()

    def begin_fsync(self) -> tuple[int, int, int]:
        """Tokens of log, offset index and time index."""
        return (
            self.file().begin_fsync(),
            self.index.begin_fsync(),
            self.time_index.begin_fsync(),
        )

    def complete_fsync(self, tokens: tuple[int, int, int]) -> None:
        """Log first: an index must not be durable ahead of what it points to."""
        self.file().complete_fsync(tokens[0])
        self.index.complete_fsync(tokens[1])
        self.time_index.complete_fsync(tokens[2])

    def flush(self) -> None:
        """Make log and indexes durable; the directory entry is the caller's."""
        self.complete_fsync(self.begin_fsync())

    # Appending ---------------------------------------------------------------------------------

    def must_roll(
        self, frame_bytes: int, next_offset: int, timestamp_ms: int, now_ms: int | None
    ) -> bool:
        """Whether a batch belongs into a new segment: size, index room, offset span or age.

        An empty segment takes any batch, else an oversized one would roll for ever.
        """
        size = self.size_bytes
        if not size:
            return False
        if size + frame_bytes > self.size_limit_bytes or timestamp_ms > self.expires_ms:
            return True
        if next_offset - 1 - self.base_offset > INT32_MAX:
            return True
        if now_ms is None or self.created_ms is None:
            return False
        return now_ms - self.created_ms > self.config.segment_max_age_ms

    def append(self, batch: RecordBatch) -> tuple[int, int]:
        """Encode and store an assigned batch; returns its position and size in bytes."""
        assert batch.base_offset is not None, "an unassigned batch has no place"
        frame, timestamp_ms = self.codec.encode(
            batch, batch.base_offset, batch.leader_epoch, self.config.max_batch_bytes
        )
        position = self.size_bytes
        self.append_frame(frame, batch.base_offset, batch.next_offset, timestamp_ms)
        return position, len(frame)

    def append_frame(
        self, frame: bytes | memoryview, base_offset: int, next_offset: int, timestamp_ms: int
    ) -> None:
        """Store one frame at the end. After a ``DiskError``, ``undo_append`` is due."""
        position = self.size_bytes
        file = self._file
        assert file is not None, "the active segment has its file open"
        file.write_at(position, frame)
        if position >= self._index_due:
            self._index_batch(base_offset, position, self.max_timestamp_ms)
        if not position:
            self._note_first_timestamp(timestamp_ms)
        if timestamp_ms > self.max_timestamp_ms:
            self.max_timestamp_ms = timestamp_ms
        self.last_position = position
        self.next_offset = next_offset
        self.size_bytes = position + len(frame)
        self.writes += 1

    def append_frames(self, data: memoryview, frames: list[FrameFacts]) -> None:
        """Store consecutive frames with one write; ``frames`` are their facts, in order."""
        start = position = self.size_bytes
        file = self._file
        assert file is not None, "the active segment has its file open"
        file.write_at(start, data)
        largest = self.max_timestamp_ms
        last = start
        for size, base_offset, _, _, timestamp_ms in frames:
            if position >= self._index_due:
                self._index_batch(base_offset, position, largest)
            if timestamp_ms > largest:
                largest = timestamp_ms
            last = position
            position += size
        if not start:
            self._note_first_timestamp(frames[0][4])
        self.max_timestamp_ms = largest
        self.last_position = last
        self.next_offset = frames[-1][2]
        self.size_bytes = position
        self.writes += 1

    def _index_batch(self, base_offset: int, position: int, largest_before_ms: int) -> None:
        self.index.append(base_offset, position)
        self.time_index.append(largest_before_ms, base_offset)
        self._index_due = position + self.config.index_interval_bytes
        self._note_index_room()

    def _note_index_room(self) -> None:
        fullest = max(self.index.size_bytes + 8, self.time_index.size_bytes + 12)
        is_full = fullest > self.config.index_max_bytes
        self.size_limit_bytes = 0 if is_full else self.config.segment_max_bytes

    def _note_first_timestamp(self, timestamp_ms: int) -> None:
        if timestamp_ms >= 0:
            self.expires_ms = timestamp_ms + self.config.segment_max_age_ms
            self.created_ms = None

    def finish(self) -> None:
        """Close the time index with the segment's largest timestamp: the segment has rolled."""
        if self.time_index.append(self.max_timestamp_ms, self.next_offset):
            self.writes += 1
        self.is_active = False
        self.index.close()
        self.time_index.close()

    def has_room_for_entries(self, data_bytes: int) -> bool:
        """Whether both indexes have room for all entries that so many bytes of frames can add."""
        entries = max(data_bytes, 0) // self.config.index_interval_bytes + 2
        fullest = max(
            self.index.size_bytes + 8 * entries, self.time_index.size_bytes + 12 * entries
        )
        return fullest <= self.config.index_max_bytes

    def undo_append(self) -> None:
        """Cut files back to where the failed append began. Raises ``DiskError`` if that fails."""
        self.file().truncate(self.size_bytes)
        self.index.truncate_to(self.next_offset)
        self.time_index.truncate_to(self.next_offset)
        self._note_index_due()

    def _note_index_due(self) -> None:
        index = self.index
        interval = self.config.index_interval_bytes
        self._index_due = index.values[-1] + interval if len(index) else 0

    def truncate_to(self, position: int, offset: int) -> None:
        """Cut in place: log, then both indexes; the segment is active from here on.

        Args:
            position: behind the last frame that stays.
            offset: every batch from here on goes; the segment's new end.
        """
        if position < self.size_bytes:
            self.file().truncate(position)
        self.index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.size_bytes = position
        self.next_offset = offset
        self.hint = (-1, 0)
        self.writes += 1
        self._measure_tail()
        self._become_active()

    def _measure_tail(self) -> None:
        """Find the largest timestamp and the last frame again, from the last index entry on."""
        self.max_timestamp_ms, self.last_position = -1, -1
        resume = self.resume_point(self.next_offset)
        if self.size_bytes == 0 or resume is None:
            return
        scan = self.scan(resume)
        if scan.fault is not None:
            raise self.damage(scan)
        self.max_timestamp_ms, self.last_position = scan.max_timestamp_ms, scan.last_position

    def resume_point(self, offset: int) -> Resume | None:
        """The last index entry below ``offset`` as a place to scan from, None without one."""
        index, times = self.index, self.time_index
        found = bisect_left(index.keys, offset - self.base_offset)
        if not found:
            return None
        relative = index.keys[found - 1]
        held = bisect_right(times.values, relative)
        at = self.base_offset + relative
        return Resume(index.values[found - 1], at, found - 1, held, times.largest_below(at))

    def rebuild_indexes(self) -> None:
        """Derive both indexes from the log file.

        Raises:
            CorruptLog: the log file itself is damaged.
        """
        scan = self.scan()
        if scan.fault is not None or scan.next_offset < self.next_offset:
            raise self.damage(scan)
        self._index = self._time_index = None
        self.adopt(scan, None, is_active=self.is_active)

    def scan(self, resume: Resume | None = None, stop_at: int | None = None) -> SegmentScan:
        """Walk the log file as it stands; holes were accepted when it was opened or written."""
        return scan_segment(
            self.file(),
            self.codec,
            self.config,
            base_offset=self.base_offset,
            gaps_end=OFFSET_END,
            resume=resume,
            stop_at=stop_at,
        )

    def damage(self, scan: SegmentScan) -> CorruptLog:
        """The ``CorruptLog`` for a scan that stopped early or fell short."""
        fault = scan.fault
        reason = f"{fault.reason}: {fault.detail}" if fault else "batches are missing at the end"
        return corrupt_log(
            self.file(), self.codec, self.config, reason, scan.end_position, scan.next_offset
        )

    def frame_damage(self, position: int, error: StorageError) -> CorruptLog:
        """The ``CorruptLog`` for a frame that proved bad while it was read."""
        scan = self.scan()
        if scan.fault is not None:
            return self.damage(scan)
        return CorruptLog(
            self.log_path,
            str(error),
            position=position,
            last_good_offset=scan.next_offset,
            first_good_offset=None,
        )


def corrupt_log(
    file: DiskFile, codec: Codec, config: LogConfig, reason: str, position: int, good_end: int
) -> CorruptLog:
    """A ``CorruptLog`` at ``position`` of ``file``, with what look-ahead finds behind it."""
    ranges = find_good_ranges(file, codec, config, position=position, min_offset=good_end)
    return CorruptLog(
        file.path,
        reason,
        position=position,
        last_good_offset=good_end,
        first_good_offset=ranges[0].base_offset if ranges else None,
    )
