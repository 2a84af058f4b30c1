"""What the storage bench works on: records, batches, logs.

Values are drawn from a fixed seed and have no key. Timestamps rise by one a record, so that time
index entries cost what they cost in a real log.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

from storage.batch import Record, RecordBatch
from storage.config import LogConfig
from storage.disk import Disk, OsDisk
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from storage.partition_log import PartitionLog
from tests.bench.unsynced import UnsyncedDisk

__all__ = [
    "BATCH_BYTES_MAX",
    "FRESH_LOG_BYTES",
    "MEMORY_DIRECTORY",
    "Appender",
    "Batches",
    "Folders",
    "Shape",
    "build_log",
    "encode",
    "size_text",
]

BATCH_BYTES_MAX = LogConfig().max_batch_bytes
FIRST_TIMESTAMP_MS = 1_700_000_000_000
FRESH_LOG_BYTES = 32 << 20
MEMORY_DIRECTORY = Path("/log")
POOL_BYTES = 1 << 20


@dataclass(frozen=True)
class Shape:
    """A batch of so many records, with so many bytes in the value of each."""

    record_bytes: int
    records: int

    def __str__(self) -> str:
        return f"{size_text(self.record_bytes)} × {self.records}"

    @property
    def frame_bytes(self) -> int:
        """Size of a batch's frame."""
        return len(encode(Batches(self).batch()))

    @property
    def ring(self) -> int:
        """How many different batches stay within a cache's size."""
        return max(1, min(256, POOL_BYTES // (self.record_bytes * self.records)))


def size_text(size_bytes: int) -> str:
    """A size in the largest unit of which it is at least one, rounded down."""
    for shift, unit in ((20, "MiB"), (10, "KiB")):
        if size_bytes >> shift:
            return f"{size_bytes >> shift} {unit}"
    return f"{size_bytes} B"


class Batches:
    """An endless source of batches of one shape."""

    def __init__(self, shape: Shape) -> None:
        draw = Random(str(shape)).randbytes
        number = max(1, min(4_096, POOL_BYTES // shape.record_bytes) // shape.records)
        self._values = [
            [draw(shape.record_bytes) for _ in range(shape.records)] for _ in range(number)
        ]
        self._number = 0

    def records(self) -> tuple[Record, ...]:
        """The records of the next batch, as plain tuples."""
        values = self._values[self._number % len(self._values)]
        time_ms = FIRST_TIMESTAMP_MS + self._number * len(values)
        self._number += 1
        plain = tuple([(None, value, at, ()) for at, value in enumerate(values, time_ms)])
        return cast("tuple[Record, ...]", plain)

    def batch(self) -> RecordBatch:
        """The next batch."""
        return RecordBatch.unassigned(self.records())


def encode(batch: RecordBatch, base_offset: int = 0) -> bytes:
    """The batch's frame in epoch 0."""
    return MKB1.encode(batch, base_offset, 0, BATCH_BYTES_MAX)[0]


class Folders:
    """Fresh directories below one root, each removed by ``drop`` or with the root."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._number = 0

    def fresh(self) -> Path:
        """A directory's path; the directory itself is not made."""
        self._number += 1
        return self._root / f"log-{self._number}"

    def drop(self, path: Path) -> None:
        """Remove a directory with all that is in it; one on another disk is left alone."""
        if path.is_relative_to(self._root):
            shutil.rmtree(path)


class Appender:
    """Appends to a log that begins anew, in a fresh directory, whenever it has grown large.

    The log has one batch already when a turn begins: the first one writes the epoch file.
    """

    def __init__(self, shape: Shape, disk: type[OsDisk | MemDisk], folders: Folders) -> None:
        self._disk = disk
        self._folders = folders
        self._source = Batches(shape)
        self._log: PartitionLog | None = None
        self._batches: list[RecordBatch] = []
        self._records: list[tuple[Record, ...]] = []

    def prepare(self, count: int) -> None:
        """Have ``count`` batches and a log for them."""
        self._batches = [self._source.batch() for _ in range(count)]
        self._have_log()

    def prepare_records(self, count: int) -> None:
        """Have the records of ``count`` batches, and a log."""
        self._records = [self._source.records() for _ in range(count)]
        self._have_log()

    def run(self, count: int) -> None:
        """Append the batches that ``prepare`` made."""
        assert self._log is not None
        append = self._log.append
        for batch in self._batches:
            append(batch)

    def run_records(self, count: int) -> None:
        """Make batches of the records, and append them."""
        assert self._log is not None
        append, make = self._log.append, RecordBatch.unassigned
        for records in self._records:
            append(make(records))

    def close(self) -> None:
        """Drop log and directory."""
        if self._log is not None:
            self._log.abandon()
            self._folders.drop(self._log.directory)
            self._log = None

    def _have_log(self) -> None:
        if self._log is not None and self._log.active.size_bytes > FRESH_LOG_BYTES:
            self.close()
        if self._log is None:
            disk = self._disk()
            directory = MEMORY_DIRECTORY if isinstance(disk, MemDisk) else self._folders.fresh()
            self._log = PartitionLog.open(directory, disk=disk)
            self._log.append(self._source.batch())


def build_log(
    directory: Path,
    shape: Shape,
    size_bytes: int,
    *,
    config: LogConfig | None = None,
    disk: Disk | None = None,
    batches: int = 0,
    roll_every: int = 0,
) -> PartitionLog:
    """An open log of at least ``size_bytes``, or of exactly so many ``batches``, never synced.

    ``roll_every`` begins a new segment after so many batches.
    """
    log = PartitionLog.open(directory, config, disk=disk or UnsyncedDisk())
    source = Batches(shape)
    wanted = batches or -(-size_bytes // shape.frame_bytes)
    for number in range(wanted):
        if roll_every and number % roll_every == 0:
            log.roll()
        log.append(source.batch())
    return log
