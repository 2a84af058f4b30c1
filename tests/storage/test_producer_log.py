"""Producers in a log: appends, expiry, snapshots and truncation, one behaviour a test.

Opening is in ``test_producer_recovery``, random histories are in ``test_producer_history``.
"""

from __future__ import annotations

import re
from errno import ENOSPC

import pytest
from attrs import evolve

from storage import (
    PartitionLog,
    RecordBatch,
    encode_batch,
)
from storage.errors import (
    DiskError,
    FsyncFailed,
    InvalidProducerEpoch,
    InvalidRecord,
    LogOffline,
    OutOfOrderSequence,
)
from storage.memdisk import MemDisk
from storage.producer_state import ProducerBatch, ProducerEntry
from storage.state import BOUNDARY_FILE
from tests.storage.faults import FaultDisk
from tests.storage.producer_logs import (
    CONFIG,
    DIRECTORY,
    FRAME,
    LAST,
    PLAIN,
    batch,
    content,
    edit,
    everything,
    filled,
    halve,
    marker,
    open_log,
    path,
    replayed,
    snapshots,
)


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


# Appending -------------------------------------------------------------------------------------


def test_a_retry_is_answered_with_the_stored_offsets_and_writes_nothing(disk: FaultDisk) -> None:
    log = open_log(disk)
    log.become_leader(4)
    first = log.append(batch(0, 3))
    log.append(PLAIN)
    log.become_leader(6)
    log.append(batch(3, 2))
    before, end = everything(disk), log.leo
    disk.calls.clear()
    again = log.append(batch(0, 3))
    assert not first.is_duplicate
    assert again.is_duplicate
    assert (again.base_offset, again.next_offset, again.leader_epoch) == (0, 3, 4)
    assert again.size_bytes == 0
    assert log.append(batch(3, 2))[:3] == (4, 6, 6)
    assert disk.calls == []
    assert (everything(disk), log.leo) == (before, end)


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (batch(11, epoch=2), OutOfOrderSequence),
        (batch(9, 2, epoch=2), OutOfOrderSequence),
        (batch(0, epoch=1), InvalidProducerEpoch),
        (marker(epoch=1), InvalidProducerEpoch),
        (batch(1, epoch=3), OutOfOrderSequence),
        (batch(-1, epoch=2), InvalidRecord),
        (batch(3, epoch=-1), InvalidRecord),
    ],
)
def test_a_refused_batch_leaves_no_trace(
    disk: FaultDisk, refused: RecordBatch, error: type[Exception]
) -> None:
    """No epoch entry and no new segment either, which Kafka's order of steps (A2) would leave."""
    log = open_log(disk)
    for sequence in range(10):
        log.append(batch(sequence, epoch=2))
    before, known = everything(disk), dict(log.producers)
    log.leader_epoch = 5
    disk.calls.clear()
    with pytest.raises(error):
        log.append(refused, now_ms=10**15)
    assert disk.calls == []
    assert everything(disk) == before
    assert (dict(log.producers), len(log.segments)) == (known, 1)
    assert log.append(batch(10, epoch=2)).base_offset == 10


def test_a_failed_write_is_not_noted_and_its_retry_is_stored(disk: FaultDisk) -> None:
    log = open_log(disk)
    log.append(batch(0))
    disk.fail("write_at", suffix=".log", partial_bytes=20)
    with pytest.raises(DiskError):
        log.append(batch(1))
    assert log.producers[7].next_sequence == 1
    assert log.append(batch(1)) == (1, 2, 0, FRAME)


