"""What scripts must not do ends their run with an error that says so, and never hangs it.

Method: each test does one thing that is not allowed, with scripts under way, and looks at the error
and at what is left on the timeline.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import NoReturn

import pytest
import trio
import trio.testing

from sim import baton
from sim.timeline import EventClass, Timeline, Token
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


# The end of a run that failed ------------------------------------------------------------------


async def _shielded_sleep() -> None:
    with trio.CancelScope(shield=True):
        await trio.sleep(3_600)


async def _shielded_event() -> None:
    with trio.CancelScope(shield=True):
        await trio.Event().wait()


async def _shielded_world() -> None:
    with trio.CancelScope(shield=True):
        await baton.wait_for(lambda: False)


async def _stubborn() -> None:
    while True:
        try:
            await baton.sleep_us(10)
        except (trio.Cancelled, baton.BatonError):
            continue


async def _stubborn_and_shielded() -> None:
    with trio.CancelScope(shield=True):
        await _stubborn()


async def _stubborn_in_nursery() -> None:
    async with baton.nursery():
        await _stubborn()


async def _hopeless_in_nursery() -> None:
    async with baton.nursery():
        for _ in range(5_000):
            try:
                await baton.sleep_us(10)
            except BaseException:  # noqa: BLE001
                continue


_STUBBORN = [_stubborn, _stubborn_and_shielded, _stubborn_in_nursery, _hopeless_in_nursery]


@pytest.mark.parametrize(
    ("main", "is_free"),
    [
        *[(main, False) for main in (_shielded_sleep, _shielded_event, _shielded_world)],
        *[(main, True) for main in (_shielded_sleep, _shielded_event)],
        *[(main, False) for main in _STUBBORN],
    ],
)
@pytest.mark.filterwarnings("ignore:.*_hopeless_in_nursery:pytest.PytestUnraisableExceptionWarning")
def test_a_wait_that_cannot_be_cancelled_does_not_hold_the_end(
    main: Main, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.baton_run._PATIENCE", 100)
    world = FakeWorld()

    def fails() -> NoReturn:
        raise LookupError("the world's")

    async def company() -> None:
        world.timeline.at(35, EventClass.FAULT, "world", fails)
        async with baton.nursery() as nursery, trio.open_nursery() as other:
            if is_free:
                other.start_soon(main)
            else:
                nursery.start_soon(main)

    with pytest.raises(LookupError, match="the world's"):
        baton.run_script(world, company)
    assert world.now_us == 35
    assert len(world.timeline) == 0


def test_a_wait_that_is_cut_does_not_go_on() -> None:
    world = FakeWorld()

    async def main() -> None:
        try:
            await _shielded_event()
            world.note("went on")
        except baton.BatonError as error:
            world.note(error)

    with pytest.raises(baton.Deadlock):
        baton.run_script(world, main)
    what = "test_a_wait_that_is_cut_does_not_go_on.<locals>.main"
    assert world.log == [(0, f"the run has ended, and script 1 {what!r} still waits")]


@pytest.mark.parametrize("by", ["entry", "watcher"])
def test_scripts_whose_turn_has_come_when_a_step_raises_go_on(by: str) -> None:
    world = FakeWorld()
    event = trio.Event()

    def fails() -> None:
        if event.is_set():
            raise LookupError("the world's")

    async def child() -> None:
        await event.wait()
        world.note("woken")

    async def main() -> None:
        async with baton.nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(child)
            await baton.sleep_us(100)
            event.set()
            if by == "entry":
                world.timeline.at(100, EventClass.FAULT, "world", fails)
            else:
                world.watchers.append(fails)

    with pytest.raises(LookupError, match="the world's"):
        baton.run_script(world, main)
    assert world.log == [(100, "woken")] * 3


def test_an_interrupt_while_scripts_end_does_not_hold_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The signal comes while the driver is at work: it takes wake-ups off the timeline."""
    world = FakeWorld()
    signals = []
    cancel = Timeline.cancel

    def fails() -> NoReturn:
        signals.append(signal.SIGINT)
        raise LookupError("the world's")

    def interrupted(timeline: Timeline, token: Token) -> None:
        cancel(timeline, token)
        if signals:
            signal.raise_signal(signals.pop())

    monkeypatch.setattr(Timeline, "cancel", interrupted)

    async def main() -> None:
        world.timeline.at(5, EventClass.FAULT, "world", fails)
        async with baton.nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(baton.sleep_us, 100)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            baton.run_script(world, main)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(world.timeline) == 0


