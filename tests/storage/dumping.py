"""What the tests of ``storage.dump`` share: logs to look at, a run of it, a disk that watches.

Logs are made in memory, byte for byte the same each time, so that what is printed can be compared
word for word.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any, NamedTuple

from storage import ControlType, Header, LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import Disk, DiskFile, DiskLock, FileStat, LockState
from storage.dump import main
from storage.log_dir import LogDir, TopicPartition
from storage.memdisk import MemDisk
from tests.storage.trees import content, put

CONFIG = LogConfig(segment_max_bytes=400, index_interval_bytes=100)
FLAGS = ("--index-interval-bytes", "100")
T0 = 1_700_000_000_000
LOG = Path("/data/orders-0")
BROKER = Path("/data/broker")


class Ran(NamedTuple):
    """What a run of the command gave."""

    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


def dump(disk: Disk | None, *arguments: str | Path) -> Ran:
    out, err = io.StringIO(), io.StringIO()
    status = main([str(argument) for argument in arguments], disk=disk, out=out, err=err)
    return Ran(status, out.getvalue(), err.getvalue())


def as_json(disk: Disk | None, *arguments: str | Path) -> Any:
    """The document; its exit status is the command's."""
    ran = dump(disk, "--json", *arguments)
    document = ran.document
    assert document["exit_status"] == ran.status, ran.err
    return document


# Logs ------------------------------------------------------------------------------------------


def batch(number: int, count: int = 1) -> RecordBatch:
    return RecordBatch.unassigned(
        Record(b"key-%d" % number, b"value-%d" % i, T0 + 1_000 * number + i) for i in range(count)
    )


def fill(log: PartitionLog, batches: int = 6, *, flush_after: int = -1) -> None:
    """Data in epochs 3 and 4, then a transaction: three segments with ``CONFIG``."""
    log.become_leader(3)
    for number in range(batches):
        if number == flush_after:
            log.flush()
            log.run_pending()
        if number == batches - 1:
            log.become_leader(4)
        log.append(batch(number, 1 + number % 2))
    sent = RecordBatch.unassigned(
        [Record(None, b"paid", T0 + 60_000, (Header("trace", b"\x01"), Header("note", None)))],
        producer_id=42,
        producer_epoch=0,
        base_sequence=7,
        transactional_id="tx-1",
    )
    log.append(sent)
    log.append(
        RecordBatch.control_marker(
            ControlType.COMMIT,
            transactional_id="tx-1",
            producer_id=42,
            producer_epoch=0,
            timestamp_ms=T0 + 61_000,
        )
    )


def healthy_log(config: LogConfig = CONFIG) -> MemDisk:
    """``LOG`` on a disk of its own, cleanly closed."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, config, disk=disk)
    fill(log)
    log.close()
    return disk


def producing_log() -> MemDisk:
    """``LOG`` with three producers, snapshots at 5, 9 and 12, cleanly closed."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, CONFIG, disk=disk)
    log.append(batch(0))
    log.append(sent(2**31 - 2, 3, producer=7))
    for sequence in range(1, 7):
        log.append(sent(sequence, producer=7))
    log.append(sent(0, producer=9, epoch=4))
    marker = RecordBatch.control_marker(
        ControlType.ABORT, transactional_id="t", producer_id=42, producer_epoch=1
    )
    log.append(marker)
    log.close()
    assert [path.name[18:20] for path in segments(disk, LOG, ".snapshot")] == ["05", "09", "12"]
    return disk


def sent(first: int, count: int = 1, *, producer: int, epoch: int = 0) -> RecordBatch:
    """A batch of an idempotent producer."""
    return RecordBatch.unassigned(
        [Record(None, b"value", T0 + first % 1_000 + number) for number in range(count)],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=first,
    )


