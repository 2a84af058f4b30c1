"""``check(scenario)``: run it, and fail with what is wrong with it.

Left out: driving a cluster step by step (``sim.testing.machine``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

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

_OPTIONS: Final = ("seed", "events_max", "on_world", "is_paranoid", "tests_losses")
_SEED_MAX: Final = 2**63 - 1


def check(
    scenario: Scenario | Mapping[str, Any],
    *,
    name: str | None = None,
    folder: Path | str = FOLDER,
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
        options: of ``run_scenario``: ``seed``, ``events_max``, ``on_world``, ``is_paranoid``,
            ``tests_losses``. Where it writes, and how much, is decided here.

    Raises:
        ScenarioFailed: something is wrong with the run.
        ValueError: an argument is wrong; names it and what is allowed.
        ScenarioError: the tables are no scenario, or something in it is not built yet.
    """
    __tracebackhide__ = True
    if not isinstance(scenario, Scenario | Mapping):
        raise ValueError(
            f"scenario is {scenario!r}, allowed are a Scenario and the tables of one; "
            "sim.scenario.reading.read_scenario reads a file"
        )
    if not isinstance(folder, Path | str):
        raise ValueError(f"folder is {folder!r}, allowed is a path")
    _check_options(options)
    if not isinstance(scenario, Scenario):
        scenario = parse_scenario(scenario_text(dict(scenario)))
    if scenario.variants and scenario.variant is None:
        names = ", ".join(each.name for each in scenario.variants)
        raise ValueError(
            f"scenario {scenario.name!r} has variants, allowed is one of {names}: "
            "sim.scenario.effective.effective(scenario, NAME) gives it"
        )
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


def _check_options(options: Mapping[str, Any]) -> None:
    """What is wrong with a call is no failure of a scenario."""
    for name in options:
        if name not in _OPTIONS:
            raise ValueError(f"there is no option {name!r}, allowed are {', '.join(_OPTIONS)}")
    seed, events_max = options.get("seed"), options.get("events_max", 1)
    if seed is not None and (type(seed) is not int or not 0 <= seed <= _SEED_MAX):
        raise ValueError(f"seed is {seed!r}, allowed is an integer 0..{_SEED_MAX}")
    if type(events_max) is not int or events_max < 1:
        raise ValueError(f"events_max is {events_max!r}, allowed is an integer from 1")
    for name in ("on_world", "tests_losses"):
        if options.get(name) is not None and not callable(options[name]):
            raise ValueError(f"{name} is {options[name]!r}, allowed is a function")


def _noting(worlds: list[World], told: Callable[[World], None] | None) -> Callable[[World], None]:
    def on_world(world: World) -> None:
        worlds.append(world)
        if told is not None:
            told(world)

    return on_world
