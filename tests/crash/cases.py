"""The operations that are proved against crashes, each on a small prepared log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from sim.disks import ProcessKill, SimDisk
from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.errors import CorruptLog
from storage.mkb1 import MKB1
from tests.crash.case import DIRECTORY, Case, open_log
from tests.crash.history import History, append

__all__ = ["CONFIG", "LOG_CASES", "durable_and_cached", "killed", "live", "live_case"]

CONFIG = LogConfig(segment_max_bytes=400, index_interval_bytes=150)

Act = Callable[[PartitionLog, History], None]
Operate = Callable[[PartitionLog | None, History, SimDisk], None]


# Preparing -------------------------------------------------------------------------------------


def durable_and_cached(log: PartitionLog, history: History) -> PartitionLog:
    """Two segments of which a flush covers one and a half."""
    log.become_leader(1)
    for number in range(5):
        append(log, history, b"durable-%d" % number)
    log.flush()
    for number in range(3):
        append(log, history, b"cached-%d" % number)
    history.note_durable(log)
    return log


def closed(log: PartitionLog, history: History) -> PartitionLog:
    log = durable_and_cached(log, history)
    log.close()
    history.note_durable(log)
    return log


def above_zero(log: PartitionLog, history: History) -> PartitionLog:
    """A log of two segments whose first one is not at offset 0."""
    log.truncate_fully_and_start_at(100)
    history.starts = {100}
    for number in range(4):
        append(log, history, b"above-%d" % number)
    log.flush()
    history.note_durable(log)
    return log


def killed(log: PartitionLog, history: History) -> PartitionLog:
    log = durable_and_cached(log, history)
    log.abandon()
    return log


# On a live log ---------------------------------------------------------------------------------


def do_append(log: PartitionLog, history: History) -> None:
    append(log, history, b"new-a", b"new-b")


def do_append_large(log: PartitionLog, history: History) -> None:
    """A frame over several sectors, so that it can be torn at their borders."""
    append(log, history, b"L" * 1_500)
    append(log, history, b"M" * 700)


def do_append_in_new_epoch(log: PartitionLog, history: History) -> None:
    log.become_leader(4)
    append(log, history, b"epoch-4")


def do_append_with_rolls(log: PartitionLog, history: History) -> None:
    for number in range(4):
        append(log, history, b"rolling-%d" % number)
        history.note_durable(log)


def do_replicate(log: PartitionLog, history: History) -> None:
    """A run of frames over two epochs and a roll, as a follower gets it."""
    data = b""
    for offset, epoch in enumerate((1, 3, 3, 5), log.leo):
        value = b"replica-%d" % offset
        history.written.setdefault(offset, set()).add((value, epoch))
        batch = RecordBatch.unassigned([Record(None, value, 2_000)])
        data += MKB1.encode(batch, offset, epoch, 1 << 20)[0]
    log.append_replica_batch(data)
    history.note_durable(log)


def do_roll(log: PartitionLog, history: History) -> None:
    log.roll()
    history.note_durable(log)


def do_flush(log: PartitionLog, history: History) -> None:
    log.flush()
    history.note_durable(log)
    append(log, history, b"behind the flush")


def do_flush_in_two_calls(log: PartitionLog, history: History) -> None:
    token = log.begin_flush()
    append(log, history, b"between the calls")
    log.complete_flush(token)
    log.run_pending()
    history.note_durable(log)


def do_truncate_during_flush(log: PartitionLog, history: History) -> None:
    token = log.begin_flush()
    do_truncate(log, history, 6)
    log.complete_flush(token)
    log.run_pending()
    history.note_durable(log)


def do_roll_behind_a_cut_that_a_flush_precedes(log: PartitionLog, history: History) -> None:
    """What the flush makes durable has been cut by then, and the cut is not durable."""
    log._runs_pending = False
    append(log, history, b"cut", b"cut too")
    append(log, history, b"cut as well")
    token = log.begin_flush()
    target = log.leo - 3
    history.note_cut(target)
    log.truncate_to(target)
    log.complete_flush(token)
    append(log, history, b"instead")
    log.roll()
    append(log, history, b"rolled")


def do_truncate(log: PartitionLog, history: History, target: int) -> None:
    history.note_cut(target)
    log.truncate_to(target)
    append(log, history, b"other-%d" % target)
    append(log, history, b"more-%d" % target, b"and-more")


def do_truncate_and_overrun(log: PartitionLog, history: History) -> None:
    """What follows reaches over the border of a segment that went."""
    history.note_cut(2)
    log.truncate_to(2)
    append(log, history, b"1", b"2", b"3")
    append(log, history, b"4")


def do_truncate_and_roll(log: PartitionLog, history: History) -> None:
    """A segment begins inside the range that was cut."""
    history.note_cut(2)
    log.truncate_to(2)
    log.roll()
    append(log, history, b"rolled")
    append(log, history, b"rolled on")


def do_truncate_and_lead(log: PartitionLog, history: History) -> None:
    history.note_cut(4)
    log.truncate_to(4)
    log.become_leader(2)
    append(log, history, b"divergent")
    log.flush()
    history.note_durable(log)


def do_truncate_to_epoch_end(log: PartitionLog, history: History) -> None:
    """An epoch's records go, and records of the epoch before come in their place (hazard B-H1)."""
    append(log, history, b"epoch-1")
    log.become_leader(5)
    append(log, history, b"tail of 5")
    log.flush()
    history.note_durable(log)
    target = log.leo - 1
    history.note_cut(target)
    log.truncate_to(target)
    for offset in (target, target + 1):
        history.written.setdefault(offset, set()).add((b"again", 1))
        batch = RecordBatch.unassigned([Record(None, b"again", 3_000)])
        log.append_replica_batch(MKB1.encode(batch, offset, 1, 1 << 20)[0])


