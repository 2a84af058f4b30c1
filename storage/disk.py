"""The disk seam: the calls that storage makes of a file system, and the operating system's own.

``Disk`` and ``DiskFile`` are protocols; :class:`OsDisk` is the one implementation that touches the
operating system, ``storage.memdisk.MemDisk`` keeps the same contract in memory, and a simulator
wraps either. ``tests/storage/test_disk_contract.py`` is the contract, run on both.

Rules of the contract:

* Paths are ``Path`` values. A symbolic link is never followed at its last component.
* Reads and writes name their position. A write either stores all its bytes or raises; after a
  failed write the file may hold any prefix of them, and the caller cuts it back.
* ``fsync`` is two calls: ``begin_fsync`` fixes what is covered, ``complete_fsync`` makes it so.
  Creating, renaming or removing a name is durable only after ``fsync_dir`` of its directory.
* Every failure is a ``DiskError`` with the operation, the path and the symbolic errno.

Left out: memory maps, modification times, ownership and permissions of files.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat as stat_module
from enum import Enum
from pathlib import Path
from typing import NamedTuple, NoReturn, Protocol, runtime_checkable

from attrs import frozen

from storage.errors import (
    AccessDenied,
    DiskError,
    DiskFull,
    DiskReadOnly,
    FileExists,
    FileMissing,
    FsyncFailed,
    LockHeld,
    NotRegularFile,
)

__all__ = [
    "Buffer",
    "Disk",
    "DiskFile",
    "DiskLock",
    "FileKind",
    "FileStat",
    "LockProbe",
    "LockState",
    "OsDisk",
    "disk_error",
]

Buffer = bytes | bytearray | memoryview


class FileKind(Enum):
    """What a path names, without following a symbolic link."""

    FILE = "file"
    DIRECTORY = "directory"
    SYMLINK = "symlink"
    OTHER = "other"
    MISSING = "missing"


class FileStat(NamedTuple):
    """Kind of a path and, for a regular file, its size in bytes (0 for anything else)."""

    kind: FileKind
    size_bytes: int


class DiskFile(Protocol):
    """An open regular file. Closing it twice is allowed; any other call after that is not."""

    @property
    def path(self) -> Path:
        """The path it was opened by; a later rename does not change it."""

    def read_at(self, position: int, size_bytes: int) -> bytes:
        """Read up to ``size_bytes``; shorter only where the file ends."""

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fill ``buffer`` from ``position`` on; returns the bytes read, short at the file's end."""

    def write_at(self, position: int, data: Buffer) -> None:
        """Store all of ``data`` at ``position`` or raise; a hole before it reads as zeros."""

    def append(self, data: Buffer) -> int:
        """Store all of ``data`` at the file's end; returns the position where it begins."""

    def truncate(self, size_bytes: int) -> None:
        """Set the size; growing adds zeros."""

    def size(self) -> int:
        """Size in bytes."""

    def begin_fsync(self) -> int:
        """Fix what the next ``complete_fsync`` covers: every write that returned before now."""

    def complete_fsync(self, token: int) -> None:
        """Make durable what ``token`` covers, with the size. Raises ``FsyncFailed``."""

    def fsync(self) -> None:
        """Both calls in one."""

    def fileno(self) -> int | None:
        """A file descriptor for ``os.sendfile``, or None where there is none."""

    def close(self) -> None:
        """Release the handle. Writes nothing."""


class DiskLock(Protocol):
    """An exclusive lock, held until ``release`` or the end of the process."""

    def release(self) -> None:
        """Give the lock back; a second call does nothing."""


class Disk(Protocol):
    """A file system as storage uses it."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        """Open a regular file; ``create`` makes it where it is missing."""

    def stat(self, path: Path) -> FileStat:
        """Kind and size, without following links; a missing path is a kind, not an error."""

    def listdir(self, path: Path) -> list[str]:
        """The names in a directory, sorted by code point."""

    def mkdir(self, path: Path) -> None:
        """Create one directory. The parent must exist; ``FileExists`` if the path does."""

    def rename(self, old: Path, new: Path) -> None:
        """Rename a file or directory atomically; an existing file ``new`` is replaced."""

    def unlink(self, path: Path) -> None:
        """Remove a file's name (of a symbolic link: the link). Open handles stay usable."""

    def rmdir(self, path: Path) -> None:
        """Remove an empty directory."""

    def fsync_dir(self, path: Path) -> None:
        """Make durable the names created, renamed and removed in ``path``."""

    def lock(self, path: Path) -> DiskLock:
        """Take an exclusive lock on the file ``path`` (created if missing), or ``LockHeld``."""


