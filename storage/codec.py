"""The codec seam: what a log asks of a frame format.

A log is opened with one codec and never looks into a frame itself. MKB1 is the first
(``storage.mkb1``); Kafka's v2 frame fits the same protocol.

Left out: compression, and anything about files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from storage.batch import ControlType, RecordBatch

__all__ = ["Codec", "FrameFacts", "HopFacts", "OriginFacts", "ProducerFacts", "RecordFacts"]

FrameFacts = tuple[int, int, int, int, int]
"""size in bytes, base offset, next offset, leader epoch, max timestamp ms (-1 none).

A plain tuple: recovery and replication build one per frame, and a named one costs half as much
again as the rest of the check.
"""

HopFacts = tuple[int, int, int, int]
"""size in bytes, base offset, next offset, leader epoch."""

OriginFacts = tuple[int, bool, ControlType | None]
"""producer id (-1 none), whether in a transaction, and what a marker says (None for data)."""

RecordFacts = tuple[int, bytes | None, bool, int, int, int]
"""offset delta, key, whether the value is None (a tombstone), timestamp ms, and where the record
begins and ends, as positions that mean something to the codec only."""


class ProducerFacts(NamedTuple):
    """What a frame's header says of the idempotent producer that sent the batch.

    A leader checks these numbers; in a replicated frame epoch and sequence may be anything.

    Attributes:
        producer_id: 0 or more.
        producer_epoch: 0 to 2^31-1; negative for none.
        base_sequence: sequence of offset delta 0, 0 to 2^31-1; negative for none. A control batch
            has none, whatever its header holds.
        base_offset: 0 or more.
        last_offset_delta: 0 to 2^31-1. Sequences run along with offsets, so it tells the last one.
        timestamp_ms: the largest of the records or a marker's own; -1 for none, and where the
            header has no such field.
        is_control: the batch is a transaction marker.
    """

    producer_id: int
    producer_epoch: int
    base_sequence: int
    base_offset: int
    last_offset_delta: int
    timestamp_ms: int
    is_control: bool


class Codec(Protocol):
    """One frame format.

    Attributes:
        name: for messages and reports.
        magic: bytes that every frame begins with, so that recovery can look for whole frames
            behind damage; empty where the format has none.
        hop_bytes: how many bytes ``hop`` needs.
        producer_at: where in a frame the producer id begins. It is a signed big-endian number and
            negative for none, so one byte tells whether ``producer_facts`` is worth a call.
        producer_bytes: how many bytes ``producer_facts`` needs; of a shorter frame, all.
    """

    @property
    def name(self) -> str: ...
    @property
    def magic(self) -> bytes: ...
    @property
    def hop_bytes(self) -> int: ...
    @property
    def producer_at(self) -> int: ...
    @property
    def producer_bytes(self) -> int: ...

    def check(
        self, buffer: bytes | bytearray | memoryview, position: int, end: int, max_batch_bytes: int
    ) -> FrameFacts:
        """Verify the frame at ``position`` of ``buffer``, which ends at ``end``, CRC included.

        Records are not decoded. Raises ``CorruptBatch``; its ``reason`` is ``torn`` exactly where
        the frame, as far as it is there, is plausible and passes ``end``.
        """

    def hop(self, buffer: bytes | memoryview, position: int) -> HopFacts:
        """The header's facts without a CRC check, for stepping over frames known to be whole."""

    def producer_facts(self, buffer: bytes | memoryview, position: int) -> ProducerFacts | None:
        """The producer of the frame at ``position``, from its header alone; None without one.

        No CRC check. Raises ``CorruptBatch`` where the header cannot be one.
        """

    def origin(self, buffer: bytes, position: int) -> OriginFacts:
        """Who wrote the frame at ``position``, which passed ``check``."""

    def records(self, buffer: bytes, position: int) -> list[RecordFacts]:
        """What compaction asks of each record of the data frame at ``position``.

        The frame passed ``check``. Raises ``CorruptBatch`` where its records do not fill it.
        """

    def retain(
        self, buffer: bytes, position: int, records: Sequence[RecordFacts]
    ) -> tuple[bytes, int]:
        """The data frame at ``position`` with only these of its records, and its max timestamp ms.

        Everything else stays, the last offset too. Without records it is an emptied frame, in a
        format version that has such a thing.
        """

    def encode(
        self, batch: RecordBatch, base_offset: int, leader_epoch: int, max_batch_bytes: int
    ) -> tuple[bytes, int]:
        """Frame and max timestamp ms of a batch at an offset and epoch, which override its own."""

    def decode(self, frame: bytes | memoryview, max_batch_bytes: int) -> RecordBatch:
        """The batch of exactly one frame. Raises ``CorruptBatch``."""

    def restamp(self, frame: bytes, base_offset: int, leader_epoch: int) -> bytes:
        """The same frame at another offset and epoch, checksum renewed."""
