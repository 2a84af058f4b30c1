"""AlterPartition, elections and reassignments at the controller."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from cluster import messages_control as control
from cluster.config import ControllerConfig, TopicConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.names import TopicIdPartition
from cluster.partition_control import check_alter_partition
from cluster.records import LeaderRecoveryState
from tests.cluster.controllers import Rig, check_well_formed, shape

ALL = ("b1", "b2", "b3")
RECOVERING = LeaderRecoveryState.RECOVERING


def three(**kwargs: Any) -> tuple[Rig, TopicIdPartition]:
    rig = Rig(**kwargs)
    rig.join(*ALL)
    return rig, rig.create("orders", ALL)[0]


# AlterPartition --------------------------------------------------------------------------------


def test_a14_an_accepted_shrink_answers_with_the_state_after_it() -> None:
    rig, partition = three()
    result = rig.propose("b1", partition, ("b3", "b1"))
    assert result == control.AlterPartitionResult(
        partition, ErrorCode.NONE, "b1", 0, ("b1", "b3"), LeaderRecoveryState.RECOVERED, 1
    )
    assert rig.partition(partition).isr == ("b1", "b3")


def test_a14_epochs_ahead_of_the_controller_are_not_its_own() -> None:
    rig, partition = three()
    assert rig.propose("b1", partition, ALL, leader_epoch=1).error_code is ErrorCode.NOT_CONTROLLER
    ahead = rig.propose("b1", partition, ALL, partition_epoch=1)
    assert ahead.error_code is ErrorCode.NOT_CONTROLLER


def test_a14_a_stale_leader_epoch_is_fenced_before_leadership_is_looked_at() -> None:
    rig, partition = three()
    rig.elect(partition, "UNCLEAN", "b2")
    stale = rig.propose("b1", partition, ALL, leader_epoch=0)
    assert stale.error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert rig.propose("b1", partition, ALL).error_code is ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("is_on", [True, False])
def test_a14_stale_partition_epoch_is_invalid_update_version(is_on: bool) -> None:
    rig, partition = three(guards=Guards(partition_epoch=is_on))
    rig.propose("b1", partition, ("b1", "b2"))
    rig.propose("b1", partition, ("b1",))
    late = rig.propose("b1", partition, ("b1", "b2"), partition_epoch=0)
    # Without the guard the late proposal puts b2 back, which has left since (I18).
    assert rig.partition(partition).isr == (("b1",) if is_on else ("b1", "b2"))
    assert (late.error_code is ErrorCode.INVALID_UPDATE_VERSION) is is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_a14_an_isr_with_members_that_are_no_replicas_is_invalid(is_on: bool) -> None:
    rig, partition = three(guards=Guards(isr_is_assigned=is_on))
    rig.join("b4")
    result = rig.propose("b1", partition, (*ALL, "b4"))
    # Without the guard the ISR is more than the replicas (B-39).
    assert (result.error_code is ErrorCode.INVALID_REQUEST) is is_on
    if is_on:
        check_well_formed(rig.machine.image, elr=False)
    else:
        with pytest.raises(AssertionError):
            check_well_formed(rig.machine.image, elr=False)


@pytest.mark.parametrize("isr", [("b2", "b3"), (), ("b1", "b1")])
def test_a14_an_isr_without_its_leader_or_with_doubles_is_invalid(isr: tuple[str, ...]) -> None:
    rig, partition = three()
    assert rig.propose("b1", partition, isr).error_code is ErrorCode.INVALID_REQUEST
    assert rig.partition(partition).isr == ALL


def test_a14_a_recovering_leader_reports_before_its_isr_grows() -> None:
    rig, partition = three()
    rig.configure("orders", "unclean.leader.election.enable", "true")
    rig.propose("b1", partition, ("b1",))
    rig.silence("b1")
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ())
    grow = rig.propose("b2", partition, ("b2", "b3"), leader_recovery_state=RECOVERING)
    assert grow.error_code is ErrorCode.INVALID_REQUEST
    assert rig.propose("b2", partition, ("b2",)).error_code is ErrorCode.NONE
    assert rig.partition(partition).leader_recovery_state is LeaderRecoveryState.RECOVERED
    back = rig.propose("b2", partition, ("b2",), leader_recovery_state=RECOVERING)
    assert back.error_code is ErrorCode.INVALID_REQUEST
    assert rig.propose("b2", partition, ("b2", "b3")).error_code is ErrorCode.NONE


@pytest.mark.parametrize("is_on", [True, False])
def test_a14_a_fenced_member_is_ineligible(is_on: bool) -> None:
    rig, partition = three(guards=Guards(fenced_stays_out=is_on))
    rig.silence("b3")
    result = rig.propose("b1", partition, ALL)
    assert (result.error_code is ErrorCode.INELIGIBLE_REPLICA) is is_on
    # Without the guard a dead broker is in sync, and the high watermark waits for it (I8).
    assert ("b3" in rig.partition(partition).isr) is not is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_a14_a_member_of_an_earlier_life_is_ineligible(is_on: bool) -> None:
    rig, partition = three(guards=Guards(member_broker_epoch=is_on))
    old = dict(rig.epochs)
    rig.silence("b3")
    rig.register("b3", "i2")
    rig.heartbeat("b3")
    result = rig.propose("b1", partition, ALL, member_epochs={"b3": old["b3"]})
    # Without the guard what came back empty is in sync (B-41).
    assert ("b3" in rig.partition(partition).isr) is not is_on
    assert (result.error_code is ErrorCode.INELIGIBLE_REPLICA) is is_on
    rig.propose("b1", partition, ALL, member_epochs={"b3": -1})
    assert rig.partition(partition).isr == ALL


def test_a14_an_unregistered_member_is_ineligible() -> None:
    rig, partition = three(guards=Guards(isr_is_assigned=False))
    result = rig.propose("b1", partition, ("b1", "nobody"))
    assert result.error_code is ErrorCode.INELIGIBLE_REPLICA


@pytest.mark.parametrize("is_on", [True, False])
def test_a14_the_sender_is_fenced_by_its_broker_epoch(is_on: bool) -> None:
    rig, partition = three(guards=Guards(broker_epoch=is_on))
    answer = rig.propose("b1", partition, ("b1",), broker_epoch=99)
    assert (answer.error_code is ErrorCode.STALE_BROKER_EPOCH) is is_on
    assert rig.partition(partition).isr == (ALL if is_on else ("b1",))


def test_a14_unknown_partitions_say_what_is_unknown() -> None:
    rig, partition = three()
    for asked, code in (
        (partition._replace(partition=9), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (partition._replace(topic_id="x" * 22), ErrorCode.UNKNOWN_TOPIC_ID),
        (partition._replace(topic="other"), ErrorCode.UNKNOWN_TOPIC_ID),
    ):
        proposal = control.AlterPartition(asked, 0, 0, (control.BrokerState("b1"),))
        answer = rig.ask(
            "b1",
            control.AlterPartitionRequest,
            broker_id="b1",
            broker_epoch=rig.epochs["b1"],
            partitions=(proposal,),
        )
        assert answer.partitions[0].error_code is code


def test_a14_the_same_request_twice_is_refused_the_second_time() -> None:
    rig, partition = three()
    members = (control.BrokerState("b1"), control.BrokerState("b2"))
    proposal = control.AlterPartition(partition, 0, 0, members)
    request = control.AlterPartitionRequest(77, "b1", rig.epochs["b1"], (proposal, proposal))
    answer: Any = rig.run("on_message", "b1", request)[0]
    codes = [each.error_code for each in answer.partitions]
    assert codes == [ErrorCode.NONE, ErrorCode.INVALID_UPDATE_VERSION]
    assert rig.partition(partition).partition_epoch == 1


def test_i18_a_proposal_that_its_leader_has_given_up_does_not_count_when_it_comes_late() -> None:
    """Asked twice, refused once: the leader counts without b2 from then on, and commits alone."""
    rig, partition = three()
    rig.propose("b1", partition, ("b1", "b3"))
    members = tuple(control.BrokerState(each, rig.epochs[each]) for each in ALL)
    proposal = control.AlterPartition(partition, 0, 1, members)
    late = control.AlterPartitionRequest(rig.take_id("b1"), "b1", rig.epochs["b1"], (proposal,))
    rig.silence("b2")
    refused = rig.propose("b1", partition, ALL, partition_epoch=1)
    assert refused.error_code is ErrorCode.INELIGIBLE_REPLICA
    assert not rig.heartbeat("b2").is_fenced
    rig.run("on_message", "b1", late)
    assert rig.partition(partition).isr == ("b1", "b3")


# Elections -------------------------------------------------------------------------------------


def test_a15_preferred_leaders_are_put_back_periodically() -> None:
    rig, partition = three(config=ControllerConfig(leader_imbalance_check_interval_ms=60_000))
    rig.silence("b1")
    rig.heartbeat("b1")
    rig.propose("b2", partition, ALL)
    assert rig.partition(partition).leader == "b2"
    rig.run("on_timer", ("preferred",))
    assert shape(rig.partition(partition)) == ("b1", ALL, ())
    assert rig.timers[("preferred",)] == rig.mono_us + 60_000_000


def test_a15_an_operator_asks_for_preferred_leaders() -> None:
    rig, partition = three()
    assert rig.elect(partition, "PREFERRED") is ErrorCode.ELECTION_NOT_NEEDED
    rig.silence("b1")
    assert rig.elect(partition, "PREFERRED") is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    rig.heartbeat("b1")
    assert rig.elect(partition, "PREFERRED") is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    rig.propose("b2", partition, ALL)
    assert rig.elect(partition._replace(topic_id=""), "PREFERRED") is ErrorCode.NONE
    assert rig.partition(partition).leader == "b1"
    assert rig.elect(partition, "PREFERRED", "b2") is ErrorCode.INVALID_REQUEST


def leaderless(**kwargs: Any) -> tuple[Rig, TopicIdPartition]:
    """b1 was the only member in sync and is gone; b2 and b3 are there."""
    rig, partition = three(**kwargs)
    rig.propose("b1", partition, ("b1",))
    rig.silence("b1")
    return rig, partition


@pytest.mark.parametrize("is_on", [True, False])
def test_a15_a_replica_out_of_sync_is_elected_with_permission_only(is_on: bool) -> None:
    rig, partition = leaderless(guards=Guards(unclean_needs_permission=is_on))
    # Without the guard b2 leads, and what b1 alone had is lost.
    assert shape(rig.partition(partition)) == (
        (None, ("b1",), ()) if is_on else ("b2", ("b2",), ())
    )


def test_a15_with_permission_losing_the_last_leader_elects_at_once() -> None:
    permitted = TopicConfig(unclean_leader_election_enable=True)
    rig, partition = leaderless(defaults=permitted)
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ())
    assert rig.partition(partition).leader_recovery_state is RECOVERING


def test_a15_a_permission_that_comes_later_is_seen_by_the_periodic_look() -> None:
    rig, partition = leaderless()
    rig.run("on_timer", ("unclean",))
    assert rig.partition(partition).leader is None
    rig.configure("orders", "unclean.leader.election.enable", "true")
    assert rig.partition(partition).leader is None
    rig.run("on_timer", ("unclean",))
    assert rig.partition(partition).leader == "b2"
    assert ("unclean",) in rig.timers


def test_a15_an_operator_asks_for_an_unclean_election() -> None:
    rig, partition = leaderless()
    assert rig.elect(partition, "UNCLEAN", "b1") is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert rig.elect(partition, "UNCLEAN", "b9") is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert rig.elect(partition, "UNCLEAN", "b3") is ErrorCode.NONE
    assert shape(rig.partition(partition)) == ("b3", ("b3",), ())
    assert rig.elect(partition, "UNCLEAN") is ErrorCode.ELECTION_NOT_NEEDED
    assert rig.elect(partition, "UNCLEAN", "b3") is ErrorCode.ELECTION_NOT_NEEDED
    assert rig.elect(partition._replace(partition=5), "UNCLEAN") is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )


def test_a15_an_unclean_election_without_a_to_takes_the_first_active() -> None:
    rig, partition = leaderless()
    assert rig.elect(partition, "UNCLEAN") is ErrorCode.NONE
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ())


@pytest.mark.parametrize("is_on", [True, False])
def test_a15_a_fenced_broker_is_not_elected(is_on: bool) -> None:
    rig, partition = leaderless(guards=Guards(elect_only_active=is_on))
    rig.silence("b3")
    rig.heartbeat("b3")
    # Without the guard the return of b3 makes b1 leader, which is gone (B-43).
    assert rig.partition(partition).leader == (None if is_on else "b1")


# Reassignment ----------------------------------------------------------------------------------


def test_a14_a_move_that_takes_the_leader_out_names_a_new_one() -> None:
    rig, partition = three()
    rig.join("b4")
    assert rig.reassign(partition, ("b4", "b2", "b3")) is ErrorCode.NONE
    assert rig.partition(partition).replicas == ("b4", "b2", "b3", "b1")
    assert rig.partition(partition).leader_epoch == 0
    result = rig.propose("b1", partition, ("b1", "b2", "b3", "b4"))
    assert result == control.AlterPartitionResult(partition, ErrorCode.NEW_LEADER_ELECTED)
    record = rig.partition(partition)
    assert (record.replicas, record.isr) == (("b4", "b2", "b3"), ("b4", "b2", "b3"))
    assert (record.leader, record.leader_epoch) == ("b4", 1)
    assert (record.adding_replicas, record.removing_replicas) == ((), ())


def test_a14_a_growth_keeps_leader_and_leader_epoch() -> None:
    rig, partition = three()
    rig.join("b4")
    rig.reassign(partition, ("b1", "b2", "b3", "b4"))
    result = rig.propose("b1", partition, ("b1", "b2", "b3", "b4"))
    assert (result.error_code, result.leader_epoch, result.isr) == (
        ErrorCode.NONE,
        0,
        ("b1", "b2", "b3", "b4"),
    )
    assert rig.partition(partition).adding_replicas == ()


def test_a14_a_shrink_of_replicas_in_sync_is_done_at_once() -> None:
    rig, partition = three()
    assert rig.reassign(partition, ("b2", "b3")) is ErrorCode.NONE
    record = rig.partition(partition)
    assert (record.replicas, record.isr, record.leader) == (("b2", "b3"), ("b2", "b3"), "b2")
    assert record.leader_epoch == 1


def test_a14_a_reassignment_can_be_cancelled_once() -> None:
    rig, partition = three()
    rig.join("b4")
    rig.reassign(partition, ("b4", "b2"))
    assert rig.reassign(partition, None) is ErrorCode.NONE
    assert sorted(rig.partition(partition).replicas) == ["b1", "b2", "b3"]
    assert rig.partition(partition).leader_epoch == 1
    assert rig.reassign(partition, None) is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a14_a_cancel_that_leaves_nobody_in_sync_is_refused() -> None:
    rig, partition = three()
    rig.join("b4")
    rig.reassign(partition, ("b4", "b2"))
    rig.propose("b1", partition, ("b1", "b4"))
    rig.silence("b1")
    assert shape(rig.partition(partition)) == ("b4", ("b4",), ())
    assert rig.reassign(partition, None) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


@pytest.mark.parametrize("replicas", [(), ("b1", "b1"), ("b1", "nobody")])
def test_a14_an_assignment_of_nobody_doubles_or_unknowns_is_refused(
    replicas: tuple[str, ...],
) -> None:
    rig, partition = three()
    assert rig.reassign(partition, replicas) is ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_a14_a_reassignment_of_what_is_unknown_says_so() -> None:
    rig, partition = three()
    other = partition._replace(topic_id="x" * 22)
    assert rig.reassign(other, ("b1",)) is ErrorCode.UNKNOWN_TOPIC_ID


# The order of checks ---------------------------------------------------------------------------

ISRS = (("b1", "b2"), ("b2",), ("b1", "b1"), ("b1", "b4"), ("b1", "b3"), ("b1",))


def expected_error(
    leader_off: int, partition_off: int, sender: str, isr: tuple[str, ...], recovery: str
) -> ErrorCode:
    """A14 as a table: the first line that applies. b3 is fenced, b4 no replica."""
    rows = (
        (leader_off > 0, ErrorCode.NOT_CONTROLLER),
        (partition_off > 0, ErrorCode.NOT_CONTROLLER),
        (leader_off < 0, ErrorCode.FENCED_LEADER_EPOCH),
        (sender != "b1", ErrorCode.INVALID_REQUEST),
        (partition_off < 0, ErrorCode.INVALID_UPDATE_VERSION),
        (len(set(isr)) != len(isr), ErrorCode.INVALID_REQUEST),
        ("b4" in isr, ErrorCode.INVALID_REQUEST),
        ("b1" not in isr, ErrorCode.INVALID_REQUEST),
        (recovery == "RECOVERING", ErrorCode.INVALID_REQUEST),
        ("b3" in isr, ErrorCode.INELIGIBLE_REPLICA),
    )
    return next((code for applies, code in rows if applies), ErrorCode.NONE)


def test_a14_the_first_check_that_fails_names_the_error() -> None:
    rig, partition = three()
    rig.join("b4")
    rig.elect(partition, "UNCLEAN", "b2")
    rig.elect(partition, "PREFERRED")
    rig.silence("b3")
    state, record = rig.machine._state, rig.partition(partition)
    seen = set()
    for leader_off, partition_off, sender, isr, recovery in product(
        (-1, 0, 1), (-1, 0, 1), ("b1", "b2"), ISRS, ("RECOVERED", "RECOVERING")
    ):
        proposal = control.AlterPartition(
            partition,
            record.leader_epoch + leader_off,
            record.partition_epoch + partition_off,
            tuple(control.BrokerState(each, rig.epochs[each]) for each in isr),
            LeaderRecoveryState[recovery],
        )
        code = check_alter_partition(state, sender, proposal, record)
        expected = expected_error(leader_off, partition_off, sender, isr, recovery)
        assert code is expected, (proposal, sender)
        seen.add(code)
    assert len(seen) == 6
