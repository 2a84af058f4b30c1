"""Kinds of values of actions: nodes, failpoints, disks, offsets, assignments of replicas.

Left out: the actions (``sim.scenario.actions``).
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

from cluster.failpoints import FAILPOINTS
from sim.disk_fuses import OPERATIONS
from sim.disk_images import CRASH_MODES
from sim.network_rules import MESSAGE_NAMES
from sim.scenario.kafka_keys import (
    BROKER_KEYS,
    TOPIC_KEYS,
    cluster_value,
    topic_value,
)
from sim.scenario.kinds import Choice, Integer, ListOf, MapOf, Reader, item
from sim.scenario.name_kinds import BrokerKind, SelectorKind
from sim.scenario.names import PARTITIONS_MAX
from sim.scenario.problems import Refusal, guess, seen

__all__ = [
    "ANY_CONFIG",
    "ASSIGNMENTS",
    "BYTES_MAX",
    "COUNT_MAX",
    "IMAGES",
    "ONLY",
    "REPLICAS",
    "TOPIC_CONFIG",
    "DiskKind",
    "FailpointKind",
    "OffsetKind",
    "check_assignments",
    "is_file_name",
    "nodes",
]

COUNT_MAX: Final = 100_000
BYTES_MAX: Final = 2**50
IMAGES: Final = ("lost", "kept", "drawn", *(m for m in CRASH_MODES if m not in ("lost", "kept")))


def nodes(doc: str, *, servers_only: bool = True) -> Any:
    kind = SelectorKind(servers_only=servers_only)
    listed = ListOf(kind, high=100, takes_one=True, is_distinct=True, what="nodes")
    return item(listed, doc, key="node")


@frozen
class FailpointKind:
    """A named point of the handlers, or a call of the disk: ``disk:CALL:PATH-SUFFIX``."""

    def read(self, value: object, reader: Reader) -> str:
        if isinstance(value, str) and value in FAILPOINTS:
            return value
        if isinstance(value, str) and value.startswith("disk:"):
            call, colon, suffix = value.removeprefix("disk:").partition(":")
            if call not in OPERATIONS:
                raise Refusal(
                    f"unknown disk call {seen(call)}",
                    hint=guess(call, OPERATIONS),
                    allowed=OPERATIONS,
                    offset=5,
                    width=len(call),
                )
            if not colon or ":" in suffix or not suffix.isprintable() or len(suffix) > 200:
                raise Refusal(f"{seen(value)} is no failpoint", hint="write disk:CALL:PATH-SUFFIX")
            return value
        allowed = [*FAILPOINTS, "disk:CALL:PATH-SUFFIX"]
        hint = guess(value, FAILPOINTS)
        raise Refusal(f"unknown failpoint {seen(value)}", hint=hint, allowed=allowed)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"enum": list(FAILPOINTS)}, {"type": "string", "pattern": "^disk:"}]}

    def show(self, value: Any) -> Any:
        return value


@frozen
class DiskKind:
    """``same``, ``wiped``, ``image:ID`` (as it was when the step of that id was done) or
    ``of:BROKER`` (as another's is now).
    """

    def read(self, value: object, reader: Reader) -> str:
        if value in ("same", "wiped"):
            return str(value)
        if isinstance(value, str) and value.startswith("image:"):
            step = value.removeprefix("image:")
            if step in reader.names.steps:
                return value
            raise Refusal(
                f"there is no step {seen(step)}",
                hint=guess(step, reader.names.steps),
                allowed=sorted(reader.names.steps),
                offset=6,
                width=len(step),
            )
        if isinstance(value, str) and value.startswith("of:"):
            broker, known = value.removeprefix("of:"), reader.names.broker_names
            if reader.names.is_broker(broker):
                return value
            text = f"there is no broker {seen(broker)}"
            width = len(broker)
            raise Refusal(text, hint=guess(broker, known), allowed=known, offset=3, width=width)
        allowed = ("same", "wiped", "image:STEP-ID", "of:BROKER")
        raise Refusal(f"{seen(value)} is no disk", allowed=allowed)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": "^(same|wiped|image:.+|of:.+)$"}

    def show(self, value: Any) -> Any:
        return value


@frozen
class OffsetKind:
    """``earliest``, ``latest`` or a number."""

    def read(self, value: object, reader: Reader) -> str | int:
        if value in ("earliest", "latest"):
            return str(value)
        if isinstance(value, str):
            raise Refusal(f"{seen(value)} is no offset", allowed=("earliest", "latest", "a number"))
        return Integer().read(value, reader)

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"enum": ["earliest", "latest"]}, Integer().schema()]}

    def show(self, value: Any) -> Any:
        return value


def _topic_pair(key: str, value: object, reader: Reader) -> tuple[str, str]:
    try:
        return key, topic_value(key, value)
    except Refusal as refusal:
        raise refusal from None


def _any_pair(key: str, value: object, reader: Reader) -> tuple[str, str]:
    """A value of a topic or of a broker: which of both is looked at where that is known."""
    if key in BROKER_KEYS:
        return key, str(cluster_value(key, value))
    return _topic_pair(key, value, reader)


TOPIC_CONFIG: Final = MapOf(_topic_pair, {"type": ["integer", "boolean", "string"]}, TOPIC_KEYS)
ANY_CONFIG: Final = MapOf(
    _any_pair,
    {"type": ["integer", "boolean", "string"]},
    tuple(sorted((*TOPIC_KEYS, *BROKER_KEYS))),
)
REPLICAS: Final = ListOf(BrokerKind(), high=100, is_distinct=True, what="brokers")
ASSIGNMENTS: Final = ListOf(REPLICAS, high=PARTITIONS_MAX, what="partitions")
ONLY: Final = ListOf(Choice(MESSAGE_NAMES), high=100, what="message names")


def is_file_name(text: str) -> bool:
    """Whether it is one name, with no way out of its directory."""
    return text not in ("", ".", "..") and text.isprintable() and not set("/\\:") & set(text)


def check_assignments(topic: Any) -> list[Refusal]:
    """What is wrong with how a topic's replicas are given."""
    if topic.replicas is None:
        return []
    found = []
    for key, is_given in (
        ("partitions", topic.partitions != 1),
        ("replication", topic.replication is not None),
    ):
        if is_given:
            text = f'"{key}" and "replicas" exclude each other'
            found.append(Refusal(text, at=(key,), is_key=True, hint="leave one of them out"))
    sizes = [len(each) for each in topic.replicas]
    for at, size in enumerate(sizes):
        if size != sizes[0]:
            text = f"this partition has {size} replicas, the first one {sizes[0]}"
            found.append(Refusal(text, at=("replicas", at), hint="as many everywhere"))
    return found