@frozen
class LockState:
    """Who holds the lock on a file.

    Attributes:
        is_held: None where the system does not tell.
        pid: the process that holds it, where that is known.
    """

    is_held: bool | None
    pid: int | None = None


@runtime_checkable
class LockProbe(Protocol):
    """What a disk may offer beyond ``Disk``: to ask about a lock without taking it."""

    def lock_state(self, path: Path) -> LockState:
        """Whether somebody holds what ``Disk.lock(path)`` takes. Creates and locks nothing."""


_ERRORS: dict[int, type[DiskError]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EFBIG: DiskFull,
    errno.EROFS: DiskReadOnly,
    errno.EBADF: DiskReadOnly,
    errno.EACCES: AccessDenied,
    errno.EPERM: AccessDenied,
    errno.ENOENT: FileMissing,
    errno.EEXIST: FileExists,
    errno.ENOTEMPTY: FileExists,
    errno.ELOOP: NotRegularFile,
    errno.ENOTDIR: NotRegularFile,
    errno.EISDIR: NotRegularFile,
    errno.ENXIO: NotRegularFile,
    errno.EWOULDBLOCK: LockHeld,
}


def disk_error(operation: str, path: Path, number: int, detail: str = "") -> DiskError:
    """The ``DiskError`` for an errno: the one place where errno numbers become error classes.

    A failed ``fsync`` or ``fsync_dir`` is ``FsyncFailed`` whatever its errno.
    """
    name = errno.errorcode.get(number, f"errno {number}")
    kind = FsyncFailed if operation.startswith("fsync") else _ERRORS.get(number, DiskError)
    return kind(operation, path, name, detail)


_DIRECTORY_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW


def _wrap(operation: str, path: Path, error: OSError) -> DiskError:
    return disk_error(operation, path, error.errno or 0)


def _open_regular(operation: str, path: Path, flags: int) -> int:
    # O_NONBLOCK keeps a FIFO that bears a segment's name from hanging the caller.
    flags |= os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        fd = os.open(path, flags, 0o644)
    except OSError as error:
        raise _wrap(operation, path, error) from error
    if not stat_module.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise NotRegularFile(operation, path, "EINVAL", "not a regular file")
    return fd


def _close(operation: str, path: Path, fd: int) -> None:
    try:
        os.close(fd)
    except OSError as error:
        raise _wrap(operation, path, error) from error


