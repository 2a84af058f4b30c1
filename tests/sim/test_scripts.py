"""What scripts do to a world: each verb does what it says.

Method: scripts over real worlds, and what the view, the logs and the trace then show.
"""

from __future__ import annotations

import ast
import inspect
import math
import textwrap
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cluster.outcomes import OutcomeKind
from sim import baton, scripts
from sim.cluster_config import ClusterConfig
from sim.scripts import ScriptCluster, VerbFailed, run, run_in
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.world import World
from tests.sim.worlds import SECOND_US, events, led_world, new_world

Script = Callable[[ScriptCluster], Awaitable[Any]]


def led(script: Script, seed: int = 7, **config: Any) -> Any:
    """Run a script in a world with the topic ``orders``, which b1 leads."""

    async def main(cluster: ScriptCluster) -> Any:
        await cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]])
        return await script(cluster)

    return run(main, ClusterConfig(**config), seed=seed)


def _values(records: list[Any]) -> list[str]:
    return [record.value.decode() for record in records]


# The example -------------------------------------------------------------------------------------


def test_the_example_of_the_module_runs_as_it_stands() -> None:
    text = inspect.getdoc(scripts) or ""
    block = text[text.index("    from sim.scripts") : text.index("Await what takes time")]
    names: dict[str, Any] = {}
    exec(compile(ast.parse(textwrap.dedent(block)), "example", "exec"), names)
    assert names["values"] == [f"p1-{number}".encode() for number in range(5)]


def test_a_plain_test_function_runs_a_script_and_has_what_it_returns() -> None:
    """pytest needs no plugin; in an async test of one, ``run`` cannot be nested."""

    async def main(cluster: ScriptCluster) -> float:
        await cluster.sleep(1.5)
        return cluster.now

    assert run(main) == 1.5
    with pytest.raises(baton.Misuse, match="cannot be nested"):
        trio.run(lambda: _in_trio(main))


async def _in_trio(main: Script) -> None:
    run(main)


def test_the_options_of_run_are_those_of_the_world(tmp_path: Path) -> None:
    async def main(cluster: ScriptCluster) -> tuple[int, str, list[str]]:
        await cluster.create_topic("t", replicas=2)
        running = cluster.view.running()
        return cluster.world.seed, cluster.world.trace.digest(), running

    seen = run(main, ClusterConfig(brokers=2), seed=9)
    trace = Trace("full", keeps_lines=True)
    assert seen[::2] == (9, ["b1", "b2"])
    assert run(main, ClusterConfig(brokers=2), seed=9, root=tmp_path, trace=trace) == seen
    assert len(list(trace.events())) == trace.count > 100
    assert (tmp_path / "b1").is_dir()


def test_a_script_goes_on_in_a_world_that_is_there_and_may_be_copied_behind_it() -> None:
    """Clients belong to the world: the next script goes on with them, and so does one in a copy."""
    world, _ = led_world()

    async def write(cluster: ScriptCluster) -> list[str]:
        await cluster.produce("orders", 2)
        return _values(await cluster.consume("orders", 2))

    async def sleep(cluster: ScriptCluster) -> None:
        async with cluster.nursery() as nursery:
            nursery.start_soon(cluster.sleep, 5)
            with trio.move_on_after(1):
                await cluster.wait_for(lambda: False)

    assert run_in(world, write) == ["p1-0", "p1-1"]
    run_in(world, sleep)
    twin = world.copy()
    for each in (world, twin):
        assert run_in(each, write) == ["p1-2", "p1-3"]
    assert world.trace.digest() == twin.trace.digest()
    assert world.state_key() == twin.state_key()
    run_in(world, sleep)
    assert world.state_key() != twin.state_key()
    assert sorted(world.producers) == ["p1"]


def test_the_key_of_a_world_does_not_depend_on_what_was_cancelled() -> None:
    """Timers that were disarmed lie in the timeline until their time has come."""
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    key = world.state_key()
    world.timeline.sweep()
    assert world.state_key() == key


