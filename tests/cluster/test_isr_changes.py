"""ISR shrink and expansion at the leader, and every answer to a proposal (PROTOCOL A13)."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.messages_control import AlterPartitionResponse, BrokerState
from cluster.messages_data import FetchPartition
from cluster.names import NO_BROKER_EPOCH
from cluster.records import LeaderRecoveryState, PartitionRecord
from tests.cluster.leader_tools import MEMBERS, Solo, guards_without
from tests.cluster.scripted import ORDERS, Cluster

WAITS_FOR_METADATA = (
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.FENCED_LEADER_EPOCH,
    ErrorCode.INVALID_UPDATE_VERSION,
    ErrorCode.INVALID_REQUEST,
    ErrorCode.NEW_LEADER_ELECTED,
)


def proposing(**options: object) -> Solo:
    """A leader with ISR {b1, b2} that has proposed b3, and has no answer."""
    solo = Solo(isr=("b1", "b2"), **options)  # type: ignore[arg-type]
    solo.controller.accepts_isr = False
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    assert solo.isr.proposed == MEMBERS
    return solo


# Shrink ----------------------------------------------------------------------------------------


def test_a13_a_member_behind_for_longer_than_the_limit_leaves_within_half_as_much_again() -> None:
    solo = Solo()
    solo.replicate()
    solo.produce("b1", b"x", acks=1)
    begun = solo.router.now_us
    while not solo.controller.alter_requests:
        solo.router.run_for(500)
        solo.replicate("b2")
        assert solo.router.now_us - begun < 46_000_000
    assert solo.router.now_us - begun > 30_000_000
    assert solo.isr.isr == ("b1", "b2")


def test_a13_a_member_at_the_end_stays_however_long_it_is_silent() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    solo.router.run_for(100_000)
    assert solo.controller.alter_requests == []


def test_a13_a_member_that_follows_at_a_distance_stays() -> None:
    """At the end that the leader had at the fetch before, it is caught up as of that fetch."""
    solo = Solo()
    solo.replicate()
    for _ in range(200):
        behind = solo.leo_now
        solo.produce("b1", b"x", acks=1)
        for name in ("b2", "b3"):
            solo.fetch_as(name, behind)
        solo.router.run_for(500)
    assert solo.controller.alter_requests == []


def test_a13_several_members_leave_in_one_proposal() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.router.run_for(50_000)
    assert [len(r.partitions[0].new_isr) for r in solo.controller.alter_requests] == [1]
    assert solo.isr.isr == ("b1",)


def test_a13_until_a_shrink_commits_the_leaving_member_counts() -> None:
    solo = Solo()
    solo.controller.accepts_isr = False
    number = solo.produce("b1", b"x", timeout_ms=600_000)
    for _ in range(100):
        solo.router.run_for(500)
        solo.replicate("b2")
    assert solo.isr.proposed == ("b1", "b2")
    assert solo.isr.maximal == set(MEMBERS)
    assert (solo.hw, solo.acked(number)) == (0, None)
    solo.answer_alter()
    assert (solo.hw, solo.acked(number)) == (1, (ErrorCode.NONE, 0))


# Expansion -------------------------------------------------------------------------------------


def test_a13_a_follower_joins_with_the_fetch_that_reaches_the_high_watermark() -> None:
    solo = Solo(isr=("b1", "b2"))
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.router.run_for(31_000)
    solo.fetch_as("b2", 2)
    solo.fetch_as("b3", 1)
    assert (solo.hw, solo.controller.alter_requests) == (2, [])
    solo.fetch_as("b3", 2)
    assert solo.isr.isr == MEMBERS


@pytest.mark.parametrize("is_on", [True, False])
def test_a13_a_follower_below_the_high_watermark_may_not_join(is_on: bool) -> None:
    guards = None if is_on else guards_without("join_at_high_watermark")
    solo = Solo(isr=("b1", "b2"), guards=guards)
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.replicate("b2")
    solo.fetch_as("b3", 1)
    if is_on:
        assert solo.isr.isr == ("b1", "b2")
    else:
        assert solo.isr.isr == MEMBERS
        assert solo.leader.followers["b3"].leo < solo.hw, "a member without committed records"


@pytest.mark.parametrize("is_on", [True, False])
def test_a13_b16_a_follower_below_the_epochs_start_may_not_join(is_on: bool) -> None:
    """Hazard B-16: the new leader's high watermark lags behind what is committed."""
    solo = Solo(guards=None if is_on else guards_without("epoch_start_rule"), isr=("b1", "b2"))
    for _ in range(10):
        solo.produce("b1", b"x", acks=1)
    solo.fetch_as("b2", 5)
    solo.lead("b1", ("b1", "b2"))
    assert (solo.hw, solo.leader.leader_epoch_start) == (5, 10)
    solo.router.run_for(1_000)
    solo.fetch_as("b3", 7)
    assert solo.isr.isr == (("b1", "b2") if is_on else MEMBERS)
    if not is_on:
        assert solo.leader.followers["b3"].leo < 10, "it may be elected without 7 to 9"
    solo.fetch_as("b3", 10)
    assert solo.isr.isr == MEMBERS


