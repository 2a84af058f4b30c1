"""The names in a log directory, sorted into kinds, before anything is read.

A ``.log`` name is a segment, or nothing is opened. What is left over from an interrupted operation
is known by its suffix and removed once the log opens; what belongs to nobody here is left alone.

Left out: what an output of compaction (``.cleaned``, ``.swap``) is worth (``storage.swaps``).
"""

from __future__ import annotations

import re
from pathlib import Path

from attrs import define, field

from storage.batch import OFFSET_END
from storage.checkpoints import TMP_SUFFIX
from storage.disk import Disk, FileKind
from storage.epochs import EPOCH_FILE
from storage.errors import ForeignFile, NotRegularFile
from storage.producer_snapshots import SNAPSHOT_SUFFIX
from storage.segment_indexes import LOG_SUFFIX
from storage.state import BOUNDARY_FILE, SEAL_FILE

__all__ = [
    "CLEANED_SUFFIX",
    "DELETED_SUFFIX",
    "LOCK_FILE",
    "SWAP_SUFFIX",
    "Listing",
    "list_directory",
]

CLEANED_SUFFIX = ".cleaned"
DELETED_SUFFIX = ".deleted"
SWAP_SUFFIX = ".swap"
LOCK_FILE = ".lock"
_SEGMENT_FILE = re.compile(
    r"([0-9]{20})\.(log|index|timeindex)(\.deleted|\.cleaned|\.swap)?\Z", re.ASCII
)
_SNAPSHOT_FILE = re.compile(rf"([0-9]{{20}}){re.escape(SNAPSHOT_SUFFIX)}\Z", re.ASCII)
_OWN_TMP = {
    name + TMP_SUFFIX for name in (EPOCH_FILE, BOUNDARY_FILE, SEAL_FILE, "partition.metadata")
}


@define
class Listing:
    """The names in a log directory, sorted into kinds.

    Attributes:
        bases: of segment files.
        swap_bases: of log files that compaction completed and did not get to put in place.
        cleaned_bases: of files of compaction outputs that were not completed.
        snapshots: offsets of producer snapshots, rising.
    """

    bases: list[int] = field(factory=list)
    swap_bases: list[int] = field(factory=list)
    cleaned_bases: list[int] = field(factory=list)
    snapshots: list[int] = field(factory=list)
    left_over: list[Path] = field(factory=list)
    ignored: list[str] = field(factory=list)


def list_directory(disk: Disk, directory: Path) -> Listing:
    """Sort a log directory's names.

    Raises:
        ForeignFile: a ``.log`` file whose name is not twenty digits below 2^63.
        NotRegularFile: a link or device has a ``.log`` name, or something that is no file is where
            an index, the seal or the lock is to be. A directory with a ``.log`` name is left alone.
    """
    listing = Listing()
    names = disk.listdir(directory)
    present = set(names)
    for name in names:
        path = directory / name
        match = _SEGMENT_FILE.match(name)
        if name.endswith(LOG_SUFFIX):
            kind = disk.stat(path).kind
            if kind is FileKind.DIRECTORY:
                listing.ignored.append(name)
            elif kind is not FileKind.FILE:
                raise _wrong_kind(path, kind, "a segment")
            elif match is None or int(match[1]) >= OFFSET_END:
                raise ForeignFile(path, "a segment's name is twenty digits below 2^63")
            else:
                listing.bases.append(int(match[1]))
        elif match is not None and match[3]:
            _note_suffixed(disk, listing, path, int(match[1]), match[2] + match[3])
        elif name in _OWN_TMP:
            _note_left_over(disk, listing, path)
        elif match is not None:
            if match[1] + LOG_SUFFIX not in present:
                _note_left_over(disk, listing, path)
            elif (kind := disk.stat(path).kind) is not FileKind.FILE:
                raise _wrong_kind(path, kind, "an index")
        elif _is_snapshot(disk, path):
            listing.snapshots.append(int(name[:20]))
        elif name in (SEAL_FILE, LOCK_FILE):
            kind = disk.stat(path).kind
            if kind not in (FileKind.FILE, FileKind.MISSING):
                raise _wrong_kind(path, kind, "this file")
        elif name not in (EPOCH_FILE, BOUNDARY_FILE, "partition.metadata"):
            listing.ignored.append(name)
    return listing


def _wrong_kind(path: Path, kind: FileKind, what: str) -> NotRegularFile:
    errno = "EISDIR" if kind is FileKind.DIRECTORY else "ELOOP"
    return NotRegularFile("open", path, errno, f"{what} cannot be a {kind.value}")


def _is_snapshot(disk: Disk, path: Path) -> bool:
    match = _SNAPSHOT_FILE.match(path.name)
    if match is None or int(match[1]) >= OFFSET_END:
        return False
    return disk.stat(path).kind is FileKind.FILE


def _note_suffixed(disk: Disk, listing: Listing, path: Path, base: int, ending: str) -> None:
    is_possible = base < OFFSET_END and disk.stat(path).kind is FileKind.FILE
    if ending == "log.swap" and is_possible:
        listing.swap_bases.append(base)
        return
    if ending.endswith(".cleaned"):
        listing.cleaned_bases.append(base)
    _note_left_over(disk, listing, path)


def _note_left_over(disk: Disk, listing: Listing, path: Path) -> None:
    if disk.stat(path).kind is FileKind.FILE:
        listing.left_over.append(path)
    else:
        listing.ignored.append(path.name)
