"""Checks that fire on a field of a live machine that was changed, or on a guard that is off."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.fetch_state import FetchState
from cluster.replica import Leader
from sim.failpoints import Failpoint
from storage.partition_log import PartitionLog
from tests.sim.checks.judged import SECOND_US, Stage


def leader_of(stage: Stage) -> Leader:
    role = stage.replica("b1").role
    assert isinstance(role, Leader)
    return role


def cut_off(stage: Stage, node: str) -> None:
    for other in ("b1", "b2", "b3"):
        if other != node:
            stage.cluster.cut(node, other, both=True)


def test_a_high_watermark_that_falls() -> None:
    stage = Stage()
    cut_off(stage, "b1")
    stage.replica("b1").high_watermark -= 1
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("leader-hw-monotonic")
    assert (found.number, found.kind) == ("I4", "falls")
    assert (found.evidence["before"], found.evidence["after"]) == (5, 4)


def test_a_high_watermark_above_what_a_member_has() -> None:
    stage = Stage()
    cut_off(stage, "b1")
    stage.cluster.produce("orders", 1)
    stage.world.run_for(SECOND_US)
    assert not stage.judge.violations
    stage.replica("b1").high_watermark = 6
    stage.world.run_for(5 * SECOND_US)
    found = stage.found("hw-valid")
    assert (found.number, found.evidence["end"], found.evidence["high_watermark"]) == ("I5", 5, 6)


def test_a_high_watermark_above_the_log_end() -> None:
    stage = Stage()
    stage.replica("b1").high_watermark += 2
    stage.world.run_for(SECOND_US)
    found = stage.found("offset-order")
    assert (found.number, found.kind) == ("I14", "disorder")


def test_a_member_that_the_leader_forgets() -> None:
    stage = Stage()
    leader = leader_of(stage)
    leader.isr = evolve(leader.isr, isr=("b1", "b2"))
    stage.world.run_for(SECOND_US)
    found = stage.found("quorum-superset")
    assert (found.number, found.evidence["missing"]) == ("I18", ["b3"])


def test_an_epoch_that_the_log_does_not_have() -> None:
    stage = Stage()
    stage.replica("b2").opened.epochs._epochs[0] = 3
    stage.cluster.produce("orders", 1)
    stage.world.run_for(SECOND_US)
    found = stage.found("epoch-cache-matches-log")
    assert (found.number, found.kind) == ("I9", "differs")
    assert found.evidence["node"] == "b2"


def test_a_leader_that_is_not_in_sync() -> None:
    stage = Stage()
    controller = stage.controller()
    record = stage.world.view().partition("orders")
    assert record is not None
    wrong = evolve(record, isr=("b2", "b3"), partition_epoch=record.partition_epoch + 1)
    controller._state.decide(wrong)
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("isr-well-formed")
    assert (found.number, found.kind) == ("I8", "leader-no-member")


def test_a_controller_whose_epochs_go_back() -> None:
    stage = Stage()
    stage.cluster.elect("orders", to="b2", kind="unclean").wait()
    stage.world.run_for(3 * SECOND_US)
    assert not stage.judge.violations
    record = stage.world.view().partition("orders")
    assert record is not None
    assert record.leader_epoch == 1
    stage.controller()._state.decide(evolve(record, leader_epoch=0))
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("one-leader-per-epoch")
    assert (found.number, found.kind) == ("I7", "epochs-go-back")


def test_a_follower_that_has_given_up() -> None:
    stage = Stage()
    fetch = stage.broker("b3")._fetchers.fetch_of(stage.replica("b3").partition)
    assert fetch is not None
    fetch.state = FetchState.FAILED
    stage.world.run_for(100 * SECOND_US)
    assert not stage.judge.finish(), "not quiet for long enough"
    stage.world.run_for(60 * SECOND_US)
    stage.judge.finish()
    found = [each for each in stage.judge.violations if each.check == "progress"]
    assert found
    assert found[0].number == "I12"
    assert found[0].kind in ("failed", "not-in-sync")


def test_a_replica_that_was_cut_off_until_now_has_time_to_catch_up() -> None:
    stage = Stage()
    fault = stage.cluster.cut("b3", "b1", both=True)
    stage.cluster.produce("orders", 1, acks="1")
    stage.world.run_for(130 * SECOND_US)
    assert not stage.judge.finish(), "the fault is active"
    stage.cluster.heal(fault)
    assert not stage.judge.finish(), "the fault was active until now"
    stage.world.run_for(130 * SECOND_US)
    assert not stage.judge.finish()
    assert stage.world.view().isr("orders") == ("b1", "b2", "b3")


@pytest.mark.parametrize("is_on", [True, False])
def test_a_shrink_that_commits_and_lets_nothing_rise(is_on: bool) -> None:
    stage = Stage(guards={"hw_rises_on_isr_commit": is_on})
    cut_off(stage, "b3")
    stage.cluster.produce("orders", 1)
    stage.world.run_for(60 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1", "b2")
    if is_on:
        assert not stage.judge.violations
        return
    found = stage.found("progress")
    assert (found.number, found.kind) == ("I12", "held-back")
    assert (found.evidence["high_watermark"], found.evidence["bound"]) == (5, 6)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_fenced_follower_that_holds_the_high_watermark_back(is_on: bool) -> None:
    stage = Stage(guards={"eligible_outsiders_only": is_on})
    stage.world.crash("b3")
    stage.cluster.produce("orders", 1)
    stage.world.run_for(20 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1", "b2")
    if is_on:
        assert not stage.judge.violations
        return
    found = stage.found("progress")
    assert (found.number, found.kind) == ("I12", "held-back")
    assert found.evidence["isr"] == ["b1", "b2"]


def test_a_handler_that_stops_at_a_failpoint_may_be_behind() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    stage.world.crash("b2")
    stage.world.crash("b3")
    stage.world.run_for(20 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1",)
    point = Failpoint(id="x", point="produce-appended", action="yield", duration_us=2 * SECOND_US)
    stage.world.add_failpoint("b1", point)
    produced = stage.cluster.produce("orders", 1)
    stage.world.run_for(SECOND_US)
    assert (stage.replica("b1").opened.leo, stage.replica("b1").high_watermark) == (6, 5)
    produced.wait()
    assert not stage.judge.violations


def test_an_acknowledgement_that_waits_for_nobody() -> None:
    stage = Stage(guards={"ack_waits_for_hw": False}, records=0)
    cut_off(stage, "b1")
    stage.cluster.produce("orders", 1)
    stage.world.run_for(SECOND_US)
    found = stage.found("ack-honours-min-isr")
    assert (found.number, found.evidence["holders"]) == ("I19", ["b1"])


def test_an_election_from_outside_the_isr_that_nobody_allowed() -> None:
    stage = Stage(guards={"unclean_needs_permission": False}, topic={"min.insync.replicas": "1"})
    cut_off(stage, "b1")
    produced = stage.cluster.produce("orders", 3, timeout_us=100 * SECOND_US)
    stage.world.run_until_true(produced.is_done, 100 * SECOND_US)
    stage.world.run_for(2 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1",)
    assert not stage.judge.violations
    stage.world.crash("b1")
    stage.world.run_for(20 * SECOND_US)
    found = stage.found("leader-completeness")
    assert (found.number, found.kind) == ("I6", "never-held")
    assert found.evidence["missing"] == [[0, 5, 8]]
    facts = stage.judge.facts
    assert facts.lost("committed") == facts.lost("acked") == 3
    assert facts.elections("unclean") == 1
    (loss,) = facts.losses()
    assert (loss.at, loss.how, loss.is_committed, loss.is_unclean) == (
        "serving",
        "never-held",
        True,
        False,
    )


def test_the_same_election_is_no_violation_where_it_is_allowed() -> None:
    stage = Stage(topic={"min.insync.replicas": "1", "unclean.leader.election.enable": "true"})
    cut_off(stage, "b1")
    produced = stage.cluster.produce("orders", 3, timeout_us=100 * SECOND_US)
    stage.world.run_until_true(produced.is_done, 100 * SECOND_US)
    stage.world.run_for(2 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1",)
    stage.world.crash("b1")
    stage.world.run_for(20 * SECOND_US)
    assert not stage.judge.violations
    assert stage.judge.facts.lost("committed") == 3
    assert stage.judge.facts.losses()[0].is_unclean


# Log starts that nobody wanted --------------------------------------------------------------------


def test_a_log_start_that_hides_what_nothing_has_deleted() -> None:
    stage = Stage()
    stage.replica("b1").opened.raise_log_start_offset(3)
    stage.world.run_for(2 * SECOND_US)
    found = stage.found("committed-durability")
    assert (found.kind, found.evidence["missing"]) == ("hidden", [[0, 0, 3]])
    (loss,) = stage.judge.facts.losses()
    assert (loss.at, loss.leader, loss.how, loss.licence) == ("leading", "b1", "hidden", "ILLEGAL")
    assert stage.judge.facts.lost("acked") == 3


def test_a_follower_whose_log_start_is_too_high_hides_records_when_it_leads() -> None:
    stage = Stage()
    stage.replica("b2").opened.raise_log_start_offset(3)
    stage.world.run_for(2 * SECOND_US)
    assert stage.judge.facts.losses() == []
    stage.world.crash("b1")
    stage.world.run_for(20 * SECOND_US)
    assert stage.found("leader-completeness").kind == "hidden"
    (loss,) = stage.judge.facts.losses()
    assert (loss.at, loss.leader, loss.how, loss.licence) == ("serving", "b2", "hidden", "ILLEGAL")


def test_a_leader_that_deletes_more_than_it_was_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = PartitionLog.raise_log_start_offset
    monkeypatch.setattr(
        PartitionLog, "raise_log_start_offset", lambda self, offset: kept(self, max(offset, 4))
    )
    stage = Stage()
    stage.cluster.delete_records("orders", before=2).wait()
    stage.world.run_for(2 * SECOND_US)
    assert stage.found("committed-durability").evidence["missing"] == [[0, 2, 4]]


def test_a_log_start_of_a_damaged_disk_is_a_loss_that_the_disk_is_behind() -> None:
    stage = Stage()
    stage.judge.scene.damages["b1"] = 1
    stage.replica("b1").opened.raise_log_start_offset(3)
    stage.world.run_for(2 * SECOND_US)
    (loss,) = stage.judge.facts.losses()
    assert loss.how == "lied"


def test_records_that_were_deleted_as_somebody_asked_are_no_loss() -> None:
    stage = Stage()
    stage.cluster.delete_records("orders", before=3).wait()
    stage.world.run_for(2 * SECOND_US)
    assert stage.replica("b2").opened.log_start_offset == 3
    stage.world.crash("b1", how="power")
    stage.world.run_for(20 * SECOND_US)
    stage.world.start("b1")
    stage.world.run_for(20 * SECOND_US)
    assert stage.judge.finish() == []
    assert stage.judge.facts.losses() == []
