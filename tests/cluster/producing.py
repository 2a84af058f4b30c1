"""A producer over a fake cluster, and short words for what its tests do."""

from __future__ import annotations

from typing import Any

from cluster.config import ProducerConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.messages_control import InitProducerIdRequest
from cluster.messages_data import (
    MetadataRequest,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
)
from cluster.outcomes import Outcome
from cluster.producer import Producer
from storage import Record, RecordBatch, decode_batch
from tests.cluster.driver import Driver
from tests.cluster.fake_cluster import BROKERS, CONTROLLER, TOPIC, FakeCluster

QUICK = {"request_timeout_ms": 1_000, "delivery_timeout_ms": 10_000}


class Producing:
    """One producer, its driver, and the cluster that answers it."""

    def __init__(self, partitions: int = 1, *, guards: Guards | None = None, **config: Any) -> None:
        self.cluster = FakeCluster(partitions)
        values = {"batch_max_records": 1, **QUICK, **config}
        self.producer = Producer(
            "p1",
            ProducerConfig(**values),
            brokers=BROKERS,
            controller=CONTROLLER,
            guards=guards or Guards(),
        )
        self.driver = Driver(self.producer)
        self._outcomes: list[Outcome] = []

    def start(self) -> Producing:
        """Get the producer id and the metadata."""
        self.serve(InitProducerIdRequest)
        self.send(b"first")
        self.driver.advance(us=0)
        self.serve(MetadataRequest)
        self.driver.advance(us=0)
        self.serve(ProduceRequest)
        self._outcomes += self.outcomes()
        return self

    def send(self, value: bytes, partition: int | None = 0, key: bytes | None = None) -> int:
        record = Record(key, value, 0)
        operation: int = self.driver.call(self.producer.send, TOPIC, record, partition=partition)
        return operation

    def requests(self) -> list[tuple[str, ProduceRequest]]:
        return self.driver.take(ProduceRequest)

    def request(self) -> ProduceRequest:
        return self.driver.take_one(ProduceRequest)[1]

    def serve(self, kind: type[Any]) -> None:
        """Answer all requests of a kind as the cluster does."""
        for to, request in self.driver.take(kind):
            self.driver.answer(to, self.cluster.answer(to, request))

    def fail(self, request: ProduceRequest, error: ErrorCode, *, src: str = "b1") -> None:
        """Answer all its partitions with an error; nothing is appended."""
        results = tuple(ProducePartitionResult(p.partition, error) for p in request.partitions)
        self.driver.answer(src, ProduceResponse(request.correlation_id, results))

    def apply(self, request: ProduceRequest, *, to: str = "b1") -> ProduceResponse:
        """Let the leader have it, and keep the answer."""
        return self.cluster.produce(to, request)

    def outcomes(self) -> list[Outcome]:
        return self.producer.take_outcomes()

    def settle(self, ms: int = 30_000) -> list[Outcome]:
        """Answer everything, for so long; the outcomes."""
        for _ in range(ms // 10):
            for to, request in self.driver.take(object):  # type: ignore[type-var]
                self.driver.answer(to, self.cluster.answer(to, request))
            self.driver.advance(ms=10)
        return self.outcomes()


def batch_of(request: ProduceRequest, number: int = 0) -> RecordBatch:
    return decode_batch(request.partitions[number].records)


def values_of(request: ProduceRequest) -> list[bytes | None]:
    return [record.value for record in batch_of(request).records]


def sequence_of(request: ProduceRequest) -> tuple[int, int]:
    """Producer epoch and base sequence of its first batch."""
    batch = batch_of(request)
    return batch.producer_epoch, batch.base_sequence
