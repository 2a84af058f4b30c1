"""The interpreter: steps and faults of a scenario as entries of a world's timeline.

A step begins at its time, behind another step or fault, or when the one before it is done; it is
done when its last effect is visible. A step that cannot act when its time has come ends the run;
one that is not done by the end, or never began, fails it.

The world boots first: brokers register and the topics get their leaders in the time ``boot`` before
time 0 of the scenario, with which the trace begins to count.

Where the scenario says ``when_impossible = "skip"``, what cannot act is passed over, and so is what
is not done by the end: nothing ends a run but its budget. With something left out
(``sim.running.without``) it is always so, and moments are kept besides.

Left out: what a step does (``sim.running.acting``), what is expected, the verdict.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, Final

from attrs import define, evolve

from cluster.names import CONTROLLER
from sim.pending import VerbFailed
from sim.running.acting import Acting, CannotAct
from sim.running.beside import Beside
from sim.running.damage import NothingThere
from sim.running.expectations import Expectations
from sim.running.progress import Progress
from sim.running.selection import choose_for, parameters
from sim.running.without import Moments, Without
from sim.scenario.actions import Start
from sim.scenario.build import assignments_of
from sim.scenario.durations import show_duration
from sim.scenario.model import BOOT_US, Scenario, Step
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.world import World, WorldError

__all__ = ["BOOT_US", "EVENTS_MAX", "Failure", "Interpreter"]

EVENTS_MAX: Final = 5_000_000


@define(frozen=True)
class Failure:
    """What ended a run before its time.

    Attributes:
        step: its number, 0 for none.
        is_inconclusive: the budget ended, which says nothing about the cluster.
    """

    step: int
    t_us: int
    text: str
    is_inconclusive: bool = False


@define(eq=False)
class _Begun:
    step: Step
    progress: Progress
    number: int


class Interpreter:
    """See the module.

    Attributes:
        failure: what ended the run; None while it goes on, or if nothing did.
        events_max: how many events there may be.
        passed_over: what could not act, where that does not end the run.
    """

    def __init__(
        self,
        world: World,
        scenario: Scenario,
        acting: Acting,
        expectations: Expectations,
        beside: Beside,
        *,
        events_max: int = EVENTS_MAX,
        without: Without | None = None,
    ) -> None:
        self.world = world
        self.scenario = scenario
        self.events_max = events_max
        self.failure: Failure | None = None
        self.passed_over: list[Failure] = []
        self._acting = acting
        self._expectations = expectations
        self._beside = beside
        self._waiting: list[_Begun] = []
        self._due: list[tuple[int, int]] = []
        self._not_begun = {step.number: step for step in scenario.steps}
        self._reached: set[str] = set()
        self._without = without
        self._passes_over = acting.passes_over
        self._begun_us: dict[int, int] = {}
        self._entered: set[int] = set()
        self._to_come: deque[tuple[int, int]] = deque()
        self._copied = _steps_to_copy(scenario)
        self._seen = 0
        self._end_us = 0

    def moments(self) -> Moments:
        """When everything happened."""
        begun_us, ended_us = self._beside.begun_us, self._beside.ended_us
        return Moments(self._begun_us, begun_us, ended_us, self._now_us)

    @property
    def _now_us(self) -> int:
        """From time 0."""
        return self.world.now_us - self.world.trace.zero_us

    # Running -----------------------------------------------------------------------------------

    def boot(self) -> None:
        """Bring the cluster up, with its topics; ends at time 0 of the scenario."""
        cluster, boot_us = self._acting.cluster, self.scenario.boot_us
        created = []
        try:
            self._go_on(0)
            for topic in self.scenario.topics:
                created.append(
                    cluster.create_topic(
                        topic.name,
                        assignments=assignments_of(topic, self.world.config.brokers),
                        config=topic.config,
                    )
                )
            self._go_on(boot_us)
            for pending in created:
                if self.failure is None:
                    pending.result()
        except (VerbFailed, WorldError) as error:
            # There is nothing to go on with, whatever else is passed over.
            text = f"the cluster did not come up in {show_duration(boot_us)}: {error}"
            self.failure = self.failure or Failure(0, self._now_us, text)

    def _go_on(self, until_us: int) -> None:
        """Do everything that is due up to a time, unless the budget ends."""
        world = self.world
        while self.failure is None:
            due_us = world.next_us()
            if due_us is None or due_us > until_us:
                world.timeline.advance(until_us)
                return
            world.step()
            self._check_budget(until_us)

    def run(self) -> None:
        """From time 0 to the end of the scenario, or to a failure."""
        self.begin()
        self.go_to(self._end_us)
        self.end()

    def begin(self) -> None:
        """Time 0: all that has its time waits for it."""
        world, scenario = self.world, self.scenario
        zero_us, end_us = world.now_us, world.now_us + scenario.until_us
        if self._without is not None:
            moments = self._without.moments
            end_us = zero_us + moments.end_us
            to_come = sorted((zero_us + at_us, n) for n, at_us in moments.steps.items())
            self._to_come.extend(to_come)
        self._seen = world.trace.count
        self._beside.begin(zero_us, end_us)
        for step in scenario.steps:
            if step.at_us is not None:
                self._enter(step, zero_us + step.at_us)
        if scenario.steps and scenario.steps[0].at_us is None and scenario.steps[0].after is None:
            self._enter(scenario.steps[0], zero_us)
        self._expectations.begin(zero_us, end_us)
        self._end_us = end_us

    def go_to(self, until_us: int, is_over: Callable[[], bool] | None = None) -> bool:
        """Do everything that is due up to a time of the world, that included.

        Args:
            is_over: asked behind every entry; then the world stays where it is.

        Returns:
            Whether that time has come.
        """
        world = self.world
        while self.failure is None:
            due_us = world.next_us()
            if self._without is not None and self._begin_overdue(due_us):
                continue
            if due_us is None or due_us > until_us:
                world.timeline.advance(until_us)
                return True
            world.step()
            self._after_entry()
            self._check_budget(until_us)
            if is_over is not None and is_over():
                return False
        return False

    def add(self, step: Step) -> None:
        """One more step, behind all others, at a time that is to come (``sim.running.live``)."""
        assert step.at_us is not None
        self.scenario = evolve(self.scenario, steps=(*self.scenario.steps, step))
        self._not_begun[step.number] = step
        self._enter(step, self.world.trace.zero_us + step.at_us)

    def end(self) -> None:
        """The time is over: what is not done by now is not."""
        if self._without is not None:
            return
        for begun in self._waiting:
            self._fail(begun.step.number, f"not done by the end: {begun.progress.why()}")
        for step in self._not_begun.values():
            self._fail(step.number, self._why_not_begun(step))

    def _check_budget(self, until_us: int) -> None:
        world = self.world
        if world.trace.count <= self.events_max or self.failure is not None:
            return
        zero_us = world.trace.zero_us
        now, until = (show_duration(max(0, each - zero_us)) for each in (world.now_us, until_us))
        what = f"the end at {until}" if until_us > zero_us else "the cluster to come up"
        waits = [f"step {each.step.number}, {each.progress.why()}" for each in self._waiting]
        for fault_id in self._beside.never_begun():
            waits.append(f"fault {fault_id!r}, which has not begun")
        text = (
            f"{self.events_max} events are over at {now}, and the run still waits for "
            f"{'; '.join([*waits, what])}"
        )
        self.failure = Failure(0, world.now_us - zero_us, text, is_inconclusive=True)

    def _why_not_begun(self, step: Step) -> str:
        if step.after is None:
            return f"never begun: step {step.number - 1} was not done in time"
        if step.after in self._reached:
            return f"never begun: {show_duration(step.delay_us)} after {step.after!r} is too late"
        return f"never begun: {step.after!r} has not come about"

    def _fail(self, step: int, text: str) -> None:
        failure = Failure(step, self._now_us, text)
        if self._passes_over:
            self.passed_over.append(failure)
        elif self.failure is None:
            self.failure = failure

    # Steps -------------------------------------------------------------------------------------

    def _enter(self, step: Step, at_us: int) -> None:
        if self._without is not None:
            moment_us = self._without.moments.steps.get(step.number)
            if moment_us is None or step.number in self._entered:
                return
            moment_us += self.world.trace.zero_us
            if at_us > moment_us:
                return  # ``_begin_overdue`` comes first.
            at_us = moment_us
            self._entered.add(step.number)
        heappush(self._due, (at_us, step.number))
        self.world.timeline.at(at_us, EventClass.FAULT, "step", self._begin_next)

    def _begin_overdue(self, due_us: int | None) -> bool:
        """Begin what has not begun in its usual way by the moment at which it began before.

        That is after everything else of that moment, and takes no entry of the timeline, which
        could put others into another order. False where nothing is overdue before ``due_us``.
        """
        waiting = self._to_come
        while waiting and waiting[0][1] in self._entered:
            waiting.popleft()
        first = [waiting[0][0]] if waiting else []
        moment_us = min([*first, *self._beside.moments_us()], default=None)
        if moment_us is None or (due_us is not None and due_us <= moment_us):
            return False
        self.world.timeline.advance(moment_us)
        while waiting and waiting[0][0] <= moment_us:
            self._enter(self.scenario.steps[waiting.popleft()[1] - 1], moment_us)
        self._beside.begin_overdue()
        self._after_entry()
        return True

    def _begin_next(self) -> None:
        """Steps of one moment begin in the order of the file, whatever the scheduler draws."""
        _, number = heappop(self._due)
        if self.failure is None:
            self._begin(self.scenario.steps[number - 1])

    def _begin(self, step: Step) -> None:
        world = self.world
        del self._not_begun[step.number]
        self._begun_us[step.number] = world.now_us - world.trace.zero_us
        if self._without is not None and step.number in self._without.steps:
            if not isinstance(step.action, Start):
                self._go_on_behind(step, world.trace.count)
                return
            step = evolve(step, action=evolve(step.action, disk="same"))
        chosen = choose_for(world, step.action, step.fault_id)
        args = _args(step) | {"args": parameters(step.action, chosen)}
        number = world.trace.emit(world.now_us, "world", Kind.STEP, (), args)
        try:
            progress = self._acting.do(step, number, chosen)
        except (CannotAct, NothingThere, VerbFailed, WorldError) as error:
            self._fail(step.number, str(error))
            self._go_on_behind(step, number)
            return
        for text in self._acting.take_passed_over():
            self._fail(step.number, text)
        self._waiting.append(_Begun(step, progress, number))
        if step.within_us is not None:
            origin = f"limit:{step.number:06}"
            at_us = world.now_us + step.within_us
            world.timeline.at(at_us, EventClass.CHECK, origin, self._end_wait, step.number)

    def _end_wait(self, number: int) -> None:
        """The limit of a step has come."""
        for begun in list(self._waiting):
            if begun.step.number == number:
                self._fail(number, f"not done in time: {begun.progress.why()}")
                self._waiting.remove(begun)
                self._go_on_behind(begun.step, begun.number)

    def _after_entry(self) -> None:
        """Something may have changed: steps are done, expectations hold or break."""
        world = self.world
        first, seen = self._seen + 1, -1
        if world.trace.count >= first:
            # What is found here has events too, of which more may come.
            while seen != world.trace.count and self.failure is None:
                seen = world.trace.count
                self._look_at_steps()
                self._beside.after_entry()
                for fault_id in self._beside.begun:
                    self._reach(fault_id, first)
                self._beside.begun.clear()
            self._expectations.after_entry(first)
            self._seen = world.trace.count
        for text in self._beside.failed:
            self._fail(0, text)
        if self._passes_over:
            self._beside.failed.clear()

    def _look_at_steps(self) -> None:
        for begun in list(self._waiting):
            try:
                is_done = begun.progress.is_done()
            except (VerbFailed, WorldError) as error:
                self._waiting.remove(begun)
                self._fail(begun.step.number, str(error))
                self._go_on_behind(begun.step, begun.number)
                continue
            if is_done:
                self._waiting.remove(begun)
                self._finish(begun)

    def _finish(self, begun: _Begun) -> None:
        world, step = self.world, begun.step
        args = _args(step) | {"done": True}
        number = world.trace.emit(world.now_us, "world", Kind.STEP, (begun.number,), args)
        if step.id in self._copied:
            for name in (CONTROLLER, *world.config.names):
                world.copy_disk(name, f"{step.id}/{name}")
        self._go_on_behind(step, number)

    def _go_on_behind(self, step: Step, number: int) -> None:
        """A step is over, with an event: those that follow begin, unless the run has failed."""
        if self.failure is not None:
            return
        if step.id:
            self._reach(step.id, number)
        steps = self.scenario.steps
        following = steps[step.number] if step.number < len(steps) else None
        if following is not None and following.at_us is None and following.after is None:
            self._enter(following, self.world.now_us)

    def _reach(self, known_as: str, event: int) -> None:
        """A step is done, or a fault has begun: what comes after it."""
        self._reached.add(known_as)
        self._expectations.reached(known_as, event)
        for each in self.scenario.steps:
            if each.after == known_as:
                self._enter(each, self.world.now_us + each.delay_us)


def _args(step: Step) -> dict[str, Any]:
    return {"id": step.id or str(step.number), "step": step.action.NAME}


def _steps_to_copy(scenario: Scenario) -> frozenset[str]:
    """Steps behind which disks are copied, since a later one starts a node on them."""
    disks = [getattr(step.action, "disk", None) for step in scenario.steps]
    names = [disk for disk in disks if isinstance(disk, str) and disk.startswith("image:")]
    return frozenset(name.removeprefix("image:") for name in names)
