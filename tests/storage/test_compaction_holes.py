"""Row 74 of STORAGE.md E.2: a compacted log is read, cut and followed at its holes.

The log has holes at the start of a file, inside and in front of its emptied last batch, and a whole
epoch that owns no record any more. It is cut at every offset, in both modes of opening.
"""

from __future__ import annotations

import pytest

from storage.batch import RecordBatch
from storage.config import LogConfig
from storage.errors import CorruptLog, NotTruncatable, UnexpectedOffset
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.storage.cleaning import (
    DIRECTORY,
    batches_of,
    data,
    files_of,
    open_log,
    rows_of,
    run,
    spans_of,
    write_file,
)

CONFIG = LogConfig(segment_max_bytes=600, index_interval_bytes=64)
EPOCHS = ((1, 0), (2, 4), (3, 6), (4, 13))


def compacted_log(disk: MemDisk | None = None) -> PartitionLog:
    """Segments 0 to 6 and 6 to 12 with records at 3, 8, 11, and the active one from 12 on.

    Epoch 2 (offsets 4 and 5) has no record left; its last batch stands empty for 5.
    """
    log = open_log(disk or MemDisk(), CONFIG)
    log.become_leader(1)
    for key in (b"a", b"b", b"c", b"d"):
        log.append(data((key, b"1", 10)))
    log.become_leader(2)
    for key in (b"a", b"b"):
        log.append(data((key, b"2", 20)))
    log.roll()
    log.become_leader(3)
    for key in (b"c", b"e", b"e", b"f", b"f", b"f"):
        log.append(data((key, b"3", 30)))
    log.roll()
    log.append(data((b"a", b"4", 40), (b"b", b"4", 41), (b"c", b"4", 42)))
    log.become_leader(4)
    log.roll()
    log.append(data((b"x", b"x", 50)))
    log.flush()
    run(log)
    log.truncate_to(12)
    log.become_leader(4)
    log.append(data((b"y", b"y", 50)))
    log.flush()
    return log


def fresh() -> tuple[MemDisk, PartitionLog]:
    disk = MemDisk()
    return disk, compacted_log(disk)


def test_log_has_the_holes_that_these_tests_are_about() -> None:
    log = compacted_log()
    assert spans_of(log) == [(0, 6), (6, 12), (12, 13)]
    spans = [(batch.base_offset, batch.next_offset) for batch in batches_of(log)]
    assert spans == [(3, 4), (5, 6), (8, 9), (11, 12), (12, 13)]
    assert [batch.leader_epoch for batch in batches_of(log)] == [1, 2, 3, 3, 4]
    assert log.epochs.entries == ((1, 0), (2, 4), (3, 6), (4, 12))
    assert [row[0] for row in rows_of(log)] == [3, 8, 11, 12]


@pytest.mark.parametrize("offset", range(14))
def test_reading_at_any_offset_gives_the_next_record(offset: int) -> None:
    log = compacted_log()
    later = [row for row in rows_of(log) if row[0] >= offset]
    assert [(r.offset, r.key, r.value) for r in log.fetch(offset, 9)] == later
    raw = log.read_range(offset, 10_000)
    batches = [b for b in batches_of(log) if b.next_offset > offset]
    same = [s for s in spans_of(log) if s[0] <= offset < s[1]] or [(13, 13)]
    in_segment = [b for b in batches if (b.base_offset or 0) < same[0][1]]
    assert len(raw) == sum(len(log.read_range(b.base_offset or 0, 1)) for b in in_segment)
    found = log.read_batches(offset, 10_000)
    assert found == batches


@pytest.mark.parametrize(
    ("time", "offset"), [(0, 3), (10, 3), (11, 8), (30, 8), (31, 12), (50, 12), (51, None)]
)
def test_time_look_up_passes_over_what_is_gone(time: int, offset: int | None) -> None:
    for log in (compacted_log(), reopened("all"), reopened("unflushed")):
        found = log.offset_for_timestamp(time)
        assert (found and found.offset) == offset


def reopened(verify: str) -> PartitionLog:
    disk, log = fresh()
    log.close()
    return open_log(disk, CONFIG, verify=verify)