@pytest.mark.parametrize("is_on", [True, False])
@pytest.mark.parametrize("change", ["fenced", "leaving"])
def test_a13_b40_a_fenced_or_leaving_broker_may_not_join(change: str, is_on: bool) -> None:
    solo = Solo(isr=("b1", "b2"), guards=None if is_on else guards_without("fenced_stays_out"))
    solo.change_broker("b3", fenced=change == "fenced", leaving=change == "leaving")
    solo.replicate()
    assert solo.isr.isr == (("b1", "b2") if is_on else MEMBERS)
    solo.change_broker("b3")
    solo.replicate()
    assert solo.isr.isr == MEMBERS


@pytest.mark.parametrize("is_on", [True, False])
def test_a13_b41_a_broker_of_another_life_than_registered_may_not_join(is_on: bool) -> None:
    names = () if is_on else ("member_broker_epoch", "fetch_broker_epoch")
    solo = Solo(isr=("b1", "b2"), guards=guards_without(*names))
    old = solo.peers["b3"]
    solo.register("b3", fenced=True)
    solo.fetch_as("b3", 0, broker_epoch=old)
    solo.change_broker("b3")
    solo.fetch_as("b3", 0, broker_epoch=old + 100)
    assert solo.isr.isr == (("b1", "b2") if is_on else MEMBERS)


def test_a13_b41_a_proposal_names_the_epochs_with_which_members_fetched() -> None:
    solo = proposing()
    b1 = solo.broker("b1").core.broker_epoch
    assert solo.last_alter.broker_epoch == b1
    assert solo.last_alter.partitions[0].new_isr == (
        BrokerState("b1", b1),
        BrokerState("b2", solo.peers["b2"]),
        BrokerState("b3", solo.peers["b3"]),
    )
    solo = proposing(guards=guards_without("member_broker_epoch"))
    assert [m.broker_epoch for m in solo.last_alter.partitions[0].new_isr[1:]] == [-1, -1]


def test_a13_b41_no_broker_epoch_skips_the_check() -> None:
    solo = Solo(isr=("b1", "b2"))
    solo.fetch_as("b3", 0, broker_epoch=NO_BROKER_EPOCH)
    assert solo.isr.isr == MEMBERS


def test_a13_b41_the_position_of_a_life_that_ended_is_not_eligible_any_more() -> None:
    solo = Solo(isr=("b1", "b2"))
    solo.controller.accepts_isr = False
    solo.fetch_as("b3", 0)
    solo.answer_alter(ErrorCode.INELIGIBLE_REPLICA)
    solo.register("b3")
    solo.fetch_as("b2", 0)
    assert solo.isr.proposed is None


