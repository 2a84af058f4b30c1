"""The lines of a listing of batches: one a batch, its records below it where asked for.

Left out: finding the batches (``storage.inspection.segments``).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final

from storage.inspection.escaping import quoted, safe, utc
from storage.inspection.views import (
    BatchRow,
    ChangedRow,
    DamageRow,
    FileRow,
    GapRow,
    RecordRow,
    Row,
    Shown,
)
from storage.inspection.words import Cells, Line, counted, offset_range, table

__all__ = ["batch_lines"]

_BATCH_TITLES: Final = (
    "position",
    "size",
    "offsets",
    "epoch",
    "records",
    "max timestamp",
    "producer",
    "flags",
)
_BATCH_SIDES: Final = ">><>><<<"


def batch_lines(rows: Iterator[Row]) -> Iterator[str]:
    yield from table(_BATCH_TITLES, _BATCH_SIDES, chain.from_iterable(map(_row_lines, rows)))


def _row_lines(row: Row) -> Iterator[Line]:
    match row:
        case BatchRow():
            yield _batch_cells(row)
            for record in row.records or ():
                yield _record(record)
        case GapRow():
            yield f"          no batch has {offset_range(row.from_offset, row.next_offset)}"
        case DamageRow():
            size = f"{counted(row.size_bytes, 'byte')}: " if row.size_bytes else ""
            word = "UNFINISHED" if row.is_unfinished else "DAMAGED"
            yield f"{row.position:>8}  {word}: {size}{safe(row.reason)}"
        case ChangedRow():
            yield f"          changed while it was read: {safe(row.reason)}"
        case FileRow():
            yield f"{row.file}:"


def _batch_cells(row: BatchRow) -> Cells:
    producer = "-"
    if row.producer_id != -1:
        producer = f"{row.producer_id} epoch {row.producer_epoch}"
        if row.base_sequence != -1:
            producer += f" seq {row.base_sequence}"
    return (
        str(row.position),
        str(row.size_bytes),
        offset_range(row.base_offset, row.next_offset),
        str(row.leader_epoch),
        str(row.record_count),
        utc(row.max_timestamp_ms),
        producer,
        ", ".join(_flags(row)) or "-",
    )


def _flags(row: BatchRow) -> Iterator[str]:
    if row.transactional_id is not None:
        yield f"transaction {_shown(row.transactional_id)}"
    if row.control is not None:
        yield row.control
    elif row.record_count == 0:
        yield "emptied"
    if row.flags & ~7:
        yield f"unknown flags {row.flags:#x}"
    if row.format_version != 2:
        yield f"version {row.format_version}"


def _record(row: RecordRow) -> str:
    text = (
        f"          {row.offset}  {utc(row.timestamp_ms)}  {_shown(row.key)} = {_shown(row.value)}"
    )
    if row.header_count:
        shown = [f"{_shown(header.key)}: {_shown(header.value)}" for header in row.headers]
        if row.header_count > len(shown):
            shown.append(f"and {row.header_count - len(shown)} more")
        text += f"  {{{', '.join(shown)}}}"
    return text


def _shown(value: Shown | None) -> str:
    if value is None:
        return "null"
    text = quoted(value.data)
    return text if value.is_whole else f"{text}... ({value.size_bytes} bytes)"
