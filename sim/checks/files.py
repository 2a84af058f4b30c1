"""Hands the calls of one broker's disk to the mirrors of its logs.

Left out: what the mirrors make of them (``sim.checks.mirrors``).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Final

from cluster.names import TopicIdPartition
from sim.checks.ledger import Place
from sim.checks.mirrors import LogMirror
from sim.disks import SimDisk
from storage.log_dir import MARKER_FILE

__all__ = ["FileWatch"]

_CHANGING: Final = frozenset(
    {"append", "write_at", "truncate", "rename", "unlink", "fsync", "complete_fsync"}
)


class FileWatch:
    """See the module.

    Attributes:
        by_directory: the broker's replicas, by the names of their directories.
        dirty: partitions whose files have changed since anybody looked.
    """

    def __init__(self, disk: SimDisk) -> None:
        self.disk = disk
        self.by_directory: dict[str, Place] = {}
        self.dirty: dict[TopicIdPartition, None] = {}

    def on_disk_call(self, operation: str, path: Path, position: int, size_bytes: int) -> None:
        """A call took effect."""
        if operation not in _CHANGING:
            return
        known = _segment_of(path)
        if known is None:
            if operation in ("rename", "unlink") and ".log" in path.name:
                self._stale(path.parent.name)
            elif operation == "rename" and path.name.startswith(MARKER_FILE):
                for each in self.by_directory.values():
                    each.was_closed = True
            elif operation == "rename" and len(path.parts) <= 2:
                self.by_directory.pop(path.name, None)
            return
        place = self.by_directory.get(known[0])
        if place is None:
            return
        mirror = place.mirror
        if operation in ("fsync", "complete_fsync"):
            if mirror.cut_unsynced:
                self._forget_cut(mirror, path)
            return
        self.dirty[place.partition] = None
        if operation == "truncate":
            mirror.cut(known[1], position)
        elif operation in ("append", "write_at"):
            mirror.wrote(known[1], position, size_bytes)
        else:
            mirror.is_stale = True

    def _forget_cut(self, mirror: LogMirror, path: Path) -> None:
        """A sync has made a cut durable, if nothing of the file is pending."""
        number = self.disk.names.find((mirror.directory, path.name))
        inode = None if number is None else self.disk.inodes.get(number)
        if inode is not None and not inode.state.ops and not self.disk.names.ops:
            mirror.cut_unsynced.clear()

    def _stale(self, directory: str) -> None:
        place = self.by_directory.get(directory)
        if place is not None:
            place.mirror.is_stale = True
            self.dirty[place.partition] = None


@lru_cache(maxsize=10_000)
def _segment_of(path: Path) -> tuple[str, int] | None:
    """Directory and base offset of a log's segment file; None for any other file."""
    name = path.name
    if len(name) != 24 or not name.endswith(".log") or not name[:20].isdigit():
        return None
    return path.parent.name, int(name[:20])
