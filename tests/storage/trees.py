"""Files and directory trees on any disk: read whole, written whole, compared."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from storage.disk import Disk, FileKind


def content(disk: Disk, path: Path) -> bytes:
    file = disk.open(path, write=False)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def put(disk: Disk, path: Path, data: bytes) -> None:
    """Write a file as it should have been."""
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.close()


def tree(disk: Disk, path: Path) -> dict[str, bytes | FileKind]:
    """Every name below ``path``, with the content of files."""
    found: dict[str, bytes | FileKind] = {}
    for name in disk.listdir(path):
        kind = disk.stat(path / name).kind
        if kind is FileKind.DIRECTORY:
            found |= {f"{name}/{inner}": what for inner, what in tree(disk, path / name).items()}
        found[name] = content(disk, path / name) if kind is FileKind.FILE else kind
    return found


def paths_below(disk: Disk, path: Path) -> Iterator[Path]:
    """``path`` and every name below it."""
    yield path
    if disk.stat(path).kind is FileKind.DIRECTORY:
        for name in disk.listdir(path):
            yield from paths_below(disk, path / name)
