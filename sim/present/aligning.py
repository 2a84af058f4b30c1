"""Which event of one trace is which event of another: by what it says and what caused it.

No number and no time is compared, since one event more shifts all numbers behind it, and another
seed all times. Two events are a pair if their nodes, kinds and subjects are the same and their
causes are pairs, and if they are equally many-eth of their kind there:

=========  =====================================================================================
same       their arguments are the same, too
changed    their arguments differ: what else it says, not what it is about
alike      arguments are the same, causes are not: the same thing came about in another way
=========  =====================================================================================

What follows from an event without a partner has none either, except as ``alike``, which is only
asked for what people look for: steps, elections, appends, and the like.

Numbers are left out of arguments: of events, of messages (a request and its response are known by
their causes), and of steps and expectations that have no name. So are lengths of time, which are
compared with the times.

Left out: what the differences mean (``sim.present.comparing``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any, Final

from sim.trace.kinds import Kind
from sim.trace.lines import Event, canonical, encode, new_hash

__all__ = ["Alignment", "How", "Keys", "align", "identity"]

_MESSAGES: Final = frozenset(
    {
        Kind.SEND,
        Kind.TRANSMIT,
        Kind.DELIVER,
        Kind.DROP,
        Kind.HOLD,
        Kind.DELAY,
        Kind.DUPLICATE,
        Kind.CORRUPT,
        Kind.RESET,
        Kind.REFUSE,
    }
)
_NAMED: Final = frozenset({Kind.STEP, Kind.FAULT, Kind.HEAL, Kind.EXPECT})
_TIMES: Final = ("took_us", "by_us")
_NUMBERS: Final = ("sent", "culprits", "evidence")
_SPECIAL: Final = frozenset({*_TIMES, *_NUMBERS, "id", "fault", "copies", "detail"})
_SUBJECT: Final = frozenset(
    "type from to peer topic partition file operation key work broker client group check step "
    "done kind note point script how event value form text disk".split()
)
_MILESTONES: Final = frozenset(
    {
        Kind.STEP,
        Kind.FAULT,
        Kind.HEAL,
        Kind.START,
        Kind.CRASH,
        Kind.STOP,
        Kind.PAUSE,
        Kind.RESUME,
        Kind.RECOVER,
        Kind.QUARANTINE,
        Kind.APPEND,
        Kind.REPLICATE,
        Kind.TRUNCATE,
        Kind.RESTART_AT,
        Kind.LOG_START,
        Kind.HW,
        Kind.ISR,
        Kind.ELECT,
        Kind.ROLE,
        Kind.FENCE,
        Kind.UNFENCE,
        Kind.PRODUCE,
        Kind.ACK,
        Kind.REJECT,
        Kind.UNKNOWN,
        Kind.POLL,
        Kind.CHECK,
        Kind.EXPECT,
        Kind.LOSS,
    }
)
_EVENT_NUMBER = re.compile(r"#\d+")


class How(IntEnum):
    """How two events are a pair; ``NONE`` where an event has no partner."""

    SAME = 0
    CHANGED = 1
    ALIKE = 2
    NONE = 3


class Keys:
    """What of a trace's events is compared, in few bytes an event.

    Attributes:
        subjects: of each event: node, kind and what it is about, as a number.
        contents: of each event: all that is compared, as a number.
        lengths: lengths of time that events say, by their numbers.
        causes: of each event.
        milestones: numbers of the events that people look for.
        has_changes: whether any event says what it changed, as in a trace of level ``full``.
        digest: of all events, as in a footer.
    """

    def __init__(self, table: dict[str, int]) -> None:
        """``table`` is shared between two traces that are compared."""
        self._table = table
        self.subjects: list[int] = []
        self.contents: list[int] = []
        self.causes: list[tuple[int, ...]] = []
        self.lengths: dict[int, tuple[Any, ...]] = {}
        self.milestones: list[int] = []
        self.has_changes = False
        self._hash = new_hash()

    @property
    def digest(self) -> str:
        return self._hash.hexdigest()

    def __len__(self) -> int:
        return len(self.subjects)

    def take(self, event: Event) -> None:
        """Take in the next event."""
        table, args = self._table, identity(event)
        kept = [(key, value) for key, value in args.items() if key in _SUBJECT]
        subject = encode((event.node, event.kind, kept))
        self.subjects.append(table.setdefault(subject, len(table)))
        self.contents.append(table.setdefault(subject + encode(args), len(table)))
        self.causes.append(event.cause)
        self.has_changes = self.has_changes or bool(event.changes)
        self._hash.update(canonical(event))
        if event.kind in _MILESTONES:
            self.milestones.append(event.n)
        for each in _TIMES:
            if each in event.args:
                self.lengths[event.n] = (*self.lengths.get(event.n, ()), each, event.args[each])

    def reading(self, events: Iterable[Event]) -> Iterator[Event]:
        """The same events, each taken in on its way."""
        for event in events:
            self.take(event)
            yield event


def identity(event: Event) -> Mapping[str, Any]:
    """The arguments by which an event is known in another trace."""
    args = event.args
    if args.keys().isdisjoint(_SPECIAL):
        return args
    found: dict[str, Any] = {}
    for key, value in args.items():
        if key in _TIMES or key in _NUMBERS:
            continue
        if key == "id" and (event.kind in _MESSAGES or _is_number(value)):
            if event.kind in _MESSAGES or event.kind in _NAMED:
                continue
        elif key == "fault" and _is_number(value):
            value = None
        elif key == "copies" and type(value) is list:
            value = [each[:2] if type(each) is list else each for each in value]
        elif key == "detail" and type(value) is str:
            value = _EVENT_NUMBER.sub("#", value)
        found[key] = value
    return found


def _is_number(value: object) -> bool:
    """Whether it is the place of a step that has no name."""
    return type(value) is str and value.isascii() and value.isdigit()


class Alignment:
    """Pairs of events, by the number of either; index 0 is unused.

    Attributes:
        partner_a: of each event of A its partner in B, 0 for none.
        partner_b: of each event of B its partner in A.
        how_a, how_b: how they are a pair.
    """

    def __init__(self, count_a: int, count_b: int) -> None:
        self.partner_a = [0] * (count_a + 1)
        self.partner_b = [0] * (count_b + 1)
        self.how_a = [How.NONE] * (count_a + 1)
        self.how_b = [How.NONE] * (count_b + 1)

    def pair(self, a: int, b: int, how: How) -> None:
        self.partner_a[a], self.partner_b[b] = b, a
        self.how_a[a] = self.how_b[b] = how

    def pairs(self) -> Iterator[tuple[int, int, How]]:
        """All pairs, by their numbers in A."""
        for a, b in enumerate(self.partner_a):
            if b:
                yield a, b, self.how_a[a]


_Group = tuple[int, tuple[int, ...]]


def align(a: Keys, b: Keys) -> Alignment:
    """The pairs of two traces; linear in their events.

    Events of one subject with the very same causes are a group. Groups correspond one to one, since
    pairs do; all causes of a group lie in front of it, so they have their partners by then.
    """
    found = Alignment(len(a), len(b))
    groups_a, groups_b = _groups(a), _groups(b)
    for (subject, causes), members in groups_b.items():
        mapped = tuple(sorted(_mapped(found, causes)))
        if len(mapped) < len(causes):
            continue
        others = groups_a.get((subject, mapped))
        if others is not None:
            _pair_group(found, a, b, others, members)
    _pair_alike(found, a, b)
    return found


def _groups(keys: Keys) -> dict[_Group, list[int]]:
    groups: dict[_Group, list[int]] = {}
    for n, (subject, causes) in enumerate(zip(keys.subjects, keys.causes, strict=True), 1):
        group = subject, causes if len(causes) < 2 else tuple(sorted(causes))
        known = groups.get(group)
        if known is None:
            groups[group] = [n]
        else:
            known.append(n)
    return groups


def _mapped(found: Alignment, causes: tuple[int, ...]) -> Iterator[int]:
    """The causes as A numbers them; those without a partner are missing."""
    for each in causes:
        partner = found.partner_b[each]
        if partner:
            yield partner


def _pair_group(
    found: Alignment, a: Keys, b: Keys, members_a: list[int], members_b: list[int]
) -> None:
    """First what is the same, in order; then what is left, in order."""
    waiting: dict[int, list[int]] = {}
    for n in reversed(members_a):
        waiting.setdefault(a.contents[n - 1], []).append(n)
    for n in members_b:
        same = waiting.get(b.contents[n - 1])
        if same:
            found.pair(same.pop(), n, How.SAME)
    left_a = [n for n in members_a if not found.partner_a[n]]
    left_b = [n for n in members_b if not found.partner_b[n]]
    for one, other in zip(left_a, left_b, strict=False):
        found.pair(one, other, How.CHANGED)


def _pair_alike(found: Alignment, a: Keys, b: Keys) -> None:
    waiting: dict[int, list[int]] = {}
    for n in reversed(a.milestones):
        if not found.partner_a[n]:
            waiting.setdefault(a.contents[n - 1], []).append(n)
    for n in b.milestones:
        if not found.partner_b[n]:
            same = waiting.get(b.contents[n - 1])
            if same:
                found.pair(same.pop(), n, How.ALIKE)
