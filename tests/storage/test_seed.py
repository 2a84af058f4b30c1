"""The founding document, chapter "The Log": its experiment and its exercises.

Sentences in quotation marks are the document's; its facts are in ``test_seed_facts.py``.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from storage import LogConfig, PartitionLog, encode_batch
from storage.errors import StorageError
from storage.memdisk import MemDisk
from storage.segment import segment_stem
from tests.storage.batches import many, one

ROOT = Path(__file__).resolve().parent.parent.parent
TINY = LogConfig(segment_max_bytes=120, index_interval_bytes=1)
DIRECTORY = Path("/events-0")

EXPERIMENT = """\
from pathlib import Path
from tempfile import TemporaryDirectory
from minikafka.config import MiniKafkaConfig
from minikafka.core.batch import RecordBatch
from minikafka.core.record import Record
from minikafka.log.partition_log import PartitionLog

def one(value: bytes, timestamp: int) -> RecordBatch:
    return RecordBatch.unassigned((Record(None, value, timestamp),))

with TemporaryDirectory() as directory:
    root = Path(directory)
    config = MiniKafkaConfig(
        root, segment_max_bytes=120, index_interval_bytes=1
    )
    log = PartitionLog.open(root / "events-0", config)
    for i in range(3):
        log.append(one(f"value-{i}".encode(), i))
    print("segment bases:", [s.base_offset for s in log.segments])
    print("active index:", log.active.index.entries)
    active_path = log.active.log_path
    valid_size = log.active.size_bytes
    log.close()
    with active_path.open("ab") as file:
        file.write(b"MKB1\\x00\\x00\\x00\\x20partial")
    recovered = PartitionLog.open(root / "events-0", config)
    print("recovered leo:", recovered.leo)
    print("tail repaired:", recovered.active.size_bytes == valid_size)
    print("values:", [r.value for r in recovered.fetch(0, 10)])
    recovered.close()
"""
CHANGES = {
    "from minikafka.config import MiniKafkaConfig\n": "from storage import LogConfig\n",
    "from minikafka.core.batch import RecordBatch\n": "from storage import RecordBatch\n",
    "from minikafka.core.record import Record\n": "from storage import Record\n",
    "from minikafka.log.partition_log import PartitionLog\n": "from storage import PartitionLog\n",
    "MiniKafkaConfig(\n        root, segment": "LogConfig(\n        segment",
}
MEASURED_OUTPUT = """\
segment bases: [0, 1, 2]
active index: ((2, 0),)
recovered leo: 3
tail repaired: True
values: [b'value-0', b'value-1', b'value-2']
"""


def adapted(text: str) -> str:
    """The experiment with its import lines and its configuration line changed, nothing else."""
    for old, new in CHANGES.items():
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def value_log(disk: MemDisk, config: LogConfig = TINY, count: int = 3) -> PartitionLog:
    log = PartitionLog.open(DIRECTORY, config, disk=disk)
    for number in range(count):
        log.append(one(f"value-{number}".encode(), number))
    return log


def overwrite(disk: MemDisk, path: Path, data: bytes, at: int | None = None) -> None:
    """Write ``data`` at a position, or behind the end."""
    file = disk.open(path)
    file.write_at(file.size() if at is None else at, data)
    file.close()


def content(disk: MemDisk, path: Path) -> bytes:
    file = disk.open(path, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


@pytest.fixture
def disk() -> MemDisk:
    return MemDisk()


# The experiment --------------------------------------------------------------------------------


def test_experiment_of_the_document_prints_its_output(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(adapted(EXPERIMENT), "experiment", "exec"), {})
    assert capsys.readouterr().out == MEASURED_OUTPUT


def test_shipped_experiment_prints_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "storage.experiment"], cwd=ROOT, capture_output=True, check=True
    )
    assert (done.stdout.decode(), done.stderr) == (MEASURED_OUTPUT, b"")


def test_flipped_byte_in_the_first_closed_log_is_refused(disk: MemDisk) -> None:
    """ "Flip a byte in the first closed .log instead and startup raises StorageError."""
    log = value_log(disk)
    path = log.segments[0].log_path
    log.close()
    data = bytearray(content(disk, path))
    data[40] ^= 1
    overwrite(disk, path, bytes(data), 0)
    with pytest.raises(StorageError):
        PartitionLog.open(DIRECTORY, TINY, disk=disk, verify="all")
    assert content(disk, path) == data, "nothing was cut"


# Exercises -------------------------------------------------------------------------------------


def test_exercise_1_rolling_needs_data_in_the_segment_and_a_batch_that_does_not_fit(
    disk: MemDisk,
) -> None:
    """ "Rolling occurs only when active.has_data is true and adding the encoded frame would exceed
    the threshold. An empty segment accepts an oversized batch."
    """
    size = len(encode_batch(one().assign(0, 0)))
    log = PartitionLog.open(DIRECTORY, LogConfig(segment_max_bytes=2 * size), disk=disk)
    log.append(many(100))
    assert [s.base_offset for s in log.segments] == [0], "oversized, but the segment was empty"
    log.append(one())
    assert [s.base_offset for s in log.segments] == [0, 100], "has data, does not fit"
    log.append(one())
    assert [s.base_offset for s in log.segments] == [0, 100], "has data, fits exactly"
    log.append(one(b""))
    assert [s.base_offset for s in log.segments] == [0, 100, 102], "has data, one byte too many"
    log.append(many(100))
    assert [s.base_offset for s in log.segments] == [0, 100, 102, 103]
    assert [r.offset for r in log.fetch(0, 1_000)] == list(range(203))


