"""Scans, headers and checkpoint entries on files that change, lie about sizes, or are cut off.

A dump reads logs that other processes write and directories that come from anywhere; these are the
places below it where either would have hurt.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import ControlType, LogConfig, Record, RecordBatch, encode_batch
from storage.checkpoints import parse_entries, read_entries
from storage.disk import DiskFile
from storage.errors import CorruptBatch, CorruptCheckpoint
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from storage.mkb1_header import peek_header
from storage.scan import look_ahead, scan_segment
from tests.storage.trees import put

PATH = Path("/00000000000000000000.log")


def frame(offset: int, *, epoch: int = 1, version: int = 2) -> bytes:
    batch = RecordBatch.unassigned([Record(b"k", b"v", 1_000)], format_version=version)
    return encode_batch(batch.assign(offset, epoch))


def opened(data: bytes) -> DiskFile:
    disk = MemDisk()
    put(disk, PATH, data)
    return disk.open(PATH)


class Shrinking:
    """A file that another process cuts to ``size_bytes`` after its size was asked for."""

    def __init__(self, inner: DiskFile, size_bytes: int) -> None:
        self._inner = inner
        self._size_bytes = size_bytes

    def size(self) -> int:
        size = self._inner.size()
        self._inner.truncate(min(size, self._size_bytes))
        return size

    def read_into(self, position: int, buffer: memoryview) -> int:
        return self._inner.read_into(position, buffer)

    def read_at(self, position: int, size_bytes: int) -> bytes:
        return self._inner.read_at(position, size_bytes)


@pytest.mark.parametrize("rest", [0, 20])
def test_scan_says_torn_where_a_file_was_cut_meanwhile(rest: int) -> None:
    file = Shrinking(opened(frame(0) + frame(1)), len(frame(0)) + rest)
    scan = scan_segment(file, MKB1, LogConfig(), base_offset=0)  # type: ignore[arg-type]
    assert scan.fault is not None
    assert (scan.fault.reason, scan.fault.position) == ("torn", len(frame(0)))


def test_look_ahead_bears_a_file_that_changes_below_it() -> None:
    class Fickle(Shrinking):
        def read_at(self, position: int, size_bytes: int) -> bytes:
            data = super().read_at(position, size_bytes)
            return data if position == 0 else bytes(len(data))

    file = Fickle(opened(b"junk" + frame(1)), 1_000)
    found = look_ahead(file, MKB1, LogConfig(), position=0, min_offset=0)  # type: ignore[arg-type]
    assert found == ((), True)


def test_look_ahead_ends_where_no_segment_reaches() -> None:
    class Huge(Shrinking):
        def size(self) -> int:
            return 1 << 60

    searched: list[int] = []

    class Counted(Huge):
        def read_at(self, position: int, size_bytes: int) -> bytes:
            searched.append(position + size_bytes)
            return bytes(1 << 19) if position > 2**32 - 2**22 else b""

    near_end = 2**32 - 2**21
    file = Counted(opened(b""), 0)
    found = look_ahead(file, MKB1, LogConfig(), position=near_end, min_offset=0)  # type: ignore[arg-type]
    assert found == ((), False)
    assert max(searched) <= 2**32


# Headers ---------------------------------------------------------------------------------------


def test_header_has_every_field_of_a_batch() -> None:
    batch = RecordBatch.unassigned(
        [Record(b"k", b"v", 5), Record(None, None, 7)],
        producer_id=42,
        producer_epoch=3,
        base_sequence=9,
        transactional_id="tx-1",
    ).assign(100, 6)
    data = encode_batch(batch)
    header = peek_header(data)
    assert header._asdict() == {
        "size_bytes": len(data),
        "version": 2,
        "base_offset": 100,
        "leader_epoch": 6,
        "producer_id": 42,
        "producer_epoch": 3,
        "base_sequence": 9,
        "flags": 1,
        "last_offset_delta": 1,
        "id_bytes": 4,
        "record_count": 2,
        "max_timestamp_ms": 7,
        "transactional_id": b"tx-1",
    }
    assert (header.next_offset, header.control) == (102, None)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("control", list(ControlType))
def test_header_of_a_marker(control: ControlType, version: int) -> None:
    marker = RecordBatch.control_marker(
        control,
        transactional_id="t",
        producer_id=1,
        producer_epoch=0,
        format_version=version,
    )
    header = peek_header(encode_batch(marker.assign(5, 2)))
    assert (header.control, header.version, header.record_count) == (control, version, 0)
    assert header.max_timestamp_ms == (-1 if version == 2 else None)
    assert header.transactional_id == b"t"


@pytest.mark.parametrize("version", [1, 2])
def test_header_needs_the_header_and_no_more(version: int) -> None:
    data = frame(3, version=version)
    need = 60 if version == 2 else 52
    assert peek_header(data[:need]) == peek_header(data)
    with pytest.raises(CorruptBatch, match="torn"):
        peek_header(data[: need - 1])


@given(st.binary(max_size=200))
def test_header_of_any_bytes_is_a_header_or_corrupt(data: bytes) -> None:
    try:
        header = peek_header(data)
    except CorruptBatch:
        return
    assert len(header.transactional_id) <= header.id_bytes


# Checkpoint entries ----------------------------------------------------------------------------


@given(st.text("0123 -\nx\r\t", max_size=40) | st.text(max_size=20))
def test_entries_one_by_one_are_the_entries_of_the_file(text: str) -> None:
    disk = MemDisk()
    put(disk, PATH, text.encode("utf-8", "surrogatepass"))
    try:
        expected: object = read_entries(disk, PATH, fields=2)
    except CorruptCheckpoint as error:
        expected = str(error)
    try:
        data = text.encode("utf-8", "surrogatepass").decode()
        lines = data.split("\n")
        if not lines[-1].strip():
            lines.pop()
        found: object = list(parse_entries(PATH, lines, 2))
    except UnicodeDecodeError:
        return
    except CorruptCheckpoint as error:
        found = str(error)
    assert found == expected


def test_entries_before_a_bad_line_are_given() -> None:
    entries = parse_entries(PATH, ["0", "3", "1 2", "3 4", "5"], 2)
    assert [next(entries), next(entries)] == [["1", "2"], ["3", "4"]]
    with pytest.raises(CorruptCheckpoint, match=":5: 1 fields, expected 2"):
        next(entries)
