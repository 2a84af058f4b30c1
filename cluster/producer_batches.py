"""A producer's batches, partition by partition, in the order in which they have to reach the log.

A batch stays in its partition's queue, at its place, from the first record until it ends: one that
is in flight or waits for another attempt is merely not the next to be sent. So batches can neither
overtake each other here nor be sent twice at once.

Which batch of a partition may be sent next (Kafka's RecordAccumulator and TransactionManager):

* the first that is not in flight; while it waits for its back-off, nothing behind it is sent;
* beside others in flight only to the leader that has those;
* with idempotence: a batch that is sent again goes alone, and so does the first one of a producer
  epoch until it is acknowledged, because a log without state for the producer takes any sequence
  (PROTOCOL A18) and would take the second batch first. Kafka omits the latter;
* with idempotence: at most five batches from the oldest without an answer, because a log remembers
  five.

A batch gets sequence and bytes when it is sent first and keeps them; only a new producer epoch
takes them away.

Left out: requests, answers, outcomes, and the producer's epoch (``cluster.producer``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from typing import Final

from attrs import define, field

from cluster.errors import ErrorCode
from cluster.names import TopicIdPartition
from storage.batch import INT32_MAX, Record, RecordBatch
from storage.mkb1 import DEFAULT_MAX_BATCH_BYTES, MKB1

__all__ = [
    "FRAME_OVERHEAD_BYTES",
    "BatchLimits",
    "PartitionQueue",
    "ProducerBatch",
    "record_size_bytes",
]

FRAME_OVERHEAD_BYTES: Final = 60
"""Of an MKB1 frame of version 2 without its records."""
_RECORD_BYTES: Final = 22
_HEADER_BYTES: Final = 6
_BATCHES_REMEMBERED: Final = 5
"""By a log, of each producer (PROTOCOL A18)."""


def record_size_bytes(record: Record) -> int:
    """What a record that passed ``check_records`` takes in a frame."""
    key, value, _, headers = record
    size = _RECORD_BYTES + len(key or b"") + len(value or b"")
    for name, data in headers:
        size += _HEADER_BYTES + len(name.encode()) + len(data or b"")
    return size


@define(frozen=True)
class BatchLimits:
    """When a batch is full, and how long one that is not waits; units as named."""

    records: int
    size_bytes: int
    linger_us: int
    delivery_timeout_us: int


@define(eq=False)
class ProducerBatch:
    """Records that are sent as one.

    Attributes:
        operations: one id for each record.
        deadline_us: when the batch is given up.
        producer_epoch, base_sequence: -1 while it has none. Invariant: set exactly while ``frame``
            is, if the producer is idempotent.
        ordinal: the how-manieth batch of the partition in its producer epoch, from 0.
        frame: the bytes, from the first attempt on.
        attempts: how often it was sent.
        is_doubtful: some attempt may have been appended (FAULTS D.1).
        peer: who has it while it is in flight.
        not_before_us: the earliest next attempt.
        last_error: of the latest attempt, NONE before any failed.
        is_done: it ended; an answer that comes now is dropped.
    """

    created_us: int
    deadline_us: int
    operations: list[int] = field(factory=list)
    records: list[Record] = field(factory=list)
    size_bytes: int = FRAME_OVERHEAD_BYTES
    producer_epoch: int = -1
    base_sequence: int = -1
    ordinal: int = 0
    frame: bytes | None = None
    attempts: int = 0
    is_doubtful: bool = False
    peer: str | None = None
    not_before_us: int = 0
    last_error: ErrorCode = ErrorCode.NONE
    is_done: bool = False

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence >= 0

    @property
    def next_sequence(self) -> int:
        """Behind its last record, wrapping from 2^31-1 to 0."""
        return (self.base_sequence + len(self.records)) & INT32_MAX

    def encode(self, producer_id: int, producer_epoch: int, base_sequence: int) -> bytes:
        """Fix the bytes, at offset 0 and epoch 0; -1 thrice for a producer without an id."""
        batch = RecordBatch.unassigned(
            self.records,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        )
        self.frame, _ = MKB1.encode(batch, 0, 0, DEFAULT_MAX_BATCH_BYTES)
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        return self.frame

    def drop_sequence(self) -> None:
        """A new producer epoch began: the next attempt gets new bytes."""
        self.frame = None
        self.producer_epoch = self.base_sequence = -1


@define(eq=False)
class PartitionQueue:
    """The batches of one partition, oldest first.

    Attributes:
        next_sequence: of the next batch that gets one.
        is_established: the log has acknowledged a batch of the present producer epoch.
        place: where batches are sent; a topic created anew has a log of its own.
    """

    topic: str
    partition: int
    limits: BatchLimits
    batches: list[ProducerBatch] = field(factory=list)
    next_sequence: int = 0
    is_established: bool = False
    place: TopicIdPartition | None = None
    _next_ordinal: int = 0

    # Filling -----------------------------------------------------------------------------------

    def fits(self, size_bytes: int) -> bool:
        """Whether a record of this size joins a batch that is there."""
        if not self.batches:
            return False
        last = self.batches[-1]
        return (
            last.attempts == 0
            and len(last.records) < self.limits.records
            and last.size_bytes + size_bytes <= self.limits.size_bytes
        )

    def add(self, record: Record, size_bytes: int, operation: int, created_us: int) -> None:
        """Put a record behind all others. One larger than a batch may be goes alone."""
        if not self.fits(size_bytes):
            deadline_us = created_us + self.limits.delivery_timeout_us
            self.batches.append(ProducerBatch(created_us, deadline_us))
        batch = self.batches[-1]
        batch.operations.append(operation)
        batch.records.append(record)
        batch.size_bytes += size_bytes

    def is_open(self, batch: ProducerBatch) -> bool:
        """Whether more records may join it."""
        if batch is not self.batches[-1] or batch.attempts > 0:
            return False
        limits = self.limits
        return len(batch.records) < limits.records and batch.size_bytes < limits.size_bytes

    def ready_us(self, batch: ProducerBatch) -> int:
        """When it may be sent, if nothing else is in the way."""
        if self.is_open(batch):
            return max(batch.not_before_us, batch.created_us + self.limits.linger_us)
        return batch.not_before_us

    # Sending -----------------------------------------------------------------------------------

    def candidate(self, *, is_idempotent: bool, takes_new: bool) -> ProducerBatch | None:
        """The batch that is to be sent next, whenever it is ready; None while none is.

        Args:
            takes_new: False while the producer waits to begin a new epoch: only batches that have
                a sequence may be sent then.
        """
        oldest_flying = None
        is_any_repeated = False
        for batch in self._tried():
            if batch.peer is not None:
                oldest_flying = oldest_flying or batch
                is_any_repeated = is_any_repeated or batch.attempts > 1
        for batch in self.batches:
            if batch.attempts == 0 and not takes_new:
                return None
            if batch.peer is not None or not (takes_new or batch.has_sequence):
                continue
            if is_idempotent and oldest_flying is not None:
                if not self.is_established or batch.attempts > 0:
                    return None
                if is_any_repeated:
                    return None
                if self._next_ordinal - oldest_flying.ordinal >= _BATCHES_REMEMBERED:
                    return None
            return batch
        return None

    def is_held_by_other(self, leader: str) -> bool:
        """Whether another node than ``leader`` has batches that it did not answer."""
        return any(batch.peer is not None and batch.peer != leader for batch in self._tried())

    def _tried(self) -> Iterator[ProducerBatch]:
        """The batches that were sent before.

        They stand in front of all others, which ``candidate`` never prefers to one of them: so a
        look at them does not take longer where very many wait.
        """
        return takewhile(lambda batch: batch.attempts > 0, self.batches)

    def move_to(self, place: TopicIdPartition) -> None:
        """Batches are to be sent there from now on."""
        if self.place != place:
            self.place = place
            self.is_established = False

    def stamp(self, batch: ProducerBatch, producer_id: int, producer_epoch: int) -> bytes:
        """The batch's bytes; gives it the next sequence if it has none."""
        if batch.frame is not None:
            return batch.frame
        if producer_id < 0:
            return batch.encode(-1, -1, -1)
        frame = batch.encode(producer_id, producer_epoch, self.next_sequence)
        self.next_sequence = batch.next_sequence
        batch.ordinal = self._next_ordinal
        self._next_ordinal += 1
        return frame

    # Ending ------------------------------------------------------------------------------------

    def has_earlier_sequence(self, batch: ProducerBatch) -> bool:
        """Whether a batch before this one has a sequence and no end."""
        for other in self.batches:
            if other is batch:
                return False
            if other.has_sequence and other.producer_epoch == batch.producer_epoch:
                return True
        return False

    def remove(self, batch: ProducerBatch) -> None:
        """It ended."""
        batch.is_done = True
        self.batches.remove(batch)

    def take_back_sequence(self, batch: ProducerBatch) -> bool:
        """Use a removed batch's sequence again; False where a later batch follows it.

        Only for a batch of which no attempt can have been appended.
        """
        if batch.next_sequence != self.next_sequence:
            return False
        self.next_sequence = batch.base_sequence
        return True

    def begin_epoch(self) -> None:
        """Sequences start at 0 again; batches in flight keep theirs until they fail."""
        self.next_sequence = self._next_ordinal = 0
        self.is_established = False
        for batch in self.batches:
            if batch.peer is None:
                batch.drop_sequence()
