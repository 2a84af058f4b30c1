"""One segment: a ``.log`` file of whole frames and its two sparse indexes.

The last segment of a log is active and takes appends; the others are closed and never change. A
closed segment opens its files on first use. Its log file is the truth; an index that proves wrong
is rebuilt from it on the spot and noted in ``rebuilt``.

Left out: offsets across segments, epochs, rolling policy, durability (``storage.partition_log``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storage.batch import OFFSET_END, RecordBatch
from storage.codec import Codec, FrameFacts
from storage.config import INT32_MAX, LogConfig
from storage.disk import Disk, DiskFile, FileKind, OsDisk
from storage.errors import (
    CorruptBatch,
    CorruptLog,
    DiskError,
    StorageError,
)
from storage.index import OffsetIndex, TimeIndex
from storage.mkb1 import MKB1
from storage.scan import Fault, Resume, SegmentScan, ranges_behind, scan_segment
from storage.segment_indexes import LOG_SUFFIX, SegmentIndexes
from storage.state import SegmentSeal
from storage.values import Copied

__all__ = ["LOG_SUFFIX", "Segment", "segment_stem"]


def segment_stem(base_offset: int) -> str:
    """The twenty-digit file stem of a segment: 2 is ``00000000000000000002``."""
    if not 0 <= base_offset < OFFSET_END:
        raise ValueError(f"base offset is {base_offset}, allowed is 0..2^63-1")
    return f"{base_offset:020d}"


class Segment(Copied):
    """See the module. Made by ``create`` or ``open``; a log adopts what a scan or a seal says.

    Attributes:
        hints: positions of offsets where ranges ended that were read before.
        creation: tells files apart that had the same name one after the other; 0 for those that
            opening found. Not kept on disk.
    """

    __slots__ = (
        "_file",
        "_indexes",
        "_on_open",
        "base_offset",
        "codec",
        "config",
        "created_ms",
        "creation",
        "directory",
        "disk",
        "expires_ms",
        "gaps_end",
        "hints",
        "is_active",
        "last_position",
        "log_path",
        "max_timestamp_ms",
        "next_offset",
        "size_bytes",
        "size_limit_bytes",
        "synced_writes",
        "undurable_cut",
        "writes",
    )

    def __init__(
        self,
        disk: Disk,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        codec: Codec,
        *,
        gaps_end: int = 0,
        suffix: str = "",
    ) -> None:
        """``suffix`` is behind the names of files that are not, or not yet, part of the log."""
        self.disk = disk
        self.config = config
        self.codec = codec
        self._file: DiskFile | None = None
        self.hints: dict[int, int] = {}
        self._on_open: Callable[[Segment], None] | None = None
        self.directory = directory
        self.base_offset = base_offset
        self.log_path = directory / (segment_stem(base_offset) + LOG_SUFFIX + suffix)
        self._indexes = SegmentIndexes(disk, self.log_path, base_offset, config)
        self.size_bytes = 0
        self.size_limit_bytes = config.segment_max_bytes
        self.next_offset = base_offset
        self.last_position = -1
        self.max_timestamp_ms = -1
        self.expires_ms = OFFSET_END
        self.created_ms: int | None = None
        self.creation = 0
        self.writes = 0
        self.synced_writes = 0
        self.gaps_end = gaps_end
        self.undurable_cut: int | None = None
        self.is_active = False

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
        suffix: str = "",
    ) -> Segment:
        """A new, empty segment. Files that bear its names go first."""
        segment = cls(disk or OsDisk(), directory, base_offset, config, codec, suffix=suffix)
        for path in segment.paths:
            if segment.disk.stat(path).kind is not FileKind.MISSING:
                segment.disk.unlink(path)
        segment._file = segment.disk.open(segment.log_path, create=True)
        try:
            segment._indexes.create()
        except DiskError:
            segment.close()
            raise
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
        if self._indexes.settle(scan, resume, is_active=is_active):
            self.writes += 1
        if is_active:
            self._become_active()

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
        self.file()
        self._load_indexes()
        self._indexes.note_due()
        self._note_index_room()
        self.expires_ms = OFFSET_END
        if not self.size_bytes:
            return
        try:
            head = self.file().read_at(0, self.codec.hop_bytes)
            size = min(self.codec.hop(head, 0)[0], self.config.read_limit_bytes, self.size_bytes)
            frame = self.file().read_at(0, size)
            facts = self.codec.check(memoryview(frame), 0, len(frame), self.config.read_limit_bytes)
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
        return self._indexes.offsets_path

    @property
    def time_index_path(self) -> Path:
        """Path of the time index."""
        return self._indexes.times_path

    @property
    def paths(self) -> tuple[Path, Path, Path]:
        """Log, offset index and time index."""
        return (self.log_path, self.index_path, self.time_index_path)

    @property
    def rebuilt(self) -> list[str]:
        """Names of index files that were missing or wrong and were written anew."""
        return self._indexes.rebuilt

    @property
    def total_size_bytes(self) -> int:
        """Log and indexes together."""
        return self.size_bytes + self.index.size_bytes + self.time_index.size_bytes

    @property
    def index(self) -> OffsetIndex:
        """The offset index, loaded or rebuilt if need be."""
        return self._load_indexes()[0]

    @property
    def time_index(self) -> TimeIndex:
        """The time index, loaded or rebuilt if need be."""
        return self._load_indexes()[1]

    def _load_indexes(self) -> tuple[OffsetIndex, TimeIndex]:
        indexes = self._indexes
        if indexes.offsets is None or indexes.times is None:
            ends = (self.size_bytes, self.next_offset, self.max_timestamp_ms)
            if not indexes.load(*ends, is_active=self.is_active):
                self.rebuild_indexes()
        assert indexes.offsets is not None
        assert indexes.times is not None
        return indexes.offsets, indexes.times

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
        self._indexes.release()

    def close(self) -> None:
        """Close the files. Writes nothing."""
        file, self._file = self._file, None
        if file is not None:
            file.close()
        self._indexes.close()

    def begin_fsync(self) -> tuple[int, int, int]:
        """Tokens of log, offset index and time index."""
        return (
            self.file().begin_fsync(),
            self.index.begin_fsync(),
            self.time_index.begin_fsync(),
        )

    def complete_fsync(self, tokens: tuple[int, int, int], writes: int) -> None:
        """Log first: an index must not be durable ahead of what it points to.

        ``writes`` is what the segment's was when the fsync began.
        """
        self.file().complete_fsync(tokens[0])
        if self.undurable_cut is not None and self.undurable_cut <= writes:
            self.undurable_cut = None
        self.index.complete_fsync(tokens[1])
        self.time_index.complete_fsync(tokens[2])

    def flush(self) -> None:
        """Make log and indexes durable; the directory entry is the caller's."""
        self.complete_fsync(self.begin_fsync(), self.writes)

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
        return self.is_aged(now_ms)

    def is_aged(self, now_ms: int | None) -> bool:
        """Whether the wall clock says so; only where the first batch has no timestamp."""
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
        if position >= self._indexes.due_position:
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
            if position >= self._indexes.due_position:
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
        self._indexes.add(base_offset, position, largest_before_ms)
        self._note_index_room()

    def _note_index_room(self) -> None:
        has_room = self._indexes.has_room()
        self.size_limit_bytes = self.config.segment_max_bytes if has_room else 0

    def _note_first_timestamp(self, timestamp_ms: int) -> None:
        if timestamp_ms >= 0:
            self.expires_ms = timestamp_ms + self.config.segment_max_age_ms
            self.created_ms = None

    def reconfigure(self, config: LogConfig) -> None:
        """Take other limits from now on; what is written stays as it is."""
        if self.expires_ms != OFFSET_END:
            self.expires_ms += config.segment_max_age_ms - self.config.segment_max_age_ms
        self.config = config
        self._indexes.reconfigure(config)
        if self.is_active:
            self._note_index_room()

    def finish(self) -> None:
        """Close the time index with the segment's largest timestamp: the segment has rolled."""
        if self.time_index.append(self.max_timestamp_ms, self.next_offset):
            self.writes += 1
        self.is_active = False
        self._indexes.close()

    def has_index_room(self, data_bytes: int) -> bool:
        """Whether the indexes have room for all entries that so many bytes of frames can add."""
        return self._indexes.has_room(max(data_bytes, 0))

    def undo_append(self) -> None:
        """Cut files back to where the failed append began. Raises ``DiskError`` if that fails."""
        self.file().truncate(self.size_bytes)
        self._indexes.truncate_to(self.next_offset)
        self._note_index_room()

    def measure(self, position: int, offset: int) -> tuple[int, int]:
        """Largest timestamp and last frame's position of the part before a cut.

        Raises:
            CorruptLog: it is damaged; nothing was cut yet.
        """
        resume = self.resume_point(offset)
        if position == 0 or resume is None:
            return -1, -1
        scan = self.scan(resume, stop_at=position)
        if scan.fault is not None:
            raise self.damage(scan)
        return scan.max_timestamp_ms, scan.last_position

    def truncate_to(self, position: int, offset: int, measured: tuple[int, int]) -> None:
        """Cut in place: log, then both indexes; the segment is active from here on.

        Args:
            position: behind the last frame that stays.
            offset: every batch from here on goes; the segment's new end.
            measured: what ``measure`` said of that cut.
        """
        if position < self.size_bytes:
            self.file().truncate(position)
            self.undurable_cut = self.writes + 1
        self._load_indexes()
        self._indexes.truncate_to(offset)
        self.size_bytes = position
        self.next_offset = offset
        self.hints.clear()
        self.writes += 1
        self.max_timestamp_ms, self.last_position = measured
        self._become_active()

    def resume_point(self, offset: int) -> Resume | None:
        """The last indexed batch below ``offset`` as a place to scan from, None without one."""
        self._load_indexes()
        return self._indexes.resume_point(offset)

    def early_resume_point(self, offset: int) -> Resume | None:
        """The same before the segment's end is known; None where the indexes are of no use."""
        if not self._indexes.preload(self.disk.stat(self.log_path).size_bytes):
            return None
        return self._indexes.resume_point(offset)

    def rebuild_indexes(self) -> None:
        """Derive both indexes from the log file.

        Raises:
            CorruptLog: the log file itself is damaged.
        """
        scan = self.scan(stop_at=self.size_bytes)
        if scan.fault is not None or scan.next_offset < self.next_offset:
            raise self.damage(scan)
        self.adopt(scan, None, is_active=self.is_active)

    def scan(
        self,
        resume: Resume | None = None,
        *,
        latest_epoch: int = -1,
        stop_at: int | None = None,
    ) -> SegmentScan:
        """Walk the log file; arguments as for ``scan_segment``."""
        return scan_segment(
            self.file(),
            self.codec,
            self.config,
            base_offset=self.base_offset,
            gaps_end=self.gaps_end,
            latest_epoch=latest_epoch,
            resume=resume,
            stop_at=stop_at,
        )

    def damage(self, scan: SegmentScan) -> CorruptLog:
        """The ``CorruptLog`` for a scan that stopped early or fell short."""
        fault = scan.fault or Fault(scan.end_position, "missing", "batches are gone at the end")
        ranges = ranges_behind(self.file(), self.codec, self.config, fault, scan.next_offset)
        return CorruptLog(
            self.log_path,
            f"{fault.reason}: {fault.detail}",
            position=scan.end_position,
            last_good_offset=scan.next_offset,
            first_good_offset=ranges[0].base_offset if ranges else None,
        )

    def frame_damage(self, position: int, error: StorageError) -> CorruptLog:
        """The ``CorruptLog`` for a frame that proved bad while it was read."""
        scan = self.scan()
        if scan.fault is not None or position >= scan.end_position:
            return self.damage(scan)
        head = self.file().read_at(position, self.codec.hop_bytes)
        size, base, next_offset, _ = self.codec.hop(head, 0)
        has_more = position + size < scan.end_position
        return CorruptLog(
            self.log_path,
            str(error),
            position=position,
            last_good_offset=base,
            first_good_offset=next_offset if has_more else None,
        )
