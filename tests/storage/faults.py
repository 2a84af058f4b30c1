"""A disk for tests that records every call and fails the calls it is told to fail.

Rules:

* A call is recorded before it fails, and counts for every plan that matches it.
* A plan counts from the moment it is made, so ``at=1`` is the next call that matches.
* A planned failure reaches the inner disk only for the ``partial_bytes`` that it lets through;
  what the caller sees is what :func:`storage.disk.disk_error` makes of the errno.

Left out: lost and torn writes after a power cut, which are the simulator's.
"""

from __future__ import annotations

from errno import EIO
from pathlib import Path
from typing import NamedTuple

from attrs import define, field

from storage.disk import Buffer, Disk, DiskFile, DiskLock, FileStat, disk_error

OPERATIONS = frozenset(
    """open stat listdir mkdir rename unlink rmdir fsync_dir lock release
    read_at read_into write_at append truncate size begin_fsync fsync fileno close""".split()
)
WRITES = frozenset({"append", "write_at"})


class Call(NamedTuple):
    """One call of the disk, of a file or of a lock.

    Attributes:
        operation: as ``DiskError.operation`` names it; ``complete_fsync`` is ``fsync``.
        name: last name of the path.
        args: the other arguments, as ``key=value`` or as the new name of a ``rename``; buffers
            appear as their size. Empty where there are none.
    """

    operation: str
    name: str
    args: str = ""


@define
class Plan:
    """A planned failure; ``hits`` counts how often it struck. See :meth:`FaultDisk.fail`."""

    operation: str
    suffix: str
    at: int
    errno: int
    partial_bytes: int
    times: int | None
    seen: int = 0
    hits: int = 0

    def strikes(self, operation: str, paths: tuple[Path, ...]) -> bool:
        """Count a call, and whether it fails."""
        if operation != self.operation or not any(str(p).endswith(self.suffix) for p in paths):
            return False
        self.seen += 1
        is_due = self.seen >= self.at and (self.times is None or self.hits < self.times)
        self.hits += is_due
        return is_due


@define
class FaultDisk:
    """Wraps ``inner``.

    Attributes:
        calls: every call so far, oldest first. A test may clear it.
        plans: the planned failures, the first that strikes wins. Clearing it mends the disk.
    """

    inner: Disk
    calls: list[Call] = field(factory=list)
    plans: list[Plan] = field(factory=list)

    def fail(
        self,
        operation: str,
        *,
        at: int = 1,
        suffix: str = "",
        errno: int = EIO,
        partial_bytes: int = 0,
        times: int | None = 1,
    ) -> Plan:
        """Make calls of ``operation`` fail.

        Args:
            operation: one of ``OPERATIONS``. ``fsync`` strikes in ``complete_fsync``, whether it
                is called by name or by ``fsync``.
            at: which matching call is the first to fail, from 1.
            suffix: only paths that end so match, as a handle was opened by; for ``rename`` the
                old or the new path.
            errno: decides the class of the error.
            partial_bytes: of an ``append`` or ``write_at``, the bytes stored before it fails.
            times: how many matching calls fail in a row; None means for ever.
        """
        if operation not in OPERATIONS:
            raise ValueError(f"operation is {operation!r}, allowed is {sorted(OPERATIONS)}")
        if partial_bytes and operation not in WRITES:
            raise ValueError(f"partial_bytes is for {sorted(WRITES)}, not for {operation!r}")
        if at < 1 or partial_bytes < 0 or (times is not None and times < 1):
            raise ValueError(f"at={at}, partial_bytes={partial_bytes}, times={times} is too low")
        plan = Plan(operation, suffix, at, errno, partial_bytes, times)
        self.plans.append(plan)
        return plan

    def operations(self, suffix: str = "") -> list[str]:
        """The names of the calls so far whose last path name ends with ``suffix``."""
        return [call.operation for call in self.calls if call.name.endswith(suffix)]

    def record(self, operation: str, path: Path, args: str = "", *others: Path) -> Plan | None:
        """Record a call; the plan by which it is to fail, if any. Every plan counts it."""
        self.calls.append(Call(operation, path.name, args))
        struck = [plan for plan in self.plans if plan.strikes(operation, (path, *others))]
        return struck[0] if struck else None

    def check(self, operation: str, path: Path, args: str = "", *others: Path) -> None:
        """Record a call that either happens or fails without a trace."""
        if plan := self.record(operation, path, args, *others):
            raise disk_error(operation, path, plan.errno)

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        self.check("open", path, f"create={create} write={write}")
        return _FaultFile(self, self.inner.open(path, create=create, write=write))

    def stat(self, path: Path) -> FileStat:
        self.check("stat", path)
        return self.inner.stat(path)

    def listdir(self, path: Path) -> list[str]:
        self.check("listdir", path)
        return self.inner.listdir(path)

    def mkdir(self, path: Path) -> None:
        self.check("mkdir", path)
        self.inner.mkdir(path)

    def rename(self, old: Path, new: Path) -> None:
        self.check("rename", old, new.name, new)
        self.inner.rename(old, new)

    def unlink(self, path: Path) -> None:
        self.check("unlink", path)
        self.inner.unlink(path)

    def rmdir(self, path: Path) -> None:
        self.check("rmdir", path)
        self.inner.rmdir(path)

    def fsync_dir(self, path: Path) -> None:
        self.check("fsync_dir", path)
        self.inner.fsync_dir(path)

    def lock(self, path: Path) -> DiskLock:
        self.check("lock", path)
        return _FaultLock(self, path, self.inner.lock(path))


