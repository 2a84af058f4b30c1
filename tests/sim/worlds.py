"""Worlds for tests: three brokers and a topic, and what their traces say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.cluster_config import ClusterConfig
from sim.faults import Fault
from sim.plans import Planned, schedule
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

SECOND_US = 1_000_000


def new_world(
    seed: int = 7, *, level: str = "full", root: Path | None = None, **config: Any
) -> World:
    """Nothing has happened yet; every event is kept."""
    trace = Trace(level, keeps_lines=level != "digest")
    return World(ClusterConfig(**config), seed=seed, trace=trace, root=root)


def led_world(
    seed: int = 7, *, level: str = "full", topic: dict[str, str] | None = None, **config: Any
) -> tuple[World, Cluster]:
    """A world with a topic ``orders`` of one partition on three brokers; b1 leads."""
    world = new_world(seed, level=level, **config)
    cluster = Cluster(world)
    assignment = [["b1", "b2", "b3"]]
    values = {"min.insync.replicas": "2"} if topic is None else topic
    cluster.create_topic("orders", assignments=assignment, config=values).wait()
    assert world.view().leader("orders") == "b1"
    return world, cluster


def events(world: World, *kinds: Kind, node: str | None = None) -> list[Event]:
    """Events of some kinds, in order."""
    return [
        each for each in world.trace.events() if each.kind in kinds and node in (None, each.node)
    ]


def values_of(world: World, node: str) -> list[bytes | None]:
    """The values in a node's log."""
    return [record.value for record in world.view().records(node, "orders")]


def note(world: World, text: str) -> None:
    """An entry of the timeline that leaves a trace."""
    world.trace.emit(world.now_us, "world", Kind.NOTE, (), {"text": text})


def strike(world: World, fault: Fault, for_us: int | None = None) -> Event:
    """Begin a fault now, for a while or for good; the event that says so."""
    now_us = world.now_us
    end_us = None if for_us is None else now_us + for_us
    schedule(world, [Planned(fault, now_us, end_us)])
    world.run_until(now_us)
    return next(each for each in events(world, Kind.FAULT) if each.args["id"] == fault.id)


def of_fault(world: World, fault_id: str) -> list[Event]:
    """The effects that name a fault."""
    return [each for each in world.trace.events() if each.args.get("fault") == fault_id]
