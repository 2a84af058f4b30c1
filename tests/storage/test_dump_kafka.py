"""Directories that Kafka wrote: every path is shown, named as Kafka's, and left alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from storage.disk import OsDisk
from storage.epochs import read_epochs
from tests.storage.dumping import as_json, dump
from tests.storage.test_dump_read_only import snapshot
from tests.storage.test_kafka_files import described


@pytest.fixture(scope="module")
def documents(kafka_dirs: Path) -> dict[Path, Any]:
    """The document of every path below the folder, which is as it was before."""
    before = snapshot(kafka_dirs)
    paths = [kafka_dirs, *sorted(kafka_dirs.rglob("*"))]
    found = {path: as_json(None, path) for path in paths}
    for path in paths:
        ran = dump(None, path)
        assert ran.status == found[path]["exit_status"]
        assert all(line.isprintable() for line in (ran.out + ran.err).split("\n"))
    assert snapshot(kafka_dirs) == before
    return found


def test_every_path_is_shown_and_no_file_is_called_damaged(documents: dict[Path, Any]) -> None:
    kinds = Counter((doc["kind"], doc["exit_status"]) for doc in documents.values())
    files = Counter({kind: count for (kind, status), count in kinds.items() if status == 0})
    assert files["kafka-segment"] > 50
    assert files["epochs"] == 85
    assert files["offset-index"] == files["time-index"] == 80
    assert files["offsets"] == 32
    assert files["metadata"] == 25
    assert {kind for kind, status in kinds if status == 1} == {"partition", "log-directory"}
    assert not any(doc.get("problems") for doc in documents.values())
    files_left = {p.name for p, doc in documents.items() if doc["exit_status"] == 2 and p.is_file()}
    assert files_left == {"README.md", "expected.json", "absent.txt"}


def test_files_say_what_kafka_wrote(kafka_dirs: Path, documents: dict[Path, Any]) -> None:
    for path, facts in described(kafka_dirs):
        document = documents[path]
        if path.name == "leader-epoch-checkpoint":
            rows = [(row["epoch"], row["start_offset"]) for row in document["rows"]]
            assert rows == read_epochs(OsDisk(), path.parent)
        if path.name.endswith("-offset-checkpoint"):
            rows = [f"{r['topic']} {r['partition']} {r['offset']}" for r in document["rows"]]
            assert rows == [" ".join(entry.split()) for entry in facts.get("entries", [])]
        if path.name.endswith(".snapshot"):
            assert document["notes"] == ["a producer snapshot of Kafka's own, not decoded"]


def test_a_kafka_partition_is_named_so_and_an_open_would_refuse(
    kafka_dirs: Path, documents: dict[Path, Any]
) -> None:
    directory = kafka_dirs / "kafka-4.0-storage-classes" / "live" / "base-0"
    document = documents[directory]
    assert (document["format"], document["exit_status"]) == ("Kafka", 1)
    assert [segment["format"] for segment in document["segments"]] == ["Kafka"] * 3
    assert document["notes"] == ["record batches in Kafka's format (magic 2), not decoded"]
    assert document["verdict"]["outcome"] == "refuses"
    text = dump(None, directory).out
    assert "base-0: partition in the format of Kafka, 3 segments, 9980 bytes\n" in text
    assert text.endswith("\nAn open refuses: this package does not read Kafka's format.\n")


def test_a_kafka_broker_is_told_partition_by_partition(kafka_dirs: Path) -> None:
    ran = dump(None, kafka_dirs / "zk-2023-gzip" / "data")
    assert ran.status == 1
    assert "Verdicts: 5 Kafka's, 1 clean.\n" in ran.out
    assert "damaged" not in ran.out


def test_preallocated_kafka_index_ends_where_its_zeros_begin(kafka_dirs: Path) -> None:
    live = kafka_dirs / "kafka-4.0-storage-classes" / "live" / "base-0"
    document = as_json(None, live / f"{60:020d}.index")
    assert (document["row_count"], document["exit_status"]) == (150, 0)
    assert len(document["rows"]) < 20
    assert "more entries not shown: the first is zeros" in document["notes"][1]


def test_kafka_segment_alone(kafka_dirs: Path) -> None:
    path = kafka_dirs / "kafka-4.0-storage-classes" / "clean" / "base-0" / f"{0:020d}.log"
    ran = dump(None, path)
    assert ran.out == (
        f"{path}: segment in Kafka's format, 3320 bytes\n"
        "note: record batches in Kafka's format (magic 2), not decoded\n"
    )
    assert ran.status == 0
    expected = json.loads((kafka_dirs / "expected.json").read_text())
    assert expected["sources"]
