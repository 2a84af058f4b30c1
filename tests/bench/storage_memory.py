"""Memory of a process that opens a large log and walks all of it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from storage.segment import segment_stem
from tests.bench import peak_memory
from tests.bench.measure import Scale
from tests.bench.report import Figure, Report, Row, below
from tests.bench.storage_data import BATCH_BYTES_MAX, Batches, Folders, Shape, encode, size_text

__all__ = ["run_memory"]

MEMORY = "memory above the interpreter, open verify=all"
BUDGET = below(64, "MiB")
# Most index entries (every frame has one), and the largest frame.
SHAPES = (Shape(4_096, 1), Shape(1 << 20, 15))
WRITE_BYTES = 1 << 20
ROOT = Path(peak_memory.__file__).resolve().parents[2]


def run_memory(scale: Scale, report: Report, folders: Folders) -> None:
    """One segment of the whole size, opened in a process of its own, then removed."""
    for shape in SHAPES:
        directory = folders.fresh()
        directory.mkdir()
        what = f"{size_text(scale.memory_bytes)} in batches of {shape}"
        try:
            free = shutil.disk_usage(directory).free
            if free < scale.memory_bytes + (256 << 20):
                report.note(f"Not measured, {free >> 20} MiB of disk are free: memory, {what}.")
                continue
            batches = _write_segment(directory, shape, scale.memory_bytes)
            found = _watch(directory)
            assert found["end_offset"] == batches * shape.records
        finally:
            shutil.rmtree(directory)
        total = (found["after"] - found["before"]) / 1024
        imports = (found["imported"] - found["before"]) / 1024
        report.add(
            Row(MEMORY, what, Figure(total, "MiB"), Figure(imports, "MiB", "imports"), None, BUDGET)
        )


def _write_segment(directory: Path, shape: Shape, size_bytes: int) -> int:
    """A segment file alone, without indexes and state; returns how many batches it has."""
    assert shape.frame_bytes <= BATCH_BYTES_MAX
    source = Batches(shape)
    batches = max(1, size_bytes // shape.frame_bytes)
    with (directory / f"{segment_stem(0)}.log").open("wb", buffering=WRITE_BYTES) as file:
        for number in range(batches):
            file.write(encode(source.batch(), number * shape.records))
    return batches


def _watch(directory: Path) -> dict[str, int]:
    command = [sys.executable, "-m", peak_memory.__name__, str(directory)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(result.stdout)
    return found
