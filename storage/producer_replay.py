"""Finding a log's producer state: the newest usable snapshot, then the headers behind it.

Where no snapshot is usable, the replay begins where the log first may name a producer. A snapshot
that is bad or behind the log's end goes, after the replay: damage to the log is met before anything
has changed. So does one before the log's first segment: of what lies between them it knows nothing,
and a producer's next batch would look like a gap.

Left out: verifying frames. A header that cannot be one refuses, as any read of it would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from storage.codec import ProducerFacts
from storage.config import LogRules
from storage.errors import CorruptBatch, CorruptCheckpoint, DiskError
from storage.producer_snapshots import SnapshotFiles
from storage.producer_state import ProducerState
from storage.reading import CHUNK_BYTES, locate
from storage.segment import Segment
from storage.state import LogState

__all__ = [
    "Recovered",
    "first_producer_offset",
    "iter_producers",
    "producers_before",
    "recover_producers",
]


@frozen
class Recovered:
    """Producer state as it was found.

    Attributes:
        state: of everything up to the log's end.
        first: no batch below this offset names a producer; None if none does at all.
        was_long: the replay began before the last segment, so that a new snapshot is due.
        removed: names of the snapshots that went.
        warnings: why those that were looked at did, in words.
    """

    state: ProducerState
    first: int | None
    was_long: bool
    removed: tuple[str, ...]
    warnings: tuple[str, ...]


def recover_producers(
    snapshots: SnapshotFiles, segments: Sequence[Segment], first: int, rules: LogRules
) -> Recovered:
    """The state up to the end of ``segments``; snapshots that are of no use are removed durably.

    Args:
        first: where to begin without a snapshot: no batch before it names a producer.

    Raises:
        CorruptLog: a header is damaged; nothing was removed.
        DiskError: a segment cannot be read, or a snapshot not removed.
    """
    log = range(segments[0].base_offset, segments[-1].next_offset + 1)
    strays = [offset for offset in snapshots.offsets if offset not in log]
    state, start, flaws = _replay(snapshots, segments, first, rules)
    used_snapshot = start is not None
    start = first if start is None else start
    removed = snapshots.drop([*flaws, *strays])
    if not used_snapshot and not state.entries:
        return Recovered(state, None, False, removed, tuple(flaws.values()))
    was_long = start < segments[-1].base_offset
    return Recovered(state, min(first, start), was_long, removed, tuple(flaws.values()))


def producers_before(
    snapshots: SnapshotFiles, segments: Sequence[Segment], first: int, rules: LogRules
) -> ProducerState:
    """The state at the end of ``segments``, the log's first ones; changes nothing.

    Arguments and errors as for ``recover_producers``.
    """
    return _replay(snapshots, segments, first, rules)[0]


def _replay(
    snapshots: SnapshotFiles, segments: Sequence[Segment], first: int, rules: LogRules
) -> tuple[ProducerState, int | None, dict[int, str]]:
    """The state, the offset of the snapshot that it began with, and what is wrong with others."""
    log = range(segments[0].base_offset, segments[-1].next_offset + 1)
    state, used = ProducerState(rules=rules), None
    flaws: dict[int, str] = {}
    for offset in reversed([offset for offset in snapshots.offsets if offset in log]):
        try:
            state = ProducerState(snapshots.load(offset), rules=rules)
        except (CorruptCheckpoint, DiskError) as error:
            flaws[offset] = f"producers replayed from the log: {error}"
            continue
        used = offset
        break
    start = first if used is None else used
    for segment in segments:
        if segment.next_offset > start:
            for facts in iter_producers(segment, start):
                if not rules.judge_appends_only:
                    state.check(facts)
                state.update(facts)
            if not segment.is_active:
                segment.release()
    return state, used, flaws


def first_producer_offset(state: LogState, log_start: int) -> int:
    """An offset below which no batch names a producer, as far as a saved state can tell.

    ``LogState.producers_from`` speaks for what lies below the boundary, nothing for the rest;
    without a boundary it may be any batch, from the first one at ``log_start`` on.
    """
    if state.boundary is None:
        return log_start
    end = state.boundary.end_offset
    return end if state.producers_from is None else min(state.producers_from, end)


def iter_producers(segment: Segment, offset: int) -> Iterator[ProducerFacts]:
    """The facts of each batch with a producer, from the one that holds ``offset`` on.

    Reads headers; of large batches little else.

    Raises:
        CorruptLog: a header is damaged.
    """
    codec, end = segment.codec, segment.size_bytes
    hop, facts_of, sign_at = codec.hop, codec.producer_facts, codec.producer_at
    position = locate(segment, offset)
    while position < end:
        buffer = segment.file().read_at(position, min(CHUNK_BYTES, end - position))
        is_tail = position + len(buffer) == end
        last = len(buffer) - (codec.hop_bytes if is_tail else codec.producer_bytes)
        at = 0
        try:
            if last < 0:
                raise CorruptBatch("torn", f"{len(buffer)} bytes at byte {position}")
            while at <= last:
                size = hop(buffer, at)[0]
                if position + at + size > end:
                    raise CorruptBatch("torn", f"frame of {size} bytes passes the segment's end")
                if buffer[at + sign_at] < 128:
                    facts = facts_of(buffer, at)
                    if facts is not None:
                        yield facts
                at += size
        except CorruptBatch as error:
            raise segment.frame_damage(position + at, error) from error
        position += at
