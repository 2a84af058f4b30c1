"""Registration, heartbeats, sessions, controlled shutdown and quarantine at the controller."""

from __future__ import annotations

from typing import Any

import pytest

from cluster import messages_control as control
from cluster.config import ControllerConfig, TopicConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.names import TopicIdPartition
from cluster.records import LeaderRecoveryState
from tests.cluster.controllers import Rig, check_well_formed, shape

ELR = ControllerConfig(eligible_leader_replicas=True)
MIN_2 = TopicConfig(min_insync_replicas=2)


def three(**kwargs: Any) -> tuple[Rig, TopicIdPartition]:
    """Three brokers and a partition that all of them have, led by b1."""
    rig = Rig(**kwargs)
    rig.join("b1", "b2", "b3")
    return rig, rig.create("orders", ("b1", "b2", "b3"))[0]


# Registration ----------------------------------------------------------------------------------


def test_a16_registration_gives_the_offset_of_its_record_and_leaves_the_broker_fenced() -> None:
    rig = Rig()
    first, second = rig.register("b1"), rig.register("b2")
    assert (first.error_code, first.broker_epoch) == (ErrorCode.NONE, 0)
    assert (second.error_code, second.broker_epoch) == (ErrorCode.NONE, 1)
    assert rig.machine.fields()["b1/fenced"] is True


def test_a16_the_same_incarnation_keeps_its_epoch_and_its_state() -> None:
    rig = Rig()
    rig.join("b1")
    end = rig.machine.image.end_offset
    assert rig.register("b1").broker_epoch == 0
    assert rig.machine.image.end_offset == end
    assert rig.machine.fields()["b1/fenced"] is False


@pytest.mark.parametrize("is_on", [True, False])
def test_a16_another_incarnation_is_refused_while_the_session_lasts(is_on: bool) -> None:
    rig, partition = three(guards=Guards(registration_incarnation=is_on))
    answer = rig.register("b1", "i2")
    # Without the guard the first life, alive as it is, has lost its leadership to the second.
    assert (answer.error_code is ErrorCode.NONE) is not is_on
    assert (rig.partition(partition).leader == "b1") is is_on
    if is_on:
        assert answer.error_code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
        rig.silence("b1")
        assert rig.register("b1", "i2").error_code is ErrorCode.NONE


def test_a16_a_new_incarnation_gets_a_higher_epoch_and_the_old_one_is_stale() -> None:
    rig = Rig()
    rig.join("b1")
    rig.silence("b1")
    old = rig.epochs["b1"]
    assert rig.register("b1", "i2").broker_epoch > old
    stale = rig.heartbeat("b1", broker_epoch=old)
    assert stale.error_code is ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("is_on", [True, False])
def test_a16_a_heartbeat_of_an_earlier_life_does_not_count(is_on: bool) -> None:
    rig = Rig(guards=Guards(broker_epoch=is_on))
    rig.join("b1")
    rig.silence("b1")
    rig.register("b1", "i2")
    rig.heartbeat("b1", broker_epoch=0)
    # Without the guard the dead life's heartbeat has unfenced the new one.
    assert rig.machine.fields()["b1/fenced"] is is_on


def test_a16_who_never_registered_is_told_so() -> None:
    assert Rig().heartbeat("b1").error_code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a16_nobody_speaks_for_another_broker() -> None:
    rig, partition = three()
    before = rig.machine.fields()
    request = control.BrokerHeartbeatRequest(1 << 40, "b1", rig.epochs["b1"], 99, want_fence=True)
    answer = rig.run("on_message", "b2", request)[0]
    assert answer == control.BrokerHeartbeatResponse(1 << 40, ErrorCode.INVALID_REQUEST)
    proposal = control.AlterPartition(partition, 0, 0, (control.BrokerState("b1"),))
    request = control.AlterPartitionRequest(1 << 40, "b1", rig.epochs["b1"], (proposal,))  # type: ignore[assignment]
    answer = rig.run("on_message", "b2", request)[0]
    assert answer == control.AlterPartitionResponse(1 << 40, ErrorCode.INVALID_REQUEST)
    assert rig.machine.fields() == before


