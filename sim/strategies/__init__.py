"""Hypothesis strategies: whole scenarios, their parts, and record batches.

```python
from hypothesis import given
from sim.strategies import scenarios
from sim.testing import check

@given(scenarios("recoverable", brokers=(1, 4)))
def test_nothing_is_lost(scenario):
    check(scenario)
```

What is drawn is structure and one small seed; latencies and all other chance come from that seed
while the scenario runs. So a failing case comes down to few faults, steps and records. Each case is
a scenario file (``scenario.text``), and replays without Hypothesis.

The parts are plain tables, which ``scenario_of`` puts together:

```python
@given(data())
def test_mine(data):
    cluster = data.draw(cluster_configs(brokers=3))
    clients = data.draw(workloads(cluster))
    faults = data.draw(fault_plans("unrestricted", of=cluster, faults=(1, 3)))
    scenario = scenario_of(cluster, clients, faults)
```

Left out: running and judging (``sim.testing``); drawing without Hypothesis (``sim.swarm``).
"""

from __future__ import annotations

from sim.strategies.batches import batches
from sim.strategies.scenarios import (
    cluster_configs,
    fault_plans,
    scenario_of,
    scenarios,
    workloads,
)

__all__ = ["batches", "cluster_configs", "fault_plans", "scenario_of", "scenarios", "workloads"]
