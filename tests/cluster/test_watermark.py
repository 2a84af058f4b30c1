"""The high watermark of PROTOCOL A5 over all small inputs, and by its sentences."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from cluster.guards import Guards
from cluster.watermark import Progress, high_watermark, is_frozen

ON = Guards()
OFFSETS = range(4)
POSITIONS = [
    Progress(leo, caught_up, eligible)
    for leo, caught_up, eligible in product((-1, 0, 2, 3), (True, False), (True, False))
]
OTHERS = [frozenset(found) for size in range(3) for found in combinations("AB", size)]
MEMBERS = [(isr | {"L"}, maximal | {"L"}) for isr in OTHERS for maximal in OTHERS if isr <= maximal]


def naive(
    current: int,
    leader_leo: int,
    isr: frozenset[str],
    maximal: frozenset[str],
    followers: dict[str, Progress],
    frozen: bool,
) -> int:
    """A5: the least of the leader's end, the maximal ISR's, and that of those about to join."""
    if frozen:
        return current
    ends = {leader_leo}
    ends |= {progress.leo for name, progress in followers.items() if name in maximal}
    ends |= {
        progress.leo
        for name, progress in followers.items()
        if name not in maximal and progress.is_caught_up and progress.is_eligible
    }
    return min(ends) if min(ends) > current else current


def rise(leader_leo: int = 5, guards: Guards = ON, *, current: int = 0, **changed: Any) -> int:
    """A leader L at 5 with followers A and B in sync and at 5, apart from what is given."""
    arguments: dict[str, Any] = {
        "isr": frozenset("LAB"),
        "maximal_isr": changed.get("isr", frozenset("LAB")),
        "followers": {"A": Progress(5, True, True), "B": Progress(5, True, True)},
        "min_isr": 1,
        "replication_factor": 3,
    }
    return high_watermark(current, leader_leo, guards=guards, **(arguments | changed))


def test_a5_every_small_input_gives_the_offset_of_the_naive_twin() -> None:
    for isr, maximal in MEMBERS:
        for first, second in product(POSITIONS, POSITIONS):
            followers = {"A": first, "B": second}
            for current, leader_leo in product(OFFSETS, OFFSETS):
                expected = naive(current, leader_leo, isr, maximal, followers, frozen=False)
                found = rise(
                    leader_leo, current=current, isr=isr, maximal_isr=maximal, followers=followers
                )
                assert found == expected, (current, leader_leo, isr, maximal, followers)
                if found != current:
                    members = [followers[name].leo for name in maximal - {"L"}]
                    assert current < found <= min([leader_leo, *members])


def test_a5_nothing_rises_while_fewer_than_min_isr_or_all_replicas_are_in_sync() -> None:
    for size, min_isr, factor in product(range(1, 4), range(1, 5), range(1, 4)):
        frozen = size < min_isr and size < factor
        assert is_frozen(size, min_isr, factor, ON) is frozen
        isr = frozenset("LAB"[:size])
        followers = {name: Progress(5, True, True) for name in "AB"}
        found = rise(isr=isr, followers=followers, min_isr=min_isr, replication_factor=factor)
        assert found == (0 if frozen else 5)


def test_a5_the_freeze_looks_at_the_committed_isr_though_a_join_is_pending() -> None:
    committed, pending = frozenset("L"), frozenset("LA")
    assert rise(isr=committed, maximal_isr=pending, min_isr=2) == 0


def test_a5_a_high_watermark_is_never_lowered() -> None:
    assert rise(3, current=4) == 4
    behind = {"A": Progress(1, True, True), "B": Progress(5, True, True)}
    assert rise(current=4, followers=behind) == 4


def test_a5_a_sole_member_raises_it_to_its_own_end() -> None:
    idle = {"A": Progress(-1, False, False), "B": Progress(0, False, True)}
    assert rise(isr=frozenset("L"), followers=idle) == 5


def test_a5_a_caught_up_follower_about_to_join_is_not_overtaken() -> None:
    followers = {"A": Progress(5, True, True), "B": Progress(4, True, True)}
    assert rise(isr=frozenset("LA"), followers=followers) == 4
    followers["B"] = Progress(4, False, True)
    assert rise(isr=frozenset("LA"), followers=followers) == 5


def test_a2_a_member_whose_position_is_unknown_holds_it() -> None:
    unknown = {"A": Progress(-1, False, False), "B": Progress(5, True, True)}
    assert rise(current=2, followers=unknown) == 2


def test_i5_a_member_that_is_missing_among_the_positions_holds_it() -> None:
    assert rise(current=2, followers={"A": Progress(5, True, True)}) == 2
    assert rise(current=2, isr=frozenset("LA"), followers={"A": Progress(5, True, True)}) == 5


# Guards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [True, False])
def test_a5_without_hw_freeze_one_copy_is_called_committed(on: bool) -> None:
    """Hazard B-42: min ISR is 2, and the leader alone is in sync."""
    behind = {"A": Progress(2, False, True), "B": Progress(2, False, True)}
    found = rise(
        5,
        Guards(hw_freeze=on),
        current=2,
        isr=frozenset("L"),
        followers=behind,
        min_isr=2,
    )
    copies = 1 + sum(progress.leo >= found for progress in behind.values())
    assert (copies >= 2) is on, "I19: a committed record is on fewer replicas than min ISR"


@pytest.mark.parametrize("on", [True, False])
def test_a13_without_maximal_isr_a_pending_member_lacks_what_is_committed(on: bool) -> None:
    """The controller may have made B a member already: the answer is only on its way."""
    followers = {"A": Progress(5, True, True), "B": Progress(3, False, True)}
    found = rise(
        guards=Guards(maximal_isr=on),
        current=3,
        isr=frozenset("LA"),
        maximal_isr=frozenset("LAB"),
        followers=followers,
    )
    assert (found <= followers["B"].leo) is on, "I5: the high watermark is above a member's end"


@pytest.mark.parametrize("on", [True, False])
def test_a5_without_eligible_outsiders_only_a_fenced_replica_stops_all_progress(on: bool) -> None:
    """KAFKA-15021: B is fenced, within the lag limit, and will never join."""
    followers = {"A": Progress(5, True, True), "B": Progress(2, True, False)}
    found = rise(
        guards=Guards(eligible_outsiders_only=on),
        current=2,
        isr=frozenset("LA"),
        followers=followers,
    )
    assert (found == 5) is on, "I12: all in sync have 5, and the high watermark stays"


def test_each_guard_off_changes_only_its_own_rule() -> None:
    for isr, maximal in MEMBERS:
        for first, second in product(POSITIONS, POSITIONS):
            given: dict[str, Any] = {
                "isr": isr,
                "maximal_isr": maximal,
                "followers": {"A": first, "B": second},
            }
            assert rise(3, Guards(hw_freeze=False), **given) == rise(3, **given)
            assert rise(3, Guards(maximal_isr=False), **given) == rise(
                3, **(given | {"maximal_isr": isr})
            )
            all_eligible = {
                name: progress._replace(is_eligible=True)
                for name, progress in given["followers"].items()
            }
            assert rise(3, Guards(eligible_outsiders_only=False), **given) == rise(
                3, **(given | {"followers": all_eligible})
            )
