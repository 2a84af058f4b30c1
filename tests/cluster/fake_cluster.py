"""Brokers and a controller for tests of clients: real logs on disks in memory, no replication.

Each partition has one log. A new leader begins with a cut of it, which stands for what a replica
had; the old leader keeps nothing. What a leader knows of a producer is read from the log itself, as
slowly and plainly as can be: a twin of the producer state that logs have.
"""

from __future__ import annotations

from pathlib import Path

from cluster.errors import ErrorCode
from cluster.fetching import check_epoch
from cluster.message import Message
from cluster.messages_control import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionError,
)
from cluster.messages_data import (
    BrokerMetadata,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochPartition,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    PartitionMetadata,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    TopicMetadata,
)
from cluster.names import EARLIEST_TIMESTAMP, TopicIdPartition
from storage import PartitionLog, RecordBatch, decode_batch
from storage.memdisk import MemDisk

BROKERS = ("b1", "b2", "b3")
CONTROLLER = "c1"
INT32_MAX = 2**31 - 1
TOPIC = "t"
TOPIC_ID = "A" * 22

NONE = ErrorCode.NONE
AFTER_APPEND = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors with which ``FakeCluster.produce`` answers what it did append."""


class FakePartition:
    """A partition and its leader.

    Attributes:
        high_watermark: never cut below, unless a test wants an unclean election.
    """

    def __init__(self, name: TopicIdPartition, leader: str | None = "b1") -> None:
        self.name = name
        self.leader = leader
        self.leader_epoch = 0
        self.high_watermark = 0
        self.log = PartitionLog.open(Path("/log"), disk=MemDisk())

    def elect(self, leader: str | None, *, end: int | None = None) -> None:
        """A new epoch; the new leader has only what lies below ``end``, a batch boundary."""
        self.leader = leader
        self.leader_epoch += 1
        if end is not None:
            self.log.truncate_to(end)
            self.high_watermark = min(self.high_watermark, end)
        if leader is not None:
            self.log.become_leader(self.leader_epoch)

    def revive(self, batches: list[RecordBatch], leader: str) -> None:
        """A replica that was away leads, in a new epoch, with what it had then."""
        assert batches
        self.log = PartitionLog.open(Path("/log"), disk=MemDisk())
        if batches[0].base_offset:
            self.log.truncate_fully_and_start_at(batches[0].base_offset)
        for batch in batches:
            self.log.append_replica_batch(batch)
        self.high_watermark = self.log.leo
        self.elect(leader)

    def append(self, *batches: RecordBatch, commit: bool = True) -> None:
        for batch in batches:
            self.log.append(batch)
        if commit:
            self.high_watermark = self.log.leo

    def values(self) -> list[bytes | None]:
        """Of all records in the log."""
        return [record.value for batch in self.log.all_batches() for record in batch.records]

    def boundaries(self) -> list[int]:
        """Offsets at which the log can be cut."""
        start = self.log.log_start_offset
        batches = list(self.log.all_batches())
        is_inside = bool(batches) and batches[0].base_offset != start
        return [start] * (not is_inside) + [batch.next_offset for batch in batches]


def judge(log: PartitionLog, batch: RecordBatch) -> tuple[ErrorCode, int]:
    """What a log says to a batch: a code, and where a duplicate of it stands, -1 without one.

    PROTOCOL A18, over the whole log.
    """
    kept = [each for each in log.all_batches() if each.producer_id == batch.producer_id]
    if batch.producer_id < 0 or not kept:
        return NONE, -1
    epoch = kept[-1].producer_epoch
    if batch.producer_epoch < epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH, -1
    if batch.producer_epoch > epoch:
        is_first = batch.base_sequence == 0
        return (NONE if is_first else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), -1
    for each in [each for each in kept if each.producer_epoch == epoch][-5:]:
        if (each.base_sequence, each.last_sequence) == (batch.base_sequence, batch.last_sequence):
            assert each.base_offset is not None
            return NONE, each.base_offset
    if batch.base_sequence != (kept[-1].last_sequence + 1) & INT32_MAX:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
    return NONE, -1


class FakeCluster:
    """Answers every request of a client.

    Attributes:
        metadata_offset: rises with every election.
        committed: offset and epoch by group and partition.
    """

    def __init__(self, partitions: int = 1, *, topic_id: str = TOPIC_ID) -> None:
        names = [TopicIdPartition(topic_id, TOPIC, number) for number in range(partitions)]
        self.topic_id = topic_id
        self.partitions = {name: FakePartition(name) for name in names}
        self.metadata_offset = 10
        self.next_producer_id = 7
        self.committed: dict[tuple[str, TopicIdPartition], tuple[int, int]] = {}

    def __getitem__(self, number: int) -> FakePartition:
        return self.partitions[self.name(number)]

    def name(self, number: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, TOPIC, number)

    def elect(self, number: int, leader: str | None, *, end: int | None = None) -> None:
        self[number].elect(leader, end=end)
        self.metadata_offset += 1

    # Answers -----------------------------------------------------------------------------------

    def answer(self, to: str, request: Message) -> Message:
        """What the node ``to`` answers while nothing goes wrong."""
        match request:
            case MetadataRequest():
                return self.metadata(request.correlation_id)
            case ProduceRequest():
                return self.produce(to, request)
            case FetchRequest(correlation_id=number):
                return FetchResponse(number, tuple(self.fetch(to, p) for p in request.partitions))
            case ListOffsetsRequest(correlation_id=number):
                listed = tuple(self.list_offsets(to, p) for p in request.partitions)
                return ListOffsetsResponse(number, listed)
            case OffsetsForLeaderEpochRequest(correlation_id=number):
                ends = tuple(self.epoch_end(to, p) for p in request.partitions)
                return OffsetsForLeaderEpochResponse(number, ends)
            case InitProducerIdRequest(correlation_id=number):
                self.next_producer_id += 1
                return InitProducerIdResponse(number, NONE, self.next_producer_id - 1, 0)
            case OffsetFetchRequest(correlation_id=number):
                found = tuple(self.offset_fetch(request.group, p) for p in request.partitions)
                return OffsetFetchResponse(number, found)
            case OffsetCommitRequest(correlation_id=number):
                for each in request.partitions:
                    place = (request.group, each.partition)
                    self.committed[place] = (each.offset, each.leader_epoch)
                errors = tuple(PartitionError(p.partition, NONE) for p in request.partitions)
                return OffsetCommitResponse(number, errors)
        raise AssertionError(request)

    def metadata(self, correlation_id: int) -> MetadataResponse:
        partitions = tuple(
            PartitionMetadata(
                each.name, NONE, each.leader, each.leader_epoch, BROKERS, BROKERS, (), ()
            )
            for each in self.partitions.values()
        )
        topic = TopicMetadata(NONE, TOPIC, self.topic_id, partitions)
        brokers = tuple(BrokerMetadata(name) for name in BROKERS)
        return MetadataResponse(correlation_id, self.metadata_offset, CONTROLLER, brokers, (topic,))

    def produce(self, to: str, request: ProduceRequest, error: ErrorCode = NONE) -> ProduceResponse:
        """With an error of ``AFTER_APPEND`` the batch is in the log, and not committed."""
        results = tuple(self._produce(to, each, error) for each in request.partitions)
        return ProduceResponse(request.correlation_id, results)

    def _produce(
        self, to: str, asked: ProducePartition, error: ErrorCode
    ) -> ProducePartitionResult:
        found = self.partitions.get(asked.partition)
        if found is None:
            return ProducePartitionResult(asked.partition, ErrorCode.UNKNOWN_TOPIC_ID)
        if found.leader != to:
            return ProducePartitionResult(asked.partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if error is not NONE and error not in AFTER_APPEND:
            return ProducePartitionResult(asked.partition, error)
        batch = decode_batch(asked.records)
        assert (batch.base_offset, batch.leader_epoch) == (0, 0)
        refusal, offset = judge(found.log, batch)
        if refusal is not NONE:
            return ProducePartitionResult(asked.partition, refusal)
        if offset < 0:
            offset = found.log.append(batch).base_offset
        if error is not NONE:
            return ProducePartitionResult(asked.partition, error)
        found.high_watermark = found.log.leo
        return ProducePartitionResult(asked.partition, NONE, offset)

    def _find(self, to: str, name: TopicIdPartition, epoch: int) -> FakePartition | ErrorCode:
        found = self.partitions.get(name)
        if found is None:
            return ErrorCode.UNKNOWN_TOPIC_ID
        if found.leader != to and epoch > found.leader_epoch - 1:
            # A broker that does not lead knows of the epoch before, at least.
            return check_epoch(found.leader_epoch, epoch, is_leader=False)
        error = check_epoch(found.leader_epoch, epoch, is_leader=found.leader == to)
        return found if error is NONE else error

    def fetch(self, to: str, asked: FetchPartition) -> FetchPartitionResult:
        found = self._find(to, asked.partition, asked.current_leader_epoch)
        if isinstance(found, ErrorCode):
            return FetchPartitionResult(asked.partition, found)
        log, end = found.log, found.high_watermark
        if not log.log_start_offset <= asked.fetch_offset <= log.leo:
            return FetchPartitionResult(asked.partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        records = b""
        if asked.fetch_offset < end:
            records = log.read_range(asked.fetch_offset, asked.partition_max_bytes, end)
        start = log.log_start_offset
        return FetchPartitionResult(asked.partition, NONE, end, end, start, records=records)

    def list_offsets(self, to: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResult:
        found = self._find(to, asked.partition, asked.current_leader_epoch)
        if isinstance(found, ErrorCode):
            return ListOffsetsPartitionResult(asked.partition, found)
        is_earliest = asked.timestamp == EARLIEST_TIMESTAMP
        offset = found.log.log_start_offset if is_earliest else found.high_watermark
        return ListOffsetsPartitionResult(
            asked.partition, NONE, offset=offset, leader_epoch=found.leader_epoch
        )

    def epoch_end(
        self, to: str, asked: OffsetsForLeaderEpochPartition
    ) -> OffsetsForLeaderEpochPartitionResult:
        found = self._find(to, asked.partition, asked.current_leader_epoch)
        if isinstance(found, ErrorCode):
            return OffsetsForLeaderEpochPartitionResult(asked.partition, found)
        epoch, end = found.log.epochs.end_offset_for(asked.leader_epoch, found.log.leo)
        return OffsetsForLeaderEpochPartitionResult(asked.partition, NONE, epoch, end)

    def offset_fetch(self, group: str, name: TopicIdPartition) -> OffsetFetchPartitionResult:
        offset, epoch = self.committed.get((group, name), (-1, -1))
        return OffsetFetchPartitionResult(name, NONE, offset, epoch)
