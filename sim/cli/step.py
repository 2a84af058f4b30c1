"""``leaderfall step``: step through a trace, forward and back, in a terminal.

Left out: what commands do (``sim.present.line_mode``), and the full screen (``sim.tui``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import click

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.show import complete_paths, trace_path

if TYPE_CHECKING:
    from rich.console import Console

    from sim.present.comparing import Comparison
    from sim.present.stepper import Stepper
    from sim.present.tracks import Tracks

__all__ = ["command", "load_tracks"]

PROMPT: Final = "> "
LINE_MAX: Final = 10_000
CONTEXT: Final = 4
"""Rows around the first event that differs."""


@click.command("step")
@click.argument("trace", shell_complete=complete_paths)
@click.option("--at", "at", metavar="EVENT", help="Begin at this event, or at start or end.")
@click.option("--tui", "is_tui", is_flag=True, help="The whole screen (needs the extra [tui]).")
@click.option(
    "--events",
    "events_max",
    type=click.IntRange(1),
    default=1_000_000,
    show_default=True,
    help="Read at most so many events.",
)
@color_option
def command(trace: str, *, at: str | None, is_tui: bool, events_max: int, color: str) -> int:
    """Step through a trace, forward and back.

    TRACE is a trace.jsonl or a run folder (runs/NAME/latest). Begins at the first broken rule or
    loss, else at the first failed expectation, else at the end. One command a line, ? shows them;
    commands may come from a pipe:

        printf 'v\\nwhy\\n' | leaderfall step runs/NAME/latest

    Exit code 2: it is no trace, or damaged, or a line of a pipe was no command.
    """
    if is_tui and find_spec("textual") is None:
        raise UserError(
            "The whole screen needs Textual, which is not installed.",
            "The extra [tui] brings it: pip install '.[tui]' in a checkout, else "
            "'leaderfall[tui]'. Without --tui the line mode needs nothing.",
        )
    if is_tui and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("The whole screen needs a terminal; without --tui a pipe will do.")
    from sim.present.stepper import Stepper

    tracks = load_tracks(trace, events_max)
    if not tracks.last:
        for notice in tracks.notices or ["The trace has no events."]:
            say(shown(notice))
        return Exit.OK
    stepper = Stepper(tracks)
    if at is not None:
        _begin_at(stepper, at)
    if is_tui:
        from sim.tui import run

        return run(stepper, _comparing(stepper))
    return _lines(stepper, color)


def load_tracks(trace: str, events_max: int) -> Tracks:
    """A trace that the user has named.

    Raises:
        UserError: it is none, damaged, or cannot be read.
    """
    from sim.present.tracks import Tracks
    from sim.trace.reader import TraceError

    path = trace_path(trace)
    try:
        return Tracks.load(path, events_max=min(events_max, sys.maxsize))
    except TraceError as error:
        raise UserError(shown(error)) from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(path)}" cannot be read: {shown(said)}') from None


def _begin_at(stepper: Stepper, at: str) -> None:
    last = stepper.last
    places = {"start": 0, "end": last}
    number = at.removeprefix("#")
    if at not in places and not (number.isascii() and number.isdigit() and len(number) < 13):
        raise UserError(f'--at needs an event (0 to {last}), start or end, not "{shown(at)}".')
    n = places.get(at, int(number) if number.isdigit() else 0)
    if n > last:
        raise UserError(f"There is no event {n}: the trace has {last}.")
    stepper.go(n)


def _lines(stepper: Stepper, color: str) -> int:
    from sim.present.line_mode import LineMode, NoSuchCommand
    from sim.present.step_text import heading
    from sim.present.stepper import NoSuchMove
    from sim.trace.reader import TraceError

    for notice in stepper.tracks.notices:
        say(shown(notice))
    say(f"{heading(stepper.tracks)}. ? shows the keys.")
    console = make_console(color)
    compare = _comparing(stepper)
    mode = LineMode(console, stepper, lambda other: compare(console, other))
    mode.show()
    is_terminal = sys.stdin is not None and sys.stdin.isatty()
    code = Exit.OK
    for line in _input(is_terminal=is_terminal):
        try:
            mode.take(line)
        except NoSuchMove as error:
            say(shown(error))
        except NoSuchCommand as error:
            say(shown(error))
            code = Exit.OK if is_terminal else Exit.USAGE
        except TraceError as error:
            hint = "It could be read before: something has changed it since."
            raise UserError(shown(error), hint) from None
        if mode.is_over:
            break
    return code


def _comparing(stepper: Stepper) -> Callable[[Console, str], None]:
    """Prints how the trace of a path differs; each is read and compared once."""
    from sim.cli.diff import compared
    from sim.cli.diff_report import print_comparison
    from sim.present.line_mode import NoSuchCommand

    known: dict[str, Comparison] = {}

    def compare(console: Console, other: str) -> None:
        try:
            if other not in known:
                known[other] = compared(str(stepper.tracks.path), other)
        except UserError as error:
            raise NoSuchCommand(" ".join(error.lines)) from None
        print_comparison(console, known[other], context=CONTEXT)

    return compare


def _input(*, is_terminal: bool) -> Iterator[str]:
    """The lines; those of a pipe are shown with their answers."""
    if is_terminal:
        with suppress(ImportError):
            import readline  # noqa: F401 - input() has history and arrow keys with it
        while True:
            try:
                yield input(PROMPT)[:LINE_MAX]
            except EOFError:
                say()
                return
    if sys.stdin is None:
        return
    reconfigure = getattr(sys.stdin, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
    while piece := sys.stdin.readline(LINE_MAX + 1):
        line = piece.rstrip("\r\n")[:LINE_MAX]
        while piece and not piece.endswith("\n"):  # The rest of a huge line is passed over.
            piece = sys.stdin.readline(LINE_MAX + 1)
        say(f"{PROMPT}{shown(line)}")
        yield line
