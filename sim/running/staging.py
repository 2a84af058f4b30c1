"""A scenario on its stage: a world, its judge, and who carries out steps, faults and workloads.

``stage(scenario)`` builds it, ``play`` lets it go from its boot to the end of its time. What comes
behind that (``sim.running.scenario_run``, ``sim.liveness``) is no business of this module.

Left out: the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import define

from sim.checks.judge import Judge
from sim.histories.recorder import Recorder
from sim.running.acting import Acting
from sim.running.beside import Beside
from sim.running.expectations import Expectations
from sim.running.interpreter import EVENTS_MAX, Interpreter
from sim.running.observables import Observables
from sim.running.without import Without
from sim.scenario.build import cluster_config, scheduler_of
from sim.scenario.model import Scenario
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

__all__ = ["Stage", "stage"]


@define(eq=False)
class Stage:
    """See the module. A copy of it is independent, as a world's is."""

    scenario: Scenario
    world: World
    judge: Judge
    expectations: Expectations
    beside: Beside
    interpreter: Interpreter

    def play(self) -> None:
        """Boot, then run to the end of the scenario, or to a failure."""
        self.interpreter.boot()
        if self.interpreter.failure is None:
            self.interpreter.run()


def stage(
    scenario: Scenario,
    *,
    seed: int,
    trace: Trace | None = None,
    root: Path | None = None,
    is_paranoid: bool = False,
    events_max: int = EVENTS_MAX,
    on_world: Callable[[World], None] | None = None,
    without: Without | None = None,
) -> Stage:
    """A stage on which nothing has happened yet; arguments as for ``run_scenario``."""
    config = cluster_config(scenario)
    world = World(config, seed=seed, scheduler=scheduler_of(scenario, seed), root=root, trace=trace)
    if on_world is not None:
        on_world(world)
    judge = Judge(world, is_paranoid=is_paranoid)
    world.kernel.recorder = Recorder()
    passes_over = without is not None or scenario.when_impossible == "skip"
    acting = Acting(world, Cluster(world), passes_over=passes_over)
    acting.env = Observables(world, judge).names()
    expects = [each for each in scenario.expects if each.applies_to(scenario.variant)]
    expectations = Expectations(world, [] if without is not None else expects, acting.env)
    beside = Beside(acting, scenario, without)
    interpreter = Interpreter(
        world, scenario, acting, expectations, beside, events_max=events_max, without=without
    )
    return Stage(scenario, world, judge, expectations, beside, interpreter)
