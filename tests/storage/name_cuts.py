"""A disk in memory whose names and contents survive a power cut only as far as they were synced.

The contract of ``storage.disk``, taken at its word: a name that was created, renamed or removed is
durable after ``fsync_dir``; until then a power cut may keep any subset of these changes. Content is
durable as the last completed fsync covered it; a cut may keep more. ``images`` gives the disks that
a cut at this moment may leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from pathlib import Path

from attrs import define, field

from storage.disk import Buffer, DiskFile, DiskLock, FileKind, FileStat
from storage.errors import FileMissing
from storage.memdisk import MemDisk

SUBSETS_OF = 8
Change = tuple[str, Path, Path]


@define(eq=False)
class CutDisk:
    """See the module. Files are kept by number in ``inner``, names only here.

    Attributes:
        watch: called before every call that changes something, and may take ``images``.
    """

    inner: MemDisk = field(factory=MemDisk)
    watch: Callable[[], None] | None = None
    _names: dict[Path, int] = field(factory=dict)
    _durable: dict[Path, int] = field(factory=dict)
    _directories: set[Path] = field(factory=set)
    _synced: dict[int, bytes] = field(factory=dict)
    _changes: list[Change] = field(factory=list)
    _next: int = 0

    def images(self) -> Iterator[MemDisk]:
        """All disks that a cut may leave: any subset of the unsynced changes of names.

        Of more than eight changes only prefixes, and all but one. Each with contents as written and
        as synced.
        """
        for chosen in _subsets(self._changes):
            names = dict(self._durable)
            for change in chosen:
                _apply(names, change)
            for keeps_unsynced in (True, False):
                yield self._image(names, keeps_unsynced=keeps_unsynced)

    def _image(self, names: dict[Path, int], *, keeps_unsynced: bool) -> MemDisk:
        disk = MemDisk()
        for directory in sorted(self._directories):
            disk.mkdir(directory)
        for path, number in names.items():
            file = disk.open(path, create=True)
            file.write_at(0, self._content(number) if keeps_unsynced else self._synced[number])
            file.close()
        return disk

    def _content(self, number: int) -> bytes:
        file = self.inner.open(_place(number), write=False)
        data = file.read_at(0, file.size())
        file.close()
        return data

    def _note(self, kind: str = "", path: Path = Path(), other: Path = Path()) -> None:
        if self.watch is not None:
            self.watch()
        if kind:
            self._changes.append((kind, path, other))

    # The contract --------------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        if path not in self._names:
            if not create:
                raise FileMissing("open", path, "ENOENT")
            self._note()
            self._names[path] = self._next
            self._synced[self._next] = b""
            self._changes.append(("create", path, Path(str(self._next))))
            self._next += 1
        number = self._names[path]
        return _CutFile(self, number, path, self.inner.open(_place(number), create=True))

    def stat(self, path: Path) -> FileStat:
        if path in self._directories:
            return FileStat(FileKind.DIRECTORY, 0)
        if path not in self._names:
            return FileStat(FileKind.MISSING, 0)
        return FileStat(FileKind.FILE, self.inner.stat(_place(self._names[path])).size_bytes)

    def listdir(self, path: Path) -> list[str]:
        return sorted(p.name for p in {*self._names, *self._directories} if p.parent == path)

    def mkdir(self, path: Path) -> None:
        self._directories.add(path)

    def rename(self, old: Path, new: Path) -> None:
        if old not in self._names:
            raise FileMissing("rename", old, "ENOENT")
        self._note("rename", old, new)
        self._names[new] = self._names.pop(old)

    def unlink(self, path: Path) -> None:
        if path not in self._names:
            raise FileMissing("unlink", path, "ENOENT")
        self._note("unlink", path)
        del self._names[path]

    def rmdir(self, path: Path) -> None:
        raise NotImplementedError

    def fsync_dir(self, path: Path) -> None:
        self._note()
        self._durable = dict(self._names)
        self._changes.clear()

    def lock(self, path: Path) -> DiskLock:
        return _Unlocked()


@define
class _Unlocked:
    def release(self) -> None:
        return


@define(eq=False)
class _CutFile:
    _disk: CutDisk
    _number: int
    path: Path
    _inner: DiskFile
    _begun: list[bytes] = field(factory=list)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        return self._inner.read_at(position, size_bytes)

    def read_into(self, position: int, buffer: memoryview) -> int:
        return self._inner.read_into(position, buffer)

    def write_at(self, position: int, data: Buffer) -> None:
        self._disk._note()
        self._inner.write_at(position, data)

    def append(self, data: Buffer) -> int:
        self._disk._note()
        return self._inner.append(data)

    def truncate(self, size_bytes: int) -> None:
        self._disk._note()
        self._inner.truncate(size_bytes)

    def size(self) -> int:
        return self._inner.size()

    def begin_fsync(self) -> int:
        self._begun.append(self._disk._content(self._number))
        return len(self._begun) - 1

    def complete_fsync(self, token: int) -> None:
        self._disk._note()
        self._disk._synced[self._number] = self._begun[token]

    def fsync(self) -> None:
        self.complete_fsync(self.begin_fsync())

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        self._inner.close()


def _place(number: int) -> Path:
    return Path(f"/{number}")


def _subsets(changes: list[Change]) -> Iterator[list[Change]]:
    count = len(changes)
    if count <= SUBSETS_OF:
        for size in range(count + 1):
            yield from (list(chosen) for chosen in combinations(changes, size))
        return
    for number in range(count):
        yield changes[:number]
        yield changes[:number] + changes[number + 1 :]
    yield list(changes)


def _apply(names: dict[Path, int], change: Change) -> None:
    """One change of names, as far as what it changes is there."""
    kind, path, other = change
    if kind == "create":
        names[path] = int(str(other))
    elif kind == "unlink":
        names.pop(path, None)
    elif path in names:
        names[other] = names.pop(path)


__all__ = ["CutDisk"]
