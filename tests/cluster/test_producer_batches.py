"""How a producer fills, orders and routes batches, and when it sends them.

Each test scripts what the brokers answer; ``tests.cluster.producing`` has the words for it.
"""

from __future__ import annotations

import pytest
from hypothesis import given

from cluster.client_metadata import LeaderAndEpoch
from cluster.config import ProducerConfig
from cluster.errors import ErrorCode
from cluster.messages_data import MetadataRequest, ProduceRequest
from cluster.names import TopicIdPartition
from cluster.outcomes import BufferFull, OutcomeKind, ProducerStopped
from cluster.partitioner import Partitioner
from cluster.producer import Producer
from cluster.producer_batches import FRAME_OVERHEAD_BYTES, record_size_bytes
from storage import Header, Record, RecordBatch, encode_batch
from storage.errors import BatchTooLarge, InvalidRecord
from tests.cluster.driver import Driver
from tests.cluster.fake_cluster import BROKERS, CONTROLLER, TOPIC
from tests.cluster.producing import Producing, batch_of, values_of
from tests.storage.batches import RECORDS


def test_records_of_one_instant_share_a_batch_without_linger() -> None:
    p = Producing(batch_max_records=10).start()
    for value in (b"a", b"b", b"c"):
        p.send(value)
    assert p.requests() == []
    p.driver.advance(us=0)
    request = p.request()
    assert values_of(request) == [b"a", b"b", b"c"]
    batch = batch_of(request)
    assert (batch.base_offset, batch.leader_epoch, batch.base_sequence) == (0, 0, 1)


def test_linger_is_over_batch_leaves() -> None:
    p = Producing(batch_max_records=10, linger_ms=50)
    p.settle(10)
    p.send(b"a")
    p.settle(20)
    assert p.cluster[0].values() == []
    p.settle(50)
    assert p.cluster[0].values() == [b"a"]


def test_full_batch_does_not_linger() -> None:
    p = Producing(batch_max_records=2, linger_ms=5_000, acks=1, enable_idempotence=False)
    p.send(b"a")
    p.settle(30)
    p.send(b"b")
    assert values_of(p.request()) == [b"a", b"b"]


def test_batch_full_by_bytes_closes() -> None:
    size = record_size_bytes(Record(None, b"a" * 100, 0))
    limit = FRAME_OVERHEAD_BYTES + 2 * size
    p = Producing(batch_max_records=10, batch_max_bytes=limit).start()
    for _ in range(3):
        p.send(b"a" * 100)
    first = p.request()
    assert len(batch_of(first).records) == 2
    assert len(first.partitions[0].records) == limit


def test_record_larger_than_a_batch_goes_alone() -> None:
    p = Producing(batch_max_records=10, batch_max_bytes=100).start()
    p.send(b"a")
    p.send(b"b" * 1_000)
    p.send(b"c")
    p.settle(100)
    assert [len(batch.records) for batch in p.cluster[0].log.all_batches()] == [1, 1, 1, 1]


@given(RECORDS)
def test_size_of_a_record_is_that_in_the_frame(record: Record) -> None:
    frame = encode_batch(RecordBatch.unassigned((record,)).assign(0, 0))
    assert len(frame) == FRAME_OVERHEAD_BYTES + record_size_bytes(record)


def test_equal_keys_go_to_one_partition() -> None:
    p = Producing(partitions=3)
    for number in range(30):
        p.send(b"%d" % number, partition=None, key=b"k%d" % (number % 5))
    p.settle(2_000)
    places: dict[bytes | None, set[int]] = {}
    for number in range(3):
        for batch in p.cluster[number].log.all_batches():
            for record in batch.records:
                places.setdefault(record.key, set()).add(number)
    assert sorted(places) == [b"k%d" % number for number in range(5)]
    assert all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) > 1


def test_records_without_key_change_partition_with_the_batch() -> None:
    p = Producing(partitions=3, batch_max_records=2)
    p.settle(10)
    for number in range(6):
        p.send(b"%d" % number, partition=None)
    p.settle(1_000)
    assert [p.cluster[number].values() for number in range(3)] == [
        [b"0", b"1"],
        [b"2", b"3"],
        [b"4", b"5"],
    ]


def test_record_without_key_avoids_partitions_without_leader() -> None:
    names = [TopicIdPartition("A" * 22, "t", number) for number in range(3)]
    known = [LeaderAndEpoch(name, "b1" if name.partition == 1 else None, 0) for name in names]
    choose = Partitioner().choose
    assert [choose("t", None, known, has_room=lambda _: False) for _ in range(2)] == [1, 1]
    nobody = [LeaderAndEpoch(name, None, 0) for name in names]
    assert choose("t", None, nobody, has_room=lambda _: False) == 2