def test_the_only_script_may_copy_its_world_and_step_the_copy() -> None:
    async def main(cluster: ScriptCluster) -> None:
        with trio.move_on_after(0.01):
            await cluster.sleep(1)
        twin = cluster.world.copy()
        twin.crash("b1")
        twin.run_for(20 * SECOND_US)
        assert twin.view().leader("orders") == "b2"
        assert cluster.view.leader("orders") == "b1"
        before = cluster.now
        await cluster.sleep(1)
        assert cluster.now == before + 1

    led(main)


# Time --------------------------------------------------------------------------------------------


def test_sleep_and_wait_for_take_virtual_time() -> None:
    async def main(cluster: ScriptCluster) -> None:
        begin = cluster.now
        await cluster.sleep(0.25)
        assert cluster.now == begin + 0.25
        await trio.sleep(1)
        await cluster.wait_for(lambda: cluster.now >= begin + 2)
        assert begin + 2 <= cluster.now < begin + 4
        await cluster.wait_for(lambda: cluster.now > 100, within=math.inf)
        with pytest.raises(VerbFailed, match=r"the condition at test_scripts.py:\d+ does not hold"):
            await cluster.wait_for(lambda: False, within=3)
        assert 103 < cluster.now < 104

    led(main)


def test_a_nursery_waits_for_its_scripts_and_they_take_turns() -> None:
    order: list[tuple[str, float]] = []

    async def main(cluster: ScriptCluster) -> None:
        begin = cluster.now

        async def child(name: str, seconds: float) -> None:
            for _ in range(2):
                await cluster.sleep(seconds)
                order.append((name, round(cluster.now - begin, 3)))

        async with cluster.nursery() as nursery:
            nursery.start_soon(child, "a", 0.3)
            nursery.start_soon(child, "b", 0.2)
            await cluster.sleep(0)
            order.append(("main", round(cluster.now - begin, 3)))

    led(main)
    assert order == [("main", 0), ("b", 0.2), ("a", 0.3), ("b", 0.4), ("a", 0.6)]


# Records -----------------------------------------------------------------------------------------


def test_produce_returns_one_outcome_for_each_record_and_consume_reads_them() -> None:
    async def main(cluster: ScriptCluster) -> None:
        outcomes = await cluster.produce("orders", 3)
        assert [(each.kind, each.offset) for each in outcomes] == [
            (OutcomeKind.ACKED, offset) for offset in range(3)
        ]
        await cluster.produce("orders", ["x", b"y"], keys=["k", b"l"], client="p2", batch=2)
        await cluster.produce("orders", 1, acks=1)
        records = await cluster.consume("orders", 6)
        assert _values(records) == ["p1-0", "p1-1", "p1-2", "x", "y", "p1-3"]
        assert [record.key for record in records[3:5]] == [b"k", b"l"]
        assert sorted(cluster.world.producers) == ["p1", "p1.2", "p2"]

    led(main)


def test_what_nobody_can_append_is_rejected_and_raises_nothing() -> None:
    async def main(cluster: ScriptCluster) -> None:
        begin = cluster.now
        for topic, partition in (("nope", 0), ("orders", 5)):
            found = await cluster.produce(topic, 1, partition=partition, timeout=2)
            assert [(each.kind, each.error_code.name) for each in found] == [
                (OutcomeKind.REJECTED, "UNKNOWN_TOPIC_OR_PARTITION")
            ]
        assert round(cluster.now - begin) == 4

    led(main)


