"""Small failing scenarios, and searches over them.

Left out: what is expected of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.running.findings import Identity
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario, read_scenario
from sim.scenario.writing import scenario_text
from sim.scenario_files import scenarios_dir
from sim.shrinking.goals import Base, look
from sim.shrinking.shrinker import Shrunk, begin, shrink
from sim.shrinking.tables import Document, action_of, named, tables
from sim.shrinking.trials import Trials

LOSS: Identity = ("loss", "L2")


def losing(**changes: Any) -> Document:
    """One copy, never synced, that a power cut takes; ``changes`` replace top keys."""
    document: Document = {
        "schema": 1,
        "name": "losing",
        "until": "6s",
        "cluster": {"brokers": 1, "writeback": "off"},
        "topic": [{"name": "orders", "replicas": [["b1"]]}],
        "step": [
            {"at": "1s", "produce": {"to": "orders-0", "count": 1}},
            {"at": "3s", "crash": {"node": "b1", "how": "power"}},
            {"at": "4s", "start": "b1"},
        ],
    }
    return document | changes


def scenario_of(document: Document) -> Scenario:
    return effective(parse_scenario(scenario_text(document)))


def shipped(name: str, variant: str | None = None, *sets: tuple[str, Any]) -> Scenario:
    return effective(read_scenario(scenarios_dir() / f"{name}.toml"), variant, sets)


def based(scenario: Scenario, **options: Any) -> Base:
    return look(scenario, level="digest", **options)


def trials_of(document: Document, identity: Identity = LOSS, **options: Any) -> Trials:
    """A search that has begun, every step with an id."""
    base = based(scenario_of(named(document)), **options)
    finding = next(each for each in base.examined.findings if each.identity == identity)
    return begin(base, finding)


def shrunk(scenario: Scenario, identity: Identity | None = None, **options: Any) -> Shrunk:
    """The whole search, for the first finding by default."""
    base = based(scenario)
    found = base.examined.findings
    finding = next(each for each in found if identity in (None, each.identity))
    return shrink(base, finding, **options)


def after(document: Document, stage: Callable[[Trials], None], *more: Any) -> Document:
    """What one stage alone makes of it."""
    trials = trials_of(document, *more)
    stage(trials)
    return trials.document


def actions(document: Document) -> list[str]:
    return [action_of(each) for each in tables(document, "step")]
