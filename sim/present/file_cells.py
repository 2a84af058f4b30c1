"""What a log's files have at each offset: a row of signs that fits below the log's strip.

Left out: the strip (``sim.present.text``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from sim.present.step_view import LogFiles
from sim.present.strips import LogRow, Run

__all__ = ["FILES_LEGEND", "file_cells", "file_words", "has_files"]

FILES_LEGEND: Final = (
    "below a log its files: = synced, - not synced, [ a segment begins, ' an index entry"
)


def has_files(files: LogFiles) -> bool:
    """Whether the trace tells anything of a log's files."""
    return files.durable_end is not None or bool(files.segments or files.index)


def file_words(files: LogFiles) -> str:
    """The synced end in words."""
    return "" if files.durable_end is None else f"synced to {files.durable_end}"


def file_cells(files: LogFiles, row: LogRow, runs: Sequence[Run], widths: Sequence[int]) -> Text:
    """One sign a cell, and two blanks in front of each run and behind the last one.

    A cell that stands for several offsets has the sign of a segment or an entry if one of them
    has it, and counts as synced if all of them are.
    """
    found = Text("  ")
    for epoch, run, width in zip(row.cells, runs, widths, strict=True):
        size = run.end - run.base
        signs = [
            _sign(
                files,
                run.base + cell * size // width,
                run.base + (cell + 1) * size // width,
                is_there=epoch is not None,
            )
            for cell in range(width)
        ]
        found.append("".join(signs) + "  ", style="dim")
    return found


def _sign(files: LogFiles, base: int, end: int, *, is_there: bool) -> str:
    """The sign of the offsets from ``base`` to below ``end``."""
    if _has_one(files.segments, base, end):
        return "["
    if not is_there:
        return " "
    if _has_one(files.index, base, end):
        return "'"
    if files.durable_end is None:
        return " "
    return "=" if end <= files.durable_end else "-"


def _has_one(numbers: Sequence[int], base: int, end: int) -> bool:
    at = bisect_left(numbers, base)
    return at < len(numbers) and numbers[at] < end
