"""Property-based tests of clusters, for pytest and Hypothesis.

``check(scenario)`` fails with what is wrong with a run; ``ClusterMachine`` lets Hypothesis drive a
live cluster, step by step; ``RecordedMachine`` is the same without rules; ``register_profiles()``
makes the Hypothesis profiles ``dev``, ``ci`` and ``nightly``. What fails is saved as a scenario
file with its trace (``sim.failures``), which the command line runs again.

Needs Hypothesis (``pip install leaderfall[test]``); nothing below this package does.

Left out: strategies for whole scenarios, making a case smaller without Hypothesis.
"""

from __future__ import annotations

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
