"""Images of whole disks, and deep copies of disks with handles and logs open on them."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from sim.disk_copies import WIPED, DiskCopy
from sim.disk_faults import DiskFault
from sim.disks import PowerCut, SimDisk
from sim.draws import Draws
from storage.batch import Record, RecordBatch
from storage.config import LogConfig
from storage.disk import DiskFile, DiskLock, OsDisk
from storage.errors import DiskError, FsyncFailed, LockHeld, LogOffline
from storage.log_dir import LogDir
from storage.log_durability import FlushToken, Work
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.sim.disks import content, files

A, D = Path("a"), Path("d")


@pytest.fixture(params=["memory", "files"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> SimDisk:
    if request.param == "memory":
        return SimDisk(MemDisk(), Path("b1"), Draws(1))
    return SimDisk(OsDisk(), tmp_path / "b1", Draws(1))


def fill(disk: SimDisk) -> DiskFile:
    """Something of everything: directories, durable bytes and pending ones, a file without name."""
    disk.mkdir(D)
    disk.mkdir(D / "e")
    disk.mkdir(Path("empty"))
    file = disk.open(A, create=True)
    file.append(b"synced")
    file.fsync()
    file.append(b" and not")
    disk.open(D / "e" / "deep", create=True).append(b"deep")
    disk.open(D / "none", create=True)
    gone = disk.open(Path("gone"), create=True)
    gone.append(b"bytes without a name")
    disk.unlink(Path("gone"))
    return file


SEEN = {"a": b"synced and not", "d/e/deep": b"deep", "d/none": b""}


# Images ----------------------------------------------------------------------------------------


def test_an_image_is_what_a_process_sees(disk: SimDisk) -> None:
    fill(disk)
    calls, serial = disk.call_count, disk.serial
    image = DiskCopy.take(disk)
    assert image.directories == (D, Path("empty"), D / "e")
    assert {str(path): data for path, data in image.files} == SEEN
    assert (disk.call_count, disk.serial) == (calls, serial)


def test_an_image_that_is_put_is_all_there_is_and_durable(disk: SimDisk) -> None:
    fill(disk)
    image, digest = DiskCopy.take(disk), disk.digest()
    disk.open(A).write_at(0, b"other")
    disk.rename(D / "e", Path("empty"))
    disk.open(Path("new"), create=True).append(b"new")
    image.put(disk)
    assert disk.digest() == digest
    assert disk.pending_count == 0
    assert not disk.power_cut(mode="lost").lost_anything
    assert files(disk) == SEEN
    assert DiskCopy.take(disk) == image
    assert disk.listdir(Path("empty")) == []


def test_a_wiped_disk_is_empty_and_works(disk: SimDisk) -> None:
    fill(disk)
    WIPED.put(disk)
    assert disk.listdir(Path()) == []
    assert not disk._backing.listdir(disk._graveyard)
    file = disk.open(A, create=True)
    file.append(b"new")
    file.fsync()
    disk.power_cut(mode="lost")
    assert files(disk) == {"a": b"new"}


def test_what_a_process_held_is_gone(disk: SimDisk) -> None:
    file = fill(disk)
    lock = disk.lock(D / "lock")
    token = file.begin_fsync()
    image = DiskCopy.take(disk)
    image.put(disk)
    for call in (lambda: file.append(b"x"), lambda: file.complete_fsync(token), file.size):
        with pytest.raises(PowerCut):
            call()
    lock.release()
    file.close()
    disk.lock(D / "lock")
    with pytest.raises(LockHeld):
        disk.lock(D / "lock")
    assert disk.open(A).append(b"x") == len(SEEN["a"])


def test_an_image_of_another_disk_can_be_put(disk: SimDisk) -> None:
    other = SimDisk(MemDisk(), Path("b2"), Draws(1), name="b2")
    other.open(A, create=True).append(b"of b2")
    fill(disk)
    DiskCopy.take(other).put(disk)
    assert files(disk) == {"a": b"of b2"}
    disk.open(A).append(b"!")
    assert content(other, "a") == b"of b2"


def test_the_power_is_on_and_fuses_are_out_afterwards(disk: SimDisk) -> None:
    fill(disk)
    image = DiskCopy.take(disk)
    disk.arm_fuse_at("append", "", 1)
    disk.arm_fuse(1)
    with pytest.raises(PowerCut):
        disk.stat(A)
    image.put(disk)
    assert disk.stat(A).size_bytes == len(SEEN["a"])
    disk.arm_fuse_at("append", "", 1)
    image.put(disk)
    assert disk.open(A).append(b"x") == len(SEEN["a"])


def test_damage_goes_with_the_old_files_and_faults_stay(disk: SimDisk) -> None:
    file = fill(disk)
    image = DiskCopy.take(disk)
    disk.spoil_sectors(A, 0)
    disk.faults.add(DiskFault(id="late", kind="fsync-fail", report="next"))
    disk.faults.add(DiskFault(id="gone", kind="fsync-read-only", operation="fsync_dir"))
    disk.faults.add(DiskFault(id="kept", kind="error", operation="mkdir"))
    file.fsync()
    with pytest.raises(DiskError):
        disk.fsync_dir(D)
    assert disk.is_read_only
    image.put(disk)
    assert not disk.late_reports
    file = disk.open(A)
    assert file.read_at(0, 6) == b"synced"
    file.append(b"x")
    file.fsync()
    with pytest.raises(DiskError):
        disk.mkdir(Path("f"))


def test_serials_and_crashes_are_counted_on() -> None:
    disk = SimDisk(MemDisk(), Path("b1"), Draws(1))
    fill(disk)
    disk.power_cut(mode="kept")
    image, serial = DiskCopy.take(disk), disk.serial
    image.put(disk)
    assert disk.serial > serial
    assert disk.crash_count == 1


# Deep copies -----------------------------------------------------------------------------------


class Desk:
    """A disk and all that a process may hold on it."""

    def __init__(self) -> None:
        self.disk = SimDisk(MemDisk(), Path("b1"), Draws(7), names_mode="posix")
        self.disk.mkdir(D)
        self.file = fill_posix(self.disk)
        self.same = self.disk.open(A)
        self.nameless = self.disk.open(Path("gone"), create=True)
        self.nameless.append(b"gone")
        self.disk.unlink(Path("gone"))
        self.lock: DiskLock = self.disk.lock(D / "lock")
        self.token = self.file.begin_fsync()
        self.file.append(b" later")
        self.heard: list[Any] = []
        self.disk.on_call = self.hear
        self.disk.faults.add(DiskFault(id="f", kind="error", operation="append", after=3))
        self.disk.arm_fuse_at("append", "a", 4)

    def hear(self, *call: Any) -> None:
        self.heard.append(call)

    def go_on(self, word: bytes) -> list[Any]:
        """A bit of everything; what came of it."""
        said: list[Any] = [self.file.append(word), self.same.read_at(0, 100), self.same.size()]
        self.nameless.append(word)
        said.append(self.nameless.read_at(0, 100))
        self.file.complete_fsync(self.token)
        said.append(self.disk.pending_count)
        said.append([(str(i.state.ops), i.opens) for _, i in sorted(self.disk.inodes.items())])
        with pytest.raises(LockHeld):
            self.disk.lock(D / "lock")
        self.lock.release()
        self.disk.lock(D / "lock").release()
        self.file.append(word)
        with pytest.raises(DiskError):
            self.file.append(word)
        self.nameless.close()
        said.append(sorted(self.disk.inodes))
        with pytest.raises(PowerCut):
            self.file.append(word)
        said += self.disk.images()
        said.append(self.disk.power_cut())
        said.append(files(self.disk))
        said.append(self.heard)
        return said


def fill_posix(disk: SimDisk) -> DiskFile:
    file = disk.open(A, create=True)
    file.append(b"synced")
    file.fsync()
    disk.fsync_dir(Path())
    file.append(b" begun")
    return file


def test_a_disk_in_use_is_copied_with_all_that_holds_it() -> None:
    desk = Desk()
    twin, untouched = copy.deepcopy(desk), copy.deepcopy(desk)
    other = copy.deepcopy(desk).go_on(b"other")
    expected = twin.go_on(b"word")
    assert untouched.disk.digest() == desk.disk.digest()
    assert untouched.disk.call_count == desk.disk.call_count
    assert desk.heard == []
    assert desk.go_on(b"word") == expected
    assert untouched.go_on(b"word") == expected
    assert other != expected


def test_handles_of_a_dead_process_stay_dead_in_a_copy() -> None:
    desk = Desk()
    desk.disk.kill()
    twin = copy.deepcopy(desk)
    with pytest.raises(PowerCut):
        twin.file.append(b"x")
    twin.lock.release()
    twin.nameless.close()
    assert twin.disk.open(A).append(b"x") == desk.disk.open(A).append(b"x")


class Shelf:
    """Logs in a broker's directory, with work and flushes that are not done."""

    def __init__(self) -> None:
        self.disk = SimDisk(MemDisk(), Path("b1"), Draws(3), names_mode="ext4")
        self.dir = LogDir.open(Path("data"), disk=self.disk, runs_pending=False)
        config = LogConfig(segment_max_bytes=400)
        self.logs = [self.dir.open_log("orders", number, config) for number in (0, 1)]
        self.work: list[tuple[PartitionLog, Work]] = []
        self.flushes: list[tuple[PartitionLog, FlushToken]] = []

    def append(self, number: int, count: int) -> None:
        log = self.logs[number]
        for _ in range(count):
            offset = log.leo
            record = Record(b"k", b"value %d" % offset, offset)
            log.append(RecordBatch((record,), (0,), 0), now_ms=offset)
        self.work += [(log, work) for work in log.take_pending()]

    def begin(self) -> None:
        self.flushes += [(log, log.begin_flush()) for log in self.logs]

    def finish(self) -> list[Any]:
        said: list[Any] = []
        for log, token in self.flushes:
            log.complete_flush(token)
        self.append(0, 5)
        for log, work in self.work:
            log.run(work)
        said += [(log.boundary, log.leo) for log in self.logs]
        self.append(1, 3)
        said.append(self.disk.digest())
        said.append(self.disk.power_cut(mode="sector-subset"))
        self.dir = LogDir.open(Path("data"), disk=self.disk)
        for number in (0, 1):
            log = self.dir.open_log("orders", number)
            said += [log.report, [record.value for record in log.fetch(0, 1 << 20)]]
        self.dir.close()
        return [*said, self.disk.digest(), self.disk.call_count]


