"""Directories that are damaged, huge, odd or no log at all: a partial view or a clear word.

Whatever is there, the X-ray is plain data, says what is wrong, and changes nothing.
"""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest

from sim.xray.lookup import lookup, lookup_time
from sim.xray.places import find_places
from sim.xray.reading import xray
from storage.config import LogConfig
from storage.disk import OsDisk
from storage.errors import DiskError
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.read_only import ReadOnlyDisk
from tests.storage.batches import one
from tests.storage.dumping import CONFIG, LOG, WatchedDisk, crashed_log, healthy_log
from tests.storage.test_dump_verdict import DAMAGES
from tests.storage.trees import content, put, tree

DISK = ReadOnlyDisk(OsDisk())


def looked_over(data: dict[str, Any]) -> None:
    """Every look-up ends, and everything is plain."""
    assert json.loads(json.dumps(data, allow_nan=False)) == data
    end = data["marks"]["log_end"]["offset"]
    for offset in [*range(max(0, end - 40), end + 2), 0, 2**63 - 1]:
        assert lookup(data, offset)["text"]
    for each in data["segments"]:
        assert lookup_time(data, max(each["max_timestamp_ms"], 0))["text"]


@pytest.mark.parametrize("name", DAMAGES)
@pytest.mark.parametrize("make", [healthy_log, crashed_log])
def test_a_damaged_log_is_shown_as_far_as_it_goes_and_left_alone(make: Any, name: str) -> None:
    disk: MemDisk = make()
    if make is crashed_log:
        put(disk, LOG / "seal", b"{}")
    DAMAGES[name](disk)
    before = tree(disk, Path("/"))
    watched = WatchedDisk(disk)
    data = xray(LOG, disk=watched, config=CONFIG)
    looked_over(data)
    assert watched.open_files == 0
    assert tree(disk, Path("/")) == before
    for each in data["segments"]:
        if each["damage"] is not None:
            assert any(each["file"] in notice for notice in data["notices"])
            assert each["good_bytes"] == each["damage"]["position"]
            last = each["batches"][-1] if each["batches"] else [0, 0]
            assert last[0] + last[1] <= each["good_bytes"]


def test_a_healthy_log_has_no_notices_and_its_fields_fill_each_batch() -> None:
    data = xray(LOG, disk=healthy_log(), config=CONFIG)
    looked_over(data)
    assert data["notices"] == []
    assert len(data["hex"]) > 4
    for view in data["hex"]:
        ends = [each["end"] for each in view["fields"]]
        assert [each["start"] for each in view["fields"]] == [0, *ends[:-1]]
        assert ends[-1] == view["size_bytes"] == len(view["bytes"]) // 2
        told = {each["name"]: each for each in view["fields"]}
        raw = bytes.fromhex(view["bytes"])
        field = told["base offset"]
        assert int.from_bytes(raw[field["start"] : field["end"]], "big") == view["base_offset"]
        assert told["CRC-32"]["value"] == raw[8:12].hex()


INDEXES = {
    "out of order": struct.pack(">IIII", 0, 0, 5, 90) + struct.pack(">II", 2, 40),
    "past the file": struct.pack(">IIII", 0, 0, 2, 1 << 31),
    "ragged": b"\x00" * 11,
    "noise": bytes(range(256)) * 3,
    "zeros": bytes(80),
}


@pytest.mark.parametrize("name", INDEXES)
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_an_index_that_is_wrong_is_named_and_look_ups_stay_right(name: str, suffix: str) -> None:
    disk = healthy_log()
    right = xray(LOG, disk=disk, config=CONFIG)
    path = LOG / f"{0:020d}{suffix}"
    assert content(disk, path)
    put(disk, path, INDEXES[name])
    data = xray(LOG, disk=disk, config=CONFIG)
    looked_over(data)
    assert any(path.name in each for each in data["notices"])
    for offset in range(right["marks"]["log_end"]["offset"]):
        told = lookup(data, offset)["result"]
        assert told is not None
        assert told["position"] == lookup(right, offset)["result"]["position"]