@pytest.mark.parametrize("verify", ["all", "unflushed"])
@pytest.mark.parametrize("target", range(14))
def test_truncation_at_any_offset_and_what_follows(target: int, verify: str) -> None:
    """At a hole, at both of its sides, inside the emptied batch's range, at a file's border."""
    disk, log = fresh()
    kept = [row for row in rows_of(log) if row[0] < target]
    epochs = [entry for entry in log.epochs.entries if entry[1] < target]
    log.truncate_to(target)
    assert log.leo == target
    assert rows_of(log) == kept
    assert list(log.epochs.entries) == epochs
    assert log.boundary.end_offset <= target
    ends = [segment.next_offset for segment in log.segments]
    assert [segment.base_offset for segment in log.segments[1:]] == ends[:-1]
    log.append(data((b"new", b"v", 60)))
    log.flush()
    log.abandon()
    again = open_log(disk.copy(), CONFIG, verify=verify)
    report = again.report
    assert (report.cuts, report.dropped, report.rebuilt, report.warnings) == ((), (), (), ())
    assert rows_of(again) == [*kept, (target, b"new", b"v")]
    assert again.append(data((b"more", b"v"))).base_offset == target + 1


def test_epoch_without_records_still_answers() -> None:
    log = compacted_log()
    for epoch, end in ((1, 4), (2, 6), (3, 12), (4, 13)):
        assert log.epochs.end_offset_for(epoch, log.leo) == (epoch, end)


