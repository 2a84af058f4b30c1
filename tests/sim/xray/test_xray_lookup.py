"""Look-ups in an X-ray against storage's own, for every offset and every time of a log.

Method: logs are drawn, with several segments, times that go back, holes left by compaction and log
starts inside a batch; what the plain data answers must be what the open log answers. Then faults
are planted in the data, and the comparison must notice.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.xray.lookup import lookup, lookup_time
from sim.xray.reading import xray
from storage.batch import Record, RecordBatch
from storage.config import LogConfig
from storage.disk import Disk
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.conftest import ROOT
from tests.storage.cleaning import SMALL, open_log, run
from tests.storage.trees import content, put

LOG = Path("/log")
LONG = LogConfig(segment_max_bytes=1 << 20, index_interval_bytes=300)
T0 = 1_700_000_000_000
APPENDS = st.lists(
    st.tuples(st.integers(1, 4), st.integers(-40, 60), st.sampled_from(b"abc"), st.booleans()),
    min_size=1,
    max_size=30,
)


def filled(
    disk: Disk, appends: list[tuple[int, int, int, bool]], config: LogConfig = SMALL
) -> PartitionLog:
    """A log with batches of so many records, so much later, of one key, maybe with a roll."""
    log = open_log(disk, config)
    log.become_leader(1)
    now = T0
    for count, later, key, rolls in appends:
        now = max(now + later, 0)
        records = [Record(bytes([key]), b"v" * 9, now - each) for each in range(count)]
        log.append(RecordBatch.unassigned(records))
        if rolls:
            log.roll()
    return log


def seen(disk: Disk, config: LogConfig = LONG, **options: Any) -> dict[str, Any]:
    """The X-ray, through JSON and back, as a page has it."""
    data = xray(LOG, disk=disk, config=config, **options)
    plain: dict[str, Any] = json.loads(json.dumps(data, allow_nan=False))
    assert plain == data
    return plain


def differences(log: PartitionLog, data: dict[str, Any]) -> list[str]:
    """Where the plain data answers otherwise than the log."""
    found = []
    for offset in range(log.log_start_offset, log.leo):
        told = lookup(data, offset)
        place = log.slice_range(offset, 1)
        result = told["result"]
        if result is None:
            found.append(f"{offset}: {told['text']}")
            continue
        segment = data["segments"][result["segment"]]
        if (segment["base_offset"], result["position"]) != (place.segment_base, place.position):
            found.append(f"{offset}: {result}, storage has {place}")
        records = log.fetch(offset, 1)
        is_there = bool(records) and records[0].offset == offset
        if (told["verdict"] == "found") != is_there:
            found.append(f"{offset}: {told['verdict']}, storage has {records}")
        elif is_there and result["timestamp_ms"] != records[0].timestamp_ms:
            found.append(f"{offset}: {result['timestamp_ms']}, storage has {records}")
    times = {row[1] for each in data["segments"] for b in each["batches"] for row in b[7]}
    for time in sorted({each + by for each in times for by in (-1, 0, 1)}):
        told, record = lookup_time(data, time), log.offset_for_timestamp(time)
        got = told["result"] and (told["result"]["offset"], told["result"]["timestamp_ms"])
        expected = record and (record.offset, record.timestamp_ms)
        if got != expected:
            found.append(f"time {time}: {got}, storage has {expected}")
        if told["verdict"] != ("found" if record else "at-end"):
            found.append(f"time {time}: {told['verdict']}")
    return found


@given(APPENDS, st.booleans(), st.integers(0, 60))
def test_every_look_up_answers_as_storage_does(
    appends: list[tuple[int, int, int, bool]], compacts: bool, start: int
) -> None:
    disk = MemDisk()
    log = filled(disk, appends)
    log.flush()
    if compacts:
        run(log)
    if start:
        log.raise_log_start_offset(min(start, log.leo))
    log.flush()
    data = seen(disk, SMALL)
    assert differences(log, data) == []
    assert data["notices"] == []
    for offset, verdict in ((log.log_start_offset - 1, "below-start"), (log.leo, "at-end")):
        assert lookup(data, offset)["verdict"] == verdict
    assert lookup(data, log.leo + 1)["verdict"] == "beyond-end"


def long_log(disk: Disk) -> PartitionLog:
    return filled(disk, [(1 + n % 3, 10, ord("a"), n == 40) for n in range(90)], LONG)


def test_probes_halve_what_is_left_and_lead_to_the_floor_entry() -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = seen(disk)
    for offset in range(log.leo):
        told = lookup(data, offset)
        segment = data["segments"][told["segment"]]
        entries = segment["index"]["entries"]
        low, high = 0, len(entries)
        for probe in told["probes"]:
            assert (probe["low"], probe["high"]) == (low, high)
            assert low <= probe["number"] < high
            assert [probe["value"], probe["position"]] == entries[probe["number"]]
            if probe["goes"] == "left":
                assert probe["value"] > offset
                high = probe["number"]
            else:
                assert probe["value"] <= offset
                low = probe["number"] + 1
        assert low == high
        assert len(told["probes"]) <= len(entries).bit_length()
        assert told["anchor"]["number"] == low - 1
        storage_segment = log.segments[told["segment"]]
        assert told["seek"] == storage_segment.index.floor_position(offset)


def test_what_was_scanned_lies_between_the_seek_and_the_record() -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = seen(disk)
    for offset in range(log.leo):
        told = lookup(data, offset)
        batches = data["segments"][told["segment"]]["batches"]
        rows = [batches[number] for number in told["batches"]]
        assert rows[0][0] == told["seek"]
        assert rows[-1][0] == told["result"]["position"]
        assert told["bytes_scanned"] == rows[-1][0] + rows[-1][1] - told["seek"]
        # No hole in this log: records are offsets.
        assert told["records_scanned"] == offset - told["anchor"]["offset"]


def test_a_page_with_a_part_of_the_batches_answers_there_and_nowhere_else() -> None:
    disk = MemDisk()
    log = long_log(disk)
    middle = log.leo // 2
    data = seen(disk, around=middle, batches_max=20)
    assert sum(len(each["batches"]) for each in data["segments"]) == 20
    assert any("20 of 90 batches are listed" in each for each in data["notices"])
    answers = {offset: lookup(data, offset)["verdict"] for offset in range(log.leo)}
    assert answers[middle] == "found"
    assert set(answers.values()) == {"found", "unknown"}
    whole = seen(disk)
    for offset, verdict in answers.items():
        if verdict == "found":
            ours, theirs = lookup(data, offset), lookup(whole, offset)
            assert ours["result"]["position"] == theirs["result"]["position"]
    time = lookup(whole, middle)["result"]["timestamp_ms"]
    by_time = seen(disk, at_time_ms=time, batches_max=20)
    assert (
        lookup_time(by_time, time)["result"]["offset"]
        == (lookup_time(whole, time)["result"]["offset"])
    )


def test_timestamps_that_are_left_out_leave_the_batch() -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = seen(disk, records_max=0)
    assert f"the timestamps of {log.leo} records are left out" in data["notices"]
    time = T0 + 500
    told, record = lookup_time(data, time), log.offset_for_timestamp(time)
    assert record is not None
    assert told["result"]["offset"] is None
    assert told["result"]["base_offset"] <= record.offset < told["result"]["next_offset"]
    assert lookup(data, 7)["verdict"] == "found"


# Faults that are planted -----------------------------------------------------------------------


def shift_entry(data: dict[str, Any]) -> None:
    data["segments"][0]["index"]["entries"][2][0] += 1


def late_entry(data: dict[str, Any]) -> None:
    data["segments"][0]["time_index"]["entries"][0][1] += 40


def lost_batch(data: dict[str, Any]) -> None:
    del data["segments"][0]["batches"][5]


def wrong_time(data: dict[str, Any]) -> None:
    data["segments"][0]["batches"][5][7][0][1] += 5_000


@pytest.mark.parametrize("fault", [late_entry, lost_batch, wrong_time])
def test_the_comparison_notices_a_planted_fault(fault: Any) -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = seen(disk)
    assert differences(log, data) == []
    fault(data)
    assert differences(log, data)


def test_an_entry_that_does_not_lead_to_its_batch_is_not_believed() -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = seen(disk)
    shift_entry(data)
    assert differences(log, data) == []
    told = lookup(data, data["segments"][0]["index"]["entries"][2][0])
    assert told["anchor"] is None
    assert told["seek"] == 0
    assert "does not lead to the batch" in told["notes"][0]


@pytest.mark.parametrize(
    ("entry", "reason"),
    [(b"\x00\x00\x00\x01\x00\x00\x00\x01", "does not rise"), (b"\x00\xff" * 4, "the log has")],
)
def test_a_corrupt_index_is_not_searched_and_the_answer_stays_right(
    entry: bytes, reason: str
) -> None:
    disk = MemDisk()
    log = long_log(disk)
    path = LOG / f"{0:020d}.index"
    data = content(disk, path)
    at = len(data) - 8 if reason == "the log has" else 24
    put(disk, path, data[:at] + entry + data[at + 8 :])
    found = seen(disk)
    assert reason in found["segments"][0]["index"]["unusable"]
    assert any(path.name in each for each in found["notices"])
    assert differences(log, found) == []
    assert lookup(found, 20)["probes"] == []


def test_configuration_is_measured_from_the_files() -> None:
    disk = MemDisk()
    log = long_log(disk)
    data = xray(LOG, disk=disk, config=LONG)
    measured = data["configuration"]["measured"]
    gaps = [
        b - a
        for each in log.segments
        for a, b in zip(each.index.values, each.index.values[1:], strict=False)
    ]
    assert (measured["gap_bytes_least"], measured["gap_bytes_most"]) == (min(gaps), max(gaps))
    assert measured["log_bytes"] == log.size_bytes
    assert data["configuration"]["index_interval_bytes"] == 300


# Directories that runs left --------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["leader_crash_acks1", "disks/fsync_failure", "truncation/retention_restarts_follower"]
)
def test_logs_that_a_run_left_on_disk_answer_as_storage_does(name: str, tmp_path: Path) -> None:
    root, copies = tmp_path / "run", tmp_path / "copies"
    root.mkdir()
    copies.mkdir()
    scenario = effective(read_scenario(ROOT / "scenarios" / f"{name}.toml"), None, ())
    run_scenario(scenario, root=root)
    compared = 0
    for directory in sorted(root.glob("b*/*-0")):
        data = xray(directory)
        # Without its broker's files a copy is a log on its own, which may be opened.
        copy = copies / f"{directory.parent.name}-{directory.name}"
        shutil.copytree(directory, copy)
        log = PartitionLog.open(copy, LogConfig(), verify="all")
        assert data["marks"]["log_end"]["offset"] == log.leo
        start = data["marks"]["log_start"]["offset"]
        if start > log.log_start_offset:
            log.raise_log_start_offset(start)
        assert differences(log, data) == []
        compared += log.leo - start
        log.close()
    assert compared >= 9
