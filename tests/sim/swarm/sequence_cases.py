"""Worlds of one sequence: with a guard off one of them shows it, with all on it shows nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from sim.running.findings import examine
from sim.scenario.effective import effective
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.swarm import ENVELOPES, drawn
from tests.hunt.worlds import failures

SEEDS = 300
"""Of each envelope; what a seed draws changes whenever a kind is added."""


def assert_needed(kind: str, guard: str, name: str, mode: str = "") -> None:
    """A rule is needed where a sequence happens, by the name of what is wrong without it.

    Args:
        mode: of truncation; empty for any.
    """
    for world in _worlds(kind, mode):
        if name in _wrong(kind, world, guards={guard: False}):
            assert _wrong(kind, world) == set(), "with the rule"
            return
    pytest.fail(f"no world of {SEEDS} seeds shows {name} without {guard}")


def _worlds(kind: str, mode: str) -> Iterator[tuple[int, str]]:
    """Small worlds that have such a sequence."""
    for seed in range(SEEDS):
        for envelope in ENVELOPES:
            document = drawn(seed, envelope, kinds=[kind], faults=(1, 1))
            cluster = document["cluster"]
            is_struck = document["fault"] or document["step"]
            is_mode = cluster.get("truncation", "fetch") == mode or not mode
            if is_struck and is_mode and cluster["brokers"] < 5:
                yield seed, envelope


def _wrong(kind: str, world: tuple[int, str], **wanted: Any) -> set[str]:
    """Names of what is wrong with a world."""
    document = drawn(*world, kinds=[kind], faults=(1, 1), **wanted)
    document.setdefault("liveness", {"within": "60s", "core": "all"})
    scenario = effective(parse_scenario(scenario_text(document)), None, ())
    found = examine(scenario, is_strict=True, level="digest", events_max=600_000)
    return {each.name for each in failures(found, world[1])}