# Answers ---------------------------------------------------------------------------------------


def test_a13_one_proposal_at_a_time_and_the_larger_set_counts() -> None:
    solo = proposing()
    assert len(solo.controller.alter_requests) == 1
    solo.produce("b1", b"y", acks=1)
    solo.replicate("b2")
    solo.router.run_for(25_000)
    solo.replicate("b2")
    assert (solo.hw, len(solo.controller.alter_requests)) == (1, 1)
    solo.answer_alter()
    assert (solo.isr.isr, solo.isr.proposed) == (MEMBERS, None)


@pytest.mark.parametrize("error", [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED])
def test_a13_a_refusal_of_the_member_goes_back_to_the_committed_isr(error: ErrorCode) -> None:
    solo = proposing()
    solo.produce("b1", b"y", acks=1)
    solo.answer_alter(error)
    assert (solo.isr.isr, solo.isr.proposed) == (("b1", "b2"), None)
    solo.change_broker("b3", fenced=True)
    solo.replicate("b2")
    assert solo.hw == 2, "b3 is not waited for any more"
    solo.change_broker("b3")
    solo.replicate("b3")
    assert solo.isr.proposed == MEMBERS, "the next fetch proposes it anew"


def test_a5_a13_a_refusal_that_lets_the_high_watermark_rise_answers_who_waits() -> None:
    """No fetch, append or metadata comes behind it that would raise it instead."""
    solo = proposing()
    number = solo.produce("b1", b"y")
    solo.replicate("b2")
    solo.change_broker("b3", fenced=True)
    assert (solo.hw, solo.acked(number)) == (1, None), "b3 may be in the ISR by now"
    solo.answer_alter(ErrorCode.INELIGIBLE_REPLICA)
    assert (solo.hw, solo.acked(number)) == (2, (ErrorCode.NONE, 1))


@pytest.mark.parametrize("error", WAITS_FOR_METADATA)
def test_a13_what_metadata_has_to_settle_stays_pending_until_it_comes(error: ErrorCode) -> None:
    solo = proposing()
    solo.answer_alter(error)
    solo.router.run_for(100_000)
    assert solo.isr.proposed == MEMBERS
    assert len(solo.controller.alter_requests) == 1, "and is not asked again"
    solo.decide(solo.state(isr=("b1",)))
    assert (solo.isr.isr, solo.isr.proposed) == (("b1",), None)


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_CONTROLLER, ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.NETWORK_EXCEPTION]
)
def test_a13_any_other_error_is_tried_again(error: ErrorCode) -> None:
    solo = proposing()
    solo.answer_alter(error)
    assert solo.isr.proposed == MEMBERS
    solo.router.run_for(100)
    assert len(solo.controller.alter_requests) == 2
    assert solo.controller.alter_requests[0].partitions == solo.last_alter.partitions
    solo.answer_alter()
    assert solo.isr.isr == MEMBERS


@pytest.mark.parametrize("whole", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.NOT_CONTROLLER])
def test_a13_an_error_of_the_whole_request_is_tried_again(whole: ErrorCode) -> None:
    solo = proposing()
    solo.answer_alter(whole=whole)
    solo.router.run_for(100)
    assert len(solo.controller.alter_requests) == 2


def test_a13_an_answer_that_leaves_the_partition_out_is_tried_again() -> None:
    solo = proposing()
    number = solo.last_alter.correlation_id
    solo.deliver("c1", AlterPartitionResponse(number, ErrorCode.NONE, ()))
    solo.router.run_for(100)
    assert len(solo.controller.alter_requests) == 2


def test_a13_a_success_must_match_the_leader_epoch_and_not_go_back() -> None:
    solo = proposing()
    request = solo.last_alter
    solo.answer_alter(leader_epoch=7)
    assert solo.isr.proposed == MEMBERS
    solo = proposing()
    solo.answer_alter(partition_epoch=solo.isr.partition_epoch - 1)
    assert solo.isr.proposed == MEMBERS
    solo = proposing()
    solo.answer_alter(partition_epoch=solo.isr.partition_epoch)
    assert solo.isr.isr == MEMBERS
    assert request.partitions[0].partition == ORDERS


