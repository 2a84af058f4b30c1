"""What must hold between a log and the naive log of the same history; see ``test_log_model.py``."""

from __future__ import annotations

from itertools import accumulate
from pathlib import Path
from random import Random

import pytest

from storage import PartitionLog
from storage.disk import Disk
from storage.errors import OffsetOutOfRange
from tests.storage import naive_epochs
from tests.storage.naive_log import NaiveLog
from tests.storage.sync_disk import SyncDisk


def content(disk: Disk, path: Path) -> bytes:
    file = disk.open(path, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def check_facts(log: PartitionLog, model: NaiveLog) -> None:
    """Offsets, segments, epochs and what they answer."""
    assert (log.log_start_offset, log.leo) == (model.start, model.end)
    assert [s.base_offset for s in log.segments] == [s.base for s in model.segments]
    assert log.active is log.segments[-1]
    assert log.closed_segments == log.segments[:-1]
    assert log.size_bytes == sum(len(s.content) for s in model.segments)
    epochs = list(log.epochs.entries)
    assert visible(epochs, model) == visible(model.epochs, model)
    for offset in range(model.start, model.end + 2):
        expected = naive_epochs.epoch_for_offset(epochs, offset)
        assert log.epochs.epoch_for_offset(offset) == expected
    for epoch in range(-1, (epochs[-1][0] if epochs else 0) + 2):
        answer = naive_epochs.end_offset_for(epochs, epoch, model.end)
        assert log.epochs.end_offset_for(epoch, log.leo) == answer


def visible(entries: naive_epochs.Entries, model: NaiveLog) -> naive_epochs.Entries:
    """The entries as a restart would show them: where the first begins, below the log start, is
    of no account.
    """
    return naive_epochs.truncate_from_start(entries, model.start)


def check_epochs_match_batches(model: NaiveLog, entries: naive_epochs.Entries) -> None:
    """I9: each batch's epoch is that of the entry at its base, or at the log start."""
    for stored in model.stored():
        if stored.end > model.start:
            at = max(stored.base, model.start)
            assert naive_epochs.epoch_for_offset(entries, at) == stored.batch.leader_epoch


def check_files(log: PartitionLog, model: NaiveLog, disk: Disk) -> None:
    """Each segment file is the model's frames, each index file the entries of the rules."""
    interval = log.config.index_interval_bytes
    for segment, naive in zip(log.segments, model.segments, strict=True):
        offsets, times = naive.entries(interval, is_closed=segment is not log.active)
        assert segment.size_bytes == len(naive.content)
        assert segment.leo == segment.next_offset == naive.end
        assert segment.has_data == bool(naive.stored)
        assert content(disk, segment.log_path) == naive.content
        assert list(segment.index.entries) == offsets
        assert list(segment.time_index.entries) == times
        assert content(disk, segment.index_path) == segment.index.to_bytes()
        assert content(disk, segment.time_index_path) == segment.time_index.to_bytes()
        assert segment.max_timestamp_ms == max([-1, *(s.timestamp_ms for s in naive.stored)])


def check_reads(log: PartitionLog, model: NaiveLog, random: Random) -> None:
    """Every way to read, at random points, with random budgets and ends."""
    for _ in range(3):
        offset = random.randint(model.start, model.end)
        end = random.choice([None, random.randint(0, model.end + 2)])
        count = random.choice([0, 1, 3, 1_000])
        size = random.choice([0, 1, random.randint(0, 900), 1 << 20])
        at_least_one = random.random() < 0.5
        assert log.fetch(offset, count, end_offset=end) == model.fetch(offset, count, end)
        batches = model.read_batches(offset, size, end)
        assert log.read_batches(offset, size, end_offset=end) == batches
        data = model.read_range(offset, size, end, at_least_one=at_least_one)
        assert log.read_range(offset, size, end, at_least_one=at_least_one) == data
        place = log.slice_range(offset, size, end, at_least_one=at_least_one)
        assert place.size_bytes == len(data)
        assert log.read_slice(place) == data
        stamp = random.choice([random.randint(0, 130), 2**40, 2**41])
        assert log.offset_for_timestamp(stamp) == model.offset_for_timestamp(stamp)
    visible = [stored.batch for stored in model.stored() if stored.end > model.start]
    assert list(log.all_batches()) == visible
    for offset in (model.start - 1, model.end + 1):
        with pytest.raises(OffsetOutOfRange):
            log.fetch(offset, 1)


def check_boundary(log: PartitionLog, model: NaiveLog, disk: Disk) -> None:
    """The durable boundary is not behind the log's end, and what it covers is durable."""
    boundary = log.boundary
    assert boundary.end_offset <= model.end
    if not isinstance(disk, SyncDisk):
        return
    for segment, naive in zip(log.segments, model.segments, strict=True):
        if segment.base_offset < boundary.segment_base:
            assert disk.is_durable(segment.log_path, len(naive.content))
        elif segment.base_offset == boundary.segment_base and boundary.size_bytes:
            assert disk.is_durable(segment.log_path, boundary.size_bytes)
            sizes = accumulate(len(stored.frame) for stored in naive.stored)
            ends = dict(zip(sizes, (stored.end for stored in naive.stored), strict=True))
            assert ends.get(boundary.size_bytes) == boundary.end_offset
