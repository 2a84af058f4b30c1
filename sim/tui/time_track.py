"""The whole trace on two lines: what its events are known for, and how the expectations stood.

Each cell stands for as many events as any other, and shows the worst of them.

Left out: where the lines stand (``sim.tui.panes``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from rich.text import Text

from sim.present.expects import Expect
from sim.present.step_view import Mark
from sim.present.tracks import Tracks

__all__ = ["TRACK_LEGEND", "TimeTrack"]

LABEL_WIDTH: Final = 8
TRACK_LEGEND: Final = (
    "the whole trace: marks ! rule broken or records lost, f fault, s step; "
    "expect + met, - holds, . open, x broken, X failed; ┃ this event"
)
_MARKS: Final = {"step": ("s", "cyan"), "fault": ("f", "yellow")}
_MARK_BAD: Final = ("!", "bold red")
_NOTHING: Final = ("·", "dim")
_HERE: Final = ("┃", "")
_STATES: Final = {
    "met": ("+", "green"),
    "holds": ("-", "green"),
    "open": (".", "dim"),
    "broken": ("x", "yellow"),
    "failed": ("X", "bold red"),
}
_WORSE: Final = ("met", "holds", "open", "broken", "failed")
_Cell = tuple[str, str]


class TimeTrack:
    """The lines for a screen that is so wide; made once, then drawn with any position."""

    def __init__(self, tracks: Tracks, marks: Sequence[Mark], width: int) -> None:
        self._last = tracks.last
        self.cells = max(1, width - LABEL_WIDTH)
        self._marks = self._marked(marks)
        self._expects = self._expected(tracks)

    def cell_of(self, n: int) -> int:
        """The cell of an event."""
        return n * self.cells // (self._last + 1)

    def event_at(self, column: int) -> int:
        """The first event of the cell in a column of the screen; the nearest cell's if in none."""
        cell = max(0, min(column - LABEL_WIDTH, self.cells - 1))
        return min(self._last, -(-cell * (self._last + 1) // self.cells))

    def lines(self, n: int) -> list[Text]:
        """Both lines, with the position of an event."""
        here = self.cell_of(n)
        return [_line("marks", self._marks, here), _line("expect", self._expects, here)]

    def _marked(self, marks: Sequence[Mark]) -> list[_Cell]:
        found = [_NOTHING] * self.cells
        for rank in (("step",), ("fault",), ("violation", "loss")):
            for mark in marks:
                if mark.what in rank:
                    found[self.cell_of(mark.n)] = _MARKS.get(mark.what, _MARK_BAD)
        return found

    def _expected(self, tracks: Tracks) -> list[_Cell]:
        worst = [-1] * self.cells
        for each in tracks.expects.values():
            spans = list(_states(each))
            ends = [begin for begin, _ in spans[1:]] + [self._last + 1]
            for (begin, state), end in zip(spans, ends, strict=True):
                rank = _WORSE.index(state)
                for cell in range(self.cell_of(begin), self.cell_of(max(begin, end - 1)) + 1):
                    worst[cell] = max(worst[cell], rank)
        return [_NOTHING if rank < 0 else _STATES[_WORSE[rank]] for rank in worst]


def _states(expect: Expect) -> Iterator[tuple[int, str]]:
    """From which event on it has which state."""
    numbers = [0, *(n for n, _ in expect.holds)]
    if expect.judged is not None:
        numbers.append(expect.judged)
    for n in sorted({*numbers}):
        yield n, expect.state(n)


def _line(label: str, cells: Sequence[_Cell], here: int) -> Text:
    line = Text().append(f"{label:<{LABEL_WIDTH}}", "dim")
    for number, (sign, style) in enumerate(cells):
        if number == here:
            sign = _HERE[0] if (sign, style) == _NOTHING else sign
            line.append(sign, f"{style} not dim reverse".strip())
        else:
            line.append(sign, style)
    return line
