"""Disk faults that last, and those that are told of later: what they do and whom they name.

Source: FAULTS C.5.5 and C.5.6.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.disk_faults import DiskFault
from storage.errors import DiskError, DiskReadOnly, FsyncFailed
from tests.sim.disks import Bench, content
from tests.sim.test_disk_faults import CALLS, A, after_power_loss, bench, strike, synced

__all__ = ["bench"]


def told(bench: Bench) -> list[tuple[str, str]]:
    """The strikes from now on: fault and call."""
    found: list[tuple[str, str]] = []
    bench.disk.on_strike = lambda fault, operation, path: found.append((fault.id, operation))
    return found


def test_a_fault_that_mounts_read_only_ends_with_it_and_not_with_a_power_cut(bench: Bench) -> None:
    file = synced(bench, b"abc")
    file.append(b"dirty")
    strikes = told(bench)
    strike(bench, "read-only", times=None)
    with pytest.raises(DiskReadOnly, match="EROFS"):
        file.append(b"x")
    with pytest.raises(FsyncFailed, match="EROFS"):
        file.fsync()
    assert strikes == [("f1", "append"), ("f1", "fsync")]
    assert file.read_at(0, 9) == b"abcdirty"
    assert bench.disk.write_back() == 0
    bench.disk.power_cut(mode="lost")
    with pytest.raises(DiskReadOnly, match="EROFS"):
        bench.disk.open(A)
    bench.disk.faults.remove("f1")
    bench.disk.open(A).append(b"x")
    assert content(bench.disk, "a") == b"abcx"


@pytest.mark.parametrize("operation", [*CALLS, "fsync"])
def test_a_disk_that_is_gone_answers_no_call(bench: Bench, operation: str) -> None:
    calls = CALLS | {"fsync": lambda b, f: f.fsync()}
    file = synced(bench, b"abc")
    bench.disk.mkdir(Path("empty"))
    before = bench.disk.digest()
    strikes = told(bench)
    strike(bench, "gone", times=None)
    error = FsyncFailed if operation.startswith("fsync") else DiskError
    with pytest.raises(error, match="EIO"):
        calls[operation](bench, file)
    assert [fault_id for fault_id, _ in strikes] == ["f1"]
    bench.disk.faults.remove("f1")
    assert bench.disk.digest() == before
    calls[operation](bench, file)


def test_short_reads_are_two_calls_with_one_answer(bench: Bench) -> None:
    file = synced(bench, b"abcdef")
    calls: list[tuple[str, int, int]] = []
    bench.disk.on_call = lambda name, path, at, size: calls.append((name, at, size))
    strike(bench, "short-read", partial_bytes=4, times=2)
    assert file.read_at(1, 5) == b"bcdef"
    buffer = bytearray(6)
    assert file.read_into(0, memoryview(buffer)) == 6
    assert bytes(buffer) == b"abcdef"
    assert file.read_at(0, 2) == b"ab"
    assert calls == [
        ("read_at", 1, 4),
        ("read_at", 5, 1),
        ("read_into", 0, 4),
        ("read_into", 4, 2),
        ("read_at", 0, 2),
    ]


@pytest.mark.parametrize(("shown", "seen"), [("keep", b"abcNEW"), ("revert", b"abc\0\0\0")])
def test_failed_write_back_is_told_of_by_the_next_fsync(
    bench: Bench, shown: str, seen: bytes
) -> None:
    file = synced(bench, b"abc")
    file.append(b"NEW")
    strikes = told(bench)
    strike(bench, "write-back-fail", content=shown)
    bench.disk.write_back()
    assert strikes == [("f1", "write_back")]
    assert content(bench.disk, "a") == seen
    with pytest.raises(FsyncFailed, match="EIO"):
        file.fsync()
    assert strikes[1:] == [("f1", "fsync")]
    # A retry says that all is well, and it is not.
    file.fsync()
    assert b"NEW" not in after_power_loss(bench, "kept")


def test_write_back_of_nothing_cannot_fail(bench: Bench) -> None:
    synced(bench, b"abc")
    strike(bench, "write-back-fail")
    bench.disk.write_back()
    assert bench.disk.faults.strikes("f1") == 0


def test_bad_sectors_of_a_fault_name_it_and_are_good_again_at_its_end(bench: Bench) -> None:
    file = synced(bench, b"." * 2_048)
    strikes = told(bench)
    fault = DiskFault(id="f1", kind="error", operation="read_at", path="/a", times=None)
    bench.disk.spoil_sectors(A, 600, 1, by=fault)
    bench.disk.spoil_sectors(A, 1_600, 1)
    with pytest.raises(DiskError, match="EIO"):
        file.read_at(700, 1)
    assert strikes == [("f1", "read_at")]
    bench.disk.mend_sectors("f1")
    assert file.read_at(700, 1) == b"."
    with pytest.raises(DiskError, match="EIO"):
        file.read_at(1_600, 1)


def test_whatever_meets_a_file_system_that_a_failed_fsync_made_read_only_names_the_fault(
    bench: Bench,
) -> None:
    file = synced(bench, b"abc")
    strikes = told(bench)
    strike(bench, "fsync-read-only")
    with pytest.raises(FsyncFailed):
        file.fsync()
    with pytest.raises(DiskReadOnly):
        file.append(b"x")
    assert strikes == [("f1", "complete_fsync"), ("f1", "append")]