class _Uncopied:
    """Base of what stands for a real file, of which a copy would be no second one."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise TypeError(
            "real files are not copied with the objects that hold them: what is to be copied, as a "
            "simulated world, runs on disks in memory (storage.memdisk)"
        )


class _OsFile(_Uncopied):
    __slots__ = ("_fd", "_path")

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    @property
    def path(self) -> Path:
        return self._path

    def read_at(self, position: int, size_bytes: int) -> bytes:
        try:
            data = os.pread(self._fd, size_bytes, position)
            while len(data) < size_bytes:
                more = os.pread(self._fd, size_bytes - len(data), position + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _wrap("read_at", self._path, error) from error
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        if position < 0:
            # preadv takes -1 for "the current position" instead of refusing it.
            raise disk_error("read_into", self._path, errno.EINVAL)
        done = 0
        try:
            while done < len(buffer):
                count = os.preadv(self._fd, [buffer[done:]], position + done)
                if count == 0:
                    break
                done += count
        except OSError as error:
            raise _wrap("read_into", self._path, error) from error
        return done

    def write_at(self, position: int, data: Buffer) -> None:
        try:
            done = os.pwrite(self._fd, data, position)
            if done != len(data):
                self._write_rest(position, data, done)
        except OSError as error:
            raise _wrap("write_at", self._path, error) from error

    def _write_rest(self, position: int, data: Buffer, done: int) -> None:
        view = memoryview(data)
        while done < len(view):
            count = os.pwrite(self._fd, view[done:], position + done)
            if count == 0:
                raise OSError(errno.EIO, "write made no progress")
            done += count

    def append(self, data: Buffer) -> int:
        try:
            position = os.fstat(self._fd).st_size
            done = os.pwrite(self._fd, data, position)
            if done != len(data):
                self._write_rest(position, data, done)
        except OSError as error:
            raise _wrap("append", self._path, error) from error
        return position

    def truncate(self, size_bytes: int) -> None:
        try:
            os.ftruncate(self._fd, size_bytes)
        except OSError as error:
            if error.errno == errno.EINVAL and size_bytes >= 0:
                # Linux says EINVAL of a handle opened for reading; every other call says EBADF.
                raise disk_error("truncate", self._path, errno.EBADF) from error
            raise _wrap("truncate", self._path, error) from error

    def size(self) -> int:
        try:
            return os.fstat(self._fd).st_size
        except OSError as error:
            raise _wrap("size", self._path, error) from error

    def begin_fsync(self) -> int:
        return 0

    def complete_fsync(self, token: int) -> None:
        try:
            os.fsync(self._fd)
        except OSError as error:
            raise _wrap("fsync", self._path, error) from error

    def fsync(self) -> None:
        self.complete_fsync(self.begin_fsync())

    def fileno(self) -> int | None:
        return self._fd

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            _close("close", self._path, fd)


class _OsLock(_Uncopied):
    __slots__ = ("_fd", "_path")

    def __init__(self, path: Path, fd: int) -> None:
        self._path = path
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            _close("release", self._path, fd)


class OsDisk(_Uncopied):
    """The operating system's files. Holds no state: every handle stands alone."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        flags = os.O_RDWR if write else os.O_RDONLY
        if create:
            flags |= os.O_CREAT
        return _OsFile(path, _open_regular("open", path, flags))

    def stat(self, path: Path) -> FileStat:
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return FileStat(FileKind.MISSING, 0)
        except OSError as error:
            raise _wrap("stat", path, error) from error
        mode = found.st_mode
        if stat_module.S_ISREG(mode):
            return FileStat(FileKind.FILE, found.st_size)
        if stat_module.S_ISDIR(mode):
            return FileStat(FileKind.DIRECTORY, 0)
        return FileStat(FileKind.SYMLINK if stat_module.S_ISLNK(mode) else FileKind.OTHER, 0)

    def listdir(self, path: Path) -> list[str]:
        try:
            # os.listdir of a path follows a symbolic link, of a descriptor it cannot.
            fd = os.open(path, _DIRECTORY_FLAGS)
            try:
                return sorted(os.listdir(fd))
            finally:
                os.close(fd)
        except OSError as error:
            raise _wrap("listdir", path, error) from error

    def mkdir(self, path: Path) -> None:
        try:
            os.mkdir(path)
        except OSError as error:
            raise _wrap("mkdir", path, error) from error

    def rename(self, old: Path, new: Path) -> None:
        try:
            os.rename(old, new)
        except OSError as error:
            raise _wrap("rename", old, error) from error

    def unlink(self, path: Path) -> None:
        try:
            os.unlink(path)
        except OSError as error:
            raise _wrap("unlink", path, error) from error

    def rmdir(self, path: Path) -> None:
        try:
            os.rmdir(path)
        except OSError as error:
            raise _wrap("rmdir", path, error) from error

    def fsync_dir(self, path: Path) -> None:
        try:
            fd = os.open(path, _DIRECTORY_FLAGS)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as error:
            raise _wrap("fsync_dir", path, error) from error

    def lock(self, path: Path) -> DiskLock:
        fd = _open_regular("lock", path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(fd)
            raise _wrap("lock", path, error) from error
        return _OsLock(path, fd)

    def lock_state(self, path: Path) -> LockState:
        # Taking the lock, shared and for a moment only, would be exact, but a broker that starts in
        # that moment would fail. The system's table lacks only what processes of another PID
        # namespace hold.
        try:
            found = os.lstat(path)
        except FileNotFoundError:
            return LockState(False)
        except OSError as error:
            raise _wrap("lock_state", path, error) from error
        try:
            with open("/proc/locks", encoding="ascii", errors="replace") as table:
                rows = [line.split() for line in table]
        except OSError:
            return LockState(None)
        return _flock_state(rows, found.st_dev, found.st_ino)


def _flock_state(rows: list[list[str]], device: int, inode: int) -> LockState:
    """What rows of ``/proc/locks`` say of one file.

    A row is ``1: FLOCK ADVISORY WRITE 4711 fe:00:2146339 0 EOF``: process, device, inode; a process
    that waits has ``->`` before the second field. Some file systems (btrfs) show another device
    number there than ``stat`` does, so the inode alone makes it "unknown".
    """
    is_held: bool | None = False
    for row in rows:
        if len(row) < 6 or row[1:4] != ["FLOCK", "ADVISORY", "WRITE"]:
            continue
        place, _, number = row[5].rpartition(":")
        if number != str(inode):
            continue
        if place == f"{os.major(device):02x}:{os.minor(device):02x}":
            return LockState(True, int(row[4]) if row[4].isdigit() else None)
        is_held = None
    return LockState(is_held)
