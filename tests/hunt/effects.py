"""Which faults had an effect, from the events of a run.

Most effects are events that name their fault: a message dropped, a write torn. Those of some kinds
are not: a clock that is off, a handler that takes longer. Of these it counts that the node did,
while the fault was there, what the fault changes; the table says what.

Left out: how large an effect was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sim.trace.kinds import Kind

__all__ = ["BEGINS_WITH_EFFECT", "EFFECTS", "WHILE", "FaultEffects"]

_FOREVER_US: Final = 1 << 62
_BY_CALLS: Final = frozenset({Kind.DISK_ERROR})
_FRAMES: Final = frozenset({Kind.DROP, Kind.HOLD, Kind.DELAY})

EFFECTS: Final[dict[str, frozenset[Kind]]] = {
    "cut": _FRAMES | {Kind.RESET},
    "partition": _FRAMES | {Kind.RESET},
    "clog": frozenset({Kind.HOLD}),
    "loss": frozenset({Kind.DELAY, Kind.RESET, Kind.DROP}),
    "reset": frozenset({Kind.RESET}),
    "refuse": frozenset({Kind.DROP, Kind.REFUSE}),
    "limit": frozenset({Kind.TRANSMIT}),
    "corrupt": frozenset({Kind.CORRUPT}),
    "duplicate": frozenset({Kind.DUPLICATE}),
    "reorder": frozenset({Kind.DELAY}),
    "flap": _FRAMES | {Kind.RESET},
    "swizzle": frozenset({Kind.HOLD}),
    "metadata-lag": frozenset({Kind.HOLD, Kind.DROP, Kind.DELAY}),
    "crash": frozenset({Kind.CRASH}),
    "crash-loop": frozenset({Kind.CRASH}),
    "failpoint": frozenset({Kind.FAILPOINT, Kind.CRASH}),
    "pause": frozenset({Kind.PAUSE}),
    "clock-strobe": frozenset({Kind.NOTE}),
    "fill": _BY_CALLS,
    "fsync-fail": _BY_CALLS,
    "fsync-lie": _BY_CALLS,
    "fsync-read-only": _BY_CALLS,
    "enospc": _BY_CALLS,
    "eio": _BY_CALLS,
    "split-write": _BY_CALLS,
    "lost-write": _BY_CALLS,
    "misdirected-write": _BY_CALLS,
    "short-read": _BY_CALLS,
    "write-back-fail": _BY_CALLS,
    "read-only": _BY_CALLS,
    "disk-gone": _BY_CALLS,
    "bad-sector": _BY_CALLS,
    "bit-rot": frozenset({Kind.CORRUPT}),
}
"""Kind of fault, and the kinds of event that name it and are its effect."""

_DISK_CALLS: Final = frozenset({Kind.WRITE, Kind.FSYNC, Kind.DISK})
_HANDLED: Final = frozenset({Kind.DELIVER, Kind.TIMER, Kind.SYNCED, Kind.STEP})
WHILE: Final[dict[str, frozenset[Kind]]] = {
    "Slow": frozenset({Kind.SEND}),
    "SlowCpu": _HANDLED,
    "DiskSlow": _DISK_CALLS,
    "DiskStall": _DISK_CALLS,
    "ClockDrift": _HANDLED,
    "ClockFreeze": _HANDLED,
    "TimerJitter": frozenset({Kind.TIMER}),
}
"""Class of a fault of the world, and what a node it strikes does to show it, behind its begin."""

_CITED: Final = frozenset({"TimerJitter"})
"""Those whose begin is a cause of what shows them."""

BEGINS_WITH_EFFECT: Final = frozenset({"ClockStep"})
"""Classes of which the begin is the effect."""


class _Active(NamedTuple):
    """A fault that is there: what shows it, until when, and the begin that must be its cause."""

    kind: str
    shows: frozenset[Kind]
    until_us: int
    begun: int


class FaultEffects:
    """Looks at events, in order.

    Attributes:
        seen: kinds of faults that had an effect.
    """

    def __init__(self, kinds: Mapping[str, str]) -> None:
        """``kinds``: the kind of each fault of the scenario, by its id."""
        self.seen: set[str] = set()
        self._kinds = kinds
        self._active: dict[str, dict[str, _Active]] = {}
        self._holds: set[int] = set()
        self._of_holds: dict[str, str] = {}

    def kind_of(self, fault_id: object) -> str | None:
        """The kind of a fault, by its id or that of a part of it; None for what a step did."""
        return self._kinds.get(str(fault_id).partition("/")[0])

    def on_named(self, kind: Kind, fault_id: object) -> None:
        """An event names a fault."""
        found = self.kind_of(fault_id)
        if found is not None and kind in EFFECTS.get(found, ()):
            self.seen.add(found)

    def on_fault(self, number: int, t_us: int, args: Mapping[str, Any]) -> None:
        """A fault begins."""
        fault_id, name = args["id"], args["kind"]
        kind = self.kind_of(fault_id)
        if kind is None or kind in self.seen:
            return
        if name in BEGINS_WITH_EFFECT:
            self.seen.add(kind)
        elif name == "BackgroundHold":
            self._of_holds[fault_id] = kind
        elif name in WHILE:
            until_us = t_us + args["args"].get("duration_us", _FOREVER_US)
            for node in _nodes(args["target"]):
                found = _Active(kind, WHILE[name], until_us, number if name in _CITED else 0)
                self._active.setdefault(node, {})[fault_id] = found

    def on_heal(self, number: int, fault_id: str) -> None:
        """A fault is over, with this event."""
        for node, found in list(self._active.items()):
            if found.pop(fault_id, None) is not None and not found:
                del self._active[node]
        if fault_id in self._of_holds:
            self._holds.add(number)

    @property
    def watched(self) -> Mapping[str, Any]:
        """The nodes at which something shows a fault that is there."""
        return self._active

    def on_event(self, t_us: int, node: str, kind: Kind, cause: Sequence[int]) -> None:
        """Something happens at a node that is watched."""
        for each in self._active[node].values():
            if (
                kind in each.shows
                and t_us < each.until_us
                and (not each.begun or each.begun in cause)
            ):
                self.seen.add(each.kind)

    @property
    def is_waiting_for_work(self) -> bool:
        """Whether work may be let go that a fault held back."""
        return bool(self._holds)

    def on_work(self, cause: Sequence[int]) -> None:
        """Background work is done."""
        if not self._holds.isdisjoint(cause):
            self.seen.update(self._of_holds.values())


def _nodes(target: Any) -> list[str]:
    """The nodes that a fault strikes: its own, or those that its links name."""
    if isinstance(target, str):
        return [target]
    return sorted({name for edge in target for name in edge if name != "*"})