def test_a_sparse_file_of_two_gigabytes_is_told_in_no_time_and_little_memory(
    tmp_path: Path,
) -> None:
    log = PartitionLog.open(tmp_path / "log", LogConfig())
    for _ in range(5):
        log.append(one())
    log.close()
    for suffix in (".log", ".timeindex"):
        os.truncate(tmp_path / "log" / f"{0:020d}{suffix}", 2 << 30)
    data = xray(tmp_path / "log", entries_max=1_000)
    looked_over(data)
    assert data["segments"][0]["batch_count"] == 5
    assert data["segments"][0]["damage"]["size_bytes"] > 2_000_000_000
    assert lookup(data, 3)["verdict"] == "found"
    assert sum(len(each["runs"]) for each in data["pages"]["files"]) < 20
    assert len(json.dumps(data)) < 200_000


def test_a_directory_of_odd_names_is_shown_and_nothing_is_followed(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "log", LogConfig())
    log.append(one())
    log.close()
    for name in ("\x1b[31mred", "a\u202eb", "x" * 200, "00000000000000000000.log.tmp", "üml"):
        (tmp_path / "log" / name).write_bytes(b"?")
    (tmp_path / "log" / "loop").symlink_to(tmp_path / "log")
    (tmp_path / "log" / f"{9:020d}.log").symlink_to("/dev/zero")
    os.mkfifo(tmp_path / "log" / f"{7:020d}.index")
    os.mkfifo(tmp_path / "log" / f"{8:020d}.log")
    data = xray(tmp_path / "log")
    looked_over(data)
    notes = {row["file"]: row["note"] for row in data["directory"]}
    assert "not followed" in notes["loop"]
    assert any(f"{8:020d}.log: cannot be read" in each for each in data["notices"])
    assert any(f"{9:020d}.log: cannot be read" in each for each in data["notices"])
    assert [each["file"] for each in data["segments"]] == [f"{0:020d}.log"]


def test_many_files_are_bounded_and_said_to_be(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "log", LogConfig())
    log.append(one())
    log.close()
    for number in range(600):
        (tmp_path / "log" / f"junk-{number}").write_bytes(b"")
    data = xray(tmp_path / "log")
    assert any("leaves out" in each for each in data["notices"])
    there = [row for row in data["directory"] if row["file"] and row["where"] == "log"]
    assert len(there) == 500


# Places ----------------------------------------------------------------------------------------


def test_places_of_what_is_no_log(tmp_path: Path) -> None:
    assert find_places(DISK, tmp_path).reason == "it is empty"
    (tmp_path / "notes.txt").write_text("x")
    assert find_places(DISK, tmp_path).reason == "none of its names belongs to a log"
    assert find_places(DISK, tmp_path / "notes.txt").reason == "it is no directory"
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises((OSError, RuntimeError)):
        find_places(DISK, tmp_path / "loop")
    with pytest.raises(FileNotFoundError):
        find_places(DISK, tmp_path / "nothing")


def test_places_of_a_run_are_in_order_and_links_in_it_are_not_followed(tmp_path: Path) -> None:
    run = tmp_path / "run"
    for name in ("b2/orders-0", "b1/orders-10", "b1/orders-2", "c1"):
        (run / name).parent.mkdir(parents=True, exist_ok=True)
        log = PartitionLog.open(run / name, LogConfig())
        log.append(one())
        log.close()
    (run / "trace.jsonl").write_text("")
    (run / "b3").symlink_to(run / "b1")
    (tmp_path / "latest").symlink_to(run)
    found = find_places(DISK, tmp_path / "latest")
    assert found.kind == "run"
    names = ["b1/orders-10", "b1/orders-2", "b2/orders-0", "c1"]
    assert [each.name for each in found.places] == names
    assert [each.node for each in found.places] == ["b1", "b1", "b2", "c1"]
    (own,) = find_places(DISK, run / "b1" / "orders-2").places
    assert (own.node, own.folder, own.trace) == ("b1", "orders-2", run / "trace.jsonl")
    (controller,) = find_places(DISK, run / "c1").places
    assert (controller.node, controller.folder) == ("c1", "")


def test_a_directory_that_goes_is_an_error_of_the_disk(tmp_path: Path) -> None:
    with pytest.raises(DiskError):
        xray(tmp_path / "gone")
