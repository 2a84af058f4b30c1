"""Taking and keeping a leadership (PROTOCOL A2): epochs, positions, what metadata may change."""

from __future__ import annotations

import pytest

from cluster.errors import ErrorCode
from cluster.messages_control import MetadataFetchResponse
from cluster.metadata import MetadataImage
from cluster.names import LATEST_TIMESTAMP
from cluster.records import METADATA_RECORDS, PartitionRecord
from cluster.replica import TRANSITIONS, Event, Follower, Leader, Quarantined, Waiting
from tests.cluster.leader_tools import MEMBERS, Solo, guards_without
from tests.cluster.scripted import ORDERS, Cluster


def test_a2_promotion_notes_where_the_epoch_begins_durably() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.lead("b1", epoch=4)
    assert solo.leader.leader_epoch_start == 1
    assert solo.replica.opened.epochs.entries == ((0, 0), (4, 1))
    solo.controller.silent_to = {"b1"}
    solo.restart()
    assert solo.replica.opened.epochs.entries == ((0, 0), (4, 1))


@pytest.mark.parametrize("is_on", [True, False])
def test_a2_b06_a_leader_without_records_of_its_epoch_knows_where_it_began(is_on: bool) -> None:
    """Hazard B-06: it could not say where an older epoch ends; the asker falls back to its own."""
    solo = Solo(guards=None if is_on else guards_without("assign_epoch_on_promotion"))
    solo.produce("b1", b"x", acks=1)
    solo.lead("b1", epoch=4)
    answer = solo.fetch_as("b2", 2, last_epoch=2)
    assert answer is not None
    if is_on:
        assert answer.diverging_epoch == (0, 1)
    else:
        assert answer.error_code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a2_a_new_leader_knows_no_positions_and_members_are_caught_up_now() -> None:
    solo = Solo(isr=("b1", "b2"), leads=False)
    solo.lead("b2", ("b1", "b2"), replicas=MEMBERS)
    solo.lead("b1", ("b1", "b2"))
    known = {n: (r.leo, r.caught_up.caught_up_us) for n, r in solo.leader.followers.items()}
    assert known == {"b2": (-1, solo.router.now_us), "b3": (-1, 0)}


def test_a2_a_reelected_leader_keeps_positions_and_caught_up_times_begin_anew() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b2")
    solo.router.run_for(1_000)
    solo.lead("b1")
    assert solo.leader.followers["b2"].leo == 1
    assert solo.leader.followers["b2"].caught_up.caught_up_us == solo.router.now_us


@pytest.mark.parametrize("is_on", [True, False])
def test_a2_bh9_positions_are_forgotten_where_an_epoch_was_missed(is_on: bool) -> None:
    """Hazard B-H9: C truncated under an epoch that A never saw."""
    guards = None if is_on else guards_without("keep_leo_only_if_no_epoch_missed")
    solo = Solo(guards=guards)
    for _ in range(10):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    numbers = [solo.produce("b1", b"y") for _ in range(2)]
    solo.replicate("b3")
    assert solo.hw == 10
    solo.controller.silent_to = {"b1"}
    solo.lead("b2")
    solo.controller.silent_to = set()
    solo.lead("b1", ("b1", "b3"))
    assert solo.leader.leader_epoch == 2
    if is_on:
        assert (solo.hw, solo.leader.followers["b3"].leo) == (10, -1)
        assert [solo.acked(n) for n in numbers] == [None, None]
    else:
        # In the harm's story b3's log ends at 10 by now.
        assert [solo.acked(n) for n in numbers] == [(ErrorCode.NONE, 10), (ErrorCode.NONE, 11)]
    solo.fetch_as("b2", 12)
    solo.fetch_as("b3", 12)
    assert solo.hw == 12


def test_a2_bh9_a_snapshot_over_several_epochs_is_one_delta() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    solo.produce("b1", b"y", acks=1)
    solo.replicate("b2")
    solo.controller.silent_to = {"b1"}
    solo.lead("b2")
    solo.lead("b3")
    solo.lead("b1", ("b1", "b2"))
    answer_with_snapshot(solo)
    assert solo.leader.leader_epoch == 3
    assert solo.leader.followers["b2"].leo == -1
    assert [n["role"] for n in solo.router.noted("role")] == ["leader", "leader"]


def answer_with_snapshot(solo: Solo) -> None:
    """Answer ``b1``'s metadata fetch with the whole image."""
    image = solo.controller.image
    records = tuple(METADATA_RECORDS.encode(r) for r in image.to_records())
    number = solo.controller._parked.pop("b1").correlation_id
    solo.deliver("c1", MetadataFetchResponse(number, 0, image.end_offset, True, records))


def test_a2_a_snapshot_that_is_not_ahead_is_dropped() -> None:
    solo = Solo()
    request = solo.controller._parked["b1"]
    before = solo.broker("b1").core.image
    empty = MetadataImage()
    answer = MetadataFetchResponse(request.correlation_id, 0, before.end_offset, True, ())
    solo.deliver("c1", answer)
    assert solo.broker("b1").core.image is before
    assert empty.end_offset == 0


