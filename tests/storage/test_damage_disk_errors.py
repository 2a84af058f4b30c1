"""Rows 63 to 67 and 69 of STORAGE.md E.2: the disk refuses, and what that may cost.

Goal: a failed call never costs more than the call. A failed append leaves the log as it was, a
failed fsync ends its service until it is opened anew, an unreadable file is named and nothing
around it changes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.disk import OsDisk
from storage.errors import (
    AccessDenied,
    CorruptLog,
    DiskError,
    DiskFull,
    DiskReadOnly,
    FsyncFailed,
    LockHeld,
    LogClosed,
    LogOffline,
)
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.recovery import Verify
from storage.state import SEAL_FILE
from tests.storage.damage import (
    CLOSED,
    CONFIG,
    COUNT,
    FLUSHED,
    FRAME,
    FRAMES,
    UNFLUSHED,
    Place,
    State,
    batch,
    build,
    frame,
    image,
    index_name,
    log_name,
    make_place,
    segment_names,
    time_name,
)
from tests.storage.damage_outcomes import VERIFY, check_read_back, check_sound, open_log
from tests.storage.faults import FaultDisk

DIRECTORY = Path("/log")
NEXT = frame(COUNT, epoch=6)


def faulty(state: State, count: int = COUNT) -> tuple[FaultDisk, Place]:
    disk = FaultDisk(MemDisk())
    return disk, Place.of(disk, DIRECTORY, image(state, count))


def opened(state: State, count: int = COUNT) -> tuple[FaultDisk, Place, PartitionLog]:
    disk, place = faulty(state, count)
    log = open_log(place)
    disk.calls.clear()
    return disk, place, log


# Row 63: disk full in an append ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("suffix", "partial_bytes"),
    [
        pytest.param(suffix, size, id=f"row63-full-at{suffix}-{size}-bytes")
        for suffix, sizes in ((".log", (0, 1, 50, FRAME)), (".index", (0, 3, 8)))
        for size in sizes
    ],
)
def test_an_append_that_fills_the_disk_leaves_the_log_as_it_was(
    suffix: str, partial_bytes: int
) -> None:
    """Batch 68 gets an index entry, so both files are written."""
    disk, place, log = opened(FLUSHED, 68)
    before = place.files()
    disk.fail("write_at", suffix=suffix, errno=errno.ENOSPC, partial_bytes=partial_bytes)
    with pytest.raises(DiskFull):
        log.append(batch(68))
    assert log.failure is None
    assert (log.leo, log.size_bytes) == (68, 68 * FRAME)
    assert place.files() == before
    check_read_back(log, FRAMES[:68])
    log.append(batch(68))
    check_sound(log, place, FRAMES[:69])


@pytest.mark.parametrize(
    ("suffix", "partial_bytes"),
    [
        pytest.param(suffix, size, id=f"row63-run-full-at{suffix}-{size}-bytes")
        for suffix, sizes in ((".log", (0, FRAME, 3 * FRAME + 5)), (".index", (0, 3)))
        for size in sizes
    ],
)
def test_a_replicated_run_that_fills_the_disk_leaves_the_log_as_it_was(
    suffix: str, partial_bytes: int
) -> None:
    disk, place, log = opened(FLUSHED, 70)
    before = place.files()
    run = b"".join(FRAMES[70:80])
    disk.fail("write_at", suffix=suffix, errno=errno.ENOSPC, partial_bytes=partial_bytes)
    with pytest.raises(DiskFull):
        log.append_replica_batch(run)
    assert log.failure is None
    assert log.leo == 70
    after = place.files()
    assert after | {"leader-epoch-checkpoint": b""} == before | {"leader-epoch-checkpoint": b""}
    log.append_replica_batch(run)
    log.become_leader(6)
    check_sound(log, place, FRAMES[:80])


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param(("open", ".log", 1), id="row63-roll-full-at-open-log"),
        pytest.param(("open", ".index", 1), id="row63-roll-full-at-open-index"),
        pytest.param(("open", ".timeindex", 1), id="row63-roll-full-at-open-timeindex"),
        pytest.param(("write_at", ".timeindex", 1), id="row63-roll-full-at-closing-entry"),
        pytest.param(("write_at", ".log", 1), id="row63-roll-full-at-first-frame"),
    ],
)
def test_a_roll_that_fills_the_disk_can_be_tried_again(operation: tuple[str, str, int]) -> None:
    disk, place, log = opened(FLUSHED)
    name, suffix, at = operation
    disk.fail(name, suffix=suffix, at=at, errno=errno.ENOSPC)
    with pytest.raises(DiskFull):
        log.append(batch(COUNT))
    assert log.leo == COUNT
    check_read_back(log, FRAMES)
    assert log.failure is None
    log.append(batch(COUNT))
    log.flush()
    check_sound(log, place, (*FRAMES, NEXT))


@pytest.mark.parametrize(
    "suffix", [pytest.param(one, id=f"row63-no-cut-back-{one[1:]}") for one in (".log", ".index")]
)
def test_where_the_cut_back_fails_too_the_log_goes_offline(suffix: str) -> None:
    """It still answers readers, whose bytes are untouched, and takes no more writes."""
    disk, place, log = opened(FLUSHED, 68)
    disk.fail("write_at", suffix=".log", errno=errno.ENOSPC, partial_bytes=50)
    disk.fail("truncate", suffix=suffix)
    with pytest.raises(DiskFull) as raised:
        log.append(batch(68))
    assert log.failure is raised.value
    calls: list[Callable[[], object]] = [
        lambda: log.append(batch(68)),
        lambda: log.append_replica_batch(FRAMES[68]),
        log.roll,
        log.flush,
        lambda: log.truncate_to(60),
        lambda: log.become_leader(9),
    ]
    for call in calls:
        with pytest.raises(LogOffline) as offline:
            call()
        assert offline.value.cause is raised.value
    check_read_back(log, FRAMES[:68])
    log.close()
    assert SEAL_FILE not in place.names()
    again = open_log(place)
    assert not again.report.is_clean
    assert [cut.size_bytes for cut in again.report.cuts] == ([50] if suffix == ".log" else [])
    check_sound(again, place, FRAMES[:68])


def test_row63_a_disk_that_is_really_full_takes_no_byte_of_the_batch() -> None:
    disk = MemDisk()
    place = Place.of(disk, DIRECTORY, image(FLUSHED, 70))
    log = open_log(place)
    disk.capacity_bytes = disk.used_bytes + 40
    before = place.files()
    with pytest.raises(DiskFull):
        log.append(batch(70))
    assert place.files() == before
    disk.capacity_bytes = None
    log.append(batch(70))
    check_sound(log, place, FRAMES[:71])


# Row 64: short writes --------------------------------------------------------------------------


@pytest.mark.parametrize("step", [pytest.param(one, id=f"row64-{one}-bytes") for one in (1, 7)])
def test_writes_that_store_less_are_continued(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = os.pwrite

    def short(fd: int, data: bytes, position: int) -> int:
        return whole(fd, bytes(data)[:step], position)

    monkeypatch.setattr("storage.disk.os.pwrite", short)
    place = Place(OsDisk(), tmp_path / "log")
    log = build(place.disk, place.directory, FLUSHED, 10)
    check_sound(log, place, FRAMES[:10])


def test_row64_a_short_write_that_then_fails_is_cut_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = make_place("os", tmp_path, image(FLUSHED, 70))
    log = open_log(place)
    whole = os.pwrite
    calls = []

    def short_then_full(fd: int, data: bytes, position: int) -> int:
        calls.append(len(data))
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "full")
        return whole(fd, bytes(data)[:20], position)

    before = place.files()
    with monkeypatch.context() as patch:
        patch.setattr("storage.disk.os.pwrite", short_then_full)
        with pytest.raises(DiskFull):
            log.append(batch(70))
    assert calls == [FRAME, FRAME - 20]
    assert place.files() == before
    log.append(batch(70))
    check_sound(log, place, FRAMES[:71])


# Row 65: fsync fails once ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "suffix"),
    [
        pytest.param("fsync", ".log", id="row65-fsync-of-the-log"),
        pytest.param("fsync", ".index", id="row65-fsync-of-the-index"),
        pytest.param("fsync", ".timeindex", id="row65-fsync-of-the-time-index"),
        pytest.param("fsync_dir", "", id="row65-fsync-of-the-directory"),
    ],
)
def test_after_one_failed_fsync_the_log_stays_offline(operation: str, suffix: str) -> None:
    """ATC'20: a retry that succeeds proves nothing, so nobody is told that it did."""
    disk, place, log = opened(UNFLUSHED)
    disk.fail(operation, suffix=suffix)
    with pytest.raises(FsyncFailed) as raised:
        log.flush()
    assert log.failure is raised.value
    assert log.boundary.end_offset == 0
    calls: list[Callable[[], object]] = [
        log.flush,
        lambda: log.append(batch(COUNT)),
        lambda: log.append_replica_batch(NEXT),
        lambda: log.truncate_to(0),
        lambda: log.fetch(0, 1),
        lambda: log.read_batches(0, 1),
        lambda: log.read_range(0, 1),
        lambda: log.offset_for_timestamp(0),
    ]
    for call in calls:
        with pytest.raises(LogOffline):
            call()
    log.close()
    assert SEAL_FILE not in place.names()
    with pytest.raises(LogClosed):
        log.flush()
    again = open_log(place)
    assert (again.leo, again.boundary.end_offset) == (COUNT, 0)
    assert not again.report.is_clean
    check_sound(again, place, FRAMES)


