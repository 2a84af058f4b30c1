"""``check(scenario)``: run it, and fail with what is wrong with it.

Left out: driving a cluster step by step (``sim.testing.machine``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sim.blame.loss_tests import tested
from sim.failures import FOLDER, SavedCase, save_case
from sim.running.findings import examine
from sim.running.scenario_run import Result
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.testing.coverage import tell
from sim.testing.failing import case_name, failure
from sim.trace.lines import Level
from sim.world import World

__all__ = ["check"]


def check(
    scenario: Scenario | Mapping[str, Any],
    *,
    name: str | None = None,
    folder: Path = FOLDER,
    is_strict: bool = False,
    **options: Any,
) -> Result:
    """Run a scenario; it must hold what it expects, break no rule and lose nothing it may not.

    In a test of Hypothesis the run's coverage becomes events and targets, and only the smallest
    failing case is saved. A run that is out of events is no failure: the result's verdict says
    ``inconclusive``, and so does an event.

    Args:
        scenario: one variant, everything applied; or the tables of one.
        name: of the case, and so of its folder; by default that of the running test.
        folder: where failing cases go.
        is_strict: excuse nothing because a guard is off, or because it is broken on purpose.
        options: of ``run_scenario``.

    Raises:
        ScenarioFailed: something is wrong.
        ScenarioError: the tables are no scenario, or something in it is not built yet.
    """
    __tracebackhide__ = True
    if not isinstance(scenario, Scenario):
        scenario = parse_scenario(scenario_text(dict(scenario)))
    worlds: list[World] = []
    examined = examine(
        scenario,
        is_strict=is_strict,
        **{
            "level": Level.EVENTS,
            "keeps_lines": True,
            "tests_losses": tested,
            **options,
            "on_world": _noting(worlds, options.get("on_world")),
        },
    )
    more = ["inconclusive"] if examined.is_inconclusive else []
    if examined.result is not None and examined.result.liveness is not None:
        more.append(f"liveness: {examined.result.liveness.word}")
    if worlds:
        tell(worlds[0].trace, *more)
    if examined.findings:
        found = scenario

        def save(known_as: str) -> SavedCase:
            return save_case(
                found,
                name=known_as,
                folder=folder,
                examined=examined,
                is_strict=is_strict,
                **options,
            )

        raise failure(examined.findings, name or case_name(scenario.name), save) from examined.error
    assert examined.result is not None
    return examined.result


def _noting(worlds: list[World], told: Callable[[World], None] | None) -> Callable[[World], None]:
    def on_world(world: World) -> None:
        worlds.append(world)
        if told is not None:
            told(world)

    return on_world
