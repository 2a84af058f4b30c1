"""Fuses: at which disk call the power goes off, or the process ends.

A fuse waits for the n-th call from now, of all calls or of those with one operation and path. A
call that fails by itself passes its fuse on to the next one. A fuse that ends the process leaves
the others in, for the process that is started next; when the power comes back, all are out.

Left out: what a blown fuse does (``sim.disk_core``).
"""

from __future__ import annotations

from typing import Final, Literal

from attrs import define, evolve, field

from sim.disk_faults import FAULT_KINDS, NO_CALLS

__all__ = ["OPERATIONS", "Fuses"]

OPERATIONS: Final = tuple(sorted({"begin_fsync"}.union(*FAULT_KINDS.values()).difference(NO_CALLS)))
"""The calls of a disk; ``fsync`` is ``begin_fsync`` and then ``complete_fsync``."""


@define
class _Fuse:
    operation: str | None
    path: str
    left: int
    kills: bool
    fault: str = ""
    is_due: bool = False


@define
class Fuses:
    """The fuses of one disk; ``armed`` is empty where none waits.

    Attributes:
        blown: the fault of the fuse that blew last; empty if it was armed without one.
    """

    armed: list[_Fuse] = field(factory=list)
    blown: str = ""

    def arm(self, calls: int, *, kills: bool, fault: str = "") -> None:
        """Wait for the n-th call of any kind; an earlier such fuse goes out."""
        if calls < 1:
            raise ValueError(f"calls is {calls}, allowed is 1 or more")
        self.armed = [f for f in self.armed if f.operation is not None or f.kills != kills]
        self.armed.append(_Fuse(None, "", calls, kills, fault))

    def arm_at(
        self, operation: str, path_suffix: str, hit: int, *, kills: bool, fault: str = ""
    ) -> None:
        """Wait for the n-th call of one operation on paths with one end."""
        if operation not in OPERATIONS:
            raise ValueError(f"operation is {operation!r}, allowed: {', '.join(OPERATIONS)}")
        if hit < 1:
            raise ValueError(f"hit is {hit}, allowed is 1 or more")
        self.armed.append(_Fuse(operation, path_suffix, hit, kills, fault))

    def disarm(self, fault: str | None = None) -> None:
        """Take all out, or those of one fault."""
        self.armed = [f for f in self.armed if fault is not None and f.fault != fault]

    def count(self, operation: str, path: str) -> bool:
        """Count a call; whether a fuse blows in it."""
        blows = False
        for fuse in self.armed:
            fuse.is_due = False
            if fuse.operation in (None, operation) and path.endswith(fuse.path):
                fuse.left -= 1
                fuse.is_due = fuse.left <= 0
                blows = blows or fuse.is_due
        return blows

    def blow(self) -> Literal["power", "process"]:
        """What goes off in the call counted last, where a fuse blows in it."""
        due = sorted((fuse for fuse in self.armed if fuse.is_due), key=lambda fuse: fuse.kills)
        self.blown = due[0].fault
        if not due[0].kills:
            return "power"
        self.armed = [fuse for fuse in self.armed if not fuse.is_due]
        return "process"

    def copy(self) -> Fuses:
        """An independent copy."""
        return Fuses([evolve(fuse) for fuse in self.armed], self.blown)
