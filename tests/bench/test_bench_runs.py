"""The benches run and give a table of the agreed form; no figure is judged here.

Method: the command line in this process, at a scale where every turn is a single operation.
"""

from __future__ import annotations

import json
import math
import sys
from itertools import groupby
from time import thread_time
from typing import Any

import pytest

from tests.bench import __main__ as command
from tests.bench import peers, sim, sim_peers, storage, worlds
from tests.bench.measure import TINY, Scale, Subject, race
from tests.bench.report import Figure, Report, Row, above, at_least, below, rated, timed
from tests.bench.stopwatch import Stopwatch

GROUPS = "encode decode append replicate truncate recovery fetch open memory".split()
JUDGED = {"encode", "append", "truncate", "recovery", "fetch", "open", "memory"}
VERDICTS = {"", "met", "missed", "no reference"}


def _run_tiny() -> tuple[list[str], dict[str, Any]]:
    """The lines and the JSON document of one run."""
    lines: list[str] = []
    report = Report(lines.append)
    command.run("storage", TINY, report)
    document: dict[str, Any] = json.loads(report.to_json())
    return lines, document


@pytest.fixture(scope="module")
def tiny_run() -> tuple[list[str], dict[str, Any]]:
    return _run_tiny()


def _group(row: dict[str, Any]) -> str:
    return str(row["group"].split()[0])


def _is_figure(figure: dict[str, Any]) -> bool:
    return figure["value"] > 0 and math.isfinite(figure["value"]) and bool(figure["unit"])


@pytest.mark.slow
def test_the_storage_bench_gives_every_group_and_row_its_parts(
    tiny_run: tuple[list[str], dict[str, Any]],
) -> None:
    _, document = tiny_run
    assert document["bench"] == "storage"
    assert document["scale"] == "tiny"
    rows = document["rows"]
    assert [group for group, _ in groupby(map(_group, rows))] == GROUPS
    for row in rows:
        assert _is_figure(row["ours"]), row
        assert row["verdict"] in VERDICTS
        assert bool(row["verdict"]) == (row["budget"] is not None)
        if row["ratio"] is not None:
            assert row["ratio"] > 0
            assert _is_figure(row["reference"])
            assert row["reference"]["unit"] == row["ours"]["unit"]
    assert {_group(row) for row in rows if row["budget"]} == JUDGED


@pytest.mark.slow
def test_the_table_has_a_line_for_each_row(
    tiny_run: tuple[list[str], dict[str, Any]],
) -> None:
    lines, document = tiny_run
    headings = [line for line in lines if line.endswith("verdict")]
    assert len(headings) == len(GROUPS)
    begin = lines.index(headings[0])
    end = next(number for number, line in enumerate(lines) if line.startswith("* "))
    table = [line for line in lines[begin:end] if line and line not in headings]
    assert len(table) == len(document["rows"])
    assert lines[-2].startswith(f"{len(table)} rows, ")


@pytest.mark.slow
def test_without_the_other_codecs_the_rows_stay_and_say_how_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "find_peers", dict)
    _, document = _run_tiny()
    assert document["aiokafka"] is None
    assert any(peers.INSTALL in note for note in document["notes"])
    verdicts = [row["verdict"] for row in document["rows"] if _group(row) == "append"]
    assert verdicts.count("no reference") == 3


@pytest.mark.slow
def test_the_cluster_bench_gives_every_row_with_its_budget() -> None:
    report = Report(lambda line: None)
    command.run("cluster", TINY, report)
    groups = [group for group, _ in groupby(row.group for row in report.rows)]
    assert groups == [
        "produce",
        "fetches elsewhere",
        "produces elsewhere",
        "fetches here",
        "produces here",
    ]
    assert all(row.budget is not None and row.ratio is not None for row in report.rows)


@pytest.mark.slow
def test_the_cli_bench_gives_every_command_with_its_figure() -> None:
    report = Report(lambda line: None)
    command.run("cli", TINY, report)
    assert [row.what for row in report.rows] == [
        "leaderfall --help",
        "leaderfall run --help",
        "leaderfall check leader_crash_acks1.toml",
        "leaderfall run leader_crash_acks1.toml",
    ]
    assert all(row.ours is not None and row.ratio for row in report.rows)
    assert sum(row.budget is not None for row in report.rows) == 3


@pytest.mark.slow
def test_the_sim_bench_gives_every_row_with_its_figure_or_why_there_is_none() -> None:
    report = Report(lambda line: None)
    command.run("sim", TINY, report)
    groups = [group for group, _ in groupby(row.group for row in report.rows)]
    assert groups == [
        "others",
        "kernel",
        "kernel parts",
        "full protocol",
        "small worlds",
        "growth",
    ]
    assert all((row.ours is None) == bool(row.absent) for row in report.rows)
    assert sum(row.budget is not None for row in report.rows) == 6
    for row in report.rows[: len(sim_peers.SIMULATORS)]:
        assert row.ours is None or row.ratio


@pytest.mark.slow
def test_the_viewers_bench_gives_its_rows() -> None:
    report = Report(lambda _: None)
    command.run("viewers", TINY, report)
    assert [row.what for row in report.rows] == [
        "a trace into tracks",
        "tracks into a page",
        "two traces compared",
        "a trace for ShiViz",
        "a trace for Perfetto",
        "a step anywhere",
    ]
    for row in report.rows:
        assert row.ours is not None
        assert row.ours.value > 0
        assert row.ratio is not None


