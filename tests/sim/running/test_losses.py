"""Losses of whole runs: licence, culprits, copies; what is a loss, and what is none."""

from __future__ import annotations

import pytest

from sim.checks.judge import Judge
from sim.checks.ledger import Loss
from sim.running.scenario_run import Result
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import expect, of_kind, passed, ran

ALONE = """
[[topic]]
name = "orders"
replicas = [["b1"]]
config = { "flush.messages" = 1 }
"""
AGED = """
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
config = { "retention.ms" = 3600000, "segment.bytes" = 1024 }
"""
PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 30, acks = "all" }'
JUMP = """
[[fault]]
id = "jump"
kind = "clock-step"
target = "b1"
start = "10s"
by = "{by}"
"""
RETENTION = 'config = { "log.retention.check.interval.ms" = 5000 }'


def losses_of(result: Result) -> list[Loss]:
    return [loss for each in result.verdict.lost for loss, _ in each.losses]


def the_loss(result: Result) -> Loss:
    (loss,) = losses_of(result)
    return loss


# Deleted by a wrong clock ------------------------------------------------------------------------


def test_what_a_wrong_clock_deletes_is_lost() -> None:
    more = JUMP.format(by="2h") + expect('allow = { L3 = ">=1" }')
    result = passed(PRODUCE, topic=AGED, cluster=RETENTION, more=more, until="30s")
    loss = the_loss(result)
    (fault,) = of_kind(result, Kind.FAULT, id="jump")
    assert (loss.at, loss.how, loss.leader) == ("deleting", "deleted", "b1")
    assert loss.culprits == (fault.n, loss.event)
    assert loss.copies[0] == ("b1", "deleted", 0)
    assert 0 < loss.records < 30
    assert result.verdict.lost[0].promises[0] == "acked-records-survive"


def test_what_a_follower_deletes_so_is_lost_when_it_leads() -> None:
    more = JUMP.format(by="2h").replace('"b1"', '"b2"') + expect('allow = { L3 = ">=1" }')
    lead = (
        'at = "20s"; crash = { node = "b1" }',
        "wait = \"leader('orders-0') == b2\"",
        'start = "b1"',
        "wait = \"log_start('orders-0', b1) > 0 and log_start('orders-0', b3) > 0\"",
    )
    result = passed(PRODUCE, *lead, topic=AGED, cluster=RETENTION, more=more, until="60s")
    loss = the_loss(result)
    (fault,) = of_kind(result, Kind.FAULT, id="jump")
    (start,) = {event for node, how, event in loss.copies if how == "deleted"}
    assert (loss.at, loss.how, loss.leader, start) == ("deleting", "deleted", "b2", 0)
    assert fault.n in loss.culprits
    assert 0 < loss.records < 30


@pytest.mark.parametrize("at", ["4s", "10s"])
@pytest.mark.parametrize("size", [1_000_000, 1500, 0])
def test_what_goes_for_its_size_has_no_clock_taken(size: int, at: str) -> None:
    """The clock takes what is left of old segments where their size takes some, then or before."""
    topic = AGED.replace("3600000", f'3600000, "retention.bytes" = {size}')

    def first(more: str) -> tuple[Result, int]:
        worlds: list[World] = []
        result = ran(
            PRODUCE,
            'at = "3s"; flush = "all"',
            topic=topic,
            cluster=RETENTION,
            more=more,
            until="30s",
            on_world=worlds.append,
        )
        return result, Judge.of(worlds[0]).facts.log_start("orders-0", "b1")

    (calm, by_size), (result, start) = first(""), first(JUMP.format(by="2h").replace("10s", at))
    assert losses_of(calm) == []
    assert (by_size > 0) is (size < 1_000_000)
    lost = [span for loss in losses_of(result) for span in loss.spans]
    assert lost == ([] if by_size == start else [(0, by_size, start)])
    assert (by_size < start) is (size > 0)


@pytest.mark.parametrize(
    ("more", "topic"),
    [
        ("", AGED),
        (JUMP.format(by="-2h"), AGED),
        (JUMP.format(by="30m"), AGED),
        (JUMP.format(by="2h"), AGED.replace('"retention.ms" = 3600000, ', "")),
        (JUMP.format(by="2h").replace('"b1"', '"b2"'), AGED),
    ],
)
def test_what_no_clock_has_taken_is_no_loss(more: str, topic: str) -> None:
    result = passed(PRODUCE, topic=topic, cluster=RETENTION, more=more, until="30s")
    assert losses_of(result) == []


