"""Messages that brokers answer: produce, fetch, offsets by epoch and time, deletion, metadata.

Frames travel as the bytes that a log stores (MKB1). A fetch response names where they lie until it
is transmitted: what is read then is what the receiver gets, as with ``sendfile`` (hazard B-20).
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from attrs import frozen

from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, NO_OFFSET, TopicIdPartition

__all__ = [
    "BrokerMetadata",
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "EpochEndOffset",
    "FetchPartition",
    "FetchPartitionResult",
    "FetchRequest",
    "FetchResponse",
    "IsolationLevel",
    "ListOffsetsPartition",
    "ListOffsetsPartitionResult",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "MetadataRequest",
    "MetadataResponse",
    "OffsetsForLeaderEpochPartition",
    "OffsetsForLeaderEpochPartitionResult",
    "OffsetsForLeaderEpochRequest",
    "OffsetsForLeaderEpochResponse",
    "PartitionMetadata",
    "ProducePartition",
    "ProducePartitionResult",
    "ProduceRequest",
    "ProduceResponse",
    "RangeRef",
    "TopicMetadata",
]

CONSUMER = ""
"""The ``replica_id`` of a fetch that no broker sent."""


class IsolationLevel(Enum):
    """Up to where a consumer reads."""

    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1


# Produce ---------------------------------------------------------------------------------------


class ProducePartition(NamedTuple):
    """``records`` is one whole frame at offset 0 and epoch 0; the leader stamps both anew."""

    partition: TopicIdPartition
    records: bytes


@frozen
class ProduceRequest(Message):
    """Append one batch a partition.

    Attributes:
        acks: 0 no answer, 1 after the leader's append, -1 once the high watermark covers it.
        timeout_ms: how long an acks -1 request may wait for that.
    """

    acks: int
    timeout_ms: int
    partitions: tuple[ProducePartition, ...]


class ProducePartitionResult(NamedTuple):
    """``base_offset`` is -1 on an error; ``log_start_offset`` -1 where it is not known."""

    partition: TopicIdPartition
    error_code: ErrorCode
    base_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET


@frozen
class ProduceResponse(Message):
    partitions: tuple[ProducePartitionResult, ...]


# Fetch -----------------------------------------------------------------------------------------


class FetchPartition(NamedTuple):
    """What is asked of one partition.

    Attributes:
        current_leader_epoch: the epoch that the asker knows, -1 to skip the check.
        last_fetched_epoch: of the last batch in a follower's log, -1 for a consumer.
        log_start_offset: the follower's own, -1 for a consumer.
    """

    partition: TopicIdPartition
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int = NO_EPOCH
    log_start_offset: int = NO_OFFSET
    partition_max_bytes: int = 1 << 20


@frozen
class FetchRequest(Message):
    """Read from a leader.

    Attributes:
        replica_id: the follower's name, empty for a consumer.
        replica_epoch: the follower's broker epoch (KIP-903), -1 to skip the check.
        max_wait_ms, min_bytes: the answer waits so long for so much.
        max_bytes: of all partitions; the first batch comes even if larger.
    """

    replica_id: str
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation_level: IsolationLevel
    partitions: tuple[FetchPartition, ...]


class EpochEndOffset(NamedTuple):
    """An epoch and the offset where it ends in a log; both -1 where that is undefined."""

    leader_epoch: int
    end_offset: int


class RangeRef(NamedTuple):
    """Where frames lie in the leader's log; ``creation`` tells a segment from a later namesake."""

    partition: TopicIdPartition
    segment_base: int
    creation: int
    position: int
    size_bytes: int


class FetchPartitionResult(NamedTuple):
    """What one partition answers.

    Attributes:
        diverging_epoch: set where the follower's log differs; there are no records then.
        records: whole frames; empty while ``range_ref`` says where they are.
        range_ref: None once the response was transmitted, and where there is nothing.
    """

    partition: TopicIdPartition
    error_code: ErrorCode
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    diverging_epoch: EpochEndOffset | None = None
    records: bytes = b""
    range_ref: RangeRef | None = None


