"""The end of the run, right behind the first moment at which the failure is there.

What had not begun by then goes with the rest. A step that was under way either goes, too, or the
end waits for it: a step that is not done by the end would be a failure of its own.

Left out: what happens before that moment.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Final

from sim.scenario.durations import show_duration
from sim.shrinking.removing import without
from sim.shrinking.tables import Document, action_of, tables, time_of
from sim.shrinking.trials import Trials
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["cut_horizon"]

_GRIDS_US: Final = (100_000, 1_000_000)
_WAITS: Final = ("wait", "settle", "consume")


def cut_horizon(trials: Trials) -> None:
    """Let the run end as early as it can; not where an early end is a failure in itself."""
    if not trials.goal.is_about_the_end:
        _cut_behind_finding(trials)
        _cut_behind_plan(trials)


def _cut_behind_plan(trials: Trials) -> None:
    """Some failures are told late and would be told at any end: one planned thing after another
    goes, the last ones first, as long as it is there.
    """
    moments = trials.moments
    planned = {*moments.steps.values(), *moments.faults.values(), *moments.ends.values()}
    grid_us = _GRIDS_US[0]
    for moment_us in sorted(planned, reverse=True):
        until_us = (moment_us // grid_us + 1) * grid_us
        if until_us < trials.scenario.until_us and not trials.attempt(
            ended(trials, until_us, frozenset())
        ):
            return


def _cut_behind_finding(trials: Trials) -> None:
    goal = trials.goal
    finding = goal.finding(trials.examined)
    end_us = trials.scenario.until_us
    if trials.examined.result is None:
        _cut_at(trials, trials.ended_us)
        return
    if goal.kind == "liveness" or finding is None or not finding.event:
        _shorten(trials, end_us)
        return
    events = trials.observe()
    numbers = (_first_loss(trials), finding.event)
    at_us = next((each.t_us for number in numbers for each in events if each.n == number), None)
    if at_us is None:
        # Seen only behind the end of the run.
        _shorten(trials, end_us)
        return
    begun, done = _steps_by(trials, events)
    for grid_us in _GRIDS_US:
        cut_us = (max(0, at_us) // grid_us + 1) * grid_us
        under_way = [
            name for name, t_us in begun.items() if t_us <= cut_us < done.get(name, end_us + 1)
        ]
        waits = {name for name in under_way if _action(trials, name) in _WAITS}
        later_us = max((done.get(name, end_us) for name in under_way), default=cut_us)
        later_us = -(-later_us // grid_us) * grid_us
        for until_us, gone in (
            (cut_us, waits),
            (cut_us, set(under_way)),
            (later_us, set[str]()),
        ):
            if until_us < trials.scenario.until_us and trials.attempt(
                ended(trials, until_us, frozenset(gone))
            ):
                return


def _first_loss(trials: Trials) -> int:
    """The event by which the records were gone, which is told when somebody leads without them."""
    result = trials.examined.result
    if result is None or trials.goal.kind != "loss":
        return 0
    lost = (each for each in result.verdict.lost if each.licence == trials.goal.name)
    return min((loss.event for each in lost for loss, _ in each.losses), default=0)


def _cut_at(trials: Trials, ended_us: int) -> None:
    """An exception broke the run off, and so there are no moments: by the times of the file."""
    for grid_us in _GRIDS_US:
        until_us = (ended_us // grid_us + 1) * grid_us
        for each in (until_us, trials.scenario.until_us // 2):
            if 0 < each < trials.scenario.until_us and trials.attempt(
                ended(trials, each, frozenset())
            ):
                return


def _shorten(trials: Trials, end_us: int) -> None:
    """What comes behind the end does the failing: try ends behind everything that is planned."""
    moments = trials.moments
    last_us = max([0, *moments.steps.values(), *moments.faults.values(), *moments.ends.values()])
    for until_us in ((last_us // 1_000_000 + 1) * 1_000_000, end_us // 2):
        if 0 < until_us < trials.scenario.until_us and trials.attempt(
            ended(trials, until_us, frozenset())
        ):
            return


def _action(trials: Trials, name: str) -> str:
    steps = tables(trials.document, "step")
    return next((action_of(each) for each in steps if each.get("id") == name), "")


def _steps_by(trials: Trials, events: list[Event]) -> tuple[dict[str, int], dict[str, int]]:
    """When each step began, and when it was done, by its id."""
    known = {each.id for each in trials.scenario.steps if each.id is not None}
    begun: dict[str, int] = {}
    done: dict[str, int] = {}
    for each in events:
        if each.kind == Kind.STEP and each.node == "world" and each.args.get("id") in known:
            (done if each.args.get("done") else begun)[each.args["id"]] = each.t_us
    return begun, done


def ended(trials: Trials, until_us: int, steps: frozenset[str]) -> Document:
    """The best with another end, without what would begin behind it, and without some steps."""
    moments = trials.moments
    has_moments = trials.examined.result is not None
    late = {
        each.id
        for each in trials.scenario.steps
        if each.id is not None
        if moments.steps.get(each.number, until_us + 1 if has_moments else each.at_us or 0)
        > until_us
    }
    faults = {
        each.id
        for each in trials.scenario.faults
        if moments.faults.get(each.id, until_us + 1 if has_moments else each.start.at_us or 0)
        > until_us
    }
    found = without(
        trials.document,
        moments,
        faults=frozenset(faults),
        steps=steps | late,
        keeps=trials.goal.name if trials.goal.kind == "expectation" else "",
    )
    found = deepcopy(found)
    found["until"] = show_duration(until_us)
    if "workload" in found:
        found["workload"] = [
            each
            for each in found["workload"]
            if (time_of(each.get("start", "0s")) or 0) <= until_us
        ]
    if "expect" in found:
        found["expect"] = [
            each
            for each in found["expect"]
            if all((time_of(each.get(key)) or 0) <= until_us for key in ("at", "from", "after"))
        ]
        for each in found["expect"]:
            if (time_of(each.get("to")) or 0) > until_us:
                del each["to"]
    return found
