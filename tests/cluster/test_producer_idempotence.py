"""Numbers of batches: what a retry keeps, in which order batches go, when a new epoch begins.

PROTOCOL A18; hazard B-52 with its guard off and on. The log of the fake cluster recognises retries
as a real one does.
"""

from __future__ import annotations

from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.messages_control import InitProducerIdRequest, InitProducerIdResponse
from cluster.messages_data import MetadataRequest, ProduceRequest
from cluster.outcomes import OutcomeKind
from cluster.producer_identity import PRODUCER_EPOCH_MAX
from tests.cluster.fake_cluster import FakeCluster
from tests.cluster.producing import Producing, sequence_of, values_of

ACKED, REJECTED, UNKNOWN = OutcomeKind
TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT


def test_a18_nothing_is_sent_before_there_is_a_producer_id() -> None:
    p = Producing()
    p.send(b"v")
    p.driver.advance(us=0)
    p.serve(MetadataRequest)
    p.driver.advance(ms=10)
    assert p.requests() == []
    to, request = p.driver.take_one(InitProducerIdRequest)
    assert to == "c1"
    for bad in (
        InitProducerIdResponse(request.correlation_id, ErrorCode.NOT_CONTROLLER),
        InitProducerIdResponse(request.correlation_id, ErrorCode.NONE, -1, 0),
        InitProducerIdResponse(request.correlation_id, ErrorCode.NONE, 7, -1),
        InitProducerIdResponse(request.correlation_id, ErrorCode.NONE, 7, 2**15),
    ):
        answer = InitProducerIdResponse(
            request.correlation_id, bad.error_code, bad.producer_id, bad.producer_epoch
        )
        p.driver.answer("c1", answer)
        p.driver.advance(ms=1_000)
        request = p.driver.take_one(InitProducerIdRequest)[1]
    p.driver.answer("c1", p.cluster.answer("c1", request))
    assert len(p.requests()) == 1


def test_a18_five_batches_are_in_flight_once_the_first_is_acknowledged() -> None:
    p = Producing()
    p.settle(20)
    for number in range(7):
        p.send(b"%d" % number)
    p.driver.advance(us=0)
    p.serve(MetadataRequest)
    p.driver.advance(us=0)
    first = p.request()
    p.driver.answer("b1", p.apply(first))
    requests = [request for _, request in p.requests()]
    assert [sequence_of(request) for request in requests] == [(0, n) for n in range(1, 6)]


def test_a18_failed_batches_go_again_in_order_and_alone() -> None:
    p = Producing().start()
    for number in range(3):
        p.send(b"%d" % number)
    requests = [request for _, request in p.requests()]
    p.fail(requests[0], ErrorCode.NOT_ENOUGH_REPLICAS)
    for request in requests[1:]:
        p.driver.answer("b1", p.apply(request))
    assert p.cluster[0].values() == [b"first"]
    p.send(b"3")
    p.driver.advance(ms=100)
    order = []
    for _ in range(4):
        request = p.request()
        order.append(values_of(request)[0])
        p.driver.answer("b1", p.apply(request))
        p.driver.advance(ms=100)
    assert order == [b"0", b"1", b"2", b"3"]
    assert p.producer.fields()["producer_epoch"] == 0
    assert p.cluster[0].values() == [b"first", b"0", b"1", b"2", b"3"]
    assert [outcome.kind for outcome in p.outcomes()] == [ACKED] * 4


def test_a18_answers_out_of_order_are_taken_as_they_come() -> None:
    p = Producing().start()
    for number in range(3):
        p.send(b"%d" % number)
    answers = [p.apply(request) for _, request in p.requests()]
    for answer in reversed(answers):
        p.driver.answer("b1", answer)
    assert [(o.kind, o.offset) for o in p.outcomes()] == [(ACKED, 3), (ACKED, 2), (ACKED, 1)]


def test_a18_window_is_five_batches_from_the_oldest_without_an_answer() -> None:
    p = Producing().start()
    for number in range(8):
        p.send(b"%d" % number)
    requests = [request for _, request in p.requests()]
    assert len(requests) == 5
    held = p.apply(requests[0])
    for request in requests[1:]:
        p.driver.answer("b1", p.apply(request))
    assert p.requests() == []
    p.driver.answer("b1", held)
    assert len(p.requests()) == 3


def test_a18_lost_answers_do_not_duplicate() -> None:
    p = Producing().start()
    for number in range(5):
        p.send(b"%d" % number)
    for _, request in p.requests():
        p.apply(request)
    p.driver.disconnect("b1")
    outcomes = p.settle(3_000)
    assert [(o.kind, o.offset) for o in outcomes] == [(ACKED, n) for n in range(1, 6)]
    assert p.cluster[0].values() == [b"first", b"0", b"1", b"2", b"3", b"4"]


