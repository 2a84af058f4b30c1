"""Drawn clients: producers of all kinds of acks, readers alone and in groups.

Left out: single ``produce`` and ``consume`` steps (``sim.swarm.people``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sim.swarm.choosing import Choices, rates

__all__ = ["draw_workloads"]


def draw_workloads(
    choices: Choices, topics: Sequence[dict[str, Any]], span_ms: int, size: int
) -> list[dict[str, Any]]:
    """At least one producer, and readers.

    Args:
        span_ms: faults come in this time; producers may go on a little longer.
    """
    producers = choices.several(1, 3, lambda inner: _producer(inner, topics, span_ms, size))
    readers = choices.several(0, 2, lambda inner: _reader(inner, topics))
    for letter, found in (("p", producers), ("k", readers)):
        for number, each in enumerate(found, 1):
            # A name goes first in its table.
            found[number - 1] = {"name": f"{letter}{number}", **each}
    return [*producers, *readers]


def _target(choices: Choices, topics: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], str]:
    topic = choices.pick(topics)
    name, count = topic["name"], len(topic["replicas"])
    if count > 1 and choices.chance(50):
        return topic, name
    return topic, f"{name}-{choices.integer(0, count - 1)}"


def _producer(
    choices: Choices, topics: Sequence[dict[str, Any]], span_ms: int, size: int
) -> dict[str, Any]:
    topic, to = _target(choices, topics)
    acks = choices.pick(("all", "all", "all", "1", "0"))
    found: dict[str, Any] = {"kind": "producer", "topic": to}
    found["rate"] = choices.pick(rates(2, 20 * size))
    found["acks"] = acks
    found["record_bytes"] = choices.pick((12, 40, 200))
    found["batch"] = choices.pick((1, 1, 4))
    if "compact" in topic["config"].get("cleanup.policy", "") or choices.chance(25):
        found["keys"] = choices.pick((2, 7))
    if acks == "all" and choices.chance(30):
        found["idempotence"] = False
    found["start"] = f"{choices.pick((0, 100, 400))}ms"
    found["stop"] = f"{choices.pick((span_ms // 2, span_ms, span_ms + 600))}ms"
    return found


def _reader(choices: Choices, topics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    topic, _ = _target(choices, topics)
    found: dict[str, Any] = {"kind": "consumer", "topic": f"{topic['name']}-0"}
    if choices.chance(40):
        found["group"] = choices.pick(("g1", "g2"))
    found["reset"] = choices.pick(("earliest", "earliest", "latest", "none"))
    found["start"] = f"{choices.pick((0, 500))}ms"
    return found
