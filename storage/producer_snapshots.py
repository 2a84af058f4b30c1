"""Producer snapshots: producer state as files, so that opening a log need not replay all of it.

``{offset:020d}.snapshot`` is the state of everything below ``offset``. Numbers are big-endian:

=====  ======================================================================
field  notes
=====  ======================================================================
H      version, 1
I      CRC-32 (zlib) of everything behind it
q      offset, the one in the file's name
I      number of producers
...    the producers by rising id
=====  ======================================================================

A producer is ``q`` id, ``i`` epoch, ``q`` time of its last batch or marker (ms, -1 unknown), ``B``
number of batches (0 to 5), then per batch, oldest first, ``i`` first sequence, ``q`` base offset,
``i`` last offset delta, ``q`` time (ms, -1 unknown). The last sequence follows from the delta.
Source: DECISIONS 1.9; ``storage/README.md`` has a worked example.

The rules:

* A snapshot is derived data. One that cannot be written is left out, one that cannot be read goes.
* It describes a prefix of the log, so it is true while that prefix stands. What shortens the log
  removes the snapshots behind the new end durably first (``drop_above``): one that came back after
  a power loss could describe a history that the log no longer has.
* Each segment has one at its base, as in Kafka: only a snapshot knows producers whose batches
  retention took, and a truncation may go back to the log's first segment.

Compared with Kafka's layout (46 bytes a producer): all five batches are kept and not only the last,
so a retry of an older one is still recognised after a restart; the offset is under the checksum, so
a renamed file is noticed; there are no fields of transactions. Left out: when a snapshot is due.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from struct import Struct
from typing import Final
from zlib import crc32

from storage.batch import OFFSET_END
from storage.checkpoints import CHECKPOINT_MAX_BYTES, read_small, remove_if_there
from storage.config import INT32_MAX
from storage.disk import Disk
from storage.errors import CorruptCheckpoint, DiskError, FileMissing
from storage.producer_state import BATCHES_KEPT, ProducerBatch, ProducerEntry

__all__ = ["SNAPSHOT_SUFFIX", "SnapshotFiles", "decode_snapshot", "encode_snapshot"]

SNAPSHOT_SUFFIX: Final = ".snapshot"
SNAPSHOT_MAX_BYTES: Final = CHECKPOINT_MAX_BYTES
"""Of one file; it holds some 475,000 producers with five batches each."""
VERSION: Final = 1

PREFIX: Final = Struct(">HI")
HEAD: Final = Struct(">qI")
PRODUCER: Final = Struct(">qiqB")
BATCH: Final = Struct(">iqiq")
HEADER_BYTES: Final = PREFIX.size + HEAD.size
PRODUCER_BYTES_MAX: Final = PRODUCER.size + BATCHES_KEPT * BATCH.size


def encode_snapshot(offset: int, producers: Mapping[int, ProducerEntry]) -> bytes:
    """The file's bytes; equal states give equal bytes."""
    parts = [HEAD.pack(offset, len(producers))]
    for producer_id in sorted(producers):
        epoch, timestamp_ms, batches = producers[producer_id]
        parts.append(PRODUCER.pack(producer_id, epoch, timestamp_ms, len(batches)))
        for first, _, base, last, batch_ms in batches:
            parts.append(BATCH.pack(first, base, last - base, batch_ms))
    body = b"".join(parts)
    return PREFIX.pack(VERSION, crc32(body)) + body


def decode_snapshot(path: Path, data: bytes, offset: int) -> dict[int, ProducerEntry]:
    """The producers in a snapshot's bytes; ``path`` and ``offset`` are what its name says.

    Builds nothing that the bytes that are there do not justify.

    Raises:
        CorruptCheckpoint: anything at all is wrong with the bytes.
    """
    if len(data) < HEADER_BYTES:
        raise CorruptCheckpoint(path, 0, f"{len(data)} bytes are no whole header")
    version, crc = PREFIX.unpack_from(data)
    if version != VERSION:
        raise CorruptCheckpoint(path, 0, f"version {version}, allowed is {VERSION}")
    if crc32(memoryview(data)[PREFIX.size :]) != crc:
        raise CorruptCheckpoint(path, 0, f"checksum {crc} does not match")
    stored_offset, count = HEAD.unpack_from(data, PREFIX.size)
    if stored_offset != offset:
        raise CorruptCheckpoint(path, 0, f"made at offset {stored_offset}")
    position = HEADER_BYTES
    producers: dict[int, ProducerEntry] = {}
    previous = -1
    for _ in range(count):
        if position + PRODUCER.size > len(data):
            raise CorruptCheckpoint(path, 0, f"{count} producers in {len(data)} bytes")
        previous, entry, position = decode_producer(path, data, position, previous, offset)
        producers[previous] = entry
    if position != len(data):
        raise CorruptCheckpoint(path, 0, f"{len(data) - position} bytes behind the last producer")
    return producers


