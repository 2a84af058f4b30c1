"""A producer's id and epoch: asked for at the controller, raised by the producer itself.

Kafka's idempotent producer does the same since KIP-360: a new epoch needs no answer from anybody,
because nobody else has the id. When the epochs of an id are used up a new id is asked for.

Left out: when a new epoch begins (``cluster.producer``), and transactional ids.
"""

from __future__ import annotations

from typing import Final

from cluster.client_requests import ClientRequests, backoff_us
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.messages_control import InitProducerIdRequest, InitProducerIdResponse
from cluster.names import Now

__all__ = ["IDENTITY_TIMER", "PRODUCER_EPOCH_MAX", "ProducerIdentity"]

IDENTITY_TIMER: Final = ("init-producer-id",)
PRODUCER_EPOCH_MAX: Final = 2**15 - 1
"""Kafka's producer epochs have 16 bits."""


class ProducerIdentity:
    """See the module.

    Attributes:
        producer_id, producer_epoch: -1 while there are none.
    """

    __slots__ = (
        "_attempts",
        "_backoff_max_us",
        "_backoff_us",
        "_controller",
        "_requests",
        "_waiting_id",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self, requests: ClientRequests, controller: str, *, backoff_us: int, backoff_max_us: int
    ) -> None:
        self.producer_id = self.producer_epoch = -1
        self._requests = requests
        self._controller = controller
        self._backoff_us = backoff_us
        self._backoff_max_us = backoff_max_us
        self._waiting_id: int | None = None
        self._attempts = 0

    @property
    def is_known(self) -> bool:
        return self.producer_id >= 0

    def ask(self, now: Now, fx: Effects) -> None:
        """Ask for a new id, unless one is known or asked for."""
        if self.is_known or self._waiting_id is not None:
            return
        self._waiting_id = self._requests.correlations.take()
        self._attempts += 1
        self._requests.send(now, fx, self._controller, InitProducerIdRequest(self._waiting_id))

    def on_failure(self, now: Now, fx: Effects, request: InitProducerIdRequest) -> None:
        """No answer came, or an error: ask again after the back-off, whatever the error."""
        if request.correlation_id != self._waiting_id:
            return
        self._waiting_id = None
        wait_us = backoff_us(self._attempts, self._backoff_us, self._backoff_max_us)
        fx.arm(IDENTITY_TIMER, now.timer_us + wait_us, now.timer_clock)

    def on_response(
        self,
        now: Now,
        fx: Effects,
        request: InitProducerIdRequest,
        response: InitProducerIdResponse,
    ) -> None:
        """Take the id; an answer without one is a failure."""
        is_good = response.error_code is ErrorCode.NONE and response.producer_id >= 0
        if not is_good or not 0 <= response.producer_epoch <= PRODUCER_EPOCH_MAX:
            self.on_failure(now, fx, request)
            return
        self._waiting_id = None
        self._attempts = 0
        self.producer_id = response.producer_id
        self.producer_epoch = response.producer_epoch

    def begin_epoch(self, now: Now, fx: Effects) -> None:
        """The next epoch, or, behind the last one, a new id."""
        if self.producer_epoch < PRODUCER_EPOCH_MAX:
            self.producer_epoch += 1
            return
        self.producer_id = self.producer_epoch = -1
        self.ask(now, fx)