def do_truncate_to_epoch_end_with_work_pending(log: PartitionLog, history: History) -> None:
    """The same while the epoch file lags behind, as a broker's may."""
    log._runs_pending = False
    do_truncate_to_epoch_end(log, history)
    log.run_pending()


def do_roll_and_flush_with_work_pending(log: PartitionLog, history: History) -> None:
    """The flush is the first to sync the new segment's name."""
    log._runs_pending = False
    log.roll()
    append(log, history, b"in a new segment")
    log.flush()
    history.note_durable(log)
    log.run_pending()


def do_truncate_fully(log: PartitionLog, history: History) -> None:
    history.note_cut(0)
    history.starts.add(100)
    log.truncate_fully_and_start_at(100)
    history.starts = {100}
    append(log, history, b"at-100")
    log.flush()
    history.note_durable(log)


def do_truncate_below_the_first_segment(log: PartitionLog, history: History) -> None:
    history.note_cut(0)
    history.starts.add(40)
    log.truncate_to(40)
    history.starts = {40}
    append(log, history, b"at-40")
    log.flush()
    history.note_durable(log)


def do_raise_log_start(log: PartitionLog, history: History) -> None:
    history.starts.add(3)
    log.raise_log_start_offset(3)
    history.starts = {3}
    append(log, history, b"after-start")


def do_close(log: PartitionLog, history: History) -> None:
    log.close()
    history.note_durable(log)


# From the disk ---------------------------------------------------------------------------------


