"""What a follower may append: the checks on a run of frames, and how much goes with one write.

Pure functions over the frames' facts; nothing is written or noted here.

Left out: what is stored, and when a segment rolls (``storage.partition_log``).
"""

from __future__ import annotations

from storage.batch import OFFSET_END
from storage.codec import Codec, FrameFacts
from storage.config import INT32_MAX
from storage.errors import CorruptBatch, StaleLeaderEpoch, UnexpectedOffset
from storage.segment import Segment

__all__ = ["check_frames", "group_frames"]


def check_frames(
    view: memoryview,
    codec: Codec,
    max_batch_bytes: int,
    *,
    log_end: int,
    latest_epoch: int,
    gaps_end: int,
) -> tuple[list[FrameFacts], list[int]]:
    """The facts of every frame, and the positions of those that name a producer.

    Args:
        log_end, latest_epoch: what the first frame has to follow.
        gaps_end: offsets below this may be missing.

    Raises:
        UnexpectedOffset, StaleLeaderEpoch, CorruptBatch: of the first frame that cannot follow.
    """
    check, producer_at, end = codec.check, codec.producer_at, len(view)
    expected, latest = log_end, latest_epoch
    frames: list[FrameFacts] = []
    producers: list[int] = []
    at = 0
    while at < end:
        facts = check(view, at, end, max_batch_bytes)
        size, base, next_offset, epoch, _ = facts
        if base != expected and not expected < base <= min(gaps_end, expected + INT32_MAX):
            why = "" if base < expected else f" (gaps are declared up to {gaps_end})"
            raise UnexpectedOffset(expected, base, why)
        if next_offset >= OFFSET_END:
            raise UnexpectedOffset(expected, base, ": the batch would pass 2^63-1")
        if epoch < latest:
            raise StaleLeaderEpoch(epoch, latest)
        frames.append(facts)
        if view[at + producer_at] < 128:
            producers.append(at)
        expected, latest = next_offset, epoch
        at += size
    if not frames:
        raise CorruptBatch("torn", "no frame in 0 bytes")
    return frames, producers


def group_frames(
    active: Segment, frames: list[FrameFacts], number: int, now_ms: int | None
) -> tuple[int, int]:
    """How far frames from ``number`` on go into the active segment with one write.

    Returns the number of the first that does not, and the size in bytes of those that do.
    """
    size = frames[number][0]
    end = number + 1
    room = active.size_limit_bytes - active.size_bytes
    ages_by_clock = not active.size_bytes and frames[number][4] < 0 and active.is_aged(now_ms)
    if ages_by_clock or not active.has_index_room(room):
        return end, size
    expires_ms = active.expires_ms
    if not active.size_bytes and frames[number][4] >= 0:
        expires_ms = frames[number][4] + active.config.segment_max_age_ms
    span_end = active.base_offset + INT32_MAX + 1
    while end < len(frames):
        frame_bytes, _, next_offset, _, timestamp_ms = frames[end]
        if size + frame_bytes > room or timestamp_ms > expires_ms or next_offset > span_end:
            break
        size += frame_bytes
        end += 1
    return end, size