def test_row65_the_flush_behind_a_roll_takes_the_log_offline_after_the_append() -> None:
    """The append that rolled has succeeded; the log is offline from the next call on.

    The first fsync is the one before a roll behind an unclean opening.
    """
    disk, place, log = opened(UNFLUSHED)
    disk.fail("fsync", suffix=log_name(60), at=2)
    assert log.append(batch(COUNT)).base_offset == COUNT
    assert isinstance(log.failure, FsyncFailed)
    with pytest.raises(LogOffline):
        log.append(batch(COUNT + 1))
    assert log.boundary.end_offset < COUNT
    log.abandon()
    again = open_log(place)
    check_sound(again, place, (*FRAMES, NEXT))


def test_row65_the_fsync_before_a_roll_fails_and_nothing_is_appended() -> None:
    """A tail that was cut but may come back is settled before a segment begins behind it."""
    disk, place, log = opened(UNFLUSHED)
    disk.fail("fsync", suffix=log_name(60))
    with pytest.raises(FsyncFailed):
        log.append(batch(COUNT))
    with pytest.raises(LogOffline):
        log.append(batch(COUNT))
    log.abandon()
    check_sound(open_log(place), place, FRAMES)


def test_row65_closing_raises_and_leaves_no_seal() -> None:
    disk, place, log = opened(UNFLUSHED)
    disk.fail("fsync", suffix=log_name(60))
    with pytest.raises(FsyncFailed):
        log.close()
    assert SEAL_FILE not in place.names()
    again = open_log(place)
    assert not again.report.is_clean
    check_sound(again, place, FRAMES)


