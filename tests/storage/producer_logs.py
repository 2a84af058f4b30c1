"""A log with producers for tests, its snapshots, and ways to damage them.

It has a segment every ten batches of one record; producer 7 writes in each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from storage import ControlType, LogConfig, PartitionLog, Record, RecordBatch
from storage.producer_state import ProducerEntry
from tests.storage.faults import FaultDisk
from tests.storage.naive_producers import NaiveProducers

DIRECTORY = Path("/log")
LAST = 2**31 - 1
FRAME = 83
"""Bytes of a frame of one record with a value of one byte."""
CONFIG = LogConfig(segment_max_bytes=10 * FRAME, index_interval_bytes=1)
MODES = ("unflushed", "all")


def batch(
    sequence: int, count: int = 1, *, producer: int = 7, epoch: int = 0, time: int = 1_000
) -> RecordBatch:
    return RecordBatch.unassigned(
        [Record(None, b"v", time)] * count,
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


PLAIN = RecordBatch.unassigned([Record(None, b"v", 1_000)])


def marker(epoch: int = 0, time: int = 1_000, producer: int = 7) -> RecordBatch:
    return RecordBatch.control_marker(
        ControlType.ABORT,
        transactional_id="t",
        producer_id=producer,
        producer_epoch=epoch,
        timestamp_ms=time,
    )


def open_log(disk: FaultDisk, verify: str = "unflushed", **options: bool) -> PartitionLog:
    return PartitionLog.open(DIRECTORY, CONFIG, disk=disk, verify=verify, **options)  # type: ignore[arg-type]


def filled(disk: FaultDisk, count: int = 35, **options: bool) -> PartitionLog:
    """A log whose batch ``n`` is number ``n`` of producer 7, but every fifth is a plain one."""
    log = open_log(disk, **options)
    sequence = 0
    for number in range(count):
        if number % 5 == 4:
            log.append(PLAIN)
        else:
            log.append(batch(sequence))
            sequence += 1
    return log


def snapshots(disk: FaultDisk) -> list[int]:
    """Offsets of the snapshot files."""
    names = disk.inner.listdir(DIRECTORY)
    return [int(name[:20]) for name in names if name.endswith(".snapshot")]


def path(offset: int) -> Path:
    return DIRECTORY / f"{offset:020d}.snapshot"


def content(disk: FaultDisk, name: str) -> bytes:
    file = disk.inner.open(DIRECTORY / name, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def everything(disk: FaultDisk) -> dict[str, bytes]:
    return {name: content(disk, name) for name in disk.inner.listdir(DIRECTORY)}


def replayed(log: PartitionLog) -> dict[int, ProducerEntry]:
    """What the twin finds in the log's own batches."""
    return NaiveProducers.replayed(log.all_batches()).entries()


def edit(change: Callable[[bytearray], None], *offsets: int) -> Callable[[FaultDisk], None]:
    def do(disk: FaultDisk) -> None:
        for offset in offsets:
            data = bytearray(content(disk, path(offset).name))
            change(data)
            file = disk.inner.open(path(offset))
            file.truncate(0)
            file.write_at(0, data)
            file.close()

    return do


def lose(*offsets: int) -> Callable[[FaultDisk], None]:
    def do(disk: FaultDisk) -> None:
        for offset in offsets:
            disk.inner.unlink(path(offset))

    return do


def move(old: int, new: int) -> Callable[[FaultDisk], None]:
    return lambda disk: disk.inner.rename(path(old), path(new))


def flip(data: bytearray) -> None:
    data[-1] ^= 1


def halve(data: bytearray) -> None:
    del data[len(data) // 2 :]
