"""Which parts of a scenario an event of its run goes back to.

The causes of an event are followed back until they reach what a part did: its step, its fault, or
an event that names its fault. Two things happen because something did not, and have no cause that
says so:

* a controller fences a broker of which it has not heard: the causes are then what ended, stopped or
  slowed that broker or the controller, or kept them apart, since it was heard last;
* a broker is started again: the causes are then those of the end before.

The nearest part on each way counts; what lies behind it does not.

Left out: whether the parts were needed, which only a run without them can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from cluster.names import CONTROLLER
from sim.blame.parts import Part
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["Culprits"]

_ENDS: Final = (Kind.CRASH, Kind.STOP)
_HALTS: Final = (Kind.CRASH, Kind.STOP, Kind.PAUSE, Kind.SHUTDOWN)


class Culprits:
    """Answers for one run."""

    def __init__(self, events: Sequence[Event], parts: Iterable[Part]) -> None:
        """``events`` are all of a run, from the first on."""
        self._events = events
        self._parts = tuple(parts)
        self._by_key = {each.key: each for each in self._parts}
        self._by_step = {each.name.removeprefix("step "): each for each in self._parts if each.step}
        self._fenced: dict[int, list[str]] = {}
        self._halts: dict[str, list[int]] = {}
        self._faults: dict[str, list[tuple[int, int]]] = {}
        self._strikes: list[int] = []
        self._links: list[int] = []
        begun: dict[str, tuple[str, int]] = {}
        for event in events:
            if event.kind is Kind.FENCE and event.cause:
                self._fenced.setdefault(event.cause[0], []).append(str(event.args.get("broker")))
            elif event.kind in _HALTS:
                self._halts.setdefault(event.node, []).append(event.n)
            elif event.kind is Kind.FAULT and "kind" in event.args:
                begun[str(event.args.get("id"))] = event.node, event.n
                if not isinstance(event.args.get("target"), str):
                    self._links.append(event.n)
            elif event.kind is Kind.HEAL:
                known = begun.pop(str(event.args.get("id")), None)
                if known is not None:
                    self._faults.setdefault(known[0], []).append((known[1], event.n))
            if "fault" in event.args:
                self._strikes.append(event.n)
        for node, number in begun.values():
            self._faults.setdefault(node, []).append((number, len(events) + 1))

    def part_of(self, n: int) -> Part | None:
        """The part whose doing an event is by its own words."""
        event = self._events[n - 1]
        if event.kind is Kind.STEP:
            return self._by_step.get(str(event.args.get("id"))) if event.node == "world" else None
        is_fault = event.kind in (Kind.FAULT, Kind.HEAL)
        key = event.args.get("id" if is_fault else "fault")
        if not isinstance(key, str):
            return None
        # A fault of several nodes is ID/NODE for each of them.
        return self._by_key.get(key) or self._by_key.get(key.rpartition("/")[0])

    def behind(self, numbers: Iterable[int]) -> tuple[Part, ...]:
        """The parts that events go back to, in the order of the file."""
        found: set[str] = set()
        front = [n for n in numbers if 0 < n <= len(self._events)]
        seen = set(front)
        while front:
            n = front.pop()
            part = self.part_of(n)
            if part is not None:
                found.add(part.name)
                continue
            for each in self.before(n):
                if each not in seen:
                    seen.add(each)
                    front.append(each)
        return tuple(each for each in self._parts if each.name in found)

    def before(self, n: int) -> Iterator[int]:
        """What an event goes back to: its causes, or what was missing."""
        event = self._events[n - 1]
        if event.kind is Kind.TIMER and n in self._fenced:
            low = event.cause[0] if event.cause else 0
            silent = [each for node in self._fenced[n] for each in self._silence(node, low, n)]
            if silent:
                yield from silent
                return
        if event.kind is Kind.START:
            ended = [each for each in self._halts.get(event.node, ()) if each < n]
            yield from (each for each in ended[-1:] if self._events[each - 1].kind in _ENDS)
        yield from event.cause

    def _silence(self, node: str, low: int, high: int) -> list[int]:
        """Why nothing was heard of a broker between two events."""
        pair = {node, CONTROLLER}
        found = [each for each in self._halts.get(node, ()) if each < high][-1:]
        if found and self._is_up_again(node, found[0], low):
            found = []
        for each in self._strikes:
            if low < each < high and self._ends_of(each) == pair:
                found.append(each)
        for name in (node, CONTROLLER):
            for begun, ended in self._faults.get(name, ()):
                if begun < high and ended > low:
                    found.append(begun)
        if not found:
            # What a slow link holds up arrives long behind the end of its fault, and untold.
            found = [each for each in self._links if each < high and self._is_between(each, pair)]
        return found

    def _is_between(self, n: int, pair: set[str]) -> bool:
        """Whether a fault strikes a link between two nodes."""
        edges: Any = self._events[n - 1].args.get("target")
        ends = [{edge} if isinstance(edge, str) else {*edge} for edge in edges]
        return any(each <= {*pair, "*"} for each in ends)

    def _is_up_again(self, node: str, halt: int, low: int) -> bool:
        """Whether it was heard of behind its last halt."""
        return halt <= low and any(
            event.node == node and event.kind in (Kind.START, Kind.RESUME)
            for event in self._events[halt:low]
        )

    def _ends_of(self, n: int) -> set[str]:
        args = self._events[n - 1].args
        return {str(args.get("from")), str(args.get("to"))}
