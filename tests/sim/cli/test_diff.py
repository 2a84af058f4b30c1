"""``diff``: variants, seeds, guards, traces that were cut short, and what is no trace."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sim.cli import diff
from sim.cli.exits import Exit
from sim.trace.kinds import Kind
from sim.trace.lines import Header
from sim.trace.writer import Trace
from tests.sim.cli.tools import LOSING, call, write

GUARDED = (
    LOSING.replace('"losing"', '"guarded"')
    + """
[[variant]]
name = "on"

[[variant]]
name = "off"
set  = { "cluster.guards.hw-freeze" = false }
"""
)


@pytest.fixture
def losing(folder: Path) -> Path:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory", "--seed", "1")
    return folder / "runs" / "losing"


def test_a_run_is_itself(losing: Path) -> None:
    done = call("diff", str(losing / "1"), str(losing / "1" / "trace.jsonl"))
    assert done.exit_code == Exit.OK
    assert "The runs are the same, digest" in done.stdout
    assert done.stderr == ""


def test_seeds_differ_and_the_seed_is_named(losing: Path) -> None:
    call("run", "losing.toml", "-q", "--disk", "memory", "--seed", "2")
    done = call("diff", str(losing / "1"), str(losing / "2"))
    assert done.exit_code == Exit.FAILED
    assert "seed: 1 in A, 2 in B" in done.stdout
    assert "What is behind it: the seeds differ" in done.stdout
    assert "Times differ first: A #" in done.stdout
    assert done.stdout.endswith("The runs differ.\n")


def test_a_guard_that_changes_nothing_leaves_the_runs_the_same(folder: Path) -> None:
    write(folder, GUARDED, "guarded.toml")
    call("run", "guarded.toml", "-q", "--disk", "memory")
    done = call("diff", "runs/guarded/0/on", "runs/guarded/0/off")
    assert done.exit_code == Exit.OK
    assert "options.guards.hw-freeze: on in A, off in B" in done.stdout
    assert "what they were told differently changed nothing" in done.stdout


@pytest.mark.parametrize(
    ("name", "one", "other", "wanted"),
    [
        (
            "min_isr_freeze",
            "today",
            "without-freeze",
            ["options.guards.hw-freeze: on in A, off in B", "What is behind it: the settings"],
        ),
        (
            "kip101_lost_write",
            "high-watermark",
            "fetch",
            [
                "options.truncation: high-watermark in A, fetch in B",
                "Where replicas differ first, in the log of b3, orders-0",
                "b3, orders-0: other records; log end 1 in A, 2 in B",
                "1 record of orders-0 lost: 1 of epoch 0 (ILLEGAL)",
            ],
        ),
    ],
)
def test_variants_part_where_the_setting_counts(
    folder: Path, name: str, one: str, other: str, wanted: list[str]
) -> None:
    call("run", name, "-q", "--disk", "memory")
    (a,) = folder.glob(f"runs/*/*/{one}")
    (b,) = folder.glob(f"runs/*/*/{other}")
    done = call("diff", str(a), str(b), env={"COLUMNS": "200"})
    assert done.exit_code == Exit.FAILED
    for each in wanted:
        assert each in done.stdout


def test_a_trace_that_was_cut_short_is_compared_as_far_as_it_goes(losing: Path) -> None:
    whole = (losing / "1" / "trace.jsonl").read_bytes()
    cut = losing / "cut.jsonl"
    cut.write_bytes(whole[: len(whole) // 2])
    done = call("diff", str(losing / "1"), str(cut))
    assert done.exit_code == Exit.FAILED
    last = cut.read_bytes().count(b'\n{"n":') - (not cut.read_bytes().endswith(b"\n"))
    assert f"B was cut short behind #{last}" in done.stdout
    assert "In A" not in done.stdout


def test_json_is_one_document(losing: Path) -> None:
    done = call("diff", str(losing / "1"), str(losing / "1"), "--json")
    document = json.loads(done.stdout)
    assert done.exit_code == Exit.OK
    assert document["is_same"] is True
    assert document["pairs"]["a"] == document["pairs"]["b"]
    assert document["a"]["last"] == len(document["pairs"]["a"])


@pytest.mark.parametrize("width", ["40", "79", "100", "300"])
def test_no_line_of_rows_is_wider_than_the_console(losing: Path, width: str) -> None:
    call("run", "losing.toml", "-q", "--disk", "memory", "--seed", "2")
    done = call("diff", str(losing / "1"), str(losing / "2"), env={"COLUMNS": width})
    rows = [line for line in done.stdout.split("\n") if line.startswith("#")]
    assert bool(rows) == (int(width) >= 80)
    assert max(map(len, rows), default=0) <= int(width)


# Bad input ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (b"", "no whole line, a trace begins with a header"),
        (b"hello\n", "trace.jsonl:1: this is no trace, which begins with a header: not JSON"),
        (b'{"leaderfall":2}\n', "leaderfall is 2, allowed is 1"),
        (b'\x1b[31m{"leaderfall":1}\n', "0x1b"),
    ],
)
def test_what_is_no_trace_is_named(losing: Path, text: bytes, wanted: str) -> None:
    place = losing / "bad"
    place.mkdir()
    (place / "trace.jsonl").write_bytes(text)
    for words in ((str(place), str(losing / "1")), (str(losing / "1"), str(place))):
        done = call("diff", *words)
        assert done.exit_code == Exit.USAGE
        assert done.stderr.startswith("Error: ")
        assert wanted.replace("0x1b", "") in done.stderr
        assert "\x1b" not in done.output


def test_a_damaged_line_is_named(losing: Path) -> None:
    lines = (losing / "1" / "trace.jsonl").read_bytes().split(b"\n")
    lines[40] = b'{"n":99999}'
    (losing / "bad.jsonl").write_bytes(b"\n".join(lines))
    done = call("diff", str(losing / "1"), str(losing / "bad.jsonl"))
    assert done.exit_code == Exit.USAGE
    assert "bad.jsonl:41:" in done.stderr


def test_missing_files_pipes_and_null_bytes_are_named(losing: Path) -> None:
    pipe = losing / "pipe"
    os.mkfifo(pipe)
    for each in (str(losing / "nowhere"), str(losing), str(pipe), "a\0b"):
        done = call("diff", str(losing / "1"), each)
        assert done.exit_code == Exit.USAGE
        assert done.stderr.startswith("Error: ")


def test_a_trace_of_digests_and_one_that_is_too_long_are_refused(
    losing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", "losing.toml", "-q", "--disk", "memory", "--trace-level", "digest", "--seed", "3")
    done = call("diff", str(losing / "3"), str(losing / "1"))
    assert done.exit_code == Exit.USAGE
    assert "keeps no events, only digests" in done.stderr
    monkeypatch.setattr(diff, "EVENTS_MAX", 100)
    done = call("diff", str(losing / "1"), str(losing / "1"))
    assert done.exit_code == Exit.USAGE
    assert "at most 100 can be compared" in done.stderr
    whole = (losing / "1" / "trace.jsonl").read_bytes()
    (losing / "cut.jsonl").write_bytes(whole[:-9])
    done = call("diff", str(losing / "cut.jsonl"), str(losing / "cut.jsonl"))
    assert "has 101 events or more" in done.stderr


def test_hostile_text_reaches_no_terminal(folder: Path) -> None:
    evil = "\x1b[2J\u202e" + "x" * 5_000 + "\n[red]"
    for place, seed in (("a", 1), ("b", 2)):
        (folder / place).mkdir()
        header = Header(evil, evil, evil, seed, {evil: seed}, (evil,), [{evil: evil, "n": seed}])
        trace = Trace("full", path=folder / place / "trace.jsonl", header=header)
        trace.emit(0, evil, Kind.START, (), {"incarnation": seed, evil: evil})
        said = {"check": evil, "detail": evil, "partition": evil}
        trace.emit(1, evil, Kind.CHECK, (1,), said)
        trace.emit(2, evil, Kind.APPEND, (1,), {"partition": evil, "next_offset": seed})
        trace.close(evil)
    for words in ((), ("--color", "always")):
        done = call("diff", "a", "b", *words)
        assert done.exit_code == Exit.FAILED
        assert "\x1b[2J" not in done.stdout
        assert "\u202e" not in done.stdout
        assert max(map(len, done.stdout.split("\n"))) < 700
