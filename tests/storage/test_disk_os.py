"""What only the operating system's disk can show: short calls, failing calls, other processes.

A failure that cannot be had for real is put in the place of the function of ``os`` that has it.
Other processes run ``-c`` scripts and talk over pipes; nothing here waits for a clock.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.disk import Disk, FileKind, OsDisk, disk_error
from storage.errors import (
    AccessDenied,
    DiskError,
    DiskFull,
    DiskReadOnly,
    FileExists,
    FileMissing,
    FsyncFailed,
    LockHeld,
    NotRegularFile,
)

ROOT = Path(__file__).resolve().parent.parent.parent
NOBODY = 65534

CLASS_OF_ERRNO: dict[int, type[DiskError]] = {
    errno.ENOSPC: DiskFull,
    errno.EDQUOT: DiskFull,
    errno.EFBIG: DiskFull,
    errno.EROFS: DiskReadOnly,
    errno.EBADF: DiskReadOnly,
    errno.EACCES: AccessDenied,
    errno.EPERM: AccessDenied,
    errno.ENOENT: FileMissing,
    errno.EEXIST: FileExists,
    errno.ENOTEMPTY: FileExists,
    errno.ELOOP: NotRegularFile,
    errno.ENOTDIR: NotRegularFile,
    errno.EISDIR: NotRegularFile,
    errno.ENXIO: NotRegularFile,
    errno.EAGAIN: LockHeld,
    errno.EIO: DiskError,
    errno.ENAMETOOLONG: DiskError,
    errno.EMFILE: DiskError,
    errno.EBUSY: DiskError,
}


@pytest.fixture
def disk() -> Disk:
    return OsDisk()


def failing(number: int) -> Callable[..., Any]:
    def call(*_: object, **__: object) -> Any:
        raise OSError(number, "the host's own words")

    return call


def put(disk: Disk, path: Path, data: bytes) -> Path:
    file = disk.open(path, create=True)
    file.append(data)
    file.close()
    return path


# Short reads and writes ------------------------------------------------------------------------


def short_pwrite(size_bytes: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let ``os.pwrite`` store at most ``size_bytes``; returns the positions it is called with."""
    positions: list[int] = []
    pwrite = os.pwrite

    def call(fd: int, data: Any, position: int) -> int:
        positions.append(position)
        return pwrite(fd, memoryview(data)[:size_bytes], position)

    monkeypatch.setattr(os, "pwrite", call)
    return positions


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_short_writes_are_completed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Callable[[bytes], Any]
) -> None:
    file = disk.open(tmp_path / "log", create=True)
    positions = short_pwrite(3, monkeypatch)
    file.write_at(2, kind(b"abcdefgh"))
    assert file.append(kind(b"ijkl")) == 10
    assert file.read_at(0, 99) == b"\0\0abcdefghijkl"
    assert positions == [2, 5, 8, 10, 13]


