"""Fewer records, smaller batches, shorter lists, lower counts.

Left out: times (``sim.shrinking.timing``).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from sim.shrinking.leaves import Path, at_path, key_paths, least, list_paths, put
from sim.shrinking.removing import chunks_removed
from sim.shrinking.tables import tables
from sim.shrinking.trials import Trials

__all__ = ["fewer_records", "shorter_lists", "smaller_numbers"]

_LOWS: Final = {
    "batch": 1,
    "bits": 1,
    "count": 1,
    "hit": 1,
    "keys": 0,
    "partial_bytes": 0,
    "rate": 1,
    "record_bytes": 1,
    "records": 1,
    "skip": 0,
    "times": 1,
}
"""Numbers of which less is simpler, and the least of each."""
_TAKE_ONE: Final = ("node", "from", "to", "target", "heal")
"""Lists that may be a single value."""
_PAIRED: Final = ("values", "keys")


def fewer_records(trials: Trials) -> None:
    """Records of steps: values and keys one by one, counts by halves."""
    for at in range(len(tables(trials.document, "step"))):
        produce = tables(trials.document, "step")[at].get("produce")
        if not isinstance(produce, dict):
            continue
        lists = [key for key in _PAIRED if isinstance(produce.get(key), list)]
        if lists:
            _fewer_listed(trials, ("step", at, "produce"), lists)
        elif isinstance(produce.get("count"), int):
            _lower(trials, ("step", at, "produce", "count"), 1)


def _fewer_listed(trials: Trials, path: Path, keys: list[str]) -> None:
    lists = {key: list(at_path(trials.document, (*path, key))) for key in keys}
    left = list(range(len(lists[keys[0]])))

    def attempt(chunk: list[int]) -> bool:
        now = [each for each in left if each not in chunk]
        candidate = deepcopy(trials.document)
        for key in keys:
            at_path(candidate, path)[key] = [lists[key][each] for each in now]
        if now and trials.attempt(candidate):
            left[:] = now
            return True
        return False

    chunks_removed(left[:], attempt)


def smaller_numbers(trials: Trials) -> None:
    """Counts of workloads, faults and actions."""
    for path in key_paths(trials.document):
        key = path[-1]
        if isinstance(key, str) and key in _LOWS and path[0] != "cluster":
            value = _value(trials, path)
            if isinstance(value, int) and not isinstance(value, bool):
                _lower(trials, path, _LOWS[key])


def shorter_lists(trials: Trials) -> None:
    """Nodes of a fault or step, replicas, messages, calls: as few as will do."""
    for path in list_paths(trials.document):
        if "produce" in path:
            continue
        _shorten(trials, path)


def _shorten(trials: Trials, path: Path) -> None:
    values = _value(trials, path)
    if not isinstance(values, list):
        return
    left = list(range(len(values)))

    def attempt(chunk: list[int]) -> bool:
        now = [each for each in left if each not in chunk]
        if now and trials.attempt(put(trials.document, path, [values[each] for each in now])):
            left[:] = now
            return True
        return False

    if path[0] == "topic":
        # Partitions have numbers, and all have as many replicas.
        if len(path) == 3:
            _fewer_replicas(trials, path)
        if len(at_path(trials.document, path[:3])) > 1:
            return
    chunks_removed(left[:], attempt)
    if len(left) == 1 and path[-1] in _TAKE_ONE:
        trials.attempt(put(trials.document, path, values[left[0]]))


def _fewer_replicas(trials: Trials, path: Path) -> None:
    """One replica less of every partition, the last ones first."""
    at = min(len(each) for each in at_path(trials.document, path)) - 1
    while at >= 0:
        now = at_path(trials.document, path)
        trials.attempt(put(trials.document, path, [[*each[:at], *each[at + 1 :]] for each in now]))
        at -= 1


def _lower(trials: Trials, path: Path, low: int) -> None:
    now = _value(trials, path)
    if isinstance(now, int):
        least(now, low, lambda each: trials.attempt(put(trials.document, path, each)))


def _value(trials: Trials, path: Path) -> Any:
    try:
        return at_path(trials.document, path)
    except LookupError:
        return None
