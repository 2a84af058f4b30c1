"""FaultDisk records what it is asked and fails what it is told to fail, and nothing else."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from storage.disk import Disk
from storage.errors import AccessDenied, DiskError, DiskFull, FsyncFailed, LockHeld
from storage.memdisk import MemDisk
from tests.storage.faults import OPERATIONS, Call, FaultDisk

LOG = Path("/00.log")


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


def call_everything(disk: Disk) -> None:
    """Every call of the contract once, in an order in which all of them succeed."""
    directory = Path("/topic-0")
    disk.mkdir(directory)
    file = disk.open(directory / "a.log", create=True)
    file.append(b"hello")
    file.write_at(5, b" world")
    file.read_at(0, 4)
    file.read_into(2, memoryview(bytearray(3)))
    file.truncate(8)
    file.size()
    file.fsync()
    file.fileno()
    file.close()
    disk.stat(directory / "a.log")
    disk.listdir(directory)
    disk.rename(directory / "a.log", directory / "b.log")
    disk.fsync_dir(directory)
    disk.unlink(directory / "b.log")
    disk.rmdir(directory)
    disk.lock(Path("/.lock")).release()


def test_every_call_is_recorded_with_its_arguments(disk: FaultDisk) -> None:
    call_everything(disk)
    assert disk.calls == [
        Call("mkdir", "topic-0"),
        Call("open", "a.log", "create=True write=True"),
        Call("append", "a.log", "size_bytes=5"),
        Call("write_at", "a.log", "position=5 size_bytes=6"),
        Call("read_at", "a.log", "position=0 size_bytes=4"),
        Call("read_into", "a.log", "position=2 size_bytes=3"),
        Call("truncate", "a.log", "size_bytes=8"),
        Call("size", "a.log"),
        Call("begin_fsync", "a.log"),
        Call("fsync", "a.log"),
        Call("fileno", "a.log"),
        Call("close", "a.log"),
        Call("stat", "a.log"),
        Call("listdir", "topic-0"),
        Call("rename", "a.log", "b.log"),
        Call("fsync_dir", "topic-0"),
        Call("unlink", "b.log"),
        Call("rmdir", "topic-0"),
        Call("lock", ".lock"),
        Call("release", ".lock"),
    ]
    assert {call.operation for call in disk.calls} == OPERATIONS
    assert disk.operations(".lock") == ["lock", "release"]


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_operation_can_be_made_to_fail(disk: FaultDisk, operation: str) -> None:
    plan = disk.fail(operation)
    with pytest.raises(DiskError) as caught:
        call_everything(disk)
    assert caught.value.operation == operation
    assert caught.value.errno_name == "EIO"
    assert type(caught.value) is (FsyncFailed if operation.startswith("fsync") else DiskError)
    assert disk.calls[-1].operation == operation, "nothing is called behind the failure"
    assert plan.hits == 1


def test_disk_full_in_the_middle_of_an_append_leaves_a_prefix(disk: FaultDisk) -> None:
    file = disk.open(LOG, create=True)
    disk.fail("append", at=2, errno=errno.ENOSPC, partial_bytes=3)
    file.append(b"first ")
    with pytest.raises(DiskFull, match=r"append /00\.log: ENOSPC"):
        file.append(b"second")
    assert file.read_at(0, 100) == b"first sec"
    assert file.append(b"!") == 9


def test_write_at_failing_leaves_a_prefix_at_its_position(disk: FaultDisk) -> None:
    file = disk.open(LOG, create=True)
    file.append(b"........")
    disk.fail("write_at", partial_bytes=2)
    with pytest.raises(DiskError):
        file.write_at(3, memoryview(b"abcd"))
    assert file.read_at(0, 100) == b"...ab..."


@pytest.mark.parametrize("by_name", [False, True])
def test_fsync_fails_once_and_then_succeeds(disk: FaultDisk, by_name: bool) -> None:
    file = disk.open(LOG, create=True)
    disk.fail("fsync", errno=errno.ENOSPC)
    token = file.begin_fsync()
    with pytest.raises(FsyncFailed, match="ENOSPC"):
        file.complete_fsync(token) if by_name else file.fsync()
    file.fsync()
    file.complete_fsync(file.begin_fsync())


def test_read_fails_only_at_the_call_asked_for(disk: FaultDisk) -> None:
    file = disk.open(LOG, create=True)
    file.append(b"abc")
    disk.fail("read_at", at=3)
    assert [file.read_at(0, 3), file.read_at(0, 3)] == [b"abc", b"abc"]
    with pytest.raises(DiskError, match="EIO"):
        file.read_at(0, 3)
    assert file.read_at(0, 3) == b"abc"


def test_failed_truncate_changes_nothing(disk: FaultDisk) -> None:
    file = disk.open(LOG, create=True)
    file.append(b"abc")
    disk.fail("truncate", times=2)
    for _ in range(2):
        with pytest.raises(DiskError):
            file.truncate(1)
    assert file.size() == 3
    file.truncate(1)
    assert file.size() == 1


def test_failure_for_ever_ends_when_the_plans_are_cleared(disk: FaultDisk) -> None:
    plan = disk.fail("mkdir", at=2, errno=errno.EACCES, times=None)
    disk.mkdir(Path("/a"))
    for _ in range(4):
        with pytest.raises(AccessDenied):
            disk.mkdir(Path("/b"))
    assert plan.hits == 4
    disk.plans.clear()
    disk.mkdir(Path("/b"))
    assert disk.inner.listdir(Path("/")) == ["a", "b"]


def test_suffix_counts_only_paths_that_end_so(disk: FaultDisk) -> None:
    disk.fail("unlink", suffix=".index", at=2)
    for name in ("a.log", "a.index", "b.log", "b.index"):
        disk.open(Path("/") / name, create=True).close()
    for name in ("a.log", "a.index", "b.log"):
        disk.unlink(Path("/") / name)
    with pytest.raises(DiskError, match=r"b\.index"):
        disk.unlink(Path("/b.index"))


def test_suffix_of_a_rename_matches_either_path(disk: FaultDisk) -> None:
    disk.open(Path("/point.tmp"), create=True).close()
    disk.fail("rename", suffix="/point")
    with pytest.raises(DiskError, match=r"rename /point\.tmp: EIO"):
        disk.rename(Path("/point.tmp"), Path("/point"))
    disk.fail("rename", suffix=".tmp")
    with pytest.raises(DiskError):
        disk.rename(Path("/point.tmp"), Path("/point"))
    assert disk.listdir(Path("/")) == ["point.tmp"]


def test_two_plans_count_the_same_calls_and_the_first_wins(disk: FaultDisk) -> None:
    first = disk.fail("stat", errno=errno.EACCES)
    second = disk.fail("stat", at=2)
    with pytest.raises(AccessDenied):
        disk.stat(LOG)
    with pytest.raises(DiskError, match="EIO"):
        disk.stat(LOG)
    disk.stat(LOG)
    assert (first.hits, second.hits) == (1, 1)


def test_failed_close_and_release_let_go_all_the_same(disk: FaultDisk) -> None:
    assert isinstance(disk.inner, MemDisk)
    file = disk.open(LOG, create=True)
    file.append(b"abc")
    disk.unlink(LOG)
    lock = disk.lock(Path("/.lock"))
    with pytest.raises(LockHeld):
        disk.lock(Path("/.lock"))
    disk.fail("close")
    disk.fail("release")
    with pytest.raises(DiskError):
        file.close()
    with pytest.raises(DiskError):
        lock.release()
    assert disk.inner.used_bytes == 0
    disk.lock(Path("/.lock")).release()


@pytest.mark.parametrize(
    ("operation", "arguments"),
    [
        ("fsnyc", {}),
        ("complete_fsync", {}),
        ("read_at", {"partial_bytes": 1}),
        ("append", {"partial_bytes": -1}),
        ("append", {"at": 0}),
        ("append", {"times": 0}),
    ],
)
def test_a_plan_that_could_never_strike_is_refused(
    disk: FaultDisk, operation: str, arguments: dict[str, int]
) -> None:
    with pytest.raises(ValueError, match=r"allowed is|is for|too low"):
        disk.fail(operation, **arguments)  # type: ignore[arg-type]
