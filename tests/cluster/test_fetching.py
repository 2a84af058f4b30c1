"""A leader's verdict on a fetch, a follower's on the answer (PROTOCOL A3, A4), all small inputs."""

from __future__ import annotations

from functools import partial
from itertools import combinations, product
from typing import Any

import pytest

from cluster.errors import ErrorCode
from cluster.fetching import FetchVerdict, check_epoch, check_position, is_expected
from cluster.guards import Guards
from cluster.messages_data import EpochEndOffset
from cluster.names import NO_EPOCH
from cluster.truncation import resolve
from tests.storage import naive_epochs

ON = Guards()
OUT_OF_RANGE = FetchVerdict(ErrorCode.OFFSET_OUT_OF_RANGE)
SERVED = FetchVerdict()
# Every epoch cache with epochs of 0 to 3 and starts of 0 to 3.
CACHES = [
    list(zip(epochs, starts, strict=True))
    for size in range(4)
    for epochs in combinations(range(4), size)
    for starts in combinations(range(4), size)
]


def test_a4_the_epoch_is_judged_before_leadership() -> None:
    for local, requested, is_leader in product(range(4), range(-1, 5), (True, False)):
        if requested not in (-1, local):
            old = requested < local
            expected = ErrorCode.FENCED_LEADER_EPOCH if old else ErrorCode.UNKNOWN_LEADER_EPOCH
        else:
            expected = ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert check_epoch(local, requested, is_leader=is_leader) is expected


def verdict(cache: naive_epochs.Entries, guards: Guards = ON, **changed: int) -> FetchVerdict:
    """Of a leader whose log is 0 to 4, for a consumer at 0, apart from what is given."""
    given = {"fetch_offset": 0, "last_fetched_epoch": NO_EPOCH, "log_start": 0, "leo": 4} | changed
    return check_position(
        **given,
        end_offset_for=lambda epoch: naive_epochs.end_offset_for(cache, epoch, given["leo"]),
        guards=guards,
    )


def test_a4_every_small_fetch_gets_the_verdict_of_the_naive_twin() -> None:
    for cache, last, offset, log_start in product(CACHES, range(-1, 5), range(6), range(4)):
        found = verdict(cache, fetch_offset=offset, last_fetched_epoch=last, log_start=log_start)
        epoch, end = naive_epochs.end_offset_for(cache, last, 4)
        is_inside = log_start <= offset <= 4
        if last == -1:
            expected = SERVED if is_inside else OUT_OF_RANGE
        elif (epoch, end) == (-1, -1) or offset < log_start:
            expected = OUT_OF_RANGE
        elif epoch < last or end < offset:
            expected = FetchVerdict(diverging_epoch=EpochEndOffset(epoch, end))
        else:
            expected = SERVED if is_inside else OUT_OF_RANGE
        assert found == expected, (cache, last, offset, log_start)


def test_a4_a_follower_with_an_epoch_that_the_leader_never_had_is_told_where_it_ends() -> None:
    cache = [(0, 0), (3, 2)]
    found = verdict(cache, last_fetched_epoch=1, fetch_offset=3)
    assert found == FetchVerdict(diverging_epoch=EpochEndOffset(0, 2))


def test_a4_an_epoch_above_all_of_the_leaders_is_out_of_range() -> None:
    assert verdict([(0, 0)], last_fetched_epoch=1, fetch_offset=1) == OUT_OF_RANGE
    assert verdict([], last_fetched_epoch=0, fetch_offset=0) == OUT_OF_RANGE


def test_a4_the_leaders_end_is_served_and_what_is_behind_is_out_of_range() -> None:
    assert verdict([(0, 0)], fetch_offset=4) == SERVED
    assert verdict([(0, 0)], fetch_offset=5) == OUT_OF_RANGE
    assert verdict([(0, 0)], fetch_offset=4, last_fetched_epoch=0) == SERVED
    assert verdict([(0, 0)], fetch_offset=5, last_fetched_epoch=0) == FetchVerdict(
        diverging_epoch=EpochEndOffset(0, 4)
    )


@pytest.mark.parametrize("on", [True, False])
def test_a4_without_log_start_before_divergence_a_follower_cuts_below_all_the_leader_has(
    on: bool,
) -> None:
    """Hazard B-19: the leader begins at 3; the follower has 0 of epoch 0 and 1 of epoch 1."""
    follower = [(0, 0), (1, 1)]
    found = verdict(
        [(0, 3), (2, 4)],
        Guards(log_start_before_divergence=on),
        fetch_offset=2,
        last_fetched_epoch=1,
        log_start=3,
    )
    leo = 2
    if found.diverging_epoch is not None:
        own_end = partial(naive_epochs.end_offset_for, follower, log_end=leo)
        leo = resolve(found.diverging_epoch, fetch_offset=leo, leo=leo, own_end=own_end).offset
    else:
        assert found == OUT_OF_RANGE
    assert (leo == 2) is on, "I13: offset 1 is cut, and the leader cannot give it back"


# The answer ------------------------------------------------------------------------------------


def expected_at(guards: Guards = ON, **changed: int) -> bool:
    given: dict[str, Any] = {
        "requested_offset": 5,
        "requested_epoch": 2,
        "fetch_offset": 5,
        "current_epoch": 2,
    }
    return is_expected(**(given | changed), guards=guards)


def test_a3_an_answer_counts_exactly_if_offset_and_epoch_are_those_of_now() -> None:
    small = range(4)
    for asked, epoch, now, current in product(small, range(-1, 3), small, range(-1, 3)):
        found = expected_at(
            requested_offset=asked, requested_epoch=epoch, fetch_offset=now, current_epoch=current
        )
        assert found is ((asked, epoch) == (now, current))


@pytest.mark.parametrize("on", [True, False])
def test_a3_without_fetch_offset_match_a_late_answer_lands_at_another_offset(on: bool) -> None:
    log = [0, 1, 2, 3, 4]
    if expected_at(Guards(fetch_offset_match=on), requested_offset=3):
        log += [3, 4]
    assert (log == sorted(set(log))) is on, "I10: offsets 3 and 4 are there twice"


@pytest.mark.parametrize("on", [True, False])
def test_a3_without_fetch_response_epoch_match_records_of_a_deposed_leader_are_appended(
    on: bool,
) -> None:
    """The new leader has epoch 2 at offset 5; the answer was fetched from that of epoch 1."""
    leader, log = [0, 0, 0, 0, 0, 2], [0, 0, 0, 0, 0]
    if expected_at(Guards(fetch_response_epoch_match=on), requested_epoch=1):
        log.append(1)
    assert (log == leader[: len(log)]) is on, "I3: offset 5 is of epoch 1 here and of 2 there"


def test_each_guard_of_an_answer_off_leaves_the_other_in_force() -> None:
    assert not expected_at(Guards(fetch_offset_match=False), requested_epoch=1)
    assert not expected_at(Guards(fetch_response_epoch_match=False), requested_offset=4)
