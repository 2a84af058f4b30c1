"""A reassignment ends when all that stay are in sync; until then those that leave count."""

from __future__ import annotations

from typing import Any

import pytest

from sim.liveness.predicates import missing
from sim.liveness.proofs import Impossible
from sim.liveness.recoverability import impossible
from sim.liveness.snapshot import Culprit
from sim.liveness.waiting import chain
from tests.sim.liveness.plain import BITS, CRASH, lost, quarantined, snapshot

KIND = "reassignment-stuck"


def stuck(**changes: Any) -> list[Impossible]:
    return [each for each in impossible(snapshot(**changes)) if each.kind == KIND]


def names(**changes: Any) -> set[str]:
    return {each.predicate for each in missing(snapshot(**changes))}


@pytest.mark.parametrize(
    ("changes", "culprit"),
    [
        ({"adding": ("b3",), "nodes": {"b3": lost()}}, CRASH),
        ({"adding": ("b2",), "nodes": {"b3": lost()}}, CRASH),
        ({"removing": ("b2",), "nodes": {"b3": lost()}}, CRASH),
        ({"adding": ("b3",), "logs": {"b2": quarantined(is_salvageable=False)}}, BITS),
    ],
    ids=["added", "kept beside one added", "kept beside one leaving", "damaged"],
)
def test_one_that_is_to_stay_and_is_gone_stops_it(
    changes: dict[str, Any], culprit: Culprit
) -> None:
    (proof,) = stuck(**changes)
    assert proof.is_certain
    assert list(proof.culprits) == [culprit]
    assert proof.explains(missing(snapshot(**changes)))


@pytest.mark.parametrize(
    "changes",
    [
        {"adding": ("b3",), "logs": {"b2": quarantined()}},
        {"removing": ("b3",), "nodes": {"b3": lost()}},
        {"nodes": {"b3": lost()}},
    ],
    ids=["may be salvaged", "leaves", "no reassignment"],
)
def test_it_ends_without_one_that_leaves_or_comes_back(changes: dict[str, Any]) -> None:
    assert stuck(**changes) == []


def test_a_replica_that_leaves_may_be_in_sync_until_it_does() -> None:
    changes: dict[str, Any] = {"nodes": {"b3": lost()}, "isr": ("b1", "b2")}
    assert names(removing=("b2",), **changes) == {"no-reassignment"}
    assert names(removing=("b2",), probe="rejected", **changes) == {"no-reassignment"}
    assert names(probe="rejected", **changes) == {"writes-answered"}


def test_it_waits_for_all_that_stay() -> None:
    now = snapshot(adding=("b2",), isr=("b1", "b2"), logs={"b3": {"end": 4}})
    (found,) = [each for each in missing(now) if each.predicate == "no-reassignment"]
    assert "waits for b3 (out of sync, log end 4)" in chain(now, found)
