"""Hostile bytes and unlucky errors that once broke a log: each stays a small test."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import OsDisk
from storage.errors import (
    CorruptBatch,
    CorruptLog,
    DiskFull,
    InvalidConfig,
    InvalidRecord,
    LogOffline,
    StorageError,
)
from storage.log_dir import LogDir, TopicPartition
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from storage.reading import FileSlice
from tests.storage.faults import FaultDisk

LOG = Path("/t-0")


def one(value: bytes = b"v", timestamp_ms: int = 1) -> RecordBatch:
    return RecordBatch.unassigned([Record(None, value, timestamp_ms)])


def filled(disk: MemDisk | FaultDisk, count: int, config: LogConfig | None = None) -> PartitionLog:
    log = PartitionLog.open(LOG, config, disk=disk)
    for _ in range(count):
        log.append(one())
    return log


def flip(disk: MemDisk, path: Path, byte: int) -> None:
    file = disk.open(path)
    old = file.read_at(byte, 1)
    file.write_at(byte, bytes([old[0] ^ 1]))
    file.close()


def test_truncation_that_meets_damage_changes_nothing() -> None:
    disk = MemDisk()
    log = filled(disk, 10)
    log.flush()
    frame = log.size_bytes // 10
    before = log.size_bytes
    flip(disk, log.active.log_path, 4 * frame - 1)
    with pytest.raises(CorruptLog):
        log.truncate_to(7)
    assert (log.leo, log.active.log_path) == (10, log.active.log_path)
    assert disk.stat(log.active.log_path).size_bytes == before


@pytest.mark.parametrize("operation", ["open", "write_at"])
def test_roll_that_fails_leaves_no_segment_behind(operation: str) -> None:
    disk = FaultDisk(MemDisk())
    config = LogConfig(segment_max_bytes=500)
    log = filled(disk, 3, config)
    suffix = "3.index" if operation == "open" else "0.timeindex"
    disk.fail(operation, suffix=suffix, errno=errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.append(one(b"y" * 400))
    log.append(one(b"small"))
    log.flush()
    log.close()
    again = PartitionLog.open(LOG, config, disk=disk, verify="all")
    assert [record.value for record in again.fetch(3, 9)] == [b"small"]


def test_a_clients_bytes_do_not_hide_whole_batches_from_look_ahead() -> None:
    disk = MemDisk()
    log = filled(disk, 1)
    log.append(one(b"MKB1\0\0\1\0" * 60_000))
    for _ in range(5):
        log.append(one())
    path = log.active.log_path
    log.close()
    disk.unlink(LOG / "boundary")
    disk.unlink(LOG / "seal")
    flip(disk, path, 1_000)
    with pytest.raises(CorruptLog):
        PartitionLog.open(LOG, disk=disk)


def test_smaller_batch_limit_on_reopening_cuts_nothing() -> None:
    disk = MemDisk()
    log = filled(disk, 2)
    log.append(one(b"x" * 5_000))
    log.append(one())
    log.abandon()
    again = PartitionLog.open(LOG, LogConfig(max_batch_bytes=2_000), disk=disk, verify="all")
    assert (again.leo, again.report.cuts) == (4, ())
    assert len(again.fetch(2, 1)[0].value or b"") == 5_000


def test_log_of_a_log_dir_is_not_opened_on_its_own() -> None:
    disk = MemDisk()
    log_dir = LogDir.open(Path("/b1"), disk=disk)
    log_dir.open_log("t", 0).append(one())
    with pytest.raises(InvalidConfig, match="LogDir"):
        PartitionLog.open(Path("/b1/t-0"), disk=disk)


def test_salvage_takes_its_own_error_only_and_leaves_a_sound_log_alone() -> None:
    disk = MemDisk()
    filled(disk, 10).close()
    stray = CorruptLog(
        Path("/other/00000000000000000000.log"),
        "damage",
        position=1,
        last_good_offset=3,
        first_good_offset=None,
    )
    with pytest.raises(InvalidConfig):
        PartitionLog.salvage(LOG, stray, disk=disk)
    own = CorruptLog(
        LOG / "00000000000000000000.log",
        "damage",
        position=1,
        last_good_offset=3,
        first_good_offset=None,
    )
    assert PartitionLog.salvage(LOG, own, disk=disk).leo == 10


def test_declaring_gaps_again_after_a_failure_is_durable() -> None:
    disk = FaultDisk(MemDisk())
    log = filled(disk, 1)
    disk.fail("rename", suffix="boundary", errno=errno.EIO)
    with pytest.raises(StorageError):
        log.declare_gaps(20)
    log.declare_gaps(20)
    log.append_replica_batch(MKB1.encode(one(), 20, 0, 1 << 20)[0])
    log.abandon()
    again = PartitionLog.open(LOG, disk=disk, verify="all")
    assert again.leo == 21
    assert [record.offset for record in again.fetch(0, 9)] == [0, 20]


def forged(base: int, delta: int) -> bytes:
    return MKB1.encode(
        RecordBatch((Record(None, b"", 1),), (delta,), delta, base, 0), base, 0, 1 << 20
    )[0]


@pytest.mark.parametrize(
    "frames",
    [
        forged(0, 2**31 - 1) + forged(2**31, 2**31 - 1) + forged(2**32, 0),
        forged(0, 0) + forged(1, 2**31 - 1),
    ],
)
def test_offsets_that_no_index_holds_are_a_fault_and_not_a_crash(frames: bytes) -> None:
    disk = MemDisk()
    config = LogConfig(index_interval_bytes=1)
    log = PartitionLog.open(LOG, config, disk=disk)
    path = log.active.log_path
    log.abandon()
    file = disk.open(path)
    file.write_at(0, frames)
    file.close()
    again = PartitionLog.open(LOG, config, disk=disk, verify="all")
    again.append(one())
    again.close()
    PartitionLog.open(LOG, config, disk=disk, verify="all").close()


def test_frame_that_leaves_no_offset_behind_it_is_salvaged() -> None:
    disk = MemDisk()
    disk.mkdir(LOG)
    file = disk.open(LOG / f"{2**63 - 3:020d}.log", create=True)
    file.write_at(0, forged(2**63 - 3, 0) + forged(2**63 - 2, 1))
    file.close()
    with pytest.raises(CorruptLog) as refusal:
        PartitionLog.open(LOG, disk=disk)
    assert PartitionLog.salvage(LOG, refusal.value, disk=disk).leo == 2**63 - 2


@pytest.mark.parametrize("place", [(2**70, 1), (0, 2**50), (-1, 1), (0, -1)])
def test_slice_outside_the_segment_is_refused(place: tuple[int, int]) -> None:
    log = filled(MemDisk(), 3)
    with pytest.raises(CorruptBatch):
        log.read_slice(FileSlice(0, *place, None))


def test_seal_with_a_changed_number_does_not_count() -> None:
    disk = MemDisk()
    filled(disk, 3).close()
    file = disk.open(LOG / "seal")
    data = file.read_at(0, 1_000)
    file.write_at(0, data.replace(b",1],", b",2],"))
    file.close()
    log = PartitionLog.open(LOG, disk=disk)
    assert not log.report.is_clean
    assert log.active.max_timestamp_ms == 1


def test_partition_that_stands_twice_makes_the_boundaries_unknown() -> None:
    disk = MemDisk()
    log_dir = LogDir.open(Path("/b1"), disk=disk)
    log_dir.open_log("t", 0).append(one())
    log_dir.close()
    path = Path("/b1/boundaries")
    file = disk.open(path)
    lines = file.read_at(0, 1_000).decode().splitlines()
    twice = "\n".join(["0", "2", lines[2], lines[2], ""])
    file.truncate(0)
    file.write_at(0, twice.encode())
    file.close()
    again = LogDir.open(Path("/b1"), disk=disk)
    assert any("twice" in warning for warning in again.warnings)


def test_callers_mistakes_are_named() -> None:
    log = filled(MemDisk(), 1)
    with pytest.raises(ValueError, match=r"epoch is 3\.0"):
        log.become_leader(3.0)  # type: ignore[arg-type]
    with pytest.raises(InvalidRecord, match="control is 'commit'"):
        RecordBatch((), (), 0, transactional_id="t", control="commit")  # type: ignore[arg-type]
    log_dir = LogDir.open(Path("/b2"), disk=MemDisk())
    with pytest.raises(InvalidConfig, match="9223372036854775808"):
        log_dir.write_high_watermarks({TopicPartition("t", 0): 2**63})
    with pytest.raises(InvalidConfig, match="topic"):
        log_dir.write_high_watermarks({TopicPartition("a b", 0): 1})


def test_log_dir_opens_one_failed_log_anew_and_closes_the_others() -> None:
    disk = FaultDisk(MemDisk())
    log_dir = LogDir.open(Path("/b1"), disk=disk)
    bad, good = log_dir.open_log("bad", 0), log_dir.open_log("good", 0)
    for log in (bad, good):
        log.append(one())
    disk.fail("fsync", suffix="bad-0/00000000000000000000.log", errno=errno.EIO)
    with pytest.raises(StorageError):
        bad.flush()
    with pytest.raises(LogOffline):
        bad.append(one())
    again = log_dir.open_log("bad", 0)
    again.append(one())
    disk.fail("fsync", suffix="bad-0/00000000000000000000.log", errno=errno.EIO)
    with pytest.raises(StorageError):
        log_dir.close()
    reopened = LogDir.open(Path("/b1"), disk=disk)
    assert reopened.open_log("good", 0).boundary.end_offset == 1


def test_findings_hold_on_real_files_too(tmp_path: Path) -> None:
    """The disk full in a roll, once on the operating system's files."""
    disk = FaultDisk(OsDisk())
    config = LogConfig(segment_max_bytes=500)
    log = PartitionLog.open(tmp_path / "t-0", config, disk=disk)
    for _ in range(3):
        log.append(one())
    disk.fail("open", suffix="3.timeindex", errno=errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.append(one(b"y" * 400))
    log.append(one())
    log.close()
    assert PartitionLog.open(tmp_path / "t-0", config).leo == 4
