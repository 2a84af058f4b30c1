"""Property-based tests of clusters, for pytest and Hypothesis.

``check(scenario)`` fails with what is wrong with a run; ``ClusterMachine`` lets Hypothesis drive a
live cluster, step by step; ``RecordedMachine`` is the same without rules; ``register_profiles()``
makes the Hypothesis profiles ``dev``, ``ci`` and ``nightly``. What fails is saved as a scenario
file with its trace (``sim.failures``), which the command line runs again.

Needs Hypothesis (``pip install leaderfall[test]``); nothing below this package does. Each name is
imported when it is asked for, so that a ``conftest.py`` that only makes profiles costs no more.

Left out: strategies for whole scenarios, making a case smaller without Hypothesis.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sim.testing.checking import check
    from sim.testing.failing import ScenarioFailed
    from sim.testing.machine import ClusterMachine
    from sim.testing.profiles import register_profiles
    from sim.testing.recorded import MachineError, RecordedMachine

__all__ = [
    "ClusterMachine",
    "MachineError",
    "RecordedMachine",
    "ScenarioFailed",
    "check",
    "register_profiles",
]

_HOMES: Final = {
    "ClusterMachine": "machine",
    "MachineError": "recorded",
    "RecordedMachine": "recorded",
    "ScenarioFailed": "failing",
    "check": "checking",
    "register_profiles": "profiles",
}
"""In which module of this package a name is."""


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
