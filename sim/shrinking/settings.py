"""Configuration: no noise of schedules, and defaults wherever they will do.

Noise goes first: links that all take the same time, without jitter, are simpler than what is drawn
for each link, though a file has to say so. What calms is not put back to its default.

Left out: times of steps and faults.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from sim.scenario.cluster_keys import ClusterKeys
from sim.shrinking.leaves import Path, at_path, key_paths, put, removed
from sim.shrinking.removing import chunks_removed
from sim.shrinking.tables import Document
from sim.shrinking.trials import Trials

__all__ = ["calm", "plain_images", "restore_defaults"]

_CALM_BASE: Final = "400us"
_CALM_JITTER: Final = "0s"
_CALM: Final[dict[Path, Any]] = {
    ("cluster", "latency", "base"): _CALM_BASE,
    ("cluster", "latency", "jitter"): _CALM_JITTER,
}
_NOISY: Final[tuple[Path, ...]] = (
    ("cluster", "scheduler"),
    ("cluster", "latency", "tail_ppm"),
    ("cluster", "latency", "tail"),
    ("cluster", "disk", "tail_ppm"),
    ("cluster", "disk", "tail"),
)
_IMAGES: Final = ("lost", "kept", "file-prefix")
"""What a power loss leaves, from the plainest on."""
_TIMING: Final = frozenset({"at", "after", "delay", "start", "end", "stop", "within", "target"})


def _has(document: Document, path: Path) -> bool:
    try:
        at_path(document, path)
    except LookupError:
        return False
    return True


def calm(trials: Trials) -> None:
    """Ties in order, links of one length, no jitter, no tails: all at once, or one by one."""
    noisy = [path for path in _NOISY if _has(trials.document, path)]
    clocks = [
        ("cluster", "clocks", node, "jitter_ppm")
        for node, clock in trials.document.get("cluster", {}).get("clocks", {}).items()
        if "jitter_ppm" in clock
    ]
    candidate = removed(trials.document, *noisy, *clocks)
    for path, value in _CALM.items():
        candidate = _set(candidate, path, value)
    if trials.attempt(candidate):
        return
    for path in (*noisy, *clocks):
        trials.attempt(removed(trials.document, path))
    for path, value in _CALM.items():
        trials.attempt(_set(trials.document, path, value))


def _set(document: Document, path: Path, value: Any) -> Document:
    found = deepcopy(document)
    inner = found
    for each in path[:-1]:
        inner = inner.setdefault(str(each), {})
    inner[str(path[-1])] = value
    return found


def _is_calm(document: Document, path: Path) -> bool:
    return path in _CALM and at_path(document, path) == _CALM[path]


def _are_few(document: Document, path: Path) -> bool:
    """Whether these are fewer brokers than there are by default."""
    return path == ("cluster", "brokers") and at_path(document, path) < ClusterKeys().brokers


def restore_defaults(trials: Trials) -> None:
    """Every key that has a default: without it, in chunks of what belongs together."""
    document = trials.document
    cluster = [
        path
        for path in key_paths(document)
        if path[0] == "cluster" and not isinstance(at_path(document, path), dict)
        if not _is_calm(document, path) and not _are_few(document, path)
    ]
    chunks_removed(cluster, lambda chunk: _attempt_removed(trials, chunk))
    others = [
        path
        for path in key_paths(trials.document)
        if path[0] == "liveness" or (path[0] != "cluster" and len(path) != 2)
        if path[-1] not in _TIMING or _is_start_at_once(document, path)
        if not (path[0] == "topic" and path[-1] == "replicas")
    ]
    for path in reversed(others):
        if _has(trials.document, path) and not _is_action(trials.document, path):
            _attempt_removed(trials, [path])


def _is_start_at_once(document: Document, path: Path) -> bool:
    """Whether this says of a workload what holds anyway; any other time is no default."""
    return path[0] == "workload" and path[-1] == "start" and at_path(document, path) == "0s"


def _is_action(document: Document, path: Path) -> bool:
    """Whether the key is a step's action, without which there is no step."""
    return path[0] == "step" and len(path) == 3


def _attempt_removed(trials: Trials, paths: list[Path]) -> bool:
    there = [path for path in paths if _has(trials.document, path)]
    return bool(there) and trials.attempt(removed(trials.document, *there))


def plain_images(trials: Trials) -> None:
    """What power losses leave: nothing that was not synced, everything, or the start of files."""
    for path in key_paths(trials.document):
        if path[-1] != "image" or not _has(trials.document, path):
            continue
        now = at_path(trials.document, path)
        for image in _IMAGES[: _IMAGES.index(now) if now in _IMAGES else len(_IMAGES)]:
            if trials.attempt(put(trials.document, path, image)):
                break
