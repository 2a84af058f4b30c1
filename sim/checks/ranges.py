"""Sets of offsets, kept as ranges, and sets of records: offsets by the epoch that wrote them.

Left out: what the sets are of (``sim.checks.ledger``).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from storage.values import Copied

__all__ = ["Records", "Span", "Spans"]


class Span(NamedTuple):
    """Offsets ``start`` to before ``end``, written under one leader epoch."""

    epoch: int
    start: int
    end: int


class Spans(Copied):
    """A set of offsets."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._starts, self._ends, strict=True)))

    def __len__(self) -> int:
        """How many offsets."""
        return sum(self._ends) - sum(self._starts)

    def add(self, start: int, end: int) -> None:
        """Take offsets in."""
        if start >= end:
            return
        starts, ends = self._starts, self._ends
        if not ends or start > ends[-1]:
            starts.append(start)
            ends.append(end)
            return
        if start >= starts[-1]:
            if end > ends[-1]:
                ends[-1] = end
            return
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        if low < high:
            start, end = min(start, starts[low]), max(end, ends[high - 1])
        starts[low:high] = [start]
        ends[low:high] = [end]

    def discard(self, start: int, end: int) -> None:
        """Take offsets out."""
        if start >= end:
            return
        kept = [(a, b) for a, b in self if b <= start or a >= end]
        for a, b in self.within(0, self._ends[-1] if self._ends else 0):
            if a < start < b:
                kept.append((a, start))
            if a < end < b:
                kept.append((end, b))
        kept.sort()
        self._starts = [a for a, _ in kept]
        self._ends = [b for _, b in kept]

    def within(self, start: int, end: int) -> list[tuple[int, int]]:
        """The ranges of those between two offsets."""
        found = []
        for at in range(bisect_right(self._ends, start), len(self._starts)):
            if self._starts[at] >= end:
                break
            found.append((max(start, self._starts[at]), min(end, self._ends[at])))
        return found

    def has(self, offset: int) -> bool:
        """Whether an offset is among them."""
        at = bisect_right(self._starts, offset) - 1
        return at >= 0 and offset < self._ends[at]


class Records(Copied):
    """A set of records, each known by its offset and epoch."""

    __slots__ = ("_by_epoch",)

    def __init__(self, spans: Iterable[Span] = ()) -> None:
        self._by_epoch: dict[int, Spans] = {}
        self.add(spans)

    def __iter__(self) -> Iterator[Span]:
        for epoch in sorted(self._by_epoch):
            for start, end in self._by_epoch[epoch]:
                yield Span(epoch, start, end)

    def __len__(self) -> int:
        return sum(len(spans) for spans in self._by_epoch.values())

    def __bool__(self) -> bool:
        return any(len(spans) for spans in self._by_epoch.values())

    def add(self, spans: Iterable[Span]) -> None:
        """Take records in."""
        for epoch, start, end in spans:
            known = self._by_epoch.get(epoch)
            if known is None:
                known = self._by_epoch[epoch] = Spans()
            known.add(start, end)

    def discard(self, spans: Iterable[Span]) -> None:
        """Take records out."""
        for epoch, start, end in spans:
            if epoch in self._by_epoch:
                self._by_epoch[epoch].discard(start, end)

    def has(self, epoch: int, offset: int) -> bool:
        """Whether a record is among them."""
        known = self._by_epoch.get(epoch)
        return known is not None and known.has(offset)

    def common(self, spans: Iterable[Span]) -> list[Span]:
        """Those that are in ``spans`` too."""
        found = []
        for epoch, start, end in spans:
            if epoch in self._by_epoch:
                found += [Span(epoch, a, b) for a, b in self._by_epoch[epoch].within(start, end)]
        return found

    def missing_in(self, spans: Iterable[Span], start: int = 0) -> list[Span]:
        """Those from offset ``start`` on that are not in ``spans``, which rise."""
        held: dict[int, list[tuple[int, int]]] = {}
        for epoch, a, b in spans:
            held.setdefault(epoch, []).append((a, b))
        found = []
        for epoch in sorted(self._by_epoch):
            for low, end in self._by_epoch[epoch]:
                found += _gaps(epoch, max(low, start), end, held.get(epoch, []))
        return found


def _gaps(epoch: int, start: int, end: int, held: list[tuple[int, int]]) -> list[Span]:
    found, at = [], start
    for a, b in held:
        if b <= at:
            continue
        if a >= end:
            break
        if a > at:
            found.append(Span(epoch, at, a))
        at = max(at, b)
    if at < end:
        found.append(Span(epoch, at, end))
    return found
