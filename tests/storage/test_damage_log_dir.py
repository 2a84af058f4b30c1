"""Damage to what a broker's directory keeps for all its logs: marker, boundaries, checkpoints.

Rows 54 to 57 and 69 of STORAGE.md E.2 for ``LogDir``, and the rule over all of them: one damaged
log keeps no other from opening, and none from closing cleanly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import pytest

from storage.disk import FileKind
from storage.errors import CorruptLog, DiskError, FsyncFailed, LockHeld, LogOffline
from storage.log_dir import (
    BOUNDARIES_FILE,
    LOG_START_FILE,
    MARKER_FILE,
    RECOVERY_POINT_FILE,
    LogDir,
    TopicPartition,
)
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.recovery import Verify
from tests.storage.damage import (
    CONFIG,
    COUNT,
    EPOCHS,
    FRAME,
    FRAMES,
    Place,
    add,
    batch,
    drop,
    flip,
    log_name,
    make_place,
    segment_names,
    shorten,
)
from tests.storage.damage_outcomes import check_files, check_read_back
from tests.storage.faults import FaultDisk

ROOT = Path("/data")
NAMES = (("a", 0), ("b", 0), ("b", 1))


@cache
def broker(*, closed: bool = True, flushed_to: int = COUNT) -> Mapping[str, Mapping[str, bytes]]:
    """The files of a broker with three copies of the log, by directory name ("" the broker's)."""
    disk = MemDisk()
    log_dir = LogDir.open(ROOT, disk=disk, runs_pending=False)
    starts = {start: epoch for epoch, start in EPOCHS}
    for name in NAMES:
        log = log_dir.open_log(*name, CONFIG)
        for number in range(COUNT + 1):
            if number == flushed_to:
                log.flush()
                log.run_pending()
            if number < COUNT:
                if number in starts:
                    log.become_leader(starts[number])
                log.append(batch(number))
    if closed:
        log_dir.close(broker_epoch=7)
    else:
        log_dir.write_log_starts()
        log_dir.write_recovery_points()
    folders = {"": ROOT} | {
        f"{topic}-{number}": ROOT / f"{topic}-{number}" for topic, number in NAMES
    }
    return {name: Place(disk, path).files() for name, path in folders.items()}


class Broker:
    """A copy of such a directory on a disk of its own."""

    def __init__(self, disk: FaultDisk | None = None, **state: object) -> None:
        self.disk = disk or FaultDisk(MemDisk())
        files = broker(**state)  # type: ignore[arg-type]
        self.top = Place.of(self.disk, ROOT, files[""])
        self.logs = {name: Place.of(self.disk, ROOT / name, files[name]) for name in files if name}

    def open(self) -> LogDir:
        return LogDir.open(ROOT, disk=self.disk)

    def open_log(
        self, log_dir: LogDir, name: tuple[str, int], verify: Verify = "unflushed"
    ) -> PartitionLog:
        return log_dir.open_log(*name, CONFIG, verify=verify)

    def check(self, log: PartitionLog, frames: tuple[bytes, ...] = FRAMES) -> None:
        check_read_back(log, frames)
        check_files(log, self.logs[log.directory.name], frames)

    def check_next_start(self, frames: Mapping[tuple[str, int], tuple[bytes, ...]]) -> None:
        """After a clean close, every log opens clean and whole."""
        log_dir = self.open()
        assert log_dir.warnings == []
        for name in NAMES:
            log = self.open_log(log_dir, name)
            report = log.report
            assert report.is_clean
            assert (report.cuts, report.rebuilt, report.warnings) == ((), (), ())
            self.check(log, frames.get(name, FRAMES))
            assert log.append(batch(log.leo)).next_offset == log.leo
        log_dir.close()


def test_row54_a_clean_stop_is_found_clean() -> None:
    place = Broker()
    log_dir = place.open()
    assert log_dir.previous_broker_epoch == 7
    assert MARKER_FILE not in place.top.names()
    assert log_dir.partitions() == [TopicPartition(*name) for name in NAMES]
    for name in NAMES:
        log = place.open_log(log_dir, name)
        assert log.report.is_clean
        assert log.boundary.end_offset == COUNT
        place.check(log)
    log_dir.close(broker_epoch=8)
    place.check_next_start({})


@pytest.mark.parametrize(
    ("damage", "end", "cut"),
    [
        pytest.param(add(60, b"xyz"), 90, 3, id="row54-bytes-added"),
        pytest.param(add(60, FRAMES[89]), 90, FRAME, id="row54-last-batch-twice"),
        pytest.param(add(30, b"x"), 90, 1, id="row08-bytes-added-to-closed"),
    ],
)
def test_a_log_that_does_not_match_the_marker_is_unclean_alone(
    damage: Callable[[Place], None], end: int, cut: int
) -> None:
    place = Broker()
    damage(place.logs["b-0"])
    log_dir = place.open()
    for name in NAMES:
        log = place.open_log(log_dir, name)
        is_hurt = name == ("b", 0)
        assert log.report.is_clean == (not is_hurt)
        assert [one.size_bytes for one in log.report.cuts] == ([cut] if is_hurt else [])
        assert log.leo == end
        place.check(log)
    log_dir.close()
    place.check_next_start({})


@pytest.mark.parametrize(
    ("damage", "good", "behind"),
    [
        pytest.param(flip(89), 89, None, id="row05-last-flipped"),
        pytest.param(shorten(log_name(60), 0), 60, None, id="row26-active-empty"),
        pytest.param(drop(*segment_names(30)), 30, 60, id="row20-middle-missing"),
        pytest.param(drop(*segment_names(60)), 60, None, id="row21-last-missing"),
        pytest.param(drop(*segment_names(0)), 0, 30, id="row19-first-missing"),
        pytest.param(
            drop(*[name for base in (0, 30, 60) for name in segment_names(base)]),
            0,
            None,
            id="row20-every-segment-missing",
        ),
    ],
)
def test_one_damaged_log_keeps_no_other_from_opening_and_closing(
    damage: Callable[[Place], None], good: int, behind: int | None
) -> None:
    """Then it is salvaged through the directory, and the next start finds all three clean."""
    place = Broker()
    damage(place.logs["b-0"])
    before = place.logs["b-0"].files()
    log_dir = place.open()
    for name in NAMES:
        if name == ("b", 0):
            with pytest.raises(CorruptLog) as raised:
                place.open_log(log_dir, name)
        else:
            place.check(place.open_log(log_dir, name))
    error = raised.value
    assert (error.last_good_offset, error.first_good_offset) == (good, behind)
    assert place.logs["b-0"].files() == before
    assert set(log_dir.logs) == {TopicPartition("a", 0), TopicPartition("b", 1)}
    log_dir.close()

    log_dir = place.open()
    assert log_dir.previous_broker_epoch == -1
    for name in (("a", 0), ("b", 1)):
        assert place.open_log(log_dir, name).report.is_clean
    with pytest.raises(CorruptLog) as raised:
        place.open_log(log_dir, ("b", 0))
    assert str(raised.value) == str(error)
    log = log_dir.open_log("b", 0, CONFIG, salvaging=raised.value)
    assert log.leo == good
    place.check(log, FRAMES[:good])
    log_dir.close()
    place.check_next_start({("b", 0): FRAMES[:good]})


def test_row07_damage_that_is_trusted_refuses_when_everything_is_walked() -> None:
    place = Broker()
    flip(40)(place.logs["b-0"])
    log_dir = place.open()
    log = place.open_log(log_dir, ("b", 0))
    with pytest.raises(CorruptLog):
        log.fetch(40, 1)
    log_dir.close()
    log_dir = place.open()
    with pytest.raises(CorruptLog) as raised:
        place.open_log(log_dir, ("b", 0), "all")
    assert (raised.value.last_good_offset, raised.value.first_good_offset) == (40, 41)
    log = log_dir.open_log("b", 0, CONFIG, salvaging=raised.value)
    place.check(log, FRAMES[:40])
    log_dir.close()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="row54-marker-empty"),
        pytest.param(b"\xff{", id="row54-marker-garbage"),
        pytest.param(b"[]", id="row54-marker-no-object"),
        pytest.param(b'{"version":9,"brokerEpoch":7}', id="row54-marker-version-9"),
        pytest.param(b'{"version":0,"brokerEpoch":7,"seals":3}', id="row54-marker-seals-wrong"),
        pytest.param(
            b'{"version":0,"seals":{"b-0":[[0]],"../x":[],"b-99999999999":[]}}',
            id="row54-marker-rows-wrong",
        ),
        pytest.param(b"[" * 100_000, id="row54-marker-deep"),
    ],
)
def test_a_marker_that_says_nothing_makes_every_log_unclean_and_loses_none(data: bytes) -> None:
    place = Broker()
    place.top.write(MARKER_FILE, data)
    log_dir = place.open()
    assert MARKER_FILE not in place.top.names()
    for name in NAMES:
        log = place.open_log(log_dir, name)
        assert not log.report.is_clean
        assert log.report.cuts == ()
        place.check(log)
    log_dir.close()
    place.check_next_start({})


