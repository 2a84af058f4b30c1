"""Real files under a simulated disk, whose own failures end the run.

A simulated disk has every fault that it is meant to have, by itself. Where the machine that the
simulation runs on fails, as it does when its own disk is full or somebody removes the files, that
is no fault of the simulated world: its nodes would take it for one, go on, and write a host's path
into a trace that no other machine can give. So it raises what no node handles.

Left out: calls that a backing never gets: locks, and syncs of any kind.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from attrs import define

from storage.disk import Buffer, Disk, DiskFile, DiskLock, FileStat, OsDisk
from storage.errors import DiskError

__all__ = ["HostFailed", "RealFiles"]


class HostFailed(Exception):
    """The files of the machine itself cannot be used; says what failed."""


def _end(error: DiskError) -> NoReturn:
    raise HostFailed(f"the real files of this world failed: {error}") from error


def _unused() -> NoReturn:
    raise AssertionError("a simulated disk keeps locks and syncs to itself")


@define(eq=False)
class RealFiles:
    """The operating system's files, as a backing of ``sim.disks.SimDisk``."""

    _files: Disk = OsDisk()  # noqa: RUF009 - it holds no state

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        try:
            return _RealFile(self._files.open(path, create=create, write=write))
        except DiskError as error:
            _end(error)

    def stat(self, path: Path) -> FileStat:
        try:
            return self._files.stat(path)
        except DiskError as error:
            _end(error)

    def listdir(self, path: Path) -> list[str]:
        try:
            return self._files.listdir(path)
        except DiskError as error:
            _end(error)

    def mkdir(self, path: Path) -> None:
        try:
            self._files.mkdir(path)
        except DiskError as error:
            _end(error)

    def rename(self, old: Path, new: Path) -> None:
        try:
            self._files.rename(old, new)
        except DiskError as error:
            _end(error)

    def unlink(self, path: Path) -> None:
        try:
            self._files.unlink(path)
        except DiskError as error:
            _end(error)

    def rmdir(self, path: Path) -> None:
        try:
            self._files.rmdir(path)
        except DiskError as error:
            _end(error)

    def fsync_dir(self, path: Path) -> None:
        _unused()

    def lock(self, path: Path) -> DiskLock:
        _unused()


@define(eq=False)
class _RealFile:
    _file: DiskFile

    @property
    def path(self) -> Path:
        return self._file.path

    def read_at(self, position: int, size_bytes: int) -> bytes:
        try:
            return self._file.read_at(position, size_bytes)
        except DiskError as error:
            _end(error)

    def read_into(self, position: int, buffer: memoryview) -> int:
        try:
            return self._file.read_into(position, buffer)
        except DiskError as error:
            _end(error)

    def write_at(self, position: int, data: Buffer) -> None:
        try:
            self._file.write_at(position, data)
        except DiskError as error:
            _end(error)

    def append(self, data: Buffer) -> int:
        try:
            return self._file.append(data)
        except DiskError as error:
            _end(error)

    def truncate(self, size_bytes: int) -> None:
        try:
            self._file.truncate(size_bytes)
        except DiskError as error:
            _end(error)

    def size(self) -> int:
        try:
            return self._file.size()
        except DiskError as error:
            _end(error)

    def begin_fsync(self) -> int:
        _unused()

    def complete_fsync(self, token: int) -> None:
        _unused()

    def fsync(self) -> None:
        _unused()

    def fileno(self) -> int | None:
        return self._file.fileno()

    def close(self) -> None:
        try:
            self._file.close()
        except DiskError as error:
            _end(error)
