"""A disk that knows what is durable: what completed fsyncs of files and directories have covered.

It takes the contract at its word: an fsync covers the writes that returned before ``begin_fsync``,
a created, renamed or removed name is durable after ``fsync_dir`` of its directory, and nothing else
is durable at all. ``image`` is the disk as a power cut would leave it that takes everything else.
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field

from storage.disk import Buffer, Disk, DiskFile, DiskLock, FileKind, FileStat
from storage.memdisk import MemDisk


@define(eq=False)
class Inode:
    """A file; ``synced`` is its content as the last completed fsync covered it."""

    synced: bytes = b""
    latest: int = -1
    begun: dict[int, bytes] = field(factory=dict)


@define(eq=False)
class SyncDisk:
    """Wraps ``inner``. Directories are durable from the start; renaming one is not supported."""

    inner: Disk
    _live: dict[Path, Inode] = field(factory=dict)
    _durable: dict[Path, Inode] = field(factory=dict)

    def is_durable(self, path: Path, size_bytes: int) -> bool:
        """Whether the name and the first ``size_bytes`` of the content would survive."""
        inode = self._live.get(path)
        if inode is None or self._durable.get(path) is not inode:
            return False
        now = self.content(path)[:size_bytes]
        return len(now) == size_bytes and inode.synced[:size_bytes] == now

    def content(self, path: Path) -> bytes:
        file = self.inner.open(path, write=False)
        data = file.read_at(0, file.size())
        file.close()
        return data

    def image(self) -> MemDisk:
        """A new disk that holds what is durable."""
        disk = MemDisk()
        for folder in sorted({parent for path in self._live for parent in path.parents}):
            if disk.stat(folder).kind is FileKind.MISSING:
                disk.mkdir(folder)
        for path, inode in self._durable.items():
            file = disk.open(path, create=True)
            file.write_at(0, inode.synced)
            file.close()
        return disk

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        file = self.inner.open(path, create=create, write=write)
        return _SyncFile(self, file, self._live.setdefault(path, Inode()))

    def stat(self, path: Path) -> FileStat:
        return self.inner.stat(path)

    def listdir(self, path: Path) -> list[str]:
        return self.inner.listdir(path)

    def mkdir(self, path: Path) -> None:
        self.inner.mkdir(path)

    def rename(self, old: Path, new: Path) -> None:
        self.inner.rename(old, new)
        self._live[new] = self._live.pop(old)

    def unlink(self, path: Path) -> None:
        self.inner.unlink(path)
        del self._live[path]

    def rmdir(self, path: Path) -> None:
        self.inner.rmdir(path)

    def fsync_dir(self, path: Path) -> None:
        self.inner.fsync_dir(path)
        for name in [name for name in self._durable if name.parent == path]:
            del self._durable[name]
        self._durable.update(
            {name: inode for name, inode in self._live.items() if name.parent == path}
        )

    def lock(self, path: Path) -> DiskLock:
        lock = self.inner.lock(path)
        self._live.setdefault(path, Inode())
        return lock


@define(eq=False)
class _SyncFile:
    _disk: SyncDisk
    _inner: DiskFile
    _inode: Inode

    @property
    def path(self) -> Path:
        return self._inner.path

    def read_at(self, position: int, size_bytes: int) -> bytes:
        return self._inner.read_at(position, size_bytes)

    def read_into(self, position: int, buffer: memoryview) -> int:
        return self._inner.read_into(position, buffer)

    def write_at(self, position: int, data: Buffer) -> None:
        self._inner.write_at(position, data)

    def append(self, data: Buffer) -> int:
        return self._inner.append(data)

    def truncate(self, size_bytes: int) -> None:
        self._inner.truncate(size_bytes)

    def size(self) -> int:
        return self._inner.size()

    def begin_fsync(self) -> int:
        token = len(self._inode.begun)
        self._inode.begun[token] = self._inner.read_at(0, self._inner.size())
        return token

    def complete_fsync(self, token: int) -> None:
        assert token in self._inode.begun, f"{self.path}: a token of another file"
        self._inner.fsync()
        if token >= self._inode.latest:
            self._inode.latest = token
            self._inode.synced = self._inode.begun[token]

    def fsync(self) -> None:
        self.complete_fsync(self.begin_fsync())

    def fileno(self) -> int | None:
        return self._inner.fileno()

    def close(self) -> None:
        self._inner.close()
