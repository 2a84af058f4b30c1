"""A consumer over a fake cluster, and short words for what its tests do."""

from __future__ import annotations

from typing import Any

from cluster.config import ConsumerConfig
from cluster.consumer import Consumer
from cluster.consumer_events import ConsumerEvent, PolledRecord
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import FetchPartitionResult, FetchRequest, FetchResponse
from storage import Record, RecordBatch
from tests.cluster.driver import Driver
from tests.cluster.fake_cluster import BROKERS, CONTROLLER, TOPIC, FakeCluster


def batch(*values: bytes) -> RecordBatch:
    return RecordBatch.unassigned([Record(None, value, 5) for value in values])


class Consuming:
    """One consumer, its driver, and the cluster that answers it."""

    def __init__(
        self,
        partitions: int = 1,
        *,
        guards: Guards | None = None,
        cluster: FakeCluster | None = None,
        **config: Any,
    ) -> None:
        self.cluster = cluster or FakeCluster(partitions)
        values = {"auto_offset_reset": "earliest", "request_timeout_ms": 1_000, **config}
        self.consumer = Consumer(
            "k1",
            ConsumerConfig(**values),
            brokers=BROKERS,
            controller=CONTROLLER,
            guards=guards or Guards(),
        )
        self.driver = Driver(self.consumer)

    def assign(self, *partitions: int) -> None:
        wanted = tuple((TOPIC, number) for number in partitions or (0,))
        self.driver.call(self.consumer.assign, wanted)

    def seek(self, offset: int, leader_epoch: int = -1, *, partition: int = 0) -> None:
        self.driver.call(self.consumer.seek, TOPIC, partition, offset, leader_epoch)

    def serve(self, kind: type[Any]) -> None:
        """Answer all requests of a kind as the cluster does."""
        for to, request in self.driver.take(kind):
            self.driver.answer(to, self.cluster.answer(to, request))

    def run(self, ms: int = 1_000) -> None:
        """Answer everything at once, one round every ten milliseconds."""
        for _ in range(ms // 10):
            self.serve(Message)
            self.driver.advance(ms=10)

    def until(self, kind: type[Any]) -> tuple[str, Any]:
        """Answer all else until a request of a kind is there, which is the test's."""
        for _ in range(1_000):
            found = self.driver.take(kind)
            if found:
                assert len(found) == 1
                return found[0]
            self.serve(Message)
            self.driver.advance(ms=10)
        raise AssertionError(f"no {kind.__name__}")

    def fetch_fails(self, error: ErrorCode) -> None:
        """The next fetch gets an error for every partition."""
        to, request = self.until(FetchRequest)
        results = tuple(FetchPartitionResult(p.partition, error) for p in request.partitions)
        self.driver.answer(to, FetchResponse(request.correlation_id, results))

    def fetch_returns(self, records: bytes) -> FetchRequest:
        """The next fetch gets these bytes for its only partition."""
        to, request = self.until(FetchRequest)
        (asked,) = request.partitions
        result = FetchPartitionResult(asked.partition, ErrorCode.NONE, 99, 99, 0, records=records)
        self.driver.answer(to, FetchResponse(request.correlation_id, (result,)))
        return request

    def poll(self, max_records: int | None = None) -> list[PolledRecord]:
        return self.consumer.poll(max_records)

    def values(self) -> list[bytes | None]:
        """Of all records that can be polled now."""
        return [record.value for record in self.poll(10**6)]

    def position(self, partition: int = 0) -> int:
        return self.consumer.position(TOPIC, partition)

    def events(self) -> list[ConsumerEvent]:
        return self.consumer.take_events()

    def fields(self) -> dict[str, Any]:
        return dict(self.consumer.fields())


def filled(count: int = 5, **config: object) -> Consuming:
    """A consumer that has read ``count`` records of epoch 0."""
    k = Consuming(**config)  # type: ignore[arg-type]
    k.cluster[0].append(*[batch(b"%d" % number) for number in range(count)])
    k.assign()
    k.run()
    if k.fields()["t-0/phase"] == "failed":
        k.seek(0)
        k.run()
    assert len(k.values()) == count
    k.events()
    return k
