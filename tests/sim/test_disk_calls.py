"""What a simulated disk tells of its calls, and fuses that wait for calls of one kind."""

from __future__ import annotations

import copy
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.disk_faults import DiskFault
from sim.disk_fuses import OPERATIONS
from sim.disks import PowerCut, ProcessKill, SimDisk
from storage.disk import DiskFile
from storage.errors import DiskError, DiskFull, FsyncFailed
from tests.sim.disks import Bench, content

A, B, D = Path("a"), Path("b"), Path("d")
PAGE = 4_096

Told = list[tuple[str, str, int, int]]


class Ear:
    """Hears of calls and of strikes; a bound method, so that a copy has its own."""

    def __init__(self) -> None:
        self.calls: Told = []
        self.strikes: list[tuple[str, str, str]] = []

    def on_call(self, operation: str, path: Path, position: int, size_bytes: int) -> None:
        self.calls.append((operation, str(path), position, size_bytes))

    def on_strike(self, fault: DiskFault, operation: str, path: Path) -> None:
        self.strikes.append((fault.id, operation, str(path)))

    def take(self) -> Told:
        calls, self.calls = self.calls, []
        return calls


class Hall:
    """A disk with an ear, and a file of 8 durable bytes."""

    def __init__(self, **options: Any) -> None:
        self.disk: SimDisk = Bench("posix", **options).disk
        self.ear = Ear()
        self.disk.mkdir(D)
        self.file = self.disk.open(A, create=True)
        self.file.append(b"01234567")
        self.file.fsync()
        self.disk.fsync_dir(Path())
        self.disk.on_call = self.ear.on_call
        self.disk.on_strike = self.ear.on_strike

    def strike(self, kind: str, **more: Any) -> None:
        self.disk.faults.add(DiskFault(id="f1", kind=kind, **more))


@pytest.fixture
def hall() -> Hall:
    return Hall()


# What is told ----------------------------------------------------------------------------------


def all_calls(disk: SimDisk, file: DiskFile) -> dict[str, Callable[[], object]]:
    """One call of each operation, and ``fsync``; in this order each succeeds."""
    return {
        "open": lambda: disk.open(B, create=True),
        "read_at": lambda: file.read_at(6, 100),
        "read_into": lambda: file.read_into(5, memoryview(bytearray(2))),
        "write_at": lambda: file.write_at(6, b"xyz"),
        "append": lambda: file.append(b"8"),
        "truncate": lambda: file.truncate(3),
        "size": file.size,
        "stat": lambda: disk.stat(A),
        "listdir": lambda: disk.listdir(D),
        "mkdir": lambda: disk.mkdir(D / "e"),
        "rename": lambda: disk.rename(B, D / "b"),
        "unlink": lambda: disk.unlink(D / "b"),
        "rmdir": lambda: disk.rmdir(D / "e"),
        "lock": lambda: disk.lock(D / "lock"),
        "fsync_dir": lambda: disk.fsync_dir(D),
        "begin_fsync": file.begin_fsync,
        "complete_fsync": lambda: file.complete_fsync(disk.serial),
        "fsync": file.fsync,
    }


EXPECTED: Told = [
    ("open", "b", 0, 0),
    ("read_at", "a", 6, 2),
    ("read_into", "a", 5, 2),
    ("write_at", "a", 6, 3),
    ("append", "a", 9, 1),
    ("truncate", "a", 3, 7),
    ("size", "a", 0, 3),
    ("stat", "a", 0, 0),
    ("listdir", "d", 0, 0),
    ("mkdir", "d/e", 0, 0),
    ("rename", "b", 0, 0),
    ("unlink", "d/b", 0, 0),
    ("rmdir", "d/e", 0, 0),
    ("lock", "d/lock", 0, 0),
    ("fsync_dir", "d", 0, 0),
    ("begin_fsync", "a", 0, 0),
    ("complete_fsync", "a", 0, 0),
    ("fsync", "a", 0, 0),
]


def test_every_call_is_told_of_once(hall: Hall) -> None:
    calls = all_calls(hall.disk, hall.file)
    assert {*calls} == {*OPERATIONS, "fsync"}
    for call in calls.values():
        call()
    assert hall.ear.take() == EXPECTED


