"""A leader's append and its acknowledgement (PROTOCOL A1, A7, A18)."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.messages_data import ProducePartition, ProduceRequest, ProduceResponse
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from storage.batch import ControlType, Record, RecordBatch
from storage.mkb1 import MKB1
from tests.cluster.leader_tools import Solo, batch, guards_without
from tests.cluster.scripted import ORDERS, TOPIC_ID, Cluster

MIN_2 = {"min.insync.replicas": "2"}
OTHER = TopicIdPartition("BBBBBBBBBBBBBBBBBBBBBQ", "orders", 0)


def framed(records: RecordBatch, base_offset: int = 0) -> bytes:
    return MKB1.encode(records, base_offset, 0, 1 << 20)[0]


# What is refused -------------------------------------------------------------------------------


def test_a7_acks_that_are_none_of_three_are_refused_and_nothing_is_appended() -> None:
    solo = Solo()
    assert solo.produce_raw(batch(), acks=2) is ErrorCode.INVALID_REQUIRED_ACKS
    assert solo.leo_now == 0


@pytest.mark.parametrize(
    ("partition", "error"),
    [
        (OTHER, ErrorCode.UNKNOWN_TOPIC_ID),
        (TopicIdPartition(TOPIC_ID, "orders", 7), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_a1_produce_to_a_partition_that_is_not_there_names_what_is_unknown(
    partition: TopicIdPartition, error: ErrorCode
) -> None:
    assert Solo().produce_raw(batch(), partition=partition) is error


def test_a1_produce_to_a_follower_is_refused_and_appends_nothing() -> None:
    solo = Solo()
    solo.lead("b2")
    assert solo.produce_raw(batch()) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert solo.leo_now == 0


def test_a1_produce_while_nobody_leads_is_refused() -> None:
    solo = Solo()
    solo.lead(None)
    assert solo.produce_raw(batch()) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a1_acks_all_below_min_isr_is_refused_before_the_append() -> None:
    solo = Solo(topic=MIN_2, isr=("b1",))
    assert solo.produce_raw(batch()) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert solo.leo_now == 0
    assert solo.produce_raw(batch(), acks=1) is ErrorCode.NONE


def test_a7_a_pending_member_does_not_count_before_the_append() -> None:
    solo = Solo(topic=MIN_2, isr=("b1",), replicas=("b1", "b2"))
    solo.controller.accepts_isr = False
    solo.replicate("b2")
    assert solo.isr.maximal == {"b1", "b2"}
    assert solo.produce_raw(batch()) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert solo.leo_now == 0
    solo.answer_alter()
    assert solo.produce_raw(batch()) is None


def test_a1_without_the_guard_acks_all_is_appended_below_min_isr() -> None:
    solo = Solo(topic=MIN_2, isr=("b1",), guards=guards_without("min_isr_before_append"))
    assert solo.produce_raw(batch()) is None
    assert solo.leo_now == 1


def test_a1_min_isr_counts_no_more_than_there_are_replicas() -> None:
    solo = Solo(topic={"min.insync.replicas": "5"}, replicas=("b1", "b2"))
    assert solo.produce_raw(batch()) is None
    solo.replicate("b2")
    assert solo.hw == 1


@pytest.mark.parametrize(
    ("records", "error"),
    [
        (b"", ErrorCode.CORRUPT_MESSAGE),
        (b"garbage of some length", ErrorCode.CORRUPT_MESSAGE),
        (batch() + b"\0", ErrorCode.CORRUPT_MESSAGE),
        (batch() + batch(), ErrorCode.CORRUPT_MESSAGE),
        (batch()[:-1] + b"\xff", ErrorCode.CORRUPT_MESSAGE),
        (framed(RecordBatch.unassigned([Record(None, b"x", 0)]), 3), ErrorCode.INVALID_RECORD),
    ],
    ids=["empty", "garbage", "trailing", "two", "crc", "base-offset"],
)
def test_a1_bytes_that_are_not_one_batch_at_offset_0_are_refused(
    records: bytes, error: ErrorCode
) -> None:
    solo = Solo()
    assert solo.produce_raw(records) is error
    assert solo.leo_now == 0


def test_a1_a_control_batch_is_not_a_clients_to_write() -> None:
    marker = RecordBatch(
        (), (), 0, producer_id=1, producer_epoch=0, transactional_id="t", control=ControlType.COMMIT
    )
    solo = Solo()
    assert solo.produce_raw(framed(marker)) is ErrorCode.INVALID_RECORD
    assert solo.leo_now == 0


@pytest.mark.parametrize("last_delta", [1, 2**31 - 1])
def test_a1_a_batch_that_claims_offsets_without_records_is_refused(last_delta: int) -> None:
    sparse = RecordBatch((Record(None, b"x", 0),), (0,), last_delta)
    solo = Solo()
    assert solo.produce_raw(framed(sparse)) is ErrorCode.INVALID_RECORD
    assert solo.leo_now == 0


def test_a1_a_batch_larger_than_the_topic_takes_is_too_large() -> None:
    solo = Solo(topic={"max.message.bytes": "100"})
    assert solo.produce_raw(batch(b"y" * 200)) in (
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
    )
    assert solo.leo_now == 0


def test_a18_sequences_and_producer_epochs_are_judged_by_the_log() -> None:
    solo = Solo()
    assert solo.produce_raw(batch(producer=(7, 1, 0)), acks=1) is ErrorCode.NONE
    for producer, error in (
        ((7, 1, 5), ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER),
        ((7, 0, 0), ErrorCode.INVALID_PRODUCER_EPOCH),
        ((7, 1, 1), ErrorCode.NONE),
    ):
        assert solo.produce_raw(batch(producer=producer), acks=1) is error
    assert solo.leo_now == 2


def test_a1_partitions_of_one_request_are_judged_apart() -> None:
    solo = Solo()
    parts = (ProducePartition(OTHER, batch()), ProducePartition(ORDERS, batch()))
    solo.send("b1", ProduceRequest(solo.number(), 1, 1_000, parts))
    answer = solo.router.take("p1")[0][1]
    assert isinstance(answer, ProduceResponse)
    errors = [result.error_code for result in answer.partitions]
    assert errors == [ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.NONE]


# acks 0 and 1 ----------------------------------------------------------------------------------


def test_a7_acks_0_has_no_answer_and_an_error_closes_the_connection() -> None:
    solo = Solo()
    assert solo.produce_raw(batch(), acks=0) is None
    assert (solo.leo_now, solo.router.disconnected) == (1, [])
    solo.lead("b2")
    assert solo.produce_raw(batch(), acks=0) is None
    assert solo.router.disconnected == [("b1", "p1")]


def test_a7_acks_1_is_answered_at_the_append_with_its_offset() -> None:
    solo = Solo()
    solo.produce_raw(batch(), acks=1)
    number = solo.produce("b1", b"y", b"z", acks=1)
    assert solo.acked(number) == (ErrorCode.NONE, 1)
    assert (solo.hw, solo.leo_now) == (0, 3)


# acks all --------------------------------------------------------------------------------------


def test_a7_acks_all_waits_for_every_member_of_the_isr() -> None:
    solo = Solo()
    number = solo.produce("b1", b"x")
    solo.replicate("b2")
    assert solo.acked(number) is None
    solo.replicate("b3")
    assert solo.acked(number) == (ErrorCode.NONE, 0)
    assert ("b1", ("produce", "p1", number)) not in solo.router.timers


@pytest.mark.parametrize("is_on", [True, False])
def test_a7_what_is_acknowledged_with_acks_all_outlives_its_leader(is_on: bool) -> None:
    cluster = Cluster(3, guards=None if is_on else guards_without("ack_waits_for_hw"))
    cluster.lead("b1")
    cluster.router.is_held = lambda src, dst, message: src == "b1" and dst in ("b2", "b3")
    number = cluster.produce("b1", b"x")
    acked = cluster.acked(number)
    cluster.kill("b1")
    cluster.router.is_held = lambda src, dst, message: False
    cluster.lead("b2", ("b2", "b3"))
    if is_on:
        assert acked is None
    else:
        assert acked == (ErrorCode.NONE, 0)
    assert cluster.log("b2") == [], "so it must not have been acknowledged"


def test_a7_a_sole_member_commits_at_its_own_append() -> None:
    solo = Solo(isr=("b1",))
    number = solo.produce("b1", b"x")
    assert (solo.acked(number), solo.hw) == ((ErrorCode.NONE, 0), 1)


def test_a7_a_produce_that_waits_too_long_has_an_unknown_outcome() -> None:
    solo = Solo()
    number = solo.produce("b1", b"x", timeout_ms=1_000)
    solo.router.run_for(1_001)
    assert solo.acked(number) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    assert not ErrorCode.REQUEST_TIMED_OUT.is_definite
    solo.replicate()
    assert solo.hw == 1, "the record stays and commits later"
    assert len(solo.router.take("p1")) == 1, "answered once"


def test_a7_a_timeout_leaves_the_others_waiting() -> None:
    solo = Solo()
    numbers = [solo.produce("b1", b"x", timeout_ms=ms) for ms in (1_000, 9_000, 1_000, 9_000)]
    solo.router.run_for(2_000)
    assert len(solo.leader.produces) == 2
    solo.replicate()
    assert [solo.acked(n) for n in numbers] == [
        (ErrorCode.REQUEST_TIMED_OUT, -1),
        (ErrorCode.NONE, 1),
        (ErrorCode.REQUEST_TIMED_OUT, -1),
        (ErrorCode.NONE, 3),
    ]
    assert len(solo.leader.produces) == 0


@pytest.mark.parametrize("leader", ["b2", None])
def test_a7_what_waits_when_leadership_is_lost_has_an_unknown_outcome(leader: str | None) -> None:
    solo = Solo()
    numbers = [solo.produce("b1", b"x") for _ in range(3)]
    solo.lead(leader)
    lost = (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert [solo.acked(n) for n in numbers] == [lost] * 3
    assert not ErrorCode.NOT_LEADER_OR_FOLLOWER.is_definite
    solo.router.run_for(60_000)
    assert len(solo.router.take("p1")) == 3


def test_a7_a_duplicate_under_acks_all_waits_for_the_stored_batch() -> None:
    solo = Solo()
    first = solo.produce("b1", b"x", producer=(7, 0, 0))
    solo.produce("b1", b"y", producer=(7, 0, 1))
    again = solo.produce("b1", b"x", producer=(7, 0, 0))
    assert (solo.leo_now, solo.acked(again)) == (2, None)
    solo.replicate(offset=1)
    assert solo.acked(first) == solo.acked(again) == (ErrorCode.NONE, 0)
    late = solo.produce("b1", b"x", producer=(7, 0, 0))
    assert solo.acked(late) == (ErrorCode.NONE, 0)


def test_a7_duplicates_of_many_batches_are_answered_in_the_order_of_offsets() -> None:
    solo = Solo()
    firsts = [solo.produce("b1", b"x", producer=(7, 0, n)) for n in range(5)]
    again = [solo.produce("b1", b"x", producer=(7, 0, n)) for n in (4, 0, 3, 1, 2, 0)]
    assert len(solo.leader.produces) == 11
    solo.replicate(offset=3)
    done = [solo.acked(n) is not None for n in firsts + again]
    assert done == [True] * 3 + [False] * 2 + [False, True, False, True, True, True]
    solo.replicate()
    assert [solo.acked(n) for n in again] == [(ErrorCode.NONE, n) for n in (4, 0, 3, 1, 2, 0)]


def test_a7_a_duplicate_below_min_isr_is_not_enough_replicas_after_append() -> None:
    solo = Solo(topic=MIN_2, guards=guards_without("min_isr_before_append"))
    solo.produce("b1", b"x", producer=(7, 0, 0))
    solo.replicate()
    solo.lead("b1", ("b1",))
    again = solo.produce("b1", b"x", producer=(7, 0, 0))
    assert solo.acked(again) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)


def test_a7_a_commit_below_min_isr_is_not_enough_replicas_after_append_and_stays() -> None:
    """Without the freeze of A5 the high watermark rises on the members that are left."""
    solo = Solo(topic=MIN_2, replicas=("b1", "b2"), guards=guards_without("hw_freeze"))
    number = solo.produce("b1", b"x")
    solo.change_broker("b2", fenced=True)
    solo.decide(solo.state(isr=("b1",)))
    assert solo.acked(number) == (ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, -1)
    assert not ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND.is_definite
    assert (solo.hw, solo.leo_now) == (1, 1)


def test_a7_with_the_freeze_the_same_produce_waits_until_it_times_out() -> None:
    solo = Solo(topic=MIN_2, replicas=("b1", "b2"))
    number = solo.produce("b1", b"x", timeout_ms=5_000)
    solo.change_broker("b2", fenced=True)
    solo.decide(solo.state(isr=("b1",)))
    assert (solo.acked(number), solo.hw) == (None, 0)
    solo.router.run_for(5_001)
    assert solo.acked(number) == (ErrorCode.REQUEST_TIMED_OUT, -1)


def test_a7_more_requests_than_may_wait_are_answered_at_once_as_unknown() -> None:
    solo = Solo(config=BrokerConfig(parked_requests_max=2))
    numbers = [solo.produce("b1", b"x") for _ in range(3)]
    answers = [solo.acked(n) for n in numbers]
    assert answers == [None, None, (ErrorCode.REQUEST_TIMED_OUT, -1)]
    assert len(solo.leader.produces) == 2
    solo.replicate()
    assert [solo.acked(n) for n in numbers[:2]] == [(ErrorCode.NONE, 0), (ErrorCode.NONE, 1)]


def test_a7_a_produce_delivered_twice_while_it_waits_is_appended_once() -> None:
    solo = Solo()
    number = solo.number()
    request = ProduceRequest(number, -1, 1_000, (ProducePartition(ORDERS, batch()),))
    solo.send("b1", request)
    solo.send("b1", request)
    assert solo.leo_now == 1


def test_a7_a_partition_named_twice_in_a_request_is_answered_twice() -> None:
    solo = Solo()
    part = ProducePartition(ORDERS, batch())
    solo.send("b1", ProduceRequest(solo.number(), -1, 1_000, (part, part)))
    solo.router.run_for(2_000)
    answer = solo.router.take("p1")[0][1]
    assert isinstance(answer, ProduceResponse)
    assert [r.error_code for r in answer.partitions] == [ErrorCode.REQUEST_TIMED_OUT] * 2
    assert len(solo.leader.produces) == 0


def test_a7_two_thousand_waiting_duplicates_are_each_answered_once() -> None:
    solo = Solo()
    solo.produce("b1", b"x", producer=(7, 0, 0))
    solo.produce("b1", b"y", producer=(7, 0, 1))
    first, second = batch(b"x", producer=(7, 0, 0)), batch(b"y", producer=(7, 0, 1))
    for number in range(2_000):
        frame = second if number % 2 else first
        part = (ProducePartition(ORDERS, frame),)
        timeout = 1_000 if number % 3 else 90_000
        solo.deliver("p2", ProduceRequest(solo.number(), -1, timeout, part))
    solo.router.run_for(1_001)
    assert len(solo.leader.produces._heap) <= 2 * len(solo.leader.produces) + 1
    timed_out = len(solo.router.inbox["p2"])
    assert timed_out == sum(1 for n in range(2_000) if n % 3)
    solo.replicate()
    assert len(solo.router.take("p2")) == 2_000
    assert len(solo.leader.produces) == 0


def test_a7_partitions_of_one_request_wait_apart_and_are_answered_together() -> None:
    solo = Solo()
    other = ORDERS._replace(partition=1)
    solo.decide(PartitionRecord(other, ("b1", "b2"), ("b1", "b2"), "b1", 0, 0))
    for lost, kept in ((ORDERS, other), (other, ORDERS)):
        number = solo.number()
        parts = tuple(ProducePartition(each, batch()) for each in (ORDERS, other))
        solo.send("b1", ProduceRequest(number, -1, 30_000, parts))
        state = solo.controller.image.partition(lost)
        assert state is not None
        epochs = (state.leader_epoch + 1, state.partition_epoch + 1)
        solo.decide(evolve(state, leader="b2", leader_epoch=epochs[0], partition_epoch=epochs[1]))
        assert solo.acked(number) is None
        solo.router.run_for(30_001)
        (answer,) = [m for _, m in solo.router.take("p1")]
        assert isinstance(answer, ProduceResponse)
        errors = {result.partition: result.error_code for result in answer.partitions}
        assert errors == {
            lost: ErrorCode.NOT_LEADER_OR_FOLLOWER,
            kept: ErrorCode.REQUEST_TIMED_OUT,
        }
        assert solo.broker("b1").core.parked_produces == {}
        solo.decide(
            evolve(state, leader="b1", leader_epoch=epochs[0] + 1, partition_epoch=epochs[1] + 1)
        )


def test_a7_a_leader_that_does_not_know_of_its_successor_commits_nothing() -> None:
    """Metadata that lags: followers have moved on, so the old leader hears of nobody."""
    cluster = Cluster(3)
    cluster.lead("b1")
    cluster.controller.silent_to = {"b1"}
    cluster.lead("b2")
    late = cluster.produce("b1", b"late")
    sure = cluster.produce("b2", b"sure", client="p2")
    assert cluster.broker("b1").core.replicas[ORDERS].leading is not None
    cluster.router.run_for(3_000)
    assert cluster.acked(late) is None
    assert (cluster.high_watermark("b1"), cluster.log("b1")) == (0, [(0, 0, b"late")])
    cluster.controller.silent_to = set()
    cluster.hand_out()
    cluster.router.run_for(3_000)
    assert cluster.acked(late) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert cluster.acked(sure, "p2") == (ErrorCode.NONE, 0)
    assert [cluster.log(name) for name in cluster.names] == [[(0, 1, b"sure")]] * 3


def test_a7_after_a_kill_the_committed_records_are_with_the_next_leader() -> None:
    cluster = Cluster(3, topic=MIN_2)
    cluster.lead("b1")
    numbers = [cluster.produce("b1", b"%d" % n) for n in range(5)]
    assert all(cluster.acked(n) == (ErrorCode.NONE, i) for i, n in enumerate(numbers))
    cluster.kill("b1")
    cluster.lead("b2", ("b2", "b3"))
    cluster.produce("b2", b"new")
    cluster.start("b1")
    cluster.router.run_for(5_000)
    state = cluster.controller.image.partition(ORDERS)
    assert state is not None
    assert state.isr == ("b1", "b2", "b3"), "it has joined again"
    logs = [cluster.log(name) for name in cluster.names]
    assert logs[0] == logs[1] == logs[2]
    assert [cluster.high_watermark(name) for name in cluster.names] == [6, 6, 6]
