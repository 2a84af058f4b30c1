"""The JSON Schema of scenario files, made of the same classes that read them.

Editors use it (taplo: ``#:schema``). It knows keys, types, limits and words; names, times and
expressions are checked by ``sim.scenario.reading`` alone, so what the schema accepts may still be
wrong, and what the reader accepts, the schema accepts too.

Left out: what JSON Schema cannot say.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import NOTHING, Factory, fields

from sim.scenario.actions import ACTIONS
from sim.scenario.cluster_keys import Clock, ClusterKeys, Disk, Latency
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.kinds import doc_of, key_of, kind_of
from sim.scenario.model import (
    ExpectKeys,
    Head,
    Liveness,
    StepKeys,
    Sweep,
    Topic,
    Variant,
    Workload,
)

__all__ = ["schema"]

_NESTED: Final[tuple[type, ...]] = (Clock, Disk, Latency, *ACTIONS.values())


def schema() -> dict[str, Any]:
    """The whole schema, draft 2020-12, plain and ready for ``json.dumps``."""
    head = _table(Head)
    lists = {
        "topic": _table(Topic),
        "variant": _table(Variant),
        "workload": _table(Workload),
        "fault": {"oneOf": [_fault(kind) for kind in FAULT_KINDS]},
        "step": _step(),
        "expect": _table(ExpectKeys),
    }
    properties = {
        **head["properties"],
        "cluster": _table(ClusterKeys),
        **{key: {"type": "array", "items": each} for key, each in lists.items()},
        "liveness": _table(Liveness),
        "sweep": _table(Sweep),
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Leaderfall scenario",
        "type": "object",
        "properties": properties,
        "required": head["required"],
        "additionalProperties": False,
        "$defs": {each.__name__: _action(each) for each in _NESTED},
    }


def _table(cls: type) -> dict[str, Any]:
    """A table of a class."""
    properties: dict[str, Any] = {}
    required = []
    for each in fields(cls):
        if not each.init:
            continue
        kind, key = kind_of(each), key_of(each)
        found = {**kind.schema(), "description": doc_of(each)}
        if each.default is NOTHING:
            required.append(key)
        elif not isinstance(each.default, Factory) and each.default not in (None, ()):  # type: ignore[arg-type]
            found["default"] = kind.show(each.default)
        properties[key] = found
    table = {
        "type": "object",
        "description": " ".join((cls.__doc__ or "").split("\n\n", 1)[0].split()),
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }
    groups = [
        {"oneOf": [{"required": [key]} for key in group]} for group in getattr(cls, "ONE_OF", ())
    ]
    return {**table, "allOf": groups} if groups else table


def _action(cls: type) -> dict[str, Any]:
    """A class that may be written as a table, or as a value alone."""
    table = _table(cls)
    short = getattr(cls, "SHORT", None)
    return table if short is None else {"anyOf": [table["properties"][short], table]}


def _step() -> dict[str, Any]:
    table = _table(StepKeys)
    for key, cls in ACTIONS.items():
        table["properties"][key] = {"$ref": f"#/$defs/{cls.__name__}"}
    return {**table, "allOf": [{"oneOf": [{"required": [key]} for key in ACTIONS]}]}


def _fault(kind: str) -> dict[str, Any]:
    table = _table(FAULT_KINDS[kind])
    table["properties"] = {"kind": {"const": kind}, **table["properties"]}
    table["required"] = ["kind", *table["required"]]
    return table
