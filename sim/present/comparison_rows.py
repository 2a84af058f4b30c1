"""The events of two runs in rows, partners side by side, around the place where the runs part.

Left out: widths and colours (whoever prints them).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from attrs import frozen

from sim.present.aligning import Alignment, How
from sim.present.compared import Compared
from sim.present.comparing import Comparison
from sim.present.describing import describe

__all__ = ["Cell", "PairRow", "rows"]

Mark = Literal["same", "changed", "alike", "only-a", "only-b"]
_MARKS: Final[dict[How, Mark]] = {
    How.SAME: "same",
    How.CHANGED: "changed",
    How.ALIKE: "alike",
}


@frozen
class Cell:
    """One event; ``text`` is escaped."""

    n: int
    t_us: int
    node: str
    text: str


@frozen
class PairRow:
    """An event of A beside its partner in B; None where there is none.

    Attributes:
        is_divergence: whether the runs part here.
    """

    a: Cell | None
    b: Cell | None
    mark: Mark
    is_divergence: bool


def rows(comparison: Comparison, *, before: int = 4, behind: int = 5) -> list[PairRow]:
    """So many rows in front of the divergence and behind it; none where the runs never part."""
    place = comparison.divergence
    if place is None:
        return []
    alignment = comparison.alignment
    numbers: list[tuple[int, int]] = []
    for n in range(place.at_a if place.a is None else place.a - 1, 0, -1):
        if len(numbers) == before:
            break
        if alignment.partner_a[n]:
            numbers.append((n, alignment.partner_a[n]))
    numbers.reverse()
    here = len(numbers)
    numbers.append((place.a or 0, place.b or 0))
    following = _following(alignment, place.at_a + 1, place.at_b + 1)
    numbers += [pair for _, pair in zip(range(behind), following, strict=False)]
    mine = _cells(comparison.a, [a for a, _ in numbers])
    theirs = _cells(comparison.b, [b for _, b in numbers])
    return [
        PairRow(mine.get(a), theirs.get(b), _mark(alignment, a, b), at == here)
        for at, (a, b) in enumerate(numbers)
    ]


def _following(alignment: Alignment, a: int, b: int) -> Iterator[tuple[int, int]]:
    """What comes next in both: partners together, others alone, in the order of A."""
    partner_a, partner_b = alignment.partner_a, alignment.partner_b
    shown: set[int] = set()
    while a < len(partner_a) or b < len(partner_b):
        if b < len(partner_b) and (b in shown or (partner_b[b] and partner_b[b] < a)):
            b += 1  # It stands beside its partner.
        elif a < len(partner_a) and not partner_a[a]:
            yield a, 0
            a += 1
        elif b < len(partner_b) and not partner_b[b]:
            yield 0, b
            b += 1
        elif a < len(partner_a):
            shown.add(partner_a[a])
            yield a, partner_a[a]
            a += 1
        else:
            return


def _mark(alignment: Alignment, a: int, b: int) -> Mark:
    if not b:
        return "only-a"
    if not a:
        return "only-b"
    if alignment.partner_a[a] == b:
        return _MARKS[alignment.how_a[a]]
    return "changed"


def _cells(side: Compared, numbers: list[int]) -> dict[int, Cell]:
    found = {}
    for n in numbers:
        event = side.event(n)
        if event is not None:
            found[n] = Cell(n, event.t_us, event.node, describe(event))
    return found