@define
class _FaultFile:
    _disk: FaultDisk
    _inner: DiskFile

    @property
    def path(self) -> Path:
        return self._inner.path

    def read_at(self, position: int, size_bytes: int) -> bytes:
        self._disk.check("read_at", self.path, f"position={position} size_bytes={size_bytes}")
        return self._inner.read_at(position, size_bytes)

    def read_into(self, position: int, buffer: memoryview) -> int:
        self._disk.check("read_into", self.path, f"position={position} size_bytes={len(buffer)}")
        return self._inner.read_into(position, buffer)

    def write_at(self, position: int, data: Buffer) -> None:
        args = f"position={position} size_bytes={len(data)}"
        if plan := self._disk.record("write_at", self.path, args):
            self._inner.write_at(position, data[: plan.partial_bytes])
            raise disk_error("write_at", self.path, plan.errno)
        self._inner.write_at(position, data)

    def append(self, data: Buffer) -> int:
        if plan := self._disk.record("append", self.path, f"size_bytes={len(data)}"):
            self._inner.append(data[: plan.partial_bytes])
            raise disk_error("append", self.path, plan.errno)
        return self._inner.append(data)

    def truncate(self, size_bytes: int) -> None:
        self._disk.check("truncate", self.path, f"size_bytes={size_bytes}")
        self._inner.truncate(size_bytes)

    def size(self) -> int:
        self._disk.check("size", self.path)
        return self._inner.size()

    def begin_fsync(self) -> int:
        self._disk.check("begin_fsync", self.path)
        return self._inner.begin_fsync()

    def complete_fsync(self, token: int) -> None:
        self._disk.check("fsync", self.path)
        self._inner.complete_fsync(token)

    def fsync(self) -> None:
        self.complete_fsync(self.begin_fsync())

    def fileno(self) -> int | None:
        self._disk.check("fileno", self.path)
        return self._inner.fileno()

    def close(self) -> None:
        # A handle whose close fails is closed all the same, as on Linux.
        plan = self._disk.record("close", self.path)
        self._inner.close()
        if plan:
            raise disk_error("close", self.path, plan.errno)


@define
class _FaultLock:
    _disk: FaultDisk
    _path: Path
    _inner: DiskLock

    def release(self) -> None:
        plan = self._disk.record("release", self._path)
        self._inner.release()
        if plan:
            raise disk_error("release", self._path, plan.errno)
