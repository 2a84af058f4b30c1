"""The replicas of two runs, side by side, and where their states part first.

Where states part is asked of each value by itself, as a sequence: what a log took and lost, which
roles its replica had, what the high watermark became. So runs with other times are still the same
as long as the same values follow each other. A value that one trace cannot tell, since it was cut
short or of a lower level, is not compared.

Left out: where the events part (``sim.present.comparing``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import frozen

from sim.present.aligning import Alignment
from sim.present.history import FOREVER, Replica, Series
from sim.present.moments import Moment, PartitionAt, ReplicaAt, moment
from sim.present.spans import Triple, joined
from sim.present.story import Story

__all__ = [
    "PartitionPair",
    "ReplicaPair",
    "StateAt",
    "StatePair",
    "Track",
    "first_parting",
    "state_pair",
]

FIELDS: Final = (
    "status",
    "role",
    "leader_epoch",
    "spans",
    "log_start",
    "log_end",
    "high_watermark",
)


@frozen
class ReplicaPair:
    """One copy in both runs; None where a run has none.

    Attributes:
        unlike: names of the fields that differ; ``replica`` where only one run has it.
    """

    node: str
    a: ReplicaAt | None
    b: ReplicaAt | None
    unlike: tuple[str, ...]


@frozen
class PartitionPair:
    """One partition in both runs; None where a run has none.

    Attributes:
        unlike: of ``leader``, ``leader_epoch`` and ``isr`` what differs; ``partition`` where only
            one run has it.
        replicas: in the order of A's nodes, then those that only B has.
    """

    name: str
    a: PartitionAt | None
    b: PartitionAt | None
    unlike: tuple[str, ...]
    replicas: tuple[ReplicaPair, ...]

    @property
    def is_same(self) -> bool:
        return not self.unlike and not any(each.unlike for each in self.replicas)


@frozen
class StatePair:
    """Both clusters: behind event ``a`` of A, behind event ``b`` of B.

    Attributes:
        statuses: nodes whose status differs: name, status in A, status in B.
    """

    a: int
    b: int
    statuses: tuple[tuple[str, str, str], ...]
    partitions: tuple[PartitionPair, ...]

    @property
    def is_same(self) -> bool:
        return not self.statuses and all(each.is_same for each in self.partitions)


@frozen
class Track:
    """A value over time, of which the runs' sequences part, and the events with which they do.

    Attributes:
        what: ``log``, ``role``, ``high_watermark``, ``log_start``, ``leader``, ``isr``, ``status``.
        partition, node: whose; None where it has none.
        a, b: None where a run's value stays as it is.
    """

    what: str
    partition: str | None
    node: str | None
    a: int | None
    b: int | None


@frozen
class StateAt:
    """Both states at a point: ``divergence``, ``parting`` (of replicas) or ``end``."""

    what: str
    text: str
    states: StatePair
    track: Track | None = None


# At one moment -----------------------------------------------------------------------------------


def state_pair(
    story_a: Story, story_b: Story, a: int, b: int, *, has_watermarks: bool = True
) -> StatePair:
    """Both states; high watermarks count where both traces tell as much of them."""
    one, other = moment(story_a, a), moment(story_b, b)
    mine = {each.name: each for each in one.partitions}
    theirs = {each.name: each for each in other.partitions}
    names = [*mine, *(name for name in theirs if name not in mine)]
    pairs = tuple(
        _partition(name, mine.get(name), theirs.get(name), has_watermarks) for name in names
    )
    return StatePair(one.n, other.n, tuple(_statuses(one, other)), pairs)


def _statuses(a: Moment, b: Moment) -> Iterator[tuple[str, str, str]]:
    for node in [*a.statuses, *(each for each in b.statuses if each not in a.statuses)]:
        mine, theirs = a.statuses.get(node, "never"), b.statuses.get(node, "never")
        if mine != theirs:
            yield node, mine, theirs


def _partition(
    name: str, a: PartitionAt | None, b: PartitionAt | None, has_watermarks: bool
) -> PartitionPair:
    mine = {each.node: each for each in a.replicas} if a is not None else {}
    theirs = {each.node: each for each in b.replicas} if b is not None else {}
    nodes = [*mine, *(node for node in theirs if node not in mine)]
    unlike: tuple[str, ...] = ("partition",)
    if a is not None and b is not None:
        unlike = tuple(_unlike(a, b, ("leader", "leader_epoch", "isr")))
    pairs = tuple(
        _replica(node, mine.get(node), theirs.get(node), has_watermarks) for node in nodes
    )
    return PartitionPair(name, a, b, unlike, pairs)


def _replica(
    node: str, a: ReplicaAt | None, b: ReplicaAt | None, has_watermarks: bool
) -> ReplicaPair:
    if a is None or b is None:
        return ReplicaPair(node, a, b, ("replica",))
    is_told = has_watermarks and a.high_watermark is not None and b.high_watermark is not None
    fields = FIELDS if is_told else FIELDS[:-1]
    return ReplicaPair(node, a, b, tuple(_unlike(a, b, fields)))


def _unlike(a: object, b: object, names: Iterable[str]) -> Iterator[str]:
    for each in names:
        if getattr(a, each) != getattr(b, each):
            yield each


# Over time ---------------------------------------------------------------------------------------

_Value = tuple[int, Any]
_Place = tuple[str, str | None, str | None]


def first_parting(
    a: Story, b: Story, alignment: Alignment, *, has_watermarks: bool = True
) -> tuple[Track, StatePair] | None:
    """Where a replica's states part first, and both states there; None where they never do."""
    found: list[tuple[int, int, Track]] = []
    mine, theirs = _tracks(a, has_watermarks), _tracks(b, has_watermarks)
    ends = _end_us(a), _end_us(b)
    for order, place in enumerate([*mine, *(each for each in theirs if each not in mine)]):
        track = _parted(place, mine.get(place, []), theirs.get(place, []), (a, b), ends)
        if track is not None:
            times = []
            times += [] if track.a is None else [a.time_us(track.a)]
            times += [] if track.b is None else [b.time_us(track.b)]
            found.append((min(times), order, track))
    if not found:
        return None
    track = min(found, key=lambda each: each[:2])[2]
    return track, _at(track, a, b, alignment, has_watermarks)


