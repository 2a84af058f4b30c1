"""The simulated disk is the same over every backing, and asks nothing of the host that may differ.

A long keyed history of calls, faults and power cuts has equal outcomes and digests in memory and on
real files, in the temporary folder and in shared memory (another file system) where there is one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from sim.disk_crash import Manifest
from sim.disk_faults import FAULT_KINDS, DiskFault
from sim.disk_handles import UNDO_LIMIT_BYTES
from sim.disk_names import NamesMode
from sim.disks import PowerCut, ProcessKill, SimDisk
from sim.draws import Draws
from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import Disk, DiskFile, OsDisk
from storage.errors import DiskError
from storage.memdisk import MemDisk
from tests.sim.disks import content, files

STEPS = 600
NAMES = ("a", "b", "d/a", "d/b", "e/a")
SHARED_MEMORY = Path("/dev/shm")


def folders() -> Iterator[Path]:
    """A folder on each file system at hand."""
    for parent in (None, SHARED_MEMORY):
        if parent is None or (parent.is_dir() and os.access(parent, os.W_OK)):
            with TemporaryDirectory(dir=parent) as folder:
                yield Path(folder)


class Life:
    """A history of one disk, every choice a draw; ``trace`` has what each step gave."""

    def __init__(self, backing: Disk, root: Path, seed: int, mode: NamesMode) -> None:
        self.draws = Draws(seed)
        self.disk = SimDisk(backing, root, self.draws, names_mode=mode, capacity_bytes=200_000)
        self.trace: list[tuple[object, ...]] = []

    def run(self, steps: int) -> list[tuple[object, ...]]:
        for number in range(steps):
            try:
                outcome = self.step(number)
            except DiskError as error:
                outcome = type(error).__name__, error.operation, str(error.path), error.errno_name
            except (PowerCut, ProcessKill) as end:
                outcome = type(end).__name__
                if isinstance(end, PowerCut):
                    outcome = self.disk.power_cut(noise=True)
            self.trace.append((number, outcome, self.disk.digest(), self.disk.pending_count))
        return self.trace

    def step(self, number: int) -> object:
        disk = self.disk

        def below(limit: int, what: str) -> int:
            return self.draws.below(limit, what, number)

        name = NAMES[below(len(NAMES), "name")]
        path, other = Path(name), Path(NAMES[below(len(NAMES), "other")])
        size = below(3_000, "size")
        data = self.draws.noise(size, "data", number)
        actions: list[Callable[[], object]] = [
            lambda: self.on_file(path, "append", data),
            lambda: self.on_file(path, "append", data),
            lambda: self.on_file(path, "write_at", below(9_000, "position"), data),
            lambda: self.on_file(path, "truncate", below(9_000, "cut")),
            lambda: self.on_file(path, "fsync"),
            lambda: self.on_file(path, "read_at", below(9_000, "position"), size),
            lambda: disk.rename(path, other),
            lambda: disk.unlink(path),
            lambda: disk.mkdir(path.parent),
            lambda: disk.rmdir(path.parent),
            lambda: disk.fsync_dir(path.parent),
            lambda: disk.listdir(path.parent),
            lambda: disk.write_back(share_ppm=400_000),
            disk.evict,
            disk.kill,
            lambda: disk.arm_fuse(1 + below(6, "fuse"), kills=below(3, "kills") == 0),
            lambda: disk.flip_bit(path, 0) if files(disk).get(name) else None,
            lambda: self.add_fault(number),
            lambda: disk.power_cut(),
        ]
        return actions[below(len(actions), "action")]()

    def on_file(self, path: Path, operation: str, *arguments: Any) -> object:
        file = self.disk.open(path, create=True)
        try:
            return getattr(file, operation)(*arguments)
        finally:
            file.close()

    def add_fault(self, number: int) -> None:
        kinds = list(FAULT_KINDS)
        kind = kinds[self.draws.below(len(kinds), "kind", number)]
        content = ("keep", "revert")[self.draws.below(2, "content", number)]
        fault = DiskFault(id=f"f{number}", kind=kind, partial_bytes=7, content=content)
        self.disk.faults.add(fault)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["posix", "ext4"])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_backing_gives_the_same_history(mode: NamesMode, seed: int) -> None:
    expected = Life(MemDisk(), Path("b1"), seed, mode).run(STEPS)
    for folder in folders():
        root = folder / "deep" / "b1"
        root.parent.mkdir()
        seen = Life(OsDisk(), root, seed, mode).run(STEPS)
        for one, two in zip(expected, seen, strict=True):
            assert one == two
    assert sum(isinstance(step[1], Manifest) for step in expected) > 10, "the power fails often"


def test_backing_shows_exactly_what_the_disk_shows(tmp_path: Path) -> None:
    """Plain files: recovery tools can read them at any time."""
    disk = SimDisk(OsDisk(), tmp_path / "b1", Draws(1))
    disk.mkdir(Path("d"))
    disk.open(Path("d/a"), create=True).append(b"abc")
    assert (tmp_path / "b1" / "d" / "a").read_bytes() == b"abc"
    disk.power_cut(mode="lost")
    assert list((tmp_path / "b1").iterdir()) == []
    assert list((tmp_path / "b1.inodes").iterdir()) == [], "nothing is left over"


# The host is never asked to sync ---------------------------------------------------------------


class _NoSync(OsDisk):
    """A backing on which any sync is an error."""

    def fsync_dir(self, path: Path) -> None:
        raise AssertionError("the backing's directory was synced")


def test_backing_is_never_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the host was asked to sync")

    for name in ("fsync", "fdatasync", "sync"):
        monkeypatch.setattr(os, name, refuse)
    with pytest.raises(AssertionError, match="asked to sync"):
        OsDisk().open(tmp_path / "x", create=True).fsync()
    disk = SimDisk(_NoSync(), tmp_path / "b1", Draws(1))
    log = PartitionLog.open(Path("orders-0"), LogConfig(segment_max_bytes=300), disk=disk)
    for number in range(20):
        log.append(RecordBatch.unassigned([Record(None, b"x%d" % number, number)]))
    log.flush()
    log.truncate_to(7)
    log.close()
    disk.power_cut()
    assert PartitionLog.open(Path("orders-0"), disk=disk).leo == 7


# Memory ----------------------------------------------------------------------------------------


def test_undo_memory_is_bounded_by_forced_write_back() -> None:
    disk = SimDisk(MemDisk(), Path("b1"), Draws(1))
    file = disk.open(Path("a"), create=True)
    block = bytes(4 << 20)
    state = next(iter(disk.inodes.values())).state
    for _ in range(40):
        file.write_at(0, block)
        assert state.undo_bytes <= UNDO_LIMIT_BYTES
    assert len(state.ops) < 40


def test_undo_memory_goes_with_a_sync() -> None:
    disk = SimDisk(MemDisk(), Path("b1"), Draws(1))
    file = disk.open(Path("a"), create=True)
    file.append(b"x" * 1_000)
    file.truncate(10)
    state = next(iter(disk.inodes.values())).state
    assert state.undo_bytes > 0
    file.fsync()
    assert (state.undo_bytes, state.ops) == (0, [])


# Processes -------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk(MemDisk(), Path("b1"), Draws(1), names_mode="posix")


def test_kill_keeps_everything_and_what_was_pending_stays_pending(disk: SimDisk) -> None:
    file = disk.open(Path("a"), create=True)
    file.append(b"abc")
    lock = disk.lock(Path("lock"))
    before, pending = disk.digest(), disk.pending_count
    disk.kill()
    assert (disk.digest(), disk.pending_count) == (before, pending)
    assert content(disk, "a") == b"abc"
    again = disk.lock(Path("lock"))
    lock.release()
    with pytest.raises(DiskError, match="EAGAIN"):
        disk.lock(Path("lock"))
    again.release()


def calls_of(file: DiskFile) -> list[Callable[[], object]]:
    return [
        lambda: file.read_at(0, 1),
        lambda: file.read_into(0, memoryview(bytearray(1))),
        lambda: file.write_at(0, b"x"),
        lambda: file.append(b"x"),
        lambda: file.truncate(0),
        file.size,
        file.begin_fsync,
        lambda: file.complete_fsync(1),
        file.fsync,
    ]


@pytest.mark.parametrize("ends", ["kill", "power_cut"])
def test_calls_of_a_dead_process_raise_and_change_nothing(disk: SimDisk, ends: str) -> None:
    file = disk.open(Path("a"), create=True)
    file.append(b"abc")
    file.fsync()
    disk.fsync_dir(Path())
    getattr(disk, ends)()
    before = disk.digest()
    for call in calls_of(file):
        with pytest.raises(PowerCut):
            call()
    file.close()
    assert disk.digest() == before
    assert disk.open(Path("a")).append(b"d") == 3


def test_no_call_gets_through_between_fuse_and_power(disk: SimDisk) -> None:
    file = disk.open(Path("a"), create=True)
    disk.arm_fuse(2)
    file.append(b"1")
    with pytest.raises(PowerCut):
        file.append(b"2")
    for call in (*calls_of(file), lambda: disk.listdir(Path()), lambda: disk.open(Path("a"))):
        with pytest.raises(PowerCut):
            call()
    disk.power_cut(mode="kept")
    assert content(disk, "a") == b"12"


def test_kill_fuse_lets_its_call_through_and_keeps_the_power_on(disk: SimDisk) -> None:
    file = disk.open(Path("a"), create=True)
    disk.arm_fuse(1, kills=True)
    with pytest.raises(ProcessKill):
        file.append(b"1")
    assert content(disk, "a") == b"1"


def test_disk_adopts_what_is_there_as_durable(tmp_path: Path) -> None:
    (tmp_path / "b1" / "d").mkdir(parents=True)
    (tmp_path / "b1" / "d" / "a").write_bytes(b"abc")
    disk = SimDisk(OsDisk(), tmp_path / "b1", Draws(1))
    assert not disk.power_cut(mode="lost").lost_anything
    assert files(disk) == {"d/a": b"abc"}


def test_file_without_a_name_lives_as_long_as_its_handle(disk: SimDisk) -> None:
    file = disk.open(Path("a"), create=True)
    file.append(b"abc")
    disk.unlink(Path("a"))
    disk.fsync_dir(Path())
    assert file.read_at(0, 9) == b"abc"
    file.close()
    assert not disk.inodes