def test_a_follower_whose_log_begins_in_the_middle_of_a_sequence_takes_everything(
    disk: FaultDisk,
) -> None:
    """KAFKA-6003: "it rejects the leader's batch as out of order; replication stops"."""
    log = open_log(disk)
    log.truncate_fully_and_start_at(500)
    run = [batch(77, 2), batch(80), batch(80), batch(3, epoch=2), batch(9, epoch=1), PLAIN]
    frames, offset = [], 500
    for one in run:
        frames.append(encode_batch(one.assign(offset, 1)))
        offset += one.logical_count
    appended = log.append_replica_batch(b"".join(frames))
    assert not appended.is_duplicate
    assert dict(log.producers) == replayed(log)
    assert log.producers[7] == ProducerEntry(1, 1_000, (ProducerBatch(9, 9, 505, 505, 1_000),))
    log.append_replica_batch(batch(50, epoch=1).assign(507, 1))
    assert log.producers[7].next_sequence == 51


def test_a_replicated_marker_has_no_sequence_whatever_it_says(disk: FaultDisk) -> None:
    log = open_log(disk)
    log.append_replica_batch(batch(0).assign(0, 0))
    odd = evolve(marker(), base_sequence=5, base_offset=1, leader_epoch=0)
    log.append_replica_batch(odd)
    assert log.producers[7].next_sequence == 1


def test_a_new_leader_knows_a_retry_from_what_it_replicated(disk: FaultDisk) -> None:
    """A18: "the follower rebuilt the same state from the same batches"."""
    leader, follower = open_log(disk), open_log(FaultDisk(MemDisk()))
    for sequence in range(12):
        leader.append(batch(sequence))
        follower.append_replica_batch(leader.read_range(sequence, 1 << 20))
    assert dict(follower.producers) == dict(leader.producers)
    follower.become_leader(1)
    assert follower.append(batch(9)).is_duplicate
    assert follower.append(batch(12)).base_offset == 12


def test_a_retry_of_what_a_truncation_took_is_out_of_order_until_the_gap_is_sent_again(
    disk: FaultDisk,
) -> None:
    """A18, fail-over: "If truncated, later in-flight batches get OUT_OF_ORDER_SEQUENCE"."""
    log = open_log(disk)
    for sequence in range(4):
        log.append(batch(sequence))
    log.truncate_to(2)
    with pytest.raises(OutOfOrderSequence):
        log.append(batch(3))
    assert [log.append(batch(sequence)).base_offset for sequence in (2, 3)] == [2, 3]


def test_a_run_across_segments_is_in_the_snapshots_between_them(disk: FaultDisk) -> None:
    frames = [encode_batch(batch(number).assign(number, 0)) for number in range(25)]
    log = open_log(disk)
    log.append_replica_batch(b"".join(frames))
    assert [segment.base_offset for segment in log.segments] == [0, 10, 20]
    for offset in (10, 20):
        (entry,) = log._snapshots.load(offset).values()
        assert entry.next_sequence == offset


def test_expiry_is_driven_by_the_caller_and_by_the_last_time(disk: FaultDisk) -> None:
    log = open_log(disk)
    day = CONFIG.producer_expiry_ms
    assert day == 24 * 3_600_000
    log.append(batch(0, time=1_000))
    log.append(batch(0, time=1_000, producer=8))
    log.append(marker(time=5_000))
    assert log.expire_producers(1_000 + day) == (8,)
    assert set(log.producers) == {7}
    assert log.append(batch(0, producer=8)).base_offset == 3
    assert log.expire_producers(5_000 + day) == (7, 8)


def test_a_fenced_epoch_stays_fenced_while_its_marker_is_young(disk: FaultDisk) -> None:
    """KAFKA-9144: idle transaction, aborted with a bumped epoch; the zombie comes back."""
    log = open_log(disk)
    day = CONFIG.producer_expiry_ms
    log.append(batch(0, epoch=3, time=0))
    log.append(marker(epoch=4, time=day))
    assert log.expire_producers(day + 1) == ()
    with pytest.raises(InvalidProducerEpoch):
        log.append(batch(1, epoch=3))


def test_a_sequence_that_wraps_goes_through_a_restart(disk: FaultDisk) -> None:
    log = open_log(disk)
    log.append(batch(LAST - 1, 4))
    log.close()
    log = open_log(disk)
    assert log.append(batch(LAST - 1, 4)).is_duplicate
    assert log.append(batch(2)).base_offset == 4


