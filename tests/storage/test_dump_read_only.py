"""A dump changes nothing: on every kind of path, in every form, on memory and on the real disk.

In memory the disk fails the test at the first call that is no read. On the operating system the
whole tree is compared, with sizes, modes and times of change, and files may not be writable.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import PartitionLog
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from tests.storage.dumping import (
    BROKER,
    CONFIG,
    FLAGS,
    LOG,
    WatchedDisk,
    crashed_log,
    dump,
    healthy_broker,
    healthy_log,
)
from tests.storage.faults import FaultDisk
from tests.storage.test_dump_verdict import DAMAGES
from tests.storage.trees import paths_below, tree

FORMS = ((), ("--json",), ("--records", "--full"))
READS = ("open", "stat", "listdir", "read_at", "read_into", "size", "close")


def run_all(disk: MemDisk, root: Path) -> None:
    watched = WatchedDisk(disk)
    before = tree(disk, Path("/"))
    for path in paths_below(disk, root):
        for form in FORMS:
            ran = dump(watched, path, *FLAGS, *form)
            assert ran.status in (0, 1, 2), ran.err
            assert watched.open_files == 0
    assert tree(disk, Path("/")) == before


@pytest.mark.parametrize("name", DAMAGES)
def test_no_change_to_a_log_or_any_of_its_files(name: str) -> None:
    disk = healthy_log()
    DAMAGES[name](disk)
    run_all(disk, LOG)


@pytest.mark.parametrize("make", [healthy_log, crashed_log, healthy_broker])
def test_no_change_to_what_lies_around(make: Callable[[], MemDisk]) -> None:
    run_all(make(), Path("/data"))


@pytest.mark.parametrize("make", [healthy_log, healthy_broker])
def test_seal_is_still_there_for_the_next_open(make: Callable[[], MemDisk]) -> None:
    disk = make()
    directory = LOG if make is healthy_log else BROKER / "orders-1"
    for path in (directory, directory.parent):
        dump(disk, path, *FLAGS)
    if make is healthy_log:
        log = PartitionLog.open(LOG, CONFIG, disk=disk)
    else:
        log = LogDir.open(BROKER, disk=disk).open_log("orders", 1, CONFIG)
    assert log.report.is_clean


# The real disk ---------------------------------------------------------------------------------


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """Everything at once: a closed log, a crashed one, a broker's directory, damage, odd files."""
    for name, make in (("closed", healthy_log), ("crashed", crashed_log), ("b", healthy_broker)):
        disk = make()
        for path, what in tree(disk, Path("/data")).items():
            place = tmp_path / name / path
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(what, bytes):
                place.write_bytes(what)
    torn = tmp_path / "crashed" / "orders-0" / f"{9:020d}.log"
    torn.write_bytes(torn.read_bytes()[:-10])
    odd = tmp_path / "closed" / "orders-0"
    (odd / "link").symlink_to("boundary")
    os.mkfifo(odd / "pipe")
    (odd / "directory").mkdir()
    (odd / "name\x1b[31m\n\udcff").write_bytes(b"x")
    return tmp_path


def snapshot(root: Path) -> dict[str, tuple[int, ...]]:
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        stat = path.lstat()
        facts = (stat.st_ino, stat.st_mode, stat.st_nlink, stat.st_size)
        found[str(path)] = (*facts, stat.st_mtime_ns, stat.st_ctime_ns)
    return found


def test_no_change_to_a_real_tree(on_disk: Path) -> None:
    before = snapshot(on_disk)
    paths = [on_disk, *sorted(on_disk.rglob("*"))]
    assert len(paths) > 50
    for path in paths:
        for form in FORMS:
            assert dump(None, path, *FLAGS, *form).status in (0, 1, 2)
    assert snapshot(on_disk) == before


def test_files_without_write_permission_are_shown(on_disk: Path) -> None:
    root = on_disk / "b" / "broker"
    for path in [*root.rglob("*"), root]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert dump(None, root, *FLAGS).status == 0
    finally:
        for path in [root, *root.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)


def test_dump_of_a_copy_says_what_the_dump_of_the_log_says(on_disk: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(on_disk / "crashed", copy)
    shown = dump(None, on_disk / "crashed" / "orders-0", *FLAGS).out
    copied = dump(None, copy / "orders-0", *FLAGS).out
    assert copied.replace(str(copy), "") == shown.replace(str(on_disk / "crashed"), "")


# Reads that fail -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("operation", READS)
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
@pytest.mark.parametrize(
    ("make", "root"), [(healthy_log, LOG), (crashed_log, LOG), (healthy_broker, BROKER)]
)
def test_every_read_may_fail(
    make: Callable[[], MemDisk], root: Path, form: tuple[str, ...], operation: str
) -> None:
    """One call after another fails; the dump says so, or shows what it has, and never breaks."""
    original = make()
    for path in paths_below(original, root):
        at = 1
        while True:
            disk = FaultDisk(original.copy())
            plan = disk.fail(operation, at=at)
            ran = dump(disk, path, *FLAGS, *form)
            if not plan.hits:
                break
            assert ran.status in (0, 1, 2), f"{path} {operation} {at}: {ran.err}"
            at += 1


def test_segment_that_cannot_be_read_is_named_and_the_others_are_shown() -> None:
    disk = FaultDisk(healthy_log())
    disk.fail("open", suffix=f"{4:020d}.log", times=None, errno=13)
    ran = dump(disk, LOG, *FLAGS)
    assert ran.status == 1
    assert f"{4:020d}.log: cannot be read: open {LOG}/{4:020d}.log: EACCES" in ran.out
    assert f"An open refuses: AccessDenied: open {LOG}/{4:020d}.log: EACCES" in ran.out
    assert "<- unreadable" in ran.out
    assert f"{9:020d}.log    176  9..10" in ran.out


def test_partition_that_cannot_be_read_is_named_and_the_others_are_shown() -> None:
    disk = FaultDisk(healthy_broker())
    disk.fail("listdir", suffix="orders-1", times=None, errno=13)
    ran = dump(disk, BROKER, *FLAGS)
    assert ran.status == 1
    assert "note: orders-1: listdir /data/broker/orders-1: EACCES" in ran.out
    assert "Verdicts: 2 clean" in ran.out


def test_directory_that_cannot_be_listed_is_nothing_to_show() -> None:
    disk = FaultDisk(healthy_log())
    disk.fail("listdir", times=None, errno=13)
    ran = dump(disk, LOG)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == "/data/orders-0: listdir /data/orders-0: EACCES\n"


def test_disk_that_cannot_be_asked_about_locks_says_so() -> None:
    ran = dump(FaultDisk(healthy_log()), LOG, *FLAGS)
    assert "in use     unknown\n" in ran.out
    assert ran.status == 0
