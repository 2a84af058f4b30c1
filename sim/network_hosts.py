"""What the network asks of the world around it.

Left out: the world.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from cluster.message import Message
from sim.trace.kinds import Kind

__all__ = ["Emits", "NetworkHosts"]


class Emits(Protocol):
    """What the network asks of a trace."""

    def emit(
        self, t_us: int, node: str, kind: Kind, cause: Sequence[int], args: dict[str, Any]
    ) -> int:
        """Write an event down; returns its number, 1 or more."""


class NetworkHosts(Protocol):
    """What the network asks of the world."""

    def incarnation(self, node: str) -> int:
        """Of the process that runs there, 0 or more; -1 while none does."""

    def is_powered(self, node: str) -> bool:
        """Whether the host answers, with a reset if no process runs on it."""

    def left_before_death(self, node: str, incarnation: int, departs_us: int) -> bool:
        """Whether a process that has ended still lived at that time."""

    def transmit(self, node: str, message: Message) -> Message | None:
        """The message with the bytes that it refers to; None where they are gone."""

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        """A message has arrived; ``sent`` is the number of the event to cite as its cause."""

    def disconnected(self, node: str, peer: str, cause: int) -> None:
        """The connection to a peer has ended; ``cause`` is an event number, or 0."""
