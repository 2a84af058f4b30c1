"""The invariants of PROTOCOL C.4 over a whole cluster, read from the logs themselves.

After each handler of a broker: I4, I5, I6, I7, I9, I10, I14, I18, I19 and I13 of the replicas that
changed; after each of the controller: I8, and that its epochs only grow (I7). ``check`` reads every
log again and compares what all of them say: I1, I2, I3.

"The controller's" is what the controller has made durable: what it may have told.

Left out: how a history ends (``tests.cluster.whole_end``).
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

from cluster.broker import Broker
from cluster.controller import Controller
from cluster.effects import Effect, Note, Reply
from cluster.errors import ErrorCode
from cluster.messages_data import FetchRequest, FetchResponse, ProduceRequest, ProduceResponse
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Replica
from storage.mkb1 import decode_batch
from tests.cluster.whole_ledger import (
    Broken,
    Copy,
    Ledger,
    check_copy,
    epoch_prefix_break,
    first_difference,
    marks_of,
    read_copy,
)
from tests.cluster.whole_net import Net

REWRITES = frozenset(
    {"append", "replicate", "truncate", "restart-at", "compaction", "retention", "salvage"}
)
"""Notes of handlers behind which a log may have changed with its ends where they were."""

Place = tuple[str, TopicIdPartition]


class Watch:
    """Sees every handler of a ``Net``.

    Attributes:
        copies: the replicas as last read, those of brokers that are down too.
        last_leo: also of those that are down; absent where it is not known.
        image: the controller's durable image, the last one while it is down.
        is_lossy: a power cut that may lose anything lies behind: promises are off.
    """

    def __init__(
        self, net: Net, *, eligible_leader_replicas: bool, truncation_is_safe: bool
    ) -> None:
        self._net = net
        self._has_elr = eligible_leader_replicas
        self._truncation_is_safe = truncation_is_safe
        self.copies: dict[Place, Copy] = {}
        self.last_leo: dict[Place, int] = {}
        self.ledgers: dict[TopicIdPartition, Ledger] = {}
        self.image = MetadataImage()
        self._end_offset = 0
        self.records: dict[TopicIdPartition, PartitionRecord] = {}
        self.is_lossy = False
        self.lives: dict[str, int] = {}
        self._produces: dict[tuple[str, str, int], ProduceRequest] = {}
        self._fetches: dict[tuple[str, str, int], FetchRequest] = {}

    def ledger(self, partition: TopicIdPartition) -> Ledger:
        return self.ledgers.setdefault(partition, Ledger())

    def after(self, name: str, handler: str, args: tuple[Any, ...], effects: list[Effect]) -> None:
        """A machine's handler has run; its effects are still to come."""
        machine = self._net.nodes[name]
        if isinstance(machine, Controller):
            self._after_controller(machine, handler, effects)
        elif isinstance(machine, Broker):
            self._after_broker(name, machine, handler, args, effects)

    # Controller --------------------------------------------------------------------------------

    def _after_controller(
        self, controller: Controller, handler: str, effects: list[Effect]
    ) -> None:
        for effect in effects:
            if isinstance(effect, Note) and effect.kind == "controller-failed":
                raise Broken("halt", f"c1: {effect}")
            if isinstance(effect, Note) and effect.kind == "leader-elected":
                self._note_unclean(controller, dict(effect.args))
        if handler == "on_start":
            self._check_memory(controller.image)
        image = controller.committed_image
        if image.end_offset <= self._end_offset:
            return
        self.image, self._end_offset = image, image.end_offset
        before, self.records = self.records, {r.partition: r for r in image.partitions()}
        for partition, record in self.records.items():
            self._check_record(before.get(partition), record)
            if record is not before.get(partition):
                self._check_leaders(partition)

    def _check_memory(self, image: MetadataImage) -> None:
        """A controller that starts knows everything that it has told."""
        for partition, told in self.records.items():
            known = image.partition(partition)
            epoch = -1 if known is None else known.partition_epoch
            is_deleted = known is None and image.end_offset > self._end_offset
            if epoch < told.partition_epoch and not is_deleted:
                raise Broken("I7", f"{partition}: {told} was told, and {known} is known")

    def _check_record(self, before: PartitionRecord | None, record: PartitionRecord) -> None:
        members, where = set(record.isr), str(record.partition)
        if before is not None:
            epochs = (record.leader_epoch, record.partition_epoch)
            if epochs[0] < before.leader_epoch or epochs[1] < before.partition_epoch:
                raise Broken("I7", f"{where}: epochs went back from {before} to {record}")
            if epochs == (before.leader_epoch, before.partition_epoch) and record != before:
                raise Broken("I7", f"{where}: {before} and {record} have the same epochs")
            joined = members - set(before.isr)
            self.ledger(record.partition).lossy -= {n for n in joined if self._is_known_life(n)}
        is_listed_only = len(members) == 1 and not self._has_elr and record.leader is None
        wrong = ""
        if record.leader is not None and record.leader not in members:
            wrong = "the leader is no member"
        elif not members <= set(record.replicas):
            wrong = "a member is no replica"
        elif not is_listed_only and not all(self.image.is_active(name) for name in members):
            wrong = f"a member is not active: {self.image.brokers}"
        elif not members and not self._has_elr:
            wrong = "nobody is in sync"
        elif members & set(record.elr):
            wrong = "ISR and ELR overlap"
        if wrong:
            raise Broken("I8", f"{where}: {wrong}: {record}")

    def _is_known_life(self, name: str) -> bool:
        """Whether the controller knows the life that a broker has now.

        A fetch of an earlier one may be under way when its power fails, and bring it into the ISR
        before it has registered anew; then it leaves as an unclean one (PROTOCOL A16).
        """
        machine = self._net.nodes.get(name)
        return isinstance(machine, Broker) and (
            machine.core.broker_epoch == self.image.broker_epoch(name)
        )

    def _note_unclean(self, controller: Controller, args: dict[str, Any]) -> None:
        """An election outside ISR and ELR; one that is not allowed is judged as any other."""
        for record in controller.image.partitions():
            if str(record.partition) != args["partition"] or not args["unclean"]:
                continue
            topic = controller.image.config(is_topic=True, resource=record.partition.topic)
            # With an ELR it may have been the last leader known (PROTOCOL A17).
            if self._has_elr or topic.get("unclean.leader.election.enable") == "true":
                self.ledger(record.partition).unclean_epochs.add(args["leader_epoch"])

    # Brokers -----------------------------------------------------------------------------------

    def _after_broker(
        self, name: str, broker: Broker, handler: str, args: tuple[Any, ...], effects: list[Effect]
    ) -> None:
        replicas = broker.core.replicas
        if handler == "on_start":
            self.lives[name] = self.lives.get(name, -1) + 1
            self._forget(name)
            for partition in replicas:
                self.ledger(partition).uncertain.add(name)
        for place in [p for p in self.copies if p[0] == name and p[1] not in replicas]:
            del self.copies[place]
        touched = self._read_notes(name, broker, effects)
        for partition, replica in replicas.items():
            if replica.log is None:
                raise Broken("I17", f"{partition} at {name} is in quarantine: {replica.role}")
            if not broker.core.is_halted:
                self._look(name, replica, is_touched=str(partition) in touched)
        if handler == "on_message":
            self._note_message(name, broker, *args)
        for effect in effects:
            if isinstance(effect, Reply) and isinstance(effect.message, ProduceResponse):
                self._check_answer(name, broker, effect.to, effect.message)

    def _forget(self, name: str) -> None:
        for place in [place for place in self.copies if place[0] == name]:
            del self.copies[place]

    def _read_notes(self, name: str, broker: Broker, effects: list[Effect]) -> set[str]:
        touched = set()
        for effect in effects:
            if not isinstance(effect, Note):
                continue
            args = dict(effect.args)
            if effect.kind in REWRITES:
                touched.add(args["partition"])
            if effect.kind == "halt":
                raise Broken("halt", f"{name}: {args}")
            for partition in broker.core.replicas:
                if str(partition) != args.get("partition"):
                    continue
                if effect.kind == "append":
                    self._check_appender(name, partition, args["leader_epoch"])
                elif effect.kind in ("truncate", "restart-at"):
                    self._check_truncation(name, partition, args)
        return touched

    def _check_appender(self, name: str, partition: TopicIdPartition, epoch: int) -> None:
        who = name, self.lives[name]
        first = self.ledger(partition).appended_by.setdefault(epoch, who)
        if first != who:
            raise Broken("I7", f"{partition}: {first} and {who} append in epoch {epoch}")

    def _check_truncation(self, name: str, partition: TopicIdPartition, args: Any) -> None:
        """I13: who is in ISR or ELR keeps everything below ``T``."""
        record, ledger = self.records.get(partition), self.ledger(partition)
        if record is None or not self._owes or not self._truncation_is_safe:
            return
        if ledger.unclean_epochs:
            # The history is not clean any more, though whom it elected has not heard of it yet.
            return
        before = self.copies.get((name, partition))
        if name not in (*record.isr, *record.elr) or before is None or name in ledger.lossy:
            return
        if before.marks.start <= args["offset"] < min(before.marks.leo, ledger.top):
            raise Broken("I13", f"{name} cuts {partition} to {args}, T is {ledger.top}")

    def _look(self, name: str, replica: Replica, *, is_touched: bool) -> None:
        partition = replica.partition
        place, marks = (name, partition), marks_of(replica)
        before = self.copies.get(place)
        if before is not None and before.marks == marks and not is_touched:
            return
        same = before is not None and not is_touched
        if same and (before.marks.start, before.marks.leo) == (marks.start, marks.leo):
            assert before is not None
            copy = Copy(marks, before.spans, before.records)
        else:
            copy = read_copy(replica)
        self.copies[place], self.last_leo[place] = copy, marks.leo
        ledger = self.ledger(partition)
        ledger.note_held(name, copy)
        ledger.is_compacted |= replica.config.cleanup_compact
        check_copy(name, replica, copy)
        if replica.leading is not None:
            if before is not None and before.marks[3:] == marks[3:]:
                if marks.high_watermark < before.marks.high_watermark:
                    raise Broken("I4", f"{partition} at {name}: {before.marks}, now {marks}")
            self._check_leader(name, replica, copy)
        elif before is not None and marks.leo < before.marks.leo:
            self._check_leaders(partition)

    # Leaders -----------------------------------------------------------------------------------

    def is_legitimate(self, name: str, partition: TopicIdPartition) -> bool:
        """A live incarnation that has applied the controller's current epoch, and leads."""
        machine, record = self._net.nodes.get(name), self.records.get(partition)
        if not isinstance(machine, Broker) or record is None or record.leader != name:
            return False
        replica = machine.core.replicas.get(partition)
        return (
            replica is not None
            and replica.leading is not None
            and replica.leading.leader_epoch == record.leader_epoch
            and machine.core.is_open
            and not machine.core.is_halted
        )

    @property
    def _owes(self) -> bool:
        """Whether promises still count."""
        return not self.is_lossy

    def _check_leaders(self, partition: TopicIdPartition) -> None:
        """The controller's word on a partition has changed."""
        for (name, other), copy in list(self.copies.items()):
            machine = self._net.nodes.get(name)
            if other == partition and isinstance(machine, Broker):
                replica = machine.core.replicas.get(partition)
                if replica is not None and replica.leading is not None:
                    self._check_leader(name, replica, copy)

    def _check_leader(self, name: str, replica: Replica, copy: Copy) -> None:
        partition = replica.partition
        if not self.is_legitimate(name, partition):
            return
        record, ledger = self.records[partition], self.ledger(partition)
        ledger.uncertain.discard(name)
        leadership = name, self.lives[name], record.leader_epoch
        if leadership not in ledger.led:
            ledger.led.add(leadership)
            if any(epoch <= record.leader_epoch for epoch in ledger.unclean_epochs):
                ledger.unclean_epochs.clear()
                ledger.free(copy)
                ledger.uncertain.update(record.replicas)
                ledger.uncertain.discard(name)
            elif self._owes:
                self._check_complete("I6", name, partition, copy)
        ledger.commit(copy)
        self._check_members(name, record, ledger, copy)
        self._check_maximal(name, replica, record)

    def _check_complete(
        self, invariant: str, name: str, partition: TopicIdPartition, copy: Copy
    ) -> None:
        ledger = self.ledger(partition)
        missing = ledger.missing(copy)
        if missing is None and copy.marks.leo < ledger.top and not ledger.is_compacted:
            missing = f"T is {ledger.top}"
        if missing is not None:
            raise Broken(invariant, f"{partition} at its leader {name} {copy.marks}: {missing}")

    def _check_members(
        self, name: str, record: PartitionRecord, ledger: Ledger, copy: Copy
    ) -> None:
        """I5, against the members' own logs."""
        for member in record.isr:
            leo = self.last_leo.get((member, record.partition))
            if leo is None or member in ledger.lossy or self.is_lossy:
                continue
            if leo < copy.marks.high_watermark:
                raise Broken("I5", f"{name} {copy.marks}, {member} ends at {leo}: {record}")

    def _check_maximal(self, name: str, replica: Replica, record: PartitionRecord) -> None:
        leader = replica.leading
        assert leader is not None
        assert replica.state is not None
        min_isr = min(replica.config.min_insync_replicas, len(replica.state.replicas))
        if len(leader.isr.isr) < min_isr:
            return
        if not leader.isr.maximal >= {*record.isr, *record.elr}:
            raise Broken("I18", f"{name} counts with {leader.isr}: {record}")

    # Messages ----------------------------------------------------------------------------------

    def _note_message(self, name: str, broker: Broker, src: str, message: Any) -> None:
        match message:
            case ProduceRequest():
                self._produces[name, src, message.correlation_id] = message
            case FetchRequest():
                self._fetches[name, src, message.correlation_id] = message
            case FetchResponse():
                request = self._fetches.pop((src, name, message.correlation_id), None)
                if request is not None:
                    self._note_agreement(name, broker, request, message)

    def _note_agreement(
        self, name: str, broker: Broker, request: FetchRequest, response: FetchResponse
    ) -> None:
        """A fetch in the current epoch that does not diverge: the logs agree from here on."""
        asked = {each.partition: each.current_leader_epoch for each in request.partitions}
        for result in response.partitions:
            record = self.records.get(result.partition)
            replica = broker.core.replicas.get(result.partition)
            if result.error_code is ErrorCode.NONE and result.diverging_epoch is None:
                epoch = asked.get(result.partition)
                if record is not None and replica is not None:
                    if epoch == record.leader_epoch == replica.leader_epoch:
                        self.ledger(result.partition).uncertain.discard(name)

    def _check_answer(
        self, name: str, broker: Broker, client: str, response: ProduceResponse
    ) -> None:
        request = self._produces.pop((name, client, response.correlation_id), None)
        if request is None or request.acks != -1:
            return
        sent = {each.partition: each.records for each in request.partitions}
        for result in response.partitions:
            if result.error_code is ErrorCode.NONE:
                values = [r.value for r in decode_batch(sent[result.partition]).records]
                self._check_ack(name, broker, result.partition, result.base_offset, values)

    def _check_ack(
        self,
        name: str,
        broker: Broker,
        partition: TopicIdPartition,
        base_offset: int,
        values: list[bytes | None],
    ) -> None:
        """I19, and what is acknowledged is owed from now on (I1)."""
        replica, copy = broker.core.replicas[partition], self.copies[name, partition]
        ledger = self.ledger(partition)
        assert replica.state is not None
        needed = min(replica.config.min_insync_replicas, len(replica.state.replicas))
        for offset, value in enumerate(values, base_offset):
            entry = copy.records.get(offset)
            if entry is None:
                if offset >= copy.marks.start and not ledger.is_compacted:
                    raise Broken("I1", f"{name} acknowledges {offset}, and has it not")
                continue
            if entry.value != value:
                raise Broken("I1", f"{name} acknowledges {value!r} at {offset}, has {entry}")
            holders = ledger.holders[offset, entry.epoch]
            if len(holders) < needed:
                raise Broken(
                    "I19", f"{partition}: {offset} acknowledged, {needed} needed, held by {holders}"
                )
            if not self._owes:
                continue
            if ledger.was_unclean and not self.is_legitimate(name, partition):
                continue
            if ledger.promises.setdefault(offset, entry) != entry:
                raise Broken(
                    "I1",
                    f"{partition}: {name} acknowledges {entry} at {offset}, where "
                    f"{ledger.promises[offset]} is owed",
                )

    # All together ------------------------------------------------------------------------------

    def check(self) -> None:
        """Read every log again, then compare them."""
        for name, machine in self._net.nodes.items():
            if isinstance(machine, Broker) and not machine.core.is_halted:
                for replica in machine.core.replicas.values():
                    self._look(name, replica, is_touched=True)
        for partition in self.records:
            self._compare(partition)

    def _compare(self, partition: TopicIdPartition) -> None:
        ledger = self.ledger(partition)
        found = {place[0]: copy for place, copy in self.copies.items() if place[1] == partition}
        for one, other in combinations(sorted(found), 2):
            left, right = found[one], found[other]
            differs = epoch_prefix_break(left, right) if self._truncation_is_safe else None
            if differs is not None:
                raise Broken("I3", f"{partition}: {one} and {other} differ at {differs}")
            if self._owes and not {one, other} & ledger.uncertain:
                limit = min(left.marks.high_watermark, right.marks.high_watermark)
                differs = first_difference(left, right, limit)
                if differs is not None:
                    raise Broken("I2", f"{partition}: {one} and {other} differ at {differs}")
        for name, copy in found.items():
            if self._owes and self.is_legitimate(name, partition):
                self._check_complete("I1", name, partition, copy)

    # Losses ------------------------------------------------------------------------------------

    def note_power_cut(self, name: str, *, is_bounded: bool) -> None:
        """A broker's logs may have lost what was not synced.

        Args:
            is_bounded: no promise falls with it (FAULTS D.4); else none counts any more.
        """
        self.is_lossy |= not is_bounded
        self._forget(name)
        for place in [place for place in self.last_leo if place[0] == name]:
            del self.last_leo[place]
        for ledger in self.ledgers.values():
            ledger.lossy.add(name)
