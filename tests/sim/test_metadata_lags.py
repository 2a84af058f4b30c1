"""Brokers that hear of metadata late: how far behind they are, and when they hear everything."""

from __future__ import annotations

import pytest

from cluster.config import ControllerConfig
from sim import faults
from sim.plans import end
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World
from tests.sim.worlds import SECOND_US, events, led_world, strike


def change(world: World, cluster: Cluster, times: int = 1) -> int:
    """Commit so many records of metadata, one by one; returns the metadata's end."""
    for at in range(times):
        value = str(1_000_000 + world.now_us % 1_000_000 + at)
        cluster.configure("orders", {"retention.ms": value}).wait()
        world.run_for(200_000)
    return world.view().image().end_offset


def known(world: World, name: str) -> int:
    """The end of what a broker has heard of."""
    found: int = world.view().fields(name)["metadata_offset"]
    return found


@pytest.mark.parametrize("records", [1, 2, 5])
def test_a_broker_is_exactly_so_many_records_behind(records: int) -> None:
    world, cluster = led_world()
    world.run_for(SECOND_US)
    first = world.view().image().end_offset
    strike(world, faults.MetadataLag(id="f", node="b2", records=records))
    newest = first
    for count in range(1, 9):
        newest = change(world, cluster)
        assert newest == first + count
        assert known(world, "b2") == max(first, newest - records)
        assert known(world, "b3") == newest
    end(world, "f")
    world.run_for(SECOND_US)
    assert known(world, "b2") == newest


def test_a_broker_that_skips_sees_the_newest_state_as_one_change() -> None:
    world, cluster = led_world()
    world.run_for(SECOND_US)
    begun = strike(world, faults.MetadataLag(id="f", node="b2"))
    first, newest = known(world, "b2"), change(world, cluster, 4)
    assert known(world, "b2") == first
    (held,) = events(world, Kind.HOLD)
    assert (held.args["fault"], held.args["records"]) == ("f", 1)
    assert begun.n in held.cause
    end(world, "f")
    world.run_for(SECOND_US)
    assert known(world, "b2") == newest
    seen = [each for each in events(world, Kind.METADATA, node="b2") if each.t_us >= begun.t_us]
    assert [each.args["end_offset"] for each in seen] == [newest]
    (late,) = events(world, Kind.DELAY)
    assert held.n in late.cause


def test_the_slowest_of_several_counts_and_the_others_stay() -> None:
    world, cluster = led_world()
    world.run_for(SECOND_US)
    strike(world, faults.MetadataLag(id="one", node="b2", records=1))
    strike(world, faults.MetadataLag(id="three", node="b2", records=3))
    newest = change(world, cluster, 5)
    assert known(world, "b2") == newest - 3
    end(world, "three")
    world.run_for(SECOND_US)
    assert known(world, "b2") == newest - 1
    end(world, "one")
    world.run_for(SECOND_US)
    assert known(world, "b2") == newest


@pytest.mark.parametrize("records", [None, 2])
@pytest.mark.parametrize("node", ["b2", "c1"])
def test_a_process_that_ends_meanwhile_is_no_trouble(node: str, records: int | None) -> None:
    world, cluster = led_world()
    world.run_for(SECOND_US)
    strike(world, faults.MetadataLag(id="f", node="b2", records=records))
    change(world, cluster, 3)
    world.crash(node, "power")
    world.run_for(12 * SECOND_US)
    world.start(node)
    world.run_for(12 * SECOND_US)
    behind = change(world, cluster, 4) - known(world, "b2")
    assert behind >= (1 if records is None else records)
    end(world, "f")
    world.run_for(20 * SECOND_US)
    assert known(world, "b2") == world.view().image().end_offset
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_a_snapshot_waits_whole() -> None:
    world, cluster = led_world(controller=ControllerConfig(metadata_snapshot_records=2))
    world.run_for(SECOND_US)
    change(world, cluster, 6)
    world.crash("b2", "process")
    world.run_for(12 * SECOND_US)
    strike(world, faults.MetadataLag(id="f", node="b2", records=1))
    world.start("b2")
    world.run_for(3 * SECOND_US)
    assert known(world, "b2") == 0
    newest = change(world, cluster, 2)
    assert 0 < known(world, "b2") < newest
    end(world, "f")
    world.run_for(5 * SECOND_US)
    assert known(world, "b2") == world.view().image().end_offset


@pytest.mark.parametrize("node", ["c1", "admin"])
def test_who_asks_for_no_metadata_cannot_lag(node: str) -> None:
    world, _ = led_world()
    fault = faults.MetadataLag(id="f", node=node, records=1)
    with pytest.raises(ValueError, match=f"{node} asks for no metadata, allowed are brokers and"):
        fault.check(world.host(node))


@pytest.mark.parametrize("records", [None, 3])
def test_a_client_goes_on_with_what_it_knew_until_its_answer_is_old_enough(
    records: int | None,
) -> None:
    world, cluster = led_world()
    cluster.produce("orders", 1, acks=1).wait()
    begun = strike(world, faults.MetadataLag(id="f", node="p1", records=records))
    cluster.elect("orders", to="b2").wait()
    world.run_for(SECOND_US)
    sent = cluster.produce("orders", 1, acks=1)
    world.run_for(5 * SECOND_US)
    assert not sent.is_done()
    (held,) = events(world, Kind.HOLD)
    assert (held.node, held.args["type"], held.args["fault"]) == ("p1", "MetadataResponse", "f")
    assert begun.n in held.cause
    if records is None:
        end(world, "f")
    else:
        change(world, cluster, records - 1)
        assert not sent.is_done()
        change(world, cluster)
    world.run_for(SECOND_US)
    assert sent.is_done()
    assert world.view().leader("orders") == "b2"
