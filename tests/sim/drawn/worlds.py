"""Whole scenarios drawn from a seed: cluster, topics, clients, and a plan of faults, as text.

Left out: what strikes them (``plans``); running them.
"""

from __future__ import annotations

import random
from typing import Any, Final

from sim.scenario.writing import scenario_text
from tests.sim.drawn.plans import Plan, fill_plan

__all__ = ["ENVELOPES", "drawn"]

ENVELOPES: Final = ("recoverable", "unrestricted")
_GROUNDS: Final = ("kills", "kills", "flush", "elr", "elr", "elr", "calm")
_LICENCES: Final = ["L0", "L1", "L2", "L3", "L4"]


def drawn(seed: int, envelope: str) -> str:
    """The text of a scenario file.

    Args:
        envelope: of ``ENVELOPES``.
    """
    rng = random.Random(f"{envelope}/{seed}")
    ground = rng.choice(_GROUNDS) if envelope == "recoverable" else ""
    brokers = rng.choice([1, 2, 3, 3, 3, 4, 5]) if ground != "elr" else rng.choice([3, 3, 4, 5])
    cluster = _cluster(rng, brokers, ground)
    topics = [_topic(rng, f"t{at}", brokers, ground) for at in range(rng.choice([1, 1, 2, 3]))]
    span_ms = rng.choice([8_000, 15_000, 25_000])
    plan = _plan(rng, brokers, ground, topics, span_ms)
    plan.writes_back = cluster["writeback"] != "off"
    fill_plan(plan, rng.choice([1, 2, 4, 7, 12]))
    if cluster.get("network") == "datagram":
        for kind in ("duplicate", "reorder"):
            more: dict[str, Any] = {"up_to": "40ms"} if kind == "reorder" else {}
            plan.fault(kind, "*", *plan.window(), ppm=rng.choice([20_000, 300_000]), **more)
    document: dict[str, Any] = {
        "schema": 1,
        "name": f"{envelope}-{seed}",
        "title": f"drawn: {ground or 'anything goes'}",
        "until": f"{span_ms + 12_000}ms",
        "seed": seed,
        "cluster": cluster,
        "liveness": _liveness(rng, ground),
        "topic": topics,
        "workload": _workloads(rng, topics, span_ms),
        "fault": plan.faults,
        "step": [_step(step) for step in plan.steps],
        "expect": [{"allow": ["L0"] if ground else _LICENCES}],
    }
    return scenario_text(document)


def _step(step: dict[str, Any]) -> dict[str, Any]:
    """Steps are sorted by time; one that comes behind a fault has none."""
    return {key: value for key, value in step.items() if key != "at" or "after" not in step}


def _liveness(rng: random.Random, ground: str) -> dict[str, Any]:
    if ground:
        return {"within": "60s", "core": "all"}
    return {"within": "60s", "core": rng.choice(["all", "drawn"])}


def _cluster(rng: random.Random, brokers: int, ground: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "broker.session.timeout.ms": 2_000,
        "broker.heartbeat.interval.ms": 500,
        "replica.lag.time.max.ms": rng.choice([2_000, 5_000, 30_000]),
        "request.timeout.ms": rng.choice([2_000, 5_000]),
        "replica.high.watermark.checkpoint.interval.ms": rng.choice([500, 5_000]),
        "log.flush.offset.checkpoint.interval.ms": rng.choice([1_000, 60_000]),
        "unclean.leader.election.interval.ms": 3_000,
        "log.retention.check.interval.ms": 2_000,
        "log.cleaner.backoff.ms": 1_500,
        "controlled.shutdown.timeout.ms": 3_000,
        "leader.imbalance.check.interval.seconds": rng.choice([0, 5]),
    }
    elr = ground == "elr" or (ground in ("", "calm") and rng.random() < 0.4)
    found: dict[str, Any] = {"brokers": brokers, "config": config}
    found["eligible_leader_replicas"] = elr
    found["writeback"] = rng.choice(["off", ["10ms", "200ms"], ["100ms", "5s"]])
    found["names_mode"] = rng.choice(["ext4", "posix"])
    found["scheduler"] = rng.choice(["fifo", "seeded", "pct"])
    found["timer_clock"] = rng.choice(["wall", "wall", "mono"])
    found["metadata_snapshot_records"] = rng.choice([0, 5, 40])
    if rng.random() < 0.1:
        found["network"] = "datagram"
    if rng.random() < 0.3:
        found["latency"] = {
            "base": ["50us", "20ms"],
            "jitter": "5ms",
            "tail_ppm": 2_000,
            "tail": "400ms",
        }
    if rng.random() < 0.2 and ground != "flush":
        # With a sync for each batch, small segments and this, catching up takes minutes.
        found["disk"] = {"fsync": ["500us", "40ms"], "auto_da_alloc": True}
    return found


