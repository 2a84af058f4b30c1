"""Faults of clocks in a live cluster: each timer goes by the clock that its machine named.

The leader judges by its wall clock who is in sync, the controller by its monotonic clock whose
session is over (FAULTS C.3).
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.effects import Arm
from sim import faults
from sim.cluster_config import ClockConfig
from sim.network_rules import Cut
from sim.plans import end
from sim.process import Process
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World
from tests.sim.worlds import SECOND_US, events, led_world, strike

MILLION = 1_000_000
LAG_US = 30 * SECOND_US
FETCHES = frozenset({"Fetch"})


def lagging_world(**config: Any) -> tuple[World, Cluster]:
    """The leader has a record that b2 cannot fetch yet."""
    world, cluster = led_world(**config)
    edges = (("b2", "b1"), ("b1", "b2"))
    strike(world, Cut(id="cut", edges=edges, only=FETCHES, in_flight="hold"))
    cluster.produce("orders", 1, acks=1).wait()
    world.run_for(SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    return world, cluster


def test_a_step_forward_empties_the_isr_of_who_is_behind() -> None:
    world, _ = lagging_world()
    begun = strike(world, faults.ClockStep(id="step", node="b1", by_us=2 * LAG_US))
    world.run_for(SECOND_US)
    assert world.view().isr("orders") == ("b1", "b3")
    # The timer was due at once.
    shrinks = [
        each for each in events(world, Kind.TIMER, node="b1") if each.args["key"] == "isr-shrink"
    ]
    assert shrinks[-1].t_us == begun.t_us
    assert shrinks[-1].args["clock"] == "wall"
    end(world, "cut")
    world.run_for(5 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_a_step_forward_leaves_who_has_everything() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    world.run_for(SECOND_US)
    strike(world, faults.ClockStep(id="step", node="b1", by_us=2 * LAG_US))
    world.run_for(5 * SECOND_US)
    assert not events(world, Kind.ISR_PROPOSED)
    assert world.view().isr("orders") == ("b1", "b2", "b3")


@pytest.mark.parametrize("node", ["b2", "b3", "c1"])
def test_a_step_of_another_wall_clock_moves_no_isr_and_fences_nobody(node: str) -> None:
    world, _ = lagging_world()
    fences = len(events(world, Kind.FENCE))
    strike(world, faults.ClockStep(id="step", node=node, by_us=100 * LAG_US))
    world.run_for(5 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    assert len(events(world, Kind.FENCE)) == fences


def test_a_step_back_keeps_a_lagging_member_for_so_much_longer() -> None:
    left = []
    for by_us in (0, -2 * LAG_US):
        world, _ = lagging_world()
        begun = strike(world, faults.ClockStep(id="step", node="b1", by_us=by_us))
        gone = world.run_until_true(
            lambda world=world: "b2" not in world.view().isr("orders"), 5 * LAG_US
        )
        assert gone
        left.append(world.now_us - begun.t_us)
    assert left[0] <= 1.5 * LAG_US
    assert left[1] >= 2 * LAG_US


def test_a_frozen_wall_clock_keeps_a_lagging_member_until_it_thaws() -> None:
    world, _ = lagging_world()
    strike(world, faults.ClockFreeze(id="ice", node="b1"), 5 * LAG_US)
    world.run_for(5 * LAG_US - 1)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    wall_us = world.host("b1").clock.now(world.now_us).wall_us
    world.run_for(SECOND_US)
    assert world.host("b1").clock.now(world.now_us).wall_us == wall_us + SECOND_US - 1
    world.run_for(2 * LAG_US)
    assert world.view().isr("orders") == ("b1", "b3")
    # Heartbeats go by the monotonic clock, which ran on.
    assert not [each for each in events(world, Kind.FENCE) if each.args.get("broker") == "b1"]


def test_a_broker_whose_monotonic_clock_stands_is_fenced_and_comes_back() -> None:
    world, _ = led_world()
    begun = strike(world, faults.ClockFreeze(id="ice", node="b2", also_mono=True), 20 * SECOND_US)
    world.run_for(20 * SECOND_US)
    late = [
        each for each in events(world, Kind.TIMER, node="b2") if each.t_us > begun.t_us + 10_000
    ]
    assert late == []
    assert world.view().isr("orders") == ("b1", "b3")
    world.run_for(20 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_two_freezes_overlap_and_each_clock_waits_for_its_last() -> None:
    world, _ = led_world()
    clock = world.host("b2").clock
    strike(world, faults.ClockFreeze(id="one", node="b2", also_mono=True), 2 * SECOND_US)
    strike(world, faults.ClockFreeze(id="two", node="b2"), 4 * SECOND_US)
    begun = clock.now(world.now_us)
    world.run_for(3 * SECOND_US)
    now = clock.now(world.now_us)
    assert (now.mono_us, now.wall_us) == (begun.mono_us + SECOND_US, begun.wall_us)
    world.run_for(2 * SECOND_US)
    assert clock.now(world.now_us).wall_us == begun.wall_us + SECOND_US


def test_timers_of_a_fast_clock_fire_early() -> None:
    beats = {}
    for mono_ppm in (0, MILLION, -500_000):
        world, _ = led_world()
        strike(world, faults.ClockDrift(id="f", node="b2", mono_ppm=mono_ppm), 40 * SECOND_US)
        count = world.trace.count
        world.run_for(40 * SECOND_US)
        found = [
            each
            for each in events(world, Kind.TIMER, node="b2")
            if each.n > count and each.args == {"key": "heartbeat", "clock": "mono"}
        ]
        beats[mono_ppm] = len(found)
    assert 19 <= beats[0] <= 21
    assert 2 * beats[0] - 2 <= beats[MILLION] <= 2 * beats[0] + 2
    assert beats[0] // 2 - 1 <= beats[-500_000] <= beats[0] // 2 + 1


def test_of_two_drifts_the_newest_counts_and_behind_them_the_configured_one() -> None:
    world, _ = led_world(clocks={"b2": ClockConfig(wall_ppm=1_000, mono_ppm=2_000)})
    clock = world.host("b2").clock

    def rates() -> tuple[int, int]:
        now, then = clock.now(world.now_us), clock.now(world.now_us + MILLION)
        return then.wall_us - now.wall_us - MILLION, then.mono_us - now.mono_us - MILLION

    found = [rates()]
    for name, wall_ppm in (("one", 50_000), ("two", -7)):
        strike(world, faults.ClockDrift(id=name, node="b2", wall_ppm=wall_ppm))
        found.append(rates())
    for name in ("one", "two"):
        end(world, name)
        found.append(rates())
    assert found == [(1_000, 2_000), (50_000, 0), (-7, 0), (-7, 0), (1_000, 2_000)]


def test_a_step_inside_a_freeze_stays() -> None:
    world, _ = led_world()
    clock = world.host("b2").clock
    strike(world, faults.ClockFreeze(id="ice", node="b2"), 2 * SECOND_US)
    before = clock.now(world.now_us).wall_us
    strike(world, faults.ClockStep(id="step", node="b2", by_us=77), 1)
    world.run_for(3 * SECOND_US)
    assert clock.now(world.now_us).wall_us == before + 77 + SECOND_US


def test_jitter_makes_timers_late_by_a_tenth_at_most() -> None:
    world, _ = led_world(clocks={"b2": ClockConfig(jitter_ppm=100_000)})
    world.run_for(60 * SECOND_US)
    late: dict[str, list[int]] = {}
    by_number = {each.n: each for each in world.trace.events()}
    for each in events(world, Kind.TIMER):
        if each.args["key"] == "heartbeat" and each.node != "admin":
            waited = each.t_us - by_number[each.cause[0]].t_us
            late.setdefault(each.node, []).append(waited - 2 * SECOND_US)
    assert set(late["b1"]) == {0}
    assert min(late["b2"]) >= 0
    assert max(late["b2"]) <= SECOND_US // 5
    assert len(set(late["b2"])) > 10


def test_a_clock_that_is_changed_draws_no_jitter_of_other_timers() -> None:
    beats = []
    for by_us in (None, 5):
        world, _ = led_world(clocks={"b2": ClockConfig(jitter_ppm=50_000)}, cpu_us=(10, 10))
        if by_us is not None:
            strike(world, faults.ClockStep(id="step", node="b2", by_us=by_us))
        world.run_for(20 * SECOND_US)
        timers = events(world, Kind.TIMER, node="b2")
        beats.append([each.t_us for each in timers if each.args["key"] == "heartbeat"])
    assert beats[0] == beats[1]


# Which clock ----------------------------------------------------------------------------------

ON_WALL = {
    "alter-partition",
    "delivery",
    "drain",
    "fetch-backoff",
    "fetch-timeout",
    "init-producer-id",
    "isr-shrink",
    "metadata",
    "metadata-timeout",
    "request",
    "retry",
    "wake",
}
ON_MONO = {"fetch", "heartbeat", "heartbeat-timeout", "produce", "register", "session"}


@pytest.mark.parametrize("timer_clock", ["wall", "mono"])
def test_each_timer_names_the_clock_that_kafka_has_it_on(
    timer_clock: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAULTS C.3; ``mono`` is the switch to the safe choice, for all of them."""
    armed: dict[str, set[str]] = {}
    arm = Process._arm

    def note(process: Process, effect: Arm, number: int) -> None:
        armed.setdefault(str(effect.key[0]), set()).add(effect.clock)
        arm(process, effect, number)

    monkeypatch.setattr(Process, "_arm", note)
    world, cluster = lagging_world(timer_clock=timer_clock)
    world.run_for(2 * LAG_US)
    assert world.view().isr("orders") == ("b1", "b3")
    end(world, "cut")
    world.crash("c1")
    cluster.consume("orders", 20)
    cluster.produce("orders", 3, client="p2")
    world.run_for(SECOND_US)
    world.start("c1")
    world.run_for(SECOND_US)
    cluster.produce("orders", 3)
    world.run_for(5)
    world.crash("b1")
    world.run_for(60 * SECOND_US)
    for name in ON_WALL:
        assert armed.pop(name) == {timer_clock}, name
    for name in ON_MONO:
        assert armed.pop(name) == {"mono"}, name
    assert {clock for each in armed.values() for clock in each} == {"mono"}, armed


