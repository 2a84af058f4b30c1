"""Where text goes: widths, colours, streams that break or cannot print a character."""

from __future__ import annotations

import io

import pytest

from sim.cli.console import Outlet, make_console, shown, wants_color, width_of


class Stream(io.StringIO):
    """A stream that breaks at a write, and may say that it is a terminal."""

    def __init__(self, *, breaks_at: int = 0, is_tty: bool = False) -> None:
        super().__init__()
        self.left = breaks_at
        self.is_tty = is_tty

    def write(self, text: str) -> int:
        self.left -= 1
        if self.left == 0:
            raise BrokenPipeError
        return super().write(text)

    def isatty(self) -> bool:
        return self.is_tty


def test_a_broken_pipe_is_silence() -> None:
    stream = Stream(breaks_at=2)
    outlet = Outlet(stream)
    assert [outlet.write(text) for text in ("one", "two", "three")] == [3, 3, 5]
    outlet.flush()
    assert stream.getvalue() == "one"
    assert not outlet.is_open
    assert not outlet.isatty()


def test_a_stream_without_a_character_gets_its_escape() -> None:
    raw = io.BytesIO()
    outlet = Outlet(io.TextIOWrapper(raw, encoding="ascii", errors="strict"))
    outlet.write("a\u2192b")
    outlet.flush()
    assert raw.getvalue() == b"a\\u2192b"


@pytest.mark.parametrize(
    ("color", "env", "is_tty", "is_wanted"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"TERM": "dumb"}, True, False),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {}, True, False),
    ],
)
def test_colour_is_as_asked_else_where_a_terminal_has_it(
    color: str,
    env: dict[str, str],
    is_tty: bool,
    is_wanted: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert wants_color(color, is_tty=is_tty) == is_wanted


@pytest.mark.parametrize(
    ("columns", "width"),
    [(None, 100), ("40", 40), ("1", 20), ("99999", 1_000), ("x", 100), ("", 100), ("-5", 100)],
)
def test_without_a_terminal_columns_or_a_hundred(
    columns: str | None, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    assert width_of(Outlet(Stream())) == width


def test_a_console_never_moves_and_never_reads_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = make_console("auto")
    assert not console.is_interactive
    console.print("[bold]x[/bold] :smile: 42")
    assert capsys.readouterr().out == "[bold]x[/bold] :smile: 42\n"


def test_shown_is_one_line_without_control_characters() -> None:
    assert shown("a\x1b[31m\n\u202eb\udcff") == "a\\x1b[31m\\n\\u202eb\\xff"
