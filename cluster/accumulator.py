"""Where a producer's records wait: until their topic is known, then in their partition's queue.

Records for a topic, or for a partition of it, that metadata does not have wait unrouted, in the
order of their sends, each with a delivery timeout of its own.

Left out: batches and their order (``cluster.producer_batches``), sending and outcomes
(``cluster.producer``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen

from cluster.client_metadata import ClientMetadata
from cluster.partitioner import Partitioner
from cluster.producer_batches import BatchLimits, PartitionQueue
from storage.batch import Record

__all__ = ["Accumulator", "PendingRecord"]


@frozen
class PendingRecord:
    """A record that was sent; ``partition`` is None where key and batch are to choose."""

    operation: int
    topic: str
    partition: int | None
    record: Record
    size_bytes: int
    created_us: int


_NEVER_US: Final = 1 << 63


class Accumulator:
    """See the module."""

    __slots__ = ("_earliest_us", "_limits", "_metadata", "_partitioner", "_queues", "_unrouted")

    def __init__(self, metadata: ClientMetadata, limits: BatchLimits) -> None:
        self._metadata = metadata
        self._limits = limits
        self._partitioner = Partitioner()
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._unrouted: list[PendingRecord] = []
        self._earliest_us = _NEVER_US

    def __iter__(self) -> Iterator[PartitionQueue]:
        """The queues, in the order in which their partitions got their first record."""
        return iter(self._queues.values())

    @property
    def unrouted(self) -> int:
        """How many records wait for metadata."""
        return len(self._unrouted)

    def add(self, entry: PendingRecord) -> None:
        """Take in a record."""
        if not self._route(entry):
            self._unrouted.append(entry)
            self._earliest_us = min(self._earliest_us, entry.created_us)

    def route(self) -> None:
        """Metadata is new: find partitions for what waits."""
        self._keep([entry for entry in self._unrouted if not self._route(entry)])

    def expire_unrouted(self, now_us: int) -> list[int]:
        """Operations whose records found no partition in time; they are forgotten."""
        limit_us = now_us - self._limits.delivery_timeout_us
        if self._earliest_us > limit_us:
            return []
        expired = [each.operation for each in self._unrouted if each.created_us <= limit_us]
        self._keep([each for each in self._unrouted if each.created_us > limit_us])
        return expired

    def _keep(self, unrouted: list[PendingRecord]) -> None:
        self._unrouted = unrouted
        # Not the first one's: a clock may have been set back since.
        self._earliest_us = min((each.created_us for each in unrouted), default=_NEVER_US)

    def next_deadline_us(self) -> int | None:
        """When the next batch or record is given up."""
        deadlines = [queue.batches[0].deadline_us for queue in self if queue.batches]
        if self._unrouted:
            first_us = self._unrouted[0].created_us
            deadlines.append(first_us + self._limits.delivery_timeout_us)
        return min(deadlines, default=None)

    def _route(self, entry: PendingRecord) -> bool:
        topic, number = entry.topic, entry.partition
        known = self._metadata.partitions(topic)
        if not known:
            return False
        if number is None:
            number = self._partitioner.choose(
                topic,
                entry.record[0],
                known,
                has_room=lambda number: self._queue(topic, number).fits(entry.size_bytes),
            )
        elif self._metadata.leader(topic, number) is None:
            return False
        queue = self._queue(topic, number)
        queue.add(entry.record, entry.size_bytes, entry.operation, entry.created_us)
        return True

    def _queue(self, topic: str, partition: int) -> PartitionQueue:
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = PartitionQueue(topic, partition, self._limits)
            self._queues[topic, partition] = queue
        return queue
