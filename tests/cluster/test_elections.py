"""Elections (PROTOCOL A15) over all small inputs, and by their sentences."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import pytest

from cluster.elections import Choice, Election, choose_leader
from cluster.guards import Guards

ON = Guards()
NOBODY = Choice(None)
ASSIGNMENTS = [("a", "b", "c"), ("c", "a", "b"), ("b", "a"), ("a",)]


def subsets(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [found for size in range(len(names) + 1) for found in combinations(names, size)]


def naive(
    kind: Election,
    replicas: tuple[str, ...],
    isr: tuple[str, ...],
    elr: tuple[str, ...],
    last_known: tuple[str, ...],
    leader: str | None,
    active: set[str],
) -> Choice:
    """A15 as a list of candidates, the first of whom leads."""
    clean = active & (set(isr) if isr else set(elr))
    queue: list[Choice] = []
    if kind is Election.PREFERRED:
        queue += [Choice(broker) for broker in replicas[:1] if broker in clean]
    queue += [Choice(leader)] if leader in clean else []
    queue += [Choice(broker) for broker in replicas if broker in clean]
    if isr == elr == () and len(last_known) == 1:
        queue += [
            Choice(broker, True, True)
            for broker in last_known
            if broker in active and broker in replicas
        ]
    if kind is Election.UNCLEAN:
        queue += [Choice(broker, True) for broker in replicas if broker in active]
    return [*queue, NOBODY][0]


def elect(
    kind: Election = Election.ONLINE, guards: Guards = ON, *, active: str = "abc", **changed: Any
) -> Choice:
    """Replicas a, b, c, all in sync, without a leader, apart from what is given."""
    arguments: dict[str, Any] = {
        "replicas": ("a", "b", "c"),
        "isr": ("a", "b", "c"),
        "elr": (),
        "last_known_elr": (),
        "leader": None,
    }
    return choose_leader(
        kind, is_active=lambda broker: broker in active, guards=guards, **(arguments | changed)
    )


@pytest.mark.parametrize("replicas", ASSIGNMENTS)
@pytest.mark.parametrize("kind", Election)
def test_a15_every_small_input_gives_the_choice_of_the_naive_twin(
    kind: Election, replicas: tuple[str, ...]
) -> None:
    sets = subsets(replicas)
    known: list[tuple[str, ...]] = [(), ("a",), ("b",), ("z",), ("a", "b")]
    actives = subsets(("a", "b", "c", "z"))
    for isr, elr, last_known, leader in product(sets, sets, known, (None, *replicas)):
        for active in actives:
            found = elect(
                kind,
                replicas=replicas,
                isr=isr,
                elr=elr,
                last_known_elr=last_known,
                leader=leader,
                active="".join(active),
            )
            expected = naive(kind, replicas, isr, elr, last_known, leader, set(active))
            assert found == expected, (isr, elr, last_known, leader, active)
            if found.leader is not None:
                assert found.leader in active
                assert found.leader in replicas
                assert found.is_unclean is not (found.leader in (isr or elr))


def test_a15_online_keeps_a_valid_leader_and_else_takes_the_first_in_assignment_order() -> None:
    assert elect(leader="c") == Choice("c")
    assert elect(leader="c", active="ab") == Choice("a")
    assert elect(leader="c", isr=("b", "a")) == Choice("a"), "the assignment's order, not the ISR's"
    assert elect(active="") == NOBODY


def test_a15_preferred_takes_the_first_replica_if_valid_and_else_is_online() -> None:
    assert elect(Election.PREFERRED, leader="c") == Choice("a")
    assert elect(Election.PREFERRED, leader="c", active="bc") == Choice("c")
    assert elect(Election.PREFERRED, leader="c", isr=("b", "c")) == Choice("c")
    assert elect(Election.PREFERRED, replicas=(), isr=(), leader=None) == NOBODY


def test_a15_only_unclean_takes_an_active_replica_out_of_sync() -> None:
    given: dict[str, Any] = {"isr": ("a",), "active": "bc"}
    assert elect(Election.ONLINE, **given) == NOBODY
    assert elect(Election.PREFERRED, **given) == NOBODY
    assert elect(Election.UNCLEAN, **given) == Choice("b", is_unclean=True)
    assert elect(Election.UNCLEAN, isr=("c",), leader="c") == Choice("c")
    assert elect(Election.UNCLEAN, isr=("c",)) == Choice("c"), "a clean choice goes first"
    assert elect(Election.UNCLEAN, active="") == NOBODY


def test_a15_the_elr_counts_only_where_the_isr_is_empty() -> None:
    assert elect(isr=("a",), elr=("b",), active="b") == NOBODY
    assert elect(isr=(), elr=("b",)) == Choice("b")
    assert elect(isr=(), elr=("b", "c"), active="c") == Choice("c")


@pytest.mark.parametrize("kind", Election)
def test_a15_the_last_known_leader_leads_uncleanly_whatever_was_asked(kind: Election) -> None:
    known: dict[str, Any] = {"isr": (), "elr": (), "last_known_elr": ("b",)}
    assert elect(kind, **known) == Choice("b", is_unclean=True, is_last_known=True)


@pytest.mark.parametrize("kind", [Election.ONLINE, Election.PREFERRED])
def test_a17_the_last_known_leader_is_for_an_empty_isr_and_elr_alone(kind: Election) -> None:
    known: dict[str, Any] = {"last_known_elr": ("b",), "active": "b"}
    assert elect(kind, isr=("a",), **known) == NOBODY
    assert elect(kind, isr=(), elr=("a",), **known) == NOBODY
    assert elect(kind, isr=(), last_known_elr=("b", "c")) == NOBODY, "nobody knows which was last"


def test_i8_a_last_known_leader_that_is_no_replica_any_more_is_not_elected() -> None:
    known: dict[str, Any] = {"isr": (), "last_known_elr": ("c",), "replicas": ("a", "b")}
    assert elect(**known) == NOBODY
    assert elect(Election.UNCLEAN, **known) == Choice("a", is_unclean=True)


# Guards ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(
    "partition",
    [
        {"isr": ("a", "b"), "leader": "a"},
        {"isr": (), "elr": ("a", "b")},
        {"isr": (), "last_known_elr": ("a",)},
    ],
)
def test_a15_without_elect_only_active_a_fenced_broker_leads(
    partition: dict[str, Any], on: bool
) -> None:
    """Hazard B-43: a is fenced."""
    found = elect(guards=Guards(elect_only_active=on), active="bc", **partition)
    assert (found.leader != "a") is on, "I8, I12: the partition waits for a broker that is gone"