def test_hole_in_which_an_epoch_began_is_bridged_epoch_by_epoch() -> None:
    """Otherwise the epoch file would contradict the batches at the next opening."""
    log = open_log(MemDisk(), CONFIG)
    for epoch in (1, 2, 3):
        log.become_leader(epoch)
        log.append(data((b"a", b"%d" % epoch)))
    log.append(data((b"a", b"4")))
    log.append(data((b"a", b"5"), (b"b", b"5")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    run(log)
    assert [batch.base_offset for batch in batches_of(log)] == [4, 6]
    log.truncate_to(4)
    fillers = [(b.base_offset, b.next_offset, b.leader_epoch) for b in batches_of(log)]
    assert fillers == [(0, 1, 1), (1, 2, 2), (2, 4, 3)]
    log.close()
    again = open_log(log._disk, CONFIG)
    assert again.report.warnings == ()
    assert again.epochs.entries == ((1, 0), (2, 1), (3, 2))


def test_bridge_below_a_raised_log_start_keeps_the_epoch_order() -> None:
    """The cache begins at the log start then and knows nothing of what lies below."""
    disk, log = fresh()
    log.raise_log_start_offset(12)
    assert log.epochs.entries == ((4, 12),)
    log.truncate_to(7)
    assert [b.leader_epoch for b in batches_of(log)] == [1, 2, 2]
    log.close()
    again = open_log(disk, CONFIG)
    assert (again.report.cuts, again.leo) == ((), 7)


def test_bridge_that_begins_below_the_log_start_leaves_the_epochs_above_it_alone() -> None:
    log = open_log(MemDisk(), CONFIG)
    for epoch in (1, 2):
        log.become_leader(epoch)
        for _ in range(3):
            log.append(data((b"a", b"1")))
    log.raise_log_start_offset(1)
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    run(log)
    assert [batch.base_offset for batch in batches_of(log)] == [5, 6]
    assert log.epochs.entries == ((1, 1), (2, 3))
    log.truncate_to(4)
    assert log.epochs.entries == ((1, 1), (2, 3))
    fillers = [(b.base_offset, b.next_offset, b.leader_epoch) for b in batches_of(log)]
    assert fillers == [(0, 1, 0), (1, 3, 1), (3, 4, 2)]
    log.close()
    again = open_log(log._disk, CONFIG)
    assert (again.report.warnings, again.epochs.entries) == ((), ((1, 1), (2, 3)))


def test_bridge_before_the_first_epoch_that_is_known() -> None:
    """A follower's log begins inside a hole of its leader's."""
    disk = MemDisk()
    log = open_log(disk, CONFIG)
    log.declare_gaps(4)
    for offset in (4, 5):
        batch = data((b"a", b"1")).assign(offset, 3)
        log.append_replica_batch(batch)
    log.roll()
    log.become_leader(3)
    log.append(data((None, b"active")))
    log.flush()
    run(log)
    assert [batch.base_offset for batch in batches_of(log)] == [5, 6]
    assert log.epochs.entries == ((3, 4),)
    log.truncate_to(5)
    fillers = [(b.base_offset, b.next_offset, b.leader_epoch) for b in batches_of(log)]
    assert fillers == [(0, 4, 0), (4, 5, 3)]
    assert log.epochs.entries == ((0, 0), (3, 4))
    log.append(data((b"b", b"1")))
    log.close()
    again = open_log(disk, CONFIG)
    assert (again.report.warnings, again.report.rebuilt, again.leo) == ((), (), 6)


def test_log_start_inside_a_bridge_survives_a_kill() -> None:
    disk = MemDisk()
    log = open_log(disk, CONFIG)
    for _ in range(3):
        log.append(data((b"a", None)))
    log.roll()
    log.flush()
    run(log)
    log.raise_log_start_offset(1)
    log.truncate_to(2)
    again = open_log(disk.copy(), CONFIG)
    assert (again.log_start_offset, again.epochs.entries) == (1, ((0, 1),))
    assert (again.report.rebuilt, again.report.warnings) == ((), ())


def test_truncation_inside_an_emptied_batch_is_refused() -> None:
    log = open_log(MemDisk(), CONFIG)
    log.append(data((b"a", b"1"), (b"b", b"1")))
    log.roll()
    log.append(data((b"a", b"2"), (b"b", b"2")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    while run(log, 2).segments_before:
        pass
    run(log)
    log.truncate_to(4)
    inside = [b for b in batches_of(log) if not b.records]
    for batch in inside:
        with pytest.raises(NotTruncatable):
            log.truncate_to((batch.base_offset or 0) + 1)


def test_follower_copies_a_compacted_log_once_it_declares_the_holes() -> None:
    leader = compacted_log()
    follower = open_log(MemDisk(), CONFIG)
    with pytest.raises(UnexpectedOffset):
        follower.append_replica_batch(leader.read_range(0, 10_000))
    follower.declare_gaps(leader.gaps_end)
    while follower.leo < leader.leo:
        follower.append_replica_batch(leader.read_range(follower.leo, 10_000))
    assert batches_of(follower) == batches_of(leader)
    follower.close()
    again = open_log(follower._disk, CONFIG)
    assert (again.report.cuts, again.report.rebuilt) == ((), ())
    assert rows_of(again) == rows_of(leader)


def test_follower_copies_a_compacted_log_anew_behind_a_salvage_that_keeps_nothing() -> None:
    leader = compacted_log()
    disk = MemDisk()
    follower = open_log(disk, CONFIG)
    follower.declare_gaps(leader.gaps_end)
    follower.append_replica_batch(leader.read_range(0, 10_000))
    follower.close()
    first = "00000000000000000000.log"
    content = files_of(disk)[first]
    write_file(disk, first, b"spoilt" + content[6:])
    with pytest.raises(CorruptLog) as refused:
        open_log(disk, CONFIG)
    follower = PartitionLog.salvage(DIRECTORY, refused.value, CONFIG, disk=disk)
    assert (follower.leo, follower.gaps_end) == (0, leader.gaps_end)
    while follower.leo < leader.leo:
        follower.append_replica_batch(leader.read_range(follower.leo, 10_000))
    assert batches_of(follower) == batches_of(leader)
    for offset in range(leader.leo):
        assert follower.read_range(offset, 1) == leader.read_range(offset, 1) != b""


def test_compacting_again_over_bridges_and_holes_changes_no_record() -> None:
    log = compacted_log()
    log.truncate_to(10)
    log.append(data((b"z", b"z")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    before = rows_of(log)
    for _ in range(3):
        run(log)
        assert rows_of(log) == before
    assert all(isinstance(batch, RecordBatch) for batch in batches_of(log))
