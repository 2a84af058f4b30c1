"""What a shrunk scenario must still show, and how a run is asked for it.

A run shows the goal if it has the same finding, and no finding that the scenario did not have to
begin with: otherwise the failure that is left may be another one than the failure that was. Two
kinds of findings say little by their name alone, and are held to more:

* a step that could not act must be one of the same action, and fail in the same way;
* an expectation must have been judged by its expression, where it was before.

Left out: the search (``sim.shrinking.trials``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import frozen

from sim.blame.loss_tests import tested
from sim.running.findings import Examined, Finding, Identity, examine
from sim.scenario.model import Scenario

__all__ = ["FINDS", "Base", "Goal", "goal_of", "is_find", "look"]

FINDS: Final = ("invariant", "loss", "liveness", "anomaly", "oracle", "defect")
"""Kinds that are worth a scenario of their own where they are met on the way: a step that cannot
act, and an expectation that fails, are what comes of taking a scenario apart."""
_BAD_LICENCES: Final = ("ILLEGAL", "UNEXPLAINED")
_NUMBERS: Final = re.compile(r"[0-9.]+(us|ms|s|m|h)?\b")
_WAYS: Final = ("never begun", "not done by the end", "not done in time")


@frozen
class Goal:
    """What is looked for.

    Attributes:
        identity: of the finding.
        allowed: identities that a run may have beside it.
        is_strict: as for ``findings``.
        tests_losses: whether losses are put to the test, which takes runs of its own.
        step: action of a step that could not act, and the way in which it failed.
        is_judged: whether the expression of an expectation must have decided.
        may_be_cut_short: whether a run whose budget of events ended counts.
    """

    identity: Identity
    allowed: frozenset[Identity]
    is_strict: bool = False
    tests_losses: bool = False
    step: tuple[str, str] | None = None
    is_judged: bool = False
    may_be_cut_short: bool = False

    @property
    def kind(self) -> str:
        return self.identity[0]

    @property
    def name(self) -> str:
        return self.identity[1]

    @property
    def is_about_the_end(self) -> bool:
        """Whether it is what is missing at the end that fails, so that an early end fails, too."""
        if self.kind == "expectation":
            return self.name.partition(":")[0] in ("eventually", "at_end", "breaks")
        return self.kind == "step" and self.step is not None and self.step[1] in _WAYS[:2]

    def finding(self, examined: Examined) -> Finding | None:
        """The finding that shows it; None where there is none."""
        return next((each for each in examined.findings if each.identity == self.identity), None)

    def is_shown_by(self, scenario: Scenario, examined: Examined) -> bool:
        """Whether a run shows it, and nothing new."""
        if self.finding(examined) is None or examined.identities - self.allowed:
            return False
        result = examined.result
        if result is None:
            return True
        failure = result.failure
        if failure is not None and failure.is_inconclusive and not self.may_be_cut_short:
            return False
        if self.step is not None and self.step != _failed_step(scenario, examined):
            return False
        return not self.is_judged or _is_judged(self.name, examined)


def goal_of(scenario: Scenario, examined: Examined, finding: Finding, *, is_strict: bool) -> Goal:
    """The goal to keep a finding of a run."""
    result = examined.result
    failure = None if result is None else result.failure
    kind, name = finding.identity
    return Goal(
        finding.identity,
        examined.identities,
        is_strict,
        False,
        _failed_step(scenario, examined) if kind == "step" else None,
        kind == "expectation" and _is_judged(name, examined),
        failure is not None and failure.is_inconclusive,
    )


def _failed_step(scenario: Scenario, examined: Examined) -> tuple[str, str] | None:
    """What the step does that ended the run, and how that failed: words without numbers."""
    result = examined.result
    if result is None or result.failure is None:
        return None
    failure = result.failure
    name = ""
    if failure.step:
        step = scenario.steps[failure.step - 1]
        # Not by its number or id, which change.
        name = step.action.NAME
    way = next((each for each in _WAYS if failure.text.startswith(each)), "")
    return name, way or _NUMBERS.sub("N", failure.text)


def _is_judged(name: str, examined: Examined) -> bool:
    """Whether the expression of an expectation that fails was asked, and not its window missed."""
    if examined.result is None:
        return False
    return any(
        each.holds is False
        and not each.detail
        and f"{each.expect.form}: {each.expect.that}" == name
        for each in examined.result.expectations
    )


def is_find(identity: Identity, expected: frozenset[str]) -> bool:
    """Whether something met on the way is worth a scenario of its own.

    Args:
        expected: names that the scenario itself says are violated.
    """
    kind, name = identity
    if kind == "loss":
        return name in _BAD_LICENCES
    return kind in FINDS and name not in expected


# The first run -----------------------------------------------------------------------------------


@frozen
class Base:
    """The run that is to be made small.

    Attributes:
        is_strict: whether what the scenario excuses is told.
        is_excused: whether that is so since nothing else was found.
    """

    scenario: Scenario
    examined: Examined
    is_strict: bool
    is_excused: bool = False


def look(scenario: Scenario, *, is_strict: bool = False, **options: Any) -> Base:
    """Run it as ``leaderfall run`` does, with its losses put to the test.

    Where nothing is wrong, what the scenario excuses is what it is about.

    Args:
        options: of ``run_scenario``.

    Raises:
        ScenarioError: something in it is not built yet.
    """
    examined = examine(scenario, is_strict=is_strict, tests_losses=tested, **options)
    if examined.findings or is_strict or examined.is_inconclusive:
        return Base(scenario, examined, is_strict)
    strict = examine(scenario, is_strict=True, tests_losses=tested, **options)
    return Base(scenario, strict, is_strict=True, is_excused=True)
