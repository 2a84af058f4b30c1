"""What operators do to a cluster (FAULTS C.2 and C.4): each step's effect, and none without it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest
from attrs import field, frozen

from sim.running.scenario_run import Result
from sim.trace.kinds import Kind
from tests.sim.running.scenarios import SECOND_US, TOPIC, expect, failed, of_kind, passed, ran

FEW = 'at = "1s"; produce = { to = "orders-0", count = 5, acks = "1" }'
SETTLE = 'settle = "5s"'


@frozen
class Case:
    """Steps, one more that an operator takes, and a question: yes with it, no without."""

    operates: str
    shows: Callable[[Result], bool]
    before: tuple[str, ...] = (FEW, SETTLE)
    after: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    until: str = field(default="10s", kw_only=True)


def has(kind: Kind, node: str | None = None, **args: object) -> Callable[[Result], bool]:
    return lambda result: bool(of_kind(result, kind, node, **args))


def leads(result: Result) -> str | None:
    """Who was elected last."""
    elected = of_kind(result, Kind.ELECT)
    return str(elected[-1].args["leader"]) if elected else None


def has_rolled(result: Result) -> bool:
    """A second segment is written."""
    files = {each.args["file"] for each in of_kind(result, Kind.WRITE, "b1")}
    return len([each for each in files if each.endswith(".log")]) > 1


def fetches_rarely(result: Result) -> bool:
    """An idle follower's fetches are held for long."""
    sent = of_kind(result, Kind.SEND, "b3", type="FetchRequest")
    return 0 < len([each for each in sent if each.t_us >= 30 * SECOND_US]) <= 4


def recovered(result: Result) -> list[int]:
    return [each.args["log_end"] for each in of_kind(result, Kind.RECOVER, "b3")]


CASES: Final[dict[str, Case]] = {
    "a forced election": Case(
        'elect = { partition = "orders-0", kind = "unclean", force = true }',
        lambda result: leads(result) == "b2",
    ),
    "a leader who is named": Case(
        'elect = { partition = "orders-0", kind = "unclean", to = "b3" }',
        lambda result: leads(result) == "b3",
    ),
    "the configuration of a broker": Case(
        'config = { node = "b3", set = { "replica.fetch.wait.max.ms" = 5000 } }',
        fetches_rarely,
        after=('at = "7s"; crash = { node = "b3" }', 'at = "20s"; start = "b3"'),
        until="40s",
    ),
    "the disk of another broker": Case(
        'at = "6s"; start = { node = "b3", disk = "of:b2" }',
        lambda result: recovered(result) == [5],
        before=(FEW, SETTLE, 'at = "5s"; crash = { node = "b3", how = "power" }'),
        instead=('at = "6s"; start = "b3"',),
    ),
    "a wiped disk": Case(
        'at = "6s"; start = { node = "b3", disk = "wiped" }',
        lambda result: recovered(result) == [],
        before=(FEW, SETTLE, 'at = "5s"; crash = { node = "b3" }'),
        instead=('at = "6s"; start = "b3"',),
    ),
    "an older image of a disk": Case(
        'at = "6s"; start = { node = "b3", disk = "image:old" }',
        lambda result: recovered(result) == [5],
        before=(
            FEW,
            'id = "old"; settle = "5s"',
            'at = "4s"; produce = { to = "orders-0", count = 2, acks = "all", client = "p2" }',
            'at = "5s"; crash = { node = "b3" }',
        ),
        instead=('at = "6s"; start = "b3"',),
    ),
    "a clean stop that is interrupted": Case(
        'at = "5.0005s"; crash = { node = "b3" }',
        lambda result: not of_kind(result, Kind.STOP, "b3"),
        before=(FEW, SETTLE, 'at = "5s"; shutdown = "b3"'),
    ),
    "another min.insync.replicas": Case(
        'config = { topic = "orders", set = { "min.insync.replicas" = 3 } }',
        lambda result: not of_kind(result, Kind.ACK, "p2"),
        before=(FEW, SETTLE, 'at = "5s"; crash = { node = "b3", how = "process" }'),
        after=(
            'at = "20s"; produce = { to = "orders-0", count = 1, client = "p2", timeout = "2s" }',
        ),
        until="30s",
    ),
    "another segment size": Case(
        'config = { topic = "orders", set = { "segment.bytes" = 200 } }',
        has_rolled,
        after=('at = "6s"; produce = { to = "orders-0", count = 5, client = "p2" }',),
    ),
    "records deleted": Case(
        'delete_records = { partition = "orders-0", before = 3 }', has(Kind.LOG_START, "b1")
    ),
    "a replica moved": Case(
        'reassign = { partition = "orders-0", replicas = ["b1", "b2"] }',
        has(Kind.DELETE, "b3"),
    ),
    "a topic deleted": Case('delete_topic = "orders"', has(Kind.DELETE, "b1")),
}


def run_of(case: Case, *, with_it: bool) -> Result:
    steps = (case.operates,) if with_it else case.instead
    return ran(*case.before, *steps, *case.after, until=case.until, topic=TOPIC)


@pytest.mark.parametrize("name", CASES)
def test_what_an_operator_does_has_its_effect_and_without_it_there_is_none(name: str) -> None:
    assert CASES[name].shows(run_of(CASES[name], with_it=True))
    assert not CASES[name].shows(run_of(CASES[name], with_it=False))


def test_a_broker_goes_by_its_new_configuration_from_its_next_start_on() -> None:
    case = CASES["the configuration of a broker"]
    result = passed(*case.before, case.operates, until="40s")
    assert not fetches_rarely(result)


def test_a_configuration_that_contradicts_itself_ends_the_run() -> None:
    reason = failed(
        'at = "1s"; config = { node = "b1", set = { "broker.session.timeout.ms" = 5 } }'
    )
    assert reason.startswith("step 1: b1 cannot be configured so: broker_session_timeout_ms is 5")


def test_nobody_can_be_forced_to_lead_where_nobody_else_runs() -> None:
    reason = failed(
        'at = "1s"; crash = { node = ["b2", "b3"] }',
        'at = "20s"; elect = { partition = "orders-0", kind = "unclean", force = true }',
        until="30s",
    )
    assert reason == "step 2: no replica of orders-0 is active but its leader, b1"


def test_a_topic_of_the_same_name_is_another_one() -> None:
    passed(
        FEW,
        SETTLE,
        'delete_topic = "orders"',
        'at = "7s"; create_topic = { name = "orders", replicas = [["b2", "b3"]] }',
        'produce = { to = "orders-0", count = 2, client = "p2" }',
        until="15s",
        more=expect("at_end = \"leo('orders-0') == 2 and record('orders-0', b2, 0) == 'p2-0'\""),
    )
