"""Logs with idempotent producers and their snapshots, proved against crashes.

``tests.crash.judge`` holds what a reopened log knows of its producers against a replay.
"""

from __future__ import annotations

from functools import partial

from sim.disks import SimDisk
from storage import CompactionPolicy, PartitionLog, compact
from storage.producer_snapshots import SNAPSHOT_SUFFIX
from tests.crash import cases
from tests.crash.case import DIRECTORY, LARGE, Case, open_log
from tests.crash.cases import CONFIG, Act, live
from tests.crash.history import History, append

__all__ = ["PRODUCER_CASES"]

POLICY = CompactionPolicy()
FIRST, SECOND, THIRD = 7, 8, 9
"""Ids of producers."""


def produce(
    log: PartitionLog,
    history: History,
    producer_id: int,
    *values: bytes,
    key: bytes | None = None,
) -> None:
    """A batch with the sequence that is due; the sequences of a new producer begin at 40."""
    entry = log.producers.get(producer_id)
    sequence = 40 if entry is None else entry.next_sequence
    append(log, history, *values, key=key, producer=(producer_id, sequence))


# Preparing -------------------------------------------------------------------------------------


def produced(log: PartitionLog, history: History) -> PartitionLog:
    """Two producers over two closed segments, each with a snapshot behind it, and an active one.

    The first batch is nobody's.
    """
    log.become_leader(1)
    append(log, history, b"of no producer")
    for number in range(3):
        produce(log, history, FIRST, b"first-%d" % number)
        produce(log, history, SECOND, b"second-%d" % number)
        if number < 2:
            log.roll()
    log.flush()
    history.note_durable(log)
    produce(log, history, FIRST, b"cached", b"cached too")
    append(log, history, b"plain")
    return log


def keyed(log: PartitionLog, history: History) -> PartitionLog:
    """Three closed segments; a later batch displaces all but the newest of each producer."""
    log.become_leader(1)
    for producer_id, key in (
        (FIRST, b"a"),
        (FIRST, b"a"),
        (SECOND, b"b"),
        (FIRST, b"a"),
        (THIRD, b"a"),
        (THIRD, b"b"),
    ):
        produce(log, history, producer_id, b"%d" % log.leo, key=key)
        if log.leo % 2 == 0:
            log.roll()
    produce(log, history, THIRD, b"active")
    log.flush()
    history.note_durable(log)
    return log


def closed(log: PartitionLog, history: History) -> PartitionLog:
    produced(log, history).close()
    history.note_durable(log)
    return log


def reopened(log: PartitionLog, history: History) -> PartitionLog:
    """The snapshot of the clean close lies behind the middle of a segment."""
    closed(log, history)
    assert isinstance(log._disk, SimDisk)
    log = open_log(log._disk, cases.CONFIG)
    assert log._snapshots.offsets[-1] == log.leo
    return log


def killed(log: PartitionLog, history: History) -> PartitionLog:
    produced(log, history).abandon()
    return log


def without_snapshots(log: PartitionLog, history: History) -> PartitionLog:
    """A replay over more than the last segment is due: a snapshot follows the opening."""
    killed(log, history)
    assert isinstance(log._disk, SimDisk)
    remove_snapshots(log._disk)
    return log


def remove_snapshots(disk: SimDisk) -> None:
    for name in disk.listdir(DIRECTORY):
        if name.endswith(SNAPSHOT_SUFFIX):
            disk.unlink(DIRECTORY / name)
    disk.fsync_dir(DIRECTORY)


# On a live log ---------------------------------------------------------------------------------


def do_append_and_roll(log: PartitionLog, history: History) -> None:
    """A roll takes a snapshot, and its flush makes that durable and prunes the oldest."""
    produce(log, history, SECOND, b"second-3")
    produce(log, history, THIRD, b"third-0")
    log.roll()
    history.note_durable(log)
    produce(log, history, FIRST, b"first-4")


def do_roll_with_work_pending(log: PartitionLog, history: History) -> None:
    """The new segment has batches, and the snapshot below it is not durable."""
    log._runs_pending = False
    log.roll()
    produce(log, history, FIRST, b"first-4")
    produce(log, history, SECOND, b"second-3")
    log.run_pending()
    history.note_durable(log)


