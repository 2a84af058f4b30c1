"""A controller that does what a test says, and clients' requests in short.

``ScriptedController`` acknowledges registrations and heartbeats, hands out the records that a test
decides on, and answers AlterPartition by accepting it (``accepts_isr``) or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from cluster.broker import Broker
from cluster.config import BrokerConfig
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.message import Message
from cluster.messages_control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from cluster.messages_data import (
    FetchPartition,
    FetchRequest,
    IsolationLevel,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from cluster.metadata import MetadataImage
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, Now, TopicIdPartition
from cluster.records import (
    METADATA_RECORDS,
    BrokerRecord,
    ConfigRecord,
    MetadataRecord,
    PartitionRecord,
    TopicRecord,
)
from storage.batch import Record, RecordBatch
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from tests.cluster.router import Router

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS = TopicIdPartition(TOPIC_ID, "orders", 0)
BATCH_LIMIT = 1 << 20


class ScriptedController(Machine):
    """Holds the metadata log as a list of records."""

    def __init__(self) -> None:
        self.name = "c1"
        self.records: list[MetadataRecord] = []
        self.image = MetadataImage()
        self.accepts_isr = True
        self.unfences = True
        self.lets_go = True
        self.alter_requests: list[AlterPartitionRequest] = []
        self._parked: dict[str, MetadataFetchRequest] = {}
        self.silent_to: set[str] = set()
        self.snapshots_to: set[str] = set()

    def decide(self, *records: MetadataRecord) -> None:
        """Append records; brokers get them when ``hand_out`` is called."""
        for record in records:
            self.records.append(record)
            self.image.apply(record)

    def hand_out(self, now: Now, fx: Effects) -> None:
        """Answer the metadata fetches that wait for what was decided."""
        for broker in sorted(self._parked):
            request = self._parked[broker]
            if request.fetch_offset < len(self.records) and broker not in self.silent_to:
                del self._parked[broker]
                self._answer(broker, request, fx)

    def _answer(self, broker: str, request: MetadataFetchRequest, fx: Effects) -> None:
        number, start, end = request.correlation_id, request.fetch_offset, len(self.records)
        is_snapshot = broker in self.snapshots_to
        found = self.image.to_records() if is_snapshot else self.records[start:]
        records = tuple(METADATA_RECORDS.encode(record) for record in found)
        start = 0 if is_snapshot else start
        fx.reply(broker, MetadataFetchResponse(number, start, end, is_snapshot, records))

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        number = message.correlation_id
        match message:
            case BrokerRegistrationRequest(broker_id=name, incarnation_id=incarnation):
                epoch = len(self.records)
                self.decide(BrokerRecord(name, incarnation, epoch, not self.unfences, False))
                fx.reply(src, BrokerRegistrationResponse(number, ErrorCode.NONE, epoch))
                self.hand_out(now, fx)
            case BrokerHeartbeatRequest(want_shut_down=wants):
                go = wants and self.lets_go
                fenced = not self.unfences
                answer = BrokerHeartbeatResponse(number, ErrorCode.NONE, True, fenced, go)
                fx.reply(src, answer)
            case MetadataFetchRequest():
                self._parked[src] = message
                self.hand_out(now, fx)
            case AlterPartitionRequest():
                self.alter_requests.append(message)
                if self.accepts_isr:
                    self._alter(now, src, message, fx)

    def _alter(self, now: Now, src: str, message: AlterPartitionRequest, fx: Effects) -> None:
        results = []
        for change in message.partitions:
            state = self.image.partition(change.partition)
            assert state is not None
            if (change.leader_epoch, change.partition_epoch) != (
                state.leader_epoch,
                state.partition_epoch,
            ):
                error = ErrorCode.INVALID_UPDATE_VERSION
                results.append(AlterPartitionResult(change.partition, error))
                continue
            isr = tuple(member.broker_id for member in change.new_isr)
            state = evolve(
                state,
                isr=isr,
                partition_epoch=state.partition_epoch + 1,
                leader_recovery_state=change.leader_recovery_state,
            )
            self.decide(state)
            results.append(
                AlterPartitionResult(
                    change.partition,
                    ErrorCode.NONE,
                    state.leader,
                    state.leader_epoch,
                    isr,
                    state.leader_recovery_state,
                    state.partition_epoch,
                )
            )
        answer = AlterPartitionResponse(message.correlation_id, ErrorCode.NONE, tuple(results))
        fx.reply(src, answer)
        self.hand_out(now, fx)


class Cluster:
    """Brokers ``b1..bn`` on disks in memory, a scripted controller, one topic ``orders``."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: BrokerConfig | None = None,
        guards: Guards | None = None,
        topic: dict[str, str] | None = None,
    ) -> None:
        self.router = Router()
        self.controller = ScriptedController()
        self.router.nodes["c1"] = self.controller
        self.config = config or BrokerConfig()
        self.guards = guards or Guards()
        self.names = tuple(f"b{number}" for number in range(1, brokers + 1))
        self.disks = {name: MemDisk() for name in self.names}
        self.starts = dict.fromkeys(self.names, 0)
        self._numbers = 0
        for name in self.names:
            self.start(name)
        self.decide(
            TopicRecord(TOPIC_ID, "orders"),
            *(ConfigRecord(True, "orders", key, value) for key, value in (topic or {}).items()),
        )

    # Nodes -------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a broker on its disk, as a new incarnation."""
        broker = Broker(
            name,
            self.config,
            self.disks[name],
            Path("/") / name,
            guards=self.guards,
            incarnation=self.starts[name],
        )
        self.starts[name] += 1
        self.router.start(name, broker)
        self.router.settle()

    def kill(self, name: str) -> None:
        """End a broker's process: its files stay as they are."""
        self.router.drop(name)
        self.disks[name] = self.disks[name].copy()
        self.router.settle()

    def broker(self, name: str) -> Broker:
        broker = self.router.nodes[name]
        assert isinstance(broker, Broker)
        return broker

    # Metadata ----------------------------------------------------------------------------------

    def decide(self, *records: MetadataRecord) -> None:
        """Decide on records and deliver everything that follows."""
        self.controller.decide(*records)
        self.hand_out()

    def hand_out(self) -> None:
        fx = Effects()
        self.controller.hand_out(self.router.now, fx)
        for effect in fx.drain():
            self.router.carry_out("c1", effect)
        self.router.settle()

    def lead(
        self,
        leader: str | None,
        isr: Sequence[str] | None = None,
        *,
        replicas: Sequence[str] | None = None,
        epoch: int | None = None,
    ) -> PartitionRecord:
        """Name the leader of ``orders-0`` in the next epoch (or ``epoch``)."""
        before = self.controller.image.partition(ORDERS)
        names = tuple(replicas or (before.replicas if before else self.names))
        record = PartitionRecord(
            ORDERS,
            names,
            tuple(isr or (before.isr if before else names)),
            leader,
            epoch if epoch is not None else (before.leader_epoch + 1 if before else 0),
            before.partition_epoch + 1 if before else 0,
        )
        self.decide(record)
        return record

    # Clients -----------------------------------------------------------------------------------

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def send(self, to: str, message: Message, *, client: str = "p1") -> None:
        """Send a client's request and deliver everything that follows."""
        self.router.queue.append((client, to, message))
        self.router.settle()

    def produce(
        self,
        to: str,
        *values: bytes,
        acks: int = -1,
        client: str = "p1",
        producer: tuple[int, int, int] = (-1, -1, -1),
        timeout_ms: int = 30_000,
    ) -> int:
        """Send one batch to a broker; returns the correlation id."""
        frame = frame_of(*values, producer=producer, now_ms=self.router.now.wall_ms)
        number = self.number()
        part = ProducePartition(ORDERS, frame)
        self.send(to, ProduceRequest(number, acks, timeout_ms, (part,)), client=client)
        return number

    def acked(self, number: int, client: str = "p1") -> tuple[ErrorCode, int] | None:
        """Error and base offset of the answer to a produce, None while there is none."""
        for src, message in self.router.inbox.get(client, []):
            if isinstance(message, ProduceResponse) and message.correlation_id == number:
                assert src in self.names
                result = message.partitions[0]
                return result.error_code, result.base_offset
        return None

    def ask(self, to: str, message: Message, *, client: str = "k1") -> Message | None:
        """Send a request and return its answer, None if there is none yet."""
        self.send(to, message, client=client)
        for _, answer in self.router.inbox.get(client, []):
            if answer.correlation_id == message.correlation_id:
                return answer
        return None

    def fetch_request(
        self,
        offset: int,
        *,
        epoch: int = NO_EPOCH,
        replica: str = "",
        replica_epoch: int = NO_BROKER_EPOCH,
        last_epoch: int = NO_EPOCH,
        max_wait_ms: int = 0,
        log_start: int = -1,
    ) -> FetchRequest:
        part = FetchPartition(ORDERS, epoch, offset, last_epoch, log_start)
        return FetchRequest(
            self.number(),
            replica,
            replica_epoch,
            max_wait_ms,
            1,
            1 << 20,
            IsolationLevel.READ_UNCOMMITTED,
            (part,),
        )

    # Looking -----------------------------------------------------------------------------------

    def log(self, name: str) -> list[tuple[int, int, bytes]]:
        """(offset, epoch, value) of every record in a broker's log, hidden ones left out."""
        log = self.broker(name).core.replicas[ORDERS].opened
        found = log.fetch(log.log_start_offset, 1 << 20)
        return [(r.offset, r.leader_epoch, r.value or b"") for r in found]

    def high_watermark(self, name: str) -> int:
        return self.broker(name).core.replicas[ORDERS].high_watermark

    def leo(self, name: str) -> int:
        return self.broker(name).core.replicas[ORDERS].opened.leo


def frame_of(
    *values: bytes, producer: tuple[int, int, int] = (-1, -1, -1), now_ms: int = 0
) -> bytes:
    """One client's batch as it travels: offset 0, epoch 0."""
    batch = RecordBatch.unassigned(
        [Record(None, value, now_ms) for value in values],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=producer[2],
    )
    return MKB1.encode(batch, 0, 0, BATCH_LIMIT)[0]
