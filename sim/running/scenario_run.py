"""One run of a scenario: a world is built, booted, run, judged and closed.

Left out: files and folders (``sim.cli``), words for people (``sim.present``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import evolve, frozen

from sim.checks.judge import Judge
from sim.histories.anomalies import Anomaly
from sim.liveness.judging import judge_liveness
from sim.liveness.outcome import Outcome
from sim.running.agreement import OracleFault, anomalies_of, disagreements
from sim.running.coverage import Tested
from sim.running.expectations import Expectation
from sim.running.interpreter import EVENTS_MAX, Failure
from sim.running.staging import Stage, stage
from sim.running.verdicts import Verdict, strict, verdict_of
from sim.running.without import Moments, Without
from sim.scenario.build import options_of
from sim.scenario.model import Scenario
from sim.scenario.wiring import require_wired
from sim.trace.lines import Header, Level
from sim.trace.writer import Trace
from sim.world import World

LossTest = Callable[["Result", Judge], Mapping[int, Tested]]
"""Given a run that is over, with the verdict that it has without the test, and its judge."""

__all__ = ["LossTest", "Result", "conclude", "header_of", "run_scenario"]


@frozen
class Result:
    """What came of a run, for reports.

    Attributes:
        trace: closed; its events are there if it kept them.
        verdict: of the run.
        expectations: judged, in the order of the file.
        failure: what ended it early; None if nothing did.
        anomalies: what clients saw that contradicts itself; each is legal, or the judge has found
            something at its partition.
        liveness: whether the cluster recovered; None where that was not asked for, or the run
            ended early.
        moments: when everything happened.
        sent: number of the step, and of its record from 0, by client and operation.
        passed_over: what could not act, in a scenario that passes over such things or in a run
            without something.
    """

    scenario: Scenario
    seed: int
    trace: Trace
    verdict: Verdict
    expectations: tuple[Expectation, ...]
    failure: Failure | None
    end_us: int
    moments: Moments
    sent: Mapping[tuple[str, int], tuple[int, int]]
    passed_over: tuple[Failure, ...] = ()
    anomalies: tuple[Anomaly, ...] = ()
    liveness: Outcome | None = None

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
    without: Without | None = None,
    tests_losses: LossTest | None = None,
    is_strict: bool = False,
) -> Result:
    """Run a scenario (one variant, overrides applied) from its boot to its verdict.

    Args:
        seed: instead of the scenario's own.
        root: an empty folder for the brokers' directories; in memory by default.
        path: the file of the trace; none by default.
        keeps_lines: keep the events in memory, for ``Result.trace.events()``.
        on_world: told of the world before anything happens in it.
        tests_losses: asked about the losses before the verdict, unless the run is out of events:
            what runs without their culprits show, by the event that tells of each (``sim.blame``).
        without: what is left out; nothing is expected of such a run.
        is_strict: nothing is excused because a guard is off or something is broken on purpose.

    Raises:
        ScenarioError: something in it is not built yet; nothing has happened.
        OracleFault: Leaderfall's layers of judgement disagree; the trace is whole, with the verdict
            ``oracle-fault``.
        KeyboardInterrupt: the trace is readable up to there.
        Exception: a defect of Leaderfall, or of a user's machine.
    """
    require_wired(scenario)
    seed = scenario.seed if seed is None else seed
    header = header_of(scenario, seed, version) if path is not None else None
    trace = Trace(
        level, path=path, header=header, keeps_lines=keeps_lines, zero_us=scenario.boot_us
    )
    try:
        played = stage(
            scenario,
            seed=seed,
            trace=trace,
            root=root,
            is_paranoid=is_paranoid,
            events_max=events_max,
            on_world=on_world,
            without=without,
        )
        played.play()
        return conclude(
            played,
            seed=seed,
            on_world=on_world,
            without=without,
            tests_losses=tests_losses,
            is_strict=is_strict,
        )
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


def conclude(
    played: Stage,
    *,
    seed: int,
    on_world: Callable[[World], None] | None = None,
    without: Without | None = None,
    tests_losses: LossTest | None = None,
    is_strict: bool = False,
) -> Result:
    """Judge a stage on which the run is over; arguments and errors as for ``run_scenario``."""
    scenario, trace = played.scenario, played.world.trace
    world, judge, expectations = played.world, played.judge, played.expectations
    beside, interpreter = played.beside, played.interpreter
    failure, ended_with = interpreter.failure, world.trace.count
    liveness = None
    if scenario.liveness is not None and failure is None and without is None:
        # Before the judge finishes: it reports into the trace, and the copy goes on from here.
        liveness = judge_liveness(played, scenario.liveness, seed=seed, on_world=on_world)
    judge.finish()
    liveness = None if liveness is None else liveness.beyond(judge.facts)
    if world.trace.count > ended_with:
        expectations.after_entry(ended_with + 1)
    is_cut_short = failure is not None and failure.is_inconclusive
    expectations.finish(is_cut_short=is_cut_short)
    never_begun = beside.never_begun() if failure is None else ()
    anomalies = anomalies_of(world, judge, is_drained=False, is_strict=is_strict)

    def verdict(tested: Mapping[int, Tested]) -> Verdict:
        every = expectations.all
        found = verdict_of(scenario, judge, every, failure, never_begun, liveness, tested)
        return strict(found, anomalies) if is_strict else found

    result = Result(
        scenario,
        seed,
        trace,
        verdict({}),
        tuple(expectations.all),
        failure,
        max(0, world.now_us - scenario.boot_us),
        interpreter.moments(),
        beside.acting.sent,
        tuple(interpreter.passed_over),
        tuple(anomalies),
        liveness,
    )
    losses = judge.facts.losses()
    # A run that was cut off is compared with none that goes on.
    if tests_losses is not None and losses and not is_cut_short:
        result = evolve(result, verdict=verdict(tests_losses(result, judge)))
    faults = disagreements(world, judge, anomalies, is_drained=False)
    trace.close(
        "oracle-fault" if faults else result.verdict.word,
        [each.plain() for each in judge.violations],
        [each.plain() for each in losses],
    )
    if faults:
        raise OracleFault(faults)
    return result


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
