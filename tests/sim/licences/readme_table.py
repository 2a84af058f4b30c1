"""The licence table as sim/README.md shows it: each cell with the variants that show it.

``python -m tests.sim.licences.readme_table`` writes it anew. Left out: the cells (``rows_*``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.sim.licences.cells import COLUMNS, Row

__all__ = ["BEGIN", "END", "README", "table", "written"]

README: Final = Path(__file__).parents[3] / "sim" / "README.md"
BEGIN: Final = "<!-- licence table -->\n"
END: Final = "<!-- /licence table -->\n"
_HEADS: Final = {
    "acks1": "acks=1",
    "min-isr-1": "acks=all, min ISR 1",
    "min-isr-2": "acks=all, min ISR 2",
    "elr": "the same with ELR",
    "unclean": "unclean election on",
}


def table(rows: list[Row]) -> str:
    """The table of some rows."""
    heads = " | ".join(_HEADS[column] for column in COLUMNS)
    lines = [f"| event, scenario | {heads} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in rows:
        file = f"[`{row.file}`](../scenarios/licences/{row.file}.toml)"
        cells = " | ".join(_cell(row, column) for column in COLUMNS)
        lines.append(f"| {row.event}: {file} | {cells} |")
    return "\n".join(lines) + "\n"


def _cell(row: Row, column: str) -> str:
    parts = []
    for half in row.cells[column]:
        shown = [half.variant, *([half.unguarded] if half.unguarded else [])]
        names = ", ".join(f"`{each}`" for each in shown)
        planted = ", by a planted fault" if half.plant else ""
        parts.append(f"{half.says} ({names}{planted})")
    return "; ".join(parts) or "–"


def written(text: str, rows: list[Row]) -> str:
    """The README with the table of some rows in its place."""
    before, _, rest = text.partition(BEGIN)
    _, _, behind = rest.partition(END)
    return f"{before}{BEGIN}{table(rows)}{END}{behind}"


if __name__ == "__main__":
    from tests.sim.licences.test_table import ROWS

    README.write_text(written(README.read_text("utf-8"), ROWS), "utf-8")
