"""Taking a ``Snapshot`` of a world, its judge, and what healing and probes know.

Nothing here changes the world. Logs are compared by the judge's mirrors, so a look costs as much
as there are replicas, not records.

Left out: what a snapshot means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from attrs import define, field

from cluster.broker import Broker
from cluster.config import TopicConfig
from cluster.consumer import Consumer
from cluster.message import Message
from cluster.messages_control import CreateTopicsRequest
from cluster.metadata import MetadataImage
from cluster.names import ADMIN, CONTROLLER, TopicIdPartition
from cluster.producer import Producer
from cluster.records import PartitionRecord
from cluster.replica import Follower, Quarantined
from cluster.replica import Replica as BrokerReplica
from sim.checks import livelock
from sim.checks.comparing import difference
from sim.checks.judge import Judge
from sim.checks.ledger import DISK_LOSSES, Place
from sim.clients import ConsumerNotes
from sim.liveness.healing import Healing, is_full
from sim.liveness.probes import PROBER, READER, FinalReads, Probes
from sim.liveness.snapshot import Culprit, Node, Partition, Replica, Snapshot, Wait
from sim.operators import Operator
from sim.world import World
from storage.errors import CorruptLog

__all__ = ["Looker"]

_OWN: Final = frozenset({PROBER, READER})


@define(eq=False)
class Looker:
    """See the module.

    Attributes:
        readers: None before the final reads have begun.
        is_loaded: workloads write.
        changes: how often epochs were seen to have changed.
    """

    world: World
    judge: Judge
    healing: Healing
    probes: Probes
    readers: FinalReads | None = None
    is_loaded: bool = True
    changes: int = 0
    _epochs: dict[str, tuple[int, int]] = field(factory=dict)
    _epoch_changes: dict[str, int] = field(factory=dict)
    _changed_us: int = 0
    _fields: dict[str, Mapping[str, Any]] = field(factory=dict)

    def look(self) -> Snapshot:
        """The cluster now."""
        world, image = self.world, self.world.view().image()
        self._fields.clear()
        self._note_epochs(image)
        return Snapshot(
            t_us=world.now_us,
            changed_us=self._changed_us,
            stable_us=world.config.controller.broker_session_timeout_ms * 1_000,
            is_loaded=self.is_loaded,
            nodes=tuple(self._node(name, image) for name in (CONTROLLER, *world.config.names)),
            partitions=tuple(self._partition(each, image) for each in image.partitions()),
            waits=tuple(self._waits()),
            unanswered=sum(self._unanswered()),
            busy_us=max(0, self._busy_until_us() - world.now_us),
        )

    def _note_epochs(self, image: MetadataImage) -> None:
        now_us, before = self.world.now_us, self._epochs
        self._epochs = {
            str(each.partition): (each.leader_epoch, each.partition_epoch)
            for each in image.partitions()
        }
        if self._epochs == before:
            return
        self.changes += bool(before)
        if not before or not before.keys() <= self._epochs.keys():
            self._changed_us = now_us
        for name, epochs in self._epochs.items():
            if before and before.get(name) != epochs:
                self._epoch_changes[name] = now_us

    def _unanswered(self) -> Iterator[int]:
        for name in self.world.producers:
            process = self.world.host(name).process
            if process is not None and isinstance(process.machine, Producer):
                yield int(dict(process.machine.fields()).get("buffered", 0))

    def _busy_until_us(self) -> int:
        """When all lanes and disks of running brokers, and all links, are done with what they have.

        A lane that writes a whole response to a slow disk shows nothing before it is done.
        """
        found = [self.world.network.busy_until_us()]
        for name in (CONTROLLER, *self.world.config.names):
            host = self.world.host(name)
            if host.process is not None and not host.is_paused:
                found += host.process.busy_until_us.values()
                found += [] if host.disk is None else [host.disk.queue.free_us]
        return max(found)

    # Nodes -------------------------------------------------------------------------------------

    def _node(self, name: str, image: MetadataImage) -> Node:
        host, healing = self.world.host(name), self.healing
        is_core = name in healing.core
        broker, known = self._broker(name), image.brokers.get(name)
        culprit = healing.given_up.get(name)
        how, event = self.judge.scene.ends.get(name, ("", 0))
        if culprit is None and not host.is_running and how:
            what = "lost its power" if how == "power" else "ended"
            culprit = Culprit(f"{name} {what} ({how})", event)
        elif culprit is None and host.is_paused:
            culprit = Culprit(f"{name} is paused", healing.frozen_event(name))
        is_frozen = not is_core and host.loop is None
        return Node(
            name=name,
            status=host.status,
            is_core=is_core,
            is_fenced=known is None or known.is_fenced,
            is_behind=broker is not None and broker.core.applied_offset < image.end_offset,
            is_gone=is_frozen or name in healing.given_up,
            is_full=is_full(host),
            impaired=healing.impaired.get(name),
            culprit=culprit,
        )

    def _broker(self, name: str) -> Broker | None:
        return self.judge.scene.broker(name)

    # Partitions --------------------------------------------------------------------------------

    def _partition(self, record: PartitionRecord, image: MetadataImage) -> Partition:
        where, config = record.partition, self._config(record.partition, image)
        led = self._replica(record.leader, where)
        leading = None if led is None else led.leading
        leader = None if record.leader is None else self._broker(record.leader)
        is_led = (
            leading is not None
            and leader is not None
            and leading.leader_epoch == record.leader_epoch
            and leader.core.is_open
            and not leader.core.is_halted
            and self.world.host(leader.name).status == "running"
        )
        probe, error = self.probes.outcome(where.topic, where.partition)
        return Partition(
            name=str(where),
            replicas=record.replicas,
            isr=record.isr,
            leader=record.leader,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            adding=record.adding_replicas,
            removing=record.removing_replicas,
            min_isr=min(config.min_insync_replicas, len(record.replicas)),
            is_unclean_allowed=config.unclean_leader_election_enable,
            is_led=is_led,
            proposed=None if leading is None else leading.isr.proposed,
            logs=tuple(self._log(name, record) for name in record.replicas),
            probe=probe,
            probe_error=error,
            read_end=None if self.readers is None else self.readers.position(where),
            changed_us=self._epoch_changes.get(str(where), 0),
        )

    def _config(self, where: TopicIdPartition, image: MetadataImage) -> TopicConfig:
        defaults = self.world.config.topic
        values = dict(image.config(is_topic=True, resource=where.topic))
        min_isr = int(values.get("min.insync.replicas", defaults.min_insync_replicas))
        unclean = values.get("unclean.leader.election.enable")
        is_allowed = defaults.unclean_leader_election_enable if unclean is None else unclean
        return TopicConfig(
            min_insync_replicas=min_isr,
            unclean_leader_election_enable=is_allowed in (True, "true"),
        )

    def _replica(self, name: str | None, where: TopicIdPartition) -> BrokerReplica | None:
        broker = None if name is None else self._broker(name)
        return None if broker is None else broker.core.replicas.get(where)

    def _log(self, name: str, record: PartitionRecord) -> Replica:
        where = record.partition
        replica = self._replica(name, where)
        place = self._place(name, where)
        if replica is None:
            end = -1 if place is None else place.files_end
            return Replica(node=name, role="none", end=end, is_same=None)
        role, log = replica.role, replica.log
        if log is None:
            assert isinstance(role, Quarantined)
            return Replica(
                node=name,
                role=role.name,
                leader_epoch=replica.leader_epoch,
                end=-1,
                is_same=None,
                error=role.error.code,
                is_salvageable=isinstance(role.error, CorruptLog),
                culprit=self._damage(name, place),
            )
        damages = () if place is None else place.damages
        misled = self.judge.scene.misled.get((str(where), name), 0)
        culprit = self._damage(name, place) if damages else None
        if culprit is None and misled:
            culprit = Culprit(f"a request of {name}, or the answer, was garbled on its way", misled)
        return Replica(
            node=name,
            role=role.name,
            damages=damages,
            torn=() if place is None else place.mirror.torn(),
            hidden=() if place is None else place.mirror.hidden(log),
            refused=self.judge.scene.refusals.get((str(where), name), 0),
            culprit=culprit,
            leader=role.leader if isinstance(role, Follower) else None,
            leader_epoch=replica.leader_epoch,
            start=log.log_start_offset,
            high_watermark=replica.high_watermark,
            end=log.leo,
            fetch=str(self._shown(name).get(f"{where}/fetch_state", "")),
            is_same=self._is_same(place, self._place(record.leader, where)),
            failed=self.judge.scene.failures.get((str(where), name), 0),
            misled=misled,
            circles=livelock.circles(self.judge.scene, str(where), name),
        )

    def _shown(self, name: str) -> Mapping[str, Any]:
        if name not in self._fields:
            broker = self._broker(name)
            self._fields[name] = {} if broker is None else broker.fields()
        return self._fields[name]

    def _place(self, name: str | None, where: TopicIdPartition) -> Place | None:
        ledger = self.judge.scene.ledgers.get(where)
        return None if ledger is None or name is None else ledger.places.get(name)

    def _is_same(self, place: Place | None, leader: Place | None) -> bool | None:
        if place is None or leader is None:
            return None
        low = max(place.start, leader.start)
        return difference(place, leader, low, min(place.mirror.end, leader.mirror.end)) is None

    def _damage(self, name: str, place: Place | None) -> Culprit:
        """What a disk did to a log, the newest first."""
        for fate in reversed(place.fates if place is not None else []):
            if fate.how in DISK_LOSSES:
                return Culprit(f"{name} has lost bytes of it ({fate.how})", fate.event)
        event = self.judge.scene.damages.get(name, 0)
        return Culprit(f"bytes on the disk of {name} were changed", event)

    # Waits -------------------------------------------------------------------------------------

    def _waits(self) -> Iterator[Wait]:
        found: list[Wait] = []
        for name in self.world.producers:
            machine = self._machine(name)
            if name not in _OWN and isinstance(machine, Producer):
                found += self._produces(name, machine)
        found.sort(key=lambda each: each.since)
        yield from found
        for name, notes in self.world.consumers.items():
            machine = self._machine(name)
            if name not in _OWN and isinstance(machine, Consumer):
                yield from self._consumes(name, machine, notes)
        machine = self._machine(ADMIN)
        if isinstance(machine, Operator):
            for to, message in machine.waiting():
                name, needs = type(message).__name__, self._needs(message)
                yield Wait(client=ADMIN, what="request", at=to, text=name, needs=needs)

    def _needs(self, message: Message) -> tuple[tuple[int, tuple[str, ...]], ...]:
        """Of the replicas of each new partition one must be active; of those to be chosen, all."""
        if not isinstance(message, CreateTopicsRequest):
            return ()
        found = []
        for topic in message.topics:
            found += [(1, names) for names in topic.assignments]
            if not topic.assignments:
                found.append((topic.replication_factor, self.world.config.names))
        return tuple(found)

    def _machine(self, name: str) -> Any:
        process = self.world.host(name).process
        return None if process is None else process.machine

    def _produces(self, name: str, machine: Producer) -> Iterator[Wait]:
        """One wait for each partition: that of the oldest batch."""
        notes = self.world.producers[name]
        incarnation = self.world.incarnation(name)
        for queue in machine.queues:
            if queue.batches:
                batch = queue.batches[0]
                begun = notes.produced.get((incarnation, batch.operations[0]))
                where = f"{queue.topic}-{queue.partition}"
                yield Wait(
                    client=name,
                    what="produce",
                    partition=where,
                    at=batch.peer or "",
                    offset=self._needed(name, batch.peer, where),
                    since=0 if begun is None else begun[0],
                )

    def _needed(self, client: str, peer: str | None, where: str) -> int:
        """The high watermark that a client's request waits for at a broker."""
        broker = None if peer is None else self._broker(peer)
        offsets = [
            waiter.required_offset
            for partition, replica in (() if broker is None else broker.core.replicas.items())
            if str(partition) == where and replica.leading is not None
            for waiter in replica.leading.produces.waiting()
            if waiter.request.src == client
        ]
        return min(offsets, default=-1)

    def _consumes(self, name: str, machine: Consumer, notes: ConsumerNotes) -> Iterator[Wait]:
        """Reads that want more records; without a reset policy a position may be lost for good."""
        if notes.config.auto_offset_reset == "none":
            return
        for topic, number in dict.fromkeys(reading.place for reading in notes.readings):
            try:
                offset = machine.position(topic, number)
            except ValueError:
                continue
            where = f"{topic}-{number}"
            yield Wait(client=name, what="consume", partition=where, offset=offset)
