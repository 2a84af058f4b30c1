"""Limits: memory, open files, and the range of every configuration value.

Memory and descriptors are measured in a process of their own, against the same process before the
log is touched.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import fields

from storage import LogConfig, LogRules, PartitionLog
from storage.config import READ_LIMIT_BYTES_MIN
from storage.errors import (
    BatchTooLarge,
    CorruptBatch,
    InvalidConfig,
    StorageError,
    UnexpectedOffset,
)
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from tests.storage.batches import many, one
from tests.storage.faults import FaultDisk
from tests.storage.log_tools import DIRECTORY, files

ROOT = Path(__file__).resolve().parent.parent.parent
MIB = 1 << 20


def run_alone(code: str, *arguments: object) -> dict[str, Any]:
    """What ``code`` prints as JSON, run in a fresh interpreter."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# Memory ----------------------------------------------------------------------------------------

BUILD = """
import sys
from pathlib import Path
from storage import PartitionLog, Record, RecordBatch

directory, mib, batch_kib = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
value = bytes(range(256)) * 4 * batch_kib
batch = RecordBatch.unassigned((Record(None, value, 1_000),))
log = PartitionLog.open(directory)
for _ in range(mib * 1024 // batch_kib):
    log.append(batch)
log.abandon()
print(0)
"""

# ru_maxrss only ever grows, so the figure before the log is opened is the bare one.
MEASURE = """
import json, resource, sys
from pathlib import Path
from storage import PartitionLog

def peak_kib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

directory, do = Path(sys.argv[1]), sys.argv[2]
before = peak_kib()
log = PartitionLog.open(directory, verify="all")
if do == "scan":
    batches = sum(1 for _ in log.all_batches())
else:
    batches, offset = 0, 0
    while offset < log.leo:
        place = log.slice_range(offset, 1 << 20)
        batches += len(log.read_batches(offset, 1))
        offset = min(offset + place.size_bytes // 65_536, log.leo)
print(json.dumps({"kib": peak_kib() - before, "leo": log.leo, "batches": batches}))
"""


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """256 MiB in batches of 64 KiB, one segment, closed by nobody."""
    directory = tmp_path_factory.mktemp("large") / "t-0"
    run_alone(BUILD, directory, 256, 64)
    assert sum(path.stat().st_size for path in directory.iterdir()) > 256 * MIB
    return directory


@pytest.mark.slow
@pytest.mark.parametrize("do", ["scan", "look up"])
def test_opening_and_reading_a_large_log_takes_bounded_memory(large_log: Path, do: str) -> None:
    found = run_alone(MEASURE, large_log, do)
    assert found["leo"] == 4_096
    assert found["batches"] == (4_096 if do == "scan" else 274)
    assert found["kib"] < 64 * 1024


# Open files ------------------------------------------------------------------------------------

SEGMENTS = 1_000
FEW_FILES = """
import json, resource, sys
from pathlib import Path
from storage import LogConfig, PartitionLog

directory, verify, end = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
config = LogConfig(segment_max_bytes=1, open_files_max=8)
log = PartitionLog.open(directory, config, verify=verify)
values = [record.offset for record in log.fetch(0, 10_000)]
looked_up = [log.offset_for_timestamp(stamp).offset for stamp in range(0, log.leo, 97)]
files = len(list(Path("/proc/self/fd").iterdir()))
is_clean = log.report.is_clean
log.close() if end == "close" else log.abandon()
print(json.dumps({"values": values, "looked_up": looked_up, "files": files, "clean": is_clean}))
"""