def test_request_has_one_batch_of_each_partition_of_a_leader() -> None:
    p = Producing(partitions=3)
    p.cluster.elect(2, "b2")
    p.start()
    for number in (0, 1, 2):
        p.send(b"%d" % number, partition=number)
    p.driver.advance(us=0)
    found = {(to, each.partition.partition) for to, r in p.requests() for each in r.partitions}
    assert found == {("b1", 0), ("b1", 1), ("b2", 2)}


def test_requests_in_flight_to_a_broker_are_bounded() -> None:
    p = Producing(max_in_flight_requests_per_connection=2).start()
    for number in range(5):
        p.send(b"%d" % number)
    first, second = [request for _, request in p.requests()]
    p.driver.answer("b1", p.apply(first))
    p.driver.answer("b1", p.apply(second))
    assert len(p.requests()) == 2


def test_record_that_cannot_be_encoded_is_refused_at_once() -> None:
    p = Producing().start()
    with pytest.raises(InvalidRecord, match="key"):
        p.driver.call(p.producer.send, TOPIC, Record("k", b"v", 0))  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord, match="header"):
        p.driver.call(p.producer.send, TOPIC, Record(None, b"v", 0, (Header("\ud800", None),)))
    with pytest.raises(BatchTooLarge):
        p.send(bytes(17 << 20))
    with pytest.raises(ValueError, match="partition is -1"):
        p.send(b"v", partition=-1)
    assert p.producer.fields()["buffered"] == 0


def test_full_buffer_refuses_until_there_are_outcomes() -> None:
    p = Producing(buffer_max_records=2).start()
    p.send(b"a")
    p.send(b"b")
    with pytest.raises(BufferFull, match="buffer_max_records is 2"):
        p.send(b"c")
    assert len(p.settle(100)) == 2
    p.send(b"c")


def test_topic_that_never_is_known_is_rejected() -> None:
    p = Producing()
    operation = p.send(b"v")
    p.driver.advance(ms=10_000)
    (outcome,) = p.outcomes()
    assert outcome.operation == operation
    assert (outcome.kind, outcome.partition) == (OutcomeKind.REJECTED, None)


def test_partition_that_the_topic_lacks_is_awaited_and_then_rejected() -> None:
    p = Producing().start()
    p.send(b"v", partition=4)
    p.settle(5_000)
    assert p.outcomes() == []
    (outcome,) = p.settle(6_000)
    assert outcome.kind is OutcomeKind.REJECTED
    assert outcome.error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_metadata_is_asked_of_the_next_broker_when_one_is_silent() -> None:
    p = Producing()
    p.send(b"v")
    p.driver.advance(us=0)
    assert p.driver.take_one(MetadataRequest)[0] == "b1"
    p.driver.advance(ms=1_000)
    assert p.driver.take_one(MetadataRequest)[0] == "b2"
    p.driver.disconnect("b2")
    p.driver.advance(ms=1_000)
    assert p.driver.take_one(MetadataRequest)[0] == "b3"


def test_metadata_is_asked_again_when_it_is_old() -> None:
    p = Producing(metadata_max_age_ms=3_000).start()
    p.driver.advance(ms=2_999)
    assert p.driver.take(MetadataRequest) == []
    p.driver.advance(ms=1)
    assert len(p.driver.take(MetadataRequest)) == 1


def test_stop_sends_what_lingers_and_ends_when_all_is_known() -> None:
    p = Producing(batch_max_records=10, linger_ms=5_000)
    p.settle(10)
    p.send(b"a")
    p.settle(100)
    p.driver.call(p.producer.on_stop)
    with pytest.raises(ProducerStopped):
        p.send(b"b")
    assert not p.driver.is_stopped
    (outcome,) = p.settle(200)
    assert outcome.kind is OutcomeKind.ACKED
    assert p.driver.is_stopped
    assert p.driver.timers == {}


def test_correlation_ids_of_two_lives_differ() -> None:
    ids = []
    for incarnation in (0, 1):
        config = ProducerConfig()
        producer = Producer(
            "p1", config, brokers=BROKERS, controller=CONTROLLER, incarnation=incarnation
        )
        ids += [message.correlation_id for _, message in Driver(producer).sent]
    assert len(set(ids)) == 2


def test_fields_show_queues_and_identity() -> None:
    p = Producing().start()
    p.send(b"a")
    fields = p.producer.fields()
    assert fields["producer_id"] == 7
    assert fields["t-0/queued"] == 1
    assert fields["t-0/next_sequence"] == 2
    assert fields["t-0/leader"] == "b1"
    assert len(p.driver.take(ProduceRequest)) == 1
