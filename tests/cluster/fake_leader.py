"""One real follower, ``b1``, and a leader ``b9`` that says what a test wants.

Requests of the follower are read with ``asked``, answers given with ``answer`` and its short forms.
"""

from __future__ import annotations

from typing import TypeVar

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.fetch_state import PartitionFetch
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import (
    EpochEndOffset,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Replica
from cluster.truncation import TruncationMode
from storage.batch import Record, RecordBatch
from storage.mkb1 import MKB1
from storage.partition_log import PartitionLog
from tests.cluster.scripted import ORDERS, TOPIC_ID, Cluster

LEADER, OTHER, FOLLOWER = "b9", "b8", "b1"
M = TypeVar("M", bound=Message)


def frame(base: int, count: int = 1, epoch: int = 0, *, value: bytes = b"v") -> bytes:
    """One batch as a leader's log has it: ``count`` records from ``base`` on."""
    batch = RecordBatch.unassigned([Record(None, value, 1_000)] * count)
    return MKB1.encode(batch, base, epoch, 1 << 24)[0]


def frames(first: int, end: int, epoch: int = 0) -> bytes:
    """Batches of one record each, from ``first`` up to ``end``."""
    return b"".join(frame(offset, 1, epoch) for offset in range(first, end))


def numbered(number: int) -> TopicIdPartition:
    return TopicIdPartition(TOPIC_ID, "orders", number)


class FakeLeader(Cluster):
    """``b1`` follows ``b9`` in ``partitions`` partitions of ``orders``."""

    def __init__(
        self,
        *,
        partitions: int = 1,
        mode: TruncationMode = TruncationMode.FETCH,
        config: BrokerConfig | None = None,
        guards: Guards | None = None,
        topic: dict[str, str] | None = None,
        runs: tuple[tuple[int, int], ...] = (),
        high_watermark: int = 0,
    ) -> None:
        """``runs`` are (epoch, end offset) of what the follower has; it is in the newest epoch."""
        config = config or BrokerConfig(truncation=mode)
        super().__init__(1, config=config, guards=guards, topic=topic)
        self.epoch = 0
        self._partition_epoch = 0
        newest = runs[-1][0] if runs else 0
        self.follow(newest, *(numbered(number) for number in range(partitions)))
        if runs and self.asked(OffsetsForLeaderEpochRequest) is not None:
            self.answer_epoch(-1, -1)
        at = 0
        for epoch, end in runs:
            self.answer_fetch(frames(at, end, epoch), high_watermark=high_watermark)
            at = end

    def follow(
        self, epoch: int, *partitions: TopicIdPartition, leader: str | None = LEADER
    ) -> None:
        """Name a leader and an epoch, for ``orders-0`` if nothing else is said."""
        self.epoch = epoch
        self._partition_epoch += 1
        self.decide(
            *(
                PartitionRecord(
                    partition,
                    (LEADER, OTHER, FOLLOWER),
                    (LEADER, OTHER, FOLLOWER),
                    leader,
                    epoch,
                    self._partition_epoch,
                )
                for partition in partitions or (ORDERS,)
            )
        )

    # Requests and answers ----------------------------------------------------------------------

    def asked(self, kind: type[M], leader: str = LEADER) -> M | None:
        """The newest request of the follower, if it is of a kind; None otherwise."""
        requests = [message for src, message in self.router.inbox.get(leader, []) if src == "b1"]
        last = requests[-1] if requests else None
        return last if isinstance(last, kind) else None

    def fetch(self, leader: str = LEADER) -> FetchRequest:
        """The fetch under way."""
        request = self.asked(FetchRequest, leader)
        assert request is not None, self.router.inbox.get(leader, [])[-1:]
        return request

    def requests(self, leader: str = LEADER) -> int:
        return len(self.router.inbox.get(leader, []))

    def answer(self, message: Message, leader: str = LEADER) -> None:
        self.router.queue.append((leader, "b1", message))
        self.router.settle()

    def result(
        self,
        records: bytes = b"",
        *,
        error: ErrorCode = ErrorCode.NONE,
        high_watermark: int = 0,
        log_start: int = 0,
        diverging: tuple[int, int] | None = None,
        partition: TopicIdPartition = ORDERS,
    ) -> FetchPartitionResult:
        return FetchPartitionResult(
            partition,
            error,
            high_watermark,
            high_watermark,
            log_start,
            None if diverging is None else EpochEndOffset(*diverging),
            records,
        )

    def answer_fetch(
        self,
        records: bytes = b"",
        *,
        error: ErrorCode = ErrorCode.NONE,
        high_watermark: int = 0,
        log_start: int = 0,
        diverging: tuple[int, int] | None = None,
    ) -> None:
        """Answer the fetch under way."""
        result = self.result(
            records,
            error=error,
            high_watermark=high_watermark,
            log_start=log_start,
            diverging=diverging,
        )
        self.answer(FetchResponse(self.fetch().correlation_id, (result,)))

    def answer_epoch(self, epoch: int, end: int, error: ErrorCode = ErrorCode.NONE) -> None:
        """Answer the truncation question under way."""
        request = self.asked(OffsetsForLeaderEpochRequest)
        assert request is not None
        results = tuple(
            OffsetsForLeaderEpochPartitionResult(part.partition, error, epoch, end)
            for part in request.partitions
        )
        self.answer(OffsetsForLeaderEpochResponse(request.correlation_id, results))

    def answer_offset(self, offset: int, error: ErrorCode = ErrorCode.NONE) -> int:
        """Answer the question for an offset; returns which it was (-1 latest, -2 earliest)."""
        request = self.asked(ListOffsetsRequest)
        assert request is not None
        result = ListOffsetsPartitionResult(ORDERS, error, -1, offset, self.epoch)
        self.answer(ListOffsetsResponse(request.correlation_id, (result,)))
        return request.partitions[0].timestamp

    # Looking -----------------------------------------------------------------------------------

    def replica_of(self, number: int = 0) -> Replica:
        return self.broker("b1").core.replicas[numbered(number)]

    def log_of(self, number: int = 0) -> PartitionLog:
        return self.replica_of(number).opened

    def state(self, number: int = 0) -> str:
        """``fetching``, ``truncating``, ``failed``..., empty where nothing is copied."""
        return str(self.broker("b1").fields().get(f"orders-{number}/fetch_state", ""))

    def copy_of(self, number: int = 0) -> PartitionFetch:
        found = self.broker("b1")._fetchers.fetch_of(numbered(number))
        assert found is not None
        return found

    def leo_and_hw(self, number: int = 0) -> tuple[int, int]:
        return self.log_of(number).leo, self.replica_of(number).high_watermark
