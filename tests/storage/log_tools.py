"""Opening a log on a disk in memory, and looking at what it left there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from storage import LogConfig, PartitionLog
from storage.disk import Disk
from tests.storage.batches import one
from tests.storage.sync_disk import SyncDisk

DIRECTORY = Path("/t-0")
TINY = LogConfig(segment_max_bytes=1)


def open_log(
    disk: Disk,
    config: LogConfig | None = None,
    *,
    verify: Any = "unflushed",
    runs_pending: bool = True,
) -> PartitionLog:
    return PartitionLog.open(
        DIRECTORY,
        config,
        disk=disk,
        verify=verify,
        runs_pending=runs_pending,
    )


def fill(log: PartitionLog, count: int, value: bytes = b"v") -> None:
    for _ in range(count):
        log.append(one(value))


def files(disk: Disk) -> dict[str, bytes]:
    found = {}
    for name in disk.listdir(DIRECTORY):
        file = disk.open(DIRECTORY / name, write=False)
        found[name] = file.read_at(0, file.size())
        file.close()
    return found


def check_boundary(log: PartitionLog, disk: SyncDisk) -> None:
    """Everything that the boundary covers is on the disk and durable."""
    boundary = log.boundary
    assert boundary.end_offset <= log.leo
    for segment in log.segments:
        if segment.base_offset < boundary.segment_base:
            assert disk.is_durable(segment.log_path, segment.size_bytes)
        elif segment.base_offset == boundary.segment_base and boundary.size_bytes:
            assert disk.is_durable(segment.log_path, boundary.size_bytes)
