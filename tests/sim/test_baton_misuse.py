"""What scripts must not do ends their run with an error that says so, and never hangs it.

Method: each test does one thing that is not allowed, with scripts under way, and looks at the error
and at what is left on the timeline.
"""

from __future__ import annotations

import copy
import socket
import sys
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
import trio
import trio.testing

from sim import baton
from sim.timeline import EventClass
from tests.sim.fake_world import FakeWorld

Main = Callable[[], Awaitable[object]]


def _with_company(world: FakeWorld, main: Main) -> None:
    """Run a script as number 2, besides one that sleeps and one that is started last."""

    async def company() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(main, name="culprit")
            nursery.start_soon(baton.sleep_us, 1_000)

    try:
        baton.run_script(world, company)
    finally:
        assert len(world.timeline) == 0


# Waiting for something real --------------------------------------------------------------------


async def _in_thread() -> None:
    await trio.to_thread.run_sync(time.sleep, 3_600)


async def _in_abandoned_thread() -> None:
    await trio.to_thread.run_sync(time.sleep, 3_600, abandon_on_cancel=True)


async def _open_file() -> None:
    async with await trio.open_file(__file__) as file:
        await file.read()


async def _stat_path() -> None:
    await trio.Path(__file__).stat()


async def _run_process() -> None:
    await trio.run_process([sys.executable, "-c", "pass"])


async def _look_up_host() -> None:
    await trio.socket.getaddrinfo("localhost.invalid", 80)


async def _receive() -> None:
    left, right = trio.socket.socketpair()
    with left, right:
        await left.recv(1)


async def _send_without_waiting() -> None:
    left, right = trio.socket.socketpair()
    with left, right:
        await left.send(b"x")


async def _wait_readable() -> None:
    left, right = socket.socketpair()
    with left, right:
        await trio.lowlevel.wait_readable(left)


async def _wait_all_tasks_blocked() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def _in_finally() -> None:
    try:
        await baton.sleep_us(5)
    finally:
        await trio.Path(__file__).stat()


async def _in_generator() -> None:
    async def generator():  # type: ignore[no-untyped-def]
        await trio.Path(__file__).stat()
        yield 1

    async for _ in generator():
        pass


@pytest.mark.parametrize(
    ("main", "what"),
    [
        (_in_thread, "to_thread_run_sync"),
        (_in_abandoned_thread, "to_thread_run_sync"),
        (_open_file, "open_file"),
        (_stat_path, "to_thread_run_sync"),
        (_run_process, "run_process"),
        (_look_up_host, "getaddrinfo"),
        (_receive, "_SocketType."),
        (_send_without_waiting, "_SocketType."),
        (_wait_readable, "wait_readable"),
        (_wait_all_tasks_blocked, "wait_all_tasks_blocked"),
        (_in_finally, "to_thread_run_sync"),
        (_in_generator, "to_thread_run_sync"),
    ],
)
def test_a_real_wait_is_an_error_that_names_task_place_and_call(main: Main, what: str) -> None:
    threads = threading.active_count()
    with pytest.raises(baton.RealWait) as caught:
        _with_company(FakeWorld(), main)
    text = str(caught.value)
    assert text.startswith("script 2 'culprit' waits for ")
    assert what in text
    assert f"{__file__}:" in text
    assert threading.active_count() == threads


def test_a_real_wait_names_the_line() -> None:
    line = _stat_path.__code__.co_firstlineno + 1
    with pytest.raises(baton.RealWait, match=f"misuse.py:{line}, which is not of the world"):
        baton.run_script(FakeWorld(), _stat_path)


def test_a_thread_of_a_limiter_of_its_own_does_not_hold_the_run() -> None:
    release = threading.Event()

    async def main() -> None:
        limiter = trio.CapacityLimiter(1)
        await trio.to_thread.run_sync(release.wait, limiter=limiter)

    try:
        with pytest.raises(baton.RealWait, match="to_thread_run_sync"):
            _with_company(FakeWorld(), main)
    finally:
        release.set()


def test_a_real_wait_in_a_nursery_of_trio_is_found() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_receive)

    with pytest.raises(baton.RealWait, match=r"task '.*_receive' waits for _SocketType\."):
        _with_company(FakeWorld(), main)


