"""Drawn scripts do the same in each run, whatever trio chooses.

Method: scripts that sleep, wake and cancel one another by the means of trio and of the baton are
drawn, and run several times under one scheduler; what they note must not differ. trio reverses each
batch of tasks with probability 1/2, so an order that is left to it shows.
"""

from __future__ import annotations

import trio
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from sim import baton
from sim.draws import Draws
from sim.schedulers import Fifo, Pct, Scheduler, Seeded
from tests.sim.fake_world import FakeWorld

SCRIPTS = 5
RUNS = 4


@frozen
class Op:
    kind: str
    which: int
    us: int


_OPS = st.builds(
    Op,
    st.sampled_from("sleep_us sleep wait_for event set lock send receive cancel child".split()),
    st.integers(0, SCRIPTS - 1),
    st.sampled_from([0, 1, 10, 10, 20, 100]),
)


class _Play:
    """One run of drawn scripts."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world
        self.events = [trio.Event() for _ in range(SCRIPTS)]
        self.scopes = [trio.CancelScope() for _ in range(SCRIPTS)]
        self.lock = trio.Lock()
        self.sender, self.receiver = trio.open_memory_channel[int](1)

    async def script(self, number: int, ops: list[Op]) -> None:
        with self.scopes[number]:
            for at, op in enumerate(ops):
                with trio.move_on_after(0.00005) as scope:
                    await self._do(number, op)
                self.world.note(f"{number}.{at} {op.kind} {scope.cancelled_caught}")
        self.world.note(f"{number} ends {self.scopes[number].cancelled_caught}")

    async def _do(self, number: int, op: Op) -> None:
        match op.kind:
            case "sleep_us":
                await baton.sleep_us(op.us)
            case "sleep":
                await trio.sleep(op.us / 1e6)
            case "wait_for":
                await baton.wait_for(lambda: len(self.world.log) % 3 == 0, within_us=op.us)
            case "event":
                await self.events[op.which].wait()
            case "set":
                self.events[op.which].set()
                self.events[op.which] = trio.Event()
            case "lock":
                async with self.lock:
                    await baton.sleep_us(op.us)
            case "send":
                await self.sender.send(op.us)
            case "receive":
                self.world.note(await self.receiver.receive())
            case "cancel":
                self.scopes[op.which].cancel()
            case "child":
                async with baton.nursery() as nursery:
                    nursery.start_soon(trio.sleep, op.us / 1e6)
                    nursery.start_soon(baton.sleep_us, op.us)


def _played(scheduler: Scheduler, scripts: list[list[Op]]) -> list[tuple[int, str]]:
    world = FakeWorld(scheduler)
    world.tick(7, 30)

    async def main() -> None:
        play = _Play(world)
        async with baton.nursery() as nursery:
            for number, ops in enumerate(scripts):
                nursery.start_soon(play.script, number, ops)

    baton.run_script(world, main)
    return world.log


def _scheduler(kind: str) -> Scheduler:
    match kind:
        case "pct":
            return Pct(Draws(5), depth=4, entries=100)
        case "seeded":
            return Seeded(Draws(5))
        case _:
            return Fifo()


@given(
    kind=st.sampled_from(["fifo", "seeded", "pct"]),
    scripts=st.lists(st.lists(_OPS, max_size=5), min_size=2, max_size=SCRIPTS),
)
def test_drawn_scripts_do_the_same_in_each_run(kind: str, scripts: list[list[Op]]) -> None:
    first = _played(_scheduler(kind), scripts)
    for _ in range(RUNS - 1):
        assert _played(_scheduler(kind), scripts) == first


def test_a_sleep_of_nothing_lets_every_script_of_the_moment_go_first() -> None:
    """Those just started, and those that yielded before, though their numbers are higher."""
    world = FakeWorld()

    async def child(name: str) -> None:
        for _ in range(3):
            world.note(name)
            await baton.sleep_us(0)

    async def main() -> None:
        async with baton.nursery() as nursery:
            nursery.start_soon(child, "a")
            nursery.start_soon(child, "b")
            await child("main")

    baton.run_script(world, main)
    assert " ".join(what for _, what in world.log) == "main a b main a b main a b"
