"""The disks bench: what the simulated disk adds to a write, and what a power cut costs.

Appends of 100 bytes, through ``SimDisk`` in memory and on real files, beside a bare ``os.pwrite``
of the same bytes; a sync after each 40, as a broker that flushes now and then. A drawn power cut
takes 40 appends that no sync covered. Files are made below the system's temporary directory.
"""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sim.disks import SimDisk
from sim.draws import Draws
from storage.disk import Disk, DiskFile, OsDisk
from storage.memdisk import MemDisk
from tests.bench.measure import Scale, Subject, race
from tests.bench.report import Report, below, timed

__all__ = ["facts", "run"]

DATA = b"x" * 100
APPENDS = 40
FILE_BYTES_MAX = 1 << 20


def facts() -> dict[str, Any]:
    """Nothing but Python and the system has a version here."""
    return {}


def run(scale: Scale, report: Report) -> None:
    """Measure appends and power cuts."""
    with TemporaryDirectory(prefix="leaderfall-bench-") as directory:
        root = Path(directory)
        disks = [SimDisk(MemDisk(), Path("b1"), Draws(1)), SimDisk(OsDisk(), root / "b1", Draws(1))]
        bare = os.open(root / "bare", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            in_memory, on_files, pwrite = race(
                scale, *(_appends(disk) for disk in disks), _pwrites(bare)
            )
        finally:
            os.close(bare)
        report.add(
            timed(
                "append",
                "SimDisk in memory",
                in_memory,
                reference_s=pwrite,
                of="os.pwrite",
                budget=below(4e-6, "s"),
            ),
            timed(
                "append",
                "SimDisk on files",
                on_files,
                reference_s=pwrite,
                of="os.pwrite",
                budget=below(8e-6, "s"),
            ),
        )
        disks = [_fresh(MemDisk(), Path("c1")), _fresh(OsDisk(), root / "c1")]
        in_memory, on_files = race(scale, *map(_crash, disks))
        what = f"a drawn power cut over {APPENDS} unsynced appends"
        report.add(
            timed("crash", f"{what}, in memory", in_memory, budget=below(1e-3, "s")),
            timed("crash", f"{what}, on files", on_files, budget=below(1e-3, "s")),
        )


def _appends(disk: Disk) -> Subject:
    file = disk.open(Path("a"), create=True)

    def prepare(count: int) -> None:
        if file.size() > FILE_BYTES_MAX:
            file.truncate(0)
        file.fsync()

    def append(count: int) -> None:
        for number in range(count):
            file.append(DATA)
            if number % APPENDS == 0:
                file.fsync()

    return Subject(append, prepare)


def _pwrites(descriptor: int) -> Subject:
    def write(count: int) -> None:
        for number in range(count):
            os.pwrite(descriptor, DATA, number * len(DATA))

    return Subject(write)


def _fresh(backing: Disk, root: Path) -> SimDisk:
    disk = SimDisk(backing, root, Draws(1))
    disk.open(Path("a"), create=True).fsync()
    return disk


def _crash(disk: SimDisk) -> Subject:
    """The power cut alone is timed; each begins with a synced file of a few records."""

    def prepare(_: int) -> None:
        file: DiskFile = disk.open(Path("a"))
        file.truncate(APPENDS * len(DATA))
        file.fsync()
        for _ in range(APPENDS):
            file.append(DATA)

    def cut(_: int) -> None:
        disk.power_cut()

    return Subject(cut, prepare, operations_max=1)
