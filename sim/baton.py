"""Scripts in virtual time: trio tasks that drive a simulated world, one at a time.

    async def main(world):
        async with baton.nursery() as nursery:
            nursery.start_soon(writer, world)
            await baton.sleep_us(5_000)
            assert await baton.wait_for(lambda: world.leader("t-0") == "b2", within_us=1_000_000)

    baton.run_script(world, main, world)

A *script* is the main function or what a ``baton.nursery()`` started. trio runs tasks in an order
of its own; scripts run one at a time, each woken by an entry of the world's timeline (class CLIENT,
origin ``script:NUMBER``), so a run is a function of the world and its scheduler. While a script
runs the world stands still.

What of trio works in a script: ``sleep``, ``current_time``, ``move_on_after``, ``fail_after`` and
cancel scopes, all in virtual time; ``Event``, ``Lock``, ``Condition``, memory channels. Of two
things due at the same microsecond, a timeout of trio goes first. A nursery of trio works as well,
as long as no two of its tasks wait to run at once; its tasks cannot use this module. Waiting for
anything outside the world (threads, files, sockets, processes, signals) ends the run. Stepping the
world from a script is an error: what other scripts wait for would be missed. What blocks without
``await`` (``time.sleep``, a lock of a thread) cannot be seen: it stops everything.

Left out: what scripts do with a world (``sim.scripts``); ``nursery.start``.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Self, TypeVar, cast

import trio

from sim.baton_errors import BatonError, Deadlock, Misuse, RealWait, StandsStill, TwoRunnable
from sim.baton_run import Run
from sim.baton_tasks import Script, Wait
from sim.baton_turns import World

__all__ = [
    "BatonError",
    "Deadlock",
    "Misuse",
    "Nursery",
    "RealWait",
    "StandsStill",
    "TwoRunnable",
    "World",
    "nursery",
    "run_script",
    "sleep_us",
    "wait_for",
    "world_of",
]

T = TypeVar("T")

_RUN: trio.lowlevel.RunVar[Run] = trio.lowlevel.RunVar("baton")


def run_script(world: World, main: Callable[..., Awaitable[T]], *args: object) -> T:
    """Run ``main(*args)`` as script 1 in the world, and return what it returns.

    Ends when ``main`` has ended; the world may have more to come. What ``main`` raises comes out
    as it is, and so does what a step of the world raises. A KeyboardInterrupt in any script comes
    out as such.

    Raises:
        Misuse: called inside a run of trio, or scripts do what is not allowed where they do it.
        Deadlock, RealWait, StandsStill, TwoRunnable: see ``sim.baton_errors``.
    """
    if _is_in_trio():
        raise Misuse(
            "run_script was called inside a run of trio, which cannot be nested: "
            "start another script with sim.baton.nursery()"
        )
    _check_main(main)
    if world.timeline.driver is not None:
        raise Misuse("scripts run in this world already")
    run = Run(world)
    world.timeline.driver = run
    try:
        value, error = trio.run(_drive, run, main, args, clock=run.clock, instruments=[run.watch])
    finally:
        run.is_over = True
        world.timeline.driver = None
        world.timeline.sweep()
    if error is None:
        return cast("T", value)
    if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt) is not None:
        raise KeyboardInterrupt from error
    raise error


async def sleep_us(us: int) -> None:
    """Let so many microseconds of virtual time pass, 0 or more.

    With 0 the scripts that are due now go first, unless the scheduler says otherwise.
    """
    _check_us("us", us)
    run, script = _current("sleep_us")
    await run.turns.park(script, Wait(), us)


async def wait_for(predicate: Callable[[], object], within_us: int | None = None) -> bool:
    """Wait until a predicate holds; whether it did.

    It is asked after each entry of the timeline and each time a script has run, and once more
    right before the script goes on, so it holds then. What it raises is raised here.

    Args:
        predicate: must not change the world.
        within_us: give up after so long, 0 or more; the moment itself still counts. None: never.
    """
    if within_us is not None:
        _check_us("within_us", within_us)
    run, script = _current("wait_for")
    return (await run.turns.park(script, Wait(predicate), within_us)).result


def world_of(what: str) -> World:
    """The world in which the script that calls runs.

    Args:
        what: is called, for the error.

    Raises:
        Misuse: no script calls.
    """
    return _current(what)[0].world


def nursery() -> Nursery:
    """A nursery for scripts: ``async with baton.nursery() as nursery``."""
    return Nursery()


class Nursery:
    """Starts scripts, and waits for them at its end; errors as in a nursery of trio."""

    def __init__(self) -> None:
        self._manager: AbstractAsyncContextManager[trio.Nursery] | None = None
        self._nursery: trio.Nursery | None = None
        self._run: Run | None = None

    async def __aenter__(self) -> Self:
        self._run, _ = _current("nursery")
        self._manager = trio.open_nursery()
        self._nursery = await self._manager.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        assert self._manager is not None
        return await self._manager.__aexit__(kind, error, traceback)

    @property
    def cancel_scope(self) -> trio.CancelScope:
        """Cancels all that the nursery started."""
        return self._opened()[1].cancel_scope

    def start_soon(
        self, function: Callable[..., Awaitable[object]], *args: object, name: str | None = None
    ) -> None:
        """Start ``function(*args)`` as a script. It has the next number, and runs in its turn.

        Args:
            name: for errors; the function's where it is None.

        Raises:
            Misuse: the nursery is closed, or no script calls.
        """
        run, opened = self._opened()
        run.current("start_soon")
        try:
            run.start(opened, function, args, name)
        except RuntimeError as exc:
            raise Misuse(f"start_soon: {exc}") from exc

    def _opened(self) -> tuple[Run, trio.Nursery]:
        if self._run is None or self._nursery is None:
            raise Misuse("the nursery is used before its 'async with' block")
        if self._run.is_over:
            raise Misuse("the nursery is used after its run ended")
        return self._run, self._nursery


async def _drive(
    run: Run, main: Callable[..., Awaitable[object]], args: tuple[object, ...]
) -> tuple[object, BaseException | None]:
    _RUN.set(run)
    return await run.drive(main, args)


def _current(what: str) -> tuple[Run, Script]:
    if not _is_in_trio():
        raise Misuse(f"{what} works only while run_script runs")
    try:
        run = _RUN.get()
    except LookupError:
        raise Misuse(
            f"{what} works only in a script of run_script, and this is another run of trio"
        ) from None
    return run, run.current(what)


def _is_in_trio() -> bool:
    try:
        trio.lowlevel.current_root_task()
    except RuntimeError:
        return False
    return True


def _check_main(main: object) -> None:
    if inspect.iscoroutine(main):
        main.close()
        raise TypeError("main is a coroutine, allowed is the function itself: main, not main()")


def _check_us(name: str, us: int) -> None:
    if type(us) is not int:
        raise TypeError(f"{name} is {us!r}, allowed is a whole number of microseconds")
    if us < 0:
        raise ValueError(f"{name} is {us}, allowed is 0 or more")
