"""What a leader makes of a fetch (PROTOCOL A4): order of checks, credit, waiting, waking."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.errors import ErrorCode
from cluster.messages_data import FetchPartition, FetchRequest, FetchResponse, IsolationLevel
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, TopicIdPartition
from cluster.records import PartitionRecord, RemoveTopicRecord
from tests.cluster.leader_tools import Solo, batch, guards_without
from tests.cluster.scripted import ORDERS, TOPIC_ID

OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


def filled(count: int = 3, **options: object) -> Solo:
    solo = Solo(**options)  # type: ignore[arg-type]
    for _ in range(count):
        solo.produce("b1", b"x", acks=1)
    return solo


# Order of checks -------------------------------------------------------------------------------


def test_a4_the_epoch_is_judged_before_leadership_and_leadership_before_assignment() -> None:
    solo = filled()
    solo.lead("b1")
    for epoch, error in (
        (0, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ):
        answer = solo.fetch_as("b2", 0, epoch=epoch) if epoch != 1 else None
        if answer is not None:
            assert answer.error_code is error
    solo.peers["b9"] = 0
    for epoch, error in (
        (1, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (NO_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (0, ErrorCode.FENCED_LEADER_EPOCH),
    ):
        answer = solo.fetch_as("b9", 0, epoch=epoch)
        assert answer is not None
        assert answer.error_code is error, epoch
    solo.lead("b2")
    for epoch, error in (
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (NO_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ):
        answer = solo.fetch_as("b3", 0, epoch=epoch)
        assert answer is not None
        assert answer.error_code is error, epoch


def test_a4_without_the_epoch_guard_an_older_fetch_raises_the_high_watermark() -> None:
    """Hazard B-04: the follower's records of the older epoch are taken for the leader's."""
    for guards, hw in ((guards_without("fetch_epoch"), 3), (None, 0)):
        solo = filled(guards=guards)
        solo.lead("b1")
        solo.lead("b1")
        for name in ("b2", "b3"):
            solo.fetch_as(name, 3, epoch=0)
        assert solo.hw == hw


def test_a4_unknown_topics_and_partitions_are_named() -> None:
    solo = filled()
    for partition, error in (
        (TopicIdPartition("BBBBBBBBBBBBBBBBBBBBBQ", "orders", 0), ErrorCode.UNKNOWN_TOPIC_ID),
        (TopicIdPartition(TOPIC_ID, "orders", 9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ):
        request = FetchRequest(
            solo.number(), "", -1, 0, 1, 100, IsolationLevel(0), (FetchPartition(partition, -1, 0),)
        )
        answer = solo.result_of(request, "k1")
        assert answer is not None
        assert answer.error_code is error


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (12, 0, "out"),  # past the end, no newer epoch: not divergence
        (3, 5, "out"),  # an epoch that the leader does not know
        (-7, NO_EPOCH, "out"),
        (1, 0, "out"),  # below the log start, although not diverging
        (2, 0, "data"),
        (4, 0, (0, 3)),  # past the end of epoch 0
        (4, 1, (0, 3)),  # the leader has no epoch 1
        (3, 2, "data"),
        (5, 2, "empty"),
        (6, 2, (2, 5)),
    ],
)
def test_a4_divergence_and_range_are_judged_by_the_leaders_epochs(
    offset: int, last_epoch: int, expected: object
) -> None:
    solo = filled()
    solo.replicate()
    solo.lead("b1", epoch=2)
    for _ in range(2):
        solo.produce("b1", b"y", acks=1)
    solo.replicate()
    solo.replica.opened.raise_log_start_offset(2)
    answer = solo.fetch_as("b2", offset, last_epoch=last_epoch)
    assert answer is not None
    if expected == "out" and (offset, last_epoch) == (12, 0):
        assert answer.diverging_epoch == (0, 3), "past the end of its epoch it diverges"
    elif expected == "out":
        assert (answer.error_code, answer.diverging_epoch) == (OUT_OF_RANGE, None)
    elif expected in ("data", "empty"):
        assert (answer.error_code, answer.diverging_epoch) == (ErrorCode.NONE, None)
        assert bool(answer.records) == (expected == "data")
    else:
        assert (answer.diverging_epoch, answer.records) == (expected, b"")


@pytest.mark.parametrize("is_on", [True, False])
def test_a4_the_log_start_is_judged_before_divergence(is_on: bool) -> None:
    """Hazard B-19: told to cut, a follower would look below all that the leader has."""
    guards = None if is_on else guards_without("log_start_before_divergence")
    solo = filled(guards=guards)
    solo.lead("b1", epoch=2)
    solo.produce("b1", b"y", acks=1)
    solo.produce("b1", b"y", acks=1)
    solo.lead("b1", epoch=5)
    solo.replica.opened.raise_log_start_offset(4)
    answer = solo.fetch_as("b2", 3, last_epoch=3)
    assert answer is not None
    if is_on:
        assert (answer.error_code, answer.diverging_epoch) == (OUT_OF_RANGE, None)
    else:
        assert answer.diverging_epoch == (2, 5), "it has nothing to cut there, and asks again"


# What is read ----------------------------------------------------------------------------------


def test_a4_replicas_read_to_the_end_and_consumers_to_the_high_watermark() -> None:
    solo = filled(4)
    solo.replicate(offset=2)
    follower, consumer = solo.fetch_as("b2", 1), solo.consume(1)
    assert follower is not None
    assert consumer is not None
    assert len(follower.records) == 3 * len(consumer.records) > 0
    assert consumer.high_watermark == consumer.last_stable_offset == 2
    at_end = solo.consume(3)
    assert at_end is not None
    assert (at_end.error_code, at_end.records) == (ErrorCode.NONE, b"")
    past = solo.consume(5)
    assert past is not None
    assert past.error_code is OUT_OF_RANGE


def test_a4_the_first_batch_comes_even_where_it_is_too_large() -> None:
    solo = filled(2)
    part = FetchPartition(ORDERS, NO_EPOCH, 0, partition_max_bytes=1)
    request = FetchRequest(solo.number(), "", -1, 0, 1, 1, IsolationLevel(0), (part,))
    solo.replicate()
    answer = solo.result_of(request, "k1")
    assert answer is not None
    assert answer.records


@pytest.mark.parametrize("is_on", [True, False])
def test_a4_a_response_holds_the_offsets_of_one_moment(is_on: bool) -> None:
    """Hazard B-31: retention between read and answer shows a start above the records' end."""
    solo = filled(4, guards=None if is_on else guards_without("sample_before_read"))
    solo.replicate()
    solo.router.yields["b1"] = ("fetch-read",)
    request = solo.fetch_request(0)
    solo.send("b1", request, client="k1")
    solo.replica.opened.raise_log_start_offset(4)
    solo.router.yields.clear()
    solo.router.resume()
    solo.router.settle()
    answer = solo.router.take("k1")[0][1]
    assert isinstance(answer, FetchResponse)
    start = answer.partitions[0].log_start_offset
    assert bool(answer.partitions[0].records)
    assert start == (0 if is_on else 4), "records from 0 on, of a log said to start at 4"


