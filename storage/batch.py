"""Records and record batches as values: what a log stores, independent of its bytes.

A ``Record`` is a named tuple, so a plain ``(key, value, timestamp_ms, headers)`` tuple does where
speed matters; contents are checked when a batch is encoded. Batch invariants are checked when a
``RecordBatch`` is built: a data batch has records with strictly rising offset deltas, a control
batch has none and takes one offset.

Left out: bytes (``storage.mkb1``), topics and partitions, and which offsets are free.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple, NoReturn, Self

from attrs import evolve, frozen

from storage.errors import InvalidRecord

__all__ = ["ControlType", "Header", "LogRecord", "Record", "RecordBatch"]

INT32_MAX = 2**31 - 1
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
OFFSET_END = 2**63
"""Offsets are below this; it is also the end of the last possible batch."""


class Header(NamedTuple):
    """A record header: a UTF-8 key of at most 65,535 bytes, and a value or None."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """What a client sends.

    Attributes:
        key: bytes, or None (not the same as empty).
        value: bytes, or None: a tombstone in a compacted log.
        timestamp_ms: milliseconds since the Unix epoch, signed 64 bit; -1 means none.
        headers: at most 65,535 headers, in order; keys may repeat.
    """

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...] = ()


class LogRecord(NamedTuple):
    """A record as read from a log: a ``Record`` with its offset and its batch's leader epoch."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[Header, ...]
    leader_epoch: int


class ControlType(Enum):
    """What a control batch says of its producer's transaction."""

    COMMIT = "commit"
    ABORT = "abort"


_DENSE: list[tuple[int, ...]] = []


def dense_deltas(count: int) -> tuple[int, ...]:
    """``(0, 1, ..., count - 1)``; the same object each time for counts up to 1,024."""
    if count <= 1_024:
        while len(_DENSE) <= count:
            _DENSE.append(tuple(range(len(_DENSE))))
        return _DENSE[count]
    return tuple(range(count))


@frozen
class RecordBatch:
    """Records that are written, replicated and truncated as one.

    Attributes:
        records: the records; a plain tuple in ``Record``'s order does as well.
        offset_deltas: one per record, strictly rising from 0 or more: offset minus base offset.
        last_offset_delta: ``next_offset - base_offset - 1``; compaction keeps it when the last
            records go, so it may exceed the last delta.
        base_offset: offset of delta 0, or None while unassigned.
        leader_epoch: epoch of the leader that assigned the offsets, -1 while unassigned.
        producer_id, producer_epoch, base_sequence: idempotent producer's identity, -1 for none.
        transactional_id: the transaction's name (UTF-8, 1 to 65,535 bytes), or None.
        control: set on a transaction marker, which has no records and takes one offset.
        format_version: of the MKB1 frame: 2, or 1 for frames without a max timestamp.
        marker_timestamp_ms: a marker's own timestamp, -1 for none and for data batches.
    """

    records: tuple[Record, ...]
    offset_deltas: tuple[int, ...]
    last_offset_delta: int
    base_offset: int | None = None
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    transactional_id: str | None = None
    control: ControlType | None = None
    format_version: int = 2
    marker_timestamp_ms: int = -1

    def __attrs_post_init__(self) -> None:
        count = len(self.records)
        last = self.last_offset_delta
        if self.control is not None:
            if not isinstance(self.control, ControlType):
                raise InvalidRecord(f"control is {self.control!r}, allowed is a ControlType")
            self._check_marker()
        elif self.marker_timestamp_ms != -1:
            raise InvalidRecord("marker_timestamp_ms is for control batches, this one has data")
        elif count == 0:
            # Compaction keeps an emptied batch for its offsets and producer state.
            if self.base_offset is None or self.format_version == 1:
                raise InvalidRecord("a data batch has at least one record, this one has none")
        check_records(self.records)
        deltas = self.offset_deltas
        if deltas is not dense_deltas(count) and not _rises(deltas, count):
            shown = repr(deltas)[:60]
            raise InvalidRecord(f"offset_deltas is {shown}, allowed: {count} values, rising from 0")
        lowest = deltas[-1] if deltas else 0
        if not lowest <= last <= INT32_MAX:
            raise InvalidRecord(f"last_offset_delta is {last}, allowed is {lowest}..{INT32_MAX}")
        if self.base_offset is not None and not 0 <= self.base_offset < OFFSET_END - last:
            raise InvalidRecord(f"base_offset is {self.base_offset}, allowed is 0 to 2^63-1")
        if self.transactional_id == "":
            raise InvalidRecord("transactional_id is '', allowed is None or at least one byte")
        if self.format_version not in (1, 2):
            raise InvalidRecord(f"format_version is {self.format_version}, allowed is 1 or 2")

    def _check_marker(self) -> None:
        if self.records or self.last_offset_delta != 0:
            raise InvalidRecord(
                f"a control batch has no records and last_offset_delta 0, this one has "
                f"{len(self.records)} and {self.last_offset_delta}"
            )
        if not self.transactional_id:
            raise InvalidRecord("a control batch needs a transactional_id")
        if self.format_version == 1 and self.marker_timestamp_ms != -1:
            raise InvalidRecord("a version 1 marker has timestamp -1")

    @classmethod
    def unassigned(
        cls,
        records: Iterable[Record],
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional_id: str | None = None,
        format_version: int = 2,
    ) -> Self:
        """A data batch as a client builds it: dense, without offset and epoch.

        Raises:
            InvalidRecord: there is no record, or one that cannot be stored; the message names the
                record, the field and the value.
        """
        records = tuple(records)
        count = len(records)
        return cls(
            records,
            dense_deltas(count),
            count - 1,
            None,
            -1,
            producer_id,
            producer_epoch,
            base_sequence,
            transactional_id,
            None,
            format_version,
        )

    @classmethod
    def control_marker(
        cls,
        control: ControlType,
        *,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        timestamp_ms: int = -1,
        format_version: int = 2,
    ) -> Self:
        """A transaction marker, without offset and epoch."""
        return cls(
            (),
            (),
            0,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            transactional_id=transactional_id,
            control=control,
            format_version=format_version,
            marker_timestamp_ms=timestamp_ms,
        )

    def assign(self, base_offset: int, leader_epoch: int) -> Self:
        """The same batch at an offset and in an epoch (0 to 2^31-1): what a leader stores."""
        if not 0 <= leader_epoch <= INT32_MAX:
            raise InvalidRecord(f"leader_epoch is {leader_epoch}, allowed is 0..{INT32_MAX}")
        return evolve(self, base_offset=base_offset, leader_epoch=leader_epoch)

    @property
    def logical_count(self) -> int:
        """How many offsets the batch takes, holes included."""
        return self.last_offset_delta + 1

    @property
    def next_offset(self) -> int:
        """The offset behind the batch. Raises ``InvalidRecord`` while unassigned."""
        if self.base_offset is None:
            raise InvalidRecord("an unassigned batch has no next_offset")
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence of the last offset, wrapping from 2^31-1 to 0; -1 without a sequence."""
        if self.base_sequence < 0:
            return -1
        return (self.base_sequence + self.last_offset_delta) & INT32_MAX

    @property
    def max_timestamp_ms(self) -> int:
        """The largest timestamp of the records, a marker's own, -1 for an emptied batch."""
        if self.control is not None or not self.records:
            return self.marker_timestamp_ms
        return max(record[2] for record in self.records)


