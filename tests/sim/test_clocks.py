"""Host clocks against a twin that counts every microsecond."""

from __future__ import annotations

import copy
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.names import Clock
from sim.clocks import WALL_START_US, HostClock

END_US = 60
FAR_US = 4 * END_US

Change = tuple[int, str, dict[str, Any]]


def naive_readings(first: dict[str, int], changes: list[Change]) -> list[tuple[int, int]]:
    """What both clocks show at every microsecond, by counting up to it one by one."""
    wall = Fraction(WALL_START_US + first["offset_us"])
    mono = Fraction(0)
    drifts = {name: first[name] for name in ("wall_ppm", "mono_ppm")}
    frozen: set[str] = set()
    shown = []
    for t_us in range(FAR_US):
        for _, kind, how in (change for change in changes if change[0] == t_us):
            if kind == "step":
                wall += how["by_us"]
            elif kind == "set_drift":
                drifts.update({name: value for name, value in how.items() if value is not None})
            elif kind == "freeze":
                frozen |= {"wall", "mono"} if how["also_mono"] else {"wall"}
            else:
                frozen.clear()
        shown.append((mono // 1, wall // 1))
        if "wall" not in frozen:
            wall += 1 + Fraction(drifts["wall_ppm"], 1_000_000)
        if "mono" not in frozen:
            mono += 1 + Fraction(drifts["mono_ppm"], 1_000_000)
    return shown


def clock_after(first: dict[str, int], changes: list[Change]) -> HostClock:
    clock = HostClock(**first)
    for t_us, kind, how in changes:
        getattr(clock, kind)(t_us, **how)
    return clock


def check_all_dues(
    clock: HostClock, shown: list[tuple[int, int]], since_us: int, *, end_us: int = FAR_US
) -> None:
    """Compare ``now`` and ``due`` with readings that are exhaustive from ``since_us`` on."""
    for t_us in range(since_us, end_us):
        assert clock.now(t_us)[:2] == shown[t_us]
    clocks: tuple[Clock, Clock] = ("mono", "wall")
    for which, name in enumerate(clocks):
        readings = [pair[which] for pair in shown[:end_us]]
        wanted = range(readings[since_us] - 2, readings[-1] + 1)
        for at_us in (*wanted[:40], *wanted[-40:]):
            for t_us in (since_us, since_us + 1, since_us + 7):
                first = next(t for t in range(t_us, end_us) if readings[t] >= at_us)
                assert clock.due(name, at_us, t_us) == first, (name, at_us, t_us)
        later = clock.due(name, readings[-1] + 1, since_us)
        assert later is None or later >= end_us
        if later is not None:
            assert clock.now(later)[which] > readings[-1] >= clock.now(later - 1)[which]


drift = st.sampled_from([0, 0, 200, -200, 50_000, -50_000, 333_333, -999_999, 1_000_000]) | (
    st.integers(-999_999, 1_000_000)
)
change: st.SearchStrategy[tuple[str, dict[str, Any]]] = st.one_of(
    st.tuples(st.just("step"), st.builds(dict, by_us=st.integers(-50, 50))),
    st.tuples(
        st.just("set_drift"),
        st.builds(dict, wall_ppm=st.none() | drift, mono_ppm=st.none() | drift),
    ),
    st.tuples(st.just("freeze"), st.builds(dict, also_mono=st.booleans())),
    st.tuples(st.just("thaw"), st.just({})),
)


@settings(max_examples=300, deadline=None)
@given(
    first=st.fixed_dictionaries(
        {"offset_us": st.integers(-20, 20), "wall_ppm": drift, "mono_ppm": drift}
    ),
    moments=st.lists(st.tuples(st.integers(0, END_US), change), max_size=8),
)
def test_clocks_agree_with_counting(
    first: dict[str, int], moments: list[tuple[int, tuple[str, dict[str, Any]]]]
) -> None:
    changes = [(at, kind, how) for at, (kind, how) in sorted(moments, key=lambda m: m[0])]
    shown = naive_readings(first, changes)
    # Monotonic through every change, and the twin agrees with the clock at each stage.
    assert all(one[0] <= other[0] for one, other in pairwise(shown))
    clock = HostClock(**first)
    for number, (t_us, kind, how) in enumerate(changes):
        since_us = changes[number - 1][0] if number else 0
        for at_us in range(since_us, t_us):
            assert clock.now(at_us)[:2] == shown[at_us]
        getattr(clock, kind)(t_us, **how)
        assert clock.generation == number + 1
    check_all_dues(clock, shown, changes[-1][0] if changes else 0)


@pytest.mark.parametrize("ppm", [-999_999, -500_000, -50_000, -200, 0, 200, 50_000, 1_000_000])
@pytest.mark.parametrize("kind", ["", "step", "freeze", "suspend", "thaw"])
def test_due_is_the_inverse_of_now_at_every_drift(ppm: int, kind: str) -> None:
    changes: list[Change] = [(3, "set_drift", {"wall_ppm": ppm, "mono_ppm": -ppm // 2})]
    if kind == "step":
        changes.append((11, "step", {"by_us": -7}))
    elif kind:
        changes.append((11, "freeze", {"also_mono": kind == "suspend"}))
    if kind == "thaw":
        changes.append((20, "thaw", {}))
    first = {"offset_us": 5, "wall_ppm": 0, "mono_ppm": 0}
    check_all_dues(clock_after(first, changes), naive_readings(first, changes), changes[-1][0])


def test_a_year_of_drift_loses_no_microsecond() -> None:
    year_us = 365 * 86_400 * 1_000_000
    clock = HostClock(wall_ppm=-137, mono_ppm=41)
    for part in range(1, 1_001):
        clock.step(part * year_us // 1_000 - 1, 0)
    assert clock.now(year_us)[:2] == (
        year_us * 1_000_041 // 1_000_000,
        WALL_START_US + year_us * 999_863 // 1_000_000,
    )
    at_us = clock.now(year_us).wall_us
    due = clock.due("wall", at_us, year_us - 1)
    assert due == year_us


def test_after_a_step_back_the_wall_clock_is_waited_for_again() -> None:
    clock = HostClock()
    assert clock.due("wall", WALL_START_US + 100, 0) == 100
    clock.step(50, -1_000)
    assert clock.due("wall", WALL_START_US + 100, 50) == 1_100
    assert clock.due("mono", 100, 50) == 100


def test_a_step_forward_makes_a_timer_due_at_once() -> None:
    clock = HostClock()
    clock.step(50, 1_000)
    assert clock.due("wall", WALL_START_US + 100, 50) == 50


def test_a_frozen_clock_can_be_stepped_and_keeps_its_drift_for_later() -> None:
    clock = HostClock()
    clock.freeze(10)
    clock.set_drift(10, wall_ppm=1_000_000)
    clock.step(12, 5)
    assert clock.now(20)[:2] == (20, WALL_START_US + 15)
    assert clock.due("wall", WALL_START_US + 16, 20) is None
    clock.thaw(20)
    assert clock.now(22)[:2] == (22, WALL_START_US + 19)


def test_a_freeze_of_the_wall_clock_wakes_no_suspended_machine() -> None:
    clock = HostClock()
    clock.freeze(10, also_mono=True)
    clock.freeze(11)
    assert clock.now(30)[:2] == (10, WALL_START_US + 10)


def test_a_copy_goes_its_own_way() -> None:
    clock = HostClock(offset_us=3, jitter_ppm=7)
    twin = copy.deepcopy(clock)
    clock.step(5, 100)
    assert twin.now(5)[:2] == (5, WALL_START_US + 8)
    assert (twin.generation, twin.jitter_ppm, clock.generation) == (0, 7, 1)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"wall_ppm": -1_000_000}, "wall_ppm is -1000000, allowed is -999999..1000000"),
        ({"mono_ppm": 1_000_001}, "mono_ppm is 1000001, allowed is -999999..1000000"),
        ({"jitter_ppm": 100_001}, "jitter_ppm is 100001, allowed is 0..100000"),
        ({"jitter_ppm": -1}, "jitter_ppm is -1, allowed is 0..100000"),
    ],
)
def test_bad_clocks_are_refused(how: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HostClock(**how)


def test_a_refused_drift_changes_nothing() -> None:
    clock = HostClock()
    with pytest.raises(ValueError, match="mono_ppm is -1000000"):
        clock.set_drift(5, wall_ppm=100, mono_ppm=-1_000_000)
    assert clock.generation == 0
    assert clock.now(1_000_000)[:2] == (1_000_000, WALL_START_US + 1_000_000)


def test_the_past_is_refused() -> None:
    clock = HostClock()
    clock.step(10, 1)
    message = "9 us is before the last change, at 10 us"
    with pytest.raises(ValueError, match=message):
        clock.now(9)
    with pytest.raises(ValueError, match=message):
        clock.due("mono", 5, 9)
    with pytest.raises(ValueError, match=message):
        clock.freeze(9)


def test_timers_follow_the_clock_that_is_chosen_for_them() -> None:
    for chosen, shown in (("wall", WALL_START_US + 7 + 5), ("mono", 7)):
        clock = HostClock(timer_clock=chosen)  # type: ignore[arg-type]
        clock.step(2, 5)
        assert clock.now(7).timer_us == shown
        assert clock.now(7).timer_clock == chosen
