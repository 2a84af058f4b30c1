"""MKB1 read and written the plain way: the twin that ``storage.mkb1`` is compared with.

Written from the byte-for-byte text of the format alone, one field after another, with
``int.from_bytes`` and no shortcut. ``encode`` packs whatever it is given, legal or not, so that it
can make the frames that must be refused; ``decode`` accepts exactly what the text allows.
"""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from storage.batch import ControlType, Header, Record, RecordBatch

MAX_BATCH_BYTES = 16_777_216


class IllegalFrame(Exception):
    """The text does not allow these bytes."""


class NaiveRecord(NamedTuple):
    delta: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()


class NaiveBatch(NamedTuple):
    """Every field of a frame, in its order."""

    version: int
    base_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    flags: int
    last_offset_delta: int
    max_timestamp_ms: int | None  # version 2 only
    transactional_id: bytes
    records: tuple[NaiveRecord, ...]


def signed(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big", signed=True)


def unsigned(value: int, size: int) -> bytes:
    return value.to_bytes(size, "big")


def framed(payload: bytes) -> bytes:
    """Magic, length and CRC in front of a payload, whatever it holds."""
    return b"MKB1" + unsigned(len(payload), 4) + unsigned(crc32(payload), 4) + payload


def patched(frame: bytes, at: int, data: bytes) -> bytes:
    """The frame with ``data`` written over it at ``at``, its length and CRC renewed."""
    body = bytearray(frame)
    body[at : at + len(data)] = data
    return framed(bytes(body[12:]))


def encode(batch: NaiveBatch) -> bytes:
    parts = [
        unsigned(batch.version, 1),
        signed(batch.base_offset, 8),
        unsigned(batch.leader_epoch, 4),
        signed(batch.producer_id, 8),
        signed(batch.producer_epoch, 4),
        signed(batch.base_sequence, 4),
        unsigned(batch.flags, 1),
        signed(batch.last_offset_delta, 4),
        unsigned(len(batch.transactional_id), 2),
        unsigned(len(batch.records), 4),
    ]
    if batch.max_timestamp_ms is not None:
        parts.append(signed(batch.max_timestamp_ms, 8))
    parts.append(batch.transactional_id)
    for record in batch.records:
        parts.append(signed(record.delta, 4))
        parts.append(signed(record.timestamp_ms, 8))
        parts.append(signed(-1 if record.key is None else len(record.key), 4))
        parts.append(signed(-1 if record.value is None else len(record.value), 4))
        parts.append(unsigned(len(record.headers), 2))
        parts.append(record.key or b"")
        parts.append(record.value or b"")
        for key, value in record.headers:
            parts.append(unsigned(len(key), 2) + key)
            parts.append(signed(-1 if value is None else len(value), 4))
            parts.append(value or b"")
    return framed(b"".join(parts))


class Cursor:
    """Takes bytes from the front and refuses to go past the end."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        if self.at + size > len(self.data):
            raise IllegalFrame(f"{size} bytes wanted at {self.at} of {len(self.data)}")
        self.at += size
        return self.data[self.at - size : self.at]

    def signed(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big", signed=True)

    def unsigned(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def bytes_or_none(self, size: int) -> bytes | None:
        require(size >= -1, "a length is -1 or more")
        return None if size == -1 else self.take(size)


def require(holds: bool, sentence: str) -> None:
    if not holds:
        raise IllegalFrame(sentence)


def decode(data: bytes, max_batch_bytes: int = MAX_BATCH_BYTES) -> NaiveBatch:
    """The fields of exactly one legal frame, or ``IllegalFrame``."""
    require(len(data) <= max_batch_bytes, "max_batch_bytes counts the whole frame")
    outer = Cursor(data)
    require(outer.take(4) == b"MKB1", "magic")
    length = outer.unsigned(4)
    checksum = outer.unsigned(4)
    payload = outer.take(length)
    require(outer.at == len(data), "no bytes may trail the frame")
    require(crc32(payload) == checksum, "CRC32 of the payload")
    cursor = Cursor(payload)
    version = cursor.unsigned(1)
    require(version in (1, 2), "we write version 2 and read both")
    base_offset = cursor.signed(8)
    leader_epoch = cursor.unsigned(4)
    producer_id = cursor.signed(8)
    producer_epoch = cursor.signed(4)
    base_sequence = cursor.signed(4)
    flags = cursor.unsigned(1)
    last_offset_delta = cursor.signed(4)
    id_length = cursor.unsigned(2)
    count = cursor.unsigned(4)
    max_timestamp_ms = cursor.signed(8) if version == 2 else None
    transactional_id = cursor.take(id_length)
    check_text(transactional_id)
    require(flags in (0, 1, 1 | 2, 1 | 4), "2 and 4 exclude each other and need 1")
    require((flags & 1 == 1) == (id_length > 0), "flag 1 exactly if the id has a byte")
    require(base_offset >= 0 and last_offset_delta >= 0, "offsets are 0 or more")
    require(base_offset + last_offset_delta < 2**63, "base + delta < 2^63")
    require(leader_epoch < 2**31, "epoch < 2^31")
    records = tuple(decode_record(cursor) for _ in range(count))
    require(cursor.at == len(payload), "no bytes may trail")
    before = -1
    for record in records:
        require(before < record.delta <= last_offset_delta, "deltas rise, up to the last one")
        before = record.delta
    if flags & 6:
        require(count == 0 and last_offset_delta == 0, "a control batch takes one offset")
    elif version == 1:
        require(count > 0, "in version 1 a data batch has at least one record")
    else:
        largest = max((record.timestamp_ms for record in records), default=-1)
        require(max_timestamp_ms == largest, "the max timestamp is the records'")
    return NaiveBatch(
        version,
        base_offset,
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        flags,
        last_offset_delta,
        max_timestamp_ms,
        transactional_id,
        records,
    )


def decode_record(cursor: Cursor) -> NaiveRecord:
    delta = cursor.signed(4)
    timestamp_ms = cursor.signed(8)
    key_length = cursor.signed(4)
    value_length = cursor.signed(4)
    header_count = cursor.unsigned(2)
    key = cursor.bytes_or_none(key_length)
    value = cursor.bytes_or_none(value_length)
    headers = []
    for _ in range(header_count):
        header_key = cursor.take(cursor.unsigned(2))
        check_text(header_key)
        headers.append((header_key, cursor.bytes_or_none(cursor.signed(4))))
    return NaiveRecord(delta, timestamp_ms, key, value, tuple(headers))


def check_text(data: bytes) -> None:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise IllegalFrame("text is UTF-8") from error


def from_batch(batch: RecordBatch) -> NaiveBatch:
    """What the fields of ``batch``'s frame must be."""
    assert batch.base_offset is not None
    flags = 0
    if batch.transactional_id is not None:
        flags |= 1
    if batch.control is ControlType.COMMIT:
        flags |= 2
    if batch.control is ControlType.ABORT:
        flags |= 4
    largest = None
    if batch.format_version == 2:
        largest = max((record[2] for record in batch.records), default=-1)
        if batch.control is not None:
            largest = batch.marker_timestamp_ms
    return NaiveBatch(
        batch.format_version,
        batch.base_offset,
        batch.leader_epoch,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        flags,
        batch.last_offset_delta,
        largest,
        (batch.transactional_id or "").encode(),
        tuple(
            NaiveRecord(delta, stamp, key, value, tuple((k.encode(), v) for k, v in headers))
            for delta, (key, value, stamp, headers) in zip(
                batch.offset_deltas, batch.records, strict=True
            )
        ),
    )


def to_batch(naive: NaiveBatch) -> RecordBatch:
    """The value that a legal frame stands for."""
    control = {0: None, 2: ControlType.COMMIT, 4: ControlType.ABORT}[naive.flags & 6]
    marker_timestamp_ms = -1
    if control is not None and naive.max_timestamp_ms is not None:
        marker_timestamp_ms = naive.max_timestamp_ms
    return RecordBatch(
        records=tuple(
            Record(
                r.key, r.value, r.timestamp_ms, tuple(Header(k.decode(), v) for k, v in r.headers)
            )
            for r in naive.records
        ),
        offset_deltas=tuple(record.delta for record in naive.records),
        last_offset_delta=naive.last_offset_delta,
        base_offset=naive.base_offset,
        leader_epoch=naive.leader_epoch,
        producer_id=naive.producer_id,
        producer_epoch=naive.producer_epoch,
        base_sequence=naive.base_sequence,
        transactional_id=naive.transactional_id.decode() or None,
        control=control,
        format_version=naive.version,
        marker_timestamp_ms=marker_timestamp_ms,
    )