# Row 66: files that cannot be opened -----------------------------------------------------------

UNREADABLE = (
    ("listdir", "log", errno.EACCES, AccessDenied),
    ("open", log_name(30), errno.EACCES, AccessDenied),
    ("open", log_name(60), errno.EACCES, AccessDenied),
    ("open", log_name(60), errno.EROFS, DiskReadOnly),
    ("open", log_name(0), errno.EIO, DiskError),
    ("lock", ".lock", errno.EROFS, DiskReadOnly),
)


@pytest.mark.parametrize("verify", VERIFY)
@pytest.mark.parametrize(
    ("operation", "name", "number", "kind"),
    [
        pytest.param(*one, id=f"row66-{errno.errorcode[one[2]]}-{one[0]}-{one[1]}")
        for one in UNREADABLE
    ],
)
def test_a_file_that_cannot_be_opened_is_named_and_nothing_changes(
    operation: str, name: str, number: int, kind: type[DiskError], verify: Verify
) -> None:
    disk, place = faulty(FLUSHED)
    before = place.files()
    disk.fail(operation, suffix=name, errno=number, times=None)
    with pytest.raises(kind) as raised:
        open_log(place, verify)
    assert raised.value.path.name == name
    assert raised.value.errno_name == errno.errorcode[number]
    disk.plans.clear()
    assert place.files() == before
    check_sound(open_log(place, verify), place, FRAMES)


