"""``next_record`` against a twin that thinks in sets, over all small inputs; and rule by rule."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, product
from typing import Any, NamedTuple

import pytest
from attrs import evolve

from cluster.elections import Election
from cluster.eligible import next_eligible
from cluster.errors import ProtocolBug
from cluster.guards import Guards
from cluster.names import TopicIdPartition
from cluster.partition_changes import (
    Assignment,
    Circumstances,
    cancelled,
    next_record,
    reassigned,
    strands,
)
from cluster.records import LeaderRecoveryState, PartitionRecord

P = TopicIdPartition("t" * 22, "orders", 0)
ABC = ("a", "b", "c")
RECOVERED, RECOVERING = LeaderRecoveryState.RECOVERED, LeaderRecoveryState.RECOVERING


def subsets(of: tuple[str, ...]) -> list[tuple[str, ...]]:
    return list(chain.from_iterable(combinations(of, size) for size in range(len(of) + 1)))


def record(**values: Any) -> PartitionRecord:
    defaults = {"partition": P, "replicas": ABC, "isr": ABC, "leader": "a"}
    return PartitionRecord(**{**defaults, "leader_epoch": 5, "partition_epoch": 9, **values})


def under(
    active: tuple[str, ...] = ABC,
    *,
    min_isr: int = 1,
    elr: bool = False,
    guards: Guards | None = None,
) -> Circumstances:
    return Circumstances(active.__contains__, min_isr, elr, guards or Guards())


# The twin --------------------------------------------------------------------------------------


class Case(NamedTuple):
    before: PartitionRecord
    target: tuple[str, ...]
    active: tuple[str, ...]
    unclean: tuple[str, ...]
    kind: Election
    min_isr: int
    elr: bool


def naive(case: Case) -> dict[str, Any]:
    """Leader, ISR, ELR, last known leader, recovery and whether the leader epoch rises."""
    before, _, active, unclean, kind, min_isr, has_elr = case
    stays = set(case.target) - set(unclean)
    eligible = set()
    last: tuple[str, ...] = ()
    if has_elr and len(stays) < min_isr:
        eligible = (set(before.elr) | set(before.isr)) - stays - set(unclean)
        if not stays:
            last = before.last_known_elr if before.leader is None else (before.leader,)
    clean = [each for each in ABC if each in active and each in (stays or eligible)]
    if kind is Election.PREFERRED and "a" in clean:
        leader, is_risky = "a", False
    elif clean:
        leader, is_risky = (before.leader if before.leader in clean else clean[0]), False
    else:
        risky = [each for each in last if each in active and not stays and not eligible]
        if kind is Election.UNCLEAN:
            risky += [each for each in ABC if each in active]
        leader, is_risky = (risky[0], True) if risky else (None, False)
    if is_risky:
        stays, eligible, last = {leader}, set(), ()
    elif leader is not None and not stays:
        stays = {leader}
        eligible = set() if min_isr == 1 else eligible - stays
        last = ()
    elif not stays and not has_elr:
        stays = {before.leader} if before.leader else {before.isr[0]}
    recovery = RECOVERING if is_risky else before.leader_recovery_state
    return {
        "leader": leader,
        "isr": tuple(each for each in ABC if each in stays),
        "elr": tuple(each for each in ABC if each in eligible),
        "last_known_elr": last,
        "leader_recovery_state": recovery,
        "leader_epoch": before.leader_epoch + int(leader != before.leader or is_risky),
    }


def states(min_isr: int, elr: bool) -> Iterator[PartitionRecord]:
    """Every well-formed state of three replicas."""
    for isr in subsets(ABC):
        rest = tuple(each for each in ABC if each not in isr)
        eligibles = subsets(rest) if elr and len(isr) < min_isr else [()]
        lasts = [(), ("a",), ("b",)] if elr and not isr else [()]
        if not isr and not elr:
            continue
        for eligible, last, leader in product(eligibles, lasts, (*isr, None)):
            yield record(isr=isr, elr=eligible, last_known_elr=last, leader=leader)


def cases(min_isr: int, elr: bool) -> Iterator[Case]:
    for before in states(min_isr, elr):
        targets = {before.isr, (), *(_without(before.isr, each) for each in before.isr)}
        targets |= {tuple(x for x in ABC if x in (*before.isr, each)) for each in ABC}
        for target, active, kind in product(sorted(targets), subsets(ABC), Election):
            for unclean in ((), ("a",), ("b",)):
                yield Case(before, target, active, unclean, kind, min_isr, elr)


def _without(members: tuple[str, ...], one: str) -> tuple[str, ...]:
    return tuple(each for each in members if each != one)


@pytest.mark.parametrize("elr", [False, True])
@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_a15_a17_every_small_change_is_what_the_twin_says(min_isr: int, elr: bool) -> None:
    count = 0
    for case in cases(min_isr, elr):
        count += 1
        before = case.before
        circumstances = under(case.active, min_isr=min_isr, elr=elr)
        after = next_record(
            before, circumstances, isr=case.target, unclean=case.unclean, election=case.kind
        )
        expected = naive(case)
        assert {name: getattr(after, name) for name in expected} == expected, case
        _check_statements(case, after)
    assert count > 3_000


def _check_statements(case: Case, after: PartitionRecord) -> None:
    """I8, A14, A15 and A17 in their own words."""
    before, active = case.before, case.active
    isr, elr = set(after.isr), set(after.elr)
    assert after.leader is None or after.leader in isr
    assert not isr & elr
    assert isr | elr <= set(after.replicas)
    if len(isr) >= case.min_isr:
        assert not elr
        assert not after.last_known_elr
    if not case.elr:
        assert isr
        assert not elr
    if after.leader is not None:
        assert after.leader in active
    assert (after.partition_epoch == before.partition_epoch + 1) == (after is not before)
    assert after.leader_epoch in (before.leader_epoch, before.leader_epoch + 1)
    if after.leader != before.leader:
        assert after.leader_epoch == before.leader_epoch + 1
    known = set(before.isr) | set(before.elr) | set(case.target)
    if after.leader is not None and after.leader not in known:
        assert after.leader_recovery_state is RECOVERING
        assert after.isr == (after.leader,)
        assert case.kind is Election.UNCLEAN or after.leader in before.last_known_elr
    if case.elr:
        assert not isr & set(case.unclean) or after.leader_recovery_state is RECOVERING
        assert not elr & set(case.unclean)


# Leader epochs ---------------------------------------------------------------------------------


def test_a14_a_shrink_alone_raises_the_partition_epoch_only() -> None:
    after = next_record(record(), under(), isr=("a", "b"))
    assert (after.isr, after.leader_epoch, after.partition_epoch) == (("a", "b"), 5, 10)


def test_a14_an_expansion_raises_the_partition_epoch_only() -> None:
    after = next_record(record(isr=("a",)), under(), isr=("c", "a"))
    assert (after.isr, after.leader_epoch, after.partition_epoch) == (("a", "c"), 5, 10)


def test_a14_losing_the_leader_raises_both_epochs() -> None:
    after = next_record(record(isr=("a",)), under(("b",)), isr=())
    assert (after.leader, after.isr, after.leader_epoch, after.partition_epoch) == (
        None,
        ("a",),
        6,
        10,
    )


def test_a14_no_change_gives_the_same_record() -> None:
    before = record()
    assert next_record(before, under(), isr=("c", "b", "a")) is before


# Elections -------------------------------------------------------------------------------------


def test_a15_online_keeps_a_valid_leader_and_else_takes_the_assignments_order() -> None:
    before = record(replicas=("c", "a", "b"), isr=("c", "a", "b"), leader="a")
    assert next_record(before, under(), isr=("c", "a")).leader == "a"
    assert next_record(before, under(("b", "c")), isr=("c", "b")).leader == "c"


def test_a15_preferred_never_elects_uncleanly() -> None:
    before = record(isr=("b",), leader=None)
    assert next_record(before, under(("a",)), election=Election.PREFERRED) is before


def test_a15_unclean_takes_the_first_active_replica_and_makes_it_recovering() -> None:
    before = record(isr=("a",), leader=None, elr=("b",), last_known_elr=("b",))
    after = next_record(before, under(("b", "c")), election=Election.UNCLEAN)
    assert (after.leader, after.isr, after.elr, after.last_known_elr) == ("b", ("b",), (), ())
    assert after.leader_recovery_state is RECOVERING


def test_a15_the_last_known_leader_is_elected_whatever_the_kind_if_active() -> None:
    before = record(isr=(), leader=None, last_known_elr=("b",))
    for kind in Election:
        after = next_record(before, under(("b",), elr=True), election=kind)
        assert (after.leader, after.isr, after.leader_recovery_state) == ("b", ("b",), RECOVERING)
    assert next_record(before, under(("c",), elr=True)) is before


def test_a15_without_the_guard_a_fenced_last_known_leader_is_elected() -> None:
    before = record(isr=(), leader=None, last_known_elr=("b",))
    off = under((), elr=True, guards=Guards(elect_only_active=False))
    after = next_record(before, off)
    assert (after.leader, after.isr) == ("b", ("b",))
    assert next_record(before, under((), elr=True)) is before


def test_a15_a_last_known_leader_that_is_no_replica_any_more_is_passed_over() -> None:
    before = record(isr=(), leader=None, last_known_elr=("d",))
    assert next_record(before, under((*ABC, "d"), elr=True)).leader is None


def test_a15_a_forced_leader_in_the_isr_is_clean_and_another_is_not() -> None:
    before = record(isr=("a", "b"))
    clean = next_record(before, under(), to="b")
    assert (clean.leader, clean.isr, clean.leader_recovery_state) == ("b", ("a", "b"), RECOVERED)
    unclean = next_record(before, under(), to="c")
    assert (unclean.leader, unclean.isr, unclean.leader_recovery_state) == ("c", ("c",), RECOVERING)
    with pytest.raises(ProtocolBug):
        next_record(before, under(), to="d")


# Eligible leader replicas ----------------------------------------------------------------------


def test_a17_who_leaves_below_min_isr_is_eligible_and_elected_cleanly() -> None:
    circumstances = under(min_isr=2, elr=True)
    one = next_record(record(isr=("a", "b")), circumstances, isr=("a",))
    assert (one.isr, one.elr) == (("a",), ("b",))
    none = next_record(one, under(("c",), min_isr=2, elr=True), isr=())
    assert (none.leader, none.isr, none.elr, none.last_known_elr) == (None, (), ("a", "b"), ("a",))
    back = next_record(none, under(("b", "c"), min_isr=2, elr=True))
    assert (back.leader, back.isr, back.elr, back.last_known_elr) == ("b", ("b",), ("a",), ())
    assert back.leader_recovery_state is RECOVERED


def test_a17_the_last_leader_is_noted_when_the_isr_empties_and_the_elr_may_follow() -> None:
    """The ELR loses its last member after the leader is gone: who led is still known."""
    circumstances = under(("c",), min_isr=2, elr=True)
    emptied = next_record(record(isr=("a",), elr=("b",)), circumstances, isr=())
    without_a = next_record(emptied, circumstances, unclean=("a",))
    without_b = next_record(without_a, circumstances, unclean=("b",))
    assert (without_b.isr, without_b.elr, without_b.last_known_elr) == ((), (), ("a",))


def test_a17_the_min_isr_asked_for_is_at_most_the_number_of_replicas() -> None:
    after = next_record(
        record(replicas=("a", "b"), isr=("a",), elr=("b",)),
        under(min_isr=3, elr=True),
        isr=("a", "b"),
    )
    assert (after.isr, after.elr) == (("a", "b"), ())


def test_a17_members_that_lost_records_are_not_eligible() -> None:
    found = next_eligible(
        replicas=ABC,
        old_isr=("a", "b"),
        new_isr=(),
        elr=("c",),
        last_known_elr=(),
        leader_before="a",
        unclean={"a"},
        min_isr=2,
    )
    assert found == (("b", "c"), ("a",))


# Reassignment ----------------------------------------------------------------------------------


def test_a14_a_reassignment_grows_first_and_ends_when_all_are_in_sync() -> None:
    before = record(replicas=("a", "b"), isr=("a", "b"))
    step = reassigned(before, ("c", "b"))
    assert step == Assignment(("c", "b", "a"), ("c",), ("a",))
    under_way = next_record(before, under(), assignment=step)
    assert (under_way.leader, under_way.leader_epoch, under_way.isr) == ("a", 5, ("b", "a"))
    done = next_record(under_way, under(), isr=ABC)
    assert (done.replicas, done.isr, done.leader) == (("c", "b"), ("c", "b"), "c")
    assert (done.adding_replicas, done.removing_replicas) == ((), ())
    assert (done.leader_epoch, done.partition_epoch) == (6, 11)


def test_a14_a_replica_that_leaves_raises_the_leader_epoch_of_the_same_leader() -> None:
    before = record()
    after = next_record(before, under(), assignment=reassigned(before, ("a", "b")))
    assert (after.replicas, after.leader, after.leader_epoch) == (("a", "b"), "a", 6)


def test_a14_a_shrink_waits_for_the_wanted_replicas() -> None:
    before = record(isr=("a", "c"))
    after = next_record(before, under(), assignment=reassigned(before, ("a", "b")))
    assert (after.replicas, after.removing_replicas, after.leader_epoch) == (ABC, ("c",), 5)


def test_a14_a_cancelled_reassignment_drops_what_it_added() -> None:
    before = record(
        replicas=("c", "a", "b"), isr=("c", "a"), adding_replicas=("c",), removing_replicas=("b",)
    )
    after = next_record(before, under(), assignment=cancelled(before))
    assert (after.replicas, after.isr, after.removing_replicas) == (("a", "b"), ("a",), ())
    assert after.leader_epoch == 6


def test_a14_a_second_target_drops_what_the_first_was_adding() -> None:
    before = record(
        replicas=("c", "a", "b"), isr=("a", "b"), adding_replicas=("c",), removing_replicas=("b",)
    )
    assert reassigned(before, ("d", "a")) == Assignment(("d", "a", "b"), ("d",), ("b",))


def test_a14_an_assignment_without_anyone_in_sync_strands_the_partition() -> None:
    before = record(isr=("c",), adding_replicas=("c",), leader="c")
    assert strands(before, cancelled(before))
    assert not strands(evolve(before, isr=("a", "c")), cancelled(before))
    assert not strands(evolve(before, isr=(), leader=None), cancelled(before))
