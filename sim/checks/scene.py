"""What all checks of one world share: its ledgers, the controller's word, and where they report.

Left out: what is checked when (``sim.checks.judge``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, NamedTuple

from cluster.broker import Broker
from cluster.messages_data import FetchRequest
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from sim.checks.ledger import Ledger, Loss, Place
from sim.checks.violations import Violation
from sim.faults import DiskCallFault
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["Acked", "Scene"]


class Acked(NamedTuple):
    """A record of which its producer was told that it is stored; ``event`` says so."""

    partition: TopicIdPartition
    epoch: int
    offset: int
    event: int


class Scene:
    """See the module.

    Attributes:
        violations: the first of each identity, in order.
        repeats: how often each identity was seen.
        ledgers: of every partition that there ever was.
        image, records: what the controller has made durable, the last one while it is down.
        has_elr: whether there are eligible leader replicas.
        elections: partition, leader, epoch and kind (``clean``, ``unclean``,
            ``last-known``, ``none``), event.
        errors: how often operations of producers ended with each error.
        begun: of each fault that ever began, the event.
        blows: what befell nodes: ends of their processes, faults that began; event and nodes.
        acked: what was acknowledged, by client and operation; without what acks 0 promised.
        disturbed_us: when anything last happened that is no part of a quiet world.
        asked: fetches that were answered, by follower, leader and correlation id.
        turns: what a replica or a fetcher does again and again (``sim.checks.livelock``).
        ends: how and at which event each node's newest process ended.
        damages: at which event each node's files were last changed behind its back.
        failures: at which event a replica's fetcher failed, by partition and node.
        misled: where that was by an answer, or a request, that was garbled on its way, its event.
        garbled: requests that were, by who asks, who is asked and correlation id.
        refusals: at which event a replica last failed to take its role, by partition and node.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.has_elr = world.config.controller.eligible_leader_replicas
        self.violations: list[Violation] = []
        self.repeats: dict[tuple[str, str, str], int] = {}
        self.ledgers: dict[TopicIdPartition, Ledger] = {}
        self.image = MetadataImage()
        self.records: dict[TopicIdPartition, PartitionRecord] = {}
        self.elections: list[tuple[str, str | None, int, str, int]] = []
        self.errors: dict[str, int] = {}
        self.acked: dict[tuple[str, int], Acked] = {}
        self.disturbed_us = 0
        self.begun: dict[str, int] = {}
        self.blows: list[tuple[int, tuple[str, ...]]] = []
        self.asked: dict[tuple[str, str, int], FetchRequest] = {}
        self.turns: dict[tuple[str, str, str], Any] = {}
        self.ends: dict[str, tuple[str, int]] = {}
        self.damages: dict[str, int] = {}
        self.failures: dict[tuple[str, str], int] = {}
        self.misled: dict[tuple[str, str], int] = {}
        self.garbled: dict[tuple[str, str, int], int] = {}
        self.refusals: dict[tuple[str, str], int] = {}

    def ledger(self, partition: TopicIdPartition) -> Ledger:
        """The ledger of a partition; a new one where there is none."""
        found = self.ledgers.get(partition)
        if found is None:
            found = self.ledgers[partition] = Ledger(partition)
        return found

    def live(self) -> Iterator[Ledger]:
        """The ledgers of partitions that the controller knows."""
        return (self.ledgers[each] for each in self.ledgers if each in self.records)

    def broker(self, node: str) -> Broker | None:
        """The broker that runs at a node."""
        process = self.world.hosts[node].process
        machine = None if process is None else process.machine
        return machine if isinstance(machine, Broker) and hasattr(machine, "core") else None

    def incarnation(self, node: str) -> int:
        """Of the process at a node, -1 where there is none."""
        return self.world.incarnation(node)

    def is_legitimate(self, place: Place) -> bool:
        """A live incarnation that has applied the controller's current epoch, leads and serves."""
        record = self.records.get(place.partition)
        if record is None or record.leader != place.node or place.replica is None:
            return False
        leading = place.replica.leading
        if leading is None or leading.leader_epoch != record.leader_epoch:
            return False
        broker = self.broker(place.node)
        return broker is not None and broker.core.is_open and not broker.core.is_halted

    def legitimate_leader(self, ledger: Ledger) -> Place | None:
        """The place of the legitimate leader of a partition."""
        record = self.records.get(ledger.partition)
        place = None if record is None else ledger.places.get(record.leader or "")
        return place if place is not None and self.is_legitimate(place) else None

    def note_blow(self, nodes: tuple[str, ...], event: int) -> None:
        """Something befalls nodes, ``*`` being all."""
        self.blows.append((event, nodes))

    def blows_to(self, nodes: Collection[str], behind: int, up_to: int) -> list[int]:
        """The events of what befell any of some nodes behind one event and up to another."""
        found = []
        for event, struck in reversed(self.blows):
            if event <= behind:
                break
            if event <= up_to and ("*" in struck or any(node in nodes for node in struck)):
                found.append(event)
        return found[::-1]

    def disk_faults(self, node: str, up_to: int) -> list[int]:
        """With which events faults of the calls of a node's disk began."""
        found = [
            self.begun.get(fault_id, 0)
            for fault_id, fault in self.world.faults.items()
            if isinstance(fault, DiskCallFault) and fault.node == node
        ]
        return [event for event in found if 0 < event <= up_to]

    def tell_loss(self, loss: Loss) -> int:
        """Records are lost: an event of its own, behind what led to it."""
        world = self.world
        chain = tuple(sorted({each for each in (*loss.culprits, loss.event) if each > 0}))
        args = loss.plain()
        for key in ("event", "cause", "told"):
            del args[key]
        args["count"] = loss.records
        return world.trace.emit(world.now_us, "world", Kind.LOSS, chain, args)

    def min_isr(self, partition: TopicIdPartition) -> int:
        """The effective ``min.insync.replicas``, by the controller's word."""
        record, wanted = self.records.get(partition), self.configured_min_isr(partition)
        return wanted if record is None else max(1, min(wanted, len(record.replicas)))

    def configured_min_isr(self, partition: TopicIdPartition) -> int:
        """The same, whether there are so many replicas or not."""
        config = self.image.config(is_topic=True, resource=partition.topic)
        value = config.get("min.insync.replicas")
        return self.world.config.topic.min_insync_replicas if value is None else int(value)

    def report(
        self,
        check: str,
        partition: TopicIdPartition | None,
        kind: str,
        event: int,
        detail: str,
        causes: Iterable[int] = (),
        **evidence: Any,
    ) -> None:
        """A rule is broken."""
        where = "" if partition is None else str(partition)
        key = check, where, kind
        self.repeats[key] = self.repeats.get(key, 0) + 1
        if self.repeats[key] > 1:
            return
        # Reported in the order of the events: causes are those before, the event itself last.
        chain = tuple(sorted({each for each in (*causes, event) if each > 0}))
        world = self.world
        args = {
            "check": check,
            "partition": where,
            "kind": kind,
            "detail": detail,
            "evidence": evidence,
        }
        told = world.trace.emit(world.now_us, "world", Kind.CHECK, chain, args)
        found = Violation(check, where, kind, event, told, detail, evidence, chain)
        self.violations.append(found)
