"""The cluster bench: what one acks=all produce over three replicas costs, machines alone.

Three brokers on disks in memory; the loop that carries their effects out does nothing else: no
latency, no timers, no trace. A produce is six deliveries: the request, two fetch responses, two
fetches, the answer. Beside it runs a bare heap loop with as many callbacks that do nothing.

Each row with others waiting has so many requests parked at the leader while the produces run; what
a produce costs must not grow with what it does not concern. The other partitions have a follower
that never comes, so produces to them wait for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heapify, heappush, heappushpop
from typing import Any

from attrs import evolve

from cluster.broker import Broker
from cluster.effects import Background, Effects, Fsync, Reply, Send
from cluster.message import Message
from cluster.messages_data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    IsolationLevel,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from tests.bench.measure import CPU, Scale, Subject, race
from tests.bench.report import Report, below, timed
from tests.cluster.scripted import ORDERS, TOPIC_ID, Cluster, frame_of

__all__ = ["DELIVERIES", "Produces", "facts", "run"]

DELIVERIES = 6
QUEUED = 64
BUDGET_S = 400e-6
WAITING = (0, 10, 100, 1_000)
FRESH_BYTES = 4 << 20
RECORD = b"v" * 100
FLUSH = {"flush.messages": "1"}
FAR_US = 10**15


def facts() -> dict[str, Any]:
    """Nothing beyond what every bench says."""
    return {}


class Loop:
    """Three brokers, ``b1`` leading ``orders-0``, and the messages between them.

    Attributes:
        deliveries: how many messages were delivered.
        answers: how many produces were answered.
    """

    def __init__(self, topic: dict[str, str], others: int) -> None:
        cluster = Cluster(3, topic=topic)
        cluster.lead("b1")
        cluster.decide(
            *(
                PartitionRecord(_other(n), ("b1", "b4"), ("b1", "b4"), "b1", 0, 0)
                for n in range(1, others + 1)
            )
        )
        cluster.router.settle()
        self.brokers = {name: cluster.broker(name) for name in cluster.names}
        self.queue: deque[tuple[str, str, Message]] = deque()
        self.deliveries = self.answers = 0
        self._fx = Effects()
        self._now = cluster.router.now
        self._number = 1 << 20
        self._timers: dict[Any, int] = {}

    def produce(self, frame: bytes, partition: TopicIdPartition = ORDERS) -> None:
        self._number += 1
        part = (ProducePartition(partition, frame),)
        self.queue.append(("p1", "b1", ProduceRequest(self._number, -1, 30_000, part)))

    def fetch(
        self, partition: TopicIdPartition, offset: int, min_bytes: int, replica: str = ""
    ) -> None:
        self._number += 1
        part = (FetchPartition(partition, -1, offset),)
        isolation = IsolationLevel.READ_UNCOMMITTED
        request = FetchRequest(self._number, replica, -1, FAR_US, min_bytes, 1, isolation, part)
        self.queue.append((replica or "k1", "b1", request))

    def settle(self) -> None:
        """Deliver until nothing is under way."""
        queue, brokers, fx = self.queue, self.brokers, self._fx
        while queue:
            src, dst, message = queue.popleft()
            self.deliveries += 1
            broker = brokers.get(dst)
            if broker is None:
                self.answers += type(message) is ProduceResponse
                continue
            broker.on_message(self._now, src, message, fx)
            self._carry_out(dst, broker)

    def _carry_out(self, name: str, broker: Broker) -> None:
        for effect in self._fx.drain():
            kind = type(effect)
            if kind is Send:
                self.queue.append((name, effect.to, effect.message))
            elif kind is Reply:
                message = effect.message
                if type(message) is FetchResponse:
                    message = self._filled(broker, message)
                self.queue.append((name, effect.to, message))
            elif kind is Fsync:
                broker.on_synced(self._now, effect.token, self._fx)
                self._carry_out(name, broker)
            elif kind is Background:
                broker.on_background(self._now, effect.partition, effect.work, self._fx)
                self._carry_out(name, broker)

    def _filled(self, broker: Broker, message: FetchResponse) -> FetchResponse:
        filled = []
        for result in message.partitions:
            if result.range_ref is not None:
                data = broker.read_range_ref(result.range_ref)
                assert data is not None
                result = result._replace(records=data, range_ref=None)
            filled.append(result)
        return evolve(message, partitions=tuple(filled))


def _other(number: int) -> TopicIdPartition:
    return TopicIdPartition(TOPIC_ID, "orders", number)


Park = Callable[[Loop, int], None]


class Produces:
    """One produce after the other, each answered before the next; ``park`` fills the leader."""

    def __init__(
        self,
        records: int = 1,
        *,
        topic: dict[str, str] | None = None,
        park: Park | None = None,
        waiting: int = 0,
        others: int = 0,
    ) -> None:
        self._frame = frame_of(*[RECORD] * records)
        self._how = (topic or {}, others)
        self._park, self._waiting = park, waiting
        self._written = FRESH_BYTES
        self.loop: Loop

    def prepare(self, count: int) -> None:
        if self._written < FRESH_BYTES:
            return
        self._written = 0
        self.loop = Loop(*self._how)
        if self._park is not None:
            self._park(self.loop, self._waiting)
            self.loop.settle()
        self.run(3)

    def run(self, count: int) -> None:
        loop, frame = self.loop, self._frame
        before = loop.answers
        for _ in range(count):
            loop.produce(frame)
            loop.settle()
        assert loop.answers == before + count
        self._written += count * len(frame)


class Behind:
    """Of one partition ``depth`` produces wait: one more comes, the oldest is committed."""

    def __init__(self, depth: int) -> None:
        self._frame = frame_of(RECORD)
        self._depth = depth
        self._written = FRESH_BYTES
        self.loop: Loop

    def prepare(self, count: int) -> None:
        if self._written < FRESH_BYTES:
            return
        self._written = 0
        self.loop = Loop({}, 0)
        del self.loop.brokers["b2"], self.loop.brokers["b3"]
        for _ in range(self._depth):
            self.loop.produce(self._frame)
        self.loop.settle()
        self._committed = 0

    def run(self, count: int) -> None:
        loop = self.loop
        before = loop.answers
        for _ in range(count):
            self._committed += 1
            loop.produce(self._frame)
            for name in ("b2", "b3"):
                loop.fetch(ORDERS, self._committed, 1, name)
            loop.settle()
        assert loop.answers == before + count
        self._written += count * len(self._frame)


class Heap:
    """As many callbacks as a produce has deliveries, from a heap, doing nothing."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Callable[[], None]]] = [
            (n, n, _nothing) for n in range(QUEUED)
        ]
        heapify(self._heap)
        self._next = QUEUED

    def run(self, count: int) -> None:
        heap, number = self._heap, self._next
        item = (number, number, _nothing)
        for _ in range(count * DELIVERIES):
            _, _, callback = heappushpop(heap, item)
            callback()
            number += 1
            item = (number, number, _nothing)
        heappush(heap, item)
        heap.pop()
        self._next = number


