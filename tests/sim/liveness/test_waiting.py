"""The chain of who waits for whom, in words."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sim.liveness.predicates import missing
from sim.liveness.snapshot import Culprit, Snapshot, Wait
from sim.liveness.waiting import chain, chains
from tests.sim.liveness.plain import CRASH, lost, quarantined, snapshot

PRODUCE = Wait(client="p1", what="produce", partition="orders-0", at="b1", offset=12, since=801)
HEAD = "p1's produce to orders-0 (#801) waits for high watermark 12 of b1, which waits for "
LED = {"b1": {"end": 12, "high_watermark": 10}}

CHAINS: list[tuple[dict[str, Any], str]] = [
    (
        {"logs": {**LED, "b2": {"end": 12}, "b3": {"fetch": "failed", "failed": 812}}},
        "b3 (in sync, log end 10), whose fetcher is failed since #812",
    ),
    (
        {
            "isr": ("b1", "b2"),
            "logs": {**LED, "b2": {"end": 12}, "b3": {"role": "none", "end": 10}},
            "nodes": {"b3": {"status": "down", "culprit": CRASH}},
        },
        "b3 (out of sync), which is down since #45",
    ),
    (
        {"isr": ("b1", "b2"), "logs": {**LED, "b2": {"end": 12}, "b3": quarantined()}},
        (
            "b3 (out of sync), whose log is in quarantine (corrupt-log, since bytes on the "
            "disk of b1 were changed, by 'rot' (#77))"
        ),
    ),
    (
        {
            "isr": ("b1",),
            "logs": {**LED, "b2": {"leader": "b3", "leader_epoch": 4}, "b3": {"circles": 55}},
            "leader_epoch": 5,
        },
        (
            "an ISR of 2, in which only b1 is; "
            "b2 (out of sync, log end 10), which follows b3 in epoch 4, not 5; "
            "b3 (out of sync, log end 10), which cuts its log again and again since #55"
        ),
    ),
    (
        {"logs": {**LED, "b2": {"end": 12}}, "isr": ("b1", "b2"), "proposed": ("b1", "b2", "b3")},
        "b3 (out of sync, log end 10), whom b1 has proposed for the ISR without an answer",
    ),
    (
        {
            "logs": {**LED, "b2": {"end": 12}},
            "isr": ("b1", "b2"),
            "nodes": {"b3": {"is_fenced": True}},
        },
        "b3 (out of sync, log end 10), which is fenced",
    ),
    (
        {"logs": {**LED, "b2": {"end": 12}}},
        "b3 (in sync, log end 10), which fetches from b1 (fetching) and gets nothing",
    ),
    (
        {"nodes": {"c1": {"status": "off"}}},
        "the controller c1, which is off",
    ),
    (
        {
            "leader": None,
            "isr": ("b2",),
            "elr": ("b3",),
            "nodes": {"b2": lost(), "b3": {"is_fenced": True}},
        },
        (
            "an election: b2, in the ISR, is down since #45, outside the core; "
            "b3, in the ELR, is fenced"
        ),
    ),
    (
        {"leader": None, "isr": ("b2",), "logs": {"b2": quarantined()}},
        "an election: b2, in the ISR, is in quarantine (corrupt-log)",
    ),
    ({"leader": None, "isr": ()}, "an election, for which nobody is left"),
    (
        {"is_led": False, "leader_epoch": 3, "logs": {"b1": {"leader_epoch": 2}}},
        "b1 to lead it in epoch 3, which has not applied that, at epoch 2",
    ),
    (
        {"is_led": False, "logs": {"b1": quarantined()}},
        "b1 to lead it in epoch 0, whose log is in quarantine (corrupt-log)",
    ),
    (
        {"is_led": False, "nodes": {"b1": {"status": "paused", "culprit": Culprit("it", 9)}}},
        "b1 to lead it in epoch 0, which is paused since #9",
    ),
]


def first(now: Snapshot) -> str:
    found = [each for each in missing(now) if each.partition]
    return chain(now, found[0])


@pytest.mark.parametrize(("changes", "tail"), CHAINS)
def test_a_chain_goes_from_the_client_down_to_what_does_not_move(
    changes: dict[str, Any], tail: str
) -> None:
    assert first(snapshot(waits=(PRODUCE,), **changes)) == HEAD + tail


def test_without_a_client_it_begins_with_what_is_missing() -> None:
    now = snapshot(leader=None, isr=("b2",), nodes={"b2": lost()})
    assert first(now) == (
        "orders-0 has no leader, which waits for an election: "
        "b2, in the ISR, is down since #45, outside the core"
    )


@pytest.mark.parametrize(
    ("at", "head"),
    [
        ("b1", "p1's produce to orders-0 waits for an answer of b1"),
        ("", "p1's produce to orders-0 waits to be sent"),
    ],
)
def test_a_request_may_not_have_got_as_far(at: str, head: str) -> None:
    now = snapshot(waits=(evolve(PRODUCE, at=at, offset=-1, since=0),), leader=None, isr=())
    assert first(now) == f"{head}, which waits for an election, for which nobody is left"


def test_a_reassignment_waits_for_whom_it_adds() -> None:
    now = snapshot(adding=("b3",), isr=("b1", "b2"), logs={"b3": {"end": 4}})
    (found,) = [each for each in missing(now) if each.predicate == "no-reassignment"]
    assert chain(now, found) == (
        "a reassignment of orders-0 adds b3, which waits for b3 (out of sync, log end 4), "
        "which fetches from b1 (fetching) and gets nothing"
    )


def test_bytes_that_differ_wait_for_nobody() -> None:
    now = snapshot(logs={"b2": {"is_same": False}}, isr=("b1", "b2"))
    found = [each for each in missing(now) if each.predicate == "logs-equal"]
    assert chain(now, found[0]) == "b2 has other bytes than b1 in orders-0"


def test_a_node_is_told_of_with_its_state() -> None:
    now = snapshot(nodes={"b3": {"status": "off", "culprit": CRASH}})
    assert chains(now, missing(now))[0] == "b3 is off: b1 ended (process) (#45)"


def test_each_partition_is_told_of_once() -> None:
    now = snapshot(leader=None, is_led=False, isr=("b2",), probe="waiting")
    assert len(missing(now)) > 1
    assert len(chains(now, missing(now))) == 1
