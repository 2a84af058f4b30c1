"""Every scenario that comes with Leaderfall recovers, or is known not to, and says why."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from attrs import evolve

from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.model import Liveness
from sim.scenario.reading import read_scenario

FOLDER = Path(__file__).parents[3] / "scenarios"
STUCK: dict[tuple[str, str | None], str] = {
    # These rules of old leave logs that differ for good, which no fetch will ever tell.
    ("kip101_divergence", "high-watermark"): "b1 has other bytes than b2 in orders-0",
    ("kip279_fast_failover", "kip-101"): "b2 has other bytes than b1 in orders-0",
    ("kip320_zombie_follower", "without fences"): "b2 has other bytes than b1 in orders-0",
}


def variants(path: Path) -> list[str | None]:
    return [*(each.name for each in read_scenario(path).variants)] or [None]


RUNS = [(path.stem, each) for path in sorted(FOLDER.glob("*.toml")) for each in variants(path)]


@cache
def live(name: str, variant: str | None, core: str) -> Result:
    found = effective(read_scenario(FOLDER / f"{name}.toml"), variant)
    return run_scenario(evolve(found, liveness=Liveness(core=core)))


@pytest.mark.parametrize(("name", "variant"), RUNS)
def test_with_everything_healed_it_converges(name: str, variant: str | None) -> None:
    result = live(name, variant, "all")
    found = result.liveness
    assert found is not None
    assert result.verdict.word == "passed", result.verdict.reasons
    if (name, variant) in STUCK:
        assert found.word == "stuck"
        assert found.chains == (STUCK[name, variant],)
    else:
        assert found.word == "converged", found.lines()
        assert found.took_us <= 2_000_000


@pytest.mark.parametrize(("name", "variant"), RUNS)
def test_with_a_drawn_core_it_converges_or_is_licensed(name: str, variant: str | None) -> None:
    found = live(name, variant, "drawn").liveness
    assert found is not None
    if (name, variant) not in STUCK:
        assert found.word in ("converged", "unavailable"), found.lines()


def test_the_runs_that_stay_stuck_are_there() -> None:
    assert set(STUCK) <= set(RUNS)
