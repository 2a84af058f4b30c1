"""Whole runs: what recovers does so in time, what may not is licensed, and the rest fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster.fetch_state import FetchState
from sim.liveness.judging import longest_timeout_us
from sim.liveness.outcome import Outcome
from sim.liveness.twins import fault_free
from sim.running.interpreter import BOOT_US
from sim.timeline import EventClass
from sim.world import World
from tests.sim.liveness.small import MIN_TWO, WRITER, outcome, ran
from tests.sim.running import scenarios
from tests.sim.running.scenarios import fault, scenario

SECOND_US = 1_000_000
PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 10 }'
ALL_DOWN = 'at = "3s"; crash = { node = "all" }'
DRAWN = {"core": "drawn"}


def test_a_calm_run_has_nothing_to_recover_from() -> None:
    found = outcome(PRODUCE)
    assert found.word == "converged"
    assert found.took_us <= 200_000
    assert found.rest_us <= SECOND_US
    assert not found.violations
    assert not found.wrong


@pytest.mark.parametrize(
    "steps",
    [
        (ALL_DOWN,),
        ('at = "3s"; crash = { node = "b1", how = "power" }',),
        ('at = "3s"; crash = { node = "c1" }',),
        ('at = "3s"; pause = { node = "b1" }',),
        ('at = "3s"; shutdown = { node = "b2" }',),
        ('at = "3s"; partition = [["b1"], ["b2", "b3", "c1"]]',),
        ('at = "3s"; cut = { from = "b1", to = ["b2", "b3"] }',),
        ('at = "3s"; slow = { node = "b2", link = "2s" }',),
        ('at = "3s"; fill = { node = "b2", free = 100 }',),
        (
            'at = "3s"; crash = { node = "c1" }',
            'at = "4s"; crash = { node = "b1", how = "power" }',
        ),
    ],
)
def test_everything_comes_back_once_its_faults_are_over(steps: tuple[str, ...]) -> None:
    found = outcome(PRODUCE, *steps, until="25s", more=WRITER)
    assert found.word == "converged", found.lines()
    assert found.took_us < 20 * SECOND_US


@pytest.mark.parametrize(
    "line",
    [
        'kind = "crash-loop"; id = "f"; target = "b1"; start = "2s"; calls = [3, 3, 3, 3, 3, 3]',
        'kind = "clock-freeze"; id = "f"; target = "b1"; start = "2s"; also_mono = true',
        'kind = "clock-drift"; id = "f"; target = "c1"; start = "2s"; mono_ppm = 900000',
        'kind = "loss"; id = "f"; target = "b1"; start = "2s"; ppm = 300000',
        'kind = "fsync-fail"; id = "f"; target = "b1"; start = "2s"',
    ],
)
def test_faults_beside_the_steps_end_too(line: str) -> None:
    found = outcome(PRODUCE, until="12s", more=WRITER + fault(line))
    assert found.word == "converged", found.lines()


def test_a_fault_that_would_begin_later_does_not() -> None:
    start = "{ when = \"leo('orders-0') > 10\" }"
    late = fault(f'kind = "crash"; id = "f"; target = "b1"; start = {start}')
    found = outcome(PRODUCE, until="5s", more=late)
    assert found.word == "converged"
    assert found.took_us < SECOND_US


def test_a_fault_outside_the_core_does_not_end_by_its_time() -> None:
    lines = 'kind = "pause"; id = "f"; target = ["b2", "b3"]; start = "2s"; end = "20s"'
    words = {
        seed: outcome(PRODUCE, until="15s", more=fault(lines), liveness=DRAWN, seed=seed)
        for seed in range(6)
    }
    for found in words.values():
        is_short = not {"b2", "b3"} & set(found.core)
        assert found.word == ("unavailable" if is_short else "converged"), found.lines()
    assert {found.word for found in words.values()} == {"unavailable", "converged"}


def test_the_run_itself_does_not_change() -> None:
    steps = (PRODUCE, 'at = "3s"; crash = { node = "b1" }')
    plain = scenarios.ran(*steps, topic=MIN_TWO, until="6s", more=WRITER)
    for liveness in ({}, DRAWN, {"metastability": True}):
        live = ran(*steps, until="6s", more=WRITER, liveness=liveness)
        assert live.digest == plain.digest
        assert live.trace.count == plain.trace.count
        assert live.end_us == plain.end_us


def test_the_same_run_gives_the_same_outcome_with_real_files_too(tmp_path: Path) -> None:
    steps = (PRODUCE, 'at = "3s"; crash = { node = "b1", how = "power", image = "drawn" }')
    found = [
        outcome(*steps, until="6s", liveness=DRAWN, seed=5, run={"root": root, "level": level})
        for root, level in ((None, "full"), (None, "digest"), (tmp_path, "full"))
    ]
    assert found[0].plain() == found[1].plain() == found[2].plain()


# May not recover -------------------------------------------------------------------------------


def test_too_few_in_the_core_for_writes_is_licensed_with_who_is_missing() -> None:
    found = outcome(PRODUCE, ALL_DOWN, until="25s", liveness=DRAWN, seed=0)
    assert found.core == ("c1", "b1")
    (proof,) = found.proofs
    assert proof.kind == "min-isr-unreachable"
    assert [each.text for each in proof.culprits] == ["b2 ended (process)", "b3 ended (process)"]
    assert all(each.event for each in proof.culprits)
    assert found.word == "unavailable"
    assert not found.violations


def test_the_only_copy_that_is_damaged_is_licensed_with_the_damage() -> None:
    steps = (
        PRODUCE,
        'at = "2.5s"; flush = { node = "all" }',
        ALL_DOWN,
        (
            'id = "rot"; at = "5s"; corrupt = { node = "b1", partition = "orders-0", how = "flip", '
            "offset = 2 }"
        ),
        'at = "8s"; start = { node = "all" }',
    )
    result = ran(*steps, until="10s", run={"keeps_lines": True})
    found = result.liveness
    assert found is not None
    (proof,) = found.proofs
    assert (proof.kind, proof.partition) == ("no-electable", "orders-0")
    event = next(each for each in result.trace.events() if each.n == proof.culprits[0].event)
    assert (event.node, event.args["fault"]) == ("b1", "rot")


def test_disks_that_are_full_of_live_data_are_licensed() -> None:
    found = outcome(PRODUCE, until="10s", more=WRITER, cluster="disk = { capacity = 9000 }")
    assert found.word == "unavailable"
    assert {each.kind for each in found.proofs} >= {"cannot-live"}
    assert "for want of room" in found.lines()[0]
    assert all(each.culprits[0].event for each in found.proofs)


def test_a_replica_that_never_comes_is_licensed() -> None:
    steps = (
        PRODUCE,
        'at = "3s"; crash = { node = "b4" }',
        'at = "3.5s"; reassign = { partition = "orders-0", replicas = ["b1", "b2", "b4"] }',
    )
    found = outcome(*steps, until="5s", cluster="brokers = 4", liveness=DRAWN, seed=1)
    assert [each.kind for each in found.proofs] == ["reassignment-stuck"]
    healed = outcome(*steps, until="5s", cluster="brokers = 4")
    assert healed.word == "converged"


def test_a_demand_has_two_sides() -> None:
    demand = {"core": "drawn", "demand": "unavailable"}
    found = ran(PRODUCE, ALL_DOWN, until="25s", liveness=demand, seed=0)
    assert found.verdict.word == "passed"
    found = ran(PRODUCE, liveness=demand)
    assert found.verdict.word == "failed"
    assert found.verdict.exit_code == 1
    assert found.verdict.reasons == (
        "liveness: demanded is a proof that the cluster may not recover, and it converged",
    )


# Failures --------------------------------------------------------------------------------------


FROZEN_US = BOOT_US + 11 * SECOND_US


class Freezing:
    """Behind the run somebody takes the fetcher of b3 for failed, and nobody tells it better."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.timeline.at(FROZEN_US, EventClass.FAULT, "freeze", self.freeze)

    def freeze(self) -> None:
        process = self.world.host("b3").process
        assert process is not None
        machine: Any = process.machine
        for partition in machine.core.replicas:
            machine._fetchers.fetch_of(partition).state = FetchState.FAILED


