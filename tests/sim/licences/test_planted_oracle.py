"""The oracle itself is at fault: it forgets, or believes what a leader believes. Runs notice it.

Each fault is planted into the judge of a run that passes without it. The run must not pass then; a
wrong licence that nobody compares with the right one would not be enough.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sim.checks.brokers import BrokerWatch
from sim.checks.judge import Judge
from sim.checks.ledger import Ledger, Place
from sim.checks.licences import UNEXPLAINED
from sim.checks.ranges import Records, Span
from sim.checks.standing import Standing
from sim.running.agreement import OracleFault
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.model import Scenario
from sim.world import World
from tests.sim.running.scenarios import expect, scenario
from tests.sim.test_scenario_files import scenario_of

CLUSTER = """
brokers = 3
writeback = "off"

[cluster.config]
"broker.session.timeout.ms" = 2000
"broker.heartbeat.interval.ms" = 500
"request.timeout.ms" = 2000
"""
# b2 leads and is cut off from all but clients; the writer knows it since 1s, p1 asks b1.
DEPOSED = (
    'id = "alone"; at = "4s"; cut = { from = "b2", to = ["b1", "b3", "c1"], both = true }',
    'wait = "leader(\'orders-0\') == b1"; within = "4s"',
    'at = "9s"; produce = { to = "orders-0", values = ["z"] }',
    'at = "15s"; heal = "alone"',
    'wait = "same_log(\'orders-0\', b1, b2, b3)"; within = "20s"',
)
WRITER = """
[[workload]]
name = "writer"
kind = "producer"
topic = "orders-0"
rate = "5/m"
acks = "1"
start = "1s"
stop = "14s"
"""
# Two members have shut down uncleanly, the second one without its records.
LAST_KNOWN = (
    'at = "1s"; produce = { to = "orders-0", values = ["m"] }',
    'settle = "2s"',
    'crash = { node = "b3", how = "process" }',
    'wait = "fenced(b3)"',
    'crash = { node = "b1", how = "process" }',
    'wait = "fenced(b1)"',
    'crash = { node = "b2", how = "power" }',
    'wait = "fenced(b2)"',
    'start = "b1"',
    'wait = "not fenced(b1)"',
    'start = "b2"',
    "wait = \"leader('orders-0') == b2\"",
)
L0 = "allow = { L0 = 1 }"
TOPIC = """
[[topic]]
name = "orders"
replicas = [["b2", "b1", "b3"]]
config = { "min.insync.replicas" = 2 }
"""


def deposed(*expects: str) -> Scenario:
    more = WRITER + expect(*expects)
    return scenario(*DEPOSED, until="60s", cluster=CLUSTER, topic=TOPIC, more=more)


def last_known() -> Scenario:
    cluster = f"eligible_leader_replicas = true{CLUSTER}"
    more = expect("allow = { L2 = 1 }")
    return scenario(*LAST_KNOWN, until="60s", cluster=cluster, topic=TOPIC, more=more)


def forget_truncations(patch: pytest.MonkeyPatch) -> None:
    known = BrokerWatch._note_fate

    def note(
        self: BrokerWatch, place: Place, batches: Any, how: str, *rest: Any, **more: Any
    ) -> None:
        if how != "truncated":
            known(self, place, batches, how, *rest, **more)

    patch.setattr(BrokerWatch, "_note_fate", note)


def forget_shutdowns(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Standing, "note_unclean", lambda *_: None)


def believe_the_log_end(patch: pytest.MonkeyPatch) -> None:
    """What lies below the end that the replica tells is there."""

    def missing_at(self: Ledger, place: Place, records: Records) -> list[Span]:
        return records.missing_in((), max(place.start, place.end))

    patch.setattr(Ledger, "missing_at", missing_at)


def believe_the_high_watermark(patch: pytest.MonkeyPatch) -> None:
    """What a leader counts as committed is there, whatever its files hold."""

    def missing_at(self: Ledger, place: Place, records: Records) -> list[Span]:
        return records.missing_in((), max(place.start, place.high_watermark))

    patch.setattr(Ledger, "missing_at", missing_at)


def oracle_fault(known: Scenario, on_world: Callable[[World], None] | None = None) -> str:
    """The run has no verdict: why."""
    with pytest.raises(OracleFault, match="so this run has no verdict") as caught:
        run_scenario(known, on_world=on_world)
    return "\n".join(map(str, caught.value.disagreements))


def failed(result: Result) -> str:
    assert result.verdict.word == "failed"
    return "\n".join(result.verdict.reasons)


def licences(result: Result) -> dict[str, int]:
    return {each.licence: each.records for each in result.verdict.lost}


def test_without_a_planted_fault_both_stories_pass() -> None:
    for each, wanted in ((deposed(L0), {"L0": 1}), (last_known(), {"L2": 1})):
        result = run_scenario(each)
        assert result.verdict.word == "passed", result.verdict.reasons
        assert licences(result) == wanted


def test_a_truncation_that_the_ledger_forgets(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_truncations(monkeypatch)
    text = "orders-0, offsets 1 to 1 of epoch 0: b2 had them, and nothing says what became of them"
    assert oracle_fault(deposed(L0)) == text


def test_a_forgotten_truncation_of_a_leader_is_an_unexplained_loss(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """b3 cut m1, and leads: ILLEGAL. The file says that it breaks promises, and still fails."""
    right = run_scenario(scenario_of("kip101_lost_write", "high-watermark"))
    assert (right.verdict.word, licences(right)) == ("passed", {"ILLEGAL": 1})
    forget_truncations(monkeypatch)
    worlds: list[World] = []
    reasons = oracle_fault(scenario_of("kip101_lost_write", "high-watermark"), worlds.append)
    (loss,) = Judge.of(worlds[0]).facts.losses()
    assert (loss.licence, loss.records) == (UNEXPLAINED, 1)
    assert "a copy that is unaccounted" in loss.rule
    assert "b3 had them, and nothing says" in reasons


def test_a_standing_that_forgets_unclean_shutdowns(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_shutdowns(monkeypatch)
    reasons = failed(run_scenario(last_known()))
    assert (
        "1 record was lost, ILLEGAL: members of ISR and ELR shut down uncleanly 0 times" in reasons
    )


@pytest.mark.parametrize("plant", [believe_the_log_end, believe_the_high_watermark])
@pytest.mark.parametrize("expects", [(), (L0,)])
def test_a_judge_that_believes_the_leader(
    plant: Any, expects: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No loss is noted, so a file that allows none would pass."""
    plant(monkeypatch)
    text = "orders-0, offsets 1 to 1 of epoch 0: b1 leads without them, and no loss says so"
    assert text in oracle_fault(deposed(*expects))
