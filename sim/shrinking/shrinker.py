"""Shrinking: what is cheapest and biggest goes first, over and over until nothing goes any more.

The order is that of FAULTS E.5. Every candidate of a stage is tried against the best so far, so the
result is a local minimum: no single further step of any stage keeps the failure. The same scenario
and budget give the same result, since no stage looks at a clock or draws.

Chance is keyed, so what is left out re-rolls nothing else, once selectors are names and every step
has an id: a step without one is known to draws by its number.

Left out: files, and words for people.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Final

from attrs import evolve, frozen

from sim.running.findings import Finding
from sim.running.interpreter import EVENTS_MAX
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.shrinking import amounts, dropping, settings, timing
from sim.shrinking.goals import Base, Goal, goal_of
from sim.shrinking.horizon import cut_horizon
from sim.shrinking.resolving import resolve
from sim.shrinking.tables import Size, named, prepared, size_of, tables, texts
from sim.shrinking.trials import RUNS_MAX, BudgetOver, Find, Trials

__all__ = ["STAGES", "NotTheSame", "Shrunk", "begin", "shrink"]

STAGES: Final[tuple[tuple[str, Callable[[Trials], None]], ...]] = (
    ("liveness", dropping.drop_liveness),
    ("horizon", cut_horizon),
    ("selectors", resolve),
    ("faults", dropping.drop_faults),
    ("workloads", dropping.drop_workloads),
    ("expectations", dropping.drop_expects),
    ("topics", dropping.drop_topics),
    ("partitions", dropping.drop_partitions),
    ("steps", dropping.drop_steps),
    ("pairs", dropping.drop_pairs),
    ("lists", amounts.shorter_lists),
    ("brokers", dropping.drop_brokers),
    ("records", amounts.fewer_records),
    ("numbers", amounts.smaller_numbers),
    ("noise", settings.calm),
    ("images", settings.plain_images),
    ("conditions", timing.times_for_conditions),
    ("windows", timing.shorter_windows),
    ("durations", timing.simple_durations),
    ("gaps", timing.close_gaps),
    ("times", timing.round_times),
    ("defaults", settings.restore_defaults),
)
"""What is tried, in this order, again and again."""


class NotTheSame(Exception):
    """The scenario as a file of its own does not fail in the same way."""


@frozen
class Shrunk:
    """What came of it.

    Attributes:
        finding: as the result shows it.
        text: of the result's file.
        before, after: sizes.
        finds: what else was found on the way.
        ended: ``minimal``, ``budget`` or ``interrupted``.
        rounds: through all stages.
    """

    goal: Goal
    finding: Finding
    text: str
    before: Size
    after: Size
    finds: tuple[Find, ...]
    runs: int
    refused: int
    accepted: int
    rounds: int
    ended: str


def shrink(
    base: Base,
    finding: Finding,
    *,
    runs_max: int = RUNS_MAX,
    events_max: int = EVENTS_MAX,
    on_run: Callable[[Trials], None] | None = None,
) -> Shrunk:
    """Make a failing scenario small.

    Args:
        base: its run (``sim.shrinking.goals.look``).
        finding: of that run: what the result must still show.
        runs_max: so many candidates are run, at most.
        events_max: as for ``run_scenario``.
        on_run: told behind each run.

    Raises:
        NotTheSame: without its other variants it does not fail so.
    """
    trials = begin(base, finding, runs_max, events_max, on_run)
    before, ended, rounds = size_of(trials.scenario), "minimal", 0
    try:
        _name_steps(trials)
        while True:
            accepted = trials.accepted
            rounds += 1
            for name, stage in STAGES:
                trials.stage = name
                stage(trials)
            if trials.accepted == accepted:
                break
        _drop_ids(trials)
        _say_what_breaks(trials)
    except BudgetOver:
        ended = "budget"
    except KeyboardInterrupt:
        ended = "interrupted"
    found = trials.goal.finding(trials.examined)
    assert found is not None
    return Shrunk(
        trials.goal,
        found,
        trials.text,
        before,
        size_of(trials.scenario),
        tuple(trials.finds.values()),
        trials.runs,
        trials.refused,
        trials.accepted,
        rounds,
        ended,
    )


def begin(
    base: Base,
    finding: Finding,
    runs_max: int = RUNS_MAX,
    events_max: int = EVENTS_MAX,
    on_run: Callable[[Trials], None] | None = None,
) -> Trials:
    """The scenario as a file of its own, which must fail in the same way.

    Losses are put to the test only where the failure is not there without that.
    """
    document = prepared(base.scenario)
    scenario = parse_scenario(scenario_text(document))
    scenario = evolve(scenario, make_broker=base.scenario.make_broker)
    goal = goal_of(base.scenario, base.examined, finding, is_strict=base.is_strict)
    trials = Trials(goal, document, scenario, base.examined, runs_max, events_max, on_run)
    trials.stage = "first"
    if trials.start():
        return trials
    if finding.identity == ("loss", "UNEXPLAINED"):
        trials.goal = evolve(goal, tests_losses=True)
        if trials.start():
            return trials
    raise NotTheSame


def _name_steps(trials: Trials) -> None:
    """Names for what was drawn by a step's number; then ids for steps, all or one by one."""
    trials.stage = "selectors"
    resolve(trials)
    trials.stage = "names"
    document = named(trials.document)
    if trials.attempt(document):
        return
    for at, step in enumerate(tables(document, "step")):
        single = deepcopy(trials.document)
        single["step"][at] = step
        trials.attempt(single)


def _drop_ids(trials: Trials) -> None:
    """Ids of steps that nobody names."""
    trials.stage = "names"
    document = deepcopy(trials.document)
    used: set[str] = set()
    for each in (*tables(document, "step"), *tables(document, "expect")):
        used.update(texts([each.get("after"), each.get("heal")]))
        start = each.get("start")
        if isinstance(start, dict):
            used.add(str(start.get("disk")).removeprefix("image:"))
    for step in tables(document, "step"):
        if step.get("id") not in used:
            step.pop("id", None)
    trials.attempt(document, is_last=True)


def _say_what_breaks(trials: Trials) -> None:
    """A file that excuses what it shows says that it shows it, and so fails once it does not."""
    if trials.goal.is_strict and trials.goal.kind == "invariant":
        document = deepcopy(trials.document)
        named_now = [each.get("breaks") for each in tables(document, "expect")]
        if trials.goal.name not in texts(named_now):
            document.setdefault("expect", []).append({"breaks": [trials.goal.name]})
            trials.attempt(document, is_last=True)
