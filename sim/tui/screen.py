"""The screen: panes that show a step, and keys that go to another one.

The keys and what they do are those of the line mode (``sim.present.stepper.KEYS``), and so is what
is printed in the panes: this module only lays it out.

Left out: panes (``sim.tui.panes``), and what lies over the screen (``sim.tui.dialogs``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar, Final

from rich.console import Console
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widget import Widget

from sim.present.file_cells import FILES_LEGEND
from sim.present.line_mode import LineMode, NoSuchCommand
from sim.present.step_text import (
    heading,
    print_changes,
    print_cluster,
    print_event,
    print_expects,
    print_help,
    print_messages,
    print_state,
    print_timers,
)
from sim.present.step_view import View
from sim.present.stepper import NoSuchMove, Stepper
from sim.present.text import STRIPS_LEGEND, print_strips, put, wrapped
from sim.present.tracks import Tracks
from sim.present.words import counted
from sim.trace.reader import TraceError
from sim.tui.dialogs import PageDialog, PromptDialog, WhyDialog
from sim.tui.lanes import LANES_LEGEND
from sim.tui.panes import EventList, Pane, Ruler
from sim.tui.sheet import lines_of
from sim.tui.time_track import TRACK_LEGEND
from storage.inspection.escaping import safe

__all__ = ["MORE_KEYS", "Compare", "StepScreen"]

Compare = Callable[[Console, str], None]
ROWS_MAX: Final = 2_000
_PROMPTS: Final = {
    "/": "/",
    "g": "go to (812, start, end, 3.5s): ",
    "c": "compare with: ",
    ":": ":",
}
MORE_KEYS: Final = (
    ("→ ←", "next and previous event, as n and p"),
    ("V F", "as v and f, backwards"),
    ("Tab", "next pane; Shift+Tab the one before"),
    ("↑ ↓ PgUp PgDn", "in the events: other events; in another pane: scroll"),
    (":", "a line of the line mode, with any key or word of these: N b2, diff 812"),
    ("Esc", "back; stops a search"),
)
"""Keys of the screen besides those of every face."""
_MOVES: Final = {"n": "n,right", "p": "p,left", **{key: key for key in "NPvVfF"}}
_HINTS: Final = "? keys  n p step  v f jump  / search  g go to  w why  Tab pane  q quit"


class StepScreen(Screen[None]):
    """One trace, and a place in it.

    Args:
        compare: compares with the trace of a path, and prints; None where nothing can.

    Attributes:
        mode: does what keys and lines say.
        shown: the step on the screen.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        *(
            Binding(keys, f"move('{word}')", show=False, priority="," in keys)
            for word, keys in _MOVES.items()
        ),
        Binding("g", "ask('g')", show=False),
        Binding("slash", "ask('/')", show=False),
        Binding("colon", "ask(':')", show=False),
        Binding("c", "compare", show=False),
        Binding("w", "why", show=False),
        Binding("d", "brief", show=False),
        Binding("question_mark", "help", show=False),
        Binding("q", "quit", show=False),
        Binding("escape", "stop", show=False),
        Binding("tab", "pane(1)", show=False, priority=True),
        Binding("shift+tab", "pane(-1)", show=False, priority=True),
    ]
    PANES: Final = ("events", "fields", "wire", "expects")

    def __init__(self, stepper: Stepper, compare: Compare | None = None) -> None:
        super().__init__()
        self.HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (110, "-wide")]
        self.VERTICAL_BREAKPOINTS = [(0, "-flat"), (12, "-low"), (20, "-high"), (36, "-tall")]
        self.stepper = stepper
        self.mode = LineMode(Console(quiet=True), stepper)
        self.shown: View | None = None
        self.is_brief = True
        self.message = ""
        self._compare = compare
        self._is_stale = False
        self._search = 0

    def compose(self) -> ComposeResult:
        tracks = self.stepper.tracks
        yield Pane(place="title", can_focus=False)
        yield Pane(place="event", can_focus=False)
        yield Ruler(tracks, self.stepper.marks, place="track")
        yield Pane("logs", place="logs")
        with Horizontal(id="main"):
            yield EventList("events", tracks, place="events")
            with Vertical(id="side"):
                yield Pane("changed", place="fields")
                yield Pane("under way", place="wire")
                yield Pane("expectations", place="expects")
        yield Pane(place="message", can_focus=False)

    def on_mount(self) -> None:
        self._pane("title").show(self._print_title)
        self.say("")
        self._turn_to("events")
        self.call_after_refresh(self._show)

    # Showing -------------------------------------------------------------------------------------

    def say(self, text: str) -> None:
        """Tell something on the last line; nothing: hints."""
        self.message = text
        line = Text(safe(text), "bold") if text else Text(_HINTS, "dim")
        self._pane("message").show(lambda console: put(console, line.copy()))

    def _stale(self) -> None:
        """Show the step when all keys that wait have been taken."""
        if not self._is_stale:
            self._is_stale = True
            self.call_later(self._show)

    def _show(self) -> None:
        self._is_stale = False
        stepper = self.stepper
        try:
            shown = self.shown = stepper.view
        except TraceError as error:
            self.say(str(error))
            return
        tracks = stepper.tracks
        self._pane("event").show(lambda console: print_event(console, shown))
        self._pane("logs").show(lambda console: _print_logs(console, shown))
        self._pane("fields").show(lambda console: self._print_fields(console, shown))
        self._pane("wire").show(lambda console: _print_wire(console, shown, tracks))
        self._pane("expects").show(lambda console: print_expects(console, shown))
        self.query_one("#track", Ruler).show(shown.n)
        self.query_one("#events", EventList).show(shown.n, shown.causes)

    def _pane(self, id_: str) -> Pane:
        return self.query_one(f"#{id_}", Pane)

    def _print_title(self, console: Console) -> None:
        tracks = self.stepper.tracks
        line = Text(heading(tracks), "bold")
        for notice in tracks.notices:
            line.append(f"  {safe(notice)}", "not bold yellow")
        put(console, line)

    def _print_fields(self, console: Console, shown: View) -> None:
        print_changes(console, shown.changes, rows_max=ROWS_MAX)
        if not shown.changes:
            put(console, Text("  No field changed.", "dim"))
        if not self.is_brief:
            put(console, Text("every field:", "bold"))
            state = self.stepper.tracks.state(shown.n)
            now = frozenset(each.path for each in shown.changes)
            print_state(console, state, now, rows_max=ROWS_MAX)

    # Keys ----------------------------------------------------------------------------------------

    def action_move(self, word: str, argument: str = "") -> None:
        """Go to another event, by a key of the line mode."""
        self._search += 1
        try:
            self.mode.move(word, argument)
        except (NoSuchMove, NoSuchCommand, TraceError) as error:
            self.say(str(error))
            return
        if self.message:
            self.say("")
        self._stale()

    def on_ruler_chosen(self, event: Ruler.Chosen) -> None:
        self.action_move("g", str(min(event.n, self.stepper.last)))

    def on_event_list_paged(self, event: EventList.Paged) -> None:
        self.action_move(event.word, str(event.count))

    def action_ask(self, word: str) -> None:
        self.app.push_screen(PromptDialog(_PROMPTS[word]), lambda line: self._answer(word, line))

    def _answer(self, word: str, line: str | None) -> None:
        if line is None:
            return
        if word == "/":
            self._search += 1
            self.run_worker(self._look(line.strip(), self._search), exclusive=True)
        elif word == ":":
            self.take(line)
        elif line.strip():
            self.take(f"{word} {line}")

    async def _look(self, text: str, search: int) -> None:
        """Look for a text, and let other keys through; a move ends it."""
        try:
            for count in self.stepper.searching(text):
                self.say(f"{counted(count, 'event')} looked at; Esc stops")
                await asyncio.sleep(0)
                if search != self._search:
                    return
        except (NoSuchMove, TraceError) as error:
            self.say(str(error))
            return
        self.say("")
        self._stale()

    def action_stop(self) -> None:
        self._search += 1
        self.say("")

    def take(self, line: str) -> None:
        """Do what a line of the line mode says."""
        word, argument = self.mode.parsed(line)
        own = {
            "w": lambda: self.action_why(argument),
            "/": lambda: self._answer("/", argument),
            "d": self.action_brief,
            "c": lambda: self._compared(argument),
            "?": self.action_help,
            "q": self.app.exit,
        }.get(word)
        if self.mode.is_move(word) and own is None:
            self.action_move(word, argument)
        elif own is not None:
            own()
        else:
            self._show_page(line)

    def _show_page(self, line: str) -> None:
        """What the line mode answers, on a page."""

        def printed(console: Console) -> None:
            self.mode.console = console
            self.mode.take(line)

        try:
            lines_of(printed, self.size.width)
        except (NoSuchMove, NoSuchCommand, TraceError) as error:
            self.say(str(error))
            return
        self.app.push_screen(PageDialog("answer", printed))

    def action_why(self, argument: str = "") -> None:
        try:
            chains = self.mode.chains(argument)
        except (NoSuchMove, NoSuchCommand, TraceError) as error:
            self.say(str(error))
            return
        if not any(each.sentences for each in chains):
            self.say(f"{chains[0].summary}: the trace tells of nothing." if chains else "")
            return
        self.app.push_screen(WhyDialog(chains), self._why_answer)

    def _why_answer(self, n: int | None) -> None:
        if n is not None:
            self.action_move("g", str(n))

    def action_brief(self) -> None:
        self.is_brief = not self.is_brief
        self._pane("fields").border_title = "changed" if self.is_brief else "every field"
        self._stale()

    def action_compare(self) -> None:
        if self._compare is None:
            self.say("Comparing is not possible here; leaderfall diff compares two traces.")
        else:
            self.action_ask("c")

    def _compared(self, path: str) -> None:
        compare = self._compare
        if compare is None or not path:
            self.action_compare()
            return
        try:
            lines_of(lambda console: compare(console, path), self.size.width)
        except (NoSuchCommand, TraceError) as error:
            self.say(str(error))
            return
        self.app.push_screen(PageDialog("compared", lambda console: compare(console, path)))

    def action_help(self) -> None:
        self.app.push_screen(PageDialog("keys", _print_help))

    def action_quit(self) -> None:
        self.app.exit(0)

    # Panes ---------------------------------------------------------------------------------------

    def action_pane(self, by: int) -> None:
        """Turn to another pane: it gets the keys, and where there is room for one it is shown."""
        order = [*self.PANES, "logs"]
        here = self.focused.id if self.focused is not None else None
        place = order.index(here) if here in order else -1
        self._turn_to(order[(place + by) % len(order)])

    def _turn_to(self, id_: str) -> None:
        if id_ in self.PANES:
            for each in self.PANES:
                self.query_one(f"#{each}", Widget).set_class(each == id_, "-current")
            self.query_one("#side", Widget).set_class(id_ != "events", "-current")
        self.query_one(f"#{id_}", Widget).focus()


def _print_wire(console: Console, shown: View, tracks: Tracks) -> None:
    print_messages(console, shown, tracks)
    print_timers(console, shown.timers, tracks)


def _print_logs(console: Console, shown: View) -> None:
    print_strips(console, shown.strips, files=shown.files, has_legend=False)
    print_cluster(console, shown)


def _print_help(console: Console) -> None:
    print_help(console)
    width = max(len(key) for key, _ in MORE_KEYS)
    put(console, Text("On this screen:", "bold"))
    for key, text in MORE_KEYS:
        wrapped(console, Text().append(f"  {key:<{width}}  ", "bold"), text, "", width + 4)
    put(console, Text("Signs:", "bold"))
    for legend in (TRACK_LEGEND, STRIPS_LEGEND, FILES_LEGEND, LANES_LEGEND):
        wrapped(console, Text("  "), legend, "", 4)
