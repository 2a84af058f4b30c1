"""Compaction and retention that stop behind any of their disk calls, and at any power cut.

Method: run the whole operation once for each of its disk calls. The call fails, alone or with all
behind it, as at the end of the process; or the power goes there, and any subset of the unsynced
names and contents is lost (``tests.storage.name_cuts``). What is left must open in both modes with
nothing cut, and hold, segment group by segment group, the old content or the new.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define

from storage.batch import RecordBatch
from storage.compaction import Compaction, compact
from storage.config import CompactionPolicy, LogConfig
from storage.disk import Disk
from storage.errors import DiskError
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.storage.cleaning import batches_of, build, data, files_of, open_log
from tests.storage.faults import FaultDisk, Plan
from tests.storage.naive_compaction import view_of
from tests.storage.name_cuts import CutDisk

EIO = 5
CONFIG = LogConfig(segment_max_bytes=400, index_interval_bytes=64)
POLICY = CompactionPolicy(delete_retention_ms=10)
NOW = 100
States = list[list[RecordBatch]]


@define
class StopDisk(FaultDisk):
    """Fails its call number ``stop_at``, counted from 1, and with ``dies`` all behind it."""

    stop_at: int = 0
    dies: bool = False

    def record(self, operation: str, path: Path, args: str = "", *others: Path) -> Plan | None:
        super().record(operation, path, args, *others)
        number = len(self.calls)
        if not self.stop_at or number < self.stop_at or (number > self.stop_at and not self.dies):
            return None
        size = int(args.rpartition("size_bytes=")[2]) if "size_bytes=" in args else 0
        return Plan(operation, "", 1, EIO, size // 2 if number == self.stop_at else 0, None)


def make(disk: Disk) -> PartitionLog:
    """Seven closed segments, in which a pass merges, shortens, empties and leaves alone.

    A tombstone at offset 16 goes with the value at 4 that it deletes, two groups before it.
    """
    log = build(
        [data((b"a", b"1"), (b"b", b"1")), data((b"c", b"1"), (b"z", b"z" * 60), pid=5)],
        [data((b"gone", b"v"), pid=7), data((b"a", b"2"))],
        [data((None, b"x" * 170))],
        [data((b"d", b"1")), data((b"d", b"2"), (b"d", b"3"))],
        [data((b"e", b"y" * 150))],
        [data((b"b", b"3"), (b"c", b"3")), data((b"a", b"4"), (b"f", b"4"))],
        [data((b"gone", None, 50)), data((b"a", b"5"))],
        disk=disk,
        config=CONFIG,
    )
    log.append(data((b"a", b"tail")))
    log.flush()
    return log


def run_compaction(log: PartitionLog) -> None:
    compact(log, log.leo, now_ms=NOW, policy=POLICY)


def run_retention(log: PartitionLog) -> None:
    assert len(log.delete_old_segments(log.leo, retention_bytes=600)) >= 3


def states_of_compaction() -> States:
    """The log before a pass, after each of its swaps, and at its end."""
    log = make(MemDisk())
    states = [batches_of(log)]
    compaction = Compaction(log, log.leo, now_ms=NOW, policy=POLICY)
    is_swap = True
    while is_swap is not None and compaction.next_step != "done":
        is_swap = compaction.next_step == "swap"
        compaction.step()
        if is_swap:
            states.append(batches_of(log))
    assert len(states) >= 4, "several groups are swapped"
    assert compaction.result.segments_before > compaction.result.segments_after
    return states


def states_of_retention() -> States:
    log = make(MemDisk())
    states = [batches_of(log)]
    gone = log.delete_old_segments(log.leo, retention_bytes=600)
    ends = [segment.next_offset for segment in gone]
    states += [[b for b in states[0] if (b.base_offset or 0) >= end] for end in ends]
    assert batches_of(log) == states[-1]
    return states


def check_image(disk: MemDisk, states: States, *, starts: set[int] | None = None) -> int:
    """Open a copy in each mode: nothing was cut, the content is one of ``states``; which one."""
    seen = set()
    for verify in ("all", "unflushed"):
        copy = disk.copy()
        log = open_log(copy, CONFIG, verify=verify)
        assert log.report.cuts == ()
        assert log.report.warnings == ()
        batches = batches_of(log)
        assert batches in states
        seen.add(states.index(batches))
        if starts is not None:
            assert log.log_start_offset in starts
        for committed_only in (True, False):
            view = view_of(batches, committed_only=committed_only)
            if starts is None:
                assert view == view_of(states[0], committed_only=committed_only)
        log.append(data((b"new", b"v")))
        log.close()
        again = open_log(copy, CONFIG, verify=verify)
        assert again.report.is_clean
        assert (again.report.cuts, again.report.rebuilt, again.report.removed) == ((), (), ())
        again.close()
    assert len(seen) == 1
    return seen.pop()


def check_stops(
    run: Callable[[PartitionLog], None], states: States, starts: set[int] | None, *, dies: bool
) -> set[int]:
    """Stop at every call; returns which states were found."""
    found = set()
    calls = 1
    while True:
        inner = MemDisk()
        disk = StopDisk(inner)
        log = make(disk)
        disk.calls.clear()
        disk.stop_at, disk.dies = calls, dies
        try:
            run(log)
        except DiskError:
            stopped = True
        else:
            stopped = False
        if len(disk.calls) < calls:
            assert not stopped
            return found
        disk.stop_at = 0
        if not dies and log.failure is None:
            check_goes_on(log, run, states)
        log.abandon()
        found.add(check_image(inner, states, starts=starts))
        calls += 1


def check_goes_on(log: PartitionLog, run: Callable[[PartitionLog], None], states: States) -> None:
    """A log that is still in service after a failure reads right and can do it again."""
    assert batches_of(log) in states
    log.flush()
    if run is run_compaction:
        run(log)
        assert batches_of(log) == states[-1]


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "one-failure"])
def test_compaction_stopped_at_any_disk_call_leaves_old_or_new(dies: bool) -> None:
    states = states_of_compaction()
    found = check_stops(run_compaction, states, None, dies=dies)
    assert found >= set(range(len(states)))


@pytest.mark.parametrize("dies", [True, False], ids=["dies", "one-failure"])
def test_retention_stopped_at_any_disk_call_leaves_a_suffix(dies: bool) -> None:
    states = states_of_retention()
    starts = {0, states[-1][0].base_offset or 0}
    found = check_stops(run_retention, states, starts, dies=dies)
    assert {0, len(states) - 1} <= found


@pytest.mark.parametrize(
    ("run", "states"),
    [(run_compaction, states_of_compaction()), (run_retention, states_of_retention())],
    ids=["compaction", "retention"],
)
def test_power_cut_at_any_disk_call_leaves_old_or_new(
    run: Callable[[PartitionLog], None], states: States
) -> None:
    disk = CutDisk()
    log = make(disk)
    found = set()
    starts = None if run is run_compaction else {0, states[-1][0].base_offset or 0}

    seen = set()

    def check() -> None:
        for image in disk.images():
            files = frozenset(files_of(image).items())
            if files not in seen:
                seen.add(files)
                found.add(check_image(image, states, starts=starts))

    disk.watch = check
    run(log)
    check()
    assert {0, len(states) - 1} <= found
