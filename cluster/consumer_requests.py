"""The requests of a consumer, each for all partitions that one node is to be asked about.

Pure: partitions and configuration in, a message out.
"""

from __future__ import annotations

from collections.abc import Sequence

from cluster.client_metadata import LeaderAndEpoch
from cluster.config import ConsumerConfig
from cluster.messages_control import OffsetFetchRequest
from cluster.messages_data import (
    CONSUMER,
    FetchPartition,
    FetchRequest,
    IsolationLevel,
    ListOffsetsPartition,
    ListOffsetsRequest,
    OffsetsForLeaderEpochPartition,
    OffsetsForLeaderEpochRequest,
)
from cluster.names import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_BROKER_EPOCH
from cluster.positions import AssignedPartition, Phase

__all__ = ["ConsumerRequest", "Due", "build"]

ConsumerRequest = (
    FetchRequest | ListOffsetsRequest | OffsetsForLeaderEpochRequest | OffsetFetchRequest
)
Due = Sequence[tuple[AssignedPartition, LeaderAndEpoch]]
"""Partitions, and where they are."""


def build(correlation_id: int, phase: Phase, due: Due, config: ConsumerConfig) -> ConsumerRequest:
    """What partitions in ``phase`` (any but FAILED) ask for."""
    match phase:
        case Phase.COMMITTED:
            assert config.group is not None
            places = tuple(place.partition for _, place in due)
            return OffsetFetchRequest(correlation_id, config.group, places)
        case Phase.VALIDATE:
            return _epochs(correlation_id, due)
        case Phase.RESET:
            return _offsets(correlation_id, due, config)
        case _:
            assert phase is Phase.FETCH, phase
            return _fetch(correlation_id, due, config)


def _epochs(correlation_id: int, due: Due) -> OffsetsForLeaderEpochRequest:
    partitions = tuple(
        OffsetsForLeaderEpochPartition(
            place.partition, place.leader_epoch, found.position.leader_epoch
        )
        for found, place in due
    )
    return OffsetsForLeaderEpochRequest(correlation_id, CONSUMER, partitions)


def _offsets(correlation_id: int, due: Due, config: ConsumerConfig) -> ListOffsetsRequest:
    is_earliest = config.auto_offset_reset == "earliest"
    timestamp = EARLIEST_TIMESTAMP if is_earliest else LATEST_TIMESTAMP
    partitions = tuple(
        ListOffsetsPartition(place.partition, place.leader_epoch, timestamp) for _, place in due
    )
    isolation = IsolationLevel.READ_UNCOMMITTED
    return ListOffsetsRequest(correlation_id, CONSUMER, isolation, partitions)


def _fetch(correlation_id: int, due: Due, config: ConsumerConfig) -> FetchRequest:
    partitions = tuple(
        FetchPartition(
            place.partition,
            place.leader_epoch,
            found.fetched.offset,
            partition_max_bytes=config.max_partition_fetch_bytes,
        )
        for found, place in due
    )
    return FetchRequest(
        correlation_id,
        CONSUMER,
        NO_BROKER_EPOCH,
        config.fetch_max_wait_ms,
        config.fetch_min_bytes,
        config.fetch_max_bytes,
        IsolationLevel.READ_UNCOMMITTED,
        partitions,
    )