@frozen
class FetchResponse(Message):
    partitions: tuple[FetchPartitionResult, ...]


# Offsets ---------------------------------------------------------------------------------------


class OffsetsForLeaderEpochPartition(NamedTuple):
    """Where does ``leader_epoch`` end? ``current_leader_epoch`` as in a fetch."""

    partition: TopicIdPartition
    current_leader_epoch: int
    leader_epoch: int


@frozen
class OffsetsForLeaderEpochRequest(Message):
    replica_id: str
    partitions: tuple[OffsetsForLeaderEpochPartition, ...]


class OffsetsForLeaderEpochPartitionResult(NamedTuple):
    """The greatest epoch at or below the one asked, and its end; both -1 where undefined."""

    partition: TopicIdPartition
    error_code: ErrorCode
    leader_epoch: int = NO_EPOCH
    end_offset: int = NO_OFFSET


@frozen
class OffsetsForLeaderEpochResponse(Message):
    partitions: tuple[OffsetsForLeaderEpochPartitionResult, ...]


class ListOffsetsPartition(NamedTuple):
    """``timestamp`` in ms, or -1 for the latest offset and -2 for the earliest."""

    partition: TopicIdPartition
    current_leader_epoch: int
    timestamp: int


@frozen
class ListOffsetsRequest(Message):
    replica_id: str
    isolation_level: IsolationLevel
    partitions: tuple[ListOffsetsPartition, ...]


class ListOffsetsPartitionResult(NamedTuple):
    """Offset and timestamp are -1 where no record is late enough."""

    partition: TopicIdPartition
    error_code: ErrorCode
    timestamp: int = -1
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH


@frozen
class ListOffsetsResponse(Message):
    partitions: tuple[ListOffsetsPartitionResult, ...]


# Deletion --------------------------------------------------------------------------------------


class DeleteRecordsPartition(NamedTuple):
    """Delete what is below ``offset``; -1 stands for the high watermark."""

    partition: TopicIdPartition
    offset: int


@frozen
class DeleteRecordsRequest(Message):
    timeout_ms: int
    partitions: tuple[DeleteRecordsPartition, ...]


class DeleteRecordsPartitionResult(NamedTuple):
    """``low_watermark``: the lowest log start of the replicas that live."""

    partition: TopicIdPartition
    error_code: ErrorCode
    low_watermark: int = NO_OFFSET


@frozen
class DeleteRecordsResponse(Message):
    partitions: tuple[DeleteRecordsPartitionResult, ...]


# Metadata --------------------------------------------------------------------------------------


@frozen
class MetadataRequest(Message):
    """What a broker knows; ``topics`` None asks for all."""

    topics: tuple[str, ...] | None


class BrokerMetadata(NamedTuple):
    """A broker that is not fenced."""

    broker_id: str
    broker_epoch: int = NO_BROKER_EPOCH


class PartitionMetadata(NamedTuple):
    """``leader`` is None while there is none; the lists are as in ``PartitionRecord``."""

    partition: TopicIdPartition
    error_code: ErrorCode
    leader: str | None
    leader_epoch: int
    replicas: tuple[str, ...]
    isr: tuple[str, ...]
    elr: tuple[str, ...]
    offline_replicas: tuple[str, ...]


class TopicMetadata(NamedTuple):
    """``topic_id`` is empty where there is no such topic."""

    error_code: ErrorCode
    topic: str
    topic_id: str
    partitions: tuple[PartitionMetadata, ...]


@frozen
class MetadataResponse(Message):
    """``metadata_offset``: up to where the answering broker has applied the metadata log."""

    metadata_offset: int
    controller: str
    brokers: tuple[BrokerMetadata, ...]
    topics: tuple[TopicMetadata, ...]
