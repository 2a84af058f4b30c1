"""Histories of truncation (HAZARDS B.1): the rule of the time shows the harm, today's does not.

Each test plays the steps of its entry twice or more: with the truncation mode of the time, or with
the guard that mended it switched off, and then as the rules are today.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import (
    FetchRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.truncation import TruncationMode
from storage.memdisk import MemDisk
from tests.cluster.histories import (
    MODES,
    History,
    committed_difference,
    first_difference,
    has,
    raw,
)

FETCH, KIP_279, KIP_101, HIGH_WATERMARK = MODES


def modes(*found: TruncationMode) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("mode", found, ids=[mode.value for mode in found])


# B-01 ------------------------------------------------------------------------------------------


def play_b01(mode: TruncationMode) -> History:
    """m1 is acked while the follower's own high watermark does not cover it."""
    history = History(2, mode=mode)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 1, acks=-1)
    history.router.run_for(6_000)
    (m1,) = history.write("b1", 1, acks=-1)
    assert history.is_acked(m1)
    assert (history.high_watermark("b1"), history.high_watermark("b2")) == (2, 1)

    history.kill("b2")
    history.cut_off("b2")
    history.start("b2")
    history.kill("b1")
    history.lead("b2", ["b2"])
    return history


def test_b01_truncation_to_the_high_watermark_loses_an_acked_record() -> None:
    history = play_b01(HIGH_WATERMARK)
    assert not has(history, "b2", 1, 0)
    assert history.leo("b2") == 1


@modes(FETCH, KIP_279, KIP_101)
def test_b01_modes_with_epochs_keep_it(mode: TruncationMode) -> None:
    assert has(play_b01(mode), "b2", 1, 0)


# B-02 ------------------------------------------------------------------------------------------


def play_b02(mode: TruncationMode) -> History:
    """A has m0 and m1, B only m0; B comes back first and writes m2 where m1 was."""
    history = History(2, mode=mode)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 1, acks=-1)
    history.router.run_for(600)
    history.cut_off("b2")
    history.lead("b1", ["b1"])
    history.write("b1", 1)
    history.router.run_for(6_000)
    assert (history.leo("b1"), history.leo("b2"), history.high_watermark("b1")) == (2, 1, 2)
    history.kill("b1")
    history.kill("b2")
    history.heal()

    history.start("b2")
    history.lead("b2", ["b2"])
    history.write("b2", 1)
    history.start("b1")
    assert history.high_watermark("b1") in (1, 2)
    history.write("b2", 1)
    history.router.run_for(2_000)
    return history


def test_b02_high_watermark_mode_keeps_a_record_that_the_leader_has_otherwise() -> None:
    history = play_b02(HIGH_WATERMARK)
    assert committed_difference(history, "b1", "b2") == 1


@modes(FETCH, KIP_279, KIP_101)
def test_b02_modes_with_epochs_cut_at_the_end_of_the_epoch(mode: TruncationMode) -> None:
    history = play_b02(mode)
    assert history.log("b1") == history.log("b2")


# B-03 ------------------------------------------------------------------------------------------


def play_b03(mode: TruncationMode) -> History:
    """Two fail-overs in a row; the leader answers with an epoch that the follower never had."""
    history = History(2, mode=mode)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 5, acks=-1)
    history.router.run_for(6_000)
    history.kill("b2")
    history.lead("b1", ["b1"], epoch=0)
    history.write("b1", 2)
    history.router.run_for(6_000)
    history.kill("b1")
    history.start("b2")
    history.lead("b2", ["b2"])
    history.write("b2", 3)
    history.router.run_for(6_000)
    history.kill("b2")
    history.start("b1")
    history.lead("b1", ["b1"])
    history.write("b1", 1)
    history.start("b2")
    history.write("b1", 1)
    history.router.run_for(2_000)
    return history


def test_b03_kip_101_keeps_records_of_an_epoch_that_the_leader_never_had() -> None:
    history = play_b03(KIP_101)
    assert first_difference(history, "b1", "b2") == 5
    assert committed_difference(history, "b1", "b2") == 5


