"""A console that keeps lines instead of printing them, so that what prints a step can fill a pane.

Left out: what is printed (``sim.present``).
"""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from typing import Any, Final

from rich.console import Console
from rich.text import Text

__all__ = ["Sheet", "lines_of"]

WIDTH_MIN: Final = 8
_INDENT: Final = 4


class Sheet(Console):
    """Keeps what it is given; lines that are too wide go on below.

    Attributes:
        lines: what was printed.
    """

    def __init__(self, width: int) -> None:
        super().__init__(
            file=StringIO(), width=max(width, WIDTH_MIN), color_system=None, legacy_windows=False
        )
        self.lines: list[Text] = []

    def print(self, *objects: Any, **_options: Any) -> None:
        for line in objects:
            assert type(line) is Text, line
            self._keep(line)

    def _keep(self, line: Text) -> None:
        if line.cell_len <= self.width:
            self.lines.append(line)
            return
        indent = _INDENT if self.width > 4 * _INDENT else 0
        for number, part in enumerate(line.wrap(self, self.width - indent, overflow="fold")):
            part.rstrip()
            self.lines.append(Text(" " * indent).append_text(part) if number else part)


def lines_of(print_: Callable[[Console], None], width: int) -> list[Text]:
    """What something prints on a console that is so wide."""
    sheet = Sheet(width)
    print_(sheet)
    return sheet.lines
