"""Logs for tests of retention and compaction: short makers, and reading everything there is."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import evolve

from storage.batch import ControlType, Record, RecordBatch
from storage.compaction import CompactionResult, compact
from storage.config import CompactionPolicy, LogConfig
from storage.disk import Disk, FileKind
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.reading import iter_batches
from storage.recovery import Verify

DIRECTORY = Path("/log")
SMALL = LogConfig(segment_max_bytes=600, index_interval_bytes=64)
ONE_EACH = LogConfig(segment_max_bytes=100, index_interval_bytes=64)
"""Segments are too small to be merged."""

Pair = tuple[bytes | None, bytes | None] | tuple[bytes | None, bytes | None, int]


def data(
    *pairs: Pair,
    pid: int = -1,
    in_transaction: bool = False,
    version: int = 2,
    sequence: int = -1,
) -> RecordBatch:
    """An unassigned batch of ``(key, value)`` or ``(key, value, timestamp_ms)``."""
    records = [Record(pair[0], pair[1], pair[2] if len(pair) > 2 else 0) for pair in pairs]
    return RecordBatch.unassigned(
        records,
        producer_id=pid,
        producer_epoch=-1 if pid == -1 else 0,
        base_sequence=sequence,
        transactional_id=f"tx-{pid}" if in_transaction else None,
        format_version=version,
    )


def marker(control: ControlType, pid: int, timestamp_ms: int = -1) -> RecordBatch:
    """An unassigned marker that ends the transaction of ``pid``."""
    return RecordBatch.control_marker(
        control,
        transactional_id=f"tx-{pid}",
        producer_id=pid,
        producer_epoch=0,
        timestamp_ms=timestamp_ms,
    )


def store(log: PartitionLog, batch: RecordBatch) -> RecordBatch:
    """Append a batch; returns it as it is stored.

    A producer's batch gets the sequence that is due; one that has a sequence, whichever it is,
    comes as from a leader.
    """
    is_produced = batch.producer_id >= 0 and batch.control is None
    if is_produced and batch.base_sequence >= 0:
        replica = batch.assign(log.leo, log.leader_epoch)
        log.append_replica_batch(replica)
        return replica
    if is_produced:
        known = log.producers.get(batch.producer_id)
        batch = evolve(batch, base_sequence=0 if known is None else known.next_sequence)
    stored = log.append(batch)
    return batch.assign(stored.base_offset, stored.leader_epoch)


def open_log(
    disk: Disk, config: LogConfig = SMALL, *, verify: Verify = "all", directory: Path = DIRECTORY
) -> PartitionLog:
    return PartitionLog.open(directory, config, disk=disk, verify=verify)


def build(
    *segments: Iterable[RecordBatch], disk: Disk | None = None, config: LogConfig = SMALL
) -> PartitionLog:
    """A flushed log with these closed segments, and an active one of one record without a key."""
    log = open_log(disk or MemDisk(), config)
    for batches in segments:
        for batch in batches:
            store(log, batch)
        log.roll()
    log.append(data((None, b"active")))
    log.flush()
    return log


def run(
    log: PartitionLog, limit: int | None = None, *, now: int = 0, **policy: int
) -> CompactionResult:
    """One whole pass, by default up to the log's end."""
    end = log.leo if limit is None else limit
    return compact(log, end, now_ms=now, policy=CompactionPolicy(**policy))


def batches_of(log: PartitionLog) -> list[RecordBatch]:
    """Every batch in the files, those below the log start too."""
    return [
        batch for segment in log.segments for batch in iter_batches(segment, segment.base_offset)
    ]


def rows_of(log: PartitionLog) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record from the log start on."""
    return [(r.offset, r.key, r.value) for r in log.fetch(log.log_start_offset, 100_000)]


def spans_of(log: PartitionLog) -> list[tuple[int, int]]:
    """Base offset and end of each segment."""
    return [(segment.base_offset, segment.next_offset) for segment in log.segments]


def files_of(disk: Disk, directory: Path = DIRECTORY) -> dict[str, bytes]:
    """Every regular file of a directory but the lock, with its content."""
    found = {}
    for name in disk.listdir(directory):
        if name != ".lock" and disk.stat(directory / name).kind is FileKind.FILE:
            file = disk.open(directory / name, write=False)
            found[name] = file.read_at(0, file.size())
            file.close()
    return found


def write_file(disk: Disk, name: str, content: bytes, directory: Path = DIRECTORY) -> None:
    file = disk.open(directory / name, create=True)
    file.truncate(0)
    file.write_at(0, content)
    file.close()