@modes(FETCH, KIP_279)
def test_b03_the_loop_ends_at_a_common_epoch(mode: TruncationMode) -> None:
    history = play_b03(mode)
    assert raw(history.broker("b1")) == raw(history.broker("b2"))
    assert min(to for _, to in history.truncations("b2")) in (0, 5)


# B-04 ------------------------------------------------------------------------------------------


def play_b04(guards: Guards, mode: TruncationMode = KIP_279) -> History:
    """The zombie follower of KIP-320: it hears no metadata and fetches on from who leads again."""
    history = History(3, mode=mode, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.write("b1", 4, acks=-1)
    history.router.run_for(600)
    history.cut_off("b3")
    history.write("b1", 1)
    assert (history.leo("b2"), history.leo("b3")) == (5, 4)

    history.lead_alone("b3", told=["b1"], isr=["b1", "b3"])
    history.heal()
    history.write("b3", 2, acks=-1)
    assert history.log("b1") == history.log("b3")
    history.lead_alone("b1", told=["b3"], isr=["b1", "b3"])
    history.write("b1", 1, acks=-1)
    history.router.run_for(3_000)
    return history


def test_b04_a_zombie_goes_on_where_fetches_are_not_fenced() -> None:
    history = play_b04(Guards(fetch_epoch=False, batch_epoch_not_above_fetch_epoch=False))
    assert committed_difference(history, "b1", "b2") == 4


@pytest.mark.parametrize(
    "guards",
    [Guards(), Guards(fetch_epoch=False), Guards(batch_epoch_not_above_fetch_epoch=False)],
    ids=["today", "without-fetch-epoch", "without-batch-epoch"],
)
def test_b04_either_guard_stops_it(guards: Guards) -> None:
    history = play_b04(guards)
    assert committed_difference(history, "b1", "b2") is None
    assert history.leo("b2") == 5

    history.tell()
    history.router.run_for(3_000)
    assert history.log("b1") == history.log("b2")


def test_b04_in_fetch_mode_the_last_epoch_gives_the_zombie_away_too() -> None:
    history = play_b04(Guards(fetch_epoch=False, batch_epoch_not_above_fetch_epoch=False), FETCH)
    assert committed_difference(history, "b1", "b2") is None


# B-05 ------------------------------------------------------------------------------------------


def play_b05(mode: TruncationMode, guards: Guards) -> History:
    """An epoch is missed and the leader is the same again."""
    history = History(3, mode=mode, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.cut_off("b2")
    history.write("b1", 1)
    assert (history.leo("b2"), history.leo("b3")) == (0, 1)
    history.lead_alone("b2", told=["b1"], isr=["b1", "b2"])
    history.heal()
    assert history.leo("b1") == 0
    history.kill("b2")
    history.lead_alone("b1", isr=["b1"])
    history.write("b1", 1)
    history.tell()
    history.router.run_for(3_000)
    history.write("b1", 1)
    history.router.run_for(3_000)
    return history


@modes(KIP_279, KIP_101, HIGH_WATERMARK)
def test_b05_without_truncation_on_every_bump_a_missed_epoch_stays(mode: TruncationMode) -> None:
    history = play_b05(mode, Guards(truncate_on_every_bump=False))
    assert first_difference(history, "b1", "b3") == 0
    assert history.leo("b3") == 2


@modes(*MODES)
def test_b05_every_bump_truncates(mode: TruncationMode) -> None:
    history = play_b05(mode, Guards())
    assert history.log("b1") == history.log("b3")


def test_b05_in_fetch_mode_the_last_epoch_shows_it_even_without_the_rule() -> None:
    history = play_b05(FETCH, Guards(truncate_on_every_bump=False))
    assert history.log("b1") == history.log("b3")


# KAFKA-15510 -----------------------------------------------------------------------------------


def play_15510(guards: Guards) -> History:
    """As B-05 in fetch mode, but the follower got an empty response before it missed the epoch."""
    history = History(3, guards=guards)
    history.lead("b1", ["b1", "b2", "b3"])
    history.cut_off("b2")
    history.write("b1", 1)
    history.router.run_for(1_200)
    history.lead_alone("b2", told=["b1"], isr=["b1", "b2"])
    history.heal()
    assert history.leo("b1") == 0
    history.kill("b2")
    history.lead_alone("b1", isr=["b1"])
    history.write("b1", 1)
    history.tell()
    history.router.run_for(3_000)
    history.write("b1", 1)
    history.router.run_for(3_000)
    return history


def test_a3_15510_a_follower_that_forgets_its_last_epoch_is_not_told_that_it_diverges() -> None:
    bumps = Guards(truncate_on_every_bump=False)
    assert first_difference(play_15510(bumps), "b1", "b3") is None

    both = Guards(truncate_on_every_bump=False, keep_last_fetched_epoch=False)
    assert first_difference(play_15510(both), "b1", "b3") == 0

    alone = Guards(keep_last_fetched_epoch=False)
    assert first_difference(play_15510(alone), "b1", "b3") is None


# B-06 ------------------------------------------------------------------------------------------


def play_b06(guards: Guards) -> History:
    """The leader has no entry for its own epoch, and no answer for the follower's."""
    history = History(2, mode=KIP_279, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 3, acks=-1)
    history.router.run_for(6_000)
    history.kill("b1")
    history.lead("b2", ["b2"])
    history.write("b2", 2)
    history.router.run_for(6_000)
    assert history.high_watermark("b2") == 5
    history.kill("b2")
    history.start("b1")
    history.lead("b1", ["b1"])
    history.holds = lambda src, dst, message: src == "b2" and isinstance(message, FetchRequest)
    history.start("b2")
    history.write("b1", 2)
    history.heal()
    history.write("b1", 1)
    history.router.run_for(3_000)
    return history


def test_b06_an_epoch_without_records_has_an_entry() -> None:
    wrong = play_b06(Guards(assign_epoch_on_promotion=False))
    assert committed_difference(wrong, "b1", "b2") == 3

    right = play_b06(Guards())
    assert right.log("b1") == right.log("b2")


def play_b06_below_oldest(guards: Guards) -> History:
    """The follower's epoch is older than every one of the leader's."""
    history = History(2, mode=KIP_279, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.build("b2", "1:3")
    history.build("b1", "2:4")
    history.tell()
    history.heal()
    history.router.run_for(3_000)
    return history


def test_b06_an_epoch_below_the_oldest_has_an_answer() -> None:
    wrong = play_b06_below_oldest(Guards(answer_below_oldest_epoch=False))
    assert committed_difference(wrong, "b1", "b2") == 0

    right = play_b06_below_oldest(Guards())
    assert right.log("b1") == right.log("b2")


# B-07 ------------------------------------------------------------------------------------------


def play_b07(guards: Guards) -> History:
    """The follower's cache is empty: it sends -1."""
    history = History(2, mode=KIP_101, guards=guards)
    history.lead("b2", ["b1", "b2"])
    history.write("b2", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b2")
    history.write("b2", 2)
    assert (history.high_watermark("b2"), history.leo("b2")) == (2, 4)
    history.router.call("b2", "on_stop")
    history.router.settle()
    history.kill("b2")
    empty_epoch_file(history.disks["b2"])
    history.lead("b1", ["b1"])
    history.write("b1", 3)
    history.heal()
    history.start("b2")
    history.write("b1", 1)
    history.router.run_for(3_000)
    return history


def empty_epoch_file(disk: MemDisk) -> None:
    file = disk.open(Path("/b2/orders-0/leader-epoch-checkpoint"))
    file.truncate(0)
    file.append(b"0\n0\n")
    file.close()


def test_b07_an_undefined_epoch_is_not_answered_with_the_log_end() -> None:
    wrong = play_b07(Guards(undefined_epoch_is_undefined=False, verify_epochs_at_open=False))
    assert first_difference(wrong, "b1", "b2") == 2

    right = play_b07(Guards(verify_epochs_at_open=False))
    assert right.log("b1") == right.log("b2")


# B-09 ------------------------------------------------------------------------------------------


def play_b09(guards: Guards) -> tuple[History, int]:
    """The answer to a truncation question comes when the follower leads."""
    history = History(2, mode=KIP_279, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 3, acks=-1)
    history.router.run_for(600)
    history.build("b2", "1:2")
    history.build("b1", "2:1")

    def is_answer(src: str, dst: str, message: Message) -> bool:
        return dst == "b2" and isinstance(message, OffsetsForLeaderEpochResponse)

    history.heal()
    history.holds = is_answer
    history.tell("b2")
    assert history.fetch_state("b2") == "truncating"
    history.lead_alone("b2", isr=["b2"])
    (number,) = history.write("b2", 1, acks=-1)
    assert history.is_acked(number)
    history.heal()
    return history, history.leo("b2")


def test_b09_a_late_answer_does_not_truncate_a_log_that_leads() -> None:
    history, leo = play_b09(Guards(epoch_answer_is_current=False))
    assert leo == 3
    assert not has(history, "b2", 5, 3)

    history, leo = play_b09(Guards())
    assert leo == 6
    assert has(history, "b2", 5, 3)


# B-10 ------------------------------------------------------------------------------------------


def play_b10(mode: TruncationMode, guards: Guards) -> History:
    """The follower's own epoch without records lies at its log's end."""
    history = History(2, mode=mode, guards=guards)
    history.lead("b1", ["b1", "b2"])
    history.write("b1", 10, acks=-1)
    history.router.run_for(6_000)
    history.kill("b2")
    history.lead("b1", ["b1"])
    history.write("b1", 1)
    history.kill("b1")
    history.start("b2")
    history.lead("b2", ["b2"])
    assert history.replica("b2").opened.epochs.entries == ((0, 0), (2, 10))
    history.kill("b2")
    history.start("b1")
    history.lead("b1", ["b1"])
    history.controller.silent_to = {"b2"}
    history.start("b2")
    history.tell_for(200, "b2")
    return history


@modes(FETCH, KIP_279)
def test_b10_entries_at_the_end_are_cut_or_truncation_never_ends(mode: TruncationMode) -> None:
    wrong = play_b10(mode, Guards(cut_epochs_at_end=False))
    assert len(wrong.truncations("b2")) > 50
    assert set(wrong.truncations("b2")[-50:]) == {(10, 10)}

    right = play_b10(mode, Guards())
    assert len(right.truncations("b2")) == len(set(right.truncations("b2"))) <= 2
    assert right.log("b1") == right.log("b2")


# KAFKA-14704 -----------------------------------------------------------------------------------


def play_14704(guards: Guards) -> History:
    """A diverging response carries the leader's high watermark; truncation takes two rounds."""
    history = History(2, guards=guards)
    history.lead("b1", ["b1", "b2"], epoch=1)
    history.write("b1", 2, acks=-1)
    history.router.run_for(600)
    history.cut_off("b1")
    for epoch in (2, 4):
        history.lead_alone("b2", epoch=epoch, isr=["b1", "b2"])
        history.write("b2", 2)
    history.lead_alone("b1", epoch=3)
    history.write("b1", 6)
    history.lead_alone("b1", epoch=5)
    assert (history.high_watermark("b1"), history.high_watermark("b2")) == (8, 2)

    def is_second_round(src: str, dst: str, message: Message) -> bool:
        return isinstance(message, FetchRequest) and message.partitions[0].fetch_offset == 4

    history.tell()
    history.heal(but=is_second_round)
    history.router.run_for(3_000)
    return history


def test_a3_14704_a_diverging_response_moves_no_high_watermark() -> None:
    wrong = play_14704(Guards(truncate_before_append=False))
    assert committed_difference(wrong, "b1", "b2") == 2

    right = play_14704(Guards())
    assert right.draw("b2") == "1:0-1 2:2-3 | hw 2 leo 4"
    right.heal()
    assert right.log("b1") == right.log("b2")
