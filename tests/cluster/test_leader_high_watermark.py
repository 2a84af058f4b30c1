"""How far a leader raises its high watermark (PROTOCOL A5), against real logs and answers."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.errors import ErrorCode
from cluster.records import BrokerRecord, ConfigRecord
from tests.cluster.leader_tools import Solo, guards_without
from tests.cluster.scripted import Cluster

MIN_2 = {"min.insync.replicas": "2"}


def hold_proposals(solo: Solo) -> None:
    """A proposal that changes nothing is under way, so that no other is made."""
    solo.controller.accepts_isr = False
    solo.leader.isr = evolve(solo.isr, proposed=solo.isr.isr)


def test_a5_it_is_the_lowest_end_of_leader_and_members() -> None:
    solo = Solo()
    for _ in range(5):
        solo.produce("b1", b"x", acks=1)
    for b2, b3, hw in ((2, 4, 2), (5, 4, 4), (5, 5, 5)):
        solo.fetch_as("b2", b2)
        solo.fetch_as("b3", b3)
        assert solo.hw == hw


def test_a5_it_never_falls_with_a_lower_position() -> None:
    solo = Solo()
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    solo.fetch_as("b2", 1)
    assert (solo.hw, solo.leader.followers["b2"].leo) == (3, 1)


@pytest.mark.parametrize("is_on", [True, False])
def test_a5_it_is_frozen_below_min_isr_by_the_committed_isr(is_on: bool) -> None:
    """Hazard B-42: without the freeze the last one standing commits alone."""
    guards = None if is_on else guards_without("hw_freeze")
    solo = Solo(topic=MIN_2, isr=("b1",), replicas=("b1", "b2"), guards=guards)
    solo.produce("b1", b"x", acks=1)
    solo.change_broker("b2", fenced=True)
    solo.produce("b1", b"x", acks=1)
    assert solo.hw == (0 if is_on else 2), "committed on one copy with min.insync.replicas 2"
    solo.change_broker("b2")
    solo.controller.accepts_isr = False
    solo.replicate("b2")
    assert solo.isr.maximal == {"b1", "b2"}
    assert solo.hw == (0 if is_on else 2), "a pending member does not count towards min ISR"
    solo.answer_alter()
    assert solo.hw == 2, "the commit of the expansion lets it go"


def test_a5_a_lower_min_isr_unfreezes_it() -> None:
    solo = Solo(topic=MIN_2, isr=("b1",), replicas=("b1", "b2"))
    solo.change_broker("b2", fenced=True)
    solo.produce("b1", b"x", acks=1)
    assert solo.hw == 0
    solo.decide(ConfigRecord(True, "orders", "min.insync.replicas", "1"))
    assert solo.hw == 1


@pytest.mark.parametrize("is_on", [True, False])
def test_a5_a_pending_member_counts(is_on: bool) -> None:
    """KIP-497: the controller may have taken it in already."""
    solo = Solo(isr=("b1", "b2"), guards=None if is_on else guards_without("maximal_isr"))
    solo.controller.accepts_isr = False
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    assert solo.isr.maximal == {"b1", "b2", "b3"}
    number = solo.produce("b1", b"y")
    solo.change_broker("b3", leaving=True)
    solo.replicate("b2")
    assert solo.hw == (1 if is_on else 2)
    if not is_on:
        assert solo.acked(number) == (ErrorCode.NONE, 1)
        assert solo.leader.followers["b3"].leo == 1, "acked above a member of the controller's ISR"


def test_a5_an_outsider_about_to_join_is_waited_for() -> None:
    solo = Solo(isr=("b1", "b2"))
    solo.controller.accepts_isr = False
    solo.leader.isr = solo.leader.isr.__class__(
        ("b1", "b2"), solo.isr.partition_epoch, ("b1", "b2")
    )
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b3")
    solo.produce("b1", b"y", acks=1)
    solo.replicate("b2")
    assert solo.hw == 1, "b3 was caught up a moment ago and will be proposed next"
    solo.router.run_for(30_001)
    solo.replicate("b2")
    assert solo.hw == 2, "b3 has been behind for longer than the limit"


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("change", ["fenced", "leaving", "epoch"])
def test_a5_an_outsider_that_may_not_join_holds_nothing_back(change: str, is_on: bool) -> None:
    """Hazard B-28: a fenced replica that was caught up lately pins the high watermark."""
    guards = None if is_on else guards_without("eligible_outsiders_only")
    solo = Solo(isr=("b1", "b2"), guards=guards)
    solo.controller.accepts_isr = False
    solo.leader.isr = solo.leader.isr.__class__(
        ("b1", "b2"), solo.isr.partition_epoch, ("b1", "b2")
    )
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b3")
    if change == "epoch":
        solo.register("b3")
    else:
        solo.change_broker("b3", fenced=change == "fenced", leaving=change == "leaving")
    solo.produce("b1", b"y", acks=1)
    solo.replicate("b2")
    assert solo.hw == (2 if is_on else 1)


def test_a5_a_change_of_brokers_alone_lets_it_rise() -> None:
    solo = Solo(isr=("b1", "b2"))
    solo.controller.accepts_isr = False
    solo.leader.isr = solo.leader.isr.__class__(
        ("b1", "b2"), solo.isr.partition_epoch, ("b1", "b2")
    )
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b3")
    number = solo.produce("b1", b"y")
    solo.replicate("b2")
    assert solo.acked(number) is None
    solo.change_broker("b3", fenced=True)
    assert solo.acked(number) == (ErrorCode.NONE, 1)


def test_a5_a_replica_that_was_never_caught_up_holds_nothing_back_on_a_clock_near_zero() -> None:
    solo = Solo(leads=False)
    solo.router.now_us = 5_000_000
    solo.lead("b1", ("b1",), replicas=("b1", "b2"))
    number = solo.produce("b1", b"x")
    assert solo.acked(number) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("is_on", [True, False])
def test_a5_a_shrink_that_commits_lets_it_rise(is_on: bool) -> None:
    """KAFKA-13091: with nobody left to fetch, nothing else ever comes."""
    guards = None if is_on else guards_without("hw_rises_on_isr_commit")
    solo = Solo(replicas=("b1", "b2"), guards=guards)
    number = solo.produce("b1", b"x", timeout_ms=600_000)
    solo.router.run_for(50_000)
    assert solo.controller.alter_requests, "b2 never fetched"
    assert solo.isr.isr == ("b1",)
    if is_on:
        assert solo.acked(number) == (ErrorCode.NONE, 0)
    else:
        assert solo.acked(number) is None
        assert solo.hw == 0


def test_a5_followers_learn_it_with_the_fetch_after_next() -> None:
    cluster = Cluster(3)
    cluster.lead("b1")
    number = cluster.produce("b1", b"x")
    assert cluster.acked(number) == (ErrorCode.NONE, 0)
    assert [cluster.high_watermark(name) for name in cluster.names] == [1, 0, 0]
    cluster.router.run_for(500)
    assert [cluster.high_watermark(name) for name in cluster.names] == [1, 1, 1]


def test_a5_it_comes_back_from_the_checkpoint_within_the_log() -> None:
    solo = Solo()
    for _ in range(4):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    solo.router.run_for(5_000)
    solo.produce("b1", b"y", acks=1)
    solo.replicate()
    assert solo.hw == 5
    solo.controller.unfences = False
    solo.controller.silent_to = {"b1"}
    solo.restart()
    assert (solo.hw, solo.leo_now) == (4, 5), "what was written last"


def test_a5_a_checkpoint_past_the_log_is_clamped_to_it() -> None:
    solo = Solo()
    for _ in range(4):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    log_dir = solo.broker("b1").core.log_dir
    log_dir.write_high_watermarks({next(iter(log_dir.logs)): 77})
    solo.controller.silent_to = {"b1"}
    solo.restart()
    assert (solo.hw, solo.leo_now) == (4, 4)


@pytest.mark.parametrize("is_on", [True, False])
def test_a5_a_checkpoint_keeps_what_is_not_loaded(is_on: bool) -> None:
    """Hazard B-35: written before every log is known, the file must not forget the others."""
    solo = Solo(guards=None if is_on else guards_without("merge_hw_checkpoint"))
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    solo.router.run_for(5_000)
    solo.controller.silent_to = {"b1"}
    solo.restart()
    core = solo.broker("b1").core
    core.replicas.clear()
    solo.router.run_for(5_000)
    solo.restart()
    assert solo.hw == (1 if is_on else 0), "it would truncate to 0 as a follower"


def test_a5_an_eligible_broker_that_is_not_in_the_image_is_no_member() -> None:
    solo = Solo(replicas=("b1", "b9"), isr=("b1",))
    solo.decide(BrokerRecord("b9", "b9.0", len(solo.controller.records), True, False))
    number = solo.produce("b1", b"x")
    assert solo.acked(number) == (ErrorCode.NONE, 0)
