"""Events one below the other, with the nodes' lanes side by side and messages as arrows.

Which events there are, what their nodes do and what they say comes from ``sim.present.columns``.

Left out: scrolling (``sim.tui.event_list``).
"""

from __future__ import annotations

from typing import Final

from attrs import frozen
from rich.cells import cell_len
from rich.text import Text

from sim.present.args import text as text_in
from sim.present.columns import Row, Selection, columns
from sim.present.text import row_style
from sim.present.tracks import Tracks
from sim.present.words import at, name, seconds
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from storage.inspection.escaping import safe

__all__ = ["LANES_LEGEND", "Lanes"]

LANES_LEGEND: Final = (
    "one line an event, one lane a node: | runs, = stands still, x dead or without power, "
    "- stopped; ● the event; ┄> a message leaves, ─> it arrives, ─x it is lost; "
    "> this event, * what it goes back to at once"
)
_STEP_MAX: Final = 8
_STEP_MIN: Final = 2
_TIME_WIDTH: Final = 10
_WORDS_MIN: Final = 24
_SENT: Final = (Kind.SEND, Kind.TRANSMIT)


@frozen
class _Arrow:
    """From one column to another; the head is at the end."""

    begin: int
    end: int
    line: str
    is_lost: bool = False


class Lanes:
    """Rows for a screen that is so wide.

    Attributes:
        step: columns of the screen a lane; 0 where there is no room for lanes.
    """

    def __init__(self, tracks: Tracks, width: int) -> None:
        self._tracks = tracks
        self.width = width
        self._all = Selection()
        self.nodes = columns(tracks.story, self._all, ()).nodes
        self._number_width = len(at(tracks.last))
        self.left = 1 + self._number_width + 1 + _TIME_WIDTH + 1
        self.step = self._step()

    def _step(self) -> int:
        room = self.width - self.left - max(_WORDS_MIN, self.width * 45 // 100)
        widest = max((cell_len(name(node)) for node in self.nodes), default=0) + 1
        step = min(room // max(1, len(self.nodes)), _STEP_MAX, max(widest, _STEP_MIN + 1))
        return step if step >= _STEP_MIN and self.nodes else 0

    def head(self) -> Text:
        """The names of the nodes above their lanes."""
        line = Text(f" {'event':>{self._number_width}} {'time':>{_TIME_WIDTH}} "[-self.left :])
        for node in self.nodes if self.step else ():
            line.append(_fit(name(node), self.step))
        line.stylize("bold")
        line.truncate(self.width)
        return line

    def line(self, n: int, *, is_here: bool, is_cause: bool) -> Text:
        """One event; number 0 is the beginning.

        Raises:
            TraceError: the file has changed since it was read, and is damaged now.
        """
        if not n:
            found = Text(f"{'>' if is_here else ' '}{at(0):>{self._number_width}} the beginning")
            found.stylize("reverse" if is_here else "dim")
            return self._whole(found, is_here=is_here)
        event = self._tracks.event(n)
        row = next(columns(self._tracks.story, self._all, (event,)).rows)
        mark = ">" if is_here else "*" if is_cause else " "
        number = f"{at(n):>{self._number_width}}"
        found = Text().append(f"{mark}{number} {seconds(row.t_us):>{_TIME_WIDTH}} ", "dim")
        if self.step:
            found.append_text(self._lanes(event, row))
        found.append(f"{name(row.node)} ", "bold").append(safe(row.text), row_style(row))
        if is_cause:
            found.stylize("bold", 0, self.left)
        return self._whole(found, is_here=is_here)

    def _whole(self, line: Text, *, is_here: bool) -> Text:
        line.truncate(self.width, overflow="ellipsis", pad=is_here)
        if is_here:
            line.stylize("not dim reverse")
        return line

    def _lanes(self, event: Event, row: Row) -> Text:
        """One sign a node, and the arrow of a message."""
        signs = [" "] * (len(self.nodes) * self.step)
        for column, glyph in enumerate(row.glyphs):
            signs[column * self.step] = glyph
        arrow = self._arrow(event)
        lane = Text(style="dim")
        if arrow is not None:
            _draw(signs, arrow, self.step)
        if row.column >= 0:
            signs[row.column * self.step] = "●"
        lane.append("".join(signs))
        if arrow is not None:
            ends = sorted((arrow.begin * self.step, arrow.end * self.step))
            lane.stylize("not dim yellow" if arrow.is_lost else "not dim", ends[0], ends[1] + 1)
        elif row.column >= 0:
            own = row.column * self.step
            lane.stylize("not dim", own, own + 1)
        return lane

    def _arrow(self, event: Event) -> _Arrow | None:
        kind, args = event.kind, event.args
        if kind in _SENT:
            ends = event.node, text_in(args, "to")
        elif kind is Kind.DELIVER:
            ends = text_in(args, "from") or "", event.node
        elif kind is Kind.DROP:
            ends = text_in(args, "from") or "", text_in(args, "to")
        else:
            return None
        if ends[0] not in self.nodes or ends[1] not in self.nodes or ends[0] == ends[1]:
            return None
        begin, end = self.nodes.index(ends[0]), self.nodes.index(ends[1])
        return _Arrow(begin, end, "┄" if kind in _SENT else "─", kind is Kind.DROP)


def _draw(signs: list[str], arrow: _Arrow, step: int) -> None:
    begin, end = arrow.begin * step, arrow.end * step
    is_right = end > begin
    low, high = min(begin, end), max(begin, end)
    signs[low + 1 : high] = arrow.line * (high - low - 1)
    head = "x" if arrow.is_lost else ">" if is_right else "<"
    signs[end - 1 if is_right else end + 1] = head


def _fit(text: str, width: int) -> str:
    while cell_len(text) > width - 1:
        text = text[:-1]
    return text + " " * (width - cell_len(text))
