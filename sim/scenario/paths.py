"""Paths for ``set`` and ``--set``: one value of a document by name.

``cluster.KEY`` (also into its tables: ``cluster.latency.base``), ``cluster:KAFKA.KEY``,
``cluster.guards.ID``, ``topic.NAME:KAFKA.KEY``, ``workload.NAME.KEY``, ``fault.ID.KEY``,
``liveness.KEY``. The colon separates a name from a Kafka key, which itself has dots.

Left out: whether the value is right there; the document is checked again as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any, Final

from attrs import fields, frozen

from sim.scenario.cluster_keys import ClusterKeys
from sim.scenario.kinds import key_of
from sim.scenario.places import is_shallow
from sim.scenario.problems import Path, Refusal, Refusals, guess, seen

__all__ = ["FORMS", "Applied", "apply_paths"]

FORMS: Final = (
    "cluster.KEY",
    "cluster.guards.ID",
    "cluster:KAFKA.KEY",
    "topic.NAME:KAFKA.KEY",
    "workload.NAME.KEY",
    "fault.ID.KEY",
    "liveness.KEY",
)


@frozen
class Applied:
    """One value that was set.

    Attributes:
        path: as written.
        at: where in the document.
        source: where it is written; None for the command line.
    """

    path: str
    at: Path
    source: Path | None


def apply_paths(
    document: Mapping[str, Any], values: Iterable[tuple[str, Any]], source: Path | None
) -> tuple[dict[str, Any], tuple[Applied, ...]]:
    """A copy of the document with values set, later ones over earlier ones.

    Args:
        source: path of the table that has them; None for the command line.

    Raises:
        Refusals: paths that lead nowhere; ``at`` is below ``source``, or the path alone.
    """
    copy = deepcopy(dict(document))
    applied, refused = [], []
    for path, value in values:
        try:
            at = _resolve(path, copy)
        except Refusal as refusal:
            refusal.is_key = source is not None
            refusal.at = (*(source or ()), path)
            refused.append(refusal)
            continue
        if not is_shallow(value):
            refused.append(Refusal("nested too deeply", at=(*(source or ()), path)))
            continue
        if not _put(copy, at, deepcopy(value)):
            refused.append(Refusal(f"{seen(path)} is below a value", at=(*(source or ()), path)))
            continue
        applied.append(Applied(path, at, None if source is None else (*source, path)))
    if refused:
        raise Refusals(refused)
    return copy, tuple(applied)


def _resolve(path: str, document: Mapping[str, Any]) -> Path:
    """Where a path leads."""
    head, mark, rest = _split(path)
    if head == "cluster" and mark == ":" and rest:
        return ("cluster", "config", rest)
    if head == "cluster" and mark == "." and rest:
        return _cluster(rest)
    if head == "topic" and mark == ".":
        name, colon, key = rest.partition(":")
        if colon and key:
            return ("topic", _index(document, "topic", "name", name), "config", key)
        hint = f'write "topic.{name}:min.insync.replicas"' if name.isprintable() else ""
        raise Refusal(f"{seen(path)} has no Kafka key", hint=hint)
    if head in ("workload", "fault") and mark == ".":
        name, dot, key = rest.partition(".")
        if dot and key:
            which = "name" if head == "workload" else "id"
            return (head, _index(document, head, which, name), key)
    if head == "liveness" and mark == "." and rest:
        return ("liveness", rest)
    hint = guess(head, ("cluster", "topic", "workload", "fault", "liveness"))
    raise Refusal(f"{seen(path)} is no path", hint=hint, allowed=FORMS)


def _split(path: str) -> tuple[str, str, str]:
    for at, each in enumerate(path):
        if each in ".:":
            return path[:at], each, path[at + 1 :]
    return path, "", ""


def _cluster(rest: str) -> Path:
    parts = tuple(rest.split("."))
    keys = [key_of(each) for each in fields(ClusterKeys)]
    if parts[0] == "config" and len(parts) > 1:
        return ("cluster", "config", ".".join(parts[1:]))
    if parts[0] not in keys:
        hint = guess(parts[0], keys)
        if len(parts) > 1:
            hint = f'a Kafka key stands behind a colon: "cluster:{seen(rest)[1:-1]}"'
        raise Refusal(f"unknown key {seen(parts[0])}", hint=hint, allowed=sorted(keys))
    most = {"clocks": 3, "guards": 2, "latency": 2, "disk": 2}.get(parts[0], 1)
    if len(parts) > most:
        raise Refusal(f"{seen(parts[0])} has no keys that deep", hint=f"cluster.{parts[0]}")
    return ("cluster", *parts)


def _index(document: Mapping[str, Any], key: str, which: str, name: str) -> int:
    tables = document.get(key, [])
    names = [str(each.get(which)) for each in tables if isinstance(each, dict)]
    if name not in names:
        what = key if tables else f"[[{key}]], and so no"
        text = f"there is no {key} {seen(name)}" if tables else f"there is no {what} {seen(name)}"
        raise Refusal(text, hint=guess(name, names), allowed=names)
    return names.index(name)


def _put(document: Any, at: Path, value: Any) -> bool:
    """Put a value, making the tables on the way; whether there is a place for it."""
    for key in at[:-1]:
        if isinstance(document, dict) and key not in document:
            document[key] = {}
        elif not isinstance(document, (dict, list)):
            return False
        document = document[key]
    if not isinstance(document, dict):
        return False
    document[at[-1]] = value
    return True
