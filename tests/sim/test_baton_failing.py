"""A run that failed ends all its scripts, whatever they wait for, and tells why it failed.

Method: the world raises, or nothing is to come, while a script waits in a way that is hard to end.
"""

from __future__ import annotations

import contextlib
import inspect
import signal
from collections.abc import Awaitable, Callable
from typing import NoReturn

import pytest
import trio

from sim import baton
from sim.timeline import EventClass, Timeline, Token
from tests.sim.fake_world import FakeWorld

Main = Callable[[], Awaitable[object]]


def _fail() -> NoReturn:
    raise LookupError("the world's")


async def _await(awaitable: Awaitable[object]) -> None:
    await awaitable


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
    async with baton.nursery(), baton.nursery():
        await _stubborn()


async def _hopeless_in_nursery() -> None:
    async with baton.nursery():
        for _ in range(5_000):
            try:
                await baton.sleep_us(10)
            except BaseException:  # noqa: BLE001
                continue


_STUBBORN = [_stubborn, _stubborn_and_shielded, _stubborn_in_nursery]


@pytest.mark.parametrize(
    ("main", "is_free"),
    [
        *[(main, False) for main in (_shielded_sleep, _shielded_event, _shielded_world)],
        *[(main, True) for main in (_shielded_sleep, _shielded_event)],
        *[(main, False) for main in _STUBBORN],
    ],
)
def test_a_wait_that_cannot_be_cancelled_does_not_hold_the_end(
    main: Main, is_free: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.baton_run._PATIENCE", 100)
    world = FakeWorld()

    async def company() -> None:
        world.timeline.at(35, EventClass.FAULT, "world", _fail)
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


@pytest.mark.parametrize("culprit", [_stubborn_in_nursery, _hopeless_in_nursery])
def test_a_main_script_that_is_given_up_does_not_hide_why(culprit: Main) -> None:
    """trio complains about a nursery that is left open; what ended the run comes out all the same.

    The coroutine is kept, so that nobody but the run closes it.
    """
    coroutine = culprit()
    assert inspect.iscoroutine(coroutine)
    world = FakeWorld()
    world.timeline.at(35, EventClass.FAULT, "world", _fail)
    with pytest.raises(LookupError, match="the world's"):
        baton.run_script(world, _await, coroutine)
    assert len(world.timeline) == 0
    state = inspect.getcoroutinestate(coroutine)
    assert (state == inspect.CORO_CLOSED) == (culprit is _stubborn_in_nursery)
    with contextlib.suppress(BaseException):
        coroutine.close()


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
