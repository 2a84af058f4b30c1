"""Damaged logs: what the table-driven recovery tests build, break, open and compare with.

The log is the one that Kafka's loader was measured with: 90 batches of one record in segments 0, 30
and 60, here with leader epochs 1 from offset 0, 5 from 45 and 6 from 75. It is built once for each
state that it can be found in (:func:`image`); a case gets a copy (:class:`Place`), on real files or
in memory.

The oracles (:func:`frames_of`, :func:`indexes_of`, :func:`epochs_of`) read the files with nothing
but ``decode_batch``: what they say does not depend on the code under test.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path

from attrs import frozen

from storage.batch import Record, RecordBatch
from storage.config import LogConfig
from storage.disk import Disk, FileKind, OsDisk
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1, decode_batch, encode_batch
from storage.partition_log import PartitionLog
from storage.segment import segment_stem
from storage.state import BOUNDARY_FILE

COUNT = 90
BASES = (0, 30, 60)
EPOCHS = ((1, 0), (5, 45), (6, 75))
CONFIG = LogConfig(segment_max_bytes=30 * 96, index_interval_bytes=300)


def epoch_at(offset: int) -> int:
    """The leader epoch of the batch at ``offset``."""
    return [epoch for epoch, start in EPOCHS if start <= offset][-1]


def record(number: int) -> Record:
    """The record that is written at offset ``number``; every one takes the same bytes."""
    return Record(b"key-%02d" % number, b"value-%02d" % number, 1_000 + number)


def batch(number: int) -> RecordBatch:
    """The batch for offset ``number``, unassigned."""
    return RecordBatch.unassigned((record(number),))


def frame(number: int, *, offset: int | None = None, epoch: int | None = None) -> bytes:
    """The frame at offset ``number``, or one forged for another place, with the right CRC."""
    base = number if offset is None else offset
    stamp = epoch_at(number) if epoch is None else epoch
    return encode_batch(batch(number).assign(base, stamp))


FRAME = len(frame(0))
FRAMES = tuple(frame(number) for number in range(COUNT))
assert CONFIG.segment_max_bytes == 30 * FRAME, "a segment holds 30 batches"


def log_name(base: int) -> str:
    """``.log`` file of a segment."""
    return segment_stem(base) + ".log"


def index_name(base: int) -> str:
    """``.index`` file of a segment."""
    return segment_stem(base) + ".index"


def time_name(base: int) -> str:
    """``.timeindex`` file of a segment."""
    return segment_stem(base) + ".timeindex"


def segment_names(base: int) -> tuple[str, str, str]:
    """The three files of a segment."""
    return log_name(base), index_name(base), time_name(base)


# States ----------------------------------------------------------------------------------------


@frozen
class State:
    """How a log was left.

    Attributes:
        flushed_to: the durable boundary's end offset; nothing behind it was ever synced.
        closed: by ``close``, with a seal; otherwise its process ended.
        knows_boundary: whether the file ``boundary`` is still there.
        log_start: the persisted log start offset.
        gaps_end: below this offset missing batches were declared.
    """

    flushed_to: int = COUNT
    closed: bool = False
    knows_boundary: bool = True
    log_start: int = 0
    gaps_end: int = 0

    @property
    def label(self) -> str:
        """For test ids."""
        known = "closed" if self.closed else f"flushed{self.flushed_to}"
        return known if self.knows_boundary else "boundary-unknown"


CLOSED = State(closed=True)
FLUSHED = State()
UNFLUSHED = State(flushed_to=0)
UNKNOWN = State(knows_boundary=False)


def flushed(flushed_to: int) -> State:
    """Everything below an offset is durable; the process ended without a close."""
    return State(flushed_to=flushed_to)


def build(disk: Disk, directory: Path, state: State, count: int = COUNT) -> PartitionLog:
    """Write the log, up to ``count`` batches; it is still open.

    Pending work runs only where the state says flushed: a roll's own flush would raise the
    durable boundary.
    """
    log = PartitionLog.open(directory, CONFIG, disk=disk, runs_pending=False)
    starts = {start: epoch for epoch, start in EPOCHS}
    for number in range(count + 1):
        if number == state.flushed_to:
            log.flush()
            log.run_pending()
        if number < count:
            if number in starts:
                log.become_leader(starts[number])
            log.append(batch(number))
    if state.gaps_end:
        log.declare_gaps(state.gaps_end)
    if state.log_start:
        log.raise_log_start_offset(state.log_start)
        for work in log.take_pending():
            if work.kind != "flush":
                log.run(work)
    return log


@cache
def image(state: State, count: int = COUNT) -> Mapping[str, bytes]:
    """The files of the log in a state, by name."""
    disk, directory = MemDisk(), Path("/log")
    log = build(disk, directory, state, count)
    if state.closed:
        log.close()
    else:
        log.abandon()
    place = Place(disk, directory)
    if not state.knows_boundary:
        place.remove(BOUNDARY_FILE)
    return place.files()


@frozen
class Place:
    """A log directory on some disk, to damage and to look at."""

    disk: Disk
    directory: Path

    @classmethod
    def of(cls, disk: Disk, directory: Path, files: Mapping[str, bytes]) -> Place:
        """A new directory with these files."""
        place = cls(disk, directory)
        disk.mkdir(directory)
        for name, data in files.items():
            place.write(name, data)
        return place

    def names(self) -> list[str]:
        """Names in the directory, the lock file aside."""
        return [name for name in self.disk.listdir(self.directory) if name != ".lock"]

    def files(self) -> dict[str, bytes]:
        """Every regular file but the lock, with its content."""
        return {
            name: self.read(name)
            for name in self.names()
            if self.disk.stat(self.directory / name).kind is FileKind.FILE
        }

    def read(self, name: str) -> bytes:
        file = self.disk.open(self.directory / name, write=False)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()

    def write(self, name: str, data: bytes) -> None:
        file = self.disk.open(self.directory / name, create=True)
        try:
            file.truncate(0)
            file.write_at(0, data)
        finally:
            file.close()

    def remove(self, *names: str) -> None:
        for name in names:
            self.disk.unlink(self.directory / name)

    def rename(self, old: str, new: str) -> None:
        self.disk.rename(self.directory / old, self.directory / new)

    def edit(self, name: str, change: Callable[[bytearray], object]) -> None:
        """Rewrite a file after ``change`` worked on its bytes in place."""
        data = bytearray(self.read(name))
        change(data)
        self.write(name, bytes(data))

    def symlink(self, name: str, target: Path) -> None:
        """Put a symbolic link there, on whichever disk this is."""
        path = self.directory / name
        if isinstance(self.disk, MemDisk):
            self.disk.symlink(path, target)
        else:
            path.symlink_to(target)


def make_place(backing: str, root: Path, files: Mapping[str, bytes]) -> Place:
    """A place with these files: ``os`` is real files below ``root``, ``mem`` is in memory."""
    if backing == "os":
        return Place.of(OsDisk(), root / "log", files)
    return Place.of(MemDisk(), Path("/log"), files)


# Damage ----------------------------------------------------------------------------------------

Damage = Callable[[Place], None]


def base_of(number: int) -> int:
    """Base offset of the segment that holds batch ``number``."""
    return max(base for base in BASES if base <= number)


def position_of(number: int) -> int:
    """Byte position of batch ``number`` in its segment."""
    return (number - base_of(number)) * FRAME


def nothing(place: Place) -> None:
    """No damage."""


def both(*damages: Damage) -> Damage:
    """One damage after another."""

    def do(place: Place) -> None:
        for damage in damages:
            damage(place)

    return do


def flip(number: int, byte: int = FRAME - 3, mask: int = 0x10) -> Damage:
    """Flip bits of one byte of batch ``number``; by default in its value."""

    def do(place: Place) -> None:
        at = position_of(number) + byte

        def change(data: bytearray) -> None:
            data[at] ^= mask

        place.edit(log_name(base_of(number)), change)

    return do


def put(number: int, data: bytes, byte: int = 0) -> Damage:
    """Overwrite part of batch ``number``."""

    def do(place: Place) -> None:
        at = position_of(number) + byte

        def change(content: bytearray) -> None:
            content[at : at + len(data)] = data

        place.edit(log_name(base_of(number)), change)

    return do


def add(base: int, data: bytes) -> Damage:
    """Append bytes to a segment's log file."""
    return lambda place: place.edit(log_name(base), lambda content: content.extend(data))