# Row 55 ----------------------------------------------------------------------------------------


def test_row55_the_marker_is_gone_durably_before_any_log_is_read() -> None:
    place = Broker()
    place.disk.calls.clear()
    log_dir = place.open()
    place.open_log(log_dir, ("a", 0))
    operations = [(call.operation, call.name) for call in place.disk.calls]
    gone = operations.index(("unlink", MARKER_FILE))
    synced = operations.index(("fsync_dir", ROOT.name))
    assert gone < synced
    reads = [at for at, (_, name) in enumerate(operations) if name.endswith((".log", ".index"))]
    assert synced < min(reads)


@pytest.mark.parametrize("loaded", [pytest.param(n, id=f"row55-after-{n}-logs") for n in range(4)])
def test_a_crash_while_loading_is_an_unclean_stop(loaded: int) -> None:
    place = Broker()
    log_dir = place.open()
    for name in NAMES[:loaded]:
        place.open_log(log_dir, name).append(batch(COUNT))
    end_of_process(log_dir)
    log_dir = place.open()
    assert log_dir.previous_broker_epoch is None
    for number, name in enumerate(NAMES):
        log = place.open_log(log_dir, name)
        assert not log.report.is_clean
        assert log.leo == COUNT + (number < loaded)
        place.check(log, (*FRAMES, log.read_range(COUNT, 1_000)) if number < loaded else FRAMES)
    log_dir.close()


