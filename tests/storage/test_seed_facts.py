"""The founding document, chapter "The Log": its facts and its names.

Sentences in quotation marks are the document's. Its experiment and exercises are in
``test_seed.py``. Where this project decided otherwise (truncation in place, epochs in a file, a
time index) other tests say so.
"""

from __future__ import annotations

from pathlib import Path
from struct import unpack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import Header, LogConfig, PartitionLog, Record, RecordBatch, encode_batch
from storage.errors import CorruptLog, OffsetOutOfRange, StorageError, UnexpectedOffset
from storage.index import OffsetIndex
from storage.memdisk import MemDisk
from storage.recovery import recover_active_segment
from storage.segment import Segment, segment_stem
from tests.storage.batches import commit, many, one
from tests.storage.test_seed import DIRECTORY, TINY, content, overwrite, value_log


@pytest.fixture
def disk() -> MemDisk:
    return MemDisk()


# Facts -----------------------------------------------------------------------------------------


def test_stem_is_twenty_digits() -> None:
    assert segment_stem(2) == "00000000000000000002"
    assert segment_stem(0) == "0" * 20
    assert segment_stem(2**63 - 1) == "09223372036854775807"
    for offset in (-1, 2**63):
        with pytest.raises(ValueError, match="base offset"):
            segment_stem(offset)


def test_new_log_begins_with_a_segment_at_offset_0(disk: MemDisk) -> None:
    log = PartitionLog.open(DIRECTORY, disk=disk)
    assert (log.leo, log.log_start_offset, log.size_bytes) == (0, 0, 0)
    assert [s.base_offset for s in log.segments] == [0]
    assert log.active.log_path.name == "00000000000000000000.log"


def test_the_last_segment_is_active_and_the_others_are_closed(disk: MemDisk) -> None:
    value_log(disk, count=12).close()
    log = PartitionLog.open(DIRECTORY, TINY, disk=disk)
    assert [s.base_offset for s in log.segments] == list(range(12)), "by number, not by name"
    assert log.active.is_active
    assert log.active is log.segments[-1]
    assert log.closed_segments == log.segments[:-1]
    assert not any(segment.is_active for segment in log.closed_segments)


def test_leader_assigns_and_follower_verifies(disk: MemDisk) -> None:
    """ "a follower appends the already assigned batch and verifies continuity"."""
    leader = PartitionLog.open(DIRECTORY, TINY, disk=disk, leader_epoch=4)
    follower = PartitionLog.open(Path("/copy-0"), TINY, disk=disk)
    for count in (1, 3, 2):
        leader.append(many(count))
    for batch in leader.all_batches():
        follower.append_replica_batch(batch)
    assert follower.fetch(0, 99) == leader.fetch(0, 99)
    assert [record.leader_epoch for record in follower.fetch(0, 99)] == [4] * 6
    for base in (5, 7):
        with pytest.raises(UnexpectedOffset) as caught:
            follower.append_replica_batch(one().assign(base, 4))
        assert (caught.value.expected, caught.value.seen) == (6, base)
    for name in disk.listdir(DIRECTORY):
        assert content(disk, DIRECTORY / name) == content(disk, Path("/copy-0") / name), name


def test_roll_flushes_the_old_segment_and_begins_at_the_log_end(disk: MemDisk) -> None:
    log = value_log(disk)
    assert log.active.base_offset == 2
    assert log.boundary.end_offset == 2, "everything before the roll is durable"


def test_oversized_first_frame_of_a_read_comes_alone(disk: MemDisk) -> None:
    log = PartitionLog.open(DIRECTORY, disk=disk)
    log.append(many(50))
    log.append(one())
    assert [b.logical_count for b in log.read_batches(0, 1)] == [50]
    assert [b.logical_count for b in log.read_batches(0, 1 << 20)] == [50, 1]


def test_fetch_outside_the_log_is_refused_and_at_its_end_empty(disk: MemDisk) -> None:
    log = value_log(disk)
    assert log.fetch(3, 10) == []
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRange) as caught:
            log.fetch(offset, 10)
        error = caught.value
        assert (error.requested, error.start, error.end) == (offset, 0, 3)
        assert error.code == "OFFSET_OUT_OF_RANGE"


def test_frame_begins_with_magic_length_and_crc_of_the_payload(disk: MemDisk) -> None:
    log = value_log(disk)
    data = content(disk, log.active.log_path)
    magic, length, crc = unpack(">4sII", data[:12])
    assert (magic, length, crc) == (b"MKB1", len(data) - 12, crc32(data[12:]))


