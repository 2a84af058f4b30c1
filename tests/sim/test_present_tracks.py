"""Tracks: every step of a trace, forward, back and by jumps, against the fold of its changes."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.present.history import FOREVER
from sim.present.lives import SNAPSHOT_EVERY, Lives
from sim.present.plain_tracks import plain
from sim.present.step_view import differences, view
from sim.present.tracks import Tracks
from sim.running.scenario_run import run_scenario
from sim.scenario.reading import parse_scenario
from sim.trace.fold import Fold
from sim.trace.kind_docs import KINDS
from sim.trace.kinds import Kind
from sim.trace.lines import Header
from sim.trace.reader import TraceError
from sim.trace.writer import Trace

SCENARIO = """schema = 1
name   = "stepped"
until  = "30s"

[cluster.config]
"broker.session.timeout.ms" = 2000
"broker.heartbeat.interval.ms" = 500

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"], ["b2", "b3", "b1"]]
config   = { "segment.bytes" = 2048, "index.interval.bytes" = 300 }

[[step]]
at      = "1s"
produce = { to = "orders-0", count = 60, acks = "all" }

[[step]]
id      = "lag"
cut     = { from = "b1", to = ["b2", "b3"], only = ["FetchResponse"] }

[[step]]
produce = { to = "orders-0", count = 9, acks = "1" }

[[step]]
crash   = { node = "b1", how = "process" }

[[step]]
heal    = "lag"

[[step]]
at      = "10s"
start   = "b1"

[[step]]
at      = "15s"
produce = { to = "orders-0", count = 9, acks = "all" }

[[step]]
at      = "17s"
crash   = { node = "b3", how = "power", image = "lost" }

[[step]]
at      = "20s"
start   = "b3"

[[expect]]
eventually = "leader('orders-0') == b2"

[[expect]]
at_end = "leo('orders-0') == 1"
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which logs grow, roll, are truncated, and lose their power."""
    folder = tmp_path_factory.mktemp("run")
    (folder / "disks").mkdir()
    run_scenario(parse_scenario(SCENARIO), root=folder / "disks", path=folder / "trace.jsonl")
    return folder


@pytest.fixture(scope="module")
def tracks(run: Path) -> Tracks:
    return Tracks.load(run / "trace.jsonl")


# States ------------------------------------------------------------------------------------------


def test_every_step_is_what_the_changes_add_up_to(tracks: Tracks) -> None:
    fold, states = Fold(), [{}]
    for event in tracks.events():
        fold.forward(event)
        states.append(dict(fold.state))
    assert tracks.last == len(states) - 1 > 1_000
    assert tracks.notices == []
    order = list(range(len(states)))
    assert all(tracks.state(n) == states[n] for n in order)
    assert all(tracks.state(n) == states[n] for n in reversed(order))
    random.Random(3).shuffle(order)
    for n in order[:400]:
        assert tracks.state(n) == states[n]
        assert tracks.value("b1/orders-0/log_end_offset", n) == states[n].get(
            "b1/orders-0/log_end_offset"
        )


def test_differences_are_what_lies_between_two_steps(tracks: Tracks) -> None:
    for one, other in ((0, tracks.last), (500, 900), (900, 500), (700, 700)):
        state = tracks.state(one)
        for each in differences(tracks, one, other):
            assert state.pop(each.path, None) == each.old
            if each.new is not None:
                state[each.path] = each.new
        assert state == tracks.state(other)


def test_an_event_is_the_one_of_the_file_wherever_one_jumps(tracks: Tracks, run: Path) -> None:
    lines = [json.loads(line) for line in (run / "trace.jsonl").read_text().splitlines()]
    events = {line["n"]: line for line in lines if "n" in line}
    order = sorted(events)
    random.Random(5).shuffle(order)
    for n in [*order[:300], 1, tracks.last]:
        event = tracks.event(n)
        assert (event.n, event.t_us, event.node) == (n, events[n]["t"], events[n]["node"])
    for n in (0, -1, tracks.last + 1):
        with pytest.raises(IndexError, match=f"event {n}, allowed is 1.."):
            tracks.event(n)


# Logs, messages, timers --------------------------------------------------------------------------


def test_the_isr_is_the_controllers_own(tracks: Tracks) -> None:
    """Between two handlers, and also where it shrinks while the leader is dead."""
    seen: dict[str, set[tuple[str, ...]]] = {}
    quiet = [
        n for n in range(1, tracks.last) if tracks.event(n + 1).kind in (Kind.TIMER, Kind.DELIVER)
    ]
    for name, partition in tracks.story.partitions.items():
        first = next(iter(partition.isrs))[0]
        for n in (each for each in quiet if each >= first):
            own = tracks.value(f"c1/{name}/isr", n)
            assert partition.isrs.at(n) == tuple(own), (n, name)
            seen.setdefault(name, set()).add(tuple(own))
    assert all(len(isrs) > 2 for isrs in seen.values())


def test_logs_end_where_the_brokers_say(tracks: Tracks) -> None:
    """Between two handlers: a handler's changes stand in its first event, its appends behind it."""
    checked = 0
    for n in range(1, tracks.last):
        if tracks.event(n + 1).kind not in (Kind.TIMER, Kind.DELIVER):
            continue
        for partition in tracks.moment(n).partitions:
            for replica in partition.replicas:
                told = tracks.value(f"{replica.node}/{partition.name}/log_end_offset", n)
                if told is not None:
                    checked += 1
                    assert replica.log_end == told, (n, replica.node)
    assert checked > 1_000


