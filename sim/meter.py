"""Collectors that take down when, since a handler began, each effect was put.

Calls of the disk stand among the effects, where they were made.

Left out: what things cost (``sim.process``), and carrying effects out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from cluster.effects import Effect, Effects
from sim.trace.kinds import Kind

__all__ = ["CALL_KINDS", "DiskCall", "Meter", "Put", "Strike"]

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
    """A call of the disk, of ``size_bytes`` bytes at ``position``.

    Attributes:
        spent_us: since the handler began, once the call was done.
    """

    spent_us: int
    operation: str
    path: str
    position: int
    size_bytes: int

    @property
    def is_told(self) -> bool:
        """Whether the trace has an event of it."""
        return self.operation in CALL_KINDS

    def event(self) -> tuple[Kind, dict[str, Any]] | None:
        """What the trace says of it: nothing, where it changed nothing."""
        kind = CALL_KINDS.get(self.operation)
        if kind is None:
            return None
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


Put = Effect | DiskCall | Strike
"""What stands in a meter."""


class Meter(Effects):
    """See the module. Lives as long as one call of a handler.

    Attributes:
        cpu_us: spent before anything is put.
        spent_us: CPU and disk time so far.
        puts: everything that was put, in order. What stands behind a call of the disk was put when
            that was done.
    """

    __slots__ = ("cpu_us", "puts", "spent_us")

    def __init__(self, yields: frozenset[str], cpu_us: int) -> None:
        super().__init__(yields=yields)
        self.cpu_us = self.spent_us = cpu_us
        self.puts: list[Put] = []

    def _put(self, effect: Effect) -> None:
        if not self._is_stopped:
            self.puts.append(effect)

    def note_call(
        self, operation: str, path: Path, position: int, size_bytes: int, cost_us: int
    ) -> None:
        """The disk has done a call."""
        self.spent_us += cost_us
        if cost_us or operation in CALL_KINDS:
            call = DiskCall(self.spent_us, operation, str(path), position, size_bytes)
            self.puts.append(call)

    def close(self) -> list[Put]:
        """Everything in order; the place where the handler stopped, if it did, comes last."""
        if self._stops and not self._is_stopped:
            self.puts += self._stops
        return self.puts

    def disk_events(self) -> Iterator[tuple[Kind, dict[str, Any]]]:
        """What the trace says of the disk's part alone."""
        for put in self.puts:
            if isinstance(put, DiskCall | Strike):
                event = put.event()
                if event is not None:
                    yield event