def stuck() -> Any:
    result = ran(PRODUCE, until="10s", more=WRITER, run={"on_world": Freezing})
    return result, result.liveness


def test_what_could_come_and_does_not_fails_the_run_with_the_chain() -> None:
    result, live = stuck()
    assert live.word == "stuck"
    assert result.verdict.word == "failed"
    assert result.verdict.reasons == ("progress was violated",)
    (violation,) = live.violations
    assert (violation.check, violation.kind, violation.partition) == (
        "progress",
        "stuck",
        "orders-0",
    )
    assert "b3" in violation.detail
    assert violation.detail.endswith("whose fetcher is failed")
    assert live.chains == (violation.detail,)


def test_it_is_given_all_the_time_that_there_is() -> None:
    result, live = stuck()
    assert live.within_us == 60 * SECOND_US + 30 * SECOND_US
    healed_us = result.end_us + BOOT_US
    # The bound, and one session for the epochs.
    assert live.ended_us - healed_us == pytest.approx(live.within_us + 9 * SECOND_US, abs=200_000)


def test_a_failure_may_be_expected() -> None:
    expects = scenarios.expect('breaks = "progress"')
    result = ran(PRODUCE, until="10s", more=WRITER + expects, run={"on_world": Freezing})
    assert result.verdict.word == "passed", result.verdict.reasons
    result = ran(PRODUCE, until="10s", more=WRITER + expects)
    assert result.verdict.reasons == ("breaks: progress was not violated",)


def test_a_run_that_ended_early_is_not_asked() -> None:
    result = ran('at = "1s"; wait = "leo(\'orders-0\') == 5"; within = "1s"')
    assert result.failure is not None
    assert result.liveness is None


