"""What is wrong with a run, and the identities by which runs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.running import findings as module
from sim.running.findings import KINDS, examine, findings
from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario, read_scenario
from sim.scenario.writing import scenario_text

FOLDER = Path(__file__).resolve().parents[3] / "scenarios"


def shipped(name: str, variant: str | None = None, *sets: tuple[str, Any]) -> Scenario:
    return effective(read_scenario(FOLDER / f"{name}.toml"), variant, sets)


def test_a_run_that_passes_has_no_findings() -> None:
    scenario = read_scenario(FOLDER / "kip101_lost_write.toml")
    for variant in scenario.variants:
        examined = examine(effective(scenario, variant.name, ()), level="digest")
        assert examined.findings == ()
        assert not examined.is_inconclusive


def test_what_the_file_excuses_is_told_to_who_is_strict() -> None:
    scenario = shipped("min_isr_freeze", "without freeze")
    assert examine(scenario, level="digest").findings == ()
    strict = examine(scenario, level="digest", is_strict=True)
    kinds = {kind for kind, _ in strict.identities}
    assert kinds <= {"invariant", "loss"}
    assert kinds
    assert kinds <= set(KINDS)


def test_what_only_clients_saw_fails_a_strict_run() -> None:
    """No rule of brokers is broken: a reader goes on in another past."""
    scenario = shipped("clients/truncation_blind_spot", "offset only")
    assert run_scenario(scenario, level="digest").verdict.word == "passed"
    result = run_scenario(scenario, level="digest", is_strict=True)
    assert result.verdict.word == "failed"
    (reason,) = result.verdict.reasons
    assert reason.startswith("clients of orders-0 saw stale-read: ")
    assert [each.identity for each in findings(result, is_strict=True)] == [
        ("anomaly", "stale-read")
    ]
    today = shipped("clients/truncation_blind_spot", "today")
    assert run_scenario(today, level="digest", is_strict=True).verdict.word == "passed"


def test_a_file_that_expects_too_little_has_findings() -> None:
    read = read_scenario(FOLDER / "leader_crash_acks1.toml")
    document = dict(read.document)
    document["expect"] = [{"always": "alive(b1)"}]
    examined = examine(parse_scenario(scenario_text(document)), level="digest")
    assert ("expectation", "always: alive(b1)") in examined.identities
    assert "loss" in {kind for kind, _ in examined.identities}


def test_a_run_out_of_events_is_inconclusive() -> None:
    examined = examine(shipped("leader_crash_acks1"), level="digest", events_max=50)
    assert examined.findings == ()
    assert examined.is_inconclusive


def test_an_exception_is_named_by_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise KeyError("b9")

    monkeypatch.setattr(module, "run_scenario", fails)
    examined = examine(shipped("leader_crash_acks1"))
    (found,) = examined.findings
    assert found.identity == ("defect", "KeyError in test_findings.fails")
    assert isinstance(examined.error, KeyError)
