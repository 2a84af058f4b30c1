"""Checkpoint files in Kafka's text container, and how a small file is replaced atomically.

Container: UTF-8 text; line 1 the version ``0``, line 2 the number of entries, then one entry a
line, fields separated by one space when written and by any run of white space when read. An empty
file has no entries. Source: CheckpointFile, LeaderEpochCheckpointFile, OffsetCheckpointFile.

Left out: what the entries mean, and when a checkpoint is due.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from storage.disk import Disk
from storage.errors import CorruptCheckpoint, FileMissing

__all__ = [
    "parse_entries",
    "parse_int",
    "read_entries",
    "read_small",
    "replace_file",
    "write_entries",
]

CHECKPOINT_MAX_BYTES = 64 << 20
TMP_SUFFIX = ".tmp"
_INT = re.compile(r"-?[0-9]{1,19}\Z", re.ASCII)


def read_small(disk: Disk, path: Path, max_bytes: int = CHECKPOINT_MAX_BYTES) -> bytes | None:
    """The bytes of a small file, None where it is missing.

    Raises:
        CorruptCheckpoint: it is larger than ``max_bytes``.
        DiskError: it cannot be read, or is no regular file.
    """
    try:
        file = disk.open(path, write=False)
    except FileMissing:
        return None
    try:
        size = file.size()
        if size > max_bytes:
            raise CorruptCheckpoint(path, 0, f"{size} bytes, at most {max_bytes} are read")
        return file.read_at(0, size)
    finally:
        file.close()


def replace_file(disk: Disk, path: Path, data: bytes, *, fsync: bool = True) -> None:
    """Replace ``path`` so that a crash leaves the old content or the new, never a mixture.

    Temporary file, fsync, rename, fsync of the directory. ``fsync=False`` leaves the first sync
    out (``LogRules.fsync_before_rename``).
    """
    temporary = path.with_name(path.name + TMP_SUFFIX)
    file = disk.open(temporary, create=True)
    try:
        file.truncate(0)
        file.write_at(0, data)
        if fsync:
            file.fsync()
    finally:
        file.close()
    disk.rename(temporary, path)
    disk.fsync_dir(path.parent)


def write_entries(
    disk: Disk, path: Path, entries: Iterable[Iterable[object]], *, fsync: bool = True
) -> None:
    """Write a container of version 0, atomically and durably."""
    lines = [" ".join(str(field) for field in entry) for entry in entries]
    text = "\n".join(["0", str(len(lines)), *lines, ""])
    replace_file(disk, path, text.encode(), fsync=fsync)


def read_entries(
    disk: Disk, path: Path, fields: int, *, optional: int = 0
) -> list[list[str]] | None:
    """The entries of a container, each of ``fields`` fields; None where it is missing.

    Args:
        optional: how many fields more an entry may have.

    Raises:
        CorruptCheckpoint: another version, a malformed line, or a count that does not match.
        DiskError: the file cannot be read.
    """
    data = read_small(disk, path)
    if data is None:
        return None
    try:
        lines = data.decode().split("\n")
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, 0, "not UTF-8 text") from error
    if not lines[-1].strip():
        lines.pop()
    return list(parse_entries(path, lines, fields, optional))


def parse_entries(
    path: Path, lines: Iterable[str], fields: int, optional: int = 0
) -> Iterator[list[str]]:
    """The entries of a container, one by one, from its lines; a blank last line is left out.

    Raises:
        CorruptCheckpoint: as ``read_entries``, at the line concerned; a wrong count at the end.
    """
    count = 0
    found = 0
    for number, line in enumerate(lines, 1):
        if number == 1:
            if line.strip() != "0":
                raise CorruptCheckpoint(path, 1, f"version {line[:20]!r}, allowed is 0")
        elif number == 2:
            count = parse_int(path, 2, line.strip())
        else:
            entry = line.split()
            if not fields <= len(entry) <= fields + optional:
                raise CorruptCheckpoint(path, number, f"{len(entry)} fields, expected {fields}")
            found += 1
            yield entry
    if count != found:
        raise CorruptCheckpoint(path, 2, f"count {count}, but {found} entries follow")


def parse_int(path: Path, line: int, text: str) -> int:
    """A decimal integer of a checkpoint, within signed 64 bit."""
    if not _INT.match(text) or not -(2**63) <= int(text) < 2**63:
        raise CorruptCheckpoint(path, line, f"{text[:40]!r} is not an integer of 64 bits")
    return int(text)


def remove_if_there(disk: Disk, path: Path) -> None:
    """Unlink ``path``; a missing file is no error."""
    try:
        disk.unlink(path)
    except FileMissing:
        return