def test_the_view_of_producers_cannot_be_written(disk: FaultDisk) -> None:
    log = filled(disk, 1)
    with pytest.raises(TypeError):
        log.producers[7] = ProducerEntry(0, 0, ())  # type: ignore[index]


# Snapshots on disk -----------------------------------------------------------------------------


def test_a_log_without_producers_has_no_snapshot_and_its_files_are_as_ever(
    disk: FaultDisk,
) -> None:
    log = open_log(disk)
    for _ in range(35):
        log.append(PLAIN)
    log.truncate_to(28)
    log.raise_log_start_offset(5)
    log.close()
    open_log(disk).abandon()
    open_log(disk, "all").close()
    assert not any("snapshot" in call.name for call in disk.calls)
    boundary = content(disk, BOUNDARY_FILE).decode().splitlines()
    assert len(boundary[2].split()) == 6


def test_a_roll_writes_a_snapshot_that_its_flush_makes_durable_before_the_boundary(
    disk: FaultDisk,
) -> None:
    log = filled(disk, 10, runs_pending=False)
    log.run_pending()
    disk.calls.clear()
    log.append(batch(8))
    assert snapshots(disk) == [10]
    assert "fsync" not in disk.operations(".snapshot")
    (flush,) = [work for work in log.take_pending() if work.kind == "flush"]
    log.run(flush)
    log.run_pending()
    calls = [(call.operation, call.name) for call in disk.calls]
    synced = calls.index(("fsync", path(10).name))
    assert synced < calls.index(("fsync_dir", "log"), synced)
    assert synced < calls.index(("rename", "boundary.tmp"))
    assert log.boundary.end_offset == 10


def test_a_clean_close_leaves_a_snapshot_at_the_end_and_a_second_one_nothing(
    disk: FaultDisk,
) -> None:
    log = filled(disk)
    log.close()
    assert snapshots(disk) == [10, 20, 30, 35]
    disk.calls.clear()
    open_log(disk).close()
    assert not {"write_at", "truncate", "unlink"} & set(disk.operations(".snapshot"))
    assert snapshots(disk) == [10, 20, 30, 35]


def test_each_segment_has_a_snapshot_at_its_base_and_older_ends_go(disk: FaultDisk) -> None:
    log = filled(disk, 35)
    for sequence in range(28, 32):
        log.close()
        log = open_log(disk)
        log.append(batch(sequence))
    log.close()
    assert snapshots(disk) == [10, 20, 30, 39]


def test_what_a_newer_one_stands_in_for_goes_when_that_is_durable(disk: FaultDisk) -> None:
    filled(disk, 35).close()
    log = open_log(disk, runs_pending=False)
    for sequence in range(28, 36):
        log.append(batch(sequence))
    assert snapshots(disk) == [10, 20, 30, 35, 40]
    log.flush()
    (prune,) = [work for work in log.take_pending() if work.kind == "prune"]
    assert snapshots(disk) == [10, 20, 30, 35, 40]
    log.run(prune)
    assert snapshots(disk) == [10, 20, 30, 40]


def test_snapshots_go_with_their_segments(disk: FaultDisk) -> None:
    """Raising the log start alone removes none: a truncation may go below it."""
    log = filled(disk)
    log.flush()
    log.raise_log_start_offset(33)
    assert snapshots(disk) == [10, 20, 30]
    log.delete_old_segments(log.leo)
    assert log.segments[0].base_offset == 30
    assert snapshots(disk) == [30]
    log.abandon()
    assert open_log(disk).producers[7].next_sequence == 28