def _topic(rng: random.Random, name: str, brokers: int, ground: str) -> dict[str, Any]:
    factor = rng.randint(3, brokers) if ground == "elr" else rng.randint(1, brokers)
    least = 2 if ground == "elr" else 1
    most = factor - 1 if ground and factor > 1 else factor
    config: dict[str, Any] = {"min.insync.replicas": rng.randint(least, max(least, most))}
    if not ground and rng.random() < 0.3:
        config["unclean.leader.election.enable"] = True
    if ground == "flush" or (ground != "kills" and rng.random() < 0.2):
        config["flush.messages"] = 1
    if rng.random() < 0.5:
        config["segment.bytes"] = rng.choice([300, 1_000, 4_096])
        config["index.interval.bytes"] = rng.choice([60, 4_096])
    if rng.random() < 0.25:
        kept: list[dict[str, Any]] = [
            {"retention.bytes": 2_000},
            {"retention.ms": 6_000},
            {"cleanup.policy": "compact"},
        ]
        config |= {"segment.bytes": 400, **rng.choice(kept)}
    names = [f"b{number}" for number in range(1, brokers + 1)]
    partitions = rng.choice([1, 1, 2])
    return {
        "name": name,
        "replicas": [rng.sample(names, factor) for _ in range(partitions)],
        "config": config,
    }


def _plan(
    rng: random.Random, brokers: int, ground: str, topics: list[dict[str, Any]], span_ms: int
) -> Plan:
    names = [f"b{number}" for number in range(1, brokers + 1)]
    places = {
        f"{topic['name']}-{at}": list(replicas)
        for topic in topics
        for at, replicas in enumerate(topic["replicas"])
    }
    victims = names
    if ground == "elr":
        least = min(int(topic["config"]["min.insync.replicas"]) for topic in topics)
        victims = rng.sample(names, min(least - 1, brokers))
    retains = any("retention.ms" in topic["config"] for topic in topics)
    return Plan(rng, brokers, ground, victims, places, span_ms, clock_is_safe=not retains)


def _workloads(rng: random.Random, topics: list[dict[str, Any]], span_ms: int) -> list[Any]:
    found: list[Any] = []
    for at, topic in enumerate(topics):
        for number in range(rng.choice([1, 1, 2])):
            acks = rng.choice(["all", "all", "all", "1", "0"])
            keyed = topic["config"].get("cleanup.policy") == "compact" or rng.random() < 0.3
            name = topic["name"]
            to = name if rng.random() < 0.5 else f"{name}-{rng.randrange(len(topic['replicas']))}"
            one: dict[str, Any] = {
                "name": f"p{at}{number}",
                "kind": "producer",
                "topic": to,
                "rate": rng.choice([2, 5, 12]),
                "acks": acks,
                "record_bytes": rng.choice([12, 40, 200]),
                "batch": rng.choice([1, 4]),
                "start": f"{rng.choice([100, 1_000])}ms",
                "stop": f"{rng.choice([span_ms // 2, span_ms, span_ms + 6_000])}ms",
            }
            if keyed:
                one["keys"] = rng.choice([2, 7])
            if acks == "all" and rng.random() < 0.3:
                one["idempotence"] = False
            found.append(one)
        if rng.random() < 0.7:
            reset = rng.choice(["earliest", "earliest", "latest", "none"])
            reader = {"name": f"k{at}", "kind": "consumer", "topic": f"{topic['name']}-0"}
            if rng.random() < 0.4:
                reader["group"] = f"g{at}"
            found.append(reader | {"reset": reset, "start": "1s"})
    return found
