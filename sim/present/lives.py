"""Things that begin and end: which of them there are behind any event.

Left out: values that change (``sim.present.history.Series``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from sim.present.history import FOREVER

__all__ = ["Lives"]

SNAPSHOT_EVERY: Final = 512
_T = TypeVar("_T")


class Lives(Generic[_T]):
    """Things, each there behind event ``n`` if it began at ``n`` or before and ends later.

    They are added in the order in which they begin. What is there is found from the last
    snapshot, so that a question takes as long as what is there and what began since.
    """

    def __init__(self) -> None:
        self.begins: list[int] = []
        self.ends: list[int] = []
        self.things: list[_T] = []
        self._snapshots: list[Sequence[int]] | None = None

    def add(self, n: int, thing: _T, end: int = FOREVER) -> int:
        """Begin a thing with event ``n``; returns its number, for ``end``.

        Raises:
            ValueError: one that began later was added before.
        """
        if self.begins and n < self.begins[-1]:
            raise ValueError(f"it begins with event {n}, the last one with {self.begins[-1]}")
        self.begins.append(n)
        self.ends.append(end)
        self.things.append(thing)
        self._snapshots = None
        return len(self.things) - 1

    def end(self, number: int, n: int) -> None:
        """End a thing with event ``n``; a thing ends once."""
        if self.ends[number] == FOREVER:
            self.ends[number] = n
            self._snapshots = None

    def __len__(self) -> int:
        return len(self.things)

    def numbers_at(self, n: int) -> list[int]:
        """The numbers of those that are there behind event ``n``, oldest first."""
        block = max(0, n) // SNAPSHOT_EVERY
        snapshots = self._all_snapshots()
        known = snapshots[min(block, len(snapshots) - 1)]
        first = bisect_right(self.begins, min(block, len(snapshots) - 1) * SNAPSHOT_EVERY)
        last = bisect_right(self.begins, n)
        return [
            number
            for numbers in (known, range(first, last))
            for number in numbers
            if n < self.ends[number]
        ]

    def at(self, n: int) -> list[_T]:
        """What is there behind event ``n``, oldest first."""
        return [self.things[number] for number in self.numbers_at(n)]

    def _all_snapshots(self) -> list[Sequence[int]]:
        """For each multiple of ``SNAPSHOT_EVERY`` those that are there behind it."""
        if self._snapshots is None:
            found: list[Sequence[int]] = [[]]
            alive: list[int] = []
            at = 0
            last = self.begins[-1] if self.begins else 0
            for n in range(0, last + SNAPSHOT_EVERY, SNAPSHOT_EVERY):
                while at < len(self.begins) and self.begins[at] <= n:
                    alive.append(at)
                    at += 1
                alive = [number for number in alive if n < self.ends[number]]
                if n:
                    found.append(tuple(alive))
                else:
                    found[0] = tuple(alive)
            self._snapshots = found
        return self._snapshots
