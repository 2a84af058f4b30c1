"""A history, indexed: who saw which value at which offset, and what each reader went through.

Polls are evidence that a record exists; an acknowledgement is the leader's word for it; what was
only sent is none. A value is known by topic, key and value; where several operations sent the same,
it stands for none of them. Nothing here raises, whatever the history.

Left out: judging.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import NamedTuple

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Conditions, Reason, Witness
from sim.histories.values import End, Excuse, History, Operation, Poll, Signal

__all__ = ["Evidence", "Excuses", "Reader", "Sighting", "shown"]

Content = tuple[str, bytes | None, bytes | None]
"""Topic, key and value."""
Reader = tuple[str, int, str, int]
"""Client, session, topic and number of a partition."""


def shown(value: bytes | None) -> str:
    """A value as text, shortened."""
    if value is None:
        return "null"
    text = value[:48].decode(errors="backslashreplace")
    return repr(text) if len(value) <= 48 else f"{text!r}..."


class Sighting(NamedTuple):
    """Somebody learned that a record is at an offset.

    Attributes:
        epoch: -1 where it is not known.
        operation: the one that was acknowledged, None where the record was read.
    """

    place: TopicIdPartition
    offset: int
    epoch: int
    content: Content
    who: str
    event: int
    t_us: int
    operation: Operation | None = None

    @property
    def witness(self) -> Witness:
        how = "read" if self.operation is None else "acked"
        return Witness(self.who, how, self.offset, shown(self.content[2]), self.event, self.t_us)


class Evidence:
    """See the module.

    Attributes:
        in_order: all sightings, in the order of events.
        sightings: the same by place and offset.
        senders: the operations that sent a value.
        streams: what each reader of a partition was given and told, in order.
    """

    def __init__(self, history: History, excused: Iterable[Excuse], conditions: Conditions) -> None:
        self.history = history
        self.conditions = conditions
        self.excuses = Excuses(excused)
        self.senders: dict[Content, list[Operation]] = {}
        self.streams: dict[Reader, list[Poll | Signal]] = {}
        self.sightings: dict[TopicIdPartition, dict[int, list[Sighting]]] = {}
        found = []
        for operation in history.operations:
            content = operation.topic, operation.key, operation.value
            self.senders.setdefault(content, []).append(operation)
            end = history.ends.get(operation.id)
            if end is not None and end.kind == "ok" and end.place is not None and end.offset >= 0:
                at = end.place, end.offset, -1, content, operation.client
                found.append(Sighting(*at, end.event, end.t_us, operation))
        for each in history.readings:
            if isinstance(each, Signal):
                where = each.topic, each.partition
            else:
                where = each.place.topic, each.place.partition
                content = each.place.topic, each.key, each.value
                at = each.place, each.offset, each.epoch, content, each.client
                found.append(Sighting(*at, each.event, each.t_us))
            self.streams.setdefault((each.client, each.session, *where), []).append(each)
        self.in_order = sorted(found, key=lambda each: each.event)
        for sighting in self.in_order:
            at_place = self.sightings.setdefault(sighting.place, {})
            at_place.setdefault(sighting.offset, []).append(sighting)

    def end(self, operation: Operation) -> End | None:
        """What the producer was told, None while it is open."""
        return self.history.ends.get(operation.id)

    def only_sender(self, content: Content) -> Operation | None:
        """The operation that sent a value, if there is just one."""
        found = self.senders.get(content, ())
        return found[0] if len(found) == 1 else None

    def lost_by(self, sighting: Sighting, event: int) -> bool:
        """Whether the record is excused, and was lost at that event, or in doubt up to its loss.

        Under acks 0 and 1 a record is in doubt from the first: a leader that has been deposed, and
        has not heard of it, may have another one there at the same time.
        """
        lost = self.excuses.first(sighting.place, sighting.offset, sighting.epoch)
        operation = sighting.operation
        is_in_doubt = operation is not None and operation.acks in (0, 1)
        return lost is not None and (is_in_doubt or lost <= event)

    def reasons(self, place: TopicIdPartition, offset: int, epoch: int = -1) -> list[Reason]:
        """Why a record may be gone, at whatever time."""
        conditions, found = self.conditions, []
        if self.excuses.first(place, offset, epoch) is not None:
            found.append(Reason.LOSS)
        if place.topic_id in conditions.compacted:
            found.append(Reason.COMPACTED)
        is_below = offset < conditions.log_starts.get(place, 0)
        if is_below or place.topic_id in conditions.gone:
            found.append(Reason.DELETED)
        for reason, taken in (
            (Reason.FORGOTTEN, conditions.taken_again),
            (Reason.AHEAD, conditions.taken_ahead),
        ):
            if any(start <= offset < end for start, end in taken.get(place, ())):
                found.append(reason)
        if str(place) in conditions.unavailable:
            found.append(Reason.UNAVAILABLE)
        return found


class Excuses:
    """Of every record, when it was lost first; asking takes the logarithm of their number."""

    def __init__(self, excused: Iterable[Excuse]) -> None:
        by_key: dict[tuple[TopicIdPartition, int | None], list[Excuse]] = {}
        for each in excused:
            # A record of unknown epoch may be any; an excuse without epoch is for all.
            for epoch in (None, max(each.epoch, -1)):
                by_key.setdefault((each.place, epoch), []).append(each)
        self._steps = {key: _steps(found) for key, found in by_key.items()}

    def first(self, place: TopicIdPartition, offset: int, epoch: int) -> int | None:
        """The first event at which a record was lost; the epoch is -1 where it is not known."""
        epochs = (None,) if epoch < 0 else (epoch, -1)
        found = [self._at(place, offset, each) for each in epochs]
        return min((each for each in found if each is not None), default=None)

    def _at(self, place: TopicIdPartition, offset: int, epoch: int | None) -> int | None:
        starts, events = self._steps.get((place, epoch), ([], []))
        at = bisect_right(starts, offset) - 1
        return events[at] if at >= 0 else None


def _steps(excused: list[Excuse]) -> tuple[list[int], list[int | None]]:
    """From which offset on which event is the first one that took records there."""
    coming = sorted(
        (each for each in excused if each.start < each.end), key=lambda each: each.start
    )
    edges = sorted({edge for each in coming for edge in (each.start, each.end)})
    active: list[tuple[int, int]] = []
    events: list[int | None] = []
    at = 0
    for edge in edges:
        while at < len(coming) and coming[at].start <= edge:
            heappush(active, (coming[at].event, coming[at].end))
            at += 1
        while active and active[0][1] <= edge:
            heappop(active)
        events.append(active[0][0] if active else None)
    return edges, events
