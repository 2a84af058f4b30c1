"""How a producer's operations end: acked, rejected or unknown (FAULTS D.1), and what comes between.

Whatever is said of an operation is compared with the log.
"""

from __future__ import annotations

import pytest

from cluster.client_requests import backoff_us
from cluster.errors import ErrorCode
from cluster.messages_data import (
    MetadataRequest,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import TopicIdPartition
from cluster.outcomes import Outcome, OutcomeKind
from tests.cluster.producing import Producing

ACKED, REJECTED, UNKNOWN = OutcomeKind
FINAL = [error for error in ErrorCode if not error.is_retriable and error is not ErrorCode.NONE]
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a7_answer_without_error_is_acked_with_the_offset_of_each_record() -> None:
    p = Producing(batch_max_records=2).start()
    operations = [p.send(value) for value in (b"a", b"b")]
    (request,) = [request for _, request in p.requests()]
    p.driver.answer("b1", p.apply(request))
    name = p.cluster.name()
    assert p.outcomes() == [
        Outcome(operations[0], ACKED, name, 1),
        Outcome(operations[1], ACKED, name, 2),
    ]
    assert p.cluster[0].values() == [b"first", b"a", b"b"]


@pytest.mark.parametrize("error", FINAL, ids=lambda error: error.name)
def test_final_error_on_the_first_attempt_is_rejected_only_if_definite(error: ErrorCode) -> None:
    p = Producing(acks=1, enable_idempotence=False).start()
    p.send(b"v")
    p.fail(p.request(), error)
    (outcome,) = p.outcomes()
    is_definite = error.is_definite or error is ErrorCode.INVALID_PRODUCER_EPOCH
    assert outcome.kind is (REJECTED if is_definite or error is OUT_OF_ORDER else UNKNOWN)
    assert outcome.error_code is error
    assert outcome.offset == -1


def test_definite_error_behind_a_doubtful_one_is_unknown() -> None:
    p = Producing().start()
    p.send(b"v")
    p.fail(p.request(), ErrorCode.REQUEST_TIMED_OUT)
    p.driver.advance(ms=100)
    p.fail(p.request(), ErrorCode.INVALID_RECORD)
    (outcome,) = p.outcomes()
    assert (outcome.kind, outcome.error_code) == (UNKNOWN, ErrorCode.INVALID_RECORD)


def test_fenced_producer_epoch_behind_a_doubtful_attempt_is_unknown() -> None:
    p = Producing().start()
    p.send(b"v")
    p.fail(p.request(), ErrorCode.REQUEST_TIMED_OUT)
    p.driver.advance(ms=100)
    p.fail(p.request(), ErrorCode.INVALID_PRODUCER_EPOCH)
    assert [outcome.kind for outcome in p.outcomes()] == [UNKNOWN]


def test_retriable_errors_are_tried_again_until_it_works() -> None:
    p = Producing().start()
    p.send(b"v")
    bytes_seen = []
    for error in (
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.KAFKA_STORAGE_ERROR,
    ):
        request = p.request()
        bytes_seen.append(request.partitions[0].records)
        p.fail(request, error)
        p.driver.advance(ms=1_000)
        p.serve(MetadataRequest)
    assert len(set(bytes_seen)) == 1
    p.driver.answer("b1", p.apply(p.request()))
    assert [outcome.kind for outcome in p.outcomes()] == [ACKED]


def test_back_off_doubles_up_to_its_limit() -> None:
    p = Producing(retry_backoff_ms=100, retry_backoff_max_ms=300).start()
    p.send(b"v")
    for wait_ms in (100, 200, 300, 300):
        p.fail(p.request(), ErrorCode.NOT_ENOUGH_REPLICAS)
        p.driver.advance(us=wait_ms * 1_000 - 1)
        p.serve(MetadataRequest)
        assert p.requests() == []
        p.driver.advance(us=1)
    assert len(p.requests()) == 1
    assert backoff_us(10**6, 100, 1_000) == 1_000


def test_error_that_is_retriable_asks_for_metadata() -> None:
    p = Producing().start()
    p.send(b"v")
    request = p.request()
    p.cluster.elect(0, "b2")
    p.driver.advance(ms=500)
    p.driver.answer("b1", p.apply(request))
    p.driver.advance(us=0)
    p.serve(MetadataRequest)
    p.driver.advance(ms=100)
    assert p.driver.take_one(ProduceRequest)[0] == "b2"


def test_no_answer_is_in_doubt_and_tried_again() -> None:
    p = Producing().start()
    p.send(b"v")
    request = p.request()
    p.driver.advance(ms=1_000)
    late = p.apply(request)
    p.driver.advance(ms=100)
    again = p.request()
    assert again.partitions == request.partitions
    assert again.correlation_id != request.correlation_id
    p.driver.answer("b1", late)
    assert p.outcomes() == []
    p.driver.answer("b1", p.apply(again))
    (outcome,) = p.outcomes()
    assert (outcome.kind, outcome.offset) == (ACKED, 1)
    assert p.cluster[0].values() == [b"first", b"v"]


def test_lost_connection_is_noticed_at_once() -> None:
    p = Producing().start()
    p.send(b"v")
    p.request()
    p.driver.disconnect("b2")
    assert p.producer.fields()["in_flight"] == 1
    p.driver.disconnect("b1")
    assert p.producer.fields()["in_flight"] == 0
    p.driver.advance(ms=100)
    assert len(p.requests()) == 1


def test_delivery_timeout_without_a_doubtful_attempt_is_rejected() -> None:
    p = Producing(delivery_timeout_ms=1_000).start()
    p.send(b"v")
    for _ in range(20):
        for _, request in p.requests():
            p.fail(request, ErrorCode.NOT_ENOUGH_REPLICAS)
        p.driver.advance(ms=100)
        p.serve(MetadataRequest)
    (outcome,) = p.outcomes()
    assert (outcome.kind, outcome.error_code) == (REJECTED, ErrorCode.NOT_ENOUGH_REPLICAS)


def test_delivery_timeout_in_flight_is_unknown_and_the_late_answer_is_dropped() -> None:
    p = Producing(delivery_timeout_ms=1_000).start()
    p.send(b"v")
    request = p.request()
    p.driver.advance(ms=999)
    assert p.outcomes() == []
    p.driver.advance(ms=1)
    (outcome,) = p.outcomes()
    assert (outcome.kind, outcome.error_code) == (UNKNOWN, ErrorCode.REQUEST_TIMED_OUT)
    p.driver.answer("b1", p.apply(request))
    assert p.outcomes() == []


def test_without_leader_until_the_delivery_timeout_is_rejected() -> None:
    p = Producing().start()
    p.cluster.elect(0, None)
    p.driver.advance(ms=500)
    p.send(b"v")
    p.fail(p.request(), ErrorCode.LEADER_NOT_AVAILABLE)
    p.driver.advance(us=0)
    p.serve(MetadataRequest)
    (outcome,) = p.settle(11_000)
    assert outcome.kind is REJECTED
    assert p.cluster[0].values() == [b"first"]


def test_a7_acks_0_is_unknown_as_soon_as_it_is_sent() -> None:
    p = Producing(acks=0, enable_idempotence=False)
    sent = [p.send(b"a"), p.send(b"b")]
    p.driver.advance(us=0)
    p.serve(MetadataRequest)
    name = p.cluster.name()
    assert p.outcomes() == [Outcome(operation, UNKNOWN, name) for operation in sent]
    requests = p.requests()
    assert [request.acks for _, request in requests] == [0, 0]
    assert not [key for key in p.driver.timers if key[0] == "request"]


def test_a7_acks_0_that_was_never_sent_is_rejected() -> None:
    p = Producing(acks=0, enable_idempotence=False)
    p.cluster.elect(0, None)
    p.send(b"a")
    (outcome,) = p.settle(11_000)
    assert (outcome.kind, outcome.error_code) == (REJECTED, ErrorCode.REQUEST_TIMED_OUT)


def test_a7_without_idempotence_a_lost_answer_leads_to_a_second_copy() -> None:
    p = Producing(acks=1, enable_idempotence=False).start()
    p.send(b"v")
    p.apply(p.request())
    p.driver.disconnect("b1")
    (outcome,) = p.settle(1_000)
    assert (outcome.kind, outcome.offset) == (ACKED, 2)
    assert p.cluster[0].values() == [b"first", b"v", b"v"]


def test_answer_that_omits_a_partition_leaves_it_in_doubt() -> None:
    p = Producing(partitions=2).start()
    p.settle(100)
    p.send(b"a", partition=0)
    p.driver.advance(us=0)
    request = p.request()
    response = p.apply(request)
    p.driver.answer("b1", ProduceResponse(response.correlation_id, ()))
    assert p.outcomes() == []
    (outcome,) = p.settle(1_000)
    assert (outcome.kind, outcome.offset) == (ACKED, 1)
    assert p.cluster[0].values() == [b"first", b"a"]


@pytest.mark.parametrize("offset", [-1, -(2**63), 2**63 - 1])  # two records do not fit there
def test_success_without_a_possible_offset_is_in_doubt(offset: int) -> None:
    p = Producing(batch_max_records=2).start()
    p.send(b"a")
    p.send(b"b")
    request = p.request()
    result = ProducePartitionResult(p.cluster.name(), ErrorCode.NONE, offset)
    p.driver.answer("b1", ProduceResponse(request.correlation_id, (result,)))
    assert p.outcomes() == []


def test_answers_that_answer_nothing_change_nothing() -> None:
    p = Producing().start()
    p.send(b"v")
    request = p.request()
    good = p.apply(request)
    stranger = TopicIdPartition("B" * 22, "t", 0)
    before = dict(p.producer.fields())
    p.driver.answer("b2", good)
    p.driver.answer("b1", ProduceResponse(good.correlation_id + 1, good.partitions))
    p.driver.answer("b1", p.cluster.metadata(good.correlation_id))
    p.driver.answer("b1", request)
    assert p.producer.fields() == before
    assert p.outcomes() == []
    error = ProducePartitionResult(stranger, ErrorCode.INVALID_RECORD)
    twice = ProducePartitionResult(p.cluster.name(), ErrorCode.INVALID_RECORD)
    answer = ProduceResponse(good.correlation_id, (error, *good.partitions, twice))
    p.driver.answer("b1", answer)
    assert [outcome.kind for outcome in p.outcomes()] == [ACKED]
    p.driver.answer("b1", answer)
    assert p.outcomes() == []
