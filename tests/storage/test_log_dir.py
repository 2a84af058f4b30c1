"""The directory of one broker: opening, closing, the lock, the clean-shutdown marker and its seals.

What is kept for all logs, and their names, are in ``test_log_dir_files.py``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from storage import PartitionLog
from storage.disk import FileKind
from storage.errors import (
    DiskError,
    FsyncFailed,
    InvalidConfig,
    LockHeld,
    LogClosed,
    LogOffline,
)
from storage.log_dir import LogDir, TopicPartition
from storage.memdisk import MemDisk
from tests.storage.batches import one
from tests.storage.faults import FaultDisk

ROOT = Path("/data")
MARKER = ".kafka_cleanshutdown"
ID = "AAAAAAAAAAAAAAAAAAAAAQ"
ORDERS = TopicPartition("orders", 0)
PAYMENTS = TopicPartition("payments", 2)


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


def get(disk: FaultDisk, name: str) -> str:
    return get_bytes(disk, name).decode()


def get_bytes(disk: FaultDisk, name: str) -> bytes:
    file = disk.inner.open(ROOT / name, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def put(disk: FaultDisk, name: str, text: str | bytes) -> None:
    file = disk.inner.open(ROOT / name, create=True)
    file.truncate(0)
    file.write_at(0, text if isinstance(text, bytes) else text.encode())
    file.close()


def has(disk: FaultDisk, name: str) -> bool:
    return disk.inner.stat(ROOT / name).kind is not FileKind.MISSING


def open_dir(disk: FaultDisk, **options: Any) -> LogDir:
    return LogDir.open(ROOT, disk=disk, **options)


def filled(
    log_dir: LogDir, topic: str = "orders", partition: int = 0, count: int = 3
) -> PartitionLog:
    log = log_dir.open_log(topic, partition)
    for _ in range(count):
        log.append(one())
    return log


def crash(log_dir: LogDir) -> None:
    """End the process without a clean stop; the operating system gives the locks back."""
    for log in log_dir.logs.values():
        log.abandon()
    log_dir._lock.release()


# Opening and closing ---------------------------------------------------------------------------


def test_directory_is_created_durably(disk: FaultDisk) -> None:
    open_dir(disk)
    assert disk.stat(ROOT).kind is FileKind.DIRECTORY
    assert disk.operations().index("mkdir") < disk.operations().index("fsync_dir")


def test_open_directory_is_locked_until_it_is_closed(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    with pytest.raises(LockHeld):
        open_dir(disk)
    log_dir.close()
    open_dir(disk)


def test_open_directory_is_locked_against_another_process(tmp_path: Path) -> None:
    log_dir = LogDir.open(tmp_path / "data")
    with pytest.raises(LockHeld):
        LogDir.open(tmp_path / "data")
    log_dir.close()
    LogDir.open(tmp_path / "data").close()


def test_failed_open_gives_the_lock_back(disk: FaultDisk) -> None:
    open_dir(disk).close()
    disk.fail("unlink", suffix=MARKER)
    with pytest.raises(DiskError):
        open_dir(disk)
    open_dir(disk)


def test_second_close_does_nothing(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close(broker_epoch=5)
    disk.calls.clear()
    log_dir.close(broker_epoch=6)
    assert disk.calls == []


def test_closed_directory_takes_no_calls(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log = filled(log_dir)
    log_dir.close()
    for call in (
        lambda: log_dir.open_log("orders", 0),
        lambda: log_dir.write_high_watermarks({}),
        log_dir.write_recovery_points,
        log_dir.write_log_starts,
        lambda: log.append(one()),
    ):
        with pytest.raises(LogClosed):
            call()


def test_logs_come_back_after_a_clean_close(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    filled(log_dir, "payments", 2, count=5)
    assert log_dir.logs.keys() == {ORDERS, PAYMENTS}
    log_dir.close()
    log_dir = open_dir(disk)
    assert log_dir.logs == {}
    assert log_dir.partitions() == [ORDERS, PAYMENTS]
    for topic, partition, leo in (("orders", 0, 3), ("payments", 2, 5)):
        log = log_dir.open_log(topic, partition)
        assert (log.leo, log.boundary.end_offset) == (leo, leo)
        assert log.report.is_clean


def test_log_keeps_no_state_of_its_own_beside_its_segments(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).flush()
    log_dir.close()
    names = disk.listdir(ROOT / "orders-0")
    assert names == [
        "00000000000000000000.index",
        "00000000000000000000.log",
        "00000000000000000000.timeindex",
        "leader-epoch-checkpoint",
    ]


def test_log_cannot_be_opened_twice(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log_dir.open_log("orders", 0)
    with pytest.raises(InvalidConfig, match="orders-0 is open already"):
        log_dir.open_log("orders", 0)


@pytest.mark.parametrize("runs_pending", [True, False])
def test_pending_work_of_a_log_runs_at_once_or_is_left_to_the_owner(
    disk: FaultDisk, runs_pending: bool
) -> None:
    log_dir = open_dir(disk, runs_pending=runs_pending)
    log = filled(log_dir)
    log.take_pending()
    log.roll()
    assert [work.kind for work in log.take_pending()] == ([] if runs_pending else ["flush"])


# The clean-shutdown marker ---------------------------------------------------------------------


def test_marker_is_json_with_version_broker_epoch_and_seals(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log = filled(log_dir)
    size = log.size_bytes
    log_dir.close(broker_epoch=17)
    frame = size // 3
    rows = [[0, size, 3, size - frame, 0]]
    assert json.loads(get(disk, MARKER)) == {
        "version": 0,
        "brokerEpoch": 17,
        "seals": {"orders-0": [*rows, [crc32(json.dumps(rows).encode())]]},
    }


@pytest.mark.parametrize(("written", "read"), [(17, 17), (0, 0), (-1, -1)])
def test_broker_epoch_of_the_marker_is_read_back(disk: FaultDisk, written: int, read: int) -> None:
    open_dir(disk).close(broker_epoch=written)
    assert open_dir(disk).previous_broker_epoch == read


def test_directory_without_marker_was_not_stopped_cleanly(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    assert log_dir.previous_broker_epoch is None
    filled(log_dir)
    crash(log_dir)
    log_dir = open_dir(disk)
    assert log_dir.previous_broker_epoch is None
    assert not log_dir.open_log("orders", 0).report.is_clean


def test_marker_is_removed_and_the_directory_synced_before_anything_is_loaded(
    disk: FaultDisk,
) -> None:
    """KAFKA-10471: a crash while loading must not leave a marker that lies."""
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close()
    disk.calls.clear()
    open_dir(disk).open_log("orders", 0)
    calls = [(call.operation, call.name) for call in disk.calls]
    removed, synced = calls.index(("unlink", MARKER)), calls.index(("fsync_dir", "data"))
    opened = [number for number, (name, _) in enumerate(calls) if name == "open"]
    assert calls[opened[0]] == ("open", MARKER)
    assert opened[0] < removed < synced < opened[1]


def test_marker_is_written_last(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    disk.calls.clear()
    log_dir.close()
    renamed = [call.name for call in disk.calls if call.operation == "rename"]
    assert renamed[-1] == MARKER + ".tmp"
    assert {"recovery-point-offset-checkpoint.tmp", "log-start-offset-checkpoint.tmp"} < {*renamed}
    after = disk.operations()[len(disk.calls) - disk.operations()[::-1].index("rename") :]
    assert after == ["fsync_dir", "release"]


def test_each_start_needs_a_marker_of_its_own(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close()
    crash(open_dir(disk))
    log_dir = open_dir(disk)
    assert log_dir.previous_broker_epoch is None
    assert not log_dir.open_log("orders", 0).report.is_clean


def test_seals_of_logs_that_were_not_opened_are_carried_over(disk: FaultDisk) -> None:
    """KAFKA-15375: rewritten at a clean stop also for what was clean before and never loaded."""
    log_dir = open_dir(disk)
    filled(log_dir)
    filled(log_dir, "payments", 2)
    log_dir.close()
    before = json.loads(get(disk, MARKER))["seals"]
    log_dir = open_dir(disk)
    log_dir.open_log("payments", 2)
    log_dir.close()
    assert json.loads(get(disk, MARKER))["seals"] == before
    assert open_dir(disk).open_log("orders", 0).report.is_clean


def test_log_that_was_not_opened_after_a_crash_gets_no_seal(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    filled(log_dir, "payments", 2)
    crash(log_dir)
    log_dir = open_dir(disk)
    log_dir.open_log("payments", 2)
    log_dir.close()
    assert json.loads(get(disk, MARKER))["seals"].keys() == {"payments-2"}


def test_log_that_failed_gets_no_seal_and_the_others_do(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    offline = filled(log_dir)
    filled(log_dir, "payments", 2)
    disk.fail("fsync", suffix="orders-0/00000000000000000000.log")
    with pytest.raises(FsyncFailed):
        offline.flush()
    with pytest.raises(LogOffline):
        offline.append(one())
    log_dir.close()
    assert json.loads(get(disk, MARKER))["seals"].keys() == {"payments-2"}
    log_dir = open_dir(disk)
    assert not log_dir.open_log("orders", 0).report.is_clean
    assert log_dir.open_log("payments", 2).report.is_clean


def test_log_that_its_owner_abandoned_gets_no_seal(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).abandon()
    log_dir.close()
    assert json.loads(get(disk, MARKER))["seals"] == {}


def test_log_that_its_owner_closed_has_its_seal(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).close()
    log_dir.close()
    assert open_dir(disk).open_log("orders", 0).report.is_clean


def test_failure_while_closing_leaves_no_marker_and_releases_everything(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    filled(log_dir, "payments", 2)
    disk.fail("fsync", suffix="payments-2/00000000000000000000.log")
    with pytest.raises(FsyncFailed):
        log_dir.close()
    assert not has(disk, MARKER)
    log_dir = open_dir(disk)
    assert log_dir.open_log("payments", 2).leo == 3
    assert disk.operations().count("open") > 0


def test_seal_that_does_not_match_makes_its_log_unclean_alone(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    filled(log_dir, "payments", 2)
    log_dir.close()
    path = "orders-0/00000000000000000000.log"
    put(disk, path, get_bytes(disk, path) + b"torn")
    log_dir = open_dir(disk)
    log = log_dir.open_log("orders", 0)
    assert not log.report.is_clean
    assert (log.leo, [cut.size_bytes for cut in log.report.cuts]) == (3, [4])
    assert log_dir.open_log("payments", 2).report.is_clean


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b"5",
        b'{"version": 1, "brokerEpoch": 5, "seals": {}}',
        b'{"brokerEpoch": 5}',
        b"[" * 100_000,
        b'{"version": 0, "brokerEpoch": 5, "seals": []}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, 1, 2]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, true, 2, 0, 0]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, 1e3, 3, 0, 0]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"../orders-0": [[0, 0, 0, -1, -1]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, 249, 3, -9, 0]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, 249, 3, 249, 0]]}}',
        b'{"version": 0, "brokerEpoch": 5, "seals": {"orders-0": [[0, 249, 2, 166, 0]]}}',
    ],
)
def test_marker_that_is_not_right_counts_as_none(disk: FaultDisk, text: bytes) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close()
    put(disk, MARKER, text)
    log_dir = open_dir(disk)
    log = log_dir.open_log("orders", 0)
    assert not log.report.is_clean
    assert log.leo == 3
    assert not has(disk, MARKER)


def test_kafkas_own_marker_tells_the_broker_epoch_and_seals_nothing(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    crash(log_dir)
    put(disk, MARKER, '{"version":0,"brokerEpoch":5}')
    log_dir = open_dir(disk)
    assert log_dir.previous_broker_epoch == 5
    assert not log_dir.open_log("orders", 0).report.is_clean