def test_a_call_that_fails_is_not_told_of(hall: Hall) -> None:
    disk = hall.disk
    closed = disk.open(A, write=False)
    closed.close()
    hall.ear.take()
    for call in (
        lambda: disk.open(B),
        lambda: disk.open(D),
        lambda: disk.stat(A / "x"),
        lambda: disk.listdir(B),
        lambda: disk.mkdir(D),
        lambda: disk.rename(B, A),
        lambda: disk.unlink(B),
        lambda: disk.rmdir(B),
        lambda: disk.fsync_dir(B),
        lambda: closed.read_at(0, 1),
        lambda: hall.file.read_at(-1, 1),
        lambda: hall.file.truncate(-1),
        lambda: disk.open(A, write=False).append(b"x"),
    ):
        with pytest.raises(DiskError):
            call()
    assert [told for told in hall.ear.take() if told[0] != "open"] == []


def test_a_fault_that_fails_a_call_is_heard_instead_of_it(hall: Hall) -> None:
    for operation, call in all_calls(hall.disk, hall.file).items():
        if operation in ("begin_fsync", "fsync"):
            continue
        kind = "fsync-fail" if operation == "complete_fsync" else "error"
        hall.strike(kind, operation=operation)
        with pytest.raises(DiskError):
            call()
        call()
    assert hall.ear.take() == EXPECTED[:15] + EXPECTED[16:17]
    paths = {told[0]: told[1] for told in EXPECTED}
    assert hall.ear.strikes == [
        ("f1", name, paths[name]) for name in paths if name not in ("begin_fsync", "fsync")
    ]


def test_a_sync_tells_which_bytes_it_made_durable(hall: Hall) -> None:
    file = hall.file
    file.append(b"89")
    file.write_at(2, b"x")
    token = file.begin_fsync()
    file.append(b"later")
    file.complete_fsync(token)
    file.fsync()
    file.fsync()
    assert [told for told in hall.ear.take() if "sync" in told[0]] == [
        ("begin_fsync", "a", 0, 0),
        ("complete_fsync", "a", 2, 8),
        ("fsync", "a", 10, 5),
        ("fsync", "a", 0, 0),
    ]


def test_a_sync_leaves_out_what_write_back_had_written(hall: Hall) -> None:
    file = hall.file
    file.write_at(0, b"x" * (2 * PAGE))
    token = hall.disk.serial
    file.write_at(2 * PAGE, b"y" * 10)
    state = hall.disk.inodes[hall.disk.names.visible[0]["a"]].state
    state.write_back([0], token)
    file.fsync()
    assert hall.ear.take()[-1] == ("fsync", "a", PAGE, PAGE + 10)


def test_a_sync_leaves_out_what_a_cut_took_and_what_a_failed_one_lost(hall: Hall) -> None:
    file = hall.file
    file.append(b"89")
    file.truncate(9)
    file.fsync()
    assert hall.ear.take()[-1] == ("fsync", "a", 8, 1)
    hall.strike("fsync-fail")
    file.append(b"abc")
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.write_at(PAGE, b"z")
    hall.ear.take()
    file.fsync()
    assert hall.ear.take() == [("fsync", "a", PAGE, 1)]


def test_a_rename_onto_itself_is_a_call_too(hall: Hall) -> None:
    hall.disk.rename(A, A)
    assert hall.ear.take() == [("rename", "a", 0, 0)]


@pytest.mark.parametrize("how", [{"kind": "fsync-lie"}, {"kind": "fsync-fail", "report": "next"}])
def test_a_sync_that_lies_makes_nothing_durable(hall: Hall, how: dict[str, Any]) -> None:
    hall.file.append(b"89")
    hall.ear.take()
    hall.strike(**how, times=2)
    hall.file.fsync()
    hall.disk.fsync_dir(D)
    assert hall.ear.take() == [("fsync", "a", 0, 0), ("fsync_dir", "d", 0, 0)]


def test_of_a_failing_write_the_stored_part_is_told_of(hall: Hall) -> None:
    hall.strike("error", operation="append", partial_bytes=2)
    hall.disk.capacity_bytes = 12
    with pytest.raises(DiskError):
        hall.file.append(b"abc")
    for _ in range(2):
        with pytest.raises(DiskFull):
            hall.file.append(b"abc")
    assert hall.ear.take() == [("append", "a", 8, 2), ("append", "a", 10, 2)]
    assert content(hall.disk, "a") == b"01234567abab"


