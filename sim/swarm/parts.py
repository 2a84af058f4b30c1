"""Parts of drawn scenarios on their own, for clusters that somebody else has made.

Left out: putting parts together (``sim.strategies``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from sim.scenario.names import BROKERS_MAX
from sim.swarm.choosing import Choices
from sim.swarm.clients import draw_workloads
from sim.swarm.clusters import draw_cluster, draw_topics
from sim.swarm.documents import draw_faults, struck
from sim.swarm.frame import ANYTHING, Cluster
from sim.swarm.wanted import Wanted

__all__ = [
    "PLAIN",
    "SPAN_MIN_MS",
    "Tables",
    "cluster_tables",
    "fault_tables",
    "grounds_of",
    "tables_of",
    "workload_tables",
]

SPAN_MIN_MS: Final = 500
PLAIN: Final[dict[str, Any]] = {
    "cluster": {"brokers": 3},
    "topic": [
        {
            "name": "t1",
            "replicas": [["b1", "b2", "b3"]],
            "config": {"min.insync.replicas": 2},
        }
    ],
}
"""What parts are for if nothing else is said."""


@frozen
class Tables:
    """A cluster, its topics and clients, as somebody has made them.

    Each topic has its replicas and its ``min.insync.replicas``.
    """

    cluster: dict[str, Any]
    topics: list[dict[str, Any]]
    brokers: int
    clients: list[str]


def tables_of(document: Mapping[str, Any]) -> Tables:
    """The cluster and the topics of a document.

    Raises:
        ValueError: it has no topic, or something in it is no table or no number of brokers.
    """
    cluster = dict(_table("cluster", document.get("cluster", {})))
    brokers = cluster.get("brokers", 3)
    if brokers.__class__ is not int or not 1 <= brokers <= BROKERS_MAX:
        raise ValueError(f"brokers is {brokers!r}, allowed is 1..{BROKERS_MAX}")
    given = document.get("topic", [])
    if not isinstance(given, list | tuple):
        raise ValueError(f"topic is {given!r}, allowed is a list of tables")
    names = [f"b{number}" for number in range(1, brokers + 1)]
    topics = []
    least = cluster.get("config", {}).get("min.insync.replicas", 1)
    for each in given:
        topic = dict(_table("a topic", each))
        topic["config"] = {"min.insync.replicas": least} | dict(each.get("config", {}))
        count = int(topic.pop("replication", None) or min(3, brokers))
        for first in range(int(topic.pop("partitions", 1)) if "replicas" not in topic else 0):
            lists = topic.setdefault("replicas", [])
            lists.append([names[(first + at) % brokers] for at in range(count)])
        topics.append(topic)
    if not topics:
        raise ValueError("there is no topic: faults and clients need one, as [[topic]] in a file")
    clients = [str(each.get("name")) for each in document.get("workload", [])]
    return Tables(cluster, topics, brokers, clients)


def _table(what: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError(f"{what} is {value!r}, allowed is a table")
    return value


def cluster_tables(choices: Choices, wanted: Wanted) -> dict[str, Any]:
    cluster = draw_cluster(choices, wanted)
    topics = choices.part(lambda inner: draw_topics(inner, cluster))
    return {"cluster": cluster.keys, "topic": topics}


def workload_tables(choices: Choices, tables: Tables, span_ms: int) -> dict[str, Any]:
    return {"workload": draw_workloads(choices, tables.topics, span_ms, 1)}


def grounds_of(tables: Tables, wanted: Wanted) -> Sequence[str]:
    """On which grounds a cluster recovers from faults; the calmest first.

    Raises:
        ValueError: none, since unclean election is on.
    """
    if not wanted.is_recoverable:
        return (ANYTHING,)
    for topic in [
        {"name": "[cluster]", "config": tables.cluster.get("config", {})},
        *tables.topics,
    ]:
        if _value(topic, "unclean.leader.election.enable", "false") == "true":
            raise ValueError(
                f"{topic['name']} allows unclean election, by which a correct cluster may lose "
                'records: switch it off, or take envelope "unrestricted"'
            )
    if tables.cluster.get("eligible_leader_replicas"):
        least = min(int(each["config"]["min.insync.replicas"]) for each in tables.topics)
        return ("calm", "elr") if least > 1 else ("calm",)
    if all(_value(each, "flush.messages", "0") == "1" for each in tables.topics):
        return ("calm", "kills", "flush")
    return ("calm", "kills")


def _value(topic: Mapping[str, Any], key: str, default: object) -> str:
    return str(topic.get("config", {}).get(key, default)).lower()


def fault_tables(
    choices: Choices, wanted: Wanted, tables: Tables, grounds: Sequence[str], span_ms: int
) -> dict[str, Any]:
    """Faults, steps and the end of the run."""
    cluster = Cluster(choices.pick(grounds), tables.brokers, tables.cluster)
    plan = draw_faults(choices, wanted, cluster, tables.topics, span_ms, tables.clients)
    return {"until": f"{plan.end_ms}ms", **struck(plan)}
