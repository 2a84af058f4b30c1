"""The controller's metadata log: one record an offset, told once it is durable.

Rules:

* A batch holds one handler's decisions; ``Record.value`` is ``METADATA_RECORDS.encode``. A batch
  that would pass the log's limit is split. The limit is 1 MiB at least, so that no single record
  is refused.
* The committed end rises when an fsync that began behind a batch has returned (DECISIONS 2.2).
  One flush is under way at a time; what is appended meanwhile waits for the next.
* After a restart everything that is readable counts as decided, and is flushed again before it
  counts as committed.
* With ``snapshot_records`` above 0 the committed image is written to ``metadata-snapshot`` in the
  log's directory, and the log start raised to its end, each time that the log has so many
  committed records. The file is durable before the log start rises.

``metadata-snapshot``, big-endian: magic ``LFMS``, version ``I`` (1), end offset ``q``, number of
records ``I``, per record its length ``I`` and its bytes, CRC-32 ``I`` of everything before.

Left out: what is decided, and who is told (``cluster.controller``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from struct import Struct
from struct import error as struct_error
from typing import Final
from zlib import crc32

from attrs import evolve

from cluster.guards import Guards
from cluster.metadata import MetadataImage
from cluster.records import METADATA_RECORDS, MetadataRecord
from cluster.wire import MalformedMessage
from storage.batch import Record, RecordBatch
from storage.checkpoints import read_small, replace_file
from storage.config import LogConfig
from storage.disk import Disk
from storage.errors import CorruptCheckpoint, CorruptLog
from storage.log_durability import FlushToken, Work
from storage.partition_log import PartitionLog

__all__ = ["SNAPSHOT_FILE", "MetadataLog"]

SNAPSHOT_FILE: Final = "metadata-snapshot"
_MAGIC: Final = b"LFMS"
_VERSION: Final = 1
_HEAD, _I = Struct(">4sIqI"), Struct(">I")
_RECORD_OVERHEAD_BYTES: Final = 32
_BATCH_OVERHEAD_BYTES: Final = 128
_BATCH_BYTES_MIN: Final = 1 << 20
_REPLAY_RECORDS: Final = 1_000


class MetadataLog:
    """The log, its committed end, and the image up to there.

    Attributes:
        committed: the image up to the committed end.
    """

    def __init__(
        self, disk: Disk, path: Path, config: LogConfig, *, guards: Guards, snapshot_records: int
    ) -> None:
        """Open the log, or begin one.

        Raises:
            CorruptLog: the log is damaged, holds what is no metadata record, or lacks records that
                the snapshot does not have.
            CorruptCheckpoint: the snapshot is damaged, or ends behind the log.
            StorageError: the disk refuses.
        """
        self._disk = disk
        self._guards = guards
        self._snapshot_records = snapshot_records
        self._snapshot_path = path / SNAPSHOT_FILE
        limit = max(config.max_batch_bytes, _BATCH_BYTES_MIN)
        config = evolve(config, rules=guards.log_rules(), max_batch_bytes=limit)
        self._log = PartitionLog.open(path, config, disk=disk, runs_pending=False, verify="all")
        try:
            self.committed = self._load_snapshot()
            self._undurable: list[MetadataRecord] = []
            self._flush: FlushToken | None = None
            durable = max(self._log.boundary.end_offset, self.committed.end_offset)
            for record in self._replay():
                if self.committed.end_offset < durable:
                    self.committed.apply(record)
                else:
                    self._undurable.append(record)
            self._tell_early()
        except BaseException:
            self._log.abandon()
            raise

    # Facts -------------------------------------------------------------------------------------

    @property
    def end_offset(self) -> int:
        """The offset that the next record gets."""
        return self._log.leo

    @property
    def start_offset(self) -> int:
        """Records below are in the snapshot only."""
        return self._log.log_start_offset

    @property
    def committed_end(self) -> int:
        """Records below may be told."""
        return self.committed.end_offset

    def current(self) -> MetadataImage:
        """A new image with everything that the log has."""
        image = self.committed.copy()
        for record in self._undurable:
            image.apply(record)
        return image

    # Writing -----------------------------------------------------------------------------------

    def append(self, records: Sequence[MetadataRecord], wall_ms: int) -> None:
        """Add records at the end; none of them is committed yet.

        Raises:
            StorageError: some may be in the log, and none counts.
        """
        for values in self._batches(records):
            batch = RecordBatch.unassigned([Record(None, value, wall_ms) for value in values])
            self._log.append(batch, now_ms=wall_ms)
        self._undurable.extend(records)
        self._tell_early()

    def _batches(self, records: Iterable[MetadataRecord]) -> Iterable[list[bytes]]:
        limit = self._log.config.max_batch_bytes - _BATCH_OVERHEAD_BYTES
        values: list[bytes] = []
        size = 0
        for record in records:
            value = METADATA_RECORDS.encode(record)
            size += len(value) + _RECORD_OVERHEAD_BYTES
            if values and size > limit:
                yield values
                values, size = [], len(value) + _RECORD_OVERHEAD_BYTES
            values.append(value)
        if values:
            yield values

    def _tell_early(self) -> None:
        if not self._guards.commit_after_fsync:
            self._commit(self._log.leo)

    def begin_flush(self) -> FlushToken | None:
        """What to wait for next; None where a flush is under way, or everything is durable."""
        is_durable = self._log.boundary.end_offset >= self._log.leo
        if self._flush is not None or (is_durable and not self._undurable):
            return None
        self._flush = self._log.begin_flush()
        return self._flush

    def complete_flush(self, token: FlushToken) -> None:
        """The disk has done its part: commit what the flush covers, and maybe cut the log.

        A token that is not the one under way is passed over.

        Raises:
            StorageError: as of now the log decides nothing more.
        """
        if token != self._flush:
            return
        self._flush = None
        self._log.complete_flush(token)
        self._commit(token.boundary.end_offset)
        self._maybe_snapshot()

    def _commit(self, end_offset: int) -> None:
        count = end_offset - self.committed.end_offset
        if count <= 0:
            return
        for record in self._undurable[:count]:
            self.committed.apply(record)
        del self._undurable[:count]

    def flush(self) -> None:
        """Make everything durable at once, and commit it; raises as ``complete_flush``."""
        self._log.flush()
        self._commit(self._log.leo)

    def close(self) -> None:
        """Release the files behind a seal; raises as ``PartitionLog.close``."""
        self._log.close()

    def abandon(self) -> None:
        """Release the files and write nothing."""
        self._log.abandon()

    def take_pending(self) -> tuple[Work, ...]:
        """Work that is due behind the last calls."""
        return self._log.take_pending()

    def run(self, work: Work) -> None:
        """Perform it; raises as ``PartitionLog.run``."""
        self._log.run(work)

    @property
    def is_usable(self) -> bool:
        """Whether the log still takes writes."""
        return self._log.failure is None and not self._log.is_closed

    # Reading -----------------------------------------------------------------------------------

    def read(self, offset: int, max_records: int) -> tuple[bytes, ...]:
        """Committed records from ``offset`` on, as they are stored.

        Raises:
            StorageError: the log cannot be read; ``offset`` is below its start or behind its end.
        """
        found = self._log.fetch(offset, max_records, end_offset=self.committed_end)
        return tuple(record.value or b"" for record in found)

    def _replay(self) -> Iterable[MetadataRecord]:
        offset = self.committed.end_offset
        while offset < self._log.leo:
            records = self._log.fetch(offset, _REPLAY_RECORDS)
            for record in records:
                if record.offset != offset:
                    raise self._damage(f"record {offset} is missing")
                try:
                    decoded = METADATA_RECORDS.decode(record.value or b"")
                except MalformedMessage as error:
                    raise self._damage(f"record {offset}: {error}") from error
                yield decoded
                offset += 1
            if not records:
                raise self._damage(f"record {offset} is missing")

    def _damage(self, reason: str) -> CorruptLog:
        return CorruptLog(
            self._log.active.paths[0],
            reason,
            position=0,
            last_good_offset=self._log.log_start_offset,
            first_good_offset=None,
        )

    # Snapshots ---------------------------------------------------------------------------------

    def _maybe_snapshot(self) -> None:
        """Only what the log's durable boundary covers goes into a snapshot."""
        end = self.committed_end
        is_due = 0 < self._snapshot_records <= end - self.start_offset
        if not is_due or end > self._log.boundary.end_offset:
            return
        values = [METADATA_RECORDS.encode(record) for record in self.committed.to_records()]
        parts = [_HEAD.pack(_MAGIC, _VERSION, end, len(values))]
        for value in values:
            parts += (_I.pack(len(value)), value)
        body = b"".join(parts)
        data = body + _I.pack(crc32(body))
        sync = self._guards.fsync_before_rename
        replace_file(self._disk, self._snapshot_path, data, fsync=sync)
        self._log.raise_log_start_offset(end)
        # Only closed segments are ever deleted.
        self._log.roll()
        self._log.delete_old_segments(end)

    def _load_snapshot(self) -> MetadataImage:
        start, path = self._log.log_start_offset, self._snapshot_path
        data = read_small(self._disk, path)
        if data is None:
            if start > 0:
                raise self._damage(f"the log begins at {start}, and there is no {path.name}")
            return MetadataImage()
        try:
            image = _parse(data)
        except (struct_error, ValueError) as error:
            raise CorruptCheckpoint(path, 0, str(error)) from error
        if not start <= image.end_offset <= self._log.leo:
            seen = f"it ends at {image.end_offset}, the log has {start}..{self._log.leo}"
            raise CorruptCheckpoint(path, 0, seen)
        return image


def _parse(data: bytes) -> MetadataImage:
    body = data[:-4]
    if len(data) < _HEAD.size + 4 or _I.unpack(data[-4:])[0] != crc32(body):
        raise ValueError("the checksum does not match")
    magic, version, end_offset, count = _HEAD.unpack_from(body)
    if magic != _MAGIC or version != _VERSION:
        raise ValueError(f"magic {magic!r} version {version}, allowed is {_MAGIC!r} {_VERSION}")
    at = _HEAD.size
    records = []
    for _ in range(count):
        size = _I.unpack_from(body, at)[0]
        records.append(METADATA_RECORDS.decode(body[at + 4 : at + 4 + size]))
        at += 4 + size
    return MetadataImage.from_records(records, end_offset)
