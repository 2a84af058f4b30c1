"""Panes that show lines of text, and scroll.

Nothing is ever read as markup: lines are texts whose styles are ours, and go to the screen as they
are.

Left out: what is shown (``sim.present``), and where panes stand (``sim.tui.screen``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from rich.console import Console
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click, Resize
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from sim.present.step_view import Mark
from sim.present.tracks import Tracks
from sim.tui.lanes import Lanes
from sim.tui.sheet import lines_of
from sim.tui.time_track import TimeTrack

__all__ = ["EventList", "Pane", "Ruler"]


class _Lines(ScrollView):
    """Lines that are asked for one by one, as they come on the screen."""

    def text_at(self, row: int, width: int) -> Text | None:
        """A line of the content; None where there is none."""
        raise NotImplementedError

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        text = self.text_at(y, width)
        if text is None:
            return Strip.blank(width, self.rich_style)
        # A text renders without a style of its own unless it is part of another one.
        segments = list(Text(end="").append_text(text).render(self.app.console))
        return (
            Strip(segments).adjust_cell_length(width, self.rich_style).apply_style(self.rich_style)
        )


class Pane(_Lines):
    """What a function prints, at the width that the pane has."""

    def __init__(self, title: str = "", *, place: str, can_focus: bool = True) -> None:
        super().__init__(id=place)
        self.can_focus = can_focus
        self.border_title = title
        self._make: Callable[[Console], None] | None = None
        self._made_for = 0
        self.lines: list[Text] = []

    def show(self, make: Callable[[Console], None]) -> None:
        """Show what this prints; it is called again when the width changes."""
        self._make = make
        self._remake()

    def on_resize(self, event: Resize) -> None:
        if self.scrollable_content_region.width != self._made_for:
            self._remake()

    def _remake(self) -> None:
        self._made_for = self.scrollable_content_region.width
        if self._make is None or not self._made_for:
            return
        self.lines = lines_of(self._make, self._made_for)
        size = Size(self._made_for, len(self.lines))
        is_layout = size != self.virtual_size and self.styles.is_auto_height
        self.virtual_size = size
        self.refresh(layout=is_layout)

    def text_at(self, row: int, width: int) -> Text | None:
        row += self.scroll_offset.y
        return self.lines[row] if row < len(self.lines) else None


class Ruler(_Lines):
    """The track of the whole trace."""

    class Chosen(Message):
        """An event was pointed at."""

        def __init__(self, n: int) -> None:
            super().__init__()
            self.n = n

    def __init__(self, tracks: Tracks, marks: Iterable[Mark], *, place: str) -> None:
        super().__init__(id=place)
        self.can_focus = False
        self._tracks = tracks
        self._marks = tuple(marks)
        self._track: TimeTrack | None = None
        self._lines: list[Text] = []
        self.n = 0

    def show(self, n: int) -> None:
        """Show the position of an event."""
        self.n = n
        width = self.scrollable_content_region.width
        if not width:
            return
        if self._track is None:
            self._track = TimeTrack(self._tracks, self._marks, width)
        self._lines = self._track.lines(n)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        self._track = None
        self.show(self.n)

    def on_click(self, event: Click) -> None:
        if self._track is not None:
            self.post_message(self.Chosen(self._track.event_at(event.x)))

    def text_at(self, row: int, width: int) -> Text | None:
        return self._lines[row] if row < len(self._lines) else None


class EventList(_Lines):
    """Every event, with lanes; a line of names stays on top."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "screen.move('p')", show=False),
        Binding("down", "screen.move('n')", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("home", "screen.move('g', 'start')", show=False),
        Binding("end", "screen.move('g', 'end')", show=False),
    ]

    def __init__(self, title: str, tracks: Tracks, *, place: str) -> None:
        super().__init__(id=place)
        self.can_focus = True
        self.border_title = title
        self._tracks = tracks
        self._lanes = Lanes(tracks, 0)
        self._causes: tuple[int, ...] = ()
        self.n = 0
        self.page_down_count = 1

    def show(self, n: int, causes: tuple[int, ...]) -> None:
        """Show the events around one, and mark those that it goes back to."""
        self.n, self._causes = n, causes
        region = self.scrollable_content_region
        if not region.width:
            return
        if self._lanes.width != region.width:
            self._lanes = Lanes(self._tracks, region.width)
        rows = max(1, region.height - 1)
        self.page_down_count = max(1, rows - 1)
        self.virtual_size = Size(region.width, self._tracks.last + 2)
        self.scroll_to(y=max(0, n - rows // 2), animate=False, immediate=True)
        self.refresh()

    def on_resize(self, event: Resize) -> None:
        self.show(self.n, self._causes)

    def action_page(self, direction: int) -> None:
        word = "n" if direction > 0 else "p"
        self.post_message(self.Paged(word, self.page_down_count))

    class Paged(Message):
        """A page of events is to be passed, by this key of the line mode."""

        def __init__(self, word: str, count: int) -> None:
            super().__init__()
            self.word = word
            self.count = count

    def on_click(self, event: Click) -> None:
        row = event.y - self.gutter.top - 1
        if row >= 0:
            self.post_message(Ruler.Chosen(row + self.scroll_offset.y))

    def text_at(self, row: int, width: int) -> Text | None:
        if not row:
            return self._lanes.head()
        n = row - 1 + self.scroll_offset.y
        if n > self._tracks.last:
            return None
        return self._lanes.line(n, is_here=n == self.n, is_cause=n in self._causes)
