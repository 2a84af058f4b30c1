"""Retention: the decision against its naive twin, and what deleting does to a log and its files.

Crashes at every disk call and power cuts are in ``tests.storage.test_compaction_crash``.
"""

from __future__ import annotations

from errno import EIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.batch import ControlType
from storage.config import LogConfig
from storage.errors import DiskError, LogClosed, OffsetOutOfRange
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.retention import RetentionLimits, count_deletable
from storage.state import SegmentSeal
from tests.storage.cleaning import (
    DIRECTORY,
    ONE_EACH,
    SMALL,
    batches_of,
    build,
    data,
    files_of,
    marker,
    open_log,
    rows_of,
    spans_of,
)
from tests.storage.faults import FaultDisk
from tests.storage.naive_compaction import deletable


def three(disk: MemDisk | FaultDisk | None = None) -> PartitionLog:
    """Closed segments 0 to 2, 2 to 3 and 3 to 5 with times 100, 300 and 200, active from 5 on."""
    return build(
        [data((b"a", b"1", 50)), data((b"b", b"1", 100))],
        [data((b"c", b"1", 300))],
        [data((b"d", b"1", 200)), data((b"e", b"1", 10))],
        disk=disk,
    )


# The decision ----------------------------------------------------------------------------------


@st.composite
def segments(draw: st.DrawFn) -> list[SegmentSeal]:
    found, base = [], draw(st.integers(0, 5))
    for _ in range(draw(st.integers(1, 6))):
        end = base + draw(st.integers(1, 4))
        size, time = draw(st.integers(1, 50)), draw(st.integers(-1, 60))
        found.append(SegmentSeal(base, size, end, 0, time))
        base = end
    return found


@given(
    segments(),
    st.integers(0, 30),
    st.integers(0, 30),
    st.integers(0, 30),
    st.none() | st.integers(0, 200),
    st.none() | st.integers(0, 60),
    st.integers(0, 100),
)
def test_decision_is_that_of_the_naive_twin(
    found: list[SegmentSeal],
    limit: int,
    boundary: int,
    start: int,
    size: int | None,
    age: int | None,
    now: int,
) -> None:
    limits = {
        "limit_offset": limit,
        "boundary_base": boundary,
        "log_start_offset": start,
        "retention_bytes": size,
        "retention_ms": age,
        "now_ms": now,
    }
    count = count_deletable(found, RetentionLimits(**limits))
    assert count == deletable(found, **limits)
    assert count < len(found)
    assert all(segment.next_offset <= min(limit, boundary) for segment in found[:count])


# On a log --------------------------------------------------------------------------------------


def test_by_size_keeps_at_least_so_many_bytes() -> None:
    log = three()
    sizes = [segment.size_bytes for segment in log.segments]
    assert log.delete_old_segments(log.leo, retention_bytes=sum(sizes[1:]) + 1) == ()
    (gone,) = log.delete_old_segments(log.leo, retention_bytes=sum(sizes[1:]))
    assert (gone.base_offset, gone.next_offset, gone.size_bytes) == (0, 2, sizes[0])
    assert log.size_bytes == sum(sizes[1:])
    assert log.log_start_offset == 2


def test_by_time_goes_by_the_largest_timestamp_and_stops_at_the_first_survivor() -> None:
    log = three()
    assert log.delete_old_segments(log.leo, retention_ms=100, now_ms=200) == ()
    gone = log.delete_old_segments(log.leo, retention_ms=100, now_ms=301)
    assert [segment.base_offset for segment in gone] == [0]
    assert spans_of(log) == [(2, 3), (3, 5), (5, 6)]
    gone = log.delete_old_segments(log.leo, retention_ms=100, now_ms=401)
    assert [segment.base_offset for segment in gone] == [2, 3]


def test_segment_without_timestamps_never_goes_by_time_and_shields_what_follows() -> None:
    log = build(
        [data((b"a", b"1", -1)), marker(ControlType.COMMIT, 7)],
        [data((b"a", b"1", 0))],
    )
    assert log.delete_old_segments(log.leo, retention_ms=0, now_ms=10**15) == ()
    assert len(log.delete_old_segments(log.leo, retention_bytes=0)) == 2


def test_nothing_that_ends_above_the_limit_goes() -> None:
    """KAFKA-5634, hazard B-33: a log start above the high watermark reaches the followers."""
    log = three()
    assert log.delete_old_segments(1, retention_bytes=0, retention_ms=0, now_ms=10**6) == ()
    gone = log.delete_old_segments(4, retention_bytes=0, retention_ms=0, now_ms=10**6)
    assert [segment.next_offset for segment in gone] == [2, 3]
    assert log.log_start_offset == 3


def test_active_segment_stays_whatever_the_limits_say() -> None:
    log = three()
    assert len(log.delete_old_segments(log.leo, retention_bytes=0)) == 3
    assert spans_of(log) == [(5, 6)]
    assert log.delete_old_segments(log.leo, retention_ms=0, now_ms=10**6) == ()
    assert rows_of(log) == [(5, None, b"active")]


def test_segment_that_holds_the_durable_boundary_stays() -> None:
    log = PartitionLog.open(DIRECTORY, SMALL, disk=MemDisk(), runs_pending=False)
    log.append(data((b"a", b"1")))
    log.roll()
    log.append(data((b"a", b"2")))
    log.flush()
    log.roll()
    log.append(data((b"a", b"3")))
    assert (log.boundary.segment_base, log.boundary.end_offset) == (1, 2)
    gone = log.delete_old_segments(log.leo, retention_bytes=0)
    assert [segment.base_offset for segment in gone] == [0]
    log.flush()
    assert len(log.delete_old_segments(log.leo, retention_bytes=0)) == 1


