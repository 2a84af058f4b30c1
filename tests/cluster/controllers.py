"""A controller with a disk, a clock and timers, driven by hand; and its brokers' messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cluster import messages_control as control
from cluster.config import ControllerConfig, TopicConfig
from cluster.controller import Controller
from cluster.effects import Arm, Background, Disarm, Effects, Fsync, Note, Reply, Stopped, TimerKey
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.machine import Correlations
from cluster.message import Message
from cluster.metadata import MetadataImage
from cluster.names import Now, TopicIdPartition
from cluster.records import METADATA_RECORDS, PartitionRecord
from storage.disk import Disk
from storage.memdisk import MemDisk

PATH = Path("/meta")
WALL_US = 1_700_000_000_000_000


class Rig:
    """One life of a controller.

    Attributes:
        holds_sync: fsyncs wait in ``tokens`` until ``sync`` is called; else they return at once.
        replies: everything said, in order.
    """

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        config: ControllerConfig | None = None,
        guards: Guards | None = None,
        defaults: TopicConfig | None = None,
        holds_sync: bool = False,
        mono_us: int = 0,
        ids: dict[str, Correlations] | None = None,
        starts: bool = True,
    ) -> None:
        self.disk = disk or MemDisk()
        self.config = config or ControllerConfig()
        self.guards = guards or Guards()
        self.defaults = defaults or TopicConfig()
        self.machine = Controller(
            "c1",
            self.config,
            self.disk,
            PATH,
            guards=self.guards,
            default_topic_config=self.defaults,
        )
        self.holds_sync = holds_sync
        self.mono_us = mono_us
        self.ids = {} if ids is None else ids
        self.timers: dict[TimerKey, int] = {}
        self.tokens: list[Any] = []
        self.works: list[Any] = []
        self.replies: list[tuple[str, Message]] = []
        self.notes: list[str] = []
        self.is_stopped = False
        self.epochs: dict[str, int] = {}
        if starts:
            self.run("on_start")

    # Running -----------------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        return Now(self.mono_us, WALL_US + self.mono_us)

    def run(self, handler: str, *args: Any) -> list[Message]:
        """Call a handler, do its effects, and give back what was said meanwhile."""
        said = len(self.replies)
        fx = Effects()
        getattr(self.machine, handler)(self.now, *args, fx)
        for effect in fx.drain():
            match effect:
                case Reply(to, message):
                    self.replies.append((to, message))
                case Arm(key, at_us, _):
                    self.timers[key] = at_us
                case Disarm(key):
                    self.timers.pop(key, None)
                case Fsync(token):
                    self.tokens.append(token)
                case Background(_, work):
                    self.works.append(work)
                case Note(kind, _):
                    self.notes.append(kind)
                case Stopped():
                    self.is_stopped = True
                case _:
                    raise AssertionError(effect)
        if not self.holds_sync:
            self.sync()
        return [message for _, message in self.replies[said:]]

    def sync(self) -> None:
        """Every fsync under way returns, and background work is done."""
        while self.tokens or self.works:
            if self.tokens:
                self.run("on_synced", self.tokens.pop(0))
            else:
                self.run("on_background", None, self.works.pop(0))

    def advance(self, ms: int) -> None:
        """Let time pass; due timers ring in order."""
        end = self.mono_us + ms * 1_000
        while due := sorted((at, str(key), key) for key, at in self.timers.items() if at <= end):
            at, _, key = due[0]
            del self.timers[key]
            self.mono_us = max(self.mono_us, at)
            self.run("on_timer", key)
        self.mono_us = end

    def again(self, disk: Disk, **kwargs: Any) -> Rig:
        """The next life, on another disk, with the same brokers."""
        values: dict[str, Any] = {
            "config": self.config,
            "guards": self.guards,
            "defaults": self.defaults,
            "mono_us": self.mono_us,
            "ids": self.ids,
        }
        rig = Rig(disk, **{**values, **kwargs})
        rig.epochs = dict(self.epochs)
        return rig

    # Sending -----------------------------------------------------------------------------------

    def take_id(self, src: str) -> int:
        return self.ids.setdefault(src, Correlations(0)).take()

    def ask(self, src: str, kind: type[Message], **values: Any) -> Any:
        """Send a request and give back its answer, None where there is none yet."""
        request = kind(correlation_id=self.take_id(src), **values)  # type: ignore[call-arg]
        for message in self.run("on_message", src, request):
            if message.correlation_id == request.correlation_id:
                return message
        return None

    def register(
        self,
        broker: str,
        incarnation: str = "i1",
        *,
        previous: int = -1,
        damaged: tuple[TopicIdPartition, ...] = (),
    ) -> Any:
        answer = self.ask(
            broker,
            control.BrokerRegistrationRequest,
            broker_id=broker,
            incarnation_id=incarnation,
            previous_broker_epoch=previous,
            damaged_partitions=damaged,
        )
        if answer is not None and answer.error_code is ErrorCode.NONE:
            self.epochs[broker] = answer.broker_epoch
        return answer

    def heartbeat(self, broker: str, **values: Any) -> Any:
        values = {
            "broker_epoch": self.epochs.get(broker, 0),
            "current_metadata_offset": self.machine.image.end_offset,
            **values,
        }
        return self.ask(broker, control.BrokerHeartbeatRequest, broker_id=broker, **values)

    def join(self, *brokers: str) -> None:
        """Register and unfence."""
        for broker in brokers:
            self.register(broker)
            assert not self.heartbeat(broker).is_fenced

    def silence(self, *brokers: str) -> None:
        """Their sessions end; everybody else goes on sending heartbeats."""
        interval_ms = self.config.broker_heartbeat_interval_ms
        for _ in range(self.config.broker_session_timeout_ms // interval_ms + 1):
            for broker, record in sorted(self.machine.image.brokers.items()):
                if broker not in brokers and not record.is_fenced:
                    self.heartbeat(broker)
            self.advance(interval_ms)

    def create(
        self, topic: str, *replicas: tuple[str, ...], **configs: str
    ) -> tuple[TopicIdPartition, ...]:
        names = tuple((name.replace("_", "."), value) for name, value in configs.items())
        wanted = control.CreateTopicsTopic(topic, assignments=replicas, configs=names)
        answer = self.ask("admin", control.CreateTopicsRequest, topics=(wanted,))
        assert answer.topics[0].error_code is ErrorCode.NONE, answer
        topic_id = answer.topics[0].topic_id
        return tuple(TopicIdPartition(topic_id, topic, at) for at in range(len(replicas)))

    def propose(
        self,
        sender: str,
        partition: TopicIdPartition,
        isr: tuple[str, ...],
        **values: Any,
    ) -> Any:
        """AlterPartition with the present epochs, unless given; the partition's result."""
        record = self.partition(partition)
        epochs = values.pop("member_epochs", {})
        members = tuple(
            control.BrokerState(each, epochs.get(each, self.epochs.get(each, -1))) for each in isr
        )
        sender_epoch = values.pop("broker_epoch", self.epochs.get(sender, -1))
        proposal = control.AlterPartition(
            partition,
            values.pop("leader_epoch", record.leader_epoch),
            values.pop("partition_epoch", record.partition_epoch),
            members,
            **values,
        )
        answer = self.ask(
            sender,
            control.AlterPartitionRequest,
            broker_id=sender,
            broker_epoch=sender_epoch,
            partitions=(proposal,),
        )
        return answer.partitions[0] if answer.partitions else answer

    def elect(self, partition: TopicIdPartition, kind: str, to: str | None = None) -> ErrorCode:
        answer = self.ask(
            "admin",
            control.ElectLeadersRequest,
            election_type=control.ElectionType[kind],
            partitions=(partition,),
            to=to,
        )
        code: ErrorCode = answer.partitions[0].error_code
        return code

    def reassign(self, partition: TopicIdPartition, replicas: tuple[str, ...] | None) -> ErrorCode:
        answer = self.ask(
            "admin",
            control.AlterPartitionReassignmentsRequest,
            partitions=(control.Reassignment(partition, replicas),),
        )
        code: ErrorCode = answer.partitions[0].error_code
        return code

    def configure(self, topic: str, name: str, value: str | None) -> ErrorCode:
        change = control.ConfigChange(True, topic, name, value)
        answer = self.ask("admin", control.AlterConfigsRequest, changes=(change,))
        code: ErrorCode = answer.error_code
        return code

    def partition(self, partition: TopicIdPartition) -> PartitionRecord:
        record = self.machine.image.partition(partition)
        assert record is not None
        return record


