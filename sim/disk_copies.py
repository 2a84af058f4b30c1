"""Images of whole disks: taken while a node runs, put in the place of what a disk holds.

A node may come back with an empty disk, with an older image of its own, or with another node's
(FAULTS C.4). An image is what a process sees, so it may be of a moment at which nothing was synced;
once it is put, all of it is durable, as after a restore from a backup.

Left out: when that is done (``sim.world``).
"""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from sim.disk_names import DIRECTORY
from sim.disks import SimDisk
from storage.disk import Disk, FileKind
from storage.values import Value

__all__ = ["WIPED", "DiskCopy"]


@frozen
class DiskCopy(Value):
    """Directories and files of a disk; paths are relative to its root.

    Attributes:
        directories: parents before children.
        files: path and content.
    """

    directories: tuple[Path, ...] = ()
    files: tuple[tuple[Path, bytes], ...] = ()

    @classmethod
    def take(cls, disk: SimDisk) -> DiskCopy:
        """What a process sees on ``disk`` now; costs nothing and counts as no call."""
        directories, files = [], []
        for path, number in disk.names.paths():
            if disk.names.kinds[number] == DIRECTORY:
                directories.append(path)
            else:
                files.append((path, disk.content_of(number)))
        return cls(tuple(directories), tuple(files))

    def put(self, disk: SimDisk) -> None:
        """Make this all that ``disk`` holds, durable, with its power on.

        Its process has ended then, as by ``kill``; fuses are out, and faults stay. Bad sectors and
        what a failed sync left go with the old files.
        """
        with disk.refilled() as (backing, root):
            _remove_below(backing, root)
            for directory in self.directories:
                backing.mkdir(root / directory)
            for path, content in self.files:
                file = backing.open(root / path, create=True)
                file.write_at(0, content)
                file.close()


WIPED = DiskCopy()
"""The image of an empty disk."""


def _remove_below(backing: Disk, directory: Path) -> None:
    for name in backing.listdir(directory):
        path = directory / name
        if backing.stat(path).kind is FileKind.DIRECTORY:
            _remove_below(backing, path)
            backing.rmdir(path)
        else:
            backing.unlink(path)
