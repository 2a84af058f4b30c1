"""Retention, compaction and a raised log start, proved against crashes."""

from __future__ import annotations

from functools import partial

from sim.disks import ProcessKill, SimDisk
from storage import CompactionPolicy, PartitionLog, compact
from storage.compaction import Compaction
from tests.crash import cases
from tests.crash.case import LARGE, Case, open_log
from tests.crash.cases import CONFIG, Act, durable_and_cached, live
from tests.crash.history import History, append

__all__ = ["CLEANING_CASES", "keyed", "run_compaction"]

NOW_MS = 5_000
POLICY = CompactionPolicy(delete_retention_ms=100)

# Preparing -------------------------------------------------------------------------------------


def aged(log: PartitionLog, history: History) -> PartitionLog:
    """Four closed segments, two of them of another epoch, and an active one; a tail is cached."""
    log.become_leader(1)
    for number in range(8):
        if number == 4:
            log.become_leader(2)
        append(log, history, b"old-%d" % number, time_ms=1_000 * number)
        if number % 2:
            log.roll()
    append(log, history, b"durable")
    log.flush()
    history.note_durable(log)
    append(log, history, b"cached")
    return log


def keyed(log: PartitionLog, history: History) -> PartitionLog:
    """Four closed segments, two of which fit into one, and an active one; a tail is cached.

    Of the key ``gone`` the tombstone at 5 may go, with the value at 2 in another file.
    """
    log.become_leader(1)
    for number, (key, value) in enumerate(
        (
            (b"a", b"a-0"),
            (b"b", b"b-1"),
            (b"gone", b"gone-2"),
            (b"a", b"a-3"),
            (b"c", b"c-4"),
            (b"gone", None),
            (b"b", b"b-6"),
            (b"c", b"c-7"),
        )
    ):
        append(log, history, value, key=key, time_ms=1_000)
        if number % 2:
            log.roll()
    append(log, history, b"a-8", key=b"a", time_ms=1_000)
    log.flush()
    history.note_durable(log)
    append(log, history, b"c-9", key=b"c", time_ms=1_000)
    return log


def killed_in_swap(log: PartitionLog, history: History, *, at: int) -> PartitionLog:
    """The process dies in the first swap of a compaction, behind so many of its disk calls."""
    keyed(log, history)
    history.note_compaction(log, 8, now_ms=NOW_MS, policy=POLICY)
    compaction = Compaction(log, log.leo, now_ms=NOW_MS, policy=POLICY)
    while compaction.next_step != "swap":
        compaction.step()
    disk = log._disk
    assert isinstance(disk, SimDisk)
    disk.arm_fuse(at, kills=True)
    try:
        compaction.step()
    except ProcessKill:
        return log
    raise AssertionError(f"a swap has less than {at} disk calls")


# Retention -------------------------------------------------------------------------------------


def do_delete_by_bytes(log: PartitionLog, history: History) -> None:
    history.note_taking(log)
    history.starts.add(4)
    gone = log.delete_old_segments(log.leo, retention_bytes=500)
    assert [segment.base_offset for segment in gone] == [0, 2]
    history.starts = {4}
    append(log, history, b"behind retention")


def do_delete_by_time(log: PartitionLog, history: History) -> None:
    """The files are deleted, and the epoch file is cut, behind an append and a flush."""
    log._runs_pending = False
    history.note_taking(log)
    history.starts.add(6)
    gone = log.delete_old_segments(log.leo, retention_ms=1_500, now_ms=7_000)
    assert [segment.base_offset for segment in gone] == [0, 2, 4]
    history.starts = {6}
    append(log, history, b"meanwhile")
    log.flush()
    history.note_durable(log)
    log.run_pending()


def do_delete_below_a_raised_start(log: PartitionLog, history: History) -> None:
    """The raised start has not been written yet when the files go."""
    log._runs_pending = False
    history.note_taking(log)
    history.starts.add(5)
    log.raise_log_start_offset(5)
    gone = log.delete_old_segments(log.leo)
    assert [segment.base_offset for segment in gone] == [0, 2]
    history.starts = {5}
    log.run_pending()


