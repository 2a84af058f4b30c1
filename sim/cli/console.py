"""Where text goes: colours, width, broken pipes, and characters that a terminal must not get.

``make_console`` is the one place that decides on colour and width. Everything that comes from a
file, an argument or a trace goes through ``shown`` first.

Left out: what is said.
"""

from __future__ import annotations

import io
import os
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from sim.cli.exits import UserError

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["COLORS", "Outlet", "color_option", "make_console", "say", "shown", "wants_color"]

COLORS: Final = ("auto", "always", "never")
WIDTH: Final = 100
"""Where no terminal says how wide it is."""
_WIDTH_MIN: Final = 20
_WIDTH_MAX: Final = 1_000


def shown(text: object) -> str:
    """Text from outside, on one line and without anything that steers a terminal."""
    from storage.inspection.escaping import safe

    return safe(str(text))


class Outlet:
    """A stream that falls silent when its reader has gone, so that ``| head`` ends a run quietly.

    What was going on goes on, and the exit code stays what it would be. So it does where the stream
    was closed before we began, and where standard error cannot be written, as nobody can be told.

    Raises:
        UserError: standard output cannot be written, as on a disk that is full.
    """

    def __init__(self, stream: TextIO | None, *, is_error: bool = False) -> None:
        self._stream = io.StringIO() if stream is None else stream
        self._is_error = is_error
        self.is_open = stream is not None

    @property
    def encoding(self) -> str:
        return getattr(self._stream, "encoding", None) or "utf-8"

    def write(self, text: str) -> int:
        if self.is_open:
            try:
                self._write(text)
            except OSError as error:
                self.fail(error)
        return len(text)

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except UnicodeEncodeError:
            # A stream that could not be told to escape: it gets ASCII.
            self._stream.write(text.encode("ascii", "backslashreplace").decode("ascii"))

    def flush(self) -> None:
        if self.is_open:
            try:
                self._stream.flush()
            except OSError as error:
                self.fail(error)

    def fail(self, error: OSError) -> None:
        """Fall silent, because writing failed so."""
        self._close()
        if not self._is_error and not isinstance(error, BrokenPipeError):
            raise UserError(f"Standard output cannot be written: {error.strerror}.")

    def isatty(self) -> bool:
        return self.is_open and self._stream.isatty()

    def fileno(self) -> int:
        return self._stream.fileno()

    def _close(self) -> None:
        self.is_open = False
        # What is still buffered would be written when Python ends, and fail again.
        with suppress(OSError, ValueError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), self._stream.fileno())


_outlets: dict[int, tuple[Any, Outlet]] = {}


def outlet(*, is_error: bool = False) -> Outlet:
    """Standard output, or standard error."""
    stream = sys.stderr if is_error else sys.stdout
    key = 2 if is_error else 1
    known = _outlets.get(key)
    if known is None or known[0] is not stream:
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A name that is no text, or a terminal without such a character, is no error. What is
            # buffered is written first, which may fail: then writing more will fail too.
            with suppress(OSError):
                reconfigure(errors="backslashreplace")
        known = _outlets[key] = stream, Outlet(stream, is_error=is_error)
    return known[1]


def say(text: str = "", *, is_error: bool = False) -> None:
    """A plain line, for which no console is needed."""
    stream = outlet(is_error=is_error)
    stream.write(f"{text}\n")
    stream.flush()


def wants_color(color: str, *, is_tty: bool) -> bool:
    """Whether there is to be colour: as asked for, else where a terminal has it."""
    if color != "auto":
        return color == "always"
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "") in ("dumb", "unknown"):
        return False
    return is_tty


def width_of(stream: Outlet) -> int:
    """Columns of the terminal, or of ``COLUMNS``, or ``WIDTH``."""
    fallback = (WIDTH, 24)
    if stream.isatty():
        found = shutil.get_terminal_size(fallback).columns
    else:
        told = os.environ.get("COLUMNS", "")
        found = int(told) if told.isascii() and told.isdigit() and len(told) < 6 else WIDTH
    return min(max(found or WIDTH, _WIDTH_MIN), _WIDTH_MAX)


def make_console(color: str, *, is_error: bool = False) -> Console:
    """A console of rich that prints what it is given, and nothing that moves."""
    from rich.console import Console

    stream = outlet(is_error=is_error)
    is_colored = wants_color(color, is_tty=stream.isatty())
    return Console(
        file=stream,  # type: ignore[arg-type]  # rich writes, flushes and asks for isatty only
        width=width_of(stream),
        height=24,
        color_system=_color_system() if is_colored else None,
        force_terminal=is_colored,
        force_interactive=False,
        no_color=not is_colored,
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
        legacy_windows=False,
    )


def _color_system() -> Any:
    if os.environ.get("COLORTERM", "") in ("truecolor", "24bit"):
        return "truecolor"
    return "256" if "256" in os.environ.get("TERM", "") else "standard"


def color_option(command: Any) -> Any:
    """``--color``, for commands that print."""
    return click.option(
        "--color",
        type=click.Choice(COLORS),
        default="auto",
        show_default=True,
        help="Colours; NO_COLOR and TERM=dumb count with auto.",
    )(command)
