"""Metastability: a cluster that has recovered by its looks, and yet does not do its work.

In ``WINDOW_US`` behind convergence the workloads must get as many records acknowledged as in the
same window of the twin without faults, ``SHARE_PPM`` of them at least, and no epoch or ISR may
change. Retry storms and replicas that join and leave the ISR are what this finds.

Left out: why it is so.
"""

from __future__ import annotations

from typing import Final

from sim.liveness.looking import Looker
from sim.liveness.outcome import Throughput
from sim.liveness.twins import twin
from sim.running.staging import Stage
from sim.scenario.model import Scenario
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["SHARE_PPM", "WINDOW_US", "acked", "measure", "wrong"]

WINDOW_US: Final = 30_000_000
SHARE_PPM: Final = 800_000
_LOOK_US: Final = 1_000_000
_MILLION: Final = 1_000_000


def acked(world: World, scenario: Scenario) -> int:
    """How many records of workloads that have no end were acknowledged so far."""
    names = {each.name for each in scenario.workloads if each.stop_us is None}
    return sum(
        count
        for name, notes in world.producers.items()
        if name.partition(".")[0] in names
        for (kind, _), count in notes.told.items()
        if kind is Kind.ACK
    )


def measure(stage: Stage, looker: Looker, scenario: Scenario, seed: int) -> Throughput:
    """Let a recovered world go on for a window, and its twin through the same."""
    world, other = stage.world, twin(scenario, seed, stage.interpreter.events_max)
    from_us, to_us = world.now_us, world.now_us + WINDOW_US
    for each in (stage, other):
        each.beside.go_on(to_us)
    before, changes = acked(world, scenario), looker.changes
    while world.now_us < to_us:
        world.run_until(min(world.now_us + _LOOK_US, to_us))
        looker.look()
    other.world.run_until(from_us)
    other_before = acked(other.world, scenario)
    other.world.run_until(to_us)
    return Throughput(
        window_us=WINDOW_US,
        acked=acked(world, scenario) - before,
        twin=acked(other.world, scenario) - other_before,
        changes=looker.changes - changes,
    )


def wrong(found: Throughput) -> list[str]:
    """What is wrong with it, in words."""
    texts, window = [], f"the {found.window_us / 1e6:g} s behind convergence"
    if found.acked * _MILLION < found.twin * SHARE_PPM:
        texts.append(
            f"in {window} {found.acked} records were acknowledged, and {found.twin} in the same "
            f"window without faults: less than {SHARE_PPM // 10_000} %"
        )
    if found.changes:
        texts.append(f"in {window} epochs or ISRs changed {found.changes} times")
    return texts