# Credit ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on", [True, False])
def test_a4_a_diverging_fetch_is_not_credited(is_on: bool) -> None:
    """Hazard B-25: offsets of another history acknowledge this one's records."""
    solo = filled(2, guards=None if is_on else guards_without("no_credit_on_divergence"))
    solo.replicate()
    solo.lead("b1", epoch=2)
    numbers = [solo.produce("b1", b"y") for _ in range(2)]
    for name in ("b2", "b3"):
        answer = solo.fetch_as(name, 4, last_epoch=1)
        assert answer is not None
        assert answer.diverging_epoch == (0, 2)
    acked = (ErrorCode.NONE, 2)
    assert solo.hw == (2 if is_on else 4)
    assert solo.acked(numbers[0]) == (None if is_on else acked)


def test_a4_a_fetch_that_is_refused_or_out_of_range_is_not_credited() -> None:
    solo = filled()
    for offset, epoch in ((3, 5), (9, 0), (-1, 0)):
        for name in ("b2", "b3"):
            solo.fetch_as(name, offset, epoch=epoch)
    assert (solo.hw, solo.leader.followers["b2"].leo) == (0, -1)


@pytest.mark.parametrize("is_on", [True, False])
def test_a4_kip903_a_fetch_of_a_brokers_earlier_life_is_refused(is_on: bool) -> None:
    """Hazard B-41: a request of the life whose disk is gone vouches for records."""
    solo = filled(guards=None if is_on else guards_without("fetch_broker_epoch"))
    old = solo.peers["b2"]
    solo.register("b2")
    solo.replicate("b3")
    answer = solo.fetch_as("b2", 3, broker_epoch=old)
    assert answer is not None
    if is_on:
        assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert solo.hw == 0
    else:
        assert solo.hw == 3, "committed on the word of a process that has nothing any more"
    solo.fetch_as("b2", 3)
    assert solo.hw == 3


def test_a4_kip903_a_fenced_brokers_fetch_is_served_and_no_epoch_skips_the_check() -> None:
    solo = filled()
    old = solo.peers["b2"]
    solo.register("b2", fenced=True)
    for broker_epoch in (old, NO_BROKER_EPOCH, solo.peers["b2"]):
        answer = solo.fetch_as("b2", 0, broker_epoch=broker_epoch)
        assert answer is not None
        assert answer.error_code is ErrorCode.NONE


# Waiting ---------------------------------------------------------------------------------------