def shorten(name: str, size_bytes: int) -> Damage:
    """Cut a file to a size."""

    def change(content: bytearray) -> None:
        del content[size_bytes:]

    return lambda place: place.edit(name, change)


def overwrite(name: str, data: bytes) -> Damage:
    """Give a file other content; it may be a new file."""
    return lambda place: place.write(name, data)


def drop(*names: str) -> Damage:
    """Remove files."""
    return lambda place: place.remove(*names)


def with_crc(body: bytes) -> bytes:
    """A frame whose CRC is made to match its payload again."""
    return MKB1.restamp(body, *struct.unpack_from(">qI", body, 13))


def with_byte(data: bytes, at: int, value: int) -> bytes:
    """``data`` with one byte replaced."""
    return data[:at] + bytes([value]) + data[at + 1 :]


# Oracles ---------------------------------------------------------------------------------------


@cache
def decoded(body: bytes) -> RecordBatch:
    """The batch of a frame."""
    return decode_batch(body)


def frames_of(data: bytes) -> list[bytes]:
    """The frames of a whole segment file; a trailing part fails."""
    frames, at = [], 0
    while at < len(data):
        size = 12 + int.from_bytes(data[at + 4 : at + 8], "big")
        frames.append(data[at : at + size])
        at += size
    assert at == len(data), f"{at} bytes of frames in {len(data)} bytes"
    return frames


