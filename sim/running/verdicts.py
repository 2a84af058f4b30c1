"""The verdict over a run: expectations, broken invariants, losses, and what ended it.

Rules (DECISIONS 3): every expectation holds; every name in ``breaks`` was violated at least once;
no other invariant was, unless a guard is off or an older truncation mode is on; every loss is
covered (``sim.running.coverage``); the ledger agrees with the files (``sim.checks.audit``). A run
whose budget ended is inconclusive, unless something was wrong by then.

Left out: words for people (``sim.present``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from attrs import evolve, field, frozen

from sim.checks.judge import Judge
from sim.checks.violations import Violation
from sim.histories.anomalies import Anomaly, illegal
from sim.liveness.outcome import Outcome
from sim.running.coverage import PROMISES, Lost, Tested, coverage, lost_by_licence
from sim.running.expectations import Expectation
from sim.running.interpreter import Failure
from sim.scenario.model import Scenario

__all__ = [
    "ALIASES",
    "ILLEGAL",
    "PROMISES",
    "Broken",
    "Verdict",
    "is_loose",
    "strict",
    "verdict_of",
]

ALIASES: Final = {"log-matching": ("committed-log-matching", "epoch-prefix")}
"""A name that stands for several invariants."""
ILLEGAL: Final = ("ILLEGAL", "UNEXPLAINED")
"""What no scenario can allow a loss under."""


@frozen
class Broken:
    """An invariant that was violated, or a promise that lost records.

    Attributes:
        count: violations, or records lost.
        is_expected: ``breaks`` names it.
        is_excused: a guard is off, or the truncation mode is an older one; of a promise, all its
            losses are covered.
        first: the first violation; None for a promise.
    """

    name: str
    count: int
    is_expected: bool
    is_excused: bool
    first: Violation | None = None


@frozen
class Verdict:
    """What came of a run.

    Attributes:
        word: ``passed``, ``failed`` or ``inconclusive``.
        reasons: why it is not passed, one for each.
        broken: in the order in which it happened, promises last.
        unjudged: what the scenario says and nothing judges yet, or nothing came of.
        lost: by licence.
        tested: what runs without the culprits have shown, by the event that tells of the loss.
    """

    word: str
    reasons: tuple[str, ...]
    broken: tuple[Broken, ...]
    unjudged: tuple[str, ...] = ()
    lost: tuple[Lost, ...] = ()
    tested: Mapping[int, Tested] = field(factory=dict)

    @property
    def exit_code(self) -> int:
        return {"passed": 0, "failed": 1, "inconclusive": 3}[self.word]


def verdict_of(
    scenario: Scenario,
    judge: Judge,
    expectations: Iterable[Expectation],
    failure: Failure | None,
    never_begun: Iterable[str] = (),
    liveness: Outcome | None = None,
    tested: Mapping[int, Tested] | None = None,
) -> Verdict:
    """The verdict, once the judge has finished and all expectations are judged.

    Args:
        never_begun: ids of the faults that never began.
        liveness: what it found counts as if it had been found in the run.
        tested: what runs without the culprits of losses have shown.
    """
    expectations = list(expectations)
    wanted = _wanted(expectations)
    lost, uncovered = coverage(
        lost_by_licence(judge, tested or {}, () if liveness is None else liveness.losses),
        expectations,
        wanted,
        is_loose=is_loose(scenario),
    )
    broken = _broken(scenario, judge, wanted, lost, liveness)
    is_cut_short = failure is not None and failure.is_inconclusive
    names = {each.name for each in broken}
    missing = [f"breaks: {name} was not violated" for name in wanted if not _is_in(name, names)]
    wrong = [
        f"expect {each.number} does not hold: {each.expect.that}"
        for each in expectations
        if each.holds is False
    ]
    wrong += [] if is_cut_short else missing
    wrong += [
        f"{each.name} was violated"
        for each in broken
        if each.first is not None and not each.is_expected and not each.is_excused
    ]
    wrong += uncovered
    wrong += () if liveness is None else liveness.wrong
    reasons = []
    if failure is not None:
        where = f"step {failure.step}: " if failure.step else ""
        reasons.append(f"{where}{failure.text}")
    # What is wrong by the end of the budget is wrong whatever would have followed.
    word = "failed" if wrong or (reasons and not is_cut_short) else "passed"
    is_unknown = liveness is not None and liveness.word == "inconclusive"
    if word == "passed" and (is_cut_short or is_unknown):
        word = "inconclusive"
    unjudged = _unjudged(scenario, expectations)
    unjudged += [f"fault {each!r} never began" for each in never_begun]
    return Verdict(
        word, (*reasons, *wrong), tuple(broken), tuple(unjudged), tuple(lost), tested or {}
    )


def strict(verdict: Verdict, anomalies: Iterable[Anomaly]) -> Verdict:
    """The verdict where nothing is excused or broken on purpose: rules, losses, what clients saw.

    Args:
        anomalies: what clients saw, with nothing made legal by a guard that is off.
    """
    let_pass = [
        each
        for each in verdict.broken
        if each.first is not None and (each.is_expected or each.is_excused)
    ]
    wrong = [f"{each.name} was violated" for each in let_pass]
    wrong += [
        f"{each.records} records were lost, {each.licence}"
        for each in verdict.lost
        if each.licence in ILLEGAL and each.is_covered
    ]
    wrong += [
        f"clients of {each.partition} saw {each.name}: {each.detail}" for each in illegal(anomalies)
    ]
    if not wrong:
        return verdict
    broken = tuple(
        evolve(each, is_expected=False, is_excused=False) if each in let_pass else each
        for each in verdict.broken
    )
    return evolve(verdict, word="failed", reasons=(*verdict.reasons, *wrong), broken=broken)


def is_loose(scenario: Scenario) -> bool:
    """A guard is off, or the truncation mode is an older one."""
    return scenario.cluster.truncation != "fetch" or not all(scenario.cluster.guards.values())


def _wanted(expectations: list[Expectation]) -> list[str]:
    names = [name for each in expectations for name in each.expect.breaks]
    return list(dict.fromkeys(names))


def _is_in(name: str, names: set[str]) -> bool:
    return any(each in names for each in ALIASES.get(name, (name,)))


def _broken(
    scenario: Scenario,
    judge: Judge,
    wanted: list[str],
    lost: list[Lost],
    liveness: Outcome | None,
) -> list[Broken]:
    expected = {each for name in wanted for each in ALIASES.get(name, (name,))}
    excuses = is_loose(scenario)
    by_name: dict[str, list[Violation]] = {}
    behind = () if liveness is None else liveness.violations
    for violation in (*judge.violations, *behind):
        by_name.setdefault(violation.check, []).append(violation)
    found = [
        Broken(name, len(each), name in expected, excuses, each[0])
        for name, each in by_name.items()
    ]
    for promise, word in PROMISES.items():
        count = judge.facts.lost(word)
        for _, records, kinds in () if liveness is None else liveness.losses:
            count += records if word in kinds else 0
        if count:
            is_covered = all(each.is_covered for each in lost if promise in each.promises)
            found.append(Broken(promise, count, promise in expected, is_covered))
    return found


def _unjudged(scenario: Scenario, expectations: list[Expectation]) -> list[str]:
    found = []
    if any(each.expect.form == "sometimes" for each in expectations):
        found.append("sometimes: needs a sweep")
    if scenario.sweep is not None:
        found.append("[sweep]: one seed was run")
    return found
