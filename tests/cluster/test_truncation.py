"""Where a follower cuts its log (PROTOCOL A10 to A12), over all small logs and by the catalogue.

A log here is the epoch of each of its records, ``(1, 1, 3)``. Two logs are possible side by side if
they agree below every offset at which they have the same epoch (I3), and an epoch of which both
have records begins at the same offset in both: its one leader wrote it there.
"""

from __future__ import annotations

from functools import partial
from itertools import combinations, combinations_with_replacement, product

import pytest

from cluster.errors import ErrorCode
from cluster.fetching import check_position
from cluster.guards import Guards
from cluster.messages_data import EpochEndOffset
from cluster.truncation import OutOfRange, Truncation, TruncationMode, out_of_range, resolve
from tests.storage import naive_epochs

Log = tuple[int, ...]
UNDEFINED = EpochEndOffset(-1, -1)
LOGS: list[Log] = [
    log for size in range(5) for log in combinations_with_replacement(range(4), size)
]
# Every epoch cache with epochs of 0 to 3 and starts of 0 to 3.
CACHES = [
    list(zip(epochs, starts, strict=True))
    for size in range(4)
    for epochs in combinations(range(4), size)
    for starts in combinations(range(4), size)
]
# Leader, follower, and where the follower has to cut: the divergence catalogue of C.2.
CATALOGUE: dict[str, tuple[Log, Log, int]] = {
    "A behind in the same epoch": ((1, 1, 1), (1, 1), 2),
    "B behind, the leader has a newer epoch": ((1, 1, 2), (1, 1), 2),
    "C longer in the same epoch": ((1, 1), (1, 1, 1), 2),
    "D longer with a newer epoch": ((1, 1), (1, 1, 2), 2),
    "E fork, both have newer epochs": ((1, 1, 3), (1, 1, 2), 2),
    "F fork, the leader has more of the old epoch": ((1, 1, 3), (1, 2, 2), 1),
    "G no common epoch": ((3, 3), (2, 2), 0),
}


def entries(log: Log) -> naive_epochs.Entries:
    """The epochs of a log and where each begins."""
    return [(epoch, log.index(epoch)) for epoch in sorted(set(log))]


def common_prefix(one: Log, two: Log) -> int:
    agree = [left == right for left, right in zip(one, two, strict=False)]
    return [*agree, False].index(False)


def can_be_side_by_side(one: Log, two: Log) -> bool:
    prefix = common_prefix(one, two)
    parted = zip(one[prefix:], two[prefix:], strict=False)
    shared = set(one) & set(two)
    return all(left != right for left, right in parted) and all(
        one.index(epoch) == two.index(epoch) for epoch in shared
    )


def run(
    leader: Log, follower: Log, mode: TruncationMode, *, high_watermark: int = 0
) -> tuple[Log, list[Truncation]]:
    """The follower's log after all rounds, and what each of them decided.

    The leader leads epoch 9, without records of it. By FETCH it answers only where the follower
    diverges; by the others it answers the question for an epoch's end.
    """
    known = naive_epochs.assign(entries(leader), 9, len(leader))
    rounds: list[Truncation] = []
    while True:
        leo, own = len(follower), entries(follower)
        asked = own[-1][0] if own else -1
        answer = EpochEndOffset(*naive_epochs.end_offset_for(known, asked, len(leader)))
        if mode is TruncationMode.FETCH:
            verdict = check_position(
                fetch_offset=leo,
                last_fetched_epoch=asked,
                log_start=0,
                leo=len(leader),
                end_offset_for=lambda epoch: naive_epochs.end_offset_for(known, epoch, len(leader)),
                guards=Guards(),
            )
            if verdict.diverging_epoch is None:
                return follower, rounds
            answer = verdict.diverging_epoch
        cut = resolve(
            answer,
            fetch_offset=leo if mode is TruncationMode.FETCH else high_watermark,
            leo=leo,
            own_end=partial(naive_epochs.end_offset_for, own, log_end=leo),
            mode=mode,
        )
        follower = follower[: cut.offset]
        rounds.append(cut)
        assert len(rounds) <= 10, "it goes on for ever"
        if mode is not TruncationMode.FETCH and cut.is_complete:
            return follower, rounds


