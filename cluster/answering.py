"""What else a broker answers: offsets by time and epoch, deletion, metadata (PROTOCOL A6, A8, A22).

Left out: produce and fetch (``cluster.serving``).
"""

from __future__ import annotations

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.leading import Leading
from cluster.messages_data import (
    CONSUMER,
    BrokerMetadata,
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    PartitionMetadata,
    TopicMetadata,
)
from cluster.names import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_EPOCH, NO_OFFSET, Now
from cluster.parked import DeleteWaiter, ParkedDelete
from cluster.records import PartitionRecord
from cluster.replica import Replica
from cluster.serving import Serving
from storage.batch import OFFSET_END
from storage.errors import DiskError, LogOffline, StorageError

__all__ = ["Answering"]

HIGH_WATERMARK = -1
"""In DeleteRecords: everything that is committed."""


class Answering:
    """Requests that one read or one change of the log start answers."""

    def __init__(self, core: BrokerCore, leading: Leading, serving: Serving) -> None:
        self._core = core
        self._leading = leading
        self._serving = serving
        self._deletes = core.parked_deletes

    # Offsets by epoch --------------------------------------------------------------------------

    def offsets_for_epochs(
        self, src: str, request: OffsetsForLeaderEpochRequest, fx: Effects
    ) -> None:
        """Where an epoch ends in the leader's log."""
        results = []
        for asked in request.partitions:
            error = self._serving.leader_error(asked.partition, asked.current_leader_epoch)
            if error is not ErrorCode.NONE:
                results.append(OffsetsForLeaderEpochPartitionResult(asked.partition, error))
                continue
            log = self._core.replicas[asked.partition].opened
            found = log.epochs.end_offset_for(asked.leader_epoch, log.leo)
            results.append(OffsetsForLeaderEpochPartitionResult(asked.partition, error, *found))
        response = OffsetsForLeaderEpochResponse(request.correlation_id, tuple(results))
        fx.reply(src, response)

    # Offsets by time ---------------------------------------------------------------------------

    def list_offsets(self, src: str, request: ListOffsetsRequest, fx: Effects) -> None:
        """The earliest or latest offset, or the first record that is late enough."""
        results = tuple(self._list_one(request, asked, fx) for asked in request.partitions)
        if not self._core.is_halted:
            fx.reply(src, ListOffsetsResponse(request.correlation_id, results))

    def _list_one(
        self, request: ListOffsetsRequest, asked: ListOffsetsPartition, fx: Effects
    ) -> ListOffsetsPartitionResult:
        partition = asked.partition
        error = self._serving.leader_error(partition, asked.current_leader_epoch)
        if error is not ErrorCode.NONE:
            return ListOffsetsPartitionResult(partition, error)
        replica = self._core.replicas[partition]
        leader = replica.leading
        assert leader is not None
        log = replica.opened
        end = log.leo if request.replica_id != CONSUMER else replica.high_watermark
        is_known = (
            request.replica_id != CONSUMER
            or replica.high_watermark >= leader.leader_epoch_start
            or not self._core.guards.offset_not_available
        )
        not_available = ListOffsetsPartitionResult(partition, ErrorCode.OFFSET_NOT_AVAILABLE)
        if asked.timestamp == EARLIEST_TIMESTAMP:
            start = log.log_start_offset
            epoch = log.epochs.epoch_for_offset(start)
            return ListOffsetsPartitionResult(partition, error, -1, start, epoch)
        if asked.timestamp == LATEST_TIMESTAMP:
            if not is_known:
                return not_available
            return ListOffsetsPartitionResult(partition, error, -1, end, replica.leader_epoch)
        if not 0 <= asked.timestamp < OFFSET_END:
            return ListOffsetsPartitionResult(partition, ErrorCode.INVALID_REQUEST)
        try:
            found = log.offset_for_timestamp(asked.timestamp)
        except StorageError as failure:
            return ListOffsetsPartitionResult(partition, self._failed(failure, fx))
        if found is None:
            return ListOffsetsPartitionResult(partition, error)
        if found.offset >= end:
            return ListOffsetsPartitionResult(partition, error) if is_known else not_available
        return ListOffsetsPartitionResult(
            partition, error, found.timestamp_ms, found.offset, found.leader_epoch
        )

    def _failed(self, failure: StorageError, fx: Effects) -> ErrorCode:
        if isinstance(failure, DiskError | LogOffline):
            self._core.halt(failure, fx)
        return ErrorCode.KAFKA_STORAGE_ERROR

    # Deletion ----------------------------------------------------------------------------------

    def delete_records(
        self, now: Now, src: str, request: DeleteRecordsRequest, fx: Effects
    ) -> None:
        """Raise log starts here; answer when every live replica has followed."""
        key = (src, request.correlation_id)
        if key in self._deletes:
            return
        count = len(request.partitions)
        parked = ParkedDelete(src, request.correlation_id, [None] * count, count)
        touched: list[Replica] = []
        for place, asked in enumerate(request.partitions):
            error, offset = self._raise_start(asked, fx)
            if self._core.is_halted:
                return
            if error is not ErrorCode.NONE:
                parked.settle(place, DeleteRecordsPartitionResult(asked.partition, error))
                continue
            replica = self._core.replicas[asked.partition]
            leader = replica.leading
            assert leader is not None
            leader.deletes.append(DeleteWaiter(parked, place, offset))
            touched.append(replica)
        if not parked.waits:
            results = tuple(each for each in parked.results if each is not None)
            fx.reply(src, DeleteRecordsResponse(request.correlation_id, results))
            return
        is_full = len(self._deletes) >= self._core.config.parked_requests_max
        self._deletes[key] = parked
        fx.arm(("delete", *key), now.mono_us + max(0, request.timeout_ms) * 1_000)
        for replica in touched:
            self._core.give_out_work(replica, fx)
            self._leading.settle_deletes(replica, fx)
        if is_full:
            self._answer_delete(*key, ErrorCode.REQUEST_TIMED_OUT, fx)

    def _raise_start(self, asked: DeleteRecordsPartition, fx: Effects) -> tuple[ErrorCode, int]:
        error = self._serving.leader_error(asked.partition, NO_EPOCH)
        if error is not ErrorCode.NONE:
            return error, NO_OFFSET
        replica = self._core.replicas[asked.partition]
        log = replica.opened
        offset = replica.high_watermark if asked.offset == HIGH_WATERMARK else asked.offset
        highest = replica.high_watermark if self._core.guards.log_start_below_hw else log.leo
        if not 0 <= offset <= highest:
            return ErrorCode.OFFSET_OUT_OF_RANGE, NO_OFFSET
        try:
            if offset > log.log_start_offset:
                log.raise_log_start_offset(offset)
                fx.note("log-start", partition=str(asked.partition), log_start_offset=offset)
        except StorageError as failure:
            return self._failed(failure, fx), NO_OFFSET
        return error, offset

    def on_delete_deadline(self, src: str, correlation_id: int, fx: Effects) -> None:
        """Some replica has not followed in time: the deletion here stands all the same."""
        self._answer_delete(src, correlation_id, ErrorCode.REQUEST_TIMED_OUT, fx)

    def _answer_delete(self, src: str, correlation_id: int, error: ErrorCode, fx: Effects) -> None:
        parked = self._deletes.pop((src, correlation_id), None)
        if parked is None or not parked.waits:
            return
        for replica in list(self._core.replicas.values()):
            leader = replica.leading
            for waiter in list(leader.deletes) if leader is not None else ():
                if waiter.request is parked:
                    assert leader is not None
                    leader.deletes.remove(waiter)
                    low = self._leading.low_watermark(replica)
                    result = DeleteRecordsPartitionResult(replica.partition, error, low)
                    parked.settle(waiter.place, result)
        results = tuple(each for each in parked.results if each is not None)
        fx.disarm(("delete", src, correlation_id))
        fx.reply(src, DeleteRecordsResponse(correlation_id, results))

    def fail_deletes(self, replica: Replica, fx: Effects) -> None:
        """Leadership is lost: whether the deletion holds is not known."""
        leader = replica.leading
        for waiter in leader.deletes if leader is not None else ():
            error = ErrorCode.NOT_LEADER_OR_FOLLOWER
            result = DeleteRecordsPartitionResult(replica.partition, error)
            request = waiter.request
            if request.settle(waiter.place, result):
                results = tuple(each for each in request.results if each is not None)
                fx.disarm(("delete", request.src, request.correlation_id))
                fx.reply(request.src, DeleteRecordsResponse(request.correlation_id, results))
                self._deletes.pop((request.src, request.correlation_id), None)

    # Metadata ----------------------------------------------------------------------------------

    def metadata(self, src: str, request: MetadataRequest, fx: Effects) -> None:
        """What this broker has applied, which may lag."""
        image = self._core.image
        names = sorted(image.topic_ids) if request.topics is None else request.topics
        brokers = tuple(
            BrokerMetadata(name, image.brokers[name].broker_epoch)
            for name in sorted(image.brokers)
            if not image.brokers[name].is_fenced
        )
        topics = tuple(self._topic(name) for name in names)
        fx.reply(
            src,
            MetadataResponse(
                request.correlation_id, image.end_offset, self._core.controller, brokers, topics
            ),
        )

    def _topic(self, name: str) -> TopicMetadata:
        topic_id = self._core.image.topic_ids.get(name)
        if topic_id is None:
            return TopicMetadata(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name, "", ())
        states = self._core.image.partitions_of(topic_id)
        partitions = tuple(self._partition(state) for state in states)
        return TopicMetadata(ErrorCode.NONE, name, topic_id, partitions)

    def _partition(self, state: PartitionRecord) -> PartitionMetadata:
        brokers = self._core.image.brokers
        offline = tuple(
            name for name in state.replicas if name not in brokers or brokers[name].is_fenced
        )
        error = ErrorCode.LEADER_NOT_AVAILABLE if state.leader is None else ErrorCode.NONE
        return PartitionMetadata(
            state.partition,
            error,
            state.leader,
            state.leader_epoch,
            state.replicas,
            state.isr,
            state.elr,
            offline,
        )
