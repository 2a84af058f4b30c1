"""Runs whose traces are told in tests: the three of the scenario reference, and drawn ones.

Also the renaming of everything that has a name in a trace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from io import StringIO
from typing import Any

from rich.console import Console

from cluster.config import BrokerConfig, ControllerConfig
from sim.network_rules import Cut
from sim.present.fates import Records, records_of
from sim.present.history import Ack, Partition, Replica
from sim.present.story import Story
from sim.trace.lines import Event, Header
from sim.verbs import Cluster
from sim.world import World
from tests.sim.worlds import SECOND_US, led_world

NAMES = re.compile(r"(?<![\w.-])(admin|c1|b[123]|p[123](?:\.\d)?|orders)(?![\w.])")


def acks1(level: str = "events") -> World:
    """acks=1: the leader dies with five records that no follower has."""
    world, cluster = led_world(level=level, topic={"min.insync.replicas": "1"})
    cluster.produce("orders", 10, acks=1).wait()
    world.run_until(3 * SECOND_US)
    rule = Cut(id="lag", edges=(("b1", "b2"), ("b1", "b3")), only=frozenset({"FetchResponse"}))
    cluster._begin(rule)
    world.run_for(SECOND_US // 10)
    cluster.produce("orders", 5, acks=1).wait()
    world.run_for(SECOND_US // 4)
    world.crash("b1")
    world.run_for(SECOND_US // 10)
    cluster.heal("lag")
    world.run_until(14 * SECOND_US)
    world.start("b1")
    world.run_until(20 * SECOND_US)
    return world


def power_loss(level: str = "events") -> World:
    """Both replicas lose power; the one that had not synced a record comes back first."""
    broker = BrokerConfig(broker_heartbeat_interval_ms=500, broker_session_timeout_ms=2_000)
    controller = ControllerConfig(broker_heartbeat_interval_ms=500, broker_session_timeout_ms=2_000)
    world = World(
        _config(brokers=2, broker=broker, controller=controller), seed=7, trace=_trace(level)
    )
    cluster = Cluster(world)
    config = {"min.insync.replicas": "1", "flush.messages": "1"}
    cluster.create_topic("orders", assignments=[["b1", "b2"]], config=config).wait()
    cluster.produce("orders", ["m0"]).wait()
    world.run_for(SECOND_US)
    cluster.configure("orders", {"flush.messages": None}).wait()
    world.run_for(SECOND_US)
    cluster.produce("orders", ["m1"]).wait()
    world.run_for(SECOND_US)
    world.crash("b1", "power", image="kept")
    _until(world, lambda: world.view().isr("orders") == ("b2",))
    world.crash("b2", "power")
    world.run_for(5 * SECOND_US)
    world.start("b2")
    world.run_for(4 * SECOND_US)
    cluster.produce("orders", ["m2"], client="p2", timeout_us=59 * SECOND_US).wait()
    world.start("b1")
    world.run_for(8 * SECOND_US)
    return world


def unclean(level: str = "events") -> World:
    """The ISR shrinks to one, that one dies, and a replica from outside leads."""
    topic = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    world, cluster = led_world(level=level, topic=topic)
    cluster.produce("orders", 10).wait()
    world.run_until(5 * SECOND_US)
    cluster.partition(["b1"], ["b2", "b3"], fault_id="split")
    cluster.produce("orders", 1, acks=1, client="p2").wait()
    world.run_until(55 * SECOND_US)
    cluster.produce("orders", 20).wait()
    world.run_until(60 * SECOND_US)
    world.crash("b1")
    world.run_until(75 * SECOND_US)
    cluster.heal("split")
    cluster.produce("orders", 5, timeout_us=10 * SECOND_US, client="p3")
    world.run_until(105 * SECOND_US)
    world.start("b1")
    world.run_until(115 * SECOND_US)
    return world


def epoch_boundary(level: str = "events") -> World:
    """A broker copies over an epoch boundary, syncs all of it, and loses its power."""
    world, cluster = led_world(level=level, topic={"flush.messages": "1"})
    cluster.produce("orders", 10).wait()
    world.run_until(3 * SECOND_US)
    world.crash("b1")
    _until(world, lambda: world.view().leader("orders") not in (None, "b1"))
    cluster.produce("orders", 5, timeout_us=20 * SECOND_US).wait()
    world.start("b1")
    _until(world, lambda: "b1" in world.view().isr("orders"))
    world.run_for(2 * SECOND_US)
    world.crash("b1", "power")
    world.run_for(SECOND_US)
    world.start("b1")
    world.run_for(5 * SECOND_US)
    return world


def _config(**values: Any) -> Any:
    from sim.cluster_config import ClusterConfig

    return ClusterConfig(**values)


def _trace(level: str) -> Any:
    from sim.trace.writer import Trace

    return Trace(level, keeps_lines=True)


def _until(world: World, holds: Any) -> None:
    assert world.run_until_true(holds, 60 * SECOND_US)


def header_of(world: World) -> Header:
    """As the world's own would be."""
    return Header("0", "test", None, world.seed, {}, list(world.hosts), {})


