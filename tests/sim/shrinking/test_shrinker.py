"""Whole searches: what is left, what is kept, what is found beside it, how they end."""

from __future__ import annotations

from typing import Any

import pytest

from sim.running import acting
from sim.running.findings import Examined, Finding, examine
from sim.scenario.actions import Flush
from sim.scenario.durations import duration_us
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario
from sim.shrinking import trials as trials_module
from sim.shrinking.goals import Goal
from sim.shrinking.shrinker import NotTheSame, Shrunk, begin, shrink
from sim.shrinking.tables import Document, prepared
from sim.shrinking.trials import Trials
from tests.sim.shrinking.cases import LOSS, actions, based, losing, scenario_of, shipped, shrunk

STEPS: list[dict[str, Any]] = losing()["step"]


def _document(found: Shrunk) -> Document:
    return parse_scenario(found.text).document


def _padded(scenario: Scenario) -> Scenario:
    """With faults, brokers, topics and workloads that have nothing to do with it."""
    document = prepared(scenario)
    document["cluster"] = document.get("cluster", {}) | {"brokers": 5, "scheduler": "seeded"}
    document["expect"] = [{"always": "elections('unclean') == 0"}]
    document["step"] = [each for each in document["step"] if "settle" not in each]
    document["topic"] = [
        {"name": "noise", "replicas": [["b4", "b5"], ["b5", "b4"]]},
        *document["topic"],
        {"name": "quiet"},
    ]
    document["workload"] = [
        {"name": "w", "kind": "producer", "topic": "noise", "rate": 5, "stop": "3s"},
        {"name": "r", "kind": "consumer", "topic": "noise"},
    ]
    document["fault"] = [
        {"id": "gc", "kind": "pause", "target": "b5", "start": "2s", "end": "3s"},
        {"id": "cpu", "kind": "slow", "target": "b4", "start": "500ms", "end": "9s", "cpu": 3},
        {"id": "cut", "kind": "cut", "target": {"from": "b4", "to": "b5"}, "start": "1s"},
    ]
    return scenario_of(document)


# What is left ------------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_has_nothing_to_do_with_it_goes() -> None:
    found = shrunk(_padded(shipped("leader_crash_acks1")))
    document = _document(found)
    assert found.finding.identity == ("loss", "L0")
    assert actions(document) == ["cut", "produce", "crash"]
    assert "fault" not in document
    assert "workload" not in document
    assert "expect" not in document
    assert document["topic"] == [{"name": "orders", "replicas": [["b1", "b2"]]}]
    assert (found.after.faults, found.after.steps, found.after.records) == (0, 3, 1)
    assert found.after.brokers == 2
    assert found.before.brokers == 5
    assert found.ended == "minimal"
    again = examine(parse_scenario(found.text), level="digest")
    assert again.identities == {("loss", "L0")}


@pytest.mark.slow
def test_an_old_truncation_takes_two_leaders_and_a_record() -> None:
    found = shrunk(shipped("kip101_lost_write", "high-watermark"), ("loss", "ILLEGAL"))
    document = _document(found)
    assert actions(document) == ["produce", "crash", "crash"]
    assert document["cluster"]["truncation"] == "high-watermark"
    assert found.after.records == 1
    assert found.after.until_us < 5_000_000


@pytest.mark.slow
def test_what_a_file_excuses_is_kept_by_a_file_that_says_so() -> None:
    scenario = shipped("min_isr_freeze", "without freeze")
    found = shrunk(scenario)
    document = _document(found)
    assert found.goal.is_strict
    assert document["cluster"]["guards"] == {"hw-freeze": False}
    assert document["expect"] == [{"breaks": [found.finding.name]}]
    assert found.after.steps <= 3
    plain = examine(parse_scenario(found.text), level="digest")
    assert found.goal.identity not in plain.identities
    document["cluster"]["guards"] = {}
    assert ("expectation", f"breaks: {found.finding.name}") in examine(
        scenario_of(document), level="digest"
    ).identities


def test_one_copy_that_power_takes() -> None:
    found = shrunk(scenario_of(losing(until="60s")), LOSS)
    document = _document(found)
    assert actions(document) == ["produce", "crash"]
    assert document["until"] == "100ms"
    assert "id" not in document["step"][0]


def test_an_expectation_stays_and_the_others_go() -> None:
    expects = [{"at": "2s", "that": "alive(b1)"}, {"always": "alive(b1)"}, {"allow": ["L2"]}]
    found = shrunk(scenario_of(losing(expect=expects)))
    document = _document(found)
    assert found.finding.identity == ("expectation", "always: alive(b1)")
    assert document["expect"] == [{"always": "alive(b1)"}]
    assert actions(document) == ["crash"]


def test_an_expectation_about_the_end_keeps_its_end() -> None:
    expects = [{"eventually": "acked('orders-0') == 2", "from": "2s"}, {"allow": ["L2"]}]
    found = shrunk(scenario_of(losing(expect=expects)))
    (expect,) = _document(found)["expect"]
    window_us = found.after.until_us - duration_us(expect["from"])
    assert window_us == 4_000_000  # Though "never" is true of any end.


def test_a_step_that_cannot_act_stays() -> None:
    crash = {"crash": {"node": "leader:orders-0"}}
    steps = [STEPS[0], {"at": "3s", **crash}, {"at": "15s", **crash}]
    found = shrunk(scenario_of(losing(step=steps, until="20s")), ("step", "cannot act"))
    assert found.goal.step is not None
    assert actions(_document(found))[-1] == "crash"
    assert len(_document(found)["step"]) <= 2