def _nothing() -> None:
    return


def _fetches_elsewhere(loop: Loop, waiting: int) -> None:
    for number in range(waiting):
        loop.fetch(_other(1 + number % 10), 0, 1)


def _produces_elsewhere(loop: Loop, waiting: int) -> None:
    frame = frame_of(RECORD)
    for number in range(waiting):
        loop.produce(frame, _other(1 + number % 10))


def _fetches_here(loop: Loop, waiting: int) -> None:
    for _ in range(waiting):
        loop.fetch(ORDERS, 0, 1 << 40)


def run(scale: Scale, report: Report) -> None:
    """Measure everything, section by section."""
    report.note("The reference is a heap loop with 64 queued callbacks, six of which are run.")
    report.note("CPU time of one thread; the budget is 400 µs a produce.")
    subjects: list[tuple[str, str, Any]] = [
        ("produce", "acks=all, 1 record of 100 B", Produces()),
        ("produce", "acks=all, 10 records of 100 B", Produces(10)),
        ("produce", "acks=all, 100 records of 100 B", Produces(100)),
        ("produce", "acks=all, 1 record, flush.messages 1", Produces(topic=FLUSH)),
    ]
    for waiting in WAITING:
        what = f"{waiting:,} fetches of other partitions wait"
        subject: Any = Produces(park=_fetches_elsewhere, waiting=waiting, others=10)
        subjects.append(("fetches elsewhere", what, subject))
    for waiting in WAITING:
        what = f"{waiting:,} produces of other partitions wait"
        subject = Produces(park=_produces_elsewhere, waiting=waiting, others=10)
        subjects.append(("produces elsewhere", what, subject))
    for waiting in WAITING:
        what = f"{waiting:,} fetches of the same partition wait for more bytes"
        subjects.append(("fetches here", what, Produces(park=_fetches_here, waiting=waiting)))
    for waiting in WAITING[1:]:
        what = f"{waiting:,} produces of the same partition wait"
        subjects.append(("produces here", what, Behind(waiting)))
    heap = Heap()
    for group, what, subject in subjects:
        took, reference = race(
            scale, Subject(subject.run, subject.prepare), Subject(heap.run), clock=CPU
        )
        report.add(
            timed(
                group,
                what,
                took,
                reference_s=reference,
                of="heap loop",
                budget=below(BUDGET_S, "s"),
            )
        )
