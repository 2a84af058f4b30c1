"""Single cases of one log: the durable boundary, pending work, refusals.

Each is the shortest history that shows its rule. ``test_log_model.py`` draws random histories;
what it once found stands here, or in ``test_log_shape.py``, as a case.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from storage import LogConfig, PartitionLog, RecordBatch
from storage.errors import (
    CorruptBatch,
    FsyncFailed,
    InvalidRecord,
    LogClosed,
    LogOffline,
    NotTruncatable,
    OffsetOutOfRange,
    StaleLeaderEpoch,
    StorageError,
)
from storage.log_durability import Work
from storage.memdisk import MemDisk
from storage.recovery import Verify
from tests.storage.batches import commit, emptied, many, one
from tests.storage.faults import FaultDisk
from tests.storage.log_tools import DIRECTORY, TINY, check_boundary, files, fill, open_log
from tests.storage.naive_log import Stored
from tests.storage.sync_disk import SyncDisk


@pytest.fixture
def disk() -> SyncDisk:
    return SyncDisk(MemDisk())


def killed(disk: SyncDisk) -> MemDisk:
    """The disk as the end of the process leaves it: every byte is there and no lock is held."""
    assert isinstance(disk.inner, MemDisk)
    return disk.inner.copy()


# The durable boundary --------------------------------------------------------------------------


def test_flush_raises_the_boundary_and_its_bytes_are_durable(disk: SyncDisk) -> None:
    log = open_log(disk, TINY)
    fill(log, 3)
    assert log.boundary.end_offset == 2, "each roll flushes what is behind it"
    log.flush()
    assert log.boundary.end_offset == 3
    check_boundary(log, disk)


@pytest.mark.parametrize("ends", [PartitionLog.flush, PartitionLog.close])
def test_a_flush_covers_the_cut_of_a_process_that_died(
    ends: Callable[[PartitionLog], None],
) -> None:
    """Behind a seal nobody knows of it any more, and it could come back over what follows."""
    disk = FaultDisk(MemDisk())
    log = open_log(disk)
    fill(log, 3)
    log.flush()
    log.truncate_to(1)
    log.abandon()
    log = open_log(disk)
    disk.calls.clear()
    ends(log)
    assert "fsync" in disk.operations(".log")


def test_flush_covers_what_was_there_when_it_began(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 2)
    token = log.begin_flush()
    fill(log, 2)
    log.complete_flush(token)
    assert log.boundary.end_offset == 2
    check_boundary(log, disk)


def test_truncation_between_begin_and_complete_bounds_the_flush(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 5)
    token = log.begin_flush()
    log.truncate_to(2)
    fill(log, 5, b"w")
    log.complete_flush(token)
    assert log.boundary.end_offset == 2
    check_boundary(log, disk)


def test_new_beginning_below_the_old_start_ends_an_outstanding_flush(disk: SyncDisk) -> None:
    log = open_log(disk)
    log.truncate_fully_and_start_at(10)
    token = log.begin_flush()
    log.truncate_fully_and_start_at(3)
    log.complete_flush(token)
    assert log.boundary.end_offset == log.leo == 3
    log.close()
    assert open_log(disk).leo == 3


def test_new_beginning_below_the_first_segment_may_fail_half_way() -> None:
    """The log start was lowered, the segments above it are still there: nothing was lost."""
    faults = FaultDisk(MemDisk())
    log = open_log(faults)
    log.truncate_fully_and_start_at(10)
    fill(log, 5)
    log.flush()
    faults.fail("rename", suffix=".log")
    with pytest.raises(StorageError):
        log.truncate_to(3)
    log.close()
    log = open_log(faults)
    assert (log.log_start_offset, log.leo) == (3, 3)
    assert log.boundary.end_offset == 3


def test_records_behind_a_new_beginning_are_not_durable_by_an_older_flush(disk: SyncDisk) -> None:
    log = open_log(disk)
    log.truncate_fully_and_start_at(10)
    fill(log, 5)
    token = log.begin_flush()
    log.truncate_fully_and_start_at(3)
    fill(log, 10)
    log.complete_flush(token)
    assert log.boundary.end_offset == 3
    check_boundary(log, disk)


def test_segment_that_takes_the_name_of_a_dropped_one_is_flushed(disk: SyncDisk) -> None:
    log = open_log(disk, TINY)
    fill(log, 3)
    log.flush()
    log.truncate_to(1)
    fill(log, 2, b"w")
    log.flush()
    assert log.boundary.end_offset == 3
    check_boundary(log, disk)
    assert [record.value for record in open_log(disk.image()).fetch(0, 9)] == [b"v", b"w", b"w"]


def test_fsync_token_of_a_dropped_segment_is_not_spent_on_its_successor(disk: SyncDisk) -> None:
    log = open_log(disk, TINY)
    fill(log, 3)
    token = log.begin_flush()
    log.truncate_to(1)
    fill(log, 2, b"w")
    log.complete_flush(token)
    check_boundary(log, disk)


def test_flush_up_to_an_offset_covers_whole_segments_below_it(disk: SyncDisk) -> None:
    log = open_log(disk, TINY, runs_pending=False)
    fill(log, 4)
    log.complete_flush(log.begin_flush(up_to=2))
    assert log.boundary.end_offset == 2
    check_boundary(log, disk)


@pytest.mark.parametrize("other", ["completed", "of a log opened later", "of another log"])
def test_flush_token_that_is_not_outstanding_here_is_refused(disk: SyncDisk, other: str) -> None:
    """ "ValueError: the token was completed before, or is not of this log."""
    log = open_log(disk)
    fill(log, 2)
    token = log.begin_flush()
    if other == "completed":
        log.complete_flush(token)
    elif other == "of a log opened later":
        log.abandon()
        log = open_log(disk, runs_pending=False)
        log.begin_flush()
    else:
        log = PartitionLog.open(Path("/u-0"), disk=disk)
        log.begin_flush()
    for number in range(10):
        if number:
            log.begin_flush()
        with pytest.raises(ValueError, match="not outstanding"):
            log.complete_flush(token)


