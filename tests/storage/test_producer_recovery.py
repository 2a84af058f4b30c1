"""Opening a log with producers: damaged snapshots, lost ones, and where a replay begins.

Row 60 is that of STORAGE.md E.2: whatever is wrong with a snapshot is mended by replay.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from storage import (
    ControlType,
    LogConfig,
    PartitionLog,
    Record,
    RecordBatch,
    encode_batch,
    producer_replay,
)
from storage.codec import ProducerFacts
from storage.disk import FileKind
from storage.errors import (
    CorruptLog,
)
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from storage.producer_replay import iter_producers
from storage.reading import CHUNK_BYTES
from storage.segment import Segment
from storage.state import BOUNDARY_FILE
from tests.storage.faults import FaultDisk
from tests.storage.producer_logs import (
    CONFIG,
    DIRECTORY,
    FRAME,
    LAST,
    MODES,
    PLAIN,
    batch,
    content,
    edit,
    everything,
    filled,
    flip,
    halve,
    lose,
    marker,
    move,
    open_log,
    path,
    replayed,
    snapshots,
)


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The replays so far: base of the segment, and the offset asked for."""
    seen: list[tuple[int, int]] = []

    def watched(segment: Segment, offset: int) -> Iterator[ProducerFacts]:
        seen.append((segment.base_offset, offset))
        return iter_producers(segment, offset)

    monkeypatch.setattr(producer_replay, "iter_producers", watched)
    return seen


# Row 60: what is wrong with snapshots is mended by replay ---------------------------------------


ROW_60: dict[str, tuple[Callable[[FaultDisk], None], set[int]]] = {
    "crc-bad": (edit(flip, 35), {35}),
    "truncated": (edit(halve, 35), {35}),
    "empty": (edit(bytearray.clear, 35), {35}),
    "missing": (lose(35), set()),
    "newest-two-missing": (lose(30, 35), set()),
    "all-missing": (lose(10, 20, 30, 35), set()),
    "all-bad": (edit(flip, 10, 20, 30, 35), {10, 20, 30, 35}),
    "older-bad": (edit(flip, 20, 30), set()),
    "above-the-end": (move(35, 36), {36}),
    "far-above-the-end": (move(35, 2**63 - 1), {2**63 - 1}),
    "under-another-name": (move(20, 35), {35}),
}
"""Damage to a log's snapshots 10, 20, 30 and 35, and the offsets of those that opening removes."""