def test_what_retention_deletes_at_its_time_is_no_loss_whatever_the_clock_says() -> None:
    topic = AGED.replace("3600000", "4000")
    result = passed(PRODUCE, topic=topic, cluster=RETENTION, more=JUMP.format(by="2h"), until="30s")
    assert losses_of(result) == []
    assert of_kind(result, Kind.DELETE, "b1") or of_kind(result, Kind.BACKGROUND, "b1")


# The only copy -----------------------------------------------------------------------------------


def test_the_only_copy_is_lost_though_nobody_leads() -> None:
    fault = '[[fault]]\nid = "lw"\nkind = "lost-write"\ntarget = "b1"\nstart = "1.5s"\n'
    result = passed(
        'at = "1s"; produce = { to = "orders-0", count = 3 }',
        'at = "2s"; produce = { to = "orders-0", count = 1 }',
        'at = "4s"; crash = { node = "b1", how = "power" }',
        'at = "6s"; start = "b1"',
        topic=ALONE,
        cluster="brokers = 1",
        more=fault + 'end = "2.5s"\n' + expect("allow = { L4 = 1 }"),
        until="30s",
    )
    loss = the_loss(result)
    assert (loss.at, loss.how, loss.leader, loss.leader_epoch) == ("nowhere", "lied", "", -1)
    assert loss.spans == ((0, 3, 4),)
    (crash,) = of_kind(result, Kind.CRASH, "b1")
    (begun,) = of_kind(result, Kind.FAULT, id="lw")
    assert loss.culprits == (begun.n, crash.n)


def test_without_the_lie_nothing_is_lost() -> None:
    result = passed(
        'at = "1s"; produce = { to = "orders-0", count = 4 }',
        'at = "4s"; crash = { node = "b1", how = "power" }',
        'at = "6s"; start = "b1"',
        topic=ALONE,
        cluster="brokers = 1",
        until="30s",
    )
    assert losses_of(result) == []


# Events ------------------------------------------------------------------------------------------

ZOMBIE = (
    'at = "1s"; produce = { to = "orders-0", count = 3, acks = "all" }',
    'at = "2s"; partition = [["b1", "p1"], ["b2", "b3", "c1"]]',
    "wait = \"leader('orders-0') == b2\"",
    'produce = { to = "orders-0", count = 6, acks = "1", client = "p1" }',
)


def test_a_loss_is_an_event_with_all_that_it_says() -> None:
    result = passed(*ZOMBIE, until="60s", more=expect("allow = { L0 = 6 }"))
    (loss,) = losses_of(result)
    told = of_kind(result, Kind.LOSS, "world")
    # The client is told of one after the other; each is an event, and together they are one loss.
    assert len(told) == 6
    assert [each.args["spans"] for each in told] == [[[0, n, n + 1]] for n in range(3, 9)]
    assert (loss.at, loss.records, loss.spans) == ("acknowledging", 6, ((0, 3, 9),))
    assert (loss.told, loss.leader, loss.leader_epoch) == (told[0].n, "b2", 1)
    event = told[0]
    assert event.args["licence"] == "L0"
    assert event.args["copies"] == [
        ["b1", "held", 0],
        ["b2", "never-held", 0],
        ["b3", "never-held", 0],
    ]
    assert event.cause == (*loss.culprits, loss.event)
    (elected,) = of_kind(result, Kind.ELECT, "c1", leader="b2")
    (cut,) = of_kind(result, Kind.FAULT)
    assert loss.culprits == (cut.n, elected.n)
    assert result.trace.footer is not None
    assert result.trace.footer.losses == (loss.plain(),)


def test_records_that_come_back_are_lost_no_more() -> None:
    steps = (
        'at = "1s"; produce = { to = "orders-0", count = 5, acks = "1" }',
        'id = "lag"; at = "2s"; cut = { from = "b1", to = ["b2", "b3"], only = ["FetchResponse"] }',
        'produce = { to = "orders-0", count = 2, acks = "1" }',
        'at = "3s"; crash = { node = "b1" }',
        "wait = \"leader('orders-0') == b2\"",
        'at = "30s"; crash = { node = "b2" }',
        'at = "30.1s"; crash = { node = "b3" }',
        'at = "50s"; start = "b1"',
        'at = "65s"; elect = { partition = "orders-0", kind = "unclean", to = "b1" }',
    )
    result = ran(*steps, until="90s", more=expect('allow = ["L0"]'))
    assert result.verdict.reasons == ()
    assert of_kind(result, Kind.LOSS)
    assert result.verdict.lost == ()