def decode_producer(
    path: Path, buffer: bytes, at: int, previous: int, offset: int, *, start: int = 0
) -> tuple[int, ProducerEntry, int]:
    """The producer at ``at``, whose first ``PRODUCER.size`` bytes are there.

    Args:
        previous: the id before it; ids rise.
        offset: that of the snapshot.
        start: where in the file ``buffer`` begins; messages name places in the file.

    Returns:
        Its id, what is known of it, and where in the buffer the next one begins.

    Raises:
        CorruptCheckpoint: a field cannot be one, or batches pass the end of the buffer.
    """
    producer_id, epoch, timestamp_ms, count = PRODUCER.unpack_from(buffer, at)
    at += PRODUCER.size
    if producer_id <= previous or epoch < 0 or timestamp_ms < -1 or count > BATCHES_KEPT:
        what = f"epoch {epoch}, time {timestamp_ms}, {count} batches"
        raise CorruptCheckpoint(path, 0, f"producer {producer_id} after {previous}: {what}")
    end = at + count * BATCH.size
    if end > len(buffer):
        raise CorruptCheckpoint(path, 0, f"{count} batches pass the end at byte {start + at}")
    batches = []
    expected = 0
    for place in range(at, end, BATCH.size):
        first, base, delta, batch_ms = BATCH.unpack_from(buffer, place)
        if first < 0 or delta < 0 or not expected <= base < offset - delta or batch_ms < -1:
            what = f"batch at byte {start + place}: sequence {first}, offset {base} + {delta}"
            raise CorruptCheckpoint(path, 0, f"{what}, time {batch_ms}")
        expected = base + delta + 1
        last_sequence = (first + delta) & INT32_MAX
        batches.append(ProducerBatch(first, last_sequence, base, base + delta, batch_ms))
    return producer_id, ProducerEntry(epoch, timestamp_ms, tuple(batches)), end


class SnapshotFiles:
    """The snapshots in a log's directory. What is loaded or written is up to the caller.

    An offset is listed while a file of its name may exist, so that none is overlooked when the
    log is shortened.
    """

    def __init__(
        self, disk: Disk, directory: Path, offsets: Iterable[int] = (), *, is_synced: bool = False
    ) -> None:
        """``offsets``: of the files that are there; ``is_synced`` says whether they are durable."""
        self._disk = disk
        self._directory = directory
        self._offsets = sorted(offsets)
        self._unsynced = set[int]() if is_synced else set(self._offsets)

    @property
    def offsets(self) -> tuple[int, ...]:
        """Of the files, rising."""
        return tuple(self._offsets)

    def path(self, offset: int) -> Path:
        """Where the snapshot of ``offset`` lies."""
        assert 0 <= offset < OFFSET_END, f"offset is {offset}, allowed is 0..2^63-1"
        return self._directory / f"{offset:020d}{SNAPSHOT_SUFFIX}"

    def load(self, offset: int) -> dict[int, ProducerEntry]:
        """The state in a file.

        Raises:
            CorruptCheckpoint: it is missing, or its bytes are wrong.
            DiskError: it cannot be read.
        """
        path = self.path(offset)
        data = read_small(self._disk, path, SNAPSHOT_MAX_BYTES)
        if data is None:
            raise CorruptCheckpoint(path, 0, "missing")
        return decode_snapshot(path, data, offset)

    def write(self, offset: int, producers: Mapping[int, ProducerEntry]) -> bool:
        """Write the state up to ``offset``, not yet durable; returns whether that worked.

        A state that is too large is not written, and neither is one that the disk refuses: the
        log has it all, and the next append meets the disk's own answer.
        """
        data = encode_snapshot(offset, producers)
        if len(data) > SNAPSHOT_MAX_BYTES:
            return False
        if offset not in self._unsynced:
            self._unsynced.add(offset)
            self._offsets = sorted({*self._offsets, offset})
        path = self.path(offset)
        try:
            file = self._disk.open(path, create=True)
            try:
                file.truncate(0)
                file.write_at(0, data)
            finally:
                file.close()
        except DiskError:
            return False
        return True

    def sync(self, end_offset: int) -> bool:
        """Make the files up to ``end_offset`` durable; their names are the caller's.

        Returns whether there was anything to do. Raises ``DiskError``.
        """
        due = sorted(offset for offset in self._unsynced if offset <= end_offset)
        for offset in due:
            try:
                file = self._disk.open(self.path(offset))
            except FileMissing:
                self._forget(offset)
                continue
            try:
                file.fsync()
            finally:
                file.close()
            self._unsynced.discard(offset)
        return bool(due)

    def is_durable(self, offset: int) -> bool:
        """Whether the snapshot of ``offset`` is there and need not be written again."""
        return offset in self._offsets and offset not in self._unsynced

    def drop(self, offsets: Collection[int]) -> tuple[str, ...]:
        """Remove files, durably: one that came back might not be true any more.

        Returns their names. Raises ``DiskError``; what is not gone for good stays listed.
        """
        paths = [self.path(offset) for offset in offsets]
        for path in paths:
            remove_if_there(self._disk, path)
        if paths:
            self._disk.fsync_dir(self._directory)
            self._forget(*offsets)
        return tuple(path.name for path in paths)

    def drop_above(self, end_offset: int) -> tuple[str, ...]:
        """Remove the files behind ``end_offset``. Returns and raises as ``drop`` does.

        Due before anything that ``end_offset`` does not cover is cut or written anew.
        """
        return self.drop([offset for offset in self._offsets if offset > end_offset])

    def superfluous(self, bases: Collection[int]) -> tuple[int, ...]:
        """Which durable files newer durable ones stand in for.

        The newest stays, and one at the base of each segment: a truncation replays no more than
        the segment that it cuts, and it finds what is known of producers whose batches retention
        took, which no replay finds. It may go below the log start, so that does not count.

        Args:
            bases: the base offsets of the log's segments.
        """
        durable = [offset for offset in self._offsets if offset not in self._unsynced]
        return tuple(offset for offset in durable[:-1] if offset not in bases)

    def _forget(self, *offsets: int) -> None:
        self._offsets = [kept for kept in self._offsets if kept not in offsets]
        self._unsynced.difference_update(offsets)
