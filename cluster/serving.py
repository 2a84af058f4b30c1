"""Produce and fetch: what clients and followers ask of a leader (PROTOCOL A1, A4, A7).

A request under way waits in ``cluster.parked`` and is answered by the event that it waits for, or
by its deadline. Nothing of a fetch's follower is noted unless the read succeeded and the logs do
not diverge.

Left out: offsets, deletion and metadata (``cluster.answering``).
"""

from __future__ import annotations

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.fetching import check_epoch, check_position
from cluster.flushing import Flushing
from cluster.leading import Leading
from cluster.messages_data import (
    CONSUMER,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    RangeRef,
)
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, Now, TopicIdPartition
from cluster.parked import ParkedFetch, ParkedProduce, Waiter
from cluster.replica import Leader, Quarantined, Replica
from storage.errors import (
    BatchTooLarge,
    CorruptBatch,
    DiskError,
    InvalidProducerEpoch,
    InvalidRecord,
    LogOffline,
    OutOfOrderSequence,
    StaleLeaderEpoch,
    StorageError,
)
from storage.mkb1 import decode_batch

__all__ = ["Serving"]

_APPEND_ERRORS: tuple[tuple[type[StorageError], ErrorCode], ...] = (
    (InvalidProducerEpoch, ErrorCode.INVALID_PRODUCER_EPOCH),
    (OutOfOrderSequence, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
    (BatchTooLarge, ErrorCode.MESSAGE_TOO_LARGE),
    (CorruptBatch, ErrorCode.CORRUPT_MESSAGE),
    (InvalidRecord, ErrorCode.INVALID_RECORD),
    (StaleLeaderEpoch, ErrorCode.NOT_LEADER_OR_FOLLOWER),
)

Append = tuple[TopicIdPartition, ErrorCode, int, int, int]
"""One partition of a produce: error, base offset, next offset, the epoch of the leadership."""
Appends = tuple[Append, ...]
"""In the request's order."""


class Serving:
    """Produces and fetches at one broker."""

    def __init__(self, core: BrokerCore, leading: Leading, flushing: Flushing) -> None:
        self._core = core
        self._leading = leading
        self._flushing = flushing
        self._produces = core.parked_produces
        leading.on_risen = self._on_risen

    def leader_error(self, partition: TopicIdPartition, epoch: int) -> ErrorCode:
        """Why this broker does not answer for a partition as its leader; NONE if it does."""
        replica = self._core.replicas.get(partition)
        if replica is None or replica.state is None:
            if self._core.image.partition(partition) is not None:
                return ErrorCode.NOT_LEADER_OR_FOLLOWER
            if partition.topic_id not in self._core.image.topic_ids.values():
                return ErrorCode.UNKNOWN_TOPIC_ID
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        role = replica.role
        if isinstance(role, Quarantined):
            return ErrorCode.KAFKA_STORAGE_ERROR
        return check_epoch(
            replica.state.leader_epoch,
            epoch if self._core.guards.fetch_epoch else NO_EPOCH,
            is_leader=isinstance(role, Leader),
        )

    # Produce -----------------------------------------------------------------------------------

    def produce(self, now: Now, src: str, request: ProduceRequest, fx: Effects) -> None:
        """Append every partition's batch, then answer or wait, as ``acks`` says."""
        if (src, request.correlation_id) in self._produces:
            return
        acks = request.acks
        if acks not in (-1, 0, 1):
            errors = tuple(
                ProducePartitionResult(each.partition, ErrorCode.INVALID_REQUIRED_ACKS)
                for each in request.partitions
            )
            fx.reply(src, ProduceResponse(request.correlation_id, errors))
            return
        appends = tuple(self._append(now, src, each, acks, fx) for each in request.partitions)
        if self._core.is_halted:
            return
        args = (src, request.correlation_id, acks, request.timeout_ms, appends)
        if not fx.stops_at("produce-appended", *args):
            self.after_append(now, fx, *args)

    def _append(
        self, now: Now, src: str, asked: ProducePartition, acks: int, fx: Effects
    ) -> Append:
        partition = asked.partition
        error = self.leader_error(partition, NO_EPOCH)
        if error is not ErrorCode.NONE:
            return partition, error, -1, -1, NO_EPOCH
        replica = self._core.replicas[partition]
        leader = replica.leading
        assert leader is not None
        if acks == -1 and self._core.guards.min_isr_before_append:
            if len(leader.isr.isr) < self._leading.min_isr(replica):
                return partition, ErrorCode.NOT_ENOUGH_REPLICAS, -1, -1, NO_EPOCH
        log = replica.opened
        try:
            size_bytes, most_bytes = len(asked.records), log.config.max_batch_bytes
            if size_bytes > most_bytes:
                raise BatchTooLarge(size_bytes, most_bytes)
            batch = decode_batch(asked.records, max_batch_bytes=most_bytes)
            # Offsets without a record are compaction's to leave, not a client's to claim.
            is_dense = batch.last_offset_delta + 1 == len(batch.records)
            if batch.base_offset != 0 or batch.control is not None or not is_dense:
                return partition, ErrorCode.INVALID_RECORD, -1, -1, NO_EPOCH
            stored = log.append(batch, now_ms=now.wall_ms)
        except (DiskError, LogOffline) as failure:
            self._core.halt(failure, fx)
            return partition, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, NO_EPOCH
        except StorageError as failure:
            for kind, code in _APPEND_ERRORS:
                if isinstance(failure, kind):
                    return partition, code, -1, -1, NO_EPOCH
            fx.note("append-error", partition=str(partition), error=failure.code)
            return partition, ErrorCode.KAFKA_STORAGE_ERROR, -1, -1, NO_EPOCH
        if stored.size_bytes:
            self._flushing.after_append(replica, fx)
            leader.note_append(stored.next_offset, stored.size_bytes)
            fx.note(
                "append",
                partition=str(partition),
                base_offset=stored.base_offset,
                next_offset=stored.next_offset,
                leader_epoch=stored.leader_epoch,
                client=src,
                acks=acks,
            )
        offsets = (stored.base_offset, stored.next_offset)
        return partition, ErrorCode.NONE, *offsets, leader.leader_epoch

    def after_append(
        self,
        now: Now,
        fx: Effects,
        src: str,
        correlation_id: int,
        acks: int,
        timeout_ms: int,
        appends: Appends,
    ) -> None:
        """What follows the appends: high watermark, parked fetches, the answer."""
        for partition in dict.fromkeys(append[0] for append in appends):
            replica = self._core.replicas.get(partition)
            if replica is not None and replica.leading is not None:
                self._leading.advance(now, replica, fx)
                self._core.give_out_work(replica, fx)
                self.wake(now, partition, fx, replicas=True)
        if self._core.is_halted:
            return
        if acks == 0:
            if any(append[1] is not ErrorCode.NONE for append in appends):
                fx.disconnect(src)
            return
        partitions = tuple(append[0] for append in appends)
        request = ParkedProduce.begin(src, correlation_id, acks, partitions)
        for place, append in enumerate(appends):
            result = self._settled(request, place, append, acks)
            if result is not None:
                request.settle(place, result)
        if request.waits and len(self._produces) < self._core.config.parked_requests_max:
            self._produces[src, correlation_id] = request
            deadline_us = now.mono_us + max(0, timeout_ms) * 1_000
            fx.arm(("produce", src, correlation_id), deadline_us)
        else:
            self._answer(request, ErrorCode.REQUEST_TIMED_OUT, fx)

    def _settled(
        self,
        request: ParkedProduce,
        place: int,
        append: Append,
        acks: int,
    ) -> ProducePartitionResult | None:
        """The result of one partition, None where it waits from now on."""
        partition, error, base_offset, next_offset, leader_epoch = append
        replica = self._core.replicas.get(partition)
        leader = None if replica is None else replica.leading
        if error is not ErrorCode.NONE:
            return ProducePartitionResult(partition, error)
        if replica is None or leader is None or leader.leader_epoch != leader_epoch:
            # Lost since the append, and perhaps won again: the batch may have been cut off.
            return ProducePartitionResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        waiter = Waiter(request, place, base_offset, next_offset)
        if acks == 1 and next_offset > replica.synced_end:
            leader.synced_produces.add(waiter)
            return None
        if acks == -1 and self._core.guards.ack_waits_for_hw:
            if replica.high_watermark < next_offset:
                leader.produces.add(waiter)
                return None
            if len(leader.isr.maximal) < self._leading.min_isr(replica):
                error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
                return ProducePartitionResult(partition, error)
        start = replica.opened.log_start_offset
        return ProducePartitionResult(partition, ErrorCode.NONE, base_offset, start)

    def _answer(self, request: ParkedProduce, error: ErrorCode, fx: Effects) -> None:
        """Answer a request; what has no result yet gets ``error``."""
        results = []
        waited: dict[TopicIdPartition, int] = {}
        for partition, result in zip(request.partitions, request.results, strict=True):
            if result is None:
                result = ProducePartitionResult(partition, error)
                waited[partition] = waited.get(partition, 0) + 1
            results.append(result)
        request.is_answered = True
        for partition, count in waited.items():
            leader = self._core.replicas[partition].leading
            assert leader is not None, "whoever waits is answered when the leadership is lost"
            (leader.synced_produces if request.acks == 1 else leader.produces).forget(count)
        fx.reply(request.src, ProduceResponse(request.correlation_id, tuple(results)))

    def on_produce_deadline(self, src: str, correlation_id: int, fx: Effects) -> None:
        """The request has waited long enough: its outcome is not known (PROTOCOL A7)."""
        request = self._produces.pop((src, correlation_id), None)
        if request is not None and request.waits:
            self._answer(request, ErrorCode.REQUEST_TIMED_OUT, fx)

    def on_synced(self, now: Now, replica: Replica, fx: Effects) -> None:
        """A flush of the leader's own is done."""
        leader = replica.leading
        if leader is not None:
            for waiter in leader.synced_produces.take_up_to(replica.synced_end):
                self._leading.settle(replica, waiter, ErrorCode.NONE, fx)
            self._leading.advance(now, replica, fx)

    # Fetch -------------------------------------------------------------------------------------

    def fetch(self, now: Now, src: str, request: FetchRequest, fx: Effects) -> None:
        """Read every partition, credit the follower, then answer or wait."""
        results = self._read(request, fx)
        if self._core.is_halted or fx.stops_at("fetch-read", src, request, results):
            return
        self.after_read(now, fx, src, request, results)

    def after_read(
        self,
        now: Now,
        fx: Effects,
        src: str,
        request: FetchRequest,
        results: tuple[FetchPartitionResult, ...],
    ) -> None:
        """Note the follower's positions; answer what has something to say."""
        if (src, request.correlation_id) in self._core.parked_fetches:
            return
        if request.replica_id != CONSUMER:
            results = tuple(
                self._credit(now, request, asked, result, fx)
                for asked, result in zip(request.partitions, results, strict=True)
            )
        if not self._core.guards.sample_before_read:
            results = tuple(self._resampled(result) for result in results)
        is_full = len(self._core.parked_fetches) >= self._core.config.parked_requests_max
        missing = self._missing(request, results)
        if request.max_wait_ms <= 0 or is_full or not missing:
            fx.reply(src, FetchResponse(request.correlation_id, results))
            return
        deadline_us = now.mono_us + request.max_wait_ms * 1_000
        self._core.parked_fetches.add(ParkedFetch(src, request, deadline_us), missing)
        fx.arm(("fetch", src, request.correlation_id), deadline_us)

    def _credit(
        self,
        now: Now,
        request: FetchRequest,
        asked: FetchPartition,
        result: FetchPartitionResult,
        fx: Effects,
    ) -> FetchPartitionResult:
        """Note one position, if the read was good and still is: the epochs are looked at again."""
        if result.error_code is not ErrorCode.NONE:
            return result
        if result.diverging_epoch is not None and self._core.guards.no_credit_on_divergence:
            return result
        error = self._error_of(request, asked)
        if error is not ErrorCode.NONE:
            return FetchPartitionResult(asked.partition, error)
        replica = self._core.replicas[asked.partition]
        follower = request.replica_id
        self._leading.note_fetch(now, replica, follower, request.replica_epoch, asked)
        is_proposed = self._leading.expand(now, replica, follower, fx)
        if not (is_proposed and fx.stops_at("isr-change-sent", asked.partition)):
            self._leading.after_credit(now, replica, fx)
        return result

    def _error_of(self, request: FetchRequest, asked: FetchPartition) -> ErrorCode:
        """Why a fetch is refused: the epoch, then leadership, then the follower (PROTOCOL A4)."""
        error = self.leader_error(asked.partition, asked.current_leader_epoch)
        if error is ErrorCode.NONE and request.replica_id != CONSUMER:
            leader = self._core.replicas[asked.partition].leading
            assert leader is not None
            error = self._follower_error(leader, request, asked)
        return error

    def _read(self, request: FetchRequest, fx: Effects) -> tuple[FetchPartitionResult, ...]:
        results = []
        room = max(0, request.max_bytes)
        is_first = True
        for asked in request.partitions:
            result = self._read_one(request, asked, room, is_first, fx)
            if result.range_ref is not None:
                room = max(0, room - result.range_ref.size_bytes)
                is_first = False
            results.append(result)
        return tuple(results)

    def _read_one(
        self, request: FetchRequest, asked: FetchPartition, room: int, is_first: bool, fx: Effects
    ) -> FetchPartitionResult:
        partition = asked.partition
        error = self._error_of(request, asked)
        if error is not ErrorCode.NONE:
            return FetchPartitionResult(partition, error)
        is_follower = request.replica_id != CONSUMER
        replica = self._core.replicas[partition]
        log = replica.opened
        high_watermark, start, leo = replica.high_watermark, log.log_start_offset, log.leo
        verdict = check_position(
            fetch_offset=asked.fetch_offset,
            last_fetched_epoch=asked.last_fetched_epoch,
            log_start=start,
            leo=leo,
            end_offset_for=lambda epoch: log.epochs.end_offset_for(epoch, leo),
            guards=self._core.guards,
        )
        sampled = (high_watermark, high_watermark, start)
        if verdict.error_code is not ErrorCode.NONE or verdict.diverging_epoch is not None:
            return FetchPartitionResult(
                partition, verdict.error_code, *sampled, verdict.diverging_epoch
            )
        end = leo if is_follower else high_watermark
        limit = max(0, min(asked.partition_max_bytes, room))
        ref = None
        try:
            if asked.fetch_offset < end:
                found = log.slice_range(asked.fetch_offset, limit, end, at_least_one=is_first)
                if found.size_bytes:
                    place = (found.segment_base, found.creation, found.position)
                    ref = RangeRef(partition, *place, found.size_bytes)
        except DiskError as failure:
            self._core.halt(failure, fx)
            return FetchPartitionResult(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        except StorageError as failure:
            fx.note("read-error", partition=str(partition), error=failure.code)
            return FetchPartitionResult(partition, ErrorCode.KAFKA_STORAGE_ERROR)
        return FetchPartitionResult(partition, ErrorCode.NONE, *sampled, range_ref=ref)

    def _follower_error(
        self, leader: Leader, request: FetchRequest, asked: FetchPartition
    ) -> ErrorCode:
        """A stranger, or a broker's earlier life (PROTOCOL A4.1, A4.6)."""
        name = request.replica_id
        if name not in leader.followers:
            if asked.current_leader_epoch != NO_EPOCH:
                return ErrorCode.UNKNOWN_LEADER_EPOCH
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        broker = self._core.image.brokers.get(name)
        if (
            self._core.guards.fetch_broker_epoch
            and request.replica_epoch != NO_BROKER_EPOCH
            and broker is not None
            and not broker.is_fenced
            and request.replica_epoch < broker.broker_epoch
        ):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def _resampled(self, result: FetchPartitionResult) -> FetchPartitionResult:
        replica = self._core.replicas.get(result.partition)
        if replica is None or replica.log is None or result.error_code is not ErrorCode.NONE:
            return result
        high_watermark = replica.high_watermark
        return result._replace(
            high_watermark=high_watermark,
            last_stable_offset=high_watermark,
            log_start_offset=replica.log.log_start_offset,
        )

    # Waking ------------------------------------------------------------------------------------

    def wake(
        self,
        now: Now,
        partition: TopicIdPartition,
        fx: Effects,
        *,
        replicas: bool = False,
        consumers: bool = False,
    ) -> None:
        """Look again at who waits at a partition: new data, a new epoch, another leader.

        What is answered from here credits no follower: its position was noted when it asked.
        """
        fetches = self._core.parked_fetches
        for parked in fetches.at(partition, replicas=replicas, consumers=consumers):
            self._look_again(parked, fx)

    def _look_again(self, parked: ParkedFetch, fx: Effects) -> None:
        results = self._read(parked.request, fx)
        missing = self._missing(parked.request, results)
        if missing:
            self._core.parked_fetches.wait_on(parked, missing)
        else:
            self._answer_fetch(parked, results, fx)

    def _missing(self, request: FetchRequest, results: tuple[FetchPartitionResult, ...]) -> int:
        """How many bytes a fetch has to wait for; 0 where it has an error, a divergence, enough, or
        all that its segment will ever have (PROTOCOL A3).
        """
        size = 0
        for result in results:
            if result.error_code is not ErrorCode.NONE or result.diverging_epoch is not None:
                return 0
            ref = result.range_ref
            if ref is not None:
                size += ref.size_bytes
                replica = self._core.replicas.get(result.partition)
                if replica is None or replica.opened.active.base_offset != ref.segment_base:
                    return 0
        return max(0, request.min_bytes - size)

    def on_fetch_deadline(self, src: str, correlation_id: int, fx: Effects) -> None:
        """A fetch has waited long enough: it gets what there is."""
        parked = self._core.parked_fetches.remove((src, correlation_id))
        if parked is not None:
            fx.reply(src, FetchResponse(correlation_id, self._read(parked.request, fx)))

    def forget(self, src: str) -> None:
        """A peer's connection is gone: its fetches need no answer."""
        for parked in self._core.parked_fetches.of(src):
            self._core.parked_fetches.remove(parked.key)

    def _answer_fetch(
        self, parked: ParkedFetch, results: tuple[FetchPartitionResult, ...], fx: Effects
    ) -> None:
        self._core.parked_fetches.remove(parked.key)
        fx.disarm(("fetch", *parked.key))
        fx.reply(parked.src, FetchResponse(parked.request.correlation_id, results))

    def _on_risen(self, now: Now, replica: Replica, fx: Effects) -> None:
        """Consumers may read more: those that may have enough bytes now are looked at."""
        leader = replica.leading
        assert leader is not None
        size = leader.show(replica.high_watermark)
        if size is None:
            self.wake(now, replica.partition, fx, consumers=True)
            return
        for parked in self._core.parked_fetches.grown(replica.partition, size):
            self._look_again(parked, fx)