def test_a18_batches_wait_for_those_at_an_old_leader() -> None:
    p = Producing().start()
    p.send(b"0")
    held = p.request()
    p.cluster.elect(0, "b2")
    p.send(b"1")
    again = p.requests()
    assert [to for to, _ in again] == ["b1"]
    p.fail(again[0][1], ErrorCode.NOT_LEADER_OR_FOLLOWER)
    p.driver.advance(ms=200)
    p.serve(MetadataRequest)
    p.driver.advance(ms=100)
    assert p.requests() == []
    p.driver.answer("b1", p.apply(held))
    assert [o.kind for o in p.settle(1_000)] == [ACKED, ACKED]
    assert p.cluster[0].values() == [b"first", b"0", b"1"]


def test_a18_fenced_epoch_is_left_behind() -> None:
    p = Producing().start()
    p.send(b"fenced")
    p.fail(p.request(), ErrorCode.INVALID_PRODUCER_EPOCH)
    assert [outcome.kind for outcome in p.outcomes()] == [REJECTED]
    p.send(b"v")
    assert sequence_of(p.request()) == (1, 0)


def test_a18_new_batch_waits_for_those_at_an_old_leader() -> None:
    p = Producing(metadata_max_age_ms=500).start()
    p.send(b"0")
    held = p.request()
    p.cluster.elect(0, "b2")
    p.driver.advance(ms=500)
    p.serve(MetadataRequest)
    assert p.producer.fields()["t-0/leader"] == "b2"
    p.send(b"1")
    assert p.requests() == []
    p.driver.answer("b1", p.apply(held))
    p.settle(1_000)
    assert p.cluster[0].values() == [b"first", b"0", b"1"]


def test_a18_new_batches_of_all_partitions_wait_for_the_new_epoch() -> None:
    p = Producing(partitions=2).start()
    p.send(b"a", partition=1)
    p.driver.advance(us=0)
    p.driver.answer("b1", p.apply(p.request()))
    for value in (b"bad", b"x"):
        p.send(value)
    bad, x = [request for _, request in p.requests()]
    p.fail(bad, ErrorCode.INVALID_RECORD)
    p.send(b"b", partition=1)
    p.driver.advance(ms=10)
    assert p.requests() == []
    p.driver.answer("b1", p.apply(x))
    p.settle(1_000)
    assert p.cluster[0].values() == [b"first", b"x"]
    assert p.cluster[1].values() == [b"a", b"b"]
    epochs = [batch.producer_epoch for batch in p.cluster[1].log.all_batches()]
    assert epochs == [0, 1]


def test_a18_sequences_wrap_at_31_bits() -> None:
    p = Producing(batch_max_records=2).start()
    (queue,) = p.producer._queues
    p.send(b"a")
    p.send(b"b")
    request = p.request()
    assert sequence_of(request) == (0, 1)
    queue.next_sequence = 2**31 - 1
    p.send(b"c")
    p.send(b"d")
    assert sequence_of(p.request()) == (0, 2**31 - 1)
    p.send(b"e")
    p.driver.advance(us=0)
    assert sequence_of(p.request()) == (0, 1)


def test_a18_rejected_batch_gives_its_number_to_the_next() -> None:
    p = Producing().start()
    p.send(b"bad")
    p.fail(p.request(), ErrorCode.INVALID_RECORD)
    p.send(b"good")
    request = p.request()
    assert sequence_of(request) == (0, 1)
    p.driver.answer("b1", p.apply(request))
    assert [outcome.kind for outcome in p.outcomes()] == [REJECTED, ACKED]


def test_a18_gap_before_batches_in_flight_begins_an_epoch_when_those_are_answered() -> None:
    p = Producing().start()
    for value in (b"bad", b"x", b"y"):
        p.send(value)
    bad, x, y = [request for _, request in p.requests()]
    p.fail(bad, ErrorCode.INVALID_RECORD)
    assert p.producer.fields()["must_begin_epoch"]
    p.driver.answer("b1", p.apply(x))
    p.send(b"z")
    p.driver.advance(ms=100)
    assert p.requests() == []
    p.driver.answer("b1", p.apply(y))
    p.driver.advance(ms=100)
    sent = []
    for _ in range(3):
        request = p.request()
        sent.append((*values_of(request), sequence_of(request)))
        p.driver.answer("b1", p.apply(request))
        p.driver.advance(ms=200)
    assert sent == [(b"x", (1, 0)), (b"y", (1, 1)), (b"z", (1, 2))]
    assert p.cluster[0].values() == [b"first", b"x", b"y", b"z"]


def test_a18_new_epoch_numbers_all_partitions_anew() -> None:
    p = Producing(partitions=2).start()
    p.send(b"a", partition=1)
    p.driver.advance(us=0)
    p.driver.answer("b1", p.apply(p.request()))
    p.send(b"lost")
    p.request()
    p.driver.advance(ms=11_000)
    assert [o.kind for o in p.outcomes()] == [ACKED, UNKNOWN]
    p.settle(100)
    p.send(b"b", partition=1)
    assert sequence_of(p.request()) == (1, 0)


