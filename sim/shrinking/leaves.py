"""Single values of a document, by their path: where they are, and the document with another one.

Left out: which other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

from sim.shrinking.tables import LISTS, Document, tables

__all__ = ["Path", "at_path", "key_paths", "least", "list_paths", "put", "removed"]

Path = tuple[str | int, ...]
_FIXED: Final = frozenset({"schema", "name", "seed", "id", "kind", "until", "boot"})
_TABLES: Final = ("topic", "workload", "fault", "step")


def at_path(document: Document, path: Path) -> Any:
    """The value there.

    Raises:
        LookupError: there is none any more.
    """
    found: Any = document
    for each in path:
        found = found[each]
    return found


def put(document: Document, path: Path, value: Any) -> Document:
    """A copy with a value in a place."""
    found = deepcopy(document)
    at_path(found, path[:-1])[path[-1]] = value
    return found


def removed(document: Document, *paths: Path) -> Document:
    """A copy without some keys of tables, and without the tables that are empty then."""
    found = deepcopy(document)
    for path in paths:
        del at_path(found, path[:-1])[path[-1]]
    cluster = found.get("cluster")
    if cluster is not None:
        for key in [key for key, each in cluster.items() if each == {}]:
            del cluster[key]
        if not cluster:
            del found["cluster"]
    return found


def key_paths(document: Document) -> list[Path]:
    """All keys of tables, at any depth, but those that say what a table is; outer ones first."""
    found: list[Path] = [
        (key,)
        for key, value in document.items()
        if key not in (*_FIXED, *LISTS) and not isinstance(value, dict)
    ]
    for key in ("cluster", "liveness"):
        if key in document:
            found += _keys((key,), document[key])
    for key in _TABLES:
        for at, table in enumerate(tables(document, key)):
            found += _keys((key, at), table)
    return found


def _keys(path: Path, table: dict[str, Any]) -> Iterator[Path]:
    for key, value in table.items():
        if key in _FIXED:
            continue
        yield (*path, key)
        if isinstance(value, dict):
            yield from _keys((*path, key), value)


def list_paths(document: Document) -> list[Path]:
    """All lists with more than one member, in tables; inner ones behind outer ones."""
    return [
        inner for path in key_paths(document) for inner in _lists(path, at_path(document, path))
    ]


def _lists(path: Path, value: Any) -> Iterator[Path]:
    if isinstance(value, list):
        if len(value) > 1:
            yield path
        for at, each in enumerate(value):
            yield from _lists((*path, at), each)


def least(now: int, low: int, attempt: Callable[[int], bool]) -> None:
    """Bring a number down: at once, or by halves.

    Args:
        now: which is good.
        low: the least that is worth trying.
        attempt: tries a number; whether it is good.
    """
    if now <= low or attempt(low):
        return
    bad, good = low, now
    while good - bad > 1:
        middle = (bad + good) // 2
        if attempt(middle):
            good = middle
        else:
            bad = middle
