"""Scripts in virtual time: what happens when, in which order, and what comes out.

Method: a world that is only a timeline; scripts note in it what they do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from sim import baton
from sim.baton_clock import deadline_us
from sim.draws import Draws
from sim.schedulers import Pct, Recording, Seeded
from sim.timeline import EventClass
from tests.sim.fake_world import FakeWorld

# Time ------------------------------------------------------------------------------------------


def test_what_main_returns_is_returned_and_the_world_has_more_to_come() -> None:
    world = FakeWorld()
    world.later(10, "early")
    world.later(60, "late")

    async def main(first: int, second: int) -> int:
        await baton.sleep_us(50)
        return first + second

    assert baton.run_script(world, main, 2, 3) == 5
    assert (world.now_us, world.log, len(world.timeline)) == (50, [(10, "early")], 1)


def test_a_script_that_never_waits_takes_no_time() -> None:
    world = FakeWorld()
    world.later(0, "at once")

    async def main() -> str:
        return "done"

    assert baton.run_script(world, main) == "done"
    assert world.now_us == 0


def test_the_next_run_goes_on_in_the_same_world() -> None:
    world = FakeWorld()
    for _ in range(3):
        baton.run_script(world, baton.sleep_us, 7)
    assert world.now_us == 21


def test_entries_of_a_moment_go_before_the_script_that_it_wakes() -> None:
    world = FakeWorld()
    world.later(100, "delivery")
    world.later(100, "check", EventClass.CHECK)

    async def main() -> None:
        await baton.sleep_us(100)
        world.note("script")
        await baton.sleep_us(0)
        world.note("again")
        await baton.sleep_us(1)

    baton.run_script(world, main)
    assert [what for _, what in world.log] == ["delivery", "script", "again", "check"]


@given(now_us=st.integers(0, 10**12), wait_us=st.integers(0, 10**9))
def test_sleep_of_trio_ends_at_the_microsecond(now_us: int, wait_us: int) -> None:
    world = FakeWorld()
    world.timeline.advance(now_us)
    baton.run_script(world, trio.sleep, wait_us / 1e6)
    assert world.now_us == now_us + wait_us


def test_many_sleeps_of_trio_do_not_drift() -> None:
    world = FakeWorld()

    async def main() -> None:
        for at in range(1, 2_001):
            await trio.sleep(0.1)
            assert world.now_us == at * 100_000
            assert trio.current_time() == world.now_us / 1e6

    baton.run_script(world, main)


@pytest.mark.parametrize(
    ("deadline", "us"),
    [
        (math.inf, None),
        (-math.inf, 0),
        (-1.0, 0),
        (0.0, 0),
        (1e-7, 1),
        (1e-6, 1),
        (1.1e-6, 2),
        (0.1 + 0.2, 300_000),
        (1.0000001, 1_000_001),
        (86_400.000_000_4, 86_400_000_001),
        (1e6 + 0.1, 1_000_000_100_000),
    ],
)
def test_a_deadline_is_the_first_microsecond_at_or_after_it(deadline: float, us: int) -> None:
    assert deadline_us(deadline) == us


def test_a_sleep_of_trio_lets_the_world_go_first() -> None:
    world = FakeWorld()
    world.later(100_000, "delivery")

    async def main() -> None:
        await trio.sleep(0.1)
        world.note("script")

    baton.run_script(world, main)
    assert world.log == [(100_000, "delivery"), (100_000, "script")]


def test_steps_of_the_world_do_not_go_through_trio() -> None:
    """One task step per entry would make 5,000 of them; a few are the start and the end."""
    world = FakeWorld()
    world.tick(1, 5_000)
    counted = []

    class Count(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            counted.append(task.name)

    async def main() -> None:
        trio.lowlevel.add_instrument(Count())
        await baton.sleep_us(5_000)

    baton.run_script(world, main)
    assert world.steps > 5_000
    assert len(counted) < 20


# wait_for --------------------------------------------------------------------------------------


def test_wait_for_ends_behind_the_entry_that_makes_it_true() -> None:
    world = FakeWorld()
    for at_us in (10, 20, 30):
        world.later(at_us, f"at {at_us}")

    async def main() -> bool:
        return await baton.wait_for(lambda: len(world.log) == 2)

    assert baton.run_script(world, main) is True
    assert world.now_us == 20


@pytest.mark.parametrize(("within_us", "held"), [(19, False), (20, True), (21, True), (0, False)])
def test_wait_for_gives_up_in_time(within_us: int, held: bool) -> None:
    world = FakeWorld()
    world.later(20, "it")

    async def main() -> bool:
        return await baton.wait_for(lambda: bool(world.log), within_us=within_us)

    assert baton.run_script(world, main) is held
    assert world.now_us == min(within_us, 20)
    assert len(world.timeline) == (0 if held else 1)


def test_wait_for_hears_of_what_another_script_did() -> None:
    world = FakeWorld()
    box: list[int] = []

    async def waiter() -> None:
        await baton.wait_for(lambda: box)
        world.note("heard")

    async def main() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(waiter)
            await baton.sleep_us(5)
            box.append(1)
            await baton.sleep_us(5)

    baton.run_script(world, main)
    assert world.log == [(5, "heard")]


def test_waiters_go_one_at_a_time_by_number_and_each_is_asked_again() -> None:
    """One item for twelve takers: the first takes it, and no other is woken for it."""
    world = FakeWorld()
    box: list[int] = []

    async def taker(number: int) -> None:
        await baton.wait_for(lambda: box)
        box.pop()
        world.note(number)

    async def main() -> None:
        async with baton.nursery() as nursery:
            for number in range(12):
                nursery.start_soon(taker, number)
            for _ in range(12):
                await baton.sleep_us(10)
                box.append(1)

    baton.run_script(world, main)
    assert world.log == [(10 * (at + 1), str(at)) for at in range(12)]


def test_what_a_predicate_raises_is_raised_in_its_script() -> None:
    world = FakeWorld()
    world.later(5, "it")

    def predicate() -> bool:
        return 1 // (1 - len(world.log)) > 1

    async def main() -> None:
        with pytest.raises(ZeroDivisionError):
            await baton.wait_for(predicate)
        assert world.now_us == 5

    baton.run_script(world, main)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: baton.sleep_us(-1), "us is -1, allowed is 0 or more"),
        (lambda: baton.sleep_us(1.5), "us is 1.5, allowed is a whole number of microseconds"),
        (lambda: baton.sleep_us(True), "us is True"),
        (lambda: baton.wait_for(list, within_us=-2), "within_us is -2, allowed is 0 or more"),
    ],
)
def test_a_time_that_is_none_is_refused(call: Callable[[], object], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        baton.run_script(FakeWorld(), call)  # type: ignore[arg-type]


# Order -----------------------------------------------------------------------------------------


def test_scripts_start_in_the_order_of_start_soon_and_after_the_parent_waits() -> None:
    world = FakeWorld()

    async def child(number: int) -> None:
        world.note(number)

    async def main() -> None:
        async with baton.nursery() as nursery:
            for number in range(12):
                nursery.start_soon(child, number)
            world.note("parent")

    baton.run_script(world, main)
    assert [what for _, what in world.log] == ["parent", *map(str, range(12))]


def test_wake_ups_are_client_entries_of_the_script() -> None:
    recording = Recording(Seeded(Draws(1)))
    world = FakeWorld(recording)

    async def main() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(baton.sleep_us, 5)
            nursery.start_soon(trio.sleep, 0.5)

    baton.run_script(world, main)
    origins = sorted({origin for origin, _ in recording.taken})
    assert origins == ["script:0001", "script:0002", "script:0003"]


def test_a_scheduler_shuffles_scripts_of_one_moment() -> None:
    def order(seed: int) -> str:
        world = FakeWorld(Seeded(Draws(seed)))
        baton.run_script(world, _eight_at_once, world)
        return " ".join(what for _, what in world.log)

    assert order(1) == order(1)
    assert len({order(seed) for seed in range(8)}) > 4


def test_a_scheduler_that_counts_entries_sees_the_same_ones() -> None:
    def order() -> list[tuple[int, str]]:
        world = FakeWorld(Pct(Draws(3), depth=4, entries=40))
        baton.run_script(world, _eight_at_once, world)
        return world.log

    assert all(order() == order() for _ in range(20))


async def _eight_at_once(world: FakeWorld) -> None:
    """Woken at once by trio, in whatever order it has, and cancelled at once."""

    async def child(name: str) -> None:
        try:
            await trio.sleep(1)
            world.note(f"{name} woken")
            await baton.sleep_us(100)
        except trio.Cancelled:
            world.note(f"{name} cancelled")
            raise

    with trio.move_on_after(1.00005):
        async with baton.nursery() as nursery:
            for name in "abcdefgh":
                nursery.start_soon(child, name)


def test_events_and_channels_wake_any_number_of_scripts() -> None:
    world = FakeWorld()
    event = trio.Event()

    async def listener(name: str) -> None:
        await event.wait()
        world.note(name)

    async def sender(channel: trio.MemorySendChannel[int]) -> None:
        async with channel:
            for item in range(3):
                await channel.send(item)

    async def main() -> None:
        send, receive = trio.open_memory_channel[int](0)
        async with baton.nursery() as nursery:
            for name in "abcd":
                nursery.start_soon(listener, name)
            nursery.start_soon(sender, send)
            async with receive:
                async for item in receive:
                    world.note(item)
            event.set()
            world.note("set")

    for _ in range(10):
        world.log.clear()
        event = trio.Event()
        baton.run_script(world, main)
        assert " ".join(what for _, what in world.log) == "0 1 2 set a b c d"


def test_an_async_generator_is_followed_to_what_it_waits_for() -> None:
    world = FakeWorld()

    async def main() -> None:
        async def numbers():  # type: ignore[no-untyped-def]
            for number in range(3):
                await trio.sleep(0.001)
                yield number

        async for number in numbers():
            world.note(number)

    baton.run_script(world, main)
    assert world.log == [(1_000, "0"), (2_000, "1"), (3_000, "2")]


def test_a_task_past_the_baton_that_the_world_wakes_goes_before_the_script() -> None:
    def order() -> list[tuple[int, str]]:
        world = FakeWorld()
        event = trio.Event()

        async def free() -> None:
            await event.wait()
            world.note("free")

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(free)
                world.watchers.append(lambda: world.now_us == 5 and event.set())
                await baton.sleep_us(5)
                world.note("script")

        baton.run_script(world, main)
        return world.log

    for _ in range(20):
        assert order() == [(5, "free"), (5, "script")]