def test_a18_used_up_epochs_lead_to_a_new_id() -> None:
    p = Producing().start()
    p.producer._identity.producer_epoch = PRODUCER_EPOCH_MAX
    p.producer._must_begin_epoch = True
    p.send(b"v")
    assert p.requests() == []
    p.serve(InitProducerIdRequest)
    (outcome,) = p.settle(1_000)
    assert outcome.kind is ACKED
    assert p.producer.fields()["producer_id"] == 8


def test_b67_topic_created_anew_gets_its_first_batch_alone() -> None:
    p = Producing().start()
    made = FakeCluster(topic_id="B" * 22)
    made.metadata_offset = 99
    p.cluster = made
    for number in range(3):
        p.send(b"%d" % number)
    p.serve(ProduceRequest)
    p.driver.advance(ms=100)
    for _ in range(3):
        p.serve(MetadataRequest)
        p.serve(ProduceRequest)
        p.driver.advance(ms=100)
    outcomes = p.outcomes() + p.settle(1_000)
    assert [(o.kind, o.partition, o.offset) for o in outcomes] == [
        (ACKED, made.name(), number) for number in range(3)
    ]
    assert made[0].values() == [b"0", b"1", b"2"]


def test_b67_topic_known_to_be_new_gets_its_first_batch_alone() -> None:
    p = Producing(metadata_max_age_ms=500).start()
    p.cluster = FakeCluster(topic_id="B" * 22)
    p.cluster.metadata_offset = 99
    p.driver.advance(ms=500)
    p.serve(MetadataRequest)
    for number in range(3):
        p.send(b"%d" % number)
    assert values_of(p.request()) == [b"0"]


def test_b67_batch_in_flight_to_the_old_topic_says_nothing_of_the_new_one() -> None:
    p = Producing(metadata_max_age_ms=500).start()
    p.send(b"0")
    held = p.apply(p.request())
    p.cluster = FakeCluster(topic_id="B" * 22)
    p.cluster.metadata_offset = 99
    p.driver.advance(ms=500)
    p.serve(MetadataRequest)
    for number in (1, 2):
        p.send(b"%d" % number)
    assert p.requests() == []
    p.driver.answer("b1", held)
    assert values_of(p.request()) == [b"1"]


def test_b67_without_the_guard_a_topic_created_anew_is_never_written() -> None:
    p = Producing(guards=Guards(topic_id_tells_topics=False))
    for _ in range(3):
        p.cluster.elect(0, "b1")
    p.start()
    p.cluster = FakeCluster(topic_id="B" * 22)
    p.cluster.metadata_offset = 99
    p.send(b"v")
    assert [outcome.kind for outcome in p.settle(15_000)] == [REJECTED]
    assert p.cluster[0].values() == []


# B-52 ------------------------------------------------------------------------------------------


def gap_with_a_batch_in_doubt(guards: Guards) -> Producing:
    """A batch is lost for good while the one behind it is in the log, and its answer is lost."""
    p = Producing(guards=guards, delivery_timeout_ms=2_000).start()
    p.send(b"m0")
    p.driver.advance(ms=500)
    p.send(b"m1")
    m0, m1 = [request for _, request in p.requests()]
    p.apply(m0)
    p.apply(m1)
    p.driver.disconnect("b1")
    # m0's retries stay without an answer until its delivery timeout; m1 waits behind it.
    p.driver.advance(ms=1_500)
    assert [outcome.kind for outcome in p.outcomes()] == [UNKNOWN]
    p.driver.disconnect("b1")
    p.requests()
    return p


def test_b52_without_the_guard_a_batch_in_doubt_is_in_the_log_twice() -> None:
    p = gap_with_a_batch_in_doubt(Guards(bump_epoch_only_when_idle=False))
    p.settle(5_000)
    assert p.cluster[0].values() == [b"first", b"m0", b"m1", b"m1"]


def test_b52_with_the_guard_a_batch_in_doubt_is_resolved_first() -> None:
    p = gap_with_a_batch_in_doubt(Guards())
    outcomes = p.settle(5_000)
    assert [(o.kind, o.offset) for o in outcomes] == [(ACKED, 2)]
    assert p.cluster[0].values() == [b"first", b"m0", b"m1"]
    assert p.producer.fields()["producer_epoch"] == 1


def test_b52_batch_in_doubt_behind_a_gap_that_the_log_lacks_is_unknown() -> None:
    p = Producing(delivery_timeout_ms=2_000).start()
    p.send(b"m0")
    p.driver.advance(ms=500)
    p.send(b"m1")
    p.requests()
    p.driver.disconnect("b1")
    p.driver.advance(ms=1_500)
    p.requests()
    p.driver.disconnect("b1")
    outcomes = p.outcomes() + p.settle(400)
    assert [outcome.kind for outcome in outcomes] == [UNKNOWN, UNKNOWN]
    assert outcomes[1].error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    p.send(b"m2")
    assert [outcome.kind for outcome in p.settle(1_000)] == [ACKED]
    assert p.cluster[0].values() == [b"first", b"m2"]