def test_a_split_write_is_told_of_in_two_parts(hall: Hall) -> None:
    hall.strike("split-write", partial_bytes=3)
    hall.file.append(b"abcde")
    assert hall.ear.take() == [("append", "a", 8, 3), ("append", "a", 11, 2)]


@pytest.mark.parametrize("kind", ["lost-write", "misdirected-write"])
def test_a_write_that_goes_astray_is_told_of_as_its_caller_sees_it(hall: Hall, kind: str) -> None:
    hall.strike(kind, shift_bytes=2)
    hall.file.append(b"abc")
    assert hall.ear.take() == [("append", "a", 8, 3)]
    assert hall.ear.strikes == [("f1", "append", "a")]


def test_the_kernels_own_write_back_strikes_without_a_call(hall: Hall) -> None:
    hall.strike("late-enospc", operation="write_back")
    hall.file.append(bytes(2 * PAGE))
    hall.ear.take()
    hall.disk.write_back()
    assert hall.ear.strikes == [("f1", "write_back", "/a")]
    assert hall.ear.take() == []


def test_listening_changes_no_outcome() -> None:
    def digest(*, listens: bool) -> str:
        hall = Hall()
        if not listens:
            hall.disk.on_call = hall.disk.on_strike = None
        for call in all_calls(hall.disk, hall.file).values():
            call()
        hall.disk.power_cut()
        return hall.disk.digest() + str(hall.disk.serial) + str(hall.disk.call_count)

    assert digest(listens=True) == digest(listens=False)


# Calls inside which a fuse blows ---------------------------------------------------------------

CHANGES = ("open", "write_at", "append", "truncate", "mkdir", "rename", "unlink", "rmdir", "lock")


@pytest.mark.parametrize("kills", [False, True])
def test_a_call_with_an_effect_is_told_of_before_its_fuse_blows(*, kills: bool) -> None:
    for number, operation in enumerate(name for name in (told[0] for told in EXPECTED)):
        hall = Hall()
        calls = list(all_calls(hall.disk, hall.file).values())
        for call in calls[:number]:
            call()
        hall.ear.take()
        name = "complete_fsync" if operation == "fsync" else operation
        hall.disk.arm_fuse_at(name, "", 1, kills=kills)
        with pytest.raises(ProcessKill if kills else PowerCut):
            calls[number]()
        assert hall.ear.take() == ([EXPECTED[number]] if operation in CHANGES else [])


def test_a_call_under_way_may_be_lost_although_it_was_told_of(hall: Hall) -> None:
    hall.disk.arm_fuse_at("append", "a", 2)
    hall.file.append(b"8")
    with pytest.raises(PowerCut):
        hall.file.append(b"9")
    assert hall.ear.take() == [("append", "a", 8, 1), ("append", "a", 9, 1)]
    left = set()
    for image in hall.disk.images():
        twin = hall.disk.copy(hall.disk._backing.copy())  # type: ignore[attr-defined]
        twin.power_cut(image)
        left.add(content(twin, "a"))
    assert {b"01234567", b"012345678", b"0123456789"} <= left


# Fuses that wait for one kind of call ----------------------------------------------------------


def hits(disk: SimDisk, error: type[BaseException], calls: list[Callable[[], object]]) -> int:
    """Which call blows, counted from 1; 0 for none."""
    for number, call in enumerate(calls, start=1):
        try:
            call()
        except error:
            return number
        except DiskError:
            pass
    return 0


@pytest.mark.parametrize(("hit", "expected"), [(1, 2), (2, 4), (3, 5), (4, 0)])
@pytest.mark.parametrize("kills", [False, True])
def test_fuse_waits_for_the_nth_match(hall: Hall, hit: int, expected: int, *, kills: bool) -> None:
    other = hall.disk.open(D / "xa.log", create=True)
    hall.disk.arm_fuse_at("append", "a.log", hit, kills=kills)
    calls: list[Callable[[], object]] = [
        lambda: hall.file.append(b"x"),
        lambda: other.append(b"x"),
        lambda: other.write_at(0, b"x"),
        lambda: other.append(b"x"),
        lambda: other.append(b"x"),
    ]
    assert hits(hall.disk, ProcessKill if kills else PowerCut, calls) == expected
    assert hall.disk.is_powered == (kills or not expected)