@cache
def indexes_of(base: int, data: bytes, *, is_active: bool) -> tuple[bytes, bytes]:
    """What the offset index and the time index of a segment must hold, byte for byte.

    The first batch is indexed, then each that begins an interval behind the last indexed one; a
    time entry joins where the largest timestamp before it rose, and one more closes a segment.
    """
    offsets = times = b""
    position, due, largest, noted, end = 0, 0, -1, -1, base
    for body in frames_of(data):
        found = decoded(body)
        assert found.base_offset is not None
        if position >= due:
            offsets += struct.pack(">II", found.base_offset - base, position)
            due = position + CONFIG.index_interval_bytes
            if largest > noted:
                times += struct.pack(">QI", largest, found.base_offset - base)
                noted = largest
        largest = max(largest, found.max_timestamp_ms)
        position += len(body)
        end = found.next_offset
    if not is_active and largest > noted:
        times += struct.pack(">QI", largest, end - base)
    return offsets, times


def epochs_of(frames: Iterable[bytes], log_start: int = 0) -> tuple[tuple[int, int], ...]:
    """Epoch and first offset of each, from the batches; what ended before the start is gone."""
    entries: list[tuple[int, int]] = []
    for body in frames:
        found = decoded(body)
        assert found.base_offset is not None
        if not entries or entries[-1][0] != found.leader_epoch:
            entries.append((found.leader_epoch, found.base_offset))
    kept = [entry for entry in entries if entry[1] > log_start]
    before = [epoch for epoch, start in entries if start <= log_start]
    return (*([(before[-1], log_start)] if before else []), *kept)


def derived_of(place: Place) -> dict[str, bytes]:
    """Every index file of a directory, as its log files demand."""
    logs = {int(name[:-4]): data for name, data in place.files().items() if name.endswith(".log")}
    bases = sorted(logs)
    result = {}
    for base in bases:
        data = logs[base]
        pair = indexes_of(base, data, is_active=base == bases[-1])
        result[index_name(base)], result[time_name(base)] = pair
    return result


def epoch_text(entries: Iterable[tuple[int, int]]) -> bytes:
    """The epoch file for these entries."""
    lines = [f"{epoch} {start}\n" for epoch, start in entries]
    return f"0\n{len(lines)}\n{''.join(lines)}".encode()
