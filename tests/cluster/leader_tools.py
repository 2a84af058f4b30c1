"""One broker, and everybody else played by the test: its followers, clients and controller.

``Solo`` is a ``Cluster`` of which only ``b1`` is a machine. What a test sends as ``b2`` or ``b3``
is what it wants these brokers to say, so positions and epochs can be any.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import evolve

from cluster.config import BrokerConfig
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.isr import IsrState
from cluster.message import Message
from cluster.messages_control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from cluster.messages_data import (
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, TopicIdPartition
from cluster.records import BrokerRecord, PartitionRecord
from cluster.replica import Leader, Replica
from storage.memdisk import MemDisk
from tests.cluster.scripted import ORDERS, Cluster, frame_of
from tests.storage.faults import FaultDisk

MEMBERS = ("b1", "b2", "b3")


def guards_without(*names: str) -> Guards:
    """All guards but these."""
    return Guards(**dict.fromkeys(names, False))


class Solo(Cluster):
    """``b1`` and a topic ``orders`` with one partition, led by ``b1`` in epoch 0."""

    def __init__(
        self,
        *,
        config: BrokerConfig | None = None,
        guards: Guards | None = None,
        topic: dict[str, str] | None = None,
        disk: MemDisk | FaultDisk | None = None,
        replicas: Sequence[str] = MEMBERS,
        isr: Sequence[str] | None = None,
        leads: bool = True,
    ) -> None:
        super().__init__(0, config=config, guards=guards, topic=topic)
        self.names = ("b1",)
        self.disks = {"b1": disk or MemDisk()}
        self.starts = {"b1": 0}
        self.peers = {"b2": 0, "b3": 0}
        self.start("b1")
        for name in self.peers:
            self.register(name)
        if leads:
            self.lead("b1", isr or replicas, replicas=replicas)

    # Nodes -------------------------------------------------------------------------------------

    def register(self, name: str, *, fenced: bool = False, leaving: bool = False) -> int:
        """Another broker registers anew; returns its broker epoch."""
        epoch = len(self.controller.records)
        self.peers[name] = epoch
        self.decide(BrokerRecord(name, f"{name}.{epoch}", epoch, fenced, leaving))
        return epoch

    def change_broker(self, name: str, *, fenced: bool = False, leaving: bool = False) -> None:
        """Its registration stays, its state changes."""
        old = self.controller.image.brokers[name]
        self.decide(BrokerRecord(name, old.incarnation_id, old.broker_epoch, fenced, leaving))

    def kill(self, name: str = "b1") -> None:
        disk = self.disks[name]
        self.router.drop(name)
        copied = FaultDisk(disk.inner.copy()) if isinstance(disk, FaultDisk) else disk.copy()
        self.disks[name] = copied
        self.router.settle()

    def restart(self) -> None:
        """Kill ``b1``'s process and start another on its disk."""
        self.kill()
        self.start("b1")

    @property
    def replica(self) -> Replica:
        return self.broker("b1").core.replicas[ORDERS]

    @property
    def leader(self) -> Leader:
        leader = self.replica.leading
        assert leader is not None
        return leader

    @property
    def isr(self) -> IsrState:
        return self.leader.isr

    @property
    def hw(self) -> int:
        return self.replica.high_watermark

    @property
    def leo_now(self) -> int:
        return self.replica.opened.leo

    def state(self, **changes: Any) -> PartitionRecord:
        """The partition's record with a higher partition epoch and some changes."""
        before = self.controller.image.partition(ORDERS)
        assert before is not None
        return evolve(before, **({"partition_epoch": before.partition_epoch + 1} | changes))

    # Followers ---------------------------------------------------------------------------------

    def fetch_as(
        self,
        name: str,
        offset: int,
        *,
        epoch: int | None = None,
        last_epoch: int = NO_EPOCH,
        wait_ms: int = 0,
        log_start: int = 0,
        broker_epoch: int | None = None,
    ) -> FetchPartitionResult | None:
        """A follower's fetch; None while it waits at the leader."""
        request = self.fetch_request(
            offset,
            epoch=self.replica.leader_epoch if epoch is None else epoch,
            replica=name,
            replica_epoch=self.peers[name] if broker_epoch is None else broker_epoch,
            last_epoch=last_epoch,
            max_wait_ms=wait_ms,
            log_start=log_start,
        )
        return self.result_of(request, name)

    def consume(
        self, offset: int, *, epoch: int = NO_EPOCH, wait_ms: int = 0, client: str = "k1"
    ) -> FetchPartitionResult | None:
        """A consumer's fetch; None while it waits."""
        return self.result_of(self.fetch_request(offset, epoch=epoch, max_wait_ms=wait_ms), client)

    def result_of(self, request: FetchRequest, client: str) -> FetchPartitionResult | None:
        answer = self.ask("b1", request, client=client)
        if answer is None:
            return None
        assert isinstance(answer, FetchResponse)
        return answer.partitions[0]

    def fetched(self, client: str) -> list[FetchPartitionResult]:
        """First partition of every fetch response that a client got since the last call."""
        return [
            message.partitions[0]
            for _, message in self.router.take(client)
            if isinstance(message, FetchResponse)
        ]

    def replicate(self, *names: str, offset: int | None = None) -> None:
        """The followers fetch at the leader's end: they have everything."""
        for name in names or tuple(self.peers):
            self.fetch_as(name, self.leo_now if offset is None else offset)

    # Clients -----------------------------------------------------------------------------------

    def produce_raw(
        self,
        records: bytes,
        *,
        acks: int = -1,
        partition: TopicIdPartition = ORDERS,
        client: str = "p1",
        timeout_ms: int = 30_000,
    ) -> ErrorCode | None:
        """Send bytes as a batch; the error of the answer, None while there is none."""
        number = self.number()
        part = ProducePartition(partition, records)
        self.send("b1", ProduceRequest(number, acks, timeout_ms, (part,)), client=client)
        answer = self.acked_as(number, client)
        return None if answer is None else answer[0]

    def acked_as(self, number: int, client: str = "p1") -> tuple[ErrorCode, int] | None:
        for _, message in self.router.inbox.get(client, []):
            if isinstance(message, ProduceResponse) and message.correlation_id == number:
                return message.partitions[0].error_code, message.partitions[0].base_offset
        return None

    def list_offset(
        self, timestamp: int, *, epoch: int = NO_EPOCH, replica: str = ""
    ) -> ListOffsetsPartitionResult:
        """One ListOffsets answer; a consumer's by default."""
        part = ListOffsetsPartition(ORDERS, epoch, timestamp)
        request = ListOffsetsRequest(self.number(), replica, self._uncommitted(), (part,))
        answer = self.ask("b1", request, client=replica or "k1")
        assert isinstance(answer, ListOffsetsResponse)
        return answer.partitions[0]

    def _uncommitted(self) -> Any:
        return self.fetch_request(0).isolation_level

    # The controller ----------------------------------------------------------------------------

    @property
    def last_alter(self) -> AlterPartitionRequest:
        return self.controller.alter_requests[-1]

    def answer_alter(
        self,
        error: ErrorCode = ErrorCode.NONE,
        *,
        whole: ErrorCode = ErrorCode.NONE,
        request: AlterPartitionRequest | None = None,
        **changes: Any,
    ) -> None:
        """Answer the latest AlterPartition request by hand."""
        request = request or self.last_alter
        change = request.partitions[0]
        values: dict[str, Any] = {
            "leader": "b1",
            "leader_epoch": change.leader_epoch,
            "isr": tuple(member.broker_id for member in change.new_isr),
            "partition_epoch": change.partition_epoch + 1,
        }
        result = AlterPartitionResult(change.partition, error, **(values | changes))
        results = () if whole is not ErrorCode.NONE else (result,)
        self.deliver("c1", AlterPartitionResponse(request.correlation_id, whole, results))

    def deliver(self, src: str, message: Message) -> None:
        """A message to ``b1`` from anybody."""
        self.router.queue.append((src, "b1", message))
        self.router.settle()

    def call(self, handler: str, *args: Any, yields: Sequence[str] = ()) -> list[Any]:
        """Call a handler of ``b1`` and return its effects, none of them carried out."""
        fx = Effects(yields=yields)
        getattr(self.broker("b1"), handler)(self.router.now, *args, fx)
        return fx.drain()


def batch(*values: bytes, producer: tuple[int, int, int] = (-1, -1, -1)) -> bytes:
    return frame_of(*(values or (b"x",)), producer=producer)


__all__ = ["MEMBERS", "NO_BROKER_EPOCH", "Solo", "batch", "guards_without"]
