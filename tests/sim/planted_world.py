"""A small world with a trace file: ``python -m tests.sim.planted_world FILE LEVEL ROOT``.

It is run twice, in fresh processes, by the tests that plant nondeterminism into the packages. A
file system may list a directory in any order, so here each process has an order of its own.

Left out: a plan of many faults (``tests.sim.rich``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from sim import faults
from sim.cluster_config import ClusterConfig
from sim.network_rules import Limit
from sim.plans import Planned, schedule
from sim.trace.lines import Header
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

__all__ = ["SECOND_US", "main"]

SECOND_US = 1_000_000
REPLICAS = (("b1", "b3", "b4"), ("b2", "b3", "b4"), ("b3", "b5", "b2"), ("b5", "b2", "b1"))


def _list_in_an_order_of_this_process() -> None:
    listdir = os.listdir

    def other(path: Any) -> list[str]:
        return sorted(listdir(path), key=lambda name: (hash(name), name))

    os.listdir = other


def main(path: Path, level: str, root: Path) -> None:
    """Run it: five brokers, of which one loses its power and one comes back with an older disk."""
    header = Header("0", None, None, 3, {}, ("b1",), {})
    trace = Trace(level, path=path, header=header)
    world = World(ClusterConfig(brokers=5), seed=3, root=root, trace=trace)
    limit = Limit(id="limit", edges=(("b1", "*"),), bytes_per_s=500, buffer_bytes=100)
    crash = faults.Crash(id="crash", node="b1", how="power")
    schedule(
        world,
        [
            Planned(limit, 3_004_000, 9 * SECOND_US),
            Planned(crash, 3_060_000, 16 * SECOND_US),
        ],
    )
    cluster = Cluster(world)
    cluster.create_topic("orders", assignments=REPLICAS).wait()
    world.run_until(3 * SECOND_US)
    world.copy_disk("b2", "older")
    for partition in range(4):
        for acks in (1, "all"):
            cluster.produce("orders", ["x" * 300] * 4, acks=acks, partition=partition, batch=2)
    world.run_until(8 * SECOND_US)
    world.crash("b2")
    world.start("b2", disk="older")
    world.run_until(20 * SECOND_US)
    world.crash("b2", "power", image="file-prefix")
    world.run_until(23 * SECOND_US)
    trace.close("pass")


if __name__ == "__main__":
    _list_in_an_order_of_this_process()
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
