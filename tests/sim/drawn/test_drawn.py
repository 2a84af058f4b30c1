"""Drawn scenarios: what a sweep has found stays found, and a few fixed seeds are run each time.

No run may break a rule, lose a record without a licence, refute a licence, or make the layers of
judgement disagree; a recoverable one loses nothing that was committed, and recovers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.blame import loss_tests
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.scenario.writing import scenario_text
from sim.scenario_files import REGRESSIONS, scenarios_dir
from sim.swarm import drawn

FINDS = sorted((scenarios_dir() / REGRESSIONS).glob("*.toml"))


def run(path: Path) -> Result:
    scenario = effective(read_scenario(path), None, ())
    return run_scenario(
        scenario,
        level="digest",
        keeps_lines=True,
        tests_losses=loss_tests.tested_as_kept,
        events_max=600_000,
    )


def wrong(result: Result) -> list[str]:
    """What no drawn world may have, whatever its envelope."""
    verdict = result.verdict
    found = [str(each.first) for each in verdict.broken if each.first is not None]
    found += [each.licence for each in verdict.lost if each.licence in ("ILLEGAL", "UNEXPLAINED")]
    found += [str(each) for each in verdict.tested.values() if each.outcome == "refuted"]
    if result.liveness is not None and result.liveness.word == "stuck":
        found.append("stuck")
    return found


@pytest.mark.slow
@pytest.mark.parametrize("path", FINDS, ids=[each.stem for each in FINDS])
def test_what_was_once_judged_wrongly_is_judged_rightly(path: Path) -> None:
    result = run(path)
    assert wrong(result) == []
    assert result.verdict.word == "passed"
    assert result.scenario.name == path.stem.replace("_", "-")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("envelope", ["recoverable", "unrestricted"])
def test_drawn_worlds_have_nothing_wrong(seed: int, envelope: str, tmp_path: Path) -> None:
    path = tmp_path / f"{envelope}-{seed}.toml"
    path.write_text(scenario_text(drawn(seed, envelope)))
    result = run(path)
    assert wrong(result) == []
    assert run(path).digest == result.digest
    if envelope == "recoverable" and result.failure is None:
        assert {each.licence for each in result.verdict.lost} <= {"L0"}
        assert result.liveness is not None
        assert result.liveness.word == "converged"
