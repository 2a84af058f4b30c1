"""Worlds for tests: three brokers and a topic, and what their traces say."""

from __future__ import annotations

from typing import Any

from sim.cluster_config import ClusterConfig
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

SECOND_US = 1_000_000


def new_world(seed: int = 7, *, level: str = "full", **config: Any) -> World:
    """Nothing has happened yet; every event is kept."""
    trace = Trace(level, keeps_lines=level != "digest")
    return World(ClusterConfig(**config), seed=seed, trace=trace)


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
