"""Drawn clusters and topics: how many brokers, how configured, on what hosts; where replicas lie.

Time-outs are short, so that sessions end and leaders change within a few seconds.

Left out: clients (``sim.swarm.clients``) and what strikes all of them.
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices, sample
from sim.swarm.frame import ANYTHING, Cluster
from sim.swarm.wanted import Wanted

__all__ = ["draw_cluster", "draw_topics"]

_GROUNDS: Final = ("calm", "kills", "kills", "flush", "elr", "elr", "elr")
_COMMON: Final = 3
"""So many brokers have most clusters."""
_SELDOM: Final = (5_000, 60_000, 60_000)
"""For checkpoints: each is a file that is replaced, and they were half of a world's disk calls."""
_KEPT: Final[tuple[dict[str, Any], ...]] = (
    {"retention.bytes": 800},
    {"retention.ms": 1_500},
    {"cleanup.policy": "compact"},
    {"cleanup.policy": "compact,delete", "retention.bytes": 1_500},
)


# The cluster -------------------------------------------------------------------------------------


def draw_cluster(choices: Choices, wanted: Wanted) -> Cluster:
    low, high = wanted.brokers
    grounds = _GROUNDS if high > 1 else _GROUNDS[:4]
    ground = choices.pick(grounds) if wanted.is_recoverable else ANYTHING
    least = max(low, min(high, 3)) if ground == "elr" else low
    counts = [*range(least, high + 1)]
    counts = sorted(counts + [_COMMON] * (2 if least <= _COMMON <= high else 0))
    brokers = choices.pick(counts)
    keys: dict[str, Any] = {"brokers": brokers}
    keys["config"] = choices.part(_config)
    keys |= choices.part(lambda inner: _hosts(inner, ground))
    is_possible = ground in ("calm", ANYTHING)
    keys["eligible_leader_replicas"] = ground == "elr" or (is_possible and choices.chance(40))
    if choices.chance(20):
        # The older of the two rules that lose nothing.
        keys["truncation"] = "kip-279"
    if wanted.guards:
        keys["guards"] = dict(wanted.guards)
    return Cluster(ground, brokers, keys)


def _config(choices: Choices) -> dict[str, Any]:
    """Of brokers and controller; the limits between these values hold for all choices."""
    pick = choices.pick
    found = {
        "broker.heartbeat.interval.ms": 500,
        "broker.session.timeout.ms": pick((1_500, 1_100, 2_500)),
        "replica.fetch.wait.max.ms": pick((500, 200)),
        "replica.fetch.backoff.ms": pick((200, 50)),
        "replica.lag.time.max.ms": pick((1_500, 1_100, 3_000)),
        "request.timeout.ms": pick((1_500, 800, 3_000)),
        "replica.high.watermark.checkpoint.interval.ms": pick((*_SELDOM, 300)),
        "log.flush.offset.checkpoint.interval.ms": pick((*_SELDOM, 700)),
        "unclean.leader.election.interval.ms": pick((1_000, 300)),
        "log.retention.check.interval.ms": pick((60_000, 600)),
        "log.cleaner.backoff.ms": pick((15_000, 500)),
        "controlled.shutdown.timeout.ms": pick((1_000, 3_000)),
        "leader.imbalance.check.interval.seconds": pick((0, 1)),
    }
    # At Kafka's defaults, which most keep, no drawn log reaches these limits.
    if choices.chance(15):
        found["replica.fetch.max.bytes"] = pick((300, 1))
    if choices.chance(15):
        found["replica.fetch.response.max.bytes"] = pick((400, 1))
    if choices.chance(10):
        found["producer.id.expiration.ms"] = pick((1_000, 100))
    return found


def _hosts(choices: Choices, ground: str) -> dict[str, Any]:
    """What the hosts are like, where that is not as by default."""
    keys: dict[str, Any] = {}
    if choices.chance(60):
        keys["writeback"] = choices.pick((["10ms", "200ms"], ["100ms", "2s"]))
    if choices.chance(50):
        keys["names_mode"] = "posix"
    keys["scheduler"] = choices.pick(("fifo", "seeded", "pct"))
    if choices.chance(30):
        keys["timer_clock"] = "mono"
    if choices.chance(50):
        keys["metadata_snapshot_records"] = choices.pick((40, 5))
    if choices.chance(12):
        keys["network"] = "datagram"
    if choices.chance(30):
        keys["latency"] = {
            "base": ["50us", choices.pick(("2ms", "20ms"))],
            "jitter": choices.pick(("1ms", "5ms", "20ms")),
            "tail_ppm": choices.pick((0, 1_000)),
            "tail": "300ms",
            "clients": choices.pick(("same", "immune", "zero-latency")),
        }
    if choices.chance(15):
        keys["cpu"] = choices.pick((["5us", "500us"], ["200us", "5ms"]))
    if choices.chance(15):
        keys["background"] = choices.pick((["1ms", "50ms"], ["20ms", "500ms"]))
    if choices.chance(20) and ground != "flush":
        # With a sync for each batch and small segments this takes minutes to catch up.
        keys["disk"] = {"fsync": ["500us", "40ms"], "auto_da_alloc": choices.chance(50)}
    return keys


# Topics ------------------------------------------------------------------------------------------


def draw_topics(choices: Choices, cluster: Cluster) -> list[dict[str, Any]]:
    count = choices.pick((1, 1, 1, 2))
    return [
        choices.part(lambda inner, at=at: _topic(inner, f"t{at}", cluster))  # type: ignore[misc]
        for at in range(1, count + 1)
    ]


def _topic(choices: Choices, name: str, cluster: Cluster) -> dict[str, Any]:
    is_elr = cluster.ground == "elr"
    most = min(cluster.brokers, 5)
    factor = choices.integer(min(2, most) if is_elr else 1, most)
    least = choices.integer(min(2, factor) if is_elr else 1, factor)
    config: dict[str, Any] = {"min.insync.replicas": least}
    if not cluster.is_recoverable and choices.chance(25):
        config["unclean.leader.election.enable"] = True
    if cluster.ground == "flush":
        config["flush.messages"] = 1
    elif cluster.ground != "kills" and choices.chance(15):
        config["flush.messages"] = choices.pick((1, 3))
    if choices.chance(50):
        config["segment.bytes"] = choices.pick((4_096, 1_000, 300))
        config["index.interval.bytes"] = choices.pick((4_096, 60))
    if choices.chance(10):
        config["segment.ms"] = choices.pick((1_000, 200))
    if choices.chance(10):
        config["segment.index.bytes"] = choices.pick((40, 24))
    if choices.chance(25):
        config |= {"segment.bytes": 300, **choices.pick(_KEPT)}
    partitions = choices.pick((1, 1, 1, 2, 2, 3, 4))
    lists = [sample(choices, cluster.names, factor) for _ in range(partitions)]
    return {"name": name, "replicas": lists, "config": config}