def test_write_without_progress_fails(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(tmp_path / "log", create=True)
    short_pwrite(0, monkeypatch)
    with pytest.raises(DiskError, match="EIO"):
        file.append(b"abc")
    assert file.size() == 0


@pytest.mark.parametrize("operation", ["append", "write_at"])
def test_write_that_fails_in_the_middle_leaves_a_prefix(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    file = disk.open(tmp_path / "log", create=True)
    pwrite, left = os.pwrite, [4, 2]

    def call(fd: int, data: Any, position: int) -> int:
        if not left:
            raise OSError(errno.ENOSPC, "full")
        return pwrite(fd, memoryview(data)[: left.pop(0)], position)

    monkeypatch.setattr(os, "pwrite", call)
    with pytest.raises(DiskFull) as caught:
        file.append(b"0123456789") if operation == "append" else file.write_at(0, b"0123456789")
    assert (caught.value.operation, caught.value.errno_name) == (operation, "ENOSPC")
    assert file.read_at(0, 99) == b"012345"


def test_short_reads_are_completed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(put(disk, tmp_path / "log", b"0123456789"))
    pread, preadv = os.pread, os.preadv
    monkeypatch.setattr(os, "pread", lambda fd, size, at: pread(fd, min(size, 3), at))
    monkeypatch.setattr(os, "preadv", lambda fd, to, at: preadv(fd, [to[0][:3]], at))
    assert file.read_at(1, 8) == b"12345678"
    assert file.read_at(1, 99) == b"123456789"
    buffer = bytearray(12)
    assert file.read_into(1, memoryview(buffer)[:8]) == 8
    assert buffer == b"12345678\0\0\0\0"
    assert file.read_into(1, memoryview(buffer)) == 9
    assert buffer == b"123456789\0\0\0"


# Errors ----------------------------------------------------------------------------------------

# The function of os that fails, and the operations that must report it.
FUNCTIONS = {
    "fstat": {"append", "size"},
    "ftruncate": {"truncate"},
    "listdir": {"listdir"},
    "lstat": {"stat"},
    "mkdir": {"mkdir"},
    "open": {"fsync_dir", "listdir", "lock", "open"},
    "pread": {"read_at"},
    "preadv": {"read_into"},
    "pwrite": {"append", "write_at"},
    "fsync": {"fsync", "fsync_dir"},
    "rename": {"rename"},
    "rmdir": {"rmdir"},
    "unlink": {"unlink"},
}
FUNCTION_AND_OPERATION = [
    (function, operation)
    for function, operations in FUNCTIONS.items()
    for operation in sorted(operations)
]


def calls_by_operation(disk: Disk, root: Path) -> dict[str, tuple[Path, Callable[[], object]]]:
    """Every operation: the path that its error must name, and a call that would succeed."""
    path = put(disk, root / "log", b"abc")
    file = disk.open(path)
    return {
        "append": (path, lambda: file.append(b"x")),
        "fsync": (path, lambda: file.fsync()),
        "fsync_dir": (root, lambda: disk.fsync_dir(root)),
        "listdir": (root, lambda: disk.listdir(root)),
        "lock": (root / ".lock", lambda: disk.lock(root / ".lock")),
        "mkdir": (root / "new", lambda: disk.mkdir(root / "new")),
        "open": (path, lambda: disk.open(path)),
        "read_at": (path, lambda: file.read_at(0, 1)),
        "read_into": (path, lambda: file.read_into(0, memoryview(bytearray(1)))),
        "rename": (path, lambda: disk.rename(path, root / "new")),
        "rmdir": (root / "new", lambda: disk.rmdir(root / "new")),
        "size": (path, lambda: file.size()),
        "stat": (path, lambda: disk.stat(path)),
        "truncate": (path, lambda: file.truncate(1)),
        "unlink": (path, lambda: disk.unlink(path)),
        "write_at": (path, lambda: file.write_at(0, b"x")),
    }


def test_every_operation_has_a_function_that_fails(disk: Disk, tmp_path: Path) -> None:
    tested = {operation for _, operation in FUNCTION_AND_OPERATION}
    assert tested == set(calls_by_operation(disk, tmp_path))


@pytest.mark.parametrize(("function", "operation"), FUNCTION_AND_OPERATION)
def test_errno_decides_the_class_and_the_call_names_itself(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, operation: str
) -> None:
    path, call = calls_by_operation(disk, tmp_path)[operation]
    for number, kind in CLASS_OF_ERRNO.items():
        if operation == "stat" and number == errno.ENOENT:
            continue  # a kind of path, not an error
        with monkeypatch.context() as patch:
            patch.setattr(os, function, failing(number))
            with pytest.raises(DiskError) as caught:
                call()
        error = caught.value
        assert type(error) is (FsyncFailed if operation.startswith("fsync") else kind)
        assert (error.operation, error.path) == (operation, path)
        assert error.errno_name == errno.errorcode[number]
        assert str(error) == f"{operation} {path}: {error.errno_name}", "not the host's words"
        assert isinstance(error.__cause__, OSError)


def test_failed_complete_fsync_is_an_fsync_that_failed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = disk.open(tmp_path / "log", create=True)
    token = file.begin_fsync()
    monkeypatch.setattr(os, "fsync", failing(errno.ENOSPC))
    with pytest.raises(FsyncFailed, match=r"^fsync .*log: ENOSPC$"):
        file.complete_fsync(token)


def test_errno_without_a_name_is_shown_as_a_number() -> None:
    error = disk_error("stat", Path("x"), 99_999, "detail")
    assert (type(error), str(error)) == (DiskError, "stat x: errno 99999: detail")


@pytest.mark.parametrize("subject", ["file", "lock"])
def test_failed_close_is_a_disk_error_and_the_handle_is_closed(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subject: str
) -> None:
    path, close = tmp_path / subject, os.close
    let_go = disk.lock(path).release if subject == "lock" else disk.open(path, create=True).close
    closed: list[int] = []

    def call(fd: int) -> None:
        close(fd)
        closed.append(fd)
        raise OSError(errno.EIO, "late write failed")

    monkeypatch.setattr(os, "close", call)
    with pytest.raises(DiskError, match="EIO") as caught:
        let_go()
    assert caught.value.operation == ("release" if subject == "lock" else "close")
    assert caught.value.path == path
    let_go()
    assert len(closed) == 1


# What the kernel itself refuses ----------------------------------------------------------------


@pytest.fixture
def no_hang() -> Iterator[None]:
    """Turn a call that would block for ever into a failure."""

    def give_up(*_: object) -> None:
        pytest.fail("the call blocks")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.fspath(path))


@pytest.mark.usefixtures("no_hang")
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, make_socket], ids=["fifo", "dir", "socket"])
def test_what_only_bears_a_files_name_is_refused(
    disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[[Path], None]
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path has a length limit
    path = Path("00.log")
    make(path)
    before = os.listdir("/proc/self/fd")
    for create in (False, True):
        for write in (False, True):
            with pytest.raises(NotRegularFile) as caught:
                disk.open(path, create=create, write=write)
            assert (caught.value.operation, caught.value.path) == ("open", path)
    with pytest.raises(NotRegularFile) as caught:
        disk.lock(path)
    assert (caught.value.operation, caught.value.path) == ("lock", path)
    assert os.listdir("/proc/self/fd") == before, "no descriptor leaks"
    assert disk.stat(path).kind is (FileKind.DIRECTORY if make is os.mkdir else FileKind.OTHER)
    if make is not os.mkdir:
        with pytest.raises(FsyncFailed, match="ENOTDIR"):
            disk.fsync_dir(path)
        with pytest.raises(NotRegularFile, match="ENOTDIR"):
            disk.listdir(path)


def test_device_is_refused(disk: Disk) -> None:
    for write in (False, True):
        with pytest.raises(NotRegularFile):
            disk.open(Path("/dev/null"), write=write)
    with pytest.raises(NotRegularFile):
        disk.lock(Path("/dev/null"))


def test_name_that_is_too_long_is_a_disk_error(disk: Disk, tmp_path: Path) -> None:
    with pytest.raises(DiskError, match="ENAMETOOLONG"):
        disk.open(tmp_path / ("x" * 256), create=True)


def test_failed_calls_leak_no_descriptor(disk: Disk, tmp_path: Path) -> None:
    lock = disk.lock(tmp_path / ".lock")
    before = os.listdir("/proc/self/fd")
    for call in (
        lambda: disk.lock(tmp_path / ".lock"),
        lambda: disk.fsync_dir(tmp_path / ".lock"),
        lambda: disk.listdir(tmp_path / ".lock"),
        lambda: disk.open(tmp_path / "missing"),
    ):
        with pytest.raises(DiskError):
            call()
    disk.fsync_dir(tmp_path)
    disk.listdir(tmp_path)
    assert os.listdir("/proc/self/fd") == before
    lock.release()
    assert len(os.listdir("/proc/self/fd")) == len(before) - 1


def test_descriptor_is_the_open_file_and_not_inherited(disk: Disk, tmp_path: Path) -> None:
    path = put(disk, tmp_path / "log", b"abc")
    file = disk.open(path)
    fd = file.fileno()
    assert fd is not None
    assert os.path.sameopenfile(fd, fd)
    assert os.fstat(fd).st_ino == path.stat().st_ino
    assert not os.get_inheritable(fd)


# Other processes -------------------------------------------------------------------------------

PRELUDE = """
import os, resource, sys
from pathlib import Path
from storage.disk import OsDisk
from storage.errors import DiskError
disk = OsDisk()
def outcome(call):
    try:
        call()
    except DiskError as error:
        return f"{type(error).__name__} {error.operation} {error.path} {error.errno_name}"
    return "done"
"""


def start(script: str, folder: Path, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PRELUDE + script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )


def run(script: str, folder: Path) -> list[str]:
    process = start(script, folder)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    return output.splitlines()


def test_file_size_limit_of_the_process_is_a_full_disk(disk: Disk, tmp_path: Path) -> None:
    # Python ignores SIGXFSZ, so that the kernel says EFBIG instead of ending the process.
    script = """
resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))
file = disk.open(Path("log"), create=True)
file.append(b"0123456")
print(outcome(lambda: file.append(b"abcdef")))
print(outcome(lambda: file.write_at(20, b"x")))
print(outcome(lambda: file.truncate(11)))
"""
    assert run(script, tmp_path) == [
        "DiskFull append log EFBIG",
        "DiskFull write_at log EFBIG",
        "DiskFull truncate log EFBIG",
    ]
    assert disk.open(tmp_path / "log").read_at(0, 99) == b"0123456abc"


def test_missing_permission_is_access_denied(disk: Disk, tmp_path: Path) -> None:
    put(disk, tmp_path / "log", b"abc")
    disk.mkdir(tmp_path / "directory")
    os.chmod(tmp_path / "log", 0o000)
    os.chmod(tmp_path / "directory", 0o000)
    os.chmod(tmp_path, 0o555)
    script = f"""
if os.getuid() == 0:  # root may do anything
    os.setuid({NOBODY})
log, new, directory = Path("log"), Path("new"), Path("directory")
for call in (
    lambda: disk.open(log),
    lambda: disk.open(log, write=False),
    lambda: disk.open(new, create=True),
    lambda: disk.lock(log),
    lambda: disk.mkdir(new),
    lambda: disk.rename(log, new),
    lambda: disk.unlink(log),
    lambda: disk.rmdir(directory),
    lambda: disk.listdir(directory),
    lambda: disk.stat(directory / "below"),
    lambda: disk.fsync_dir(directory),
    lambda: disk.stat(log),
):
    print(outcome(call))
"""
    try:
        lines = run(script, tmp_path)
    finally:
        os.chmod(tmp_path, 0o755)
        os.chmod(tmp_path / "directory", 0o755)
    assert lines == [
        "AccessDenied open log EACCES",
        "AccessDenied open log EACCES",
        "AccessDenied open new EACCES",
        "AccessDenied lock log EACCES",
        "AccessDenied mkdir new EACCES",
        "AccessDenied rename log EACCES",
        "AccessDenied unlink log EACCES",
        "AccessDenied rmdir directory EACCES",
        "AccessDenied listdir directory EACCES",
        "AccessDenied stat directory/below EACCES",
        "FsyncFailed fsync_dir directory EACCES",
        "done",
    ]


def test_lock_holds_against_another_process(disk: Disk, tmp_path: Path) -> None:
    script = 'print(outcome(lambda: disk.lock(Path(".lock"))))'
    lock = disk.lock(tmp_path / ".lock")
    assert run(script, tmp_path) == ["LockHeld lock .lock EAGAIN"]
    lock.release()
    assert run(script, tmp_path) == ["done"]
    disk.lock(tmp_path / ".lock").release()


@pytest.mark.parametrize("ending", ["exits", "is killed"])
def test_lock_ends_with_its_process(disk: Disk, tmp_path: Path, ending: str) -> None:
    script = """
lock = disk.lock(Path(".lock"))
print("held", flush=True)
sys.stdin.read()
os._exit(0)
"""
    with start(script, tmp_path) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(LockHeld):
            disk.lock(tmp_path / ".lock")
        if ending == "is killed":
            process.kill()
        process.communicate(timeout=60)
    disk.lock(tmp_path / ".lock").release()


def test_lock_is_not_inherited_by_a_child(disk: Disk, tmp_path: Path) -> None:
    lock = disk.lock(tmp_path / ".lock")
    with start('print("up", flush=True)\nsys.stdin.read()', tmp_path, close_fds=False) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "up\n"
        lock.release()
        disk.lock(tmp_path / ".lock").release()
        child.communicate(timeout=60)
