"""Kafka's own directories: its text checkpoints are read and written back byte for byte, and a log
of its format is refused without a change."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from storage import LogConfig, PartitionLog
from storage.checkpoints import read_entries, write_entries
from storage.disk import OsDisk
from storage.epochs import LeaderEpochCache, read_epochs, write_epochs
from storage.errors import CorruptLog
from storage.memdisk import MemDisk


def described(kafka_dirs: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Every file that expected.json describes, with what it says of it."""
    expected = json.loads((kafka_dirs / "expected.json").read_text())
    return [
        (kafka_dirs / source / directory / name, facts)
        for source, directories in expected["sources"].items()
        for directory, files in directories.items()
        for name, facts in files.items()
    ]


def test_epoch_files_of_kafka_read_as_expected_and_write_back_the_same_bytes(
    kafka_dirs: Path,
) -> None:
    files = [f for f in described(kafka_dirs) if f[0].name == "leader-epoch-checkpoint"]
    assert len(files) == 85
    for path, facts in files:
        pairs = [tuple(map(int, entry.split())) for entry in facts.get("entries", [])]
        assert read_epochs(OsDisk(), path.parent) == pairs
        cache = LeaderEpochCache(pairs)
        assert list(cache.entries) == pairs
        if facts.get("empty_file"):
            continue
        disk = MemDisk()
        disk.mkdir(Path("d"))
        write_epochs(disk, Path("d"), cache, LogConfig().rules)
        written = disk.open(Path("d") / path.name, write=False)
        assert written.read_at(0, written.size()) == path.read_bytes()


def test_offset_checkpoints_of_kafka_read_as_expected_and_write_back_the_same_bytes(
    kafka_dirs: Path,
) -> None:
    files = [f for f in described(kafka_dirs) if f[0].name.endswith("-offset-checkpoint")]
    assert len(files) == 32
    for path, facts in files:
        entries = [entry.split() for entry in facts.get("entries", [])]
        assert read_entries(OsDisk(), path, fields=3) == entries
        if facts.get("empty_file"):
            continue
        disk = MemDisk()
        disk.mkdir(Path("d"))
        write_entries(disk, Path("d") / path.name, entries)
        written = disk.open(Path("d") / path.name, write=False)
        assert written.read_at(0, written.size()) == path.read_bytes()


def contents(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != ".lock"}


def test_kafka_log_is_refused_and_left_as_it_was(kafka_dirs: Path, tmp_path: Path) -> None:
    logs = {path.parent for path, _ in described(kafka_dirs) if path.suffix == ".log"}
    for number, source in enumerate(sorted(logs)):
        directory = tmp_path / str(number)
        shutil.copytree(source, directory, copy_function=shutil.copyfile)
        directory.chmod(0o755)
        before = contents(directory)
        if not any(data for name, data in before.items() if name.endswith(".log")):
            continue
        with pytest.raises(CorruptLog) as refusal:
            PartitionLog.open(directory)
        assert "magic" in refusal.value.reason or "missing" in refusal.value.reason
        assert contents(directory) == before
