"""Latencies are integers, drawn by link and ordinal, and distributed as documented."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.draws import Draws
from sim.latency import Latency, NetworkConfig, exponential_us

TOP = (1 << 32) - 1

# Mean, uniform draw, microseconds. A change here changes every recorded run.
GOLDEN = ((1_000, 0, 10_000), (1_000, TOP, 0), (1_000, 1 << 31, 693), (50, 123_456_789, 177))


def latency(seed: int = 1, src: str = "b1", dst: str = "b2", **config: Any) -> Latency:
    values = NetworkConfig(**config)
    return Latency.of_link(values, Draws(seed), src, dst, is_zero=False)


@pytest.mark.parametrize(("mean_us", "uniform", "expected"), GOLDEN)
def test_exponential_is_the_recorded_one(mean_us: int, uniform: int, expected: int) -> None:
    assert exponential_us(mean_us, uniform) == expected


@given(st.integers(0, TOP), st.integers(0, 10_000_000))
def test_exponential_is_a_logarithm(uniform: int, mean_us: int) -> None:
    exact = min(10 * mean_us, -mean_us * math.log((uniform + 1) / (1 << 32)))
    assert abs(exponential_us(mean_us, uniform) - exact) <= mean_us / 10_000 + 1


def test_jitter_has_its_mean() -> None:
    drawn = latency(base_min_us=0, base_max_us=0, jitter_mean_us=10_000)
    mean = sum(drawn.of_frame(n) for n in range(20_000)) / 20_000
    assert 9_700 < mean < 10_300


def test_the_constant_is_of_the_directed_link() -> None:
    bases = {(a, b): latency(src=a, dst=b).base_us for a in "pqrstu" for b in "pqrstu"}
    assert all(200 <= base <= 600 for base in bases.values())
    assert len(set(bases.values())) > 20
    assert bases["p", "q"] != bases["q", "p"]
    assert latency(base_min_us=7, base_max_us=7).base_us == 7
    same = {"base_min_us": 7, "base_max_us": 7, "jitter_mean_us": 10_000}
    one, other = latency(**same), latency(src="b3", **same)
    assert [one.of_frame(n) for n in range(3)] != [other.of_frame(n) for n in range(3)]


def test_the_tail_is_rare_and_bounded() -> None:
    drawn = latency(jitter_mean_us=0, tail_ppm=10_000, tail_max_us=1_000_000)
    late = [us for n in range(20_000) if (us := drawn.of_frame(n) - drawn.base_us)]
    assert 140 < len(late) < 260
    assert max(late) <= 1_000_000
    assert max(late) > 900_000
    always = latency(jitter_mean_us=0, tail_ppm=1_000_000, tail_max_us=3)
    assert {always.of_frame(n) - always.base_us for n in range(100)} == {0, 1, 2, 3}


def test_frames_ends_and_copies_draw_apart() -> None:
    drawn = latency(jitter_mean_us=100_000)
    kinds = (drawn.of_frame, drawn.of_end, drawn.of_copy)
    assert len({kind(n) for kind in kinds for n in range(20)}) == 60
    assert [drawn.of_frame(3), drawn.of_frame(3)] == [drawn.of_frame(3)] * 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "tcp"}, "mode is 'tcp', allowed: stream, datagram"),
        ({"clients": "none"}, "clients is 'none', allowed: same, immune, zero-latency"),
        ({"base_min_us": 601}, "base_min_us is 601, allowed is 0..600"),
        ({"jitter_mean_us": -1}, "jitter_mean_us is -1, allowed is 0..2147483648"),
        ({"tail_ppm": 1_000_001}, "tail_ppm is 1000001, allowed is 0..1000000"),
        ({"tail_max_us": -1}, "tail_max_us is -1"),
    ],
)
def test_config_refuses_values_that_cannot_be(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NetworkConfig(**values)
