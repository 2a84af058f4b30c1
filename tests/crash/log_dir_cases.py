"""What a broker's directory keeps for all its logs, proved against crashes.

There are two logs; the operations are on ``orders-0``, and ``other-0`` must not notice.
"""

from __future__ import annotations

from pathlib import Path

from sim.disks import SimDisk
from storage import LogConfig, PartitionLog
from storage.checkpoints import read_entries
from storage.errors import CorruptCheckpoint
from storage.log_dir import RECOVERY_POINT_FILE, LogDir, TopicPartition
from storage.recovery import Verify
from tests.crash import cases
from tests.crash.case import LARGE, Case
from tests.crash.cases import CONFIG, Act, durable_and_cached, live
from tests.crash.cleaning_cases import keyed, run_compaction
from tests.crash.history import History, append

__all__ = ["LOG_DIR_CASES"]

PATH = Path("data")
ORDERS, OTHER = TopicPartition("orders", 0), TopicPartition("other", 0)
HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS = "high watermarks", "log starts", "recovery points"
MARKER, AT_THE_MARKER = "broker epoch of the marker", "what the marker follows"
EPOCH = 7

Offsets = tuple[int | None, int | None]
"""Of ``orders-0`` and of ``other-0``."""


def open_member(disk: SimDisk, config: LogConfig, verify: Verify) -> PartitionLog:
    """``orders-0`` of a directory whose other log is open too."""
    log_dir = LogDir.open(PATH, disk=disk, rules=config.rules)
    log_dir.open_log(*OTHER, config, verify=verify)
    return log_dir.open_log(*ORDERS, config, verify=verify)


def directory_of(log: PartitionLog) -> LogDir:
    log_dir = log._store._log_dir  # type: ignore[attr-defined]
    assert isinstance(log_dir, LogDir)
    return log_dir


def files_of(log: PartitionLog) -> dict[str, object]:
    """What the directory's files say, as far as ``History.files`` knows of them."""
    log_dir = directory_of(log)
    points = read_entries(log_dir._disk, PATH / RECOVERY_POINT_FILE, fields=3) or []
    found = {TopicPartition(topic, int(number)): int(end) for topic, number, end in points}
    return {
        HIGH_WATERMARKS: pair_of(dict(log_dir.high_watermarks)),
        LOG_STARTS: pair_of(log_dir._log_starts),
        RECOVERY_POINTS: pair_of(found),
        MARKER: log_dir.previous_broker_epoch,
    }


def pair_of(offsets: dict[TopicPartition, int]) -> Offsets:
    return offsets.get(ORDERS), offsets.get(OTHER)


def check(log: PartitionLog, history: History) -> str | None:
    """Each file says what it said before or what was being written, and each can be read."""
    log_dir = directory_of(log)
    if log_dir.warnings:
        return f"a file of the directory cannot be read: {log_dir.warnings}"
    try:
        found = files_of(log)
    except CorruptCheckpoint as error:
        return f"a file of the directory cannot be read: {error}"
    for name, allowed in history.files.items():
        if name != AT_THE_MARKER and found[name] not in allowed:
            return f"{name}: {found[name]}, allowed is one of {sorted(allowed, key=str)}"
    if found[MARKER] is not None:
        seen = (found[LOG_STARTS], found[RECOVERY_POINTS], log.leo)
        if seen not in history.files[AT_THE_MARKER]:
            return f"{seen} with a marker, which follows {history.files[AT_THE_MARKER]}"
        if not log.report.is_clean:
            return "not clean with a marker"
    other = log_dir.logs[OTHER]
    if [record.value for record in other.fetch(0, 100)] != [b"other"]:
        return "the other log has changed"
    return None


# Preparing -------------------------------------------------------------------------------------


def hosted(log: PartitionLog, history: History) -> PartitionLog:
    """Both logs, and every checkpoint written once."""
    log_dir = directory_of(log)
    durable_and_cached(log, history)
    other = log_dir.logs[OTHER]
    append(other, History(), b"other")
    other.flush()
    write_all(log, history, {ORDERS: 4, OTHER: 1})
    history.settle(MARKER, None)
    return log


def with_log_start(log: PartitionLog, history: History) -> PartitionLog:
    hosted(log, history)
    log.raise_log_start_offset(5)
    history.starts = {5}
    write_all(log, history, {ORDERS: 5})
    return log


def with_cleaned_offset(log: PartitionLog, history: History) -> PartitionLog:
    other = directory_of(log).logs[OTHER]
    append(other, History(), b"other")
    other.flush()
    keyed(log, history)
    run_compaction(log, history)
    assert log.cleaned_offset == 8
    return log


