"""A real disk without any sync."""

from __future__ import annotations

from pathlib import Path

from storage.disk import DiskFile, OsDisk

__all__ = ["UnsyncedDisk"]


class _UnsyncedFile:
    """A file whose fsyncs do nothing; every other call is the file's own method."""

    def __init__(self, file: DiskFile) -> None:
        self.path = file.path
        self.read_at = file.read_at
        self.read_into = file.read_into
        self.write_at = file.write_at
        self.append = file.append
        self.truncate = file.truncate
        self.size = file.size
        self.fileno = file.fileno
        self.close = file.close

    def begin_fsync(self) -> int:
        return 0

    def complete_fsync(self, token: int) -> None:
        pass

    def fsync(self) -> None:
        pass


class UnsyncedDisk(OsDisk):
    """The operating system's files without any sync: for what a power loss may take."""

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        return _UnsyncedFile(super().open(path, create=create, write=write))

    def fsync_dir(self, path: Path) -> None:
        pass
