"""Deleting a log of a directory, and what else a broker needs of its logs: ``abandon``,
``reconfigure``, ``has_pending``, checkpoints that keep or forget the other partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import evolve

from sim.disk_names import NamesMode
from sim.disks import PowerCut, ProcessKill
from storage import LogConfig, PartitionLog
from storage.disk import Disk, FileKind
from storage.errors import BatchTooLarge, CorruptLog, DiskError, InvalidConfig, LogClosed
from storage.log_dir import LogDir, TopicPartition
from storage.log_durability import Work
from storage.memdisk import MemDisk
from tests.sim.disks import Bench, files
from tests.storage.batches import one
from tests.storage.faults import FaultDisk

ROOT = Path("/data")
OLD, NEW = "AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBQ"
ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 2)
SMALL = LogConfig(segment_max_bytes=200)


def values(log: PartitionLog) -> list[bytes | None]:
    return [record.value for record in log.fetch(log.log_start_offset, 100)]


def filled(disk: Disk, root: Path = ROOT) -> LogDir:
    """Two logs of three records each, durable, with every kind of checkpoint."""
    log_dir = LogDir.open(root, disk=disk, runs_pending=False)
    for name, topic_id in ((ORDERS, OLD), (PAYMENTS, NEW)):
        log = log_dir.open_log(*name, SMALL, topic_id=topic_id)
        for value in (b"a", b"b", b"c"):
            log.append(one(value))
        log.raise_log_start_offset(1)
        log.flush()
        log.run_pending()
    log_dir.write_high_watermarks({ORDERS: 3, PAYMENTS: 2})
    log_dir.write_log_starts()
    log_dir.write_recovery_points()
    return log_dir


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


def directories(disk: Disk, root: Path = ROOT) -> list[str]:
    return [n for n in disk.listdir(root) if disk.stat(root / n).kind is FileKind.DIRECTORY]


# Deleting --------------------------------------------------------------------------------------


def test_a_deleted_log_is_forgotten_everywhere_and_its_files_go_when_run(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    log = log_dir.logs[ORDERS]
    work = log_dir.delete_log(*ORDERS)
    assert log.is_closed
    assert log_dir.partitions() == [PAYMENTS]
    assert list(log_dir.logs) == [PAYMENTS]
    assert log_dir.high_watermarks == {PAYMENTS: 2}
    assert directories(disk) == ["orders-0-delete", "payments-2"]
    log_dir.run(work)
    assert directories(disk) == ["payments-2"]
    log_dir.run(work)
    log_dir.close()
    again = LogDir.open(ROOT, disk=disk)
    assert values(again.open_log(*PAYMENTS)) == [b"b", b"c"]
    assert again.high_watermarks == {PAYMENTS: 2}


def test_a_new_log_of_the_name_begins_empty_before_the_files_are_gone(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    work = log_dir.delete_log(*ORDERS)
    log = log_dir.open_log(*ORDERS, topic_id=NEW)
    log.append(one(b"new"))
    log_dir.run(work)
    assert (values(log), log.log_start_offset) == ([b"new"], 0)
    assert log_dir.topic_id(*ORDERS) == NEW


def test_deletions_of_one_name_get_names_of_their_own(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    works = []
    for _ in range(3):
        works.append(log_dir.delete_log(*ORDERS))
        log_dir.open_log(*ORDERS, topic_id=NEW)
    assert len({work.id for work in works}) == 3
    assert [work.args[0] for work in works] == [
        "orders-0-delete",
        "orders-0.1-delete",
        "orders-0.2-delete",
    ]
    for work in reversed(works):
        log_dir.run(work)
    assert directories(disk) == ["orders-0", "payments-2"]


def test_a_log_that_is_not_open_or_not_there_can_be_deleted(disk: FaultDisk) -> None:
    filled(disk).close()
    log_dir = LogDir.open(ROOT, disk=disk, runs_pending=False)
    log_dir.run(log_dir.delete_log(*ORDERS))
    log_dir.run(log_dir.delete_log("nothing", 7))
    assert directories(disk) == ["payments-2"]
    log_dir.close()
    assert LogDir.open(ROOT, disk=disk).partitions() == [PAYMENTS]


def test_the_next_open_finishes_deletions_and_does_not_fail_with_them(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    log_dir.delete_log(*ORDERS)
    log_dir.abandon()
    disk.fail("unlink", suffix=".log")
    log_dir = LogDir.open(ROOT, disk=disk)
    assert ["not removed" in warning for warning in log_dir.warnings] == [True]
    assert directories(disk) == ["orders-0-delete", "payments-2"]
    log_dir.abandon()
    assert LogDir.open(ROOT, disk=disk).warnings == []
    assert directories(disk) == ["payments-2"]


def test_the_directory_runs_only_its_own_kind_of_work(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    with pytest.raises(ValueError, match="remove-directory"):
        log_dir.run(Work(1, "flush", (3,)))
    log_dir.abandon()
    for call in (
        lambda: log_dir.delete_log(*ORDERS),
        lambda: log_dir.run(Work(1, "remove-directory", ("x",))),
    ):
        with pytest.raises(LogClosed):
            call()


@pytest.mark.parametrize("name", [("..", 0), ("a/b", 0), ("orders", -1), ("", 0)])
def test_a_name_that_is_none_deletes_nothing(disk: FaultDisk, name: tuple[str, int]) -> None:
    log_dir = filled(disk)
    with pytest.raises(InvalidConfig):
        log_dir.delete_log(*name)
    assert directories(disk) == ["orders-0", "payments-2"]


def test_after_a_disk_error_at_any_call_it_can_be_called_again(disk: FaultDisk) -> None:
    calls = _calls_of(lambda d: filled(d), lambda log_dir: log_dir.delete_log(*ORDERS))
    assert len(calls) > 10
    for number, operation in enumerate(calls):
        if operation in ("close", "stat", "listdir", "size", "begin_fsync"):
            continue
        faults = FaultDisk(MemDisk())
        log_dir = filled(faults)
        seen = calls[: number + 1].count(operation)
        faults.fail(operation, at=seen)
        try:
            log_dir.delete_log(*ORDERS)
        except DiskError:
            log_dir.delete_log(*ORDERS)
        log = log_dir.open_log(*ORDERS, topic_id=NEW)
        assert (values(log), log_dir.high_watermarks) == ([], {PAYMENTS: 2})


def _calls_of(
    prepare: Callable[[FaultDisk], LogDir], operate: Callable[[LogDir], object]
) -> list[str]:
    faults = FaultDisk(MemDisk())
    log_dir = prepare(faults)
    faults.calls.clear()
    operate(log_dir)
    return faults.operations()


# Crashes ---------------------------------------------------------------------------------------


def crashed(mode: NamesMode, fuse: int, *, kills: bool) -> Iterator[Disk]:
    """The disks that a crash at the disk call number ``fuse`` may leave; none if it is not made."""
    bench = Bench(mode)
    log_dir = filled(bench.disk, Path("d"))
    bench.disk.fsync_dir(Path())
    bench.disk.arm_fuse(fuse, kills=kills)
    try:
        work = log_dir.delete_log(*ORDERS)
        log = log_dir.open_log(*ORDERS, topic_id=NEW)
        log.append(one(b"new"))
        log.flush()
        log.run_pending()
        log_dir.run(work)
    except ProcessKill:
        log_dir.abandon()
        yield bench.disk
    except PowerCut:
        for image in bench.disk.images():
            yield bench.cut(image)[0]
    else:
        bench.disk.disarm_fuse()


def judge(disk: Disk) -> str:
    """What a crash left of the deleted log; anything that may not be fails."""
    log_dir = LogDir.open(Path("d"), disk=disk)
    other = log_dir.open_log(*PAYMENTS, topic_id=NEW)
    assert values(other) == [b"b", b"c"], "the other log"
    assert log_dir.high_watermarks[PAYMENTS] == 2
    topic_id = log_dir.topic_id(*ORDERS)
    if topic_id == OLD:
        old = log_dir.open_log(*ORDERS, topic_id=OLD)
        assert values(old)[-2:] == [b"b", b"c"]
        assert old.leo == 3
        assert log_dir.high_watermarks.get(ORDERS, 0) in (0, 3)
        return "old"
    assert ORDERS not in log_dir.high_watermarks
    log = log_dir.open_log(*ORDERS, topic_id=NEW)
    assert values(log) in ([], [b"new"])
    assert log.log_start_offset == 0
    log.append(one(b"more"))
    names = [name for name in disk.listdir(Path("d")) if name.endswith("-delete")]
    assert names == [], "opening removes what was doomed"
    return "new" if topic_id == NEW else "none"


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["posix", "ext4"])
@pytest.mark.parametrize("kills", [True, False])
def test_a_crash_at_any_call_leaves_the_old_log_whole_or_a_new_one_empty(
    mode: NamesMode, kills: bool
) -> None:
    seen: dict[tuple[tuple[str, bytes], ...], str] = {}
    fuse = 0
    while True:
        fuse += 1
        is_done = True
        for disk in crashed(mode, fuse, kills=kills):
            is_done = False
            left = tuple(files(disk, Path("d")).items())
            if left not in seen:
                seen[left] = judge(disk)
        if is_done:
            break
    assert fuse > 40
    assert set(seen.values()) == {"old", "none", "new"}


def test_the_crash_proof_sees_a_deletion_that_forgets_nothing() -> None:
    """A new log of the name would find a boundary that it does not have, and refuse to open."""

    class Careless(LogDir):
        def _forget_state(self, name: TopicPartition) -> None:
            return

    bench = Bench("posix")
    log_dir = filled(bench.disk, Path("d"))
    log_dir.__class__ = Careless
    log_dir.delete_log(*ORDERS)
    log_dir.abandon()
    with pytest.raises((AssertionError, CorruptLog)):
        judge(bench.disk)


# Abandon ---------------------------------------------------------------------------------------


def test_abandon_writes_nothing_and_gives_locks_and_files_back(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    disk.calls.clear()
    log_dir.abandon()
    assert set(disk.operations()) <= {"close", "release"}
    with pytest.raises(LogClosed):
        log_dir.write_log_starts()
    with pytest.raises(LogClosed):
        log_dir.logs[ORDERS].append(one())
    again = LogDir.open(ROOT, disk=disk)
    assert again.previous_broker_epoch is None, "no marker: it was no clean stop"
    log = again.open_log(*ORDERS)
    assert (values(log), log.report.is_clean) == ([b"b", b"c"], False)
    again.abandon()
    again.abandon()


def test_abandon_after_a_failure_needs_no_disk(disk: FaultDisk) -> None:
    log_dir = filled(disk)
    for operation in ("fsync", "write_at", "append", "rename"):
        disk.fail(operation, times=None)
    log_dir.abandon()


# Configuration ---------------------------------------------------------------------------------


def test_reconfigure_takes_new_limits_from_the_next_append_on() -> None:
    log = PartitionLog.open(ROOT, LogConfig(), disk=MemDisk())
    for _ in range(5):
        log.append(one(b"x" * 60))
    log.reconfigure(evolve(log.config, segment_max_bytes=200))
    assert len(log.segments) == 1, "what is written stays"
    for _ in range(3):
        log.append(one(b"x" * 60))
    assert len(log.segments) > 2
    log.reconfigure(evolve(log.config, max_batch_bytes=100))
    with pytest.raises(BatchTooLarge):
        log.append(one(b"x" * 60))
    log.reconfigure(LogConfig())
    log.append(one(b"x" * 60))
    assert len(values(log)) == 9


def test_reconfigure_moves_the_age_at_which_the_active_segment_rolls() -> None:
    log = PartitionLog.open(ROOT, LogConfig(segment_max_age_ms=10_000), disk=MemDisk())
    log.append(one(timestamp_ms=1_000), now_ms=1_000)
    log.reconfigure(evolve(log.config, segment_max_age_ms=1_000))
    log.append(one(timestamp_ms=1_900), now_ms=1_900)
    assert len(log.segments) == 1
    log.append(one(timestamp_ms=2_200), now_ms=2_200)
    assert len(log.segments) == 2
    log.reconfigure(evolve(log.config, segment_max_age_ms=10_000))
    log.append(one(timestamp_ms=9_000), now_ms=9_000)
    assert len(log.segments) == 2


def test_reconfigure_makes_the_index_sparser_and_rolls_when_it_is_full() -> None:
    log = PartitionLog.open(ROOT, LogConfig(index_interval_bytes=1), disk=MemDisk())
    for _ in range(4):
        log.append(one())
    assert len(log.active.index) == 4
    log.reconfigure(evolve(log.config, index_interval_bytes=1 << 20))
    for _ in range(3):
        log.append(one())
    assert len(log.active.index) == 5, "from the next entry on"
    log.reconfigure(evolve(log.config, index_max_bytes=40))
    for _ in range(4):
        log.append(one())
    assert len(log.segments) > 1
    assert [record.offset for record in log.fetch(0, 100)] == list(range(11))


def test_reconfigure_refuses_other_rules_and_changes_nothing_for_equal_ones() -> None:
    log = PartitionLog.open(ROOT, LogConfig(), disk=MemDisk())
    other = evolve(log.config, rules=evolve(log.config.rules, cut_epochs_at_end=False))
    with pytest.raises(InvalidConfig, match="rules"):
        log.reconfigure(other)
    before = log.config
    log.reconfigure(LogConfig())
    assert log.config is before


def test_has_pending_says_whether_work_is_due() -> None:
    log_dir = filled(FaultDisk(MemDisk()))
    log = log_dir.logs[ORDERS]
    assert not log.has_pending
    log.append(one())
    log.roll()
    assert log.has_pending
    work = log.take_pending()
    assert work
    assert not log.has_pending
    for each in work:
        log.run(each)
    assert log.has_pending, "a flush leads to a boundary to persist"
    log.run_pending()
    assert not log.has_pending


# Checkpoints -----------------------------------------------------------------------------------


@pytest.mark.parametrize("keeps", [True, False])
def test_a_checkpoint_of_some_keeps_or_forgets_the_others(disk: FaultDisk, keeps: bool) -> None:
    """KAFKA-1647, hazard B-35."""
    log_dir = filled(disk)
    log_dir.write_high_watermarks({ORDERS: 1}, keep_others=keeps)
    expected = {ORDERS: 1, PAYMENTS: 2} if keeps else {ORDERS: 1}
    assert log_dir.high_watermarks == expected
    log_dir.abandon()
    assert LogDir.open(ROOT, disk=disk).high_watermarks == expected
