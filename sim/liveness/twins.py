"""Worlds beside that of a run: its continuation, and its twin without faults.

A continuation is a copy; where the files of a world are real and cannot be copied, the run is done
once more in memory, which gives the same events. The twin is the same scenario and seed with an
empty fault plan: without its faults, and without the steps that disturb (``DISTURBING``).

Left out: what is asked of them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Final

from attrs import evolve

from sim.running.staging import Stage, stage
from sim.scenario.model import Scenario, Step
from sim.trace.writer import Trace
from sim.world import World, WorldError

__all__ = ["DISTURBING", "continuation", "fault_free", "twin"]

DISTURBING: Final = frozenset(
    {
        "corrupt",
        "crash",
        "cut",
        "elect",
        "fill",
        "heal",
        "partition",
        "pause",
        "resume",
        "shutdown",
        "slow",
        "start",
    }
)
"""Actions of steps that are faults, or the end of one."""


def continuation(
    played: Stage, *, seed: int, on_world: Callable[[World], None] | None = None
) -> Stage:
    """A stage on which all has happened that has on ``played``, and which goes on by itself.

    Raises:
        WorldError: the run was done once more and gave other events.
    """
    if played.world.root is None:
        played.world.timeline.sweep()
        return copy.deepcopy(played)
    again = stage(
        played.scenario,
        seed=seed,
        trace=Trace(zero_us=played.world.trace.zero_us),
        events_max=played.interpreter.events_max,
        on_world=on_world,
    )
    again.play()
    if again.world.trace.digest() != played.world.trace.digest():
        raise WorldError("the run in memory gave other events than that on real files")
    return again


def fault_free(scenario: Scenario) -> Scenario:
    """The scenario with an empty fault plan; what is expected of the run is left out too.

    A step that waited for one that is left out begins behind the one before that.
    """
    gone = {each.id for each in scenario.steps if each.action.NAME in DISTURBING and each.id}
    gone |= {each.id for each in scenario.faults}
    steps: list[Step] = []
    for each in scenario.steps:
        if each.action.NAME not in DISTURBING and each.action.NAME != "wait":
            after = None if each.after in gone else each.after
            steps.append(evolve(each, number=len(steps) + 1, after=after))
    return evolve(scenario, faults=(), steps=tuple(steps), expects=())


def twin(scenario: Scenario, seed: int, events_max: int) -> Stage:
    """The run without faults, at its end."""
    found = stage(fault_free(scenario), seed=seed, events_max=events_max)
    found.play()
    return found
