"""Strategies: what they give, how it shrinks, how parts go together, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import pytest
from hypothesis import HealthCheck, Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.database import DirectoryBasedExampleDatabase

from sim.running.findings import examine
from sim.running.scenario_run import run_scenario
from sim.scenario.durations import duration_us
from sim.scenario.model import Scenario
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.strategies import cluster_configs, fault_plans, scenario_of, scenarios, workloads
from sim.swarm import ENVELOPES
from tests.sim.swarm import rules

T = TypeVar("T")

# Explaining would show other values than the smallest; a deadline has no place on a loaded machine.
QUICK = settings(
    phases=[Phase.generate, Phase.shrink],
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
FEW = settings(QUICK, max_examples=25)

OWN = """
schema = 1
name = "own"
until = "1s"
[cluster]
brokers = 3
[[topic]]
name = "orders"
partitions = 2
replication = 3
config = { "min.insync.replicas" = 2 }
[[workload]]
name = "w"
kind = "producer"
topic = "orders"
rate = 5
"""


def smallest(strategy: st.SearchStrategy[T], holds: Callable[[T], bool]) -> T:
    return find(strategy, holds, settings=QUICK)


# Whole scenarios ---------------------------------------------------------------------------------


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_the_simplest_scenario_is_one_broker_one_producer_and_no_fault(envelope: str) -> None:
    found = smallest(scenarios(envelope), lambda _: True)
    assert repr(found) == (
        "Scenario('drawn', seed 0: 1 broker; t1 on b1, min ISR 1; p1 writes t1-0 2/s acks=all)"
    )
    assert found.cluster.scheduler == "fifo"
    assert found.cluster.writeback is None
    assert (found.faults, found.steps, found.seed) == ((), (), 0)


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_cases_are_files_that_say_all(envelope: str) -> None:
    @FEW
    @given(scenarios(envelope))
    def check(scenario: Scenario) -> None:
        again = parse_scenario(scenario.text)
        assert again == scenario
        assert again.document == scenario.document
        if envelope == "recoverable":
            document = {"fault": [], "step": [], **scenario.document}
            assert [each for rule in rules.RULES for each in rule(document)] == []

    check()


@pytest.mark.parametrize(
    "kind", ["crash", "partition", "metadata-lag", "clock-step", "step reassign", "recreated topic"]
)
def test_each_kind_alone_shrinks_to_its_simplest(kind: str) -> None:
    found = smallest(scenarios("unrestricted", kinds=[kind], faults=(0, 6)), _has_one)
    assert len(found.faults) + len(found.steps) == (2 if kind == "recreated topic" else 1)
    assert len(found.workloads) == 1
    times = [each.start.at_us for each in found.faults] + [each.at_us for each in found.steps]
    assert times[0] == 100_000


def _has_one(scenario: Scenario) -> bool:
    return bool(scenario.faults or scenario.steps)


@pytest.mark.slow
def test_a_fault_in_the_middle_stays_alone() -> None:
    """What comes before and behind it goes, and it keeps what it needs."""

    def wanted(scenario: Scenario) -> bool:
        return any(
            each.KIND == "crash" and each.how == "power" and each.start.at_us >= 500_000  # type: ignore[attr-defined,operator]
            for each in scenario.faults
        )

    found = smallest(scenarios("unrestricted", kinds=["pause", "power", "clog"]), wanted)
    (fault,) = found.faults
    assert fault.start.at_us == 500_000
    assert found.cluster.brokers == 1


@pytest.mark.slow
def test_a_guard_that_is_off_is_found_and_the_case_is_small() -> None:
    """acks=all is answered at the append: it takes one follower, and no fault."""
    strategy = scenarios("recoverable", brokers=(1, 3), guards={"ack-waits-for-hw": False})

    def fails(scenario: Scenario) -> bool:
        found = examine(scenario, level="digest", is_strict=True)
        return ("invariant", "ack-honours-min-isr") in found.identities

    found = smallest(strategy, fails)
    assert found.cluster.guards == {"ack-waits-for-hw": False}
    assert (len(found.faults), len(found.steps), len(found.workloads)) == (0, 0, 1)
    assert found.cluster.brokers == 2
    assert found.workloads[0].interval_us == 500_000
    # And it replays from its text alone.
    assert fails(parse_scenario(found.text))


def test_the_same_cases_come_when_hypothesis_is_derandomized() -> None:
    def texts() -> list[str]:
        found = []

        @FEW
        @given(scenarios())
        def collect(scenario: Scenario) -> None:
            found.append(scenario.text)

        collect()
        return found

    assert texts() == texts()


@pytest.mark.slow
def test_a_database_keeps_a_failing_case(tmp_path: Any) -> None:
    seen: list[str] = []

    @settings(
        QUICK,
        phases=[Phase.reuse, Phase.generate, Phase.shrink],
        derandomize=False,
        database=DirectoryBasedExampleDatabase(tmp_path),
    )
    @given(scenarios("unrestricted", kinds=["crash"], faults=(0, 3)))
    def fails(scenario: Scenario) -> None:
        seen.append(scenario.text)
        assert not scenario.faults

    with pytest.raises(AssertionError):
        fails()
    last = seen[-1]
    seen.clear()
    with pytest.raises(AssertionError):
        fails()
    assert seen[0] == last


# Parts -------------------------------------------------------------------------------------------


@FEW
@given(st.data())
def test_parts_go_together(data: st.DataObject) -> None:
    cluster = data.draw(cluster_configs(brokers=(2, 4)))
    clients = data.draw(workloads(cluster, lasts="1s"))
    faults = data.draw(fault_plans(of=cluster | clients, lasts="1s"))
    scenario = scenario_of(cluster, clients, faults, name="mine", seed=7, liveness={})
    assert (scenario.name, scenario.seed) == ("mine", 7)
    # A sequence takes the time that it needs.
    assert scenario.until_us == duration_us(faults["until"]) >= 1_600_000
    assert scenario.when_impossible == "skip"
    assert scenario.liveness is not None
    document = {"fault": [], "step": [], **scenario.document}
    assert [each for rule in rules.RULES for each in rule(document)] == []


def test_single_faults_take_the_time_that_was_asked_for() -> None:
    @FEW
    @given(fault_plans(faults=(1, 4), kinds=["pause", "clog", "crash"], lasts="1s"))
    def check(plan: dict[str, Any]) -> None:
        assert plan["until"] == "1600ms"

    check()


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_faults_strike_a_scenario_of_the_users_own(envelope: str) -> None:
    own = parse_scenario(OWN)

    @FEW
    @given(fault_plans(envelope, of=own, faults=(1, 4)))
    def check(plan: dict[str, Any]) -> None:
        scenario = scenario_of(own, plan)
        assert scenario.topics == own.topics
        # A sequence takes the time that it needs.
        assert scenario.until_us == max(own.until_us, duration_us(plan["until"])) >= 2_600_000

    check()


def test_parts_without_a_cluster_are_for_a_plain_one() -> None:
    plan = smallest(fault_plans(faults=1, kinds=["pause"]), lambda _: True)
    clients = smallest(workloads(), lambda _: True)
    scenario = scenario_of({"topic": [{"name": "t1"}]}, clients, plan)
    assert repr(scenario) == (
        "Scenario('drawn', seed 0: 3 brokers; t1 on 1 partitions; p1 writes t1-0 2/s acks=all; "
        "pause b1 at 100ms to 200ms)"
    )
    assert run_scenario(scenario, level="digest").verdict.word == "passed"


def test_steps_of_several_tables_stand_in_the_order_of_their_times() -> None:
    first = {"until": "2s", "step": [{"at": "900ms", "flush": "b1"}, {"at": "1s", "flush": "b2"}]}
    second = {"until": "1s", "step": [{"at": "950ms", "flush": "b3"}]}
    scenario = scenario_of({"topic": [{"name": "t1"}]}, first, second)
    assert [each.at_us for each in scenario.steps] == [900_000, 950_000, 1_000_000]
    assert scenario.until_us == 2_000_000
    with pytest.raises(ValueError, match="need times, this one has no at"):
        scenario_of(first, {"step": [{"flush": "b3"}]})


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: scenarios("any"), "envelope is 'any', allowed are"),
        (lambda: scenarios(guards={"fetch": False}), "there is no guard 'fetch'"),
        (lambda: scenarios(brokers=(0, 2)), r"brokers is \(0, 2\), allowed"),
        (lambda: cluster_configs(brokers=101), r"brokers is \(101, 101\), allowed"),
        (lambda: fault_plans(kinds=["crsh"]), "there is no kind 'crsh'"),
        (lambda: fault_plans(lasts="2"), "lasts is '2'"),
        (lambda: fault_plans(lasts="10ms"), "lasts is '10ms', allowed is 500ms or more"),
        (lambda: workloads({"cluster": {}}), "there is no topic"),
        (lambda: workloads({"topic": 5}), "topic is 5, allowed is a list of tables"),
        (lambda: workloads({"topic": ["t"]}), "a topic is 't', allowed is a table"),
        (lambda: workloads({"cluster": 5, "topic": [{"name": "t"}]}), "cluster is 5, allowed"),
        (
            lambda: workloads({"cluster": {"brokers": "3"}, "topic": [{"name": "t"}]}),
            "brokers is '3', allowed is 1..100",
        ),
        (lambda: fault_plans(of=cast("Any", "t")), "tables are 't', allowed"),
        (lambda: scenarios(kinds=cast("Any", 5)), "kinds is 5, allowed is a list"),
        (lambda: scenarios(guards=cast("Any", ["hw-freeze"])), "guards is .'hw-freeze'., allowed"),
        (lambda: scenario_of(cast("Any", 5)), "tables are 5, allowed"),
        (lambda: scenario_of({"until": 5}, {"until": "3s"}), "until is 5: 5 is no duration"),
        (lambda: scenario_of({"step": [5]}, {"step": [5]}), "a step is 5, allowed is a table"),
        (lambda: scenario_of(liveness=None), "a scenario file cannot say None"),
        (lambda: scenario_of(cast("Any", {1: 2})), "there is a key 1 in a scenario"),
        (
            lambda: fault_plans(
                of={
                    "topic": [
                        {"name": "t", "config": {"unclean.leader.election.enable": "true"}},
                    ]
                }
            ),
            "t allows unclean election",
        ),
    ],
)
def test_bad_arguments_are_refused_at_once(call: Callable[[], object], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        call()


def test_parts_that_do_not_fit_are_refused_with_the_place() -> None:
    with pytest.raises(ScenarioError, match="there is no broker"):
        scenario_of({"topic": [{"name": "t", "replicas": [["b9"]]}]})
    with pytest.raises(ScenarioError, match='"step" is 5, not a list of tables'):
        scenario_of({"step": 5})
    with pytest.raises(ScenarioError, match='"fault" is a table, not a list of tables'):
        scenario_of({"fault": {"kind": "cut"}})
