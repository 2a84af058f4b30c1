"""``report``: a page from a trace, and what is refused."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import pytest

from sim.cli.exits import Exit
from tests.sim.cli.tools import LOSING, call, write


@pytest.fixture
def run_folder(folder: Path) -> Path:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory")
    return folder / "runs" / "losing" / "latest"


def test_a_page_is_written_whole(run_folder: Path, folder: Path) -> None:
    for place in (run_folder, run_folder / "trace.jsonl"):
        done = call("report", str(place), "-o", "page.html")
        assert done.exit_code == Exit.OK, done.output
        assert done.stdout.startswith("page.html: ")
        assert not done.stderr
        text = (folder / "page.html").read_text(encoding="utf-8")
        assert text.startswith("<!doctype html>")
        assert text.endswith("</html>\n")
    assert not list(folder.glob(".part-*"))
    again = call("report", str(run_folder), "--out", "again.html")
    assert again.exit_code == Exit.OK
    assert (folder / "again.html").read_text(encoding="utf-8") == text


def test_the_default_name(run_folder: Path, folder: Path) -> None:
    assert call("report", str(run_folder)).exit_code == Exit.OK
    assert (folder / "run.html").is_file()


def test_a_trace_that_was_cut_is_shown_and_told(run_folder: Path, folder: Path) -> None:
    cut = folder / "cut.jsonl"
    data = (run_folder / "trace.jsonl").read_bytes()
    cut.write_bytes(data[: len(data) // 2])
    done = call("report", "cut.jsonl")
    assert done.exit_code == Exit.OK
    assert "The trace was cut short behind event " in done.stderr


def test_a_long_trace_is_cut(run_folder: Path) -> None:
    done = call("report", str(run_folder), "--events", "100")
    assert done.exit_code == Exit.OK
    assert done.stderr.startswith("Only the first 100 events of ")
    assert "100 events" in done.stdout


@pytest.mark.parametrize(
    ("trace", "out", "said"),
    [
        ("none.jsonl", "run.html", "none.jsonl"),
        ("text", "run.html", "text"),
        ("good", "good", "is the trace itself"),
        ("good", "no/such/run.html", 'The folder "no/such" of --out is not there.'),
        ("good", ".", 'needs the name of a file, "." is none'),
        ("good", "", 'needs the name of a file, "" is none'),
        ("good", "a\0b", "cannot be written"),
        ("good", "\x1b[2J/x", "\\x1b[2J"),
    ],
)
def test_what_is_refused(run_folder: Path, folder: Path, trace: str, out: str, said: str) -> None:
    (folder / "text").write_text("this is no trace\n")
    before = (run_folder / "trace.jsonl").read_bytes()
    (folder / "good").write_bytes(before)
    done = call("report", trace, "-o", out)
    assert done.exit_code == Exit.USAGE, done.output
    assert done.stderr.startswith("Error: ")
    assert said in done.stderr
    assert "\x1b" not in done.stderr
    assert (folder / "good").read_bytes() == before


def test_a_page_that_finds_no_room_leaves_the_old_one(
    run_folder: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = folder / "run.html"
    old.write_text("old")

    def full(self: Path, *_: object) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    done = call("report", str(run_folder))
    assert done.exit_code == Exit.USAGE
    assert done.stderr == 'Error: "run.html" cannot be written: No space left on device\n'
    assert old.read_bytes() == b"old"
    assert not list(folder.glob(".part-*"))


def test_nothing_that_was_read_is_written_over(run_folder: Path, folder: Path) -> None:
    shutil.copytree(run_folder, folder / "b")
    node = run_folder / "b1" / "orders-0"
    node.mkdir(parents=True)
    (node / "kept").write_text("a broker's file")
    (folder / "link").symlink_to(folder / "b" / "trace.jsonl")
    before = {each: each.read_bytes() for each in (folder / "b").rglob("*") if each.is_file()}
    for out, said in (
        ("b/trace.jsonl", "is the trace itself"),
        ("link", "is the trace itself"),
        (str(node / "kept"), "is a file of the run"),
        (str(run_folder / "result.json"), "is a file of the run"),
        (str(run_folder / "scenario.toml"), "is a file of the run"),
    ):
        done = call("report", str(run_folder), "--compare", "b", "-o", out)
        assert done.exit_code == Exit.USAGE, out
        assert said in done.stderr
    assert (node / "kept").read_text() == "a broker's file"
    assert before == {each: each.read_bytes() for each in before}
    for _ in range(2):  # A page may lie beside its trace, and be replaced.
        done = call("report", str(run_folder), "-o", str(run_folder / "run.html"))
        assert done.exit_code == Exit.OK, done.output


def test_a_name_like_the_pages_own_is_left_alone(run_folder: Path, folder: Path) -> None:
    trace = run_folder / "trace.jsonl"
    before = trace.read_bytes()
    (folder / "page.html.part").symlink_to(trace)
    assert call("report", str(run_folder), "-o", "page.html").exit_code == Exit.OK
    assert trace.read_bytes() == before
    assert (folder / "page.html.part").is_symlink()


def test_a_link_is_followed_and_a_file_keeps_its_mode(run_folder: Path, folder: Path) -> None:
    (folder / "real.html").write_text("old")
    (folder / "real.html").chmod(0o600)
    (folder / "page.html").symlink_to("real.html")
    assert call("report", str(run_folder), "-o", "page.html").exit_code == Exit.OK
    assert (folder / "page.html").is_symlink()
    assert (folder / "real.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert (folder / "real.html").stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_stays_one(run_folder: Path, folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    found: list[str] = []
    reader = threading.Thread(
        target=lambda: found.append((folder / "pipe").read_text("utf-8")), daemon=True
    )
    reader.start()
    done = call("report", str(run_folder), "-o", "pipe")
    assert done.exit_code == Exit.OK, done.output
    assert (folder / "pipe").is_fifo()
    reader.join(20)
    assert found[0].endswith("</html>\n")