# The table -------------------------------------------------------------------------------------


def naive(leader: EpochEndOffset, fetch_offset: int, leo: int, own: tuple[int, int]) -> Truncation:
    """The table of A10, the first row that matches."""
    (epoch_l, end_l), (epoch_f, end_f) = leader, own
    rows = [
        (end_l == -1, fetch_offset, True),
        (epoch_l == -1, min(end_l, leo), True),
        (end_f == -1, min(end_l, leo), True),
        (epoch_f != epoch_l, min(end_f, leo), False),
        (True, min(end_f, end_l, leo), True),
    ]
    return next(Truncation(offset, done) for matches, offset, done in rows if matches)


@pytest.mark.parametrize("mode", [TruncationMode.FETCH, TruncationMode.KIP_279])
def test_a10_every_small_answer_is_made_of_what_the_table_says(mode: TruncationMode) -> None:
    answers = [EpochEndOffset(*pair) for pair in product(range(-1, 5), range(-1, 5))]
    # The log may end before an entry's start: a crash can leave such entries (A8).
    for cache, leader, leo in product(CACHES, answers, range(5)):
        own_end = partial(naive_epochs.end_offset_for, cache, log_end=leo)
        for fetch_offset in range(leo + 1):
            found = resolve(leader, fetch_offset=fetch_offset, leo=leo, own_end=own_end, mode=mode)
            assert found == naive(leader, fetch_offset, leo, own_end(leader.leader_epoch))


def test_a10_every_row_of_the_table() -> None:
    own = partial(naive_epochs.end_offset_for, [(1, 0), (2, 3)], log_end=5)
    at = partial(resolve, fetch_offset=4, leo=5, own_end=own)
    assert at(UNDEFINED) == (4, True), "the leader knows nothing: to where it fetches from"
    assert at(EpochEndOffset(7, -1)) == (4, True)
    assert at(EpochEndOffset(-1, 2)) == (2, True), "a very old leader names no epoch"
    assert at(EpochEndOffset(-1, 9)) == (5, True)
    assert at(EpochEndOffset(3, 2)) == (2, True), "own epochs say nothing of 3"
    assert at(EpochEndOffset(3, 9)) == (5, True)
    assert at(EpochEndOffset(2, 9)) == (5, True), "the same epoch: the shorter end"
    assert at(EpochEndOffset(2, 4)) == (4, True)
    assert at(EpochEndOffset(1, 2)) == (2, True)
    assert at(EpochEndOffset(1, 9)) == (3, True)
    assert at(EpochEndOffset(0, 9)) == (0, True), "older than all own: the first own start"
    gap = partial(naive_epochs.end_offset_for, [(1, 0), (3, 2)], log_end=5)
    assert at(EpochEndOffset(2, 4), own_end=gap) == (2, False), "own floor is another epoch"


def test_a10_a_cut_is_never_behind_the_log_end() -> None:
    nothing = partial(naive_epochs.end_offset_for, [], log_end=0)
    assert resolve(UNDEFINED, fetch_offset=3, leo=2, own_end=nothing) == (2, True)


