"""The batches that ever stood in the logs of one partition, each with what stood before it.

Every batch knows the one before it in its log, so two logs that end in the same object are equal
as far back as anybody knows: comparing them is one ``is``. A batch whose bytes are written a second
time, by a follower, is the same object.

A log that begins later than another takes over the other's batches where both begin to agree. What
the two cannot agree on is noted in ``suspects``; somebody who reads both logs has to decide.

Left out: which log holds which batches now (``sim.checks.mirrors``).
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import Final
from zlib import crc32

from storage.errors import CorruptBatch
from storage.mkb1 import decode_batch
from storage.mkb1_header import MAGIC

__all__ = ["HEADER_BYTES", "Batch", "History", "Value", "base_at"]

# Frame and header of version 1, which version 2 begins with.
_HEADER: Final = Struct(">4sIIBqIqiiBiHI")
HEADER_BYTES: Final = _HEADER.size
_FRAME_BYTES: Final = 12
_BASE: Final = Struct(">q")
_BASE_AT: Final = 13

Value = tuple[bytes | None, bytes | None]
"""Key and value of a record."""


class Batch:
    """One batch of one log, or of several that have the same.

    Attributes:
        parent: the batch before it; None where nothing before it is known.
        data: its frame.
        producer: id, epoch, first sequence; the id is -1 where there is none.
        is_control: a marker, which has no records.
    """

    __slots__ = (
        "_values",
        "base",
        "count",
        "data",
        "epoch",
        "is_control",
        "next",
        "parent",
        "producer",
    )

    def __init__(
        self,
        parent: Batch | None,
        data: bytes,
        base: int,
        next_offset: int,
        epoch: int,
        count: int,
        producer: tuple[int, int, int],
        is_control: bool,
    ) -> None:
        self.parent = parent
        self.data = data
        self.base = base
        self.next = next_offset
        self.epoch = epoch
        self.count = count
        self.producer = producer
        self.is_control = is_control
        self._values: dict[int, Value] | None = None

    def __deepcopy__(self, memo: object) -> Batch:
        # Only ``parent`` ever changes, from unknown to known, which is as true in the other world.
        return self

    def values(self) -> dict[int, Value]:
        """Key and value of each record, by offset."""
        if self._values is None:
            found: dict[int, Value] = {}
            batch = decode_batch(self.data, max_batch_bytes=len(self.data))
            if batch.control is None:
                for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
                    found[self.base + delta] = (record.key, record.value)
            self._values = found
        return self._values

    def __repr__(self) -> str:
        return f"Batch({self.base}..{self.next - 1}, epoch {self.epoch})"


class History:
    """See the module.

    Attributes:
        suspects: first offsets of batches of which there are two, or which have two pasts, since
            anybody looked.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Batch] = {}
        self._others: dict[tuple[int, int], list[Batch]] = {}
        self.suspects: list[int] = []

    def __deepcopy__(self, memo: object) -> History:
        other = History()
        other._known = dict(self._known)
        other._others = {key: list(found) for key, found in self._others.items()}
        other.suspects = list(self.suspects)
        return other

    def take(
        self, parent: Batch | None, data: bytes, position: int, is_new: list[Batch] | None = None
    ) -> tuple[Batch | None, int]:
        """The batch of the frame at ``position`` of ``data`` behind ``parent``, and its size.

        None where the bytes are no whole, undamaged frame; the size is then what the frame claims,
        or 0.

        Args:
            is_new: told of batches that nobody had before.
        """
        left = len(data) - position
        if left < HEADER_BYTES:
            return None, 0
        (
            magic,
            length,
            crc,
            _,
            base,
            epoch,
            producer_id,
            producer_epoch,
            sequence,
            flags,
            delta,
            _,
            count,
        ) = _HEADER.unpack_from(data, position)
        size = length + _FRAME_BYTES
        if magic != MAGIC or size > left or size < HEADER_BYTES:
            return None, 0
        frame = data if size == len(data) else data[position : position + size]
        key = epoch, base
        known = self._known.get(key)
        if known is not None and known.parent is parent and known.data == frame:
            return known, size
        known = self._find(key, parent, frame)
        if known is None:
            if crc32(memoryview(frame)[_FRAME_BYTES:]) != crc:
                return None, size
            producer = producer_id, producer_epoch, sequence
            known = Batch(
                parent, frame, base, base + delta + 1, epoch, count, producer, bool(flags & 6)
            )
            self._enter(key, known)
            if is_new is not None:
                is_new.append(known)
        return known, size

    def _find(self, key: tuple[int, int], parent: Batch | None, frame: bytes) -> Batch | None:
        known = self._known.get(key)
        if known is None:
            return None
        candidates: list[Batch] = [known, *self._others.get(key, [])]
        for each in candidates:
            if each.data != frame:
                continue
            if each.parent is parent or parent is None:
                return each
            if each.parent is None and parent.next <= each.base:
                # Whoever has it has nothing before it.
                each.parent = parent
                return each
        return None

    def _enter(self, key: tuple[int, int], batch: Batch) -> None:
        known = self._known.get(key)
        self._known[key] = batch
        if known is not None:
            self._others.setdefault(key, []).append(known)
            self.suspects.append(batch.base)

    def at(self, epoch: int, offset: int) -> Iterator[Batch]:
        """The batches of an epoch that cover an offset, whoever had them. Looks at all.

        There are several of one place where a compaction has written them anew.
        """
        for key, newest in self._known.items():
            if newest.epoch == epoch:
                for batch in (newest, *self._others.get(key, ())):
                    if batch.base <= offset < batch.next:
                        yield batch


def base_at(data: bytes, position: int) -> int:
    """The first offset that a frame at ``position`` claims; -1 where there is no header."""
    if not data.startswith(MAGIC, position) or len(data) - position < HEADER_BYTES:
        return -1
    (base,) = _BASE.unpack_from(data, position + _BASE_AT)
    return int(base)


def records_of(batches: list[Batch], start: int) -> dict[int, tuple[int, Value]]:
    """Epoch, key and value of every record from ``start`` on, by offset."""
    found = {}
    for batch in batches:
        if batch.next > start:
            try:
                values = batch.values()
            except CorruptBatch:
                continue
            for offset, value in values.items():
                if offset >= start:
                    found[offset] = (batch.epoch, value)
    return found
