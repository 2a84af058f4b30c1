"""Requests that wait at a leader: produces for the high watermark, fetches for data, deletions.

A parked request is found again by what it waits for, so that the cost of an event does not grow
with the number of requests that it does not concern.

Left out: when a request is answered (``cluster.serving``).
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

from attrs import define, field

from cluster.messages_data import (
    DeleteRecordsPartitionResult,
    FetchRequest,
    ProducePartitionResult,
)
from cluster.names import TopicIdPartition

__all__ = [
    "DeleteWaiter",
    "ParkedDelete",
    "ParkedFetch",
    "ParkedFetches",
    "ParkedProduce",
    "Waiter",
    "Waiters",
]

RequestKey = tuple[str, int]
"""Who asked, and the correlation id."""


@define(eq=False)
class ParkedProduce:
    """A produce with acks -1 of which some partitions are not committed yet.

    Attributes:
        acks: -1, or 1 where the leader's flush is waited for.
        partitions: in the order of the request.
        results: one each; None while it is waited for.
        waits: how many are None.
        is_answered: before all partitions had a result.
    """

    src: str
    correlation_id: int
    acks: int
    partitions: tuple[TopicIdPartition, ...]
    results: list[ProducePartitionResult | None]
    waits: int
    is_answered: bool = False

    @classmethod
    def begin(
        cls, src: str, correlation_id: int, acks: int, partitions: tuple[TopicIdPartition, ...]
    ) -> ParkedProduce:
        """A request without any result yet."""
        count = len(partitions)
        return cls(src, correlation_id, acks, partitions, [None] * count, count)

    def settle(self, place: int, result: ProducePartitionResult) -> bool:
        """Note one partition's result; returns whether that was the last."""
        if self.results[place] is None:
            self.results[place] = result
            self.waits -= 1
        return self.waits == 0


@define(eq=False)
class ParkedDelete:
    """A deletion that waits until every live replica has raised its log start."""

    src: str
    correlation_id: int
    results: list[DeleteRecordsPartitionResult | None]
    waits: int

    def settle(self, place: int, result: DeleteRecordsPartitionResult) -> bool:
        """Note one partition's result; returns whether that was the last."""
        if self.results[place] is None:
            self.results[place] = result
            self.waits -= 1
        return self.waits == 0


@define(eq=False)
class Waiter:
    """One partition of a produce: ``place`` in its results, and what it waits for."""

    request: ParkedProduce
    place: int
    base_offset: int
    required_offset: int


@define(eq=False)
class DeleteWaiter:
    """One partition of a deletion: done when no live replica's log starts below ``offset``."""

    request: ParkedDelete
    place: int
    offset: int


@define(eq=False)
class Waiters:
    """The produces that wait at one partition, by the offset that each needs.

    One that was answered otherwise stays until it is passed, or until such are the larger half: so
    each costs the same however many there are.
    """

    _heap: list[tuple[int, int, Waiter]] = field(factory=list)
    _taken: int = 0
    _answered: int = 0

    def add(self, waiter: Waiter) -> None:
        """Among those that need the same offset the first comes first."""
        self._taken += 1
        heappush(self._heap, (waiter.required_offset, self._taken, waiter))

    def take_up_to(self, offset: int) -> Iterator[Waiter]:
        """Those that need no more than ``offset``, which leave."""
        heap = self._heap
        while heap and heap[0][0] <= offset:
            waiter = heappop(heap)[2]
            if waiter.request.is_answered:
                self._answered -= 1
            else:
                yield waiter

    def take_all(self) -> Iterator[Waiter]:
        """Everyone, who leaves."""
        while self._heap:
            yield from self.take_up_to(self._heap[0][0])

    def forget(self, count: int) -> None:
        """So many that wait here were answered otherwise."""
        self._answered += count
        if self._answered * 2 > len(self._heap):
            self._heap = [each for each in self._heap if not each[2].request.is_answered]
            heapify(self._heap)
            self._answered = 0

    def waiting(self) -> Iterator[Waiter]:
        """Those that wait for an answer, in no order; to look at."""
        return (waiter for _, _, waiter in self._heap if not waiter.request.is_answered)

    def __len__(self) -> int:
        return len(self._heap) - self._answered