@pytest.mark.parametrize("target", range(10, 36, 5))
def test_truncation_knows_producers_whose_batches_retention_took(
    disk: FaultDisk, target: int
) -> None:
    """Wherever it cuts, a snapshot tells what no replay can: producer 3 wrote at offset 0 only."""
    log = open_log(disk)
    log.append(batch(5, producer=3))
    for sequence in range(34):
        log.append(batch(sequence))
    log.flush()
    log.delete_old_segments(log.leo, retention_bytes=25 * FRAME)
    assert log.log_start_offset == 10
    log.raise_log_start_offset(35)
    log.truncate_to(target)
    assert log.append(batch(5, producer=3)).is_duplicate
    log.abandon()
    assert open_log(disk).append(batch(5, producer=3)).is_duplicate


def short_of_a_snapshot(disk: FaultDisk) -> PartitionLog:
    """Three segments, of which a crash took the snapshot at the second one's base.

    Producer 3 wrote at offset 0 only.
    """
    log = open_log(disk)
    log.append(batch(5, producer=3))
    for sequence in range(13):
        log.append(batch(sequence))
    log.abandon()
    edit(halve, 10)(disk)
    log = open_log(disk)
    for sequence in range(13, 24):
        log.append(batch(sequence))
    log.flush()
    assert snapshots(disk) == [20]
    return log


def test_retention_sees_to_the_snapshot_that_a_crash_took(disk: FaultDisk) -> None:
    log = short_of_a_snapshot(disk)
    log.delete_old_segments(log.leo, retention_bytes=15 * FRAME - 1)
    assert (log.log_start_offset, snapshots(disk)) == (10, [10, 20])
    log.truncate_to(12)
    assert log.append(batch(5, producer=3)).is_duplicate
    log.abandon()
    assert open_log(disk).append(batch(5, producer=3)).is_duplicate


def test_retention_goes_on_where_the_snapshot_cannot_be_written(disk: FaultDisk) -> None:
    """It may be what frees a full disk."""
    log = short_of_a_snapshot(disk)
    disk.fail("write_at", suffix=".snapshot", errno=ENOSPC)
    log.delete_old_segments(log.leo, retention_bytes=15 * FRAME - 1)
    assert log.log_start_offset == 10


def test_nothing_is_deleted_where_the_sync_of_the_snapshot_fails(disk: FaultDisk) -> None:
    log = short_of_a_snapshot(disk)
    disk.fail("fsync", suffix=".snapshot")
    with pytest.raises(FsyncFailed):
        log.delete_old_segments(log.leo, retention_bytes=15 * FRAME - 1)
    assert isinstance(log.failure, FsyncFailed)
    log.abandon()
    assert open_log(disk).log_start_offset == 0


def test_producers_whose_batches_are_gone_are_known_from_the_snapshot(disk: FaultDisk) -> None:
    """Retention takes the batches, not what is known of an idle producer."""
    log = open_log(disk)
    log.append(batch(5, producer=3))
    for sequence in range(24):
        log.append(batch(sequence))
    log.raise_log_start_offset(20)
    known = dict(log.producers)
    log.close()
    for suffix in (".log", ".index", ".timeindex"):
        for base in (0, 10):
            disk.unlink(DIRECTORY / f"{base:020d}{suffix}")
    disk.unlink(DIRECTORY / "seal")
    log = open_log(disk)
    assert not log.report.is_clean
    assert dict(log.producers) == known
    assert log.append(batch(5, producer=3)).is_duplicate


def test_a_snapshot_that_cannot_be_written_costs_a_replay_and_nothing_else(disk: FaultDisk) -> None:
    disk.fail("write_at", suffix=".snapshot", partial_bytes=30, times=None)
    log = filled(disk)
    known = dict(log.producers)
    log.truncate_to(34)
    assert dict(log.producers) == replayed(log) == known
    log.close()
    disk.plans.clear()
    log = open_log(disk)
    assert log.report.is_clean
    assert dict(log.producers) == known
    log.close()
    assert log._snapshots.load(34) == known


