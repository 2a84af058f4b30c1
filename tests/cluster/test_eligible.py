"""Eligible leader replicas (PROTOCOL A17): every small change, and all of three brokers' lives."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any, NamedTuple

import pytest

from cluster.elections import Election, choose_leader
from cluster.eligible import Eligible, next_eligible
from cluster.guards import Guards

REPLICAS = ("b", "a", "c")
SUBSETS = [found for size in range(4) for found in combinations(REPLICAS, size)]


def change(**changed: Any) -> Eligible:
    """ISR a, b, c led by b, min ISR 2, apart from what is given."""
    arguments: dict[str, Any] = {
        "replicas": REPLICAS,
        "old_isr": REPLICAS,
        "new_isr": REPLICAS,
        "elr": (),
        "last_known_elr": (),
        "leader_before": "b",
        "unclean": (),
        "min_isr": 2,
    }
    return next_eligible(**(arguments | changed))


def test_a17_every_small_change_gives_the_elr_of_the_naive_twin() -> None:
    known: list[tuple[str, ...]] = [(), ("a",), ("z",)]
    for old, new, elr, unclean in product(SUBSETS, SUBSETS, SUBSETS, SUBSETS):
        eligible = ((set(elr) | set(old)) - set(new)) - set(unclean)
        in_order = tuple(sorted(eligible, key="bac".index))
        for last_known, leader, min_isr in product(known, (None, "a", "z"), (1, 2, 3)):
            if len(new) >= min_isr:
                expected = Eligible((), ())
            elif new:
                expected = Eligible(in_order, ())
            else:
                noted = (leader,) if leader else last_known
                expected = Eligible(in_order, () if noted == ("z",) else noted)
            assert expected == change(
                old_isr=old,
                new_isr=new,
                elr=elr,
                last_known_elr=last_known,
                leader_before=leader,
                unclean=unclean,
                min_isr=min_isr,
            )


def test_a17_an_isr_of_min_isr_clears_everything() -> None:
    assert change(new_isr=("b", "a"), elr=("c",), last_known_elr=("c",)) == Eligible((), ())
    assert change(new_isr=("b",), min_isr=1) == Eligible((), ())


def test_a17_who_leaves_below_min_isr_is_eligible_unless_unclean() -> None:
    assert change(old_isr=("b", "a"), new_isr=("b",)) == Eligible(("a",), ())
    assert change(old_isr=("b", "a"), new_isr=("b",), unclean=["a"]) == Eligible((), ())
    assert change(old_isr=("b",), new_isr=(), elr=("a",)) == Eligible(("b", "a"), ("b",))
    assert change(old_isr=("b",), new_isr=("b",), elr=("a", "c"), unclean={"c"}).elr == ("a",)


def test_a17_who_rejoins_leaves_the_elr() -> None:
    assert change(old_isr=("b",), new_isr=("b", "a"), elr=("a", "c"), min_isr=3).elr == ("c",)


def test_a17_who_is_no_replica_any_more_is_not_eligible() -> None:
    assert change(replicas=("b", "a"), old_isr=("b", "c"), new_isr=("b",)).elr == ()


def test_i8_a_last_leader_that_is_no_replica_any_more_is_not_noted() -> None:
    given: dict[str, Any] = {"replicas": ("b", "a"), "old_isr": ("c",), "new_isr": ()}
    assert change(leader_before="c", **given) == Eligible((), ())
    assert change(leader_before=None, last_known_elr=("c",), **given) == Eligible((), ())
    assert change(leader_before=None, last_known_elr=("a",), **given) == Eligible((), ("a",))


def test_a17_the_last_leader_is_noted_when_the_isr_empties_and_kept_until_somebody_is_in_sync() -> (
    None
):
    """The last eligible replica may prove unclean later, when nobody leads any more."""
    emptied = change(old_isr=("b",), new_isr=(), elr=())
    assert emptied == Eligible(("b",), ("b",))
    unclean = change(
        old_isr=(),
        new_isr=(),
        elr=emptied.elr,
        last_known_elr=emptied.last_known_elr,
        leader_before=None,
        unclean=["b"],
    )
    assert unclean == Eligible((), ("b",))
    back = change(old_isr=(), new_isr=("b",), last_known_elr=("b",), leader_before=None)
    assert back.last_known_elr == ()


# Histories -------------------------------------------------------------------------------------


class State(NamedTuple):
    isr: tuple[str, ...]
    elr: tuple[str, ...]
    last_known: tuple[str, ...]
    leader: str | None
    active: frozenset[str]
    copies: frozenset[str]
    """Who has every committed record."""


def decide(state: State, new_isr: tuple[str, ...], min_isr: int, unclean: str = "") -> State:
    """A change of the ISR, and the election that follows, as a controller makes them."""
    eligible = change(
        old_isr=state.isr,
        new_isr=new_isr,
        elr=state.elr,
        last_known_elr=state.last_known,
        leader_before=state.leader,
        unclean=unclean,
        min_isr=min_isr,
    )
    choice = choose_leader(
        Election.ONLINE,
        replicas=REPLICAS,
        isr=new_isr,
        elr=eligible.elr,
        last_known_elr=eligible.last_known_elr,
        leader=state.leader,
        is_active=lambda broker: broker in state.active,
        guards=Guards(),
    )
    isr, elr, known, copies = new_isr, *eligible, state.copies
    if choice.leader is not None and choice.leader not in isr:
        isr, known = (choice.leader,), ()
        elr = tuple(broker for broker in elr if broker != choice.leader)
        if len(isr) >= min_isr or choice.is_unclean:
            elr = ()
    if choice.is_unclean:
        copies = frozenset(REPLICAS) & {str(choice.leader)}  # what it has is what there is now
    return state._replace(isr=isr, elr=elr, last_known=known, leader=choice.leader, copies=copies)


def histories(min_isr: int, frozen_below: int) -> set[State]:
    """Every state that can come to be."""
    everyone = frozenset(REPLICAS)
    start = State(REPLICAS, (), (), "b", everyone, everyone)
    seen, fresh = {start}, [start]
    while fresh:
        for following in successors(fresh.pop(), min_isr, frozen_below):
            if following not in seen:
                seen.add(following)
                fresh.append(following)
    return seen


def successors(state: State, min_isr: int, frozen_below: int) -> list[State]:
    found = []
    for broker in REPLICAS:
        rest = tuple(member for member in state.isr if member != broker)
        if broker in state.active:
            fenced = state._replace(active=state.active - {broker})
            found.append(decide(fenced, rest, min_isr))
            lost = fenced._replace(copies=state.copies - {broker})
            found.append(decide(lost, rest, min_isr, unclean=broker))
            if broker != state.leader and broker in state.isr:
                found.append(decide(state, rest, min_isr))
            if state.leader is not None and broker not in state.isr:
                # Caught up with its leader before it joins.
                copies = state.copies | ({broker} if state.leader in state.copies else set())
                joined = tuple(each for each in REPLICAS if each in {broker, *state.isr})
                found.append(decide(state._replace(copies=copies), joined, min_isr))
        else:
            back = state._replace(active=state.active | {broker})
            found.append(decide(back, state.isr, min_isr))
            lost = state._replace(copies=state.copies - {broker})
            found.append(decide(lost, rest, min_isr, unclean=broker))
    if state.leader is not None and len(state.isr) >= frozen_below:
        found.append(state._replace(copies=frozenset(state.isr)))  # something new is committed
    return found


@pytest.mark.parametrize("min_isr", [1, 2, 3])
def test_c2_every_history_of_three_brokers_keeps_the_invariants_of_isr_and_elr(
    min_isr: int,
) -> None:
    """ValidControllerIsrAndElr, MinIsrRecoveryQuorum, LeaderCandidateCompleteness; and I8."""
    seen = histories(min_isr, frozen_below=min_isr)
    for state in seen:
        isr, elr = set(state.isr), set(state.elr)
        assert not isr & elr, state
        assert len(isr) < min_isr or not elr, state
        assert isr or elr or len(state.last_known) == 1, state
        assert not isr or not state.last_known, state
        assert isr <= state.active, state
        assert state.leader is None or state.leader in isr, state
        assert (isr | elr) <= state.copies, state
    assert len(seen) > 50
    assert any(not state.isr and not state.elr for state in seen)


def test_a17_the_elr_rests_on_the_freeze() -> None:
    """Hazard B-42: where one in sync commits, who left below min ISR lacks records."""
    without = histories(2, frozen_below=1)
    assert any(not set(state.elr) <= state.copies for state in without)
    assert any(state.leader and state.leader not in state.copies for state in without)
