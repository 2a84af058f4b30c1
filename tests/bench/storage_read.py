"""What reads a log: the recovery scan, raw ranges, opening many segments."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from random import Random
from zlib import crc32

from storage.config import LogConfig
from storage.disk import OsDisk
from storage.mkb1 import MKB1
from storage.partition_log import PartitionLog
from storage.recovery import Verify
from storage.scan import scan_segment
from tests.bench.measure import CPU, Scale, Subject, race
from tests.bench.report import Report, at_least, below, rated, timed
from tests.bench.storage_data import Folders, Shape, build_log, size_text

__all__ = ["run_fetch", "run_open", "run_scan"]

SCAN = "recovery scan with crc, file in page cache"
FETCH = "fetch a raw range"
OPEN = "open a log"

# One record of 16 KiB is the shape whose frames are 16 KiB.
SCAN_BUDGETS = {Shape(100, 1): 0.25, Shape(100, 10): 0, Shape(100, 100): 0, Shape(16 << 10, 1): 0.5}

RANGE_LIMITS = (4 << 10, 64 << 10, 1 << 20)
RANGE_BUDGET = below(10e-6, "s")
OFFSETS = 2_000
SEGMENT_BATCHES_MAX = 1_000
SEGMENT_BYTES_MAX = 4 << 20
SEGMENTS = 4


# Recovery scan ---------------------------------------------------------------------------------


def run_scan(scale: Scale, report: Report, folders: Folders) -> None:
    """Segment files from end to end, against a bare CRC pass over frames known beforehand."""
    for shape, minimum in SCAN_BUDGETS.items():
        walk = Walk(folders.fresh(), shape, scale.log_bytes)
        took, crc_took = race(scale, Subject(walk.scan), Subject(walk.crc_pass))
        # Too long to pass uninterrupted on a busy machine.
        (open_took,) = race(scale, Subject(walk.open_all), clock=CPU)
        walk.close()
        reference = {"reference_s": crc_took, "of": "bare crc pass"}
        report.add(
            rated(
                SCAN,
                f"{shape}",
                took,
                walk.batches,
                "batches",
                budget=at_least(minimum) if minimum else None,
                **reference,
            ),
            rated(SCAN, f"{shape}, bytes", took, walk.segment_bytes, "B", **reference),
            rated(
                SCAN,
                f"{shape}, PartitionLog.open verify=all, CPU",
                open_took,
                walk.all_batches,
                "batches",
            ),
        )
    report.note(
        "The recovery scan was first asked for 1.5 M batches/s; budgets against a bare CRC pass "
        "replaced that."
    )


class Walk:
    """A log of several segments, and the ways to walk it.

    An operation of ``scan`` and ``crc_pass`` is one segment, the next one each time, so that a turn
    stays short while the bytes are not those that were just in the cache.
    """

    def __init__(self, directory: Path, shape: Shape, size_bytes: int) -> None:
        segment_bytes_max = min(SEGMENT_BYTES_MAX, size_bytes // 2)
        self.batches = min(SEGMENT_BATCHES_MAX, max(1, segment_bytes_max // shape.frame_bytes))
        self.segment_bytes = self.batches * shape.frame_bytes
        segments = max(2, size_bytes // self.segment_bytes)
        self.all_batches = segments * self.batches
        log = build_log(directory, shape, 0, batches=self.all_batches, roll_every=self.batches)
        disk = OsDisk()
        self._segments = [
            (segment.base_offset, disk.open(segment.log_path, write=False))
            for segment in log.segments
        ]
        log.close()
        self._directory = directory
        self._config = LogConfig()
        self._content = [file.read_at(0, file.size()) for _, file in self._segments]
        self._bounds = _frame_bounds(self._content[0])
        self._scanned = cycle(self._segments)
        self._passed = cycle(self._content)

    def scan(self, count: int) -> None:
        """Read and check every frame with what recovery uses."""
        for base_offset, file in islice(self._scanned, count):
            found = scan_segment(file, MKB1, self._config, base_offset=base_offset)
            assert found.batches == self.batches

    def crc_pass(self, count: int) -> None:
        """One CRC for each frame, its place known, all bytes in memory."""
        bounds = self._bounds
        for content in islice(self._passed, count):
            view = memoryview(content)
            for begin, end in bounds:
                crc32(view[begin:end])

    def open_all(self, count: int) -> None:
        """Open the whole log, walking everything."""
        for _ in range(count):
            PartitionLog.open(self._directory, verify="all").abandon()

    def close(self) -> None:
        """Close the files."""
        for _, file in self._segments:
            file.close()


def _frame_bounds(data: bytes) -> list[tuple[int, int]]:
    """Begin and end of what the CRC of each frame covers."""
    bounds, at = [], 0
    while at < len(data):
        size = MKB1.hop(data, at)[0]
        bounds.append((at + 12, at + size))
        at += size
    return bounds


# Raw ranges ------------------------------------------------------------------------------------


def run_fetch(scale: Scale, report: Report, folders: Folders) -> None:
    """Finding a range (``slice_range``) and reading it, against the bare read of the same bytes."""
    small, large = Shape(100, 1), Shape(1024, 10)
    frame_bytes = max(small.frame_bytes, large.frame_bytes)
    config = LogConfig(segment_max_bytes=scale.log_bytes // SEGMENTS + 2 * frame_bytes)
    log = build_log(folders.fresh(), small, scale.log_bytes, config=config)
    for limit in RANGE_LIMITS:
        _run_ranges(scale, report, log, small, limit, "random", _random_offsets(log))
        _run_ranges(scale, report, log, small, limit, "sequential", _sequence(log, small, limit))
    limit = RANGE_LIMITS[1]
    offsets = _random_offsets(log, first=log.active.base_offset)
    _run_ranges(
        scale, report, log, small, limit, "end 1 below LEO", offsets, end_offset=log.leo - 1
    )
    log.abandon()

    log = build_log(folders.fresh(), large, scale.log_bytes, config=config)
    _run_ranges(scale, report, log, large, limit, "random", _random_offsets(log))
    log.abandon()


def _run_ranges(
    scale: Scale,
    report: Report,
    log: PartitionLog,
    shape: Shape,
    limit: int,
    order: str,
    offsets: list[int],
    *,
    end_offset: int | None = None,
) -> None:
    """Each offset in turn. A sequential reader keeps its place, whichever subject has the turn."""
    places = [log.slice_range(offset, limit, end_offset) for offset in offsets]
    fds = {
        segment.base_offset: os.open(segment.log_path, os.O_RDONLY | os.O_CLOEXEC)
        for segment in log.segments
    }
    reads = [(fds[place.segment_base], place.size_bytes, place.position) for place in places]

    def find(call: Callable[[int, int, int | None], object]) -> Callable[[int], None]:
        at = 0

        def run(count: int) -> None:
            nonlocal at
            for offset in islice(cycle(offsets), at, at + count):
                call(offset, limit, end_offset)
            at = (at + count) % len(offsets)

        return run

    def read(count: int) -> None:
        pread = os.pread
        for fd, size, position in islice(cycle(reads), count):
            pread(fd, size, position)

    try:
        slice_took, read_took, bare_took = race(
            scale,
            Subject(find(log.slice_range), operations_max=len(offsets)),
            Subject(find(log.read_range), operations_max=len(offsets)),
            Subject(read, operations_max=len(offsets)),
        )
    finally:
        for fd in fds.values():
            os.close(fd)
    label = f"{size_text(limit)} of {shape}, {order}"
    bare = f"os.pread of {size_text(sum(size for _, size, _ in reads) // len(reads))}"
    report.add(
        timed(FETCH, f"slice_range {label}", slice_took, budget=RANGE_BUDGET),
        timed(FETCH, f"read_range {label}", read_took, reference_s=bare_took, of=bare),
    )


def _random_offsets(log: PartitionLog, first: int = 0) -> list[int]:
    draw = Random(1).randrange
    return [draw(first, log.leo) for _ in range(OFFSETS)]


def _sequence(log: PartitionLog, shape: Shape, limit: int) -> list[int]:
    """The offsets that a reader asks for who takes one range after another."""
    offsets, offset, frame_bytes = [], 0, shape.frame_bytes
    while offset < log.leo:
        offsets.append(offset)
        offset += log.slice_range(offset, limit).size_bytes // frame_bytes * shape.records
    return offsets


# Opening ---------------------------------------------------------------------------------------


def run_open(scale: Scale, report: Report, folders: Folders) -> None:
    """Open a log of many segments after a clean close, and after none."""
    clean, unclean = folders.fresh(), folders.fresh()
    log = build_log(clean, Shape(100, 10), 0, batches=scale.segments * 10, roll_every=10)
    assert len(log.segments) == scale.segments
    log.close()
    shutil.copytree(clean, unclean)
    # The first opening takes the mark of the clean close away.
    PartitionLog.open(unclean).abandon()
    opener = Opener(clean)
    (took,) = race(scale, Subject(opener.run, opener.close, operations_max=1))
    opener.abandon(1)
    what = f"{scale.segments:,} segments"
    report.add(timed(OPEN, f"{what}, cleanly closed", took, budget=below(1.0, "s")))
    modes: tuple[Verify, ...] = ("unflushed", "all")
    for verify in modes:
        opener = Opener(unclean, verify=verify)
        (took,) = race(scale, Subject(opener.run, opener.abandon, operations_max=1))
        opener.abandon(1)
        report.add(timed(OPEN, f"{what}, not closed, verify={verify}", took))


class Opener:
    """Opens one log again and again."""

    def __init__(self, directory: Path, *, verify: Verify = "unflushed") -> None:
        self._directory = directory
        self._verify = verify
        self._log: PartitionLog | None = None

    def run(self, count: int) -> None:
        """Open it."""
        self._log = PartitionLog.open(self._directory, verify=self._verify)

    def close(self, count: int) -> None:
        """Close it cleanly, if it is open."""
        if self._log is not None:
            self._log.close()
            self._log = None

    def abandon(self, count: int) -> None:
        """Release it as the end of the process would, if it is open."""
        if self._log is not None:
            self._log.abandon()
            self._log = None