# All small pairs of logs -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", [TruncationMode.FETCH, TruncationMode.KIP_279])
def test_a10_every_small_pair_of_logs_ends_with_the_common_prefix(mode: TruncationMode) -> None:
    pairs = 0
    for leader, follower in product(LOGS, LOGS):
        if not can_be_side_by_side(leader, follower):
            continue
        pairs += 1
        prefix = common_prefix(leader, follower)
        found, rounds = run(leader, follower, mode, high_watermark=prefix)
        assert found == follower[:prefix], (leader, follower, rounds)
        log, latest = follower, 9
        for cut in rounds:
            if not cut.is_complete:
                assert cut.offset < len(log)
            log = log[: cut.offset]
            assert max(log, default=-1) <= latest
            if not cut.is_complete:
                assert max(log, default=-1) < max(follower), "each round lowers the newest epoch"
            latest = max(log, default=-1)
        assert [cut.is_complete for cut in rounds[:-1]] == [False] * len(rounds[:-1])
    assert pairs > 1_000


@pytest.mark.parametrize("mode", [TruncationMode.FETCH, TruncationMode.KIP_279])
@pytest.mark.parametrize("case", CATALOGUE)
def test_c2_the_divergence_catalogue_ends_where_it_says(case: str, mode: TruncationMode) -> None:
    leader, follower, expected = CATALOGUE[case]
    assert can_be_side_by_side(leader, follower)
    found, rounds = run(leader, follower, mode)
    assert found == follower[:expected] == leader[:expected]
    if mode is TruncationMode.FETCH:
        assert bool(rounds) is (case[0] not in "AB"), "who is merely behind cuts nothing"


@pytest.mark.parametrize("mode", [TruncationMode.FETCH, TruncationMode.KIP_279])
def test_a10_a_follower_with_epochs_that_the_leader_lacks_goes_on_until_both_name_the_same(
    mode: TruncationMode,
) -> None:
    leader, follower = (0, 2, 4), (0, 1, 3, 3, 5)
    found, rounds = run(leader, follower, mode)
    assert found == (0,)
    # Leader: below 5 it has 4 to 3; own floor of 4 is 3 to 4. Below 3 it has 2 to 2; own 1 to 2.
    assert rounds == [(4, False), (2, False), (1, True)]


def test_a10_a_leader_without_an_entry_for_its_epoch_sends_a_follower_to_its_hw() -> None:
    """Hazard B-06: what ``assign_epoch_on_promotion`` is for."""
    answer = EpochEndOffset(*naive_epochs.end_offset_for([(0, 0)], 1, 3))
    own = partial(naive_epochs.end_offset_for, [(0, 0), (1, 3)], log_end=5)
    assert answer == UNDEFINED
    assert resolve(answer, fetch_offset=1, leo=5, own_end=own) == (1, True)


# A leader whose log does not begin at 0 -------------------------------------------------------


def test_a10_a12_every_follower_of_a_trimmed_leader_ends_with_what_both_retain_alike() -> None:
    """A pair of logs, and where the leader's begins; the follower fetches until it is served."""
    wiped = 0
    for leader, follower in product(LOGS, LOGS):
        if not can_be_side_by_side(leader, follower):
            continue
        for leader_start in range(len(leader) + 1):
            start, log = fetch_until_served(leader, leader_start, follower)
            wiped += start > 0
            assert leader_start <= start + len(log) <= len(leader)
            for offset in range(max(start, leader_start), start + len(log)):
                assert log[offset - start] == leader[offset]
            # Nothing that the leader has too was thrown away.
            both = common_prefix(leader, follower)
            if both >= leader_start:
                assert (start, log) == (0, follower[:both])
    assert wiped > 100


def fetch_until_served(leader: Log, leader_start: int, follower: Log) -> tuple[int, Log]:
    """Where the follower's log begins in the end, and its records."""
    end, start = len(leader), 0
    known = naive_epochs.assign(entries(leader), 9, end)
    known = naive_epochs.truncate_from_start(known, leader_start)
    for _ in range(10):
        leo = start + len(follower)
        own = [(epoch, at + start) for epoch, at in entries(follower)]
        verdict = check_position(
            fetch_offset=leo,
            last_fetched_epoch=own[-1][0] if own else -1,
            log_start=leader_start,
            leo=end,
            end_offset_for=partial(naive_epochs.end_offset_for, known, log_end=end),
            guards=Guards(),
        )
        if verdict.diverging_epoch is not None:
            own_end = partial(naive_epochs.end_offset_for, own, log_end=leo)
            cut = resolve(verdict.diverging_epoch, fetch_offset=leo, leo=leo, own_end=own_end)
            follower = follower[: cut.offset - start]
        elif verdict.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            found = out_of_range(leo, end, leader_start, full_truncation_only_below_start=True)
            if found.start_at is not None:
                start, follower = found.start_at, ()
            elif found.truncate_to is not None:
                follower = follower[: found.truncate_to - start]
            assert found.fetch_offset == start + len(follower)
        else:
            return start, follower
    raise AssertionError("it goes on for ever")


