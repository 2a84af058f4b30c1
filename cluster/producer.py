"""The producer: records in, one outcome for each record out (PROTOCOL A7, A18; FAULTS D.1).

``send`` accumulates; batches leave when they are full or have lingered, at most
``max_in_flight_requests_per_connection`` requests a broker, each with one batch a partition. An
answer, its absence or a lost connection ends an attempt. A retriable error leads to another one,
behind an exponential back-off and with new metadata, until ``delivery_timeout_ms`` after the batch
began. Every operation then ends exactly once:

* ``ACKED``: the leader answered without an error; so it does for a retry that the log recognised,
  with the offsets of the first time. Under acks 1 this promises nothing (A7).
* ``REJECTED``: every attempt got an error that is raised before the append, or none was made.
* ``UNKNOWN``: everything else. With acks 0 whatever was sent, at once: there is no answer, no
  retry, no limit on requests in flight, and nothing is promised.

Idempotence. Batches of a partition are numbered and sent again with number and bytes unchanged, in
order. Where a number is given up (its batch ended without being acknowledged) the log takes none
behind it, so the producer goes on in a new epoch, with numbers from 0. It begins one when nothing
is in flight or in doubt, since under new numbers the log does not recognise what it has
(KAFKA-14034, hazard B-52; guard ``bump_epoch_only_when_idle``). Until then batches that have a
number are brought to their end, and no other is sent. A batch that was refused for good and has
no other behind it gives its number back instead, as in Kafka.

The node ``controller`` answers InitProducerId, where Kafka has a broker that coordinates.

Left out: transactions, compression, splitting a batch that is too large (it is rejected), a maximum
size of a request. A request that timed out is given up alone; its connection stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from cluster.accumulator import Accumulator, PendingRecord
from cluster.client_metadata import METADATA_TIMER, ClientMetadata, LeaderAndEpoch
from cluster.client_requests import REQUEST_TIMER, ClientRequests, backoff_us
from cluster.config import ProducerConfig
from cluster.effects import Effects, TimerKey
from cluster.errors import DEFINITE_ON_FIRST_ATTEMPT, ErrorCode
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.message import Message
from cluster.messages_control import InitProducerIdRequest, InitProducerIdResponse
from cluster.messages_data import (
    MetadataRequest,
    MetadataResponse,
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import Now, TopicIdPartition
from cluster.outcomes import BufferFull, Outcome, OutcomeKind, ProducerStopped
from cluster.producer_batches import (
    FRAME_OVERHEAD_BYTES,
    BatchLimits,
    PartitionQueue,
    ProducerBatch,
    record_size_bytes,
)
from cluster.producer_identity import IDENTITY_TIMER, ProducerIdentity
from storage.batch import OFFSET_END, Record, check_records
from storage.errors import BatchTooLarge
from storage.mkb1 import DEFAULT_MAX_BATCH_BYTES

__all__ = ["Producer"]

_DRAIN_TIMER: Final = ("drain",)
_DELIVERY_TIMER: Final = ("delivery",)
_ALL_GUARDS: Final = Guards()


class _Sent(NamedTuple):
    """One batch of a request."""

    queue: PartitionQueue
    batch: ProducerBatch
    partition: TopicIdPartition


class Producer(Machine):
    """See the module.

    Attributes:
        config, guards: as given.
    """

    def __init__(
        self,
        name: str,
        config: ProducerConfig,
        *,
        brokers: tuple[str, ...],
        controller: str,
        guards: Guards = _ALL_GUARDS,
        incarnation: int = 0,
    ) -> None:
        """``brokers`` are asked for metadata in turn; ``incarnation`` counts earlier starts."""
        self.name = name
        self.config = config
        self.guards = guards
        first_us, max_us = config.retry_backoff_ms * 1_000, config.retry_backoff_max_ms * 1_000
        self._backoff_us = (first_us, max_us)
        self._requests = ClientRequests(incarnation, config.request_timeout_ms * 1_000)
        self._metadata = ClientMetadata(
            self._requests,
            brokers,
            guards,
            backoff_us=first_us,
            max_age_us=config.metadata_max_age_ms * 1_000,
        )
        self._identity = ProducerIdentity(
            self._requests, controller, backoff_us=first_us, backoff_max_us=max_us
        )
        limits = BatchLimits(
            config.batch_max_records,
            config.batch_max_bytes,
            config.linger_ms * 1_000,
            config.delivery_timeout_ms * 1_000,
        )
        self._queues = Accumulator(self._metadata, limits)
        self._sent: dict[int, tuple[_Sent, ...]] = {}
        self._outcomes: list[Outcome] = []
        self._armed: dict[TimerKey, int] = {}
        self._next_operation = 0
        self._buffered = 0
        self._must_begin_epoch = False
        self._is_stopping = False
        self._is_stopped = False

    # Sending records ---------------------------------------------------------------------------

    def send(
        self,
        now: Now,
        fx: Effects,
        topic: str,
        record: Record,
        *,
        partition: int | None = None,
    ) -> int:
        """Take a record; the operation that is returned will have one outcome.

        Args:
            partition: 0 or more; None leaves the choice to key and batch. A number that the topic
                does not have waits for it until the delivery timeout.

        Raises:
            BufferFull: too many operations have no outcome yet.
            ProducerStopped: ``on_stop`` was called.
            InvalidRecord, BatchTooLarge: the record cannot be encoded.
            ValueError: topic or partition is none.
        """
        if self._is_stopping:
            raise ProducerStopped(f"{self.name} was stopped")
        if not topic or (partition is not None and partition < 0):
            raise ValueError(f"partition is {partition!r} of topic {topic!r}, allowed is 0 or more")
        if self._buffered >= self.config.buffer_max_records:
            raise BufferFull(
                f"{self._buffered} operations have no outcome yet, buffer_max_records is "
                f"{self.config.buffer_max_records}"
            )
        check_records((record,))
        size_bytes = record_size_bytes(record)
        if size_bytes + FRAME_OVERHEAD_BYTES > DEFAULT_MAX_BATCH_BYTES:
            raise BatchTooLarge(size_bytes + FRAME_OVERHEAD_BYTES, DEFAULT_MAX_BATCH_BYTES)
        operation = self._next_operation
        self._next_operation += 1
        self._buffered += 1
        self._metadata.want(now, fx, topic)
        self._queues.add(
            PendingRecord(operation, topic, partition, record, size_bytes, now.timer_us)
        )
        # More may be sent in this instant: a batch that is not full waits for the timer.
        self._advance(now, fx, is_sending=True)
        return operation

    def take_outcomes(self) -> list[Outcome]:
        """The outcomes since the last call, in the order in which they became known."""
        outcomes, self._outcomes = self._outcomes, []
        return outcomes

    # Handlers ----------------------------------------------------------------------------------

    def on_start(self, now: Now, fx: Effects) -> None:
        if self.config.enable_idempotence:
            self._identity.ask(now, fx)

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        request = self._requests.answered(fx, src, message)
        if request is None:
            return
        match request, message:
            case MetadataRequest(), MetadataResponse():
                self._metadata.on_response(now, fx, message)
                self._queues.route()
            case InitProducerIdRequest(), InitProducerIdResponse():
                self._identity.on_response(now, fx, request, message)
            case ProduceRequest(), ProduceResponse():
                self._on_produced(now, fx, request, message.partitions)
        self._advance(now, fx)

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        self._armed.pop(key, None)
        if key == METADATA_TIMER:
            self._metadata.on_timer(now, fx)
        elif key == IDENTITY_TIMER:
            self._identity.ask(now, fx)
        elif key[0] == REQUEST_TIMER:
            expired = self._requests.timed_out(key)
            if expired is not None:
                self._on_no_answer(now, fx, expired.request)
        self._advance(now, fx)

    def on_disconnected(self, now: Now, peer: str, fx: Effects) -> None:
        for lost in self._requests.lost(fx, peer):
            self._on_no_answer(now, fx, lost.request)
        self._advance(now, fx)

    def on_stop(self, now: Now, fx: Effects) -> None:
        """Send what is accumulated, without lingering; stopped when every operation has ended."""
        self._is_stopping = True
        self._advance(now, fx)

    def _on_no_answer(self, now: Now, fx: Effects, request: Message) -> None:
        match request:
            case MetadataRequest():
                self._metadata.on_failure(now, fx, request)
            case InitProducerIdRequest():
                self._identity.on_failure(now, fx, request)
            case ProduceRequest():
                self._on_produced(now, fx, request, ())

    def _advance(self, now: Now, fx: Effects, *, is_sending: bool = False) -> None:
        """What may follow from any event: ends that are due, a new epoch, requests, timers."""
        self._expire(now)
        self._begin_epoch(now, fx)
        self._drain(now, fx, only_full=is_sending)
        if self._queues.unrouted:
            self._metadata.request_update(now, fx)
        if self._is_stopping and not self._buffered:
            self._stop(now, fx)
            return
        self._arm(now, fx, _DRAIN_TIMER, self._next_ready_us(now.timer_us + (not is_sending)))
        self._arm(now, fx, _DELIVERY_TIMER, self._queues.next_deadline_us())

    def _stop(self, now: Now, fx: Effects) -> None:
        if self._is_stopped:
            return
        self._is_stopped = True
        self._requests.give_up_all(fx)
        self._metadata.stop(fx)
        for key in (_DRAIN_TIMER, _DELIVERY_TIMER):
            self._arm(now, fx, key, None)
        fx.disarm(IDENTITY_TIMER)
        fx.stopped()

    def _arm(self, now: Now, fx: Effects, key: TimerKey, at_us: int | None) -> None:
        if at_us == self._armed.get(key):
            return
        if at_us is None:
            del self._armed[key]
            fx.disarm(key)
        else:
            self._armed[key] = at_us
            fx.arm(key, at_us, now.timer_clock)

    # Requests ----------------------------------------------------------------------------------

    def _drain(self, now: Now, fx: Effects, *, only_full: bool) -> None:
        """Send every batch that may be sent."""
        if self.config.enable_idempotence and not self._identity.is_known:
            return
        blocked: set[str] = set()
        while batches := self._ready(now, fx, blocked, only_full=only_full):
            for broker in sorted(batches):
                if self._has_room(broker):
                    self._send_request(now, fx, broker, batches[broker])
                else:
                    blocked.add(broker)

    def _has_room(self, broker: str) -> bool:
        produces = 0
        for each in self._requests:
            if each.peer == broker and isinstance(each.request, ProduceRequest):
                produces += 1
        return produces < self.config.max_in_flight_requests_per_connection

    def _ready(
        self, now: Now, fx: Effects, blocked: set[str], *, only_full: bool
    ) -> dict[str, list[_Sent]]:
        """By leader, one batch of each partition that has one ready."""
        found: dict[str, list[_Sent]] = {}
        for queue in self._queues:
            leader = self._leader(queue)
            if leader is not None:
                queue.move_to(leader.partition)
            batch = self._candidate(queue)
            if batch is None or self._ready_us(queue, batch) > now.timer_us:
                continue
            if only_full and queue.is_open(batch):
                continue
            if leader is None or leader.leader is None:
                self._metadata.request_update(now, fx)
            elif leader.leader not in blocked and not queue.is_held_by_other(leader.leader):
                entry = _Sent(queue, batch, leader.partition)
                found.setdefault(leader.leader, []).append(entry)
        return found

    def _candidate(self, queue: PartitionQueue) -> ProducerBatch | None:
        return queue.candidate(
            is_idempotent=self.config.enable_idempotence, takes_new=not self._must_begin_epoch
        )

    def _ready_us(self, queue: PartitionQueue, batch: ProducerBatch) -> int:
        return batch.not_before_us if self._is_stopping else queue.ready_us(batch)

    def _leader(self, queue: PartitionQueue) -> LeaderAndEpoch | None:
        return self._metadata.leader(queue.topic, queue.partition)

    def _send_request(self, now: Now, fx: Effects, broker: str, batches: list[_Sent]) -> None:
        identity = self._identity
        partitions = []
        for queue, batch, partition in batches:
            frame = queue.stamp(batch, identity.producer_id, identity.producer_epoch)
            partitions.append(ProducePartition(partition, frame))
            batch.attempts += 1
        request = ProduceRequest(
            self._requests.correlations.take(),
            self.config.acks,
            self.config.request_timeout_ms,
            tuple(partitions),
        )
        if self.config.acks == 0:
            fx.send(broker, request)
            for queue, batch, partition in batches:
                self._end(queue, batch, OutcomeKind.UNKNOWN, partition, ErrorCode.NONE)
            return
        for _, batch, _ in batches:
            batch.peer = broker
        self._sent[request.correlation_id] = tuple(batches)
        self._requests.send(now, fx, broker, request)

    # Answers -----------------------------------------------------------------------------------

    def _on_produced(
        self,
        now: Now,
        fx: Effects,
        request: ProduceRequest,
        results: tuple[ProducePartitionResult, ...],
    ) -> None:
        """The answer came, or none: a batch that it says nothing of is in doubt."""
        by_partition: dict[TopicIdPartition, ProducePartitionResult] = {}
        for result in results:
            by_partition.setdefault(result.partition, result)
        for sent in self._sent.pop(request.correlation_id):
            batch = sent.batch
            batch.peer = None
            if batch.is_done:
                continue
            found = by_partition.get(sent.partition)
            error, offset = ErrorCode.NETWORK_EXCEPTION, -1
            if found is not None:
                error, offset = found.error_code, found.base_offset
            if error is ErrorCode.NONE and 0 <= offset <= OFFSET_END - len(batch.records):
                is_current = batch.producer_epoch == self._identity.producer_epoch
                if is_current and sent.partition == sent.queue.place:
                    sent.queue.is_established = True
                self._end(sent.queue, batch, OutcomeKind.ACKED, sent.partition, error, offset)
            elif error is ErrorCode.NONE:
                self._on_failed(now, fx, sent, ErrorCode.NETWORK_EXCEPTION)
            else:
                self._on_failed(now, fx, sent, error)

    def _on_failed(self, now: Now, fx: Effects, sent: _Sent, error: ErrorCode) -> None:
        """One attempt is over: another one, or the end."""
        queue, batch, partition = sent
        batch.last_error = error
        # A first attempt is one before which nothing was in doubt; doubt is never taken back.
        if not error.is_definite and error not in DEFINITE_ON_FIRST_ATTEMPT:
            batch.is_doubtful = True
        is_retriable = error.is_retriable
        if error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_retriable = self._on_out_of_order(now, fx, queue, batch)
        if not is_retriable:
            kind = OutcomeKind.UNKNOWN if batch.is_doubtful else OutcomeKind.REJECTED
            if error is ErrorCode.INVALID_PRODUCER_EPOCH:
                self._must_begin_epoch = True
            self._end(queue, batch, kind, partition, error)
            return
        if batch.has_sequence and batch.producer_epoch != self._identity.producer_epoch:
            # Only without ``bump_epoch_only_when_idle``: an epoch began while this was in flight.
            batch.drop_sequence()
        batch.not_before_us = now.timer_us + backoff_us(batch.attempts, *self._backoff_us)
        self._metadata.request_update(now, fx)

    def _on_out_of_order(
        self, now: Now, fx: Effects, queue: PartitionQueue, batch: ProducerBatch
    ) -> bool:
        """Whether to send the batch again.

        It follows a batch that has no end yet: the same bytes again, behind that one. Else the log
        lacks what was before it, and will take it in a new epoch only; if it may be in the log
        already, it must not be sent under another number.
        """
        if not batch.has_sequence or queue.has_earlier_sequence(batch):
            return batch.has_sequence
        self._must_begin_epoch = True
        if not self.guards.bump_epoch_only_when_idle:
            self._begin_epoch(now, fx)
            return True
        if batch.is_doubtful:
            return False
        batch.drop_sequence()
        return True

    # Ends --------------------------------------------------------------------------------------

    def _end(
        self,
        queue: PartitionQueue,
        batch: ProducerBatch,
        kind: OutcomeKind,
        partition: TopicIdPartition | None,
        error: ErrorCode,
        base_offset: int | None = None,
    ) -> None:
        queue.remove(batch)
        self._buffered -= len(batch.operations)
        for number, operation in enumerate(batch.operations):
            offset = -1 if base_offset is None else base_offset + number
            self._outcomes.append(Outcome(operation, kind, partition, offset, error))
        if kind is OutcomeKind.ACKED or not batch.has_sequence:
            return
        if batch.producer_epoch == self._identity.producer_epoch:
            if batch.is_doubtful or not queue.take_back_sequence(batch):
                self._must_begin_epoch = True

    def _expire(self, now: Now) -> None:
        """End what has waited for its delivery timeout; in flight, an attempt is in doubt."""
        for queue in self._queues:
            while queue.batches and queue.batches[0].deadline_us <= now.timer_us:
                batch = queue.batches[0]
                is_flying = batch.peer is not None
                batch.is_doubtful |= is_flying
                kind = OutcomeKind.UNKNOWN if batch.is_doubtful else OutcomeKind.REJECTED
                error = ErrorCode.REQUEST_TIMED_OUT if is_flying else batch.last_error
                if error is ErrorCode.NONE:
                    error = ErrorCode.REQUEST_TIMED_OUT
                leader = self._leader(queue)
                self._end(queue, batch, kind, leader and leader.partition, error)
        for operation in self._queues.expire_unrouted(now.timer_us):
            self._buffered -= 1
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            self._outcomes.append(Outcome(operation, OutcomeKind.REJECTED, None, error_code=error))

    # A new producer epoch ----------------------------------------------------------------------

    def _begin_epoch(self, now: Now, fx: Effects) -> None:
        if not self._must_begin_epoch or not self._identity.is_known:
            return
        if self.guards.bump_epoch_only_when_idle and not self._is_idle():
            return
        self._must_begin_epoch = False
        self._identity.begin_epoch(now, fx)
        for queue in self._queues:
            queue.begin_epoch()

    def _is_idle(self) -> bool:
        """Whether the log can have no batch that this producer would send again."""
        return not self._sent and not any(
            batch.is_doubtful for queue in self._queues for batch in queue.batches
        )

    # Times -------------------------------------------------------------------------------------

    def _next_ready_us(self, from_us: int) -> int | None:
        """The first time from ``from_us`` on at which a batch becomes ready."""
        first_us = None
        for queue in self._queues:
            batch = self._candidate(queue)
            if batch is not None:
                at_us = self._ready_us(queue, batch)
                if at_us >= from_us and (first_us is None or at_us < first_us):
                    first_us = at_us
        return first_us

    # Viewers -----------------------------------------------------------------------------------

    @property
    def queues(self) -> Iterator[PartitionQueue]:
        """What is not acknowledged yet, by partition; to look at."""
        return iter(self._queues)

    def fields(self) -> Mapping[str, Any]:
        return dict(self._fields())

    def _fields(self) -> Iterator[tuple[str, Any]]:
        yield "producer_id", self._identity.producer_id
        yield "producer_epoch", self._identity.producer_epoch
        yield "must_begin_epoch", self._must_begin_epoch
        yield "buffered", self._buffered
        yield "unrouted", self._queues.unrouted
        yield "in_flight", len(self._sent)
        for queue in sorted(self._queues, key=lambda each: (each.topic, each.partition)):
            leader = self._leader(queue)
            name = f"{queue.topic}-{queue.partition}"
            yield f"{name}/queued", sum(len(batch.records) for batch in queue.batches)
            yield f"{name}/next_sequence", queue.next_sequence
            yield f"{name}/leader", leader and leader.leader
            yield f"{name}/leader_epoch", -1 if leader is None else leader.leader_epoch
