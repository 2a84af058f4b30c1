"""The document for Perfetto: JSON, with the demands of its importer.

These are read off google/perfetto's ``json_trace_parser_impl.cc``: times are not negative, names
are strings, ids of flows are numbers, a flow binds to the slice on top of its thread, threads are
known by number alone, and slices of one thread do not overlap unless one holds the other.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.exports.perfetto import TIME_MAX_US, perfetto
from sim.exports.perfetto_tracks import counters
from sim.exports.selection import ExportError, Selection
from sim.present.moments import moment
from sim.present.story import Story
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from tests.sim import stories
from tests.sim.comparisons import HEADER
from tests.sim.exports.sources import exported, hostile, hostile_header
from tests.sim.traces import Raw, raws


def document(lines: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads("\n".join(lines))
    assert list(found) == ["displayTimeUnit", "traceEvents", "otherData"]
    return found


def assert_taken_by_perfetto(found: dict[str, Any]) -> None:
    threads: dict[int, tuple[int, str]] = {}
    processes: dict[int, str] = {}
    slices: dict[int, list[tuple[int, int]]] = {}
    for each in found["traceEvents"]:
        assert type(each["name"]) is str
        assert each["name"]
        assert 0 < each["pid"] < 1_000_000
        if each["ph"] == "M":
            if each["name"] == "process_name":
                assert each["pid"] not in processes
                processes[each["pid"]] = each["args"]["name"]
            else:
                assert each["tid"] not in threads
                threads[each["tid"]] = each["pid"], each["args"]["name"]
            continue
        assert 0 <= each["ts"] <= TIME_MAX_US
        assert processes[each["pid"]]
        assert threads[each["tid"]][0] == each["pid"]
        if each["ph"] == "X":
            assert each["dur"] >= 0
            slices.setdefault(each["tid"], []).append((each["ts"], each["ts"] + each["dur"]))
        else:
            assert each["ph"] in "iCstf"
    for spans in slices.values():
        stack: list[int] = []
        for begin, end in sorted(spans, key=lambda span: (span[0], -span[1])):
            while stack and stack[-1] <= begin:
                stack.pop()
            assert not stack or end <= stack[-1], "slices overlap"
            stack.append(end)


def assert_flows_are_paired(found: dict[str, Any]) -> dict[int, int]:
    """Flow: number of its end. Each stands right behind its slice, and has a start in front."""
    flows: dict[int, int] = {}
    before: dict[str, Any] = {}
    for each in found["traceEvents"]:
        if each["ph"] in "stf":
            assert before["ph"] == "X"
            assert [each[key] for key in ("pid", "tid", "ts")] == [
                before[key] for key in ("pid", "tid", "ts")
            ]
            assert (each["name"], each["cat"]) == ("message", "message")
            if each["ph"] == "s":
                assert each["id"] not in flows
                assert each["id"] == before["args"]["n"]
                flows[each["id"]] = 0
            else:
                assert each["id"] in flows
            if each["ph"] == "f":
                assert each["bp"] == "e"
                flows[each["id"]] = before["args"]["n"]
        before = each
    assert all(flows.values()), "a flow has no end"
    return flows


def _events(drawn: list[Raw]) -> list[Event]:
    return [Event(n, *raw[:5], tuple(raw[5])) for n, raw in enumerate(drawn, 1)]


@given(raws(max_size=25), st.integers(1, 10), st.none() | st.integers(1, 25))
def test_any_trace_is_taken(drawn: list[Raw], first: int, last: int | None) -> None:
    events = sorted(_events(drawn), key=lambda event: event.t_us)
    events = [event._replace(n=n, cause=()) for n, event in enumerate(events, 1)]
    lines, _ = exported(perfetto, events, HEADER, Selection(first=first, last=last))
    found = document(lines)
    assert_taken_by_perfetto(found)
    assert_flows_are_paired(found)


@pytest.mark.parametrize("story", [stories.acks1, stories.power_loss, stories.unclean])
def test_a_real_run_is_whole(story: Any) -> None:
    """It boots before time 0, as the runs of scenarios do."""
    events = [each._replace(t_us=each.t_us - 10_000_000) for each in story("full").trace.events()]
    lines, notices = exported(perfetto, events, HEADER)
    assert notices == ("all times are shifted by 10000000 us, to begin at 0",)
    found = document(lines)
    assert_taken_by_perfetto(found)
    flows = assert_flows_are_paired(found)
    points = [each for each in found["traceEvents"] if "t_us" in each.get("args", {})]
    assert [each["args"]["n"] for each in points] == [event.n for event in events]
    assert [each["args"]["t_us"] for each in points] == [event.t_us for event in events]
    shift_us = found["otherData"]["shift_us"]
    assert shift_us == 10_000_000
    assert all(each["ts"] == each["args"]["t_us"] + shift_us for each in points)
    delivered = {
        event.cause[0]: event.n
        for event in events
        if event.kind is Kind.DELIVER and events[event.cause[0] - 1].kind is Kind.SEND
    }
    assert delivered
    assert all(flows[sent] == end for sent, end in delivered.items())


def test_a_planted_flow_without_an_end_or_an_overlap_is_noticed() -> None:
    events = list(stories.acks1().trace.events())
    found = document(exported(perfetto, events, HEADER)[0])
    at = next(at for at, each in enumerate(found["traceEvents"]) if each["ph"] == "f")
    del found["traceEvents"][at]
    with pytest.raises(AssertionError):
        assert_flows_are_paired(found)
    found = document(exported(perfetto, events, HEADER)[0])
    roles = [each for each in found["traceEvents"] if each.get("cat") == "role"]
    threads = [each["tid"] for each in roles]
    twice = next(each for each in roles if threads.count(each["tid"]) > 1)
    twice["dur"] += 1
    with pytest.raises(AssertionError, match="overlap"):
        assert_taken_by_perfetto(found)


@pytest.mark.parametrize("story", [stories.acks1, stories.power_loss, stories.unclean])
def test_counters_and_slices_are_the_state_at_every_event(story: Any) -> None:
    events = list(story("full").trace.events())
    read = Story(HEADER, events)
    series: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for node, what, n, value in counters(read, Selection()):
        series.setdefault((node, what), []).append((n, value))
    assert series
    for n in range(1, len(events) + 1, 17):
        for partition in moment(read, n).partitions:
            for replica in partition.replicas:
                ends = series[replica.node, f"LEO {partition.name}"]
                known = [value for at, value in ends if at <= n]
                assert (known[-1] if known else 0) == replica.log_end, n
                if replica.high_watermark is not None:
                    marks = series[replica.node, f"HW {partition.name}"]
                    assert [value for at, value in marks if at <= n][-1] == replica.high_watermark


def test_a_part_begins_with_the_values_that_it_finds() -> None:
    events = list(stories.acks1("full").trace.events())
    read = Story(HEADER, events)
    middle = len(events) // 2
    now = {
        (replica.node, f"LEO {partition.name}"): replica.log_end
        for partition in moment(read, middle).partitions
        for replica in partition.replicas
    }
    first: dict[tuple[str, str], int] = {}
    for node, what, n, value in counters(read, Selection(first=middle)):
        assert n >= middle
        first.setdefault((node, what), value)
    assert now == {key: value for key, value in first.items() if key[1].startswith("LEO")}


def test_nodes_and_kinds_are_selected() -> None:
    events = list(stories.acks1().trace.events())
    selection = Selection(nodes=("b1",), kinds=(Kind.SEND, Kind.APPEND))
    found = document(exported(perfetto, events, HEADER, selection)[0])
    assert_taken_by_perfetto(found)
    assert assert_flows_are_paired(found) == {}
    points = [each["args"]["n"] for each in found["traceEvents"] if "t_us" in each.get("args", {})]
    assert points == [each.n for each in events if selection.has(each.n, each.node, each.kind)]


def test_hostile_text_and_huge_times() -> None:
    lines, _ = exported(perfetto, hostile(), hostile_header())
    found = document(lines)
    assert_taken_by_perfetto(found)
    assert_flows_are_paired(found)
    far = [Event(1, -5, "b1", Kind.START, (), {}), Event(2, TIME_MAX_US, "b1", Kind.STOP, (), {})]
    with pytest.raises(ExportError, match="from -5 to"):
        perfetto(HEADER, far, Story(HEADER, far), Selection())
    near = [far[0]._replace(t_us=0), far[1]]
    assert_taken_by_perfetto(document(exported(perfetto, near, HEADER)[0]))


def test_an_empty_trace_is_a_document() -> None:
    assert document(exported(perfetto, [], HEADER)[0])["traceEvents"] == []


@pytest.mark.slow
def test_a_hundred_thousand_events_are_no_trouble() -> None:
    events = []
    for n in range(1, 100_001):
        args = {"partition": f"o-{n % 9}", "base_offset": n, "next_offset": n + 1}
        events.append(Event(n, n, f"b{n % 9}", Kind.APPEND, (), args))
    story = Story(HEADER, events)
    assert sum(1 for _ in perfetto(HEADER, events, story, Selection()).lines) > 200_000