def do_truncate(log: PartitionLog, history: History, *, target: int) -> None:
    """Other batches of other sequences come in place of those that a snapshot knows."""
    history.note_cut(target)
    log.truncate_to(target)
    for number in range(10 - target):
        produce(log, history, THIRD, b"third-%d" % number)
    log.flush()
    history.note_durable(log)
    produce(log, history, FIRST, b"again")


def do_truncate_and_roll(log: PartitionLog, history: History) -> None:
    """A snapshot is made of what came in place of a tail whose cut is not durable."""
    log._runs_pending = False
    history.note_cut(7)
    log.truncate_to(7)
    produce(log, history, THIRD, b"third-0")
    log.roll()
    produce(log, history, THIRD, b"third-1")
    log.run_pending()


def do_truncate_fully(log: PartitionLog, history: History) -> None:
    """Nothing of the old producers is left, at offsets that the new log soon has again."""
    history.note_cut(0)
    history.starts.add(2)
    log.truncate_fully_and_start_at(2)
    history.starts = {2}
    for number in range(5):
        produce(log, history, THIRD, b"third-%d" % number)
    log.flush()
    history.note_durable(log)


def do_delete_old_segments(log: PartitionLog, history: History) -> None:
    """The snapshots know what is gone; without one the replay begins at what is left."""
    history.note_taking(log)
    history.starts.add(5)
    gone = log.delete_old_segments(log.leo, retention_bytes=0)
    assert [segment.base_offset for segment in gone] == [0, 3]
    history.starts = {5}
    produce(log, history, SECOND, b"second-3")


def do_compact(log: PartitionLog, history: History) -> None:
    """Of a producer's batches the newest stays, if only as an empty one."""
    history.note_compaction(log, 6, now_ms=5_000, policy=POLICY)
    result = compact(log, log.leo, now_ms=5_000, policy=POLICY)
    assert (result.segments_before, result.segments_after) == (2, 1)
    history.note_compacted(log)
    produce(log, history, SECOND, b"second-3")


def do_compact_and_lose_snapshots(
    log: PartitionLog | None, history: History, disk: SimDisk
) -> None:
    """The log alone has to know of each producer where it goes on."""
    assert log is not None
    do_compact(log, history)
    log.abandon()
    remove_snapshots(disk)
    produce(open_log(disk, cases.CONFIG), history, FIRST, b"goes on")


def do_close(log: PartitionLog, history: History) -> None:
    log.close()
    history.note_durable(log)


# From the disk ---------------------------------------------------------------------------------


def do_open(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    log = open_log(disk, cases.CONFIG)
    produce(log, history, SECOND, b"reopened")
    log.close()
    history.note_durable(log)


def producer_case(name: str, act: Act, *, one_in: int = 1) -> Case:
    return Case(name, produced, live(act), CONFIG, one_in=one_in)


PRODUCER_CASES = [
    producer_case("producers append and roll", do_append_and_roll),
    producer_case("producers roll, work pending", do_roll_with_work_pending),
    producer_case(
        "producers, truncate below a snapshot", partial(do_truncate, target=2), one_in=LARGE
    ),
    producer_case(
        "producers, truncate below the first of them", partial(do_truncate, target=1), one_in=LARGE
    ),
    producer_case("producers, truncate cached batches", partial(do_truncate, target=7)),
    Case(
        "producers, truncate behind a clean close",
        reopened,
        live(partial(do_truncate, target=7)),
        CONFIG,
    ),
    Case("producers, truncate and roll", reopened, live(do_truncate_and_roll), CONFIG),
    producer_case("producers, truncate fully", do_truncate_fully, one_in=LARGE),
    producer_case("producers, retention", do_delete_old_segments),
    Case("producers, compact", keyed, live(do_compact), CONFIG),
    Case("producers, compact, lose snapshots", keyed, do_compact_and_lose_snapshots, CONFIG),
    producer_case("producers close", do_close),
    Case("producers open after a close", closed, do_open, CONFIG, opens=True),
    Case("producers open after a kill", killed, do_open, CONFIG, opens=True),
    Case("producers open without snapshots", without_snapshots, do_open, CONFIG, opens=True),
]