# Older modes -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "agrees"), [(TruncationMode.KIP_279, True), (TruncationMode.KIP_101, False)]
)
def test_a10_without_the_loop_records_of_a_fast_double_fail_over_stay(
    mode: TruncationMode, agrees: bool
) -> None:
    """Hazard B-03: the leader answers with an epoch that the follower has, and ends earlier."""
    leader = (0, 0, 0, 0, 0, 0, 0, 2)
    follower = (0, 0, 0, 0, 0, 1, 1, 1)
    found, rounds = run(leader, follower, mode)
    assert (found == leader[: len(found)]) is agrees, "I3: offsets 5 and 6 differ"
    assert len(found) == (5 if agrees else 7)
    assert rounds == [(5, True) if agrees else (7, True)]


def test_a10_kip_101_asks_once_and_takes_the_end_as_it_is() -> None:
    own = partial(naive_epochs.end_offset_for, [(1, 0), (3, 2)], log_end=5)
    at = partial(resolve, fetch_offset=1, leo=5, own_end=own, mode=TruncationMode.KIP_101)
    assert at(UNDEFINED) == (1, True)
    assert at(EpochEndOffset(2, 4)) == (4, True)
    assert at(EpochEndOffset(2, 9)) == (5, True)


def test_a11_a_cut_to_the_own_high_watermark_discards_what_was_committed() -> None:
    """Hazard B-01: both have 0 and 1, both are committed; the follower only heard of 0."""
    leader = follower = (0, 0)
    kept, _ = run(leader, follower, TruncationMode.KIP_279, high_watermark=1)
    assert kept == follower
    answer_of_nobody = resolve(UNDEFINED, fetch_offset=1, leo=2, own_end=lambda epoch: (-1, -1))
    assert answer_of_nobody == (1, True), "I13: below what the leader counts as replicated"


# Out of range ----------------------------------------------------------------------------------


def test_a12_every_small_input_does_what_the_sentences_say() -> None:
    for leo, end in product(range(5), range(5)):
        for start in range(end + 1):
            found = out_of_range(leo, end, start, full_truncation_only_below_start=True)
            if end < leo:
                expected = OutOfRange(truncate_to=end, start_at=None, fetch_offset=end)
            elif start > leo:
                expected = OutOfRange(truncate_to=None, start_at=start, fetch_offset=start)
            else:
                expected = OutOfRange(truncate_to=None, start_at=None, fetch_offset=leo)
                assert found.fetch_offset == max(start, leo)
            assert found == expected


@pytest.mark.parametrize("on", [True, False])
def test_a12_without_full_truncation_only_below_start_a_race_wipes_a_whole_log(on: bool) -> None:
    """Hazard B-24: by the time of the second question the leader has 101, and the follower 100."""
    found = out_of_range(100, 101, 0, full_truncation_only_below_start=on)
    kept = 100 if found.start_at is None else 0
    assert (kept == 100) is on, "I13: the log is dropped though the leader has all of it"


def test_a12_without_the_guard_a_shorter_leader_is_still_followed_down() -> None:
    for on in (True, False):
        found = out_of_range(100, 90, 0, full_truncation_only_below_start=on)
        assert found == OutOfRange(90, None, 90)