def do_open(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    log = open_log(disk, CONFIG)
    append(log, history, b"reopened")
    log.close()
    history.note_durable(log)


def do_open_and_rewrite(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    """The clean close's seal fits what is written in place of the tail, in size and end."""
    log = open_log(disk, CONFIG)
    history.note_cut(5)
    log.truncate_to(5)
    for number in range(3):
        append(log, history, b"CACHED-%d" % number)


def do_open_torn(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    """The process died in the middle of a write, so opening has a tail to cut."""
    newest = [name for name in disk.listdir(DIRECTORY) if name.endswith(".log")][-1]
    file = disk.open(DIRECTORY / newest)
    file.append(b"MKB1\x00\x00\x00\x60torn")
    file.close()
    do_open(None, history, disk)


def do_open_after_kill_in_truncation(
    log: PartitionLog | None, history: History, disk: SimDisk, *, at: int
) -> None:
    """The process dies inside a truncation, the next one appends where the tail was."""
    assert log is not None
    history.note_cut(2)
    disk.arm_fuse(at, kills=True)
    try:
        log.truncate_to(2)
    except ProcessKill:
        log = open_log(disk, CONFIG)
    history.note_cut(log.boundary.end_offset)
    for number in range(3):
        append(log, history, b"%d" % number, b"x", b"y")


def do_roll_after_kill_in_truncation(
    log: PartitionLog | None, history: History, disk: SimDisk
) -> None:
    """A segment begins inside the range that a process cut before it died."""
    assert log is not None
    history.note_cut(2)
    disk.arm_fuse(17, kills=True)
    try:
        log.truncate_to(2)
    except ProcessKill:
        log = open_log(disk, CONFIG)
    log.roll()
    append(log, history, b"rolled")


def do_overwrite_after_kill_and_close(
    log: PartitionLog | None, history: History, disk: SimDisk
) -> None:
    """A process cut the log and died; the next one closed cleanly, the third one goes on.

    Without timestamps a roll writes nothing to the old segment that its flush would sync.
    """
    assert log is not None
    history.note_cut(2)
    log.truncate_to(2)
    disk.kill()
    open_log(disk, CONFIG).close()
    log = open_log(disk, CONFIG)
    log.roll()
    append(log, history, b"over what was cut", time_ms=-1)
    log.flush()
    history.note_durable(log)
    append(log, history, b"behind the flush", time_ms=-1)


def untimed(log: PartitionLog, history: History) -> PartitionLog:
    for number in range(4):
        append(log, history, b"untimed-%d" % number, time_ms=-1)
    log.flush()
    history.note_durable(log)
    return log


def do_salvage(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    """A durable batch rots; the log is opened, refuses, and is salvaged up to there."""
    first = next(name for name in disk.listdir(DIRECTORY) if name.endswith(".log"))
    history.note_cut(1)
    history.refuses = True
    disk.flip_bit(DIRECTORY / first, 150)
    try:
        open_log(disk, CONFIG).abandon()
    except CorruptLog as error:
        log = PartitionLog.salvage(DIRECTORY, error, CONFIG, disk=disk)
        history.refuses = False
        append(log, history, b"salvaged")


def live(act: Act) -> Operate:
    def operate(log: PartitionLog | None, history: History, _: SimDisk) -> None:
        assert log is not None
        act(log, history)

    return operate


def live_case(name: str, act: Act) -> Case:
    return Case(name, durable_and_cached, live(act), CONFIG)


LOG_CASES = [
    live_case("append", do_append),
    live_case("append large frames", do_append_large),
    live_case("append in a new epoch", do_append_in_new_epoch),
    live_case("append with rolls", do_append_with_rolls),
    live_case("replicate a run", do_replicate),
    live_case("roll", do_roll),
    live_case("flush", do_flush),
    live_case("flush in two calls", do_flush_in_two_calls),
    live_case("truncate during a flush", do_truncate_during_flush),
    live_case("roll behind a cut in a flush", do_roll_behind_a_cut_that_a_flush_precedes),
    live_case("truncate cached records", partial(do_truncate, target=6)),
    live_case("truncate durable records", partial(do_truncate, target=3)),
    live_case("truncate to the first offset", partial(do_truncate, target=0)),
    live_case("truncate and overrun a border", do_truncate_and_overrun),
    live_case("truncate and roll", do_truncate_and_roll),
    live_case("truncate and lead anew", do_truncate_and_lead),
    live_case("truncate an epoch away", do_truncate_to_epoch_end),
    live_case("truncate an epoch away, work pending", do_truncate_to_epoch_end_with_work_pending),
    live_case("roll and flush, work pending", do_roll_and_flush_with_work_pending),
    live_case("truncate fully", do_truncate_fully),
    Case(
        "truncate below the first segment",
        above_zero,
        live(do_truncate_below_the_first_segment),
        CONFIG,
    ),
    live_case("raise the log start", do_raise_log_start),
    live_case("close", do_close),
    Case("open after a close", closed, do_open, CONFIG, opens=True),
    Case("open after a close, rewrite", closed, do_open_and_rewrite, CONFIG, opens=True),
    Case("open after a kill", killed, do_open, CONFIG, opens=True),
    Case("open with a torn tail", killed, do_open_torn, CONFIG, opens=True),
    Case("salvage", closed, do_salvage, CONFIG, opens=True),
    *(
        Case(
            f"truncate, killed at call {at}",
            durable_and_cached,
            partial(do_open_after_kill_in_truncation, at=at),
            CONFIG,
        )
        for at in (8, 13, 17)
    ),
    Case(
        "truncate, killed, then roll", durable_and_cached, do_roll_after_kill_in_truncation, CONFIG
    ),
    Case("truncate, killed, closed, then roll", untimed, do_overwrite_after_kill_and_close, CONFIG),
]
