"""A world in which much goes wrong in a few seconds: what the determinism check runs.

Five brokers, two topics of three partitions, producers with acks all, 1 and 0, a consumer, clocks
that drift, and a plan of faults of every family: links, hosts, clocks, disks. Nobody judges the
run; it must only be the same each time.

Left out: scripts (``tests.sim.rich_scripts``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from attrs import frozen

from cluster.names import CONTROLLER
from cluster.outcomes import Outcome
from sim import faults
from sim.cluster_config import ClockConfig, ClusterConfig, DiskConfig
from sim.disk_faults import DiskFault
from sim.failpoints import Failpoint
from sim.latency import NetworkConfig
from sim.network_rules import (
    Clog,
    Corrupt,
    Cut,
    Limit,
    Loss,
    Refuse,
    ResetOn,
    Slow,
    partition_edges,
)
from sim.plans import Planned, schedule
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

__all__ = ["KINDS", "PLAN", "SECOND_US", "Run", "build", "config", "rich_world", "run_of"]

SECOND_US: Final = 1_000_000
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    "orders": {"min.insync.replicas": "2", "segment.bytes": "2000", "flush.messages": "3"},
    "bills": {"segment.bytes": "1200", "unclean.leader.election.enable": "true"},
}


def _planned(fault: faults.Fault, start_s: float, end_s: float | None = None) -> Planned:
    end_us = None if end_s is None else round(end_s * SECOND_US)
    return Planned(fault, round(start_s * SECOND_US), end_us)


def _disk_fault(fault_id: str, kind: str, **values: object) -> DiskFault:
    return DiskFault(id=fault_id, kind=kind, **values)  # type: ignore[arg-type]


def _on_disk(fault_id: str, node: str, kind: str, **values: object) -> faults.DiskCallFault:
    fault = _disk_fault(fault_id, kind, **values)
    return faults.DiskCallFault(id=fault_id, node=node, fault=fault)


ALL: Final = (("*", "*"),)
BOTH_4_5: Final = (("b4", "b5"), ("b5", "b4"))

PLAN: Final[tuple[Planned, ...]] = (
    # Links.
    _planned(Loss(id="loss", edges=ALL, ppm=20_000), 4, 40),
    _planned(Cut(id="cut", edges=(("b3", "c1"),), in_flight="hold"), 5, 9),
    _planned(Clog(id="clog", edges=(("b1", "b2"),)), 6, 7),
    _planned(
        Limit(id="limit", edges=(("b2", "*"),), bytes_per_s=20_000, buffer_bytes=2_000), 7, 20
    ),
    _planned(ResetOn(id="reset", edges=ALL, when="after", ppm=30_000, times=5), 8, 20),
    _planned(Refuse(id="refuse", edges=(("*", "b4"),), hangs_us=90_000), 19, 21),
    _planned(
        Cut(id="alone", edges=partition_edges([["b3"], ["b1", "b2", "b4", "b5", "c1"]])), 14, 27
    ),
    _planned(Slow(id="slow-link", edges=BOTH_4_5, factor_ppm=5_000_000, addend_us=500), 4, 15),
    _planned(Corrupt(id="corrupt", edges=ALL, only=frozenset({"Fetch"}), ppm=50_000), 10, 30),
    # Hosts.
    _planned(faults.Crash(id="crash", node="b2", how="power", image="drawn"), 12.003, 16),
    _planned(faults.Crash(id="lost", node="b2", how="power"), 39.003, 41),
    _planned(faults.CrashLoop(id="loop", node="b4", calls=(5, 40), how="power", image="drawn"), 18),
    _planned(faults.HostPause(id="pause", node="b1"), 22, 34),
    _planned(faults.Crash(id="controller", node=CONTROLLER), 26, 27),
    _planned(faults.SlowCpu(id="cpu", node="b3", factor_ppm=20_000_000), 10, 30),
    _planned(faults.BackgroundHold(id="hold", node="b5"), 10, 20),
    # Clocks.
    _planned(faults.ClockDrift(id="drift", node="b3", mono_ppm=50_000, wall_ppm=-20_000), 6, 25),
    _planned(faults.ClockStep(id="step", node="b5", by_us=-3 * SECOND_US), 13),
    _planned(faults.ClockFreeze(id="freeze", node="b2"), 8, 11),
    # Disks.
    _planned(_on_disk("fsync", "b5", "fsync-fail", path=".log", after=2), 20, 24),
    _planned(_on_disk("lie", "b1", "fsync-lie", times=4), 5, 20),
    _planned(_on_disk("eio", "b3", "error", operation="append", path=".log", after=6), 30, 31),
    _planned(faults.DiskSlow(id="slow-disk", node="b2", addend_us=3_000), 5, 10),
    _planned(faults.DiskStall(id="stall", node="b4", duration_us=2 * SECOND_US), 9, 11),
    _planned(faults.DiskFill(id="fill", node="b2", free_bytes=3_000), 28, 32),
)

FAILPOINTS: Final = (
    ("b1", Failpoint(id="f-yield", point="fetch-read", hit=7, action="yield", duration_us=9_000)),
    ("b3", Failpoint(id="f-pause", point="hw-advanced", hit=9, action="pause", duration_us=40_000)),
    ("b4", Failpoint(id="f-kill", point="disk:write_at:.log", hit=30, image="drawn")),
)

KINDS: Final = frozenset(
    Kind(name)
    for name in """
        ack append background checkpoint close corrupt crash delay delete deliver disconnect
        disk disk-error drop elect error failpoint fault fence fsync heal hold hw isr
        isr-proposed leave lost metadata open pause poll position produce recover register
        reject replicate reset resume role send shutdown start step stop synced timer
        transmit truncate unfence unknown write
    """.split()
)
"""What happens in the run at least; a poorer one would check less."""


@frozen
class Run:
    """What a run was.

    Attributes:
        digest: of the trace.
        disks: digests of all disks, by node.
        said: what came of it: outcomes, records, times; in words.
        state_key: of the world at the end; empty where scripts ran.
    """

    digest: str
    disks: tuple[tuple[str, str], ...]
    said: str
    state_key: str


def config() -> ClusterConfig:
    """Five brokers whose clocks are not alike, on disks that write back late."""
    return ClusterConfig(
        brokers=5,
        network=NetworkConfig(tail_ppm=10_000, tail_max_us=20_000),
        disk=DiskConfig(writeback_us=(1_000_000, 9_000_000)),
        clocks={
            "b2": ClockConfig(offset_us=700_000, wall_ppm=80, mono_ppm=-60, jitter_ppm=40_000),
            "b4": ClockConfig(offset_us=-90_000, mono_ppm=300),
        },
    )


def build(
    *,
    seed: int = 20_240_229,
    root: Path | None = None,
    trace: Trace | None = None,
    without: str | None = None,
) -> tuple[World, Cluster]:
    """The world with its plan, before anything happens; ``without`` leaves one fault out."""
    world = World(config(), seed=seed, root=root, trace=trace)
    schedule(world, [each for each in PLAN if each.fault.id != without])
    for node, failpoint in FAILPOINTS:
        world.add_failpoint(node, failpoint)
    return world, Cluster(world)


def rich_world(root: Path | None = None, trace: Trace | None = None) -> Run:
    """Run it: about a minute of virtual time."""
    world, cluster = build(root=root, trace=trace)
    for topic, values in TOPICS.items():
        cluster.create_topic(topic, partitions=3, config=values).wait()
    pending = []
    for number in range(14):
        for topic in TOPICS:
            for acks, client in (("all", "pa"), (1, "p1"), (0, "p0")):
                keys = [f"{topic}-{number}-{each}" for each in range(3)]
                values = [f"{key}-{acks}".ljust(90, ".") for key in keys]
                sent = cluster.produce(
                    topic,
                    values,
                    acks=acks,
                    partition=None,
                    keys=keys,
                    batch=2,
                    client=client,
                    timeout_us=15 * SECOND_US,
                )
                pending.append(sent)
        _admin(world, cluster, number)
        world.run_until((number + 1) * 3 * SECOND_US)
    world.run_for(3 * SECOND_US)
    cluster.heal()
    for name in world.config.names:
        if not world.host(name).is_running:
            world.start(name)
    consumed = [cluster.consume(topic, 5, partition=n) for topic in TOPICS for n in (0, 1, 2)]
    world.run_for(12 * SECOND_US)
    outcomes: list[Outcome] = [outcome for each in pending for outcome in each.result()]
    read = [tuple(record) for each in consumed for record in each.result()]
    return run_of(world, (outcomes, read), world.state_key())


def run_of(world: World, said: object, state_key: str = "") -> Run:
    """What a run was; ``said`` is what came of it."""
    disks = tuple(
        (name, host.disk.files.digest())
        for name, host in world.hosts.items()
        if host.disk is not None
    )
    return Run(world.trace.digest(), disks, repr(said), state_key)


def _admin(world: World, cluster: Cluster, number: int) -> None:
    """What an operator does beside the plan; elections may be refused, and nobody waits for one."""
    if number == 2:
        cluster.reassign("bills", 0, replicas=["b2", "b3", "b5"])
    elif number == 3:
        cluster.elect("orders", 0)
        cluster.elect("bills", 1, kind="unclean")
    elif number == 10:
        world.crash("b5")
        world.start("b5", disk="wiped")
    elif number == 12:
        leader = world.view().leader("orders", 0)
        assert leader is not None
        world.shutdown(leader)
