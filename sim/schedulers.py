"""Schedulers: which of the entries of one moment goes first.

A scheduler gives each entry of the timeline a tie when it is entered; within one time and class the
smaller goes first, and equal ones by origin and ordinal.

* ``Fifo``: all ties are 0. A shrunk run has no noise of the schedule.
* ``Seeded``: keyed draws, so an entry's tie does not depend on what else there is.
* ``Pct``: probabilistic concurrency testing (Burckhardt et al., ASPLOS 2010): every origin has a
  drawn priority, and at ``depth - 1`` drawn entries the origin at hand goes last from then on. It
  counts entries, so one entry less changes what follows.
* ``Replay``: the ties that a ``Recording`` took down, 0 for entries that it does not have.

Left out: choosing one (``sim.world``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from sim.draws import Draws, Stream

__all__ = ["Fifo", "Pct", "Recording", "Replay", "Scheduler", "Seeded"]

_TIE_BITS = 32
_LAST = 1 << _TIE_BITS


class Scheduler(Protocol):
    """Gives ties."""

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        """The tie of one entry, 0 or more. Called once for each, in the order of entering."""


class Fifo:
    """See the module."""

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        return 0


class Seeded:
    """See the module."""

    def __init__(self, draws: Draws) -> None:
        self._draws = draws
        self._streams: dict[str, Stream] = {}

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        stream = self._streams.get(origin)
        if stream is None:
            stream = self._streams[origin] = self._draws.stream("tie", origin)
        return stream.bits(ordinal) >> (64 - _TIE_BITS)


class Pct:
    """See the module."""

    def __init__(self, draws: Draws, *, depth: int, entries: int) -> None:
        """``depth`` 1 or more: how many orderings a bug may need; ``entries`` 1 or more: about how
        many entries the run has.
        """
        if depth < 1 or entries < 1:
            raise ValueError(f"depth is {depth}, entries is {entries}, allowed is 1 or more")
        self._draws = draws
        self._changes = {draws.below(entries, "pct-change", at) for at in range(depth - 1)}
        self._priorities: dict[str, int] = {}
        self._seen = 0
        self._demoted = 0

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        if origin not in self._priorities:
            self._priorities[origin] = self._draws.below(_LAST, "pct-priority", origin)
        if self._seen in self._changes:
            self._demoted += 1
            self._priorities[origin] = _LAST + self._demoted
        self._seen += 1
        return self._priorities[origin]


class Recording:
    """Another scheduler, whose ties other than 0 are taken down in ``taken``."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self.taken: dict[tuple[str, int], int] = {}

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        tie = self._scheduler.tie(event_class, origin, ordinal)
        if tie:
            self.taken[origin, ordinal] = tie
        return tie


class Replay:
    """See the module."""

    def __init__(self, ties: Mapping[tuple[str, int], int]) -> None:
        self._ties = dict(ties)

    def tie(self, event_class: int, origin: str, ordinal: int) -> int:
        return self._ties.get((origin, ordinal), 0)