def test_a_rename_is_known_by_its_old_path(hall: Hall) -> None:
    hall.disk.arm_fuse_at("rename", "d/a")
    hall.disk.rename(A, D / "a")
    with pytest.raises(PowerCut):
        hall.disk.rename(D / "a", A)


def test_a_failing_call_leaves_the_fuse_to_the_next_match(hall: Hall) -> None:
    hall.strike("error", operation="append", after=1, errno=errno.EIO)
    hall.disk.arm_fuse_at("append", "", 2)
    calls: list[Callable[[], object]] = [
        lambda: hall.file.append(b"1"),
        lambda: hall.file.append(b"2"),
        lambda: hall.file.write_at(0, b"3"),
        lambda: hall.file.append(b"4"),
    ]
    assert hits(hall.disk, PowerCut, calls) == 4


def test_a_fuse_passed_on_blows_in_no_call_of_another(hall: Hall) -> None:
    hall.strike("error", operation="append")
    hall.disk.arm_fuse_at("append", "")
    hall.disk.arm_fuse_at("mkdir", "", kills=True)
    with pytest.raises(DiskError):
        hall.file.append(b"1")
    with pytest.raises(ProcessKill):
        hall.disk.mkdir(B)
    with pytest.raises(PowerCut):
        hall.disk.open(A).append(b"2")


def test_disarming_takes_every_fuse_out(hall: Hall) -> None:
    hall.disk.arm_fuse(1)
    hall.disk.arm_fuse(1, kills=True)
    hall.disk.arm_fuse_at("append", "", 1)
    hall.disk.arm_fuse_at("append", "", 1, kills=True)
    hall.disk.disarm_fuse()
    assert hall.file.append(b"x") == 8


def test_power_that_went_takes_every_fuse_out_and_a_kill_leaves_the_others(hall: Hall) -> None:
    hall.disk.arm_fuse_at("mkdir", "", 1, kills=True)
    hall.disk.arm_fuse_at("mkdir", "", 2, kills=True)
    hall.disk.arm_fuse_at("mkdir", "", 3)
    hall.disk.arm_fuse_at("mkdir", "", 4)
    for number, error in enumerate((ProcessKill, ProcessKill, PowerCut)):
        with pytest.raises(error):
            hall.disk.mkdir(Path(str(number)))
    hall.disk.power_cut()
    hall.disk.mkdir(Path("x"))


def test_power_goes_first_where_two_fuses_blow_in_one_call(hall: Hall) -> None:
    hall.disk.arm_fuse(1, kills=True)
    hall.disk.arm_fuse_at("append", "")
    with pytest.raises(PowerCut):
        hall.file.append(b"x")
    assert not hall.disk.is_powered


def test_a_later_fuse_for_any_call_takes_the_place_of_an_earlier(hall: Hall) -> None:
    hall.disk.arm_fuse(1)
    hall.disk.arm_fuse(3, kills=True)
    hall.disk.arm_fuse(3)
    hall.file.append(b"x")
    hall.file.append(b"x")
    with pytest.raises(PowerCut):
        hall.file.append(b"x")


def test_bad_fuses_are_refused(hall: Hall) -> None:
    with pytest.raises(ValueError, match="operation is 'fsync', allowed: append, begin_fsync"):
        hall.disk.arm_fuse_at("fsync", "a", 1)
    with pytest.raises(ValueError, match="hit is 0, allowed is 1 or more"):
        hall.disk.arm_fuse_at("append", "a", 0)
    with pytest.raises(ValueError, match="calls is 0, allowed is 1 or more"):
        hall.disk.arm_fuse(0)
    assert hall.file.append(b"x") == 8


def test_a_copy_of_a_disk_has_its_own_fuses_and_no_ear(hall: Hall) -> None:
    hall.disk.arm_fuse_at("append", "", 2)
    hall.file.append(b"x")
    twin = hall.disk.copy(hall.disk._backing.copy())  # type: ignore[attr-defined]
    fuses = copy.deepcopy(hall.disk.fuses)
    with pytest.raises(PowerCut):
        hall.file.append(b"x")
    heard = hall.ear.take()
    assert twin.fuses.armed[0].left == 1
    with pytest.raises(PowerCut):
        twin.open(A).append(b"x")
    assert hall.ear.take() == []
    assert len(heard) == 2
    assert fuses.armed[0].left == 1