def crashed_log() -> MemDisk:
    """The same, but its process died: of what it wrote, two batches are known to be durable."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, CONFIG, disk=disk, runs_pending=False)
    fill(log, flush_after=2)
    log.abandon()
    return disk


def healthy_broker() -> MemDisk:
    """``BROKER`` with three partitions, cleanly closed."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    broker = LogDir.open(BROKER, disk=disk)
    for number in range(3):
        topic_id = "AAAAAAAAAAAAAAAAAAAAA" + str(number)
        fill(broker.open_log("orders", number, CONFIG, topic_id=topic_id), 2 + number)
    marks = {TopicPartition("orders", number): 2 + number for number in range(3)}
    broker.write_high_watermarks(marks)
    broker.close(broker_epoch=7)
    return disk


def segments(disk: Disk, directory: Path = LOG, suffix: str = ".log") -> list[Path]:
    names = disk.listdir(directory)
    return [directory / name for name in names if name.endswith(suffix)]


def flip(disk: Disk, path: Path, position: int, mask: int = 1) -> None:
    data = bytearray(content(disk, path))
    data[position] ^= mask
    put(disk, path, bytes(data))


# Looking without touching ----------------------------------------------------------------------


class WatchedDisk:
    """Passes reads on, fails the test at anything else, and counts what is read.

    Attributes:
        bytes_read: of files, in all.
        largest_read: of one call.
        calls: how many there were.
    """

    def __init__(self, inner: Disk) -> None:
        self.inner = inner
        self.bytes_read = self.largest_read = self.calls = self.open_files = 0

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        assert not create, f"{path} would be created"
        assert not write, f"{path} would be opened for writing"
        self.calls += 1
        return _WatchedFile(self, self.inner.open(path, write=False))

    def stat(self, path: Path) -> FileStat:
        self.calls += 1
        return self.inner.stat(path)

    def listdir(self, path: Path) -> list[str]:
        self.calls += 1
        return self.inner.listdir(path)

    def lock_state(self, path: Path) -> LockState:
        return self.inner.lock_state(path)  # type: ignore[attr-defined, no-any-return]

    def mkdir(self, path: Path) -> None:
        raise AssertionError(f"mkdir {path}")

    def rename(self, old: Path, new: Path) -> None:
        raise AssertionError(f"rename {old} {new}")

    def unlink(self, path: Path) -> None:
        raise AssertionError(f"unlink {path}")

    def rmdir(self, path: Path) -> None:
        raise AssertionError(f"rmdir {path}")

    def fsync_dir(self, path: Path) -> None:
        raise AssertionError(f"fsync_dir {path}")

    def lock(self, path: Path) -> DiskLock:
        raise AssertionError(f"lock {path}")


class _WatchedFile:
    def __init__(self, disk: WatchedDisk, inner: DiskFile) -> None:
        self._disk = disk
        self._inner = inner
        self._is_open = True
        disk.open_files += 1

    @property
    def path(self) -> Path:
        return self._inner.path

    def _count(self, size_bytes: int) -> None:
        self._disk.calls += 1
        self._disk.bytes_read += size_bytes
        self._disk.largest_read = max(self._disk.largest_read, size_bytes)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        self._disk.largest_read = max(self._disk.largest_read, size_bytes)
        data = self._inner.read_at(position, size_bytes)
        self._count(len(data))
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        count = self._inner.read_into(position, buffer)
        self._count(count)
        return count

    def size(self) -> int:
        return self._inner.size()

    def close(self) -> None:
        self._disk.open_files -= self._is_open
        self._is_open = False
        self._inner.close()

    def write_at(self, position: int, data: object) -> None:
        raise AssertionError(f"write_at {self.path}")

    def append(self, data: object) -> int:
        raise AssertionError(f"append {self.path}")

    def truncate(self, size_bytes: int) -> None:
        raise AssertionError(f"truncate {self.path}")

    def begin_fsync(self) -> int:
        raise AssertionError(f"begin_fsync {self.path}")

    def complete_fsync(self, token: int) -> None:
        raise AssertionError(f"complete_fsync {self.path}")

    def fsync(self) -> None:
        raise AssertionError(f"fsync {self.path}")

    def fileno(self) -> int | None:
        return None
