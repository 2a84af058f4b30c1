"""Random fault plans for judged worlds, drawn from a seed: heavy, and legal.

Replication 3, ``min.insync.replicas`` 2, producers with acks all. Power losses, wipes and crashes
strike whomever they like: what they take is outside clean history record by record, and everything
else must hold. Bits flipped under way are left out: fields of messages that no CRC covers, such as
a high watermark, are believed then, as Kafka does.
"""

from __future__ import annotations

import random
from typing import Any

from cluster.config import BrokerConfig, ControllerConfig
from sim.checks.judge import Judge
from sim.cluster_config import ClusterConfig, DiskConfig
from sim.faults import (
    ClockDrift,
    ClockStep,
    Crash,
    DiskSlow,
    DiskStall,
    HostPause,
    SlowCpu,
)
from sim.network_rules import Clog, Cut, Loss, ResetOn, Slow, partition_edges
from sim.plans import Planned, schedule
from sim.verbs import Cluster
from sim.world import IMAGES, World, WorldError

SECOND_US = 1_000_000
NODES = ("c1", "b1", "b2", "b3")
KINDS = """crash crash power pause cut partition clog slow loss reset stall disk-slow cpu drift
step""".split()


def draw_config(rng: random.Random) -> ClusterConfig:
    elr = rng.random() < 0.3
    quick = rng.random() < 0.7
    broker: dict[str, Any] = {"eligible_leader_replicas": elr}
    controller: dict[str, Any] = {"eligible_leader_replicas": elr}
    if quick:
        broker |= {
            "broker_session_timeout_ms": 3_000,
            "broker_heartbeat_interval_ms": 500,
            "replica_lag_time_max_ms": 4_000,
        }
        controller |= {"broker_session_timeout_ms": 3_000, "broker_heartbeat_interval_ms": 500}
    writeback = rng.choice([None, None, (10_000, 3_000_000)])
    return ClusterConfig(
        broker=BrokerConfig(**broker),
        controller=ControllerConfig(**controller),
        disk=DiskConfig(writeback_us=writeback, names_mode=rng.choice(["ext4", "posix"])),
    )


def draw_fault(rng: random.Random, number: int, *, power: bool) -> Any:
    name = f"f{number}"
    kind = rng.choice(KINDS) if rng.random() < 0.7 or not power else "power"
    node = rng.choice(NODES[1:] if rng.random() < 0.85 else NODES)
    other = rng.choice([each for each in NODES if each != node])
    edge = ((node, other),) if rng.random() < 0.5 else ((node, other), (other, node))
    match kind:
        case "crash":
            return Crash(id=name, node=node)
        case "power":
            how = "power" if power else "process"
            return Crash(id=name, node=node, how=how, image=rng.choice(IMAGES))
        case "pause":
            return HostPause(id=name, node=node)
        case "cut":
            mode = rng.choice(["drop", "hold", "deliver"])
            only = rng.choice([(), ("Fetch",), ("FetchResponse",), ("BrokerHeartbeat",)])
            return Cut(id=name, edges=edge, in_flight=mode, only=frozenset(only))
        case "partition":
            nodes = list(NODES)
            rng.shuffle(nodes)
            size = rng.randint(1, 3)
            return Cut(id=name, edges=partition_edges([nodes[:size], nodes[size:]]))
        case "clog":
            return Clog(id=name, edges=edge)
        case "slow":
            return Slow(id=name, edges=edge, factor_ppm=rng.choice([5_000_000, 200_000_000]))
        case "loss":
            return Loss(id=name, edges=edge, ppm=rng.choice([50_000, 400_000]))
        case "reset":
            return ResetOn(id=name, edges=edge, when=rng.choice(["before", "after"]), ppm=100_000)
        case "stall":
            return DiskStall(id=name, node=node, duration_us=rng.randint(1, 8) * SECOND_US)
        case "disk-slow":
            return DiskSlow(id=name, node=node, factor_ppm=50_000_000)
        case "cpu":
            return SlowCpu(id=name, node=node, factor_ppm=100_000_000)
        case "drift":
            return ClockDrift(id=name, node=node, wall_ppm=50_000, mono_ppm=20_000)
        case _:
            return ClockStep(id=name, node=node, by_us=rng.randint(-30, 30) * SECOND_US)


class Judged:
    """A world under a drawn plan, with its judge."""

    def __init__(self, seed: int, *, power: bool = True, paranoid: bool = False) -> None:
        self.rng = rng = random.Random(seed)
        self.world = World(draw_config(rng), seed=seed)
        self.judge = Judge(self.world, is_paranoid=paranoid)
        self.cluster = Cluster(self.world)
        self.power = power
        topic = {"min.insync.replicas": "2"}
        if rng.random() < 0.3:
            topic["flush.messages"] = "1"
        if rng.random() < 0.3:
            topic["segment.bytes"] = "4096"
        self.cluster.create_topic("orders", partitions=rng.choice([1, 1, 2]), config=topic).wait()
        image = self.world.view().image()
        self.partitions = len(list(image.partitions_of(image.topic_ids["orders"])))

    def run(self, *, faults: int = 12, span_s: int = 60) -> None:
        """Faults strike while producers produce and a consumer reads."""
        rng, world = self.rng, self.world
        begin = world.now_us
        plan = []
        for number in range(faults):
            fault = draw_fault(rng, number, power=self.power)
            start = begin + rng.randint(0, span_s * SECOND_US)
            plan.append(Planned(fault, start, start + rng.randint(10_000, 15 * SECOND_US)))
        schedule(world, plan)
        end = begin + (span_s + 15) * SECOND_US
        while world.now_us < end:
            self._act()
            world.run_for(rng.choice([5_000, 50_000, 400_000, 1_500_000]))

    def _act(self) -> None:
        rng, cluster = self.rng, self.cluster
        kind = rng.random()
        where = rng.randrange(self.partitions)
        try:
            if kind < 0.75:
                acks = "all" if rng.random() < 0.8 else rng.choice([0, 1])
                client = rng.choice(["p1", "p2"]) if acks == "all" else f"q{acks}"
                cluster.produce(
                    "orders", rng.randint(1, 5), acks=acks, partition=where, client=client
                )
            elif kind < 0.9:
                cluster.consume("orders", rng.randint(1, 10), partition=where)
            elif kind < 0.95:
                cluster.elect("orders", where)
            elif kind < 0.97:
                cluster.delete_records("orders", where)
        except WorldError:
            pass  # nobody leads, or knows the partition: then nothing is asked for

    def settle(self, within_s: int = 75) -> None:
        """Heal everything, start everybody, let time pass."""
        world = self.world
        self.cluster.heal()
        for name in NODES:
            status = world.hosts[name].status
            if status == "paused":
                world.resume(name)
            elif status != "running":
                world.start(name)
        world.run_for(within_s * SECOND_US)
        for name in NODES:
            if world.hosts[name].status != "running":
                world.start(name)
        world.run_for(within_s * SECOND_US)
