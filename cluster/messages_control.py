"""Messages that the controller answers: brokers' life, ISR changes, metadata, topics, groups."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from attrs import frozen

from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, NO_OFFSET, TopicIdPartition
from cluster.records import LeaderRecoveryState

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResponse",
    "AlterPartition",
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "AlterPartitionRequest",
    "AlterPartitionResponse",
    "AlterPartitionResult",
    "BrokerHeartbeatRequest",
    "BrokerHeartbeatResponse",
    "BrokerRegistrationRequest",
    "BrokerRegistrationResponse",
    "BrokerState",
    "ConfigChange",
    "CreateTopicsRequest",
    "CreateTopicsResponse",
    "CreateTopicsTopic",
    "DeleteTopicsRequest",
    "DeleteTopicsResponse",
    "ElectLeadersRequest",
    "ElectLeadersResponse",
    "ElectionType",
    "InitProducerIdRequest",
    "InitProducerIdResponse",
    "MetadataFetchRequest",
    "MetadataFetchResponse",
    "OffsetCommitPartition",
    "OffsetCommitRequest",
    "OffsetCommitResponse",
    "OffsetFetchPartitionResult",
    "OffsetFetchRequest",
    "OffsetFetchResponse",
    "PartitionError",
    "Reassignment",
    "TopicError",
]


class PartitionError(NamedTuple):
    partition: TopicIdPartition
    error_code: ErrorCode


class TopicError(NamedTuple):
    """``topic_id`` is empty where there is none."""

    topic: str
    error_code: ErrorCode
    topic_id: str = ""


# Brokers ---------------------------------------------------------------------------------------


@frozen
class BrokerRegistrationRequest(Message):
    """A broker that has started asks to take part.

    Attributes:
        incarnation_id: of this start; another one for the next.
        previous_broker_epoch: from the clean-shutdown marker, -1 where there was none.
        damaged_partitions: logs that refused to open.
    """

    broker_id: str
    incarnation_id: str
    previous_broker_epoch: int
    damaged_partitions: tuple[TopicIdPartition, ...] = ()


@frozen
class BrokerRegistrationResponse(Message):
    error_code: ErrorCode
    broker_epoch: int = NO_BROKER_EPOCH


@frozen
class BrokerHeartbeatRequest(Message):
    """A sign of life.

    Attributes:
        current_metadata_offset: the end of what the broker has applied.
        want_fence: it asks to stay fenced.
        want_shut_down: it asks to leave.
        damaged_partitions: all that are in quarantine now.
    """

    broker_id: str
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    damaged_partitions: tuple[TopicIdPartition, ...] = ()


@frozen
class BrokerHeartbeatResponse(Message):
    error_code: ErrorCode
    is_caught_up: bool = False
    is_fenced: bool = True
    should_shut_down: bool = False


# ISR changes -----------------------------------------------------------------------------------


class BrokerState(NamedTuple):
    """A proposed member, and the broker epoch with which it last fetched (KIP-903)."""

    broker_id: str
    broker_epoch: int = NO_BROKER_EPOCH


class AlterPartition(NamedTuple):
    """A leader proposes another ISR."""

    partition: TopicIdPartition
    leader_epoch: int
    partition_epoch: int
    new_isr: tuple[BrokerState, ...]
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED


@frozen
class AlterPartitionRequest(Message):
    broker_id: str
    broker_epoch: int
    partitions: tuple[AlterPartition, ...]


class AlterPartitionResult(NamedTuple):
    """The state after the change; meaningful without an error only."""

    partition: TopicIdPartition
    error_code: ErrorCode
    leader: str | None = None
    leader_epoch: int = NO_EPOCH
    isr: tuple[str, ...] = ()
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    partition_epoch: int = NO_EPOCH


@frozen
class AlterPartitionResponse(Message):
    """``error_code`` is about the sender (its broker epoch); then there are no results."""

    error_code: ErrorCode
    partitions: tuple[AlterPartitionResult, ...] = ()


# The metadata log ------------------------------------------------------------------------------


@frozen
class MetadataFetchRequest(Message):
    """A broker pulls; the controller keeps it until there is something behind ``fetch_offset``."""

    broker_id: str
    fetch_offset: int


@frozen
class MetadataFetchResponse(Message):
    """Committed records from ``base_offset`` on, each encoded by ``METADATA_RECORDS``.

    Attributes:
        is_snapshot: the records build the whole image at ``end_offset``, and ``base_offset`` is 0.
        end_offset: behind the last record.
    """

    base_offset: int
    end_offset: int
    is_snapshot: bool
    records: tuple[bytes, ...]


# Topics ----------------------------------------------------------------------------------------


class CreateTopicsTopic(NamedTuple):
    """Either ``assignments`` (replicas of each partition) or the two numbers.

    ``configs`` are names and values as Kafka spells them.
    """

    topic: str
    num_partitions: int = 1
    replication_factor: int = 3
    assignments: tuple[tuple[str, ...], ...] = ()
    configs: tuple[tuple[str, ...], ...] = ()


@frozen
class CreateTopicsRequest(Message):
    topics: tuple[CreateTopicsTopic, ...]


@frozen
class CreateTopicsResponse(Message):
    topics: tuple[TopicError, ...]


@frozen
class DeleteTopicsRequest(Message):
    topics: tuple[str, ...]


@frozen
class DeleteTopicsResponse(Message):
    topics: tuple[TopicError, ...]


class ConfigChange(NamedTuple):
    """``value`` None goes back to the default; ``resource`` as in ``ConfigRecord``."""

    is_topic: bool
    resource: str
    name: str
    value: str | None


@frozen
class AlterConfigsRequest(Message):
    changes: tuple[ConfigChange, ...]


@frozen
class AlterConfigsResponse(Message):
    """All changes are made, or none; ``error_message`` names the one that cannot be."""

    error_code: ErrorCode
    error_message: str = ""


class ElectionType(Enum):
    """What an operator asks for."""

    PREFERRED = 0
    UNCLEAN = 1


@frozen
class ElectLeadersRequest(Message):
    """``to`` names the wanted leader of a forced unclean election, None otherwise."""

    election_type: ElectionType
    partitions: tuple[TopicIdPartition, ...]
    to: str | None = None


@frozen
class ElectLeadersResponse(Message):
    partitions: tuple[PartitionError, ...]


class Reassignment(NamedTuple):
    """``replicas`` None cancels the one under way."""

    partition: TopicIdPartition
    replicas: tuple[str, ...] | None


@frozen
class AlterPartitionReassignmentsRequest(Message):
    partitions: tuple[Reassignment, ...]


@frozen
class AlterPartitionReassignmentsResponse(Message):
    partitions: tuple[PartitionError, ...]


# Producers and groups --------------------------------------------------------------------------


@frozen
class InitProducerIdRequest(Message):
    """Ask for a producer id, or for the next epoch of one that is known (-1: for a new one)."""

    producer_id: int = -1
    producer_epoch: int = -1


@frozen
class InitProducerIdResponse(Message):
    error_code: ErrorCode
    producer_id: int = -1
    producer_epoch: int = -1


class OffsetCommitPartition(NamedTuple):
    """As ``OffsetCommitRecord`` has it."""

    partition: TopicIdPartition
    offset: int
    leader_epoch: int = NO_EPOCH


@frozen
class OffsetCommitRequest(Message):
    group: str
    partitions: tuple[OffsetCommitPartition, ...]


@frozen
class OffsetCommitResponse(Message):
    partitions: tuple[PartitionError, ...]


@frozen
class OffsetFetchRequest(Message):
    group: str
    partitions: tuple[TopicIdPartition, ...]


class OffsetFetchPartitionResult(NamedTuple):
    """``offset`` is -1 where the group never committed."""

    partition: TopicIdPartition
    error_code: ErrorCode
    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH


@frozen
class OffsetFetchResponse(Message):
    partitions: tuple[OffsetFetchPartitionResult, ...]
