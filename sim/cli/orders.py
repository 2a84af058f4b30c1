"""What ``run`` was asked to do: each scenario and variant as one order, checked before any runs.

Left out: carrying orders out (``sim.cli.runs``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from sim.cli.files import DEFAULT_OUT
from sim.shell_words import command_line

if TYPE_CHECKING:
    from sim.scenario.model import Scenario
    from sim.scenario.problems import Problem

__all__ = ["Order", "Settings", "orders_of", "parse_overrides"]


@frozen(kw_only=True)
class Settings:
    """How to run; none of it but ``replica`` changes a digest.

    Attributes:
        disk: ``real`` for broker directories in the run folder, or ``memory``.
        level: of the trace.
        is_live: a file without ``[liveness]`` is asked for it, too.
        is_strict: a guard that is off excuses nothing.
        replica: what makes brokers, as ``MODULE:NAME``; None for ours.
        events_max: a run ends inconclusively behind so many events; None for the default.
    """

    out: str = DEFAULT_OUT
    disk: str = "real"
    level: str = "full"
    is_live: bool = False
    is_strict: bool = False
    replica: str | None = None
    is_paranoid: bool = False
    events_max: int | None = None


@frozen
class Order:
    """One run.

    Attributes:
        scenario: as it runs, variant and overrides applied.
        file: as the user named it.
        overrides: as written on the command line.
    """

    scenario: Scenario
    file: str
    overrides: tuple[str, ...]

    @property
    def name(self) -> str:
        """For lists: scenario and variant."""
        variant = self.scenario.variant
        return self.scenario.name if variant is None else f"{self.scenario.name} ({variant})"

    def live(self) -> Order:
        """The same, and whether the cluster recovers, by defaults where the file says nothing."""
        from sim.scenario.model import Liveness

        scenario = self.scenario
        return evolve(self, scenario=evolve(scenario, liveness=scenario.liveness or Liveness()))

    def of_replica(self, make_broker: Callable[..., Any] | None) -> Order:
        """The same with brokers of the user's own; None for ours."""
        return evolve(self, scenario=evolve(self.scenario, make_broker=make_broker))

    def words(self, settings: Settings) -> list[str]:
        """The command that does it again."""
        words = ["leaderfall", "run", self.file, "--seed", str(self.scenario.seed)]
        if self.file.startswith("-"):
            words[2] = f"./{self.file}"
        if self.scenario.variant is not None:
            words += ["--variant", self.scenario.variant]
        for each in self.overrides:
            words += ["--set", each]
        for option, value, default in (
            ("--disk", settings.disk, "real"),
            ("--trace-level", settings.level, "full"),
            ("--out", settings.out, DEFAULT_OUT),
        ):
            if value != default:
                words += [option, value]
        if settings.is_live:
            words.append("--liveness")
        if settings.is_strict:
            words.append("--strict")
        if settings.replica is not None:
            words += ["--replica", settings.replica]
        if settings.events_max is not None:
            words += ["--events-max", str(settings.events_max)]
        return [*words, *(["--paranoid"] if settings.is_paranoid else [])]

    def replay(self, settings: Settings) -> str:
        """The same as a line to paste."""
        return command_line(self.words(settings))


def parse_overrides(texts: Iterable[str]) -> tuple[list[tuple[str, Any]], list[Problem]]:
    """What ``--set`` says, and what is wrong with it."""
    from sim.scenario.effective import parse_override
    from sim.scenario.problems import ScenarioError

    found, problems = [], []
    for text in texts:
        try:
            found.append(parse_override(text))
        except ScenarioError as error:
            problems += error.problems
    return found, problems


def orders_of(
    scenarios: Mapping[str, Scenario],
    *,
    seed: int | None,
    variants: Sequence[str],
    overrides: Sequence[tuple[str, Any]],
    texts: Sequence[str],
) -> tuple[list[Order], list[Problem]]:
    """Every run of these scenarios, and what is wrong with them; a variant must be in each file.

    Args:
        scenarios: by the name that the user gave.
        texts: of the overrides, as written.
    """
    from sim.scenario.effective import effective
    from sim.scenario.problems import ScenarioError
    from sim.scenario.wiring import unwired

    orders: list[Order] = []
    problems: list[Problem] = []
    for file, scenario in scenarios.items():
        names, wrong = _variants(scenario, variants)
        problems += wrong
        for name in names:
            try:
                found = effective(scenario, name, overrides, seed=seed)
            except ScenarioError as error:
                problems += error.problems
                continue
            problems += unwired(found)
            orders.append(Order(found, file, tuple(texts)))
    # What is wrong in every variant, or on the command line for every file, is told once.
    return orders, list(dict.fromkeys(problems))


def _hint(near: Sequence[str], known: Mapping[str, object]) -> str:
    from sim.scenario.problems import seen

    if near:
        return f"did you mean {seen(near[0])}?"
    return "" if known else "it has no variants at all: leave --variant out"


def _variants(scenario: Scenario, wanted: Sequence[str]) -> tuple[list[str | None], list[Problem]]:
    """The variants that run: those wanted, by name or folder's name, else all, else none."""
    from sim.scenario.problems import Problem, seen

    known = {each.name: each for each in scenario.variants}
    if not wanted:
        return [*known] or [None], []
    found: dict[str | None, None] = {}
    problems = []
    for name in wanted:
        match = next((n for n, each in known.items() if name in (n, each.slug)), None)
        if match is not None:
            found[match] = None
            continue
        near = get_close_matches(name, known, n=1)
        problems.append(
            Problem(
                f"--variant {seen(name)[1:-1]}",
                0,
                0,
                1,
                "",
                f"{seen(scenario.file)[1:-1]} has no variant {seen(name)}",
                _hint(near, known),
                tuple(known),
            )
        )
    return list(found), problems
