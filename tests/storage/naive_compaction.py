"""What compaction and retention must leave, said as plainly as possible: lists, dicts, whole logs.

Nothing here is shared with the code under test but the record batch as a value. Everything is
decided from all batches at once and without the cleaned offset: that a pass which maps only the
dirty part comes to the same is part of what the twins prove.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import evolve

from storage.batch import ControlType, RecordBatch
from storage.state import SegmentSeal

View = dict[bytes, tuple[int, bytes]]


def base_of(batch: RecordBatch) -> int:
    assert batch.base_offset is not None
    return batch.base_offset


def unsettled(batches: Sequence[RecordBatch], end: int) -> set[int]:
    """Base offsets of the transactional batches that no commit marker below ``end`` follows."""
    found = set()
    for number, batch in enumerate(batches):
        if batch.control is not None or batch.transactional_id is None:
            continue
        markers = [
            later.control
            for later in batches[number:]
            if later.control is not None
            and later.producer_id == batch.producer_id
            and base_of(later) < end
        ]
        if not markers or markers[0] is ControlType.ABORT:
            found.add(base_of(batch))
    return found


def view_of(batches: Sequence[RecordBatch], *, committed_only: bool) -> View:
    """Key to offset and value of its latest record, as a reader from the start ends up with."""
    hidden = unsettled(batches, 2**63) if committed_only else set()
    view: View = {}
    for batch in batches:
        if base_of(batch) in hidden:
            continue
        for delta, (key, value, *_) in zip(batch.offset_deltas, batch.records, strict=True):
            if key is None:
                continue
            view.pop(key, None)
            if value is not None:
                view[key] = (base_of(batch) + delta, value)
    return view


def compacted(
    batches: Sequence[RecordBatch],
    *,
    end: int,
    range_end: int,
    file_ends: Collection[int],
    expired_ms: int,
) -> list[RecordBatch]:
    """The batches that are left of a log.

    Args:
        end: only records below it are compacted.
        range_end: markers and producers are looked at up to here.
        file_ends: where the segments end that come out.
        expired_ms: tombstones with this timestamp or an earlier one go.
    """
    open_or_aborted = unsettled(batches, range_end)
    latest: dict[bytes, int] = {}
    newest: dict[int, int] = {}
    for batch in batches:
        base = base_of(batch)
        if batch.control is not None or base >= range_end:
            continue
        if batch.producer_id != -1:
            newest[batch.producer_id] = base
        if base in open_or_aborted or base >= end:
            continue
        for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
            if record.key is not None:
                latest[record.key] = base + delta
    left = []
    for batch in batches:
        base = base_of(batch)
        if batch.control is not None or base >= end:
            left.append(batch)
            continue
        stay = []
        for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
            is_latest = record.key is None or base + delta >= latest.get(record.key, -1)
            is_expired = (
                record.key is not None
                and record.value is None
                and record.timestamp_ms <= expired_ms
                and base not in open_or_aborted
            )
            if is_latest and not is_expired:
                stay.append((delta, record))
        if stay:
            deltas, records = zip(*stay, strict=True)
            left.append(evolve(batch, records=tuple(records), offset_deltas=tuple(deltas)))
        elif batch.next_offset in file_ends or newest.get(batch.producer_id) == base:
            left.append(evolve(batch, records=(), offset_deltas=(), format_version=2))
    return left


def deletable(
    segments: Sequence[SegmentSeal],
    *,
    limit_offset: int,
    boundary_base: int,
    log_start_offset: int,
    retention_bytes: int | None,
    retention_ms: int | None,
    now_ms: int,
) -> int:
    """How many segments retention deletes: one by one, each looked at as the oldest there is."""
    left = list(segments)
    while len(left) > 1:
        oldest, rest = left[0], left[1:]
        if oldest.next_offset > limit_offset or oldest.next_offset > boundary_base:
            break
        reasons = [oldest.next_offset <= log_start_offset]
        if retention_bytes is not None:
            reasons.append(sum(segment.size_bytes for segment in rest) >= retention_bytes)
        if retention_ms is not None and oldest.max_timestamp_ms != -1:
            reasons.append(oldest.max_timestamp_ms + retention_ms < now_ms)
        if not any(reasons):
            break
        left = rest
    return len(segments) - len(left)