def story_of(world: World) -> Story:
    """The story of everything so far."""
    return Story(header_of(world), world.trace.events())


def printed(print_it: Any, *values: Any, width: int = 100, **console: Any) -> str:
    """What a face prints on a console of plain text."""
    out = StringIO()
    console = {"no_color": True, "force_terminal": False, **console}
    print_it(Console(file=out, width=width, **console), *values)
    return out.getvalue()


def lost(story: Story) -> list[Records]:
    """Acknowledged records of which no copy is left at the end, in parts of one fate each.

    What a judge finds lost is an event of its own; these worlds have none.
    """
    found: list[Records] = []
    for partition in story.partitions.values():
        gone = sorted(
            {
                (ack.offset, -1 if ack.epoch is None else ack.epoch)
                for ack in partition.acks
                if ack.offset >= 0 and not _is_left(partition, ack)
            }
        )
        for base, end, epoch in _joined(gone):
            found += records_of(story, partition.name, base, end, None if epoch < 0 else epoch)
    return [each for each in found if each.acks]


def _is_left(partition: Partition, ack: Ack) -> bool:
    """Whether a copy is left, or the record was deleted as old ones are."""
    for replica in partition.replicas.values():
        start = replica.log_starts.last
        if start is not None and ack.offset < start:
            return True
        if _has(replica, ack):
            return True
    return False


def _has(replica: Replica, ack: Ack) -> bool:
    return any(
        piece.base <= ack.offset < piece.end and ack.epoch in (None, piece.epoch)
        for piece in replica.alive
    )


def _joined(offsets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for offset, epoch in sorted(offsets, key=lambda each: (each[1], each[0])):
        if found and found[-1][1] == offset and found[-1][2] == epoch:
            found[-1] = found[-1][0], offset + 1, epoch
        else:
            found.append((offset, offset + 1, epoch))
    return found


# Renaming ----------------------------------------------------------------------------------------


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """A text with each name replaced, as a whole word."""
    pattern = re.compile(
        r"(?<![A-Za-z0-9_])("
        + "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
        + r")(?![A-Za-z0-9_])"
    )
    return pattern.sub(lambda match: names[match.group(1)], text)


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """A plain value with each name in it replaced, in keys too."""
    if isinstance(value, str):
        return renamed_text(value, names)
    if isinstance(value, dict):
        return {renamed(key, names): renamed(each, names) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [renamed(each, names) for each in value]
    return value


def renamed_events(events: Iterable[Event], names: Mapping[str, str]) -> list[Event]:
    """Events in which nodes, topics and faults are called otherwise."""
    found = []
    for event in events:
        # Keys of arguments are not names, and a record's value is nobody's.
        args = {
            key: each if key == "value" else renamed(each, names)
            for key, each in event.args.items()
        }
        changes = tuple(
            (renamed(path, names), renamed(old, names), renamed(new, names))
            for path, old, new in event.changes
        )
        found.append(
            event._replace(node=names.get(event.node, event.node), args=args, changes=changes)
        )
    return found


def renamed_header(header: Header, names: Mapping[str, str]) -> Header:
    nodes = [names.get(node, node) for node in header.nodes]
    return Header("0", "test", None, header.seed, {}, nodes, {})
