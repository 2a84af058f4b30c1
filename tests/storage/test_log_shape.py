"""Single cases of one log: holes, epochs, rolling, runs of frames, rebuilt indexes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.errors import NotRegularFile, StaleLeaderEpoch
from storage.memdisk import MemDisk
from tests.storage.batches import one
from tests.storage.log_tools import DIRECTORY, files, fill, open_log
from tests.storage.naive_log import Stored
from tests.storage.sync_disk import SyncDisk


@pytest.fixture
def disk() -> SyncDisk:
    return SyncDisk(MemDisk())


# Holes, epochs, clocks -------------------------------------------------------------------------


def gapped(disk: SyncDisk, *, leads_at_the_end: bool) -> PartitionLog:
    """Batch 0 in epoch 0, nothing in 1 to 9, batch 10 in epoch 2."""
    log = open_log(disk)
    fill(log, 1)
    if leads_at_the_end:
        log.become_leader(1)
    log.declare_gaps(10)
    log.append_replica_batch(one().assign(10, 2))
    return log


@pytest.mark.parametrize("leads_at_the_end", [False, True])
@pytest.mark.parametrize("verify", ["unflushed", "all"])
def test_log_cut_in_a_hole_ends_there_and_its_epochs_survive_a_restart(
    disk: SyncDisk, leads_at_the_end: bool, verify: str
) -> None:
    """I9: each batch's epoch is that of the entry at its base; so for the batch in the hole."""
    log = gapped(disk, leads_at_the_end=leads_at_the_end)
    log.truncate_to(5)
    assert log.leo == 5
    for batch in log.all_batches():
        assert batch.base_offset is not None
        assert log.epochs.epoch_for_offset(batch.base_offset) == batch.leader_epoch
    entries = log.epochs.entries
    log.close()
    log = open_log(disk, verify=verify)
    assert (log.leo, log.epochs.entries) == (5, entries)
    assert log.append(one()).base_offset == 5


def test_log_cut_in_the_hole_at_its_beginning_keeps_its_epochs_in_a_restart(disk: SyncDisk) -> None:
    log = open_log(disk)
    log.declare_gaps(10)
    log.append_replica_batch(one().assign(10, 0))
    log.truncate_to(5)
    entries = log.epochs.entries
    log.close()
    assert open_log(disk).epochs.entries == entries


def test_log_that_was_cut_below_its_raised_start_still_opens(disk: SyncDisk) -> None:
    """The epochs below the start were forgotten with it, the batches there were not."""
    log = open_log(disk)
    log.become_leader(1)
    fill(log, 4)
    log.raise_log_start_offset(4)
    log.truncate_to(3)
    try:
        log.append_replica_batch(one(b"w").assign(3, 0))
    except StaleLeaderEpoch:
        assert log.leo == 3
    leo = log.leo
    log.close()
    assert open_log(disk, verify="all").leo == leo


def test_a_new_leader_after_a_cut_below_the_raised_start_leaves_a_log_that_opens(
    disk: SyncDisk,
) -> None:
    log = open_log(disk)
    log.become_leader(5)
    fill(log, 4)
    log.raise_log_start_offset(4)
    log.truncate_to(3)
    log.close()
    log = open_log(disk)
    log.append(one(b"w"))
    log.close()
    assert open_log(disk, verify="all").leo == 4


STAMPS = st.sampled_from([-1, -1, 0, 40, 60, 200])
FRAMES = st.lists(
    st.tuples(STAMPS, st.sampled_from([b"", bytes(60)]), st.integers(0, 1)), max_size=6
)
CLOCK = st.none() | st.sampled_from([0, 30, 90, 1_000])


