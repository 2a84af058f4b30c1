"""How the cells of the licence table are written down: what FAULTS D.4 says, and what shows it.

Left out: the cells (``rows_one``, ``rows_two``), and the runs (``test_table``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest
from attrs import frozen

__all__ = ["COLUMNS", "Half", "Plant", "Row"]

COLUMNS: Final = ("acks1", "min-isr-1", "min-isr-2", "elr", "unclean")

Plant = Callable[[pytest.MonkeyPatch], None]


@frozen
class Half:
    """A cell, or what it says of some of its records.

    Attributes:
        says: a licence, or ``ILLEGAL``: with all guards on nothing is lost so.
        variant: of the row's file, with all guards on.
        records: how many are lost there under the licence; 0 for ``ILLEGAL``.
        unguarded: with ``ILLEGAL``: the variant in which guards are off, and records are lost.
        plant: in place of that: a fault planted into Leaderfall itself, and it is lost in
            ``variant``.
        lost: how many are lost there, and called ``ILLEGAL``.
    """

    says: str
    variant: str
    records: int = 0
    unguarded: str = ""
    plant: Plant | None = None
    lost: int = 1


@frozen
class Row:
    """An event, and its cells.

    Attributes:
        event: as FAULTS D.4 has it.
        file: in ``scenarios/licences``, without the suffix.
        cells: by column.
        beside: what the text around the table says.
        controls: further variants: guards are off, and nothing is lost.
    """

    event: str
    file: str
    cells: Mapping[str, tuple[Half, ...]]
    beside: tuple[Half, ...] = ()
    controls: tuple[str, ...] = ()

    @property
    def halves(self) -> tuple[Half, ...]:
        return (*(half for cell in self.cells.values() for half in cell), *self.beside)

    def lost_in(self, variant: str) -> dict[str, int]:
        """What is lost in a variant with all guards on, by licence."""
        found = {each.says: each.records for each in self.halves if each.variant == variant}
        return {licence: records for licence, records in found.items() if records}
