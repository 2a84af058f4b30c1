"""Offset index and time index: bytes, rising rules, look-ups, cutting, who gets an entry.

The twins scan a plain list of entries, or of batches, from its front.
"""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.errors import CorruptIndex, DiskError, FileMissing
from storage.index import OffsetIndex, TimeIndex
from storage.memdisk import MemDisk
from tests.storage.faults import FaultDisk

BASE = 100
PATH = Path("/00000000000000000100.index")
Entry = tuple[int, int]


@pytest.fixture
def disk() -> MemDisk:
    return MemDisk()


def put(disk: MemDisk, data: bytes) -> None:
    file = disk.open(PATH, create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.close()


def content(disk: MemDisk) -> bytes:
    file = disk.open(PATH, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def offsets(disk: MemDisk, entries: list[Entry]) -> OffsetIndex:
    index = OffsetIndex.create(PATH, BASE, disk=disk)
    for offset, position in entries:
        index.append(offset, position)
    return index


def times(disk: MemDisk, entries: list[Entry]) -> TimeIndex:
    index = TimeIndex.create(PATH, BASE, disk=disk)
    for timestamp_ms, offset in entries:
        index.append(timestamp_ms, offset)
    return index


# Format ----------------------------------------------------------------------------------------


def test_offset_entry_is_8_bytes_relative_offset_and_position(disk: MemDisk) -> None:
    index = offsets(disk, [(100, 0), (103, 258)])
    expected = "0000000000000000" + "0000000300000102"
    assert content(disk).hex() == expected
    assert index.to_bytes().hex() == expected
    assert (index.entries, len(index), index.size_bytes) == (((100, 0), (103, 258)), 2, 16)


def test_time_entry_is_12_bytes_timestamp_and_relative_offset(disk: MemDisk) -> None:
    index = times(disk, [(1_000, 101), (2**40, 358)])
    expected = "00000000000003e8" + "00000001" + "0000010000000000" + "00000102"
    assert content(disk).hex() == expected
    assert (index.entries, len(index), index.size_bytes) == (((1_000, 101), (2**40, 358)), 2, 24)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_created_index_is_an_empty_file_whatever_was_there(
    disk: MemDisk, kind: type[OffsetIndex] | type[TimeIndex]
) -> None:
    put(disk, b"left over")
    index = kind.create(PATH, BASE, disk=disk)
    assert content(disk) == b""
    assert (index.entries, len(index), index.size_bytes) == ((), 0, 0)
    assert kind.open(PATH, BASE, disk=disk).entries == ()


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_widest_entry_reads_back(disk: MemDisk, kind: type[OffsetIndex] | type[TimeIndex]) -> None:
    put(disk, bytes([255]) * kind.entry.size)
    widest = 2**32 - 1
    expected = (BASE + widest, widest) if kind is OffsetIndex else (2**64 - 1, BASE + widest)
    assert kind.open(PATH, BASE, disk=disk).entries == (expected,)


def test_entries_of_a_segment_at_the_last_offsets_are_absolute(disk: MemDisk) -> None:
    base = 2**63 - 2**31
    index = OffsetIndex.create(PATH, base, disk=disk)
    index.append(2**63 - 1, 7)
    assert content(disk).hex() == "7fffffff00000007"
    assert OffsetIndex.open(PATH, base, disk=disk).entries == ((2**63 - 1, 7),)


def test_opened_index_can_be_appended_to(disk: MemDisk) -> None:
    offsets(disk, [(100, 0)]).close()
    index = OffsetIndex.open(PATH, BASE, disk=disk)
    index.append(103, 258)
    index.flush()
    index.close()
    assert OffsetIndex.open(PATH, BASE, disk=disk).entries == ((100, 0), (103, 258))


def test_closed_index_still_answers(disk: MemDisk) -> None:
    index = offsets(disk, [(100, 0)])
    index.close()
    index.close()
    assert index.floor_position(105) == 0
    assert index.entries == ((100, 0),)


def test_index_on_the_real_disk_is_the_default(tmp_path: Path) -> None:
    index = OffsetIndex.create(tmp_path / "a.index", 0)
    index.append(5, 9)
    index.close()
    assert (tmp_path / "a.index").read_bytes().hex() == "0000000500000009"
    assert OffsetIndex.open(tmp_path / "a.index", 0).floor_position(5) == 9


# What is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_ragged_length_is_corrupt(disk: MemDisk, kind: type[OffsetIndex] | type[TimeIndex]) -> None:
    for size in range(1, 3 * kind.entry.size):
        if size % kind.entry.size:
            put(disk, bytes(size))
            with pytest.raises(CorruptIndex, match=f"length {size}"):
                kind.open(PATH, BASE, disk=disk)


def words(*rows: Entry, key_bytes: int) -> bytes:
    return b"".join(key.to_bytes(key_bytes, "big") + at.to_bytes(4, "big") for key, at in rows)


@pytest.mark.parametrize(("kind", "key_bytes"), [(OffsetIndex, 4), (TimeIndex, 8)])
@pytest.mark.parametrize(
    "rows",
    [((1, 1), (1, 2)), ((1, 1), (2, 1)), ((2, 1), (1, 2)), ((1, 2), (2, 1)), ((0, 0), (0, 0))],
)
def test_file_that_does_not_rise_in_both_columns_is_corrupt(
    disk: MemDisk,
    kind: type[OffsetIndex] | type[TimeIndex],
    key_bytes: int,
    rows: tuple[Entry, ...],
) -> None:
    put(disk, words(*rows, key_bytes=key_bytes))
    with pytest.raises(CorruptIndex, match="entry 1 does not rise") as caught:
        kind.open(PATH, BASE, disk=disk)
    assert caught.value.path == PATH


def test_zero_tail_as_a_preallocated_file_has_is_corrupt(disk: MemDisk) -> None:
    put(disk, words((0, 0), (3, 258), key_bytes=4) + bytes(8))
    with pytest.raises(CorruptIndex):
        OffsetIndex.open(PATH, BASE, disk=disk)


@pytest.mark.parametrize("kind", [OffsetIndex, TimeIndex])
def test_missing_file_is_an_error(disk: MemDisk, kind: type[OffsetIndex] | type[TimeIndex]) -> None:
    with pytest.raises((CorruptIndex, FileMissing)):
        kind.open(PATH, BASE, disk=disk)


@pytest.mark.parametrize("entry", [(103, 300), (102, 300), (104, 258), (104, 0)])
def test_offset_entry_that_does_not_rise_is_refused_and_not_written(
    disk: MemDisk, entry: Entry
) -> None:
    index = offsets(disk, [(100, 0), (103, 258)])
    before = content(disk)
    with pytest.raises(CorruptIndex, match="does not rise"):
        index.append(*entry)
    assert content(disk) == before
    assert index.entries == ((100, 0), (103, 258))


@pytest.mark.parametrize("entry", [(99, 5), (BASE + 2**32, 5), (BASE + 1, 2**32), (BASE + 1, -1)])
def test_offset_entry_that_does_not_fit_is_refused_and_not_written(
    disk: MemDisk, entry: Entry
) -> None:
    index = offsets(disk, [])
    with pytest.raises(CorruptIndex):
        index.append(*entry)
    assert content(disk) == b""
    assert index.entries == ()


@pytest.mark.parametrize("timestamp_ms", [-(2**63), -1, 0, 999, 1_000])
def test_time_entry_whose_timestamp_did_not_rise_is_left_out(
    disk: MemDisk, timestamp_ms: int
) -> None:
    index = times(disk, [(1_000, 105)])
    assert index.append(timestamp_ms, 110) is False
    assert index.entries == ((1_000, 105),)


@pytest.mark.parametrize("offset", [105, 104])
def test_time_entry_whose_offset_did_not_rise_is_refused(disk: MemDisk, offset: int) -> None:
    index = times(disk, [(1_000, 105)])
    with pytest.raises(CorruptIndex, match="does not rise"):
        index.append(2_000, offset)
    assert index.entries == ((1_000, 105),)


def test_failed_write_of_an_entry_leaves_memory_as_it_was() -> None:
    disk = FaultDisk(MemDisk())
    index = OffsetIndex.create(PATH, BASE, disk=disk)
    index.append(100, 0)
    disk.fail("write_at", partial_bytes=3)
    with pytest.raises(DiskError):
        index.append(103, 258)
    assert index.entries == ((100, 0),)
    index.append(103, 258)
    assert content(disk.inner).hex() == "00000000000000000000000300000102"  # type: ignore[arg-type]


# Look-ups against a scan -----------------------------------------------------------------------


def last_at_or_below(rows: list[Entry], column: int, wanted: int) -> Entry | None:
    found = None
    for row in rows:
        if row[column] <= wanted:
            found = row
    return found


def small_tables() -> list[list[Entry]]:
    return [
        list(zip(keys, values, strict=True))
        for size in range(4)
        for keys in combinations(range(BASE, BASE + 5), size)
        for values in combinations(range(5), size)
    ]


def test_offset_look_ups_on_every_small_index_are_those_of_a_scan() -> None:
    for rows in small_tables():
        index = offsets(MemDisk(), rows)
        for offset in range(BASE - 2, BASE + 7):
            entry = last_at_or_below(rows, 0, offset)
            assert index.floor_entry(offset) == entry, (rows, offset)
            assert index.floor_position(offset) == (entry[1] if entry else 0), (rows, offset)
        for position in range(7):
            entry = last_at_or_below(rows, 1, position)
            assert index.floor_by_position(position) == (entry[1] if entry else 0), (rows, position)


def test_time_look_ups_on_every_small_index_are_those_of_a_scan() -> None:
    for rows in small_tables():
        flipped = [(value, key) for key, value in rows]
        index = times(MemDisk(), flipped)
        for stamp in range(-1, 7):
            below = [offset for timestamp, offset in flipped if timestamp < stamp]
            assert index.floor_offset(stamp) == (below[-1] if below else BASE), (flipped, stamp)
        for offset in range(BASE - 2, BASE + 7):
            entry = last_at_or_below(flipped, 1, offset)
            assert index.largest_below(offset) == (entry[0] if entry else -1), (flipped, offset)
        assert index.largest_timestamp_ms == (flipped[-1][0] if flipped else -1)


def test_cutting_every_small_index_keeps_the_entries_before_the_offset() -> None:
    for rows in small_tables():
        for offset in range(BASE - 2, BASE + 7):
            disk = MemDisk()
            index = offsets(disk, rows)
            index.truncate_to(offset)
            left = tuple(row for row in rows if row[0] < offset)
            assert index.entries == left, (rows, offset)
            assert OffsetIndex.open(PATH, BASE, disk=disk).entries == left
            flipped = [(value, key) for key, value in rows]
            time_index = times(disk, flipped)
            time_index.truncate_to(offset)
            left = tuple(row for row in flipped if row[1] < offset)
            assert time_index.entries == left, (flipped, offset)
            assert TimeIndex.open(PATH, BASE, disk=disk).entries == left


@given(st.sets(st.integers(0, 2**32 - 1), max_size=20), st.integers(0, 2**32 - 1), st.data())
def test_offset_look_up_on_any_index_is_that_of_a_scan(
    keys: set[int], wanted: int, data: st.DataObject
) -> None:
    count = len(keys)
    values = data.draw(st.sets(st.integers(0, 2**32 - 1), min_size=count, max_size=count))
    rows = [(BASE + key, at) for key, at in zip(sorted(keys), sorted(values), strict=True)]
    disk = MemDisk()
    offsets(disk, rows).close()
    index = OffsetIndex.open(PATH, BASE, disk=disk)
    entry = last_at_or_below(rows, 0, BASE + wanted)
    assert index.floor_entry(BASE + wanted) == entry
    assert index.floor_position(BASE + wanted) == (entry[1] if entry else 0)


# Which batches get an entry --------------------------------------------------------------------


def naive_entries(
    sizes: list[int], stamps: list[int], interval: int, *, is_closed: bool
) -> tuple[list[Entry], list[Entry]]:
    """Offset and time entries of one segment of batches of one record, by the written rules.

    "It adds an index entry for the first batch and thereafter only when the byte distance from the
    last indexed position reaches index_interval_bytes." A time entry says that every record below
    its offset has its timestamp or a smaller one; one is added beside an offset entry where the
    largest timestamp so far rose, and one at the end of a segment that has rolled.
    """
    entries: list[Entry] = []
    time_entries: list[Entry] = []

    def note_time(offset: int) -> None:
        largest = max(stamps[:offset], default=-1)
        if largest > (time_entries[-1][0] if time_entries else -1):
            time_entries.append((largest, offset))

    position = 0
    for offset, size in enumerate(sizes):
        if not entries or position - entries[-1][1] >= interval:
            entries.append((offset, position))
            note_time(offset)
        position += size
    if is_closed:
        note_time(len(sizes))
    return entries, time_entries


@given(
    st.lists(st.tuples(st.integers(0, 90), st.integers(-2, 6)), min_size=1, max_size=25),
    st.integers(1, 400) | st.sampled_from([82, 83, 164, 166]),
)
def test_indexed_batches_are_those_of_the_rule(rows: list[Entry], interval: int) -> None:
    disk = MemDisk()
    log = PartitionLog.open(Path("/t-0"), LogConfig(index_interval_bytes=interval), disk=disk)
    sizes = [
        log.append(RecordBatch.unassigned((Record(None, bytes(size), stamp),))).size_bytes
        for size, stamp in rows
    ]
    stamps = [stamp for _, stamp in rows]
    active = naive_entries(sizes, stamps, interval, is_closed=False)
    closed = naive_entries(sizes, stamps, interval, is_closed=True)
    segment = log.active
    assert (list(segment.index.entries), list(segment.time_index.entries)) == active
    log.roll()
    assert (list(segment.index.entries), list(segment.time_index.entries)) == closed


def test_batch_that_begins_exactly_one_interval_behind_is_indexed() -> None:
    for interval, expected in ((83, 3), (84, 2), (166, 2), (167, 1)):
        log = PartitionLog.open(
            Path("/t-0"), LogConfig(index_interval_bytes=interval), disk=MemDisk()
        )
        for _ in range(3):
            size = log.append(RecordBatch.unassigned((Record(None, b"v", 0),))).size_bytes
        assert size == 83
        assert len(log.active.index) == expected, interval


def test_time_entries_say_what_holds_below_their_offset_whatever_the_clock_did() -> None:
    stamps = [5, 3, 9, 9, -1, 1, 20, 4]
    log = PartitionLog.open(Path("/t-0"), LogConfig(index_interval_bytes=1), disk=MemDisk())
    for stamp in stamps:
        log.append(RecordBatch.unassigned((Record(None, b"v", stamp),)))
    log.roll()
    entries = log.segments[0].time_index.entries
    assert entries == ((5, 1), (9, 3), (20, 7))
    for timestamp_ms, offset in entries:
        assert max(stamps[:offset]) == timestamp_ms
