"""The log for ShiViz, read by its own expression, with the demands that ShiViz makes.

The twin of the clocks is a set: all events that happen before another, by causes and by node.
ShiViz itself demands that a node's clock is 1, 2, 3, ..., and that a clock names only known events.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.exports.selection import ExportError, Selection
from sim.exports.shiviz import NODES_MAX, PARSER, shiviz
from sim.present.story import Story
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from tests.sim import stories
from tests.sim.comparisons import HEADER
from tests.sim.exports.sources import exported, hostile, hostile_header
from tests.sim.traces import Raw, raws


class Line(NamedTuple):
    n: int
    host: str
    clock: dict[str, int]


def read(lines: list[str]) -> list[Line]:
    """As ShiViz does: the first line is the expression, the second the delimiter."""
    text = "\n".join(lines[2:]).strip()
    assert lines[1] == ""
    found = []
    end = 0
    for match in re.finditer(lines[0].replace("(?<", "(?P<"), text):
        assert text[end : match.start()].strip() == "", "text that is no event"
        end = match.end()
        found.append(Line(int(match["number"]), match["host"], json.loads(match["clock"])))
    assert text[end:].strip() == ""
    return found


def assert_taken_by_shiviz(log: list[Line]) -> None:
    own: dict[str, int] = {}
    for line in log:
        own[line.host] = own.get(line.host, 0) + 1
        assert line.clock[line.host] == own[line.host]
        for host, value in line.clock.items():
            assert 1 <= value <= own.get(host, 0), "it knows of an event that has not been"


def befores(events: list[Event]) -> list[set[int]]:
    """What happens before each event, by causes and by the order of its node; index 0 is unused."""
    found: list[set[int]] = [set()]
    last: dict[str, int] = {}
    for event in events:
        before: set[int] = set()
        for each in (*event.cause, *((last[event.node],) if event.node in last else ())):
            before |= found[each] | {each}
        found.append(before)
        last[event.node] = event.n
    return found


def is_before(a: Line, b: Line) -> bool:
    return b.clock.get(a.host, 0) >= a.clock[a.host]


def assert_clocks_are_causes(log: list[Line], events: list[Event], *, step: int = 1) -> None:
    before = befores(events)
    for a, b in combinations(log[::step], 2):
        assert is_before(a, b) == (a.n in before[b.n]), (a.n, b.n)
        assert not is_before(b, a)


def assert_log(log: list[Line], events: list[Event]) -> None:
    assert_taken_by_shiviz(log)
    assert_clocks_are_causes(log, events)


def _events(drawn: list[Raw]) -> list[Event]:
    return [Event(n, *raw[:5], tuple(raw[5])) for n, raw in enumerate(drawn, 1)]


@given(raws(max_size=25), st.data())
def test_clocks_tell_exactly_what_happens_before_what(
    drawn: list[Raw], data: st.DataObject
) -> None:
    events = _events(drawn)
    first = data.draw(st.integers(1, 10))
    last = data.draw(st.none() | st.integers(1, 25))
    nodes = tuple(data.draw(st.lists(st.sampled_from(["b1", "b2", "c1"]), max_size=2)))
    selection = Selection(first=first, last=last, nodes=nodes)
    lines, notices = exported(shiviz, events, HEADER, selection)
    log = read(lines)
    assert [each.n for each in log] == [
        each.n
        for each in events
        if first <= each.n <= (last or 99) and (not nodes or each.node in nodes)
    ]
    assert bool(log) == (notices == ())
    assert_taken_by_shiviz(log)
    assert_clocks_are_causes(log, events)


def test_a_real_run() -> None:
    events = list(stories.acks1().trace.events())
    lines, _ = exported(shiviz, events, HEADER)
    log = read(lines)
    assert lines[0] == PARSER
    assert [each.n for each in log] == [each.n for each in events]
    assert_taken_by_shiviz(log)
    assert_clocks_are_causes(log, events, step=7)


@pytest.mark.parametrize("change", [1, -1])
def test_a_planted_wrong_clock_is_noticed(change: int) -> None:
    events = list(stories.acks1().trace.events())
    lines, _ = exported(shiviz, events, HEADER)
    log = read(lines)[:400]
    at, host = next(
        (at, host)
        for at, line in enumerate(log)
        for host, value in line.clock.items()
        if at > 200 and host != line.host and value > 1
    )
    log[at].clock[host] += change
    with pytest.raises(AssertionError):
        assert_log(log, events)


def test_hostile_text_stays_within_its_line_and_hosts_are_names_that_javascript_can_have() -> None:
    lines, _ = exported(shiviz, hostile(), hostile_header())
    log = read(lines)
    assert len(log) == len(hostile())
    assert_taken_by_shiviz(log)
    assert_clocks_are_causes(log, hostile())
    hosts = {each.host for each in log}
    assert len(hosts) == len({event.node for event in hostile()})
    assert hosts.isdisjoint({"constructor", "__proto__", ""})


def test_too_many_nodes_are_refused_and_a_selection_helps() -> None:
    events = [Event(n, n, f"b{n}", Kind.START, (), {}) for n in range(1, NODES_MAX + 2)]
    story = Story(HEADER, events)
    with pytest.raises(ExportError, match=f"are of {NODES_MAX + 1} nodes"):
        shiviz(HEADER, events, story, Selection())
    assert len(read(list(shiviz(HEADER, events, story, Selection(first=2)).lines))) == NODES_MAX


@pytest.mark.slow
def test_a_hundred_thousand_events_are_too_many_for_shiviz_and_said_to_be() -> None:
    events = [
        Event(n, n, f"b{n % 9}", Kind.TIMER, (n - 5,) if n > 5 else (), {"key": "x"})
        for n in range(1, 100_001)
    ]
    story = Story(HEADER, events)
    made = shiviz(HEADER, events, story, Selection())
    assert sum(1 for _ in made.lines) == 200_002
    assert "ShiViz is slow" in made.notices[0]
