"""The licence table in sim/README.md is that of the cells, and has every event of FAULTS D.4."""

from __future__ import annotations

from tests.sim.licences.readme_table import README, written
from tests.sim.licences.test_table import ROWS, SAYS


def test_the_readme_shows_the_cells() -> None:
    text = README.read_text("utf-8")
    assert written(text, ROWS) == text


def test_every_event_of_the_table_has_a_row() -> None:
    assert len(SAYS) == len(ROWS) == 13
