"""The guards of ``LogRules``, each on and off: only off, the defect of old times shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import fields

from storage import ControlType, LogConfig, LogRules, PartitionLog, Record, RecordBatch
from storage.disk import FileKind
from storage.errors import CorruptLog, InvalidProducerEpoch, OutOfOrderSequence
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from tests.storage.batches import many, one
from tests.storage.faults import FaultDisk
from tests.storage.sync_disk import SyncDisk

DIRECTORY = Path("/t-0")
LOG = DIRECTORY / "00000000000000000000.log"
EPOCHS = DIRECTORY / "leader-epoch-checkpoint"

TESTED = {
    "verify_epochs_at_open",
    "cut_epochs_at_end",
    "undefined_epoch_is_undefined",
    "answer_below_oldest_epoch",
    "fsync_before_rename",
    "lower_boundary_first",
    "boundary_after_fsync",
    "remove_marker_before_load",
    "duplicates_before_order",
    "judge_appends_only",
    "marker_times_count",
    "drop_snapshots_above",
}

on_and_off = pytest.mark.parametrize("is_on", [True, False])


def open_log(disk: Any, **rules: bool) -> PartitionLog:
    config = LogConfig(rules=LogRules(**rules))
    return PartitionLog.open(DIRECTORY, config, disk=disk)


def test_every_guard_is_tested_here() -> None:
    assert {field.name for field in fields(LogRules)} == TESTED


@on_and_off
def test_cut_epochs_at_end(is_on: bool) -> None:
    """KAFKA-10706, B-10: a leader that wrote nothing leaves an entry at its end; as a follower it
    asks with that epoch, is told to truncate to its own end, and asks again, for ever.
    """
    log = open_log(MemDisk(), cut_epochs_at_end=is_on)
    log.append(many(5))
    log.become_leader(3)
    log.truncate_to(5)
    assert log.epochs.entries == (((0, 0),) if is_on else ((0, 0), (3, 5)))
    log.become_leader(4)
    log.truncate_to(9)
    assert (log.epochs.latest == 0) == is_on


@on_and_off
def test_undefined_epoch_is_undefined(is_on: bool) -> None:
    """KAFKA-6857, B-07: the log end as answer makes the asker keep what it must cut."""
    log = open_log(MemDisk(), undefined_epoch_is_undefined=is_on)
    log.append(many(5))
    assert log.epochs.end_offset_for(7, log.leo) == ((-1, -1) if is_on else (7, 5))
    assert log.epochs.end_offset_for(0, log.leo) == (0, 5)


@on_and_off
def test_answer_below_oldest_epoch(is_on: bool) -> None:
    """KAFKA-7415, B-06: undefined sends a follower back to truncation by high watermark."""
    log = open_log(MemDisk(), answer_below_oldest_epoch=is_on)
    log.become_leader(3)
    log.append(many(5))
    assert log.epochs.end_offset_for(1, log.leo) == ((1, 0) if is_on else (-1, -1))


@on_and_off
def test_verify_epochs_at_open(is_on: bool) -> None:
    """B-H1: the cut of the epoch file is lost in a crash, other records follow under an older
    epoch than the stale entry, and its range is believed on the next start.
    """
    disk = MemDisk()
    log = open_log(disk, verify_epochs_at_open=is_on)
    log.append(many(5))
    log.become_leader(2)
    log.append(many(5))
    stale = content(disk, EPOCHS)
    log.truncate_to(5)
    log.leader_epoch = 1
    log.append(many(5))
    log.abandon()
    put(disk, EPOCHS, stale)
    log = open_log(disk, verify_epochs_at_open=is_on)
    assert [record.leader_epoch for record in log.fetch(5, 1)] == [1]
    assert log.epochs.entries == ((0, 0), (1 if is_on else 2, 5))
    assert log.report.epochs == ((0, 0), (1, 5)), "what the batches say"
    assert log.epochs.end_offset_for(1, log.leo) == ((1, 10) if is_on else (0, 5))


@on_and_off
def test_fsync_before_rename(is_on: bool) -> None:
    """KAFKA-16541, B-13 and B-59: a power loss behind the rename leaves an empty file."""
    disk = FaultDisk(SyncDisk(MemDisk()))
    assert isinstance(disk.inner, SyncDisk)
    log = open_log(disk, fsync_before_rename=is_on)
    disk.calls.clear()
    log.append(one())
    operations = disk.operations(".tmp")
    assert ("fsync" in operations[: operations.index("rename")]) == is_on
    assert content(disk.inner.image(), EPOCHS) == (b"0\n1\n0 0\n" if is_on else b"")


@on_and_off
def test_fsync_before_rename_covers_every_small_file(is_on: bool) -> None:
    disk = FaultDisk(MemDisk())
    rules = LogRules(fsync_before_rename=is_on)
    log_dir = LogDir.open(Path("/data"), disk=disk, rules=rules)
    log = log_dir.open_log("t", 0, LogConfig(rules=rules), topic_id="A" * 22)
    log.append(one())
    log_dir.write_high_watermarks({})
    log_dir.close()
    alone = open_log(disk, fsync_before_rename=is_on)
    alone.append(one())
    alone.close()
    renamed = {call.name for call in disk.calls if call.operation == "rename"}
    synced = {call.name for call in disk.calls if call.operation == "fsync"}
    assert renamed == {
        name + ".tmp"
        for name in (
            ".kafka_cleanshutdown",
            "boundaries",
            "boundary",
            "leader-epoch-checkpoint",
            "log-start-offset-checkpoint",
            "partition.metadata",
            "recovery-point-offset-checkpoint",
            "replication-offset-checkpoint",
            "seal",
        )
    }
    assert (renamed <= synced) == is_on
    assert bool(renamed & synced) == is_on


@on_and_off
def test_lower_boundary_first(is_on: bool) -> None:
    """Off, a crash between the cut and the boundary looks like lost data, and the log refuses."""
    disk = FaultDisk(MemDisk())
    config = LogConfig(rules=LogRules(lower_boundary_first=is_on))
    log = PartitionLog.open(DIRECTORY, config, disk=disk, runs_pending=False)
    for _ in range(5):
        log.append(one())
    log.flush()
    log.run_pending()
    disk.calls.clear()
    log.truncate_to(3)
    calls = [(call.operation, call.name) for call in disk.calls]
    cut = calls.index(("truncate", LOG.name))
    assert (("rename", "boundary.tmp") in calls[:cut]) == is_on
    log.abandon()
    if is_on:
        assert PartitionLog.open(DIRECTORY, config, disk=disk).leo == 3
    else:
        with pytest.raises(CorruptLog, match="5 was durable"):
            PartitionLog.open(DIRECTORY, config, disk=disk)


@on_and_off
def test_lower_boundary_first_holds_for_a_new_beginning(is_on: bool) -> None:
    disk = FaultDisk(MemDisk())
    log = open_log(disk, lower_boundary_first=is_on)
    log.append(many(5))
    log.flush()
    disk.calls.clear()
    log.truncate_fully_and_start_at(2)
    renamed = [call.name for call in disk.calls if call.operation == "rename"]
    first_of_log = renamed.index(LOG.name)
    assert ("boundary.tmp" in renamed[:first_of_log]) == is_on


@on_and_off
def test_boundary_after_fsync(is_on: bool) -> None:
    """KAFKA-10101, B-56: what recovery only read counts as durable, and a power loss takes it."""
    disk = SyncDisk(MemDisk())
    log = open_log(disk, boundary_after_fsync=is_on)
    log.flush()
    log.append(many(5))
    log.abandon()
    log = open_log(disk, boundary_after_fsync=is_on)
    assert log.leo == 5
    assert log.boundary.end_offset == (0 if is_on else 5)
    assert disk.is_durable(LOG, log.boundary.size_bytes) == is_on
    image = disk.image()
    if is_on:
        assert open_log(image).leo == 0
    else:
        with pytest.raises(CorruptLog, match="5 was durable"):
            open_log(image)


@on_and_off
def test_remove_marker_before_load_of_one_log(is_on: bool) -> None:
    """KAFKA-10471, B-57: after a crash while loading the marker still says "clean"."""
    disk = MemDisk()
    log = open_log(disk)
    log.append(many(5))
    log.close()
    open_log(disk, remove_marker_before_load=is_on).abandon()
    assert (disk.stat(DIRECTORY / "seal").kind is FileKind.FILE) != is_on
    assert open_log(disk).report.is_clean != is_on


@on_and_off
def test_remove_marker_before_load_of_a_directory(is_on: bool) -> None:
    disk = MemDisk()
    root, marker = Path("/data"), Path("/data/.kafka_cleanshutdown")
    LogDir.open(root, disk=disk).close()
    log_dir = LogDir.open(root, disk=disk, rules=LogRules(remove_marker_before_load=is_on))
    assert (disk.stat(marker).kind is FileKind.FILE) != is_on
    assert log_dir.previous_broker_epoch == -1


# Producers -------------------------------------------------------------------------------------


@on_and_off
def test_duplicates_before_order(is_on: bool) -> None:
    """B-52: a client that is told "out of order" about its own retry takes a new epoch and sends
    the batch again: it is in the log twice.
    """
    log = open_log(MemDisk(), duplicates_before_order=is_on)
    log.append(sent(0))
    if is_on:
        assert log.append(sent(0)).is_duplicate
        assert log.leo == 1
        return
    with pytest.raises(OutOfOrderSequence):
        log.append(sent(0))
    log.append(sent(0, epoch=1))
    assert [record.value for record in log.fetch(0, 9)] == [b"v", b"v"]


@on_and_off
def test_judge_appends_only_on_a_follower(is_on: bool) -> None:
    """KAFKA-6003, B-51: a follower forgot an idle producer that its leader still knows, or the
    other way round; what the leader took, it must take.
    """
    log = open_log(MemDisk(), judge_appends_only=is_on)
    log.append_replica_batch(sent(7).assign(0, 0))
    taken = sent(50).assign(1, 0)
    if is_on:
        log.append_replica_batch(taken)
        assert (log.leo, log.producers[7].next_sequence) == (2, 51)
        return
    for _ in range(2):
        with pytest.raises(OutOfOrderSequence):
            log.append_replica_batch(taken)
    assert log.leo == 1


@on_and_off
def test_judge_appends_only_on_opening(is_on: bool) -> None:
    """KAFKA-9144, B-53: "recovery later rejects the non-monotone epoch and log load fails"."""
    disk = MemDisk()
    log = open_log(disk)
    log.append(sent(0, epoch=4))
    assert log.expire_producers(10**12) == (7,)
    log.append(sent(0, epoch=3))
    log.abandon()
    if is_on:
        assert open_log(disk).producers[7].producer_epoch == 3
        return
    with pytest.raises(InvalidProducerEpoch):
        open_log(disk, judge_appends_only=False)


@on_and_off
def test_marker_times_count(is_on: bool) -> None:
    """KAFKA-9144, B-53: an idle transaction is aborted under a higher epoch; its producer comes
    back after the time of expiry, counted from its last batch, and must find itself fenced.
    """
    day = LogConfig().producer_expiry_ms
    log = open_log(MemDisk(), marker_times_count=is_on)
    log.append(sent(0, epoch=3))
    abort = RecordBatch.control_marker(
        ControlType.ABORT,
        transactional_id="t",
        producer_id=7,
        producer_epoch=4,
        timestamp_ms=1_000 + day // 2,
    )
    log.append(abort)
    assert log.expire_producers(1_000 + day) == (() if is_on else (7,))
    if is_on:
        with pytest.raises(InvalidProducerEpoch):
            log.append(sent(1, epoch=3))
    else:
        assert log.append(sent(1, epoch=3)).base_offset == 2


@on_and_off
@pytest.mark.parametrize("is_full", [False, True], ids=["a part", "all"])
def test_drop_snapshots_above(is_on: bool, is_full: bool) -> None:
    """Off, a log believes a snapshot of batches that it has no more: it answers a new batch with
    offsets where other records stand.
    """
    disk = MemDisk()
    log = open_log(disk, drop_snapshots_above=is_on)
    for _ in range(2):
        log.append(one())
    log.append(sent(0))
    log.roll()
    assert log._snapshots.offsets == (3,)
    if is_full:
        log.truncate_fully_and_start_at(0)
    else:
        log.truncate_to(1)
    assert log.producers == {}
    while log.leo < 5:
        log.append(one(b"other"))
    log.abandon()
    log = open_log(disk)
    appended = log.append(sent(0))
    assert appended.is_duplicate != is_on
    stands = [record.value for record in log.fetch(appended.base_offset, 1)]
    assert stands == ([b"v"] if is_on else [b"other"])


def sent(sequence: int, *, epoch: int = 0) -> RecordBatch:
    return RecordBatch.unassigned(
        [Record(None, b"v", 1_000)],
        producer_id=7,
        producer_epoch=epoch,
        base_sequence=sequence,
    )


def content(disk: MemDisk, path: Path) -> bytes:
    file = disk.open(path, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def put(disk: MemDisk, path: Path, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.close()
