"""Helpers of the tests of the simulated disk: a bench whose disk can be cut again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sim.disk_crash import Manifest
from sim.disk_images import Image
from sim.disk_names import NamesMode
from sim.disks import SimDisk
from sim.draws import Draws
from storage.disk import Disk, FileKind
from storage.memdisk import MemDisk

__all__ = ["Bench", "content", "files", "outcomes"]

Files = dict[str, bytes]


class Bench:
    """A simulated disk in memory, and power cuts of copies of it."""

    def __init__(self, mode: NamesMode, **options: Any) -> None:
        self.backing = MemDisk()
        self.disk = SimDisk(self.backing, Path("b1"), Draws(1), names_mode=mode, **options)

    def cut(
        self, image: Image | None = None, *, seed: int | None = None, **how: Any
    ) -> tuple[SimDisk, Manifest]:
        """A copy after a power cut; the disk itself goes on."""
        copy = self.disk.copy(self.backing.copy())
        if seed is not None:
            copy.draws = Draws(seed)
        return copy, copy.power_cut(image, **how)

    def enumerated(self) -> Iterator[tuple[Image, Files]]:
        """Every enumerated image and the files that it leaves."""
        for image in self.disk.images():
            yield image, files(self.cut(image)[0])


def outcomes(bench: Bench, *, count: int = 100, **how: Any) -> list[Files]:
    """The distinct outcomes of power cuts with so many seeds, sorted."""
    found = {}
    for seed in range(count):
        left = files(bench.cut(seed=seed, **how)[0])
        found[tuple(left.items())] = left
    return [found[key] for key in sorted(found)]


def content(disk: Disk, path: str | Path) -> bytes:
    """A whole file."""
    file = disk.open(Path(path), write=False)
    data = file.read_at(0, file.size() + 1)
    file.close()
    return data


def files(disk: Disk, directory: Path = Path()) -> Files:
    """Every file below a directory, by path."""
    found = {}
    for name in disk.listdir(directory):
        path = directory / name
        if disk.stat(path).kind is FileKind.DIRECTORY:
            found.update(files(disk, path))
        else:
            found[str(path)] = content(disk, path)
    return found
