"""``when_impossible``: what cannot act ends a run, or is passed over and told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sim.cli.main import cli
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text

BEGIN: dict[str, Any] = {
    "schema": 1,
    "name": "impossible",
    "until": "4s",
    "when_impossible": "skip",
    "topic": [{"name": "t", "replicas": [["b1", "b2"]]}],
}


def run(more: dict[str, Any], **head: Any) -> Result:
    return run_scenario(parse_scenario(scenario_text(BEGIN | head | more)), level="digest")


def told(result: Result) -> list[tuple[int, int, str]]:
    return [(each.step, each.t_us // 1_000, each.text.split(":")[0]) for each in result.passed_over]


CASES: dict[str, tuple[dict[str, Any], list[tuple[int, int, str]]]] = {
    "a step": (
        {
            "fault": [{"id": "f", "kind": "crash", "target": "b1", "start": "1s"}],
            "step": [{"at": "2s", "crash": {"node": "b1"}}],
        },
        [(1, 2_000, "b1 is down")],
    ),
    "one of several nodes": (
        {
            "fault": [{"id": "f", "kind": "crash", "target": "b1", "start": "1s"}],
            "step": [{"at": "2s", "pause": ["b1", "b3"]}],
        },
        [(1, 2_000, "b1 is down")],
    ),
    "an answer of the controller": (
        {"step": [{"at": "1s", "reassign": {"partition": "t-0", "cancel": True}}]},
        [(1, 1_000, "reassign t-0")],
    ),
    "a wait": (
        {"step": [{"at": "1s", "wait": "leo('t-0', b1) > 0", "within": "500ms"}]},
        [(1, 1_500, "not done in time")],
    ),
    "what is not done by the end": (
        {"step": [{"at": "1s", "wait": "leo('t-0', b1) > 0"}, {"wait": "True == True"}]},
        [(1, 4_000, "not done by the end"), (2, 4_000, "never begun")],
    ),
    "faults": (
        {
            "fault": [
                {
                    "id": name,
                    "kind": "bit-rot",
                    "target": "b1",
                    "partition": "t-0",
                    "start": {"when": "leader('t-0') == b1"},
                }
                for name in ("rot", "rot2")
            ]
        },
        [(0, 0, "fault 'rot'"), (0, 0, "fault 'rot2'")],
    ),
    "what the order of steps rules out": (
        {"step": [{"at": "1s", "start": {"node": "b1"}}, {"at": "2s", "delete_topic": "t"}]},
        [(1, 1_000, "b1 is running already")],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_cannot_act_is_passed_over_and_told(name: str) -> None:
    more, wanted = CASES[name]
    result = run(more)
    assert [(step, text) for step, _, text in told(result)] == [(s, text) for s, _, text in wanted]
    for (_, ms, _), (_, wanted_ms, _) in zip(told(result), wanted, strict=True):
        assert wanted_ms <= ms <= wanted_ms + 50
    assert (result.failure, result.verdict.word) == (None, "passed")
    assert result.end_us == 4_000_000


@pytest.mark.parametrize(
    "name", [each for each in CASES if each != "what the order of steps rules out"]
)
def test_by_default_it_ends_the_run(name: str) -> None:
    result = run(CASES[name][0], when_impossible="fail")
    assert result.failure is not None
    assert (result.passed_over, result.verdict.word) == ((), "failed")


def test_by_default_what_can_be_seen_before_is_refused() -> None:
    with pytest.raises(ScenarioError, match="b1 runs already"):
        run(CASES["what the order of steps rules out"][0], when_impossible="fail")


def test_what_comes_behind_a_step_that_is_passed_over_comes() -> None:
    result = run(
        {
            "step": [
                {"at": "1s", "id": "first", "start": {"node": "b1"}},
                {"after": "first", "delay": "100ms", "delete_topic": "t"},
            ],
            "expect": [{"at_end": "leader('t-0') == None"}],
        }
    )
    assert [step for step, _, _ in told(result)] == [1]
    assert result.moments.steps[2] == 1_100_000


def test_a_cluster_that_does_not_come_up_ends_any_run() -> None:
    result = run({}, boot="200ms")
    assert result.failure is not None
    assert result.failure.text.startswith("the cluster did not come up in 200ms: create topic t")
    assert result.verdict.word == "failed"


def test_boot_is_the_time_before_time_0() -> None:
    result = run({"step": [{"at": "1s", "crash": {"node": "b1"}}]}, boot="6s")
    assert result.trace.zero_us == 6_000_000
    assert (result.failure, result.end_us, result.moments.steps[1]) == (None, 4_000_000, 1_000_000)


def test_the_report_and_the_result_list_it(tmp_path: Path) -> None:
    more, _ = CASES["a step"]
    file = tmp_path / "x.toml"
    file.write_text(scenario_text(BEGIN | more))
    found = CliRunner().invoke(cli, ["run", str(file), "--out", str(tmp_path / "out")])
    assert "What was passed over\n  - step 1, 2.000s: b1 is down: no process runs there\n" in (
        found.output
    )
    document = json.loads((tmp_path / "out" / "impossible" / "0" / "result.json").read_text())
    assert document["passed_over"] == [
        {"step": 1, "t_us": 2_000_000, "text": "b1 is down: no process runs there"}
    ]
