"""Finding and reading batches inside one segment.

A look-up is one bisect of the offset index and header hops over at most one index interval; a range
does that at both ends and reads nothing in between. An index entry that does not lead to its batch
has the segment rebuild its indexes, once, before the look-up is repeated.

Left out: which segment holds an offset, and what a reader may see (``storage.partition_log``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

from storage.batch import RecordBatch
from storage.codec import HopFacts
from storage.errors import CorruptBatch
from storage.segment import Segment

__all__ = ["FileSlice", "frame_at", "iter_batches", "iter_frames", "locate", "read", "slice_range"]

CHUNK_BYTES = 1 << 16
HINTS_MAX = 8
_T = TypeVar("_T")


class FileSlice(NamedTuple):
    """Whole frames in one segment file, by place: what a zero-copy response needs.

    ``fileno`` is for ``os.sendfile`` and is None on a disk without descriptors. The slice is a
    reference: after a truncation the bytes behind it may differ or be gone. ``creation`` is the
    segment's: whoever keeps a slice keeps it too, or compaction could change what it names.
    """

    segment_base: int
    position: int
    size_bytes: int
    fileno: int | None
    creation: int = 0


def locate(segment: Segment, offset: int) -> int:
    """Position of the first batch that ends behind ``offset``; the segment's size if none.

    Raises:
        CorruptLog: the log file is damaged there.
    """
    if offset >= segment.next_offset:
        return segment.size_bytes
    hint = segment.hints.get(offset)
    if hint is not None:
        return hint
    return _with_index(segment, lambda: _hop_to_offset(segment, offset))


def slice_range(
    segment: Segment, offset: int, max_bytes: int, end_offset: int, *, at_least_one: bool
) -> FileSlice:
    """Whole frames from the one that holds ``offset`` on, as a place in the file.

    They end below ``end_offset`` and fit into ``max_bytes``; with ``at_least_one`` the first frame
    comes even if it is larger. The next range of a sequential reader begins without a look-up, as
    long as no more than ``HINTS_MAX`` ranges were read by others since.
    """
    start = locate(segment, offset)
    limit = start + max_bytes
    end, next_offset = segment.size_bytes, segment.next_offset
    if end > limit:
        end, next_offset = _with_index(
            segment, lambda: _hop_to_limit(segment, start, limit, at_least_one=at_least_one)
        )
    if next_offset > end_offset:
        end, next_offset = locate(segment, end_offset), end_offset
    hints = segment.hints
    if len(hints) >= HINTS_MAX and next_offset not in hints:
        del hints[next(iter(hints))]
    hints[next_offset] = end
    size_bytes = max(end - start, 0)
    fileno = segment.file().fileno()
    return FileSlice(segment.base_offset, start, size_bytes, fileno, segment.creation)


def read(segment: Segment, position: int, size_bytes: int) -> bytes:
    """Bytes of the log file. Raises ``CorruptBatch`` where the file is shorter."""
    data = segment.file().read_at(position, size_bytes)
    if len(data) != size_bytes:
        raise CorruptBatch("torn", f"{len(data)} of {size_bytes} bytes at byte {position}")
    return data


def frame_at(segment: Segment, offset: int) -> HopFacts | None:
    """Header facts of the first batch that ends behind ``offset``, or None."""
    position = locate(segment, offset)
    if position >= segment.size_bytes:
        return None
    head = read(segment, position, segment.codec.hop_bytes)
    return segment.codec.hop(head, 0)


def iter_batches(segment: Segment, offset: int) -> Iterator[RecordBatch]:
    """Decoded batches from the one that holds ``offset``, or the next one, on.

    Raises:
        CorruptLog: a frame is damaged.
    """
    decode, limit = segment.codec.decode, segment.config.read_limit_bytes
    for position, frame in iter_frames(segment, offset):
        try:
            batch = decode(frame, limit)
        except CorruptBatch as error:
            raise segment.frame_damage(position, error) from error
        yield batch


def iter_frames(segment: Segment, offset: int) -> Iterator[tuple[int, bytes]]:
    """Positions and bytes of the frames from the one that holds ``offset`` on, unverified."""
    position = locate(segment, offset)
    hop, need = segment.codec.hop, segment.codec.hop_bytes
    while position < segment.size_bytes:
        chunk = segment.file().read_at(position, min(CHUNK_BYTES, segment.size_bytes - position))
        at = 0
        try:
            while at + need <= len(chunk):
                size = hop(chunk, at)[0]
                if at + size > len(chunk):
                    break
                yield position + at, chunk[at : at + size]
                at += size
            if at == 0:
                size = hop(chunk, 0)[0] if len(chunk) >= need else need
                if position + size > segment.size_bytes:
                    raise CorruptBatch("torn", f"frame of {size} bytes passes the segment's end")
                yield position, read(segment, position, size)
                at = size
        except CorruptBatch as error:
            raise segment.frame_damage(position + at, error) from error
        position += at


def _with_index(segment: Segment, look_up: Callable[[], _T]) -> _T:
    """Run a look-up; if the index misled it, rebuild the index and run it once more."""
    try:
        return look_up()
    except CorruptBatch:
        segment.rebuild_indexes()
    try:
        return look_up()
    except CorruptBatch as error:
        raise segment.frame_damage(segment.size_bytes, error) from error


def _hop_to_offset(segment: Segment, offset: int) -> int:
    entry = segment.index.floor_entry(offset)
    position = entry[1] if entry else 0
    expected = entry[0] if entry else segment.base_offset
    gaps_end = expected if entry else segment.gaps_end
    hop, need, end = segment.codec.hop, segment.codec.hop_bytes, segment.size_bytes
    ahead = segment.config.index_interval_bytes + need
    file = segment.file()
    while position < end:
        buffer = file.read_at(position, min(ahead, CHUNK_BYTES, end - position))
        last, at = len(buffer) - need, 0
        if last < 0:
            raise CorruptBatch("torn", f"{len(buffer)} bytes at byte {position}")
        while at <= last:
            size, base, next_offset, _ = hop(buffer, at)
            if base != expected and not expected < base <= gaps_end:
                raise CorruptBatch("offset", f"batch {base} where {expected} must follow")
            if next_offset > offset:
                return position + at
            expected, gaps_end = next_offset, segment.gaps_end
            at += size
        position += at
    return end


def _hop_to_limit(
    segment: Segment, start: int, limit: int, *, at_least_one: bool
) -> tuple[int, int]:
    """The last frame border at or before ``limit``, not before ``start``, and the offset there."""
    position = max(segment.index.floor_by_position(limit), start)
    expected = -1
    hop, need, end = segment.codec.hop, segment.codec.hop_bytes, segment.size_bytes
    ahead = segment.config.index_interval_bytes + need
    file = segment.file()
    while position < end:
        buffer = file.read_at(position, min(ahead, CHUNK_BYTES, end - position))
        last, at = len(buffer) - need, 0
        if last < 0:
            raise CorruptBatch("torn", f"{len(buffer)} bytes at byte {position}")
        while at <= last:
            size, base, next_offset, _ = hop(buffer, at)
            if base != expected >= 0 and not expected < base <= segment.gaps_end:
                raise CorruptBatch("offset", f"batch {base} where {expected} must follow")
            border = position + at
            if border + size > limit:
                if border == start and at_least_one:
                    return border + size, next_offset
                return border, base
            expected = next_offset
            at += size
        position += at
    return end, segment.next_offset
