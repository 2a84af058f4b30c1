"""Batches as bytes, with their fields marked.

``hex_views`` gives a list of plain data::

    {"segment": file, "position": N, "size_bytes": N, "base_offset": N, "format": "MKB1"|"Kafka",
     "bytes": text,                 hex digits, at most 1,024 bytes from the batch's beginning
     "is_whole": bool,
     "fields": [{"name", "start", "end", "value": text, "meaning": text}, ...]}

``start`` and ``end`` count bytes from the batch's beginning; ``end`` may lie behind what is shown.
Fields rise, and leave no byte of the batch out.

Left out: keys and values; a record is one field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sim.xray.kafka_frames import CONTROL, HEADER, TIMES_OF_APPEND, TRANSACTIONAL, batch_at
from storage.errors import CorruptBatch, DiskError
from storage.inspection.escaping import utc
from storage.mkb1 import MKB1
from storage.mkb1_header import FLAGS, FRAME, HEADER_V1, HEADER_V2, peek_header
from storage.read_only import ReadOnlyDisk, opened

__all__ = ["SHOWN_BYTES", "hex_views"]

SHOWN_BYTES: Final = 1_024
_RECORDS_MAX: Final = 64
_READ_MAX: Final = 1 << 20

_MKB1: Final = (
    ("magic", 4, "tells a frame from zeros"),
    ("payload length", 4, "bytes that follow the checksum"),
    ("CRC-32", 4, "of all bytes behind it, offset and epoch included"),
    ("format version", 1, "1 or 2"),
    ("base offset", 8, "offset of the first record"),
    ("leader epoch", 4, "of the leader that wrote it"),
    ("producer id", 8, "of an idempotent producer, -1 none"),
    ("producer epoch", 4, "fences older processes of that producer, -1 none"),
    ("base sequence", 4, "tells a retry from a new batch, -1 none"),
    ("flags", 1, "1 transactional, 2 commit, 4 abort"),
    ("last offset delta", 4, "the last offset, counted from the base"),
    ("id length", 2, "bytes of the transactional id"),
    ("record count", 4, "records that are here"),
    ("max timestamp ms", 8, "the latest of the records, so that no search must decode them"),
)
_KAFKA: Final = (
    ("base offset", 8, "offset of the first record; the leader stamps it, outside the checksum"),
    ("batch length", 4, "bytes that follow"),
    ("leader epoch", 4, "of the leader that wrote it; outside the checksum, too"),
    ("magic", 1, "version of the format"),
    ("CRC-32C", 4, "of all bytes behind it; not checked here"),
    ("attributes", 2, "codec, kind of timestamps, transactional, control"),
    ("last offset delta", 4, "the last offset, counted from the base; compaction keeps it"),
    ("base timestamp ms", 8, "records hold what is to be added"),
    ("max timestamp ms", 8, "the latest of the records"),
    ("producer id", 8, "of an idempotent producer, -1 none"),
    ("producer epoch", 2, "fences older processes of that producer, -1 none"),
    ("base sequence", 4, "tells a retry from a new batch, -1 none"),
    ("record count", 4, "records that are here"),
)

_Fields = list[dict[str, Any]]


def hex_views(
    disk: ReadOnlyDisk, directory: Path, data: dict[str, Any], at: int | None, count: int
) -> list[dict[str, Any]]:
    """Batches of an X-ray in hex: that of an offset, or the first and last ones of its segments.

    Args:
        at: the offset; None for no special one.
        count: how many at most.
    """
    found = []
    for segment, row in _chosen(data["segments"], at, count):
        try:
            with opened(disk, directory / segment["file"]) as file:
                frame = file.read_at(row[0], min(row[1], _READ_MAX))
            found.append(_view(segment, row, frame))
        except (CorruptBatch, DiskError) as error:
            data_notice = f"{segment['file']}: byte {row[0]} cannot be shown in hex: {error}"
            found.append(_unread(segment, row, data_notice))
    return found


def _chosen(
    segments: list[dict[str, Any]], at: int | None, count: int
) -> list[tuple[dict[str, Any], list[Any]]]:
    if at is not None:
        for segment in segments:
            for row in segment["batches"]:
                if row[2] <= at < row[3]:
                    return [(segment, row)]
        return []
    found: list[tuple[dict[str, Any], list[Any]]] = []
    # The newest segments come first where not all find room.
    for segment in reversed(segments):
        rows = segment["batches"]
        picked = rows[:1] + rows[1:][-1:]
        if len(found) + len(picked) > count:
            break
        found = [(segment, row) for row in picked] + found
    return found


def _unread(segment: dict[str, Any], row: list[Any], reason: str) -> dict[str, Any]:
    view = _view_of(segment, row, b"", [])
    view["fields"] = [{"name": "unread", "start": 0, "end": row[1], "value": "", "meaning": reason}]
    return view


def _view(segment: dict[str, Any], row: list[Any], frame: bytes) -> dict[str, Any]:
    is_kafka = segment["format"] == "Kafka"
    fields = _kafka_fields(row, frame) if is_kafka else _own_fields(row, frame)
    return _view_of(segment, row, frame[:SHOWN_BYTES], fields)


def _view_of(
    segment: dict[str, Any], row: list[Any], frame: bytes, fields: _Fields
) -> dict[str, Any]:
    return {
        "segment": segment["file"],
        "position": row[0],
        "size_bytes": row[1],
        "base_offset": row[2],
        "format": segment["format"],
        "bytes": frame.hex(),
        "is_whole": len(frame) == row[1],
        "fields": fields,
    }


def _field(name: str, start: int, end: int, value: object, meaning: str) -> dict[str, Any]:
    return {"name": name, "start": start, "end": end, "value": str(value), "meaning": meaning}


def _headers(layout: tuple[tuple[str, int, str], ...], values: list[object]) -> tuple[_Fields, int]:
    fields, at = [], 0
    for (name, size, meaning), value in zip(layout, values, strict=False):
        fields.append(_field(name, at, at + size, value, meaning))
        at += size
    return fields, at


def _own_fields(row: list[Any], frame: bytes) -> _Fields:
    header = peek_header(frame)
    layout = HEADER_V2 if header.version == 2 else HEADER_V1
    _, length, checksum = FRAME.unpack_from(frame)
    values: list[object] = ["MKB1", length, f"{checksum:08x}"]
    values += layout.unpack_from(frame, FRAME.size)
    values[9] = f"{values[9]} ({_flags(header.flags)})"
    if header.version == 2:
        values[13] = f"{values[13]} ({utc(int(str(values[13])))})"
    fields, at = _headers(_MKB1, values)
    if header.id_bytes:
        end = at + header.id_bytes
        name = header.transactional_id.decode(errors="replace")
        fields.append(_field("transactional id", at, end, name, "UTF-8"))
        at = end
    return fields + _own_records(row, frame, at)


def _own_records(row: list[Any], frame: bytes, at: int) -> _Fields:
    if len(frame) < row[1]:
        return [_field("records", at, row[1], row[6], "the batch is too large to be shown whole")]
    fields: _Fields = []
    records = MKB1.records(frame, 0)
    for number, (delta, _, is_tombstone, time, start, end) in enumerate(records[:_RECORDS_MAX]):
        meaning = f"offset delta {delta}, {utc(time)}" + (", no value" if is_tombstone else "")
        fields.append(_field(f"record {number}", start, end, row[2] + delta, meaning))
        at = end
    if at < row[1]:
        rest = len(records) - len(fields)
        fields.append(_field("more records", at, row[1], rest, "one behind the other"))
    return fields


def _flags(flags: int) -> str:
    known = FLAGS.get(flags)
    if known is None:
        return "makes no sense"
    is_transactional, control = known
    if control is not None:
        return f"transactional, {control.value} marker"
    return "transactional" if is_transactional else "plain"


def _kafka_fields(row: list[Any], frame: bytes) -> _Fields:
    batch = batch_at(frame[: HEADER.size], row[0], row[0] + row[1])
    values: list[object] = list(HEADER.unpack_from(frame))
    values[4] = f"{values[4]:08x}"
    values[5] = f"{values[5]} ({_attributes(batch.attributes, batch.codec)})"
    for number in (7, 8):
        values[number] = f"{values[number]} ({utc(int(str(values[number])))})"
    fields, at = _headers(_KAFKA, values)
    if at < row[1]:
        meaning = "one behind the other" if batch.codec == "none" else f"compressed: {batch.codec}"
        fields.append(_field("records", at, row[1], row[6], meaning))
    return fields


def _attributes(attributes: int, codec: str) -> str:
    words = [codec if codec != "none" else "not compressed"]
    words.append("append time" if attributes & TIMES_OF_APPEND else "create time")
    if attributes & TRANSACTIONAL:
        words.append("transactional")
    if attributes & CONTROL:
        words.append("control")
    return ", ".join(words)
