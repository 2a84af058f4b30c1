"""Collectors that take down when, since a handler began, each effect was put.

Calls of the disk stand among the effects, where they were made.

Left out: what things cost (``sim.process``), and carrying effects out.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from cluster.effects import Effect, Effects
from sim.trace.kinds import Kind

__all__ = ["CALL_KINDS", "DiskCall", "Meter", "Strike", "Timed"]

CALL_KINDS = {
    "append": Kind.WRITE,
    "write_at": Kind.WRITE,
    "fsync": Kind.FSYNC,
    "complete_fsync": Kind.FSYNC,
    "fsync_dir": Kind.FSYNC,
    "mkdir": Kind.DISK,
    "rename": Kind.DISK,
    "rmdir": Kind.DISK,
    "truncate": Kind.DISK,
    "unlink": Kind.DISK,
}
"""The kind of event of each disk call that changes something; others are not told of."""


class DiskCall(NamedTuple):
    """A call of the disk that changed something: ``size_bytes`` bytes at ``position``."""

    operation: str
    path: str
    position: int
    size_bytes: int

    def event(self) -> tuple[Kind, dict[str, Any]]:
        """What the trace says of it."""
        kind = CALL_KINDS[self.operation]
        args: dict[str, Any] = {
            "file": self.path,
            "position": self.position,
            "size": self.size_bytes,
        }
        if kind is Kind.DISK:
            args["operation"] = self.operation
        return kind, args


class Strike(NamedTuple):
    """A fault has struck a call of the disk."""

    fault: str
    operation: str
    path: str

    def event(self) -> tuple[Kind, dict[str, Any]]:
        """What the trace says of it."""
        args = {"fault": self.fault, "operation": self.operation, "file": self.path}
        return Kind.DISK_ERROR, args


Timed = tuple[int, Effect | DiskCall | Strike]
"""What was put, and the time spent before, in microseconds."""


class Meter(Effects):
    """See the module.

    Attributes:
        spent_us: CPU and disk time so far.
        timed: everything that was put, in order.
    """

    __slots__ = ("spent_us", "timed")

    def __init__(self, yields: frozenset[str], spent_us: int) -> None:
        super().__init__(yields=yields)
        self.spent_us = spent_us
        self.timed: list[Timed] = []

    def _put(self, effect: Effect) -> None:
        if not self._is_stopped:
            self.timed.append((self.spent_us, effect))

    def close(self) -> list[Timed]:
        """Everything in order; the place where the handler stopped, if it did, comes last."""
        if not self._is_stopped:
            self.timed += [(self.spent_us, stop) for stop in self._stops]
        return self.timed

    def disk_events(self) -> list[tuple[Kind, dict[str, Any]]]:
        """What the trace says of the disk's part alone."""
        return [put.event() for _, put in self.timed if isinstance(put, DiskCall | Strike)]
