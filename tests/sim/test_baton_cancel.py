"""Timeouts, cancelled scopes and errors of scripts: what they end, when, and what comes out.

Method: a world that is only a timeline; scripts note in it what they do.
"""

from __future__ import annotations

import copy
import signal
from typing import NoReturn

import pytest
import trio

from sim import baton
from sim.timeline import EventClass, Timeline
from tests.sim.fake_world import FakeWorld

# Cancellation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("wait", ["sleep_us", "wait_for", "trio"])
def test_a_timeout_ends_a_wait_in_time(wait: str) -> None:
    world = FakeWorld()

    async def main() -> None:
        with trio.move_on_after(0.1) as scope:
            if wait == "sleep_us":
                await baton.sleep_us(10**9)
            elif wait == "wait_for":
                await baton.wait_for(lambda: False, within_us=10**9)
            else:
                await trio.sleep_forever()
        assert scope.cancelled_caught
        world.note("moved on")

    baton.run_script(world, main)
    assert world.log == [(100_000, "moved on")]
    assert len(world.timeline) == 0


def test_fail_after_raises_in_virtual_time() -> None:
    world = FakeWorld()

    async def main() -> None:
        with trio.fail_after(0.25):
            await baton.wait_for(lambda: False)

    with pytest.raises(trio.TooSlowError):
        baton.run_script(world, main)
    assert world.now_us == 250_000


def test_a_timeout_wins_over_what_ends_at_the_same_moment() -> None:
    world = FakeWorld()

    async def main() -> bool:
        with trio.move_on_after(0.1) as scope:
            await baton.sleep_us(100_000)
        return scope.cancelled_caught

    assert baton.run_script(world, main)
    assert world.now_us == 100_000


def test_a_timeout_later_than_the_wait_changes_nothing() -> None:
    world = FakeWorld()

    async def main() -> bool:
        with trio.move_on_after(0.1) as scope:
            await baton.sleep_us(99_999)
        return scope.cancelled_caught

    assert not baton.run_script(world, main)
    assert world.now_us == 99_999


def test_a_scope_that_another_script_cancels_wakes_them_by_number() -> None:
    world = FakeWorld()

    async def child(name: str) -> None:
        try:
            await baton.sleep_us(1_000)
        finally:
            world.note(name)

    async def main() -> None:
        async with baton.nursery() as nursery:
            for name in "abcdefghijklm":
                nursery.start_soon(child, name)
            await baton.sleep_us(10)
            nursery.cancel_scope.cancel()
            world.note("cancelled")

    for _ in range(10):
        world = FakeWorld()
        baton.run_script(world, main)
        assert world.log == [(10, "cancelled"), *((10, name) for name in "abcdefghijklm")]
        assert len(world.timeline) == 0


def test_a_wait_in_a_cancelled_scope_is_cancelled_at_once() -> None:
    world = FakeWorld()

    async def main() -> None:
        with trio.CancelScope() as scope:
            scope.cancel()
            await baton.sleep_us(50)
        assert scope.cancelled_caught
        with trio.CancelScope() as scope, trio.CancelScope(shield=True):
            scope.cancel()
            await baton.sleep_us(50)

    baton.run_script(world, main)
    assert world.now_us == 50


def test_the_world_itself_may_cancel_and_set_events() -> None:
    world = FakeWorld()
    event = trio.Event()
    scope = trio.CancelScope()
    world.timeline.at(5, EventClass.TIMER, "world", event.set)
    world.timeline.at(9, EventClass.TIMER, "world", scope.cancel)

    async def main() -> None:
        await event.wait()
        world.note("event")
        with scope:
            await baton.sleep_us(1_000)
        world.note("cancelled")

    baton.run_script(world, main)
    assert world.log == [(5, "event"), (9, "cancelled")]


# Errors ----------------------------------------------------------------------------------------


def test_what_main_raises_comes_out_as_it_is() -> None:
    error = LookupError("mine")

    async def main() -> NoReturn:
        await baton.sleep_us(1)
        raise error

    with pytest.raises(LookupError) as caught:
        baton.run_script(FakeWorld(), main)
    assert caught.value is error


def test_what_a_child_raises_comes_in_a_group_and_cancels_the_others() -> None:
    world = FakeWorld()

    async def fails() -> NoReturn:
        await baton.sleep_us(3)
        raise LookupError("child")

    async def other() -> None:
        try:
            await baton.sleep_us(9)
        except trio.Cancelled:
            world.note("cancelled")
            raise

    async def main() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(other)
            nursery.start_soon(fails)

    with pytest.raises(ExceptionGroup) as caught:
        baton.run_script(world, main)
    assert [type(error) for error in caught.value.exceptions] == [LookupError]
    assert world.log == [(3, "cancelled")]


def test_what_a_step_raises_ends_the_run() -> None:
    world = FakeWorld()
    error = ValueError("the world's")

    def fails() -> NoReturn:
        raise error

    async def child() -> None:
        try:
            await baton.sleep_us(100)
        finally:
            world.note("child ends")

    async def main() -> None:
        world.timeline.at(7, EventClass.FAULT, "world", fails)
        async with baton.nursery() as nursery:
            nursery.start_soon(child)
            nursery.start_soon(child)

    with pytest.raises(ValueError, match="the world's") as caught:
        baton.run_script(world, main)
    assert caught.value is error
    assert world.log == [(7, "child ends")] * 2
    assert len(world.timeline) == 0


def test_a_keyboard_interrupt_comes_out_as_such() -> None:
    world = FakeWorld()

    def interrupt() -> NoReturn:
        raise KeyboardInterrupt

    async def child() -> None:
        await baton.sleep_us(1)
        interrupt()

    async def in_child() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(child)

    async def in_step() -> None:
        world.timeline.at(7, EventClass.FAULT, "world", interrupt)
        await baton.sleep_us(100)

    for main in (child, in_child, in_step):
        with pytest.raises(KeyboardInterrupt):
            baton.run_script(world, main)


def test_a_signal_during_a_long_run_of_steps_ends_it() -> None:
    world = FakeWorld()
    world.timeline.at(50, EventClass.FAULT, "world", signal.raise_signal, signal.SIGINT)
    world.later(60, "not reached")

    async def main() -> None:
        await baton.wait_for(lambda: False)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            baton.run_script(world, main)
    finally:
        signal.signal(signal.SIGINT, before)
    assert world.log == []


def test_a_world_with_scripts_under_way_is_not_copied() -> None:
    world = FakeWorld()

    async def main() -> Timeline:
        async with baton.nursery() as nursery:
            nursery.start_soon(baton.sleep_us, 10)
            await baton.sleep_us(1)
            with pytest.raises(baton.Misuse, match="cannot be copied while scripts run"):
                copy.deepcopy(world.timeline)
        return copy.deepcopy(world.timeline)

    assert baton.run_script(world, main).now_us == 10
