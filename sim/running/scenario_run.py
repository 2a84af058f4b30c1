"""One run of a scenario: a world is built, booted, run, judged and closed.

Left out: files and folders (``sim.cli``), words for people (``sim.present``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from sim.checks.judge import Judge
from sim.running.acting import Acting
from sim.running.beside import Beside
from sim.running.expectations import Expectation, Expectations
from sim.running.interpreter import BOOT_US, EVENTS_MAX, Failure, Interpreter
from sim.running.observables import Observables
from sim.running.verdicts import Verdict, verdict_of
from sim.scenario.build import cluster_config, options_of, scheduler_of
from sim.scenario.model import Scenario
from sim.scenario.wiring import require_wired
from sim.trace.lines import Header, Level
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World

__all__ = ["Result", "header_of", "run_scenario"]


@frozen
class Result:
    """What came of a run, for reports.

    Attributes:
        trace: closed; its events are there if it kept them.
        verdict: of the run.
        expectations: judged, in the order of the file.
        failure: what ended it early; None if nothing did.
    """

    scenario: Scenario
    seed: int
    trace: Trace
    verdict: Verdict
    expectations: tuple[Expectation, ...]
    failure: Failure | None
    end_us: int

    @property
    def digest(self) -> str:
        return self.trace.digest()


def run_scenario(
    scenario: Scenario,
    *,
    seed: int | None = None,
    root: Path | None = None,
    level: Level | str = Level.FULL,
    path: Path | None = None,
    keeps_lines: bool = False,
    version: str = "",
    is_paranoid: bool = False,
    events_max: int = EVENTS_MAX,
    on_world: Callable[[World], None] | None = None,
) -> Result:
    """Run a scenario (one variant, overrides applied) from its boot to its verdict.

    Args:
        seed: instead of the scenario's own.
        root: an empty folder for the brokers' directories; in memory by default.
        path: the file of the trace; none by default.
        keeps_lines: keep the events in memory, for ``Result.trace.events()``.
        on_world: told of the world before anything happens in it.

    Raises:
        ScenarioError: something in it is not built yet; nothing has happened.
        KeyboardInterrupt: the trace is readable up to there.
        Exception: a defect of Leaderfall, or of a user's machine.
    """
    require_wired(scenario)
    seed = scenario.seed if seed is None else seed
    header = header_of(scenario, seed, version) if path is not None else None
    trace = Trace(level, path=path, header=header, keeps_lines=keeps_lines, zero_us=BOOT_US)
    try:
        return _run(scenario, seed, trace, root, is_paranoid, events_max, on_world)
    except BaseException as error:
        variant = "" if scenario.variant is None else f", variant {scenario.variant!r}"
        error.add_note(
            f"scenario {scenario.name!r}{variant}, seed {seed}, behind event {trace.count}"
        )
        try:
            trace.abandon()
        except Exception as other:  # noqa: BLE001 - the first error is the one that tells
            error.add_note(f"the rest of the trace is not written: {other}")
        raise


def _run(
    scenario: Scenario,
    seed: int,
    trace: Trace,
    root: Path | None,
    is_paranoid: bool,
    events_max: int,
    on_world: Callable[[World], None] | None,
) -> Result:
    config = cluster_config(scenario)
    world = World(config, seed=seed, scheduler=scheduler_of(scenario, seed), root=root, trace=trace)
    if on_world is not None:
        on_world(world)
    judge = Judge(world, is_paranoid=is_paranoid)
    acting = Acting(world, Cluster(world))
    acting.env = Observables(world, judge).names()
    expects = [each for each in scenario.expects if each.applies_to(scenario.variant)]
    expectations = Expectations(world, expects, acting.env)
    beside = Beside(acting, scenario)
    interpreter = Interpreter(world, scenario, acting, expectations, beside, events_max=events_max)
    interpreter.boot()
    if interpreter.failure is None:
        interpreter.run()
    failure, ended_with = interpreter.failure, world.trace.count
    judge.finish()
    if world.trace.count > ended_with:
        expectations.after_entry(ended_with + 1)
    expectations.finish(is_cut_short=failure is not None and failure.is_inconclusive)
    never_begun = beside.never_begun() if failure is None else ()
    verdict = verdict_of(scenario, judge, expectations.all, failure, never_begun)
    violations = [each.plain() for each in judge.violations]
    losses = [each.plain() for each in judge.facts.losses()]
    trace.close(verdict.word, violations, losses)
    return Result(
        scenario,
        seed,
        trace,
        verdict,
        tuple(expectations.all),
        failure,
        max(0, world.now_us - BOOT_US),
    )


def header_of(scenario: Scenario, seed: int, version: str) -> Header:
    """The first line of a trace: what was run, with every effective option."""
    return Header(
        version=version,
        scenario=scenario.name,
        variant=scenario.variant,
        seed=seed,
        options=options_of(scenario),
        nodes=("c1", *(f"b{number}" for number in range(1, scenario.cluster.brokers + 1))),
        topics=scenario.document.get("topic", []),
    )