def _rises(deltas: tuple[int, ...], count: int) -> bool:
    previous = -1
    for delta in deltas:
        if delta <= previous:
            return False
        previous = delta
    return len(deltas) == count


def check_records(records: tuple[Record, ...]) -> None:
    """Raise ``InvalidRecord`` for the first record that no frame can hold.

    Keys and values are ``bytes`` exactly: other buffers can change after the batch was built, or
    count in items instead of bytes.
    """
    for number, record in enumerate(records):
        try:
            key, value, timestamp_ms, headers = record
        except (TypeError, ValueError):
            _refuse(f"record {number}", record, "(key, value, timestamp_ms, headers)")
        if (key is None or key.__class__ is bytes) and (value is None or value.__class__ is bytes):
            if timestamp_ms.__class__ is int and INT64_MIN <= timestamp_ms <= INT64_MAX:
                if headers == ():
                    continue
        _check_record(f"record {number}", key, value, timestamp_ms, headers)


def check_fields(batch: RecordBatch) -> None:
    """Raise the ``InvalidRecord`` that names the field of ``batch`` that no frame can hold."""
    for name, bits in (("producer_id", 64), ("producer_epoch", 32), ("base_sequence", 32)):
        if not _is_int(value := getattr(batch, name), bits):
            _refuse(name, value, f"a signed integer of {bits} bits")
    if not _is_int(batch.marker_timestamp_ms, 64):
        _refuse("marker_timestamp_ms", batch.marker_timestamp_ms, "a signed integer of 64 bits")
    transaction = batch.transactional_id
    if transaction is not None and not _is_text(transaction):
        _refuse("transactional_id", transaction, "UTF-8 text of at most 65,535 bytes, or None")
    check_records(batch.records)


def _check_record(where: str, key: Any, value: Any, timestamp_ms: Any, headers: Any) -> None:
    for field, seen in (("key", key), ("value", value)):
        if seen is not None and not isinstance(seen, bytes):
            _refuse(f"{where} {field}", seen, "bytes or None")
    if not _is_int(timestamp_ms, 64):
        _refuse(f"{where} timestamp_ms", timestamp_ms, "a signed integer of 64 bits")
    if not isinstance(headers, tuple) or len(headers) > 65_535:
        _refuse(f"{where} headers", headers, "a tuple of at most 65,535 headers")
    for header in headers:
        if not isinstance(header, tuple) or len(header) != 2:
            _refuse(f"{where} header", header, "a Header or a tuple (key, value)")
        if not _is_text(header[0]):
            _refuse(f"{where} header key", header[0], "UTF-8 text of at most 65,535 bytes")
        if header[1] is not None and not isinstance(header[1], bytes):
            _refuse(f"{where} header value", header[1], "bytes or None")


def _is_int(value: object, bits: int) -> bool:
    return isinstance(value, int) and -(1 << (bits - 1)) <= value < 1 << (bits - 1)


def _is_text(value: object) -> bool:
    try:
        return isinstance(value, str) and len(value.encode()) <= 65_535
    except UnicodeEncodeError:
        return False


def _refuse(what: str, seen: object, allowed: str) -> NoReturn:
    raise InvalidRecord(f"{what} is {repr(seen)[:80]}, allowed is {allowed}")
