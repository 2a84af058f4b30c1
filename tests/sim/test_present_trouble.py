"""Faults, errors and steps in words, and the sections of a report from the trace alone."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.cli.report_losses import print_losses
from sim.disk_faults import FAULT_KINDS
from sim.present.history import Fault
from sim.present.losses import told_losses
from sim.present.step_words import step_words
from sim.present.story import Story
from sim.present.strips import strips
from sim.present.text import print_strips, print_timeline
from sim.present.timeline import timeline
from sim.present.trouble_tellings import fault_words
from sim.present.words import duration
from sim.trace.kinds import NOTE_KINDS, Kind
from sim.trace.reader import TraceReader
from tests.sim.cli.tools import LOSING, call, write
from tests.sim.test_present_fates import Script, lines


def words_of(kind: str, target: Any, **args: Any) -> str:
    return fault_words(Fault("f", kind, target, args, "world", 1))


@pytest.mark.parametrize(
    ("kind", "target", "args", "text"),
    [
        ("Cut", [["a", "b"]], {"only": ["X"], "in_flight": "drop"}, "cut a→b (only X)"),
        ("ClockStep", "a", {"by_us": 2_000_000}, "the clock is moved at a (by 2s)"),
        ("DiskStall", "a", {"duration_us": 1_500_000}, "the disk hangs at a (duration 1.500s)"),
        ("SomeThing", "a", {"some_key": 3}, "some thing a (some key 3)"),
        (
            "DiskCallFault",
            "a",
            {"fault": {"kind": "fsync-lie", "path": ".log"}},
            "on the disk of a syncs are called done and write nothing (.log)",
        ),
        ("DiskCallFault", "a", {"fault": {"kind": "new-kind"}}, "on the disk of a new-kind"),
        ("DiskCallFault", "a", {}, "disk call fault a"),
    ],
)
def test_faults_are_told_in_words(kind: str, target: Any, args: dict[str, Any], text: str) -> None:
    assert words_of(kind, target, **args) == text


@pytest.mark.parametrize("kind", sorted(FAULT_KINDS))
def test_every_fault_of_disk_calls_has_words(kind: str) -> None:
    told = words_of("DiskCallFault", "a", fault={"kind": kind, "path": ""})
    assert kind == "error" or kind not in told


@pytest.mark.parametrize(
    "note", sorted(note for note, kind in NOTE_KINDS.items() if kind is Kind.ERROR)
)
def test_every_error_of_a_machine_has_words(note: str) -> None:
    script = Script("a")
    script.put("a", Kind.ERROR, note=note, error="SOME_CODE")
    text = lines(script)
    assert note not in text
    assert "meets" not in text
    assert "SOME_CODE" not in text


def test_errors_have_their_code_in_plain_letters() -> None:
    script = Script("a")
    script.put("a", Kind.ERROR, note="registration-refused", error="DUPLICATE_BROKER_REGISTRATION")
    script.put("a", Kind.DISK_ERROR, operation="complete_fsync", file="/t-0/0.log", fault="bad")
    script.put("a", Kind.POSITION, event="TopicRecreated", partition="t-0")
    text = lines(script)
    assert "a is not registered by the controller: duplicate broker registration" in text
    assert "a: a sync of /t-0/0.log is struck by bad" in text
    assert "a finds another topic under the name of t-0" in text


@pytest.mark.parametrize(
    ("what", "args", "text"),
    [
        ("crash", {"node": ["a"], "how": "power"}, "crash a, how power"),
        ("cut", {"from": "a", "to": ["b", "c"], "both": True}, "cut from a to b and c, both"),
        ("wait", {"that": "x == {a, b}"}, "wait x == {a, b}"),
        ("create_topic", {"name": "t", "config": {"k": 1}}, "create topic t, config k 1"),
        ("partition", {"groups": [["a"], ["b", "c"]]}, "partition, groups a | b and c"),
        ("client", {"topic": "t", "partition": 0}, "client, topic t, partition 0"),
        ("settle", {"within": "2s", "quiet": False}, "settle, within 2s, quiet false"),
        ("reassign", {"replicas": []}, "reassign, replicas nothing"),
    ],
)
def test_steps_are_told_in_words(what: str, args: dict[str, Any], text: str) -> None:
    assert step_words(what, args) == text


@pytest.mark.parametrize(
    ("t_us", "text"), [(0, "0s"), (2_000_000, "2s"), (1_500_000, "1.500s"), (300, "300us")]
)
def test_lengths_of_time_are_short(t_us: int, text: str) -> None:
    assert duration(t_us) == text


# A report is the story of its trace ---------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("width", [40, 80, 100])
def test_a_run_prints_what_anybody_can_print_from_its_trace(folder: Path, width: int) -> None:
    write(folder, LOSING, "losing.toml")
    run = call("run", "losing.toml", "--disk", "memory", env={"COLUMNS": str(width)}).stdout
    reader = TraceReader(folder / "runs" / "losing" / "latest" / "trace.jsonl")
    story = Story(reader.header, reader, reader.footer)
    out = io.StringIO()
    console = Console(file=out, width=width, no_color=True)
    print_timeline(console, timeline(story))
    assert out.getvalue() in run
    out.seek(0)
    out.truncate()
    print_strips(console, strips(story))
    assert out.getvalue() in run
    out.seek(0)
    out.truncate()
    print_losses(console, told_losses(story), {})
    assert "NOT COVERED: L0" in out.getvalue()
    assert out.getvalue() in run
    assert run.count("made b2 leader") == 1, "a loss is told once"
    assert not re.search(r"^Why$", run, re.MULTILINE)
