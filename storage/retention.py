"""Which segments retention deletes: a pure decision over the facts of all segments.

Rules:

* Oldest first, up to the first segment that stays; the active one always stays.
* A segment may go only if it ends at or below the limit that the caller passes (the high
  watermark: KAFKA-5634, hazard B-33) and lies before the durable boundary's own segment.
* It goes for its age where its largest timestamp is more than ``retention_ms`` old. A segment
  without timestamps has no age: it never goes by time, and neither does what lies behind it.
* It goes for its size where what is left behind it still has ``retention_bytes`` or more.
* It goes where it lies wholly below the log start offset.

Any one reason is enough, and each segment is looked at with those before it gone. Source:
UnifiedLog.deleteOldSegments, PROTOCOL A6 and A23. Left out: deleting (``storage.log_cleaning``),
and rolling an active segment that has expired, which the caller may do first.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from storage.state import SegmentSeal

__all__ = ["RetentionLimits", "count_deletable"]


@frozen(kw_only=True)
class RetentionLimits:
    """What a retention run goes by.

    Attributes:
        limit_offset: no segment that ends above it goes; the high watermark.
        boundary_base: base of the segment that holds the durable boundary; it stays.
        log_start_offset: segments wholly below it go.
        retention_bytes: how much of the log is kept at least, None for no limit. Index files do
            not count.
        retention_ms: how old a segment may become, None for no limit.
        now_ms: the wall clock; needed with ``retention_ms``.
    """

    limit_offset: int
    boundary_base: int
    log_start_offset: int
    retention_bytes: int | None = None
    retention_ms: int | None = None
    now_ms: int | None = None


def count_deletable(segments: Sequence[SegmentSeal], limits: RetentionLimits) -> int:
    """How many of the oldest ``segments`` go; the last one is active. Pure."""
    left_bytes = sum(segment.size_bytes for segment in segments)
    end = min(limits.limit_offset, limits.boundary_base)
    count = 0
    for segment in segments[:-1]:
        left_bytes -= segment.size_bytes
        if segment.next_offset > end or not _may_go(segment, left_bytes, limits):
            break
        count += 1
    return count


def _may_go(segment: SegmentSeal, left_bytes: int, limits: RetentionLimits) -> bool:
    if segment.next_offset <= limits.log_start_offset:
        return True
    if limits.retention_bytes is not None and left_bytes >= limits.retention_bytes:
        return True
    if limits.retention_ms is None or segment.max_timestamp_ms < 0:
        return False
    assert limits.now_ms is not None, "an age needs a clock"
    return limits.now_ms - segment.max_timestamp_ms > limits.retention_ms
