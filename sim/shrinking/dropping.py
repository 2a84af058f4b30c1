"""Whole tables that may go: faults, steps, workloads, expectations, topics, partitions, brokers.

Left out: what goes with a fault or a step (``sim.shrinking.removing``), parts of tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import deepcopy
from itertools import combinations
from typing import Any, Final

from sim.shrinking.removing import chunks_removed, without
from sim.shrinking.tables import LISTS, Document, action_of, mentions_node, mentions_topic, tables
from sim.shrinking.trials import Trials

__all__ = [
    "drop_brokers",
    "drop_expects",
    "drop_faults",
    "drop_liveness",
    "drop_pairs",
    "drop_partitions",
    "drop_steps",
    "drop_topics",
    "drop_workloads",
]

_PAIRS_MAX: Final = 12
"""So many steps and faults at most are tried two by two."""
_ENDS: Final = ("crash", "shutdown", "pause")
_BEGINS: Final = ("start", "resume")


def _keeps(trials: Trials) -> str:
    return trials.goal.name if trials.goal.kind == "expectation" else ""


def _attempt_without(
    trials: Trials, faults: frozenset[str] = frozenset(), steps: frozenset[str] = frozenset()
) -> bool:
    document, moments = trials.document, trials.moments
    return trials.attempt(
        without(document, moments, faults=faults, steps=steps, keeps=_keeps(trials))
    )


def drop_faults(trials: Trials) -> None:
    """As many faults as can go."""
    ids = [each["id"] for each in tables(trials.document, "fault")]
    chunks_removed(ids, lambda chunk: _attempt_without(trials, faults=frozenset(chunk)))


def drop_steps(trials: Trials) -> None:
    """As many steps as can go; a step without an id of its own stays."""
    ids = [str(each["id"]) for each in tables(trials.document, "step") if "id" in each]
    chunks_removed(ids, lambda chunk: _attempt_without(trials, steps=frozenset(chunk)))


def drop_pairs(trials: Trials) -> None:
    """Two that need each other and nobody else: a crash and its start; all pairs of a few."""
    for one, other in _related(trials):
        _drop_two(trials, one, other)
    names = _names(trials.document)
    if len(names) <= _PAIRS_MAX:
        for one, other in reversed(list(combinations(names, 2))):
            _drop_two(trials, one, other)


def _drop_two(trials: Trials, one: str, other: str) -> None:
    names = _names(trials.document)
    if one in names and other in names:
        faults = {each["id"] for each in tables(trials.document, "fault")}
        pair = {one, other}
        _attempt_without(trials, frozenset(pair & faults), frozenset(pair - faults))


def _names(document: Document) -> list[str]:
    return [
        each["id"] for key in ("fault", "step") for each in tables(document, key) if "id" in each
    ]


def _related(trials: Trials) -> list[tuple[str, str]]:
    """Ends of a process or a pause, each with the next begin at the same nodes."""
    found = []
    steps = [each for each in tables(trials.document, "step") if "id" in each]
    for at, step in enumerate(steps):
        if action_of(step) in _ENDS:
            whom = _whom(step)
            behind = (
                each
                for each in steps[at + 1 :]
                if action_of(each) in _BEGINS and _whom(each) == whom
            )
            following = next(behind, None)
            if following is not None:
                found.append((str(step["id"]), str(following["id"])))
    return found[::-1]


def _whom(step: dict[str, Any]) -> Any:
    value = step[action_of(step)]
    whom = value.get("node") if isinstance(value, dict) else value
    return whom if isinstance(whom, list) else [whom]


# Tables of other kinds ---------------------------------------------------------------------------


def _drop_from_list(trials: Trials, key: str, may_go: Callable[[dict[str, Any]], bool]) -> None:
    """Tables of a list that have no dependents."""
    left = list(range(len(tables(trials.document, key))))

    def attempt(chunk: list[int]) -> bool:
        candidate = deepcopy(trials.document)
        now = [each for each in left if each not in chunk]
        candidate[key] = [candidate[key][left.index(each)] for each in now]
        if trials.attempt(candidate):
            left[:] = now
            return True
        return False

    gone = [at for at, each in enumerate(tables(trials.document, key)) if may_go(each)]
    chunks_removed(gone, attempt)


def drop_workloads(trials: Trials) -> None:
    """As many workloads as can go."""
    _drop_from_list(trials, "workload", lambda each: True)


def drop_expects(trials: Trials) -> None:
    """All expectations but the one that fails, unless they keep others from failing the run."""
    keeps = _keeps(trials)
    form, _, that = keeps.partition(": ")
    at = "that" if form == "at" else form

    def may_go(each: dict[str, Any]) -> bool:
        value = each.get(at)
        return not keeps or (
            value != that and that not in (value if isinstance(value, list) else ())
        )

    _drop_from_list(trials, "expect", may_go)


def drop_liveness(trials: Trials) -> None:
    """Whether the cluster recovers is asked only where that is the failure."""
    if "liveness" in trials.document and trials.goal.kind != "liveness":
        candidate = deepcopy(trials.document)
        del candidate["liveness"]
        trials.attempt(candidate)


# Topics, partitions, brokers ---------------------------------------------------------------------


def _without_mentions(trials: Trials, names: Callable[[dict[str, Any]], bool]) -> Document:
    """The best without the workloads, faults, steps and expectations that name something."""
    document = trials.document
    found = without(
        document,
        trials.moments,
        faults=frozenset(each["id"] for each in tables(document, "fault") if names(each)),
        steps=frozenset(
            each["id"] for each in tables(document, "step") if "id" in each and names(each)
        ),
        keeps=_keeps(trials),
    )
    for key in ("workload", "expect"):
        if key in found:
            found[key] = [each for each in found[key] if not names(each)]
    return found


def drop_topics(trials: Trials) -> None:
    """Topics, the last ones first, with whatever names them."""
    for name in [each["name"] for each in reversed(tables(trials.document, "topic"))]:
        candidate = _without_mentions(trials, lambda each, name=name: mentions_topic(each, name))  # type: ignore[misc]
        candidate["topic"] = [each for each in candidate["topic"] if each["name"] != name]
        trials.attempt(candidate)


def drop_partitions(trials: Trials) -> None:
    """Partitions of topics, the last ones first; then all but one, which becomes number 0."""
    for name in [each["name"] for each in tables(trials.document, "topic")]:
        while (count := _partitions(trials.document, name)) > 1:
            if not trials.attempt(_without_partition(trials, name, count - 1)):
                break
        count = _partitions(trials.document, name)
        for kept in range(1, count):
            if not mentions_topic(_keeps(trials), name) and trials.attempt(
                _only_partition(trials, name, kept)
            ):
                break


def _partitions(document: Document, name: str) -> int:
    return next(len(each["replicas"]) for each in tables(document, "topic") if each["name"] == name)


def _without_partition(trials: Trials, name: str, number: int) -> Document:
    found = _without_mentions(trials, lambda each: mentions_topic(each, name, number))
    for each in tables(found, "topic"):
        if each["name"] == name:
            del each["replicas"][number]
    return found


def _only_partition(trials: Trials, name: str, kept: int) -> Document:
    others = [each for each in range(_partitions(trials.document, name)) if each != kept]
    found = _without_mentions(
        trials, lambda each: any(mentions_topic(each, name, number) for number in others)
    )
    for each in tables(found, "topic"):
        if each["name"] == name:
            each["replicas"] = [each["replicas"][kept]]
    for key in ("workload", "fault", "step", "expect"):
        if key in found:
            found[key] = [_renamed(each, f"{name}-{kept}", f"{name}-0") for each in found[key]]
    return found


def _renamed(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return (
            new
            if value == old
            else value.replace(f"'{old}'", f"'{new}'").replace(f":{old}", f":{new}")
        )
    if isinstance(value, dict):
        return {key: _renamed(each, old, new) for key, each in value.items()}
    if isinstance(value, list):
        return [_renamed(each, old, new) for each in value]
    return value


def drop_brokers(trials: Trials) -> None:
    """The last broker, out of all lists too, or with others as replicas; then the next one."""
    while (count := trials.scenario.cluster.brokers) > 1:
        if not any(
            trials.attempt(_without_broker(trials, f"b{count}", count - 1, is_replaced=is_replaced))
            for is_replaced in (False, True)
        ) and not _attempt_swapped(trials, f"b{count}", count - 1):
            return


def _attempt_swapped(trials: Trials, node: str, left: int) -> bool:
    """The last broker under the name of another one that nobody means."""
    document = trials.document
    names = (f"b{number}" for number in range(1, left + 1))
    places = [document.get(key, []) for key in LISTS]
    unused = next((name for name in names if not mentions_node(places, name)), None)
    if unused is None or mentions_node(_keeps(trials), node):
        return False
    found = deepcopy(document)
    form = re.compile(rf"(?<![\w.-]){node}(?![\w.-])")
    for key in LISTS:
        if key in found:
            found[key] = _put_name(found[key], form, unused)
    clocks = found.get("cluster", {}).get("clocks", {})
    if node in clocks:
        clocks[unused] = clocks.pop(node)
    found.setdefault("cluster", {})["brokers"] = left
    return trials.attempt(found)


def _put_name(value: Any, form: re.Pattern[str], name: str) -> Any:
    if isinstance(value, str):
        return form.sub(name, value)
    if isinstance(value, dict):
        return {key: _put_name(each, form, name) for key, each in value.items()}
    if isinstance(value, list):
        return [_put_name(each, form, name) for each in value]
    return value


def _without_broker(trials: Trials, node: str, left: int, *, is_replaced: bool) -> Document:
    found = deepcopy(trials.document)
    others = [f"b{number}" for number in range(1, left + 1)] if is_replaced else []
    for each in tables(found, "topic"):
        each["replicas"] = _replicas_without(each["replicas"], node, others)
    for key in ("fault", "step"):
        if key in found:
            found[key] = [_unlisted(each, node) for each in found[key]]
    named = [each["id"] for each in tables(found, "fault") if mentions_node(each, node)]
    steps = [
        each["id"] for each in tables(found, "step") if "id" in each and mentions_node(each, node)
    ]
    found = without(
        found,
        trials.moments,
        faults=frozenset(named),
        steps=frozenset(steps),
        keeps=_keeps(trials),
    )
    if "expect" in found:
        found["expect"] = [each for each in found["expect"] if not mentions_node(each, node)]
    cluster = found.setdefault("cluster", {})
    cluster["brokers"] = left
    if node in cluster.get("clocks", {}):
        del cluster["clocks"][node]
    return found


def _replicas_without(replicas: list[list[str]], node: str, others: list[str]) -> list[list[str]]:
    """Without a node, and as many for every partition: another in its place, or one less each."""
    found = [
        [
            next((other for other in others if other not in each), node) if name == node else name
            for name in each
        ]
        for each in replicas
    ]
    if any(node in each for each in found):
        found = [
            [name for name in each if name != node] if node in each else each[:-1] for each in found
        ]
    return found


def _unlisted(value: Any, node: str) -> Any:
    """A value in which no list with others has the node."""
    if isinstance(value, dict):
        return {key: _unlisted(each, node) for key, each in value.items()}
    if isinstance(value, list):
        left = [_unlisted(each, node) for each in value if each != node]
        return left or value
    return value
