"""nonmonotonic-send: records of one producer stand in the order in which it was given them.

A record stands at the lowest offset at which it was acknowledged, or read where no other operation
sent its value. Within one moment (one call with several records) the name begins with ``int-``.

Every record is compared with the highest one of those sent before it, of those that must be in
order apart from the others, so that a legal disorder hides no other.

Left out: transactions.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from attrs import define, field

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Found, Reason
from sim.histories.evidence import Evidence, Sighting, shown
from sim.histories.values import Operation, OperationKey

__all__ = ["nonmonotonic_send"]


_Key = tuple[str, int, TopicIdPartition]
"""A session of a producer, and where it writes."""


class _Sent(NamedTuple):
    sighting: Sighting
    holds: frozenset[Reason]


@define(eq=False)
class _Log:
    """What one session has sent to one partition so far.

    Attributes:
        earlier, now: the highest record of earlier moments, and of this one, by what makes its
            disorder legal.
        t_us: this moment.
    """

    earlier: dict[str, _Sent] = field(factory=dict)
    now: dict[str, _Sent] = field(factory=dict)
    t_us: int = -1

    def begin(self, t_us: int) -> None:
        """A moment begins, unless it is this one."""
        if t_us == self.t_us:
            return
        self.t_us = t_us
        for legal, sent in self.now.items():
            _raise(self.earlier, legal, sent)
        self.now = {}


def nonmonotonic_send(evidence: Evidence, found: Found) -> None:
    """A record stands before one that was sent earlier."""
    places = _places(evidence)
    forgotten = _forgotten(evidence, places)
    logs: dict[_Key, _Log] = {}
    for operation in sorted(evidence.history.operations, key=lambda each: each.id):
        for place, sighting in places.get(operation.id, {}).items():
            key = operation.client, operation.session, place
            holds = _holds(evidence, operation, sighting)
            sent = _Sent(sighting, holds | {Reason.DELETED} if key in forgotten else holds)
            log = logs.setdefault(key, _Log())
            log.begin(operation.t_us)
            _compare(found, "int-nonmonotonic-send", log.now.values(), operation, sent)
            _compare(found, "nonmonotonic-send", log.earlier.values(), operation, sent)
            _raise(log.now, found.why("nonmonotonic-send", sent.holds), sent)


def _places(evidence: Evidence) -> dict[OperationKey, dict[TopicIdPartition, Sighting]]:
    """The lowest offset at which the record of each operation was seen, by place."""
    found: dict[OperationKey, dict[TopicIdPartition, Sighting]] = {}
    for at_place in evidence.sightings.values():
        for sightings in at_place.values():
            for each in sightings:
                operation = each.operation or evidence.only_sender(each.content)
                if operation is None:
                    continue
                known = found.setdefault(operation.id, {})
                if each.place not in known or each.offset < known[each.place].offset:
                    known[each.place] = each
    return found


def _forgotten(
    evidence: Evidence, places: dict[OperationKey, dict[TopicIdPartition, Sighting]]
) -> set[_Key]:
    """Sessions that have lost a record by deletion: the log may have known nothing of them then."""
    return {
        (client, session, place)
        for (client, session, _), at in places.items()
        for place, sighting in at.items()
        if Reason.DELETED in evidence.reasons(place, sighting.offset)
    }


def _holds(evidence: Evidence, operation: Operation, sighting: Sighting) -> frozenset[Reason]:
    holds = set()
    end = evidence.end(operation)
    is_given_up = end is None or end.kind == "info"
    if not operation.is_idempotent and (operation.in_flight_max > 1 or is_given_up):
        holds.add(Reason.UNORDERED)
    reasons = evidence.reasons(sighting.place, sighting.offset, sighting.epoch)
    holds.update({Reason.LOSS, Reason.FORGOTTEN, Reason.AHEAD}.intersection(reasons))
    return frozenset(holds)


def _raise(highest: dict[str, _Sent], legal: str, sent: _Sent) -> None:
    if legal not in highest or highest[legal].sighting.offset < sent.sighting.offset:
        highest[legal] = sent


def _compare(
    found: Found, name: str, earlier: Iterable[_Sent], operation: Operation, sent: _Sent
) -> None:
    mine = sent.sighting
    for other in earlier:
        before = other.sighting
        if before.offset <= mine.offset:
            continue
        detail = (
            f"{operation.client} sent {shown(before.content[2])} before "
            f"{shown(mine.content[2])}, and they stand at offsets {before.offset} and "
            f"{mine.offset}"
        )
        witnesses = before.witness, mine.witness
        found.report(name, str(mine.place), witnesses, detail, other.holds | sent.holds)
