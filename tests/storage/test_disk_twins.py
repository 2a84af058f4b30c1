"""Random calls on the operating system's disk and on each other one have equal outcomes.

The others are the disk in memory and the simulated disk over both.

After each call the two must have given the same answer, or errors of the same class, operation
and path, with the same errno too unless something stands in the way (EINVAL, EISDIR, ELOOP and
ENOTDIR are then the system's to choose from). At the end both trees must be equal. Names come
from a small set, so that calls collide.

Left out: links to directories, which only the operating system follows on the way to a name, and
all links where one of the two is a simulated disk, which has none.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.disks import SimDisk
from sim.draws import Draws
from storage.disk import Disk, DiskFile, DiskLock, FileKind, OsDisk
from storage.errors import DiskError, NotRegularFile
from storage.memdisk import MemDisk

Step = tuple[Any, ...]

PATHS = st.sampled_from(["", "a", "b", "é", "a/a", "a/b", "b/é", "b/\U0001f600", "a/a/b"])
HANDLES = st.integers(0, 3)
POSITIONS = st.integers(-1, 12)
DATA = st.binary(max_size=6)

STEPS = st.one_of(
    st.tuples(st.just("open"), PATHS, st.booleans(), st.booleans()),
    st.tuples(st.just("close"), HANDLES),
    st.tuples(st.just("read_at"), HANDLES, POSITIONS, st.integers(-1, 12)),
    st.tuples(st.just("read_into"), HANDLES, POSITIONS, st.integers(0, 12)),
    st.tuples(st.just("write_at"), HANDLES, POSITIONS, DATA),
    st.tuples(st.just("append"), HANDLES, DATA),
    st.tuples(st.just("truncate"), HANDLES, POSITIONS),
    st.tuples(st.just("size"), HANDLES),
    st.tuples(st.just("fsync"), HANDLES),
    st.tuples(st.just("lock"), PATHS),
    st.tuples(st.just("release"), HANDLES),
    st.tuples(st.just("symlink"), PATHS),
    st.tuples(st.just("rename"), PATHS, PATHS),
    st.tuples(st.sampled_from(["stat", "listdir", "mkdir", "unlink", "rmdir", "fsync_dir"]), PATHS),
)
# A start with something in it: most calls on an empty disk are refused.
FIRST_STEPS: list[Step] = [
    ("mkdir", "a"),
    ("mkdir", "a/a"),
    ("open", "a/a/b", True, True),
    ("append", 0, b"in a directory"),
    ("open", "b", True, True),
    ("append", 1, b"at the top"),
    ("open", "b", False, False),
    ("symlink", "é"),
    ("lock", "a/b"),
]


@define
class World:
    """One disk with the handles and locks that the steps so far have opened."""

    disk: Disk
    root: Path
    files: list[DiskFile] = field(factory=list)
    locks: list[DiskLock] = field(factory=list)

    def take(self, step: Step) -> object:
        """The outcome of a step, comparable between disks."""
        try:
            return self._take(*step)
        except DiskError as error:
            stands_in_the_way = isinstance(error, NotRegularFile)
            errno_name = "" if stands_in_the_way else error.errno_name
            return type(error), error.operation, error.path, errno_name

    def _take(self, operation: str, first: Any, *rest: Any) -> object:
        if operation == "release":
            self.locks[first % len(self.locks)].release()
            return None
        if isinstance(first, int):
            return self._on_file(operation, first, *rest)
        path = self.root / first
        match operation:
            case "open":
                create, write = rest
                self.files.append(self.disk.open(path, create=create, write=write))
                return None
            case "lock":
                self.locks.append(self.disk.lock(path))
                return None
            case "symlink":
                self._symlink(path)
                return None
            case "rename":
                self.disk.rename(path, self.root / rest[0])
                return None
            case _:
                return getattr(self.disk, operation)(path)

    def _on_file(self, operation: str, handle: int, *rest: Any) -> object:
        if not self.files:
            return None
        file = self.files[handle % len(self.files)]
        match operation:
            case "close":
                # A closed handle takes no more calls.
                self.files.remove(file)
                file.close()
                return None
            case "read_into":
                position, size_bytes = rest
                buffer = bytearray(b"." * size_bytes)
                return file.read_into(position, memoryview(buffer)), buffer
            case _:
                return getattr(file, operation)(*rest)

    def _symlink(self, path: Path) -> None:
        """A link to a file that exists, so that a way through it is ENOTDIR on both disks."""
        if self.disk.stat(path.parent).kind is not FileKind.DIRECTORY:
            return
        if self.disk.stat(path).kind is not FileKind.MISSING:
            return
        target = self.root.parent / "target"
        if isinstance(self.disk, MemDisk):
            self.disk.symlink(path, target)
        else:
            path.symlink_to(target)

    def tree(self, path: Path | None = None) -> object:
        """Everything below ``path``: names, kinds and contents."""
        path = path or self.root
        found = self.disk.stat(path)
        if found.kind is FileKind.DIRECTORY:
            return [(name, self.tree(path / name)) for name in self.disk.listdir(path)]
        if found.kind is FileKind.FILE:
            file = self.disk.open(path, write=False)
            content = file.read_at(0, found.size_bytes + 1)
            file.close()
            return found, content
        return found

    def close(self) -> None:
        for file in self.files:
            file.close()
        for lock in self.locks:
            lock.release()


def start(disk: Disk, root: Path) -> World:
    disk.mkdir(root)
    disk.open(root.parent / "target", create=True).close()
    return World(disk, root)


def check_equal(system: World, twin: World, steps: list[Step]) -> None:
    try:
        for step in steps:
            assert twin.take(step) == system.take(step), step
        assert twin.tree() == system.tree()
    finally:
        system.close()
        twin.close()


def parents(disk: Disk, root: Path) -> None:
    for parent in list(reversed(root.parents))[1:]:
        disk.mkdir(parent)


# Lists of lists, because a plain list of steps is rarely long.
HISTORIES = st.lists(st.lists(STEPS, max_size=20), max_size=10)


@settings(report_multiple_bugs=False)
@given(HISTORIES)
def test_random_calls_have_equal_outcomes(steps: list[list[Step]]) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder) / "root"
        memory = MemDisk()
        parents(memory, root)
        system, twin = start(OsDisk(), root), start(memory, root)
        check_equal(system, twin, [*FIRST_STEPS, *chain.from_iterable(steps)])
        assert World(memory.copy(), root).tree() == twin.tree()
        assert memory.used_bytes == memory.copy().used_bytes, "only named files are left"


@settings(report_multiple_bugs=False)
@given(HISTORIES, st.sampled_from(["os", "memory"]))
def test_random_calls_have_equal_outcomes_on_a_simulated_disk(
    steps: list[list[Step]], backing: str
) -> None:
    with TemporaryDirectory() as folder, TemporaryDirectory() as beside:
        root = Path(folder) / "root"
        if backing == "os":
            disk = SimDisk(OsDisk(), Path(beside) / "b1", Draws(1))
        else:
            disk = SimDisk(MemDisk(), Path("/b1"), Draws(1))
        parents(disk, root)
        taken = [*FIRST_STEPS, *chain.from_iterable(steps)]
        no_links = [step for step in taken if step[0] != "symlink"]
        check_equal(start(OsDisk(), root), start(disk, root), no_links)
        disk.kill()
        digest = disk.digest()
        disk.power_cut(mode="kept")
        assert disk.digest() == digest