def test_a_consumer_reads_each_partition_for_itself_from_where_it_stands() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.create_topic("two", partitions=2)
        await cluster.produce("orders", list("abcdef"))
        await cluster.produce("two", list("uv"))
        await cluster.produce("two", list("xyz"), partition=1)
        assert _values(await cluster.consume("orders", 2)) == ["a", "b"]
        assert _values(await cluster.consume("two", 2, partition=1)) == ["x", "y"]
        assert _values(await cluster.consume("two", 2)) == ["u", "v"]
        assert _values(await cluster.consume("orders", 2)) == ["c", "d"]
        assert _values(await cluster.consume("orders", 1, offset=1)) == ["b"]
        assert _values(await cluster.consume("two", 1, partition=1)) == ["z"]
        assert _values(await cluster.consume("orders", 6, client="k2")) == list("abcdef")
        begin = cluster.now
        assert _values(await cluster.consume("orders", 2)) == ["c", "d"]
        assert cluster.now == begin  # they had been fetched
        with pytest.raises(
            VerbFailed, match="3 records of two-0 is not done after 2 s: 0 are read"
        ):
            await cluster.consume("two", 3, within=2)

    led(main)


def test_scripts_share_a_consumer_and_each_record_goes_to_one_of_them() -> None:
    got: dict[str, list[str]] = {}

    async def main(cluster: ScriptCluster) -> None:
        async def reader(name: str, count: int) -> None:
            got[name] = _values(await cluster.consume("orders", count))

        async with cluster.nursery() as nursery:
            nursery.start_soon(reader, "a", 2)
            nursery.start_soon(partial(reader, "b", count=3))
            await cluster.produce("orders", list("12345"))

    led(main)
    assert got == {"a": ["1", "2"], "b": ["3", "4", "5"]}


def test_records_go_on_in_a_client_that_was_started_again() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 2)
        assert len(await cluster.consume("orders", 1)) == 1
        for client in ("p1", "k1"):
            cluster.crash(client)
            cluster.start(client)
        assert [each.offset for each in await cluster.produce("orders", 2)] == [2, 3]
        assert _values(await cluster.consume("orders", 4)) == [f"p1-{at}" for at in range(4)]
        cluster.crash("k1")
        cluster.start("k1")
        assert _values(await cluster.consume("orders", 1, offset=2)) == ["p1-2"]

    led(main)


def test_outcomes_that_a_client_took_with_it_are_unknown() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 1)
        cluster.crash("b2")
        cluster.crash("b3")
        found: list[OutcomeKind] = []

        async def writer() -> None:
            found.extend(each.kind for each in await cluster.produce("orders", 2))

        async with cluster.nursery() as nursery:
            nursery.start_soon(writer)
            await cluster.sleep(1)
            cluster.crash("p1")
        assert found == [OutcomeKind.UNKNOWN] * 2

    led(main)


# Topics and the operator -------------------------------------------------------------------------


def test_topics_are_created_configured_and_deleted() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.create_topic("two", partitions=2, replicas=2)
        found = [cluster.view.partition("two", number) for number in (0, 1)]
        assert [len(each.replicas) for each in found if each is not None] == [2, 2]
        assert cluster.view.is_led("two")
        await cluster.configure("two", {"max.message.bytes": "100"})
        await cluster.sleep(1)
        rejected = await cluster.produce("two", ["x" * 100])
        assert rejected[0].error_code.name == "MESSAGE_TOO_LARGE"
        await cluster.configure("two", {"max.message.bytes": None})
        await cluster.sleep(1)
        assert (await cluster.produce("two", 1))[0].kind is OutcomeKind.ACKED
        await cluster.delete_topic("two")
        assert cluster.view.partition("two") is None

    led(main)


def test_elections_reassignments_and_deletions() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 4)
        await cluster.elect("orders", to="b3")
        assert cluster.view.leader("orders") == "b3"
        await cluster.sleep(2)
        await cluster.elect("orders")
        assert cluster.view.leader("orders") == "b1"
        with pytest.raises(VerbFailed, match="elect orders-0: orders-0 ELECTION_NOT_NEEDED"):
            await cluster.elect("orders")
        await cluster.sleep(2)
        await cluster.delete_records("orders", before=3)
        assert _values(await cluster.consume("orders", 1)) == ["p1-3"]
        await cluster.reassign("orders", replicas=["b2", "b3"])
        await cluster.wait_for(lambda: cluster.view.leader("orders") in ("b2", "b3"))

    led(main)


