"""Each kind of disk fault has its effect, strikes when it says, and refuses bad data.

Source: FAULTS C.5.5 (failed fsyncs) and C.5.6 (the others).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.disk_faults import FAULT_KINDS, DiskFault
from storage.disk import DiskFile
from storage.errors import DiskError, DiskFull, DiskReadOnly, FsyncFailed
from tests.sim.disks import Bench, content, files

A = Path("a")
PAGE = 4_096


@pytest.fixture
def bench() -> Bench:
    return Bench("ext4")


def synced(bench: Bench, data: bytes) -> DiskFile:
    file = bench.disk.open(A, create=True)
    file.write_at(0, data)
    file.fsync()
    bench.disk.fsync_dir(Path())
    return file


def strike(bench: Bench, kind: str, **more: Any) -> None:
    bench.disk.faults.add(DiskFault(id="f1", kind=kind, **more))


def after_power_loss(bench: Bench, mode: str = "kept") -> bytes:
    return files(bench.cut(mode=mode)[0])["a"]


# When a fault strikes --------------------------------------------------------------------------


def test_fault_passes_some_calls_then_strikes_so_often(bench: Bench) -> None:
    file = synced(bench, b"abc")
    strike(bench, "error", operation="read_at", after=2, times=2)
    results = []
    for _ in range(6):
        try:
            results.append(file.read_at(0, 1))
        except DiskError as error:
            results.append(error.errno_name.encode())
    assert results == [b"a", b"a", b"EIO", b"EIO", b"a", b"a"]
    assert bench.disk.faults.strikes("f1") == 2


def test_fault_strikes_only_paths_with_its_suffix(bench: Bench) -> None:
    synced(bench, b"")
    strike(bench, "error", operation="open", path=".log", times=None)
    with pytest.raises(DiskError):
        bench.disk.open(Path("x.log"), create=True)
    bench.disk.open(A).close()


def test_fault_for_ever_ends_when_it_is_removed(bench: Bench) -> None:
    file = synced(bench, b"abc")
    strike(bench, "error", operation="read_at", times=None)
    for _ in range(5):
        with pytest.raises(DiskError, match="EIO"):
            file.read_at(0, 1)
    bench.disk.faults.remove("f1")
    assert file.read_at(0, 3) == b"abc"
    assert bench.disk.faults.is_idle()


def test_copy_of_a_disk_counts_on_its_own(bench: Bench) -> None:
    synced(bench, b"abc").close()
    strike(bench, "error", operation="open", after=1)
    copy = bench.disk.copy(bench.backing.copy())
    copy.open(A).close()
    with pytest.raises(DiskError):
        copy.open(A)
    bench.disk.open(A).close()


CALLS: dict[str, Callable[[Bench, DiskFile], object]] = {
    "open": lambda b, f: b.disk.open(A),
    "read_at": lambda b, f: f.read_at(0, 1),
    "read_into": lambda b, f: f.read_into(0, memoryview(bytearray(1))),
    "write_at": lambda b, f: f.write_at(0, b"x"),
    "append": lambda b, f: f.append(b"x"),
    "truncate": lambda b, f: f.truncate(0),
    "size": lambda b, f: f.size(),
    "stat": lambda b, f: b.disk.stat(A),
    "listdir": lambda b, f: b.disk.listdir(Path()),
    "mkdir": lambda b, f: b.disk.mkdir(Path("d")),
    "rename": lambda b, f: b.disk.rename(A, Path("b")),
    "unlink": lambda b, f: b.disk.unlink(A),
    "rmdir": lambda b, f: b.disk.rmdir(Path("empty")),
    "lock": lambda b, f: b.disk.lock(Path("lock")),
    "fsync_dir": lambda b, f: b.disk.fsync_dir(Path()),
}


@pytest.mark.parametrize("operation", FAULT_KINDS["error"])
def test_error_fails_the_call_and_changes_nothing(bench: Bench, operation: str) -> None:
    file = synced(bench, b"abc")
    bench.disk.mkdir(Path("empty"))
    before = bench.disk.digest()
    strike(bench, "error", operation=operation)
    with pytest.raises(DiskError) as caught:
        CALLS[operation](bench, file)
    assert (caught.value.operation, caught.value.errno_name) == (operation, "EIO")
    assert bench.disk.digest() == before
    CALLS[operation](bench, file)


# Writes ----------------------------------------------------------------------------------------


def test_failing_write_may_store_a_part(bench: Bench) -> None:
    file = synced(bench, b"abc")
    strike(bench, "error", operation="append", errno=errno.ENOSPC, partial_bytes=2)
    with pytest.raises(DiskFull):
        file.append(b"1234")
    assert content(bench.disk, "a") == b"abc12"


def test_split_write_is_two_writes_to_a_power_cut(bench: Bench) -> None:
    file = synced(bench, b"abc")
    strike(bench, "split-write", partial_bytes=2)
    assert file.append(b"1234") == 3
    assert content(bench.disk, "a") == b"abc1234"
    images = {tree["a"] for _, tree in bench.enumerated()}
    assert b"abc12" in images


def test_lost_write_shows_until_eviction(bench: Bench) -> None:
    file = synced(bench, b"abc")
    strike(bench, "lost-write")
    file.write_at(0, b"X")
    file.fsync()
    assert file.read_at(0, 9) == b"Xbc"
    assert after_power_loss(bench) == b"abc"
    bench.disk.evict()
    assert file.read_at(0, 9) == b"abc"


def test_misdirected_write_overwrites_its_victim_and_misses_its_target(bench: Bench) -> None:
    file = synced(bench, b"." * (2 * PAGE))
    strike(bench, "misdirected-write", shift_bytes=PAGE)
    file.write_at(10, b"XYZ")
    file.fsync()
    assert file.read_at(10, 3) == b"XYZ", "the cache still has what was written"
    bench.disk.evict()
    assert file.read_at(10, 3) == b"..."
    assert file.read_at(PAGE + 10, 3) == b"XYZ"
    assert after_power_loss(bench, "lost")[PAGE + 10 : PAGE + 13] == b"XYZ"


# Failed fsyncs ---------------------------------------------------------------------------------


def test_failed_fsync_marks_pages_clean_and_a_retry_lies(bench: Bench) -> None:
    file = synced(bench, b"old")
    file.write_at(0, b"new")
    strike(bench, "fsync-fail")
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.fsync()
    assert file.read_at(0, 3) == b"new", "phantom pages are read"
    assert {tree["a"] for _, tree in bench.enumerated()} == {b"old"}
    bench.disk.evict()
    assert file.read_at(0, 3) == b"old"


def test_write_takes_its_page_out_of_the_phantoms(bench: Bench) -> None:
    file = synced(bench, b"o" * (2 * PAGE))
    file.write_at(0, b"n" * (2 * PAGE))
    strike(bench, "fsync-fail")
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.write_at(5, b"m")
    file.fsync()
    expected = b"n" * 5 + b"m" + b"n" * (PAGE - 6) + b"o" * PAGE
    assert after_power_loss(bench, "lost") == expected
    bench.disk.evict()
    assert file.read_at(0, 3 * PAGE) == expected


def test_eviction_takes_nothing_that_a_later_fsync_wrote(bench: Bench) -> None:
    file = synced(bench, b"o" * (2 * PAGE))
    file.write_at(0, b"n" * PAGE)
    strike(bench, "fsync-fail")
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.write_at(PAGE, b"m" * PAGE)
    file.append(b"x")
    file.fsync()
    expected = b"o" * PAGE + b"m" * PAGE + b"x"
    assert after_power_loss(bench, "lost") == expected
    bench.disk.evict()
    assert file.read_at(0, 3 * PAGE) == expected
    assert {tree["a"] for _, tree in bench.enumerated()} == {expected}


def test_eviction_keeps_what_is_pending_pending(bench: Bench) -> None:
    file = synced(bench, b"o" * (2 * PAGE))
    file.write_at(0, b"n")
    strike(bench, "fsync-fail")
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.truncate(PAGE + 1)
    file.write_at(PAGE, b"m")
    bench.disk.evict()
    assert content(bench.disk, "a") == b"o" * PAGE + b"m"
    assert after_power_loss(bench, "lost") == b"o" * (2 * PAGE)
    assert after_power_loss(bench, "kept") == b"o" * PAGE + b"m"


def test_failed_fsync_may_show_the_old_content_at_once(bench: Bench) -> None:
    file = synced(bench, b"old")
    file.write_at(0, b"new")
    strike(bench, "fsync-fail", content="revert")
    with pytest.raises(FsyncFailed):
        file.fsync()
    assert file.read_at(0, 3) == b"old"
    assert after_power_loss(bench) == b"old"


def test_failed_append_that_reverts_leaves_zeros_or_the_old_size(bench: Bench) -> None:
    file = synced(bench, b"old")
    file.append(b"new")
    strike(bench, "fsync-fail", content="revert")
    with pytest.raises(FsyncFailed):
        file.fsync()
    assert file.read_at(0, 9) in (b"old", b"old\0\0\0")
    assert file.append(b"x") == file.size() - 1


def test_failure_may_be_reported_by_the_next_fsync(bench: Bench) -> None:
    file = synced(bench, b"old")
    file.write_at(0, b"new")
    strike(bench, "fsync-fail", report="next")
    file.fsync()
    with pytest.raises(FsyncFailed):
        file.fsync()
    file.fsync()
    assert after_power_loss(bench) == b"old"


def test_lying_fsync_succeeds_and_the_next_honest_one_makes_good(bench: Bench) -> None:
    file = synced(bench, b"old")
    file.write_at(0, b"new")
    strike(bench, "fsync-lie")
    file.fsync()
    assert after_power_loss(bench, "lost") == b"old"
    file.fsync()
    assert after_power_loss(bench, "lost") == b"new"


def test_lying_fsync_of_a_directory_makes_no_name_durable() -> None:
    bench = Bench("posix")
    bench.disk.open(A, create=True).close()
    strike(bench, "fsync-lie", operation="fsync_dir")
    bench.disk.fsync_dir(Path())
    assert files(bench.cut(mode="lost")[0]) == {}
    bench.disk.fsync_dir(Path())
    assert files(bench.cut(mode="lost")[0]) == {"a": b""}


def test_fsync_failure_may_leave_the_file_system_read_only(bench: Bench) -> None:
    """As ext4 with errors=remount-ro: nothing changes any more, and no sync succeeds."""
    file = synced(bench, b"old")
    bench.disk.mkdir(Path("empty"))
    file.write_at(0, b"new")
    strike(bench, "fsync-read-only", operation="complete_fsync")
    with pytest.raises(FsyncFailed, match="EIO"):
        file.fsync()
    before = bench.disk.digest()
    changes = ("write_at", "append", "truncate", "mkdir", "rename", "unlink", "rmdir", "lock")
    for operation in (*changes, "open"):
        with pytest.raises(DiskReadOnly, match="EROFS"):
            CALLS[operation](bench, file)
    for sync in (file.fsync, lambda: bench.disk.fsync_dir(Path())):
        with pytest.raises(FsyncFailed, match="EROFS"):
            sync()
    assert bench.disk.write_back() == 0
    assert bench.disk.digest() == before
    assert bench.disk.open(A, write=False).read_at(0, 9) == b"new", "phantom pages are read"


@pytest.mark.parametrize("mode", ["lost", "kept"])
def test_power_cut_behind_a_read_only_remount_loses_what_failed_and_mounts_anew(
    bench: Bench, mode: str
) -> None:
    file = synced(bench, b"old")
    file.write_at(0, b"new")
    strike(bench, "fsync-read-only")
    with pytest.raises(FsyncFailed):
        file.fsync()
    after = bench.cut(mode=mode)[0]
    assert files(after)["a"] == b"old"
    again = after.open(A)
    again.write_at(0, b"now")
    again.fsync()


def test_sync_of_a_directory_may_leave_the_file_system_read_only() -> None:
    bench = Bench("posix")
    bench.disk.open(A, create=True).close()
    strike(bench, "fsync-read-only", operation="fsync_dir")
    for name in ("EIO", "EROFS"):
        with pytest.raises(FsyncFailed, match=name):
            bench.disk.fsync_dir(Path())
    assert files(bench.cut(mode="lost")[0]) == {}


# Delayed allocation ----------------------------------------------------------------------------


def test_late_enospc_loses_what_needs_a_block_and_writes_the_rest(bench: Bench) -> None:
    file = synced(bench, b"o" * 100)
    file.write_at(0, b"n")
    file.append(b"a" * PAGE)
    strike(bench, "late-enospc")
    with pytest.raises(FsyncFailed, match="ENOSPC"):
        file.fsync()
    assert content(bench.disk, "a") == b"n" + b"o" * 99 + b"a" * PAGE, "phantom pages are read"
    left = after_power_loss(bench, "lost")
    assert left[:100] == b"n" + b"o" * 99
    assert b"a" not in left[PAGE:]
    file.fsync()
    assert b"a" not in after_power_loss(bench)[PAGE:], "a retry succeeds and writes nothing"


def test_late_enospc_passes_an_fsync_that_needs_no_block(bench: Bench) -> None:
    file = synced(bench, b"o" * 100)
    file.write_at(0, b"n" * 100)
    file.append(b"in the block that the file has")
    strike(bench, "late-enospc")
    file.fsync()
    assert after_power_loss(bench, "lost") == b"n" * 100 + b"in the block that the file has"


def test_late_enospc_counts_the_blocks_that_a_cut_gave_back(bench: Bench) -> None:
    file = synced(bench, b"o" * PAGE)
    file.truncate(0)
    file.append(b"new")
    strike(bench, "late-enospc")
    with pytest.raises(FsyncFailed, match="ENOSPC"):
        file.fsync()


def test_late_enospc_may_drop_the_pages_at_once(bench: Bench) -> None:
    """ext4 and XFS discard what they could not allocate."""
    file = synced(bench, b"")
    file.append(b"new")
    strike(bench, "late-enospc", content="revert")
    with pytest.raises(FsyncFailed, match="ENOSPC"):
        file.fsync()
    assert content(bench.disk, "a") in (b"", b"\0\0\0")


def test_late_enospc_in_background_is_told_to_the_next_fsync_alone(bench: Bench) -> None:
    file = synced(bench, b"")
    file.append(b"new")
    strike(bench, "late-enospc", operation="write_back")
    bench.disk.write_back()
    assert file.read_at(0, 9) == b"new"
    with pytest.raises(FsyncFailed, match="ENOSPC"):
        file.fsync()
    file.fsync()
    assert b"new" not in after_power_loss(bench)


# Behind the process's back ---------------------------------------------------------------------


def test_bad_sectors_fail_reads_until_they_are_written(bench: Bench) -> None:
    file = synced(bench, b"." * 2_048)
    bench.disk.spoil_sectors(A, 600, 1)
    assert file.read_at(0, 512) == b"." * 512
    for position, size in ((512, 1), (1_023, 1), (0, 2_048)):
        with pytest.raises(DiskError, match="EIO"):
            file.read_at(position, size)
    assert file.read_at(1_024, 9) == b"." * 9
    file.write_at(512, b"n" * 512)
    assert file.read_at(500, 20) == b"." * 12 + b"n" * 8


def test_bad_sector_survives_a_power_cut(bench: Bench) -> None:
    synced(bench, b"." * 1_024)
    bench.disk.spoil_sectors(A, 0)
    bench.disk.power_cut()
    with pytest.raises(DiskError, match="EIO"):
        bench.disk.open(A).read_at(0, 1)


@pytest.mark.parametrize("mode", ["lost", "kept"])
def test_flipped_bit_is_read_and_stays(bench: Bench, mode: str) -> None:
    synced(bench, b"abc")
    bench.disk.flip_bit(A, 1, bit=3)
    assert content(bench.disk, "a") == b"ajc"
    assert after_power_loss(bench, mode) == b"ajc"


def test_flipped_bit_takes_no_unsynced_neighbour_along(bench: Bench) -> None:
    """Rot is on the platter; what is dirty in the cache is not written by it."""
    file = synced(bench, b"abc")
    file.append(b"def")
    bench.disk.flip_bit(A, 0)
    assert content(bench.disk, "a") == b"`bcdef"
    assert after_power_loss(bench, "lost") == b"`bc"


def test_flip_outside_the_file_is_refused(bench: Bench) -> None:
    synced(bench, b"abc")
    with pytest.raises(ValueError, match="byte 3 is behind the end of a"):
        bench.disk.flip_bit(A, 3)
    with pytest.raises(ValueError, match="b is no file of disk disk"):
        bench.disk.spoil_sectors(Path("b"), 0)


def test_full_disk_stores_what_fits() -> None:
    bench = Bench("ext4", capacity_bytes=10)
    file = synced(bench, b"1234567")
    with pytest.raises(DiskFull):
        file.append(b"abcdef")
    assert content(bench.disk, "a") == b"1234567abc"
    file.write_at(0, b"overwriting needs no room"[:10])
    with pytest.raises(DiskFull):
        file.truncate(11)
    file.truncate(5)
    assert file.append(b"again") == 5
    other = bench.disk.open(Path("b"), create=True)
    with pytest.raises(DiskFull):
        other.append(b"x")


def test_room_comes_back_when_a_file_is_gone_for_good() -> None:
    bench = Bench("ext4", capacity_bytes=10)
    synced(bench, b"1234567890").close()
    bench.disk.unlink(A)
    bench.disk.fsync_dir(Path())
    bench.disk.open(Path("b"), create=True).append(b"1234567890")


def test_read_only_remount_refuses_every_change_and_reads_on(bench: Bench) -> None:
    file = synced(bench, b"abc")
    bench.disk.mkdir(Path("empty"))
    bench.disk.is_read_only = True
    before = bench.disk.digest()
    changes = ("write_at", "append", "truncate", "mkdir", "rename", "unlink", "rmdir", "lock")
    for operation in (*changes, "open"):
        with pytest.raises(DiskReadOnly, match="EROFS"):
            CALLS[operation](bench, file)
    with pytest.raises(DiskReadOnly, match="EROFS"):
        bench.disk.open(Path("new"), create=True)
    assert file.read_at(0, 9) == b"abc"
    assert bench.disk.digest() == before


# Bad data --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "explode"}, r"kind is 'explode', allowed: error, split-write, lost-write"),
        ({"content": "drop"}, r"content is 'drop', allowed: keep, revert"),
        ({"report": "never"}, r"report is 'never', allowed: now, next"),
        (
            {"kind": "fsync-fail", "operation": "append"},
            r"operation is 'append', allowed for fsync-fail: complete_fsync",
        ),
        ({"after": -1}, r"after is -1, allowed is 0 or more"),
        ({"partial_bytes": -2}, r"partial_bytes is -2, allowed is 0 or more"),
        ({"times": 0}, r"times is 0, allowed is 1 or more, or None"),
    ],
)
def test_bad_data_is_refused_with_the_allowed_values(data: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DiskFault(**{"id": "f1", "kind": "error", **data})


def test_fuse_of_no_call_is_refused(bench: Bench) -> None:
    with pytest.raises(ValueError, match="calls is 0, allowed is 1 or more"):
        bench.disk.arm_fuse(0)
