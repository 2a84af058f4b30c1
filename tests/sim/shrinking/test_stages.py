"""Each stage alone makes something smaller that no other stage has touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sim.shrinking.shrinker import STAGES
from sim.shrinking.tables import Document, tables
from sim.shrinking.trials import Trials
from tests.sim.shrinking.cases import LOSS, actions, after, losing

STEPS: list[dict[str, Any]] = losing()["step"]
TWO: dict[str, Any] = {"brokers": 2, "writeback": "off"}


def _with_step(at: int, step: dict[str, Any]) -> Document:
    return losing(step=[*STEPS[:at], step, *STEPS[at:]])


def _crash(**keys: Any) -> Document:
    crash = {"node": "b1", "how": "power"} | keys
    return losing(step=[STEPS[0], {"at": "3s", "crash": crash}, STEPS[2]])


def _crash_fault(**keys: Any) -> Document:
    fault = {"id": "off", "kind": "crash", "target": "b1", "how": "power", "start": "3s"}
    return losing(fault=[{**fault, "end": "4s", **keys}], step=STEPS[:1])


WRITER = {"name": "writer", "kind": "producer", "topic": "orders-0", "rate": 20, "stop": "2s"}

CASES: dict[str, tuple[Document, Callable[[Document], Any], Any]] = {
    "liveness": (
        losing(liveness={}),
        lambda d: "liveness" in d,
        False,
    ),
    "horizon": (losing(until="60s"), lambda d: d["until"], "3.1s"),
    "selectors": (
        _crash(node="leader:orders-0"),
        lambda d: d["step"][1]["crash"]["node"],
        "b1",
    ),
    "faults": (
        losing(fault=[{"id": "slow", "kind": "slow", "target": "b1", "start": "1s", "cpu": 2}]),
        lambda d: tables(d, "fault"),
        [],
    ),
    "workloads": (
        losing(workload=[WRITER]),
        lambda d: tables(d, "workload"),
        [],
    ),
    "expectations": (
        losing(expect=[{"at": "2s", "that": "alive(b1)"}, {"at_end": "alive(b1)"}]),
        lambda d: tables(d, "expect"),
        [],
    ),
    "topics": (
        losing(topic=[*losing()["topic"], {"name": "other", "replicas": [["b1"]]}]),
        lambda d: [each["name"] for each in d["topic"]],
        ["orders"],
    ),
    "partitions": (
        losing(
            topic=[{"name": "orders", "replicas": [["b1"], ["b1"], ["b1"]]}],
            step=[{"at": "1s", "produce": {"to": "orders-1", "count": 1}}, *STEPS[1:]],
        ),
        lambda d: (d["topic"][0]["replicas"], d["step"][0]["produce"]["to"]),
        ([["b1"]], "orders-0"),
    ),
    "steps": (
        _with_step(1, {"at": "2s", "produce": {"to": "orders-0", "count": 5}}),
        lambda d: actions(d).count("produce"),
        1,
    ),
    "pairs": (
        losing(
            until="20s",
            step=[
                {"at": "100ms", "crash": {"node": "b1"}},
                {"at": "200ms", "start": "b1"},
                STEPS[0],
                {"crash": {"node": "b1", "how": "power"}},
            ],
        ),
        actions,
        ["produce", "crash"],
    ),
    "lists": (
        losing(
            cluster=TWO,
            step=[
                STEPS[0],
                {"at": "3s", "crash": {"node": ["b1", "b2"], "how": "power"}},
                STEPS[2],
            ],
        ),
        lambda d: d["step"][1]["crash"]["node"],
        "b1",
    ),
    "brokers": (
        losing(cluster={"brokers": 4, "writeback": "off"}),
        lambda d: d["cluster"]["brokers"],
        1,
    ),
    "records": (
        losing(step=[{"at": "1s", "produce": {"to": "orders-0", "count": 25}}, *STEPS[1:]]),
        lambda d: d["step"][0]["produce"]["count"],
        1,
    ),
    "numbers": (
        losing(workload=[WRITER], step=STEPS[1:]),
        lambda d: d["workload"][0]["rate"],
        1,
    ),
    "noise": (
        losing(
            cluster={
                "brokers": 1,
                "writeback": "off",
                "scheduler": "seeded",
                "latency": {"tail_ppm": 1000, "tail": "1s"},
            }
        ),
        lambda d: d["cluster"],
        {"brokers": 1, "writeback": "off", "latency": {"base": "400us", "jitter": "0s"}},
    ),
    "images": (
        _crash(image="torn"),
        lambda d: d["step"][1]["crash"]["image"],
        "lost",
    ),
    "conditions": (
        _crash_fault(start={"when": "acked('orders-0') == 1"}),
        lambda d: isinstance(d["fault"][0]["start"], str),
        True,
    ),
    "windows": (_crash_fault(), lambda d: d["fault"][0]["end"], "3.001s"),
    "durations": (
        losing(
            step=[
                {"id": "p", **STEPS[0]},
                {"after": "p", "delay": "1.7s", "crash": {"node": "b1", "how": "power"}},
                STEPS[2],
            ]
        ),
        lambda d: d["step"][1]["delay"],
        "0s",
    ),
    "gaps": (
        losing(until="60s", step=[*STEPS[:2], {"at": "40s", "start": "b1"}]),
        lambda d: (d["step"][0]["at"], d["step"][1]["at"], d["step"][2]["at"], d["until"]),
        ("100ms", "200ms", "300ms", "400ms"),
    ),
    "times": (
        losing(step=[{**STEPS[0], "at": "1.234567s"}, {**STEPS[1], "at": "2.999s"}, STEPS[2]]),
        lambda d: [each["at"] for each in d["step"]],
        ["1s", "2s", "4s"],
    ),
    "defaults": (
        losing(
            cluster={
                **losing()["cluster"],
                "config": {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 400},
            }
        ),
        lambda d: "config" in d["cluster"],
        False,
    ),
}


def test_there_is_a_case_for_every_stage() -> None:
    assert sorted(CASES) == sorted(name for name, _ in STAGES)


@pytest.mark.parametrize(("name", "stage"), STAGES, ids=[name for name, _ in STAGES])
def test_a_stage_alone_helps(name: str, stage: Callable[[Trials], None]) -> None:
    document, look, expected = CASES[name]
    assert look(document) != expected
    assert look(after(document, stage, LOSS)) == expected
