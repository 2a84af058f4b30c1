"""What only the disk in memory can show: a capacity, a read-only switch, copies, its root."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.disk import Disk, FileKind, FileStat
from storage.errors import DiskError, DiskFull, DiskReadOnly, FileExists, NotRegularFile
from storage.memdisk import MemDisk

LOG = Path("/log")


def put(disk: Disk, name: str, data: bytes) -> Path:
    path = Path("/") / name
    file = disk.open(path, create=True)
    file.append(data)
    file.close()
    return path


# Capacity --------------------------------------------------------------------------------------


@pytest.mark.parametrize("by_append", [True, False])
def test_write_past_the_capacity_stores_what_fits(by_append: bool) -> None:
    disk = MemDisk(capacity_bytes=10)
    file = disk.open(LOG, create=True)
    file.append(b"0123456")
    with pytest.raises(DiskFull) as caught:
        file.append(b"abcdef") if by_append else file.write_at(7, b"abcdef")
    error = caught.value
    assert error.operation == ("append" if by_append else "write_at")
    assert (error.path, error.errno_name) == (LOG, "ENOSPC")
    assert file.read_at(0, 100) == b"0123456abc"
    with pytest.raises(DiskFull):
        file.append(b"x")
    assert (file.size(), disk.used_bytes) == (10, 10)


def test_full_disk_still_takes_what_needs_no_room() -> None:
    disk = MemDisk(capacity_bytes=4)
    file = disk.open(LOG, create=True)
    file.append(memoryview(b"abcd"))
    file.write_at(1, b"BC")
    file.append(b"")
    disk.mkdir(Path("/directory"))
    put(disk, "empty", b"")
    with pytest.raises(DiskFull):
        file.write_at(2, b"....")
    assert file.read_at(0, 100) == b"aB..", "the part inside the file was overwritten"


def test_hole_past_the_capacity_stores_nothing() -> None:
    disk = MemDisk(capacity_bytes=10)
    file = disk.open(LOG, create=True)
    file.append(b"abc")
    for position in (10, 11, 1_000_000):
        with pytest.raises(DiskFull):
            file.write_at(position, b"x")
    assert file.read_at(0, 100) == b"abc"
    with pytest.raises(DiskFull):
        file.write_at(8, b"xyz")
    assert file.read_at(0, 100) == b"abc\0\0\0\0\0xy"


def test_growing_past_the_capacity_changes_nothing() -> None:
    disk = MemDisk(capacity_bytes=10)
    file = disk.open(LOG, create=True)
    file.append(b"abc")
    with pytest.raises(DiskFull, match=r"truncate /log: ENOSPC"):
        file.truncate(11)
    assert (file.size(), disk.used_bytes) == (3, 3)
    file.truncate(10)
    assert (file.size(), disk.used_bytes) == (10, 10)


def test_capacity_may_shrink_below_what_is_used() -> None:
    disk = MemDisk(capacity_bytes=10)
    file = disk.open(LOG, create=True)
    file.append(b"0123456789")
    disk.capacity_bytes = 5
    with pytest.raises(DiskFull):
        file.write_at(8, b"abc")
    assert file.read_at(0, 100) == b"01234567ab"
    file.truncate(8)
    with pytest.raises(DiskFull):
        file.truncate(9)
    disk.capacity_bytes = None
    file.append(b"-" * 100)
    assert disk.used_bytes == 108


def test_space_comes_back_when_a_file_has_neither_name_nor_handle() -> None:
    disk = MemDisk(capacity_bytes=10)
    path = put(disk, "log", b"0123456789")
    one, two = disk.open(path), disk.open(path, write=False)
    one.truncate(6)
    assert disk.used_bytes == 6
    disk.unlink(path)
    one.close()
    one.close()
    assert disk.used_bytes == 6, "a handle is still open"
    two.close()
    assert disk.used_bytes == 0
    put(disk, "log", b"0123456789")
    assert disk.used_bytes == 10


def test_space_of_a_file_replaced_by_rename_comes_back() -> None:
    disk = MemDisk()
    old, new = put(disk, "old", b"abc"), put(disk, "new", b"0123456789")
    handle = disk.open(new)
    lock = disk.lock(new)
    disk.rename(old, new)
    handle.append(b"more")
    assert disk.used_bytes == 17
    handle.close()
    assert disk.used_bytes == 17, "the lock keeps the file"
    lock.release()
    lock.release()
    assert disk.used_bytes == 3
    disk.rename(new, new)
    disk.unlink(new)
    assert disk.used_bytes == 0


# The read-only switch --------------------------------------------------------------------------


def test_read_only_disk_refuses_every_change() -> None:
    disk = MemDisk()
    path = put(disk, "log", b"abc")
    file, directory, free = disk.open(path), Path("/directory"), Path("/free")
    disk.mkdir(directory)
    disk.read_only = True
    changes: dict[str, Callable[[], object]] = {
        "append": lambda: file.append(b"d"),
        "lock": lambda: disk.lock(path),
        "mkdir": lambda: disk.mkdir(free),
        "open": lambda: disk.open(path),
        "rename": lambda: disk.rename(path, free),
        "rmdir": lambda: disk.rmdir(directory),
        "symlink": lambda: disk.symlink(free, path),
        "truncate": lambda: file.truncate(1),
        "unlink": lambda: disk.unlink(path),
        "write_at": lambda: file.write_at(0, b"x"),
    }
    for operation, call in changes.items():
        with pytest.raises(DiskReadOnly) as caught:
            call()
        assert (caught.value.operation, caught.value.errno_name) == (operation, "EROFS")
    for write in (True, False):
        with pytest.raises(DiskReadOnly):
            disk.open(free, create=True, write=write)
    with pytest.raises(FileExists):
        disk.mkdir(directory)

    assert disk.listdir(Path("/")) == ["directory", "log"]
    assert disk.open(path, create=True, write=False).read_at(0, 9) == b"abc"
    file.fsync()
    disk.fsync_dir(directory)
    disk.read_only = False
    file.append(b"d")
    assert disk.stat(path) == FileStat(FileKind.FILE, 4)


# Copies ----------------------------------------------------------------------------------------


def test_copy_shares_nothing_with_its_original() -> None:
    disk = MemDisk(capacity_bytes=100, read_only=False)
    path, kept = put(disk, "log", b"abc"), Path("/a/b/kept")
    disk.mkdir(Path("/a"))
    disk.mkdir(Path("/a/b"))
    put(disk, "a/b/kept", b"def")
    disk.symlink(Path("/link"), path)
    handle = disk.open(path)
    disk.lock(Path("/.lock"))
    disk.unlink(put(disk, "gone", b"ghi"))

    twin = disk.copy()
    assert twin.listdir(Path("/")) == [".lock", "a", "link", "log"]
    assert (twin.used_bytes, twin.capacity_bytes, twin.read_only) == (6, 100, False)
    assert twin.stat(Path("/link")).kind is FileKind.SYMLINK
    twin.lock(Path("/.lock")).release()

    handle.append(b"original")
    other = twin.open(path)
    other.write_at(0, b"X")
    twin.unlink(kept)
    disk.mkdir(Path("/a/b/new"))
    assert handle.read_at(0, 99) == b"abcoriginal"
    assert other.read_at(0, 99) == b"Xbc"
    assert disk.listdir(Path("/a/b")) == ["kept", "new"]
    assert twin.listdir(Path("/a/b")) == []
    assert (disk.used_bytes, twin.used_bytes) == (14, 3)


def test_copy_of_a_nameless_open_file_is_not_counted() -> None:
    disk = MemDisk(capacity_bytes=5)
    path = put(disk, "log", b"01234")
    handle = disk.open(path)
    disk.unlink(path)
    twin = disk.copy()
    assert (disk.used_bytes, twin.used_bytes) == (5, 0)
    put(twin, "log", b"56789")
    assert handle.read_at(0, 9) == b"01234"


def test_deepcopy_takes_handles_and_locks_along() -> None:
    disk = MemDisk()
    handle, lock = disk.open(LOG, create=True), disk.lock(Path("/.lock"))
    handle.append(b"abc")
    twin, twin_handle, twin_lock = copy.deepcopy((disk, handle, lock))
    twin_handle.append(b"twin")
    handle.append(b"!")
    assert twin.open(LOG).read_at(0, 99) == b"abctwin"
    assert disk.open(LOG).read_at(0, 99) == b"abc!"
    with pytest.raises(DiskError):
        twin.lock(Path("/.lock"))
    twin_lock.release()
    twin.lock(Path("/.lock"))
    with pytest.raises(DiskError):
        disk.lock(Path("/.lock"))


# Paths -----------------------------------------------------------------------------------------


def test_relative_paths_begin_at_the_root() -> None:
    disk = MemDisk()
    assert disk.stat(Path(".")) == disk.stat(Path("/")) == FileStat(FileKind.DIRECTORY, 0)
    disk.mkdir(Path("a"))
    disk.open(Path("a/log"), create=True).append(b"abc")
    assert disk.open(Path("/a/log")).read_at(0, 9) == b"abc"
    assert disk.listdir(Path(".")) == disk.listdir(Path("/")) == disk.listdir(Path("//")) == ["a"]
    for new in ("/a/b", "a/b", "//a/b"):
        with pytest.raises(DiskError, match="EINVAL"):
            disk.rename(Path("a"), Path(new))
    disk.fsync_dir(Path("."))
    with pytest.raises(DiskError, match="EBUSY"):
        disk.rmdir(Path("."))


def test_dots_and_ways_through_a_link_are_refused() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/a"))
    disk.symlink(Path("/link"), Path("/a"))
    for path in (Path("/a/.."), Path("/a/../b"), Path("..")):
        with pytest.raises(DiskError, match=r"EINVAL: '\.\.' in"):
            disk.stat(path)
    with pytest.raises(NotRegularFile, match="ENOTDIR"):
        disk.open(Path("/link/log"), create=True)
    assert disk.listdir(Path("/a")) == []


def test_file_has_no_descriptor() -> None:
    assert MemDisk().open(LOG, create=True).fileno() is None