@given(
    FRAMES,
    FRAMES.filter(bool),
    st.builds(
        LogConfig,
        segment_max_bytes=st.sampled_from([1, 200, 400, 1 << 20, 1 << 20]),
        segment_max_age_ms=st.just(50),
        index_interval_bytes=st.sampled_from([1, 150]),
        index_max_bytes=st.sampled_from([12, 40, 1 << 20, 1 << 20, 1 << 20]),
    ),
    CLOCK,
    CLOCK,
    st.booleans(),
)
@example([], [(0, b"", 0), (60, b"", 0)], LogConfig(segment_max_age_ms=50), None, None, False)
@example([(-1, b"", 0)], [(-1, b"", 0)] * 2, LogConfig(segment_max_age_ms=50), 0, 1_000, True)
def test_run_of_frames_leaves_the_files_of_its_frames_one_by_one(
    before: list[tuple[int, bytes, int]],
    run: list[tuple[int, bytes, int]],
    config: LogConfig,
    early_ms: int | None,
    now_ms: int | None,
    rolls: bool,
) -> None:
    """ "A run ends up as its frames one by one would": segments, indexes, epochs, boundary."""
    frames, epoch = [], 0
    for offset, (stamp, value, rise) in enumerate([*before, *run]):
        epoch += rise
        frames.append(Stored.of(one(value, stamp).assign(offset, epoch)).frame)
    results = []
    for is_run in (False, True):
        disk = MemDisk()
        log = PartitionLog.open(DIRECTORY, config, disk=disk)
        for frame in frames[: len(before)]:
            log.append_replica_batch(frame, now_ms=early_ms)
        if rolls:
            log.roll(now_ms=early_ms)
        rest = frames[len(before) :]
        for data in [b"".join(rest)] if is_run else rest:
            log.append_replica_batch(data, now_ms=now_ms)
        results.append((files(disk), log.boundary, log.epochs.entries))
    assert results[0] == results[1]


def test_clock_rolls_a_segment_whose_first_batch_has_no_timestamp(disk: SyncDisk) -> None:
    """A20: "wall clock since creation if the first batch has none"."""
    log = open_log(disk, LogConfig(segment_max_age_ms=50))
    log.append(one(b"v", -1), now_ms=100)
    log.append(one(b"v", -1), now_ms=150)
    log.append(one(b"v", -1))
    assert len(log.segments) == 1
    log.append(one(b"v", -1), now_ms=151)
    assert [s.base_offset for s in log.segments] == [0, 3]


def test_timestamps_roll_a_segment_whose_first_batch_has_one(disk: SyncDisk) -> None:
    """A20: "age = newest ts - first batch ts"; the clock does not count then."""
    log = open_log(disk, LogConfig(segment_max_age_ms=50))
    log.append(one(b"v", 100), now_ms=0)
    log.append(one(b"v", 150), now_ms=10**6)
    log.append(one(b"v", 7), now_ms=10**6)
    assert len(log.segments) == 1
    log.append(one(b"v", 151))
    assert [s.base_offset for s in log.segments] == [0, 3]


def test_empty_segment_never_rolls_for_age(disk: SyncDisk) -> None:
    log = open_log(disk, LogConfig(segment_max_age_ms=50))
    log.append(one(b"v", -1), now_ms=0)
    log.roll(now_ms=0)
    log.append(one(b"v", -1), now_ms=10**6)
    assert [s.base_offset for s in log.segments] == [0, 1]


def test_range_read_after_a_truncation_ignores_where_the_last_one_ended(disk: SyncDisk) -> None:
    log = open_log(disk)
    fill(log, 3)
    log.read_range(0, 1)
    log.truncate_to(0)
    log.append(one(b"longer"))
    log.append(one(b"next"))
    assert log.read_range(1, 1 << 20) == Stored.of(one(b"next").assign(1, 0)).frame


# Indexes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("verify", ["unflushed", "all"])
def test_index_of_the_active_segment_rebuilt_on_open_is_that_of_an_active_one(
    disk: SyncDisk, suffix: str, verify: str
) -> None:
    log = open_log(disk)
    log.append(one(b"v", 5))
    log.close()
    before = files(disk)
    disk.unlink(log.active.log_path.with_suffix(suffix))
    log = open_log(disk, verify=verify)
    after = files(disk)
    for name in before:
        if "index" in name:
            assert after[name] == before[name]
    log.append(RecordBatch.unassigned((Record(None, b"w", 9),)))
    log.abandon()
    assert open_log(disk, verify="all").report.rebuilt == ()


@pytest.mark.parametrize("name", ["00000000000000000000.index", "seal", ".lock"])
@pytest.mark.parametrize("is_link", [True, False])
def test_what_is_no_file_refuses_before_anything_changes(name: str, is_link: bool) -> None:
    """Recovery would write through a link, and could not replace a directory."""
    disk = MemDisk()
    log = open_log(disk)
    fill(log, 2)
    log.close()
    disk = disk.copy()
    path = DIRECTORY / name
    disk.unlink(path)
    if is_link:
        disk.symlink(path, Path("/elsewhere"))
    else:
        disk.mkdir(path)
    before = disk.listdir(DIRECTORY)
    with pytest.raises(NotRegularFile):
        open_log(disk)
    assert disk.listdir(DIRECTORY) == before