@pytest.mark.parametrize("is_on", [True, False])
def test_a2_b17_metadata_of_the_same_epoch_changes_the_isr_and_nothing_else(is_on: bool) -> None:
    """Hazard B-17: the leader begins anew, so followers look caught up and may not join."""
    solo = Solo(guards=None if is_on else guards_without("act_only_on_bumped_epoch"))
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.fetch_as("b2", 2)
    solo.router.run_for(1_000)
    caught_up = solo.leader.followers["b3"].caught_up.caught_up_us
    solo.decide(solo.state(isr=("b1", "b3")))
    leader = solo.leader
    assert leader.isr.isr == ("b1", "b3")
    if is_on:
        assert leader.leader_epoch_start == 0
        assert leader.followers["b2"].leo == 2
        assert leader.followers["b3"].caught_up.caught_up_us == caught_up
    else:
        assert leader.leader_epoch_start == 3, "the epoch seems to begin at the log's end"
        assert leader.followers["b2"].leo == -1
        assert leader.followers["b3"].caught_up.caught_up_us > caught_up
    solo.fetch_as("b2", 2)
    assert (leader.isr.proposed or leader.isr.isr) == (MEMBERS if is_on else ("b1", "b3"))


def test_a2_waiting_produces_outlive_a_reelection() -> None:
    solo = Solo()
    number = solo.produce("b1", b"x")
    solo.lead("b1")
    assert solo.acked(number) is None
    solo.replicate()
    assert solo.acked(number) == (ErrorCode.NONE, 0)


def test_a2_a_record_of_an_older_partition_epoch_is_ignored_and_an_equal_one_replayed() -> None:
    solo = Solo()
    current = solo.state(isr=("b1",))
    solo.decide(current)
    solo.decide(solo.state(isr=MEMBERS, partition_epoch=current.partition_epoch - 1))
    assert (solo.isr.isr, solo.replica.partition_epoch) == (("b1",), current.partition_epoch)
    solo.decide(current)
    assert solo.isr.isr == ("b1",)


def test_a2_a_member_added_or_removed_inside_an_epoch_is_followed() -> None:
    solo = Solo(replicas=("b1", "b2"))
    solo.decide(solo.state(replicas=("b1", "b3"), isr=("b1",)))
    assert sorted(solo.leader.followers) == ["b3"]
    refused = solo.fetch_as("b2", 0)
    assert refused is not None
    assert refused.error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    solo.fetch_as("b3", 0)
    assert solo.isr.isr == ("b1", "b3")


def test_a2_the_high_watermark_on_promotion_is_what_the_follower_knew() -> None:
    cluster = Cluster(3)
    cluster.lead("b1")
    cluster.produce("b1", b"x")
    cluster.router.run_for(1_000)
    cluster.produce("b1", b"y")
    assert (cluster.high_watermark("b1"), cluster.high_watermark("b2")) == (2, 1)
    cluster.router.is_held = lambda src, dst, message: "b2" in (src, dst)
    cluster.lead("b2")
    assert (cluster.high_watermark("b2"), cluster.leo("b2")) == (1, 2)


@pytest.mark.parametrize("is_on", [True, False])
def test_a2_a22_the_latest_offset_does_not_step_back_after_an_election(is_on: bool) -> None:
    """KIP-207: until the high watermark has reached the epoch's start it is not known."""
    solo = Solo(guards=None if is_on else guards_without("offset_not_available"))
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    assert solo.list_offset(LATEST_TIMESTAMP).offset == 3
    solo.replica.high_watermark = 1  # as a follower that was promoted had it
    solo.lead("b1", epoch=2)
    answer = solo.list_offset(LATEST_TIMESTAMP)
    if is_on:
        assert answer.error_code is ErrorCode.OFFSET_NOT_AVAILABLE
        late = solo.list_offset(solo.router.now.wall_ms)
        assert late.offset == 0, "a match below the high watermark is given"
        assert solo.list_offset(LATEST_TIMESTAMP, replica="b2").offset == 3
    else:
        assert answer.offset == 1, "it was 3 before"
    solo.replicate()
    assert solo.list_offset(LATEST_TIMESTAMP).offset == 3


def test_a2_every_move_of_a_role_is_in_the_table() -> None:
    roles = (Waiting, Leader, Follower, Quarantined)
    assert {role for role, _ in TRANSITIONS} <= set(roles)
    assert (Quarantined, Event.LEAD) not in TRANSITIONS
    assert all(TRANSITIONS[role, Event.LEAD] is Leader for role in (Waiting, Leader, Follower))


def test_a2_leader_follower_nobody_and_back() -> None:
    solo = Solo()
    seen = [solo.replica.role.name]
    for leader in ("b2", None, "b3", "b1", None, "b1"):
        solo.lead(leader)
        seen.append(solo.replica.role.name)
    assert seen == ["leader", "follower", "waiting", "follower", "leader", "waiting", "leader"]


def test_a2_a_partition_record_is_enough_to_begin_a_replica_later() -> None:
    solo = Solo(leads=False)
    solo.decide(PartitionRecord(ORDERS, ("b2",), ("b2",), "b2", 0, 0))
    assert ORDERS not in solo.broker("b1").core.replicas
    solo.decide(solo.state(replicas=("b2", "b1")))
    assert solo.replica.role.name == "follower"


def test_a2_a8_an_epoch_without_records_is_forgotten_by_the_follower() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.lead("b1", epoch=4)
    solo.router.is_held = lambda src, dst, message: dst == "b2"
    solo.lead("b2")
    assert solo.replica.opened.epochs.entries == ((0, 0),)
