"""Runs of scripts: cancelling, several at once, and one digest whatever the process.

Method: fixed plays and drawn ones over real worlds, each run twice or in processes with different
hash seeds. Only ``VerbFailed`` and ``WorldError`` may come out of a verb.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from attrs import frozen
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.outcomes import OutcomeKind
from sim.cluster_config import ClusterConfig
from sim.draws import Draws
from sim.pending import VerbFailed
from sim.schedulers import Fifo, Pct, Scheduler, Seeded
from sim.scripts import ScriptCluster, run
from sim.world import WorldError
from tests.sim.test_scripts import led

Script = Callable[[ScriptCluster], Awaitable[Any]]


# Cancelling --------------------------------------------------------------------------------------


def test_a_cancelled_produce_leaves_its_records_under_way() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 1)
        begin = cluster.now
        with trio.move_on_after(0.0001) as scope:
            await cluster.produce("orders", 3)
        assert scope.cancelled_caught
        assert round(cluster.now - begin, 6) == 0.0001
        assert cluster.view.log_end("b1", "orders") == 1
        (outcome,) = await cluster.produce("orders", 1)
        assert (outcome.kind, outcome.offset) == (OutcomeKind.ACKED, 4)
        records = await cluster.consume("orders", 5)
        assert [each.value for each in records] == [b"p1-%d" % at for at in range(5)]

    led(main)


def test_a_cancelled_consume_gives_back_what_it_had_read() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", list("abc"))
        for count in (5, 7):
            with trio.move_on_after(2) as scope:
                await cluster.consume("orders", count)
            assert scope.cancelled_caught
        got: list[bytes | None] = []

        async def reader(count: int) -> None:
            got.extend(record.value for record in await cluster.consume("orders", count))

        async with cluster.nursery() as nursery:
            with trio.move_on_after(1):
                nursery.start_soon(reader, 2)
                await cluster.sleep(0)
                await cluster.consume("orders", 9)
        nothing = await cluster.consume("orders", 0)
        assert (got, nothing) == ([b"a", b"b"], [])
        await cluster.produce("orders", ["d"])
        await reader(2)
        assert got == [b"a", b"b", b"c", b"d"]

    led(main)


def test_records_of_a_reading_that_is_given_up_go_to_the_one_behind_it() -> None:
    async def main(cluster: ScriptCluster) -> None:
        got: list[bytes | None] = []

        async def reader() -> None:
            got.extend(record.value for record in await cluster.consume("orders", 2))

        async with cluster.nursery() as nursery:
            with trio.move_on_after(2):
                nursery.start_soon(cluster.produce, "orders", list("ab"))
                nursery.start_soon(cluster.sleep, 1)
                await _then(reader, nursery, cluster)
        assert got == [b"a", b"b"]
        assert cluster.now < 10

    async def _then(reader: Any, nursery: Any, cluster: ScriptCluster) -> None:
        async def late() -> None:
            await cluster.sleep(1)
            await reader()

        nursery.start_soon(late)
        await cluster.consume("orders", 3)

    led(main)


@pytest.mark.parametrize("verb", ["produce", "consume", "wait_for", "elect", "shutdown", "nursery"])
def test_timeouts_of_trio_end_every_verb_in_time(verb: str) -> None:
    async def begin(cluster: ScriptCluster) -> None:
        match verb:
            case "produce":
                await cluster.produce("orders", 1)
            case "consume":
                await cluster.consume("orders", 1)
            case "wait_for":
                await cluster.wait_for(lambda: False)
            case "elect":
                await cluster.elect("orders", to="b2")
            case "shutdown":
                await cluster.shutdown("b2")
            case "nursery":
                async with cluster.nursery() as nursery:
                    for _ in range(5):
                        nursery.start_soon(cluster.produce, "orders", 1)
                        nursery.start_soon(cluster.consume, "orders", 1)

    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 1, client="p2")
        await cluster.consume("orders", 1)
        for name in ("b1", "b2", "b3"):
            cluster.pause(name)
        cluster.crash("c1")
        at = cluster.now
        with trio.move_on_after(0.5) as scope:
            await begin(cluster)
        assert scope.cancelled_caught
        assert abs(cluster.now - at - 0.5) < 1e-6
        with pytest.raises(trio.TooSlowError), trio.fail_after(0.25):
            await (cluster.sleep(1) if verb == "shutdown" else begin(cluster))
        assert abs(cluster.now - at - 0.75) < 1e-6
        for name in ("b1", "b2", "b3"):
            cluster.resume(name)
        cluster.start("c1")
        await cluster.wait_for(lambda: cluster.view.leader("orders") is not None)
        found = await cluster.produce("orders", 2, client="p3")
        assert [each.kind for each in found] == [OutcomeKind.ACKED] * 2

    led(main)


def test_a_timeout_of_one_child_leaves_the_others_alone() -> None:
    ended: list[str] = []

    async def main(cluster: ScriptCluster) -> None:
        async def child(name: str, seconds: float) -> None:
            with trio.move_on_after(seconds):
                await cluster.consume("orders", 4, client=name)
                ended.append(name)

        async with cluster.nursery() as nursery:
            for name, seconds in (("k1", 1), ("k2", 20), ("k3", 2)):
                nursery.start_soon(child, name, seconds)
            await cluster.sleep(5)
            await cluster.produce("orders", 4)

    led(main)
    assert ended == ["k2"]


# One digest --------------------------------------------------------------------------------------


async def play(cluster: ScriptCluster) -> int:
    """Writers, readers and somebody who breaks things, and what they cancel."""
    await cluster.create_topic("orders", partitions=2, config={"min.insync.replicas": "2"})
    done: list[int] = []

    async def writer(name: str, partition: int) -> None:
        for _ in range(6):
            with trio.move_on_after(0.8):
                found = await cluster.produce(
                    "orders", 3, client=name, partition=partition, timeout=5
                )
                done.append(len(found))
            await cluster.sleep(0.1)

    async def reader(name: str, partition: int) -> None:
        with trio.move_on_after(15):
            while True:
                done.append(len(await cluster.consume("orders", 2, client=name)))

    async def breaker() -> None:
        await cluster.sleep(0.3)
        leader = cluster.view.leader("orders")
        cluster.crash(leader, "power", image="drawn")
        fault = cluster.cut("b2", "b3", both=True)
        await cluster.sleep(3)
        cluster.heal(fault)
        cluster.start(leader)
        cluster.pause("b3")
        await cluster.sleep(1)
        cluster.resume("b3")
        with trio.move_on_after(5):
            await cluster.elect("orders", 1, kind="unclean", to="b3")

    async with cluster.nursery() as nursery:
        for number in (0, 1):
            nursery.start_soon(writer, f"w{number}", number)
            nursery.start_soon(reader, f"r{number}", number)
        nursery.start_soon(breaker)
    return len(done)


def scheduler(name: str, seed: int) -> Scheduler:
    """By its name."""
    if name == "seeded":
        return Seeded(Draws(seed))
    return Pct(Draws(seed), depth=3, entries=3_000) if name == "pct" else Fifo()


_ONCE = """
import sys
from sim.scripts import run_in
from sim.world import World
from tests.sim.test_scripts_runs import play, scheduler
for name in ("fifo", "seeded", "pct"):
    for seed in (3, 4):
        world = World(seed=seed, scheduler=scheduler(name, seed))
        done = run_in(world, play)
        print(name, seed, world.trace.count, done, world.trace.digest())
