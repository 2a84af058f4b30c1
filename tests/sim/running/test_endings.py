"""How runs end: budgets, interrupts, defects, clusters that do not come up; how they repeat."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sim.running.interpreter import BOOT_US
from sim.running.scenario_run import Result, run_scenario
from sim.trace.kinds import Kind
from sim.trace.reader import TraceReader
from sim.world import World
from tests.sim.running.scenarios import TOPIC, expect, failed, new_trace, of_kind, ran, scenario

LIVELY = [
    'id = "lag"; at = "1s"; cut = { from = "leader:orders-0", to = "one", only = ["Fetch"] }',
    'produce = { to = "orders-0", count = 5, acks = "1" }',
    'at = "2s"; crash = { node = "isr:orders-0", how = "power", image = "drawn" }',
    'at = "3s"; start = ["b1", "b2", "b3"]',
    'at = "4s"; heal = "all"',
    'at = "20s"; produce = { to = "orders-0", count = 5, acks = "1", client = "p2" }',
]
LIVELY_MORE = (
    '[[fault]]\nid = "slow"\nkind = "slow"\ntarget = "minority"\nlink = "3ms"\nstart = "500ms"\n'
    "end = { when = \"acked('orders-0') > 2\" }\n"
    '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders-0"\nrate = 5\nacks = "1"\n'
    + expect("always = \"one_leader_per_epoch('orders-0')\"", 'at_end = "alive(b1)"')
)


def lively(**parts: object) -> Result:
    return ran(*LIVELY, until="22s", more=LIVELY_MORE, seed=11, **parts)


class Raises:
    """Raises an error at an entry of the world."""

    def __init__(self, error: BaseException, at_us: int) -> None:
        self._error, self._at_us = error, at_us

    def __call__(self, world: World) -> None:
        world.watchers.append(self._watch)

    def _watch(self, world: World) -> None:
        if world.now_us >= self._at_us:
            raise self._error


# Budgets -----------------------------------------------------------------------------------------


def test_a_run_that_cannot_end_says_what_it_waits_for() -> None:
    result = ran(
        'at = "1s"; wait = "leader(\'orders-0\') == b2"; within = "1h"',
        until="2h",
        events_max=2_000,
        more='[[fault]]\nid = "f"\nkind = "pause"\ntarget = "b1"\n'
        "start = { when = \"epoch('orders-0') == 7\" }\n"
        + expect(
            'at = "1h"; that = "alive(b1)"',
            'at_end = "alive(b1)"',
            'eventually = "alive(b2)"',
            'breaks = "hw-valid"',
            'from = "1h"; always = "alive(b1)"',
            'always = "alive(b2)"',
        ),
    )
    assert result.verdict.word == "inconclusive"
    assert result.verdict.exit_code == 3
    assert result.failure is not None
    assert result.failure.is_inconclusive
    (reason,) = result.verdict.reasons
    assert reason.startswith("2000 events are over at ")
    assert reason.endswith(
        "and the run still waits for step 1, leader('orders-0') == b2 does not hold: "
        "leader('orders-0') is b1; fault 'f', which has not begun; the end at 2h"
    )
    assert [each.holds for each in result.expectations] == [None, None, True, None, None, None]
    assert result.trace.footer is not None
    assert result.trace.footer.verdict == "inconclusive"


def test_what_is_wrong_by_the_end_of_the_budget_fails() -> None:
    result = ran(
        until="2h",
        events_max=2_000,
        more=expect('at = "1s"; that = "not alive(b1)"', 'at_end = "not alive(b1)"'),
    )
    assert result.verdict.word == "failed"
    assert result.verdict.reasons[1:] == ("expect 1 does not hold: not alive(b1)",)


def test_a_budget_that_ends_before_the_cluster_is_up() -> None:
    result = ran(events_max=20)
    assert result.verdict.word == "inconclusive"
    assert result.verdict.reasons[0].endswith("waits for the cluster to come up")
    assert result.end_us == 0


# Breaking off ------------------------------------------------------------------------------------


def test_an_interrupt_leaves_a_readable_trace(tmp_path: Path) -> None:
    path = new_trace(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        lively(path=path, on_world=Raises(KeyboardInterrupt(), BOOT_US + 3_000_000))
    trace = TraceReader(path)
    events = list(trace)
    assert trace.footer is None
    assert 2_900_000 < events[-1].t_us <= 3_000_100
    assert [each.n for each in events] == list(range(1, len(events) + 1))


def test_a_defect_leaves_a_readable_trace_and_says_where_it_was(tmp_path: Path) -> None:
    path = new_trace(tmp_path)
    with pytest.raises(AssertionError, match="planted") as caught:
        lively(path=path, on_world=Raises(AssertionError("planted"), BOOT_US + 3_000_000))
    events = list(TraceReader(path))
    assert caught.value.__notes__ == [f"scenario 'small', seed 11, behind event {events[-1].n}"]


def test_a_defect_in_what_the_trace_is_told_does_not_hide_the_first_error(tmp_path: Path) -> None:
    class Bad:
        def __call__(self, world: World) -> None:
            world.watchers.append(self._watch)

        def _watch(self, world: World) -> None:
            if world.now_us > BOOT_US:
                world.trace.emit(world.now_us, "world", Kind.NOTE, (), {"note": object()})
                raise AssertionError("planted")

    with pytest.raises(AssertionError, match="planted") as caught:
        lively(path=new_trace(tmp_path), on_world=Bad())
    assert caught.value.__notes__[1].startswith("the rest of the trace is not written: event")


# The boot ----------------------------------------------------------------------------------------


def test_a_topic_that_cannot_be_created_ends_the_run_clearly() -> None:
    topic = '[[topic]]\nname = "orders"\nreplicas = [["b1", "b2", "b3"]]\n'
    far = 'latency = { base = ["20s", "20s"] }'
    reason = failed(topic=topic, cluster=far, until="1s")
    assert reason.startswith(
        "the cluster did not come up in 10s: create topic orders is not done: c1"
    )


def test_time_0_is_behind_the_boot_and_topics_are_led_then() -> None:
    result = ran('id = "a"; pause = "leader:orders-0"', until="1s")
    assert result.failure is None
    (paused,) = of_kind(result, Kind.PAUSE)
    assert (paused.node, paused.t_us) == ("b1", 0)
    assert result.trace.events()[0].t_us == -BOOT_US
    assert result.end_us == 1_000_000


def test_several_topics_and_partitions_are_there() -> None:
    more = '[[topic]]\nname = "bills"\npartitions = 2\nreplication = 2\n'
    result = ran(
        until="1s",
        topic=TOPIC + more,
        more=expect("at = \"0s\"; that = \"leader('bills-0') == b1 and leader('bills-1') == b2\""),
    )
    assert result.verdict.word == "passed"


# The same again ----------------------------------------------------------------------------------


def test_level_files_and_paranoia_change_no_digest(tmp_path: Path) -> None:
    (tmp_path / "nodes").mkdir()
    first = lively()
    assert first.failure is None
    for parts in (
        {"level": "digest", "keeps_lines": False},
        {"level": "events"},
        {"root": tmp_path / "nodes", "path": new_trace(tmp_path)},
        {"is_paranoid": True},
    ):
        other = lively(**parts)
        assert other.digest == first.digest
        assert other.verdict.word == first.verdict.word
        assert [each.holds for each in other.expectations] == [
            each.holds for each in first.expectations
        ]
    assert all((tmp_path / "nodes" / name / "orders-0").is_dir() for name in ("b1", "b2", "b3"))


def test_another_seed_is_another_run() -> None:
    steps = ['at = "1s"; crash = { node = "one" }']
    assert ran(*steps, seed=1).digest != ran(*steps, seed=2).digest
    assert ran(*steps).seed == 0


def test_the_header_has_every_effective_option(tmp_path: Path) -> None:
    path = new_trace(tmp_path)
    ran(path=path, until="1s", cluster='config = { "replica.lag.time.max.ms" = 20000 }')
    header = TraceReader(path).header
    assert header.scenario == "small"
    assert header.options["truncation"] == "fetch"
    assert header.options["config"]["replica.lag.time.max.ms"] == 20_000
    assert header.options["config"]["broker.session.timeout.ms"] == 9_000
    assert header.nodes == ("c1", "b1", "b2", "b3")


_PROGRAM = """
from tests.sim.running.test_endings import lively
result = lively(keeps_lines=False, level="digest")
print(result.digest, result.verdict.word, result.trace.count, *result.verdict.reasons)
"""


def test_fresh_processes_with_other_hash_seeds_give_the_same() -> None:
    said = set()
    for hash_seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        root = Path(__file__).parents[3]
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            env=environment,
            cwd=root,
            check=True,
            capture_output=True,
            text=True,
        )
        said.add(done.stdout)
    first = lively()
    assert said == {
        f"{first.digest} {first.verdict.word} {first.trace.count} "
        f"{' '.join(first.verdict.reasons)}".rstrip()
        + "\n"
    }


def test_a_scenario_runs_as_often_as_one_likes() -> None:
    small = scenario('at = "1s"; produce = { to = "orders-0", count = 1 }')
    assert run_scenario(small).digest == run_scenario(small).digest
