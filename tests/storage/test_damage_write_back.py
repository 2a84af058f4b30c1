"""Row 65 of STORAGE.md E.2 on a disk that fails late: what the log makes of it, and what is left.

Goal: whatever the kernel says of a failed write-back, and whenever, what was flushed before stays,
nothing that was not flushed is called durable, and the log serves again once the disk does.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import define

from sim.disk_faults import DiskFault
from sim.disks import SimDisk
from sim.draws import Draws
from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.errors import DiskReadOnly, FsyncFailed, LogOffline
from storage.memdisk import MemDisk

DIRECTORY = Path("orders-0")
CONFIG = LogConfig(segment_max_bytes=100_000)
VALUE = b"v" * 1_000


@define
class Bench:
    """A log of which ten batches are flushed and ten are not; it passes several pages."""

    backing: MemDisk
    disk: SimDisk
    log: PartitionLog

    @classmethod
    def make(cls) -> Bench:
        backing = MemDisk()
        disk = SimDisk(backing, Path("b1"), Draws(1))
        log = open_log(disk)
        fill(log)
        log.flush()
        fill(log)
        return cls(backing, disk, log)

    def strike(self, kind: str, **more: str) -> None:
        self.disk.faults.add(DiskFault(id="f1", kind=kind, **more))  # type: ignore[arg-type]

    def check_offline(self, error: FsyncFailed) -> None:
        assert self.log.failure is error
        assert self.log.boundary.end_offset == 10
        for call in (self.log.flush, lambda: fill(self.log), lambda: self.log.fetch(0, 1)):
            with pytest.raises(LogOffline):
                call()
        self.log.close()


def open_log(disk: SimDisk) -> PartitionLog:
    return PartitionLog.open(DIRECTORY, CONFIG, disk=disk, verify="all")


def fill(log: PartitionLog) -> None:
    for _ in range(10):
        log.append(RecordBatch.unassigned([Record(None, VALUE, 1_000)]))


def check_serves(disk: SimDisk, *, at_least: int, at_most: int = 20) -> None:
    """It has what was flushed, reads to its end, and a flush covers what is appended now."""
    log = open_log(disk)
    assert at_least <= log.leo <= at_most
    assert [record.value for record in log.fetch(0, 100)] == [VALUE] * log.leo
    fill(log)
    log.flush()
    end = log.leo
    assert log.boundary.end_offset == end
    disk.power_cut(mode="lost")
    assert open_log(disk).leo == end


# The file system goes read-only ------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", [pytest.param(one, id=f"row65-read-only-at{one}") for one in (".log", ".index")]
)
@pytest.mark.parametrize("mode", ["lost", "kept"])
def test_row65_a_file_system_that_goes_read_only_takes_the_log_offline(
    path: str, mode: str
) -> None:
    bench = Bench.make()
    bench.strike("fsync-read-only", operation="complete_fsync", path=path)
    with pytest.raises(FsyncFailed) as raised:
        bench.log.flush()
    bench.check_offline(raised.value)
    before = bench.disk.digest()
    with pytest.raises(DiskReadOnly):
        open_log(bench.disk)
    assert bench.disk.digest() == before, "a refused opening changes nothing"
    bench.disk.power_cut(mode=mode)
    check_serves(bench.disk, at_least=10)


def test_row65_a_checkpoint_that_leaves_the_file_system_read_only_ends_the_service() -> None:
    """The flush itself succeeded: the boundary is true, only not written."""
    bench = Bench.make()
    bench.strike("fsync-read-only", operation="complete_fsync", path="boundary.tmp")
    bench.log.flush()
    assert isinstance(bench.log.failure, FsyncFailed)
    with pytest.raises(LogOffline):
        fill(bench.log)
    bench.disk.power_cut(mode="lost")
    check_serves(bench.disk, at_least=20)


def test_row66_a_remount_between_two_appends_leaves_the_log_as_it_was() -> None:
    """No fsync of this log failed, but it cannot cut the failed write back: it still reads."""
    bench = Bench.make()
    bench.disk.is_read_only = True
    with pytest.raises(DiskReadOnly):
        fill(bench.log)
    assert isinstance(bench.log.failure, DiskReadOnly)
    assert bench.log.leo == 20
    assert len(bench.log.fetch(0, 100)) == 20
    with pytest.raises(LogOffline):
        bench.log.flush()
    bench.disk.power_cut(mode="lost")
    check_serves(bench.disk, at_least=10)


# Delayed allocation ------------------------------------------------------------------------------


@pytest.mark.parametrize("content", ["keep", "revert"])
@pytest.mark.parametrize("operation", ["complete_fsync", "write_back"])
def test_row63_no_space_at_write_back_takes_the_log_offline_at_its_next_flush(
    content: str, operation: str
) -> None:
    """The appends had succeeded; whoever was told so was told nothing about durability."""
    bench = Bench.make()
    bench.strike("late-enospc", operation=operation, path=".log", content=content)
    bench.disk.write_back()
    if operation == "write_back":
        assert bench.log.failure is None
        assert bench.log.leo == 20
    else:
        fill(bench.log)
    with pytest.raises(FsyncFailed, match="ENOSPC") as raised:
        bench.log.flush()
    bench.check_offline(raised.value)
    bench.disk.evict()
    check_serves(bench.disk, at_least=10, at_most=bench.log.leo)
