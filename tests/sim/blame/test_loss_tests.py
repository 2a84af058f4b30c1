"""A run's losses are tested the same whether it is there with its events or is made again."""

from __future__ import annotations

from typing import Any

import pytest

from sim.blame import counterfactual, loss_tests
from sim.blame.necessity import NotTheSame
from sim.running.scenario_run import LossTest, Result, run_scenario
from sim.scenario.model import Scenario
from tests.sim.blame.cases import power_cuts, shipped

LOSSES = [
    power_cuts(3),
    power_cuts(3, 6),
    shipped("leader_crash_acks1"),
    shipped("clients/truncation_detected"),
]


def run(known: Scenario, *, is_kept: bool = False) -> Result:
    tested = loss_tests.tested_as_kept if is_kept else loss_tests.tested
    return run_scenario(known, level="digest", keeps_lines=is_kept, tests_losses=tested)


@pytest.mark.parametrize("known", LOSSES, ids=lambda known: str(known.name))
def test_one_run_less_and_the_same_outcome(
    known: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [0]

    def counted(*args: Any, **options: Any) -> Result:
        runs[0] += 1
        return run_scenario(*args, **options)

    monkeypatch.setattr(counterfactual, "run_scenario", counted)
    again = run(known)
    there, runs[0] = runs[0], 0
    kept = run(known, is_kept=True)
    assert runs[0] == there - 1
    assert kept.verdict == again.verdict
    assert kept.verdict.tested


def test_a_run_that_cannot_be_made_again_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(known: Scenario, *, seed: int, **options: Any) -> Result:
        return run_scenario(known, seed=seed + 1, **options)

    monkeypatch.setattr(counterfactual, "run_scenario", other)
    with pytest.raises(NotTheSame):
        run(shipped("leader_crash_acks1"))


def test_events_that_were_not_kept_are_asked_for() -> None:
    with pytest.raises(ValueError, match="keeps no events; make it with keeps_lines"):
        run_scenario(
            shipped("leader_crash_acks1"), level="digest", tests_losses=loss_tests.tested_as_kept
        )


@pytest.mark.parametrize("tested", [loss_tests.tested, loss_tests.tested_as_kept])
def test_a_run_that_is_out_of_events_proves_nothing(tested: LossTest) -> None:
    """The loss is at event 950; the run has its verdict without the runs that go on."""
    known = shipped("leader_crash_acks1")
    result = run_scenario(
        known, level="digest", keeps_lines=True, tests_losses=tested, events_max=1_000
    )
    assert result.verdict.word == "inconclusive"
    assert [each.licence for each in result.verdict.lost] == ["L0"]
    assert result.verdict.tested == {}
