"""Disk faults as data: which call of which file fails, and how.

A ``DiskFault`` matches calls by operation and path, lets some pass, and strikes a number of times.
What striking means is carried out by ``sim.disks``. Source: FAULTS C.5.5 and C.5.6.

Left out: slow and stalled disks, which are a matter of virtual time; sectors that cannot be read
and bits that rot, which are places and no calls (``sim.disks``).
"""

from __future__ import annotations

import errno
from typing import Final

from attrs import define, field, frozen

from storage.values import Value

__all__ = ["FAULT_KINDS", "NO_CALLS", "DiskFault", "FaultPlan"]

_CALLS: Final = (
    "open",
    "read_at",
    "read_into",
    "write_at",
    "append",
    "truncate",
    "size",
    "stat",
    "listdir",
    "mkdir",
    "rename",
    "unlink",
    "rmdir",
    "lock",
    "fsync_dir",
)
"""Calls that fail as a whole."""

FAULT_KINDS: Final[dict[str, tuple[str, ...]]] = {
    "error": _CALLS,
    "split-write": ("write_at", "append"),
    "lost-write": ("write_at", "append"),
    "misdirected-write": ("write_at", "append"),
    "fsync-fail": ("complete_fsync",),
    "fsync-lie": ("complete_fsync", "fsync_dir"),
    "fsync-read-only": ("complete_fsync", "fsync_dir"),
    "late-enospc": ("complete_fsync", "write_back"),
    "write-back-fail": ("write_back_io",),
    "short-read": ("read_at", "read_into"),
    "read-only": ("change",),
    "gone": (*_CALLS, "complete_fsync"),
}
"""Kinds that strike a call, and the calls that they may strike.

``fsync-fail``: what could not be written is marked clean; one caller hears of it. ``fsync-lie``:
success, and nothing was written. ``fsync-read-only``: as ``fsync-fail``, and the file system goes
read-only (ext4 with ``errors=remount-ro``): until the next power cut each later change, each sync
and each opening for writing gets EROFS. ``late-enospc``: the blocks of appended data are allocated
when it is written back, and none is left: pages behind the durable end are lost as after
``fsync-fail``, with ENOSPC, and those that have a block are written. It strikes an fsync, or the
kernel's own write-back (``write_back``, which no process calls): then the next fsync of the file
says so. An fsync that needs no block passes. ``write-back-fail``: as ``fsync-fail`` with ``next``,
but it strikes the kernel's own write-back of a file. ``short-read``: a read is answered in two
parts, and the loop of the disk contract makes one of them. ``read-only``: the file system is
mounted read-only: whatever would change it, and each sync, gets EROFS (``change`` stands for all of
these); unlike behind a ``fsync-read-only``, it ends with the fault and not with a power cut.
``gone``: the disk does not answer: each call fails.
"""


NO_CALLS: Final = frozenset({"change", "write_back", "write_back_io"})
"""What no process calls: a name for all changes, and what the kernel does by itself."""


@frozen(kw_only=True)
class DiskFault(Value):
    """One fault.

    Attributes:
        id: names it in traces and manifests.
        kind: one of ``FAULT_KINDS``.
        operation: the disk call, or None for every call that the kind allows.
        path: suffix of the path that is struck; empty for every path.
        after: so many matching calls pass before the first strike.
        times: so many strikes, None for ever.
        errno: what a failing call reports; ``late-enospc`` always ENOSPC, and the calls behind a
            ``fsync-read-only`` EROFS.
        partial_bytes: of a failing write, how many bytes are stored all the same; of a split
            write or short read, how many bytes the first part has (the caller's loop does the
            rest).
        shift_bytes: how far from its place a misdirected write lands.
        content: what readers see after a failed fsync: ``keep`` the new bytes (ext4, XFS) or
            ``revert`` to the old ones (Btrfs).
        report: whether a failed fsync says so ``now`` or at the ``next`` one on the same file.
    """

    id: str
    kind: str = field()
    operation: str | None = None
    path: str = ""
    after: int = 0
    times: int | None = 1
    errno: int = errno.EIO
    partial_bytes: int = 0
    shift_bytes: int = 4_096
    content: str = field(default="keep")
    report: str = field(default="now")

    def __attrs_post_init__(self) -> None:
        for name, allowed in (
            ("kind", tuple(FAULT_KINDS)),
            ("content", ("keep", "revert")),
            ("report", ("now", "next")),
        ):
            if getattr(self, name) not in allowed:
                seen = getattr(self, name)
                raise ValueError(f"{name} is {seen!r}, allowed: {', '.join(allowed)}")
        calls = FAULT_KINDS[self.kind]
        if self.operation is not None and self.operation not in calls:
            raise ValueError(
                f"operation is {self.operation!r}, allowed for {self.kind}: {', '.join(calls)}"
            )
        for name, least in (("after", 0), ("partial_bytes", 0), ("times", 1)):
            value = getattr(self, name)
            if value is not None and value < least:
                more = ", or None" if name == "times" else ""
                raise ValueError(f"{name} is {value}, allowed is {least} or more{more}")


@define
class _Armed:
    fault: DiskFault
    seen: int = 0
    struck: int = 0


@define
class FaultPlan:
    """The faults that are active on one disk, in the order they were added."""

    _armed: list[_Armed] = field(factory=list)

    def add(self, fault: DiskFault) -> None:
        """Activate a fault."""
        self._armed.append(_Armed(fault))

    def remove(self, fault_id: str) -> None:
        """Deactivate a fault; unknown ids are fine."""
        self._armed = [armed for armed in self._armed if armed.fault.id != fault_id]

    def is_idle(self) -> bool:
        """Whether no fault can strike any more."""
        return not self._armed

    def has(self, kind: str) -> bool:
        """Whether a fault of a kind is active."""
        return any(armed.fault.kind == kind for armed in self._armed)

    def strikes(self, fault_id: str) -> int:
        """How often a fault has struck."""
        return sum(armed.struck for armed in self._armed if armed.fault.id == fault_id)

    def match(self, operation: str, path: str) -> DiskFault | None:
        """The first fault that strikes this call, counted as having done so."""
        found = None
        for armed in self._armed:
            fault = armed.fault
            if operation not in FAULT_KINDS[fault.kind]:
                continue
            if fault.operation not in (None, operation) or not path.endswith(fault.path):
                continue
            armed.seen += 1
            is_due = armed.seen > fault.after
            has_left = fault.times is None or armed.struck < fault.times
            if found is None and is_due and has_left:
                armed.struck += 1
                found = fault
        return found

    def copy(self) -> FaultPlan:
        """An independent copy with its counts."""
        return FaultPlan([_Armed(a.fault, a.seen, a.struck) for a in self._armed])
