"""Why a rule is broken that nobody struck: the settings of the run say so, from its trace."""

from __future__ import annotations

from typing import Any

import pytest

from sim.present.loose_rules import loose_rules
from sim.present.story import Story
from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.scenario_files import scenario_files
from sim.trace.lines import Header


def told(options: dict[str, Any]) -> list[str]:
    header = Header("0", None, None, 0, options, [], [])
    return [each.text for each in loose_rules(Story(header, []), 7)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, []),
        ({"guards": {}, "truncation": "fetch"}, []),
        ({"guards": {"hw-freeze": True}}, []),
        ({"guards": {"hw-freeze": False}}, ["In this run a rule is off: hw-freeze."]),
        (
            {"guards": dict.fromkeys(("b", "d", "a", "c"), False)},
            ["In this run 4 rules are off: a, b and c and others."],
        ),
        (
            {"truncation": "kip-101"},
            ["In this run logs are cut by an older rule, truncation kip-101."],
        ),
        ({"guards": ["hw-freeze"], "truncation": 3}, []),
    ],
)
def test_it_says_what_is_off(options: dict[str, Any], said: list[str]) -> None:
    assert told(options) == said


def test_names_of_a_hostile_trace_are_escaped() -> None:
    (text,) = told({"guards": {"a\x1b[31m": False}})
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("file", "variant", "rule"),
    [
        ("min_isr_freeze", "without freeze", "hw-freeze"),
        ("truncation/retention_above_high_watermark", "no limit", "retention-below-hw"),
    ],
)
def test_a_chain_without_a_fault_ends_with_it(file: str, variant: str, rule: str) -> None:
    from sim.present.chains import chain

    scenario = effective(read_scenario(scenario_files()[file]), variant, ())
    result = run_scenario(scenario, keeps_lines=True)
    options = {"guards": {rule: False}}
    header = Header("0", None, None, 0, options, ["c1", "b1", "b2", "b3"], [])
    story = Story(header, result.trace.events(), result.trace.footer)
    assert story.findings
    first = chain(story, story.findings[0])
    assert first.sentences[-1].text == f"In this run a rule is off: {rule}."