def test_a_failed_sync_of_a_snapshot_takes_the_log_offline(disk: FaultDisk) -> None:
    log = filled(disk, 15, runs_pending=False)
    disk.fail("fsync", suffix=".snapshot")
    with pytest.raises(FsyncFailed):
        log.flush()
    assert isinstance(log.failure, FsyncFailed)
    assert log.boundary.end_offset == 0
    with pytest.raises(LogOffline):
        log.append(PLAIN)
    log.abandon()
    assert open_log(disk).producers[7].next_sequence == 12


# Truncation ------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", range(36))
def test_truncation_leaves_the_state_of_what_is_left(disk: FaultDisk, target: int) -> None:
    log = filled(disk)
    log.truncate_to(target)
    assert dict(log.producers) == replayed(log)
    assert all(offset <= target for offset in snapshots(disk))
    known = dict(log.producers)
    log.abandon()
    assert dict(open_log(disk).producers) == known


def test_snapshots_behind_the_target_are_durably_gone_before_anything_is_cut(
    disk: FaultDisk,
) -> None:
    """One that came back after a power loss would describe batches that the log has no more."""
    log = filled(disk, runs_pending=False)
    log.run_pending()
    disk.calls.clear()
    log.truncate_to(15)
    calls = [(call.operation, call.name) for call in disk.calls]
    lowered = calls.index(("rename", "boundary.tmp"))
    gone = [calls.index(("unlink", path(offset).name)) for offset in (20, 30)]
    synced = calls.index(("fsync_dir", "log"), max(gone))
    cut = [
        at
        for at, call in enumerate(calls)
        if re.match(r"(rename|truncate) .*\.log", " ".join(call))
    ]
    assert lowered < min(gone)
    assert synced < min(cut)


def test_truncation_below_every_snapshot_replays_once_and_leaves_one(disk: FaultDisk) -> None:
    log = filled(disk)
    log._snapshots.drop([10])
    log.truncate_to(17)
    assert snapshots(disk) == [17]
    known = dict(log.producers)
    assert known == replayed(log)
    log.truncate_to(16)
    assert snapshots(disk) == [16]
    log.flush()
    assert log._snapshots.is_durable(16)


def test_truncation_of_all_producers_forgets_them_and_that_there_were_any(disk: FaultDisk) -> None:
    log = open_log(disk)
    log.append(PLAIN)
    for sequence in range(24):
        log.append(batch(sequence))
    log.truncate_to(1)
    assert log.producers == {}
    assert log._state.producers_from is None
    log.append(PLAIN)
    log.close()
    assert snapshots(disk) == []
    assert len(content(disk, BOUNDARY_FILE).decode().splitlines()[2].split()) == 6


def test_truncation_at_the_end_keeps_everything(disk: FaultDisk) -> None:
    log = filled(disk)
    known, names = dict(log.producers), snapshots(disk)
    log.truncate_to(35)
    log.truncate_to(99)
    assert (dict(log.producers), snapshots(disk)) == (known, names)


def test_a_full_truncation_forgets_producers_and_snapshots(disk: FaultDisk) -> None:
    """A12: "drops data, epoch cache, producer snapshots"."""
    log = filled(disk)
    log.truncate_fully_and_start_at(20)
    assert log.producers == {}
    assert snapshots(disk) == []
    assert log.append(batch(99)).base_offset == 20
    log.close()
    assert snapshots(disk) == [21]


@pytest.mark.parametrize("operation", ["unlink", "fsync_dir"])
def test_a_snapshot_that_cannot_be_removed_takes_the_log_offline(
    disk: FaultDisk, operation: str
) -> None:
    log = filled(disk)
    log.flush()
    disk.calls.clear()
    at = 1 if operation == "unlink" else 2
    disk.fail(operation, at=at, suffix=".snapshot" if operation == "unlink" else "")
    with pytest.raises(DiskError):
        log.truncate_to(25)
    assert log.failure is not None
    assert "truncate" not in disk.operations(f"{20:020d}.log")
    log.abandon()
    log = open_log(disk)
    assert log.leo == 35
    assert dict(log.producers) == replayed(log)
