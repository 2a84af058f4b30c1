"""The one surface of every state machine: broker, controller, producer, consumer.

A handler takes the time and what happened, changes the machine, and puts what is to leave it into
the collector. It never waits, never raises for what a peer sent, and reads no clock.

Left out: who calls the handlers, and when (package ``sim``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.effects import Effects, TimerKey
from cluster.message import Message
from cluster.names import Now, TopicIdPartition
from storage.log_durability import FlushToken, Work

__all__ = ["Correlations", "Machine"]


class Machine:
    """Handlers that do nothing; a machine overrides those that concern it.

    Attributes:
        name: of the node.
    """

    name: str

    def on_start(self, now: Now, fx: Effects) -> None:
        """The process has started. Called once, before any other handler."""

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        """``src`` sent a request, or answers one."""

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        """A timer that was armed is due. A key armed again since then is not called twice."""

    def on_synced(self, now: Now, token: FlushToken, fx: Effects) -> None:
        """The disk has done the waiting part of a flush: complete it."""

    def on_disconnected(self, now: Now, peer: str, fx: Effects) -> None:
        """The connection to a node is gone: requests to it that have no answer get none."""

    def on_background(
        self, now: Now, partition: TopicIdPartition | None, work: Work, fx: Effects
    ) -> None:
        """Perform work that an earlier handler gave out with ``Background``."""

    def on_resume(self, now: Now, point: str, args: tuple[Any, ...], fx: Effects) -> None:
        """Go on behind a failpoint at which a handler stopped."""

    def on_stop(self, now: Now, fx: Effects) -> None:
        """Shut down in order; ``Stopped`` says when that is done."""

    def fields(self) -> Mapping[str, Any]:
        """The state as a viewer shows it: flat, plain values, ``TOPIC-PARTITION/FIELD`` or
        ``FIELD`` as keys.
        """
        return {}


class Correlations:
    """Correlation ids that no other request of the same node has, over restarts too."""

    __slots__ = ("_next",)

    def __init__(self, incarnation: int) -> None:
        """``incarnation``: how often the node was started before, 0 to 2^30."""
        self._next = incarnation << 32

    def take(self) -> int:
        """The next id."""
        self._next += 1
        return self._next
