"""What a power cut leaves of a log with producers: snapshots never tell of another history.

The histories are those of ``test_producer_history``. A cut keeps what was synced, and of the rest
any part: each name and each content that was changed since may be the old one or the new one, and a
new content may be a prefix. The log that opens from it must know exactly the producers of the
batches that it holds.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import settings
from hypothesis.stateful import rule

from storage import PartitionLog, RecordBatch
from storage.disk import Disk, FileKind
from storage.errors import CorruptLog, FsyncFailed
from storage.log_durability import Work
from storage.memdisk import MemDisk
from storage.reading import iter_batches
from tests.storage.faults import FaultDisk
from tests.storage.naive_producers import NaiveProducers
from tests.storage.producer_logs import PLAIN, filled, open_log, path
from tests.storage.sync_disk import SyncDisk
from tests.storage.test_producer_history import EXPIRING, SEEDS, VERIFY, ProducerHistory


def possible_image(disk: SyncDisk, random: Random) -> MemDisk:
    """A disk as a power cut may leave it; frames are never torn, opening is not the subject."""
    image = MemDisk()
    for file_path in sorted(disk._live | disk._durable):
        for folder in reversed(file_path.parents[:-1]):
            if folder.name not in image.listdir(folder.parent):
                image.mkdir(folder)
        live, durable = disk._live.get(file_path), disk._durable.get(file_path)
        inode = random.choice([live, durable])
        if inode is None:
            continue
        data = inode.synced
        if inode is live and random.random() < 0.6:
            data = disk.content(file_path)
            if file_path.suffix != ".log" and random.random() < 0.2:
                data = data[: random.randint(0, len(data))]
        file = image.open(file_path, create=True)
        file.write_at(0, data)
        file.close()
    return image


def batches_of(log: PartitionLog) -> list[RecordBatch]:
    """All that it holds, also what its start hides."""
    return [one for s in log.segments for one in iter_batches(s, s.base_offset)]


class PowerCutHistory(ProducerHistory):
    """See the module."""

    has_retention = False

    def make_disk(self) -> Disk:
        return SyncDisk(MemDisk())

    @rule(verify=VERIFY, seed=SEEDS)
    def look_behind_power_cuts(self, verify: str, seed: int) -> None:
        random = Random(seed)
        assert isinstance(self.disk, SyncDisk)
        log = self.log
        for image in [self.disk.image(), *(possible_image(self.disk, random) for _ in range(5))]:
            self.disk, disk = image, self.disk
            try:
                cut = self.open(verify)
            except CorruptLog:
                continue
            finally:
                self.disk = disk
            known = dict(cut.producers)
            expected = NaiveProducers.replayed(batches_of(cut)).entries()
            if self.expired_at >= 0:
                known.pop(EXPIRING, None)
                expected.pop(EXPIRING, None)
            assert known == expected
            cut.abandon()
        assert self.log is log


TestPowerCutHistory = PowerCutHistory.TestCase
TestPowerCutHistory.settings = settings(stateful_step_count=40)


# The ways in which a snapshot could tell of another history, one by one -------------------------


def synced_log(count: int) -> tuple[SyncDisk, FaultDisk]:
    """A disk with what a clean close of a filled log left, all of it durable."""
    disk = SyncDisk(MemDisk())
    faults = FaultDisk(disk)
    filled(faults, count).close()
    return disk, faults


def keep(image: MemDisk, disk: SyncDisk, file_path: Path) -> None:
    """Let the power cut keep what was written to a file and not synced, if there is one."""
    if disk.stat(file_path).kind is FileKind.MISSING:
        return
    file = image.open(file_path, create=True)
    file.truncate(0)
    file.write_at(0, disk.content(file_path))
    file.close()


def check_cut(image: MemDisk) -> PartitionLog:
    log = open_log(FaultDisk(image))
    assert dict(log.producers) == NaiveProducers.replayed(batches_of(log)).entries()
    return log


def test_a_snapshot_that_was_removed_does_not_come_back_over_a_new_tail() -> None:
    disk, faults = synced_log(8)
    log = open_log(faults)
    log.truncate_to(5)
    for _ in range(4):
        log.append(PLAIN)
    image = disk.image()
    keep(image, disk, log.active.log_path)
    assert check_cut(image).leo == 9


def test_a_tail_that_was_cut_does_not_come_back_under_the_snapshot_of_a_roll() -> None:
    disk, faults = synced_log(8)
    log = open_log(faults, runs_pending=False)
    log.truncate_to(5)
    log.append(PLAIN)
    log.roll()
    image = disk.image()
    keep(image, disk, path(6))
    check_cut(image)


def test_a_tail_that_was_cut_does_not_come_back_under_the_snapshot_of_a_clean_close() -> None:
    disk, faults = synced_log(8)
    log = open_log(faults, runs_pending=False)
    log.truncate_to(5)
    log.append(PLAIN)
    faults.fail("fsync", suffix=".log")
    with pytest.raises(FsyncFailed):
        log.close()
    image = disk.image()
    keep(image, disk, path(6))
    check_cut(image)


def test_a_tail_that_was_cut_does_not_come_back_under_the_snapshot_of_a_long_replay() -> None:
    disk, faults = synced_log(35)
    log = open_log(faults, runs_pending=False)
    log.truncate_to(33)
    log.append(PLAIN)
    log.abandon()
    for offset in (10, 20, 30):
        disk.unlink(path(offset))
    log = open_log(faults, runs_pending=False)
    assert [work.kind for work in log.take_pending()] == ["snapshot"]
    log.run(Work(1, "snapshot"))
    log.abandon()
    image = disk.image()
    keep(image, disk, path(34))
    check_cut(image)