def test_segments_and_index_entries_are_those_of_the_files(tracks: Tracks, run: Path) -> None:
    checked = same = 0
    for node in ("b1", "b2"):
        folder = run / "disks" / node / "orders-0"
        bases = sorted(int(each.stem) for each in folder.glob("*.log") if each.stat().st_size)
        assert tracks.segments_at(node, "orders-0", tracks.last) == bases
        assert len(bases) > 2
        entries = []
        for base in bases:
            data = (folder / f"{base:020}.index").read_bytes()
            entries += [base + offset for offset, _ in struct.iter_unpack(">II", data)]
        told = tracks.index_at(node, "orders-0", tracks.last)
        assert len(told) == len(entries)
        pieces = tracks.story.replica(node, "orders-0").pieces
        came = {offset: each.n for each in pieces for offset in range(each.base, each.end)}
        # Several batches that were copied in one write have their entry at the first of them.
        assert all(
            one <= other and came[one] == came[other]
            for one, other in zip(told, entries, strict=True)
        )
        same += sum(one == other for one, other in zip(told, entries, strict=True))
        checked += len(entries)
    assert checked > 15
    assert 2 * same > checked


def test_a_broker_that_is_down_keeps_what_it_had_synced(tracks: Tracks) -> None:
    (crash,) = [e.n for e in tracks.events() if e.kind is Kind.CRASH and e.node == "b1"]
    before = tracks.value("b1/orders-0/durable_end_offset", crash - 1)
    assert type(before) is int
    assert tracks.value("b1/orders-0/durable_end_offset", crash + 5) is None
    for n in (crash - 1, crash, crash + 5):
        (files,) = [f for f in view(tracks, n).files if (f.node, f.partition) == ("b1", "orders-0")]
        assert files.durable_end == before


def test_messages_are_under_way_from_sending_to_arrival(tracks: Tracks) -> None:
    flying: dict[int, str] = {}
    origin: dict[int, int] = {}
    for event in tracks.events():
        cause = next((n for n in event.cause if n in origin), 0)
        if event.kind is Kind.SEND:
            flying[event.n] = event.args["type"]
            origin[event.n] = event.n
        elif event.kind is Kind.TRANSMIT:
            origin[event.n] = origin[cause]
        elif event.kind in (Kind.DELIVER, Kind.DROP):
            del flying[origin[cause]]
        if event.n % 11 == 0:
            assert {m.n: m.type for m in tracks.messages.at(event.n)} == flying, event.n


