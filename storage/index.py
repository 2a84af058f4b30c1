"""Sparse indexes of one segment: offset to byte position, and timestamp to offset.

``.index`` entries are 8 bytes, big-endian: u32 offset relative to the segment base, u32 position.
The first batch of a segment has one, then each batch that begins ``index_interval_bytes`` or more
behind the last indexed one, under its base offset.

``.timeindex`` entries are 12 bytes: u64 timestamp ms, u32 relative offset, saying "every record of
this segment below that offset has this timestamp or a smaller one". One is added beside an offset
entry where the largest timestamp so far rose, and one at the segment's end when it rolls. Both
columns rise strictly, whatever the clock did.

Both are derived data: the log can be read without them, its end never comes from them, and they are
rebuilt whenever in doubt. Left out: when an entry is due (``storage.segment``).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from struct import error as struct_error
from typing import ClassVar, Self

from storage.checkpoints import remove_if_there
from storage.disk import Disk, DiskFile, OsDisk
from storage.errors import CorruptIndex
from storage.values import Copied

__all__ = ["OffsetIndex", "TimeIndex"]

INDEX_FILE_MAX_BYTES = 2**31 - 1


class _Index(Copied):
    """What the two files share: two columns that rise strictly, and their file.

    Attributes:
        keys, values: the columns as they stand in the file; to read, not to change.
    """

    entry: ClassVar[Struct]
    key_code: ClassVar[str]
    value_code: ClassVar[str]

    __slots__ = ("_disk", "_file", "base_offset", "keys", "path", "values")

    def __init__(self, disk: Disk, path: Path, base_offset: int) -> None:
        self.path = path
        self.base_offset = base_offset
        self._disk = disk
        self._file: DiskFile | None = None
        self.keys = array(self.key_code)
        self.values = array(self.value_code)

    @classmethod
    def create(cls, path: Path, base_offset: int, *, disk: Disk | None = None) -> Self:
        """An empty index in a new file; whatever had the name goes first."""
        index = cls(disk or OsDisk(), path, base_offset)
        index.rewrite((), ())
        return index

    @classmethod
    def open(cls, path: Path, base_offset: int, *, disk: Disk | None = None) -> Self:
        """Load an index file.

        Raises:
            CorruptIndex: the file is missing, has a ragged length, or does not rise.
        """
        index = cls(disk or OsDisk(), path, base_offset)
        index.load()
        return index

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def size_bytes(self) -> int:
        """Size of the file, where it agrees with memory."""
        return len(self.keys) * self.entry.size

    def load(self) -> None:
        """Read the file into memory. Raises ``CorruptIndex``."""
        file = self._disk.open(self.path, write=False)
        try:
            size = file.size()
            if size % self.entry.size or size > INDEX_FILE_MAX_BYTES:
                raise CorruptIndex(self.path, f"length {size} is not whole {self.entry.size}s")
            data = file.read_at(0, size)
        finally:
            file.close()
        keys, values = array(self.key_code), array(self.value_code)
        for key, value in self.entry.iter_unpack(data):
            keys.append(key)
            values.append(value)
        for number in range(1, len(keys)):
            if keys[number] <= keys[number - 1] or values[number] <= values[number - 1]:
                raise CorruptIndex(self.path, f"entry {number} does not rise")
        self.keys, self.values = keys, values

    def rewrite(self, keys: Iterable[int], values: Iterable[int]) -> None:
        """Replace file and memory."""
        self.close()
        self.keys = array(self.key_code, keys)
        self.values = array(self.value_code, values)
        remove_if_there(self._disk, self.path)
        self._file = self._disk.open(self.path, create=True)
        if self.keys:
            self._file.write_at(0, self.to_bytes())

    def to_bytes(self) -> bytes:
        """The file's content as it must be for the entries in memory."""
        pack_into, size = self.entry.pack_into, self.entry.size
        data = bytearray(len(self.keys) * size)
        for number, (key, value) in enumerate(zip(self.keys, self.values, strict=True)):
            pack_into(data, number * size, key, value)
        return bytes(data)

    def _add(self, key: int, value: int) -> None:
        try:
            entry = self.entry.pack(key, value)
        except struct_error as error:
            raise CorruptIndex(self.path, f"entry ({key}, {value}) does not fit") from error
        file = self._file or self._open_for_write()
        file.write_at(len(self.keys) * self.entry.size, entry)
        self.keys.append(key)
        self.values.append(value)

    def _open_for_write(self) -> DiskFile:
        self._file = self._disk.open(self.path)
        return self._file

    def _cut(self, count: int) -> None:
        file = self._file or self._open_for_write()
        file.truncate(count * self.entry.size)
        del self.keys[count:]
        del self.values[count:]

    def begin_fsync(self) -> int:
        """See ``DiskFile.begin_fsync``."""
        return (self._file or self._open_for_write()).begin_fsync()

    def complete_fsync(self, token: int) -> None:
        """See ``DiskFile.complete_fsync``."""
        (self._file or self._open_for_write()).complete_fsync(token)

    def flush(self) -> None:
        """Make the file durable."""
        self.complete_fsync(self.begin_fsync())

    def close(self) -> None:
        """Close the file; the entries stay readable."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


class OffsetIndex(_Index):
    """Offsets of batches and the byte positions where they begin."""

    entry = Struct(">II")
    key_code = "I"
    value_code = "I"

    __slots__ = ()

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """``(absolute offset, position)``, rising."""
        base = self.base_offset
        return tuple((base + key, at) for key, at in zip(self.keys, self.values, strict=True))

    def append(self, offset: int, position: int) -> None:
        """Add the batch that begins with ``offset`` at byte ``position``.

        Raises:
            CorruptIndex: not above the last entry; nothing was written.
        """
        relative = offset - self.base_offset
        if self.keys and (relative <= self.keys[-1] or position <= self.values[-1]):
            raise CorruptIndex(self.path, f"entry ({offset}, {position}) does not rise")
        self._add(relative, position)

    def floor_entry(self, offset: int) -> tuple[int, int] | None:
        """The last entry at or below ``offset``, or None."""
        found = bisect_right(self.keys, offset - self.base_offset)
        if found == 0:
            return None
        return (self.base_offset + self.keys[found - 1], self.values[found - 1])

    def floor_position(self, offset: int) -> int:
        """Where to begin looking for ``offset``: the last entry at or below it, or 0."""
        relative = offset - self.base_offset
        found = bisect_right(self.keys, relative) if relative >= 0 else 0
        return self.values[found - 1] if found else 0

    def floor_by_position(self, position: int) -> int:
        """The greatest indexed position at or below ``position``, or 0."""
        found = bisect_right(self.values, position)
        return self.values[found - 1] if found else 0

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or behind ``offset``."""
        self._cut(bisect_left(self.keys, max(offset - self.base_offset, 0)))