@pytest.mark.parametrize("identity", ["", "x" * 256, "a\nb", "\ud800"])
def test_a16_an_incarnation_that_no_record_can_hold_is_refused(identity: str) -> None:
    assert Rig().register("b1", identity).error_code is ErrorCode.INVALID_REQUEST


# Fencing ---------------------------------------------------------------------------------------


def test_a16_a_broker_is_unfenced_once_it_has_applied_its_registration() -> None:
    rig = Rig()
    rig.register("b0")
    rig.register("b1")
    behind = rig.heartbeat("b1", current_metadata_offset=1)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    wants = rig.heartbeat("b1", current_metadata_offset=2, want_fence=True)
    assert (wants.is_caught_up, wants.is_fenced) == (True, True)
    there = rig.heartbeat("b1", current_metadata_offset=2)
    assert (there.is_caught_up, there.is_fenced) == (True, False)


def test_a16_a_silent_broker_is_fenced_leaves_the_isr_and_leads_no_more() -> None:
    rig, partition = three()
    rig.silence("b1")
    assert shape(rig.partition(partition)) == ("b2", ("b2", "b3"), ())
    assert rig.partition(partition).leader_epoch == 1
    assert rig.machine.fields()["b1/fenced"] is True


def test_a16_a_session_is_a_whole_timeout_from_the_last_contact() -> None:
    rig = Rig()
    rig.join("b1")
    rig.advance(8_000)
    rig.heartbeat("b1")
    rig.advance(8_999)
    assert rig.machine.fields()["b1/fenced"] is False
    rig.advance(1)
    assert rig.machine.fields()["b1/fenced"] is True


def test_a16_brokers_are_fenced_in_the_order_of_their_last_contact() -> None:
    rig, partition = three()
    rig.advance(1_000)
    rig.heartbeat("b3")
    rig.advance(1_000)
    rig.heartbeat("b1")
    # A controller that was held up finds all of them overdue.
    rig.mono_us += 60_000_000
    rig.run("on_timer", ("session", "b1"))
    assert [each for each in rig.notes if each == "broker-fenced"] == ["broker-fenced"] * 3
    # b2 was fenced first, then b3, and the last member stays listed.
    assert shape(rig.partition(partition)) == (None, ("b1",), ())


def test_a16_unfencing_elects_and_re_enters_no_isr() -> None:
    rig, partition = three()
    rig.silence("b2")
    rig.heartbeat("b2")
    assert shape(rig.partition(partition)) == ("b1", ("b1", "b3"), ())
    rig.silence("b3")
    rig.silence("b1")
    assert shape(rig.partition(partition)) == (None, ("b1",), ())
    rig.heartbeat("b1")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ())


def test_a16_a_heartbeat_that_wants_to_be_fenced_is_obeyed() -> None:
    rig, partition = three()
    assert rig.heartbeat("b1", want_fence=True).is_fenced
    assert shape(rig.partition(partition)) == ("b2", ("b2", "b3"), ())


def test_a16_a_timer_that_rings_early_fences_nobody() -> None:
    rig, _ = three()
    rig.run("on_timer", ("session", "b1"))
    assert rig.machine.fields()["b1/fenced"] is False


# Unclean restarts ------------------------------------------------------------------------------


def returning(guards: Guards, previous: str) -> tuple[Rig, TopicIdPartition]:
    """With ELR and min ISR 2: b2 and b1 go, b1 led last, and b2 comes back first."""
    rig, partition = three(config=ELR, defaults=MIN_2, guards=guards)
    rig.silence("b3")
    rig.silence("b2")
    rig.silence("b1")
    assert shape(rig.partition(partition)) == (None, (), ("b1", "b2"))
    epoch = rig.epochs["b2"] if previous == "clean" else -1
    rig.register("b2", "i2", previous=epoch)
    rig.heartbeat("b2")
    return rig, partition


def test_a16_a_clean_restart_stays_eligible() -> None:
    rig, partition = returning(Guards(), "clean")
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ("b1",))


