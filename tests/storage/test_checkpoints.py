"""Kafka's text container, and the order of disk calls by which a small file is replaced."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.checkpoints import parse_int, read_entries, read_small, replace_file, write_entries
from storage.disk import FileKind
from storage.errors import CorruptCheckpoint, DiskError, DiskFull, FsyncFailed, NotRegularFile
from storage.memdisk import MemDisk
from tests.storage.faults import FaultDisk

FOLDER = Path("/data")
FILE = FOLDER / "replication-offset-checkpoint"
TMP = FOLDER / "replication-offset-checkpoint.tmp"


@pytest.fixture
def disk() -> FaultDisk:
    inner = MemDisk()
    inner.mkdir(FOLDER)
    return FaultDisk(inner)


def put(disk: FaultDisk, data: bytes, path: Path = FILE) -> None:
    file = disk.inner.open(path, create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.close()


def get(disk: FaultDisk, path: Path = FILE) -> bytes:
    file = disk.inner.open(path, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


# The container ---------------------------------------------------------------------------------


def test_written_container_is_kafkas_text(disk: FaultDisk) -> None:
    write_entries(disk, FILE, [("orders", 0, 17), ("orders", 12, 0)])
    assert get(disk) == b"0\n2\norders 0 17\norders 12 0\n"


def test_written_container_without_entries_has_version_and_count(disk: FaultDisk) -> None:
    write_entries(disk, FILE, [])
    assert get(disk) == b"0\n0\n"


def test_shorter_container_replaces_a_longer_one_whole(disk: FaultDisk) -> None:
    write_entries(disk, FILE, [("a", 0, number) for number in range(50)])
    write_entries(disk, FILE, [("a", 0, 1)])
    assert get(disk) == b"0\n1\na 0 1\n"


@given(
    st.lists(
        st.lists(st.text("azAZ09._-é", min_size=1), min_size=3, max_size=3).map(tuple), max_size=6
    )
)
def test_written_entries_read_back(entries: list[tuple[str, str, str]]) -> None:
    disk = MemDisk()
    write_entries(disk, Path("/x"), entries)
    assert read_entries(disk, Path("/x"), 3) == [list(entry) for entry in entries]


@pytest.mark.parametrize("space", [" ", "  ", "\t", " \t ", "\x0b", "\x0c"])
def test_any_run_of_white_space_separates_fields(disk: FaultDisk, space: str) -> None:
    """A9: "Single spaces when written, any whitespace run when read"."""
    put(disk, f"0\n2\na{space}0{space}5\nb{space}1{space}6\n".encode())
    assert read_entries(disk, FILE, 3) == [["a", "0", "5"], ["b", "1", "6"]]


@pytest.mark.parametrize("data", [b"0\n1\na 0 5", b"0\r\n1\r\na 0 5\r\n", b"0\n1\n a 0 5 \n"])
def test_line_ends_and_outer_spaces_do_not_matter(disk: FaultDisk, data: bytes) -> None:
    put(disk, data)
    assert read_entries(disk, FILE, 3) == [["a", "0", "5"]]


@pytest.mark.parametrize("data", [b"", b"0", b"0\n"])
def test_empty_file_or_missing_count_means_no_entries(disk: FaultDisk, data: bytes) -> None:
    """A9: "Read: empty file or missing count => no entries"."""
    put(disk, data)
    assert read_entries(disk, FILE, 3) == []


def test_missing_file_is_none(disk: FaultDisk) -> None:
    assert read_entries(disk, FILE, 3) is None
    assert read_small(disk, FILE) is None


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"1\n0\n", 1),
        (b"\n0\n", 1),
        (b"-0\n0\n", 1),
        (b"0\n\n", 2),
        (b"0\n+1\na 0 5\n", 2),
        (b"0\n1.0\na 0 5\n", 2),
        (b"0\n2\na 0 5\n", 2),
        (b"0\n0\na 0 5\n", 2),
        (b"0\n99999999999999999999\na 0 5\n", 2),
        (b"0\n1\na 0\n", 3),
        (b"0\n1\na 0 5 6\n", 3),
        (b"0\n1\na 0 5\n\n", 4),
        (b"0\n2\na 0 5\n\n", 4),
        (b"\xff\n", 0),
        (b"0\n1\n\xc3 0 5\n", 0),
    ],
)
def test_malformed_container_is_refused_by_line(disk: FaultDisk, data: bytes, line: int) -> None:
    """A9: "unknown version, malformed line or count mismatch => I/O error"."""
    put(disk, data)
    with pytest.raises(CorruptCheckpoint) as caught:
        read_entries(disk, FILE, 3)
    assert (caught.value.path, caught.value.line) == (FILE, line)


@given(st.binary(max_size=60) | st.text("0123 \n-x", max_size=30).map(str.encode))
def test_any_bytes_are_entries_or_corrupt(data: bytes) -> None:
    disk = FaultDisk(MemDisk())
    put(disk, data, Path("/x"))
    try:
        entries = read_entries(disk, Path("/x"), 2)
    except CorruptCheckpoint:
        return
    assert entries is not None
    assert all(len(entry) == 2 for entry in entries)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-1", -1),
        ("0012", 12),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
    ],
)
def test_integers_of_64_bits_are_parsed(text: str, value: int) -> None:
    assert parse_int(FILE, 3, text) == value


@pytest.mark.parametrize(
    "text",
    ["", "-", "--1", "+1", "1_0", " 1", "1 ", "0x1", "1e3", "٣", "9223372036854775808", "9" * 19],
)
def test_anything_else_is_no_integer(text: str) -> None:
    with pytest.raises(CorruptCheckpoint) as caught:
        parse_int(FILE, 3, text)
    assert caught.value.line == 3


def test_file_above_its_limit_is_refused_before_it_is_read(disk: FaultDisk) -> None:
    put(disk, bytes(101))
    disk.calls.clear()
    with pytest.raises(CorruptCheckpoint, match="101 bytes, at most 100"):
        read_small(disk, FILE, max_bytes=100)
    assert "read_at" not in disk.operations()
    assert read_small(disk, FILE, max_bytes=101) == bytes(101)


@pytest.mark.parametrize("kind", ["directory", "link"])
def test_something_else_than_a_file_is_a_disk_error(disk: FaultDisk, kind: str) -> None:
    assert isinstance(disk.inner, MemDisk)
    if kind == "directory":
        disk.mkdir(FILE)
    else:
        disk.inner.symlink(FILE, FOLDER / "elsewhere")
    with pytest.raises(NotRegularFile):
        read_entries(disk, FILE, 3)


def test_reading_leaves_no_handle_open(disk: FaultDisk) -> None:
    for data in (b"0\n0\n", b"bad", bytes(100)):
        put(disk, data)
        disk.calls.clear()
        with suppress(CorruptCheckpoint):
            read_small(disk, FILE, max_bytes=50)
        assert disk.operations().count("open") == disk.operations().count("close") == 1


# Replacing a file ------------------------------------------------------------------------------


def changes(disk: FaultDisk) -> list[tuple[str, str]]:
    """The calls that change something, with the name they change."""
    names = {"truncate", "write_at", "append", "fsync", "rename", "unlink", "fsync_dir"}
    return [(call.operation, call.name) for call in disk.calls if call.operation in names]


def test_replacement_is_written_synced_renamed_and_the_directory_synced(disk: FaultDisk) -> None:
    """A9: "Write: `<name>.tmp`, flush + fsync, atomic rename, fsync of the parent directory"."""
    replace_file(disk, FILE, b"new")
    assert changes(disk) == [
        ("truncate", TMP.name),
        ("write_at", TMP.name),
        ("fsync", TMP.name),
        ("rename", TMP.name),
        ("fsync_dir", FOLDER.name),
    ]
    assert get(disk) == b"new"
    assert disk.stat(TMP).kind is FileKind.MISSING


def test_guard_off_renames_without_the_sync(disk: FaultDisk) -> None:
    """KAFKA-16541: a power loss behind the rename can then leave an empty file."""
    replace_file(disk, FILE, b"new", fsync=False)
    assert [name for name, _ in changes(disk)] == ["truncate", "write_at", "rename", "fsync_dir"]


def test_left_over_longer_temporary_file_leaves_no_trace(disk: FaultDisk) -> None:
    put(disk, b"left over and longer", TMP)
    replace_file(disk, FILE, b"new")
    assert get(disk) == b"new"


@pytest.mark.parametrize("operation", ["open", "truncate", "write_at", "fsync", "close", "rename"])
def test_failure_before_the_rename_leaves_the_old_content(disk: FaultDisk, operation: str) -> None:
    replace_file(disk, FILE, b"old")
    disk.fail(operation)
    with pytest.raises(DiskError) as caught:
        replace_file(disk, FILE, b"new")
    assert caught.value.operation == operation
    assert get(disk) == b"old"
    disk.plans.clear()
    replace_file(disk, FILE, b"newer")
    assert get(disk) == b"newer"


def test_partial_write_leaves_the_old_content(disk: FaultDisk) -> None:
    replace_file(disk, FILE, b"old")
    disk.fail("write_at", partial_bytes=2, errno=28)
    with pytest.raises(DiskFull):
        replace_file(disk, FILE, b"new")
    assert get(disk) == b"old"


def test_failed_sync_of_the_directory_is_raised(disk: FaultDisk) -> None:
    disk.fail("fsync_dir")
    with pytest.raises(FsyncFailed):
        replace_file(disk, FILE, b"new")


def test_failures_leave_no_handle_open(disk: FaultDisk) -> None:
    for operation in ("truncate", "write_at", "fsync", "rename", "fsync_dir"):
        disk.calls.clear()
        disk.fail(operation)
        with pytest.raises(DiskError):
            replace_file(disk, FILE, b"new")
        assert disk.operations().count("open") == disk.operations().count("close") == 1
