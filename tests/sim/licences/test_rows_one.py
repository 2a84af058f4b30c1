"""Kills of everybody in whatever order, and whatever order of return (FAULTS D.4, second row).

Left out: the cells, one interleaving each (``test_table``).
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from tests.sim.licences.cells import COLUMNS

FILE = Path(__file__).parents[3] / "scenarios" / "licences" / "all_killed.toml"
RETURNS = ("24s", "28s", "32s")


@pytest.mark.parametrize("kills", [("12s", "18s"), ("12s", "12s"), ("18s", "12s")])
@pytest.mark.parametrize("order", list(itertools.permutations((1, 2, 3))))
@pytest.mark.parametrize("column", COLUMNS)
def test_whoever_is_killed_and_comes_back_first(
    column: str, order: tuple[int, ...], kills: tuple[str, str]
) -> None:
    """b1 is killed first, and the other two have one record more."""
    ends = [(f"fault.kill-{node}.end", at) for node, at in zip(order, RETURNS, strict=True)]
    starts = [("fault.kill-2.start", kills[0]), ("fault.kill-3.start", kills[1])]
    result = run_scenario(effective(read_scenario(FILE), column, [*ends, *starts]))
    lost = {each.licence: each.records for each in result.verdict.lost}
    if column == "acks1":
        assert lost == {"L0": 1}
    elif column == "unclean" and order[0] == 1:
        assert lost == {"L1": 1}
    else:
        assert lost == {}
