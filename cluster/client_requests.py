"""A client's requests that wait for an answer: each is answered, times out or is lost, once.

An answer counts if its correlation id is of a request that waits, it comes from the node that was
asked, and it is of the class that answers the request; everything else is dropped, as Kafka's
NetworkClient drops the answers to requests that it has given up. Every request has a timer
``("request", node, correlation id)``; one that timed out is given up, and whether the node did what
it asks stays open.

Left out: what follows from an answer or its absence (``cluster.producer``, ``cluster.consumer``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from cluster.effects import Effects, TimerKey
from cluster.machine import Correlations
from cluster.message import Message
from cluster.messages_control import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from cluster.messages_data import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import Now

__all__ = ["REQUEST_TIMER", "ClientRequests", "InFlight", "backoff_us"]

REQUEST_TIMER: Final = "request"
_ANSWERS: Final[dict[type[Message], type[Message]]] = {
    FetchRequest: FetchResponse,
    InitProducerIdRequest: InitProducerIdResponse,
    ListOffsetsRequest: ListOffsetsResponse,
    MetadataRequest: MetadataResponse,
    OffsetCommitRequest: OffsetCommitResponse,
    OffsetFetchRequest: OffsetFetchResponse,
    OffsetsForLeaderEpochRequest: OffsetsForLeaderEpochResponse,
    ProduceRequest: ProduceResponse,
}


def backoff_us(attempts: int, first_us: int, max_us: int) -> int:
    """The pause behind the ``attempts``-th failure (1 or more): doubles each time, up to a limit.

    Kafka adds 20 % of chance; here nothing is drawn.
    """
    # The shift is bounded, or a long outage would build huge integers.
    return min(first_us << min(attempts - 1, 32), max_us)


class InFlight(NamedTuple):
    """A request that waits for its answer, and the node that has it."""

    peer: str
    request: Message


class ClientRequests:
    """See the module.

    Attributes:
        correlations: where the ids come from; an id names one request only.
        timeout_us: how long a request waits.
    """

    __slots__ = ("_in_flight", "correlations", "timeout_us")

    def __init__(self, incarnation: int, timeout_us: int) -> None:
        self.correlations = Correlations(incarnation)
        self.timeout_us = timeout_us
        self._in_flight: dict[int, InFlight] = {}

    def __len__(self) -> int:
        return len(self._in_flight)

    def __iter__(self) -> Iterator[InFlight]:
        """In the order in which they were sent."""
        return iter(self._in_flight.values())

    def send(self, now: Now, fx: Effects, peer: str, request: Message) -> None:
        """Send a request that is answered; its correlation id was taken from ``correlations``."""
        self._in_flight[request.correlation_id] = InFlight(peer, request)
        fx.send(peer, request)
        key = REQUEST_TIMER, peer, request.correlation_id
        fx.arm(key, now.timer_us + self.timeout_us, now.timer_clock)

    def answered(self, fx: Effects, src: str, response: Message) -> Message | None:
        """The request that ``response`` answers, which waits no longer; None: drop the answer."""
        found = self._in_flight.get(response.correlation_id)
        if (
            found is None
            or found.peer != src
            or type(response) is not _ANSWERS[type(found.request)]
        ):
            return None
        del self._in_flight[response.correlation_id]
        fx.disarm((REQUEST_TIMER, src, response.correlation_id))
        return found.request

    def timed_out(self, key: TimerKey) -> InFlight | None:
        """The request whose timer is due, which is given up; None where it was answered."""
        correlation_id = key[2] if len(key) == 3 else None
        if not isinstance(correlation_id, int):
            return None
        return self._in_flight.pop(correlation_id, None)

    def lost(self, fx: Effects, peer: str) -> list[InFlight]:
        """The requests to ``peer``, in order, all given up: the connection is gone."""
        found = [each for each in self._in_flight.values() if each.peer == peer]
        for each in found:
            del self._in_flight[each.request.correlation_id]
            fx.disarm((REQUEST_TIMER, peer, each.request.correlation_id))
        return found

    def give_up_all(self, fx: Effects) -> None:
        """Forget every request; their answers will be dropped."""
        for correlation_id, each in self._in_flight.items():
            fx.disarm((REQUEST_TIMER, each.peer, correlation_id))
        self._in_flight.clear()
