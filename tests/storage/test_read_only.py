"""``ReadOnlyDisk`` passes reads on and lets no change through; a lock can be asked about."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.disk import Disk, FileKind, LockProbe, LockState, OsDisk, _flock_state
from storage.errors import DiskError, DiskReadOnly, FileMissing
from storage.memdisk import MemDisk
from storage.read_only import ReadOnlyDisk
from tests.storage.faults import FaultDisk
from tests.storage.trees import content, put, tree

ROOT = Path(__file__).parents[2]
FILE = Path("/d/file")


@pytest.fixture
def inner() -> MemDisk:
    disk = MemDisk()
    disk.mkdir(Path("/d"))
    put(disk, FILE, b"data")
    return disk


def test_reads_pass(inner: MemDisk) -> None:
    disk = ReadOnlyDisk(inner)
    assert content(disk, FILE) == b"data"
    assert disk.listdir(Path("/d")) == ["file"]
    assert disk.stat(FILE) == inner.stat(FILE)
    assert disk.stat(Path("/d/none")).kind is FileKind.MISSING
    with pytest.raises(FileMissing):
        disk.open(Path("/d/none"))


CHANGES: dict[str, Callable[[Disk], object]] = {
    "create": lambda disk: disk.open(Path("/d/new"), create=True),
    "create what is there": lambda disk: disk.open(FILE, create=True),
    "mkdir": lambda disk: disk.mkdir(Path("/d/new")),
    "rename": lambda disk: disk.rename(FILE, Path("/d/new")),
    "unlink": lambda disk: disk.unlink(FILE),
    "rmdir": lambda disk: disk.rmdir(Path("/d")),
    "fsync_dir": lambda disk: disk.fsync_dir(Path("/d")),
    "lock": lambda disk: disk.lock(FILE),
    "write": lambda disk: disk.open(FILE).write_at(0, b"x"),
    "append": lambda disk: disk.open(FILE).append(b"x"),
    "truncate": lambda disk: disk.open(FILE).truncate(0),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("kind", ["memory", "os"])
def test_every_change_is_refused_before_it_happens(
    name: str, kind: str, inner: MemDisk, tmp_path: Path
) -> None:
    seen = FaultDisk(inner)
    if kind == "memory":
        disk: Disk = ReadOnlyDisk(seen)
        before = tree(inner, Path("/"))
        with pytest.raises(DiskReadOnly):
            CHANGES[name](disk)
        assert tree(inner, Path("/")) == before
        assert {call.operation for call in seen.calls} <= {"open", "write_at", "append", "truncate"}
        assert all(call.args == "create=False write=False" for call in seen.calls[:1])
        return
    (tmp_path / "file").write_bytes(b"data")
    with pytest.raises(DiskReadOnly):
        CHANGES[name](_At(ReadOnlyDisk(OsDisk()), tmp_path))  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"data"


class _At:
    """The paths of this module, in another folder."""

    def __init__(self, disk: Disk, root: Path) -> None:
        self._disk = disk
        self._root = root

    def __getattr__(self, operation: str) -> Callable[..., object]:
        def call(*paths: Path, **options: bool) -> object:
            there = [self._root / path.relative_to("/d") for path in paths]
            return getattr(self._disk, operation)(*there, **options)

        return call


# Asking about a lock ---------------------------------------------------------------------------


def test_lock_state_in_memory(inner: MemDisk) -> None:
    assert isinstance(inner, LockProbe)
    lock_file = Path("/d/.lock")
    assert inner.lock_state(lock_file) == LockState(False)
    lock = inner.lock(lock_file)
    assert ReadOnlyDisk(inner).lock_state(lock_file) == LockState(True)
    lock.release()
    assert inner.lock_state(lock_file) == LockState(False)


def test_lock_state_is_unknown_on_a_disk_that_cannot_be_asked(inner: MemDisk) -> None:
    assert ReadOnlyDisk(FaultDisk(inner)).lock_state(FILE) == LockState(None)


def test_lock_of_another_process_is_seen_and_not_disturbed(tmp_path: Path) -> None:
    if not Path("/proc/locks").is_file():
        pytest.skip("this system has no /proc/locks")
    path = tmp_path / ".lock"
    assert OsDisk().lock_state(path) == LockState(False)
    assert not path.exists()
    script = (
        "import sys; from pathlib import Path; from storage.disk import OsDisk\n"
        "lock = OsDisk().lock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert OsDisk().lock_state(path) == LockState(True, process.pid)
        assert process.stdin is not None
        process.stdin.close()
    assert OsDisk().lock_state(path) == LockState(False)


def test_lock_state_fails_where_the_path_does(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DiskError, match="lock_state"):
        OsDisk().lock_state(tmp_path / "file" / ".lock")


DEVICE = 0xFE00  # major 254, minor 0
ROWS = {
    "none": ([], False, None),
    "held": (["1: FLOCK ADVISORY WRITE 4711 fe:00:99 0 EOF"], True, 4711),
    "another file": (["1: FLOCK ADVISORY WRITE 4711 fe:00:98 0 EOF"], False, None),
    "inode of another device": (["1: FLOCK ADVISORY WRITE 4711 fd:00:99 0 EOF"], None, None),
    "another device first": (
        [
            "1: FLOCK ADVISORY WRITE 1 fd:00:99 0 EOF",
            "2: FLOCK ADVISORY WRITE 4711 fe:00:99 0 EOF",
        ],
        True,
        4711,
    ),
    "another kind": (["1: POSIX ADVISORY WRITE 4711 fe:00:99 0 EOF"], False, None),
    "shared": (["1: FLOCK ADVISORY READ 4711 fe:00:99 0 EOF"], False, None),
    "waiting": (["1: -> FLOCK ADVISORY WRITE 4711 fe:00:99 0 EOF"], False, None),
    "process unknown": (["1: FLOCK ADVISORY WRITE -1 fe:00:99 0 EOF"], True, None),
    "nonsense": (["", "1:", "FLOCK"], False, None),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_the_systems_table(name: str) -> None:
    lines, is_held, pid = ROWS[name]
    rows = [line.split() for line in lines]
    assert _flock_state(rows, DEVICE, 99) == LockState(is_held, pid)