def closed(log: PartitionLog, history: History) -> PartitionLog:
    hosted(log, history)
    directory_of(log).close(broker_epoch=EPOCH)
    history.note_durable(log)
    note_closed(history)
    # Opening takes the marker away, and a crash may keep it until then.
    history.files[MARKER] = {None, EPOCH}
    return log


def note_closed(history: History) -> None:
    """The files that closing writes, with the end of the log then."""
    closed_with: tuple[Offsets, Offsets, int] = ((0, 0), (8, 1), 8)
    history.allow(LOG_STARTS, closed_with[0])
    history.allow(RECOVERY_POINTS, closed_with[1])
    history.allow(AT_THE_MARKER, closed_with)
    history.allow(MARKER, EPOCH)


def write_all(
    log: PartitionLog, history: History, high_watermarks: dict[TopicPartition, int]
) -> None:
    """Write the checkpoints one by one; each is durable when its call returns."""
    log_dir = directory_of(log)
    after = {**log_dir.high_watermarks, **high_watermarks}
    history.allow(HIGH_WATERMARKS, pair_of(after))
    log_dir.write_high_watermarks(high_watermarks)
    history.settle(HIGH_WATERMARKS, pair_of(after))
    ends = (log.boundary.end_offset, 1)
    history.allow(RECOVERY_POINTS, ends)
    log_dir.write_recovery_points()
    history.settle(RECOVERY_POINTS, ends)
    starts = (log.log_start_offset, 0)
    history.allow(LOG_STARTS, starts)
    log_dir.write_log_starts()
    history.settle(LOG_STARTS, starts)


# The operations --------------------------------------------------------------------------------


def do_write_checkpoints(log: PartitionLog, history: History) -> None:
    log.flush()
    history.note_durable(log)
    history.starts.add(3)
    log.raise_log_start_offset(3)
    history.starts = {3}
    write_all(log, history, {ORDERS: 7})
    append(log, history, b"behind the checkpoints")
    write_all(log, history, {OTHER: 2})


def do_close(log: PartitionLog, history: History) -> None:
    note_closed(history)
    directory_of(log).close(broker_epoch=EPOCH)
    history.note_durable(log)
    history.settle(MARKER, EPOCH)


def do_truncate_below_the_log_start(log: PartitionLog, history: History) -> None:
    """The log start is in two files, and neither may be left above the log's end."""
    history.note_cut(4)
    history.starts.add(4)
    history.allow(LOG_STARTS, (4, 0))
    log.truncate_to(4)
    history.starts = {4}
    history.settle(LOG_STARTS, (4, 0))
    append(log, history, b"other-4")
    append(log, history, b"other-5")
    log.flush()
    history.note_durable(log)


def do_truncate_what_is_cleaned(log: PartitionLog, history: History) -> None:
    """Records that no compaction has seen come where one has been (KAFKA-3330)."""
    history.note_cut(3)
    history.cleaned = 8
    log.truncate_to(3)
    history.cleaned = 3
    for number in range(3):
        append(log, history, b"again-%d" % number, key=b"a")
    log.flush()
    history.note_durable(log)


def do_open_and_rewrite(_: PartitionLog | None, history: History, disk: SimDisk) -> None:
    """The seal in the marker fits what is written in place of the tail, in size and end."""
    log = open_member(disk, cases.CONFIG, "all")
    history.settle(MARKER, None)
    history.note_cut(5)
    log.truncate_to(5)
    for number in range(3):
        append(log, history, b"CACHED-%d" % number)


def member_case(name: str, act: Act) -> Case:
    return Case(name, hosted, live(act), CONFIG, open=open_member, check=check)


LOG_DIR_CASES = [
    member_case("write a broker's checkpoints", do_write_checkpoints),
    member_case("close a broker's directory", do_close),
    Case(
        "open a broker's directory, rewrite",
        closed,
        do_open_and_rewrite,
        CONFIG,
        opens=True,
        open=open_member,
        check=check,
    ),
    Case(
        "truncate below a checkpointed log start",
        with_log_start,
        live(do_truncate_below_the_log_start),
        CONFIG,
        open=open_member,
        check=check,
    ),
    Case(
        "truncate below the cleaned offset",
        with_cleaned_offset,
        live(do_truncate_what_is_cleaned),
        CONFIG,
        one_in=LARGE,
        open=open_member,
        check=check,
    ),
]