def test_liveness_stays_where_it_is_what_fails() -> None:
    document = losing(liveness={"demand": "unavailable", "within": "5s"}, step=STEPS[:1])
    found = shrunk(scenario_of(document))
    assert found.goal.kind == "liveness"
    assert "step" not in _document(found)
    assert _document(found)["liveness"]["demand"] == "unavailable"


def test_a_recovery_that_takes_more_events_than_its_run_is_not_cut_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trials_module, "_EVENTS_MIN", 1)
    monkeypatch.setattr(trials_module, "_EVENTS_TIMES", 1)
    demand = {"demand": "unavailable", "within": "5s"}
    crash = {"at": "10ms", "crash": {"node": "b1", "how": "process"}}
    base = based(scenario_of(losing(liveness=demand, step=[crash], until="20ms")))
    result = base.examined.result
    assert result is not None
    assert result.liveness is not None
    assert result.liveness.events > result.trace.count
    trials = begin(base, base.examined.findings[0])
    assert trials.examined.identities == base.examined.identities == {("liveness", "converged")}


def test_a_defect_of_ours_is_made_small(monkeypatch: pytest.MonkeyPatch) -> None:
    def breaks(*_: object) -> None:
        raise KeyError("b9")

    monkeypatch.setitem(acting._ACTS, Flush, breaks)
    found = shrunk(scenario_of(losing(step=[*STEPS, {"at": "5s", "flush": "b1"}])))
    assert found.finding.identity == ("defect", "KeyError in test_shrinker.breaks")
    assert actions(_document(found)) == ["flush"]
    assert found.after.until_us <= 300_000


# What is not accepted ----------------------------------------------------------------------------

GUARDED = [{"at_end": "acked('orders-0') == 1"}, {"allow": ["L0"]}]


def test_nothing_new_goes_wrong() -> None:
    scenario = scenario_of(losing(expect=GUARDED))
    found = shrunk(scenario)
    again = examine(parse_scenario(found.text), level="digest")
    assert again.identities == based(scenario).examined.identities == {LOSS}


def test_who_takes_any_failure_slides_to_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def takes_any(self: Goal, scenario: Scenario, examined: Examined) -> bool:
        return bool(examined.findings)

    monkeypatch.setattr(Goal, "is_shown_by", takes_any)
    with pytest.raises(AssertionError):
        shrunk(scenario_of(losing(expect=GUARDED)))


def test_who_takes_what_is_new_too_gets_more_than_there_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def takes_more(self: Goal, scenario: Scenario, examined: Examined) -> bool:
        return self.finding(examined) is not None

    monkeypatch.setattr(Goal, "is_shown_by", takes_more)
    expects = [
        {"breaks": ["acked-records-survive"]},
        {"always": "lost('acked') == 0"},
    ]
    scenario = scenario_of(losing(expect=expects))
    before = based(scenario).examined.identities
    assert LOSS not in before
    found = shrunk(scenario)
    again = examine(parse_scenario(found.text), level="digest")
    assert again.identities - before == {LOSS}


def test_what_else_is_found_is_kept_with_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    other = Finding("invariant", "hw-valid", "planted")

    def examine_more(scenario: Scenario, **options: Any) -> Examined:
        found = examine(scenario, **options)
        if any(each.action.NAME == "start" for each in scenario.steps):
            return found
        return Examined((other, *found.findings), found.result)

    monkeypatch.setattr(trials_module, "examine", examine_more)
    found = shrunk(scenario_of(losing()))
    assert "start" in actions(_document(found))
    (kept,) = found.finds
    assert kept.finding == other
    assert "start" not in actions(parse_scenario(kept.text).document)


def test_a_run_that_cannot_be_made_again_is_not_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    base = based(scenario_of(losing()))
    monkeypatch.setattr(trials_module, "examine", lambda *_, **__: Examined((), None))
    with pytest.raises(NotTheSame):
        shrink(base, base.examined.findings[0])


# How it ends -------------------------------------------------------------------------------------


def test_the_same_scenario_has_the_same_result() -> None:
    scenario = scenario_of(losing(until="20s"))
    one, other = (shrunk(scenario) for _ in range(2))
    assert (one.text, one.runs, one.refused) == (other.text, other.runs, other.refused)


def test_a_result_is_as_small_as_it_gets() -> None:
    once = shrunk(scenario_of(losing(until="60s")))
    again = shrunk(parse_scenario(once.text))
    assert again.text == once.text


@pytest.mark.parametrize("runs_max", [1, 2, 7, 20])
def test_the_budget_ends_it_with_the_best_so_far(runs_max: int) -> None:
    found = shrunk(scenario_of(losing(until="60s")), LOSS, runs_max=runs_max)
    assert (found.ended, found.runs) == ("budget", runs_max)
    assert LOSS in examine(parse_scenario(found.text), level="digest").identities


def test_an_interrupt_leaves_the_best_so_far() -> None:
    def interrupts(trials: Trials) -> None:
        if trials.runs == 9:
            raise KeyboardInterrupt

    found = shrunk(scenario_of(losing(until="60s")), LOSS, on_run=interrupts)
    assert found.ended == "interrupted"
    assert found.accepted
    assert LOSS in examine(parse_scenario(found.text), level="digest").identities
