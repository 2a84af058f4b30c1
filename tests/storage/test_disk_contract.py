"""The disk contract (header of ``storage/disk.py``), run on every disk there is.

The operating system's, the one in memory, and the simulated one over both; a simulated disk has no
symbolic links, so those tests skip there. What only one of the first two can show is in
``test_disk_os.py`` and ``test_memdisk.py``; equal answers to random calls are the subject of
``test_disk_twins.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from attrs import frozen

from sim.disks import SimDisk
from sim.draws import Draws
from storage.disk import Buffer, Disk, FileKind, FileStat, OsDisk
from storage.errors import (
    DiskError,
    DiskReadOnly,
    FileExists,
    FileMissing,
    FsyncFailed,
    LockHeld,
    NotRegularFile,
)
from storage.memdisk import MemDisk


@frozen
class Bench:
    """A disk, an empty directory on it, and the means to make a symbolic link there."""

    disk: Disk
    root: Path
    symlink: Callable[[Path, Path], None]

    def put(self, name: str, data: bytes = b"") -> Path:
        path = self.root / name
        file = self.disk.open(path, create=True)
        file.write_at(0, data)
        file.close()
        return path

    def get(self, path: Path) -> bytes:
        file = self.disk.open(path, write=False)
        data = file.read_at(0, file.size() + 1)
        file.close()
        return data

    def mkdir(self, name: str) -> Path:
        self.disk.mkdir(self.root / name)
        return self.root / name

    def link(self, name: str, target: Path) -> Path:
        self.symlink(self.root / name, target)
        return self.root / name


def no_symlinks(path: Path, target: Path) -> None:
    pytest.skip("a simulated disk has no symbolic links")


@pytest.fixture(params=["os", "memory", "simulated on os", "simulated on memory"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    root = Path("/data")
    match request.param:
        case "os":
            return Bench(OsDisk(), tmp_path, lambda path, target: path.symlink_to(target))
        case "memory":
            memory = MemDisk()
            memory.mkdir(root)
            return Bench(memory, root, memory.symlink)
        case "simulated on os":
            disk = SimDisk(OsDisk(), tmp_path / "b1", Draws(1))
        case _:
            disk = SimDisk(MemDisk(), Path("/b1"), Draws(1))
    disk.mkdir(root)
    return Bench(disk, root, no_symlinks)


def check_refused(
    kind: type[DiskError],
    call: Callable[[], object],
    operation: str,
    path: Path,
    *errno_names: str,
) -> None:
    """The call fails with exactly this class, operation and path, and one of the errnos."""
    with pytest.raises(DiskError) as caught:
        call()
    error = caught.value
    assert (type(error), error.operation, error.path) == (kind, operation, path)
    assert error.errno_name in errno_names
    assert str(error).startswith(f"{operation} {path}: {error.errno_name}")


# Reading and writing ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_every_kind_of_buffer_is_stored(bench: Bench, kind: Callable[[bytes], Buffer]) -> None:
    file = bench.disk.open(bench.root / "log", create=True)
    file.write_at(0, kind(b"abc"))
    assert file.append(kind(b"defg")) == 3
    assert file.append(kind(b"")) == 7
    assert file.read_at(0, 7) == b"abcdefg"
    assert file.size() == 7


def test_file_shares_no_memory_with_its_caller(bench: Bench) -> None:
    file = bench.disk.open(bench.root / "log", create=True)
    data = bytearray(b"abc")
    file.append(data)
    file.write_at(3, memoryview(data))
    data[:] = b"xyz"
    seen = file.read_at(0, 6)
    buffer = bytearray(6)
    file.read_into(0, memoryview(buffer))
    file.write_at(0, b"......")
    assert seen == buffer == b"abcabc"


def test_read_ends_where_the_file_ends(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"0123456789"), write=False)
    assert file.read_at(3, 4) == b"3456"
    assert file.read_at(7, 100) == b"789"
    assert file.read_at(10, 1) == b""
    assert file.read_at(11, 1) == b""
    assert file.read_at(4, 0) == b""
    assert type(file.read_at(0, 1)) is bytes


def test_read_into_returns_the_bytes_it_filled(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"0123456789"), write=False)
    buffer = bytearray(b"....")
    assert file.read_into(2, memoryview(buffer)) == 4
    assert buffer == b"2345"
    assert file.read_into(8, memoryview(buffer)) == 2
    assert buffer == b"8945", "bytes behind the file's end are left alone"
    assert file.read_into(10, memoryview(buffer)) == 0
    assert file.read_into(99, memoryview(buffer)) == 0
    assert file.read_into(0, memoryview(buffer)[1:3]) == 2
    assert buffer == b"8015"
    assert file.read_into(0, memoryview(bytearray())) == 0


def test_a_read_leaves_the_file_free_to_grow(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"ab"))
    with pytest.raises((BufferError, TypeError)):
        file.read_into(0, memoryview(b"no place to write"))
    file.append(b"c")
    assert file.read_at(0, 9) == b"abc"


def test_write_replaces_what_it_covers_and_extends_the_file(bench: Bench) -> None:
    path = bench.put("log", b"0123456789")
    file = bench.disk.open(path)
    file.write_at(3, b"abc")
    assert bench.get(path) == b"012abc6789"
    file.write_at(8, b"wxyz")
    assert bench.get(path) == b"012abc67wxyz"
    file.write_at(12, b"!")
    assert bench.get(path) == b"012abc67wxyz!"


def test_hole_reads_as_zeros(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"ab"))
    file.write_at(5, b"cd")
    assert file.append(b"e") == 7
    assert file.read_at(0, 100) == b"ab\0\0\0cde"


def test_writing_nothing_makes_no_hole(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"ab"))
    file.write_at(100, b"")
    file.write_at(1, b"")
    assert file.read_at(0, 200) == b"ab"


def test_truncate_cuts_and_grows_with_zeros(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"0123456789"))
    file.truncate(4)
    assert file.read_at(0, 100) == b"0123"
    file.truncate(4)
    file.truncate(7)
    assert file.size() == 7
    assert file.read_at(0, 100) == b"0123\0\0\0", "the old bytes do not come back"
    assert file.append(b"x") == 7
    file.truncate(0)
    assert file.append(b"y") == 0


def test_negative_positions_and_sizes_are_refused(bench: Bench) -> None:
    path = bench.put("log", b"abc")
    file = bench.disk.open(path)
    for operation, call in {
        "read_at": lambda: file.read_at(-1, 1),
        "read_into": lambda: file.read_into(-1, memoryview(bytearray(2))),
        "write_at": lambda: file.write_at(-1, b"x"),
        "truncate": lambda: file.truncate(-1),
    }.items():
        check_refused(DiskError, call, operation, path, "EINVAL")
    check_refused(DiskError, lambda: file.read_at(0, -1), "read_at", path, "EINVAL")
    assert bench.get(path) == b"abc"


def test_two_handles_see_one_file(bench: Bench) -> None:
    path = bench.put("log", b"ab")
    one = bench.disk.open(path)
    two = bench.disk.open(path)
    one.append(b"cd")
    assert two.append(b"ef") == 4, "an append goes to the file's end, not to the handle's"
    two.write_at(0, b"A")
    one.truncate(5)
    assert one.read_at(0, 9) == two.read_at(0, 9) == b"Abcde"
    two.close()
    assert one.append(b"g") == 5


# Opening and closing ---------------------------------------------------------------------------


def test_open_finds_or_creates_a_file(bench: Bench) -> None:
    path = bench.root / "log"
    check_refused(FileMissing, lambda: bench.disk.open(path), "open", path, "ENOENT")
    assert bench.disk.listdir(bench.root) == []
    bench.disk.open(path, create=True).append(b"abc")
    assert bench.disk.open(path, create=True).read_at(0, 9) == b"abc", "nothing is cut"
    bench.disk.open(bench.root / "empty", create=True, write=False)
    assert bench.disk.stat(bench.root / "empty") == FileStat(FileKind.FILE, 0)


def test_a_handle_for_reading_refuses_every_change(bench: Bench) -> None:
    path = bench.put("log", b"abc")
    file = bench.disk.open(path, write=False)
    for operation, call in {
        "write_at": lambda: file.write_at(0, b"x"),
        "append": lambda: file.append(b"x"),
        "truncate": lambda: file.truncate(1),
    }.items():
        check_refused(DiskReadOnly, call, operation, path, "EBADF")
    check_refused(DiskReadOnly, lambda: file.truncate(9), "truncate", path, "EBADF")
    check_refused(DiskReadOnly, lambda: file.write_at(0, b""), "write_at", path, "EBADF")
    file.fsync()
    assert bench.get(path) == b"abc"


def test_open_of_what_is_no_file_is_refused(bench: Bench) -> None:
    directory = bench.mkdir("directory")
    below_file = bench.put("file") / "below"
    below_nothing = bench.root / "nothing" / "below"
    for create in (False, True):
        for write in (False, True):
            for path, kind in (
                (directory, NotRegularFile),
                (below_file, NotRegularFile),
                (below_nothing, FileMissing),
            ):
                with pytest.raises(DiskError) as caught:
                    bench.disk.open(path, create=create, write=write)
                assert (type(caught.value), caught.value.path) == (kind, path)


def test_handle_keeps_the_path_it_was_opened_by(bench: Bench) -> None:
    path = bench.put("log")
    file = bench.disk.open(path)
    bench.disk.rename(path, bench.root / "other")
    assert file.path == path


def test_close_twice_is_allowed_and_nothing_else_is(bench: Bench) -> None:
    path = bench.put("log", b"abc")
    file = bench.disk.open(path)
    file.append(b"d")
    file.close()
    file.close()
    for call in (
        lambda: file.read_at(0, 1),
        lambda: file.read_into(0, memoryview(bytearray(1))),
        lambda: file.write_at(0, b"x"),
        lambda: file.append(b"x"),
        lambda: file.truncate(0),
        lambda: file.size(),
    ):
        with pytest.raises(DiskError, match="EBADF"):
            call()
    with pytest.raises((DiskError, ValueError)):
        file.fsync()
    assert bench.get(path) == b"abcd"


def test_fsync_in_two_calls_and_in_one(bench: Bench) -> None:
    file = bench.disk.open(bench.put("log", b"abc"))
    token = file.begin_fsync()
    assert type(token) is int
    file.append(b"written between the two")
    file.complete_fsync(token)
    file.fsync()
    bench.disk.fsync_dir(bench.root)
    assert file.read_at(0, 5) == b"abcwr"


# Names -----------------------------------------------------------------------------------------


def test_stat_tells_the_kind_and_size(bench: Bench) -> None:
    file = bench.put("file", b"abc")
    bench.put("empty")
    directory = bench.mkdir("directory")
    bench.put("directory/file", b"not counted")
    bench.link("to_file", file)
    bench.link("to_directory", directory)
    bench.link("to_nothing", bench.root / "nothing")
    assert {
        name: bench.disk.stat(bench.root / name) for name in bench.disk.listdir(bench.root)
    } == {
        "directory": FileStat(FileKind.DIRECTORY, 0),
        "empty": FileStat(FileKind.FILE, 0),
        "file": FileStat(FileKind.FILE, 3),
        "to_directory": FileStat(FileKind.SYMLINK, 0),
        "to_file": FileStat(FileKind.SYMLINK, 0),
        "to_nothing": FileStat(FileKind.SYMLINK, 0),
    }
    missing = FileStat(FileKind.MISSING, 0)
    assert bench.disk.stat(bench.root / "nothing") == missing
    assert bench.disk.stat(bench.root / "nothing" / "below") == missing
    assert bench.disk.stat(directory / "nothing") == missing
    below = file / "below"
    check_refused(NotRegularFile, lambda: bench.disk.stat(below), "stat", below, "ENOTDIR")


def test_listdir_sorts_by_code_point(bench: Bench) -> None:
    # Neither the order of UTF-8 bytes nor that of UTF-16 units nor a locale's: "\udcff" is how
    # Python spells the byte 0xff, which is no UTF-8.
    names = ["Z", "a b", "e", "new\nline", "~", "é", "\udcff", "\U0001f600"]
    for index in (5, 2, 7, 0, 3, 6, 1, 4):
        bench.put(names[index], names[index].encode(errors="surrogateescape"))
    assert bench.disk.listdir(bench.root) == names
    for name in names:
        assert bench.get(bench.root / name) == name.encode(errors="surrogateescape")
        bench.disk.unlink(bench.root / name)
    assert bench.disk.listdir(bench.root) == []


def test_listdir_names_only_what_is_directly_inside(bench: Bench) -> None:
    directory = bench.mkdir("a")
    bench.mkdir("a/b")
    file = bench.put("a/b/c")
    assert bench.disk.listdir(directory) == ["b"]
    assert bench.disk.listdir(directory / "b") == ["c"]
    check_refused(NotRegularFile, lambda: bench.disk.listdir(file), "listdir", file, "ENOTDIR")
    missing = bench.root / "x"
    check_refused(FileMissing, lambda: bench.disk.listdir(missing), "listdir", missing, "ENOENT")


def test_mkdir_wants_a_parent_and_a_free_name(bench: Bench) -> None:
    taken = [bench.put("file"), bench.mkdir("directory"), bench.link("link", bench.root / "x")]
    for path in (*taken, Path("/")):
        check_refused(FileExists, partial(bench.disk.mkdir, path), "mkdir", path, "EEXIST")
    orphan = bench.root / "x" / "y"
    check_refused(FileMissing, lambda: bench.disk.mkdir(orphan), "mkdir", orphan, "ENOENT")
    below = bench.root / "file" / "y"
    check_refused(NotRegularFile, lambda: bench.disk.mkdir(below), "mkdir", below, "ENOTDIR")
    assert bench.disk.listdir(bench.root) == ["directory", "file", "link"]


def test_rename_replaces_a_file_and_open_handles_keep_theirs(bench: Bench) -> None:
    old = bench.put("old", b"old bytes")
    new = bench.put("new", b"new bytes")
    handle_of_old = bench.disk.open(old)
    handle_of_new = bench.disk.open(new)
    bench.disk.rename(old, new)
    assert bench.disk.listdir(bench.root) == ["new"]
    assert bench.get(new) == b"old bytes"
    handle_of_old.append(b" moved")
    handle_of_new.append(b" nameless")
    assert bench.get(new) == b"old bytes moved"
    assert handle_of_new.read_at(0, 99) == b"new bytes nameless"


def test_rename_onto_itself_changes_nothing(bench: Bench) -> None:
    file = bench.put("file", b"abc")
    directory = bench.mkdir("directory")
    inner = bench.put("directory/file", b"def")
    for path in (file, directory, inner):
        bench.disk.rename(path, path)
    assert (bench.get(file), bench.get(inner)) == (b"abc", b"def")
    assert bench.disk.listdir(bench.root) == ["directory", "file"]


def test_rename_of_a_directory_takes_its_content_along(bench: Bench) -> None:
    old = bench.mkdir("old")
    bench.mkdir("old/sub")
    handle = bench.disk.open(bench.put("old/sub/file", b"abc"))
    away = bench.mkdir("away")
    empty = bench.mkdir("away/empty")
    bench.disk.rename(old, empty)
    assert bench.disk.listdir(bench.root) == ["away"]
    assert bench.disk.listdir(away) == ["empty"]
    handle.append(b"d")
    assert bench.get(empty / "sub" / "file") == b"abcd"
    bench.disk.rename(empty, bench.root / "top")
    assert bench.get(bench.root / "top" / "sub" / "file") == b"abcd"
    assert bench.disk.listdir(away) == []


def test_rename_that_fits_neither_end_is_refused(bench: Bench) -> None:
    file, directory = bench.put("file", b"abc"), bench.mkdir("directory")
    full, inner = bench.mkdir("full"), bench.put("full/inner")
    missing = bench.root / "missing"
    for old, new, kind, errno_name in (
        (missing, bench.root / "x", FileMissing, "ENOENT"),
        (missing, file, FileMissing, "ENOENT"),
        (file, missing / "x", FileMissing, "ENOENT"),
        (file, file / "x", NotRegularFile, "ENOTDIR"),
        (directory, file, NotRegularFile, "ENOTDIR"),
        (file, directory, NotRegularFile, "EISDIR"),
        (directory, full, FileExists, "ENOTEMPTY"),
        (inner, full, FileExists, "ENOTEMPTY"),
        (directory, directory / "x", DiskError, "EINVAL"),
        (directory, Path("/"), DiskError, "EBUSY"),
        (Path("/"), directory / "x", DiskError, "EBUSY"),
    ):
        check_refused(kind, partial(bench.disk.rename, old, new), "rename", old, errno_name)
    assert bench.disk.listdir(bench.root) == ["directory", "file", "full"]
    assert bench.disk.listdir(full) == ["inner"]
    assert bench.get(file) == b"abc"


def test_unlink_removes_the_name_and_open_handles_stay_usable(bench: Bench) -> None:
    path = bench.put("log", b"abc")
    handle = bench.disk.open(path)
    bench.disk.unlink(path)
    assert bench.disk.stat(path).kind is FileKind.MISSING
    assert handle.append(b"d") == 3
    handle.fsync()
    bench.put("log", b"another file")
    assert handle.read_at(0, 99) == b"abcd"
    assert bench.get(path) == b"another file"
    handle.close()


def test_unlink_removes_only_files(bench: Bench) -> None:
    directory = bench.mkdir("directory")
    missing = bench.root / "missing"
    unlink = bench.disk.unlink
    check_refused(FileMissing, lambda: unlink(missing), "unlink", missing, "ENOENT")
    check_refused(NotRegularFile, lambda: unlink(directory), "unlink", directory, "EISDIR")
    check_refused(NotRegularFile, lambda: unlink(Path("/")), "unlink", Path("/"), "EISDIR")
    assert bench.disk.listdir(bench.root) == ["directory"]


def test_rmdir_removes_only_empty_directories(bench: Bench) -> None:
    directory = bench.mkdir("directory")
    file = bench.put("directory/file")
    missing = bench.root / "missing"
    rmdir = bench.disk.rmdir
    check_refused(FileExists, lambda: rmdir(directory), "rmdir", directory, "ENOTEMPTY")
    check_refused(NotRegularFile, lambda: rmdir(file), "rmdir", file, "ENOTDIR")
    check_refused(FileMissing, lambda: rmdir(missing), "rmdir", missing, "ENOENT")
    check_refused(DiskError, lambda: rmdir(Path("/")), "rmdir", Path("/"), "EBUSY")
    bench.disk.unlink(file)
    rmdir(directory)
    assert bench.disk.listdir(bench.root) == []


def test_fsync_dir_wants_a_directory(bench: Bench) -> None:
    file = bench.put("file")
    missing = bench.root / "missing"
    fsync_dir = bench.disk.fsync_dir
    check_refused(FsyncFailed, lambda: fsync_dir(file), "fsync_dir", file, "ENOTDIR")
    check_refused(FsyncFailed, lambda: fsync_dir(missing), "fsync_dir", missing, "ENOENT")


# Symbolic links --------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["file", "directory", "nothing"])
def test_symlink_is_never_followed(bench: Bench, target: str) -> None:
    disk = bench.disk
    bench.put("file", b"abc")
    bench.mkdir("directory")
    link = bench.link("link", bench.root / target)
    link_errnos = ("ELOOP", "ENOTDIR")
    for create in (False, True):
        for write in (False, True):
            check_refused(
                NotRegularFile,
                partial(disk.open, link, create=create, write=write),
                "open",
                link,
                *link_errnos,
            )
    check_refused(NotRegularFile, lambda: disk.lock(link), "lock", link, *link_errnos)
    check_refused(NotRegularFile, lambda: disk.listdir(link), "listdir", link, *link_errnos)
    check_refused(NotRegularFile, lambda: disk.rmdir(link), "rmdir", link, *link_errnos)
    check_refused(FsyncFailed, lambda: disk.fsync_dir(link), "fsync_dir", link, *link_errnos)
    assert disk.listdir(bench.root) == ["directory", "file", "link"], "no target was created"

    disk.rename(link, bench.root / "moved")
    assert disk.stat(bench.root / "moved").kind is FileKind.SYMLINK
    disk.unlink(bench.root / "moved")
    assert disk.listdir(bench.root) == ["directory", "file"]
    assert bench.get(bench.root / "file") == b"abc"


def test_rename_onto_a_symlink_replaces_the_link(bench: Bench) -> None:
    target = bench.put("target", b"target")
    link = bench.link("link", target)
    directory = bench.mkdir("directory")
    check_refused(
        NotRegularFile, lambda: bench.disk.rename(directory, link), "rename", directory, "ENOTDIR"
    )
    bench.disk.rename(bench.put("new", b"new"), link)
    assert bench.disk.stat(link).kind is FileKind.FILE
    assert (bench.get(link), bench.get(target)) == (b"new", b"target")


# Locks -----------------------------------------------------------------------------------------


def test_lock_is_exclusive_until_released(bench: Bench) -> None:
    path = bench.root / ".lock"
    lock = bench.disk.lock(path)
    assert bench.disk.stat(path) == FileStat(FileKind.FILE, 0)
    for _ in range(2):
        check_refused(LockHeld, lambda: bench.disk.lock(path), "lock", path, "EAGAIN")
    other = bench.disk.lock(bench.root / ".other")
    lock.release()
    again = bench.disk.lock(path)
    lock.release()
    check_refused(LockHeld, lambda: bench.disk.lock(path), "lock", path, "EAGAIN")
    again.release()
    other.release()
    bench.disk.lock(path).release()


def test_lock_belongs_to_the_file_and_not_to_its_name(bench: Bench) -> None:
    path, moved = bench.root / ".lock", bench.root / "moved"
    lock = bench.disk.lock(path)
    bench.disk.rename(path, moved)
    second = bench.disk.lock(path)
    check_refused(LockHeld, lambda: bench.disk.lock(moved), "lock", moved, "EAGAIN")
    bench.disk.unlink(moved)
    lock.release()
    check_refused(LockHeld, lambda: bench.disk.lock(path), "lock", path, "EAGAIN")
    second.release()


def test_lock_does_not_hinder_the_files_users(bench: Bench) -> None:
    path = bench.put(".lock", b"pid 1")
    lock = bench.disk.lock(path)
    file = bench.disk.open(path)
    file.append(b"2")
    assert file.read_at(0, 9) == b"pid 12"
    file.close()
    check_refused(LockHeld, lambda: bench.disk.lock(path), "lock", path, "EAGAIN")
    lock.release()


def test_lock_wants_a_file_in_a_directory(bench: Bench) -> None:
    directory = bench.mkdir("directory")
    orphan = bench.root / "missing" / ".lock"
    lock = bench.disk.lock
    check_refused(NotRegularFile, lambda: lock(directory), "lock", directory, "EISDIR")
    check_refused(FileMissing, lambda: lock(orphan), "lock", orphan, "ENOENT")