class TimeIndex(_Index):
    """Largest timestamps so far, and the offsets below which they hold."""

    entry = Struct(">QI")
    key_code = "Q"
    value_code = "I"

    __slots__ = ()

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """``(timestamp ms, absolute offset)``, rising."""
        base = self.base_offset
        return tuple((key, base + value) for key, value in zip(self.keys, self.values, strict=True))

    @property
    def largest_timestamp_ms(self) -> int:
        """The last entry's timestamp, or -1."""
        return self.keys[-1] if self.keys else -1

    def append(self, timestamp_ms: int, offset: int) -> bool:
        """Add an entry where the timestamp rose (and is not negative); returns whether it did.

        Raises:
            CorruptIndex: the offset is not above the last entry's.
        """
        if timestamp_ms < 0 or (self.keys and timestamp_ms <= self.keys[-1]):
            return False
        relative = offset - self.base_offset
        if self.values and relative <= self.values[-1]:
            raise CorruptIndex(self.path, f"entry ({timestamp_ms}, {offset}) does not rise")
        self._add(timestamp_ms, relative)
        return True

    def floor_offset(self, timestamp_ms: int) -> int:
        """An offset below which no record of the segment reaches ``timestamp_ms``."""
        found = bisect_left(self.keys, timestamp_ms)
        return self.base_offset + (self.values[found - 1] if found else 0)

    def largest_below(self, offset: int) -> int:
        """The largest timestamp that is known to hold below ``offset``, or -1."""
        found = bisect_right(self.values, offset - self.base_offset)
        return self.keys[found - 1] if found else -1

    def truncate_to(self, offset: int) -> None:
        """Drop entries at or behind ``offset``."""
        self._cut(bisect_left(self.values, max(offset - self.base_offset, 0)))
