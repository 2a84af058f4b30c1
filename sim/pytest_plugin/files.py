"""Scenario files as tests: which files are scenarios, and an item for each variant and seed.

Left out: what a run comes to (``sim.running``).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from sim.pytest_plugin.traces import Traces

__all__ = ["ScenarioFailed", "ScenarioFile", "ScenarioItem", "is_scenario", "places_of"]

_BYTES_MAX: Final = 1_000_000
_GLOB: Final = re.compile(r"[*?\[]")
_OURS: Final = frozenset({"cluster", "step", "topic", "until", "workload"})
_TOP_KEY: Final = re.compile(r"(schema|name)[ \t]*=")


def is_scenario(path: Path) -> bool:
    """Whether a file means to be a scenario, right or wrong.

    It has ``schema`` and ``name`` at its top, or one of them and what else only scenarios have.
    What is no TOML counts by its lines in front of the first table.
    """
    try:
        with path.open("rb") as stream:
            text = stream.read(_BYTES_MAX + 1).decode("utf-8", "replace").removeprefix("\ufeff")
    except OSError:
        return False
    try:
        keys = set(tomllib.loads(text))
    except (ValueError, RecursionError):
        head: list[str] = []
        for line in text.splitlines():
            if line.startswith("["):
                break
            head.append(line)
        found = {match[1] for line in head if (match := _TOP_KEY.match(line))}
        return len(found) == 2
    if "schema" in keys:
        return "name" in keys or bool(_OURS & keys)
    return "name" in keys and {"until", "step"} <= keys


def places_of(patterns: Iterable[str], root: Path) -> list[Path]:
    """The folders and files that ``leaderfall_scenarios`` names.

    Raises:
        pytest.UsageError: one of them is not there.
    """
    found: list[Path] = []
    for pattern in patterns:
        is_glob = _GLOB.search(pattern) is not None and not Path(pattern).is_absolute()
        paths = sorted(root.glob(pattern)) if is_glob else [root / pattern]
        paths = [each for each in paths if each.exists()]
        if not paths:
            raise pytest.UsageError(
                f"leaderfall_scenarios has {pattern!r}, and nothing of that name is in {root}"
            )
        found += [each.resolve() for each in paths]
    return list(dict.fromkeys(found))


class ScenarioFailed(Exception):
    """A run that did not pass; the text is all there is to say."""


class ScenarioFile(pytest.File):
    """Collects the variants of one file.

    Attributes:
        seeds: None for the file's own.
        names_seed: whether ids have the seed.
        expected_digest: of the trace that is replayed; empty for none.
    """

    seeds: Sequence[int] | None = None
    names_seed = True
    expected_digest = ""
    traces: Traces

    def collect(self) -> Iterator[pytest.Item]:
        """One item for each variant and seed, in the order of the file.

        Raises:
            CollectError: the file is wrong; all that is wrong with it is told.
        """
        from sim.cli.orders import orders_of
        from sim.scenario.problems import ScenarioError
        from sim.scenario.reading import read_scenario

        name = _shown(self.path, self.config)
        try:
            scenario = read_scenario(name)
            for seed in self.seeds if self.seeds is not None else [None]:
                orders, problems = orders_of(
                    {name: scenario}, seed=seed, variants=(), overrides=(), texts=()
                )
                if problems:
                    raise ScenarioError(problems)
                for order in orders:
                    title = order.scenario.variant or order.scenario.name
                    ending = f"[seed{seed}]" if seed is not None and self.names_seed else ""
                    item: ScenarioItem = ScenarioItem.from_parent(
                        self, name=f"{title}{ending}", order=order, traces=self.traces
                    )
                    item.expected_digest = self.expected_digest
                    yield item
        except ScenarioError as error:
            lines = [each.removesuffix(", nothing was run (exit 2)") for each in error.lines()]
            raise self.CollectError("\n".join(lines)) from None


class ScenarioItem(pytest.Item):
    """Runs one variant of a scenario file with one seed.

    Attributes:
        obj: no function: pytest-trio asks every item for one.
    """

    obj = None

    def __init__(self, *, order: Any, traces: Traces, **more: Any) -> None:
        super().__init__(**more)
        self.order = order
        self.traces = traces
        self.expected_digest = ""

    def runtest(self) -> None:
        """Run it.

        Raises:
            ScenarioFailed: it did not pass.
        """
        from sim.blame.loss_tests import tested
        from sim.running.findings import examine

        scenario = self.order.scenario
        self.user_properties.append(("leaderfall_seed", scenario.seed))
        running = self.traces.running() if self.traces.keep == "all" else None
        examined = examine(scenario, tests_losses=tested, path=running)
        digest = None if examined.result is None else examined.result.digest
        if self.expected_digest and digest is not None:
            is_same = digest == self.expected_digest
            word = "the same events as in" if is_same else "other events than in"
            self.user_properties.append(("leaderfall_compared", f"replay: {word} the saved trace"))
        if not examined.findings and not examined.is_inconclusive:
            if running is not None:
                self._keep_passed(running)
            return
        if running is not None:
            running.unlink(missing_ok=True)
        if examined.is_inconclusive:
            assert examined.result is not None
            raise ScenarioFailed(self._inconclusive(examined.result.verdict.reasons))
        raise ScenarioFailed(self._failed(examined))

    def _failed(self, examined: Any) -> str:
        """Keep the case, and say what is wrong with it."""
        if not self.traces.is_written:
            lines = [f"{len(examined.findings)} wrong with {self.order.name}"]
            lines += [f"- {each.kind} {each.name}: {each.text}" for each in examined.findings]
            return "\n".join([*lines, "", f"replay    {self._replay()}"])
        from sim.failures import save_case

        folder = Path(_shown(self.traces.folder, self.config))
        # What is replayed takes the place that it has.
        is_saved = self.path.parent.parent == self.traces.folder
        name = self.path.parent.name if is_saved else self.nodeid
        case = save_case(self.order.scenario, name=name, folder=folder, examined=examined)
        if case.trace is not None:
            self.user_properties.append(("leaderfall_trace", str(case.trace)))
        self.user_properties.append(("leaderfall_replay", case.replay))
        return case.message()

    def _inconclusive(self, reasons: Iterable[str]) -> str:
        self.user_properties.append(("leaderfall_replay", self._replay()))
        lines = [f"{self.order.name} is inconclusive", *(f"- {each}" for each in reasons)]
        return "\n".join([*lines, "", f"replay    {self._replay()}"])

    def _keep_passed(self, running: Path) -> None:
        from sim.failures import folder_name
        from sim.scenario.writing import applied_document, scenario_text

        place = self.traces.folder / folder_name(self.nodeid)
        place.mkdir(parents=True, exist_ok=True)
        running.replace(place / "trace.jsonl")
        text = scenario_text(applied_document(self.order.scenario))
        (place / "scenario.toml").write_text(text, encoding="utf-8")
        shown = _shown(place / "trace.jsonl", self.config)
        self.user_properties.append(("leaderfall_replay", self._replay()))
        self.user_properties.append(("leaderfall_trace", shown))

    def _replay(self) -> str:
        from sim.cli.orders import Settings

        line: str = self.order.replay(Settings())
        return line

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What is wrong, without a traceback: that would be of Leaderfall's own code."""
        if isinstance(excinfo.value, ScenarioFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        """The file, and the scenario's name with its variant."""
        return self.path, None, f"{self.order.name}"


def _shown(path: Path, config: pytest.Config) -> str:
    """A path as people read it: from where pytest was started, if it is below and we are there."""
    here = config.invocation_params.dir
    if here != Path.cwd():
        return str(path)
    try:
        return str(path.relative_to(here))
    except ValueError:
        return str(path)
