"""The root of all messages."""

from __future__ import annotations

from attrs import frozen

from storage.values import Value

__all__ = ["Message"]


@frozen
class Message(Value):
    """A request or a response.

    Attributes:
        correlation_id: of the request; its sender never uses it again, over restarts too.
    """

    correlation_id: int