@pytest.mark.slow
def test_the_worlds_bench_gives_rates_and_parts_of_both_envelopes() -> None:
    report = Report(lambda line: None)
    command.run("worlds", TINY, report)
    groups = [group for group, _ in groupby(row.group for row in report.rows)]
    assert groups == [
        "recoverable",
        "recoverable, parts",
        "unrestricted",
        "unrestricted, parts",
    ]
    assert sum(row.budget is not None for row in report.rows) == 2
    parts = [row for row in report.rows if row.group == "recoverable, parts"]
    assert [row.what for row in parts] == list(worlds.PARTS)
    took = {row.what: row.ours.value for row in parts if row.ours is not None}
    assert all(took[part] > 0 for part in ("parsing", "boot", "run", "judging", "trace"))


def test_a_stopwatch_gives_each_part_its_own_time_and_leaves_functions_as_they_were() -> None:
    class Works:
        def outer(self) -> None:
            _work_for(0.02)
            self.inner()

        def inner(self) -> None:
            _work_for(0.01)

    before = dict(vars(Works))
    parts = {"outer": [(Works, "outer")], "inner": [(Works, "inner")]}
    apart, whole = Stopwatch(parts), Stopwatch(parts, {"outer": []})
    for watch in (apart, whole):
        with watch.watching():
            Works().outer()
    assert dict(vars(Works)) == before
    assert apart.took_s["inner"] >= 0.01
    assert apart.took_s["outer"] >= 0.02
    assert whole.took_s["inner"] == 0
    assert whole.took_s["outer"] >= 0.03


def _work_for(seconds: float) -> None:
    until = thread_time() + seconds
    while thread_time() < until:
        pass


def test_a_simulator_that_is_absent_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim_peers.platform, "python_version_tuple", lambda: ("3", "7", "1"))
    assert str(sim_peers.find_simulator("simpy", 4)).startswith("needs Python 3.8, this is ")
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "simpy", None)
    assert str(sim_peers.find_simulator("simpy", 4)).endswith(sim_peers.INSTALL)


@pytest.mark.parametrize("name", sim_peers.SIMULATORS)
def test_a_simulator_that_is_installed_delivers(name: str) -> None:
    found = sim_peers.find_simulator(name, 4)
    if isinstance(found, str):
        pytest.skip(found)
    found.run(1)
    found.run(50)


def test_every_callback_of_the_heap_loop_enters_itself_again() -> None:
    loop = sim.HeapLoop(3)
    loop.run(7)
    later = sim.DELAY_US
    assert sorted(at_us for at_us, _, _ in loop.heap) == [2 * later + 1, 2 * later + 2, 3 * later]


def test_json_is_one_document_and_the_exit_status_is_0(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def bench(name: str, scale: Scale, report: Report) -> None:
        report.add(timed("g", "long", 2.0, budget=below(1.0, "s")))
        report.finish()

    monkeypatch.setattr(command, "run", bench)
    assert command.main(["storage", "--quick", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [row["verdict"] for row in document["rows"]] == ["missed"]


def test_a_peer_that_is_installed_round_trips_a_batch() -> None:
    for peer in peers.find_peers().values():
        frame = peer.encode([(None, b"a", 1, ()), (b"k", b"b", 2, ())], 1_024)
        assert [bytes(record.value) for record in peer.batch(frame)] == [b"a", b"b"]
        with pytest.raises(ValueError, match="took 1 of 2 records"):
            peer.encode([(None, bytes(900), 1, ()), (None, bytes(900), 2, ())], 1_024)


@pytest.mark.parametrize("arguments", [[], ["nonesuch"], ["storage", "--nonesuch"]])
def test_a_wrong_call_exits_with_2_and_names_what_is_allowed(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        command.main(arguments)
    assert caught.value.code == 2
    assert "storage" in capsys.readouterr().err


def test_a_race_prepares_each_turn_and_keeps_to_the_largest_count() -> None:
    prepared: list[int] = []
    ran: list[int] = []
    subject = Subject(ran.append, prepared.append, operations_max=3)
    (took,) = race(TINY, subject)
    assert took >= 0
    assert prepared == ran
    assert max(ran) <= 3


def test_verdicts_follow_ratio_or_figure() -> None:
    report = Report(lambda line: None)
    report.add(
        rated("g", "fast", 1.0, 1, "rec", reference_s=0.9, of="other", budget=at_least(0.8)),
        rated("g", "slow", 1.0, 1, "rec", reference_s=0.7, of="other", budget=at_least(0.8)),
        rated("g", "alone", 1.0, 1, "rec", budget=at_least(0.8)),
        timed("g", "short", 9e-6, budget=below(10e-6, "s")),
        timed("g", "long", 11e-6, budget=below(10e-6, "s")),
        timed("g", "free", 1.0),
        Row("g", "many", Figure(31, "x/s"), budget=above(30, "x/s")),
        Row("g", "few", Figure(29, "x/s"), budget=above(30, "x/s")),
        Row("g", "unknown", None, budget=above(30, "x/s"), absent="no time"),
        Row("g", "nobody asks", None, absent="no time"),
    )
    assert [row.verdict for row in report.rows] == [
        "met",
        "missed",
        "no reference",
        "met",
        "missed",
        "",
        "met",
        "missed",
        "absent",
        "",
    ]
    assert json.loads(report.to_json())["rows"][-1]["ours"] is None


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        (Figure(4_784_000, "rec/s", "peer"), "4.78 Mrec/s peer"),
        (Figure(999, "B/s"), "999 B/s"),
        (Figure(0.5, "B/s"), "0.50 B/s"),
        (Figure(1.234e-6, "s"), "1.23 µs"),
        (Figure(0.0525, "s"), "52.5 ms"),
        (Figure(3e-10, "s"), "0.30 ns"),
        (Figure(1_234.5, "MiB"), "1234 MiB"),
    ],
)
def test_figures_have_three_digits_and_a_prefix(figure: Figure, text: str) -> None:
    assert str(figure) == text