@pytest.fixture(scope="module")
def many_segments(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cleanly closed log, made in memory: a thousand segments are three thousand fsyncs."""
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, LogConfig(segment_max_bytes=1), disk=disk)
    for number in range(SEGMENTS):
        log.append(one(b"v", number))
    log.close()
    directory = tmp_path_factory.mktemp("many") / "t-0"
    directory.mkdir()
    for name, data in files(disk).items():
        (directory / name).write_bytes(data)
    return directory


@pytest.mark.slow
def test_a_thousand_segments_open_with_few_files(many_segments: Path) -> None:
    for verify, end, is_clean in (
        ("unflushed", "close", True),
        ("all", "abandon", True),
        ("unflushed", "close", False),
    ):
        found = run_alone(FEW_FILES, many_segments, verify, end)
        assert found["values"] == list(range(SEGMENTS))
        assert found["looked_up"] == list(range(0, SEGMENTS, 97))
        assert found["files"] < 40
        assert found["clean"] == is_clean


@pytest.mark.parametrize("limit", [1, 2, 5])
def test_no_more_closed_segments_are_open_than_configured(limit: int) -> None:
    disk = FaultDisk(MemDisk())
    config = LogConfig(segment_max_bytes=1, open_files_max=limit)
    log = PartitionLog.open(DIRECTORY, config, disk=disk)
    for _ in range(20):
        log.append(one())
    for offset in [*range(20), *range(19, -1, -1), 7, 7, 3]:
        log.fetch(offset, 1)
        open_logs: dict[str, int] = {}
        for call in disk.calls:
            if call.name.endswith(".log") and call.operation in ("open", "close"):
                change = 1 if call.operation == "open" else -1
                open_logs[call.name] = open_logs.get(call.name, 0) + change
        closed = [name for name, count in open_logs.items() if count]
        assert len(closed) <= limit + 1, "and the active one"


# Sizes -----------------------------------------------------------------------------------------


def test_batch_above_the_limit_is_refused_and_leaves_the_log_as_it_was() -> None:
    log = PartitionLog.open(DIRECTORY, LogConfig(max_batch_bytes=100), disk=MemDisk())
    log.append(one(bytes(18)))
    with pytest.raises(BatchTooLarge) as caught:
        log.append(one(bytes(19)))
    assert (caught.value.size_bytes, caught.value.max_batch_bytes) == (101, 100)
    with pytest.raises(BatchTooLarge):
        log.append_replica_batch(one(bytes(19)).assign(1, 0))
    assert (log.leo, log.size_bytes) == (1, 100)


def test_raw_frame_above_the_limit_of_appends_is_stored_since_its_leader_took_it() -> None:
    source = PartitionLog.open(Path("/s-0"), disk=MemDisk())
    source.append(many(5))
    frame = source.read_range(0, 1 << 20)
    config = LogConfig(max_batch_bytes=len(frame) - 1)
    log = PartitionLog.open(DIRECTORY, config, disk=MemDisk())
    log.append_replica_batch(frame)
    assert log.read_range(0, 1 << 20) == frame


def test_raw_frame_above_the_limit_of_reads_is_refused_and_leaves_the_log_as_it_was() -> None:
    frame = bytearray(MKB1.encode(one(bytes(10)), 0, 0, 1 << 20)[0])
    frame[4:8] = READ_LIMIT_BYTES_MIN.to_bytes(4, "big")
    log = PartitionLog.open(DIRECTORY, LogConfig(max_batch_bytes=100), disk=MemDisk())
    with pytest.raises(CorruptBatch, match="max_batch_bytes"):
        log.append_replica_batch(frame)
    assert (log.leo, log.size_bytes) == (0, 0)


@pytest.mark.parametrize("index_max_bytes", [12, 16, 24, 36, 100])
def test_no_index_file_grows_beyond_its_limit(index_max_bytes: int) -> None:
    """ "a segment rolls when one of its indexes has no room for a further entry"."""
    config = LogConfig(index_max_bytes=index_max_bytes, index_interval_bytes=1)
    log = PartitionLog.open(DIRECTORY, config, disk=MemDisk())
    for stamp in range(30):
        log.append(one(b"v", stamp))
    for segment in log.segments:
        assert segment.index.size_bytes <= index_max_bytes
        assert segment.time_index.size_bytes <= index_max_bytes


@pytest.mark.parametrize("base", [2**31 + 5, 2**32 + 5, 2**40])
@pytest.mark.parametrize("has_data", [False, True])
def test_gap_wider_than_an_index_can_express_is_stored_or_refused(
    base: int, has_data: bool
) -> None:
    """Index entries hold 32 bits: "rolling by relative offset overflow"."""
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, disk=disk)
    if has_data:
        log.append(one())
    log.declare_gaps(base)
    before = (log.leo, log.size_bytes, log.active.file().size())
    try:
        log.append_replica_batch(one(b"far", 5).assign(base, 0))
    except StorageError:
        assert (log.leo, log.size_bytes, log.active.file().size()) == before
        log.append(one())
    else:
        assert log.leo == base + 1
        assert [record.offset for record in log.fetch(base, 9)] == [base]
    leo = log.leo
    log.close()
    log = PartitionLog.open(DIRECTORY, disk=disk, verify="all")
    assert (log.leo, log.report.rebuilt) == (leo, ())


def test_gap_wider_than_a_batch_can_express_is_refused() -> None:
    """The empty batch that stands for a hole holds at most 2^31 offsets."""
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, disk=disk)
    log.append(one())
    log.declare_gaps(2**32)
    with pytest.raises(UnexpectedOffset):
        log.append_replica_batch(one().assign(2**31 + 1, 0))
    assert log.leo == 1
    log.append_replica_batch(one().assign(2**31, 0))


@pytest.mark.parametrize("target", [2**31 - 1, 2**30, 5])
def test_widest_hole_is_cut_anywhere(target: int) -> None:
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, disk=disk)
    log.append(one())
    log.declare_gaps(2**31)
    log.append_replica_batch(one().assign(2**31, 0))
    log.truncate_to(target)
    assert log.leo == target
    log.close()
    assert PartitionLog.open(DIRECTORY, disk=disk, verify="all").leo == target


@pytest.mark.parametrize("end_offset", [2**63, 2**64])
def test_gaps_cannot_be_declared_behind_the_last_offset(end_offset: int) -> None:
    disk = MemDisk()
    log = PartitionLog.open(DIRECTORY, disk=disk)
    log.append(one())
    with pytest.raises(ValueError, match="end_offset"):
        log.declare_gaps(end_offset)
    log.close()
    log = PartitionLog.open(DIRECTORY, disk=disk)
    assert (log.gaps_end, log.report.warnings) == (0, ())


def test_log_is_full_at_the_last_offset() -> None:
    log = PartitionLog.open(DIRECTORY, disk=MemDisk())
    log.truncate_fully_and_start_at(2**63 - 3)
    log.append(one())
    with pytest.raises(StorageError):
        log.append(many(3))
    assert log.leo == 2**63 - 2


# Configuration ---------------------------------------------------------------------------------

INT32_MAX = 2**31 - 1
RANGES = {
    "segment_max_bytes": (1, INT32_MAX),
    "segment_max_age_ms": (1, 2**63 - 1),
    "index_interval_bytes": (1, INT32_MAX),
    "index_max_bytes": (12, INT32_MAX),
    "max_batch_bytes": (60, INT32_MAX),
    "open_files_max": (1, 65_536),
    "producer_expiry_ms": (1, 2**63 - 1),
}


def test_every_field_of_the_configuration_has_its_range_tested() -> None:
    assert {field.name for field in fields(LogConfig)} == {*RANGES, "rules"}


@pytest.mark.parametrize("name", RANGES)
def test_configuration_value_at_its_edges_is_allowed(name: str) -> None:
    for value in RANGES[name]:
        assert getattr(LogConfig(**{name: value}), name) == value


@pytest.mark.parametrize("name", RANGES)
def test_configuration_value_outside_its_range_is_named(name: str) -> None:
    low, high = RANGES[name]
    bad: list[Any] = [low - 1, high + 1, -1, float(low), str(low), None, True]
    for value in bad:
        with pytest.raises(InvalidConfig) as caught:
            LogConfig(**{name: value})
        assert str(caught.value) == f"{name} is {value!r}, allowed is {low}..{high}"
        assert isinstance(caught.value, ValueError)


def test_defaults_are_kafkas() -> None:
    config = LogConfig()
    assert config.segment_max_bytes == 1 << 30
    assert config.segment_max_age_ms == 7 * 24 * 3_600_000
    assert config.index_interval_bytes == 4_096
    assert config.index_max_bytes == 10 * MIB
    assert config.producer_expiry_ms == 24 * 3_600_000
    assert config.rules == LogRules()


@pytest.mark.parametrize("rules", [None, True, {}, "all"])
def test_rules_are_a_log_rules(rules: Any) -> None:
    with pytest.raises(InvalidConfig, match="rules is"):
        LogConfig(rules=rules)


def test_configuration_is_frozen_and_named() -> None:
    with pytest.raises(AttributeError):
        LogConfig().segment_max_bytes = 5  # type: ignore[misc]
    with pytest.raises(TypeError):
        LogConfig(120)  # type: ignore[misc]


@pytest.mark.parametrize("name", [field.name for field in fields(LogRules)])
def test_rule_is_on_by_default_and_true_or_false(name: str) -> None:
    assert getattr(LogRules(), name) is True
    assert getattr(LogRules(**{name: False}), name) is False
    for value in (None, 0, 1, "off"):
        with pytest.raises(InvalidConfig, match=f"{name} is"):
            LogRules(**{name: value})