def test_a3_a_fetch_at_the_end_waits_for_data_and_is_credited_at_once() -> None:
    solo = filled(1)
    number = solo.produce("b1", b"x")
    for name in ("b2", "b3"):
        assert solo.fetch_as(name, 2, wait_ms=500) is None
    assert solo.acked(number) == (ErrorCode.NONE, 1)
    assert solo.hw == 2
    solo.produce("b1", b"y", acks=1)
    (answer,) = solo.fetched("b2")
    assert answer.records
    assert answer.high_watermark == 2


def test_a3_a_fetch_that_waits_is_answered_at_its_deadline_with_what_there_is() -> None:
    solo = filled(1)
    assert solo.fetch_as("b2", 1, wait_ms=500) is None
    solo.router.run_for(499)
    assert solo.fetched("b2") == []
    solo.router.run_for(1)
    (answer,) = solo.fetched("b2")
    assert (answer.error_code, answer.records, answer.high_watermark) == (ErrorCode.NONE, b"", 0)
    assert len(solo.broker("b1").core.parked_fetches) == 0


def test_a3_a_rise_of_the_high_watermark_wakes_consumers_only() -> None:
    solo = filled(2)
    assert solo.fetch_as("b2", 2, wait_ms=500) is None
    assert solo.consume(0, wait_ms=500) is None
    solo.replicate("b3")
    assert solo.hw == 2
    assert solo.fetched("b2") == []
    (answer,) = solo.fetched("k1")
    assert answer.records


def test_a3_an_append_alone_wakes_replicas_only() -> None:
    solo = Solo()
    assert solo.consume(0, wait_ms=500) is None
    for name in ("b2", "b3"):
        assert solo.fetch_as(name, 0, wait_ms=500) is None
    solo.produce("b1", b"x", acks=1)
    assert (len(solo.fetched("b2")), solo.fetched("k1")) == (1, [])


