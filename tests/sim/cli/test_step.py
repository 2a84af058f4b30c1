"""``step``: the line mode, from a pipe."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from sim.cli.exits import Exit
from sim.cli.main import cli
from sim.cli.step import LINE_MAX
from sim.present.step_view import View, view
from sim.present.stepper import KEYS, Stepper
from sim.present.tracks import Tracks
from sim.trace.kinds import Kind
from sim.trace.lines import Header
from sim.trace.reader import TraceError, TraceReader
from sim.trace.writer import Trace
from tests.sim.cli.tools import LOSING, ROOT, SMALL, call, write


@pytest.fixture
def run_folder(folder: Path) -> Path:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory")
    return folder / "runs" / "losing" / "latest"


def step(path: Path, *lines: str, at: str | None = None) -> Result:
    """The stepper with these lines on standard input."""
    words = ["step", str(path), *(() if at is None else ("--at", at))]
    given = "".join(f"{line}\n" for line in lines)
    return CliRunner().invoke(cli, words, input=given, catch_exceptions=False)


def answers(done: Result) -> dict[str, str]:
    """What was answered to each line; a line that is given twice has its last answer."""
    parts = re.split(r"^> (?! )(.*)$", done.stdout, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def place(answer: str) -> int:
    """The event that an answer shows."""
    found = re.search(r"^#(\d+) of \d+", answer, re.MULTILINE)
    assert found, answer
    return int(found[1])


def test_it_opens_where_something_was_lost(run_folder: Path) -> None:
    (loss,) = [e for e in TraceReader(run_folder / "trace.jsonl") if e.kind is Kind.LOSS]
    done = step(run_folder)
    assert done.exit_code == Exit.OK
    assert place(done.stdout) == loss.n
    assert "  loss: 3 records of orders-0, L0" in done.stdout
    assert "nodes   b1 down" in done.stdout


def test_why_tells_of_every_record_that_was_at_an_offset(folder: Path) -> None:
    write(folder, LOSING + WRITTEN_OVER, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory")
    path = folder / "runs" / "losing" / "latest"
    (loss,) = [e for e in TraceReader(path / "trace.jsonl") if e.kind is Kind.LOSS]
    done = step(path, "why orders-0:1", "g end", "why")
    assert place(done.stdout) == loss.n, "the expectation that fails much later is no beginning"
    found = answers(done)
    told = " ".join(found["why orders-0:1"].split())
    assert "Offset 1 of epoch 0 of orders-0, acked at " in told
    assert "was truncated on b1 at " in told
    assert "Offset 1 of epoch 1 of orders-0, acked at " in told
    assert "is in every log: b2, b3 and b1." in told
    assert "names no cause; wrong by then was." in found["why"]
    assert f"  - #{loss.n} (" in found["why"]


WRITTEN_OVER = """
[[step]]
at      = "17s"
produce = { to = "orders-0", count = 3, acks = "all" }