def _end_us(story: Story) -> int:
    """From when on a trace cannot tell; a whole trace can for ever."""
    return FOREVER if story.footer is not None else story.end_us


def _tracks(story: Story, has_watermarks: bool) -> dict[_Place, list[_Value]]:
    found: dict[_Place, list[_Value]] = {}
    for partition in story.partitions.values():
        name = partition.name
        for node, replica in story.replicas(name):
            found["log", name, node] = _log_changes(replica)
            roles = ((n, (role.name, role.leader_epoch)) for n, role in replica.roles)
            found["role", name, node] = _deduplicated(roles)
            found["log_start", name, node] = _of(replica.log_starts)
            if has_watermarks:
                found["high_watermark", name, node] = _of(replica.high_watermarks)
        found["leader", name, None] = _of(partition.leaders)
        if has_watermarks:
            found["isr", name, None] = _of(partition.isrs)
    for known in story.nodes.values():
        found["status", None, known.name] = _of(known.statuses)
    return found


def _of(series: Series[Any]) -> list[_Value]:
    return list(series)


def _deduplicated(values: Iterable[_Value]) -> list[_Value]:
    found: list[_Value] = []
    for n, value in values:
        if not found or found[-1][1] != value:
            found.append((n, value))
    return found


def _log_changes(replica: Replica) -> list[_Value]:
    """What came to a log and went from it, event by event."""
    changes: dict[int, tuple[list[Triple], list[Triple]]] = {}
    for piece in replica.pieces:
        if piece.n == piece.until:
            continue
        span = (-1 if piece.epoch is None else piece.epoch, piece.base, piece.end)
        changes.setdefault(piece.n, ([], []))[0].append(span)
        if piece.until != FOREVER:
            changes.setdefault(piece.until, ([], []))[1].append(span)
    return [(n, (_joined(changes[n][0]), _joined(changes[n][1]))) for n in sorted(changes)]


def _joined(spans: list[Triple]) -> list[Triple]:
    return spans if len(spans) < 2 else joined(spans)


def _parted(
    place: _Place,
    mine: list[_Value],
    theirs: list[_Value],
    stories: tuple[Story, Story],
    ends: tuple[int, int],
) -> Track | None:
    """The first values that differ, unless one trace ends in front of them."""
    a, b = stories
    for index in range(max(len(mine), len(theirs))):
        one = mine[index] if index < len(mine) else None
        other = theirs[index] if index < len(theirs) else None
        if one is not None and other is not None and one[1] == other[1]:
            continue
        if one is None and other is not None and b.time_us(other[0]) >= ends[0]:
            return None
        if other is None and one is not None and a.time_us(one[0]) >= ends[1]:
            return None
        return Track(*place, one and one[0], other and other[0])
    return None


def _at(track: Track, a: Story, b: Story, alignment: Alignment, has_watermarks: bool) -> StatePair:
    """Both states where a track parts: at partners, or at the same time, or at its own events."""

    def pair(at_a: int, at_b: int) -> StatePair:
        return state_pair(a, b, at_a, at_b, has_watermarks=has_watermarks)

    is_a_first = track.b is None or (
        track.a is not None and a.time_us(track.a) <= b.time_us(track.b)
    )
    if is_a_first and track.a is not None:
        found = pair(track.a, alignment.partner_a[track.a] or at_time(b, a.time_us(track.a)))
    else:
        assert track.b is not None
        found = pair(alignment.partner_b[track.b] or at_time(a, b.time_us(track.b)), track.b)
    if found.is_same and track.a is not None and track.b is not None:
        return pair(track.a, track.b)
    return found


def at_time(story: Story, t_us: int) -> int:
    """The last event up to a time; 0 for none."""
    low, high = 0, story.last_n
    while low < high:
        middle = (low + high + 1) // 2
        if story.time_us(middle) <= t_us:
            low = middle
        else:
            high = middle - 1
    return low
