"""What a story has: everything that was read from a trace, and the simple questions about it.

Left out: reading (``sim.present.reading``), and everything that needs words.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from attrs import frozen

from sim.present.history import Fault, Finding, Loss, Node, Partition, Replica, Step
from sim.present.logs import Bytes
from sim.trace.kinds import Kind
from sim.trace.lines import Footer, Header

__all__ = ["Brief", "Happening", "StoryData"]


class Brief(NamedTuple):
    """What is kept of every event.

    Attributes:
        peer: whom a message came from, or went to.
        what: type of the message, key of the timer, kind of the work.
    """

    t_us: int
    node: str
    kind: Kind
    cause: tuple[int, ...]
    peer: str | None
    what: str | None


@frozen
class Happening:
    """Something that a time line may tell; ``data`` is the event's args or an object of history."""

    n: int
    what: str
    node: str
    partition: str | None = None
    data: Any = None


class StoryData:
    """What was read.

    Attributes:
        nodes, partitions, faults, steps: by name or id, in the order in which they appear.
        happenings: what a time line may tell, in order.
        findings, losses: what checks and the ledger found.
        briefs: a little of every event; event ``n`` is at ``n - 1``.
        drops: messages that a fault took: event, sender, receiver, type, fault.
        bytes: which bytes of logs were written and synced when.
        fencings: who was fenced, or let in again, by the causes of the event.
    """

    def __init__(self, header: Header | None, footer: Footer | None) -> None:
        self.header = header
        self.footer = footer
        self.nodes: dict[str, Node] = {}
        self.partitions: dict[str, Partition] = {}
        self.faults: dict[str, Fault] = {}
        self.steps: dict[str, Step] = {}
        self.happenings: list[Happening] = []
        self.findings: list[Finding] = []
        self.losses: list[Loss] = []
        self.briefs: list[Brief] = []
        self.drops: list[tuple[int, str, str, str, str]] = []
        self.bytes = Bytes()
        self.fencings: dict[tuple[int, ...], list[Happening]] = {}
        for known in () if header is None else header.nodes:
            self.node(known)

    # Asking --------------------------------------------------------------------------------------

    @property
    def last_n(self) -> int:
        """The number of the last event."""
        return len(self.briefs)

    @property
    def end_us(self) -> int:
        """The time of the last event."""
        return self.briefs[-1].t_us if self.briefs else 0

    def time_us(self, n: int) -> int:
        """When an event was."""
        return self.briefs[n - 1].t_us if 0 < n <= len(self.briefs) else 0

    def brief(self, n: int) -> Brief | None:
        """A little of an event; None where there is none of that number."""
        return self.briefs[n - 1] if 0 < n <= len(self.briefs) else None

    def node(self, name: str) -> Node:
        found = self.nodes.get(name)
        if found is None:
            found = self.nodes[name] = Node(name)
        return found

    def partition(self, name: str) -> Partition:
        found = self.partitions.get(name)
        if found is None:
            found = self.partitions[name] = Partition(name)
        return found

    def replica(self, node: str, partition: str) -> Replica:
        replicas = self.partition(partition).replicas
        found = replicas.get(node)
        if found is None:
            found = replicas[node] = Replica(node, partition, len(self.briefs))
            self.node(node).is_broker = True
        return found

    def replicas(self, partition: str) -> list[tuple[str, Replica]]:
        """The copies of a partition, in the order of the nodes."""
        known = self.partitions.get(partition)
        found = {} if known is None else known.replicas
        return [(node, found[node]) for node in self.nodes if node in found]

    def status(self, node: str, n: int) -> str:
        """``up``, ``paused``, ``down``, ``off``, ``stopped``, or ``never`` started."""
        found = self.nodes.get(node)
        return "never" if found is None else found.statuses.at(n) or "never"

    def crash_before(self, node: str, n: int) -> int:
        """The event with which the process of a node had ended before ``n``; 0 for none."""
        found = self.nodes.get(node)
        if found is None:
            return 0
        for number_, status in reversed(list(found.statuses)):
            if number_ <= n and status in ("down", "off", "stopped"):
                return number_
        return 0