def shape(record: PartitionRecord) -> tuple[Any, ...]:
    """What most tests look at: leader, ISR, ELR."""
    return record.leader, record.isr, record.elr


def apply_fetched(image: MetadataImage, response: control.MetadataFetchResponse) -> MetadataImage:
    """What a broker makes of a response."""
    records = [METADATA_RECORDS.decode(value) for value in response.records]
    if response.is_snapshot:
        return MetadataImage.from_records(records, response.end_offset)
    assert response.base_offset == image.end_offset
    for record in records:
        image.apply(record)
    assert image.end_offset == response.end_offset
    return image


def check_well_formed(image: MetadataImage, *, elr: bool) -> None:
    """I8, and what PROTOCOL A16, A17 say of every state."""
    for record in image.partitions():
        members, others = set(record.isr), set(record.elr)
        assert members <= set(record.replicas), record
        assert others <= set(record.replicas), record
        assert record.leader is None or record.leader in members, record
        assert not members & others, record
        assert len(members) == len(record.isr), record
        assert set(record.adding_replicas + record.removing_replicas) <= set(record.replicas)
        if not elr:
            assert members, record
            assert not others, record
        gone = [each for each in record.isr if not image.is_active(each)]
        assert not gone or (not elr and record.isr == tuple(gone[:1])), record
        if record.leader is not None:
            assert image.is_active(record.leader), record