@define(eq=False)
class ParkedFetch:
    """A fetch that has too little to return yet.

    Attributes:
        deadline_us: monotonic clock.
        checks: how often it was found to have too little.
        key: of the request.
    """

    src: str
    request: FetchRequest
    deadline_us: int
    checks: int = 0
    key: RequestKey = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.key = (self.src, self.request.correlation_id)


@define(eq=False)
class ParkedFetches:
    """The fetches that wait at one broker, by request and by partition.

    Replicas and consumers are kept apart: a rise of the high watermark wakes consumers only, and of
    these only such as may have enough bytes by now. One that lacks m bytes in n partitions cannot
    have them before one of the partitions has m / n more.
    """

    _all: dict[RequestKey, ParkedFetch] = field(factory=dict)
    _replicas: dict[TopicIdPartition, dict[RequestKey, ParkedFetch]] = field(factory=dict)
    _consumers: dict[TopicIdPartition, dict[RequestKey, ParkedFetch]] = field(factory=dict)
    _due: dict[TopicIdPartition, list[tuple[int, int, int, ParkedFetch]]] = field(factory=dict)
    _shown_bytes: dict[TopicIdPartition, int] = field(factory=dict)
    _count: int = 0

    def _index(self, parked: ParkedFetch) -> dict[TopicIdPartition, dict[RequestKey, ParkedFetch]]:
        return self._replicas if parked.request.replica_id else self._consumers

    def add(self, parked: ParkedFetch, missing_bytes: int) -> None:
        self._all[parked.key] = parked
        index = self._index(parked)
        for asked in parked.request.partitions:
            index.setdefault(asked.partition, {})[parked.key] = parked
        self.wait_on(parked, missing_bytes)

    def wait_on(self, parked: ParkedFetch, missing_bytes: int) -> None:
        """It still lacks so many bytes, 1 or more."""
        if parked.request.replica_id:
            return
        parked.checks += 1
        partitions = {asked.partition for asked in parked.request.partitions}
        share = -(-missing_bytes // max(1, len(partitions)))
        for partition in sorted(partitions):
            self._count += 1
            due = self._shown_bytes.get(partition, 0) + share
            heap = self._due.setdefault(partition, [])
            heappush(heap, (due, self._count, parked.checks, parked))
            if len(heap) > 16 + 2 * len(self._consumers.get(partition, ())):
                heap[:] = [each for each in heap if self._is_waiting(each[3], each[2])]
                heapify(heap)

    def _is_waiting(self, parked: ParkedFetch, checks: int) -> bool:
        return self._all.get(parked.key) is parked and parked.checks == checks

    def grown(self, partition: TopicIdPartition, size_bytes: int) -> list[ParkedFetch]:
        """Consumers may read so many bytes more: those who may have enough, oldest first."""
        heap = self._due.get(partition)
        if heap is None:
            return []
        shown = self._shown_bytes[partition] = self._shown_bytes.get(partition, 0) + size_bytes
        found = []
        while heap and heap[0][0] <= shown:
            _, number, checks, parked = heappop(heap)
            if self._is_waiting(parked, checks):
                found.append((number, parked))
        if not heap:
            del self._due[partition], self._shown_bytes[partition]
        return [parked for _, parked in sorted(found, key=lambda each: each[0])]

    def remove(self, key: RequestKey) -> ParkedFetch | None:
        """Forget a request; None if it does not wait."""
        parked = self._all.pop(key, None)
        if parked is not None:
            index = self._index(parked)
            for asked in parked.request.partitions:
                waiting = index.get(asked.partition)
                if waiting is not None:
                    waiting.pop(key, None)
                    if not waiting:
                        del index[asked.partition]
                        if index is self._consumers:
                            self._due.pop(asked.partition, None)
                            self._shown_bytes.pop(asked.partition, None)
        return parked

    def at(
        self, partition: TopicIdPartition, *, replicas: bool, consumers: bool
    ) -> list[ParkedFetch]:
        """Who waits at a partition, oldest first."""
        found: list[ParkedFetch] = []
        if replicas:
            found += self._replicas.get(partition, {}).values()
        if consumers:
            found += self._consumers.get(partition, {}).values()
        return found

    def of(self, src: str) -> list[ParkedFetch]:
        """Those that one node sent, oldest first."""
        return [parked for parked in self._all.values() if parked.src == src]

    def __contains__(self, key: RequestKey) -> bool:
        return key in self._all

    def __len__(self) -> int:
        return len(self._all)
