"""The MKB1 frame, byte for byte: encode, decode, check, restamp.

All numbers are big-endian. A frame is a header (``storage.mkb1_header``), then the records.

A record is ``i`` offset delta, ``q`` timestamp ms, ``i`` key length (-1 None), ``i`` value length
(-1 None), ``H`` header count, key, value, then per header ``H`` key length, key (UTF-8), ``i``
value length (-1 None), value. Source: DECISIONS on MKB1; ``storage/README.md`` has worked examples.

The CRC covers offset and epoch, so a leader encodes once, with both known. Left out: compression.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from struct import error as struct_error
from typing import Final
from zlib import crc32

from storage.batch import (
    INT32_MAX,
    OFFSET_END,
    Header,
    Record,
    RecordBatch,
    check_fields,
    dense_deltas,
)
from storage.codec import FrameFacts, OriginFacts, ProducerFacts, RecordFacts
from storage.errors import BatchTooLarge, CorruptBatch, InvalidRecord
from storage.mkb1_header import (
    ABORT,
    COMMIT,
    CONTROL_FLAGS,
    FLAGS,
    FRAME,
    HEADER_V1,
    HEADER_V2,
    MAGIC,
    TRANSACTIONAL,
)
from storage.values import Value

__all__ = ["MKB1", "Mkb1Codec", "decode_batch", "encode_batch"]

DEFAULT_MAX_BATCH_BYTES: Final = 16_777_216

_RECORD: Final = Struct(">iqiiH")
_HEADER_KEY: Final = Struct(">H")
_LENGTH: Final = Struct(">i")
_OFFSET_EPOCH: Final = Struct(">qI")
_CRC: Final = Struct(">I")
# magic, payload length, crc, version, base offset, epoch, last offset delta, max timestamp
_PEEK: Final = Struct(">4sIIBqI17xi6xq")
_HOP: Final = Struct(">4sI5xqI17xi")
# producer id, flags
_ORIGIN: Final = Struct(">25xq8xB")
# base offset, producer id, producer epoch, base sequence, flags, last offset delta, max timestamp
_PRODUCER_V1: Final = Struct(">13xq4xqiiBi6x")
_PRODUCER_V2: Final = Struct(">13xq4xqiiBi6xq")

_FRAME_BYTES: Final = FRAME.size
_V1_BYTES: Final = HEADER_V1.size
_V2_BYTES: Final = HEADER_V2.size
_PEEK_BYTES: Final = _PEEK.size
_RECORD_BYTES: Final = _RECORD.size
_VERSION_AT: Final = _FRAME_BYTES
_PRODUCER_AT: Final = _FRAME_BYTES + 13

# Encoding --------------------------------------------------------------------------------------


def encode_batch(batch: RecordBatch, *, max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES) -> bytes:
    """The frame of an assigned batch.

    Raises:
        InvalidRecord: the batch is unassigned, or a record cannot be stored.
        BatchTooLarge: the frame would exceed ``max_batch_bytes``.
    """
    if batch.base_offset is None:
        raise InvalidRecord("an unassigned batch cannot be encoded: assign it first")
    return _encode(batch, batch.base_offset, batch.leader_epoch, max_batch_bytes)[0]


def _encode(
    batch: RecordBatch, base_offset: int, leader_epoch: int, max_batch_bytes: int
) -> tuple[bytes, int]:
    """The frame and its max timestamp, with offset and epoch given (they override the batch's)."""
    records = batch.records
    transactional_id = batch.transactional_id
    flags = 0
    id_bytes = b""
    try:
        if transactional_id:
            id_bytes = transactional_id.encode()
            flags = TRANSACTIONAL
        if batch.control is not None:
            flags |= CONTROL_FLAGS[batch.control]
        parts: list[bytes] = [b"", id_bytes]
        max_timestamp_ms = batch.marker_timestamp_ms
        if records:
            max_timestamp_ms = _append_records(parts, records, batch.offset_deltas)
        if batch.format_version == 2:
            parts[0] = HEADER_V2.pack(
                2,
                base_offset,
                leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                flags,
                batch.last_offset_delta,
                len(id_bytes),
                len(records),
                max_timestamp_ms,
            )
        else:
            parts[0] = HEADER_V1.pack(
                1,
                base_offset,
                leader_epoch,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                flags,
                batch.last_offset_delta,
                len(id_bytes),
                len(records),
            )
        payload = b"".join(parts)
    except (TypeError, ValueError, AttributeError, struct_error) as error:
        _check_place(base_offset, leader_epoch)
        check_fields(batch)
        raise InvalidRecord(f"batch cannot be encoded: {error}") from error
    size_bytes = len(payload) + _FRAME_BYTES
    if size_bytes > max_batch_bytes:
        raise BatchTooLarge(size_bytes, max_batch_bytes)
    if leader_epoch > INT32_MAX or base_offset < 0:
        _check_place(base_offset, leader_epoch)
    return FRAME.pack(MAGIC, len(payload), crc32(payload)) + payload, max_timestamp_ms


def _check_place(base_offset: int, leader_epoch: int) -> None:
    if not 0 <= leader_epoch <= INT32_MAX:
        raise InvalidRecord(f"leader_epoch is {leader_epoch}, allowed is 0..{INT32_MAX}")
    if not 0 <= base_offset < OFFSET_END:
        raise InvalidRecord(f"base_offset is {base_offset}, allowed is 0..2^63-1")


def _append_records(
    parts: list[bytes], records: tuple[Record, ...], deltas: tuple[int, ...]
) -> int:
    """Append the records' bytes to ``parts``; returns the largest timestamp."""
    pack = _RECORD.pack
    largest = records[0][2]
    # Plain zip: a batch has as many deltas as records, and `strict` costs a fifth of a small frame.
    for delta, (key, value, timestamp_ms, headers) in zip(deltas, records):  # noqa: B905
        if timestamp_ms > largest:
            largest = timestamp_ms
        if headers or value is None:
            key_size = -1 if key is None else len(key)
            value_size = -1 if value is None else len(value)
            parts.append(pack(delta, timestamp_ms, key_size, value_size, len(headers)))
            if key is not None:
                parts.append(key)
            if value is not None:
                parts.append(value)
            if headers:
                _append_headers(parts, headers)
        elif key is None:
            parts.append(pack(delta, timestamp_ms, -1, len(value), 0))
            parts.append(value)
        else:
            parts.append(pack(delta, timestamp_ms, len(key), len(value), 0))
            parts.append(key)
            parts.append(value)
    return largest


def _append_headers(parts: list[bytes], headers: tuple[Header, ...]) -> None:
    for name, value in headers:
        key = name.encode()
        parts.append(_HEADER_KEY.pack(len(key)))
        parts.append(key)
        if value is None:
            parts.append(_LENGTH.pack(-1))
        else:
            parts.append(_LENGTH.pack(len(value)))
            parts.append(value)


# Decoding --------------------------------------------------------------------------------------


def decode_batch(
    encoded: bytes | bytearray | memoryview, *, max_batch_bytes: int = DEFAULT_MAX_BATCH_BYTES
) -> RecordBatch:
    """The batch of exactly one frame.

    Allocates no more than the input justifies: counts and lengths are checked against the bytes
    that are there before anything is built from them.

    Raises:
        CorruptBatch: anything at all is wrong with the bytes.
    """
    frame = encoded if isinstance(encoded, bytes) else bytes(encoded)
    view = memoryview(frame)
    size, base_offset, _, _, max_timestamp_ms = MKB1.check(view, 0, len(frame), max_batch_bytes)
    if size != len(frame):
        raise CorruptBatch("length", f"frame of {size} bytes in {len(frame)} bytes of input")
    version = frame[_FRAME_BYTES]
    layout = HEADER_V2 if version == 2 else HEADER_V1
    fields = layout.unpack_from(frame, _FRAME_BYTES)
    _, _, leader_epoch, producer_id, producer_epoch, base_sequence, flags = fields[:7]
    last_delta, id_bytes, count = fields[7:10]
    if flags not in FLAGS:
        raise CorruptBatch("flags", f"{flags} is not a legal combination")
    transactional, control = FLAGS[flags]
    if transactional != (id_bytes > 0):
        raise CorruptBatch("flags", f"{flags} with a transactional id of {id_bytes} bytes")
    position = _FRAME_BYTES + layout.size
    if position + id_bytes > size:
        raise CorruptBatch("transactional-id", f"{id_bytes} bytes pass the frame's end")
    transactional_id = _text(frame, position, id_bytes) if transactional else None
    position += id_bytes
    if control is not None:
        if count or last_delta or position != size:
            raise CorruptBatch("control", "a control batch has no records and takes one offset")
        records: tuple[Record, ...] = ()
        deltas = dense_deltas(0)
        marker_timestamp_ms = max_timestamp_ms
    else:
        records, deltas = _decode_records(frame, position, count, last_delta)
        marker_timestamp_ms = -1
        if version == 1:
            if count == 0:
                raise CorruptBatch("count", "a version 1 data batch has at least one record")
        else:
            largest = max([record[2] for record in records], default=-1)
            if largest != max_timestamp_ms:
                raise CorruptBatch("max-timestamp", f"{max_timestamp_ms}, records have {largest}")
    return RecordBatch(
        records,
        deltas,
        last_delta,
        base_offset,
        leader_epoch,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional_id,
        control,
        version,
        marker_timestamp_ms,
    )


def _text(frame: bytes, position: int, size: int) -> str:
    try:
        return frame[position : position + size].decode()
    except UnicodeDecodeError as error:
        raise CorruptBatch("utf-8", f"text at byte {position} is not UTF-8") from error


def _decode_records(
    frame: bytes, position: int, count: int, last_delta: int
) -> tuple[tuple[Record, ...], tuple[int, ...]]:
    end = len(frame)
    if count * _RECORD_BYTES > end - position:
        raise CorruptBatch("count", f"{count} records in {end - position} bytes")
    unpack = _RECORD.unpack_from
    make = tuple.__new__
    records: list[Record] = []
    deltas: list[int] = []
    previous = -1
    for _ in range(count):
        if position + _RECORD_BYTES > end:
            raise CorruptBatch("record", f"record at byte {position} passes the frame's end")
        delta, timestamp_ms, key_size, value_size, header_count = unpack(frame, position)
        position += _RECORD_BYTES
        if not previous < delta <= last_delta:
            raise CorruptBatch("delta", f"{delta} after {previous}, last is {last_delta}")
        previous = delta
        key = value = None
        if key_size >= 0:
            key = frame[position : position + key_size]
            position += key_size
        if value_size >= 0:
            value = frame[position : position + value_size]
            position += value_size
        if position > end or key_size < -1 or value_size < -1:
            raise CorruptBatch(
                "record", f"key of {key_size}, value of {value_size} bytes before byte {position}"
            )
        headers: tuple[Header, ...] = ()
        if header_count:
            headers, position = _decode_headers(frame, position, header_count)
        records.append(make(Record, (key, value, timestamp_ms, headers)))
        deltas.append(delta)
    if position != end:
        raise CorruptBatch("trailing", f"{end - position} bytes behind the last record")
    dense = dense_deltas(count)
    return tuple(records), dense if previous == count - 1 else tuple(deltas)


def _decode_headers(frame: bytes, position: int, count: int) -> tuple[tuple[Header, ...], int]:
    end = len(frame)
    if count * (_HEADER_KEY.size + _LENGTH.size) > end - position:
        raise CorruptBatch("headers", f"{count} headers in {end - position} bytes")
    headers: list[Header] = []
    for _ in range(count):
        if position + 2 > end:
            raise CorruptBatch("headers", f"header at byte {position} passes the frame's end")
        (key_size,) = _HEADER_KEY.unpack_from(frame, position)
        position += 2
        if position + key_size + 4 > end:
            raise CorruptBatch("headers", f"header key of {key_size} bytes passes the end")
        key = _text(frame, position, key_size)
        position += key_size
        (value_size,) = _LENGTH.unpack_from(frame, position)
        position += 4
        value = None
        if value_size >= 0:
            value = frame[position : position + value_size]
            position += value_size
        if position > end or value_size < -1:
            raise CorruptBatch("headers", f"header value of {value_size} bytes passes the end")
        headers.append(Header(key, value))
    return tuple(headers), position


# The codec that a log is opened with -----------------------------------------------------------


class Mkb1Codec(Value):
    """MKB1 behind the ``Codec`` protocol. Stateless; ``MKB1`` is the one instance."""

    name = "mkb1"
    magic = MAGIC
    hop_bytes = _HOP.size
    producer_at = _PRODUCER_AT
    producer_bytes = _PRODUCER_V2.size

    def check(
        self, buffer: bytes | bytearray | memoryview, position: int, end: int, max_batch_bytes: int
    ) -> FrameFacts:
        left = end - position
        if left < _PEEK_BYTES:
            return self._check_short(buffer, position, end, max_batch_bytes)
        magic, length, crc, version, base, epoch, last_delta, max_timestamp_ms = _PEEK.unpack_from(
            buffer, position
        )
        size = length + _FRAME_BYTES
        if magic != MAGIC:
            raise CorruptBatch("magic", f"{magic!r}")
        if length < _V1_BYTES or size > max_batch_bytes:
            raise CorruptBatch("length", f"{size} bytes, max_batch_bytes is {max_batch_bytes}")
        if size > left:
            raise CorruptBatch("torn", f"frame of {size} bytes, {left} are there")
        # A slice of a view is no copy, so callers pass one.
        if crc32(buffer[position + _FRAME_BYTES : position + size]) != crc:
            raise CorruptBatch("crc", f"frame of {size} bytes")
        if version != 2:
            if version != 1:
                raise CorruptBatch("version", f"{version}, allowed is 1 or 2")
            frame = bytes(buffer[position : position + size])
            max_timestamp_ms = _largest_timestamp_v1(frame)
        elif length < _V2_BYTES:
            raise CorruptBatch("length", f"{size} bytes in version 2")
        next_offset = base + last_delta + 1
        if base < 0 or last_delta < 0 or next_offset > OFFSET_END or epoch > INT32_MAX:
            raise CorruptBatch("header", f"base {base}, last delta {last_delta}, epoch {epoch}")
        return size, base, next_offset, epoch, max_timestamp_ms

    def _check_short(
        self, buffer: bytes | bytearray | memoryview, position: int, end: int, max_batch_bytes: int
    ) -> FrameFacts:
        """``check`` where too few bytes are left for a version 2 header: maybe version 1."""
        tail = bytes(buffer[position:end])
        if tail[:4] != MAGIC[: len(tail)]:
            raise CorruptBatch("magic", f"{tail[:4]!r}")
        if len(tail) >= 8:
            size = int.from_bytes(tail[4:8], "big") + _FRAME_BYTES
            if not _FRAME_BYTES + _V1_BYTES <= size <= max_batch_bytes:
                raise CorruptBatch("length", f"{size} bytes, max_batch_bytes is {max_batch_bytes}")
            if size <= len(tail):
                if tail[_FRAME_BYTES] == 2:
                    raise CorruptBatch("length", f"{size} bytes in version 2")
                padded = tail[:size] + bytes(_PEEK_BYTES - size)
                return self.check(padded, 0, len(padded), max_batch_bytes)
        raise CorruptBatch("torn", f"{len(tail)} bytes are there")

    def hop(self, buffer: bytes | memoryview, position: int) -> tuple[int, int, int, int]:
        magic, length, base, epoch, last_delta = _HOP.unpack_from(buffer, position)
        if magic != MAGIC:
            raise CorruptBatch("magic", f"{magic!r}")
        return length + _FRAME_BYTES, base, base + last_delta + 1, epoch

    def producer_facts(self, buffer: bytes | memoryview, position: int) -> ProducerFacts | None:
        if buffer[position + _PRODUCER_AT] >= 128:
            return None
        version = buffer[position + _VERSION_AT]
        try:
            if version == 2:
                base, producer_id, epoch, sequence, flags, delta, timestamp_ms = (
                    _PRODUCER_V2.unpack_from(buffer, position)
                )
            elif version == 1:
                base, producer_id, epoch, sequence, flags, delta = _PRODUCER_V1.unpack_from(
                    buffer, position
                )
                timestamp_ms = -1
            else:
                raise CorruptBatch("version", f"{version}, allowed is 1 or 2")
        except struct_error as error:
            raise CorruptBatch("torn", f"{len(buffer) - position} bytes are there") from error
        is_control = flags & (COMMIT | ABORT) != 0
        if is_control:
            sequence = -1
        return ProducerFacts(producer_id, epoch, sequence, base, delta, timestamp_ms, is_control)

    def origin(self, buffer: bytes, position: int) -> OriginFacts:
        producer_id, flags = _ORIGIN.unpack_from(buffer, position)
        if flags not in FLAGS:
            raise CorruptBatch("flags", f"{flags} is not a legal combination")
        return producer_id, *FLAGS[flags]

    def records(self, buffer: bytes, position: int) -> list[RecordFacts]:
        at = position + _FRAME_BYTES
        end = at + int.from_bytes(buffer[position + 4 : position + 8], "big")
        layout = HEADER_V2 if buffer[at] == 2 else HEADER_V1
        id_bytes, count = layout.unpack_from(buffer, at)[8:10]
        at += layout.size + id_bytes
        unpack = _RECORD.unpack_from
        found: list[RecordFacts] = []
        add = found.append
        for _ in range(count):
            start = at
            if at + _RECORD_BYTES > end:
                raise CorruptBatch("record", f"record at byte {at} passes the frame's end")
            delta, timestamp_ms, key_size, value_size, header_count = unpack(buffer, at)
            at += _RECORD_BYTES
            key = None
            if key_size >= 0:
                key = buffer[at : at + key_size]
                at += key_size
            if value_size > 0:
                at += value_size
            if header_count:
                at = _decode_headers(buffer, at, header_count)[1]
            add((delta, key, value_size < 0, timestamp_ms, start, at))
        if at != end:
            raise CorruptBatch("trailing", f"the records end at byte {at}, the frame at {end}")
        return found

    def retain(
        self, buffer: bytes, position: int, records: Sequence[RecordFacts]
    ) -> tuple[bytes, int]:
        at = position + _FRAME_BYTES
        layout = HEADER_V2 if buffer[at] == 2 else HEADER_V1
        fields = layout.unpack_from(buffer, at)
        body = at + layout.size
        largest = max([record[3] for record in records], default=-1)
        # Version 1 has no emptied frame.
        if fields[0] == 2 or not records:
            header = HEADER_V2.pack(2, *fields[1:9], len(records), largest)
        else:
            header = HEADER_V1.pack(*fields[:9], len(records))
        parts = [header, buffer[body : body + fields[8]]]
        start = end = body
        for record in records:
            if record[4] != end:
                parts.append(buffer[start:end])
                start = record[4]
            end = record[5]
        parts.append(buffer[start:end])
        payload = b"".join(parts)
        return FRAME.pack(MAGIC, len(payload), crc32(payload)) + payload, largest

    encode = staticmethod(_encode)

    def decode(self, frame: bytes | memoryview, max_batch_bytes: int) -> RecordBatch:
        return decode_batch(frame, max_batch_bytes=max_batch_bytes)

    def restamp(self, frame: bytes, base_offset: int, leader_epoch: int) -> bytes:
        body = bytearray(frame)
        _OFFSET_EPOCH.pack_into(body, _FRAME_BYTES + 1, base_offset, leader_epoch)
        _CRC.pack_into(body, 8, crc32(memoryview(body)[_FRAME_BYTES:]))
        return bytes(body)


def _largest_timestamp_v1(frame: bytes) -> int:
    """The largest record timestamp of a version 1 frame, whose header has none.

    -1 for a marker, and for a body that does not decode: recovery trusts the CRC, and a reader
    meets the ``CorruptBatch`` itself.
    """
    *_, id_bytes, count = HEADER_V1.unpack_from(frame, _FRAME_BYTES)
    position = _FRAME_BYTES + _V1_BYTES + id_bytes
    largest = -1 if count == 0 else -OFFSET_END
    for _ in range(count):
        if position + _RECORD_BYTES > len(frame):
            return -1
        _, timestamp_ms, key_size, value_size, header_count = _RECORD.unpack_from(frame, position)
        position += _RECORD_BYTES + max(key_size, 0) + max(value_size, 0)
        if header_count:
            try:
                position = _decode_headers(frame, position, header_count)[1]
            except CorruptBatch:
                return -1
        largest = max(largest, timestamp_ms)
    return largest


MKB1: Final = Mkb1Codec()
