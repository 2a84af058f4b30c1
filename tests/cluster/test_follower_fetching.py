"""The follower's fetch loop (PROTOCOL A3, A10, A11, A12), sentence by sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.errors import ErrorCode
from cluster.messages_data import (
    FetchResponse,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
)
from cluster.names import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from cluster.truncation import TruncationMode
from storage.errors import CorruptIndex
from storage.partition_log import PartitionLog
from tests.cluster.fake_leader import LEADER, OTHER, FakeLeader, frame, frames, numbered

FETCH, KIP_279, KIP_101, HIGH_WATERMARK = TruncationMode
BACKOFF_MS = 1_000


# Beginning -------------------------------------------------------------------------------------


def test_a3_a_fetch_says_where_the_follower_stands() -> None:
    leader = FakeLeader(runs=((0, 3), (2, 5)), high_watermark=4)
    request = leader.fetch()
    broker = leader.broker("b1")

    assert request.replica_id == "b1"
    assert request.replica_epoch == broker.core.broker_epoch >= 0
    assert (request.max_wait_ms, request.min_bytes) == (500, 1)
    (part,) = request.partitions
    assert part.current_leader_epoch == 2
    assert part.fetch_offset == 5
    assert part.last_fetched_epoch == 2
    assert part.log_start_offset == 0


@pytest.mark.parametrize("mode", list(TruncationMode), ids=lambda mode: mode.value)
def test_a3_how_a_follower_begins_in_a_new_epoch(mode: TruncationMode) -> None:
    leader = FakeLeader(mode=mode, runs=((0, 3), (2, 5)), high_watermark=4)
    assert leader.leo_and_hw() == (5, 4)
    leader.follow(3)
    # The fetch of the old epoch is still under way; its answer is dropped.
    leader.answer_fetch(frame(5, 1, 2), high_watermark=6)

    if mode in (KIP_279, KIP_101):
        question = leader.asked(OffsetsForLeaderEpochRequest)
        assert question is not None
        (part,) = question.partitions
        assert (part.current_leader_epoch, part.leader_epoch) == (3, 2)
        assert (leader.state(), leader.copy_of().fetch_offset) == ("truncating", 4)
        assert leader.leo_and_hw() == (5, 4)
        return
    (asked,) = leader.fetch().partitions
    expected = (3, 4, -1) if mode is HIGH_WATERMARK else (3, 5, 2)
    assert (asked.current_leader_epoch, asked.fetch_offset, asked.last_fetched_epoch) == expected
    assert leader.leo_and_hw() == (asked.fetch_offset, 4)


@pytest.mark.parametrize("mode", list(TruncationMode), ids=lambda mode: mode.value)
def test_a3_an_empty_log_begins_at_its_start(mode: TruncationMode) -> None:
    leader = FakeLeader(mode=mode)
    if mode in (KIP_279, KIP_101):
        question = leader.asked(OffsetsForLeaderEpochRequest)
        assert question is not None
        assert question.partitions[0].leader_epoch == -1
        leader.answer_epoch(-1, -1)
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (0, -1)


def test_a11_without_any_epoch_the_log_is_cut_to_the_high_watermark() -> None:
    leader = FakeLeader(runs=((0, 5),), high_watermark=3)
    # A log start at the end leaves no entry behind; the records are hidden.
    leader.answer_fetch(high_watermark=5, log_start=5)
    leader.follow(1)
    leader.answer_fetch()
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch, asked.log_start_offset) == (5, -1, 5)


def test_a3_the_same_epoch_again_keeps_the_copy_that_runs() -> None:
    leader = FakeLeader(runs=((0, 3),))
    copy, count = leader.copy_of(), leader.requests()
    leader.follow(0)

    assert leader.copy_of() is copy
    assert leader.requests() == count
    leader.answer_fetch(frame(3), high_watermark=1)
    assert leader.leo_and_hw() == (4, 1)


def test_a3_a_new_epoch_waits_for_the_answer_under_way_and_drops_it() -> None:
    leader = FakeLeader(runs=((0, 3),))
    count = leader.requests()
    leader.follow(1)
    assert leader.requests() == count
    leader.answer_fetch(frame(3), high_watermark=4)

    assert leader.leo_and_hw() == (3, 0)
    assert leader.fetch().partitions[0].current_leader_epoch == 1


# What counts -----------------------------------------------------------------------------------


def test_a3_records_then_high_watermark_then_log_start() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.answer_fetch(frames(3, 6), high_watermark=5, log_start=2)

    assert leader.leo_and_hw() == (6, 5)
    assert leader.log_of().log_start_offset == 2
    assert leader.log_of().epochs.entries == ((0, 2),)
    assert leader.fetch().partitions[0].log_start_offset == 2


@pytest.mark.parametrize(
    ("told", "expected"), [(0, 2), (2, 2), (4, 4), (6, 6), (9, 6), (-1, 2), (2**63 - 1, 6)]
)
def test_a3_the_high_watermark_is_the_leaders_between_log_start_and_end(
    told: int, expected: int
) -> None:
    leader = FakeLeader(runs=((0, 6),), high_watermark=5)
    leader.answer_fetch(high_watermark=5, log_start=2)
    leader.answer_fetch(high_watermark=told, log_start=2)
    assert leader.leo_and_hw() == (6, expected)


def test_a3_after_records_the_next_fetch_names_their_end_and_epoch() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.follow(5)
    leader.answer_fetch()
    leader.answer_fetch(frame(3, 1, 2) + frame(4, 2, 4))
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (6, 4)
    assert leader.log_of().epochs.entries == ((0, 0), (2, 3), (4, 4))


def test_a3_an_empty_response_moves_offsets_and_keeps_the_last_epoch() -> None:
    leader = FakeLeader(runs=((0, 3), (2, 5)))
    leader.answer_fetch(high_watermark=5)
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (5, 2)
    assert leader.leo_and_hw() == (5, 5)


def test_a3_of_a_diverging_response_nothing_else_counts() -> None:
    leader = FakeLeader(runs=((0, 3), (2, 5)), high_watermark=1)
    records = frames(5, 8, 2)
    leader.answer_fetch(records, diverging=(0, 2), high_watermark=9, log_start=2)

    assert leader.leo_and_hw() == (2, 1)
    assert leader.log_of().log_start_offset == 0
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (2, 0)


def test_a3_a_partition_that_is_no_longer_followed_takes_nothing() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.follow(1, leader=None)
    leader.answer_fetch(frame(3), high_watermark=4)
    assert leader.leo_and_hw() == (3, 0)
    assert leader.state() == ""


def test_a3_a_leader_change_moves_the_copy_at_once() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.follow(1, leader=OTHER)

    (asked,) = leader.fetch(OTHER).partitions
    assert (asked.current_leader_epoch, asked.fetch_offset) == (1, 3)
    leader.answer_fetch(frame(3), high_watermark=4)
    assert leader.leo_and_hw() == (3, 0)
    result = leader.result(frame(3, 1, 1), high_watermark=4)
    leader.answer(FetchResponse(leader.fetch(OTHER).correlation_id, (result,)), OTHER)
    assert leader.leo_and_hw() == (4, 4)


def test_a3_an_answer_from_another_node_or_with_another_id_is_dropped() -> None:
    leader = FakeLeader(runs=((0, 3),))
    number = leader.fetch().correlation_id
    result = leader.result(frame(3), high_watermark=4)
    leader.answer(FetchResponse(number, (result,)), OTHER)
    leader.answer(FetchResponse(number + 1, (result,)))
    assert leader.leo_and_hw() == (3, 0)
    leader.answer(FetchResponse(number, (result,)))
    assert leader.leo_and_hw() == (4, 4)
    leader.answer(FetchResponse(number, (leader.result(frame(4)),)))
    assert leader.leo_and_hw() == (4, 4)


# Errors ----------------------------------------------------------------------------------------

RETRIED = [
    error
    for error in ErrorCode
    if error not in (ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.FENCED_LEADER_EPOCH)
]


@pytest.mark.parametrize("error", RETRIED, ids=lambda error: error.name)
def test_a3_an_error_is_retried_from_the_same_offset_after_a_pause(error: ErrorCode) -> None:
    leader = FakeLeader(runs=((0, 3),), high_watermark=2)
    count = leader.requests()
    leader.answer_fetch(frame(3), error=error, high_watermark=3, log_start=1)
    assert leader.leo_and_hw() == (3, 2)

    leader.router.run_for(BACKOFF_MS - 1)
    assert leader.requests() == count
    leader.router.run_for(1)
    assert leader.requests() == count + 1
    assert leader.fetch().partitions[0].fetch_offset == 3


def test_a3_fenced_with_the_epoch_that_is_ours_fails_until_new_metadata() -> None:
    leader = FakeLeader(runs=((0, 3),))
    count = leader.requests()
    leader.answer_fetch(error=ErrorCode.FENCED_LEADER_EPOCH)
    leader.router.run_for(100_000)
    assert leader.state() == "failed"
    assert leader.requests() == count

    leader.follow(0)
    assert leader.state() == "failed"
    leader.follow(1)
    assert leader.fetch().partitions[0].current_leader_epoch == 1


def test_a3_fenced_with_an_epoch_that_is_past_is_retried() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.follow(1)
    leader.answer_fetch(error=ErrorCode.FENCED_LEADER_EPOCH)
    assert leader.state() == "fetching"
    assert leader.fetch().partitions[0].current_leader_epoch == 1


@pytest.mark.parametrize("mode", [KIP_279, KIP_101], ids=lambda mode: mode.value)
@pytest.mark.parametrize("error", RETRIED, ids=lambda error: error.name)
def test_a10_an_error_of_the_question_is_retried(mode: TruncationMode, error: ErrorCode) -> None:
    leader = FakeLeader(mode=mode)
    count = leader.requests()
    leader.answer_epoch(0, 0, error)
    leader.router.run_for(BACKOFF_MS)
    assert leader.requests() == count + 1
    assert leader.asked(OffsetsForLeaderEpochRequest) is not None


def test_a10_fenced_for_the_question_fails_the_partition() -> None:
    leader = FakeLeader(mode=KIP_279)
    leader.answer_epoch(-1, -1, ErrorCode.FENCED_LEADER_EPOCH)
    assert leader.state() == "failed"


def test_a10_an_answer_of_an_older_epoch_is_dropped_and_asked_anew() -> None:
    leader = FakeLeader(mode=KIP_279, runs=((0, 3),))
    leader.follow(1)
    leader.answer_fetch()
    leader.follow(2)
    leader.answer_epoch(0, 1)
    assert leader.leo_and_hw() == (3, 0)
    question = leader.asked(OffsetsForLeaderEpochRequest)
    assert question is not None
    assert question.partitions[0].current_leader_epoch == 2
    leader.answer_epoch(0, 1)
    assert leader.leo_and_hw() == (1, 0)


# The table of A10 ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "mode", "leo", "is_done"),
    [
        pytest.param((-1, -1), KIP_279, 4, True, id="undefined-end"),
        pytest.param((-1, -1), KIP_101, 4, True, id="undefined-end-101"),
        pytest.param((-1, 6), KIP_279, 6, True, id="undefined-epoch"),
        pytest.param((9, 6), KIP_279, 6, True, id="own-lookup-undefined"),
        pytest.param((5, 6), KIP_279, 6, True, id="same-epoch-leader-shorter"),
        pytest.param((5, 99), KIP_279, 8, True, id="same-epoch-own-shorter"),
        pytest.param((3, 7), KIP_279, 5, False, id="own-epoch-is-lower"),
        pytest.param((3, 7), KIP_101, 7, True, id="only-the-end-counts-101"),
        pytest.param((2, 4), KIP_279, 4, True, id="common-epoch-leader-shorter"),
        pytest.param((0, 0), KIP_279, 0, True, id="everything"),
    ],
)
def test_a10_each_row_of_the_table(
    answer: tuple[int, int], mode: TruncationMode, leo: int, is_done: bool
) -> None:
    leader = FakeLeader(mode=mode, runs=((0, 2), (2, 5), (5, 8)), high_watermark=4)
    leader.follow(8)
    leader.answer_fetch()
    leader.answer_epoch(*answer)

    assert leader.log_of().leo == leo
    assert leader.state() == ("fetching" if is_done else "truncating")
    if is_done:
        assert leader.fetch().partitions[0].fetch_offset == leo
    else:
        question = leader.asked(OffsetsForLeaderEpochRequest)
        assert question is not None
        assert question.partitions[0].leader_epoch == 2


def test_a10_in_fetch_mode_an_unfinished_round_goes_on_with_the_next_fetch() -> None:
    leader = FakeLeader(runs=((0, 2), (2, 5), (5, 8)), high_watermark=1)
    leader.follow(8)
    leader.answer_fetch()
    leader.answer_fetch(diverging=(3, 7))
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (5, 2)
    leader.answer_fetch(diverging=(0, 1))
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (1, 0)
    assert leader.leo_and_hw() == (1, 1)


def test_a10_a_cut_inside_a_batch_takes_the_whole_batch() -> None:
    leader = FakeLeader(mode=KIP_101)
    leader.answer_epoch(-1, -1)
    leader.answer_fetch(frame(0, 3) + frame(3, 4), high_watermark=7)
    leader.follow(1)
    leader.answer_fetch()
    leader.answer_epoch(0, 5)
    assert leader.leo_and_hw() == (3, 3)
    assert leader.fetch().partitions[0].fetch_offset == 3


def test_a10_a_cut_inside_a_hidden_batch_leaves_nothing() -> None:
    leader = FakeLeader(runs=((0, 0),))
    leader.answer_fetch(frame(0, 5) + frame(5, 5), high_watermark=10, log_start=4)
    leader.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    leader.answer_offset(2)
    assert leader.leo_and_hw() == (2, 2)
    assert leader.log_of().log_start_offset == 2


# Out of range ----------------------------------------------------------------------------------


def out_of_range(*, high_watermark: int = 4) -> FakeLeader:
    leader = FakeLeader(runs=((0, 3), (2, 6)), high_watermark=high_watermark)
    leader.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE, high_watermark=9, log_start=5)
    assert leader.leo_and_hw() == (6, high_watermark)
    question = leader.asked(ListOffsetsRequest)
    assert question is not None
    (part,) = question.partitions
    assert (question.replica_id, part.current_leader_epoch) == ("b1", 2)
    assert part.timestamp == LATEST_TIMESTAMP
    return leader


def test_a12_a_leader_with_less_is_followed_down() -> None:
    leader = out_of_range()
    leader.answer_offset(2)
    assert leader.leo_and_hw() == (2, 2)
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (2, 0)


def test_a12_a_leader_that_starts_behind_is_begun_anew() -> None:
    leader = out_of_range()
    assert leader.answer_offset(20) == LATEST_TIMESTAMP
    assert leader.answer_offset(10) == EARLIEST_TIMESTAMP
    assert leader.leo_and_hw() == (10, 10)
    assert leader.log_of().log_start_offset == 10
    assert leader.log_of().epochs.entries == ()
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (10, -1)
    assert asked.log_start_offset == 10


def test_a12_a_start_behind_the_end_means_that_both_are_asked_anew() -> None:
    leader = out_of_range()
    leader.answer_offset(9)
    leader.answer_offset(10)
    assert leader.leo_and_hw() == (6, 4)
    leader.router.run_for(BACKOFF_MS)
    assert leader.answer_offset(11) == LATEST_TIMESTAMP
    assert leader.answer_offset(10) == EARLIEST_TIMESTAMP
    assert leader.leo_and_hw() == (10, 10)


@pytest.mark.parametrize("start", [0, 5, 6])
def test_a12_a_leader_that_has_the_end_is_asked_again_from_there(start: int) -> None:
    leader = out_of_range()
    leader.answer_offset(6)
    leader.answer_offset(start)
    assert leader.leo_and_hw() == (6, 4)
    (asked,) = leader.fetch().partitions
    assert (asked.fetch_offset, asked.last_fetched_epoch) == (6, 2)


@pytest.mark.parametrize("rounds", [0, 1])
def test_a12_an_error_is_retried_and_a_new_epoch_begins_anew(rounds: int) -> None:
    leader = out_of_range()
    for _ in range(rounds):
        leader.answer_offset(9)
    count = leader.requests()
    leader.answer_offset(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    leader.router.run_for(BACKOFF_MS)
    assert leader.requests() == count + 1
    leader.follow(3)
    leader.answer_offset(1)
    assert leader.leo_and_hw() == (6, 4)
    assert leader.fetch().partitions[0].current_leader_epoch == 3


def test_a12_fenced_fails_the_partition() -> None:
    leader = out_of_range()
    leader.answer_offset(0, ErrorCode.FENCED_LEADER_EPOCH)
    assert leader.state() == "failed"


# Time ------------------------------------------------------------------------------------------


def test_a3_without_an_answer_the_fetch_is_asked_again_and_the_late_one_dropped() -> None:
    leader = FakeLeader(runs=((0, 3),))
    late = leader.fetch().correlation_id
    count = leader.requests()
    leader.router.run_for(30_000 + BACKOFF_MS - 1)
    assert leader.requests() == count
    leader.router.run_for(1)
    assert leader.requests() == count + 1
    leader.answer(FetchResponse(late, (leader.result(frame(3), high_watermark=4),)))
    assert leader.leo_and_hw() == (3, 0)
    leader.answer_fetch(frame(3))
    assert leader.leo_and_hw() == (4, 0)


def test_a3_a_lost_connection_is_asked_again_after_a_pause() -> None:
    leader = FakeLeader(runs=((0, 3),))
    count = leader.requests()
    leader.router.call("b1", "on_disconnected", LEADER)
    leader.router.settle()
    leader.router.run_for(BACKOFF_MS)
    assert leader.requests() == count + 1
    # The first request's deadline is not the second one's.
    leader.router.run_for(30_000 - BACKOFF_MS)
    assert leader.requests() == count + 1
    leader.answer_fetch(frame(3))
    assert leader.leo_and_hw() == (4, 0)


def test_a3_one_request_is_under_way_at_a_time() -> None:
    leader = FakeLeader(runs=((0, 3),))
    count = leader.requests()
    leader.follow(0, numbered(1))
    leader.router.run_for(10_000)
    assert leader.requests() == count
    leader.answer_fetch()
    assert [part.partition for part in leader.fetch().partitions] == [numbered(0), numbered(1)]


# Several partitions ----------------------------------------------------------------------------


def test_a3_one_partitions_failure_stops_no_other() -> None:
    leader = FakeLeader(partitions=5)
    damaged = bytearray(frame(0))
    damaged[-1] ^= 1
    results = (
        leader.result(bytes(damaged), partition=numbered(0)),
        leader.result(frame(7), partition=numbered(1)),
        leader.result(error=ErrorCode.FENCED_LEADER_EPOCH, partition=numbered(2)),
        leader.result(error=ErrorCode.OFFSET_OUT_OF_RANGE, partition=numbered(3)),
        leader.result(frame(0), high_watermark=1, partition=numbered(4)),
    )
    leader.answer(FetchResponse(leader.fetch().correlation_id, results))

    assert leader.leo_and_hw(4) == (1, 1)
    states = [leader.state(number) for number in range(5)]
    assert states == ["fetching", "failed", "failed", "latest", "fetching"]
    assert leader.asked(ListOffsetsRequest) is not None
    leader.answer_offset(0, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    # That answer named another partition than the one asked for: it rests, the others go on.
    assert [part.partition for part in leader.fetch().partitions] == [numbered(4)]
    leader.router.run_for(BACKOFF_MS)
    leader.answer(FetchResponse(leader.fetch().correlation_id, ()))
    question = leader.asked(ListOffsetsRequest)
    assert question is not None
    assert [part.partition for part in question.partitions] == [numbered(3)]


def test_a3_a_failed_partition_comes_back_with_the_next_epoch() -> None:
    leader = FakeLeader(partitions=2)
    results = (
        leader.result(frame(7), partition=numbered(0)),
        leader.result(frame(0), partition=numbered(1)),
    )
    leader.answer(FetchResponse(leader.fetch().correlation_id, results))
    assert (leader.state(0), leader.state(1)) == ("failed", "fetching")
    leader.follow(1, numbered(0))
    leader.answer(FetchResponse(leader.fetch().correlation_id, ()))
    leader.router.run_for(BACKOFF_MS)
    asked = [(p.partition, p.current_leader_epoch) for p in leader.fetch().partitions]
    assert asked == [(numbered(0), 1)]


# A transition that fails half-way --------------------------------------------------------------


def test_a2_b47_a_transition_that_fails_is_made_by_the_next_metadata(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.follow(1, leader="b1")
    replica = leader.replica_of()
    assert replica.role.name == "leader"

    def refuse(log: PartitionLog) -> None:
        raise CorruptIndex(Path("/b1/orders-0"), "refused")

    with monkeypatch.context() as patched:
        patched.setattr(PartitionLog, "become_follower", refuse)
        leader.follow(2)
    assert (replica.role.name, replica.leader_epoch) == ("leader", 1)
    assert leader.router.noted("role-error") != []

    leader.follow(2)
    assert (replica.role.name, replica.leader_epoch) == ("follower", 2)
    assert leader.copy_of().leader_epoch == 2