def test_exercise_1_every_batch_may_be_larger_than_the_segment(disk: MemDisk) -> None:
    log = PartitionLog.open(DIRECTORY, LogConfig(segment_max_bytes=1), disk=disk)
    for _ in range(3):
        log.append(one())
    assert [s.base_offset for s in log.segments] == [0, 1, 2]


@pytest.mark.parametrize("verify", ["unflushed", "all"])
def test_exercise_2_deleted_index_is_rebuilt(disk: MemDisk, verify: str) -> None:
    """ "reopening succeeds, the fetched values are unchanged, the index file exists again"."""
    log = value_log(disk)
    path = log.active.index_path
    log.close()
    before = content(disk, path)
    disk.unlink(path)
    recovered = PartitionLog.open(DIRECTORY, TINY, disk=disk, verify=verify)  # type: ignore[arg-type]
    assert recovered.active.index.entries == ((2, 0),)
    assert [r.value for r in recovered.fetch(0, 10)] == [b"value-0", b"value-1", b"value-2"]
    assert content(disk, path) == before
    assert path.name in recovered.report.rebuilt


STAMPS = [5, 3, 90, 90, -1, 40, 200, 7, 150]
ASKED = [0, 4, 5, 6, 41, 90, 91, 151, 200, 201]


def stamped_log(disk: MemDisk) -> PartitionLog:
    config = LogConfig(segment_max_bytes=300, index_interval_bytes=1)
    log = PartitionLog.open(DIRECTORY, config, disk=disk)
    for stamp in STAMPS:
        log.append(one(b"v", stamp))
    assert len(log.segments) == 3
    return log


def found(log: PartitionLog) -> list[int | None]:
    records = [log.offset_for_timestamp(stamp) for stamp in ASKED]
    return [record.offset if record else None for record in records]


def first_at_or_after(stamp: int) -> int | None:
    return next((offset for offset, at in enumerate(STAMPS) if at >= stamp), None)


EXPECTED = [first_at_or_after(stamp) for stamp in ASKED]


def reopen(disk: MemDisk, verify: str) -> PartitionLog:
    config = LogConfig(segment_max_bytes=300, index_interval_bytes=1)
    return PartitionLog.open(DIRECTORY, config, disk=disk, verify=verify)  # type: ignore[arg-type]


verified = pytest.mark.parametrize("verify", ["unflushed", "all"])


def test_exercise_3_first_offset_at_or_after_a_timestamp(disk: MemDisk) -> None:
    log = stamped_log(disk)
    assert found(log) == EXPECTED
    log.raise_log_start_offset(3)
    assert log.offset_for_timestamp(5) == log.fetch(3, 1)[0]


def test_exercise_3_file_lifecycle_of_the_time_index(disk: MemDisk) -> None:
    """ "creation/open/flush/close integration in Segment; deletion, ... and truncation"."""
    log = stamped_log(disk)
    for segment in log.segments:
        assert segment.time_index_path.name == segment_stem(segment.base_offset) + ".timeindex"
        assert len(content(disk, segment.time_index_path)) == segment.time_index.size_bytes
    last = log.segments[0].time_index.entries[-1]
    assert last == (90, 3), "a segment that has rolled ends with its largest timestamp"
    gone = log.active.time_index_path
    log.truncate_to(4)
    assert gone.name not in disk.listdir(DIRECTORY)
    assert found(log)[:6] == [0, 0, 0, 2, 2, 2]
    assert log.offset_for_timestamp(91) is None
    log.truncate_fully_and_start_at(20)
    assert sorted(name for name in disk.listdir(DIRECTORY) if "index" in name) == [
        f"{segment_stem(20)}.index",
        f"{segment_stem(20)}.timeindex",
    ]


@verified
def test_exercise_3_deleted_active_time_index_gives_the_same_look_up(
    disk: MemDisk, verify: str
) -> None:
    """ "delete the active time index, reopen, and confirm timestamp lookup returns the same"."""
    log = stamped_log(disk)
    path = log.active.time_index_path
    log.close()
    before = content(disk, path)
    disk.unlink(path)
    recovered = reopen(disk, verify)
    assert found(recovered) == EXPECTED
    assert content(disk, path) == before
    recovered.append(one(b"v", 999))
    assert recovered.offset_for_timestamp(999) == recovered.fetch(len(STAMPS), 1)[0]


@verified
@pytest.mark.parametrize("number", [0, 1, 2])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_exercise_3_damaged_structure_of_an_index_gives_the_same_look_up(
    disk: MemDisk, verify: str, number: int, suffix: str
) -> None:
    """ "A closed corrupt time index needs an explicit policy": it is rebuilt when in doubt."""
    log = stamped_log(disk)
    path = log.segments[number].log_path.with_suffix(suffix)
    log.close()
    good = content(disk, path)
    for bad in (good[:-1], good + b"\0", b"", bytes(len(good)), good[::-1], good + good):
        file = disk.open(path)
        file.truncate(0)
        file.write_at(0, bad)
        file.close()
        recovered = reopen(disk, verify)
        assert found(recovered) == EXPECTED
        assert [r.timestamp_ms for r in recovered.fetch(0, 100)] == STAMPS
        recovered.close()


def test_exercise_3_any_flipped_bit_of_a_closed_time_index_is_rebuilt_when_all_is_verified(
    disk: MemDisk,
) -> None:
    log = stamped_log(disk)
    path = log.segments[0].time_index_path
    log.close()
    good = content(disk, path)
    for bit in range(8 * len(good)):
        overwrite(disk, path, bytes([good[bit // 8] ^ 1 << bit % 8]), bit // 8)
        recovered = reopen(disk, "all")
        assert found(recovered) == EXPECTED
        assert content(disk, path) == good
        recovered.close()
