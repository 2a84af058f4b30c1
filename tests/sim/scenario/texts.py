"""Texts of scenario files for tests, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.scenario.model import Scenario
from sim.scenario.problems import Problem, ScenarioError
from sim.scenario.reading import parse_scenario

EXAMPLES = tuple(
    Path(__file__).parent / "examples" / f"{name}.toml"
    for name in ("leader_crash_acks1", "kip101_divergence", "partition_unclean")
)

HEAD = 'schema = 1\nname = "x"\nuntil = "20s"\n'
TOPIC = '[[topic]]\nname = "orders"\nreplicas = [["b1", "b2", "b3"]]\n'
BASE = HEAD + TOPIC
"""Three brokers and a topic; what is put behind it begins on line 7."""


def read(text: str) -> Scenario:
    """The scenario of ``BASE`` and more."""
    return parse_scenario(BASE + text, "x.toml")


def problems(text: str) -> list[Problem]:
    """What is wrong with a whole text."""
    with pytest.raises(ScenarioError) as caught:
        parse_scenario(text, "x.toml")
    return caught.value.problems


def said(text: str) -> list[str]:
    """What is wrong with ``BASE`` and more, without places."""
    return [each.text for each in problems(BASE + text)]


def example(path: Path) -> str:
    return path.read_text(encoding="utf-8")
