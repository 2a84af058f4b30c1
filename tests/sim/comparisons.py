"""Traces to compare: from memory, and what must hold of any alignment of two of them.

Left out: what is expected of a comparison.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sim.present.aligning import Alignment, How, Keys, align
from sim.present.comparing import Comparison, Source, compare
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Footer, Header

__all__ = ["HEADER", "aligned", "assert_aligned", "compared", "ev", "inserted", "source"]

HEADER = Header("0.1.0", "drawn", None, 7, {}, ("b1", "b2"), [])
_NOT_COMPARED = {"sent", "culprits", "evidence", "took_us", "by_us", "id", "fault", "detail"}


def ev(n: int, node: str, kind: Kind, *cause: int, t: int | None = None, **args: Any) -> Event:
    """One event; it is at ``1000 * n`` unless told."""
    return Event(n, 1_000 * n if t is None else t, node, kind, cause, args)


def source(
    events: Sequence[Event], header: Header = HEADER, footer: Footer | None = None
) -> Source:
    def fetch(first: int, last: int | None) -> Iterable[Event]:
        return events[first - 1 : last]

    return Source("memory", header, fetch, footer)


def compared(
    a: Sequence[Event],
    b: Sequence[Event],
    *,
    headers: tuple[Header, Header] = (HEADER, HEADER),
    is_cut: tuple[bool, bool] = (False, False),
) -> Comparison:
    """Two lists of events compared, whole ones unless told."""
    sides = [
        source(events, header, None if cut else Footer(len(events), "passed", "0" * 32))
        for events, header, cut in zip((a, b), headers, is_cut, strict=True)
    ]
    return compare(*sides)


def aligned(a: Iterable[Event], b: Iterable[Event]) -> Alignment:
    table: dict[str, int] = {}
    sides = Keys(table), Keys(table)
    for events, keys in zip((a, b), sides, strict=True):
        for event in events:
            keys.take(event)
    return align(*sides)


def inserted(events: Sequence[Event], at: int, new: Event) -> list[Event]:
    """The same events with another one in front of event ``at``, which shifts all numbers."""
    found = []
    for event in events:
        if event.n == at:
            found.append(new._replace(n=at))
        n = event.n + (event.n >= at)
        cause = tuple(each + (each >= at) for each in event.cause)
        found.append(event._replace(n=n, cause=cause))
    if at > len(events):
        found.append(new._replace(n=len(events) + 1))
    return found


def _kept(args: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if key not in _NOT_COMPARED | {"copies"}}


def assert_aligned(found: Alignment, a: Sequence[Event], b: Sequence[Event]) -> None:
    """Pairs are one to one, of like events, of causes that are pairs; and no pair is missing."""
    partners = [each for each in found.partner_b if each]
    assert len(partners) == len(set(partners))
    causal = {one: other for one, other, how in found.pairs() if how in (How.SAME, How.CHANGED)}
    for one, other, how in found.pairs():
        first, second = a[one - 1], b[other - 1]
        assert found.partner_b[other] == one
        assert found.how_a[one] is found.how_b[other] is how
        assert (first.node, first.kind) == (second.node, second.kind)
        if how is not How.CHANGED:
            assert _kept(first.args) == _kept(second.args)
        if how is not How.ALIKE:
            assert sorted(causal[each] for each in first.cause) == sorted(second.cause)
    left = [
        (event.node, event.kind, str(event.args), sorted(causal[each] for each in event.cause))
        for event in a
        if event.n not in causal and all(each in causal for each in event.cause)
    ]
    taken = set(causal.values())
    for event in b:
        if event.n not in taken:
            assert (event.node, event.kind, str(event.args), sorted(event.cause)) not in left