def test_power_cut_behind_a_raised_log_start_leaves_a_log_that_opens(disk: SyncDisk) -> None:
    """Nothing is damaged: the log start is durable before the records below it are."""
    log = open_log(disk)
    fill(log, 5)
    log.raise_log_start_offset(3)
    reopened = open_log(disk.image())
    assert reopened.log_start_offset <= reopened.leo


@pytest.mark.parametrize("verify", ["all", "unflushed"])
@pytest.mark.parametrize("is_flushed", [True, False])
def test_raised_log_start_survives_a_kill_and_a_power_cut(
    disk: SyncDisk, is_flushed: bool, verify: Verify
) -> None:
    """Also above the durable end: what was hidden must not show again."""
    log = open_log(disk)
    log.become_leader(1)
    fill(log, 3)
    if is_flushed:
        log.flush()
    log.raise_log_start_offset(2)
    log.become_leader(4)
    fill(log, 1)
    log.abandon()
    for image, end in ((killed(disk), 4), (disk.image(), 3)):
        again = open_log(image, verify=verify)
        assert (again.log_start_offset, again.leo, again.report.warnings) == (2, end, ())
        assert again.epochs.entries == ((1, 2), (4, 3))


@pytest.mark.parametrize("epoch_is_written_by", ["the work", "the next leader"])
def test_epoch_file_is_not_cut_to_a_log_start_that_a_kill_takes_back(
    disk: SyncDisk, epoch_is_written_by: str
) -> None:
    """The order in which pending work runs does not matter: an older item may come first."""
    log = open_log(disk, runs_pending=False)
    log.become_leader(1)
    fill(log, 3)
    log.raise_log_start_offset(2)
    works = log.take_pending()
    assert {work.kind for work in works} == {"persist", "epochs"}
    before = open_log(killed(disk))
    assert (before.log_start_offset, before.epochs.entries) == (0, ((1, 0),))
    if epoch_is_written_by == "the work":
        log.run(next(work for work in works if work.kind == "epochs"))
    else:
        log.become_leader(3)
    for image in (killed(disk), disk.image()):
        again = open_log(image)
        assert (again.log_start_offset, again.leo, again.report.warnings) == (2, 3, ())
        assert again.epochs.entries[0] == (1, 2)


def test_log_start_above_the_durable_end_is_not_written_where_the_flush_fails() -> None:
    inner = MemDisk()
    disk = FaultDisk(inner)
    log = open_log(disk, runs_pending=False)
    log.become_leader(1)
    fill(log, 3)
    log.raise_log_start_offset(2)
    disk.fail("fsync", suffix=".log")
    persist, epochs = log.take_pending()
    with pytest.raises(FsyncFailed):
        log.run(persist)
    with pytest.raises(LogOffline):
        log.run(epochs)
    again = open_log(inner.copy())
    assert (again.log_start_offset, again.report.warnings) == (0, ())


def test_boundary_survives_a_kill_and_a_close(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 2)
    log.flush()
    fill(log, 2)
    log.abandon()
    log = open_log(disk)
    assert (log.boundary.end_offset, log.leo) == (2, 4)
    log.close()
    assert open_log(disk).boundary.end_offset == 4


# Pending work ----------------------------------------------------------------------------------


def test_pending_work_is_data_and_runs_in_any_order(disk: SyncDisk) -> None:
    log = open_log(disk, TINY, runs_pending=False)
    log.run_pending()
    fill(log, 3)
    log.become_leader(2)
    log.truncate_to(1)
    log.raise_log_start_offset(1)
    work = log.take_pending()
    assert log.take_pending() == ()
    assert {item.kind for item in work} == {"flush", "epochs", "persist", "delete"}
    assert len({item.id for item in work}) == len(work)
    for item in reversed(work):
        log.run(Work(item.id, item.kind, item.args))
    log.run_pending()
    assert not [name for name in disk.listdir(DIRECTORY) if name.endswith(".deleted")]
    check_boundary(log, disk)
    log.abandon()
    assert (open_log(disk).leo, open_log_start(disk)) == (1, 1)


