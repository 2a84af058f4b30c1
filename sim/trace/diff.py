"""Where two traces differ first: by bisection over check points, then event by event.

Digests run on, so check points are equal up to some point and different from there on. Finding that
point takes O(log n) check points, and then the events of one interval. ``first_difference`` needs
no files, only a sequence of check points and a way to fetch events, so two machines can run it on
one workload without shipping traces (FAULTS B.8).

What an event changed (``set``) is derived from what happened, and is outside the digests. Of two
files of level ``full`` whose events are the same it is compared all the same, from the beginning:
viewers must be shown the same too. A file without any change counts as one of another level.

Left out: aligning two traces behind their first difference, and text for people
(``sim.trace.report``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, NamedTuple

from attrs import asdict, frozen

from sim.trace.lines import Check, Event, Footer, canonical, encode, sum_tail
from sim.trace.reader import TraceReader

__all__ = [
    "ContradictionError",
    "Difference",
    "Fetch",
    "FileDifference",
    "OtherChanges",
    "Side",
    "Unlike",
    "diff_files",
    "first_difference",
]

Fetch = Callable[[int, int | None], Iterable[Event]]
"""The events from one number to another, both included; None for all that follow."""

_BEFORE: Final = 5
_CAUSES_MAX: Final = 8
_FIELDS: Final = ("n", "t", "node", "kind", "cause", "args")


class ContradictionError(Exception):
    """Check points differ, and the events in front of them do not: a trace was changed."""


@frozen
class Side:
    """One of the two traces.

    Attributes:
        checks: its check points, each one read when it is asked for. Where the two sides have
            theirs at different events, the search is linear from there on.
        fetch: its events.
        end: its number of events and their digest; None where it may go on.
        has_events: whether there are events to fetch; otherwise only check points were kept.
    """

    checks: Sequence[Check]
    fetch: Fetch
    end: Check | None = None
    has_events: bool = True


class Unlike(NamedTuple):
    """One value that differs; ``path`` is as ``args.partition``. None where a side has none."""

    path: str
    a: Any
    b: Any


@frozen
class Difference:
    """The first difference of two traces.

    Attributes:
        n: number of the first event that differs; where events were not kept, the first that may.
        last: number of the last event that may be the first that differs; None if that is open.
        a, b: the event of each side; None where a trace ends in front of it, or kept no events.
        unlike: what differs between the two.
        before: a few events in front of it, which both have.
        causes: events that led to ``a`` or ``b``, in order; both traces have them.
    """

    n: int
    last: int | None
    a: Event | None = None
    b: Event | None = None
    unlike: tuple[Unlike, ...] = ()
    before: tuple[Event, ...] = ()
    causes: tuple[Event, ...] = ()


class OtherChanges(NamedTuple):
    """An event that changed something else, or in another order, in B than in A."""

    event: Event
    unlike: tuple[Unlike, ...]


@frozen
class FileDifference:
    """How two trace files differ.

    Attributes:
        header: what differs in what was run; that alone does not make the traces differ.
        events: the first difference of the events.
        changes: what differs in what the first such event changed, where the events are the same.
        footer: what differs in how they ended, where the events are the same.
    """

    header: tuple[Unlike, ...]
    events: Difference | None
    changes: OtherChanges | None
    footer: tuple[Unlike, ...]

    @property
    def is_same(self) -> bool:
        """The same events, the same changes where both have them, and the same judgement."""
        return self.events is None and self.changes is None and not self.footer


# Finding it ------------------------------------------------------------------------------------


def first_difference(a: Side, b: Side) -> Difference | None:
    """The first event in which two traces differ; None where they are the same.

    Reads O(log n) check points of each side and the events of one interval, and then the events
    that it names.

    Raises:
        ContradictionError: check points differ, and the events in front of them do not.
    """
    if a.end is not None and a.end == b.end:
        return None
    behind, last, is_found = _bisect(a, b)
    if not (a.has_events and b.has_events):
        return Difference(behind + 1, last) if is_found or _size(a) != _size(b) else None
    pairs = zip_longest(a.fetch(behind + 1, last), b.fetch(behind + 1, last))
    for n, (one, other) in enumerate(pairs, behind + 1):
        if one is None or other is None or canonical(one) != canonical(other):
            return _difference(a, n, one, other)
    if last is not None or (a.end is not None and b.end is not None):
        raise ContradictionError(
            f"the digests differ behind event {behind}, and the events do not: one was changed"
        )
    return None


def _bisect(a: Side, b: Side) -> tuple[int, int | None, bool]:
    """The last event up to which digests are the same, and the first up to which they differ.

    The latter is None if it is open; the last value tells whether two check points differ at all.
    """
    low, high = 0, min(_size(a), _size(b))
    behind, last, is_found = 0, None, False
    while low < high:
        middle = (low + high) // 2
        one, other = _check(a, middle), _check(b, middle)
        if one == other:
            low, behind = middle + 1, one.n
        else:
            high, is_found = middle, True
            last = one.n if one.n == other.n else None
    return behind, last, is_found


def _size(side: Side) -> int:
    """How many check points there are, the end included where it lies behind them."""
    count = len(side.checks)
    if side.end is None or (count and side.checks[-1].n >= side.end.n):
        return count
    return count + 1


def _check(side: Side, index: int) -> Check:
    if index < len(side.checks):
        return side.checks[index]
    assert side.end is not None, index
    return side.end


def _difference(side: Side, n: int, a: Event | None, b: Event | None) -> Difference:
    """With what led there; in front of event n both sides are the same, so either tells it."""
    causes: dict[int, Event] = {}
    wanted = {cause for event in (a, b) if event is not None for cause in event.cause}
    while wanted and len(causes) < _CAUSES_MAX:
        nearest = max(wanted)
        wanted.remove(nearest)
        for event in side.fetch(nearest, nearest):
            causes[event.n] = event
            wanted.update(each for each in event.cause if each < event.n)
    return Difference(
        n,
        n,
        a,
        b,
        _unlike_events(a, b) if a is not None and b is not None else (),
        tuple(side.fetch(max(1, n - _BEFORE), n - 1)) if n > 1 else (),
        tuple(causes[each] for each in sorted(causes)),
    )


def _unlike_events(a: Event, b: Event) -> tuple[Unlike, ...]:
    pairs = zip(_FIELDS, a[:6], b[:6], strict=True)
    return tuple(each for name, one, other in pairs for each in _unlike(name, one, other))


def _unlike(path: str, a: Any, b: Any) -> list[Unlike]:
    """What differs below a path; only objects are gone into."""
    if encode(a) == encode(b):
        return []
    if not (isinstance(a, Mapping) and isinstance(b, Mapping)):
        return [Unlike(path, a, b)]
    keys = [*a, *(key for key in b if key not in a)]
    found = [each for key in keys for each in _unlike(f"{path}.{key}", a.get(key), b.get(key))]
    return found or [Unlike(f"{path} (order of keys)", list(a), list(b))]


# Files -----------------------------------------------------------------------------------------


def diff_files(path_a: Path, path_b: Path) -> FileDifference:
    """How two trace files differ.

    Raises:
        TraceError: a file is no trace, or is damaged where it was read.
        ContradictionError: see ``first_difference``; ``verify`` tells which file it is.
        OSError: a file cannot be read.
    """
    a, b = TraceReader(path_a), TraceReader(path_b)
    header = _unlike("header", asdict(a.header), asdict(b.header))
    difference = first_difference(side_of(a), side_of(b))
    if difference is not None:
        return FileDifference(tuple(header), difference, None, ())
    footer = _unlike("footer", _judgement(a.footer), _judgement(b.footer))
    return FileDifference(tuple(header), None, _other_changes(a, b), tuple(footer))


def _other_changes(a: TraceReader, b: TraceReader) -> OtherChanges | None:
    """The first event whose changes differ, of files with the same events that both have changes.

    Lines are compared as they stand, and parsed where they differ.
    """
    if a.is_complete and b.is_complete and _tail(a.path) == _tail(b.path):
        return None
    found: OtherChanges | None = None
    has_changes = [False, False]
    for lines in zip(a.event_lines(), b.event_lines(), strict=False):
        is_new = found is None and lines[0][1] != lines[1][1]
        for side, reader in enumerate((a, b)):
            if not has_changes[side] and b'"set":' in lines[side][1]:
                has_changes[side] = bool(reader.parse_event(*lines[side]).changes)
        if is_new:
            one, other = a.parse_event(*lines[0]), b.parse_event(*lines[1])
            if canonical(one) != canonical(other):
                raise ContradictionError(
                    f"the digests are the same, and event {one.n} is not: one was changed"
                )
            unlike = _unlike("set", _by_path(one), _by_path(other))
            found = OtherChanges(one, tuple(unlike)) if unlike else None
        if found is not None and all(has_changes):
            return found
    return None


def _by_path(event: Event) -> dict[str, Any]:
    return {path: [old, new] for path, old, new in event.changes}


def _tail(path: Path) -> bytes:
    """The end of a file's last line, which has the sum over all of it."""
    with path.open("rb") as file:
        size_bytes = file.seek(0, 2)
        file.seek(max(0, size_bytes - len(sum_tail("0" * 32))))
        return file.read()


def side_of(reader: TraceReader) -> Side:
    """A trace file as one side of the search."""
    footer = reader.footer
    end = None if footer is None else Check(footer.n, footer.digest)
    return Side(reader.checks, reader.fetch, end, reader.checks.has_events)


def _judgement(footer: Footer | None) -> dict[str, Any]:
    if footer is None:
        return {"is_complete": False}
    found = {"violations": list(footer.violations), "losses": list(footer.losses)}
    return {"is_complete": True, "verdict": footer.verdict, **found}
