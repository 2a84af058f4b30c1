"""Histories of fetching, high watermarks and joining (HAZARDS B.1 to B.3, B-H1, B-H9).

As in ``test_truncation_hazards``: with the guard off the harm shows, with all guards it does not.
Some guards cover for each other; then a test says which.
"""

from __future__ import annotations

import pytest

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
)
from cluster.truncation import TruncationMode
from tests.cluster.histories import (
    History,
    committed_difference,
    first_difference,
    has,
    violations,
)
from tests.cluster.scripted import ORDERS

GUARDS_ON = Guards()


def carries_records(message: Message) -> bool:
    return isinstance(message, FetchResponse) and any(p.records for p in message.partitions)


def delete_records(history: History, leader: str, offset: int) -> None:
    part = DeleteRecordsPartition(ORDERS, offset)
    history.send(leader, DeleteRecordsRequest(history.number(), 30_000, (part,)))


# B-16 ------------------------------------------------------------------------------------------


def play_b16(guards: Guards) -> History:
    """A new leader's high watermark lags; C has that much and not the start of the epoch."""
    history = History(3, guards=guards, config=BrokerConfig(replica_fetch_max_bytes=1))
    history.cut_off("b3")
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 5, acks=-1)
    history.router.run_for(600)
    number = history.produce("b1", *(b"v%d" % n for n in range(5)))
    assert history.is_acked(number)
    assert (history.high_watermark("b2"), history.leo("b2")) == (5, 10)

    history.cut_off("b1")
    history.lead("b2", ["b1", "b2"])

    def is_last_batch(src: str, dst: str, message: Message) -> bool:
        ends = frozenset((src, dst))
        if "b1" in ends and len(ends & {"b1", "b2", "b3"}) == 2:
            return True
        # Single records pass; the batch of five does not.
        return isinstance(message, FetchResponse) and any(
            len(part.records) > 150 for part in message.partitions
        )

    history.heal(but=is_last_batch)
    history.router.run_for(1_000)
    assert history.leo("b3") == 5
    return history


def test_b16_a_replica_joins_only_with_the_start_of_the_epoch() -> None:
    wrong = play_b16(Guards(epoch_start_rule=False))
    state = wrong.controller.image.partition(ORDERS)
    assert state is not None
    assert "b3" in state.isr
    wrong.kill("b1")
    wrong.kill("b2")
    wrong.lead("b3", ["b3"])
    assert not has(wrong, "b3", 5, 0)

    right = play_b16(GUARDS_ON)
    state = right.controller.image.partition(ORDERS)
    assert state is not None
    assert "b3" not in state.isr


# B-19 ------------------------------------------------------------------------------------------


def play_b19(guards: Guards) -> History:
    """The follower is below the leader's log start, and its last epoch is one of its own."""
    history = History(2, guards=guards)
    history.lead("b1", ["b1", "b2"], epoch=0)
    history.write("b1", 5, acks=-1)
    history.router.run_for(600)
    history.build("b2", "3:3")
    history.build("b1", "2:15 4:5")
    delete_records(history, "b1", 10)
    assert history.replica("b1").opened.log_start_offset == 10
    history.tell()
    history.heal()
    history.router.run_for(3_000)
    return history


def test_b19_the_log_start_is_judged_before_divergence() -> None:
    wrong = play_b19(Guards(log_start_before_divergence=False))
    assert (8, 5) in wrong.truncations("b2")

    right = play_b19(GUARDS_ON)
    assert all(to == log_end for log_end, to in right.truncations("b2"))
    assert right.log("b1") == right.log("b2")
    assert right.draw("b2") == "2:10-19 4:20-24 | start 10 hw 25 leo 25"


def test_b19_with_offsets_of_a_diverging_response_the_partition_fails() -> None:
    guards = Guards(log_start_before_divergence=False, truncate_before_append=False)
    wrong = play_b19(guards)
    assert wrong.fetch_state("b2") == "failed"
    wrong.router.run_for(60_000)
    assert wrong.leo("b2") == 8

    assert play_b19(Guards(truncate_before_append=False)).fetch_state("b2") == "fetching"


