"""What changes a log: appends, raw replication, truncation."""

from __future__ import annotations

import os
from itertools import cycle, islice
from pathlib import Path
from zlib import crc32

from storage.disk import Disk, OsDisk
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.bench.measure import CPU, WALL, Clock, Scale, Subject, race
from tests.bench.peers import AIOKAFKA, Peer
from tests.bench.report import Budget, Report, Row, at_least, below, rated, timed
from tests.bench.storage_codec import peer_batch_bytes
from tests.bench.storage_data import (
    FRESH_LOG_BYTES,
    MEMORY_DIRECTORY,
    Appender,
    Batches,
    Folders,
    Shape,
    build_log,
    encode,
)
from tests.bench.unsynced import UnsyncedDisk

__all__ = ["run_append", "run_replicate", "run_truncate"]

APPEND = "append through PartitionLog, no sync"
REPLICATE = "replicate raw, 256 KiB runs, no sync"
TRUNCATE = "truncate one batch off"

APPEND_BUDGETS = {1: 0.3, 10: 0.35, 100: 0.25}
# MiniKafka is the log that this one began from. Its append, as a multiple of aiokafka's encode,
# where both were measured on one machine; and how many times its speed was once asked for.
MINIKAFKA_RATIOS = {1: 0.04, 10: 0.04, 100: 0.08}
MINIKAFKA_MULTIPLES = {1: 10, 10: 12, 100: 3}

REPLICATE_SHAPES = (Shape(100, 1), Shape(100, 10), Shape(100, 100), Shape(1024, 10))
RUN_BYTES = 256 << 10