@pytest.mark.parametrize("verify", MODES)
@pytest.mark.parametrize("is_clean", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("name", [pytest.param(name, id=f"row60-{name}") for name in ROW_60])
def test_row60_replay_mends_what_is_wrong_with_snapshots(
    disk: FaultDisk, name: str, is_clean: bool, verify: str
) -> None:
    damage, removed = ROW_60[name]
    log = filled(disk)
    known = dict(log.producers)
    log.close()
    damage(disk)
    if not is_clean:
        disk.unlink(DIRECTORY / "seal")
    log = open_log(disk, verify)
    assert log.report.is_clean == is_clean
    assert dict(log.producers) == known == replayed(log)
    assert set(log.report.removed) == {path(offset).name for offset in removed}
    assert not removed & set(snapshots(disk)) - {35}
    assert len(log.report.warnings) == len([offset for offset in removed if offset <= 35])
    log.close()
    log = open_log(disk, verify)
    assert log.report.removed == log.report.warnings == ()
    assert dict(log.producers) == known


def test_what_is_no_snapshot_file_is_left_alone(disk: FaultDisk) -> None:
    filled(disk).close()
    names = ("17.snapshot", f"{2**63:020d}.snapshot", f"{12:020d}.snapshot.deleted", "x.snapshot")
    for name in names:
        disk.inner.open(DIRECTORY / name, create=True).close()
    disk.inner.mkdir(path(34))
    log = open_log(disk)
    assert set(log.report.ignored) == {*names, path(34).name}
    assert log.report.removed == ()
    assert disk.stat(path(34)).kind is FileKind.DIRECTORY
    assert log._snapshots.offsets == (10, 20, 30, 35)


def test_a_snapshot_that_cannot_be_read_is_replaced(disk: FaultDisk) -> None:
    log = filled(disk)
    known = dict(log.producers)
    log.close()
    disk.fail("read_at", suffix=path(35).name)
    log = open_log(disk)
    assert dict(log.producers) == known
    assert log.report.removed == (path(35).name,)


@pytest.mark.parametrize("verify", MODES)
def test_a_long_replay_leaves_a_snapshot_so_that_it_is_not_repeated(
    disk: FaultDisk, verify: str
) -> None:
    log = filled(disk)
    log.abandon()
    lose(10, 20, 30)(disk)
    log = open_log(disk, verify)
    assert snapshots(disk) == [35]
    assert "fsync" not in disk.operations(path(35).name)
    log.flush()
    assert "fsync" in disk.operations(path(35).name)


def test_a_replay_inside_the_last_segment_leaves_none(disk: FaultDisk) -> None:
    filled(disk).abandon()
    open_log(disk).abandon()
    assert snapshots(disk) == [10, 20, 30]


# Where a replay begins ---------------------------------------------------------------------------


@pytest.mark.parametrize("verify", MODES)
def test_without_any_snapshot_the_replay_begins_at_the_first_producer(
    disk: FaultDisk, verify: str
) -> None:
    log = open_log(disk)
    for _ in range(23):
        log.append(PLAIN)
    for sequence in range(12):
        log.append(batch(sequence))
    known = dict(log.producers)
    log.close()
    assert content(disk, BOUNDARY_FILE).decode().splitlines()[2].split()[5] == "23"
    lose(*snapshots(disk))(disk)
    disk.unlink(DIRECTORY / "seal")
    log = open_log(disk, verify)
    assert dict(log.producers) == known


def test_what_the_boundary_does_not_cover_is_replayed_whatever_was_saved(disk: FaultDisk) -> None:
    """The saved first offset is of a history that a truncation has taken back."""
    log = open_log(disk)
    for _ in range(5):
        log.append(PLAIN)
    log.flush()
    log.append(PLAIN)
    log.append(PLAIN)
    log.append(batch(0))
    log.declare_gaps(1)
    log.truncate_to(5)
    log.append(batch(0, producer=8))
    log.append(PLAIN)
    log.append(PLAIN)
    log.append(batch(0))
    fields = content(disk, BOUNDARY_FILE).decode().splitlines()[2].split()
    assert (fields[2], fields[5]) == ("5", "7")
    known = dict(log.producers)
    assert set(known) == {7, 8}
    log.abandon()
    assert dict(open_log(disk).producers) == known


@pytest.mark.parametrize("verify", MODES)
def test_an_unknown_boundary_means_a_replay_of_everything(disk: FaultDisk, verify: str) -> None:
    log = filled(disk)
    known = dict(log.producers)
    log.close()
    lose(10, 20, 30, 35)(disk)
    disk.unlink(DIRECTORY / BOUNDARY_FILE)
    log = open_log(disk, verify)
    assert dict(log.producers) == known
    log.close()
    lose(*snapshots(disk))(disk)
    assert dict(open_log(disk, verify).producers) == known


@pytest.mark.parametrize("verify", MODES)
def test_a_broker_directory_keeps_the_first_producer_too(disk: FaultDisk, verify: str) -> None:
    broker = Path("/broker")
    log_dir = LogDir.open(broker, disk=disk)
    plain = log_dir.open_log("plain", 0, CONFIG)
    log = log_dir.open_log("t", 0, CONFIG)
    for sequence in range(25):
        plain.append(PLAIN)
        log.append(batch(sequence))
    known = dict(log.producers)
    log.flush()
    plain.flush()
    log.abandon()
    plain.abandon()
    lines = sorted(
        line.split() for line in _lines(disk, broker / "boundaries") if line.count(" ") > 2
    )
    assert [len(line) for line in lines] == [8, 9]
    for name in disk.listdir(broker / "t-0"):
        if name.endswith(".snapshot"):
            disk.unlink(broker / "t-0" / name)
    log_dir._lock.release()
    log_dir = LogDir.open(broker, disk=disk)
    assert log_dir.warnings == []
    assert dict(log_dir.open_log("t", 0, CONFIG, verify=verify).producers) == known  # type: ignore[arg-type]


def _lines(disk: FaultDisk, file_path: Path) -> list[str]:
    file = disk.inner.open(file_path, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data.decode().splitlines()


def test_replay_finds_a_frame_wherever_its_header_meets_the_end_of_a_buffer() -> None:
    for left in range(70):
        disk = FaultDisk(MemDisk())
        log = PartitionLog.open(DIRECTORY, LogConfig(), disk=disk)
        value = bytes(CHUNK_BYTES - left - (FRAME - 1))
        log.append(RecordBatch.unassigned([Record(None, value, 5)]))
        log.append(batch(0))
        log.append(batch(0, producer=8))
        known = dict(log.producers)
        log.abandon()
        log = PartitionLog.open(DIRECTORY, LogConfig(), disk=disk)
        assert (left, dict(log.producers)) == (left, known)


def test_replay_reads_frames_of_every_size_and_both_versions(disk: FaultDisk) -> None:
    """Frames at, across and behind the end of a buffer of 64 KiB, a small one last."""
    log = PartitionLog.open(DIRECTORY, LogConfig(), disk=disk)
    sequences = dict.fromkeys(range(4), 0)
    for number in range(300):
        producer = number % 5
        value = bytes([0, 1, 65_400, 700, 65_475 - number, 300_000][number % 6])
        log.append(
            RecordBatch.unassigned(
                [Record(None, value, number)],
                producer_id=producer if producer < 4 else -1,
                producer_epoch=0 if producer < 4 else -1,
                base_sequence=sequences.get(producer, -1),
                format_version=1 + number % 2,
            )
        )
        if producer < 4:
            sequences[producer] += 1
    last = RecordBatch.control_marker(
        ControlType.COMMIT, transactional_id="t", producer_id=9, producer_epoch=0, format_version=1
    )
    log.append(last)
    known = dict(log.producers)
    assert set(known) == {0, 1, 2, 3, 9}
    log.abandon()
    log = PartitionLog.open(DIRECTORY, LogConfig(), disk=disk)
    assert dict(log.producers) == known == replayed(log)


def test_a_damaged_header_on_the_way_refuses_before_anything_changes(disk: FaultDisk) -> None:
    log = filled(disk)
    log.close()
    lose(10, 20, 30)(disk)
    edit(flip, 35)(disk)
    file = disk.inner.open(DIRECTORY / f"{10:020d}.log")
    file.write_at(4 * FRAME, b"XXXX")
    file.close()
    disk.inner.unlink(DIRECTORY / "seal")
    before = everything(disk)
    with pytest.raises(CorruptLog) as caught:
        open_log(disk)
    assert (caught.value.file.name, caught.value.position) == (f"{10:020d}.log", 4 * FRAME)
    assert everything(disk) == before


def test_the_header_facts_of_a_frame_are_its_own(disk: FaultDisk) -> None:
    codec = open_log(disk)._codec
    frame = encode_batch(batch(LAST, 3, epoch=4, time=8).assign(12, 0))
    assert codec.producer_facts(b"x" + frame, 1) == (7, 4, LAST, 12, 2, 8, False)
    assert codec.producer_facts(encode_batch(marker(epoch=2, time=9).assign(3, 0)), 0) == (
        7,
        2,
        -1,
        3,
        0,
        9,
        True,
    )
    assert codec.producer_facts(encode_batch(PLAIN.assign(3, 0)), 0) is None
    assert frame[codec.producer_at : codec.producer_at + 8] == (7).to_bytes(8, "big")


@pytest.mark.parametrize("verify", MODES)
def test_a_crash_of_a_log_without_producers_replays_what_no_flush_covered(
    disk: FaultDisk, replays: list[tuple[int, int]], verify: str
) -> None:
    log = open_log(disk)
    for _ in range(33):
        log.append(PLAIN)
    log.flush()
    log.append(PLAIN)
    log.abandon()
    open_log(disk, verify).close()
    assert replays == [(30, 33)]
    open_log(disk, verify).abandon()
    assert replays == [(30, 33)]


@pytest.mark.parametrize("verify", MODES)
def test_with_a_seal_nothing_is_replayed_behind_the_newest_snapshot(
    disk: FaultDisk, replays: list[tuple[int, int]], verify: str
) -> None:
    log = filled(disk)
    known = dict(log.producers)
    log.close()
    log = open_log(disk, verify)
    assert log.report.is_clean
    assert dict(log.producers) == known
    assert replays == []


def test_after_a_crash_the_replay_begins_at_the_newest_snapshot(
    disk: FaultDisk, replays: list[tuple[int, int]]
) -> None:
    filled(disk).abandon()
    open_log(disk).abandon()
    assert replays == [(30, 30)]


# Less than the whole log ------------------------------------------------------------------------


def test_salvage_knows_the_producers_of_the_good_prefix(disk: FaultDisk) -> None:
    log = filled(disk)
    log.close()
    lose(10, 20, 30, 35)(disk)
    file = disk.inner.open(DIRECTORY / f"{20:020d}.log")
    file.write_at(3 * FRAME + 30, b"\xff")
    file.close()
    disk.unlink(DIRECTORY / "seal")
    for name in ("", BOUNDARY_FILE):
        if name:
            disk.unlink(DIRECTORY / name)
        copy = FaultDisk(disk.inner.copy())  # type: ignore[attr-defined]
        with pytest.raises(CorruptLog) as caught:
            open_log(copy, "all")
        log = PartitionLog.salvage(DIRECTORY, caught.value, CONFIG, disk=copy)
        assert log.leo == 23
        assert dict(log.producers) == replayed(log)
        assert log.producers[7].next_sequence == 19


def test_a_log_that_begins_anew_knows_no_producer(disk: FaultDisk) -> None:
    """Nothing was durable, and the first file is gone: what snapshots say is of another log."""
    log = filled(disk, runs_pending=False)
    log.abandon()
    for suffix in (".log", ".index", ".timeindex"):
        disk.unlink(DIRECTORY / f"{0:020d}{suffix}")
    log = open_log(disk)
    assert (log.leo, log.producers, snapshots(disk)) == (0, {}, [])


def test_a_snapshot_from_before_the_first_segment_is_of_no_use(disk: FaultDisk) -> None:
    """It misses the batches that are gone: the producer's next one would look like a gap."""
    log = filled(disk, runs_pending=False)
    log.flush()
    log.delete_old_segments(log.leo, retention_bytes=15 * FRAME)
    assert log.segments[0].base_offset == 20
    log.abandon()
    lose(20, 30)(disk)
    assert snapshots(disk) == [10]
    log = open_log(disk)
    assert dict(log.producers) == replayed(log)
    assert snapshots(disk) == [35]
    assert path(10).name in log.report.removed


def test_producers_that_only_a_snapshot_from_before_knows_are_forgotten(disk: FaultDisk) -> None:
    log = open_log(disk, runs_pending=False)
    for sequence in range(20):
        log.append(batch(sequence))
    for sequence in range(15):
        log.append(batch(sequence, producer=8))
    log.flush()
    log.delete_old_segments(log.leo, retention_bytes=15 * FRAME)
    log.abandon()
    lose(20, 30)(disk)
    log = open_log(disk)
    assert list(log.producers) == [8]
    assert not log.append(batch(20)).is_duplicate
