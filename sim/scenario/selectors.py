"""Selectors: which nodes a step or a fault means, by name or by role.

Roles and random choices are settled when the step's time has come; the interpreter does that, from
``Selector`` as data, and writes the result into the trace.

Left out: settling them.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from cluster.names import ADMIN, CONTROLLER
from sim.scenario.names import Names, PartitionName
from sim.scenario.problems import Refusal, guess, seen

__all__ = ["ROLES", "SELECTORS", "WORDS", "Selector", "selector"]

ROLES: Final = ("leader", "followers", "isr")
WORDS: Final = ("controller", "one", "minority", "majority", "all")
SELECTORS: Final[dict[str, str]] = {
    "b1": "the node of that name: a broker, the controller c1, or a client",
    "leader:T-P": "the leader of partition P of topic T, by the controller's word",
    "followers:T-P": "its replicas but the leader",
    "isr:T-P": "its in-sync replicas, leader included",
    "controller": "the controller",
    "one": "one broker, drawn from the seed",
    "minority": "fewer than half of the brokers, as many as that can be, drawn from the seed",
    "majority": "more than half of the brokers, as few as that can be, drawn from the seed",
    "all": "all brokers",
}
"""Form and meaning, for ``explain``."""


@frozen
class Selector:
    """Which nodes.

    Attributes:
        kind: ``node``, one of ``ROLES`` or one of ``WORDS``.
        node: for ``node``: its name; else empty.
        partition: for ``ROLES``: whose; else None.
    """

    kind: str
    node: str = ""
    partition: PartitionName | None = None

    def __str__(self) -> str:
        """As files spell it."""
        if self.kind == "node":
            return self.node
        return self.kind if self.partition is None else f"{self.kind}:{self.partition}"

    def __deepcopy__(self, memo: object) -> Selector:
        return self

    @property
    def is_single(self) -> bool:
        """Whether it names one node at most."""
        return self.kind in ("node", "leader", "controller", "one")


def selector(value: object, names: Names) -> Selector:
    """A selector as files spell it.

    Raises:
        Refusal: it is none, or names a node or a partition that there is not.
    """
    if not isinstance(value, str):
        raise Refusal(f"{seen(value)} is no node or selector", hint='write it in quotes: "b1"')
    role, colon, rest = value.partition(":")
    if colon:
        if role not in ROLES:
            allowed = [f"{each}:TOPIC-PARTITION" for each in ROLES]
            hint = guess(role, ROLES)
            raise Refusal(f"unknown selector {seen(value)}", hint=hint, allowed=allowed)
        try:
            return Selector(role, partition=names.partition(rest))
        except Refusal as refusal:
            refusal.offset, refusal.width = len(role) + 1, len(rest)
            raise
    if value in WORDS:
        return Selector(value)
    if names.is_node(value):
        return Selector("node", node=value)
    if value in ROLES:
        topic = next(iter(names.topics), "TOPIC")
        raise Refusal(f"{seen(value)} of which partition?", hint=f'write "{value}:{topic}-0"')
    if value == ADMIN:
        raise Refusal('"admin" is the operator, whom nothing strikes')
    allowed = [*names.nodes, *WORDS, *(f"{each}:TOPIC-PARTITION" for each in ROLES)]
    is_broker = value[:1] == "b" and value[1:].isdecimal() and names.brokers is not None
    hint = f"brokers are b1 to b{names.brokers}" if is_broker else guess(value, allowed)
    raise Refusal(f"there is no node {seen(value)}", hint=hint, allowed=allowed)


def is_server(chosen: Selector, names: Names) -> bool:
    """Whether what it names can only be brokers or the controller."""
    return chosen.kind != "node" or chosen.node == CONTROLLER or names.is_broker(chosen.node)