# Two tasks of trio -----------------------------------------------------------------------------


async def _sleep_twice(world: FakeWorld, name: str) -> None:
    await trio.sleep(0.001)
    world.note(name)
    await trio.sleep(0.001)
    world.note(name)


def test_one_task_of_a_nursery_of_trio_is_fine() -> None:
    world = FakeWorld()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sleep_twice, world, "task")
            await baton.sleep_us(1_500)
            world.note("main")

    baton.run_script(world, main)
    assert world.log == [(1_000, "task"), (1_500, "main"), (2_000, "task")]


def test_two_tasks_that_wait_to_run_at_once_are_an_error_that_names_both() -> None:
    world = FakeWorld()

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_sleep_twice, world, "a", name="first")
            await baton.sleep_us(0)
            nursery.start_soon(_sleep_twice, world, "b", name="second")

    with pytest.raises(baton.TwoRunnable, match=r"'(first|second)' and '(first|second)'") as caught:
        _with_company(world, main)
    assert "sim.baton.nursery()" in str(caught.value)
    assert {"'first'", "'second'"} <= set(str(caught.value).split())


def test_two_tasks_started_at_once_are_an_error() -> None:
    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep, 1, name="first")
            nursery.start_soon(trio.sleep, 2, name="second")

    with pytest.raises(baton.TwoRunnable, match="'first' and 'second'"):
        baton.run_script(FakeWorld(), main)


# Going nowhere ---------------------------------------------------------------------------------


def test_a_deadlock_names_each_that_waits_and_what_for() -> None:
    async def main() -> None:
        send, receive = trio.open_memory_channel[int](0)
        async with baton.nursery() as nursery:
            nursery.start_soon(trio.Event().wait, name="event")
            nursery.start_soon(receive.receive, name="channel")
            nursery.start_soon(baton.wait_for, lambda: False, name="predicate")
            async with trio.open_nursery() as other:
                other.start_soon(trio.sleep_forever, name="trio's")
        send.close()

    world = FakeWorld()
    world.later(7, "last")
    with pytest.raises(baton.Deadlock) as caught:
        baton.run_script(world, main)
    first, *lines = str(caught.value).splitlines()
    assert first == "nothing is to come after 7 us, and these wait:"
    assert not hasattr(caught.value, "__notes__")
    for line, (who, what) in zip(
        lines,
        [
            ("script 1 ", f"trio at {__file__}:"),
            ("script 2 'event' waits for ", "Event.wait of trio"),
            ("script 3 'channel' waits for ", "MemoryReceiveChannel.receive of trio"),
            ("script 4 'predicate' waits for ", "wait_for of baton"),
            ('task "trio\'s" waits for ', "sleep_forever of trio"),
        ],
        strict=True,
    ):
        assert line.startswith(f"  {who}")
        assert what in line


