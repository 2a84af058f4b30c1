"""Keyed draws: pure, independent of order, alike on every Python, no two argument lists alike."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.draws import Draws
from tests.conftest import ROOT

ARGUMENTS = st.tuples(
    st.text(max_size=4),
    st.lists(st.integers(-12, 12) | st.sampled_from(["", "1", "i1;", "s1:1", "a", "12"])),
)

# Seed, arguments, 64 bits. A change here changes every recorded run.
GOLDEN: tuple[tuple[int, tuple[str, tuple[int | str, ...]], int], ...] = (
    (0, ("", ()), 10056902056553628497),
    (0, ("a", (1, "2")), 1490433248259674815),
    (1, ("a", (1, "2")), 9625016136825925022),
    (2**64 - 1, ("fault", ("b1", -3, "é")), 538178712087581922),
    (7, ("crash-mode", ("disk", 0)), 1190641098638893294),
)
NOISE = (
    "8453bb84679a930bb9cf83ee44219db7594a796c1ffd330fd291a48f3903f8e2fb0e86"
    "85f3f10c2725c905b7104e9e3a996843cbf0107f20eef20a16e2b5a83291859e36c8c5"
)


def bits(draws: Draws, arguments: tuple[str, tuple[int | str, ...]]) -> int:
    return draws.bits(arguments[0], *arguments[1])


@pytest.mark.parametrize(("seed", "arguments", "expected"), GOLDEN)
def test_bits_are_the_recorded_ones(
    seed: int, arguments: tuple[str, tuple[int | str, ...]], expected: int
) -> None:
    assert bits(Draws(seed), arguments) == expected


def test_noise_is_the_recorded_one() -> None:
    assert Draws(7).noise(70, "noise", "b1", 3).hex() == NOISE


def test_order_and_number_of_draws_change_nothing() -> None:
    asked = [("a", ()), ("a", (1,)), ("b", (1, "x"))]
    expected = {key: bits(Draws(3), key) for key in asked}
    for order in permutations(asked):
        draws = Draws(3)
        assert {key: bits(draws, key) for key in order} == expected
        assert {key: bits(draws, key) for key in order} == expected, "a second time"


def test_arguments_that_read_alike_draw_apart() -> None:
    alike: list[tuple[str, tuple[int | str, ...]]] = [
        ("a", (1, "2")),
        ("a", ("1", 2)),
        ("a", (1, 2)),
        ("a", ("1", "2")),
        ("a", (12,)),
        ("a", ("12",)),
        ("a", ("i1;i2;",)),
        ("a1", ("2",)),
        ("ab", ("c",)),
        ("a", ("bc",)),
        ("abc", ()),
        ("a", ("b", "c")),
        ("a", ("b", "c", "")),
        ("a", (-1, 2)),
        ("a", ("é",)),
        ("a", ("e\u0301",)),
    ]
    for one, two in combinations(alike, 2):
        assert bits(Draws(1), one) != bits(Draws(1), two), (one, two)


@given(ARGUMENTS, ARGUMENTS)
def test_two_argument_lists_draw_alike_only_if_equal(
    one: tuple[str, list[int | str]], two: tuple[str, list[int | str]]
) -> None:
    is_same = bits(Draws(5), (one[0], tuple(one[1]))) == bits(Draws(5), (two[0], tuple(two[1])))
    assert is_same == (one == two)


def test_seeds_draw_apart() -> None:
    seeds = [0, 1, 2, 255, 256, 2**63, 2**64 - 1]
    assert len({Draws(seed).bits("a", 1) for seed in seeds}) == len(seeds)


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_outside_its_range_is_refused(seed: int) -> None:
    with pytest.raises(ValueError, match=r"allowed is 0..2\^64-1"):
        Draws(seed)


@pytest.mark.parametrize("limit", [0, -1, 2**32 + 1])
def test_limit_outside_its_range_is_refused(limit: int) -> None:
    with pytest.raises(ValueError, match=r"allowed is 1..2\^32"):
        Draws(1).below(limit, "a")


@given(st.integers(1, 1 << 32), st.integers(0, 1 << 63))
def test_below_stays_below(limit: int, ordinal: int) -> None:
    assert 0 <= Draws(1).below(limit, "below", ordinal) < limit


def test_every_number_below_a_limit_comes_about_equally_often() -> None:
    counts = [0] * 7
    for ordinal in range(7_000):
        counts[Draws(9).below(7, "even", ordinal)] += 1
    assert all(850 < count < 1_150 for count in counts), counts


def test_chance_has_the_share_it_says() -> None:
    draws = Draws(2)
    assert not any(draws.chance(0, "never", n) for n in range(1_000))
    assert all(draws.chance(1_000_000, "ever", n) for n in range(1_000))
    assert 200 < sum(draws.chance(250_000, "quarter", n) for n in range(1_000)) < 300


def test_weights_are_kept_and_zero_never_comes() -> None:
    draws = Draws(4)
    counts = [0] * 4
    for ordinal in range(4_000):
        counts[draws.weighted([1, 0, 2, 1], "weights", ordinal)] += 1
    assert counts[1] == 0
    assert 900 < counts[0] < 1_100
    assert 1_900 < counts[2] < 2_100
    with pytest.raises(ValueError, match="limit is 0"):
        draws.weighted([0, 0], "weights")


def test_noise_has_its_size_and_a_longer_one_begins_alike() -> None:
    draws = Draws(1)
    longest = draws.noise(200, "noise", 1)
    for size in (0, 1, 63, 64, 65, 200):
        assert draws.noise(size, "noise", 1) == longest[:size]
    assert draws.noise(64, "noise", 2) != longest[:64]


def test_other_processes_and_hash_seeds_draw_the_same() -> None:
    program = (
        "from sim.draws import Draws; d = Draws(11);"
        "print([d.bits('a', n, str(n)) for n in range(50)], d.noise(99, 'b').hex())"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            cwd=ROOT,
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "4711")
    }
    assert len(seen) == 1
