"""Scenarios run whole: what their steps do, and what expressions see of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.present.history import How
from sim.present.story import Story
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.trace.kinds import Kind
from sim.trace.reader import TraceReader

HEAD = """
schema = 1
name = "x"
title = "x"
until = "40s"
[cluster]
brokers = 3
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
config = { "min.insync.replicas" = 1 }
"""
DIVERGED = """
[[step]]
at = "1s"
cut = { from = "b1", to = ["b2", "b3"], only = ["FetchResponse"] }
[[step]]
produce = { to = "orders-0", count = 3, acks = "1" }
[[step]]
crash = { node = "b1" }
[[step]]
at = "14s"
heal = "all"
[[step]]
start = "b1"
"""


def run_text(folder: Path, text: str) -> Result:
    path = folder / "x.toml"
    path.write_text(HEAD + text)
    scenario = effective(read_scenario(path), None, ())
    return run_scenario(scenario, keeps_lines=True, path=folder / "x.jsonl", version="x")


def test_a_broker_that_leaves_is_not_fenced(tmp_path: Path) -> None:
    leaving = """
[[step]]
at = "1s"
produce = { to = "orders-0", count = 20 }
[[step]]
id = "leave"
shutdown = "b1"
[[expect]]
after = "leave"
eventually = "not alive(b1)"
[[expect]]
always = "not fenced(b1)"
to = "1.1s"
"""
    result = run_text(tmp_path, leaving)
    assert [each.kind for each in result.trace.events()].count(Kind.LEAVE) > 0
    assert (result.verdict.word, result.verdict.reasons) == ("passed", ())


@pytest.mark.parametrize("point", ["fetch-received", "disk:truncate:.log"])
def test_what_a_failpoint_does_cites_the_step_that_armed_it(tmp_path: Path, point: str) -> None:
    die = f'[[step]]\nid = "die"\ncrash = {{ node = "b1", at_failpoint = "{point}" }}\n'
    events = run_text(tmp_path, DIVERGED + die).trace.events()
    step = next(each.n for each in events if each.args.get("id") == "die")
    crash = [each for each in events if each.kind is Kind.CRASH][-1]
    causes, seen = list(crash.cause), {crash.n}
    while causes:
        seen.add(causes[0])
        causes = [*causes[1:], *events[causes[0] - 1].cause]
    assert crash.n > step
    assert step in seen


def test_a_broker_that_dies_in_a_truncation_is_said_to_have_truncated(tmp_path: Path) -> None:
    die = """
[[step]]
crash = { node = "b1", at_failpoint = "disk:truncate:.log" }
[[step]]
at = "20s"
start = "b1"
[[expect]]
at_end = "truncated('orders-0', b1) == 3 and lost('acked') == 3"
[[expect]]
breaks = "acked-records-survive"
"""
    result = run_text(tmp_path, DIVERGED + die)
    assert (result.verdict.word, result.verdict.reasons) == ("passed", ())
    reader = TraceReader(tmp_path / "x.jsonl")
    story = Story(reader.header, reader)
    (cut,) = story.partition("orders-0").replicas["b1"].cuts
    assert (cut.how, cut.base, cut.end) == (How.TRUNCATED, 0, 3)


def test_a_consumer_is_no_replica(tmp_path: Path) -> None:
    read = """
[[step]]
at = "1s"
produce = { to = "orders-0", count = 3 }
[[step]]
consume = { from = "orders-0", count = 3 }
"""
    run_text(tmp_path, read)
    reader = TraceReader(tmp_path / "x.jsonl")
    replicas = Story(reader.header, reader).partition("orders-0").replicas
    assert {name: each.high_watermarks.last for name, each in replicas.items()} == dict.fromkeys(
        ("b1", "b2", "b3"), 3
    )


def test_compaction_that_is_turned_on_loses_nothing(tmp_path: Path) -> None:
    compact = """
[[step]]
at = "1s"
produce = { to = "orders-0", keys = ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"] }
[[step]]
at = "5s"
config = { topic = "orders", set = { "segment.bytes" = 200, "cleanup.policy" = "compact" } }
[[step]]
at = "6s"
produce = { to = "orders-0", keys = ["a", "b", "a", "b", "a", "b", "a", "b", "a", "b"] }
[[step]]
at = "30s"
crash = { node = "b1" }
[[expect]]
at_end = "lost('acked') == 0"
"""
    result = run_text(tmp_path, compact)
    assert [each.kind for each in result.trace.events()].count(Kind.COMPACT) > 0
    assert (result.verdict.word, result.verdict.reasons) == ("passed", ())
