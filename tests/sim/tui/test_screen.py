"""The whole screen shows what the line mode shows, in any size; nothing of a trace steers it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.cells import cell_len

from sim.cli import step
from sim.cli.exits import Exit
from sim.present.step_view import view
from sim.present.words import name, seconds
from sim.tui.lanes import Lanes
from sim.tui.time_track import LABEL_WIDTH, TimeTrack
from tests.sim.cli.tools import call
from tests.sim.tui.conftest import HOSTILE
from tests.sim.tui.tools import Key, Seen, play, start

ROOM = (200, 120)


def titles(seen: Seen) -> list[str]:
    """The panes that are on the screen."""
    return re.findall(r"[─━](events|changed|under way|expectations|logs)[─━]", seen.text)


# The same data -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1, 300, 500, 722, 800])
def test_a_step_has_what_the_presenter_tells(losing: Path, n: int) -> None:
    stepper = start(losing, at=n)
    seen = play(stepper, size=ROOM)
    shown = view(stepper.tracks, n)
    assert seen.screen.shown == shown
    assert f"#{n} of {shown.last}  {seconds(shown.t_us)}" in seen.text
    for each in shown.changes:
        assert name(each.path) in seen.text
    for message in shown.messages:
        assert f"{message.sender} -> {message.to}  {message.type}  #{message.n} " in seen.text
    for timer in shown.timers:
        assert f"{timer.node}  {timer.key}  due with #{timer.due} " in seen.text
    for expected in shown.expects:
        assert re.search(rf"{expected.state} +{expected.id} {expected.form}:", seen.text)
    for strip in shown.strips:
        assert f"{strip.partition}: leader {strip.leader}, epoch {strip.leader_epoch}" in seen.text
        for row in strip.rows:
            assert re.search(rf"{row.node} .*LEO {row.log_end}\b", seen.text)
    for files in shown.files:
        if files.durable_end is not None:
            assert f"synced to {files.durable_end}" in seen.text


def test_the_logs_are_those_of_the_line_mode(losing: Path) -> None:
    seen = play(start(losing, at=722), size=ROOM)
    done = call("step", str(losing), "--at", "722", env={"COLUMNS": str(ROOM[0] - 1)})
    rows = [line.rstrip() for line in seen.lines]
    strips = [line for line in done.stdout.splitlines() if re.match(r"b\d ", line)]
    assert len(strips) == 3
    for line in strips:
        assert line in rows


def test_forward_and_back_give_the_same_screen(losing: Path) -> None:
    places = [play(start(losing, at=at), *[key] * 4).text for at, key in ((498, "n"), (506, "p"))]
    assert places[0] == places[1] == play(start(losing, at=502)).text


def test_lanes_have_arrows_from_sender_to_receiver(losing: Path) -> None:
    tracks = start(losing).tracks
    lanes = Lanes(tracks, 120)
    sent = next(m for m in tracks.messages.things if (m.sender, m.to) == ("b2", "b1"))
    line = lanes.line(sent.n, is_here=False, is_cause=False).plain
    own, other = (lanes.left + lanes.nodes.index(node) * lanes.step for node in ("b2", "b1"))
    assert own > other
    assert (line[own], line[other]) == ("●", "|")
    assert line[other + 1] == "<"
    assert set(line[other + 2 : own]) == {"┄"}
    end = tracks.messages.ends[tracks.messages.things.index(sent)]
    line = lanes.line(end, is_here=False, is_cause=False).plain
    assert line[other] == "●"
    assert line[other + 1] == "<"
    assert set(line[other + 2 : own]) <= {"─"}


def test_the_track_has_every_mark_and_the_place(losing: Path) -> None:
    stepper = start(losing, at=400)
    tracks, last = stepper.tracks, stepper.last
    track = TimeTrack(tracks, stepper.marks, LABEL_WIDTH + last + 1)
    marks, expects = (line.plain[LABEL_WIDTH:] for line in track.lines(400))
    for mark in stepper.marks:
        assert marks[mark.n] != "·"
    (expect,) = tracks.expects.values()
    signs = {"open": ".", "holds": "-", "broken": "x", "met": "+", "failed": "X"}
    assert [signs[expect.state(n)] for n in range(last + 1)] == list(expects)
    assert marks[400] == "┃"
    narrow = TimeTrack(tracks, stepper.marks, LABEL_WIDTH + 40)
    assert "!" in narrow.lines(0)[0].plain
    assert all(narrow.cell_of(narrow.event_at(LABEL_WIDTH + c)) == c for c in range(40))


# Sizes -------------------------------------------------------------------------------------------


def test_each_size_shows_what_it_has_room_for(losing: Path) -> None:
    every = ["logs", "events", "changed", "under way", "expectations"]
    assert titles(play(start(losing), size=(200, 60))) == every
    assert titles(play(start(losing), size=(80, 24))) == ["logs", "events"]
    assert titles(play(start(losing), "tab", size=(80, 24))) == ["logs", "changed"]


@pytest.mark.slow
def test_a_new_size_is_laid_out_as_if_it_had_been_so_from_the_start(losing: Path) -> None:
    sizes = [(80, 24), (200, 60), (120, 40)]
    for before, behind in zip(sizes, sizes[1:] + sizes[:1], strict=True):
        resized = play(start(losing), behind, size=before)
        assert resized.text == play(start(losing), size=behind).text


@pytest.mark.parametrize("size", [(1, 1), (8, 3), (20, 6), (40, 10), (300, 5)])
def test_a_tiny_terminal_is_no_error(losing: Path, size: tuple[int, int]) -> None:
    seen = play(start(losing, at=500), "n", "w", "escape", "question_mark", "q", "n", size=size)
    assert seen.n == 502
    assert len(seen.lines) == size[1]
    assert all(cell_len(line) == size[0] for line in seen.lines)


# What a trace may try ----------------------------------------------------------------------------


@pytest.mark.slow
def test_a_hostile_trace_is_only_text(hostile: Path) -> None:
    looked: list[str] = []
    links: list[object] = []

    def note(screen: object) -> None:
        rows = screen._compositor.render_strips()  # type: ignore[attr-defined]
        looked.append("\n".join("".join(part.text for part in row) for row in rows))
        links.extend(
            (part.style.meta, part.style.link)
            for row in rows
            for part in row
            if part.style is not None and ("@click" in part.style.meta or part.style.link)
        )

    stepper = start(hostile, at=0)
    keys: list[Key] = []
    for _ in range(0, stepper.last, 6):
        keys += [lambda screen: screen.action_move("n", "6"), note]
    seen = play(stepper, *keys, "d", note, "w", note, "escape", size=(160, 50))
    text = "\n".join(looked)
    assert not links
    assert not [each for each in text if not each.isprintable() and each != "\n"]
    assert "[red]x[/red][@click=app.bell]y[/]\\x1b[31m" in text
    assert seen.n == stepper.last
    assert len(looked) > 10


def test_a_hostile_message_is_only_text(hostile: Path) -> None:
    keys = ["[", "r", "e", "d", "]", "enter"]
    seen = play(start(hostile, at=0), "colon", *keys)
    assert seen.lines[-1].startswith('There is no command "[red]".')
    seen = play(start(hostile), lambda screen: screen.say(HOSTILE))
    assert seen.lines[-1].startswith(
        "[red]x[/red][@click=app.bell]y[/]\\x1b[31m\\x1b]0;t\\x07\\u202e"
    )


def test_a_trace_that_was_cut_short_says_so(cut_short: Path) -> None:
    seen = play(start(cut_short))
    assert "no verdict" in seen.lines[0]
    assert "cut short behind event" in seen.lines[0]
    assert seen.n == seen.screen.stepper.last > 300


def test_a_file_that_is_damaged_meanwhile_is_told_and_left(losing: Path, tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_bytes(losing.read_bytes())
    stepper = start(path, at=5)

    def damage(screen: object) -> None:
        path.write_bytes(b"x" * path.stat().st_size)

    seen = play(stepper, damage, "g", "8", "0", "0", "enter", "q")
    assert seen.code == 0
    assert seen.message


# Colours -----------------------------------------------------------------------------------------


def test_colours_are_those_of_the_terminal(losing: Path) -> None:
    seen = play(start(losing))
    colors = {
        color.name
        for each in seen.segments
        if each.style is not None
        for color in (each.style.color, each.style.bgcolor)
        if color is not None
    }
    assert "green" in colors
    assert all(not each.startswith("#") for each in colors)


def test_no_color_leaves_the_signs(losing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    colored = play(start(losing))
    monkeypatch.setenv("NO_COLOR", "1")
    plain = play(start(losing))
    assert plain.text == colored.text
    assert {
        color.name
        for each in plain.segments
        if each.style is not None
        for color in (each.style.color, each.style.bgcolor)
        if color is not None
    } <= {"default"}
    assert any(each.style is not None and each.style.reverse for each in plain.segments)


# The command -------------------------------------------------------------------------------------


def test_without_textual_the_command_says_what_brings_it(
    losing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step, "find_spec", lambda _: None)
    done = call("step", str(losing), "--tui")
    assert done.exit_code == Exit.USAGE
    assert "pip install '.[tui]' in a checkout" in done.stderr


def test_without_a_terminal_the_command_says_so(losing: Path) -> None:
    done = call("step", str(losing), "--tui")
    assert done.exit_code == Exit.USAGE
    assert "needs a terminal" in done.stderr