def open_log_start(disk: SyncDisk) -> int:
    return int(files(disk)["boundary"].split()[-3])


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.append(one()),
        lambda log: log.append_replica_batch(many(3).assign(3, 1)),
        lambda log: log.roll(),
        lambda log: log.flush(),
        lambda log: log.complete_flush(log.begin_flush()),
        lambda log: log.truncate_to(1),
        lambda log: log.truncate_fully_and_start_at(1),
        lambda log: log.become_leader(4),
        lambda log: log.become_follower(),
        lambda log: log.raise_log_start_offset(2),
        lambda log: log.declare_gaps(9),
    ],
)
def test_log_on_its_own_runs_its_pending_work_at_once(
    disk: SyncDisk, call: Callable[[PartitionLog], object]
) -> None:
    """DECISIONS 1.2: "Without a LogDir the log ... runs its pending work at once."""
    log = open_log(disk, LogConfig(segment_max_bytes=200))
    fill(log, 3)
    call(log)
    assert log.take_pending() == ()


def test_unknown_work_is_refused(disk: SyncDisk) -> None:
    with pytest.raises(ValueError, match="work kind is 'sweep'"):
        open_log(disk).run(Work(1, "sweep"))


# Refusals change nothing -----------------------------------------------------------------------


def test_append_under_a_stale_epoch_changes_nothing(disk: SyncDisk) -> None:
    log = open_log(disk, TINY)
    log.append_replica_batch(one().assign(0, 5))
    before = files(disk)
    with pytest.raises(StaleLeaderEpoch) as caught:
        log.append(one())
    assert (caught.value.seen, caught.value.latest) == (0, 5)
    assert files(disk) == before
    with pytest.raises(StaleLeaderEpoch):
        log.become_leader(4)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (one(), InvalidRecord),
        (b"", CorruptBatch),
        (bytes(200), CorruptBatch),
        (Stored.of(one().assign(2, 0)).frame[:-1], CorruptBatch),
        (Stored.of(one().assign(2, 0)).frame + b"M", CorruptBatch),
        (Stored.of(one().assign(2, 0)).frame + bytes(100), CorruptBatch),
        (
            Stored.of(one().assign(2, 3)).frame + Stored.of(one().assign(3, 2)).frame,
            StaleLeaderEpoch,
        ),
    ],
)
def test_replica_data_that_cannot_follow_changes_nothing(
    disk: SyncDisk, data: RecordBatch | bytes, kind: type[StorageError]
) -> None:
    log = open_log(disk, TINY)
    fill(log, 2)
    before = files(disk)
    with pytest.raises(kind):
        log.append_replica_batch(data)
    assert (log.leo, files(disk)) == (2, before)


def test_client_cannot_append_an_emptied_batch(disk: SyncDisk) -> None:
    log = open_log(disk)
    with pytest.raises(InvalidRecord, match="at least one record"):
        log.append(emptied(0, 3))
    assert log.append_replica_batch(emptied(0, 3)).next_offset == 3
    assert log.fetch(0, 9) == []


@pytest.mark.parametrize("target", [1, 2, 6])
def test_truncation_inside_a_batch_changes_nothing(disk: SyncDisk, target: int) -> None:
    log = open_log(disk, LogConfig(segment_max_bytes=200))
    log.append(many(3))
    log.append(commit())
    log.append(many(3))
    before = files(disk)
    with pytest.raises(NotTruncatable) as caught:
        log.truncate_to(target)
    assert caught.value.target == target
    assert (log.leo, files(disk)) == (7, before)


def test_arguments_out_of_range_are_refused(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 2)
    for call in (
        lambda: log.truncate_to(-1),
        lambda: log.truncate_fully_and_start_at(-1),
        lambda: log.truncate_fully_and_start_at(2**63),
        lambda: log.become_leader(-1),
        lambda: log.become_leader(2**31),
        lambda: log.fetch(0, -1),
        lambda: log.slice_range(0, -1),
        lambda: log.offset_for_timestamp(-1),
        lambda: PartitionLog.open(DIRECTORY, disk=disk, leader_epoch=-1),
        lambda: PartitionLog.open(DIRECTORY, disk=disk, verify="none"),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="allowed"):
            call()
    for offset in (-1, 3):
        with pytest.raises(OffsetOutOfRange):
            log.raise_log_start_offset(offset)


def test_closed_log_takes_no_calls(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 1)
    log.close()
    log.close()
    for call in (
        lambda: log.append(one()),
        lambda: log.append_replica_batch(one().assign(1, 0)),
        lambda: log.fetch(0, 1),
        lambda: log.read_range(0, 1),
        lambda: log.truncate_to(0),
        lambda: log.become_leader(3),
        log.become_follower,
        log.roll,
        log.flush,
        log.begin_flush,
        lambda: log.declare_gaps(5),
        lambda: log.raise_log_start_offset(1),
    ):
        with pytest.raises(LogClosed):
            call()
