"""Compaction and producer state: what is known stays known, and what a replay finds is less of it.

PROTOCOL A23: "Batch base/last offsets, epochs and sequences survive; an empty batch may remain as
placeholder (...) a producer's last batch". So a replay without snapshots knows where each producer
goes on, but of the batches before its last one only those that compaction left. A late retry of
another one is refused then, and none is stored twice.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import PartitionLog, Record, RecordBatch
from storage.batch import ControlType
from storage.config import LogConfig
from storage.errors import InvalidProducerEpoch, OutOfOrderSequence
from storage.memdisk import MemDisk
from storage.producer_state import ProducerEntry
from tests.storage.cleaning import DIRECTORY, batches_of, data, open_log, run
from tests.storage.naive_producers import NaiveProducers

SMALL = LogConfig(segment_max_bytes=200, index_interval_bytes=64)


def sent(producer: int, first: int, *keys: bytes, epoch: int = 0) -> RecordBatch:
    return RecordBatch.unassigned(
        [Record(key, b"v", 1_000) for key in keys],
        producer_id=producer,
        producer_epoch=epoch,
        base_sequence=first,
    )


def marker(producer: int, epoch: int) -> RecordBatch:
    return RecordBatch.control_marker(
        ControlType.ABORT, transactional_id="t", producer_id=producer, producer_epoch=epoch
    )


def closed_and_compacted(log: PartitionLog) -> None:
    """Everything so far becomes closed segments, and these are compacted."""
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    run(log)


def without_snapshots(log: PartitionLog, disk: MemDisk) -> PartitionLog:
    log.abandon()
    for name in disk.listdir(DIRECTORY):
        if name.endswith(".snapshot"):
            disk.unlink(DIRECTORY / name)
    return open_log(disk, SMALL)


@pytest.fixture
def disk() -> MemDisk:
    return MemDisk()


@pytest.fixture
def log(disk: MemDisk) -> PartitionLog:
    """Producer 7 wrote one key six times and is idle; 8 was fenced; others wrote since."""
    log = open_log(disk, SMALL)
    for sequence in range(6):
        log.append(sent(7, sequence, b"a"))
    log.append(sent(8, 0, b"b", b"c"))
    log.append(marker(8, epoch=3))
    for key in (b"a", b"b", b"c"):
        log.append(data((key, b"newer")))
    return log


def test_compaction_changes_nothing_of_what_the_log_knows(log: PartitionLog, disk: MemDisk) -> None:
    known = dict(log.producers)
    closed_and_compacted(log)
    assert dict(log.producers) == known
    assert [batch.records for batch in batches_of(log)][:2] == [(), ()]
    log.abandon()
    again = open_log(disk, SMALL)
    assert dict(again.producers) == known
    again.close()
    again = open_log(disk, SMALL)
    assert again.report.is_clean
    assert dict(again.producers) == known


def test_a_replay_of_what_is_left_knows_where_each_producer_goes_on(
    log: PartitionLog, disk: MemDisk
) -> None:
    """Batches 1 and 3 were each the last of their file, so they are left too."""
    closed_and_compacted(log)
    log = without_snapshots(log, disk)
    assert [batch.first_sequence for batch in log.producers[7].batches] == [1, 3, 5]
    assert log.producers[8] == ProducerEntry(3, -1, ())
    end = log.leo
    for sequence in (1, 3, 5):
        assert log.append(sent(7, sequence, b"a"))[:2] == (sequence, sequence + 1)
    for sequence in (0, 2, 4):
        with pytest.raises(OutOfOrderSequence):
            log.append(sent(7, sequence, b"a"))
    with pytest.raises(InvalidProducerEpoch):
        log.append(sent(8, 2, b"b"))
    assert log.leo == end
    assert log.append(sent(7, 6, b"a")).base_offset == end
    assert log.append(sent(8, 0, b"b", epoch=3)).base_offset == end + 1


def test_the_newest_compacted_batch_counts_when_a_newer_one_is_cut_off(
    log: PartitionLog, disk: MemDisk
) -> None:
    """Compaction keeps it though the active segment has a newer one: that may be truncated."""
    closed_and_compacted(log)
    end = log.leo
    log.append(sent(7, 6, b"a"))
    run(log)
    log = without_snapshots(log, disk)
    log.truncate_to(end)
    assert log.producers[7].next_sequence == 6
    assert log.append(sent(7, 6, b"a")).base_offset == end


STEPS = st.lists(
    st.tuples(
        st.sampled_from([-1, 7, 8]),
        st.integers(0, 3),
        st.sampled_from([b"a", b"b"]),
        st.integers(1, 2),
    ),
    min_size=1,
    max_size=25,
)


@given(STEPS, STEPS)
def test_whatever_was_compacted_a_replay_knows_the_end_of_each_producer(
    before: list[tuple[int, int, bytes, int]], after: list[tuple[int, int, bytes, int]]
) -> None:
    """Kind 0 is a new epoch, 1 a marker; else the next batch in order, also of a known epoch."""
    disk = MemDisk()
    log = open_log(disk, SMALL)
    everything: list[RecordBatch] = []

    def store(steps: list[tuple[int, int, bytes, int]]) -> None:
        for producer, kind, key, count in steps:
            entry = log.producers.get(producer)
            epoch = 0 if entry is None else entry.producer_epoch + (kind == 0)
            first = 0 if entry is None or kind == 0 else entry.next_sequence
            batch = sent(producer, first, *[key] * count, epoch=epoch)
            if producer == -1:
                batch = data(*[(key, b"v")] * count)
            elif kind == 1:
                batch = marker(producer, epoch)
            everything.append(batch.assign(log.append(batch).base_offset, 0))

    store(before)
    closed_and_compacted(log)
    everything.append(batches_of(log)[-1])
    store(after)
    closed_and_compacted(log)
    known = dict(log.producers)
    assert known == NaiveProducers.replayed(everything).entries()
    log = without_snapshots(log, disk)
    assert set(log.producers) == set(known)
    for producer, entry in log.producers.items():
        full = known[producer]
        assert (entry.producer_epoch, entry.next_sequence) == (
            full.producer_epoch,
            full.next_sequence,
        )
        stored = [facts.base_offset for facts in NaiveProducers.replayed(everything).of(producer)]
        found = [batch.base_offset for batch in entry.batches]
        assert [offset for offset in stored if offset in found] == found
        assert [batch[:4] for batch in entry.batches[-1:]] == [
            batch[:4] for batch in full.batches[-1:]
        ]
