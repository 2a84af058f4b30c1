"""``show``, ``explain`` and ``doctor``."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from cluster.failpoints import FAILPOINTS
from cluster.guards import GUARDS
from sim.checks.violations import CHECKS
from sim.cli import doctor, show
from sim.cli.exits import Exit
from sim.cli.topics import GROUPS
from sim.scenario.actions import ACTIONS
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.observables import OBSERVABLES
from sim.trace.kinds import Kind
from sim.trace.lines import Header
from sim.trace.writer import Trace
from tests.sim.cli.tools import LOSING, ROOT, call, write

HEADER = Header("0", "x", None, 7, {}, ("c1", "b1"), [])


@pytest.fixture
def run_folder(folder: Path) -> Path:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--disk", "memory")
    return folder / "runs" / "losing" / "latest"


# show ------------------------------------------------------------------------------------------


def test_show_has_a_line_an_event_and_a_column_a_node(run_folder: Path) -> None:
    for place in (run_folder, run_folder / "trace.jsonl"):
        lines = call("show", str(place)).stdout.split("\n")
        assert lines[0].split() == ["c1", "b1", "b2", "b3", "admin", "p1"]
        assert lines[1].split()[:2] == ["#1", "-10.000s"]
        assert sum(line.lstrip().startswith("#") for line in lines) > 500


def test_show_selects(run_folder: Path) -> None:
    lines = call("show", str(run_folder), "--kind", "crash").stdout.split("\n")
    (crash,) = [line for line in lines if "crash" in line]
    number = crash.split()[0].removeprefix("#")
    around = call("show", str(run_folder), "--around", number, "--context", "2").stdout
    assert sum("#" in line for line in around.split("\n")) == 5
    assert f">{'#' + number:>8}" in around
    only = call("show", str(run_folder), "--node", "b1", "--kind", "truncate").stdout
    assert "truncate" in only
    assert "b2 " not in only.split("\n")[0]


def test_show_of_a_folder_of_runs_names_them(run_folder: Path) -> None:
    done = call("show", str(run_folder.parent))
    assert done.exit_code == Exit.USAGE
    assert "has no trace.jsonl.\nRuns in it: 0, latest." in done.stderr
    assert "Runs in it" not in call("show", str(run_folder.parents[1])).stderr


def test_show_fits_narrow_terminals(run_folder: Path) -> None:
    done = call("show", str(run_folder), "--kind", "elect", env={"COLUMNS": "40"})
    assert done.exit_code == 0
    assert all(len(line) <= 40 for line in done.stdout.split("\n"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--kind", "elct"), 'Did you mean "elect"?'),
        (("--node", "b9"), 'There is no node "b9". There are c1, b1,'),
        (("--around", "999999"), "There is no event 999999"),
        (("--around", "0"), "0 is not in the range"),
    ],
)
def test_show_refuses_what_is_not_there(
    words: tuple[str, ...], text: str, run_folder: Path
) -> None:
    done = call("show", str(run_folder), *words)
    assert done.exit_code == Exit.USAGE
    assert text in done.stderr


@pytest.mark.parametrize("data", [b"", b"{}", b"\0\xff", b"[" * 100_000, b'{"leaderfall":1}\n'])
def test_what_is_no_trace_is_told(data: bytes, folder: Path) -> None:
    (folder / "x").write_bytes(data)
    done = call("show", "x")
    assert done.exit_code == Exit.USAGE
    assert done.stderr.startswith("Error: ")
    assert call("show", ".").exit_code == Exit.USAGE


def test_a_trace_that_lies_is_told_where_it_does(run_folder: Path) -> None:
    path = run_folder / "trace.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([*lines[:50], *lines[60:]]))
    done = call("show", str(path))
    assert done.exit_code == Exit.USAGE
    assert "trace.jsonl:51: " in done.stderr


def test_traces_without_events_say_so(folder: Path) -> None:
    for level, text in (
        ("digest", "keeps no events, only digests of 1"),
        ("full", "has no events"),
    ):
        trace = Trace(level, path=folder / level, header=HEADER)
        if level == "digest":
            trace.emit(1, "b1", Kind.START, (), {})
        trace.close("passed")
        assert text in call("show", level).stdout


def test_a_hostile_trace_steers_no_terminal(folder: Path) -> None:
    trace = Trace("full", path=folder / "x", header=HEADER)
    evil = "\x1b[31m\x07\r\n\u202e"
    for node in ("b1", evil):
        trace.emit(1, node, Kind.START, (), {"role": evil})
        trace.emit(2, node, Kind.SEND, (), {"to": evil, "type": evil})
        trace.emit(3, node, Kind.NOTE, (), {"note": evil, evil: evil})
    trace.close(evil)
    for words in ((), ("--node", evil), ("--node", "b7")):
        done = call("show", "x", *words)
        assert all(line.isprintable() for line in done.output.split("\n"))


# explain ---------------------------------------------------------------------------------------


def test_every_name_of_every_table_is_explained() -> None:
    from sim.cli.explain import _all, _find

    groups = _all()
    assert set(groups) == set(GROUPS)
    names = {
        "invariants": list(CHECKS),
        "guards": [guard.id for guard in GUARDS],
        "failpoints": list(FAILPOINTS),
        "steps": list(ACTIONS),
        "faults": list(FAULT_KINDS),
        "observables": list(OBSERVABLES),
        "events": [str(kind) for kind in Kind],
    }
    for group, wanted in names.items():
        for name in wanted:
            assert group in [found for found, _ in _find(groups, name)], name


def test_every_topic_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    from sim.cli.console import make_console
    from sim.cli.explain import _all, _explain

    for width in ("40", "100"):
        os.environ["COLUMNS"] = width
        try:
            console = make_console("never")
            for group, topics in _all().items():
                assert topics, group
                for topic in topics:
                    assert topic.title, topic.name
                    _explain(console, group, topic)
        finally:
            del os.environ["COLUMNS"]
    text = capsys.readouterr().out
    assert "``" not in text
    assert all(line.isprintable() for line in text.split("\n"))


def test_without_a_topic_everything_is_listed() -> None:
    text = call("explain").stdout
    for group, (what, _) in GROUPS.items():
        assert f"{group}: {what}\n" in text
    assert "committed-durability" in text


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("hw-valid",), ("I5: every member of the ISR has all", "the controller's ISR")),
        (("I5",), ("hw-valid",)),
        (("crash",), ("(steps: ", "(faults: ", "(events: ", "at_failpoint")),
        (("step:crash",), ("(steps: ",)),
        (("B-20",), ("batch-epoch-not-above-fetch-epoch", "KAFKA-18723")),
        (("leader",), ("leader(partition) -> node or None", "leader:T-P")),
        (("min.insync.replicas",), ("--set topic.NAME:min.insync.replicas=...", "default")),
        (("Min.InSync.Replicas",), ("default",)),
        (("observables",), ("same_log", "elections")),
        (("observable",), ("same_log",)),
        (("L1",), ("outside ISR and ELR",)),
        (("acked-records-survive",), ("No acknowledged record is gone",)),
        (("fetch-read",), ("The leader has read for a fetch",)),
        (("[cluster]",), ("brokers", "truncation")),
        (("exit", "4"), ("--twice",)),
    ],
)
def test_a_topic_says_what_its_table_says(words: tuple[str, ...], parts: tuple[str, ...]) -> None:
    done = call("explain", *words)
    assert done.exit_code == 0, done.output
    for part in parts:
        assert part in done.stdout


def test_a_group_in_front_selects() -> None:
    assert "(faults: " not in call("explain", "step:crash").stdout
    assert call("explain", "step:hw-valid").exit_code == Exit.USAGE


def test_an_unknown_topic_gets_hints_and_the_groups() -> None:
    done = call("explain", "hw-vlid")
    assert done.exit_code == Exit.USAGE
    assert "Did you mean hw-valid?" in done.stderr
    assert "Groups: invariants, " in done.stderr
    assert "Did you mean" not in call("explain", "qqqqqq").stderr


def test_what_is_only_a_key_is_told_with_what_has_it() -> None:
    done = call("explain", "acks")
    assert done.exit_code == 0, done.output
    assert "step produce" in done.stdout
    assert "table [[workload]]" in done.stdout
    assert call("explain", "acks=all").stdout == done.stdout.replace("acks=all", "acks")


@pytest.mark.parametrize(
    ("wanted", "head"),
    [
        ("leader:orders-0", "leader:T-P"),
        ("lost('acked')", "lost(promise"),
        ("disk:fsync:.log", "disk:CALL:PATH-SUFFIX"),
    ],
)
def test_a_name_is_explained_with_what_files_write_behind_it(wanted: str, head: str) -> None:
    done = call("explain", wanted)
    assert done.exit_code == 0, done.output
    assert head in done.stdout


def test_a_form_of_expectation_is_explained_with_its_keys() -> None:
    text = call("explain", "eventually").stdout
    assert all(f"\n  {key} " in text for key in ("after", "within", "from", "to", "because"))
    assert "within" not in call("explain", "at_end").stdout


# doctor ----------------------------------------------------------------------------------------


def test_doctor_finds_this_installation_right(folder: Path) -> None:
    done = call("doctor")
    assert done.exit_code == 0, done.output
    for part in ("Python", "click", "cluster, sim and storage are ours", "writable", "scenarios"):
        assert part in done.stdout
    assert done.stdout.endswith("all right\n")
    assert os.listdir(folder) == []


def test_doctor_finds_names_that_are_not_ours(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Other:
        origin = str(folder / "cluster" / "__init__.py")

    monkeypatch.setattr(doctor, "find_spec", lambda name: Other)
    done = call("doctor")
    assert done.exit_code == Exit.FAILED
    assert "import cluster: " in done.stdout
    assert "is not ours; use an environment of its own" in done.stdout
    assert "2 things are wrong" in done.stdout


def test_doctor_finds_others_that_install_the_same_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "importlib.metadata.packages_distributions",
        lambda: {"cluster": ["leaderfall", "cluster"], "storage": ["leaderfall"]},
    )
    done = call("doctor")
    assert done.exit_code == Exit.FAILED
    assert "wrong   import cluster: cluster installs it too, over ours" in done.stdout


def test_doctor_knows_a_clone(folder: Path) -> None:
    for name, mark in doctor._MARKS.items():
        (folder / name).mkdir()
        (folder / name / mark).write_bytes(b"")
    text = call("doctor").stdout
    assert "this folder: a clone;" in text
    assert "warning folder" not in text


def test_doctor_warns_of_folders_that_would_come_first(folder: Path) -> None:
    (folder / "storage").mkdir()
    done = call("doctor")
    assert done.exit_code == 0
    assert "warning folder storage/: in this folder" in done.stdout


def test_doctor_finds_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: None if name == "cattrs" else "1")
    done = call("doctor", "--out", "/proc/x")
    assert done.exit_code == Exit.FAILED
    assert "wrong   cattrs: missing" in done.stdout
    assert "wrong   folder /proc/x: cannot be written" in done.stdout


def test_doctor_names_extras_and_dependencies_that_there_are() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for extra, names in doctor.EXTRAS.items():
        wanted = " ".join(project["optional-dependencies"][extra])
        assert all(f"{name}>=" in wanted for name in names)
    needed = [each.partition(">=")[0] for each in project["dependencies"]]
    assert sorted(doctor.NEEDED) == sorted(needed)


def test_doctor_tells_how_this_shell_completes() -> None:
    assert "completion for fish" in call("doctor", env={"SHELL": "/usr/bin/fish"}).stdout
    assert "bash, zsh or fish" in call("doctor", env={"SHELL": ""}).stdout


def test_show_of_a_long_trace_says_where_it_ends(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(show, "EVENTS_MAX", 30)
    for words in ((), ("--around", "2")):
        done = call("show", str(run_folder), *words)
        assert done.exit_code == Exit.OK
        assert done.stderr == "(Only the first 30 events are shown: the trace is long.)\n"
    assert "#31" not in call("show", str(run_folder)).stdout
    done = call("show", str(run_folder), "--around", "31")
    assert done.exit_code == Exit.USAGE
    assert done.stderr == "Error: Only the first 30 events are read: 31 is not.\n"


def test_more_events_than_can_be_counted_are_all_events(run_folder: Path) -> None:
    for words in (("step",), ("report", "-o", "page.html")):
        done = call(words[0], str(run_folder), *words[1:], "--events", "9" * 30)
        assert done.exit_code == Exit.OK, done.output
