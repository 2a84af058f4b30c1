"""The timeline: what is to happen, in the one order in which it will.

An entry is a callable with its arguments. Entries are ordered by (time, class, tie, origin,
ordinal): the class says what goes first within one microsecond, the tie comes from a scheduler
(``sim.schedulers``), and origin and ordinal make keys unique without a counter that all share. So
what one origin does never moves what the others do (FAULTS C.0).

A world can be copied, so callables are bound methods or plain functions, never closures.

Left out: what the entries do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Any, Protocol

from sim.schedulers import Fifo, Scheduler

__all__ = ["Driver", "EventClass", "Timeline", "Token"]

_SWEEP_MIN = 1_024


class EventClass(IntEnum):
    """What goes first at one moment."""

    FAULT = 0
    DISK = 1
    DELIVERY = 2
    TIMER = 3
    CLIENT = 4
    CHECK = 5


Token = tuple[str, int]
"""Names one entry, by its origin and ordinal; ``Timeline.cancel`` takes it."""


_Entry = tuple[int, int, int, str, int, Callable[..., object], tuple[Any, ...]]


class Driver(Protocol):
    """Whoever alone may step the world."""

    def before_step(self) -> None:
        """Raise where somebody else does."""

    def check_alone(self) -> None:
        """Raise where scripts are under way that a copy of the world would not have."""


class Timeline:
    """See the module.

    Attributes:
        now_us: virtual time in microseconds, from 0; the time of the entry popped last.
        scheduler: where ties come from.
        driver: asked before each entry, while scripts run.
    """

    __slots__ = ("_cancelled", "_heap", "_is_fifo", "_ordinals", "driver", "now_us", "scheduler")

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        self.now_us = 0
        self.scheduler: Scheduler = scheduler or Fifo()
        self._is_fifo = isinstance(self.scheduler, Fifo)
        self.driver: Driver | None = None
        self._heap: list[_Entry] = []
        self._ordinals: dict[str, int] = {}
        self._cancelled: set[tuple[str, int]] = set()

    def __len__(self) -> int:
        """How many entries are to come."""
        return len(self._heap) - len(self._cancelled)

    def at(
        self,
        at_us: int,
        event_class: EventClass,
        origin: str,
        call: Callable[..., object],
        *args: Any,
    ) -> Token:
        """Enter ``call(*args)`` at a time, which is now if it has passed.

        Args:
            origin: who enters it, as ``timer:b1`` or ``link:b1>b2``. Entries of one origin at one
                time and class happen in their order, unless the scheduler says otherwise.
        """
        ordinal = self._ordinals.get(origin, 0)
        self._ordinals[origin] = ordinal + 1
        if at_us < self.now_us:
            at_us = self.now_us
        tie = 0 if self._is_fifo else self.scheduler.tie(event_class, origin, ordinal)
        heappush(self._heap, (at_us, event_class, tie, origin, ordinal, call, args))
        return origin, ordinal

    def cancel(self, token: Token) -> None:
        """Take an entry out that has neither happened nor been cancelled."""
        self._cancelled.add(token)
        if len(self._cancelled) > _SWEEP_MIN and 2 * len(self._cancelled) > len(self._heap):
            self.sweep()

    def sweep(self) -> None:
        """Forget the entries that were cancelled, and what they hold."""
        self._heap = [entry for entry in self._heap if entry[3:5] not in self._cancelled]
        heapify(self._heap)
        self._cancelled.clear()

    def next_us(self) -> int | None:
        """The time of the next entry, or None where nothing is to come."""
        self._drop_cancelled()
        return self._heap[0][0] if self._heap else None

    def pop(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        """Take the next entry out, and go to its time.

        Raises:
            IndexError: nothing is to come.
        """
        if self.driver is not None:
            self.driver.before_step()
        entry = heappop(self._heap)
        cancelled = self._cancelled
        while cancelled and entry[3:5] in cancelled:
            cancelled.remove(entry[3:5])
            entry = heappop(self._heap)
        self.now_us = entry[0]
        return entry[5], entry[6]

    def advance(self, to_us: int) -> None:
        """Go to a time before which nothing is to come; an earlier one changes nothing.

        Raises:
            ValueError: an entry is due before.
        """
        if self.driver is not None:
            self.driver.before_step()
        due = self.next_us()
        if due is not None and due < to_us:
            raise ValueError(f"an entry is due at {due} us, before {to_us} us")
        self.now_us = max(self.now_us, to_us)

    def entries(self) -> Iterator[_Entry]:
        """What is to come, in order."""
        return (entry for entry in sorted(self._heap) if entry[3:5] not in self._cancelled)

    def _drop_cancelled(self) -> None:
        heap, cancelled = self._heap, self._cancelled
        while cancelled and heap and heap[0][3:5] in cancelled:
            cancelled.remove(heap[0][3:5])
            heappop(heap)