def end_of_process(log_dir: LogDir) -> None:
    """What the end of a process does: handles and locks go, nothing is written."""
    for log in log_dir.logs.values():
        log.abandon()
    log_dir._lock.release()


# Rows 56 and 57 --------------------------------------------------------------------------------

UNREADABLE = {
    "missing": None,
    "empty": b"",
    "garbage": b"\xff\xfe",
    "version-1": b"1\n0\n",
    "count-wrong": b"0\n7\n",
    "line-wrong": b"0\n1\nb 0 what 0\n",
}


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "unclean"])
@pytest.mark.parametrize(
    "name", [pytest.param(one, id=f"row57-boundaries-{one}") for one in UNREADABLE]
)
def test_without_boundaries_everything_is_walked_and_nothing_lost(name: str, closed: bool) -> None:
    """A torn tail is cut, damage with whole batches behind it refuses, the rest opens."""
    place = Broker(closed=closed)
    give(place.top, BOUNDARIES_FILE, UNREADABLE[name])
    shorten(log_name(60), 29 * FRAME + 50)(place.logs["b-0"])
    flip(40)(place.logs["b-1"])
    log_dir = place.open()
    log = place.open_log(log_dir, ("a", 0))
    assert len(log.report.warnings) == 1
    place.check(log)
    log = place.open_log(log_dir, ("b", 0))
    assert [cut.size_bytes for cut in log.report.cuts] == [50]
    place.check(log, FRAMES[:89])
    with pytest.raises(CorruptLog) as raised:
        place.open_log(log_dir, ("b", 1), "all")
    assert (raised.value.last_good_offset, raised.value.first_good_offset) == (40, 41)
    log = log_dir.open_log("b", 1, CONFIG, salvaging=raised.value)
    place.check(log, FRAMES[:40])
    log_dir.close()
    place.check_next_start({("b", 0): FRAMES[:89], ("b", 1): FRAMES[:40]})


def give(place: Place, name: str, data: bytes | None) -> None:
    if data is None:
        place.remove(name)
    else:
        place.write(name, data)


@pytest.mark.parametrize("kept", [LOG_START_FILE, RECOVERY_POINT_FILE])
@pytest.mark.parametrize(
    "name", [pytest.param(one, id=f"row57-offsets-{one}") for one in UNREADABLE]
)
def test_offset_checkpoints_that_cannot_be_read_change_no_log(name: str, kept: str) -> None:
    place = Broker()
    give(place.top, kept, UNREADABLE[name])
    log_dir = place.open()
    is_read = kept == LOG_START_FILE
    unreadable = is_read and name not in ("missing", "empty")
    assert len(log_dir.warnings) == unreadable
    for one in NAMES:
        log = place.open_log(log_dir, one)
        assert log.report.is_clean
        assert log.log_start_offset == 0
        place.check(log)
    log_dir.close()
    place.check_next_start({})


