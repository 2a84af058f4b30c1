"""Every key of the whole screen does what its word does in the line mode."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from sim.present.line_mode import LineMode, NoSuchCommand
from sim.present.step_text import MORE_WORDS
from sim.present.stepper import KEYS
from sim.present.text import put
from sim.tui.dialogs import PageDialog, WhyDialog
from sim.tui.screen import MORE_KEYS, StepScreen
from tests.sim.tui.tools import Key, play, start


def by_line(path: Path, at: int | None, *lines: str) -> int:
    """Where the line mode gets with these lines."""
    mode = LineMode(Console(file=StringIO()), start(path, at=at))
    for line in lines:
        mode.take(line)
    return mode.stepper.n


@pytest.mark.parametrize(
    ("at", "keys", "lines"),
    [
        (500, "n", "n"),
        (500, "right right", "n n"),
        (500, "p", "p"),
        (500, "left", "p"),
        (500, "down", "n"),
        (500, "up", "p"),
        (500, "N", "N"),
        (500, "N N", "N N"),
        (500, "P", "P"),
        (500, "home", "g_start"),
        (500, "end", "g_end"),
        (0, "v", "v"),
        (900, "V", "V"),
        (0, "f f", "f f"),
        (900, "F", "F"),
        (500, "g 7 1 2 enter", "g_712"),
        (500, "g 2 . 5 s enter", "g_2.5s"),
        (500, "g s t a r t enter", "g_start"),
        (1, "slash e l e c t enter", "/elect"),
        (1, "slash f e t c h enter slash enter", "/fetch /"),
        (500, "colon N space b 2 enter", "N_b2"),
        (500, "colon 7 7 enter", "77"),
    ],
)
def test_a_key_goes_where_its_word_goes(losing: Path, at: int, keys: str, lines: str) -> None:
    wanted = by_line(losing, at, *(line.replace("_", " ") for line in lines.split()))
    assert wanted != at
    seen = play(start(losing, at=at), *keys.split())
    assert (seen.n, seen.message) == (wanted, "")
    assert f"#{wanted} of {seen.screen.stepper.last}" in seen.text
    assert any(line.startswith(">") and f"#{wanted} " in line for line in seen.lines)


@pytest.mark.parametrize(
    ("at", "keys", "said"),
    [
        (0, "p", "This is the beginning."),
        (0, "v home V", "There is no violation or loss before this event"),
        (500, "g x enter", 'not "x"'),
        (500, "g 9 9 9 9 9 9 enter", "There is no event 999999."),
        (500, "slash x y z enter", 'no event behind this one has "xyz" in it'),
        (500, "slash enter", "/ needs a text to look for"),
        (500, "colon f o o enter", 'There is no command "foo".'),
        (0, "w", "The beginning has no causes."),
        (500, "c", "leaderfall diff"),
    ],
)
def test_what_finds_nothing_says_so_and_stays(losing: Path, at: int, keys: str, said: str) -> None:
    seen = play(start(losing, at=at), *keys.split())
    assert said in seen.message
    assert seen.lines[-1].startswith(seen.message[:100])
    assert seen.n == at


def test_a_message_goes_with_the_next_move_and_with_escape(losing: Path) -> None:
    said = ("slash", "x", "y", "z", "enter")
    for key in ("n", "escape"):
        seen = play(start(losing, at=500), *said, key)
        assert seen.message == ""
        assert seen.lines[-1].startswith("? keys")


def test_an_asking_line_can_be_left(losing: Path) -> None:
    seen = play(start(losing, at=500), "slash", "q", "n", "escape", "n")
    assert (seen.n, seen.code, seen.top) == (501, None, "StepScreen")


def test_it_opens_where_something_was_lost(losing: Path) -> None:
    stepper = start(losing)
    seen = play(stepper)
    assert seen.n == stepper.n == by_line(losing, 0, "v")
    assert "loss: 3 records of orders-0, L0" in seen.text


@pytest.mark.slow
def test_why_has_every_sentence_and_goes_to_its_event(losing: Path) -> None:
    stepper = start(losing)
    (chain,) = LineMode(Console(file=StringIO()), stepper).chains()
    numbers = [sentence.n for sentence in chain.sentences]
    assert len(set(numbers)) > 4
    seen = play(stepper, "w", size=(120, 60))
    assert seen.top == WhyDialog.__name__
    words = " ".join(line.strip(" │") for line in seen.lines)
    for sentence in chain.sentences:
        assert sentence.text[:60] in words
    got: list[int] = []
    keys: list[Key] = []
    for number in range(len(numbers)):
        keys += [lambda screen: screen.action_move("g", "end"), go_back, "w"]
        keys += [*["down"] * number, "enter", lambda screen: got.append(screen.stepper.n)]
    seen = play(start(losing), *keys, "v", "w", "escape")
    assert got == numbers
    assert seen.top == "StepScreen"


def go_back(screen: StepScreen) -> None:
    screen.action_move("V")


def test_why_of_a_record_can_be_asked_for(losing: Path) -> None:
    seen = play(start(losing), *"colon w space b 1 colon 1 enter".split())
    assert seen.top == WhyDialog.__name__
    assert "ffset 1" in seen.text


def test_d_turns_between_the_changed_and_every_field(losing: Path) -> None:
    stepper = start(losing, at=500)
    state = stepper.tracks.state(500)
    path = next(each for each in state if each.endswith("/broker_epoch"))
    few, all_, again = (
        play(start(losing, at=500), *["d"] * times, size=(200, 120)) for times in range(3)
    )
    assert path not in few.text
    assert path in all_.text
    assert few.text == again.text


def test_help_has_every_key_and_word(losing: Path) -> None:
    seen = play(start(losing), "question_mark", size=(120, 70))
    assert seen.top == PageDialog.__name__
    for key in KEYS:
        assert f"│   {key.key} {key.argument}".rstrip() in seen.text
    for word, _ in (*MORE_WORDS, *MORE_KEYS):
        assert word in seen.text
    assert play(start(losing), "question_mark", "escape").top == "StepScreen"


@pytest.mark.parametrize("word", ["diff", "state b2", "logs", "messages", "timers", "expect"])
def test_a_word_of_the_line_mode_is_answered_on_a_page(losing: Path, word: str) -> None:
    stream = StringIO()
    mode = LineMode(Console(file=stream, width=90), start(losing))
    mode.take(word)
    seen = play(start(losing), lambda screen: screen.take(word), size=(130, 70))
    assert seen.top == PageDialog.__name__
    first = stream.getvalue().splitlines()[0].strip()
    assert first
    assert f"│   {first}" in seen.text


def test_compare_prints_on_a_page_or_says_why_not(losing: Path) -> None:
    def compare(console: Console, path: str) -> None:
        if path == "no":
            raise NoSuchCommand("no such trace")
        put(console, Text(f"differs from {path}"))

    keys = ("c", "y", "enter")
    seen = play(start(losing), *keys, compare=compare)
    assert seen.top == PageDialog.__name__
    assert "differs from y" in seen.text
    assert play(start(losing), "c", "n", "o", "enter", compare=compare).message == "no such trace"


@pytest.mark.parametrize("keys", [("q",), ("ctrl+c",), ("w", "ctrl+c"), ("slash", "ctrl+c")])
def test_the_way_out(losing: Path, keys: tuple[str, ...]) -> None:
    assert play(start(losing), *keys).code == 0


def test_q_of_a_dialog_leaves_the_dialog_only(losing: Path) -> None:
    for key in ("w", "question_mark"):
        seen = play(start(losing), key, "q")
        assert (seen.top, seen.code) == ("StepScreen", None)


@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_tab_goes_round_the_panes_and_arrows_step_in_each(
    losing: Path, size: tuple[int, int]
) -> None:
    order = ["events", "fields", "wire", "expects", "logs", "events"]
    seen: list[str | None] = []

    def note(screen: StepScreen) -> None:
        seen.append(None if screen.focused is None else screen.focused.id)

    there: list[Key] = [note, *(("tab", note, "right") * 5)]
    back: list[Key] = [note, *(("shift+tab", note, "left") * 5)]
    end = play(start(losing, at=500), *there, size=size)
    assert (seen, end.n) == (order, 505)
    seen.clear()
    end = play(start(losing, at=500), *back, size=size)
    assert (seen, end.n) == (order[::-1], 495)


def test_keys_that_wait_are_shown_once(losing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stepper = start(losing, at=500)
    asked: list[int] = []
    kind = type(stepper)
    whole = kind.view
    assert isinstance(whole, property)
    assert whole.fget is not None
    get: Callable[[object], object] = whole.fget
    monkeypatch.setattr(kind, "view", property(lambda self: (asked.append(self.n), get(self))[1]))

    def thirty(screen: StepScreen) -> None:
        asked.clear()
        for _ in range(30):
            screen.action_move("n")

    seen = play(stepper, thirty)
    assert seen.n == 530
    assert asked == [530]
