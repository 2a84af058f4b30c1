"""Who leaves the ISR and who joins it (PROTOCOL A4.5, A13), over all small inputs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from cluster.guards import Guards
from cluster.isr import CaughtUp, IsrState, caught_up, is_out_of_sync, may_join
from cluster.names import NO_OFFSET
from cluster.watermark import Progress, high_watermark

ON = Guards()
SMALL = range(5)
LAG_US = 30_000_000


# The state -------------------------------------------------------------------------------------


def test_a13_a_pending_member_counts_and_one_that_leaves_still_counts() -> None:
    committed = IsrState(("a", "b"), 3)
    assert committed.maximal == {"a", "b"}
    assert not committed.is_pending
    expand = IsrState(("a", "b"), 3, ("a", "b", "c"))
    assert expand.maximal == {"a", "b", "c"}
    shrink = IsrState(("a", "b"), 3, ("a",))
    assert shrink.maximal == {"a", "b"}, "the high watermark is not released before the commit"
    swap = IsrState(("a", "b"), 3, ("a", "c"))
    assert swap.maximal == {"a", "b", "c"}
    assert expand.is_pending
    assert IsrState(("a",), 3, ()).is_pending


# Catching up -----------------------------------------------------------------------------------


def test_a4_every_small_fetch_is_credited_as_the_sentence_says() -> None:
    times = (0, 2, 5)
    for before in map(CaughtUp._make, product(times, times, SMALL)):
        for offset, leader_leo in product(SMALL, SMALL):
            after = caught_up(before, 7, offset, leader_leo)
            if offset >= leader_leo:
                when = 7
            elif offset >= before.last_fetch_leader_leo:
                when = max(before.last_fetch_us, before.caught_up_us)
            else:
                when = before.caught_up_us
            assert after == (when, 7, leader_leo)


def test_a4_a_follower_one_fetch_behind_a_busy_leader_stays_caught_up() -> None:
    state, behind = CaughtUp(), CaughtUp()
    for second in range(1, 100):
        now, leader_leo = second * 1_000_000, 10 * second
        state = caught_up(state, now, 10 * (second - 1), leader_leo)
        behind = caught_up(behind, now, 10 * (second - 2), leader_leo)
    assert state.caught_up_us == 98_000_000
    # The first fetch was at or behind the end of a fetch that never was.
    assert behind.caught_up_us == 0
    assert not is_out_of_sync(980, 990, state.caught_up_us, 99_000_000, LAG_US)
    assert is_out_of_sync(970, 990, behind.caught_up_us, 99_000_000, LAG_US)


def test_a4_a_wall_clock_that_steps_back_takes_nothing_away() -> None:
    state = caught_up(CaughtUp(), 100, 5, 5)
    assert caught_up(state, 40, 5, 5).caught_up_us == 100
    assert caught_up(CaughtUp(100, 40, 5), 50, 5, 6).caught_up_us == 100


def test_a13_a_member_is_out_exactly_if_behind_and_not_caught_up_for_longer_than_the_limit() -> (
    None
):
    for follower, leader, caught_up_us, now, lag in product(SMALL, SMALL, SMALL, SMALL, (1, 2)):
        for_too_long = now > caught_up_us + lag
        expected = follower != leader and for_too_long
        assert is_out_of_sync(follower, leader, caught_up_us, now, lag) is expected


def test_a13_a_member_at_the_leaders_end_stays_however_long_nothing_was_written() -> None:
    assert not is_out_of_sync(5, 5, 0, 10 * LAG_US, LAG_US)


# Joining ---------------------------------------------------------------------------------------


def joins(guards: Guards = ON, **changed: Any) -> bool:
    """A follower that may join, apart from what is given."""
    arguments: dict[str, Any] = {
        "follower_leo": 5,
        "high_watermark": 5,
        "leader_epoch_start": 5,
        "is_active": True,
        "has_current_broker_epoch": True,
    }
    return may_join(guards=guards, **(arguments | changed))


def test_a13_every_small_follower_joins_exactly_if_all_conditions_hold() -> None:
    for leo, hw, start, active, epoch in product(
        range(-1, 5), SMALL, SMALL, (True, False), (True, False)
    ):
        found = joins(
            follower_leo=leo,
            high_watermark=hw,
            leader_epoch_start=start,
            is_active=active,
            has_current_broker_epoch=epoch,
        )
        assert found is (leo != -1 and leo >= max(hw, start) and active and epoch)


def test_c2_a_follower_whose_end_is_unknown_never_joins() -> None:
    off = Guards(
        join_at_high_watermark=False,
        epoch_start_rule=False,
        fenced_stays_out=False,
        member_broker_epoch=False,
    )
    assert not joins(off, follower_leo=NO_OFFSET)
    assert joins(off, follower_leo=0, is_active=False, has_current_broker_epoch=False)


@pytest.mark.parametrize("on", [True, False])
def test_a13_without_join_at_high_watermark_a_member_lacks_committed_records(on: bool) -> None:
    """Mutation point of C.2."""
    hw, leo = 5, 3
    joined = joins(
        Guards(join_at_high_watermark=on), follower_leo=leo, high_watermark=hw, leader_epoch_start=0
    )
    assert all(member_leo >= hw for member_leo in ([leo] if joined else [])) is on, "I5"


@pytest.mark.parametrize("on", [True, False])
def test_a13_without_epoch_start_rule_a_member_lacks_what_the_last_leader_committed(
    on: bool,
) -> None:
    """Hazard B-16: 0..9 are committed; the new leader's own high watermark is still 5."""
    committed, leader_hw, epoch_start, follower = 10, 5, 10, 5
    joined = joins(
        Guards(epoch_start_rule=on),
        follower_leo=follower,
        high_watermark=leader_hw,
        leader_epoch_start=epoch_start,
    )
    electable = [10, follower] if joined else [10]
    assert (min(electable) >= committed) is on, "I6: a member lacks 5..9 and may be elected"


@pytest.mark.parametrize("on", [True, False])
def test_a13_without_fenced_stays_out_a_leaving_broker_joins(on: bool) -> None:
    """Hazard B-40."""
    active = {"L": True, "A": False}
    isr = ["L", *(["A"] if joins(Guards(fenced_stays_out=on), is_active=active["A"]) else [])]
    assert all(active[member] for member in isr) is on, "I8: a member is fenced or leaving"


@pytest.mark.parametrize("on", [True, False])
def test_a13_without_member_broker_epoch_an_earlier_life_joins_in_place_of_an_empty_log(
    on: bool,
) -> None:
    """Hazard B-41: what fetched at 5 was the broker before its disk was replaced."""
    joined = joins(Guards(member_broker_epoch=on), has_current_broker_epoch=False)
    hw = high_watermark(
        0,
        5,
        isr=frozenset("LA" if joined else "L"),
        maximal_isr=frozenset("LA" if joined else "L"),
        followers={"A": Progress(5, True, joined)},
        min_isr=1,
        replication_factor=2,
        guards=ON,
    )
    members_now = [0] if joined else []
    assert all(leo >= hw for leo in members_now) is on, "I5: the member of today is empty"
