"""The operator: a node ``admin`` that asks until it is answered (DECISIONS 2.14).

Its links never fail, but who it asks may be down: it asks again, under a new correlation id. So it
does where the answer has an error that time cures, if it was told so.

Left out: what it asks (``sim.verbs``).
"""

from __future__ import annotations

from typing import Any, Final

from attrs import evolve

from cluster.effects import Effects, TimerKey
from cluster.errors import ErrorCode
from cluster.machine import Correlations, Machine
from cluster.message import Message
from cluster.messages_control import (
    AlterConfigsResponse,
    AlterPartitionReassignmentsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    ElectLeadersResponse,
)
from cluster.messages_data import DeleteRecordsResponse
from cluster.names import ADMIN, Now

__all__ = ["RETRY_US", "Operator", "errors_of"]

RETRY_US: Final = 500_000


class Operator(Machine):
    """See the module.

    Attributes:
        answers: by what ``ask`` returned.
        refusals: the newest answer with an error that time cures, while it is asked again.
    """

    def __init__(self, incarnation: int = 0) -> None:
        self.name = ADMIN
        self.answers: dict[int, Message] = {}
        self.refusals: dict[int, Message] = {}
        self._correlations = Correlations(incarnation)
        self._open: dict[int, tuple[str, Message, frozenset[ErrorCode]]] = {}
        self._asked: dict[int, int] = {}
        self._next = 0

    def ask(
        self,
        now: Now,
        fx: Effects,
        to: str,
        message: Message,
        *,
        passing: frozenset[ErrorCode] = frozenset(),
    ) -> int:
        """Send a request until it is answered; its correlation id is given here.

        Args:
            passing: errors of the answer that time cures.

        Returns:
            The number under which the answer will be.
        """
        number = self._next
        self._next += 1
        self._open[number] = (to, message, passing)
        self._send(now, fx, number)
        return number

    def give_up(self, now: Now, fx: Effects, number: int) -> None:
        """Ask no more."""
        self._open.pop(number, None)
        fx.disarm(("retry", number))

    def _send(self, now: Now, fx: Effects, number: int) -> None:
        to, message, _ = self._open[number]
        correlation_id = self._correlations.take()
        self._asked[correlation_id] = number
        fx.send(to, evolve(message, correlation_id=correlation_id))
        fx.arm(("retry", number), now.timer_us + RETRY_US, now.timer_clock)

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        number = self._asked.pop(message.correlation_id, None)
        if number in self._open:
            assert number is not None
            if self._open[number][2].intersection(code for _, code in errors_of(message)):
                self.refusals[number] = message
                return
            del self._open[number]
            self.refusals.pop(number, None)
            # Earlier copies of the request may be answered yet.
            self._asked = {at: open_ for at, open_ in self._asked.items() if open_ != number}
            self.answers[number] = message
            fx.disarm(("retry", number))

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        match key:
            case ("retry", int(number)) if number in self._open:
                self._send(now, fx, number)

    def waiting(self) -> list[tuple[str, Message]]:
        """Whom it asks for what, without an answer so far."""
        return [(to, message) for to, message, _ in self._open.values()]

    def fields(self) -> dict[str, Any]:
        return {"open_requests": len(self._open)}


def errors_of(answer: Message) -> list[tuple[str, ErrorCode]]:
    """What each part of an answer is about, and its code."""
    match answer:
        case CreateTopicsResponse() | DeleteTopicsResponse():
            return [(each.topic, each.error_code) for each in answer.topics]
        case (
            ElectLeadersResponse() | AlterPartitionReassignmentsResponse() | DeleteRecordsResponse()
        ):
            return [(str(each.partition), each.error_code) for each in answer.partitions]
        case AlterConfigsResponse():
            return [(answer.error_message, answer.error_code)]
    return []
