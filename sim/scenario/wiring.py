"""What files may say already and no run can do yet: a run refuses it, ``check`` reports it.

``require_wired(scenario)`` raises for what a run would have to leave out; ``notes_of(scenario)``
are words on what it leaves out without harm.

Left out: nothing that can be run is looked at here.
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.scenario.actions import Consume
from sim.scenario.model import Scenario
from sim.scenario.places import Places
from sim.scenario.problems import Path, Problem, ScenarioError

__all__ = ["notes_of", "require_wired", "unwired"]


def require_wired(scenario: Scenario) -> None:
    """Refuse to run what cannot be carried out.

    Raises:
        ScenarioError: something in it is not built yet; says what.
    """
    problems = unwired(scenario)
    if problems:
        raise ScenarioError(problems)


def unwired(scenario: Scenario) -> list[Problem]:
    """What a run cannot carry out yet, with places."""
    found = []
    places: Places | None = None
    for at, where, text in _unwired(scenario):
        places = places or Places(scenario.text)
        place = places.value(at)
        line = places.lines[place.line - 1]
        found.append(
            Problem(
                scenario.file,
                place.line,
                place.column,
                place.width,
                where,
                f"{text} is not built yet",
                "it is read and checked, but nothing can run it",
                source=line,
            )
        )
    return found


def _unwired(scenario: Scenario) -> Iterator[tuple[Path, str, str]]:
    for step in scenario.steps:
        at, where = ("step", step.number - 1), f"step {step.number}"
        match step.action:
            case Consume(isolation="read_committed"):
                yield (*at, "consume", "isolation"), where, "reading committed transactions only"
    for expect in scenario.expects:
        if "transaction-isolation" in expect.breaks:
            at, where = ("expect", expect.number - 1), f"expect {expect.number}"
            yield (*at, "breaks"), where, "the invariant transaction-isolation (I16)"


def notes_of(scenario: Scenario) -> list[str]:
    """What a run leaves out, in words: ``sometimes`` and ``[sweep]``."""
    found = []
    for expect in scenario.expects:
        if expect.form == "sometimes":
            found.append(f"expect {expect.number}: sometimes is not evaluated until sweeps exist")
    if scenario.sweep is not None:
        found.append("[sweep] is not evaluated until sweeps exist")
    return found