def test_segments_below_the_log_start_go_without_any_other_limit() -> None:
    log = three()
    log.raise_log_start_offset(4)
    gone = log.delete_old_segments(log.leo)
    assert [segment.base_offset for segment in gone] == [0, 2]
    assert log.log_start_offset == 4
    assert rows_of(log)[0] == (4, b"e", b"1")
    assert log.delete_old_segments(log.leo) == ()


def test_reads_below_the_new_start_are_out_of_range() -> None:
    log = three()
    log.delete_old_segments(log.leo, retention_bytes=0)
    with pytest.raises(OffsetOutOfRange):
        log.fetch(4, 1)
    assert log.offset_for_timestamp(0) is not None


def test_epoch_cache_is_cut_and_written_as_pending_work() -> None:
    log = PartitionLog.open(DIRECTORY, SMALL, disk=MemDisk(), runs_pending=False)
    for epoch in (1, 2, 3):
        log.become_leader(epoch)
        log.append(data((b"a", b"1")))
        log.append(data((b"a", b"1")))
        log.roll()
    log.flush()
    log.take_pending()
    log.delete_old_segments(log.leo, retention_bytes=log.segments[2].size_bytes)
    assert log.epochs.entries == ((3, 4),)
    work = log.take_pending()
    assert [w.kind for w in work] == ["epochs", "delete", "delete"]
    names = [f"{0:020d}.{kind}.deleted" for kind in ("log", "index", "timeindex")]
    assert list(work[1].args) == names
    assert set(names) <= set(files_of(log._disk))
    for item in work:
        log.run(item)
    assert not [name for name in files_of(log._disk) if "deleted" in name]


def test_log_start_is_durable_before_a_file_goes() -> None:
    disk = FaultDisk(MemDisk())
    log = three(disk)
    disk.calls.clear()
    log.delete_old_segments(log.leo, retention_bytes=0)
    calls = [(call.operation, call.name, call.args) for call in disk.calls]
    saved = calls.index(("rename", "boundary.tmp", "boundary"))
    first = min(n for n, c in enumerate(calls) if c[0] == "rename" and c[2].endswith(".deleted"))
    assert ("fsync_dir", "log", "") in calls[saved:first]


def test_log_start_that_was_raised_before_is_durable_before_a_file_goes() -> None:
    """Writing it down was pending work, and the process dies before that is done."""
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, ONE_EACH, disk=disk, runs_pending=False)
    for number in range(4):
        log.append(data((b"a", b"%d" % number)))
    log.flush()
    log.raise_log_start_offset(3)
    assert len(log.delete_old_segments(4)) == 3
    again = open_log(disk.copy(), ONE_EACH, verify="unflushed")
    assert (again.log_start_offset, again.leo, again.report.cuts) == (3, 4, ())


def test_log_start_that_cannot_be_written_leaves_everything_as_it_was() -> None:
    disk = FaultDisk(MemDisk())
    log = three(disk)
    before = files_of(disk.inner)
    disk.fail("rename", suffix="boundary", errno=EIO)
    with pytest.raises(DiskError):
        log.delete_old_segments(log.leo, retention_bytes=0)
    assert (log.failure, log.log_start_offset, len(log.segments)) == (None, 0, 4)
    after = files_of(disk.inner)
    assert {n: c for n, c in after.items() if n != "boundary.tmp"} == before
    assert len(log.delete_old_segments(log.leo, retention_bytes=0)) == 3


@pytest.mark.parametrize("suffix", ["2.log", "2.index", "2.timeindex"])
def test_file_that_cannot_be_renamed_is_left_for_the_next_run(suffix: str) -> None:
    disk = FaultDisk(MemDisk())
    log = three(disk)
    disk.fail("rename", suffix=suffix, errno=EIO)
    with pytest.raises(DiskError):
        log.delete_old_segments(log.leo, retention_bytes=0)
    assert log.failure is None
    assert log.log_start_offset == 5
    assert rows_of(log) == [(5, None, b"active")]
    log.append(data((b"f", b"1")))
    left = 2 if suffix == "2.log" else 1
    assert len(log.delete_old_segments(log.leo)) == left
    assert spans_of(log) == [(5, 7)]
    batches = batches_of(log)
    log.close()
    assert batches_of(open_log(disk.inner)) == batches


def test_log_start_survives_in_a_log_directory() -> None:
    disk = MemDisk()
    log_dir = LogDir.open(Path("/broker"), disk=disk)
    log = log_dir.open_log("t", 0, LogConfig(segment_max_bytes=100))
    for number in range(6):
        log.append(data((b"k%d" % number, b"v" * 20)))
    log.flush()
    log.delete_old_segments(log.leo, retention_bytes=200)
    start = log.log_start_offset
    assert 0 < start < 6
    again = LogDir.open(Path("/broker"), disk=disk.copy()).open_log("t", 0)
    assert again.log_start_offset == start
    assert rows_of(again) == rows_of(log)


@pytest.mark.parametrize(
    ("limit", "arguments"),
    [
        (-1, {}),
        (0, {"retention_bytes": -1}),
        (0, {"retention_ms": -1, "now_ms": 0}),
        (0, {"retention_ms": 2**63, "now_ms": 0}),
        (0, {"retention_ms": 5}),
    ],
)
def test_argument_out_of_range_is_the_callers_mistake(limit: int, arguments: dict) -> None:
    with pytest.raises(ValueError, match=r"limit_offset|retention_"):
        three().delete_old_segments(limit, **arguments)


def test_closed_log_deletes_nothing() -> None:
    log = three()
    log.close()
    with pytest.raises(LogClosed):
        log.delete_old_segments(5, retention_bytes=0)
