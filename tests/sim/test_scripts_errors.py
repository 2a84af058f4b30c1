"""What goes wrong in scripts comes out as it is, in words that say what is wrong.

Method: each test does one thing that cannot be done; the table of texts is the specification.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import trio

from cluster.broker import Broker
from cluster.message import Message
from cluster.names import Now
from sim import baton
from sim.cluster_config import ClusterConfig
from sim.pending import VerbFailed
from sim.scripts import ScriptCluster, WorldError, run, run_in
from sim.world import World
from tests.sim.test_scripts import led
from tests.sim.worlds import SECOND_US, led_world

Script = Callable[[ScriptCluster], Awaitable[Any]]


# What cannot be done -----------------------------------------------------------------------------

_TABLE: list[tuple[type[Exception], str, Callable[[ScriptCluster], object]]] = [
    (WorldError, "node is None: a partition that nobody leads", lambda c: c.crash(None)),
    (WorldError, "node is None: a partition that nobody leads", lambda c: c.shutdown(None)),
    (WorldError, "node is 'b9', there are c1, b1, b2, b3, admin", lambda c: c.crash("b9")),
    (WorldError, "how is 'axe', allowed are process, power", lambda c: c.crash("b1", "axe")),
    (WorldError, "b1 is running already", lambda c: c.start("b1")),
    (WorldError, "b1 is running, not paused", lambda c: c.resume("b1")),
    (WorldError, "admin is the operator, whom nothing strikes", lambda c: c.pause("admin")),
    (WorldError, "admin is the operator, whom nothing strikes", lambda c: c.crash("admin")),
    (WorldError, "node is 'b9', there are", lambda c: c.cut("b1", "b9")),
    (WorldError, r"only is 'Fetch', allowed is a list", lambda c: c.cut("b1", "b2", only="Fetch")),
    (WorldError, "only of Cut 'cut-1' is 'X'", lambda c: c.cut("b1", "b2", only=["X"])),
    (WorldError, "in_flight of Cut 'cut-1'", lambda c: c.cut("b1", "b2", in_flight="x")),
    (TypeError, "cut has no option 'bot', allowed are only, both, in_flight, fault_id",
     lambda c: c.cut("b1", "b2", bot=True)),  # type: ignore[call-arg]
    (WorldError, r"a group is 'b1', allowed is a list of names", lambda c: c.partition("b1", "b2")),
    (WorldError, "groups are .*, allowed are two or more", lambda c: c.partition(["b1"])),
    (WorldError, "'b1' is twice", lambda c: c.partition(["b1"], ["b1", "b2"])),
    (TypeError, "partition has no option 'only', allowed are in_flight, fault_id",
     lambda c: c.partition(["b1"], ["b2"], only=["Fetch"])),  # type: ignore[call-arg]
    (WorldError, "fault is 'x', active are all$", lambda c: c.heal("x")),
    (WorldError, "node is 'b9', there are", lambda c: c.view.status("b9")),
    (WorldError, "node is 'b9', there are", lambda c: c.view.log_end("b9", "orders")),
    # Topics and the operator
    (WorldError, "replicas is 4, allowed is 1..3: one a broker",
     lambda c: c.create_topic("t", replicas=4)),
    (WorldError, "replicas are .'b1', 'b1'., allowed is each once of b1, b2, b3",
     lambda c: c.create_topic("t", assignments=[["b1", "b1"]])),
    (WorldError, r"replicas is 'b1', allowed is a list of names",
     lambda c: c.create_topic("t", assignments=["b1"])),
    (WorldError, "'min.insync' is no topic config, allowed are cleanup.policy, ",
     lambda c: c.create_topic("t", config={"min.insync": "1"})),
    (WorldError, "min.insync.replicas is 1, allowed is text: '1'",
     lambda c: c.create_topic("t", config={"min.insync.replicas": 1})),  # type: ignore[dict-item]
    (VerbFailed, "create topic orders: orders TOPIC_ALREADY_EXISTS",
     lambda c: c.create_topic("orders")),
    (VerbFailed, "create topic a b: a b INVALID_TOPIC_EXCEPTION", lambda c: c.create_topic("a b")),
    (VerbFailed, "delete topic t: t UNKNOWN_TOPIC_OR_PARTITION", lambda c: c.delete_topic("t")),
    (WorldError, "segment.bytes is 'x', allowed is an integer",
     lambda c: c.configure("orders", {"segment.bytes": "x"})),
    (WorldError, "there is no partition t-0 now, there are orders-0", lambda c: c.elect("t")),
    (WorldError, "there is no partition orders-1 now, there are", lambda c: c.elect("orders", 1)),
    (WorldError, "to is 'b9', allowed are b1, b2, b3", lambda c: c.elect("orders", to="b9")),
    (WorldError, "kind is 'odd', allowed are preferred, unclean",
     lambda c: c.elect("orders", kind="odd")),
    (WorldError, "kind is 'preferred', allowed with a leader named is unclean",
     lambda c: c.elect("orders", kind="preferred", to="b2")),
    (WorldError, "replicas is 'b1', allowed is a list of names",
     lambda c: c.reassign("orders", replicas="b1")),
    (VerbFailed, "reassign orders-0: orders-0 INVALID_REPLICA_ASSIGNMENT",
     lambda c: c.reassign("orders", replicas=["b9"])),
    (WorldError, "there is no partition t-0 now", lambda c: c.delete_records("t")),
    # Records
    (TypeError, "produce has no option 'ack', allowed are acks, partition, keys, batch, timeout, ",
     lambda c: c.produce("orders", 1, ack=1)),  # type: ignore[call-arg]
    (TypeError, "consume has no option 'offsets', allowed are partition, offset, reset, ",
     lambda c: c.consume("orders", 1, offsets=1)),  # type: ignore[call-arg]
    (WorldError, "acks is 2, allowed are 'all', 1, 0", lambda c: c.produce("orders", 1, acks=2)),
    (WorldError, "acks is 1, idempotence needs -1",
     lambda c: c.produce("orders", 1, acks=1, idempotence=True)),
    (WorldError, "batch_max_records is 0, allowed is 1", lambda c: c.produce("orders", 1, batch=0)),
    (WorldError, "timeout is 100 us, allowed is 1 ms or more",
     lambda c: c.produce("orders", 1, timeout=0.0001)),
    (ValueError, "timeout is -1, allowed is 0 or more seconds",
     lambda c: c.produce("orders", 1, timeout=-1)),
    (WorldError, r"values is -1, allowed are how many", lambda c: c.produce("orders", -1)),
    (WorldError, "values is 'abc', allowed are how many", lambda c: c.produce("orders", "abc")),
    (WorldError, "values is b'abc', allowed are how many", lambda c: c.produce("orders", b"abc")),
    (WorldError, "values has 1, allowed are", lambda c: c.produce("orders", [1])),  # type: ignore[list-item]
    (WorldError, "keys is 'k', allowed is a list", lambda c: c.produce("orders", 1, keys="k")),
    (WorldError, "there are 1 keys, allowed are 2: one a value",
     lambda c: c.produce("orders", 2, keys=["k"])),
    (WorldError, "partition is -1, allowed is a number, 0 or more",
     lambda c: c.produce("orders", 1, partition=-1)),
    (WorldError, "client is 'b1', allowed is a name other than",
     lambda c: c.produce("orders", 1, client="b1")),
    (WorldError, "count is -1, allowed is a number, 0 or more", lambda c: c.consume("orders", -1)),
    (WorldError, "offset is -1, allowed is a number", lambda c: c.consume("orders", 1, offset=-1)),
    (WorldError, "partition is '0', allowed is a number",
     lambda c: c.consume("orders", 1, partition="0")),  # type: ignore[arg-type]
    (WorldError, "auto_offset_reset is 'x', allowed are earliest, latest, none",
     lambda c: c.consume("orders", 1, reset="x")),
    (VerbFailed, "consume of 1 records of t-0 is not done after 2 s: 0 are read, there is no parti",
     lambda c: c.consume("t", 1, within=2)),
    # Time
    (TypeError, "holds is False, allowed is a function",
     lambda c: c.wait_for(c.view.leader("orders") == "b2")),  # type: ignore[arg-type]
    (TypeError, "a predicate is async", lambda c: c.wait_for(lambda: c.sleep(1))),
    (TypeError, "seconds is '1', allowed is a number", lambda c: c.sleep("1")),  # type: ignore[arg-type]
    (TypeError, "seconds is None, allowed is a number", lambda c: c.sleep(None)),  # type: ignore[arg-type]
    (TypeError, "seconds is True, allowed is a number", lambda c: c.sleep(True)),
    (ValueError, "seconds is -1, allowed is 0 or more", lambda c: c.sleep(-1)),
    (ValueError, "seconds is nan, allowed is 0 or more", lambda c: c.sleep(math.nan)),
    (ValueError, "seconds is inf, allowed is 0 or more", lambda c: c.sleep(math.inf)),
    (ValueError, "within is -0.5, allowed is 0 or more",
     lambda c: c.wait_for(lambda: True, within=-0.5)),
    (ValueError, "within is nan, allowed is 0 or more",
     lambda c: c.consume("orders", 1, within=math.nan)),
    (TypeError, "within is '9', allowed is a number",
     lambda c: c.shutdown("b1", within="9")),  # type: ignore[arg-type]
]  # fmt: skip


def test_each_thing_that_cannot_be_done_says_so_and_the_script_goes_on() -> None:
    async def main(cluster: ScriptCluster) -> None:
        for kind, text, call in _TABLE:
            with pytest.raises(kind, match=text):
                await _do(call, cluster)
        await cluster.sleep(1)
        assert not cluster.world.active_faults
        assert cluster.view.running() == ["b1", "b2", "b3"]
        outcomes = await cluster.produce("orders", 2)
        assert [outcome.offset for outcome in outcomes] == [0, 1]
        assert [each.value for each in await cluster.consume("orders", 2)] == [b"p1-0", b"p1-1"]

    led(main)


async def _do(call: Callable[[ScriptCluster], object], cluster: ScriptCluster) -> None:
    done = call(cluster)
    if isinstance(done, Awaitable):
        await done


def test_what_is_down_is_not_struck_and_not_asked() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 1)
        await cluster.consume("orders", 1)
        cluster.crash("b1")
        for call in (cluster.crash, cluster.pause):
            with pytest.raises(WorldError, match="b1 is down: no process runs there"):
                call("b1")
        with pytest.raises(WorldError, match="b1 is down: no process runs there"):
            await cluster.shutdown("b1")
        for name in ("p1", "k1"):
            cluster.crash(name)
        with pytest.raises(WorldError, match="p1 is down: no process runs there"):
            await cluster.produce("orders", 1)
        with pytest.raises(WorldError, match="k1 is down: no process runs there"):
            await cluster.consume("orders", 1)

    led(main)


def test_what_is_not_done_in_time_says_how_far_it_is() -> None:
    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 2)
        with pytest.raises(
            VerbFailed, match="5 records of orders-0 is not done after 3 s: 2 are re"
        ):
            await cluster.consume("orders", 5, within=3)
        cluster.pause("k1")
        with pytest.raises(VerbFailed, match="0 are read, k1 is paused"):
            await cluster.consume("orders", 5, within=3, offset=0)
        await cluster.produce("orders", 1, timeout=2)
        cluster.pause("p1.2")
        with pytest.raises(
            VerbFailed, match=r"is not done after 62 s: 0 of 3 outcomes .* is paused"
        ):
            await cluster.produce("orders", 3, timeout=2)
        cluster.crash("c1")
        with pytest.raises(VerbFailed, match="create topic t is not done after 60 s: c1 is down"):
            await cluster.create_topic("t")

    led(main)


# What machines raise -----------------------------------------------------------------------------


class _Brittle(Broker):
    """Fails at the second produce."""

    produces = 0

    def on_message(self, now: Now, src: str, message: Message, fx: Any) -> None:
        if type(message).__name__ == "ProduceRequest":
            self.produces += 1
            if self.produces == 2:
                raise ZeroDivisionError("brittle")
        super().on_message(now, src, message, fx)


@pytest.mark.parametrize("in_nursery", [False, True])
def test_what_a_machine_raises_comes_out_with_where_and_when(in_nursery: bool) -> None:
    seen: list[str] = []

    async def main(cluster: ScriptCluster) -> None:
        await cluster.produce("orders", 1)
        try:
            if in_nursery:
                async with cluster.nursery() as nursery:
                    nursery.start_soon(cluster.sleep, 100)
                    nursery.start_soon(cluster.produce, "orders", 1)
            else:
                await cluster.produce("orders", 1)
        finally:
            seen.append("ended")

    with pytest.raises(ZeroDivisionError, match="brittle") as caught:
        led(main, make_broker=_Brittle)
    (note,) = caught.value.__notes__
    assert note.startswith("in on_message of b1 at event ")
    assert note.endswith(" us, seed 7")
    assert seen == ["ended"]


# Misuse ------------------------------------------------------------------------------------------


async def _thread(cluster: ScriptCluster) -> None:
    await trio.to_thread.run_sync(int)


async def _file(cluster: ScriptCluster) -> None:
    await trio.open_file(__file__)


async def _stat(cluster: ScriptCluster) -> None:
    await trio.Path(__file__).stat()


async def _socket(cluster: ScriptCluster) -> None:
    left, right = trio.socket.socketpair()
    with left, right:
        await left.recv(1)


async def _tcp(cluster: ScriptCluster) -> None:
    await trio.open_tcp_stream("localhost", 1)


@pytest.mark.parametrize("main", [_thread, _file, _stat, _socket, _tcp])
def test_a_real_wait_is_an_error_that_says_so_while_the_world_goes_on(main: Script) -> None:
    async def company(cluster: ScriptCluster) -> None:
        async with cluster.nursery() as nursery:
            nursery.start_soon(cluster.produce, "orders", 10)
            await cluster.sleep(0.001)
            nursery.start_soon(main, cluster, name="culprit")
            nursery.start_soon(cluster.sleep, 100)

    with pytest.raises(
        baton.RealWait, match=r"script 3 'culprit' waits for .*errors.py:\d+, which"
    ):
        led(company)


def test_waits_of_asyncio_are_errors_that_name_it() -> None:
    async def sleeps(cluster: ScriptCluster) -> None:
        await asyncio.sleep(0)

    async def times_out(cluster: ScriptCluster) -> None:
        async with asyncio.timeout(1):
            await cluster.sleep(5)

    with pytest.raises(TypeError, match="asyncio"):
        led(sleeps)
    with pytest.raises(RuntimeError, match="no running event loop"):
        led(times_out)


def test_what_is_no_async_function_is_an_error() -> None:
    async def main(cluster: ScriptCluster) -> None: ...

    def plain(cluster: ScriptCluster) -> None: ...

    with pytest.raises(
        TypeError, match=r"a script is an async function, .* this one returned None"
    ):
        run(plain)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="main is a coroutine, allowed is the function itself"):
        run(main(None))  # type: ignore[arg-type]


def test_a_nursery_of_trio_is_an_error_that_names_the_one_to_use() -> None:
    async def main(cluster: ScriptCluster) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(cluster.sleep, 1)

    with pytest.raises(ExceptionGroup) as caught:
        led(main)
    text = r"sleep is for scripts, and task .* is none: .* which is cluster\.nursery\(\)"
    assert caught.group_contains(baton.Misuse, match=text)


def test_a_cluster_is_of_no_use_outside_of_its_run() -> None:
    kept: list[ScriptCluster] = []

    async def main(cluster: ScriptCluster) -> None:
        kept.append(cluster)
        await cluster.create_topic("t")

    async def outside() -> None:
        for verb in (kept[0].sleep(1), kept[0].produce("t", 1), kept[0].delete_topic("t")):
            with pytest.raises(baton.Misuse, match="and this is another run of trio"):
                await verb

    run(main)
    count = kept[0].world.trace.count
    verb = kept[0].produce("t", 1)
    with pytest.raises(baton.Misuse, match="produce works only while run_script runs"):
        verb.send(None)
    trio.run(outside)
    assert kept[0].world.trace.count == count
    assert kept[0].view.leader("t") is not None
    kept[0].world.run_for(SECOND_US)


def test_a_script_drives_one_world() -> None:
    """Another one may be looked at and stepped, but it has no scripts here."""
    other, _ = led_world()

    async def main(cluster: ScriptCluster) -> None:
        theirs = ScriptCluster(other)
        for verb in (theirs.produce("orders", 1), theirs.elect("orders"), theirs.sleep(1)):
            with pytest.raises(baton.Misuse, match="on the cluster of another world than the one"):
                await verb
        with pytest.raises(baton.Misuse, match="cannot be nested"):
            run_in(other, main)
        other.crash("b1")
        other.run_for(SECOND_US)

    led(main)


def test_a_script_cannot_step_the_world_that_it_runs_in() -> None:
    """Timeouts of others, which stand in trio, would be passed over in silence."""

    async def main(cluster: ScriptCluster) -> None:
        world = cluster.world
        for call in (world.step, lambda: world.run_for(10), lambda: world.run_until(10**9)):
            with pytest.raises(baton.Misuse, match="steps the world, which stands still while"):
                call()
        with pytest.raises(baton.Misuse, match="await sleep or wait_for instead"):
            cluster.verbs.produce("orders", 1).wait()

    led(main)


@pytest.mark.parametrize("wait", ["sleep", "trio", "wait_for", "event"])
def test_a_world_is_not_copied_while_another_script_is_under_way(wait: str) -> None:
    async def waits(cluster: ScriptCluster) -> None:
        if wait == "sleep":
            await cluster.sleep(5)
        elif wait == "trio":
            await trio.sleep(5)
        elif wait == "wait_for":
            await cluster.wait_for(lambda: False)
        else:
            await trio.Event().wait()

    async def main(cluster: ScriptCluster) -> None:
        async with cluster.nursery() as nursery:
            nursery.start_soon(waits, cluster)
            await cluster.sleep(1)
            for call in (cluster.world.copy, cluster.world.state_key):
                with pytest.raises(baton.Misuse, match="cannot be copied while scripts run in it"):
                    call()
            nursery.cancel_scope.cancel()
        cluster.world.copy()

    led(main)


def test_a_watcher_cannot_copy_a_world_in_which_a_script_waits() -> None:
    async def main(cluster: ScriptCluster) -> None:
        cluster.world.watchers.append(World.copy)
        await cluster.sleep(1)

    with pytest.raises(baton.Misuse, match="cannot be copied while scripts run in it"):
        run(main)


def test_a_world_of_real_files_says_that_it_cannot_be_copied(tmp_path: Path) -> None:
    async def main(cluster: ScriptCluster) -> None:
        with pytest.raises(WorldError, match="the files of this world are real"):
            cluster.world.copy()

    run(main, ClusterConfig(), root=tmp_path)


def test_scripts_that_wait_for_each_other_do_not_hang() -> None:
    async def main(cluster: ScriptCluster) -> None:
        async with cluster.nursery() as nursery:
            nursery.start_soon(trio.Event().wait, name="forgotten")

    with pytest.raises(baton.Deadlock, match=r"for 3600 s no script waited .*\n.*\n.*'forgotten'"):
        run(main)