# B-20 ------------------------------------------------------------------------------------------


def play_b20(guards: Guards) -> History:
    """Bytes that a response refers to are written anew before they are transmitted."""
    history = History(3, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.write("b1", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b3")

    def is_to_b2(src: str, dst: str, message: Message) -> bool:
        return (src, dst) == ("b1", "b2") and isinstance(message, FetchResponse)

    history.router.is_unread = is_to_b2
    history.produce("b1", b"old", acks=1)
    assert len(history.router.unread) == 1
    history.lead_alone("b3", told=["b1"], isr=["b1", "b3"])
    history.heal()
    history.produce("b3", b"new", acks=1)
    assert history.log("b1")[2][1:] == (1, b"new")
    history.router.read_out()
    history.router.settle()
    return history


def test_b20_a_follower_takes_no_batch_newer_than_its_fetch() -> None:
    wrong = play_b20(Guards(batch_epoch_not_above_fetch_epoch=False))
    assert wrong.log("b2")[2][1] == 1 > wrong.replica("b2").leader_epoch == 0

    right = play_b20(GUARDS_ON)
    assert right.leo("b2") == 2
    right.tell()
    right.router.run_for(3_000)
    assert right.log("b1") == right.log("b2") == right.log("b3")


def test_b20_bytes_that_are_gone_reach_nobody() -> None:
    history = History(2)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 2, acks=-1)
    history.router.is_unread = lambda src, dst, message: dst == "b2"
    history.write("b1", 1)
    history.replica("b1").truncate(2)
    history.router.read_out()
    history.router.settle()
    assert history.leo("b2") == 2


# B-22 ------------------------------------------------------------------------------------------


def play_b22(guards: Guards) -> History:
    """The leader's log starts inside a batch, and a new replica begins there."""
    history = History(2, guards=guards)
    history.lead("b1", ["b1"], replicas=["b1"])
    history.produce("b1", *(b"v%d" % n for n in range(10)))
    delete_records(history, "b1", 5)
    history.lead("b1", ["b1"], replicas=["b1", "b2"])
    history.router.run_for(3_000)
    return history


def test_b22_an_empty_log_begins_at_the_batch_that_the_leader_starts_in() -> None:
    wrong = play_b22(Guards(empty_log_takes_batch_base=False))
    assert (wrong.leo("b2"), wrong.fetch_state("b2")) == (5, "failed")

    right = play_b22(GUARDS_ON)
    assert right.log("b1") == right.log("b2")
    assert right.draw("b2") == "0:5-9 | start 5 hw 10 leo 10"
    assert violations(right.replica("b2")) == []


def play_hidden_fork(guards: Guards, own: int) -> History:
    """The leader's log start is inside a batch, and hides where the follower's log forks."""
    history = History(2, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 3, acks=-1)
    history.router.run_for(600)
    history.cut_off("b1")
    history.write("b1", own)
    history.lead_alone("b2")
    history.produce("b2", b"a", b"b", b"c")
    delete_records(history, "b2", 4)
    assert history.draw("b2") == "1:4-5 | start 4 hw 6 leo 6"
    history.tell()
    history.heal()
    history.router.run_for(3_000)
    return history


@pytest.mark.parametrize("own", [1, 2, 3, 4])
def test_b22_a_fork_that_the_log_start_hides_fails_no_partition(own: int) -> None:
    right = play_hidden_fork(GUARDS_ON, own)
    assert right.draw("b1") == right.draw("b2")
    assert right.log("b1") == right.log("b2")
    assert violations(right.replica("b1")) == []

    wrong = play_hidden_fork(Guards(empty_log_takes_batch_base=False), own)
    assert wrong.fetch_state("b1") == "failed"


# B-24 ------------------------------------------------------------------------------------------


def play_b24(guards: Guards) -> History:
    """An "out of range" from a moment that has passed."""
    history = History(2, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 10, acks=-1)
    history.router.run_for(600)
    history.holds = lambda src, dst, message: dst == "b2" and src == "b1"
    history.router.run_for(600)
    history.write("b1", 1)
    (held,) = [message for _, dst, message in history.router.kept if dst == "b2"]
    history.router.kept.clear()
    stale = FetchPartitionResult(ORDERS, ErrorCode.OFFSET_OUT_OF_RANGE)
    history.router.queue.append(("b1", "b2", FetchResponse(held.correlation_id, (stale,))))
    history.heal()
    history.router.settle()
    return history


def dropped(history: History, name: str) -> int:
    return sum(args["log_end"] for args in history.router.noted("restart-at", name))


def test_b24_a_log_is_dropped_only_if_it_ends_below_the_leaders_start() -> None:
    wrong = play_b24(Guards(full_truncation_only_below_start=False))
    assert dropped(wrong, "b2") == 10

    right = play_b24(GUARDS_ON)
    assert dropped(right, "b2") == 0
    assert right.truncations("b2") == []
    assert right.log("b1") == right.log("b2")


# B-25 ------------------------------------------------------------------------------------------


def play_b25(guards: Guards) -> tuple[History, list[int]]:
    """An old leader's unacked tail is longer than the new leader's log."""
    history = History(2, guards=guards)
    history.lead("b2", ["b1", "b2"])
    history.write("b2", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b1")
    history.write("b2", 4)
    history.lead("b1", ["b1", "b2"])
    numbers = history.write("b1", 2, acks=-1)
    history.heal(but=lambda src, dst, message: (src, dst) == ("b1", "b2"))
    history.router.settle()
    return history, numbers


def test_b25_a_diverging_fetch_commits_nothing() -> None:
    wrong, numbers = play_b25(Guards(no_credit_on_divergence=False))
    assert all(wrong.is_acked(number) for number in numbers)
    wrong.kill("b1")
    wrong.lead("b2", ["b2"])
    assert not has(wrong, "b2", 2, 1)

    right, numbers = play_b25(GUARDS_ON)
    assert not any(right.is_acked(number) for number in numbers)
    right.heal()
    right.router.settle()
    assert all(right.is_acked(number) for number in numbers)
    assert right.log("b1") == right.log("b2")


# Late responses (C.2) --------------------------------------------------------------------------


def play_late_response(guards: Guards, *, shortens: bool) -> History:
    """A leads, then C, then A again; A's response to the first fetch comes last.

    With ``shortens`` the follower asked at an offset that its log does not reach any more.
    """
    history = History(3, mode=TruncationMode.HIGH_WATERMARK, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.write("b1", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b3")
    if shortens:
        history.write("b1", 2)
        assert (history.leo("b2"), history.high_watermark("b2")) == (4, 2)
    history.holds = lambda src, dst, message: (src, dst) == ("b1", "b2")
    history.produce("b1", b"late", acks=1)
    kept = history.router.kept
    late = [each for each in kept if each[1] == "b2" and carries_records(each[2])]
    history.router.kept = [each for each in kept if "b2" not in each[:2]]
    assert len(late) == 1

    history.lead_alone("b3", isr=["b1", "b3"], told=["b1"])
    history.heal(but=lambda src, dst, message: "b2" in (src, dst) and src != "c1")
    history.router.settle()
    history.lead_alone("b1", isr=["b1", "b3"], told=["b2", "b3"])
    history.write("b1", 6)
    history.router.queue.extend(late)
    history.heal()
    history.router.run_for(3_000)
    return history


def test_a3_a_response_of_an_older_epoch_is_dropped() -> None:
    wrong = play_late_response(Guards(fetch_response_epoch_match=False), shortens=False)
    assert first_difference(wrong, "b1", "b2") == 2
    assert committed_difference(wrong, "b1", "b2") == 2

    right = play_late_response(GUARDS_ON, shortens=False)
    assert right.log("b1") == right.log("b2")


def test_a3_a_response_for_another_offset_is_dropped() -> None:
    both = Guards(fetch_response_epoch_match=False, fetch_offset_match=False)
    wrong = play_late_response(both, shortens=True)
    assert [offset for offset, *_ in wrong.log("b2")][:3] != [0, 1, 2]

    for guards in (
        GUARDS_ON,
        Guards(fetch_offset_match=False),
        Guards(fetch_response_epoch_match=False),
    ):
        right = play_late_response(guards, shortens=True)
        assert right.log("b1") == right.log("b2")


# B-H1 ------------------------------------------------------------------------------------------


def play_bh1(guards: Guards) -> History:
    """F cuts its own epoch, the epoch file is not written, F crashes and leads."""
    history = History(3, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"], epoch=4)
    history.write("b1", 5, acks=-1)
    history.router.run_for(600)
    history.cut_off("b2")
    history.write("b1", 2)
    assert history.leo("b3") == 7
    history.lead_alone("b2", epoch=5, isr=["b1", "b2", "b3"])
    history.write("b2", 2)
    history.router.holds_background = True
    history.lead("b1", ["b1", "b2", "b3"], epoch=6)
    history.tell()
    history.heal()
    history.router.run_for(600)
    assert history.replica("b2").opened.epochs.entries == ((4, 0),)
    assert history.draw("b2") == "4:0-6 | hw 7 leo 7"

    history.kill("b2")
    history.kill("b1")
    history.start("b2")
    history.controller.silent_to = {"b3"}
    history.lead("b2", ["b2", "b3"], epoch=7)
    history.tell_for(200, "b3")
    return history


def test_bh1_the_epoch_file_is_checked_with_the_batches_at_open() -> None:
    wrong = play_bh1(Guards(verify_epochs_at_open=False))
    assert violations(wrong.replica("b2")) != []
    assert len(set(wrong.truncations("b3")[-20:])) == 1
    assert wrong.truncations("b3")[-1] == (7, 5)

    right = play_bh1(GUARDS_ON)
    assert violations(right.replica("b2")) == []
    assert right.truncations("b3") == []
    assert right.log("b2") == right.log("b3")


# B-H9 ------------------------------------------------------------------------------------------


def play_bh9(guards: Guards) -> tuple[History, list[int]]:
    """A leads again and did not hear that another led in between."""
    history = History(3, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.write("b1", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b2")
    numbers = history.write("b1", 2, acks=-1)
    assert history.replica("b1").leading is not None
    assert history.leo("b3") == 4

    history.lead_alone("b2", told=["b3"], isr=["b1", "b2", "b3"])
    history.heal(but=lambda src, dst, message: "b1" in (src, dst) and src[0] == dst[0] == "b")
    history.router.settle()
    assert history.leo("b3") == 2
    history.kill("b2")
    history.lead_alone("b1", isr=["b1", "b3"])
    return history, numbers


def test_bh9_positions_are_forgotten_where_an_epoch_was_missed() -> None:
    wrong, numbers = play_bh9(Guards(keep_leo_only_if_no_epoch_missed=False))
    assert all(wrong.is_acked(number) for number in numbers)
    wrong.kill("b1")
    wrong.lead_alone("b3")
    assert not has(wrong, "b3", 2, 0)

    right, numbers = play_bh9(GUARDS_ON)
    assert not any(right.is_acked(number) for number in numbers)
    right.tell()
    right.heal()
    right.router.run_for(3_000)
    assert all(right.is_acked(number) for number in numbers)
    assert right.log("b1") == right.log("b3")


# In which modes --------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(TruncationMode), ids=lambda mode: mode.value)
def test_b25_only_a_fetch_with_an_epoch_can_diverge(mode: TruncationMode) -> None:
    """In the older modes the follower asks first, so its fetch already fits."""
    history = History(2, mode=mode, guards=Guards(no_credit_on_divergence=False))
    history.lead("b2", ["b1", "b2"])
    history.write("b2", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b1")
    history.write("b2", 4)
    history.lead("b1", ["b1", "b2"])
    numbers = history.write("b1", 2, acks=-1)
    history.heal(
        but=lambda src, dst, message: (
            (src, dst) == ("b2", "b1")
            and isinstance(message, FetchRequest)
            and message.partitions[0].current_leader_epoch == 1
            and message.partitions[0].fetch_offset <= 2
        )
    )
    history.router.settle()
    acked = [history.is_acked(number) for number in numbers]
    assert acked == [mode is TruncationMode.FETCH] * 2