def test_a_budget_that_ends_is_no_failure() -> None:
    calm = ran(PRODUCE, until="2s")
    run = {"events_max": calm.trace.count + 10, "on_world": Freezing}
    result = ran(PRODUCE, until="2s", run=run)
    assert result.liveness is not None
    assert result.liveness.word == "inconclusive"
    assert not result.liveness.violations
    assert (result.verdict.word, result.verdict.exit_code) == ("inconclusive", 3)


# The time-out and the twin ---------------------------------------------------------------------


def test_the_bound_has_the_longest_time_out_that_recovery_may_wait_for() -> None:
    worlds: list[World] = []
    ran(PRODUCE, run={"on_world": worlds.append})
    assert longest_timeout_us(worlds[0]) == 30 * SECOND_US
    unclean = MIN_TWO.replace("2 }", '2, "unclean.leader.election.enable" = true }')
    ran(PRODUCE, topic=unclean, run={"on_world": worlds.append})
    assert longest_timeout_us(worlds[1]) == 300 * SECOND_US


def test_the_twin_has_no_faults_and_no_steps_that_disturb() -> None:
    found = fault_free(
        scenario(
            'id = "a"; ' + PRODUCE,
            'id = "kill"; at = "2s"; crash = { node = "b1" }',
            'after = "kill"; produce = { to = "orders-0", count = 3 }',
            "wait = \"leader('orders-0') == b2\"",
            'start = "b1"',
            'settle = "3s"',
            more=fault('kind = "pause"; id = "f"; target = "b2"; start = "2s"')
            + scenarios.expect("at_end = \"leo('orders-0') == 13\""),
        )
    )
    assert [each.action.NAME for each in found.steps] == ["produce", "produce", "settle"]
    assert [each.number for each in found.steps] == [1, 2, 3]
    assert [each.after for each in found.steps] == [None, None, None]
    assert (found.faults, found.expects) == ((), ())


def test_lines_say_what_came_of_it() -> None:
    found: Outcome = outcome(PRODUCE, ALL_DOWN, until="5s")
    assert found.lines() == [
        "converged 10.2 s behind the end of all faults; isr-complete came last"
    ]
    assert found.plain()["outcome"] == "converged"


# Losses ------------------------------------------------------------------------------------------

UNHEARD = 'at = "2s"; cut = { from = ["b2", "b3"], to = "b1" }'
ONLY_THERE = 'at = "3s"; produce = { to = "orders-0", count = 3, acks = "1" }'
POWER = 'at = "2s"; crash = { node = "all", how = "power" }'


def test_what_is_lost_behind_the_end_of_the_run_counts_as_lost_in_it() -> None:
    steps = UNHEARD, ONLY_THERE, 'at = "4s"; crash = { node = "b1" }'
    result = ran(*steps, until="4200ms")
    assert result.verdict.word == "failed"
    (reason,) = result.verdict.reasons
    assert reason.startswith("3 records were lost under L0")
    assert result.liveness is not None
    ((loss, records, kinds),) = result.liveness.losses
    assert (loss.licence, loss.leader, records, kinds) == ("L0", "b2", 3, ("acked",))
    assert loss.event > result.trace.count
    assert result.liveness.plain()["losses"][0]["licence"] == "L0"
    assert "3 records of orders-0 lost, L0" in result.liveness.lines()[-1]
    allowed = "[[expect]]\nallow = { L0 = 3 }"
    assert ran(*steps, until="4200ms", more=allowed).verdict.word == "passed"


@pytest.mark.parametrize("until", ["2500ms", "30s"])
def test_what_the_run_has_lost_is_not_lost_a_second_time_behind_it(until: str) -> None:
    allowed = "[[expect]]\nallow = { L2 = 10 }"
    result = ran(PRODUCE, POWER, until=until, more=allowed)
    assert result.verdict.word == "passed", result.verdict.reasons
    assert result.liveness is not None
    assert result.liveness.losses == ()


# Backlogs ----------------------------------------------------------------------------------------

SYNCED = """
[[topic]]
name = "orders"
replicas = [["b1", "b2"]]
config = { "flush.messages" = 1, "min.insync.replicas" = 1, "segment.bytes" = 200 }
"""
SLOW_DISKS = 'disk = { fsync = ["200ms", "200ms"] }'
FLOOD = WRITER.replace("rate = 10", 'rate = 20\nacks = "1"')


def test_a_backlog_behind_slow_disks_is_waited_for_while_it_gets_less() -> None:
    found = outcome(
        'at = "1s"; crash = { node = "b2" }',
        topic=SYNCED,
        cluster=SLOW_DISKS,
        until="40s",
        more=FLOOD,
        liveness={"within_us": 5 * SECOND_US},
    )
    assert found.word == "converged", found.lines()
    assert found.took_us > found.within_us
    assert found.rest_us == 0


@pytest.mark.parametrize("what", ['link = "600s"', 'disk = "600s"'])
def test_what_a_fault_has_put_off_for_long_is_waited_for(what: str) -> None:
    slow = f'at = "3s"; slow = {{ node = "b2", {what} }}'
    found = outcome(PRODUCE, slow, until="25s", more=WRITER)
    assert found.word == "converged", found.lines()
    assert found.took_us > found.within_us
