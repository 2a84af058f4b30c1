"""A run whose scenario is written while it goes on: each step is recorded as it is taken.

    live = Live(base, seed=7)
    live.step({"crash": {"node": "b1"}})
    live.go_on(5_000_000)
    live.scenario()     # all of it, with times: a run of this is the same run

A step is taken a microsecond behind everything that has happened, and that is its time in the
scenario. So it stands in the timeline where it stands in a run of the file, and both runs have the
same events. A run stops behind the entry that broke a rule.

Left out: what to do next (``sim.testing``); workloads, which would not know when the run ends.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from attrs import evolve

from sim.checks.licences import LEGAL
from sim.liveness.judging import judge_liveness
from sim.running.findings import Examined, examined_by
from sim.running.interpreter import BOOT_US, EVENTS_MAX
from sim.running.scenario_run import LossTest, Result, conclude
from sim.running.staging import Stage, stage
from sim.scenario.documents import one_table
from sim.scenario.durations import DURATION_MAX_US, show_duration
from sim.scenario.fault_base import Fault
from sim.scenario.model import Liveness, Scenario, Step
from sim.scenario.problems import Problem, ScenarioError
from sim.scenario.structuring import Structurer
from sim.scenario.writing import applied_document
from sim.trace.lines import Level
from sim.trace.writer import Trace

__all__ = ["Live"]

_GAP_US: Final = 1
_UNKNOWN: Final = ("image:",)


class Live:
    """See the module.

    Attributes:
        stage: the world, its judge, and who carries out steps.
        error: what ended the run, where that was no broken rule; None while nothing did.
    """

    def __init__(
        self,
        base: Scenario,
        *,
        seed: int,
        allowed: Collection[str] = tuple(LEGAL),
        keeps_events: bool = False,
        events_max: int = EVENTS_MAX,
    ) -> None:
        """The cluster has booted, and nothing else has happened.

        Args:
            base: cluster, topics, what is allowed; no steps, faults or workloads.
            allowed: licences of losses behind which the run goes on.
            keeps_events: for ``stage.world.trace.events()``.

        Raises:
            ScenarioError: ``base`` has what only a file can have.
        """
        _require_bare(base)
        self._base = base
        self._seed = seed
        self._structurer = Structurer()
        self._allowed = frozenset(allowed)
        self._steps: list[dict[str, Any]] = []
        self._faults: list[dict[str, Any]] = []
        self._seen = 0, 0
        self._is_wrong = False
        self.error: Exception | None = None
        level = Level.EVENTS if keeps_events else Level.DIGEST
        trace = Trace(level, keeps_lines=keeps_events, zero_us=BOOT_US)
        whole = evolve(base, until_us=DURATION_MAX_US, seed=seed, liveness=None)
        self.stage: Stage = stage(whole, seed=seed, trace=trace, events_max=events_max)
        self._guarded(self._boot)

    def _boot(self) -> None:
        interpreter = self.stage.interpreter
        interpreter.boot()
        if interpreter.failure is None:
            interpreter.begin()
            self.is_broken()

    def fork(self) -> Live:
        """An independent run that has come as far."""
        self.stage.world.timeline.sweep()
        other = copy.copy(self)
        other.stage = copy.deepcopy(self.stage)
        other._steps, other._faults = list(self._steps), list(self._faults)
        return other

    @property
    def now_us(self) -> int:
        """From time 0 of the scenario."""
        return self.stage.world.now_us - self.stage.world.trace.zero_us

    @property
    def is_over(self) -> bool:
        """Whether nothing more may happen: a rule is broken, or the run has ended early."""
        return (
            self.error is not None or self.stage.interpreter.failure is not None or self._is_wrong
        )

    # Going on ----------------------------------------------------------------------------------

    def step(self, table: Mapping[str, Any]) -> str:
        """Take a step now: an action, as files spell it, and an ``id`` if it needs one.

        Returns:
            What ``heal`` knows it by.

        Raises:
            ScenarioError: the table is wrong; nothing has happened.
            ValueError: the run is over.
        """
        at_us = self._next_us()
        whole = {"at": show_duration(at_us), **table}
        found = self._read("step", self._steps, whole)
        assert isinstance(found, Step)
        disk = getattr(found.action, "disk", "")
        if isinstance(disk, str) and disk.startswith(_UNKNOWN):
            raise _wrong(f"{disk} cannot be kept while the scenario is being written")
        self._steps.append(whole)
        self.stage.interpreter.add(found)
        self._to(at_us)
        return found.fault_id

    def fault(self, table: Mapping[str, Any]) -> str:
        """A fault begins now: its ``kind`` and keys, as files spell them, without a ``start``.

        Returns:
            What ``heal`` knows it by.

        Raises:
            ScenarioError: the table is wrong; nothing has happened.
            ValueError: the run is over.
        """
        at_us = self._next_us()
        id_ = f"f{len(self._faults) + 1}"
        whole = {"id": id_, **table, "start": show_duration(at_us)}
        found = self._read("fault", self._faults, whole)
        assert isinstance(found, Fault)
        self._faults.append(whole)
        self.stage.beside.add(found)
        self._to(at_us)
        return found.id

    def _next_us(self) -> int:
        if self.is_over:
            raise ValueError("the run is over: nothing can be done any more")
        return self.now_us + _GAP_US

    def go_on(self, duration_us: int) -> None:
        """Time passes, unless the run is over."""
        self._to(self.now_us + duration_us)

    def _to(self, at_us: int) -> None:
        world, interpreter = self.stage.world, self.stage.interpreter
        if not self.is_over:
            self._guarded(lambda: interpreter.go_to(world.trace.zero_us + at_us, self.is_broken))

    def _guarded(self, act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever ends a run is what is looked for
            self.error = error

    def is_broken(self) -> bool:
        """Whether a rule is broken, or records were lost in a way that is not allowed."""
        judge = self.stage.judge
        seen = len(judge.violations), sum(len(each.losses) for each in judge.scene.ledgers.values())
        if seen != self._seen:
            self._seen = seen
            licences = {each.licence for each in judge.facts.losses()}
            self._is_wrong = bool(judge.violations) or not licences <= self._allowed
        return self._is_wrong

    def _read(self, key: str, tables: list[dict[str, Any]], table: dict[str, Any]) -> Step | Fault:
        return one_table(self._document() | {key: [*tables, table]}, key, self._structurer)

    # What was done -----------------------------------------------------------------------------

    def _document(self, steps: int | None = None, faults: int | None = None) -> dict[str, Any]:
        found = dict(self._base.document)
        if self._faults[:faults]:
            found["fault"] = self._faults[:faults]
        if self._steps[:steps]:
            found["step"] = self._steps[:steps]
        return found

    def scenario(self, liveness: Liveness | None = None) -> Scenario:
        """Everything so far, ending now.

        Args:
            liveness: what is asked behind the end.
        """
        # What the last step was to do has not happened, where the run ended in front of it.
        until_us = max(1, self.now_us)
        known = self.stage.interpreter.scenario.steps
        steps = tuple(each for each in known if (each.at_us or 0) <= until_us)
        begun = [each for each in self.stage.beside.added if (each.start.at_us or 0) <= until_us]
        found = evolve(
            self._base,
            until_us=until_us,
            seed=self._seed,
            steps=steps,
            faults=tuple(begun),
            liveness=liveness,
            document=self._document(len(steps), len(begun)),
        )
        return evolve(found, document=applied_document(found))

    def would_recover(self, liveness: Liveness) -> bool:
        """Whether the cluster recovers from here, in a copy: the run itself goes on as it was.

        Where that cannot be said, since the copy ends with an error, it does not.
        """
        if self.is_over:
            return False
        try:
            found = judge_liveness(self.stage, liveness, seed=self._seed)
        except Exception:  # noqa: BLE001 - ``conclude`` says what it is
            return False
        return not found.violations and not found.wrong

    def conclude(
        self,
        *,
        liveness: Liveness | None = None,
        is_strict: bool = True,
        tests_losses: LossTest | None = None,
    ) -> Examined:
        """The run is over: what is wrong with it, as a run of its file would have it.

        Nothing can be done behind it.
        """

        def run() -> Result:
            if self.error is not None:
                raise self.error
            interpreter = self.stage.interpreter
            if self.now_us < 1:
                self._to(1)
            if interpreter.failure is None:
                # The rest of this moment, too.
                interpreter.go_to(self.stage.world.now_us)
            if interpreter.failure is None:
                interpreter.end()
            self.stage.scenario = self.scenario(liveness)
            return conclude(
                self.stage, seed=self._seed, tests_losses=tests_losses, is_strict=is_strict
            )

        return examined_by(run, is_strict=is_strict)


def _require_bare(base: Scenario) -> None:
    for word, tables in (
        ("step", base.steps),
        ("fault", base.faults),
        ("workload", base.workloads),
        ("variant", base.variants),
    ):
        if tables:
            raise _wrong(f"there is a [[{word}]]: what happens is decided while it runs")


def _wrong(text: str) -> ScenarioError:
    return ScenarioError([Problem("", 0, 0, 1, "", text)])