def test_row57_a_log_start_survives_the_loss_of_its_checkpoint() -> None:
    place = Broker()
    log_dir = place.open()
    for name in NAMES:
        place.open_log(log_dir, name).raise_log_start_offset(50)
    log_dir.close()
    place.top.remove(LOG_START_FILE)
    log_dir = place.open()
    log = place.open_log(log_dir, ("a", 0))
    assert log.log_start_offset == 50
    place.check(log)
    log_dir.close()


def test_row56_a_boundary_past_the_end_refuses() -> None:
    """The boundary of a log that was longer, beside the segments of an older copy."""
    place = Broker()
    log_dir = place.open()
    log = place.open_log(log_dir, ("b", 0))
    log.append(batch(COUNT))
    log_dir.close()
    for name in place.logs["b-0"].names():
        place.logs["b-0"].remove(name)
    for name, data in broker()["b-0"].items():
        place.logs["b-0"].write(name, data)
    log_dir = place.open()
    with pytest.raises(CorruptLog) as raised:
        place.open_log(log_dir, ("b", 0))
    assert raised.value.last_good_offset == COUNT
    assert "91 was durable" in str(raised.value)
    log = log_dir.open_log("b", 0, CONFIG, salvaging=raised.value)
    place.check(log)
    log_dir.close()
    place.check_next_start({})


# Rows 65, 66 and 69 ----------------------------------------------------------------------------


def test_row66_an_unreadable_log_keeps_no_other_from_opening() -> None:
    place = Broker()
    place.disk.fail("stat", suffix=f"b-0/{log_name(30)}", times=None)
    log_dir = place.open()
    for name in NAMES:
        if name == ("b", 0):
            with pytest.raises(DiskError):
                place.open_log(log_dir, name)
        else:
            place.check(place.open_log(log_dir, name))
    place.disk.plans.clear()
    place.check(place.open_log(log_dir, ("b", 0)))
    log_dir.close()
    place.check_next_start({})


def test_row65_a_log_that_went_offline_gets_no_seal_and_the_others_do() -> None:
    place = Broker()
    log_dir = place.open()
    logs = {name: place.open_log(log_dir, name) for name in NAMES}
    logs["b", 0].append(batch(COUNT))
    plan = place.disk.fail("fsync", suffix=f"b-0/{log_name(90)}")
    with pytest.raises((FsyncFailed, LogOffline)):
        logs["b", 0].flush()
    assert plan.hits == 1
    log_dir.close(broker_epoch=8)
    log_dir = place.open()
    assert log_dir.previous_broker_epoch == 8
    for name in NAMES:
        log = place.open_log(log_dir, name)
        assert log.report.is_clean == (name != ("b", 0))
        assert log.leo == COUNT + (name == ("b", 0))
    log_dir.close()


def test_row65_a_log_that_cannot_be_flushed_at_close_takes_no_other_with_it() -> None:
    """The directory's close fails then, without a marker; no log loses anything."""
    place = Broker()
    log_dir = place.open()
    for name in NAMES:
        place.open_log(log_dir, name).append(batch(COUNT))
    place.disk.fail("fsync", suffix=f"a-0/{log_name(90)}", times=None)
    with pytest.raises(DiskError):
        log_dir.close()
    place.disk.plans.clear()
    log_dir = place.open()
    assert log_dir.previous_broker_epoch is None
    for name in NAMES:
        log = place.open_log(log_dir, name)
        assert log.leo == COUNT + 1
        assert log.report.cuts == ()
    log_dir.close()


@pytest.mark.parametrize("backing", [pytest.param(one, id=f"row69-{one}") for one in ("mem", "os")])
def test_one_directory_is_open_once(backing: str, tmp_path: Path) -> None:
    place = make_place(backing, tmp_path, {})
    path = place.directory
    first = LogDir.open(path, disk=place.disk)
    log = first.open_log("a", 0, CONFIG)
    log.append(batch(0))
    with pytest.raises(LockHeld) as raised:
        LogDir.open(path, disk=place.disk)
    assert raised.value.path == path / ".lock"
    log.append(batch(1))
    first.close()
    assert place.disk.stat(path / MARKER_FILE).kind is FileKind.FILE
    second = LogDir.open(path, disk=place.disk)
    assert second.open_log("a", 0, CONFIG).leo == 2
    second.close()
