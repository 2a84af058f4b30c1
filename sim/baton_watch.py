"""Watches the tasks of a run: which are scripts, and which a script started past the baton.

A task in a nursery of trio has no gate, so trio chooses when it runs. As long as no two such tasks
wait to run at once there is nothing to choose; else the run fails.

Left out: ending the run (``sim.baton_run``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import trio

from sim.baton_errors import BatonError, RealWait, StandsStill, TwoRunnable
from sim.baton_frames import awaited
from sim.baton_tasks import Script
from sim.baton_turns import World

__all__ = ["STILL_MAX", "Watch"]

STILL_MAX: Final = 100_000
"""So many wake-ups at one moment are taken for a loop without end."""


class Watch(trio.abc.Instrument):
    """See the module.

    Attributes:
        driver: the task of the driver, once it runs; what is spawned before is trio's own.
        starting: the script whose task is spawned next.
        scripts: those that have not ended.
        free: the tasks without a gate.
        is_stirred: trio has let a task go on since the driver looked.
    """

    def __init__(self, world: World, fail: Callable[[BatonError], None]) -> None:
        self._world = world
        self._fail = fail
        self._ready: dict[trio.lowlevel.Task, None] = {}
        self._still_us = 0
        self._still = 0
        self.driver: trio.lowlevel.Task | None = None
        self.starting: Script | None = None
        self.scripts: dict[trio.lowlevel.Task, Script] = {}
        self.free: dict[trio.lowlevel.Task, None] = {}
        self.is_stirred = False

    def task_spawned(self, task: trio.lowlevel.Task) -> None:
        script, self.starting = self.starting, None
        if script is not None:
            script.task = task
            self.scripts[task] = script
        elif self.driver is not None:
            self.free[task] = None

    def task_scheduled(self, task: trio.lowlevel.Task) -> None:
        if task is self.driver:
            return
        self.is_stirred = True
        if task not in self.free:
            return
        for other in self._ready:
            self._fail(
                TwoRunnable(
                    f"tasks {other.name!r} and {task.name!r} both wait to run, and trio's order "
                    "of the two is not deterministic: start them in sim.baton.nursery(), which "
                    "is cluster.nursery(), not in a nursery of trio"
                )
            )
            break
        self._ready[task] = None
        self.count(f"task {task.name!r}")

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        if self._ready:
            self._ready.pop(task, None)

    def task_exited(self, task: trio.lowlevel.Task) -> None:
        if self.free:
            self.free.pop(task, None)

    def count(self, who: str | Script) -> None:
        """Count one wake-up at this moment."""
        if self._world.now_us != self._still_us:
            self._still_us, self._still = self._world.now_us, 0
        self._still += 1
        if self._still > STILL_MAX:
            self._fail(
                StandsStill(
                    f"tasks were woken {STILL_MAX} times at {self._still_us} us, {who} last: they "
                    "loop without letting virtual time pass; await sleep_us or wait_for instead"
                )
            )

    def look_at_free(self) -> None:
        """Fail where a task without a gate waits for something outside the world."""
        for task in self.free:
            found = awaited(task.coro)
            if found.is_real:
                self._fail(
                    RealWait(f"task {task.name!r} waits for {found}, which is not of the world")
                )

    def waits(self) -> list[str]:
        """What each task waits for, in words."""
        tasks = [f"{each} waits for {awaited(each.coroutine)}" for each in self.scripts.values()]
        return tasks + [f"task {each.name!r} waits for {awaited(each.coro)}" for each in self.free]
