"""The plain tables of a scenario: copies, names in them, what they amount to.

Left out: what may be left out of them (``sim.shrinking.removing``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from attrs import asdict, frozen

from sim.scenario.actions import ACTIONS, Produce
from sim.scenario.build import assignments_of
from sim.scenario.durations import DURATION_MAX_US, duration_us
from sim.scenario.model import Scenario
from sim.scenario.problems import Refusal
from sim.scenario.syntax_words import without_texts

__all__ = [
    "LISTS",
    "Document",
    "Size",
    "action_of",
    "has_drawn",
    "mentions_node",
    "mentions_topic",
    "named",
    "prepared",
    "size_of",
    "tables",
    "texts",
    "time_of",
]

Document = dict[str, Any]
"""The plain tables of a scenario file."""

LISTS: Final = ("topic", "workload", "fault", "step", "expect")
_TABLES: Final = ("cluster", "liveness")
_DRAWN: Final = frozenset({"one", "minority", "majority"})
_ID_CHARS: Final = 64


def tables(document: Document, key: str) -> list[dict[str, Any]]:
    """The tables of a list, such as ``step``; none where it has none."""
    found: list[dict[str, Any]] = document.get(key, [])
    return found


def action_of(step: dict[str, Any]) -> str:
    """Which of the keys of a step is its action."""
    return next(key for key in step if key in ACTIONS)


def time_of(value: object) -> int | None:
    """A time or duration in microseconds; None where it is none."""
    try:
        return duration_us(value, low_us=-DURATION_MAX_US)
    except Refusal:
        return None


def texts(value: Any) -> Iterator[str]:
    """Every text in a value, at any depth; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from texts(each)


def mentions_topic(value: Any, topic: str, partition: int | None = None) -> bool:
    """Whether a topic, or one partition of it, is named anywhere in a value."""
    number = "(-[0-9]+)?" if partition is None else f"-{partition}"
    form = re.compile(rf"(?<![\w.-]){re.escape(topic)}{number}(?![\w.-])")
    return any(form.search(each) for each in texts(value))


def mentions_node(value: Any, node: str) -> bool:
    """Whether a node is named anywhere in a value, outside of texts of expressions."""
    form = re.compile(rf"(?<![\w.-]){re.escape(node)}(?![\w.-])")
    return any(form.search(without_texts(each)) for each in texts(value))


def has_drawn(step: dict[str, Any]) -> bool:
    """Whether a step draws whom it means, by its id or, without one, by its number."""
    return any(each in _DRAWN for each in texts(step[action_of(step)]))


# The same scenario, ready to be taken apart ------------------------------------------------------


def prepared(scenario: Scenario) -> Document:
    """The document of what runs: variant and overrides are in it, and the file has no others.

    Replicas stand in lists, where they depended on the number of brokers. Title and reasons are
    gone: they are about what it was.
    """
    found = deepcopy(scenario.document)
    for key in ("variant", "sweep", "title"):
        found.pop(key, None)
    kept = [found["expect"][each.number - 1] for each in scenario.expects]
    for each in kept:
        each.pop("variant", None)
        each.pop("because", None)
    if "expect" in found:
        found["expect"] = [each for each in kept if "sometimes" not in each]
    found["seed"] = scenario.seed
    if scenario.liveness is not None:
        found.setdefault("liveness", {})
    for table, topic in zip(tables(found, "topic"), scenario.topics, strict=True):
        for key in ("partitions", "replication"):
            table.pop(key, None)
        assignments = assignments_of(topic, scenario.cluster.brokers)
        table["replicas"] = [list(each) for each in assignments]
    heads = ("schema", "name", "until", "seed")
    others = [key for key in found if key not in (*heads, *_TABLES, *LISTS)]
    return {key: found[key] for key in (*heads, *others, *_TABLES, *LISTS) if key in found}


def named(document: Document) -> Document:
    """Every step with an id of its own.

    A step without one is known by its number, also to draws: it would be another one as soon as a
    step before it is gone.
    """
    found = deepcopy(document)
    known = {
        str(each["id"]) for key in ("fault", "step") for each in tables(found, key) if "id" in each
    }
    for at, step in enumerate(tables(found, "step")):
        if "id" in step:
            continue
        name = base = f"{action_of(step).replace('_', '-')}-{at + 1}"[:_ID_CHARS]
        more = 2
        while name in known:
            name, more = f"{base}-{more}", more + 1
        known.add(name)
        step["id"] = name
    return found


# Size --------------------------------------------------------------------------------------------


@frozen
class Size:
    """What a scenario amounts to.

    Attributes:
        records: of steps and workloads, as many as are sent at most.
        until_us: its virtual time.
        lines: of its file, without blank ones.
    """

    faults: int
    steps: int
    records: int
    workloads: int
    topics: int
    brokers: int
    expects: int
    until_us: int
    lines: int

    def plain(self) -> dict[str, int]:
        return asdict(self)


def size_of(scenario: Scenario) -> Size:
    """The size of a scenario whose text is its own file."""
    records = sum(each.action.size for each in scenario.steps if isinstance(each.action, Produce))
    for each in scenario.workloads:
        if each.interval_us:
            stop_us = scenario.until_us if each.stop_us is None else each.stop_us
            window_us = max(0, min(stop_us, scenario.until_us) - each.start_us)
            records += -(-window_us // each.interval_us)
    return Size(
        len(scenario.faults),
        len(scenario.steps),
        records,
        len(scenario.workloads),
        len(scenario.topics),
        scenario.cluster.brokers,
        len(scenario.expects),
        scenario.until_us,
        sum(1 for line in scenario.text.split("\n") if line.strip() and line[:1] != "#"),
    )