@pytest.mark.parametrize("is_on", [True, False])
def test_a16_an_unclean_restart_leaves_isr_and_elr_before_it_can_lead(is_on: bool) -> None:
    rig, partition = returning(Guards(unclean_restart_leaves_isr=is_on), "unclean")
    # Without the guard a broker that may have lost records leads, and as a clean leader.
    expected = (None, (), ("b1",)) if is_on else ("b2", ("b2",), ("b1",))
    assert shape(rig.partition(partition)) == expected
    state = rig.partition(partition).leader_recovery_state
    assert state is LeaderRecoveryState.RECOVERED


def test_a16_a_marker_of_an_earlier_life_is_no_clean_shutdown() -> None:
    """A disk restored from an old image has the marker of an old epoch."""
    rig, partition = returning(Guards(), "clean")
    old = rig.epochs["b2"]
    rig.silence("b2")
    rig.register("b2", "i3", previous=old)
    assert "b2" in rig.partition(partition).elr
    rig.silence("b2")
    rig.register("b2", "i4", previous=old)
    assert "b2" not in rig.partition(partition).elr


def test_a16_without_elr_an_unclean_restart_is_a_fencing() -> None:
    rig, partition = three()
    for broker in ("b3", "b2", "b1"):
        rig.silence(broker)
    rig.register("b1", "i2")
    assert shape(rig.partition(partition)) == (None, ("b1",), ())
    rig.heartbeat("b1")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ())


def test_a17_all_members_lost_records_and_the_last_leader_is_elected_recovering() -> None:
    rig, partition = three(config=ELR, defaults=MIN_2)
    for broker in ("b3", "b2", "b1"):
        rig.silence(broker)
    rig.register("b2", "i2")
    rig.register("b1", "i2")
    assert shape(rig.partition(partition)) == (None, (), ())
    assert rig.partition(partition).last_known_elr == ("b1",)
    rig.heartbeat("b2")
    assert rig.partition(partition).leader is None
    rig.heartbeat("b1")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ())
    assert rig.partition(partition).leader_recovery_state is LeaderRecoveryState.RECOVERING


# Controlled shutdown ---------------------------------------------------------------------------


