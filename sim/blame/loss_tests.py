"""What a run asks of each of its losses: would the run without its culprits have lost it?

Left out: the runs (``sim.blame.necessity``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from attrs import evolve

from sim.blame.counterfactual import Replay
from sim.blame.necessity import necessity
from sim.checks.judge import Judge
from sim.running.coverage import Tested
from sim.running.scenario_run import Result

__all__ = ["LOSSES_MAX", "tested", "tested_as_kept"]

LOSSES_MAX: Final = 40
"""So many losses of a run are tested, the first ones: each may take runs of its own."""


def tested(result: Result, judge: Judge) -> Mapping[int, Tested]:
    """The outcome of the test by the number of the event that tells of each loss.

    The run is made again first, from its scenario alone.

    Raises:
        NotTheSame: it gives another digest then.
    """
    return _tested(result, judge, None)


def tested_as_kept(result: Result, judge: Judge) -> Mapping[int, Tested]:
    """The same of a run that has kept its events, and takes one run less.

    Nobody checks that its scenario alone makes it what it is: whoever is told of its world must
    have looked on only.

    Raises:
        ValueError: it has not kept them.
    """
    return _tested(result, judge, Replay(result, judge.facts, tuple(judge.violations)))


def _tested(result: Result, judge: Judge, base: Replay | None) -> Mapping[int, Tested]:
    found = necessity(
        evolve(result.scenario, liveness=None),
        result.seed,
        judge.facts.losses()[:LOSSES_MAX],
        digest=result.digest if base is None else None,
        base=base,
    )
    return {each.loss.told: Tested(each.outcome, each.parts, each.others) for each in found.tested}
