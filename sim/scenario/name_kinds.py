"""Kinds of values that name something of the document: partitions, topics, brokers, selectors.

Left out: what is declared (``sim.scenario.names``).
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from sim.scenario.kinds import Plain, Reader
from sim.scenario.names import PartitionName
from sim.scenario.problems import Refusal, guess, seen
from sim.scenario.selectors import Selector, is_server, selector

__all__ = ["BrokerKind", "PartitionKind", "SelectorKind", "TargetKind", "TopicKind"]


@frozen
class PartitionKind(Plain):
    """A partition that there is at some time."""

    def read(self, value: object, reader: Reader) -> PartitionName:
        return reader.names.partition(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,249}-[0-9]+$"}


@frozen
class TargetKind(Plain):
    """A partition, or a topic for all of its partitions: ``(topic, None)``."""

    def read(self, value: object, reader: Reader) -> tuple[str, int | None]:
        if isinstance(value, str) and value in reader.names.topics:
            return value, None
        if isinstance(value, str) and "-" not in value:
            topics = [*reader.names.topics, *(f"{each}-0" for each in reader.names.topics)]
            hint = guess(value, topics)
            raise Refusal(f"there is no topic {seen(value)}", hint=hint, allowed=topics)
        found = reader.names.partition(value)
        return found.topic, found.partition

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,249}$"}


@frozen
class TopicKind(Plain):
    """A topic that there is at some time."""

    def read(self, value: object, reader: Reader) -> str:
        if not isinstance(value, str):
            raise Refusal(f"{seen(value)} is no topic name", hint="write it in quotes")
        return reader.names.topic(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,249}$"}


@frozen
class BrokerKind(Plain):
    """A broker by name."""

    def read(self, value: object, reader: Reader) -> str:
        return reader.names.broker(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^b[1-9][0-9]*$"}


@frozen
class SelectorKind(Plain):
    """A node by name or by role.

    Attributes:
        is_single: at most one node.
        servers_only: no clients.
    """

    is_single: bool = False
    servers_only: bool = True

    def read(self, value: object, reader: Reader) -> Selector:
        found = selector(value, reader.names)
        if self.is_single and not found.is_single:
            raise Refusal(f"{seen(value)} may name several nodes", hint="name one")
        if self.servers_only and not is_server(found, reader.names):
            raise Refusal(
                f"{seen(value)} is a client", hint="name a broker, the controller or a role"
            )
        return found

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def show(self, value: Any) -> Any:
        return value if value is None else str(value)
