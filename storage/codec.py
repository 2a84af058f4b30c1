"""The codec seam: what a log asks of a frame format.

A log is opened with one codec and never looks into a frame itself. MKB1 is the first
(``storage.mkb1``); Kafka's v2 frame fits the same protocol.

Left out: compression, and anything about files.
"""

from __future__ import annotations

from typing import Protocol

from storage.batch import RecordBatch

__all__ = ["Codec", "FrameFacts", "HopFacts"]

FrameFacts = tuple[int, int, int, int, int]
"""size in bytes, base offset, next offset, leader epoch, max timestamp ms (-1 none).

A plain tuple: recovery and replication build one per frame, and a named one costs half as much
again as the rest of the check.
"""

HopFacts = tuple[int, int, int, int]
"""size in bytes, base offset, next offset, leader epoch."""


class Codec(Protocol):
    """One frame format.

    Attributes:
        name: for messages and reports.
        magic: bytes that every frame begins with, so that recovery can look for whole frames
            behind damage; empty where the format has none.
        hop_bytes: how many bytes ``hop`` needs.
    """

    @property
    def name(self) -> str: ...
    @property
    def magic(self) -> bytes: ...
    @property
    def hop_bytes(self) -> int: ...

    def check(
        self, buffer: bytes | bytearray | memoryview, position: int, end: int, max_batch_bytes: int
    ) -> FrameFacts:
        """Verify the frame at ``position`` of ``buffer``, which ends at ``end``, CRC included.

        Records are not decoded. Raises ``CorruptBatch``; its ``reason`` is ``torn`` exactly where
        the frame, as far as it is there, is plausible and passes ``end``.
        """

    def hop(self, buffer: bytes | memoryview, position: int) -> HopFacts:
        """The header's facts without a CRC check, for stepping over frames known to be whole."""

    def encode(
        self, batch: RecordBatch, base_offset: int, leader_epoch: int, max_batch_bytes: int
    ) -> tuple[bytes, int]:
        """Frame and max timestamp ms of a batch at an offset and epoch, which override its own."""

    def decode(self, frame: bytes | memoryview, max_batch_bytes: int) -> RecordBatch:
        """The batch of exactly one frame. Raises ``CorruptBatch``."""

    def restamp(self, frame: bytes, base_offset: int, leader_epoch: int) -> bytes:
        """The same frame at another offset and epoch, checksum renewed."""