def test_a13_answers_that_nobody_waits_for_are_dropped() -> None:
    solo = proposing()
    first = solo.last_alter
    solo.deliver("b2", AlterPartitionResponse(first.correlation_id, ErrorCode.NONE, ()))
    assert solo.isr.proposed == MEMBERS, "only the controller answers"
    solo.answer_alter()
    epoch = solo.isr.partition_epoch
    solo.answer_alter(request=first, isr=("b1",), partition_epoch=99)
    assert (solo.isr.isr, solo.isr.partition_epoch) == (MEMBERS, epoch), "given twice"


def test_a13_a_lost_answer_is_asked_for_again_and_refused_and_settled_by_metadata() -> None:
    """Hazard B-29: a retry that is fenced for ever would keep b3 out."""
    solo = proposing()
    solo.router.call("b1", "on_disconnected", "c1")
    solo.router.settle()
    assert len(solo.controller.alter_requests) == 1, "not at once: nobody may be there"
    solo.router.run_for(5_000)
    assert len(solo.controller.alter_requests) == 2
    solo.answer_alter(ErrorCode.INVALID_UPDATE_VERSION)
    assert solo.isr.proposed == MEMBERS
    solo.decide(solo.state(isr=MEMBERS))
    assert (solo.isr.isr, solo.isr.proposed) == (MEMBERS, None)


def test_a13_no_answer_in_the_requests_time_is_asked_for_again() -> None:
    solo = proposing()
    solo.router.run_for(29_000)
    assert len(solo.controller.alter_requests) == 1
    solo.router.run_for(2_000)
    assert len(solo.controller.alter_requests) == 2


def test_a13_metadata_that_is_not_newer_does_not_end_a_proposal() -> None:
    """Hazard B-29 (KAFKA-12686): an unrelated replay clears the pending flag."""
    solo = proposing()
    record = solo.controller.image.partition(ORDERS)
    assert record is not None
    solo.decide(record)
    assert solo.isr.proposed == MEMBERS
    assert solo.isr.maximal == set(MEMBERS)


def test_a13_metadata_older_than_an_answer_does_not_undo_it() -> None:
    solo = proposing()
    old = solo.state(isr=("b1",))
    solo.answer_alter(partition_epoch=solo.isr.partition_epoch + 5)
    solo.decide(old)
    assert solo.isr.isr == MEMBERS


def test_a13_a_new_epoch_ends_a_proposal_and_its_late_answer_counts_for_nothing() -> None:
    solo = proposing()
    request = solo.last_alter
    solo.lead("b1", ("b1",))
    assert solo.isr.proposed is None
    solo.answer_alter(request=request, partition_epoch=50)
    assert solo.isr.isr == ("b1",)


def test_a13_an_uncleanly_elected_leader_reports_recovered_before_its_isr_grows() -> None:
    solo = Solo(isr=("b1",))
    solo.controller.accepts_isr = False
    recovering = LeaderRecoveryState.RECOVERING
    solo.decide(solo.state(leader_epoch=1, leader_recovery_state=recovering))
    (change,) = solo.last_alter.partitions
    assert [member.broker_id for member in change.new_isr] == ["b1"]
    assert change.leader_recovery_state is LeaderRecoveryState.RECOVERED
    solo.answer_alter(ErrorCode.INELIGIBLE_REPLICA)
    solo.replicate("b2")
    assert solo.isr.proposed is None, "still recovering: nobody joins"
    solo.router.run_for(16_000)
    assert len(solo.controller.alter_requests) == 2
    solo.answer_alter()
    solo.replicate("b2")
    assert solo.isr.proposed == ("b1", "b2")


