"""The licence table (FAULTS D.4), cell by cell: a scenario for each, its losses and their licences.

A cell that says ILLEGAL is shown twice: with all guards on, where nothing is lost, and with guards
off (or a fault planted into Leaderfall where no guard stands), where the judge says ILLEGAL. Each
of several guards alone is enough.

Left out: the table as a function (``test_licences``), who could be trusted (``test_standing``), and
whether the files' expectations can fail (``tests.sim.test_scenario_files``).
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import tests.sim.licences as package
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import read_scenario
from sim.trace.lines import Level
from tests.sim.licences.cells import COLUMNS, Half, Row

FOLDER = Path(__file__).parents[3] / "scenarios" / "licences"
MODULES = [
    importlib.import_module(f"{package.__name__}.{name}")
    for name in sorted(each.name for each in pkgutil.iter_modules(package.__path__))
    if name.startswith("rows_")
]
ROWS: list[Row] = [row for module in MODULES for row in module.ROWS]
SAYS: dict[str, dict[str, set[str]]] = {
    event: cells for module in MODULES for event, cells in module.SAYS.items()
}


def halves(*, unguarded: bool = False, planted: bool = False) -> list[object]:
    return [
        pytest.param(row, half, id=f"{row.file}-{half.variant}-{half.says}")
        for row in ROWS
        for half in row.halves
        if (not unguarded or half.unguarded) and (not planted or half.plant)
    ]


def variants() -> list[object]:
    return [
        pytest.param(row, each.name, id=f"{row.file}-{each.name}")
        for row in ROWS
        for each in file_of(row).variants
    ]


@cache
def _read(file: str) -> Scenario:
    return read_scenario(FOLDER / f"{file}.toml")


def file_of(row: Row) -> Scenario:
    return _read(row.file)


def run(row: Row, variant: str, *overrides: tuple[str, object], seed: int = 0) -> Result:
    scenario = effective(file_of(row), variant, overrides)
    return run_scenario(scenario, seed=seed, level=Level.DIGEST)


@cache
def _run_as_it_is(file: str, variant: str) -> Result:
    return run_scenario(effective(_read(file), variant, ()), seed=0, level=Level.DIGEST)


def run_as_it_is(row: Row, variant: str) -> Result:
    """A run that several tests look at; nothing is planted."""
    return _run_as_it_is(row.file, variant)


def lost(result: Result) -> dict[str, int]:
    return {each.licence: each.records for each in result.verdict.lost}


def guards_off(row: Row, variant: str) -> list[str]:
    config = effective(file_of(row), variant, ()).document["cluster"]
    return sorted(name for name, is_on in config.get("guards", {}).items() if not is_on)


# The table as a whole ----------------------------------------------------------------------------


@pytest.mark.parametrize("event", SAYS)
def test_every_cell_of_a_row_is_there_and_says_what_it_should(event: str) -> None:
    (row,) = [each for each in ROWS if each.event == event]
    assert tuple(row.cells) == COLUMNS == tuple(SAYS[event])
    for column in COLUMNS:
        assert {half.says for half in row.cells[column]} == SAYS[event][column], column


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_no_row_is_made_up_and_no_variant_is_forgotten(row: Row) -> None:
    assert row.event in SAYS
    known = {each.variant for each in row.halves} | {each.unguarded for each in row.halves}
    assert {each.name for each in file_of(row).variants} == (known - {""}) | set(row.controls)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_an_illegal_cell_shows_the_loss_too(row: Row) -> None:
    for column, cell in row.cells.items():
        illegal = [half for half in cell if half.says == "ILLEGAL"]
        assert not illegal or any(half.unguarded or half.plant for half in illegal), column
        assert all(half.records > 0 for half in cell if half.says != "ILLEGAL"), column


# Cell by cell ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("row", "half"), halves())
def test_with_all_guards_on_a_cell_loses_what_its_licence_covers(row: Row, half: Half) -> None:
    assert guards_off(row, half.variant) == []
    result = run_as_it_is(row, half.variant)
    assert result.verdict.reasons == ()
    assert lost(result) == row.lost_in(half.variant)
    assert lost(result).get(half.says, 0) == half.records


@pytest.mark.parametrize(("row", "half"), halves(unguarded=True))
def test_with_guards_off_it_is_lost_illegally(row: Row, half: Half) -> None:
    result = run_as_it_is(row, half.unguarded)
    assert result.verdict.reasons == ()
    assert lost(result)["ILLEGAL"] == half.lost
    guards = guards_off(row, half.unguarded)
    assert guards
    for guard in guards:
        result = run(row, half.unguarded, (f"cluster.guards.{guard}", True))
        assert "ILLEGAL" not in lost(result), guard
        assert "UNEXPLAINED" not in lost(result), guard


@pytest.mark.parametrize(("row", "half"), halves(planted=True))
def test_with_a_planted_fault_it_is_lost_illegally(
    row: Row, half: Half, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert half.plant is not None
    half.plant(monkeypatch)
    result = run(row, half.variant)
    assert lost(result)["ILLEGAL"] == half.lost
    assert result.verdict.exit_code == 1


@pytest.mark.parametrize("row", [row for row in ROWS if row.controls], ids=lambda row: row.file)
def test_one_of_several_guards_is_enough(row: Row) -> None:
    for variant in row.controls:
        assert guards_off(row, variant)
        result = run_as_it_is(row, variant)
        assert result.verdict.reasons == ()
        assert lost(result) == {}


# The files ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("row", "variant"), variants())
def test_other_seeds_schedules_and_clocks_change_nothing(row: Row, variant: str) -> None:
    expected = lost(run_as_it_is(row, variant))
    for seed, scheduler, clock in ((1, "fifo", "wall"), (2, "seeded", "mono")):
        ways = (("cluster.scheduler", scheduler), ("cluster.timer_clock", clock))
        result = run(row, variant, *ways, seed=seed)
        assert (result.verdict.reasons, lost(result)) == ((), expected), (ways, seed)


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.file)
def test_real_files_say_the_same(row: Row, tmp_path: Path) -> None:
    variant = file_of(row).variants[-1].name
    result = run_scenario(effective(file_of(row), variant, ()), root=tmp_path)
    assert result.verdict.reasons == ()
    assert result.digest == run_as_it_is(row, variant).digest
