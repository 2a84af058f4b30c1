"""Scripts in which much goes on at once: what the determinism check runs.

Five scripts share one cluster: two writers, a reader, one that breaks things, and one whose waits
are cancelled; every line that one of them writes goes into one list.

Left out: the plan of faults (``tests.sim.rich``).
"""

from __future__ import annotations

from pathlib import Path

import trio

from sim import faults
from sim.network_rules import Loss
from sim.pending import VerbFailed
from sim.plans import Planned, schedule
from sim.scripts import ScriptCluster, run
from sim.trace.writer import Trace
from tests.sim.rich import SECOND_US, Run, run_of
from tests.sim.rich import config as rich_config

__all__ = ["rich_scripts"]


def rich_scripts(root: Path | None = None, trace: Trace | None = None) -> Run:
    """Run them: about 16 s of virtual time."""
    return run(_main, rich_config(), seed=5, root=root, trace=trace)


async def _main(cluster: ScriptCluster) -> Run:
    said: list[object] = []
    schedule(
        cluster.world,
        [
            Planned(Loss(id="loss", edges=(("*", "*"),), ppm=30_000), 3 * SECOND_US),
            Planned(
                faults.ClockDrift(id="drift", node="b2", mono_ppm=70_000),
                4 * SECOND_US,
                20 * SECOND_US,
            ),
        ],
    )
    values = {"min.insync.replicas": "2"}
    await cluster.create_topic("orders", partitions=2, replicas=3, config=values)
    async with cluster.nursery() as nursery:
        nursery.start_soon(_write, cluster, said, "w1", 0, "all")
        nursery.start_soon(_write, cluster, said, "w2", 1, 1)
        nursery.start_soon(_read, cluster, said)
        nursery.start_soon(_give_up, cluster, said)
        nursery.start_soon(_break, cluster, said)
    return run_of(cluster.world, said)


async def _write(
    cluster: ScriptCluster, said: list[object], client: str, partition: int, acks: int | str
) -> None:
    for number in range(12):
        outcomes = await cluster.produce(
            "orders",
            4,
            acks=acks,
            partition=partition,
            batch=2,
            client=client,
            timeout=9,
        )
        said.append((client, number, cluster.now, outcomes))
        await cluster.sleep(0.7)


async def _read(cluster: ScriptCluster, said: list[object]) -> None:
    for number in range(6):
        records = await cluster.consume("orders", 5)
        said.append(("read", number, cluster.now, [tuple(each) for each in records]))


async def _give_up(cluster: ScriptCluster, said: list[object]) -> None:
    """Timeouts, a cancelled nursery, an event of trio, and a wait that ends with its scope."""
    for number in range(5):
        with trio.move_on_after(0.0005 * (number + 1)) as scope:
            await cluster.produce("orders", 2, client="hasty")
        said.append(("hasty", number, cluster.now, scope.cancelled_caught))
    event = trio.Event()
    async with cluster.nursery() as nursery:
        nursery.start_soon(_sleep_and_say, cluster, said, 0.3, event)
        nursery.start_soon(_sleep_and_say, cluster, said, 90.0, event)
        await event.wait()
        said.append(("woken", cluster.now))
        nursery.cancel_scope.cancel()
    said.append(("cancelled", cluster.now))


async def _sleep_and_say(
    cluster: ScriptCluster, said: list[object], seconds: float, event: trio.Event
) -> None:
    try:
        await cluster.sleep(seconds)
        event.set()
    finally:
        said.append(("slept", seconds, cluster.now))


async def _break(cluster: ScriptCluster, said: list[object]) -> None:
    leader = cluster.view.leader("orders")
    cluster.crash(leader, "power", image="drawn")
    await cluster.wait_for(lambda: cluster.view.leader("orders") not in (None, leader))
    said.append(("leader", cluster.now, cluster.view.leader("orders")))
    cluster.start(str(leader))
    cut = cluster.cut("b1", "c1", both=True, in_flight="hold")
    await cluster.sleep(3)
    cluster.heal(cut)
    await cluster.shutdown("b4")
    said.append(("stopped", cluster.now))
    cluster.pause("b5")
    cluster.start("b4")
    await cluster.sleep(2)
    cluster.resume("b5")
    try:
        await cluster.elect("orders", 1)
    except VerbFailed as refusal:
        said.append(str(refusal))
    said.append(("elected", cluster.now, cluster.view.leader("orders", 1)))
