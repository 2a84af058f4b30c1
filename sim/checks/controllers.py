"""Follows the controller: what it has made durable, and what it elects.

"The controller's word" is its committed image: what it may have told. While it is down the last one
holds.

Left out: brokers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.controller import Controller
from cluster.effects import Note, Reply
from cluster.errors import ErrorCode
from cluster.messages_control import (
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    ElectionType,
    ElectLeadersRequest,
)
from cluster.names import CONTROLLER, NO_BROKER_EPOCH, TopicIdPartition
from cluster.records import BrokerRecord, PartitionRecord
from sim.checks import epoch_fencing, isr_well_formed, one_leader_per_epoch
from sim.checks.leaders import look_at_leader
from sim.checks.ledger import Ledger
from sim.checks.ranges import Records
from sim.checks.scene import Scene
from sim.checks.standing import Elected
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
        self._committed: dict[str, BrokerRecord] = {}
        self._heard_us: dict[str, int] = {}
        self._old_heartbeats: dict[tuple[str, int], tuple[BrokerHeartbeatRequest, int]] = {}
        self._min_isrs: dict[TopicIdPartition, int] = {}

    def handled(self, controller: Controller, number: int, task: Task, effects: Any) -> None:
        """A handler has run."""
        event = number
        if not any(isinstance(each, Note) and each.kind == "request-dropped" for each in effects):
            self._note_contact(task)
        for effect in effects:
            if isinstance(effect, Note):
                event += 1
                if effect.kind == "leader-elected":
                    self._note_election(controller, task, dict(effect.args), event)
                elif effect.kind == "broker-registered":
                    self._note_registration(dict(effect.args), event)
            elif isinstance(effect, Strike) or (isinstance(effect, DiskCall) and effect.is_told):
                event += 1
            elif isinstance(effect, Reply) and isinstance(effect.message, BrokerHeartbeatResponse):
                self._check_heartbeat(effect.to, effect.message, number)
        if not controller.is_running:
            return
        scene, decided = self.scene, controller.image
        if task.kind is Kind.START:
            one_leader_per_epoch.check_memory(scene, decided, self._end, number)
            self._forget_elections(controller)
            self._decided_end = -1
            if decided.end_offset < self._end:
                # It has forgotten what it had told; what it says from now on is its word.
                self._end = 0
        if decided.end_offset != self._decided_end:
            self._check_epochs(controller, task, number)
            self._note_quarantines(decided.brokers, number)
            self._decided_end = decided.end_offset
            before = self._decided
            self._decided = {record.partition: record for record in decided.partitions()}
            for partition, record in self._decided.items():
                old = before.get(partition)
                if old is not None and old.replicas != record.replicas:
                    # At once: the next election goes by what is decided, told or not.
                    scene.ledger(partition).standing.assigned.append(number)
            self._brokers = dict(decided.brokers)
        image = controller.committed_image
        if image.end_offset <= self._end:
            return
        scene.image, self._end = image, image.end_offset
        told, judged = scene.records, self._judged(image.brokers)
        scene.records = {record.partition: record for record in image.partitions()}
        for partition, record in scene.records.items():
            self._note_min_isr(partition)
            if judged:
                scene.ledger(partition).standing.note_judged(record, judged)
            if record is not told.get(partition):
                self._change(told.get(partition), record, number)
            self._note_in_sync(partition)

    def _check_epochs(self, controller: Controller, task: Task, event: int) -> None:
        if task.handler != "on_message":
            return
        message = task.values[1]
        if isinstance(message, AlterPartitionRequest):
            epoch_fencing.check_proposal(self.scene, controller, message, self._decided, event)

    # Lives of brokers --------------------------------------------------------------------------

    def _note_contact(self, task: Task) -> None:
        """A broker says something, before its registration changes."""
        message: Any = task.values[1] if task.handler == "on_message" else None
        if task.kind is Kind.START:
            # Who is not fenced has a whole session from now on.
            self._heard_us = dict.fromkeys(self._brokers, self._now_us())
            self._old_heartbeats.clear()
        elif isinstance(message, BrokerHeartbeatRequest):
            known = self._brokers.get(message.broker_id)
            if known is None:
                return
            if message.broker_epoch == known.broker_epoch:
                self._heard_us[message.broker_id] = self._now_us()
            elif NO_BROKER_EPOCH < message.broker_epoch < known.broker_epoch:
                key = task.values[0], message.correlation_id
                self._old_heartbeats[key] = message, known.broker_epoch

    def _check_heartbeat(self, to: str, answer: BrokerHeartbeatResponse, event: int) -> None:
        old = self._old_heartbeats.pop((to, answer.correlation_id), None)
        if old is not None and answer.error_code is ErrorCode.NONE:
            epoch_fencing.report_heartbeat(self.scene, *old, event)

    def _check_registration(self, node: str, event: int) -> None:
        """Another life of a broker was let in."""
        known, heard_us = self._brokers.get(node), self._heard_us.get(node)
        session_us = self.scene.world.config.controller.broker_session_timeout_ms * 1_000
        if known is not None and not known.is_fenced and heard_us is not None:
            left_us = heard_us + session_us - self._now_us()
            if left_us > 0:
                one_leader_per_epoch.report_registration(self.scene, node, left_us, event)
        self._heard_us[node] = self._now_us()

    def _now_us(self) -> int:
        """What the controller's clock for sessions shows."""
        world = self.scene.world
        return world.hosts[CONTROLLER].clock.now(world.now_us).mono_us

    def _change(self, before: PartitionRecord | None, record: PartitionRecord, event: int) -> None:
        scene = self.scene
        ledger = scene.ledger(record.partition)
        ledger.standing.note_change(before, record, scene.min_isr(record.partition))
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
        is_allowed = True
        outside = set() if partition is None else self.scene.ledger(partition).unclean_epochs
        outside.discard(epoch)
        if args["unclean"] and partition is not None:
            before = self._decided.get(partition)
            is_last_known = before is not None and leader in before.last_known_elr
            is_last_known &= not self._members_left(controller, partition, task)
            kind = "last-known" if is_last_known and self.scene.has_elr else "unclean"
            is_allowed = kind == "last-known" or self._is_allowed(
                controller, partition, leader, task
            )
            if is_allowed:
                outside.add(epoch)
        self.scene.elections.append((where, leader, epoch, kind, event))
        if partition is not None:
            if kind == "unclean" and not is_allowed:
                kind = "unpermitted"
            ledger = self.scene.ledger(partition)
            reasons = self._reasons(ledger, args, kind, event)
            ledger.standing.elected[epoch] = Elected(epoch, kind, event, reasons, leader)

    def _reasons(
        self, ledger: Ledger, args: dict[str, Any], kind: str, event: int
    ) -> tuple[int, ...]:
        """Why the lead moves: what befell those who might have led, since somebody last did.

        Who was elected and has not served is passed over: what made it leader counts too, unless
        who led before leads again. Where the ISR is empty by now, with ELR, it always counts: what
        emptied the ISR was noted then.
        """
        standing, leader = ledger.standing, args["leader"]
        if kind == "preferred":
            found = set(standing.moved_away(leader))
            if not standing.assigned and leader not in {node for node, _, _ in ledger.led}:
                # It was down or fenced when the partition was made with another leader.
                found.update(self.scene.blows_to([leader], 0, event))
            return tuple(sorted(found))
        led = {epoch: node for node, _, epoch in sorted(ledger.led)}
        since = standing.last_of(led)
        members = {*args["old_isr"], args["old_leader"]} - {leader, None}
        found = set(self.scene.blows_to(sorted(members), since, event))
        is_back = bool(led) and led[max(led)] == leader
        if not is_back or not args["old_isr"]:
            for each in standing.elections_behind(since):
                found.update(each.reasons if each.leader is None else (*each.reasons, each.event))
        return tuple(sorted(found))

    def _forget_elections(self, controller: Controller) -> None:
        """What was decided, and is not in the log of a controller that is back, never was."""
        for record in controller.image.partitions():
            told = self.scene.records.get(record.partition, record)
            known = max(record.leader_epoch, told.leader_epoch)
            self.scene.ledger(record.partition).forget_elections(known)

    def _note_registration(self, args: dict[str, Any], event: int) -> None:
        """A broker is back, and says whether it shut down cleanly."""
        scene, node = self.scene, args["broker"]
        self._check_registration(node, event)
        if args["clean"]:
            return
        for partition, record in self._decided.items():
            if node in record.replicas:
                _, end = scene.ends.get(node, ("", event))
                min_isr = scene.min_isr(partition)
                scene.ledger(partition).standing.note_unclean(record, node, end, min_isr)

    def _note_quarantines(self, brokers: Mapping[str, BrokerRecord], event: int) -> None:
        """A member whose log refuses to open may have lost as much as one that fell uncleanly."""
        for node, broker in brokers.items():
            known = self._brokers.get(node)
            before = () if known is None else known.damaged_partitions
            for partition in broker.damaged_partitions:
                record = self._decided.get(partition)
                if record is not None and partition not in before:
                    _, end = self.scene.ends.get(node, ("", event))
                    at, min_isr = self.scene.damages.get(node, end), self.scene.min_isr(partition)
                    self.scene.ledger(partition).standing.note_unclean(record, node, at, min_isr)

    def _judged(self, brokers: Mapping[str, BrokerRecord]) -> list[str]:
        """Brokers that were fenced or have registered anew, by what has become durable."""
        found = []
        for node, record in brokers.items():
            known = self._committed.get(node)
            if known is not None and (
                known.broker_epoch != record.broker_epoch
                or (record.is_fenced and not known.is_fenced)
            ):
                found.append(node)
        self._committed = dict(brokers)
        return found

    def _note_min_isr(self, partition: TopicIdPartition) -> None:
        """Another minimum ISR empties the ELR, unless nobody is in the ISR: what was promised
        before goes by the older rule.

        That ends with ``_note_in_sync``: from then on it keeps old records like new ones.
        """
        min_isr = self.scene.configured_min_isr(partition)
        ledger = self.scene.ledger(partition)
        is_other = self._min_isrs.get(partition, min_isr) != min_isr
        if is_other and self.scene.records[partition].isr:
            for each in (ledger.owed, ledger.committed, ledger.acked):
                ledger.without_elr.add(each)
        self._min_isrs[partition] = min_isr

    def _note_in_sync(self, partition: TopicIdPartition) -> None:
        """Enough members that were not shut down uncleanly are in sync: the ELR counts again."""
        ledger = self.scene.ledger(partition)
        if ledger.without_elr:
            isr, unclean = self.scene.records[partition].isr, ledger.standing.unclean
            clean = [node for node in isr if node not in unclean]
            if len(clean) >= self.scene.min_isr(partition):
                ledger.without_elr = Records()

    def _partition(self, controller: Controller, where: str) -> TopicIdPartition | None:
        for record in controller.image.partitions():
            if str(record.partition) == where:
                return record.partition
        return None

    def _is_allowed(
        self, controller: Controller, partition: TopicIdPartition, leader: str, task: Task
    ) -> bool:
        """By the topic's configuration, or because the operator asks for it.

        The controller goes outside ISR and ELR only where none of them may lead (PROTOCOL A15),
        unless the operator names who has to.
        """
        message = task.values[1] if task.handler == "on_message" else None
        asked = message if isinstance(message, ElectLeadersRequest) else None
        if asked is not None and (
            asked.election_type is not ElectionType.UNCLEAN or partition not in asked.partitions
        ):
            asked = None
        if asked is not None and asked.to == leader:
            return True
        if self._has_candidate(controller, partition, task):
            return False
        if asked is not None and asked.to is None:
            return True
        topic = controller.image.config(is_topic=True, resource=partition.topic)
        value = topic.get("unclean.leader.election.enable")
        if value is None:
            return self.scene.world.config.topic.unclean_leader_election_enable
        return value == "true"

    def _members_left(
        self, controller: Controller, partition: TopicIdPartition, task: Task
    ) -> list[str]:
        """Members of ISR and ELR as they were before, without those who have just left both."""
        image = controller.image
        before, record = self._decided.get(partition), image.partition(partition)
        if before is None or record is None:
            return []
        message = task.values[1] if task.handler == "on_message" else None
        left = ""
        if isinstance(message, BrokerRegistrationRequest):
            known = self._brokers.get(message.broker_id)
            if known is None or known.broker_epoch != message.previous_broker_epoch:
                left = message.broker_id
        return [
            node
            for node in (*before.isr, *before.elr)
            if node != left
            and node in record.replicas
            and partition not in image.brokers[node].damaged_partitions
        ]

    def _has_candidate(
        self, controller: Controller, partition: TopicIdPartition, task: Task
    ) -> bool:
        """Whether a member of ISR or ELR, as they were before, may lead."""
        members = self._members_left(controller, partition, task)
        return any(controller.image.is_active(node) for node in members)