@pytest.mark.parametrize(("timer_clock", "is_struck"), [("wall", True), ("mono", False)])
def test_a_step_forward_ends_what_waits_by_the_wall_clock(
    timer_clock: str, *, is_struck: bool
) -> None:
    """A fetch that the leader holds is given up, and asked anew; nothing is lost by it."""
    world, cluster = led_world(timer_clock=timer_clock)
    cluster.produce("orders", 3).wait()
    world.run_for(SECOND_US)
    count = world.trace.count
    begun = strike(world, faults.ClockStep(id="step", node="b2", by_us=3_600 * SECOND_US))
    world.run_for(SECOND_US)
    due = [
        each
        for each in events(world, Kind.TIMER, node="b2")
        if each.n > count and each.args["key"].startswith("fetch-timeout")
    ]
    assert [(each.t_us, each.args["clock"]) for each in due] == (
        [(begun.t_us, "wall")] if is_struck else []
    )
    cluster.produce("orders", 2).wait()
    world.run_for(5 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    assert len(world.view().records("b2", "orders")) == 5


def test_a_step_back_lets_a_fetch_that_nobody_answers_wait_until_the_clock_has_caught_up() -> None:
    world, _ = led_world()
    world.run_for(SECOND_US)
    edges = (("b1", "b2"),)
    strike(world, Cut(id="cut", edges=edges, in_flight="drop"))
    strike(world, faults.ClockStep(id="step", node="b2", by_us=-600 * SECOND_US))
    count = world.trace.count
    world.run_for(300 * SECOND_US)
    assert not [
        each
        for each in events(world, Kind.TIMER, node="b2")
        if each.n > count and each.args["key"].startswith("fetch-timeout")
    ]
