"""Scenarios to blame: those that come with Leaderfall, and small ones with a known answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve

from sim.blame.counterfactual import Replays
from sim.blame.culprits import Culprits
from sim.blame.necessity import cited_parts
from sim.blame.parts import Part, named
from sim.blame.search import Found, Target, search
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import read_scenario
from sim.scenario_files import scenarios_dir
from sim.trace.lines import Event
from tests.sim.running.scenarios import scenario

ALONE = '\n[[topic]]\nname = "orders"\nreplicas = [["b1"]]\n'
NOTHING_SYNCED = 'writeback = "off"'


def shipped(name: str, variant: str | None = None) -> Scenario:
    return effective(read_scenario(scenarios_dir() / f"{name}.toml"), variant)


def shipped_all() -> list[tuple[str, str | None]]:
    """Name and variant of all that come with Leaderfall."""
    return [
        (path.stem, variant)
        for path in sorted(scenarios_dir().glob("*.toml"))
        for variant in [each.name for each in read_scenario(path).variants] or [None]
    ]


def power_cuts(*times: int) -> Scenario:
    """One copy, never synced, and at each of these seconds a power cut that takes it alone."""
    steps = ['at = "1s"; produce = { to = "orders-0", count = 3, acks = "1" }']
    for at in times:
        crash = '{ node = "b1", how = "power" }'
        steps += [
            f'id = "cut-{at}"; at = "{at}s"; crash = {crash}',
            f'at = "{at}.5s"; start = "b1"',
        ]
    return scenario(*steps, topic=ALONE, cluster=NOTHING_SYNCED, until="40s")


def without_expectations(known: Scenario, **cluster: Any) -> Scenario:
    """The same, with other keys of its cluster; it has no events of expectations."""
    return evolve(known, expects=(), cluster=evolve(known.cluster, **cluster))


def replays_of(known: Scenario, runs_max: int | None = None) -> Replays:
    return Replays(known, runs_max=runs_max)


def part(replays: Replays, name: str) -> Part:
    return named(replays.parts, name)


def names(parts: Iterable[Part]) -> list[str]:
    return [each.name for each in parts]


def loss_target(replays: Replays, at: int = 0) -> Target:
    loss = replays.base.facts.losses()[at]
    return Target(loss.event, losses=(loss,))


def violation_target(replays: Replays, check: str) -> Target:
    found = next(each for each in replays.base.violations if each.check == check)
    return Target(found.event, violation=found)


def searched(replays: Replays, target: Target) -> Found:
    """With the parts that the target goes back to as the first guess."""
    culprits = Culprits(replays.base.events, replays.parts)
    if target.violation is not None:
        return search(replays, target, culprits.behind(target.violation.causes))
    return search(replays, target, cited_parts(replays, culprits, target.losses[0])[0])


def first_difference(one: Sequence[Event], other: Sequence[Event]) -> int:
    """The number of the first event that is not the same in both; one behind the shorter."""
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return at + 1
    return min(len(one), len(other)) + 1
