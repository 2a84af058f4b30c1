"""From a scenario's data to what a world is made of.

``cluster_config(scenario)`` and ``scheduler_of(scenario)`` are arguments of ``World``;
``assignments_of(topic, brokers)`` is one of ``Cluster.create_topic``.

Left out: steps and faults, which the interpreter carries out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import evolve

from cluster.config import BrokerConfig, ControllerConfig, TopicConfig
from cluster.guards import Guards
from cluster.names import Clock
from cluster.truncation import TruncationMode
from sim.cluster_config import ClockConfig, ClusterConfig, DiskConfig
from sim.disk_names import NamesMode
from sim.disk_speed import DiskSpeed
from sim.draws import Draws
from sim.latency import NetworkConfig
from sim.scenario.actions import CreateTopic
from sim.scenario.cluster_keys import NAMES_MODES, ClusterKeys
from sim.scenario.kafka_keys import CLUSTER_KEYS, kafka_words
from sim.scenario.model import Scenario, Topic
from sim.scenario.problems import Refusal
from sim.schedulers import Fifo, Pct, Scheduler, Seeded
from storage.errors import InvalidConfig

__all__ = [
    "assignments_of",
    "cluster_config",
    "config_problem",
    "options_of",
    "replica_name",
    "scheduler_of",
]

_REPLICAS: Final = 3
_PCT_DEPTH: Final = 3
_PCT_ENTRIES: Final = 10_000


def cluster_config(scenario: Scenario) -> ClusterConfig:
    """What ``World`` takes for this scenario."""
    found = _config_of(scenario.cluster)
    if scenario.make_broker is not None:
        found = evolve(found, make_broker=scenario.make_broker)
    return found


def replica_name(make_broker: Callable[..., Any]) -> str:
    """``MODULE:NAME`` of whatever makes brokers, as the command line takes it."""
    module = getattr(make_broker, "__module__", "")
    return f"{module}:{getattr(make_broker, '__qualname__', repr(make_broker))}"


def scheduler_of(scenario: Scenario, seed: int) -> Scheduler:
    """What decides on the order of one moment."""
    if scenario.cluster.scheduler == "fifo":
        return Fifo()
    draws = Draws(seed)
    if scenario.cluster.scheduler == "seeded":
        return Seeded(draws)
    return Pct(draws, depth=_PCT_DEPTH, entries=_PCT_ENTRIES)


def assignments_of(topic: Topic | CreateTopic, brokers: int) -> tuple[tuple[str, ...], ...]:
    """The replicas of each partition; where a file names none, partition p begins at broker p."""
    if topic.replicas is not None:
        return topic.replicas
    count = topic.replication or min(_REPLICAS, brokers)
    names = [f"b{number}" for number in range(1, brokers + 1)]
    return tuple(
        tuple(names[(first + at) % brokers] for at in range(count))
        for first in range(topic.partitions)
    )


def options_of(scenario: Scenario) -> dict[str, Any]:
    """Every effective option of ``[cluster]``, plain, for headers and reports."""
    found = _options(scenario.cluster)
    if scenario.make_broker is not None:
        found["replica"] = replica_name(scenario.make_broker)
    return dict(sorted(found.items()))


def _options(cluster: ClusterKeys) -> dict[str, Any]:
    config = _config_of(cluster)
    found: dict[str, Any] = {
        key: getattr(cluster, key)
        for key in (
            "brokers",
            "truncation",
            "eligible_leader_replicas",
            "names_mode",
            "network",
            "scheduler",
        )
    }
    found["writeback"] = list(cluster.writeback) if cluster.writeback else "off"
    found["guards"] = {key: on for key, on in sorted(cluster.guards.items()) if not on}
    values: dict[str, Any] = {}
    for key, known in CLUSTER_KEYS.items():
        if known.broker:
            values[key] = getattr(config.broker, known.broker) // known.scale
        elif known.controller:
            values[key] = getattr(config.controller, known.controller) // known.scale
        elif key in cluster.config:
            values[key] = cluster.config[key]
    found["config"] = values
    return found


def config_problem(cluster: ClusterKeys, topics: Iterable[Topic]) -> list[Refusal]:
    """What is wrong between values of ``[cluster]``, or of a topic and it."""
    found = []
    try:
        _config_of(cluster)
    except (InvalidConfig, ValueError) as error:
        at = ("cluster", "config") if isinstance(error, InvalidConfig) else ("cluster",)
        found.append(Refusal(kafka_words(str(error)), at=at))
    for number, topic in enumerate(topics):
        wanted = topic.replication or 0
        if wanted > cluster.brokers:
            text = f"{wanted} replicas need {wanted} brokers, there are {cluster.brokers}"
            found.append(Refusal(text, at=("topic", number, "replication")))
    return found


def _config_of(cluster: ClusterKeys) -> ClusterConfig:
    broker: dict[str, Any] = {
        "eligible_leader_replicas": cluster.eligible_leader_replicas,
        "truncation": TruncationMode(cluster.truncation),
    }
    controller: dict[str, Any] = {
        "eligible_leader_replicas": cluster.eligible_leader_replicas,
        "metadata_snapshot_records": cluster.metadata_snapshot_records,
    }
    topic: dict[str, str] = {}
    for key, value in cluster.config.items():
        known = CLUSTER_KEYS[key]
        if known.broker:
            broker[known.broker] = value
        if known.controller:
            controller[known.controller] = value
        if known.topic:
            topic[known.topic] = str(value)
    latency, disk = cluster.latency, cluster.disk
    return ClusterConfig(
        brokers=cluster.brokers,
        broker=BrokerConfig(**broker),
        controller=ControllerConfig(**controller),
        topic=TopicConfig.from_kafka(topic),
        guards=Guards(**{key.replace("-", "_"): on for key, on in cluster.guards.items()}),
        network=NetworkConfig(
            mode=cluster.network,
            base_min_us=latency.base[0],
            base_max_us=latency.base[1],
            jitter_mean_us=latency.jitter_us,
            tail_ppm=latency.tail_ppm,
            tail_max_us=latency.tail_us,
            clients=latency.clients,
        ),
        disk=DiskConfig(
            names_mode=_names_mode(cluster.names_mode),
            auto_da_alloc=disk.auto_da_alloc,
            capacity_bytes=disk.capacity,
            writeback_us=cluster.writeback,
            speed=DiskSpeed(
                fsync_min_us=disk.fsync[0],
                fsync_max_us=disk.fsync[1],
                tail_ppm=disk.tail_ppm,
                tail_max_us=disk.tail_us,
                call_us=disk.call_us,
                bytes_per_us=disk.bytes_per_us,
                names_us=disk.names_us,
            ),
        ),
        cpu_us=cluster.cpu,
        background_us=cluster.background,
        timer_clock=_timer_clock(cluster.timer_clock),
        clocks={
            node: ClockConfig(
                offset_us=clock.offset_us,
                wall_ppm=clock.wall_ppm,
                mono_ppm=clock.mono_ppm,
                jitter_ppm=clock.jitter_ppm,
            )
            for node, clock in cluster.clocks.items()
        },
    )


def _timer_clock(text: str) -> Clock:
    return "mono" if text == "mono" else "wall"


def _names_mode(text: str) -> NamesMode:
    return next(each for each in NAMES_MODES if each == text)
