"""The two indexes of one segment as one thing: load, check, settle, extend, cut.

Left out: scanning the log file, which tells what the indexes must hold (``storage.scan``), and when
to do so (``storage.segment``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import TypeVar

from storage.config import LogConfig
from storage.disk import Disk
from storage.errors import CorruptIndex, DiskError, FileMissing, NotRegularFile
from storage.index import OffsetIndex, TimeIndex
from storage.scan import Resume, SegmentScan
from storage.values import Copied

__all__ = ["LOG_SUFFIX", "SegmentIndexes"]

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
IndexT = TypeVar("IndexT", OffsetIndex, TimeIndex)


class SegmentIndexes(Copied):
    """Offset and time index of the segment whose log file is ``log_path``.

    Attributes:
        offsets, times: the indexes, None until loaded.
        due_position: the first batch at or behind this byte position gets an entry.
        rebuilt: names of files that were missing or wrong and written anew.
    """

    __slots__ = (
        "_base_offset",
        "_config",
        "_disk",
        "due_position",
        "offsets",
        "offsets_path",
        "rebuilt",
        "times",
        "times_path",
    )

    def __init__(self, disk: Disk, log_path: Path, base_offset: int, config: LogConfig) -> None:
        self._disk = disk
        self._base_offset = base_offset
        self._config = config
        name = log_path.name
        self.offsets_path = log_path.with_name(name.replace(LOG_SUFFIX, INDEX_SUFFIX))
        self.times_path = log_path.with_name(name.replace(LOG_SUFFIX, TIME_INDEX_SUFFIX))
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.due_position = 0
        self.rebuilt: list[str] = []

    def reconfigure(self, config: LogConfig) -> None:
        """Take other limits from the next entry on."""
        self._config = config

    def create(self) -> None:
        """Two new, empty files."""
        self.offsets = OffsetIndex.create(self.offsets_path, self._base_offset, disk=self._disk)
        self.times = TimeIndex.create(self.times_path, self._base_offset, disk=self._disk)

    def load(
        self, size_bytes: int, next_offset: int, max_timestamp_ms: int, *, is_active: bool
    ) -> bool:
        """Load both files and check them against the segment's end; False if they are wrong.

        Raises:
            DiskError: a file is there and cannot be read.
        """
        try:
            offsets, times = self._open()
        except (CorruptIndex, FileMissing, NotRegularFile):
            return False
        limit = next_offset - self._base_offset
        if not _begins_right(offsets, size_bytes) or (len(offsets) and offsets.keys[-1] >= limit):
            return False
        # Only the entry that closes a rolled segment stands at its end.
        end = limit - 1 if is_active else limit
        if len(times) and (times.values[-1] > end or times.keys[-1] > max_timestamp_ms):
            return False
        self.offsets, self.times = offsets, times
        return True

    def preload(self, size_bytes: int) -> bool:
        """Load both before the segment's end is known; False if a scan cannot begin from them."""
        try:
            offsets, times = self._open()
        except (CorruptIndex, DiskError):
            return False
        if len(offsets) == 0 or not _begins_right(offsets, size_bytes):
            return False
        self.offsets, self.times = offsets, times
        return True

    def _open(self) -> tuple[OffsetIndex, TimeIndex]:
        offsets = OffsetIndex.open(self.offsets_path, self._base_offset, disk=self._disk)
        times = TimeIndex.open(self.times_path, self._base_offset, disk=self._disk)
        return offsets, times

    def settle(self, scan: SegmentScan, resume: Resume | None, *, is_active: bool) -> bool:
        """Make both hold what a scan found; returns whether a file had to be written anew."""
        keys, values = scan.offsets, scan.positions
        times, marks = scan.timestamps, scan.time_offsets
        if resume is not None:
            assert self.offsets is not None
            assert self.times is not None
            keys = self.offsets.keys[: resume.entries] + keys
            values = self.offsets.values[: resume.entries] + values
            times = self.times.keys[: resume.time_entries] + times
            marks = self.times.values[: resume.time_entries] + marks
        if not is_active and scan.max_timestamp_ms > (times[-1] if times else -1):
            times = times + array("Q", [scan.max_timestamp_ms])
            marks = marks + array("I", [scan.next_offset - self._base_offset])
        before = len(self.rebuilt)
        self.offsets = self._matching(OffsetIndex, self.offsets_path, keys, values)
        self.times = self._matching(TimeIndex, self.times_path, times, marks)
        return len(self.rebuilt) > before

    def _matching(
        self, kind: type[IndexT], path: Path, keys: array[int], values: array[int]
    ) -> IndexT:
        """The index with these entries, its file written only where it differs."""
        try:
            index = kind.open(path, self._base_offset, disk=self._disk)
            if index.keys == keys and index.values == values:
                return index
        except (CorruptIndex, FileMissing, NotRegularFile):
            index = kind(self._disk, path, self._base_offset)
        index.rewrite(keys, values)
        self.rebuilt.append(path.name)
        return index

    def add(self, base_offset: int, position: int, largest_before_ms: int) -> None:
        """Index the batch at ``position``; the largest timestamp before it goes beside it."""
        assert self.offsets is not None
        assert self.times is not None
        self.offsets.append(base_offset, position)
        self.times.append(largest_before_ms, base_offset)
        self.due_position = position + self._config.index_interval_bytes

    def has_room(self, data_bytes: int = 0) -> bool:
        """Whether there is room for one entry, or for all that so many bytes of frames can add.

        The time index keeps room for the entry that closes it.
        """
        assert self.offsets is not None
        assert self.times is not None
        entries = 1 if not data_bytes else data_bytes // self._config.index_interval_bytes + 2
        fullest = max(
            self.offsets.size_bytes + entries * OffsetIndex.entry.size,
            self.times.size_bytes + (entries + 1) * TimeIndex.entry.size,
        )
        return fullest <= self._config.index_max_bytes

    def truncate_to(self, offset: int) -> None:
        """Drop the entries at or behind ``offset`` from both files."""
        assert self.offsets is not None
        assert self.times is not None
        self.offsets.truncate_to(offset)
        self.times.truncate_to(offset)
        self.note_due()

    def note_due(self) -> None:
        """Find from the last entry where the next one is due."""
        assert self.offsets is not None
        last = self.offsets.values[-1:] or (-self._config.index_interval_bytes,)
        self.due_position = last[0] + self._config.index_interval_bytes

    def resume_point(self, offset: int) -> Resume | None:
        """The last entry below ``offset`` as a place to scan from, None without one."""
        assert self.offsets is not None
        assert self.times is not None
        found = bisect_left(self.offsets.keys, offset - self._base_offset)
        if not found:
            return None
        relative = self.offsets.keys[found - 1]
        at = self._base_offset + relative
        return Resume(
            position=self.offsets.values[found - 1],
            offset=at,
            entries=found - 1,
            time_entries=bisect_right(self.times.values, relative),
            max_timestamp_ms=self.times.largest_below(at),
        )

    def close(self) -> None:
        """Close the files; what is loaded stays readable."""
        for index in (self.offsets, self.times):
            if index is not None:
                index.close()

    def release(self) -> None:
        """Close the files and forget what is loaded."""
        self.close()
        self.offsets = self.times = None


def _begins_right(offsets: OffsetIndex, size_bytes: int) -> bool:
    """Whether the first batch, and no byte behind the log's end, has an entry."""
    if len(offsets) == 0:
        return size_bytes == 0
    return offsets.values[0] == 0 and offsets.values[-1] < size_bytes
