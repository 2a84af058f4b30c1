"""Which directories of logs a path names: a log's own, a broker's, or all those of a run.

A path that the caller names may be a link; inside it no link is followed, so there are no loops.

Left out: what is in them (``sim.xray.reading``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from attrs import field, frozen

from storage.disk import Disk, FileKind
from storage.epochs import EPOCH_FILE
from storage.errors import DiskError
from storage.inspection.known import is_partition_name
from storage.state import BOUNDARY_FILE

__all__ = ["TRACE_NAME", "Place", "Places", "find_places"]

TRACE_NAME: Final = "trace.jsonl"
_PLACES_MAX: Final = 10_000
_SEGMENT: Final = re.compile(r"[0-9]{20}\.log\Z", re.ASCII)


@frozen
class Place:
    """The directory of one log.

    Attributes:
        name: below the path that was asked for, with ``/``; its own name for the path itself.
        node, folder: of a run: whose it is, and its path below that node's directory (empty for
            the directory itself). None without a run.
        trace: of the run, None without one.
    """

    directory: Path
    name: str
    node: str | None = None
    folder: str = ""
    trace: Path | None = None

    @property
    def title(self) -> str:
        """What to call it: of a run, whose it is comes first."""
        return f"{self.node}/{self.folder}" if self.node and self.folder else self.name


@frozen
class Places:
    """What was found.

    Attributes:
        kind: ``log``, ``broker``, ``run`` or ``nothing``.
        reason: why it is nothing.
    """

    kind: str
    places: tuple[Place, ...] = ()
    reason: str = ""
    is_cut_short: bool = field(default=False)


def find_places(disk: Disk, path: Path) -> Places:
    """The logs that a path names, by name.

    Raises:
        OSError, RuntimeError, ValueError: the path leads nowhere.
        DiskError: a directory cannot be listed.
    """
    path = path.resolve(strict=True)
    if not path.is_dir():
        return Places("nothing", reason="it is no directory")
    if is_log(disk, path):
        return Places("log", (_own(disk, path),))
    trace = path / TRACE_NAME
    if disk.stat(trace).kind is FileKind.FILE:
        found = _of_run(disk, path, trace)
        return Places("run", found[:_PLACES_MAX], is_cut_short=len(found) > _PLACES_MAX)
    owner, above = _run_of(disk, path)
    found = tuple(Place(path / name, name, owner, name, above) for name in _logs_in(disk, path))
    if found:
        return Places("broker", found[:_PLACES_MAX], is_cut_short=len(found) > _PLACES_MAX)
    names = disk.listdir(path)
    reason = "it is empty" if not names else "none of its names belongs to a log"
    return Places("nothing", reason=reason)


def is_log(disk: Disk, path: Path) -> bool:
    """Whether a directory is a log's own: it has a segment, or what else only a log has."""
    names = disk.listdir(path)
    return any(_SEGMENT.match(each) for each in names) or any(
        each in (EPOCH_FILE, BOUNDARY_FILE, "partition.metadata") for each in names
    )


def _logs_in(disk: Disk, path: Path) -> list[str]:
    found = []
    for name in sorted(disk.listdir(path)):
        inside = path / name
        if disk.stat(inside).kind is not FileKind.DIRECTORY:
            continue
        try:
            if is_partition_name(name) or is_log(disk, inside):
                found.append(name)
        except DiskError:
            continue
    return found


def _of_run(disk: Disk, path: Path, trace: Path) -> tuple[Place, ...]:
    found: list[Place] = []
    for node in sorted(disk.listdir(path)):
        directory = path / node
        if disk.stat(directory).kind is not FileKind.DIRECTORY:
            continue
        if is_log(disk, directory):
            found.append(Place(directory, node, node, "", trace))
            continue
        for name in _logs_in(disk, directory):
            found.append(Place(directory / name, f"{node}/{name}", node, name, trace))
    return tuple(found)


def _own(disk: Disk, path: Path) -> Place:
    """A log's directory by itself, with the run that it lies in, if any."""
    owner, trace = _run_of(disk, path.parent)
    if trace is not None:
        return Place(path, f"{owner}/{path.name}", owner, path.name, trace)
    owner, trace = _run_of(disk, path)
    return Place(path, path.name, owner, "", trace)


def _run_of(disk: Disk, directory: Path) -> tuple[str | None, Path | None]:
    """Node and trace, where a directory lies in the folder of a run."""
    trace = directory.parent / TRACE_NAME
    if directory.name and disk.stat(trace).kind is FileKind.FILE:
        return directory.name, trace
    return None, None
