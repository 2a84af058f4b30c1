"""Snapshots for tests: a healthy cluster of three brokers and one partition, and changes to it."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from sim.liveness.snapshot import Culprit, Node, Partition, Replica, Snapshot

ALL = ("b1", "b2", "b3")
CRASH = Culprit("b1 ended (process)", 45)
BITS = Culprit("bytes on the disk of b1 were changed", 77, "rot")


def replica(name: str, **values: Any) -> Replica:
    """Of ten records that are all committed; b1 leads."""
    own: dict[str, Any] = {"node": name, "high_watermark": 10, "end": 10}
    if name == "b1":
        own |= {"role": "leader", "leader": None}
    else:
        own |= {"leader": "b1", "fetch": "fetching"}
    return Replica(**own | values)


def partition(logs: dict[str, Any] | None = None, **values: Any) -> Partition:
    """``orders-0``; ``logs`` changes single replicas."""
    found = tuple(replica(name, **(logs or {}).get(name, {})) for name in ALL)
    own: dict[str, Any] = {
        "name": "orders-0",
        "replicas": ALL,
        "isr": ALL,
        "leader": "b1",
        "min_isr": 2,
        "logs": found,
        "probe": "acked",
        "read_end": 10,
    }
    return Partition(**own | values)


def snapshot(
    nodes: dict[str, Any] | None = None, logs: dict[str, Any] | None = None, **values: Any
) -> Snapshot:
    """A cluster; ``nodes`` changes single nodes, other values are of the partition or the whole.

    ``changed_us`` is of the whole, ``epoch_changed_us`` of the partition.
    """
    whole = {key: values.pop(key) for key in list(values) if hasattr(Snapshot, key)}
    whole |= {key: values.pop(key) for key in list(values) if key in _OF_WHOLE}
    if "epoch_changed_us" in values:
        values["changed_us"] = values.pop("epoch_changed_us")
    return Snapshot(
        nodes=tuple(
            evolve(Node(name=name), **(nodes or {}).get(name, {})) for name in ("c1", *ALL)
        ),
        partitions=(partition(logs, **values),),
        **{"t_us": 100_000_000, "stable_us": 9_000_000, **whole},
    )


_OF_WHOLE = frozenset({"t_us", "changed_us", "stable_us", "is_loaded", "waits"})


def lost(culprit: Culprit = CRASH, status: str = "down") -> dict[str, Any]:
    """A broker outside the core that does not run."""
    return {"status": status, "is_core": False, "is_gone": True, "culprit": culprit}


def quarantined(culprit: Culprit = BITS, **values: Any) -> dict[str, Any]:
    """A log that refuses to open."""
    own: dict[str, Any] = {
        "role": "quarantined",
        "end": -1,
        "is_same": None,
        "error": "corrupt-log",
        "culprit": culprit,
        "fetch": "",
    }
    return own | values