@pytest.mark.parametrize("stage", range(4))
def test_logs_in_use_are_copied_with_their_disk(stage: int) -> None:
    shelf = Shelf()
    stages = [
        lambda: shelf.append(0, 10),
        shelf.begin,
        lambda: (shelf.append(0, 9), shelf.append(1, 2)),
        lambda: shelf.logs[0].truncate_to(7),
    ]
    for do in stages[: stage + 1]:
        do()
    digest, calls = shelf.disk.digest(), shelf.disk.call_count
    twin, third = copy.deepcopy(shelf), copy.deepcopy(shelf)
    expected = twin.finish()
    assert (shelf.disk.digest(), shelf.disk.call_count) == (digest, calls)
    assert shelf.finish() == expected
    third.append(0, 1)
    assert third.finish() != expected


def test_a_log_that_failed_is_copied_with_its_error() -> None:
    shelf = Shelf()
    shelf.append(0, 3)
    shelf.disk.faults.add(DiskFault(id="f", kind="fsync-fail"))
    with pytest.raises(FsyncFailed):
        shelf.logs[0].flush()
    twin = copy.deepcopy(shelf)
    assert str(twin.logs[0].failure) == str(shelf.logs[0].failure)
    for each in (shelf, twin):
        with pytest.raises(LogOffline, match="fsync"):
            each.append(0, 1)
