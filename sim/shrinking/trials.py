"""Candidates, one by one: each is the text of a file, read, run and judged; the best is kept.

A text is tried once. What cannot be read costs no run. What else is found on the way is kept with
the smallest text that has shown it so far.

Left out: which candidates there are.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

from attrs import define, evolve, field, frozen

from sim.blame.loss_tests import tested_as_kept
from sim.running.findings import Examined, Finding, Identity, examine
from sim.running.interpreter import EVENTS_MAX
from sim.running.without import Moments
from sim.scenario.model import Scenario
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.scenario.wiring import require_wired
from sim.scenario.writing import scenario_text
from sim.shrinking.goals import Goal, is_find
from sim.shrinking.tables import Document
from sim.trace.lines import Event, Level
from sim.world import World

__all__ = ["RUNS_MAX", "BudgetOver", "Find", "Trials"]

RUNS_MAX: Final = 1_000
"""Runs of one search, unless told otherwise."""
_FINDS_MAX: Final = 20
_EVENTS_MIN: Final = 20_000
_EVENTS_TIMES: Final = 4


class BudgetOver(Exception):
    """So many runs were allowed, and there were so many."""


@frozen
class Find:
    """Something else that is wrong with a candidate.

    Attributes:
        text: of the scenario file that shows it.
    """

    finding: Finding
    text: str


@define(eq=False)
class Trials:
    """See the module.

    Attributes:
        document, scenario, text: the best so far, which shows the goal.
        examined: its run.
        ended_us: when the run of the best was over, or was broken off by an exception.
        runs: so far; ``refused`` candidates could not be read, and took none.
        accepted: so many candidates became the best.
        finds: what else was found, by identity.
        stage: what is being tried, for who looks on.
        on_run: told behind each run.
    """

    goal: Goal
    document: Document
    scenario: Scenario
    examined: Examined
    runs_max: int = RUNS_MAX
    events_max: int = EVENTS_MAX
    on_run: Callable[[Trials], None] | None = None
    runs: int = 0
    refused: int = 0
    accepted: int = 0
    finds: dict[Identity, Find] = field(factory=dict)
    stage: str = ""
    ended_us: int = 0
    _now_us: int = 0
    _tried: set[bytes] = field(factory=set)
    _expected: frozenset[str] = frozenset()

    def __attrs_post_init__(self) -> None:
        self._tried.add(_key(self.text))
        names = (name for each in self.scenario.expects for name in each.breaks)
        self._expected = frozenset(names)

    @property
    def text(self) -> str:
        return self.scenario.text

    def start(self) -> bool:
        """Run what there is to begin with; whether it shows the goal.

        Raises:
            BudgetOver: there were enough runs.
        """
        examined = self._run(self.scenario)
        if not self.goal.is_shown_by(self.scenario, examined):
            return False
        self.examined, self.ended_us = examined, self._now_us
        return True

    @property
    def moments(self) -> Moments:
        """When everything happened in the run of the best; nothing where it has no verdict."""
        if self.examined.result is None:
            return Moments({}, {}, {}, self.scenario.until_us)
        return self.examined.result.moments

    def attempt(self, document: Document, *, is_last: bool = False) -> bool:
        """Try a candidate; if it shows the goal it is the best from now on.

        Args:
            is_last: try it though it was tried before; nobody goes back from here.

        Raises:
            BudgetOver: there were enough runs.
        """
        text = scenario_text(document)
        key = _key(text)
        if text == self.text or (key in self._tried and not is_last):
            return False
        self._tried.add(key)
        try:
            scenario = parse_scenario(text)
            require_wired(scenario)
            scenario = evolve(scenario, make_broker=self.scenario.make_broker)
        except ScenarioError:
            self.refused += 1
            return False
        examined = self._run(scenario)
        if self.goal.is_shown_by(scenario, examined):
            self.document, self.scenario, self.examined = document, scenario, examined
            self.ended_us = self._now_us
            self.accepted += 1
            return True
        self._take_finds(text, examined)
        return False

    def observe(self) -> list[Event]:
        """The events of the best, which takes a run; none where its run ends with an exception."""
        examined = self._run(self.scenario, keeps_lines=True)
        return [] if examined.result is None else list(examined.result.trace.events())

    def _run(self, scenario: Scenario, *, keeps_lines: bool = False) -> Examined:
        if self.runs >= self.runs_max:
            raise BudgetOver
        self.runs += 1
        options: dict[str, Any] = {"level": Level.FULL if keeps_lines else Level.DIGEST}
        if self.goal.tests_losses:
            options["tests_losses"] = tested_as_kept
        worlds: list[World] = []
        examined = examine(
            scenario,
            is_strict=self.goal.is_strict,
            keeps_lines=keeps_lines or self.goal.tests_losses,
            events_max=self._events_max(),
            on_world=worlds.append,
            **options,
        )
        self._now_us = max(0, worlds[0].now_us - worlds[0].trace.zero_us) if worlds else 0
        if self.on_run is not None:
            self.on_run(self)
        return examined

    def _events_max(self) -> int:
        """A candidate that goes on and on is none that is smaller."""
        result = self.examined.result
        if result is None:
            return self.events_max
        # Recovery has a budget of the same size, and often takes more than the run did.
        known = max(result.trace.count, 0 if result.liveness is None else result.liveness.events)
        return min(self.events_max, max(_EVENTS_MIN, _EVENTS_TIMES * known))

    def _take_finds(self, text: str, examined: Examined) -> None:
        for each in examined.findings:
            if each.identity in self.goal.allowed or not is_find(each.identity, self._expected):
                continue
            known = self.finds.get(each.identity)
            if known is None and len(self.finds) >= _FINDS_MAX:
                continue
            if known is None or len(text) < len(known.text):
                self.finds[each.identity] = Find(each, text)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
