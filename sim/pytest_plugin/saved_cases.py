"""What a failing ``sim.testing.check`` or ``ClusterMachine`` has saved, for the report of its test.

Only looks at the error, so nothing of ``sim.testing`` is imported for tests that do not use it.

Left out: saving (``sim.failures``); tests with a cluster (``sim.pytest_plugin.cases``).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

__all__ = ["saved_properties"]


def saved_properties(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """Properties of a report: trace and replay line of each case that is saved.

    Args:
        error: of the test; Hypothesis makes a group of several.
    """
    failing = sys.modules.get("sim.testing.failing")
    if failing is None or error is None:
        return
    for saved in _saved(error, failing.ScenarioFailed):
        if saved.trace is not None:
            yield "leaderfall_trace", str(saved.trace)
        yield "leaderfall_replay", saved.replay


def _saved(error: BaseException, failed: type[BaseException]) -> Iterator[Any]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _saved(each, failed)
    elif isinstance(error, failed):
        saved = getattr(error, "saved", None)
        if saved is not None:
            yield saved
