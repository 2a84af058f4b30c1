"""What is wrong with a run, each thing with an identity by which two runs can be compared.

The identity is coarse (FAULTS E.4): which check, or where in the code, and neither the nodes nor
the numbers. Two runs with one identity need not fail for one reason; two without fail differently.

Left out: which of several findings matters, and words for people (``sim.present``).
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from sim.histories.anomalies import illegal
from sim.running.agreement import OracleFault
from sim.running.scenario_run import Result, run_scenario
from sim.running.verdicts import ILLEGAL
from sim.scenario.model import Scenario
from sim.scenario.problems import ScenarioError

__all__ = ["KINDS", "Examined", "Finding", "Identity", "examine", "examined_by", "findings"]

KINDS: Final[dict[str, str]] = {
    "invariant": "a rule of the protocol was violated, by its name",
    "loss": "records were lost under a licence that nothing covers, by the licence",
    "liveness": "the cluster did not recover, by the word of the outcome",
    "expectation": "an expectation of the file does not hold, by what it says",
    "step": "a step could not act, or was not done in time",
    "anomaly": "clients saw what a guard that is off is against, by the name of the anomaly",
    "oracle": "the layers of judgement disagree",
    "defect": "an exception, by its type and the function that raised it",
}
"""Kind of a finding, and what its name is."""

Identity = tuple[str, str]
"""Kind and name of a finding."""


@frozen
class Finding:
    """One thing that is wrong.

    Attributes:
        kind: of ``KINDS``.
        name: which one of that kind.
        text: one line for people.
        event: of the trace at which it was seen; 0 for none.
    """

    kind: str
    name: str
    text: str
    event: int = 0

    @property
    def identity(self) -> Identity:
        return self.kind, self.name


@frozen
class Examined:
    """A run and what is wrong with it.

    Attributes:
        findings: in the order in which they are told; empty if the run passed.
        result: None where the run ended with an oracle fault or a defect.
        error: that ended it; None if none did.
    """

    findings: tuple[Finding, ...]
    result: Result | None
    error: Exception | None = None

    @property
    def identities(self) -> frozenset[Identity]:
        return frozenset(each.identity for each in self.findings)

    @property
    def is_inconclusive(self) -> bool:
        """The budget of events ended, and nothing was wrong by then."""
        return (
            not self.findings
            and self.result is not None
            and self.result.verdict.word == "inconclusive"
        )


def examine(scenario: Scenario, *, is_strict: bool = False, **options: Any) -> Examined:
    """Run a scenario and say what is wrong, whatever ends the run.

    Args:
        is_strict: as for ``findings``.
        options: of ``run_scenario``.

    Raises:
        ScenarioError: something in it is not built yet.
        KeyboardInterrupt: of the user.
    """
    return examined_by(
        lambda: run_scenario(scenario, is_strict=is_strict, **options), is_strict=is_strict
    )


def examined_by(run: Callable[[], Result], *, is_strict: bool = False) -> Examined:
    """What is wrong with whatever runs, and how it ends."""
    try:
        result = run()
    except ScenarioError:
        raise
    except OracleFault as error:
        text = str(error)
        return Examined((Finding("oracle", "disagreement", text),), None, error)
    except Exception as error:  # noqa: BLE001 - whatever a run raises is what is looked for
        return Examined((_defect(error),), None, error)
    return Examined(tuple(findings(result, is_strict=is_strict)), result)


def findings(result: Result, *, is_strict: bool = False) -> Iterator[Finding]:
    """What is wrong with a run that came to a verdict.

    Args:
        is_strict: tell also what the scenario excuses or expects: a broken rule where a guard is
            off, a loss that is illegal or unexplained and covered by ``breaks``, what clients saw
            that is legal only since a guard is off.
    """
    verdict = result.verdict
    for broken in verdict.broken:
        first = broken.first
        if first is not None and (is_strict or not (broken.is_expected or broken.is_excused)):
            yield Finding("invariant", broken.name, str(first), first.event)
    for lost in verdict.lost:
        is_bad = is_strict and lost.licence in ILLEGAL
        if is_bad or not lost.is_covered:
            event = min((loss.told for loss, _ in lost.losses), default=0)
            text = f"{lost.records} records lost: {lost.licence}"
            yield Finding("loss", lost.licence, text, event)
    for anomaly in illegal(result.anomalies) if is_strict else ():
        text = f"{anomaly.partition}: {anomaly.name}: {anomaly.detail}"
        yield Finding("anomaly", anomaly.name, text, max(anomaly.events, default=0))
    if result.liveness is not None:
        for text in result.liveness.wrong:
            yield Finding("liveness", result.liveness.word, text)
    if result.failure is not None and not result.failure.is_inconclusive:
        yield Finding("step", "cannot act", result.failure.text)
    for each in result.expectations:
        if each.holds is False:
            that = f"{each.expect.form}: {each.expect.that}"
            yield Finding("expectation", that, f"does not hold: {that}", each.event or 0)
    named = {each.name for each in verdict.broken}
    for each in result.expectations:
        for name in each.expect.breaks:
            text = f"breaks: {name} was not violated"
            if name not in named and text in verdict.reasons:
                yield Finding("expectation", f"breaks: {name}", text)


def _defect(error: Exception) -> Finding:
    """By the innermost function of ours that was on the stack."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [each for each in frames if "site-packages" not in each.filename] or frames
    last = ours[-1]
    where = f"{Path(last.filename).stem}.{last.name}"
    text = f"{type(error).__name__} in {where}: {error}"
    return Finding("defect", f"{type(error).__name__} in {where}", text)