def test_an_unclean_election_is_forced_while_the_leader_is_cut_off() -> None:
    async def main(cluster: ScriptCluster) -> None:
        cluster.crash("b2")
        cluster.crash("b3")
        await cluster.wait_for(lambda: cluster.view.isr("orders") == ("b1",))
        cluster.crash("b1")
        cluster.start("b2")
        await cluster.wait_for(lambda: cluster.view.leader("orders") is None)
        await cluster.sleep(5)
        await cluster.elect("orders", kind="unclean")
        assert cluster.view.leader("orders") == "b2"

    led(main)


# Faults ------------------------------------------------------------------------------------------


def test_crash_start_pause_resume_and_shutdown() -> None:
    async def main(cluster: ScriptCluster) -> None:
        view = cluster.view
        cluster.crash("b2")
        cluster.crash("b3", "power", image="kept")
        assert (view.status("b2"), view.status("b3")) == ("down", "off")
        cluster.start("b2")
        cluster.start("b3", disk="wiped")
        assert view.running() == ["b1", "b2", "b3"]
        cluster.pause("b2")
        assert view.status("b2") == "paused"
        cluster.resume("b2")
        await cluster.sleep(20)
        await cluster.shutdown("b1")
        assert view.status("b1") == "down"
        assert cluster.view.leader("orders") == "b2"
        cluster.pause("b2")
        with pytest.raises(VerbFailed, match="shutdown of b2 is not done after 5 s: it is paused"):
            await cluster.shutdown("b2", within=5)

    led(main)


def test_cut_partition_and_heal() -> None:
    async def main(cluster: ScriptCluster) -> None:
        one = cluster.cut("b1", "b2", only=["Fetch"])
        two = cluster.cut("b1", "b3", both=True, fault_id="mine")
        three = cluster.partition(["b1"], ["b2", "b3", "c1"])
        assert (one, two, three) == ("cut-1", "mine", "partition-1")
        assert sorted(cluster.world.active_faults) == ["cut-1", "mine", "partition-1"]
        await cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")
        cluster.heal(one)
        assert sorted(cluster.world.active_faults) == ["mine", "partition-1"]
        cluster.heal()
        assert not cluster.world.active_faults
        assert cluster.cut("b1", "b2") == "cut-2"
        cluster.heal()
        await cluster.wait_for(lambda: len(cluster.view.isr("orders")) == 3)

    led(main)


def test_verbs_are_events_that_name_their_causes() -> None:
    world = new_world()

    async def main(cluster: ScriptCluster) -> None:
        await cluster.create_topic("t")
        await cluster.produce("t", 1)
        await cluster.consume("t", 1)
        cluster.heal(cluster.cut("b1", "b2"))

    run_in(world, main)
    kinds = [Kind.STEP, Kind.PRODUCE, Kind.ACK, Kind.STEP, Kind.POLL, Kind.FAULT, Kind.HEAL]
    found = events(world, *kinds)
    assert [each.kind for each in found] == kinds
    assert list(found[-1].cause) == [found[-2].n]


def test_what_a_script_wants_beyond_verbs_is_in_its_world() -> None:
    async def main(cluster: ScriptCluster) -> None:
        assert isinstance(cluster.world, World)
        cluster.world.copy_disk("b3", "before")
        await cluster.produce("orders", 3)
        await cluster.sleep(1)
        cluster.crash("b3")
        cluster.start("b3", disk="before")
        assert cluster.view.log_end("b3", "orders") == 0
        await cluster.wait_for(lambda: cluster.view.log_end("b3", "orders") == 3)

    led(main)
