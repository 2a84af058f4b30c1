"""What a history is made of: operations of producers, polls and signals of consumers.

All of it is what a client asked or was told. Numbers of events are those of the trace, times are
virtual microseconds.

Left out: how it comes about (``sim.histories.recorder``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from attrs import field, frozen

from cluster.names import TopicIdPartition

__all__ = ["MOVES", "End", "Excuse", "History", "Operation", "OperationKey", "Poll", "Signal"]

OperationKey = tuple[str, int, int]
"""Client, session and number of an operation."""

MOVES: Final = frozenset({"assigned", "sought", "reset", "truncated", "failed", "recreated"})
"""Kinds of signals behind which a reader may be anywhere."""


class Operation(NamedTuple):
    """A record was given to a producer.

    Attributes:
        session: how often the client had been started before.
        number: of the operation within the session; they rise in the order of invocation.
        partition: None where the choice was left to the producer.
        in_flight_max: how many requests may be on their way to one broker.
        event, t_us: of the invocation.
    """

    client: str
    session: int
    number: int
    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    acks: int
    is_idempotent: bool
    in_flight_max: int
    event: int
    t_us: int

    def __deepcopy__(self, memo: object) -> Operation:
        return self

    @property
    def id(self) -> OperationKey:
        return self.client, self.session, self.number


class End(NamedTuple):
    """What the producer was told of an operation.

    Attributes:
        kind: ``ok``, ``fail`` (the record is nowhere and never will be), or ``info``: unknown.
        place: None where it never became known.
        offset: of the record, -1 unless ``ok``.
        error: name of the last error, ``NONE`` for none.
    """

    kind: str
    place: TopicIdPartition | None
    offset: int
    error: str
    event: int
    t_us: int

    def __deepcopy__(self, memo: object) -> End:
        return self


class Poll(NamedTuple):
    """A consumer handed one record over.

    Attributes:
        poll: which poll this was part of; polls of one session have different numbers.
        epoch: of the leader that wrote the record.
    """

    client: str
    session: int
    poll: int
    place: TopicIdPartition
    offset: int
    epoch: int
    key: bytes | None
    value: bytes | None
    event: int
    t_us: int

    def __deepcopy__(self, memo: object) -> Poll:
        return self


class Signal(NamedTuple):
    """A consumer was told to do something else, or told its user so.

    Attributes:
        kind: one of ``MOVES``, or ``corrupt``, ``committed``, ``commit-failed``.
        offset: the new position; the committed one; -1 where it is not known.
        group: of the consumer.
    """

    client: str
    session: int
    kind: str
    topic: str
    partition: int
    offset: int
    group: str | None
    event: int
    t_us: int

    def __deepcopy__(self, memo: object) -> Signal:
        return self


class Excuse(NamedTuple):
    """Records that may be gone, and from which event on.

    Attributes:
        place: of the topic that had them; another one of its name has lost nothing by that.
        epoch: of the leader that wrote them; -1 for any.
        start, end: their offsets, half-open.
        event: of the loss.
    """

    place: TopicIdPartition
    epoch: int
    start: int
    end: int
    event: int


@frozen
class History:
    """What all clients of a world saw.

    Attributes:
        operations: in the order of their invocation.
        ends: of those that have one; the others are still open.
        readings: polls and signals in their order.
    """

    operations: tuple[Operation, ...] = ()
    ends: Mapping[OperationKey, End] = field(factory=dict)
    readings: tuple[Poll | Signal, ...] = ()
