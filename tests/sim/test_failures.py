"""Failing cases on disk: they replay, and what cannot be saved is said."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim import failures
from sim.failures import folder_name, save_case
from sim.running.findings import Examined, Finding, examine
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario, read_scenario
from sim.scenario.writing import applied_document, scenario_text
from sim.trace.reader import TraceReader, verify

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "scenarios"


def failing(**more: Any) -> Scenario:
    """It loses five records under L0, which nothing allows."""
    document = dict(read_scenario(FOLDER / "leader_crash_acks1.toml").document)
    document["expect"] = [{"always": "alive(b1)"}]
    return parse_scenario(scenario_text(document | more))


def replayed(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(line)
    assert words[0] == "leaderfall"
    command = [sys.executable, "-m", "sim.cli", *words[1:], "--out", str(folder / "runs")]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )


def test_a_case_is_saved_and_replays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    scenario = failing()
    examined = examine(scenario, seed=3, level="digest")
    saved = save_case(scenario, seed=3, name="tests/a.py::test_b[1-x]", examined=examined)
    assert saved.identities == {("loss", "L0"), ("expectation", "always: alive(b1)")}
    assert saved.notes == ()
    assert examined.result is not None
    assert saved.digest == examined.result.digest
    assert saved.scenario is not None
    assert saved.trace is not None
    assert saved.scenario.parent.parent == failures.FOLDER
    assert verify(saved.trace).digest == saved.digest
    assert TraceReader(saved.trace).is_complete
    ran = replayed(saved.replay, tmp_path)
    assert ran.returncode == 1
    assert f"digest  {saved.digest}" in ran.stdout
    assert "does not hold" in ran.stdout or "FAILS" in ran.stdout
    message = saved.message().splitlines()
    assert message[-1].endswith(saved.replay)
    assert any("b2 leader" in line for line in message)
    # A second run of the same test replaces the first, and leaves nothing else.
    save_case(failing(seed=9), name="tests/a.py::test_b[1-x]")
    assert [each.name for each in sorted(failures.FOLDER.iterdir())] == [saved.scenario.parent.name]
    assert [each.name for each in sorted(saved.scenario.parent.iterdir())] == [
        "scenario.toml",
        "trace.jsonl",
    ]
    assert read_scenario(saved.scenario).seed == 9


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_what_runs_can_be_written_with_everything_applied(path: Path) -> None:
    read = read_scenario(path)
    for name in [each.name for each in read.variants] or [None]:
        applied = effective(read, name, (), seed=77)
        again = parse_scenario(scenario_text(applied_document(applied)))
        assert again.variants == ()
        assert again.seed == 77
        for key in ("cluster", "topics", "workloads", "faults", "steps", "liveness", "until_us"):
            assert getattr(again, key) == getattr(applied, key), key
        assert [(e.form, e.that, e.breaks, e.allow, e.after) for e in again.expects] == [
            (e.form, e.that, e.breaks, e.allow, e.after) for e in applied.expects
        ]


def test_odd_texts_survive_the_file() -> None:
    title = "Ω 🦊 \\ \" ' #"
    step = {"produce": {"to": "orders-0", "values": ["\x7f", "🦊", "\u2028\t", '"']}}
    scenario = failing(title=title, step=[step], expect=[])
    assert scenario.title == title
    assert scenario.document["step"] == [step]


def test_what_fails_otherwise_from_its_file_is_flaky(tmp_path: Path) -> None:
    other = Examined((Finding("invariant", "epoch-prefix", "x"),), None)
    saved = save_case(failing(), name="a", folder=tmp_path, examined=other)
    assert "FLAKY" in saved.message()
    assert "it failed by invariant epoch-prefix, and by expectation" in saved.message()
    first = examine(failing(), level="digest")
    assert first.result is not None
    only_named = Examined(first.findings, None)
    saved = save_case(failing(), name="a", folder=tmp_path, examined=only_named, digest="0" * 32)
    assert "FLAKY" in saved.message()
    assert "by other events" in saved.message()
    saved = save_case(failing(), name="a", folder=tmp_path, examined=only_named)
    assert saved.notes == ()


def test_what_passes_is_said_to(tmp_path: Path) -> None:
    scenario = effective(read_scenario(FOLDER / "leader_crash_acks1.toml"))
    saved = save_case(scenario, name="a", folder=tmp_path)
    assert saved.findings == ()
    assert "nothing was wrong when this was run from its file" in saved.message()


def test_a_defect_keeps_its_trace(tmp_path: Path) -> None:
    def breaks(world: Any) -> None:
        def fail() -> None:
            raise KeyError("b9")

        world.timeline.at(12_000_000, 0, "x", fail)

    saved = save_case(failing(), name="a", folder=tmp_path, on_world=breaks)
    ((kind, name),) = saved.identities
    assert kind == "defect"
    assert name.startswith("KeyError in ")
    assert saved.trace is not None
    assert not TraceReader(saved.trace).is_complete
    assert "b1 leader" in saved.picture


@pytest.mark.parametrize("what", ["a file", "a folder in the place of the trace"])
def test_what_cannot_be_saved_still_fails(what: str, tmp_path: Path) -> None:
    folder = tmp_path / "x"
    if what == "a file":
        folder.write_text("")
    else:
        (folder / "a" / "trace.jsonl" / "b").mkdir(parents=True)
    saved = save_case(failing(), name="a", folder=folder)
    assert saved.scenario is None
    assert saved.trace is None
    assert ("loss", "L0") in saved.identities
    message = saved.message()
    assert "could not be written" in message
    assert "b2 leader" in message
    assert 'name = "leader-crash-acks1"' in message
    if what != "a file":
        assert [each.name for each in sorted(folder.iterdir())] == ["a"]


@pytest.mark.parametrize("writes_before", [0, 1, 3])
def test_a_disk_that_fills_while_the_trace_is_written(
    writes_before: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sim.trace import writer

    write, done = writer._Sink.write, []

    def full(self: writer._Sink, data: bytes) -> None:
        if len(done) == writes_before:
            raise OSError(28, "No space left on device")
        done.append(data)
        write(self, data)

    monkeypatch.setattr(writer._Sink, "write", full)
    saved = save_case(failing(), name="a", folder=tmp_path)
    assert saved.scenario is None
    assert ("loss", "L0") in saved.identities
    assert "No space left" in saved.message()
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_behind_by_an_interrupt(tmp_path: Path) -> None:
    def interrupt(world: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        save_case(failing(), name="a", folder=tmp_path, on_world=interrupt)
    assert list(tmp_path.iterdir()) == []


def test_folders_of_two_tests_are_two() -> None:
    long = "tests/" + "x" * 300
    names = [
        "a",
        "A",
        "a-",
        "a b",
        "a/b",
        "a::b",
        "test_a[x]",
        "test_a[X]",
        "nul",
        "con.x",
        "..",
        "",
    ]
    names += ["/", "ä", "\x00", "\ud800", long + "1", long + "2", "test_x", "🦊"]
    found = [folder_name(each) for each in names]
    assert len({each.lower() for each in found}) == len(names)
    for each in found:
        assert 0 < len(each) <= 100
        assert each.isascii()
        assert each == Path(each).name
        assert not each.startswith(".")
    assert folder_name("test_x") == "test_x"
    assert folder_name("a") == "a"
    assert folder_name("nul") != "nul"


def test_a_long_message_is_bounded(tmp_path: Path) -> None:
    topics = [{"name": f"t{n}", "replicas": [["b1", "b2", "b3"]]} for n in range(40)]
    read = failing()
    scenario = failing(topic=[*read.document["topic"], *topics])
    saved = save_case(scenario, name="a", folder=tmp_path)
    assert len(saved.picture.splitlines()) > 100
    assert "more lines" in saved.message()
    assert len(saved.message().splitlines()) < 60


def test_a_run_without_something_is_no_case(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="left out"):
        save_case(failing(), name="a", folder=tmp_path, without=object())
