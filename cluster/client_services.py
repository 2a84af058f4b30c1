"""What the controller keeps for clients: producer ids, and the offsets of consumer groups.

In Kafka brokers do this: blocks of producer ids come from the controller, offsets live in a topic
of their own. Here the controller answers both itself.

Rules:

* Ids come from blocks of 1,000; a block is a record. What a crash leaves of a block is never used.
* Epochs are the producer's own: it sends its id and epoch and gets the next one, and a new id
  where the epoch would pass 2^31-1 (Kafka: 2^15-1). Nobody remembers which epoch an id has, since
  there are no transactional ids.
* A group's offset is what was committed last; there are no members or generations.

Left out: what producers and consumers do with them.
"""

from __future__ import annotations

from typing import Final

from cluster.controller_state import ControllerState
from cluster.errors import ErrorCode
from cluster.messages_control import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionError,
)
from cluster.names import NO_EPOCH, TopicIdPartition
from cluster.records import OffsetCommitRecord, ProducerIdsRecord

__all__ = ["PRODUCER_ID_BLOCK", "ProducerIds", "commit_offsets", "fetch_offsets"]

PRODUCER_ID_BLOCK: Final = 1_000
_EPOCH_MAX: Final = 2**31 - 1
_OFFSET_MAX: Final = 2**63 - 1
_GROUP_CHARS_MAX: Final = 249


class ProducerIds:
    """The block of ids under way."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._next = self._end = 0

    def init(self, request: InitProducerIdRequest) -> InitProducerIdResponse:
        """A new id at epoch 0, or the next epoch of a known one."""
        producer_id, epoch = request.producer_id, request.producer_epoch
        if producer_id != -1:
            is_known = 0 <= producer_id < self._state.image.next_producer_id
            if not is_known or not 0 <= epoch <= _EPOCH_MAX:
                return InitProducerIdResponse(
                    request.correlation_id, ErrorCode.INVALID_PRODUCER_EPOCH
                )
            if epoch < _EPOCH_MAX:
                return InitProducerIdResponse(
                    request.correlation_id, ErrorCode.NONE, producer_id, epoch + 1
                )
        return InitProducerIdResponse(request.correlation_id, ErrorCode.NONE, self._take(), 0)

    def _take(self) -> int:
        if self._next == self._end:
            self._next = self._state.image.next_producer_id
            self._end = self._next + PRODUCER_ID_BLOCK
            self._state.decide(ProducerIdsRecord(self._end))
        self._next += 1
        return self._next - 1


def commit_offsets(state: ControllerState, request: OffsetCommitRequest) -> OffsetCommitResponse:
    """Keep a group's offsets; one partition's refusal does not touch the others."""
    results = []
    for each in request.partitions:
        partition, error = _find(state, request.group, each.partition)
        if partition is not None:
            error = _commit(state, request.group, partition, each)
        results.append(PartitionError(each.partition, error))
    return OffsetCommitResponse(request.correlation_id, tuple(results))


def _commit(
    state: ControllerState, group: str, partition: TopicIdPartition, wanted: OffsetCommitPartition
) -> ErrorCode:
    offset, epoch = wanted.offset, wanted.leader_epoch
    if not 0 <= offset <= _OFFSET_MAX or not NO_EPOCH <= epoch <= _EPOCH_MAX:
        return ErrorCode.INVALID_REQUEST
    record = OffsetCommitRecord(group, partition, offset, epoch)
    if state.image.committed_offset(group, partition) != record:
        state.decide(record)
    return ErrorCode.NONE


def fetch_offsets(state: ControllerState, request: OffsetFetchRequest) -> OffsetFetchResponse:
    """Where a group is, -1 where it never committed."""
    results = []
    for asked in request.partitions:
        partition, error = _find(state, request.group, asked)
        if partition is None:
            results.append(OffsetFetchPartitionResult(asked, error))
            continue
        found = state.image.committed_offset(request.group, partition)
        if found is None:
            results.append(OffsetFetchPartitionResult(asked, ErrorCode.NONE))
        else:
            results.append(
                OffsetFetchPartitionResult(asked, ErrorCode.NONE, found.offset, found.leader_epoch)
            )
    return OffsetFetchResponse(request.correlation_id, tuple(results))


def _find(
    state: ControllerState, group: str, partition: TopicIdPartition
) -> tuple[TopicIdPartition | None, ErrorCode]:
    if not 0 < len(group) <= _GROUP_CHARS_MAX or not group.isprintable():
        return None, ErrorCode.INVALID_REQUEST
    record, error = state.find(partition)
    return None if record is None else record.partition, error
