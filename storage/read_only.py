"""A disk that only reads: every change is refused before it reaches the disk behind it.

``storage.dump`` looks at logs through it, whatever the code that it shares with opening asks for: a
file that is to be opened for writing is opened for reading, and everything that would create,
change, remove, sync or lock is ``DiskReadOnly``.

Left out: reads that change something of themselves, such as access times.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

from storage.disk import Disk, DiskFile, DiskLock, FileStat, LockProbe, LockState
from storage.errors import DiskError, DiskReadOnly

__all__ = ["ReadOnlyDisk", "opened"]


@contextmanager
def opened(disk: Disk, path: Path) -> Iterator[DiskFile]:
    """A file to read, closed on the way out; that this fails says nothing of what was read."""
    file = disk.open(path, write=False)
    try:
        yield file
    finally:
        with suppress(DiskError):
            file.close()


class ReadOnlyDisk:
    """Wraps ``inner``; see the module."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Disk) -> None:
        self._inner = inner

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        """Open for reading. ``write`` is not heard: the handle refuses writes."""
        if create:
            self._refuse("open", path)
        return self._inner.open(path, write=False)

    def stat(self, path: Path) -> FileStat:
        """See ``Disk.stat``."""
        return self._inner.stat(path)

    def listdir(self, path: Path) -> list[str]:
        """See ``Disk.listdir``."""
        return self._inner.listdir(path)

    def lock_state(self, path: Path) -> LockState:
        """Whether somebody holds the lock; unknown on a disk that cannot be asked."""
        inner = self._inner
        return inner.lock_state(path) if isinstance(inner, LockProbe) else LockState(None)

    def mkdir(self, path: Path) -> None:
        """Refused."""
        self._refuse("mkdir", path)

    def rename(self, old: Path, new: Path) -> None:
        """Refused."""
        self._refuse("rename", old)

    def unlink(self, path: Path) -> None:
        """Refused."""
        self._refuse("unlink", path)

    def rmdir(self, path: Path) -> None:
        """Refused."""
        self._refuse("rmdir", path)

    def fsync_dir(self, path: Path) -> None:
        """Refused."""
        self._refuse("fsync_dir", path)

    def lock(self, path: Path) -> DiskLock:
        """Refused, not even shared: whoever starts meanwhile must get it."""
        self._refuse("lock", path)

    def _refuse(self, operation: str, path: Path) -> NoReturn:
        raise DiskReadOnly(operation, path, "EROFS", "looked at only")