def test_none_differs_from_empty_all_the_way_through(disk: MemDisk) -> None:
    records = [
        Record(key, value, 0, (Header("h", value),)) for key in (None, b"") for value in (None, b"")
    ]
    log = PartitionLog.open(DIRECTORY, disk=disk)
    log.append(RecordBatch.unassigned(records))
    log.close()
    fetched = PartitionLog.open(DIRECTORY, disk=disk).fetch(0, 10)
    assert [Record(*record[1:5]) for record in fetched] == records


@given(st.integers(0, 200))
def test_torn_tail_is_cut_to_the_last_whole_batch(cut: int) -> None:
    """ "truncates to the byte position immediately after the last valid batch"."""
    disk = MemDisk()
    log = value_log(disk, LogConfig())
    sizes = [len(encode_batch(batch)) for batch in log.all_batches()]
    path = log.active.log_path
    log.abandon()
    cut = min(cut, sum(sizes))
    file = disk.open(path)
    file.truncate(cut)
    file.close()
    whole = max(number for number in range(4) if sum(sizes[:number]) <= cut)
    recovered = PartitionLog.open(DIRECTORY, disk=disk)
    assert (recovered.leo, recovered.size_bytes) == (whole, sum(sizes[:whole]))
    assert len(content(disk, path)) == sum(sizes[:whole])


def test_recover_active_segment_cuts_the_tail_and_rebuilds_the_indexes(disk: MemDisk) -> None:
    log = value_log(disk, LogConfig())
    path, size = log.active.log_path, log.size_bytes
    log.close()
    overwrite(disk, path, b"MKB1\x00\x00\x00\x20partial")
    disk.unlink(log.active.index_path)
    segment = recover_active_segment(DIRECTORY, 0, disk=disk)
    assert (segment.leo, segment.size_bytes, segment.is_active) == (3, size, True)
    assert segment.index.entries == ((0, 0),)
    overwrite(disk, path, b"partial")
    with pytest.raises(CorruptLog):
        Segment.open(DIRECTORY, 0, active=False, disk=disk)


# Names -----------------------------------------------------------------------------------------


def test_segment_has_the_documents_names(disk: MemDisk) -> None:
    disk.mkdir(DIRECTORY)
    segment = Segment.create(DIRECTORY, 7, TINY, disk=disk)
    assert (segment.leo, segment.has_data, segment.size_bytes) == (7, False, 0)
    size = len(encode_batch(one().assign(7, 0)))
    assert segment.append(one(b"v", 5).assign(7, 0)) == (0, size)
    assert segment.append(one(b"v", 3).assign(8, 0)) == (size, size)
    assert (segment.leo, segment.has_data, segment.size_bytes) == (9, True, 2 * size)
    assert segment.max_timestamp_ms == 5
    index_bytes = segment.index.size_bytes + segment.time_index.size_bytes
    assert segment.total_size_bytes == 2 * size + index_bytes
    segment.flush()
    segment.close()
    again = Segment.open(DIRECTORY, 7, TINY, active=True, disk=disk)
    assert (again.base_offset, again.leo, again.size_bytes) == (7, 9, 2 * size)
    assert again.index.entries == segment.index.entries


def test_offset_index_has_the_documents_names(disk: MemDisk) -> None:
    path = Path("/a.index")
    index = OffsetIndex.create(path, 10, disk=disk)
    index.append(10, 0)
    index.append(15, 400)
    index.append(20, 800)
    assert [index.floor_position(offset) for offset in (9, 10, 14, 15, 99)] == [0, 0, 0, 400, 800]
    index.truncate_to(15)
    index.flush()
    index.close()
    assert OffsetIndex.open(path, 10, disk=disk).entries == ((10, 0),)


def test_log_has_the_documents_names(disk: MemDisk) -> None:
    log = PartitionLog.open(DIRECTORY, TINY, disk=disk, leader_epoch=2)
    assert log.leader_epoch == 2
    log.append(RecordBatch.unassigned((Record(None, b"a", 0), Record(None, b"b", 1))))
    log.append(commit())
    log.append_replica_batch(one(b"c").assign(3, 2))
    assert [record.value for record in log.fetch(0, 10)] == [b"a", b"b", b"c"]
    assert [batch.next_offset for batch in log.read_batches(0, 1 << 20)] == [2, 3, 4]
    assert [batch.base_offset for batch in log.all_batches()] == [0, 2, 3]
    log.roll()
    log.flush()
    log.truncate_to(3)
    assert (log.leo, log.log_start_offset, log.active.leo) == (3, 0, 3)
    assert log.segments == (*log.closed_segments, log.active)
    log.close()
    with pytest.raises(StorageError):
        log.append(one())