def test_what_main_raises_while_it_is_cancelled_is_noted() -> None:
    async def main() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise LookupError("mine")

    with pytest.raises(baton.Deadlock) as caught:
        baton.run_script(FakeWorld(), main)
    assert caught.value.__notes__ == ["the main script then raised LookupError('mine')"]


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


def test_a_script_that_steps_the_world_over_another_one_is_an_error() -> None:
    world = FakeWorld()

    async def main() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(baton.sleep_us, 10, name="sleeper")
            await baton.sleep_us(5)
            world.step()

    with pytest.raises(ExceptionGroup) as caught:
        baton.run_script(world, main)
    assert caught.group_contains(
        baton.Misuse, match="script 1 .* steps the world, which wakes script 2 'sleeper'"
    )


def test_what_is_not_async_is_an_error_of_the_script() -> None:
    with pytest.raises(TypeError, match="await"):
        baton.run_script(FakeWorld(), list)


def test_an_awaitable_of_asyncio_gets_the_error_of_trio() -> None:
    import asyncio

    with pytest.raises(TypeError, match="asyncio"):
        baton.run_script(FakeWorld(), asyncio.sleep, 0)


# Processes -------------------------------------------------------------------------------------

_CANCELLED_AT_ONCE = """
import os, random
import trio
import trio.testing
from sim import baton
from sim.draws import Draws
from sim.schedulers import Pct
from tests.sim.fake_world import FakeWorld

rng = random.Random(os.environ["PYTHONHASHSEED"])
ballast = []
world = FakeWorld()
counting = FakeWorld(Pct(Draws(1), depth=60, entries=200))
plain = []

def shift():
    # Tasks get other addresses, by which sets order them.
    ballast.extend(bytes(rng.randrange(600)) for _ in range(rng.randrange(8)))

async def child(world, name):
    try:
        await (baton.sleep_us(1_000) if name % 3 else trio.sleep_forever())
    finally:
        world.note(name)

async def main(world):
    with trio.move_on_after(0.0001):
        async with baton.nursery() as nursery:
            for name in range(40):
                shift()
                nursery.start_soon(child, world, name)

async def abort(name):
    def note(_):
        plain.append(name)
        return trio.lowlevel.Abort.SUCCEEDED
    await trio.lowlevel.wait_task_rescheduled(note)

async def bare():
    async with trio.open_nursery() as nursery:
        for name in range(40):
            shift()
            nursery.start_soon(abort, name)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()

baton.run_script(world, main, world)
baton.run_script(counting, main, counting)
trio.run(bare)
print(world.log)
print(counting.log)
print(plain)
"""


@pytest.mark.slow
def test_the_order_of_a_set_of_trio_does_not_reach_the_world() -> None:
    """The last order is that in which bare trio aborts: it differs, so it could have leaked.

    The second is that under a scheduler that counts entries, so it shows the order of entering.
    """
    outputs = [
        subprocess.run(
            [sys.executable, "-c", _CANCELLED_AT_ONCE],
            cwd=Path(__file__).parents[2],
            env={"PYTHONHASHSEED": str(seed), "PYTHONPATH": "."},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for seed in range(6)
    ]
    assert {log for log, _, _ in outputs} == {str([(100, str(name)) for name in range(40)])}
    assert len({counted for _, counted, _ in outputs}) == 1
    assert len({plain for _, _, plain in outputs}) > 1