def do_raise_log_start_above_the_durable_end(log: PartitionLog, history: History) -> None:
    history.starts.add(7)
    log.raise_log_start_offset(7)
    history.starts = {7}
    history.note_durable(log)
    append(log, history, b"after-start")


def do_raise_log_start_in_a_new_epoch(log: PartitionLog, history: History) -> None:
    """The epoch file is written for a new epoch while the raised start is not durable."""
    log._runs_pending = False
    history.starts.add(7)
    log.raise_log_start_offset(7)
    log.become_leader(4)
    append(log, history, b"epoch-4")
    log.run_pending()
    history.starts = {7}
    history.note_durable(log)


# Compaction ------------------------------------------------------------------------------------


def run_compaction(log: PartitionLog, history: History) -> None:
    history.note_compaction(log, 8, now_ms=NOW_MS, policy=POLICY)
    result = compact(log, log.leo, now_ms=NOW_MS, policy=POLICY)
    assert (result.segments_before, result.segments_after) == (4, 2)
    history.note_compacted(log)
    assert {offset for offset, _ in history.gone} == {0, 1, 2, 4, 5}


def do_compact(log: PartitionLog, history: History) -> None:
    run_compaction(log, history)
    append(log, history, b"d-10", key=b"d")


def do_compact_with_work_pending(log: PartitionLog, history: History) -> None:
    """The originals are there, under other names, when the log goes on and rolls."""
    log._runs_pending = False
    run_compaction(log, history)
    append(log, history, b"d-10", key=b"d")
    log.roll()
    log.flush()
    history.note_durable(log)
    log.run_pending()


def do_compact_and_truncate(log: PartitionLog, history: History, *, target: int) -> None:
    """What comes in place of the tail begins where compaction left no batch."""
    log._runs_pending = False
    run_compaction(log, history)
    assert target in history.holes
    history.note_cut(target)
    log.truncate_to(target)
    for number in range(3):
        append(log, history, b"other-%d" % number, key=b"other", offset=target + number)
    log.flush()
    history.note_durable(log)
    log.run_pending()


# From the disk ---------------------------------------------------------------------------------


def do_open_and_compact(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    """Opening finishes or drops what a swap left, and the next pass goes over it again."""
    log = open_log(disk, cases.CONFIG)
    compact(log, log.leo, now_ms=NOW_MS, policy=POLICY)
    history.note_compacted(log)
    append(log, history, b"d-10", key=b"d")


def aged_case(name: str, act: Act) -> Case:
    return Case(name, aged, live(act), CONFIG)


def keyed_case(name: str, act: Act) -> Case:
    return Case(name, keyed, live(act), CONFIG, one_in=LARGE)


CLEANING_CASES = [
    aged_case("retention by bytes", do_delete_by_bytes),
    aged_case("retention by time, work pending", do_delete_by_time),
    aged_case("retention below a raised log start", do_delete_below_a_raised_start),
    Case(
        "raise the log start above the durable end",
        durable_and_cached,
        live(do_raise_log_start_above_the_durable_end),
        CONFIG,
    ),
    Case(
        "raise the log start, lead anew, work pending",
        durable_and_cached,
        live(do_raise_log_start_in_a_new_epoch),
        CONFIG,
    ),
    keyed_case("compact", do_compact),
    keyed_case("compact, work pending", do_compact_with_work_pending),
    keyed_case("compact, truncate to a hole", partial(do_compact_and_truncate, target=4)),
    keyed_case("compact, truncate into a hole", partial(do_compact_and_truncate, target=2)),
    *(
        Case(
            f"open after a kill in a swap at call {at}",
            partial(killed_in_swap, at=at),
            do_open_and_compact,
            CONFIG,
            opens=True,
            one_in=LARGE,
        )
        for at in (10, 20)
    ),
]
