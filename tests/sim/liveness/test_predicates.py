"""Each predicate misses what is planted for it, in words, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest

from sim.liveness.predicates import PREDICATES, missing
from sim.liveness.snapshot import Wait
from tests.sim.liveness.plain import lost, quarantined, snapshot

PLANTED: list[tuple[str, dict[str, Any], str]] = [
    ("controller-leads", {"nodes": {"c1": {"status": "down"}}}, "the controller c1 is down"),
    ("brokers-run", {"nodes": {"b3": {"status": "paused"}}}, "b3 is paused"),
    ("brokers-unfenced", {"nodes": {"b3": {"is_fenced": True}}}, "b3 is fenced"),
    (
        "metadata-applied",
        {"nodes": {"b2": {"is_behind": True}}},
        "b2 has not applied the newest metadata",
    ),
    ("partitions-led", {"leader": None}, "orders-0 has no leader"),
    ("partitions-led", {"is_led": False}, "b1 is elected and does not lead orders-0"),
    (
        "replicas-sound",
        {"logs": {"b2": quarantined()}},
        "b2 has orders-0 in quarantine: corrupt-log",
    ),
    (
        "replicas-sound",
        {"logs": {"b2": {"fetch": "failed"}}},
        "the fetcher of b2 has failed for orders-0",
    ),
    ("replicas-sound", {"logs": {"b2": {"role": "none"}}}, "b2 has no replica of orders-0"),
    ("isr-complete", {"isr": ("b1", "b2")}, "b3 is not in sync for orders-0"),
    (
        "elr-empty",
        {"isr": ("b1", "b2", "b3"), "elr": ("b3",)},
        "orders-0 has b3 in the ELR with an ISR of b1, b2, b3",
    ),
    ("no-reassignment", {"adding": ("b3",)}, "a reassignment of orders-0 adds b3"),
    ("writes-answered", {"probe": ""}, "a write to orders-0 was not asked for, and must be acked"),
    ("writes-answered", {"probe": "waiting"}, "has no answer, and must be acked"),
    (
        "writes-answered",
        {"probe": "rejected", "probe_error": "NOT_ENOUGH_REPLICAS"},
        "a write to orders-0 is rejected (NOT_ENOUGH_REPLICAS), and must be acked",
    ),
    (
        "logs-equal",
        {"logs": {"b2": {"end": 9, "high_watermark": 9}}},
        "b2 ends at 9, the leader b1 at 10 in orders-0",
    ),
    (
        "logs-equal",
        {"logs": {"b2": {"high_watermark": 9}}},
        "b2 has high watermark 9 of orders-0, the leader has 10",
    ),
    ("logs-equal", {"logs": {"b2": {"is_same": False}}}, "b2 has other bytes than b1 in orders-0"),
    (
        "operations-ended",
        {"waits": (Wait(client="p1", what="produce", partition="orders-0"),)},
        "p1's produce to orders-0 has no outcome",
    ),
    (
        "operations-ended",
        {"waits": (Wait(client="admin", what="request", at="c1", text="ElectLeadersRequest"),)},
        "admin's ElectLeadersRequest has no outcome",
    ),
    (
        "readers-drained",
        {"read_end": None},
        "the reader of orders-0 has not begun, committed is up to 10",
    ),
    ("readers-drained", {"read_end": 7}, "the reader of orders-0 is at 7, committed is up to 10"),
    (
        "readers-drained",
        {"waits": (Wait(client="k1", what="consume", partition="orders-0", offset=4),)},
        "k1 is at 4 of orders-0, committed is up to 10",
    ),
    (
        "epochs-stable",
        {"changed_us": 95_000_000},
        "an epoch changed 5.0 s ago, a session is 9 s",
    ),
    (
        "epochs-stable",
        {"epoch_changed_us": 95_000_000},
        "an epoch of orders-0 changed 5.0 s ago, a session is 9 s",
    ),
]


def test_a_healthy_cluster_misses_nothing() -> None:
    assert missing(snapshot()) == []


def test_something_is_planted_for_every_predicate() -> None:
    assert {name for name, _, _ in PLANTED} == set(PREDICATES)


@pytest.mark.parametrize(("name", "changes", "text"), PLANTED)
def test_a_predicate_misses_what_is_planted(name: str, changes: dict[str, Any], text: str) -> None:
    found = [each for each in missing(snapshot(**changes)) if each.predicate == name]
    assert [text in each.text for each in found] == [True], found


@pytest.mark.parametrize(
    ("name", "changes"),
    [each[:2] for each in PLANTED if each[0] not in ("partitions-led", "isr-complete")],
)
def test_it_misses_nothing_else(name: str, changes: dict[str, Any]) -> None:
    assert {each.predicate for each in missing(snapshot(**changes))} == {name}


def test_outside_the_core_nothing_is_demanded_of_a_broker() -> None:
    changes: dict[str, Any] = {"nodes": {"b3": lost()}, "isr": ("b1", "b2")}
    changes |= {"logs": {"b3": {"role": "none", "end": 3}}}
    assert missing(snapshot(**changes)) == []


def test_writes_must_be_rejected_where_too_few_are_left() -> None:
    changes: dict[str, Any] = {"nodes": {"b2": lost(), "b3": lost()}, "isr": ("b1",)}
    accepted = missing(snapshot(**changes))
    assert [each.text for each in accepted] == [
        "a write to orders-0 is acked, and must be rejected"
    ]
    assert missing(snapshot(probe="rejected", **changes)) == []


def test_with_too_few_in_sync_the_high_watermark_may_stand_below_the_end() -> None:
    changes: dict[str, Any] = {"nodes": {"b2": lost(), "b3": lost()}, "isr": ("b1",)}
    changes |= {"probe": "rejected", "logs": {"b1": {"high_watermark": 8}}}
    assert missing(snapshot(**changes)) == []
    enough = snapshot(logs={"b1": {"high_watermark": 8}})
    assert {each.predicate for each in missing(enough)} == {"logs-equal"}


def test_what_is_not_committed_is_told_of_the_leader() -> None:
    low: dict[str, Any] = {name: {"high_watermark": 8} for name in ("b1", "b2", "b3")}
    assert [each.node for each in missing(snapshot(logs=low))] == ["b1"]
    outside = snapshot(logs=low, nodes={"b1": {"is_core": False}})
    found = [each.node for each in missing(outside) if each.predicate == "logs-equal"]
    assert found == ["b1"]
    follower = snapshot(logs={"b2": {"high_watermark": 8}}, nodes={"b1": {"is_core": False}})
    found = [each.node for each in missing(follower) if each.predicate == "logs-equal"]
    assert found == ["b2"]
    nobody = {name: {"is_core": False} for name in ("b1", "b2", "b3")}
    found = [each.node for each in missing(snapshot(logs=low, nodes=nobody))]
    assert found == []


def test_a_cluster_that_has_just_been_looked_at_for_the_first_time_has_changed_no_epoch() -> None:
    assert missing(snapshot(t_us=5_000_000, changed_us=-9_000_000)) == []


def test_under_load_followers_may_be_behind_but_not_otherwise() -> None:
    behind: dict[str, Any] = {"logs": {"b2": {"end": 9, "high_watermark": 8}}, "read_end": 3}
    behind["waits"] = (Wait(client="p1", what="produce", partition="orders-0"),)
    assert missing(snapshot(is_loaded=True, **behind)) == []
    at_rest = {each.predicate for each in missing(snapshot(**behind))}
    assert at_rest == {"logs-equal", "operations-ended", "readers-drained"}
    other = snapshot(is_loaded=True, logs={"b2": {"is_same": False}})
    assert {each.predicate for each in missing(other)} == {"logs-equal"}


def test_a_replica_that_leaves_need_not_be_in_sync() -> None:
    leaving = snapshot(isr=("b1", "b2"), removing=("b3",))
    assert {each.predicate for each in missing(leaving)} == {"no-reassignment"}