def test_a13_metadata_older_than_the_report_does_not_make_it_recovering_again() -> None:
    solo = Solo(isr=("b1",))
    recovering = LeaderRecoveryState.RECOVERING
    solo.controller.accepts_isr = False
    solo.decide(solo.state(leader_epoch=1, leader_recovery_state=recovering))
    solo.answer_alter(partition_epoch=solo.isr.partition_epoch + 3)
    solo.decide(solo.state(leader_recovery_state=recovering))
    assert not solo.leader.is_recovering


def test_a13_a_late_answer_to_an_overtaken_proposal_does_not_end_the_next_one() -> None:
    """While one request is under way the next proposal waits, and is sent behind its answer."""
    solo = proposing()
    first = solo.last_alter
    solo.decide(solo.state(isr=("b1", "b2")))
    solo.replicate("b3")
    assert solo.isr.proposed == MEMBERS
    assert len(solo.controller.alter_requests) == 1
    solo.answer_alter(ErrorCode.INELIGIBLE_REPLICA, request=first)
    assert solo.isr.proposed == MEMBERS
    second = solo.last_alter
    assert second is not first
    assert second.partitions[0].partition_epoch == first.partitions[0].partition_epoch + 1


def test_a13_proposals_of_several_partitions_go_together() -> None:
    solo = proposing()
    others = [ORDERS._replace(partition=number) for number in (1, 2)]
    for other in others:
        solo.decide(PartitionRecord(other, MEMBERS, ("b1",), "b1", 0, 0))
        part = FetchPartition(other, 0, 0)
        fetch = evolve(solo.fetch_request(0), replica_id="b2", partitions=(part,))
        solo.send("b1", fetch, client="b2")
    assert len(solo.controller.alter_requests) == 1
    solo.answer_alter()
    assert [change.partition for change in solo.last_alter.partitions] == others


def test_a13_b39_a_stranger_in_the_isr_is_no_reason_to_fail() -> None:
    """As a controller without the guard ``isr-is-assigned`` may tell."""
    solo = Solo()
    solo.decide(solo.state(isr=("b1", "b2", "b9")))
    solo.produce("b1", b"x", acks=1)
    solo.router.run_for(50_000)
    assert "b9" in [m.broker_id for m in solo.last_alter.partitions[0].new_isr]


@pytest.mark.parametrize("is_on", [True, False])
def test_a13_b16_a_member_below_the_epochs_start_is_elected_without_acknowledged_records(
    is_on: bool,
) -> None:
    """Hazard B-16 from end to end: five records are acknowledged, and gone after two kills."""
    config = BrokerConfig(replica_fetch_max_bytes=1)
    guards = None if is_on else guards_without("epoch_start_rule")
    cluster = Cluster(3, config=config, guards=guards)
    cut = {("b3", "b1")}
    cluster.router.is_held = lambda src, dst, message: (src, dst) in cut
    cluster.lead("b1", ("b1", "b2"))
    for _ in range(5):
        cluster.produce("b1", b"old")
    cluster.router.run_for(1_000)
    number = cluster.produce("b1", *[b"new"] * 5)
    assert cluster.acked(number) == (ErrorCode.NONE, 5)
    assert (cluster.high_watermark("b2"), cluster.leo("b2"), cluster.leo("b3")) == (5, 10, 0)
    cut.add(("b1", "b2"))
    cluster.router.is_held = lambda src, dst, message: (
        (src, dst) in cut or ((src, dst) == ("b2", "b3") and cluster.leo("b3") >= 5)
    )
    cluster.lead("b2", ("b1", "b2"))
    assert cluster.leo("b3") == 5
    state = cluster.controller.image.partition(ORDERS)
    assert state is not None
    assert state.isr == (("b1", "b2") if is_on else MEMBERS)
    if not is_on:
        cluster.kill("b1")
        cluster.kill("b2")
        cluster.lead("b3", ("b3",))
        assert [value for _, _, value in cluster.log("b3")] == [b"old"] * 5
