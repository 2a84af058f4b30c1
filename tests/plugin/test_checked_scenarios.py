"""What a property test's failing case leaves in the report of its test, and in JUnit."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from tests.plugin.projects import SCENARIO, Project

pytest_plugins = ["pytester"]

FAILING = f"""
from hypothesis import given, settings, strategies
from sim.scenario.reading import parse_scenario
from sim.testing import check

TEXT = {SCENARIO!r}

@settings(derandomize=True, database=None, deadline=None, max_examples=4)
@given(strategies.integers(0, 3))
def test_drawn(number):
    check(parse_scenario(TEXT.format(name="drawn", acked=4 if number > 1 else 3)))

def test_plain():
    check(parse_scenario(TEXT.format(name="plain", acked=4)))

def test_good():
    check(parse_scenario(TEXT.format(name="good", acked=3)))

def test_other():
    raise ExceptionGroup("no case", [ValueError("of ours")])
"""


@pytest.mark.slow
def test_trace_and_replay_line_stand_in_the_summary_and_in_junit(project: Project) -> None:
    project.write("tests/test_a.py", FAILING)
    result = project.run("--junitxml=junit.xml")
    result.assert_outcomes(passed=1, failed=3)
    tests = ElementTree.parse(project.path / "junit.xml").iter("testcase")
    told = {
        test.get("name"): {each.get("name"): each.get("value") for each in test.iter("property")}
        for test in tests
    }
    assert told["test_good"] == told["test_other"] == {}
    text = str(result.stdout)
    for name in ("test_drawn", "test_plain"):
        assert sorted(told[name]) == ["leaderfall_replay", "leaderfall_trace"]
        trace, replay = told[name]["leaderfall_trace"], told[name]["leaderfall_replay"]
        assert trace is not None
        assert replay is not None
        assert (project.path / trace).is_file()
        assert f"  trace   {trace}" in text
        assert f"  replay  {replay}" in text
    assert text.count("= leaderfall: saved traces =") == 1