def test_a_timer_is_there_from_its_cause_until_it_is_due(tracks: Tracks) -> None:
    due = [event for event in tracks.events() if event.kind is Kind.TIMER]
    assert due
    for event in due[:: max(1, len(due) // 50)]:
        before = [each for each in tracks.timers.at(event.n - 1) if each.due == event.n]
        assert [each.key for each in before] == [event.args["key"]]
        assert all(each.due != event.n for each in tracks.timers.at(event.n))


def test_expectations_over_time(tracks: Tracks) -> None:
    first, second = tracks.expects.values()
    assert first.judged is not None
    assert [first.state(n) for n in (1, first.judged)] == ["open", "met"]
    assert (second.form, second.verdict) == ("at_end", False)
    assert second.judged is not None
    assert [second.state(n) for n in (1, second.judged)] == ["open", "failed"]


@given(
    st.lists(st.tuples(st.integers(0, 40), st.none() | st.integers(0, 60)), max_size=40),
    st.integers(1, 200),
)
def test_lives_at_any_event(spans: list[tuple[int, int | None]], scale: int) -> None:
    lives: Lives[int] = Lives()
    kept = []
    for begin, length in sorted(spans, key=lambda each: each[0]):
        begin *= scale
        number = lives.add(begin, len(kept))
        end = FOREVER if length is None else begin + length * scale
        kept.append((begin, end))
        if length is not None:
            lives.end(number, end)
            lives.end(number, end + 1)
    for n in range(0, 100 * scale, max(1, scale // 2)):
        assert lives.at(n) == [i for i, (begin, end) in enumerate(kept) if begin <= n < end]


def test_lives_begin_in_order_and_cross_snapshots() -> None:
    lives: Lives[str] = Lives()
    lives.add(3, "long")
    lives.end(lives.add(SNAPSHOT_EVERY, "at the border"), SNAPSHOT_EVERY + 1)
    assert lives.at(2) == []
    assert lives.at(SNAPSHOT_EVERY) == ["long", "at the border"]
    assert lives.at(SNAPSHOT_EVERY + 1) == ["long"]
    assert lives.at(10 * SNAPSHOT_EVERY) == ["long"]
    with pytest.raises(ValueError, match="begins with event 2, the last one with 512"):
        lives.add(2, "late")


# What is missing ---------------------------------------------------------------------------------


def test_a_trace_cut_in_the_middle_of_a_line_says_so(run: Path, tmp_path: Path) -> None:
    whole = (run / "trace.jsonl").read_bytes()
    path = tmp_path / "cut.jsonl"
    path.write_bytes(whole[: len(whole) // 2])
    cut = Tracks.load(path)
    assert cut.last > 100
    assert cut.notices == [f"The trace was cut short behind event {cut.last}."]
    assert view(cut, cut.last).n == cut.last


def test_a_long_trace_is_shown_in_part(run: Path) -> None:
    part = Tracks.load(run / "trace.jsonl", events_max=300)
    whole = Tracks.load(run / "trace.jsonl")
    assert part.last == 300
    (notice,) = part.notices
    assert notice == f"Only the first 300 events of {whole.last} are shown: the trace is long."
    assert part.state(300) == whole.state(300)


def test_levels_say_what_they_lack(tmp_path: Path) -> None:
    for level, words in (
        ("digest", "keeps no events"),
        ("events", "does not keep the changes"),
    ):
        path = tmp_path / f"{level}.jsonl"
        run_scenario(parse_scenario(SCENARIO), path=path, level=level)
        found = Tracks.load(path)
        assert any(words in notice for notice in found.notices), found.notices


def test_a_trace_that_contradicts_itself_is_noticed(run: Path, tmp_path: Path) -> None:
    lines = (run / "trace.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "trace.jsonl"
    at = next(i for i, line in enumerate(lines) if "high_watermark" in line and i > 600)
    event = json.loads(lines[at])
    event["set"] = [[path_, 77, new] for path_, _, new in event["set"]]
    lines[at] = json.dumps(event, separators=(",", ":")) + "\n"
    path.write_text("".join(lines))
    (notice,) = Tracks.load(path).notices
    assert notice.startswith(f"The trace contradicts itself at event {event['n']}: ")
    assert "from 77" in notice


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "a trace begins with a header"),
        ("<html>\n", "1: "),
        ('{"leaderfall":2,"version":"9"}\n', "leaderfall"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "trace.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=words):
        Tracks.load(path)


# The plain form ----------------------------------------------------------------------------------


def test_the_plain_form_tells_the_same_states(tracks: Tracks) -> None:
    found = json.loads(json.dumps(plain(tracks)))
    strings = found["strings"]

    def at(series: list[list[Any]], n: int) -> Any:
        seen = [value for number, value in zip(*series, strict=True) if number <= n]
        return seen[-1] if seen else None

    assert len(found["events"]["t"]) == found["head"]["last"] == tracks.last
    for n in range(1, tracks.last + 1, 97):
        event = tracks.event(n)
        assert strings[found["events"]["kind"][n - 1]] == event.kind
        assert strings[found["events"]["node"][n - 1]] == event.node
        assert (found["events"]["cause"][n - 1] or []) == list(event.cause)
        changes = found["events"]["set"][n - 1] or []
        assert [strings[path] for path, _, _ in changes] == [path for path, _, _ in event.changes]
        state = {
            path: value
            for path, series in found["fields"].items()
            if (value := at(series, n)) is not None
        }
        assert state == json.loads(json.dumps(tracks.state(n)))
        for partition in found["partitions"]:
            now = next(
                (p for p in tracks.moment(n).partitions if p.name == partition["name"]), None
            )
            if now is None:
                continue
            assert at(partition["leader"], n) == (
                None if now.leader_epoch < 0 else [now.leader, now.leader_epoch]
            )
            for replica in partition["replicas"]:
                spans = [
                    span
                    for span in replica["pieces"]
                    if span[3] <= n and (span[4] is None or n < span[4])
                ]
                told = next((r for r in now.replicas if r.node == replica["node"]), None)
                count = 0 if told is None else sum(s.end - s.base for s in told.spans)
                assert sum(span[1] - span[0] for span in spans) == count
    assert found["chains"]
    assert {each["n"] for each in found["losses"]} <= {each["n"] for each in found["chains"]}


def test_strings_of_a_hostile_trace_are_only_data(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    hostile = "</script><b>\x1b[31m\u202e"
    trace = Trace("full", path=path, header=Header("0", hostile, hostile, 0, {}, (hostile,), []))
    for kind in Kind:
        args = dict.fromkeys(KINDS[kind].args, hostile) | {"note": hostile, hostile: hostile}
        trace.emit(0, hostile, kind, (), args)
        trace.emit(0, hostile, kind, (), {**args, "args": {hostile: hostile}})
    trace.close("passed")
    found = plain(Tracks.load(path))
    assert found["head"]["scenario"] == hostile
    texts = [found["strings"][each] for each in found["events"]["text"]]
    assert all(text.isprintable() for text in texts)


def test_fields_of_other_types_are_no_epochs_and_no_offsets(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    trace = Trace("full", path=path, header=Header("0", None, None, 0, {}, ("b1",), []))
    args = {"partition": "p-0", "base_offset": 0, "next_offset": 1, "leader_epoch": 0}
    epochs = ["x", 5, {"a": 1}, [[0, 0], [1], "12", [2, None], [3, 7]], None]
    ends = ["x", [1], True, 4, None]
    before: tuple[Any, Any] = (None, None)
    for n, now in enumerate(zip(epochs, ends, strict=True)):
        trace.emit(n, "b1", Kind.APPEND, (), args)
        paths = ("b1/p-0/epochs", "b1/p-0/durable_end_offset")
        trace.attach(n + 1, list(zip(paths, before, now, strict=True)))
        before = now
    trace.abandon()
    replica = plain(Tracks.load(path))["partitions"][0]["replicas"][0]
    assert replica["epochs"] == [[1, 2, 3, 4, 5], [None, None, None, [(0, 0), (3, 7)], None]]
    assert replica["durable_end"] == [[4], [4]]
