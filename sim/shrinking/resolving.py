"""Roles and draws become the names that they stood for: ``leader:orders-0`` is ``b1``.

What a selector meant is in the trace: steps say it in their arguments, faults by whom they struck.

Left out: whether the failure is the same with names; that is tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, Final

from sim.network_rules import partition_edges
from sim.scenario.selectors import ROLES, WORDS
from sim.shrinking.tables import Document, action_of, tables, texts
from sim.shrinking.trials import Trials
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["resolve"]

_STEP_KEYS: Final = ("node", "from", "to", "groups")
_ANYBODY: Final = "*"


def is_role(text: str) -> bool:
    """Whether a text is a selector other than a name."""
    return text in WORDS or text.partition(":")[0] in ROLES


def resolve(trials: Trials) -> None:
    """All selectors at once, or one table after the other."""
    wanted = [
        (key, at)
        for key in ("fault", "step")
        for at, each in enumerate(tables(trials.document, key))
        if any(is_role(text) for text in texts(_place(key, each)))
    ]
    if not wanted:
        return
    events = trials.observe()
    document = deepcopy(trials.document)
    done = [place for place in wanted if _resolved(trials, document, *place, events)]
    if not done or trials.attempt(document):
        return
    for key, at in done:
        single = deepcopy(trials.document)
        single[key][at] = document[key][at]
        trials.attempt(single)


def _place(key: str, table: dict[str, Any]) -> Any:
    return table.get("target") if key == "fault" else table[action_of(table)]


def _resolved(
    trials: Trials, document: Document, key: str, at: int, events: Sequence[Event]
) -> bool:
    """Put names into one table; False where the trace does not say which."""
    table = document[key][at]
    if key == "fault":
        target = _target(table, events)
        if target is None:
            return False
        table["target"] = target
        return True
    name = trials.scenario.steps[at].id or str(at + 1)
    return _resolve_step(table, name, events)


def _short(names: list[str]) -> Any:
    return names[0] if len(names) == 1 else names


# Steps -------------------------------------------------------------------------------------------


def _resolve_step(step: dict[str, Any], name: str, events: Sequence[Event]) -> bool:
    said = next(
        (
            each.args["args"]
            for each in events
            if each.kind == Kind.STEP and each.args.get("id") == name and "args" in each.args
        ),
        None,
    )
    if said is None:
        return False
    action = action_of(step)
    value = step[action]
    if not isinstance(value, dict):
        key = "groups" if action == "partition" else "node"
        if not said.get(key):
            return False
        step[action] = said[key] if key == "groups" else _short(said[key])
        return True
    is_done = False
    for key in _STEP_KEYS:
        if key in value and said.get(key) and any(is_role(each) for each in texts(value[key])):
            value[key] = said[key] if key == "groups" else _short(list(said[key]))
            is_done = True
    return is_done


# Faults ------------------------------------------------------------------------------------------


def _target(fault: dict[str, Any], events: Sequence[Event]) -> Any:
    """The target with names; None where the fault has struck nobody."""
    struck = [
        each.args["target"]
        for each in events
        if each.kind == Kind.FAULT and _is_of(str(each.args.get("id")), fault["id"])
    ]
    if not struck:
        return None
    target = fault["target"]
    if fault["kind"] == "partition":
        return _groups(struck[0])
    if isinstance(target, dict):
        return _links(target, struck[0])
    if all(isinstance(each, str) for each in struck):
        return _short([name for each in struck for name in each.split(", ")])
    edges = [edge for each in struck for edge in each]
    names = dict.fromkeys(end for edge in edges for end in edge if end != _ANYBODY)
    return _short(list(names))


def _is_of(known_as: str, fault_id: str) -> bool:
    return known_as == fault_id or known_as.startswith(f"{fault_id}/")


def _links(target: dict[str, Any], edges: Sequence[Sequence[str]]) -> dict[str, Any]:
    there = [tuple(each) for each in edges]
    if target.get("both"):
        back = (there[0][1], there[0][0])
        there = there[: there.index(back)] if back in there else there
    ends = {
        "from": list(dict.fromkeys(one for one, _ in there)),
        "to": list(dict.fromkeys(other for _, other in there)),
    }
    return {key: _short(ends[key]) if key in ends else value for key, value in target.items()}


def _groups(edges: Sequence[Sequence[str]]) -> list[list[str]] | None:
    """Who is cut off from the same others is in one group."""
    others: dict[str, list[str]] = {}
    for one, other in edges:
        others.setdefault(one, []).append(other)
    found: dict[tuple[str, ...], list[str]] = {}
    for one, cut in others.items():
        found.setdefault(tuple(sorted(cut)), []).append(one)
    groups = list(found.values())
    is_same = sorted(map(tuple, edges)) == sorted(partition_edges(groups))
    return groups if is_same else None