def test_a16_a_broker_that_leads_nothing_may_leave_at_once() -> None:
    rig, partition = three()
    answer = rig.heartbeat("b2", want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (True, True)
    assert shape(rig.partition(partition)) == ("b1", ("b1", "b3"), ())


def test_a16_a_leader_leaves_when_all_active_brokers_know_its_successor() -> None:
    rig, partition = three()
    answer = rig.heartbeat("b1", want_shut_down=True)
    assert (answer.should_shut_down, answer.is_fenced) == (False, False)
    assert rig.machine.fields()["b1/in_controlled_shutdown"] is True
    assert shape(rig.partition(partition)) == ("b2", ("b2", "b3"), ())
    needed = rig.machine.image.end_offset
    rig.heartbeat("b2", current_metadata_offset=needed)
    rig.heartbeat("b3", current_metadata_offset=needed - 1)
    assert not rig.heartbeat("b1", want_shut_down=True).should_shut_down
    rig.heartbeat("b3", current_metadata_offset=needed)
    assert rig.heartbeat("b1", want_shut_down=True).should_shut_down
    assert rig.machine.fields()["b1/fenced"] is True
    assert rig.machine.fields()["b1/in_controlled_shutdown"] is False


def test_a16_a_broker_that_left_may_come_back_at_once() -> None:
    rig, _ = three()
    epoch = rig.epochs["b2"]
    rig.heartbeat("b2", want_shut_down=True)
    again = rig.heartbeat("b2", want_shut_down=True)
    assert again.should_shut_down
    assert rig.register("b2", "i2", previous=epoch).error_code is ErrorCode.NONE


def test_a16_the_last_member_that_leaves_stays_listed_without_a_leader() -> None:
    rig = Rig()
    rig.join("b1")
    partition = rig.create("orders", ("b1",))[0]
    assert not rig.heartbeat("b1", want_shut_down=True).should_shut_down
    assert shape(rig.partition(partition)) == (None, ("b1",), ())
    assert rig.heartbeat("b1", want_shut_down=True).should_shut_down


@pytest.mark.parametrize("is_on", [True, False])
def test_a13_a_leaving_broker_does_not_rejoin_an_isr(is_on: bool) -> None:
    rig, partition = three(guards=Guards(fenced_stays_out=is_on))
    rig.heartbeat("b1", want_shut_down=True)
    result = rig.propose("b2", partition, ("b1", "b2", "b3"))
    # Without the guard a member is about to stop (B-40).
    assert ("b1" in rig.partition(partition).isr) is not is_on
    assert (result.error_code is ErrorCode.INELIGIBLE_REPLICA) is is_on
    if is_on:
        check_well_formed(rig.machine.image, elr=False)
    else:
        with pytest.raises(AssertionError):
            check_well_formed(rig.machine.image, elr=False)


# Damaged logs ----------------------------------------------------------------------------------


def test_2_10_a_damaged_log_leaves_the_isr_and_its_broker_leads_no_more() -> None:
    rig, partition = three()
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert shape(rig.partition(partition)) == ("b2", ("b2", "b3"), ())
    refused = rig.propose("b2", partition, ("b1", "b2", "b3"))
    assert refused.error_code is ErrorCode.INELIGIBLE_REPLICA
    rig.heartbeat("b1")
    assert rig.propose("b2", partition, ("b1", "b2", "b3")).error_code is ErrorCode.NONE


def test_2_10_the_last_member_stays_listed_and_is_not_elected_while_damaged() -> None:
    rig = Rig()
    rig.join("b1")
    partition = rig.create("orders", ("b1",))[0]
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert shape(rig.partition(partition)) == (None, ("b1",), ())
    assert rig.elect(partition, "UNCLEAN") is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    rig.heartbeat("b1")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ())


def test_2_10_with_elr_a_damaged_log_is_in_neither() -> None:
    rig, partition = three(config=ELR, defaults=MIN_2)
    rig.silence("b3")
    rig.silence("b2")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ("b2",))
    rig.register("b2", "i2", previous=rig.epochs["b2"], damaged=(partition,))
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ())
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert shape(rig.partition(partition)) == (None, (), ())


def test_2_10_an_unclean_election_passes_a_damaged_leader_over() -> None:
    rig, partition = three()
    rig.configure("orders", "unclean.leader.election.enable", "true")
    rig.silence("b3")
    rig.silence("b2")
    rig.heartbeat("b2")
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ())
    assert rig.partition(partition).leader_recovery_state is LeaderRecoveryState.RECOVERING


def test_2_10_a_forced_election_may_name_a_damaged_log_and_it_stays_leader() -> None:
    rig = Rig()
    rig.join("b1")
    partition = rig.create("orders", ("b1",))[0]
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert rig.elect(partition, "UNCLEAN", "b1") is ErrorCode.NONE
    assert rig.partition(partition).leader == "b1"
    rig.heartbeat("b1", damaged_partitions=(partition,))
    assert rig.partition(partition).leader == "b1"
    rig.heartbeat("b1")
    assert rig.partition(partition).leader == "b1"


def test_2_10_damage_of_what_is_unknown_or_of_others_changes_nothing() -> None:
    rig, partition = three()
    end = rig.machine.image.end_offset
    unknown = partition._replace(topic_id="x" * 22)
    rig.heartbeat("b1", damaged_partitions=(unknown, partition._replace(partition=7)))
    assert rig.machine.image.end_offset == end


def test_i20_a_late_copy_of_a_heartbeat_does_not_clear_a_damage() -> None:
    rig, partition = three()
    early = control.BrokerHeartbeatRequest(rig.take_id("b2"), "b2", rig.epochs["b2"], 99)
    rig.run("on_message", "b2", early)
    rig.heartbeat("b2", damaged_partitions=(partition,))
    assert rig.run("on_message", "b2", early) == []
    assert rig.machine.fields()["b2/damaged"] == ("orders-0",)
