"""The cleaned offset in a ``LogDir``: ``cleaner-offset-checkpoint``, raised late, lowered first.

One that is too high would be worse than none: a tombstone in a part that only seems clean would go
before the values that it deletes (KAFKA-3330, hazard B-61).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.config import LogConfig
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.storage.cleaning import ONE_EACH, data, files_of, rows_of, run
from tests.storage.faults import FaultDisk

BROKER = Path("/broker")
FILE = "cleaner-offset-checkpoint"


def filled(disk: MemDisk | FaultDisk, **options: bool) -> tuple[LogDir, PartitionLog]:
    """An open directory with one flushed log of five segments of one record each."""
    log_dir = LogDir.open(BROKER, disk=disk, **options)
    log = log_dir.open_log("orders", 0, ONE_EACH)
    for number in range(5):
        log.append(data((b"k%d" % number, b"v", 10)))
        log.roll()
    log.append(data((None, b"active")))
    log.flush()
    return log_dir, log


def again(disk: MemDisk, config: LogConfig = ONE_EACH) -> PartitionLog:
    """The log after the end of the process."""
    return LogDir.open(BROKER, disk=disk.copy()).open_log("orders", 0, config)


def test_cleaned_offset_is_kept_in_kafkas_container() -> None:
    disk = MemDisk()
    log_dir, log = filled(disk)
    assert FILE not in files_of(disk, BROKER)
    run(log)
    assert files_of(disk, BROKER)[FILE] == b"0\n1\norders 0 5\n"
    assert again(disk).cleaned_offset == 5
    log_dir.close()
    assert again(disk).cleaned_offset == 5


def test_raising_is_pending_work() -> None:
    disk = MemDisk()
    _, log = filled(disk, runs_pending=False)
    log.run_pending()
    run(log)
    assert log.cleaned_offset == 5
    assert again(disk).cleaned_offset == 0
    assert "persist" in [work.kind for work in log.take_pending()]


def test_lowering_is_durable_before_the_log_is_cut() -> None:
    disk = FaultDisk(MemDisk())
    _, log = filled(disk)
    run(log)
    disk.calls.clear()
    log.truncate_to(2)
    calls = [f"{call.operation} {call.name} {call.args}" for call in disk.calls]
    lowered = calls.index(f"rename {FILE}.tmp {FILE}")
    boundary = calls.index("rename boundaries.tmp boundaries")
    first = min(n for n, call in enumerate(calls) if ".deleted" in call or "truncate 0" in call)
    assert lowered < boundary < first
    assert again(disk.inner).cleaned_offset == 2


def test_new_records_at_old_offsets_do_not_count_as_cleaned_after_a_crash() -> None:
    """The process ends right after they were written; nothing else was ever said of them."""
    disk = MemDisk()
    _, log = filled(disk)
    run(log)
    log.truncate_to(3)
    for key, value in ((b"k0", None), (b"k1", b"new")):
        log.append(data((key, value, 10)))
        log.roll()
    log.append(data((None, b"active")))
    log.flush()
    log = again(disk)
    assert log.cleaned_offset == 3
    run(log, now=100, delete_retention_ms=0)
    keys = [row[:2] for row in rows_of(log)]
    assert keys == [(2, b"k2"), (4, b"k1"), (5, None)]


def test_offset_above_the_durable_end_is_not_believed() -> None:
    disk = MemDisk()
    filled(disk)
    file = disk.open(BROKER / FILE, create=True)
    file.write_at(0, b"0\n1\norders 0 4000\n")
    assert again(disk).cleaned_offset == 6


@pytest.mark.parametrize("content", [b"", b"junk", b"1\n0\n", b"0\n2\norders 0 3\n"])
def test_checkpoint_that_cannot_be_read_means_that_nothing_is_clean(content: bytes) -> None:
    disk = MemDisk()
    _, log = filled(disk)
    run(log)
    file = disk.open(BROKER / FILE)
    file.truncate(0)
    file.write_at(0, content)
    log_dir = LogDir.open(BROKER, disk=disk.copy())
    assert bool(log_dir.warnings) == bool(content)
    log = log_dir.open_log("orders", 0, ONE_EACH)
    assert log.cleaned_offset == 0
    assert run(log).cleaned_offset == 5


def test_other_partitions_keep_what_they_had() -> None:
    disk = MemDisk()
    log_dir, log = filled(disk)
    other = log_dir.open_log("orders", 1, ONE_EACH)
    for _ in range(2):
        other.append(data((b"a", b"v")))
        other.roll()
    other.append(data((None, b"active")))
    other.flush()
    run(log)
    log_dir.close()
    log_dir = LogDir.open(BROKER, disk=disk)
    run(log_dir.open_log("orders", 1, ONE_EACH))
    assert files_of(disk, BROKER)[FILE] == b"0\n2\norders 0 5\norders 1 2\n"


def test_cut_of_a_torn_tail_leaves_the_cleaned_offset_below_it() -> None:
    disk = MemDisk()
    _, log = filled(disk)
    run(log)
    log.append(data((b"torn", b"v")))
    file = disk.open(BROKER / "orders-0" / f"{6:020d}.log")
    file.truncate(file.size() - 1)
    log = again(disk)
    assert (log.leo, log.cleaned_offset) == (6, 5)