def test_row66_a_read_only_file_system_refuses_a_clean_log_before_it_is_touched() -> None:
    disk = MemDisk()
    place = Place.of(disk, DIRECTORY, image(CLOSED))
    before = place.files()
    disk.read_only = True
    with pytest.raises(DiskReadOnly):
        open_log(place, "unflushed")
    assert place.files() == before
    disk.read_only = False
    log = open_log(place, "unflushed")
    assert log.report.is_clean
    check_sound(log, place, FRAMES)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, id=f"row66-EIO-{one}")
        for one in ("boundary", "seal", "leader-epoch-checkpoint")
    ],
)
def test_what_is_remembered_and_cannot_be_read_costs_a_warning(name: str) -> None:
    disk, place = faulty(CLOSED)
    disk.fail("read_at", suffix=name)
    log = open_log(place)
    assert log.leo == COUNT
    assert log.report.is_clean == (name != "seal")
    assert log.report.cuts == ()
    check_sound(log, place, FRAMES)


# Row 67: a closed segment that cannot be read --------------------------------------------------


@pytest.mark.parametrize(
    "operation", [pytest.param(one, id=f"row67-open-{one}") for one in ("read_into", "size")]
)
def test_opening_stops_at_an_unreadable_segment(operation: str) -> None:
    disk, place = faulty(FLUSHED)
    before = place.files()
    disk.fail(operation, suffix=log_name(30), times=None)
    with pytest.raises(DiskError) as raised:
        open_log(place)
    assert raised.value.errno_name == "EIO"
    assert raised.value.path.name == log_name(30)
    disk.plans.clear()
    assert place.files() == before
    check_sound(open_log(place), place, FRAMES)


def test_row67_other_ranges_are_served_while_one_segment_cannot_be_read() -> None:
    disk, place, log = opened(FLUSHED)
    before = place.files()
    disk.fail("read_at", suffix=log_name(30), times=None)
    for offset in (30, 45, 59):
        with pytest.raises(DiskError) as raised:
            log.fetch(offset, 1)
        assert raised.value.errno_name == "EIO"
    for offset in (0, 29, 60, 89):
        assert [found.offset for found in log.fetch(offset, 1)] == [offset]
    assert log.failure is None
    disk.plans.clear()
    assert place.files() == before
    check_sound(log, place, FRAMES)


# Row 69: two that want the same log ------------------------------------------------------------


@pytest.mark.parametrize("backing", [pytest.param(one, id=f"row69-{one}") for one in ("mem", "os")])
def test_a_second_opening_is_refused_and_disturbs_nothing(backing: str, tmp_path: Path) -> None:
    place = make_place(backing, tmp_path, image(CLOSED))
    log = open_log(place)
    during = place.files()
    for attempt in range(2):
        with pytest.raises(LockHeld) as raised:
            open_log(place, VERIFY[attempt])
        assert raised.value.path.name == ".lock"
    assert place.files() == during
    check_sound(log, place, FRAMES)


def test_row69_salvage_needs_the_lock_too() -> None:
    disk, place = faulty(FLUSHED)
    log = open_log(place)
    error = CorruptLog(
        DIRECTORY / log_name(30), "x", position=0, last_good_offset=30, first_good_offset=None
    )
    before = place.files()
    with pytest.raises(LockHeld):
        PartitionLog.salvage(DIRECTORY, error, CONFIG, disk=disk)
    assert place.files() == before
    check_sound(log, place, FRAMES)


# Left-over indexes without a log ---------------------------------------------------------------


@pytest.mark.parametrize("base", [pytest.param(0, id="row22-stray-index-of-a-new-log")])
def test_stray_indexes_in_an_empty_directory_do_not_take_the_new_ones_with_them(base: int) -> None:
    place = Place.of(MemDisk(), DIRECTORY, {index_name(base): b"", time_name(base): b""})
    log = open_log(place)
    assert [name for name in segment_names(base) if name not in place.names()] == []
    for number in range(31):
        log.append(batch(number))
    log.flush()
    assert log.boundary.end_offset == 31
    log.close()
    assert open_log(place).report.is_clean
