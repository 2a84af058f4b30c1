"""Follows the controller: what it has made durable, and what it elects.

"The controller's word" is its committed image: what it may have told. While it is down the last one
holds.

Left out: brokers.
"""

from __future__ import annotations

from typing import Any

from cluster.controller import Controller
from cluster.effects import Note
from cluster.messages_control import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    ElectLeadersRequest,
)
from cluster.names import TopicIdPartition
from cluster.records import BrokerRecord, PartitionRecord
from sim.checks import epoch_fencing, isr_well_formed, one_leader_per_epoch
from sim.checks.leaders import look_at_leader
from sim.checks.scene import Scene
from sim.meter import DiskCall, Strike
from sim.process import Task
from sim.trace.kinds import Kind

__all__ = ["ControllerWatch"]


class ControllerWatch:
    """See the module."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._end = 0
        self._decided_end = 0
        self._decided: dict[TopicIdPartition, PartitionRecord] = {}
        self._brokers: dict[str, BrokerRecord] = {}

    def handled(self, controller: Controller, number: int, task: Task, effects: Any) -> None:
        """A handler has run."""
        event = number
        for effect in effects:
            if isinstance(effect, Note):
                event += 1
                if effect.kind == "leader-elected":
                    self._note_election(controller, task, dict(effect.args), event)
            elif isinstance(effect, Strike) or (isinstance(effect, DiskCall) and effect.is_told):
                event += 1
        if not controller.is_running:
            return
        scene, decided = self.scene, controller.image
        if task.kind is Kind.START:
            one_leader_per_epoch.check_memory(scene, decided, self._end, number)
            self._decided_end = -1
        if decided.end_offset != self._decided_end:
            self._check_epochs(controller, task, number)
            self._decided_end = decided.end_offset
            self._decided = {record.partition: record for record in decided.partitions()}
            self._brokers = dict(decided.brokers)
        image = controller.committed_image
        if image.end_offset <= self._end:
            return
        scene.image, self._end = image, image.end_offset
        before = scene.records
        scene.records = {record.partition: record for record in image.partitions()}
        for partition, record in scene.records.items():
            if record is not before.get(partition):
                self._change(before.get(partition), record, number)

    def _check_epochs(self, controller: Controller, task: Task, event: int) -> None:
        if task.handler != "on_message":
            return
        message = task.values[1]
        if isinstance(message, AlterPartitionRequest):
            epoch_fencing.check_proposal(self.scene, controller, message, self._decided, event)
        elif isinstance(message, BrokerHeartbeatRequest):
            known = self._brokers.get(message.broker_id)
            epoch_fencing.check_heartbeat(self.scene, controller, message, known, event)

    def _change(self, before: PartitionRecord | None, record: PartitionRecord, event: int) -> None:
        scene = self.scene
        ledger = scene.ledger(record.partition)
        if before is not None:
            one_leader_per_epoch.check_record(scene, before, record, event)
        isr_well_formed.check(scene, record, event)
        old = () if before is None else before.isr
        for node in record.isr:
            place = ledger.places.get(node)
            if node not in old and place is not None and self._is_known_life(node):
                place.is_lossy = False
        look_at_leader(scene, ledger, event)

    def _is_known_life(self, node: str) -> bool:
        """Whether the controller knows the life that a broker has now.

        A fetch of an earlier one may be under way when its power fails, and bring it into the ISR
        before it has registered anew; then it leaves as an unclean one (PROTOCOL A16).
        """
        broker = self.scene.broker(node)
        return broker is not None and (
            broker.core.broker_epoch == self.scene.image.broker_epoch(node)
        )

    def _note_election(
        self, controller: Controller, task: Task, args: dict[str, Any], event: int
    ) -> None:
        """An election outside ISR and ELR counts as one if it is allowed.

        ``preferred`` is one that moves the lead, though the old leader is fit to lead on.
        """
        leader, epoch, where = args["leader"], args["leader_epoch"], args["partition"]
        kind = "none" if leader is None else "clean"
        if leader not in (None, args["old_leader"]) and args["old_leader"] in args["isr"]:
            kind = "preferred"
        partition = self._partition(controller, where)
        if args["unclean"] and partition is not None:
            before = self._decided.get(partition)
            is_last_known = before is not None and leader in before.last_known_elr
            kind = "last-known" if is_last_known and self.scene.has_elr else "unclean"
            if kind == "last-known" or self._is_allowed(controller, partition, task):
                self.scene.ledger(partition).unclean_epochs.add(epoch)
        self.scene.elections.append((where, leader, epoch, kind, event))

    def _partition(self, controller: Controller, where: str) -> TopicIdPartition | None:
        for record in controller.image.partitions():
            if str(record.partition) == where:
                return record.partition
        return None

    def _is_allowed(self, controller: Controller, partition: TopicIdPartition, task: Task) -> bool:
        """By the topic's configuration, or because the operator asks for it."""
        if task.handler == "on_message" and isinstance(task.values[1], ElectLeadersRequest):
            return True
        topic = controller.image.config(is_topic=True, resource=partition.topic)
        value = topic.get("unclean.leader.election.enable")
        if value is None:
            return self.scene.world.config.topic.unclean_leader_election_enable
        return value == "true"
