"""Where two runs part first, and what they differ in that can be behind it.

The first divergence is the first event of either run whose like the other run has not. All of its
causes are events that both runs have. So what made the difference is no event, unless it is itself
a step or fault of the scenario: it is something that the header tells, or time.

Left out: which events are alike (``sim.present.aligning``).
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from itertools import zip_longest
from typing import Final

from attrs import frozen

from sim.present.aligning import Alignment, How, identity
from sim.present.compared import Compared
from sim.present.describing import describe
from sim.present.header_differences import HeaderDifference
from sim.present.words import at, name, seconds
from sim.trace.kinds import Kind
from sim.trace.lines import Event, canonical, encode

__all__ = ["Divergence", "Link", "Origin", "Shift", "Unlike", "find"]

_NEAREST: Final = 8
_ROOTS: Final = 8
_VISITED_MAX: Final = 10_000
_VALUE_MAX: Final = 200
_DIFFERENCES_SHOWN: Final = 4
_SCENARIO: Final = frozenset({Kind.STEP, Kind.FAULT, Kind.HEAL, Kind.FAILPOINT, Kind.SCRIPT})
_WORTH: Final = _SCENARIO | {Kind.CRASH, Kind.START, Kind.ELECT, Kind.TRUNCATE, Kind.ROLE}
_JUDGEMENTS: Final = frozenset({Kind.CHECK, Kind.EXPECT, Kind.LOSS})
_SETTINGS: Final = ("guard", "config", "option", "topic", "node")


@frozen
class Shift:
    """The first pair of the same event that differs in what makes no other event of it.

    Attributes:
        what: ``time``, ``length`` of something that it says, ``order`` among the other events, or
            ``numbers``: of events or messages, or evidence.
    """

    a: int
    b: int
    what: str
    text: str


@frozen
class Unlike:
    """An argument that differs: JSON, cut behind ``_VALUE_MAX`` characters; None where absent."""

    path: str
    a: str | None
    b: str | None


@frozen
class Origin:
    """What the runs differ in: see ``origin`` at ``sim.present.comparing``."""

    what: str
    text: str
    a: int | None = None
    b: int | None = None


@frozen
class Link:
    """One event of a chain of causes."""

    n: int
    node: str
    text: str


@frozen
class Divergence:
    """See ``divergence`` at ``sim.present.comparing``."""

    what: str
    a: int | None
    b: int | None
    at_a: int
    at_b: int
    text: str
    unlike: tuple[Unlike, ...]
    origin: Origin
    chain_a: tuple[Link, ...]
    chain_b: tuple[Link, ...]


@frozen
class _Place:
    what: str
    a: int | None
    b: int | None
    at_a: int
    at_b: int


def find(
    a: Compared, b: Compared, alignment: Alignment, header: Sequence[HeaderDifference]
) -> tuple[Divergence | None, Shift | None]:
    """The first divergence, and the first shift in front of it; None for none."""
    place = _place(a, b, alignment)
    shift = _shift(a, b, alignment, place)
    if place is None:
        return None, shift
    one, other = a.event(place.a), b.event(place.b)
    origin = _origin(a, b, place, (one, other), header, shift)
    return (
        Divergence(
            place.what,
            place.a,
            place.b,
            place.at_a,
            place.at_b,
            _text(a, b, place, one, other),
            _unlike(one, other) if place.what == "changed" else (),
            origin,
            _chain(a, place.a),
            _chain(b, place.b),
        ),
        shift,
    )


# Where -------------------------------------------------------------------------------------------


def _place(a: Compared, b: Compared, alignment: Alignment) -> _Place | None:
    """What judges say has no effect on a run, so it only counts if nothing else differs."""
    return _place_of(a, b, alignment, _JUDGEMENTS) or _place_of(a, b, alignment, frozenset())


def _place_of(
    a: Compared, b: Compared, alignment: Alignment, passed_over: frozenset[Kind]
) -> _Place | None:
    first_a, behind_b = _first(a, alignment.how_a, alignment.partner_a, passed_over)
    first_b, behind_a = _first(b, alignment.how_b, alignment.partner_b, passed_over)
    if first_a is None and first_b is None:
        return None
    if first_a is not None and first_b is not None:
        if behind_a < first_a and behind_b < first_b:
            what = "changed" if alignment.partner_a[first_a] == first_b else "both"
            what = what if alignment.how_a[first_a] is How.CHANGED else "both"
            return _Place(what, first_a, first_b, first_a, first_b)
    if first_b is None or (first_a is not None and _is_earlier(a, b, first_a, first_b)):
        assert first_a is not None
        if alignment.how_a[first_a] is How.CHANGED:
            partner = alignment.partner_a[first_a]
            return _Place("changed", first_a, partner, first_a, partner)
        what = "end-b" if first_b is None and behind_b == b.last_n else "only-a"
        return _Place(what, first_a, None, first_a, behind_b)
    if alignment.how_b[first_b] is How.CHANGED:
        partner = alignment.partner_b[first_b]
        return _Place("changed", partner, first_b, partner, first_b)
    what = "end-a" if first_a is None and behind_a == a.last_n else "only-b"
    return _Place(what, None, first_b, behind_a, first_b)


def _first(
    side: Compared, hows: Sequence[How], partners: Sequence[int], passed_over: frozenset[Kind]
) -> tuple[int | None, int]:
    """The first event that the other side has not, and how far the other side is in front of it."""
    behind = 0
    for n in range(1, len(hows)):
        if hows[n] is How.SAME:
            behind = max(behind, partners[n])
        elif side.story.briefs[n - 1].kind not in passed_over:
            return n, behind
    return None, behind


def _is_earlier(a: Compared, b: Compared, first_a: int, first_b: int) -> bool:
    return (a.story.time_us(first_a), first_a) <= (b.story.time_us(first_b), first_b)


def _shift(a: Compared, b: Compared, alignment: Alignment, place: _Place | None) -> Shift | None:
    """The earliest one in front of a place in either run; anywhere, if the runs never part."""
    end_a, end_b = (a.last_n, b.last_n) if place is None else (place.at_a, place.at_b)
    end_us = 0 if place is None else _time_us(a, b, place)
    highest = 0
    first: tuple[int, int, str] | None = None
    for n, partner, how in alignment.pairs():
        if how is not How.SAME:
            continue
        t_a, t_b = a.story.time_us(n), b.story.time_us(partner)
        if n > end_a and partner > end_b and min(t_a, t_b) >= end_us:
            continue
        what = ""
        if t_a != t_b:
            what = "time"
        elif a.keys.lengths.get(n) != b.keys.lengths.get(partner):
            what = "length"
        elif partner < highest:
            what = "order"
        highest = max(highest, partner)
        if what and (first is None or (min(t_a, t_b), n) < first[:2]):
            first = min(t_a, t_b), n, what
    if first is not None:
        return _shift_of(a, b, first[1], alignment.partner_a[first[1]], first[2])
    if place is None and a.keys.digest != b.keys.digest:
        for one, other in zip_longest(a.source.fetch(1, None), b.source.fetch(1, None)):
            if one is not None and other is not None and canonical(one) != canonical(other):
                return _shift_of(a, b, one.n, other.n, "numbers")
    return None


def _time_us(a: Compared, b: Compared, place: _Place) -> int:
    """When the runs part, in the run in which that is earlier."""
    times = [] if place.a is None else [a.story.time_us(place.a)]
    times += [] if place.b is None else [b.story.time_us(place.b)]
    return min(times)


def _shift_of(a: Compared, b: Compared, n: int, partner: int, what: str) -> Shift:
    one, other = f"A {at(n)}", f"B {at(partner)}"
    if what == "time":
        t_a, t_b = a.story.time_us(n), b.story.time_us(partner)
        event = a.event(n)
        said = "" if event is None else f" ({name(event.node)} {describe(event)})"
        return Shift(n, partner, what, f"{one} is at {t_a} us, {other} at {t_b} us{said}")
    words = {
        "length": f"{one} and {other} take or wait for different times",
        "order": f"{one} is {other}, in another order",
        "numbers": f"{one} and {other} name other numbers or evidence",
    }
    return Shift(n, partner, what, words[what])


# Words -------------------------------------------------------------------------------------------


def _text(a: Compared, b: Compared, place: _Place, one: Event | None, other: Event | None) -> str:
    if place.what == "changed":
        return f"{_said('A', one)}, where {_said('B', other)}"
    if place.what == "both":
        return f"{_said('A', one)}, and not so in B; {_said('B', other)}, and not so in A"
    if place.what == "end-b":
        return f"B {_ends(b)}; {_said('A', one)}"
    if place.what == "end-a":
        return f"A {_ends(a)}; {_said('B', other)}"
    if place.what == "only-a":
        return f"{_said('A', one)}, and nothing like it is in B"
    return f"{_said('B', other)}, and nothing like it is in A"


def _ends(side: Compared) -> str:
    what = "was cut short" if side.source.footer is None else "ends"
    return f"{what} behind {at(side.last_n)}" if side.last_n else f"{what} before any event"


def _said(side: str, event: Event | None) -> str:
    if event is None:
        return f"{side} has no such event"
    where = f"{side} {at(event.n)} ({seconds(event.t_us)})"
    return f"{where}: {name(event.node)} {describe(event)}"


def _unlike(a: Event | None, b: Event | None) -> tuple[Unlike, ...]:
    if a is None or b is None:
        return ()
    mine, theirs = identity(a), identity(b)
    found = []
    for key in [*mine, *(key for key in theirs if key not in mine)]:
        one = encode([mine[key]])[1:-1] if key in mine else None
        other = encode([theirs[key]])[1:-1] if key in theirs else None
        if one != other:
            found.append(Unlike(f"args.{key}", _cut(one), _cut(other)))
    return tuple(found)


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _VALUE_MAX:
        return text
    return text[: _VALUE_MAX - 1] + "…"


def _chain(side: Compared, n: int | None) -> tuple[Link, ...]:
    """The nearest causes of an event, what of the scenario is among the others, and itself."""
    if n is None:
        return ()
    kept: list[int] = []
    roots: list[int] = []
    seen = {n}
    waiting = [-n]
    while waiting and len(seen) < _VISITED_MAX:
        nearest = -heappop(waiting)
        brief = side.story.brief(nearest)
        if brief is None:
            continue
        if len(kept) <= _NEAREST:
            kept.append(nearest)
        elif brief.kind in _WORTH and len(roots) < _ROOTS:
            roots.append(nearest)
        for cause in brief.cause:
            if cause not in seen:
                seen.add(cause)
                heappush(waiting, -cause)
    links = []
    for each in sorted(kept + roots):
        event = side.event(each)
        if event is not None:
            links.append(Link(each, event.node, f"{seconds(event.t_us)} {describe(event)}"))
    return tuple(links)


# Why ---------------------------------------------------------------------------------------------


def _origin(
    a: Compared,
    b: Compared,
    place: _Place,
    events: tuple[Event | None, Event | None],
    header: Sequence[HeaderDifference],
    shift: Shift | None,
) -> Origin:
    if place.what in ("end-a", "end-b"):
        side, which = (a, "A") if place.what == "end-a" else (b, "B")
        return Origin("end", f"{which} {_ends(side)}", place.a, place.b)
    for event in events:
        if event is not None and event.kind in _SCENARIO:
            what = "fault" if event.kind in (Kind.FAULT, Kind.HEAL) else "step"
            return Origin(what, _with(f"the {what}s differ", header), place.a, place.b)
    if shift is not None and shift.what == "time" and _is_of_scenario(a, shift.a):
        text = _with(f"the scenario does something at another time: {shift.text}", header)
        return Origin("step", text, shift.a, shift.b)
    whats = [each.what for each in header]
    if any(each in _SETTINGS for each in whats):
        return Origin("configuration", _with("the settings differ", header))
    for what in ("scenario", "variant", "seed"):
        if what in whats:
            return Origin(what, _with(f"the {what}s differ", header))
    if shift is not None:
        return Origin("timing", _with(shift.text, header), shift.a, shift.b)
    if "version" in whats:
        return Origin("version", _with("the versions differ", header))
    return Origin(
        "unknown", "nothing differs that the headers or the events in front of it would tell"
    )


def _is_of_scenario(side: Compared, n: int) -> bool:
    """Whether an event is a step or a fault. Its causes are at the same times in both runs."""
    brief = side.story.brief(n)
    return brief is not None and brief.kind in _SCENARIO


def _with(text: str, header: Sequence[HeaderDifference]) -> str:
    told = sorted(header, key=lambda each: each.what not in _SETTINGS)
    shown = [each.text for each in told[:_DIFFERENCES_SHOWN]]
    left = len(told) - len(shown)
    more = f" and {left} more" if left else ""
    return f"{text}: {'; '.join(shown)}{more}" if shown else text
