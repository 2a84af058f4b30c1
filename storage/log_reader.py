"""The reading side of a log: facts, fetches by offset, raw ranges, look-up by time.

Reads never change the log. A batch is verified when it is decoded, a raw range is not: its reader
checks it, as Kafka's does. Left out: who may read up to where (the high watermark is an argument).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

from storage.batch import LogRecord, RecordBatch
from storage.codec import Codec
from storage.config import LogConfig
from storage.disk import Disk
from storage.epochs import LeaderEpochCache
from storage.errors import (
    CorruptBatch,
    FsyncFailed,
    LogClosed,
    LogOffline,
    OffsetOutOfRange,
    StorageError,
)
from storage.opening import Opened
from storage.reading import FileSlice, iter_batches, iter_frames, read, slice_range
from storage.recovery import OpenReport
from storage.segment import Segment
from storage.state import Boundary

__all__ = ["LogReader"]


class LogReader:
    """What can be asked of an open log.

    Attributes:
        directory, config: as given to ``PartitionLog.open``.
        report: what opening found and did.
    """

    def __init__(
        self, directory: Path, config: LogConfig, disk: Disk, codec: Codec, opened: Opened
    ) -> None:
        self.directory = directory
        self.config = config
        self.report: OpenReport = opened.report
        self._disk = disk
        self._codec = codec
        self._state = opened.state
        self._segments = opened.segments
        self._active = self._segments[-1]
        self._leo = self._active.next_offset
        self._epochs = opened.epochs
        self._open_files: list[Segment] = []
        self._failure: StorageError | None = None
        self._is_closed = False
        for segment in self._segments[:-1]:
            segment.on_open(self._note_open_file)

    # Facts -------------------------------------------------------------------------------------

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments, oldest first; the last one is active."""
        return tuple(self._segments)

    @property
    def active(self) -> Segment:
        """The segment that takes appends."""
        return self._active

    @property
    def closed_segments(self) -> tuple[Segment, ...]:
        """All segments but the active one."""
        return tuple(self._segments[:-1])

    @property
    def leo(self) -> int:
        """Log end offset: the offset that the next batch gets."""
        return self._leo

    @property
    def log_start_offset(self) -> int:
        """The lowest offset that may be read; it may lie inside the first segment or batch."""
        return self._state.log_start_offset or 0

    @property
    def size_bytes(self) -> int:
        """Size of all segment log files."""
        return sum(segment.size_bytes for segment in self._segments)

    @property
    def boundary(self) -> Boundary:
        """The durable boundary: what a power loss cannot take."""
        assert self._state.boundary is not None
        return self._state.boundary

    @property
    def gaps_end(self) -> int:
        """Below this offset batches may be missing; see ``declare_gaps``."""
        return self._state.gaps_end

    @property
    def epochs(self) -> LeaderEpochCache:
        """The leader-epoch cache; to read, not to change."""
        return self._epochs

    @property
    def is_closed(self) -> bool:
        """Whether the log was closed or abandoned."""
        return self._is_closed

    @property
    def failure(self) -> StorageError | None:
        """What took the log offline, or None."""
        return self._failure

    # Reading -----------------------------------------------------------------------------------

    def fetch(
        self, offset: int, max_records: int, *, end_offset: int | None = None
    ) -> list[LogRecord]:
        """Up to ``max_records`` records with offsets from ``offset`` to below ``end_offset``.

        Control batches and holes are passed over. Empty at the log's end.

        Raises:
            OffsetOutOfRange: not between the log start and the log end (which may be asked).
            CorruptLog: a batch on the way is damaged.
            DiskError: the file cannot be read.
        """
        if max_records < 0:
            raise ValueError(f"max_records is {max_records}, allowed is 0 or more")
        end = self._read_end(offset, end_offset)
        records: list[LogRecord] = []
        if max_records == 0 or offset >= end:
            return records
        for batch in self._batches(offset):
            base = batch.base_offset
            assert base is not None
            if base >= end:
                break
            epoch = batch.leader_epoch
            for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
                if offset <= base + delta < end and len(records) < max_records:
                    records.append(LogRecord(base + delta, *record, epoch))
            if batch.next_offset >= end or len(records) >= max_records:
                break
        return records

    def read_batches(
        self, offset: int, max_bytes: int, *, end_offset: int | None = None
    ) -> list[RecordBatch]:
        """Whole batches from the one that holds ``offset`` on, decoded.

        They end at or below ``end_offset`` and fit into ``max_bytes`` as frames, but the first one
        comes even if it is larger. Raises as ``fetch`` does.
        """
        end = self._read_end(offset, end_offset)
        batches: list[RecordBatch] = []
        left = max_bytes
        for segment in self._segments[self._segment_number(offset) :]:
            for position, frame in iter_frames(segment, offset):
                if batches and len(frame) > left:
                    return batches
                batch = self._decode(segment, position, frame)
                if batch.next_offset > end:
                    return batches
                batches.append(batch)
                left -= len(frame)
                if batch.next_offset >= end or left <= 0:
                    return batches
        return batches

    def all_batches(self) -> Iterator[RecordBatch]:
        """Every batch from the log start on. Do not change the log meanwhile."""
        self._check_readable()
        return self._batches(self.log_start_offset)

    def slice_range(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int | None = None,
        *,
        at_least_one: bool = True,
    ) -> FileSlice:
        """Where whole frames from ``offset`` on lie in a segment file; nothing is read or decoded.

        The range stays inside one segment, ends at or below ``end_offset`` and within
        ``max_bytes``; with ``at_least_one`` its first frame comes even if larger. Its size is 0
        where there is nothing to read. The first frame may begin below ``offset``.

        Raises as ``fetch`` does.
        """
        end = self._read_end(offset, end_offset)
        if max_bytes < 0:
            raise ValueError(f"max_bytes is {max_bytes}, allowed is 0 or more")
        segment = self._segments[self._segment_number(offset)]
        return slice_range(segment, offset, max_bytes, end, at_least_one=at_least_one)

    def read_range(
        self,
        offset: int,
        max_bytes: int,
        end_offset: int | None = None,
        *,
        at_least_one: bool = True,
    ) -> bytes:
        """The bytes of ``slice_range``: whole frames as stored, CRCs not checked."""
        return self.read_slice(
            self.slice_range(offset, max_bytes, end_offset, at_least_one=at_least_one)
        )

    def read_slice(self, place: FileSlice) -> bytes:
        """The bytes of a slice, if they are still there.

        Raises:
            CorruptBatch: the segment is gone, compacted or shorter now (``gone``, ``torn``).
        """
        self._check_readable()
        for segment in self._segments:
            if segment.base_offset == place.segment_base:
                if segment.creation != place.creation:
                    break
                if (
                    not 0
                    <= place.position
                    <= place.position + place.size_bytes
                    <= (segment.size_bytes)
                ):
                    raise CorruptBatch("torn", f"{place} passes {segment.size_bytes} bytes")
                return read(segment, place.position, place.size_bytes)
        raise CorruptBatch("gone", f"segment {place.segment_base} is no longer part of the log")

    def offset_for_timestamp(self, timestamp_ms: int) -> LogRecord | None:
        """The first record, by offset, from the log start on with this timestamp or a later one.

        Timestamps need not rise. None if there is no such record. Source: PROTOCOL A22.
        """
        self._check_readable()
        if timestamp_ms < 0:
            raise ValueError(f"timestamp_ms is {timestamp_ms}, allowed is 0 or more")
        start = self.log_start_offset
        for segment in self._segments:
            if segment.max_timestamp_ms < timestamp_ms or segment.next_offset <= start:
                continue
            first = max(segment.time_index.floor_offset(timestamp_ms), start)
            for batch in iter_batches(segment, first):
                assert batch.base_offset is not None
                for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
                    offset = batch.base_offset + delta
                    if record[2] >= timestamp_ms and offset >= start:
                        return LogRecord(offset, *record, batch.leader_epoch)
        return None

    def _batches(self, offset: int) -> Iterator[RecordBatch]:
        for segment in self._segments[self._segment_number(offset) :]:
            yield from iter_batches(segment, offset)

    def _decode(self, segment: Segment, position: int, frame: bytes) -> RecordBatch:
        try:
            return self._codec.decode(frame, self.config.read_limit_bytes)
        except CorruptBatch as error:
            raise segment.frame_damage(position, error) from error

    def _read_end(self, offset: int, end_offset: int | None) -> int:
        self._check_readable()
        if not self.log_start_offset <= offset <= self._leo:
            raise OffsetOutOfRange(offset, self.log_start_offset, self._leo)
        return self._leo if end_offset is None else min(end_offset, self._leo)

    def _segment_number(self, offset: int) -> int:
        found = bisect_right(self._segments, offset, key=_base_offset)
        return max(found - 1, 0)

    # Refusing ----------------------------------------------------------------------------------

    def _check_readable(self) -> None:
        if self._is_closed:
            raise LogClosed(f"log {self.directory} is closed")
        if isinstance(self._failure, FsyncFailed):
            raise LogOffline(self.directory, self._failure)

    def _note_open_file(self, segment: Segment) -> None:
        """Keep at most ``open_files_max`` closed segments open, the latest opened ones."""
        self._open_files.append(segment)
        while len(self._open_files) > self.config.open_files_max:
            oldest = self._open_files.pop(0)
            if oldest is not self._active and oldest is not segment:
                oldest.release()


def _base_offset(segment: Segment) -> int:
    return segment.base_offset
