"""A log that a process has open is shown whatever that process does meanwhile.

In memory, every change a log can make is put before every single call that a dump makes. Such a
log is never damaged, so no dump may say so. On the real disk, another process appends, rolls and
truncates as fast as it can.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from storage import CompactionPolicy, PartitionLog, compact
from storage.disk import DiskFile, FileStat, LockState
from storage.memdisk import MemDisk
from tests.storage.dumping import (
    CONFIG,
    FLAGS,
    LOG,
    T0,
    as_json,
    batch,
    dump,
    fill,
    segments,
    sent,
)
from tests.storage.trees import content, put

ROOT = Path(__file__).parents[2]


class MovingDisk:
    """Does something before its ``at``-th call, from 1."""

    def __init__(self, inner: MemDisk, at: int, action: Callable[[], object]) -> None:
        self.inner = inner
        self.left = at
        self._action = action

    def tick(self) -> None:
        self.left -= 1
        if self.left == 0:
            self._action()

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        self.tick()
        return _MovingFile(self, self.inner.open(path, create=create, write=write))

    def stat(self, path: Path) -> FileStat:
        self.tick()
        return self.inner.stat(path)

    def listdir(self, path: Path) -> list[str]:
        self.tick()
        return self.inner.listdir(path)

    def lock_state(self, path: Path) -> LockState:
        return self.inner.lock_state(path)

    def __getattr__(self, operation: str) -> Any:
        raise AssertionError(operation)


class _MovingFile:
    def __init__(self, disk: MovingDisk, inner: DiskFile) -> None:
        self._disk = disk
        self._inner = inner
        self.path = inner.path

    def read_at(self, position: int, size_bytes: int) -> bytes:
        self._disk.tick()
        return self._inner.read_at(position, size_bytes)

    def read_into(self, position: int, buffer: memoryview) -> int:
        self._disk.tick()
        return self._inner.read_into(position, buffer)

    def size(self) -> int:
        self._disk.tick()
        return self._inner.size()

    def close(self) -> None:
        self._inner.close()

    def __getattr__(self, operation: str) -> Any:
        raise AssertionError(operation)


def append_in_new_epoch(log: PartitionLog) -> None:
    log.become_leader(log.epochs.latest + 1)
    log.append(batch(20))


def write_much(log: PartitionLog) -> None:
    for number in range(10, 22):
        log.append(batch(number, 2))
    log.flush()


def truncate_and_write(log: PartitionLog) -> None:
    log.truncate_to(4)
    write_much(log)


def compact_all(log: PartitionLog) -> None:
    for number in range(6):
        log.append(batch(number))
    log.roll()
    log.flush()
    before = sum(segment.size_bytes for segment in log.segments)
    compact(log, log.leo, now_ms=T0, policy=CompactionPolicy())
    assert sum(segment.size_bytes for segment in log.segments) < before


ACTIONS: dict[str, Callable[[PartitionLog], object]] = {
    "append": lambda log: log.append(batch(9)),
    "append in a new epoch": append_in_new_epoch,
    "append and flush, over several segments": write_much,
    "roll": lambda log: log.roll(),
    "flush": lambda log: log.flush(),
    "truncate the last batch": lambda log: log.truncate_to(10),
    "truncate two segments": lambda log: log.truncate_to(3),
    "truncate everything": lambda log: log.truncate_fully_and_start_at(50),
    "truncate and write something else": truncate_and_write,
    "raise the log start": lambda log: log.raise_log_start_offset(4),
    "delete old segments": lambda log: log.delete_old_segments(log.leo, retention_bytes=200),
    "compact": compact_all,
    "close": lambda log: log.close(),
}


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--records", "--json")], ids=["text", "records"])
@pytest.mark.parametrize("target", ["partition", "segment", "index"])
@pytest.mark.parametrize("name", ACTIONS)
def test_change_before_any_call_is_no_damage(name: str, target: str, form: tuple[str, ...]) -> None:
    at = 1
    while True:
        disk = MemDisk()
        disk.mkdir(Path("/data"))
        log = PartitionLog.open(LOG, CONFIG, disk=disk)
        fill(log)
        log.flush()
        path = {"partition": LOG, "segment": segments(disk)[-1]}.get(
            target, segments(disk, suffix=".index")[0]
        )
        moving = MovingDisk(disk, at, lambda log=log: ACTIONS[name](log))  # type: ignore[misc]
        ran = dump(moving, path, *FLAGS, *form)  # type: ignore[arg-type]
        if moving.left > 0:
            break
        if target == "partition":
            assert ran.status == 0, f"before call {at}: {ran.out}"
        else:
            # The file may be gone.
            is_gone = ran.status == 2 or "changed while it was read: open" in ran.out
            assert ran.status == 0 or is_gone, f"before call {at}: {ran.out} {ran.err}"
        log.abandon()
        at += 1
    assert at > 5


def send_more(log: PartitionLog) -> None:
    for sequence in range(log.producers[7].next_sequence, 20):
        log.append(sent(sequence, producer=7))


def truncate_and_send(log: PartitionLog) -> None:
    log.truncate_to(8)
    send_more(log)
    log.flush()


PRODUCER_ACTIONS: dict[str, Callable[[PartitionLog], object]] = {
    "send": send_more,
    "roll": lambda log: log.roll(),
    "flush": lambda log: log.flush(),
    "truncate the last batch": lambda log: log.truncate_to(11),
    "truncate two segments": lambda log: log.truncate_to(3),
    "truncate everything": lambda log: log.truncate_fully_and_start_at(50),
    "truncate and send again": truncate_and_send,
    "delete old segments": lambda log: log.delete_old_segments(log.leo, retention_bytes=200),
    "close": lambda log: log.close(),
}


@pytest.mark.slow
@pytest.mark.parametrize("is_snapshot", [False, True], ids=["partition", "snapshot"])
@pytest.mark.parametrize("name", PRODUCER_ACTIONS)
def test_change_of_producers_before_any_call_is_no_damage(name: str, is_snapshot: bool) -> None:
    at = 1
    while True:
        disk = MemDisk()
        disk.mkdir(Path("/data"))
        log = PartitionLog.open(LOG, CONFIG, disk=disk)
        for sequence in range(12):
            log.append(sent(sequence, producer=7))
        path = segments(disk, suffix=".snapshot")[-1] if is_snapshot else LOG
        moving = MovingDisk(disk, at, lambda log=log: PRODUCER_ACTIONS[name](log))  # type: ignore[misc]
        ran = dump(moving, path, *FLAGS)  # type: ignore[arg-type]
        if moving.left > 0:
            break
        is_gone = ran.status == 2 or "changed while it was read: open" in ran.out
        assert ran.status == 0 or (is_snapshot and is_gone), f"before call {at}: {ran.out}"
        log.abandon()
        at += 1
    assert at > 5


def test_open_log_says_so_and_an_unfinished_batch_is_no_damage() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, CONFIG, disk=disk)
    fill(log)
    for path in (LOG, segments(disk)[0]):
        ran = dump(disk, path, *FLAGS)
        assert ran.status == 0
        assert "in use" in ran.out
        assert "open by a process; what follows may have changed since" in ran.out
        assert as_json(disk, path, *FLAGS)["lock"] == {"is_held": True, "pid": None}
    last = segments(disk)[-1]
    put(disk, last, content(disk, last)[:-1])
    document = as_json(disk, LOG, *FLAGS)
    assert document["is_healthy"]
    assert document["segments"][-1]["damage"]["is_unfinished"]
    log.abandon()
    document = as_json(disk, LOG, *FLAGS)
    assert not document["is_healthy"]
    assert not document["segments"][-1]["damage"]["is_unfinished"]


def test_torn_batch_in_a_closed_segment_of_an_open_log_is_damage() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, CONFIG, disk=disk)
    fill(log)
    first = segments(disk)[0]
    put(disk, first, content(disk, first)[:-1])
    assert dump(disk, LOG, *FLAGS).status == 1
    log.abandon()


WRITER = """
import sys
from pathlib import Path
from storage import LogConfig, PartitionLog, Record, RecordBatch

log = PartitionLog.open(Path(sys.argv[1]), LogConfig(segment_max_bytes=20_000))
print("ready", flush=True)
number = 0
while True:
    number += 1
    if number % 50 == 0:
        log.become_leader(number)
    log.append(RecordBatch.unassigned([Record(b"k", b"v" * (number % 500), number)]))
    if number % 40 == 0:
        log.truncate_to(log.leo - 3)
    if log.leo > 2_000:
        log.truncate_to(100)
"""


@pytest.mark.slow
def test_log_that_another_process_writes(tmp_path: Path) -> None:
    if not Path("/proc/locks").is_file():
        pytest.skip("this system has no /proc/locks")
    directory = tmp_path / "orders-0"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(directory)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    ) as writer:
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
            for _ in range(20):
                document = as_json(None, directory)
                assert document["lock"] == {"is_held": True, "pid": writer.pid}
                assert document["exit_status"] in (0, 1)
                ran = dump(None, directory, "--records")
                assert f"open by process {writer.pid};" in ran.out
            assert writer.poll() is None, "the writer was not disturbed"
        finally:
            writer.kill()
    log = PartitionLog.open(directory, verify="all")
    assert dump(None, directory).status == 0
    log.close()
