"""Record batches in Kafka's format, version 2: a walk over their headers, and their timestamps.

A batch begins with 61 bytes, big-endian: base offset (8), length of what follows (4), partition
leader epoch (4), magic (1), CRC-32C of what follows it (4), attributes (2), last offset delta (4),
base timestamp ms (8), max timestamp ms (8), producer id (8), producer epoch (2), base sequence (4),
number of records (4). Then come the records, maybe compressed. Source: Kafka's
``DefaultRecordBatch`` and ``DefaultRecord``.

The header is believed as far as it is plausible: the checksum is not computed, for the standard
library has no CRC-32C. Timestamps are read from records that are not compressed, or by gzip.

Left out: keys and values, other codecs, and versions 0 and 1 of the format.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from struct import Struct
from typing import Final, NamedTuple

from storage.disk import Disk
from storage.read_only import opened

__all__ = [
    "CODECS",
    "CONTROL",
    "HEADER",
    "MAGIC_AT",
    "TIMES_OF_APPEND",
    "TRANSACTIONAL",
    "KafkaBatch",
    "KafkaFault",
    "batch_at",
    "record_times",
    "walk",
]

HEADER: Final = Struct(">qiibIhiqqqhii")
MAGIC_AT: Final = 16
CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_LENGTH_FROM: Final = 12
_RECORDS_AT: Final = HEADER.size
_CODEC_BITS: Final = 7
TIMES_OF_APPEND: Final = 8
TRANSACTIONAL: Final = 16
CONTROL: Final = 32
_INFLATED_MAX: Final = 16 << 20
_VARINT_BITS_MAX: Final = 70


class KafkaFault(Exception):
    """Bytes that are no batch; the text says why."""


class KafkaBatch(NamedTuple):
    """A batch's header, and where it lies."""

    position: int
    size_bytes: int
    base_offset: int
    next_offset: int
    leader_epoch: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    record_count: int

    @property
    def codec(self) -> str:
        """How the records are compressed."""
        number = self.attributes & _CODEC_BITS
        return CODECS[number] if number < len(CODECS) else f"codec {number}"


def batch_at(head: bytes, position: int, file_size_bytes: int) -> KafkaBatch:
    """The batch whose first 61 bytes, or what there is of them, are ``head``.

    Raises:
        KafkaFault: it is none, or the file ends within it.
    """
    if len(head) < HEADER.size:
        raise KafkaFault(f"torn: {len(head)} bytes, a batch's header has {HEADER.size}")
    fields = HEADER.unpack_from(head)
    base, length, epoch, magic, _, attributes, delta, first_ms, last_ms = fields[:9]
    count = fields[12]
    size = length + _LENGTH_FROM
    if magic != 2:
        raise KafkaFault(f"magic: {magic}, only 2 is read")
    if size < HEADER.size:
        raise KafkaFault(f"length: {length}, a batch has {HEADER.size - _LENGTH_FROM} or more")
    if base < 0 or delta < 0 or count < 0:
        raise KafkaFault(f"header: base offset {base}, last delta {delta}, {count} records")
    if position + size > file_size_bytes:
        rest = file_size_bytes - position
        raise KafkaFault(f"torn: a batch of {size} bytes, {rest} are left")
    return KafkaBatch(
        position, size, base, base + delta + 1, epoch, attributes, first_ms, last_ms, count
    )


def walk(disk: Disk, path: Path) -> Iterator[KafkaBatch]:
    """Every batch of a segment file, by its header.

    Raises:
        KafkaFault: what follows the last batch that was given is none.
        DiskError: the file cannot be read.
    """
    with opened(disk, path) as file:
        size, position, expected = file.size(), 0, -1
        while position < size:
            batch = batch_at(file.read_at(position, HEADER.size), position, size)
            if batch.base_offset < expected:
                raise KafkaFault(f"offset-back: batch {batch.base_offset} behind {expected}")
            yield batch
            expected = batch.next_offset
            position += batch.size_bytes


def record_times(batch: KafkaBatch, frame: bytes) -> list[list[int]] | None:
    """Offset and timestamp of each record; None where they cannot be read.

    Raises:
        KafkaFault: the records do not fill the batch.
    """
    data: bytes | None = frame[_RECORDS_AT:]
    if batch.codec == "gzip":
        data = _inflated(frame[_RECORDS_AT:])
    elif batch.codec != "none":
        data = None
    if data is None:
        return None
    found, at = [], 0
    for _ in range(batch.record_count):
        size, at = _varint(data, at)
        if size < 0 or at + size > len(data):
            raise KafkaFault(f"record: {size} bytes where {len(data) - at} are left")
        time_delta, delta_at = _varint(data, at + 1)
        offset_delta, _ = _varint(data, delta_at)
        time = batch.base_timestamp_ms + time_delta
        if batch.attributes & TIMES_OF_APPEND:
            time = batch.max_timestamp_ms
        found.append([batch.base_offset + offset_delta, time])
        at += size
    return found


def _inflated(data: bytes) -> bytes | None:
    """The content, None where it is larger than is sensible."""
    inflater = zlib.decompressobj(wbits=31)
    try:
        content = inflater.decompress(data, _INFLATED_MAX)
    except zlib.error as error:
        raise KafkaFault(f"gzip: {error}") from None
    return None if inflater.unconsumed_tail else content


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of variable length, and the place behind it."""
    value = shift = 0
    while True:
        if at >= len(data) or shift >= _VARINT_BITS_MAX:
            raise KafkaFault(f"record: no number ends at byte {at}")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), at