@pytest.mark.parametrize(
    ("leader", "error"),
    [
        ("b2", ErrorCode.FENCED_LEADER_EPOCH),
        ("b1", ErrorCode.FENCED_LEADER_EPOCH),
        (None, ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a3_a_new_epoch_answers_the_fetches_that_wait(leader: str | None, error: ErrorCode) -> None:
    solo = filled(1)
    solo.replicate()
    assert solo.fetch_as("b2", 1, wait_ms=500) is None
    assert solo.consume(1, epoch=0, wait_ms=500) is None
    solo.lead(leader)
    for client in ("b2", "k1"):
        (answer,) = [a for a in solo.fetched(client) if a.error_code is not ErrorCode.NONE]
        assert answer.error_code is error


def test_a3_a_deleted_topic_answers_the_fetches_that_wait() -> None:
    solo = filled(1)
    solo.replicate()
    assert solo.consume(1, wait_ms=60_000) is None
    assert solo.fetch_as("b2", 1, wait_ms=60_000) is None
    solo.decide(RemoveTopicRecord(TOPIC_ID, "orders"))
    for client in ("b2", "k1"):
        (answer,) = [a for a in solo.fetched(client) if a.error_code is not ErrorCode.NONE]
        assert answer.error_code is ErrorCode.UNKNOWN_TOPIC_ID


def test_a3_a_fetch_delivered_twice_waits_and_is_answered_once() -> None:
    solo = filled(1)
    request = solo.fetch_request(1, epoch=0, replica="b2", max_wait_ms=500)
    solo.send("b1", request, client="b2")
    solo.send("b1", request, client="b2")
    solo.produce("b1", b"x", acks=1)
    assert len(solo.fetched("b2")) == 1
    solo.router.run_for(1_000)
    assert solo.fetched("b2") == []


def test_a3_an_id_that_waits_already_is_not_taken_for_another_fetch() -> None:
    solo = filled(1)
    request = solo.fetch_request(1, epoch=0, replica="b2", max_wait_ms=500)
    part = FetchPartition(ORDERS._replace(partition=9), -1, 0)
    solo.send("b1", request, client="b2")
    solo.send("b1", evolve(request, partitions=(part,)), client="b2")
    assert solo.fetched("b2") == []
    solo.produce("b1", b"x", acks=1)
    (answer,) = solo.fetched("b2")
    assert answer.partition == ORDERS


def test_a3_fetches_of_a_lost_connection_are_forgotten() -> None:
    solo = filled(1)
    assert solo.fetch_as("b2", 1, wait_ms=500) is None
    solo.router.call("b1", "on_disconnected", "b2")
    assert len(solo.broker("b1").core.parked_fetches) == 0
    solo.produce("b1", b"x", acks=1)
    solo.router.run_for(1_000)
    assert solo.fetched("b2") == []


def test_a3_a_fetch_waits_for_its_least_bytes() -> None:
    solo = Solo(isr=("b1",))
    part = FetchPartition(ORDERS, NO_EPOCH, 0)
    request = FetchRequest(
        solo.number(), "", -1, 5_000, 250, 1 << 20, IsolationLevel.READ_UNCOMMITTED, (part,)
    )
    assert solo.result_of(request, "k1") is None
    seen = []
    for _ in range(4):
        solo.produce("b1", b"0123456789")
        seen.append(len(solo.fetched("k1")))
    assert seen.count(1) == 1
    assert seen[0] == 0


def waiting_for(solo: Solo, min_bytes: int, *partitions: TopicIdPartition, client: str) -> int:
    """A consumer's fetch from offset 0 that waits for so many bytes; its number."""
    parts = tuple(FetchPartition(each, NO_EPOCH, 0) for each in partitions)
    number = solo.number()
    isolation = IsolationLevel.READ_UNCOMMITTED
    request = FetchRequest(number, "", -1, 10**6, min_bytes, 1 << 20, isolation, parts)
    assert solo.result_of(request, client) is None
    return number


def test_a3_a_fetch_of_two_partitions_counts_the_bytes_of_both() -> None:
    solo = Solo(isr=("b1",))
    other = ORDERS._replace(partition=1)
    solo.decide(PartitionRecord(other, ("b1",), ("b1",), "b1", 0, 0))
    size = len(batch())
    for total in (2, 3, 4, 5, 7):
        waiting_for(solo, size * total, ORDERS, other, client=f"k{total}")
    answered: dict[str, int] = {}
    for count in range(1, 8):
        partition = ORDERS if count % 3 else other
        solo.produce_raw(batch(), partition=partition)
        for client in ("k2", "k3", "k4", "k5", "k7"):
            if solo.fetched(client):
                answered[client] = count
    assert answered == {"k2": 2, "k3": 3, "k4": 4, "k5": 5, "k7": 7}


def test_a3_a_fetch_of_a_segment_that_has_rolled_waits_no_longer() -> None:
    solo = Solo(isr=("b1",), topic={"segment.bytes": "200"})
    waiting_for(solo, 1 << 19, ORDERS, client="k1")
    count = 0
    while len(solo.replica.opened.segments) == 1:
        assert solo.fetched("k1") == []
        solo.produce("b1", b"x" * 30)
        count += 1
    solo.consume(0)
    late = solo.fetch_request(0, max_wait_ms=500)
    answer = solo.result_of(evolve(late, min_bytes=1 << 19), "k2")
    assert answer is not None, "its segment will never have more"
    assert count > 1


def test_a3_consumers_that_wait_are_looked_at_only_when_they_may_have_enough() -> None:
    solo = Solo(isr=("b1",))
    size = len(batch())
    for number in range(50):
        waiting_for(solo, size * 100, ORDERS, client=f"k{number}")
    parked = solo.broker("b1").core.parked_fetches
    checks = [one.checks for one in parked.at(ORDERS, replicas=False, consumers=True)]
    for _ in range(99):
        solo.produce_raw(batch())
    after = [one.checks for one in parked.at(ORDERS, replicas=False, consumers=True)]
    assert sum(after) - sum(checks) <= 50, "once, at the first rise of the epoch"
    solo.produce_raw(batch())
    assert len(parked) == 0
    assert all(len(solo.fetched(f"k{number}")) == 1 for number in range(50))


def test_a3_what_stood_above_the_high_watermark_at_the_promotion_counts() -> None:
    solo = Solo()
    for _ in range(4):
        solo.produce("b1", b"x", acks=1)
    solo.lead("b1", epoch=5)
    size = len(batch())
    waiting_for(solo, size * 3, ORDERS, client="k1")
    for offset in (1, 2):
        solo.replicate(offset=offset)
        assert solo.fetched("k1") == []
    solo.replicate(offset=3)
    assert len(solo.fetched("k1")) == 1


def test_a3_more_appends_than_are_noted_are_looked_at_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cluster.replica.HIDDEN_MAX", 3)
    solo = Solo()
    waiting_for(solo, len(batch()) * 6, ORDERS, client="k1")
    for _ in range(9):
        solo.produce("b1", b"x", acks=1)
    for offset in range(1, 6):
        solo.replicate(offset=offset)
        assert solo.fetched("k1") == []
    solo.replicate(offset=6)
    assert len(solo.fetched("k1")) == 1


def test_a3_fetches_that_time_out_on_an_idle_partition_leave_nothing_behind() -> None:
    solo = Solo(isr=("b1",))
    waiting_for(solo, 1, ORDERS, client="k0")
    for _ in range(200):
        solo.consume(0, wait_ms=10)
        solo.router.run_for(10)
    parked = solo.broker("b1").core.parked_fetches
    assert len(parked) == 1
    assert sum(len(heap) for heap in parked._due.values()) < 40
