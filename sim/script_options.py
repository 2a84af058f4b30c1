"""What scripts hand to verbs: names of options, seconds, nodes that may be none.

Left out: values that all users of verbs hand over (``sim.verb_values``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final, TypedDict

from cluster.config import ResetPolicy
from sim.world_errors import WorldError

__all__ = [
    "MICROSECONDS",
    "ConsumeOptions",
    "CutOptions",
    "PartitionOptions",
    "ProduceOptions",
    "check_options",
    "node",
    "us",
    "us_or_ever",
]

MICROSECONDS: Final = 1_000_000


class ProduceOptions(TypedDict, total=False):
    """See ``ScriptCluster.produce``."""

    acks: int | str
    partition: int | None
    keys: Sequence[str | bytes] | None
    batch: int
    timeout: float
    idempotence: bool | None
    client: str


class ConsumeOptions(TypedDict, total=False):
    """See ``ScriptCluster.consume``."""

    partition: int
    offset: int | None
    reset: ResetPolicy
    group: str | None
    client: str


class CutOptions(TypedDict, total=False):
    """See ``ScriptCluster.cut``."""

    only: Sequence[str]
    both: bool
    in_flight: str
    fault_id: str | None


class PartitionOptions(TypedDict, total=False):
    """See ``ScriptCluster.partition``."""

    in_flight: str
    fault_id: str | None


def node(name: str | None) -> str:
    """The name of a node, which a leader's may not be."""
    if name is None:
        raise WorldError("node is None: a partition that nobody leads has None for its leader")
    return name


def us(what: str, seconds: float) -> int:
    """Seconds in microseconds."""
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{what} is {seconds!r}, allowed is a number of seconds")
    if not (math.isfinite(seconds) and seconds >= 0):
        raise ValueError(f"{what} is {seconds!r}, allowed is 0 or more seconds")
    return round(seconds * MICROSECONDS)


def us_or_ever(what: str, seconds: float) -> int | None:
    """The same; None for ever."""
    return None if seconds == math.inf else us(what, seconds)


def check_options(verb: str, options: Mapping[str, object], allowed: type) -> None:
    """Names of options, against a TypedDict."""
    known = list(allowed.__annotations__)
    for name in options:
        if name not in known:
            raise TypeError(f"{verb} has no option {name!r}, allowed are {', '.join(known)}")