"""


@pytest.mark.slow
def test_several_scripts_with_faults_have_one_digest_in_every_process() -> None:
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _ONCE],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    ]
    assert len(set(outputs)) == 1
    lines = [line.split() for line in outputs[0].splitlines()]
    assert len({line[-1] for line in lines}) == len(lines) == 6
    assert all(int(line[2]) > 1_000 and int(line[3]) > 5 for line in lines)


# Drawn scripts -----------------------------------------------------------------------------------


@frozen
class Do:
    """One call of a verb."""

    verb: str
    node: str
    number: int
    within: float


_NODES = ("b1", "b2", "b3", "c1", "p1", "k1")
_VERBS = (
    "sleep sleep produce produce produce consume consume create delete crash power start start "
    "pause resume cut partition heal elect force shutdown reassign wait configure records nursery"
).split()
_DO = st.builds(
    Do,
    st.sampled_from(_VERBS),
    st.sampled_from(_NODES),
    st.integers(0, 3),
    st.sampled_from([0, 0.001, 0.3, 2, 15]),
)
_PLAYS = st.lists(st.lists(_DO, min_size=1, max_size=8), min_size=1, max_size=3)


async def _do(cluster: ScriptCluster, do: Do) -> None:
    topic, other = "orders" if do.number else "two", _NODES[do.number]
    match do.verb:
        case "sleep":
            await cluster.sleep(do.within)
        case "produce":
            options: Any = {"acks": [0, 1, "all"][do.number % 3], "timeout": 3}
            await cluster.produce(topic, do.number, **options)
        case "consume":
            await cluster.consume(topic, do.number, within=do.within)
        case "create":
            await cluster.create_topic("two", partitions=2)
        case "delete":
            await cluster.delete_topic("two")
        case "crash":
            cluster.crash(do.node)
        case "power":
            cluster.crash(do.node, "power", image=["lost", "kept", "drawn", "drawn"][do.number])
        case "start":
            cluster.start(do.node)
        case "pause":
            cluster.pause(do.node)
        case "resume":
            cluster.resume(do.node)
        case "cut":
            cluster.cut(do.node, other, in_flight=["drop", "hold", "deliver", "drop"][do.number])
        case "partition":
            cluster.partition([do.node], [other, "b2"])
        case "heal":
            cluster.heal()
        case "elect":
            await cluster.elect(topic)
        case "force":
            await cluster.elect(topic, to=do.node)
        case "shutdown":
            await cluster.shutdown(do.node, within=do.within)
        case "reassign":
            await cluster.reassign(topic, replicas=["b3", "b1"][: max(do.number, 1)])
        case "wait":
            await cluster.wait_for(lambda: cluster.view.leader(topic) == do.node, do.within)
        case "configure":
            await cluster.configure(topic, {"min.insync.replicas": str(do.number or 1)})
        case "records":
            await cluster.delete_records(topic, before=do.number)
        case "nursery":
            async with cluster.nursery() as nursery:
                nursery.start_soon(cluster.sleep, do.within)
                nursery.start_soon(cluster.produce, topic, 1)


def _mistakes(error: BaseException) -> bool:
    """Whether only a verb's own errors are in it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_mistakes(each) for each in error.exceptions)
    return isinstance(error, VerbFailed | WorldError)