class Floor:
    """Writes ready frames to a growing file with one ``os.pwrite`` each, and does nothing else."""

    def __init__(self, shape: Shape, folders: Folders) -> None:
        source = Batches(shape)
        self._frames = [encode(source.batch()) for _ in range(shape.ring)]
        self._path = folders.fresh()
        self._fd = -1
        self._position = 0

    def prepare(self, count: int) -> None:
        """Begin a new file where the old one has grown large."""
        if self._fd >= 0 and self._position > FRESH_LOG_BYTES:
            self.close()
        if self._fd < 0:
            self._fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            self._position = 0

    def run(self, count: int) -> None:
        """Write ``count`` frames."""
        fd, position, write = self._fd, self._position, os.pwrite
        for frame in islice(cycle(self._frames), count):
            position += write(fd, frame, position)
        self._position = position

    def close(self) -> None:
        """Remove the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._path.unlink()
            self._fd = -1


def run_append(scale: Scale, report: Report, peers: dict[str, Peer], folders: Folders) -> None:
    """Append batches of 1, 10 and 100 records to a real file."""
    for records in APPEND_BUDGETS:
        _run_append(scale, report, peers, folders, Shape(100, records))


def _run_append(
    scale: Scale, report: Report, peers: dict[str, Peer], folders: Folders, shape: Shape
) -> None:
    on_disk = Appender(shape, OsDisk, folders)
    with_batch = Appender(shape, OsDisk, folders)
    in_memory = Appender(shape, MemDisk, folders)
    floor = Floor(shape, folders)
    subjects = [
        Subject(on_disk.run, on_disk.prepare),
        Subject(with_batch.run_records, with_batch.prepare_records),
        Subject(in_memory.run, in_memory.prepare),
        Subject(floor.run, floor.prepare),
    ]
    peer = peers.get(AIOKAFKA)
    if peer is not None:
        source = Batches(shape)
        records = [source.records() for _ in range(shape.ring)]
        subjects.append(Subject(peer.encoding(records, peer_batch_bytes(shape))))
    try:
        took, with_batch_took, memory_took, floor_took, *rest = race(scale, *subjects)
    finally:
        for side in (on_disk, with_batch, in_memory, floor):
            side.close()
    reference_s = rest[0] if rest else None

    def row(what: str, seconds: float, other_s: float | None, of: str, minimum: float = 0) -> Row:
        budget = at_least(minimum) if minimum else None
        return rated(
            APPEND, what, seconds, shape.records, "rec", reference_s=other_s, of=of, budget=budget
        )

    encode_alone = f"{AIOKAFKA} encode"
    demanded = APPEND_BUDGETS[shape.records]
    report.add(
        row(f"{shape}, real file", took, reference_s, encode_alone, demanded),
        row(f"{shape}, with RecordBatch.unassigned", with_batch_took, reference_s, encode_alone),
        row(f"{shape}, MemDisk", memory_took, reference_s, encode_alone),
        row(f"{shape}, real file, against the floor", took, floor_took, "bare os.pwrite"),
    )
    if reference_s is not None:
        minikafka_s = reference_s / MINIKAFKA_RATIOS[shape.records]
        of = f"MiniKafka* ({MINIKAFKA_MULTIPLES[shape.records]}x)"
        report.add(row(f"{shape}, real file, against MiniKafka", took, minikafka_s, of))
        report.note(
            "MiniKafka's speed is derived, not measured: aiokafka's encode in this run times the "
            "ratio of the two on another machine (0.04, 0.04, 0.08 for 1, 10, 100 records). In "
            "brackets is the multiple that was asked for before the budgets against aiokafka."
        )


class Replica:
    """A log that takes over another one in raw runs, and begins anew where that ends."""

    def __init__(self, source: PartitionLog, folders: Folders) -> None:
        self._source = source
        self._folders = folders
        self._log: PartitionLog | None = None

    def prepare(self, count: int) -> None:
        """Have a log with room for ``count`` runs."""
        if self._log is not None:
            left = self._source.size_bytes - self._log.size_bytes
            if left >= count * RUN_BYTES:
                return
            self._log.abandon()
        self._log = PartitionLog.open(self._folders.fresh(), disk=UnsyncedDisk())
        first = self._source.read_range(0, 1)
        self._log.append_replica_batch(first)

    def run(self, count: int) -> None:
        """Take over ``count`` runs."""
        log, read = self._log, self._source.read_range
        assert log is not None
        for _ in range(count):
            log.append_replica_batch(read(log.leo, RUN_BYTES))

    def close(self) -> None:
        """Release the log."""
        if self._log is not None:
            self._log.abandon()


class CopyFloor:
    """Reads runs of a file, makes one CRC over each, and writes it to another file."""

    def __init__(self, source: PartitionLog, path: Path) -> None:
        self._size_bytes = source.size_bytes
        self._from = os.open(source.active.log_path, os.O_RDONLY | os.O_CLOEXEC)
        self._to = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._position = 0

    def prepare(self, count: int) -> None:
        """Begin with an empty file where the source has too few runs left."""
        if self._position + count * RUN_BYTES > self._size_bytes:
            os.ftruncate(self._to, 0)
            self._position = 0

    def run(self, count: int) -> None:
        """Copy ``count`` runs."""
        position = self._position
        for _ in range(count):
            data = os.pread(self._from, RUN_BYTES, position)
            crc32(data)
            position += os.pwrite(self._to, data, position)
        self._position = position

    def close(self) -> None:
        """Close both files."""
        os.close(self._from)
        os.close(self._to)


def run_replicate(scale: Scale, report: Report, folders: Folders) -> None:
    """A follower that fetches 256 KiB at a time from another log on the same machine."""
    for shape in REPLICATE_SHAPES:
        source = build_log(folders.fresh(), shape, max(scale.log_bytes, RUN_BYTES))
        replica = Replica(source, folders)
        floor = CopyFloor(source, folders.fresh())
        runs_max = max(1, source.size_bytes // RUN_BYTES - 1)
        try:
            took, floor_took = race(
                scale,
                Subject(replica.run, replica.prepare, runs_max),
                Subject(floor.run, floor.prepare, runs_max),
            )
        finally:
            replica.close()
            floor.close()
            source.abandon()
        floor_name = "pread + crc + pwrite"
        report.add(
            rated(
                REPLICATE,
                f"{shape}",
                took,
                RUN_BYTES,
                "B",
                reference_s=floor_took,
                of=floor_name,
            )
        )


class Cut:
    """Truncates the last batch of a log; the batch is there again before each turn."""

    def __init__(self, directory: Path, disk: Disk, batches: int, *, is_flushed: bool) -> None:
        shape = Shape(100, 1)
        self._source = Batches(shape)
        self._is_flushed = is_flushed
        self._log = build_log(directory, shape, 0, disk=disk, batches=batches - 1)
        self._end = self._log.leo

    def prepare(self, count: int) -> None:
        """Append the batch, and flush it if the cut is to go below the durable boundary."""
        self._log.append(self._source.batch())
        if self._is_flushed:
            self._log.flush()

    def run(self, count: int) -> None:
        """Cut it off."""
        self._log.truncate_to(self._end)

    def close(self) -> None:
        """Release the log."""
        self._log.abandon()


def run_truncate(scale: Scale, report: Report, folders: Folders) -> None:
    """Cut one batch off a log, above and below the durable boundary, with and without syncs."""
    # Not wall time: replacing a file by a rename waits for the disk even where nothing is synced.
    _run_cuts(
        scale,
        report,
        folders,
        CPU,
        below(1e-3, "s"),
        ("MemDisk, flushed, CPU", MemDisk, True),
        ("real file, flushed, no syncs, CPU", UnsyncedDisk, True),
        ("real file, not flushed, no syncs, CPU", UnsyncedDisk, False),
    )
    _run_cuts(
        scale,
        report,
        folders,
        WALL,
        None,
        ("real file, flushed, real syncs", OsDisk, True),
        ("real file, not flushed, real syncs", OsDisk, False),
    )


def _run_cuts(
    scale: Scale,
    report: Report,
    folders: Folders,
    clock: Clock,
    budget: Budget | None,
    *cases: tuple[str, type[OsDisk | MemDisk], bool],
) -> None:
    cuts = []
    for _, disk, is_flushed in cases:
        directory = MEMORY_DIRECTORY if disk is MemDisk else folders.fresh()
        cuts.append(Cut(directory, disk(), scale.batches, is_flushed=is_flushed))
    try:
        subjects = [Subject(cut.run, cut.prepare, operations_max=1) for cut in cuts]
        times = race(scale, *subjects, clock=clock)
    finally:
        for cut in cuts:
            cut.close()
    for (what, _, _), took in zip(cases, times, strict=True):
        report.add(timed(TRUNCATE, f"of {scale.batches:,} batches, {what}", took, budget=budget))
