"""The driver of a run of scripts: it steps the world, and hands the baton to one script at a time.

trio calls ``Clock.deadline_to_sleep_time`` when no task can run. The clock of a run then wakes the
driver instead of letting trio sleep. So the driver acts only while every script is blocked, and it

1. enters the wake-ups of those that are due (``sim.baton_turns``);
2. steps the world until such an entry names who gets the baton, or goes to trio's next deadline,
   which comes before whatever else happens at its moment (a timeout wins over what it races with);
3. hands the baton over, and is blocked until that script waits again.

When a run fails, scripts are cancelled and get the baton by number until all have ended. The world
stays as it is meanwhile: timeouts of shielded waits end at once, a wait that no cancellation ends
is cut with an error, and a script that goes on all the same is given up.

Left out: giving up a task in a nursery of trio; the awaitables (``sim.baton``).
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Final, NoReturn

import trio

from sim.baton_clock import VirtualClock, deadline_us
from sim.baton_errors import BatonError, Deadlock, Misuse, RealWait
from sim.baton_tasks import Script, body, call
from sim.baton_turns import Turns, World
from sim.baton_watch import Watch

__all__ = ["ALONE_US", "Run"]

ALONE_US: Final = 3_600_000_000
"""Scripts that wait for nothing of the world so long are taken for deadlocked."""
_PATIENCE: Final = 1_000
"""So many turns a script gets for its ending when a run has failed, before it is given up."""


class Run:
    """One call of ``sim.baton.run_script``.

    Attributes:
        failure: what ends the run.
        is_over: nothing can be done with it any more.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.clock = VirtualClock(world, self._on_idle)
        self.watch = Watch(world, self.fail)
        self.turns = Turns(world)
        self.failure: BaseException | None = None
        self.is_over = False
        self._started = 0
        self._deadline = math.inf
        self._is_parked = False
        self._is_firing = False
        self._is_ending = False
        self._is_advancing = False

    def __deepcopy__(self, memo: dict[int, object]) -> None:
        """A copy of the world has no scripts."""
        self.check_alone()

    def check_alone(self) -> None:
        """The world is about to be copied.

        Raises:
            Misuse: not by the only script.
        """
        if self.turns.running is None or len(self.watch.scripts) > 1 or self.watch.free:
            raise Misuse(
                "scripts are under way: a world cannot be copied while scripts run in it, "
                "unless by the only one"
            )

    def before_step(self) -> None:
        """The timeline is about to move.

        Raises:
            Misuse: not by the driver.
        """
        if not self._is_advancing:
            script = self.turns.running
            who = script if script is not None and script.has_baton else "a task"
            raise Misuse(
                f"{who} steps the world, which stands still while "
                "scripts run: await sleep or wait_for instead, or step a copy of the world"
            )

    # What the driver does ------------------------------------------------------------------------

    async def drive(
        self, main: Callable[..., Awaitable[object]], args: tuple[object, ...]
    ) -> tuple[object, BaseException | None]:
        """Run the main script to its end: what it returned, and what it raised.

        Raises:
            BaseException: what ended the run before.
        """
        self.watch.driver = trio.lowlevel.current_task()
        # No thread of trio's own ever starts: a script that wants one is blocked, and found.
        limiter = trio.to_thread.current_default_thread_limiter()
        limiter.total_tokens = 1
        limiter.acquire_on_behalf_of_nowait(self)
        result: list[object] = []
        errors: list[BaseException] = []

        async def keep_outcome(*args: object) -> None:
            try:
                result.append(await call(main, args))
            except BaseException as exc:  # noqa: BLE001  it leaves the run as it is
                errors.append(exc)

        try:
            async with trio.open_nursery() as nursery:
                try:
                    self.start(nursery, keep_outcome, args, _name_of(main))
                    await self._loop()
                except BaseException as exc:  # noqa: BLE001  raised once all scripts have ended
                    self.failure = exc if self.failure is None else self.failure
                    await self._end(nursery)
        except BaseException:
            # trio's complaint about the nurseries of a script that was given up.
            if self.failure is None:
                raise
        self.is_over = True
        error = errors[0] if errors else None
        if self.failure is not None:
            if error is not None and not _is_cancellation(error):
                self.failure.add_note(f"the main script then raised {error!r}")
            raise self.failure
        return result[0] if result else None, error

    async def _loop(self) -> None:
        while True:
            await self._idle()
            if self.failure is not None:
                raise self.failure
            if not self.watch.scripts:
                return
            if self.turns.due is None:
                self.watch.look_at_free()
                self.turns.enter()
                self._is_advancing = True
                try:
                    self._advance()
                finally:
                    self._is_advancing = False
            # A callback of the world may have let tasks go on: they go to their gates first.
            if self.turns.due is not None and not self.watch.is_stirred:
                self.watch.count(self.turns.due)
                self._pass_baton(self.turns.due)

    async def _idle(self) -> None:
        """Wait until every script is blocked."""
        self._is_parked = True
        await trio.lowlevel.wait_task_rescheduled(self._unpark)
        self.turns.running = None
        self.watch.is_stirred = False
        self.clock.floor = 0.0

    def _unpark(self, raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
        self._is_parked = False
        return trio.lowlevel.Abort.SUCCEEDED

    def _wake_driver(self) -> None:
        if self._is_parked and self.watch.driver is not None:
            self._is_parked = False
            trio.lowlevel.reschedule(self.watch.driver)

    def _advance(self) -> None:
        """Go on in time until a script has to be woken."""
        world, turns, watch = self.world, self.turns, self.watch
        fires_us = deadline_us(self._deadline)
        alone_us = self._alone_until_us()
        while turns.due is None and not watch.is_stirred and not turns.has_arrivals():
            if fires_us is not None:
                next_us = world.next_us()
                if next_us is None or fires_us <= next_us:
                    world.timeline.advance(fires_us)
                    self._fire()
                    return
            if not world.step():
                heading = f"nothing is to come after {world.now_us} us, and these wait:"
                raise Deadlock("\n  ".join([heading, *watch.waits()]))
            if turns.waiters:
                turns.ask()
            if alone_us is not None and world.now_us > alone_us:
                heading = f"for {ALONE_US // 1_000_000} s no script waited for the world or a time:"
                raise Deadlock("\n  ".join([heading, *watch.waits()]))

    def _alone_until_us(self) -> int | None:
        """Until when it is not yet sure that scripts wait for each other only; None: they do not.

        What is not of a script may wake them, as a watcher that sets an event: so it takes long.
        """
        if deadline_us(self._deadline) is not None or self.turns.has_arrivals():
            return None
        if any(each.wait or each.wake for each in self.watch.scripts.values()):
            return None
        return self.world.now_us + ALONE_US

    def _fire(self) -> None:
        """Let trio cancel what its next deadline is for, when it looks at the clock next."""
        self._is_firing = True
        self.clock.floor = self._deadline

    def _pass_baton(self, script: Script) -> None:
        self.turns.take(script)
        script.has_baton = True
        assert script.task is not None
        trio.lowlevel.reschedule(script.task)

    # The end of a run that failed ----------------------------------------------------------------

    @trio.lowlevel.enable_ki_protection
    async def _end(self, nursery: trio.Nursery) -> None:
        self._is_ending = True
        self.turns.recall()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            while self.watch.scripts or self.watch.free:
                try:
                    await self._idle()
                except KeyboardInterrupt as exc:
                    self.failure = exc
                    continue
                waiting = sorted(self.watch.scripts.values(), key=lambda script: script.number)
                ready = self.turns.first(waiting)
                if ready is not None:
                    self._pass_last_baton(ready)
                elif deadline_us(self._deadline) is not None:
                    self._fire()
                else:
                    self._force(waiting)

    def _pass_last_baton(self, script: Script) -> None:
        script.last_turns += 1
        if script.last_turns > _PATIENCE and script.task is not None and _is_leaf(script.task):
            script.is_given_up = True
        self._pass_baton(script)

    def _force(self, waiting: list[Script]) -> None:
        """End a wait that cancelling did not end, of a task without tasks of its own."""
        for script in waiting:
            if script.task is not None and _is_leaf(script.task):
                script.forced = BatonError(f"the run has ended, and {script} still waits")
                self._pass_last_baton(script)
                return
        for task in self.watch.free:
            if _is_leaf(task):
                trio.lowlevel.reschedule(task)
                return

    # What trio tells -----------------------------------------------------------------------------

    def _on_idle(self, deadline: float) -> float:
        """No task can run. How long trio is to sleep, in seconds."""
        if self.is_over:
            return 0.01
        if self._is_firing:
            self._is_firing = False
        else:
            self._deadline = deadline
            self._wake_driver()
        return 0

    def fail(self, failure: BaseException) -> None:
        """End the run as soon as the driver can."""
        if self._is_ending:
            return
        if self.failure is None:
            self.failure = failure
        self.watch.is_stirred = True
        self._wake_driver()

    # What scripts and their gates do -------------------------------------------------------------

    def start(
        self,
        nursery: trio.Nursery,
        function: Callable[..., Awaitable[object]],
        args: tuple[object, ...],
        name: str | None = None,
    ) -> None:
        """Start a script in a nursery of trio; it gets the baton when its turn has come."""
        self._started += 1
        name = name or _name_of(function)
        script = self.watch.starting = Script(self._started, name, self)
        try:
            nursery.start_soon(body, script, function, args, name=name)
        finally:
            self.watch.starting = None

    def current(self, what: str) -> Script:
        """The script that calls.

        Raises:
            Misuse: none does.
        """
        task = trio.lowlevel.current_task()
        script = self.watch.scripts.get(task)
        if script is None:
            raise Misuse(
                f"{what} is for scripts, and task {task.name!r} is none: "
                "start it in sim.baton.nursery(), which is cluster.nursery()"
            )
        return script

    def arrive(self, script: Script) -> None:
        self.turns.arrive(script)

    def ended(self, script: Script) -> None:
        self.turns.withdraw(script)
        if script.task is not None:
            del self.watch.scripts[script.task]

    def waits_for_real(self, script: Script, what: str) -> None:
        self.fail(RealWait(f"{script} waits for {what}, which is not of the world"))


def _is_cancellation(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _is_leaf(task: trio.lowlevel.Task) -> bool:
    return not any(nursery.child_tasks for nursery in task.child_nurseries)


def _name_of(function: object) -> str:
    return str(getattr(function, "__qualname__", None) or type(function).__name__)
