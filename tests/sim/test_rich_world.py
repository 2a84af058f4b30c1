"""The world with every fault: what one fault less changes, and what names its state."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from sim import faults
from sim.baton import Misuse
from sim.network_rules import Loss
from sim.plans import Planned, schedule
from sim.scripts import ScriptCluster, run
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World
from tests.sim.rich import PLAN, SECOND_US, TOPICS, config
from tests.sim.worlds import led_world

# Faults that have no effect, as a fault that strikes nobody; each draws all the same, if it can.
INERT: tuple[faults.Fault, ...] = (
    Loss(id="inert-loss", edges=(("*", "*"),), ppm=0),
    faults.SlowCpu(id="inert-cpu", node="b1", factor_ppm=1_000_000),
    faults.DiskSlow(id="inert-disk", node="b2"),
    faults.ClockDrift(id="inert-drift", node="b3"),
    faults.BackgroundHold(id="inert-hold", node="b4", kinds=frozenset({"none"})),
)


def happened(plan: Iterable[Planned], until_us: int) -> list[tuple[object, ...]]:
    """Time, node, kind and arguments of all that happened under a plan, but its own events."""
    world = World(config(), seed=9, trace=Trace("events", keeps_lines=True))
    schedule(world, plan)
    cluster = Cluster(world)
    for topic, values in TOPICS.items():
        cluster.create_topic(topic, partitions=3, config=values).wait()
    while world.now_us < until_us:
        for topic in TOPICS:
            cluster.produce(topic, 3, acks=1, partition=None, client="p1")
        world.run_until(min(until_us, world.now_us + 3 * SECOND_US))
    return [
        (each.t_us, each.node, each.kind, dict(each.args))
        for each in world.trace.events()
        if each.kind not in (Kind.FAULT, Kind.HEAL)
    ]


@pytest.mark.slow
@pytest.mark.parametrize("planned", PLAN, ids=[planned.fault.id for planned in PLAN])
def test_without_a_fault_everything_up_to_it_is_the_same(planned: Planned) -> None:
    until_us = min(planned.start_us - 1, 20 * SECOND_US)
    rest = [each for each in PLAN if each is not planned]
    assert happened(rest, until_us) == happened(PLAN, until_us)


@pytest.mark.slow
@pytest.mark.parametrize("fault", INERT, ids=[fault.id for fault in INERT])
def test_a_fault_that_strikes_nothing_changes_nothing(fault: faults.Fault) -> None:
    front = [each for each in PLAN if each.start_us < 15 * SECOND_US and each.fault.id != "drift"]
    more = [*front, Planned(fault, 4 * SECOND_US, 18 * SECOND_US)]
    assert happened(more, 20 * SECOND_US) == happened(front, 20 * SECOND_US)


# State keys --------------------------------------------------------------------------------------


def print_nothing(world: World) -> None:
    """A watcher that keeps nothing."""


def test_who_looks_and_where_the_files_are_does_not_change_the_state_key(tmp_path: Path) -> None:
    keys = set()
    for level, root in (("digest", None), ("full", None), ("digest", tmp_path)):
        trace = Trace(level, keeps_lines=level != "digest")
        world = World(config(), seed=9, root=root, trace=trace)
        # The plan's entries hold the world.
        schedule(world, PLAN)
        world.watchers.append([].append if level == "full" else print_nothing)
        Cluster(world).create_topic("orders").wait()
        keys.add(world.state_key())
    assert len(keys) == 1


def test_looking_at_the_controller_does_not_change_the_state_key() -> None:
    world, _ = led_world(level="digest")
    before = world.state_key()
    assert world.host("c1").process is not None
    world.hosts["c1"].process.machine.fields()
    assert world.state_key() == before


def test_a_world_in_which_a_script_waits_has_no_state_key() -> None:
    async def other(cluster: ScriptCluster) -> None:
        await cluster.sleep(1)

    async def main(cluster: ScriptCluster) -> None:
        async with cluster.nursery() as nursery:
            nursery.start_soon(other, cluster)
            await cluster.sleep(0.5)
            with pytest.raises(Misuse, match="scripts are under way"):
                cluster.world.state_key()

    run(main)
