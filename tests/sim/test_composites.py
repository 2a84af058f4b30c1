"""Rules that come and go by turns: when they do, whom they strike, and worlds that are copied."""

from __future__ import annotations

from typing import Any

import pytest

from sim import faults
from sim.plans import Planned, end, schedule
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.worlds import SECOND_US, events, led_world, of_fault, strike

BOTH = (("b1", "b2"), ("b2", "b1"))
ALL = ("b1", "b2", "b3")


def turns(world: World) -> list[tuple[int, str, bool]]:
    """When which rule began or ended."""
    found = [each for each in events(world, Kind.NOTE, node="world") if "rule" in each.args]
    return [(each.t_us, each.args["rule"], each.args["is_on"]) for each in found]


def test_a_flap_cuts_for_its_duty_in_each_period() -> None:
    world, _ = led_world()
    flap = faults.Flap(id="f", edges=BOTH, period_us=400_000, duty_ppm=250_000)
    assert flap.cut_us == 100_000
    begun = strike(world, flap, SECOND_US)
    world.run_for(2 * SECOND_US)
    began_us = begun.t_us
    times = [0, 100_000, 400_000, 500_000, 800_000, 900_000]
    assert turns(world) == [(began_us + at, "f", not place % 2) for place, at in enumerate(times)]
    assert begun.args["target"] == [list(each) for each in BOTH]
    assert begun.args["args"]["duty_ppm"] == 250_000
    assert all(begun.n in each.cause for each in of_fault(world, "f") if each.kind is not Kind.HEAL)
    assert world.network.active_rules() == ()


def test_an_end_while_links_are_cut_makes_them_whole() -> None:
    world, _ = led_world()
    strike(world, faults.Flap(id="f", edges=BOTH, period_us=10 * SECOND_US, in_flight="hold"))
    world.run_for(2 * SECOND_US)
    assert world.network.active_rules() == ("f",)
    held = len(events(world, Kind.HOLD))
    assert held
    end(world, "f")
    assert world.network.active_rules() == ()
    world.run_for(20 * SECOND_US)
    assert len(events(world, Kind.HOLD)) == held
    assert len(turns(world)) == 1


def test_a_fault_that_begins_anew_is_not_turned_by_what_was_left_of_the_first() -> None:
    world, _ = led_world()
    flap = faults.Flap(id="f", edges=BOTH, period_us=SECOND_US)
    strike(world, flap)
    world.run_for(100_000)
    end(world, "f")
    strike_us = world.now_us
    faults_before = len(turns(world))
    world.faults.pop("f")
    strike(world, flap)
    world.run_for(SECOND_US)
    later = [at - strike_us for at, _, _ in turns(world)[faults_before:]]
    assert later == [0, 500_000, 1_000_000]


@pytest.mark.parametrize("seed", range(6))
def test_a_swizzle_clogs_the_larger_half_and_releases_it_in_another_order(seed: int) -> None:
    world, _ = led_world(seed)
    begun = strike(world, faults.Swizzle(id="f", nodes=(*ALL, "c1"), period_us=50_000))
    world.run_for(SECOND_US)
    found = turns(world)
    assert [at - begun.t_us for at, _, _ in found] == [0, 50_000, 100_000, 150_000]
    assert [is_on for *_, is_on in found] == [True, True, False, False]
    order = [rule for _, rule, _ in found]
    assert order[:2] == order[:1:-1]
    assert len(set(order)) == 2
    assert {each.args["fault"] for each in events(world, Kind.HOLD)} <= set(order)
    assert all(begun.n in each.cause for each in events(world, Kind.HOLD))


def test_who_is_swizzled_follows_the_seed_and_the_id() -> None:
    found = set()
    for seed in range(4):
        for name in ("f", "g"):
            world, _ = led_world(seed)
            swizzle = faults.Swizzle(id=name, nodes=ALL, period_us=50_000)
            strike(world, swizzle)
            found.add(tuple(swizzle.orders(world)[0]))
    assert len(found) > 3


def test_an_end_releases_all_that_a_swizzle_clogged() -> None:
    world, _ = led_world()
    strike(world, faults.Swizzle(id="f", nodes=ALL, period_us=SECOND_US))
    world.run_for(1_500_000)
    assert len(world.network.active_rules()) == 2
    end(world, "f")
    assert world.network.active_rules() == ()
    world.run_for(5 * SECOND_US)
    assert len(turns(world)) == 2


BAD: list[tuple[type[Any], dict[str, Any], str]] = [
    (faults.Flap, {"edges": BOTH, "period_us": 1}, "period_us is 1, allowed is 2 or more"),
    (faults.Flap, {"edges": BOTH, "period_us": 9, "duty_ppm": 0}, "duty_ppm is 0, allowed is 1"),
    (
        faults.Flap,
        {"edges": BOTH, "period_us": 9, "duty_ppm": 1_000_000},
        "duty_ppm is 1000000, allowed is 1..999999",
    ),
    (faults.Flap, {"edges": (), "period_us": 9}, "edges of Cut 'f' is"),
    (faults.Flap, {"edges": BOTH, "period_us": 9, "in_flight": "x"}, "in_flight is 'x', allowed"),
    (faults.Swizzle, {"nodes": ("b1",), "period_us": 9}, "nodes are b1, allowed are two or more"),
    (faults.Swizzle, {"nodes": ("b1", "b1"), "period_us": 9}, "nodes are b1, b1, allowed are two"),
    (faults.Swizzle, {"nodes": ALL, "period_us": 0}, "period_us is 0, allowed is 1 or more"),
]


@pytest.mark.parametrize(("kind", "values", "text"), BAD)
def test_composites_that_cannot_be_say_why(
    kind: type[Any], values: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        kind(id="f", **values)


EVERY: list[faults.Fault] = [
    faults.Flap(id="flap", edges=(("b1", "c1"),), period_us=300_000),
    faults.Swizzle(id="swizzle", nodes=ALL, period_us=200_000),
    faults.MetadataLag(id="lag", node="b2", records=1),
    faults.MetadataLag(id="skip", node="b3"),
    faults.ClockStrobe(id="strobe", node="b1", by_us=5 * SECOND_US, period_us=150_000),
    faults.TimerJitter(id="jitter", node="b3", ppm=90_000),
]


@pytest.mark.parametrize("after_us", [0, 420_000, 900_000])
def test_a_copied_world_goes_on_alike_in_the_middle_of_its_faults(after_us: int) -> None:
    world, cluster = led_world()
    now_us = world.now_us
    schedule(world, [Planned(each, now_us, now_us + 2 * SECOND_US) for each in EVERY])
    cluster.configure("orders", {"retention.ms": "1000000"})
    world.run_for(1 + after_us)
    twin = world.copy()
    assert twin.state_key() == world.state_key()
    for each in (world, twin):
        each.run_for(5 * SECOND_US)
    assert twin.trace.digest() == world.trace.digest()
    assert twin.state_key() == world.state_key()
    assert world.active_faults == {}
    assert not world.host("b1").strobes
    now_us = world.now_us
    clocks = [world.host(name).clock.now(now_us).wall_us for name in ALL]
    assert len(set(clocks)) == 1