[[expect]]
at_end = "lost('acked') == 0"
"""


def test_readme_shows_what_it_answers(folder: Path) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    command = re.search(
        r"<!-- step command -->\n```sh\nprintf '(.*)' \| leaderfall step (.*)\n", text
    )
    shown = re.search(r"<!-- step output -->\n```text\n(.*?)```\n", text, re.DOTALL)
    assert command
    assert shown
    call("run", str(ROOT / "scenarios" / "leader_crash_acks1.toml"), "-q", "--disk", "memory")
    done = step(folder / command[2], *command[1].removesuffix("\\n").split("\\n"))
    assert done.stdout == shown[1]


def test_a_run_that_loses_nothing_opens_at_its_end(folder: Path) -> None:
    write(folder, SMALL, "small.toml")
    call("run", "small.toml", "-q", "--disk", "memory")
    path = folder / "runs" / "small" / "latest"
    last = TraceReader(path / "trace.jsonl").footer
    assert last is not None
    assert place(step(path).stdout) == last.n


def test_forward_and_back_are_the_same_places(run_folder: Path) -> None:
    forth = step(run_folder, *(["n"] * 40), at="700").stdout.split("\n> n\n")
    back = step(run_folder, *(["p"] * 40), at="740").stdout.split("\n> p\n")
    assert [place(each) for each in forth] == list(range(700, 741))
    # The first has the head in front, and the last the end of the pipe behind.
    assert [each.strip() for each in forth[1:-1]] == [each.strip() for each in back[1:-1]][::-1]


def test_jumps(run_folder: Path) -> None:
    events = list(TraceReader(run_folder / "trace.jsonl"))
    own = [e.n for e in events if e.node == "b2"]
    faults = [e.n for e in events if e.kind in (Kind.FAULT, Kind.HEAL, Kind.CRASH)]
    assert len(faults) == 3
    after = min(n for n in own if n > 500)
    done = step(run_folder, "N b2", "N", "P", "g 12", "f", "f", "F", "g end", "g start", at="500")
    assert done.exit_code == Exit.OK
    found = {line: place(text) for line, text in answers(done).items()}
    assert found["N b2"] == after
    assert found["N"] == own[own.index(after) + 1]
    assert found["P"] == after
    assert (found["f"], found["F"]) == (faults[1], faults[0])
    assert (found["g 12"], found["g end"], found["g start"]) == (12, events[-1].n, 0)


def test_times_are_those_of_the_scenario(run_folder: Path) -> None:
    events = list(TraceReader(run_folder / "trace.jsonl"))
    done = step(run_folder, "g 2s", "g -9.5s", "g 1999ms", "g 2000001us", "g 99999s", "g -11s")
    for line, t_us in (
        ("g 2s", 2_000_000),
        ("g -9.5s", -9_500_000),
        ("g 1999ms", 1_999_000),
        ("g 2000001us", 2_000_001),
        ("g 99999s", 10**12),
        ("g -11s", -11_000_000),
    ):
        wanted = max((e.n for e in events if e.t_us <= t_us), default=0)
        assert place(answers(done)[line]) == wanted, line


def test_search_finds_in_both_cases_and_again(run_folder: Path) -> None:
    done = step(run_folder, "/TRUNCATE orders-0", "/", "/", "/nothing has this", at="start")
    first = place(done.stdout.split("> /TRUNCATE orders-0")[1])
    event = next(e for e in TraceReader(run_folder / "trace.jsonl") if e.n == first)
    assert (event.kind, event.node) == (Kind.TRUNCATE, "b1")
    assert 'no event behind this one has "nothing has this" in it' in done.stdout


def test_why_diff_and_the_shows(run_folder: Path) -> None:
    done = step(
        run_folder,
        "why",
        "why orders-0:1",
        "why b1:1",
        "why b1:77",
        "diff begin",
        "diff start",
        "state b2/orders-0",
        "state nobody",
        "logs",
        "messages",
        "timers",
        "expect",
        "around",
        "?",
    )
    found = answers(done)
    assert "fault lag begins" in found["why"]
    assert found["why orders-0:1"] == found["why b1:1"]
    assert "acks=1" in found["why b1:1"]
    assert "No log of orders-0 ever had offset 77." in found["why b1:77"]
    assert 'There is no event "begin"' in found["diff begin"]
    assert "  c1/status " in found["diff start"]
    assert "-> running" in found["diff start"]
    assert re.search(r"^  b2/orders-0/role +leader$", found["state b2/orders-0"], re.MULTILINE)
    assert 'No field has a path that begins with "nobody".' in found["state nobody"]
    assert "  b2 orders-0\n    synced end " in found["logs"]
    assert "MetadataFetchResponse" in found["messages"]
    assert "due with #" in found["timers"]
    assert "The trace tells of no expectations." in found["expect"]
    assert re.search(r"^> +#\d+", found["around"], re.MULTILINE)
    assert all(f"  {key.key} " in found["?"] for key in KEYS)
    assert done.exit_code == Exit.USAGE


def test_only_what_changed(run_folder: Path) -> None:
    done = step(run_folder, "d", "n", "d")
    assert "orders-0: leader" not in answers(done)["n"]
    assert "orders-0: leader" in answers(done)["d"]


def test_an_empty_line_goes_on(run_folder: Path) -> None:
    done = step(run_folder, "p 5", "", "", at="600")
    assert place(done.stdout.rsplit("> ", 1)[1]) == 585


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("foo", 'There is no command "foo". There are n p N P g v f / w d c ? q and diff'),
        ("n x", 'n and p take a number of events, not "x".'),
        ("n ٣", "n and p take a number of events"),
        ("g", 'not "".'),
        ("g 1e3", "g needs an event (0 to "),
        ("g 999999999", "There is no event 999999999. There are 0 (the beginning) to "),
        ("N nobody", 'There is no node "nobody" with events. There are admin, b1'),
        ("why orders-0:x", "why needs an event, or a partition (orders-0) and an offset"),
        ("why 99999999", 'There is no event "99999999".'),
        ("logs b1", 'logs takes no argument, seen "b1".'),
        ("c", "c needs the path of another trace or run folder."),
        ("\x1b[31m", "There is no command"),
    ],
)
def test_bad_lines_are_answered_and_nothing_is_lost(
    run_folder: Path, line: str, words: str
) -> None:
    done = step(run_folder, line, "g 5")
    assert words in done.stdout
    assert "\x1b" not in done.stdout
    assert place(answers(done)["g 5"]) == 5


def test_compare_with_another_run(run_folder: Path, folder: Path) -> None:
    write(folder, LOSING.replace("count = 3", "count = 4"), "other.toml")
    call("run", "other.toml", "-q", "--disk", "memory", "--out", "others")
    done = step(run_folder, "c others/losing/latest", "c nowhere", "g 5")
    found = answers(done)
    assert "Where they part" in found["c others/losing/latest"]
    assert "count" in found["c others/losing/latest"]
    assert "nowhere" in found["c nowhere"]
    assert place(found["g 5"]) == 5


def test_nothing_behind_the_ends(run_folder: Path) -> None:
    done = step(run_folder, "g end", "n", "f", "g start", "p", "v", "V", "q", "n")
    found = answers(done)
    assert "This is the last event." in found["n"]
    assert "There is no fault behind this event; the trace has 3." in found["f"]
    assert "This is the beginning." in found["p"]
    assert place(found["v"])
    assert "There is no violation or loss before this event; the trace has 1." in found["V"]
    assert done.exit_code == Exit.OK
    assert done.stdout.count("> n") == 1


@pytest.mark.parametrize(
    ("at", "words"),
    [("x", "--at needs an event (0 to "), ("99999", "There is no event 99999: the trace has ")],
)
def test_a_bad_place_to_begin(run_folder: Path, at: str, words: str) -> None:
    done = step(run_folder, at=at)
    assert done.exit_code == Exit.USAGE
    assert words in done.stderr


def test_a_hostile_trace_steers_nothing(folder: Path) -> None:
    hostile = "\x1b]0;x\x07\u202e[red]\n" + "y" * 5_000
    path = folder / "trace.jsonl"
    trace = Trace("full", path=path, header=Header("0", hostile, hostile, 0, {}, (hostile,), []))
    for n in range(3):
        event = trace.emit(n, hostile, Kind.NOTE, (), {"note": hostile, hostile: hostile})
        trace.attach(event, [(f"{hostile}/{n}", None, hostile)])
    trace.close(hostile)
    done = step(path, "g 1", "n", "state", "why", "logs", "messages", "around", "diff 0", "/red")
    assert all(each.isprintable() or each == "\n" for each in done.stdout)
    assert max(len(line) for line in done.stdout.splitlines()) < 12_000


def test_a_trace_cut_short_is_shown_as_far_as_it_goes(run_folder: Path, folder: Path) -> None:
    whole = (run_folder / "trace.jsonl").read_bytes()
    path = folder / "cut.jsonl"
    path.write_bytes(whole[: len(whole) // 3])
    done = step(path, "why")
    assert done.exit_code == Exit.OK
    assert re.match(r"The trace was cut short behind event \d+\.\n", done.stdout)


@pytest.mark.parametrize(
    "text", ["", "no trace\n", '{"leaderfall":99}\n', json.dumps({"a": 1}) + "\n"]
)
def test_what_is_no_trace_is_refused(folder: Path, text: str) -> None:
    path = folder / "trace.jsonl"
    path.write_text(text)
    done = step(path)
    assert done.exit_code == Exit.USAGE
    assert done.stderr.startswith(f"Error: {path}:1: ")


def test_the_whole_screen_needs_a_terminal(run_folder: Path) -> None:
    done = CliRunner().invoke(cli, ["step", str(run_folder), "--tui"], catch_exceptions=False)
    assert done.exit_code == Exit.USAGE
    assert "needs a terminal" in done.stderr or "needs Textual" in done.stderr


@pytest.mark.parametrize("change", ["gone", "folder", "pipe", "device", "cut", "empty"])
def test_a_trace_that_changes_meanwhile_is_named_and_not_waited_for(
    run_folder: Path, folder: Path, change: str
) -> None:
    trace = folder / "t.jsonl"
    shutil.copy(run_folder / "trace.jsonl", trace)
    tracks = Tracks.load(trace)
    whole = trace.read_bytes()
    trace.unlink()
    if change == "folder":
        trace.mkdir()
    elif change == "pipe":
        os.mkfifo(trace)
    elif change == "device":
        trace.symlink_to("/dev/zero")
    elif change in ("cut", "empty"):
        trace.write_bytes(whole[:3_000] if change == "cut" else b"")
    with pytest.raises(TraceError, match=r"t\.jsonl:1: "):
        tracks.event(40)


def test_line_mode_ends_where_the_trace_has_gone(
    run_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = folder / "t.jsonl"
    shutil.copy(run_folder / "trace.jsonl", trace)
    monkeypatch.setattr(Stepper, "view", property(lambda self: _view_of_gone(self, trace)))
    done = step(trace, "1")
    assert done.exit_code == Exit.USAGE, done.output
    assert "t.jsonl:1: it cannot be read any more" in done.stderr
    assert "something has changed it since" in done.stderr


def _view_of_gone(stepper: Stepper, trace: Path) -> View:
    found = view(stepper.tracks, stepper.n)
    stepper.tracks._blocks.clear()
    trace.unlink(missing_ok=True)
    return found


def test_a_line_without_an_end_takes_no_memory(run_folder: Path) -> None:
    done = step(run_folder, "x" * 50_000, "#3")
    assert done.exit_code == Exit.USAGE
    answer = answers(done)
    assert place(answer["#3"]) == 3
    assert max(map(len, answer)) == LINE_MAX
