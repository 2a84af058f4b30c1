"""Livelock is seen with a guard off, or messages that are made useless, and never otherwise."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from cluster.message import Message
from cluster.messages_data import FetchResponse
from sim.checks import livelock
from sim.checks.violations import Violation
from sim.liveness.outcome import Outcome
from sim.running.scenario_run import Result
from tests.sim.checks.judged import SECOND_US, Stage
from tests.sim.liveness.small import ran

TWO = """
[[topic]]
name = "orders"
replicas = [["b2", "b1"]]
config = { "unclean.leader.election.enable" = true }
"""
B_10 = (
    'at = "1s"; produce = { to = "orders-0", count = 10, batch = 10 }',
    'settle = "3s"',
    'at = "5s"; crash = { node = "b2" }',
    "wait = \"leader('orders-0') == b1\"",
    'produce = { to = "orders-0", values = ["tail"], acks = "1", client = "p2" }',
    'crash = { node = "b1" }',
    'start = "b2"',
    "wait = \"leader('orders-0') == b2 and hw('orders-0', b2) == 10\"",
    'crash = { node = "b2" }',
    'start = "b1"',
    "wait = \"leader('orders-0') == b1\"",
    'start = "b2"',
)
"""HAZARDS B-10: b2's epoch without records stands at the end of its log, below b1's tail."""


def play_b10(*, is_on: bool, mode: str = "fetch") -> Result:
    guard = f"cut-epochs-at-end = {str(is_on).lower()}"
    cluster = f'brokers = 2\ntruncation = "{mode}"\nguards = {{ {guard} }}'
    return ran(*B_10, topic=TWO, cluster=cluster, until="46s", seed=0)


def found_in(result: Result) -> list[Violation]:
    return [
        each.first
        for each in result.verdict.broken
        if each.first is not None and each.first.kind == "livelock"
    ]


@pytest.fixture(scope="module")
def without() -> Result:
    return play_b10(is_on=False)


def test_b10_turns_in_circles_without_its_guard(without: Result) -> None:
    (found,) = found_in(without)
    assert found.check == "progress"
    assert found.partition == "orders-0"
    assert "b2 cuts its log from 10 to 10 for the 5th time" in found.detail
    # Once there was a reason to cut; that it is the same again is seen at once.
    assert found.event - found.evidence["first"] < 100


def test_b10_is_not_mended_by_an_end_of_all_faults(without: Result) -> None:
    live: Outcome | None = without.liveness
    assert live is not None
    assert live.word == "stuck"
    assert live.took_us < 5 * SECOND_US
    assert (
        "b2 (out of sync, log end 10), which cuts its log again and again since #"
        in (live.chains[0])
    )


@pytest.mark.parametrize("mode", ["fetch", "kip-279"])
def test_b10_is_silent_with_its_guard(mode: str) -> None:
    result = play_b10(is_on=True, mode=mode)
    assert found_in(result) == []
    assert result.liveness is not None
    assert result.liveness.word == "converged"


def useless(stage: Stage, **values: Any) -> None:
    """What b3 gets of its leader has no records, though there are some."""

    def tamper(node: str, src: str, message: Message) -> Message:
        if node == "b3" and isinstance(message, FetchResponse):
            parts = tuple(each._replace(records=b"", **values) for each in message.partitions)
            return evolve(message, partitions=parts)
        return message

    stage.world.tamper = tamper


def livelocks(stage: Stage) -> list[Violation]:
    return [each for each in stage.judge.violations if each.kind == "livelock"]


def test_fetches_that_get_nothing_at_full_speed_are_seen() -> None:
    stage = Stage()
    useless(stage, high_watermark=5)
    stage.cluster.produce("orders", 3, acks=1, client="p2").wait()
    stage.world.run_for(3 * SECOND_US)
    (found,) = livelocks(stage)
    assert found.evidence["node"] == "b3"
    assert f"b3 has taken {livelock.ANSWERS_MAX} fetch responses of b1" in found.detail
    assert livelock.count(stage.judge.scene) > 1


def test_an_idle_cluster_fetches_at_its_leisure() -> None:
    stage = Stage()
    stage.world.run_for(120 * SECOND_US)
    assert livelocks(stage) == []


def test_a_busy_cluster_gets_on() -> None:
    stage = Stage()
    for _ in range(200):
        stage.cluster.produce("orders", 1)
        stage.world.run_for(SECOND_US // 200)
    assert livelocks(stage) == []


def test_a_follower_that_rests_behind_an_error_is_no_livelock() -> None:
    stage = Stage()
    stage.world.crash("b1")
    for _ in range(20):
        stage.world.run_for(6 * SECOND_US)
    assert livelocks(stage) == []


def test_the_count_begins_anew_with_anything_new() -> None:
    stage = Stage()
    place = next(iter(stage.judge.scene.ledgers.values())).places["b3"]
    ledger = next(iter(stage.judge.scene.ledgers.values()))
    args = {"offset": 5, "log_end": 5, "leader_epoch": 0, "end_offset": 5}
    for at in range(3 * livelock.TRUNCATIONS_MAX):
        # Every fourth cut is another one.
        changed = args | ({"end_offset": 4} if at % 4 == 3 else {})
        livelock.note_truncation(stage.judge.scene, ledger, place, changed, 1)
    assert livelocks(stage) == []
    for _ in range(livelock.TRUNCATIONS_MAX):
        livelock.note_truncation(stage.judge.scene, ledger, place, args, 1)
    assert len(livelocks(stage)) == 1
    assert livelock.circles(stage.judge.scene, "orders-0", "b3") == 1
