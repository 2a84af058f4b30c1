"""Whose turn it is: the wake-ups of scripts as entries of the timeline.

Three things make a script due: trio lets it go on, or cancels its wait (both *arrive* at the gate);
its time has come; its predicate holds. What arrives is entered in the order of script numbers, so a
scheduler that counts entries sees the same order in each run, whatever order trio had.

Left out: when the baton is handed over (``sim.baton_run``).
"""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType
from typing import NoReturn, Protocol

import trio

from sim.baton_errors import Misuse
from sim.baton_tasks import Script, Wait
from sim.timeline import EventClass, Timeline

__all__ = ["Turns", "World"]


class World(Protocol):
    """What the baton asks of a world."""

    @property
    def now_us(self) -> int: ...

    @property
    def timeline(self) -> Timeline: ...

    def step(self) -> bool:
        """Do the next entry of the timeline; False where nothing is to come."""

    def next_us(self) -> int | None:
        """The time of the next entry."""


class Turns:
    """See the module.

    Attributes:
        running: the script that has the baton.
        due: the one that gets it next.
        waiters: scripts that wait for a predicate.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._arrived: dict[int, Script] = {}
        self.waiters: list[Script] = []
        self._yielded_us = -1
        self._yields = 0
        self.running: Script | None = None
        self.due: Script | None = None

    def __deepcopy__(self, memo: dict[int, object]) -> NoReturn:
        raise Misuse("scripts are under way: a world cannot be copied while scripts run in it")

    def has_arrivals(self) -> bool:
        """Whether scripts have arrived that are not on the timeline yet."""
        return bool(self._arrived)

    def arrive(self, script: Script) -> None:
        """The script waits for the baton, and for nothing else."""
        self._arrived[script.number] = script

    def enter(self) -> None:
        """Enter a wake-up for each script that is due now."""
        for number in sorted(self._arrived):
            script = self._arrived[number]
            self.withdraw(script)
            self._wake(script, self._on_turn)
        self.ask()

    def ask(self) -> None:
        """Enter a wake-up for each script whose predicate holds now."""
        for script in self.waiters:
            if script.wake is None and script.wait is not None and _holds(script.wait):
                self._wake(script, self._on_held)

    def take(self, script: Script) -> None:
        """The script gets the baton, and has nothing to come any more."""
        self.due = None
        self.running = script
        self.withdraw(script)

    def withdraw(self, script: Script) -> None:
        """Take out what the script has to come."""
        self._arrived.pop(script.number, None)
        for token in (script.wake, script.timer):
            if token is not None:
                self._world.timeline.cancel(token)
        script.wake = script.timer = None
        if script in self.waiters:
            self.waiters.remove(script)

    def recall(self) -> None:
        """The timeline is of no use any more: who is due has arrived instead."""
        if self.due is not None:
            self.arrive(self.due)
            self.due = None

    def first(self, scripts: list[Script]) -> Script | None:
        """The first of these that has arrived or has a wake-up."""
        ready = (each for each in scripts if each.number in self._arrived or each.wake is not None)
        return next(ready, None)

    async def park(self, script: Script, wait: Wait, within_us: int | None) -> Wait:
        """Wait for the world, at most so long; ``wait`` then says how it ended."""
        self.withdraw(script)
        if within_us is not None:
            at_us = self._world.now_us + within_us
            origin = script.origin if within_us or wait.predicate else self._last_origin()
            script.timer = self._world.timeline.at(
                at_us, EventClass.CLIENT, origin, self._on_timer, script
            )
        if wait.predicate is not None:
            self.waiters.append(script)
        script.wait = wait

        def abort(raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
            # trio goes through a set here: only note it, and enter it in order later.
            wait.raise_cancel = raise_cancel
            self.arrive(script)
            return trio.lowlevel.Abort.FAILED

        try:
            await trio.lowlevel.wait_task_rescheduled(abort)
        finally:
            script.wait = None
        if wait.raise_cancel is not None:
            wait.raise_cancel()
        if wait.error is not None:
            raise wait.error
        return wait

    def _last_origin(self) -> str:
        """An origin behind those of all scripts, and of those that yielded at this moment."""
        if self._world.now_us != self._yielded_us:
            self._yielded_us, self._yields = self._world.now_us, 0
        self._yields += 1
        return f"yield:{self._yields:06d}"

    # Entries of the timeline ---------------------------------------------------------------------

    def _wake(self, script: Script, call: Callable[[Script], None]) -> None:
        script.wake = self._world.timeline.at(
            self._world.now_us, EventClass.CLIENT, script.origin, call, script
        )

    def _on_turn(self, script: Script) -> None:
        script.wake = None
        self._make_due(script)

    def _on_held(self, script: Script) -> None:
        """A predicate held when it was asked last: it is asked again before the script runs."""
        script.wake = None
        assert script.wait is not None
        if _holds(script.wait):
            self._make_due(script)

    def _on_timer(self, script: Script) -> None:
        script.timer = None
        assert script.wait is not None
        if script.wait.predicate is not None:
            script.wait.result = _holds(script.wait)
        self._make_due(script)

    def _make_due(self, script: Script) -> None:
        if self.running is not None or self.due is not None:
            by = f"{self.running}" if self.running is not None else "an entry of the timeline"
            raise Misuse(
                f"{by} steps the world, which wakes {script} in between: "
                "a script awaits sleep_us or wait_for instead"
            )
        self.due = script


def _holds(wait: Wait) -> bool:
    """Whether a wait for a predicate is over; also where the predicate raises."""
    assert wait.predicate is not None
    try:
        holds = wait.predicate()
        if isinstance(holds, CoroutineType):
            holds.close()
            raise TypeError("a predicate is async, allowed is a plain function")
        return bool(holds)
    except Exception as exc:  # noqa: BLE001  it is the script's, and raised there
        wait.error = exc
        return True
