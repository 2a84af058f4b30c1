"""Directories that Kafka wrote, against what two other decoders found in them.

The data is read in place (``LEADERFALL_KAFKA_DIRS``), and skipped with a reason where it is absent.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.xray.kafka_frames import HEADER, KafkaFault, batch_at, record_times
from sim.xray.lookup import lookup, lookup_time
from sim.xray.reading import xray
from tests.storage.test_dump_read_only import snapshot
from tests.storage.test_kafka_files import described


@pytest.fixture(scope="module")
def seen(kafka_dirs: Path) -> dict[Path, dict[str, Any]]:
    """The X-ray of every log; nothing below the folder is another one than before."""
    before = snapshot(kafka_dirs)
    logs = sorted({path.parent for path, _ in described(kafka_dirs) if path.suffix == ".log"})
    found = {path: xray(path, batches_max=10_000, records_max=1_000_000) for path in logs}
    assert snapshot(kafka_dirs) == before
    assert len(found) > 80
    return found


def segment_of(seen: dict[Path, dict[str, Any]], path: Path) -> dict[str, Any]:
    name = f"{path.name[:20]}.log"
    return next(each for each in seen[path.parent]["segments"] if each["file"] == name)


def test_segments_are_what_other_decoders_found(
    kafka_dirs: Path, seen: dict[Path, dict[str, Any]]
) -> None:
    count = 0
    for path, facts in described(kafka_dirs):
        if path.suffix != ".log":
            continue
        segment = segment_of(seen, path)
        assert segment["size_bytes"] == facts["bytes"]
        assert segment["batch_count"] == facts["batches"]
        assert segment["good_bytes"] == facts["valid_bytes"]
        assert segment["damage"] is None
        rows = segment["batches"]
        assert len(rows) == facts["batches"]
        if not rows:
            continue
        assert rows[0][2] == facts["first_base_offset"]
        assert segment["next_offset"] == facts["next_offset"]
        assert sum(row[6] for row in rows) == facts["records_by_header"]
        assert segment["max_timestamp_ms"] == facts["max_timestamp"]
        assert sorted({row[4] for row in rows}) == sorted({each[0] for each in facts["epochs"]})
        count += 1
    assert count > 50


def test_index_entries_are_what_other_decoders_found(
    kafka_dirs: Path, seen: dict[Path, dict[str, Any]]
) -> None:
    count = 0
    for path, facts in described(kafka_dirs):
        key = {".index": "index", ".timeindex": "time_index"}.get(path.suffix)
        if key is None or path.parent not in seen:
            continue
        index = segment_of(seen, path)[key]
        assert len(index["entries"]) == facts["entries"]
        assert index["padding_entries"] == facts["zero_padding_entries"]
        assert index["unusable"] is None
        if facts["entries"]:
            assert [index["entries"][0], index["entries"][-1]] == [facts["first"], facts["last"]]
            count += 1
    assert count > 40


def test_every_offset_is_found_where_a_walk_finds_it(seen: dict[Path, dict[str, Any]]) -> None:
    looked_up = from_entries = 0
    for data in seen.values():
        rows = [(n, row) for n, each in enumerate(data["segments"]) for row in each["batches"]]
        start, end = data["marks"]["log_start"]["offset"], data["marks"]["log_end"]["offset"]
        step = max((end - start) // 400, 1)
        for offset in range(start, end, step):
            told = lookup(data, offset)
            number, row = next(each for each in rows if each[1][3] > offset)
            result = told["result"]
            assert (result["segment"], result["position"]) == (number, row[0])
            if row[7] is not None:
                is_there = offset in [each[0] for each in row[7]]
                assert told["verdict"] == ("found" if is_there else "hole")
            assert not any("not believed" in each for each in told["notes"])
            looked_up += 1
            from_entries += told["anchor"] is not None
    assert looked_up > 1_000
    assert from_entries > 500


def test_every_time_is_found_where_a_walk_finds_it(seen: dict[Path, dict[str, Any]]) -> None:
    looked_up = from_entries = 0
    for data in seen.values():
        records = [
            record
            for each in data["segments"]
            for row in each["batches"]
            for record in row[7] or [None]
        ]
        if None in records or len(records) > 2_000:
            continue
        for time in sorted({each[1] + by for each in records for by in (0, 1)}):
            told = lookup_time(data, time)
            first = next((each for each in records if each[1] >= time), None)
            got = told["result"] and [told["result"]["offset"], told["result"]["timestamp_ms"]]
            assert got == first
            looked_up += 1
            from_entries += told["time_anchor"] is not None
    assert looked_up > 500
    assert from_entries > 200


def test_marks_come_from_the_checkpoints(kafka_dirs: Path, seen: dict[Path, Any]) -> None:
    directory = kafka_dirs / "kraft-three-replicas-clean"
    marks = [
        data["marks"]["high_watermark"]
        for path, data in seen.items()
        if path.is_relative_to(directory) and data["format"] == "Kafka"
    ]
    assert any(mark is not None for mark in marks)


def test_pages_of_a_directory_without_a_run_are_unknown_and_never_clean(
    seen: dict[Path, dict[str, Any]],
) -> None:
    for data in seen.values():
        assert not data["pages"]["known"]
        states = {run[2] for each in data["pages"]["files"] for run in each["runs"]}
        assert states <= {"unknown"}


def test_fields_in_hex_fill_the_batch(seen: dict[Path, dict[str, Any]]) -> None:
    views = [view for data in seen.values() for view in data["hex"]]
    assert len(views) > 60
    for view in views:
        ends = [each["end"] for each in view["fields"]]
        assert [each["start"] for each in view["fields"]] == [0, *ends[:-1]]
        assert ends[-1] == view["size_bytes"]
        assert int(view["bytes"][:16], 16) == view["base_offset"]


# Bytes that are none ---------------------------------------------------------------------------


def header(**changes: int) -> bytes:
    names = "base length epoch magic crc attributes delta first last pid pepoch sequence count"
    values = dict.fromkeys(names.split(), 0) | {"magic": 2, "length": 49} | changes
    return HEADER.pack(*values.values())


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (header(magic=1), "magic: 1"),
        (header(length=3), "length: 3"),
        (header(base=-5), "base offset -5"),
        (header(length=500), "torn: a batch of 512 bytes"),
        (header()[:40], "torn: 40 bytes"),
        (b"", "torn: 0 bytes"),
    ],
)
def test_a_header_that_cannot_be_one_is_refused(head: bytes, reason: str) -> None:
    with pytest.raises(KafkaFault, match=reason):
        batch_at(head, 0, 61)


def test_records_that_do_not_fill_a_batch_are_refused() -> None:
    batch = batch_at(header(count=3), 0, 61)
    for tail in (b"", b"\xff" * 20, b"\x7e", b"\x02\x00"):
        with pytest.raises(KafkaFault):
            record_times(batch, header(count=3) + tail)
    assert record_times(batch_at(header(), 0, 61), header()) == []
    squeezed = batch_at(header(attributes=1, count=1), 0, 61)
    with pytest.raises(KafkaFault, match="gzip"):
        record_times(squeezed, header() + b"not gzip at all")
    assert record_times(batch_at(header(attributes=4), 0, 61), header() + b"zstd") is None


def test_records_that_swell_without_end_are_left_out() -> None:
    import gzip

    bomb = gzip.compress(bytes(64 << 20), 1)
    batch = batch_at(header(attributes=1, count=1, length=49 + len(bomb)), 0, 61 + len(bomb))
    assert record_times(batch, header() + bomb) is None