def _run_play(scripts: list[list[Do]], seed: int, order: str) -> tuple[list[str], str]:
    log: list[str] = []

    async def script(cluster: ScriptCluster, number: int, dos: list[Do]) -> None:
        for do in dos:
            try:
                with trio.move_on_after(do.within if do.number == 3 else 70):
                    await _do(cluster, do)
                log.append(f"{number} {do.verb} {cluster.now}")
            except (VerbFailed, WorldError, ExceptionGroup) as error:
                if not _mistakes(error):
                    raise
                log.append(f"{number} {do.verb} {cluster.now} {error}")

    async def main(cluster: ScriptCluster) -> str:
        await cluster.create_topic("orders", replicas=3)
        async with cluster.nursery() as nursery:
            for number, dos in enumerate(scripts):
                nursery.start_soon(script, cluster, number, dos)
        return cluster.world.trace.digest()

    digest = run(main, ClusterConfig(), seed=seed, scheduler=scheduler(order, seed))
    return log, digest


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(_PLAYS, st.integers(0, 2**64 - 1), st.sampled_from(["fifo", "seeded"]))
def test_drawn_scripts_give_one_digest_and_no_error_of_ours(
    scripts: list[list[Do]], seed: int, order: str
) -> None:
    assert _run_play(scripts, seed, order) == _run_play(scripts, seed, order)
