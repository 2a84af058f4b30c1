"""``sim.checks.standing``: unclean shutdowns, the last member, elections.

First the rules one by one; then runs in which a rule decides between a licence and ILLEGAL.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from sim.checks.judge import Judge
from sim.checks.standing import Elected, Standing
from sim.running.scenario_run import Result
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import expect, of_kind, passed

ORDERS = TopicIdPartition("id", "orders", 0)


def record(
    isr: str, *, elr: str = "", leader: str | None = "b1", leader_epoch: int = 0
) -> PartitionRecord:
    members, eligible = tuple(isr.split()), tuple(elr.split())
    replicas = ("b1", "b2", "b3")
    return PartitionRecord(ORDERS, replicas, members, leader, leader_epoch, 0, elr=eligible)


def after_unclean(*shutdowns: tuple[str, str, str], min_isr: int = 2) -> Standing:
    """ISR, ELR and who came back, one after the other, with events from 1 on."""
    standing = Standing()
    for event, (isr, elr, node) in enumerate(shutdowns, 1):
        standing.note_unclean(record(isr, elr=elr), node, event, min_isr)
    return standing


def run_of(standing: Standing) -> list[str]:
    return [node for node, _ in standing.run]


# Unclean shutdowns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shutdowns", "counted"),
    [
        ((("b1 b2 b3", "", "b1"),), []),
        ((("b1 b2", "", "b1"),), ["b1"]),
        ((("b1", "b2", "b1"),), ["b1"]),
        ((("b1", "b2", "b1"), ("", "b2", "b2")), ["b1", "b2"]),
        ((("b1 b2 b3", "", "b1"), ("b2 b3", "", "b2"), ("b3", "b2", "b3")), ["b2", "b3"]),
        ((("b1 b2 b3", "", "b1"), ("b1 b2 b3", "", "b2")), ["b2"]),
    ],
    ids=["two-clean", "one-clean", "elr-is-clean", "two", "first-of-three-is-made-good", "stays"],
)
def test_a_shutdown_counts_once_fewer_than_the_minimum_are_clean_without_it(
    shutdowns: Sequence[tuple[str, str, str]], counted: list[str]
) -> None:
    assert run_of(after_unclean(*shutdowns)) == counted


def test_who_is_no_member_takes_nothing_along() -> None:
    standing = after_unclean(("b1", "", "b3"))
    assert run_of(standing) == []
    assert standing.unclean == {"b3": 1}


def test_who_has_shut_down_uncleanly_once_does_not_count_twice_or_as_clean() -> None:
    standing = after_unclean(("b1 b2", "", "b1"), ("b1 b2", "", "b1"), ("b1 b2", "", "b2"))
    assert standing.run == [("b1", 1), ("b2", 3)]


def test_enough_clean_members_make_all_good_that_was_before() -> None:
    standing = after_unclean(("b1", "b2", "b1"))
    standing.note_change(record("b1"), record("b1", elr="b2 b3"), 2)
    assert run_of(standing) == []
    assert standing.unclean == {"b1": 1}


def test_with_too_few_clean_members_nothing_is_made_good() -> None:
    standing = after_unclean(("b1", "b2", "b1"))
    standing.note_change(record("b1"), record("b1", elr="b2"), 2)
    assert run_of(standing) == ["b1"]


def test_a_lower_minimum_may_be_enough() -> None:
    standing = after_unclean(("b1", "b2", "b1"))
    standing.note_change(record("b1", elr="b2"), record("b1", elr="b2"), 1)
    assert run_of(standing) == []


def test_a_minimum_that_was_raised_counts_once_there_are_so_many() -> None:
    standing = Standing()
    standing.note_change(None, record("b1", elr="b2"), 1)
    standing.note_unclean(record("b1", elr="b2"), "b1", 1, 3)
    assert (run_of(standing), standing.enough) == ([], 1), "b2 is enough, as it was then"
    standing.note_unclean(record("", elr="b2"), "b2", 2, 3)
    assert run_of(standing) == ["b2"]
    standing.note_change(record("b3"), record("b1 b2 b3", leader="b3"), 3)
    assert (run_of(standing), standing.enough) == ([], 3)


def test_who_joins_a_leader_is_clean() -> None:
    standing = after_unclean(("b2 b3", "", "b1"), ("b2 b3", "", "b3"))
    standing.note_change(record("b2", leader="b2"), record("b1 b2", leader="b2"), 2)
    assert standing.unclean == {"b3": 2}
    assert run_of(standing) == []


def test_who_enters_the_isr_by_an_election_is_clean_only_once_it_serves() -> None:
    standing = after_unclean(("b1", "", "b1"), min_isr=1)
    before, elected = record("", leader=None, leader_epoch=1), record("b1", leader_epoch=2)
    standing.note_change(before, elected, 1)
    assert run_of(standing) == ["b1"]
    standing.note_serving(elected, 1)
    assert run_of(standing) == []
    assert standing.unclean == {}


def test_a_member_that_was_one_before_is_not_made_clean() -> None:
    standing = after_unclean(("b1 b2", "", "b1"))
    standing.note_change(record("b1 b2"), record("b1"), 2)
    assert standing.unclean == {"b1": 1}


def test_the_first_word_of_a_partition_makes_nobody_clean() -> None:
    standing = after_unclean(("b1", "", "b1"))
    standing.note_change(None, record("b1"), 2)
    assert standing.unclean == {"b1": 1}


# The last member ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("isr", "elr", "is_last"),
    [
        ("b1", "", True),
        ("", "", True),
        ("b1", "b1", True),
        ("b1 b2", "", False),
        ("b1", "b2", False),
    ],
)
def test_the_last_member_has_nobody_beside_it(isr: str, elr: str, is_last: bool) -> None:
    standing = Standing()
    standing.note_judged(record(isr, elr=elr), ["b1"])
    assert standing.last == {"b1": is_last}


def test_each_judgement_replaces_the_one_before() -> None:
    standing = Standing()
    standing.note_judged(record("b1"), ["b1", "b2"])
    assert standing.last == {"b1": True, "b2": False}
    standing.note_judged(record("b1 b2"), ["b1"])
    assert standing.last["b1"] is False


def test_who_joins_a_leader_is_not_the_last_any_more() -> None:
    standing = Standing()
    standing.note_judged(record("", leader=None), ["b1"])
    standing.note_change(record("b2", leader="b2"), record("b1 b2", leader="b2"), 2)
    assert "b1" not in standing.last


# Elections ---------------------------------------------------------------------------------------


def test_the_election_of_an_epoch_is_the_last_one_up_to_it() -> None:
    standing = Standing()
    assert standing.election(3) is None
    for epoch, kind in ((1, "clean"), (3, "unclean")):
        standing.elected[epoch] = Elected(epoch, kind, 10 + epoch)
    found = {epoch: standing.election(epoch) for epoch in range(5)}
    assert found[0] is None
    assert [each.kind for each in found.values() if each] == [
        "clean",
        "clean",
        "unclean",
        "unclean",
    ]


# Runs --------------------------------------------------------------------------------------------

CLUSTER = """
writeback = "off"
{elr}
[cluster.config]
"broker.session.timeout.ms" = 2000
"broker.heartbeat.interval.ms" = 500
"""
TOPIC = """
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
config = {{ "min.insync.replicas" = {min_isr} }}
"""
LONELY = (
    'at = "1s"; produce = { to = "orders-0", values = ["m"] }',
    'settle = "2s"',
    'crash = { node = "b3", how = "process" }',
    'wait = "fenced(b3)"',
    'crash = { node = "b2", how = "process" }',
    'wait = "fenced(b2)"',
)
"""b1 is alone in sync."""
DARK = (
    'crash = { node = "b1", how = "power" }',
    'wait = "fenced(b1)"',
    'start = "b1"',
    "wait = \"leader('orders-0') == b1\"",
)


def run(*steps: str, min_isr: int, elr: bool, then: str) -> tuple[Result, Standing]:
    """What came of it, and the standing at its end."""
    known = "eligible_leader_replicas = true" if elr else ""
    worlds: list[World] = []
    result = passed(
        *LONELY,
        *steps,
        until="60s",
        cluster=CLUSTER.format(elr=known),
        topic=TOPIC.format(min_isr=min_isr),
        more=expect(*then.split("\n")),
        on_world=worlds.append,
    )
    (ledger,) = Judge.of(worlds[0]).scene.ledgers.values()
    return result, ledger.standing


def test_with_elr_and_a_minimum_of_one_the_last_unclean_shutdown_is_enough() -> None:
    """FAULTS D.4: with minISR 1 ELR adds nothing. The last known leader is elected."""
    run(
        *DARK,
        min_isr=1,
        elr=True,
        then="allow = { L2 = 1 }\nat_end = \"elections('last-known') == 1\"",
    )


def test_with_elr_two_unclean_shutdowns_are_as_many_as_the_minimum() -> None:
    steps = ('start = "b2"', "wait = \"isr('orders-0') == {b1, b2}\"")
    back = (
        'crash = { node = "b2", how = "process" }',
        'wait = "fenced(b2)"',
        'crash = { node = "b1", how = "power" }',
        'wait = "fenced(b1)"',
        'start = "b2"',
        'wait = "not fenced(b2)"',
        'start = "b1"',
        "wait = \"leader('orders-0') == b1\"",
    )
    _, standing = run(*steps, *back, min_isr=2, elr=True, then="allow = { L2 = 1 }")
    assert standing.unclean == {}, "b1 leads, and b2 has joined it: both have all that is owed now"


def test_one_of_them_is_not_enough_and_nobody_loses_anything() -> None:
    """b2 was killed and stays down, eligible; b1 may not lead in its place."""
    steps = (
        'crash = { node = "b1", how = "power" }',
        'wait = "fenced(b1)"',
        'start = "b1"',
        'wait = "not fenced(b1)"',
    )
    then = (
        "at_end = \"leader('orders-0') is None and elr('orders-0') == {b2} and lost('acked') == 0\""
    )
    run(*steps, min_isr=2, elr=True, then=then)


def test_without_elr_the_last_member_is_enough() -> None:
    run(*DARK, min_isr=2, elr=False, then="allow = { L2 = 1 }")


def test_what_was_promised_before_the_minimum_changed_goes_by_the_rule_of_then() -> None:
    """Another minimum empties the ELR, so b1 leads again though 2 is the minimum now."""
    change = 'config = { topic = "orders", set = { "min.insync.replicas" = 2 } }'
    run(change, *DARK, min_isr=1, elr=True, then="allow = { L2 = 1 }")


def test_bit_rot_that_recovery_cuts_off_is_the_disk_s_doing_and_no_unsound_recovery() -> None:
    """Nothing was synced, and no power was lost: only the damage can have taken the record."""
    steps = (
        'corrupt = { node = "b1", partition = "orders-0", offset = 0 }',
        'crash = { node = "b1", how = "process" }',
        'wait = "fenced(b1)"',
        'start = "b1"',
        "wait = \"leader('orders-0') == b1\"",
    )
    result, _ = run(*steps, min_isr=1, elr=False, then="allow = { L4 = 1 }")
    (damage,) = of_kind(result, Kind.CORRUPT)
    ((loss, _),) = result.verdict.lost[0].losses
    assert loss.how == "salvaged"
    assert loss.culprits[0] == damage.n, "what did the damage, and then the cut"
