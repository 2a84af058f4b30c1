"""Hypothesis strategies for messages, made from the classes themselves.

Every field gets values by its type and name, from small pools: sensible ones, ones that are stale
or ahead, and ones that no sane node sends. What a field is called decides more than its type does.
"""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from cluster import messages_control, messages_data
from cluster.message import Message
from cluster.names import TopicIdPartition
from storage.batch import ControlType, Record, RecordBatch
from storage.mkb1 import MKB1
from tests.cluster.scripted import ORDERS, TOPIC_ID

NODES = ("b1", "b2", "b3", "b9", "c1", "p1", "k1", "admin", "")
PARTITIONS = (
    ORDERS,
    ORDERS,
    ORDERS,
    TopicIdPartition(TOPIC_ID, "orders", 1),
    TopicIdPartition(TOPIC_ID, "payments", 0),
    TopicIdPartition("BBBBBBBBBBBBBBBBBBBBBQ", "orders", 0),
    TopicIdPartition("", "", -1),
)
_POOLS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("correlation", (0, 1, 2, 3, 4, 5, 2**32 + 1, -1)),
    ("epoch", (-1, 0, 0, 1, 1, 2, 3, 9, 2**31 - 1, 2**40, -7)),
    ("timestamp", (-3, -2, -1, 0, 1_000, 10**6, 2**63)),
    ("offset", (-2, -1, 0, 1, 2, 3, 4, 6, 9, 2**63 - 1, 2**70)),
    ("watermark", (-1, 0, 2, 2**63)),
    ("_ms", (-1, 0, 1, 500, 10**12)),
    ("bytes", (-1, 0, 1, 100, 1 << 20, 2**40)),
    ("acks", (-1, -1, 0, 1, 2)),
    ("sequence", (-1, 0, 1, 5, 2**31 - 1)),
)


def frames() -> SearchStrategy[bytes]:
    """Frames as clients and leaders send them, runs of them, and damaged ones."""
    return st.one_of(
        st.sampled_from(_frames()),
        st.binary(max_size=60),
        st.tuples(st.sampled_from(_frames()), st.integers(0, 120), st.integers(0, 255)).map(_flip),
    )


def _frames() -> list[bytes]:
    found = []
    for base, epoch in ((0, 0), (0, 1), (1, 0), (2, 1), (3, 2), (2**40, 3)):
        for producer in ((-1, -1, -1), (7, 0, 0), (7, 0, 1), (7, 1, 0)):
            plain = RecordBatch.unassigned(
                [Record(b"k", b"v%d" % base, 1_000)],
                producer_id=producer[0],
                producer_epoch=producer[1],
                base_sequence=producer[2],
            )
            found.append(MKB1.encode(plain, base, epoch, 1 << 20)[0])
    sparse = RecordBatch((Record(None, b"x", 0),), (0,), 2**31 - 1)
    marker = RecordBatch(
        (), (), 0, producer_id=7, producer_epoch=0, transactional_id="t", control=ControlType.ABORT
    )
    found += [MKB1.encode(each, 0, 0, 1 << 20)[0] for each in (sparse, marker)]
    return [*found, found[0] + found[8], found[0][:-3], b""]


def _flip(parts: tuple[bytes, int, int]) -> bytes:
    data, at, byte = parts
    return data[:at] + bytes([byte]) + data[at + 1 :] if at < len(data) else data


def of_type(kind: Any, name: str) -> SearchStrategy[Any]:
    """Values for a field ``name`` of a type."""
    if kind is TopicIdPartition:
        return st.sampled_from(PARTITIONS)
    if kind is bytes:
        return frames()
    if kind is int:
        for part, pool in _POOLS:
            if part in name:
                return st.sampled_from(pool)
        return st.sampled_from((-1, 0, 1, 2, 2**40))
    if kind is bool:
        return st.booleans()
    if kind is str:
        pool = ("orders", "payments", "") if "topic" in name or "resource" in name else NODES
        return st.sampled_from(pool)
    if kind is NoneType:
        return st.none()
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of([of_type(each, name) for each in args])
    if origin is tuple:
        return st.lists(of_type(args[0], name), max_size=3).map(tuple)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(list(kind))
    return of_class(kind)


def of_class(kind: type) -> SearchStrategy[Any]:
    """Instances of a message or of a named tuple in one."""
    fields = {name: each for name, each in get_type_hints(kind).items() if name != "__slots__"}
    return st.builds(kind, **{name: of_type(each, name) for name, each in fields.items()})


def _classes() -> list[type[Message]]:
    return [
        each
        for module in (messages_data, messages_control)
        for _, each in sorted(vars(module).items())
        if isinstance(each, type) and issubclass(each, Message) and each is not Message
    ]


MESSAGES: list[type[Message]] = [each for each in _classes() if attrs.has(each)]


def any_message() -> SearchStrategy[Message]:
    """A message of any class."""
    return st.sampled_from(MESSAGES).flatmap(of_class)


def message_of(*kinds: type[Message]) -> SearchStrategy[Message]:
    return st.sampled_from(kinds).flatmap(of_class)