@pytest.mark.parametrize("is_free", [False, True])
def test_a_loop_that_lets_no_time_pass_is_an_error(
    is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.baton_watch.STILL_MAX", 500)

    async def loop() -> None:
        while True:
            await trio.sleep(0)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            if is_free:
                nursery.start_soon(loop)
            else:
                await loop()

    world = FakeWorld()
    world.later(1, "not reached")
    with pytest.raises(baton.StandsStill, match="woken 500 times at 0 us"):
        baton.run_script(world, main)
    assert world.log == []


def test_many_wake_ups_are_fine_as_long_as_time_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.baton_watch.STILL_MAX", 10)

    async def main() -> None:
        for _ in range(20):
            for _ in range(4):
                await baton.sleep_us(0)
            await baton.sleep_us(1)

    baton.run_script(FakeWorld(), main)


# Calls where they are not allowed --------------------------------------------------------------


def test_the_baton_is_for_scripts_only() -> None:
    world = FakeWorld()

    async def free() -> None:
        for call in (baton.sleep_us(1), baton.wait_for(list), baton.nursery().__aenter__()):
            with pytest.raises(baton.Misuse, match=r"is for scripts, and task '.*free' is none"):
                await call
        world.note("tried")

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(free)

    baton.run_script(world, main)
    assert world.log == [(0, "tried")]


def test_a_callback_of_the_world_is_no_script() -> None:
    world = FakeWorld()

    async def main() -> None:
        async with baton.nursery() as nursery:
            world.timeline.at(1, EventClass.TIMER, "world", nursery.start_soon, trio.sleep, 1)
            await baton.sleep_us(5)

    with pytest.raises(baton.Misuse, match="start_soon is for scripts"):
        baton.run_script(world, main)


def test_the_baton_works_only_during_a_run() -> None:
    kept: list[baton.Nursery] = []

    async def main() -> None:
        async with baton.nursery() as nursery:
            kept.append(nursery)
        with pytest.raises(baton.Misuse, match="closed to new arrivals"):
            nursery.start_soon(trio.sleep, 1)

    baton.run_script(FakeWorld(), main)
    with pytest.raises(baton.Misuse, match="used after its run ended"):
        kept[0].start_soon(trio.sleep, 1)
    with pytest.raises(baton.Misuse, match="used before its 'async with' block"):
        baton.nursery().start_soon(trio.sleep, 1)
    waits = baton.sleep_us(1)
    with pytest.raises(baton.Misuse, match="sleep_us works only while run_script runs"):
        waits.send(None)
    with pytest.raises(baton.Misuse, match="this is another run of trio"):
        trio.run(baton.sleep_us, 1)


def test_runs_do_not_nest() -> None:
    async def main() -> None:
        with pytest.raises(baton.Misuse, match="cannot be nested"):
            baton.run_script(FakeWorld(), trio.sleep, 1)

    baton.run_script(FakeWorld(), main)
    trio.run(main)


def test_a_script_that_steps_the_world_is_an_error() -> None:
    world = FakeWorld()
    world.later(20, "not reached")

    async def steps() -> None:
        world.step()

    async def advances() -> None:
        world.timeline.advance(10)

    async def free() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(steps)

    for main in (steps, advances):
        with pytest.raises(baton.Misuse, match=r"script 1 .* steps the world, which stands still"):
            baton.run_script(world, main)
    with pytest.raises(ExceptionGroup) as caught:
        baton.run_script(world, free)
    assert caught.group_contains(baton.Misuse, match="a task steps the world")
    assert (world.now_us, world.log) == (0, [])
    assert world.step()


def test_nothing_of_scripts_is_left_in_the_world_behind_them() -> None:
    """Timeouts that were not needed lie behind other entries of the timeline."""
    world = FakeWorld()
    world.later(5, "early")

    async def main() -> None:
        await baton.wait_for(lambda: True, within_us=1_000)
        with trio.move_on_after(0.000_001):
            await baton.sleep_us(1_000)

    baton.run_script(world, main)
    assert copy.deepcopy(world.timeline).next_us() == 5
    assert world.timeline.driver is None


def test_scripts_that_wait_for_each_other_for_an_hour_are_an_error() -> None:
    """The world goes on for ever, as one with heartbeats does; a watcher may wake them before."""
    world = FakeWorld()
    world.tick(1_000_000, 10**9)
    event = trio.Event()
    world.timeline.at(3_599_000_000, EventClass.TIMER, "world", event.set)

    async def main() -> None:
        await event.wait()
        async with baton.nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            await baton.sleep_us(10)

    with pytest.raises(baton.Deadlock, match="for 3600 s no script waited for the world") as caught:
        baton.run_script(world, main)
    assert "sleep_forever of trio" in str(caught.value)
    assert 7_199 <= world.now_us // 1_000_000 <= 7_201


def test_an_async_predicate_and_a_coroutine_for_a_function_are_errors() -> None:
    async def predicate() -> bool:
        return True

    with pytest.raises(TypeError, match="a predicate is async, allowed is a plain function"):
        baton.run_script(FakeWorld(), baton.wait_for, predicate)
    with pytest.raises(TypeError, match="allowed is the function itself: main, not main"):
        baton.run_script(FakeWorld(), predicate())  # type: ignore[arg-type]


def test_what_is_not_async_is_an_error_of_the_script() -> None:
    with pytest.raises(TypeError, match="await"):
        baton.run_script(FakeWorld(), list)


def test_an_awaitable_of_asyncio_gets_the_error_of_trio() -> None:
    import asyncio

    with pytest.raises(TypeError, match="asyncio"):
        baton.run_script(FakeWorld(), asyncio.sleep, 0)
