"""What ``--leaderfall-replay`` names: a seed, or what a failing test or scenario has left.

Left out: running it (``sim.pytest_plugin``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import frozen

from sim.pytest_plugin.seeds import checked_seed

__all__ = ["Replay", "replay_of", "select"]

_TEST: Final = "test.json"
_SCENARIO: Final = "scenario.toml"
_TRACE: Final = "trace.jsonl"


@frozen(kw_only=True)
class Replay:
    """See the module.

    Attributes:
        seed: that every test has; None for a scenario file, which has its own.
        test: id of the one test that runs, without a seed; empty for all that are selected.
        scenario: the one scenario file that runs.
        digest: of the saved trace; empty where there is none.
    """

    seed: int | None = None
    test: str = ""
    scenario: Path | None = None
    digest: str = ""


def replay_of(text: str, start: Path) -> Replay:
    """What the option says.

    Args:
        start: where pytest was started.

    Raises:
        pytest.UsageError: it is no seed, and no file of a saved case.
    """
    if re.fullmatch(r"[0-9]+", text):
        try:
            return Replay(seed=checked_seed(int(text)))
        except ValueError as error:
            raise pytest.UsageError(f"--leaderfall-replay: {error}") from None
    path = start / text
    if not path.exists():
        raise pytest.UsageError(
            f"--leaderfall-replay is {text!r}, which is no file; allowed are a seed, the folder "
            f"of a saved case, its {_TRACE}, {_TEST} or {_SCENARIO}, or any scenario file"
        )
    if path.suffix == ".toml":
        return Replay(scenario=path.resolve(), digest=_digest_of(path.parent / _TRACE))
    folder = path if path.is_dir() else path.parent
    if (folder / _TEST).is_file():
        return _test_of(folder / _TEST)
    if (folder / _SCENARIO).is_file():
        return Replay(scenario=(folder / _SCENARIO).resolve(), digest=_digest_of(folder / _TRACE))
    raise pytest.UsageError(
        f"--leaderfall-replay is {text!r}, and there is no {_TEST} or {_SCENARIO} with it"
    )


def _test_of(path: Path) -> Replay:
    try:
        document: Any = json.loads(path.read_text(encoding="utf-8"))
        test, digest = document["test"], document["digest"]
        if not isinstance(test, str) or not isinstance(digest, str):
            raise ValueError("test and digest must be text")
        return Replay(seed=checked_seed(document["seed"]), test=test, digest=digest)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise pytest.UsageError(f"--leaderfall-replay: {path} cannot be read: {error!r}") from None


def _digest_of(trace: Path) -> str:
    """What the trace's last line says; empty where there is none."""
    if not trace.is_file():
        return ""
    from sim.trace.reader import TraceError, TraceReader

    try:
        footer = TraceReader(trace).footer
    except (TraceError, OSError):
        return ""
    return "" if footer is None else str(footer.digest)


def select(replay: Replay, items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The items that are replayed.

    Raises:
        pytest.UsageError: there are none.
    """
    found = [each for each in items if _is_meant(replay, each)]
    if not found:
        what = replay.test or replay.scenario or "a test with a cluster, or a scenario"
        raise pytest.UsageError(f"--leaderfall-replay: {what} is not among what was collected")
    return found


def _is_meant(replay: Replay, item: pytest.Item) -> bool:
    from sim.pytest_plugin.files import ScenarioItem

    is_scenario = isinstance(item, ScenarioItem)
    if replay.scenario is not None:
        return is_scenario and item.path.resolve() == replay.scenario
    if replay.test:
        return item.nodeid == replay.test
    return is_scenario or "leaderfall_seed" in getattr(item, "fixturenames", ())
