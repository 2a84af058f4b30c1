"""``export``: files, streams, notices, and what cannot be exported.

Left out: the forms (``tests.sim.exports``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.cli import export
from sim.cli.exits import Exit
from sim.cli.export import FORMATS
from sim.trace.lines import Header
from sim.trace.writer import Trace
from tests.sim.cli.tools import LOSING, ROOT, call, write


@pytest.fixture
def run(folder: Path) -> Path:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory")
    return folder / "runs" / "losing" / "0"


@pytest.mark.parametrize("form", FORMATS)
def test_a_file_is_what_standard_output_gets(run: Path, form: str) -> None:
    done = call("export", str(run), "--as", form)
    again = call("export", str(run / "trace.jsonl"), "--as", form, "-o", "out")
    assert done.exit_code == again.exit_code == Exit.OK
    assert Path("out").read_text(encoding="ascii") == done.stdout
    assert again.stdout == ""
    assert done.stderr == again.stderr
    heads = {
        "shiviz": "#(?<number>",
        "mermaid": "sequenceDiagram\n",
        "plantuml": "@startuml\n",
        "perfetto": '{"displayTimeUnit"',
    }
    assert done.stdout.startswith(heads[form])
    assert not list(Path().glob(".export-*"))
    assert Path("out").stat().st_mode & 0o777 == 0o644


def test_what_was_cut_is_said_on_standard_error_and_in_the_diagram(run: Path) -> None:
    done = call("export", str(run), "--as", "mermaid")
    assert "(cut: rows " in done.stderr
    assert ": cut: rows " in done.stdout
    assert "records of orders-0 lost (L0)" in done.stdout
    part = call("export", str(run), "--as", "mermaid", "--from", "600", "--to", "650")
    assert part.stderr == ""
    assert "600" not in call("export", str(run), "--as", "mermaid", "--to", "20").stdout


def test_nodes_and_kinds_are_selected(run: Path) -> None:
    words = ("--as", "perfetto", "--node", "b1", "--kind", "append")
    document = json.loads(call("export", str(run), *words).stdout)
    points = [each for each in document["traceEvents"] if each["ph"] == "i"]
    assert points
    assert {each["cat"] for each in points} == {"append"}


def test_a_trace_that_was_cut_short_is_exported_as_far_as_it_goes(run: Path) -> None:
    whole = (run / "trace.jsonl").read_bytes()
    Path("cut.jsonl").write_bytes(whole[: len(whole) // 2])
    for form in FORMATS:
        done = call("export", "cut.jsonl", "--as", form)
        assert done.exit_code == Exit.OK
        assert "(The trace was cut short behind event " in done.stderr


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--as", "svg"), "'svg' is not one of"),
        (("--as", "mermaid", "--from", "9", "--to", "8"), "--from 9 is behind --to 8."),
        (("--as", "mermaid", "--from", "99999"), "There is no event 99999"),
        (("--as", "mermaid", "--node", "b\x1b9"), 'There is no node "b\\x1b9".'),
        (("--as", "mermaid", "--kind", "appendd"), 'Did you mean "append"?'),
        (("--as", "mermaid", "-o", "."), "is none"),
        (("--as", "mermaid", "-o", "no/where"), 'The folder "no" of -o is not there'),
        (("--as", "mermaid", "-o", "a\0b"), "null"),
    ],
)
def test_bad_usage_is_named(run: Path, words: tuple[str, ...], wanted: str) -> None:
    done = call("export", str(run), *words)
    assert done.exit_code == Exit.USAGE
    assert wanted in done.stderr
    assert "\x1b" not in done.output


def test_the_trace_is_not_written_over_and_a_failure_leaves_the_old_file(run: Path) -> None:
    trace = run / "trace.jsonl"
    before = trace.read_bytes()
    Path("link").symlink_to(trace)
    for place in (str(trace), "link"):
        done = call("export", str(run), "--as", "shiviz", "-o", place)
        assert done.exit_code == Exit.USAGE
        assert "is the trace itself" in done.stderr
    assert trace.read_bytes() == before
    lines = before.split(b"\n")
    lines[40] = b"{}"
    Path("bad.jsonl").write_bytes(b"\n".join(lines))
    Path("old").write_text("old", encoding="ascii")
    done = call("export", "bad.jsonl", "--as", "shiviz", "-o", "old")
    assert done.exit_code == Exit.USAGE
    assert "bad.jsonl:41:" in done.stderr
    assert Path("old").read_text(encoding="ascii") == "old"


@pytest.mark.parametrize("text", [b"", b"hello\n", b'{"leaderfall":2}\n', b"\x1b[2J\n"])
def test_what_is_no_trace_is_named(folder: Path, text: bytes) -> None:
    Path("x").write_bytes(text)
    done = call("export", "x", "--as", "perfetto")
    assert done.exit_code == Exit.USAGE
    assert done.stderr.startswith("Error: x:1: ")
    os.mkfifo("pipe")
    for each in ("nowhere", "pipe", ".", "a\0b"):
        done = call("export", each, "--as", "perfetto")
        assert done.exit_code == Exit.USAGE
        assert done.stderr.startswith("Error: ")


def test_digests_long_traces_and_empty_ones(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call("run", "losing.toml", "-q", "--disk", "memory", "--trace-level", "digest", "--seed", "3")
    done = call("export", "runs/losing/3", "--as", "shiviz")
    assert done.exit_code == Exit.USAGE
    assert "keeps no events" in done.stderr
    Trace("full", path=Path("empty"), header=Header("0", None, None, 1, {}, (), [])).close("passed")
    for form in FORMATS:
        done = call("export", "empty", "--as", form)
        assert done.exit_code == Exit.OK
        assert bool(done.stderr) == (form != "perfetto")
    monkeypatch.setattr(export, "EVENTS_MAX", 100)
    done = call("export", str(run), "--as", "shiviz")
    assert done.exit_code == Exit.USAGE
    assert "at most 100 can be exported" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_full_devices_and_readers_that_go(run: Path) -> None:
    words = [sys.executable, "-m", "sim.cli", "export", str(run), "--as", "perfetto"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*words, "-o", "/dev/full"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == Exit.USAGE
    assert "No space left on device" in done.stderr
    line = f"{' '.join(words)} | head -1"
    piped = subprocess.run(
        ["sh", "-c", line], env=environment, capture_output=True, text=True, check=False
    )
    assert piped.stdout == '{"displayTimeUnit":"ms","traceEvents":[\n'
    assert "Error" not in piped.stderr
