"""Small scenarios that are asked whether they recover."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from sim.liveness.outcome import Outcome
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.model import Liveness
from tests.sim.running.scenarios import TOPIC, scenario

MIN_TWO = TOPIC + 'config = { "min.insync.replicas" = 2 }\n'
WRITER = """
[[workload]]
name = "writer"
kind = "producer"
topic = "orders"
rate = 10
"""


def ran(*steps: str, topic: str = MIN_TWO, seed: int = 0, **parts: Any) -> Result:
    """A run; ``liveness`` has the keys of the table, ``run`` arguments of ``run_scenario``."""
    wanted = Liveness(**parts.pop("liveness", {}))
    run = parts.pop("run", {})
    found = scenario(*steps, topic=topic, **parts)
    return run_scenario(evolve(found, liveness=wanted), seed=seed, **run)


def outcome(*steps: str, **parts: Any) -> Outcome:
    """Whether it recovers."""
    result = ran(*steps, **parts)
    assert result.failure is None, result.failure
    assert result.liveness is not None
    return result.liveness
