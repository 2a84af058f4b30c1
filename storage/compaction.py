"""Compaction of a log: the latest record of each key stays, file by file, in explicit steps.

A pass covers the closed segments from the log's first one on that end at or below the limit that
the caller passes (the high watermark, or the last stable offset below it: KAFKA-13194, hazard B-34)
and lie before the durable boundary's own segment. ``storage.survivors`` decides what stays.

Steps, each a call of ``Compaction.step``; nothing happens between the calls:

1. ``survey``: read all headers.
2. ``map``: read the keys from ``cleaned_offset`` on. The pass ends where the key map is full.
3. ``write``: copy what stays of one group of segments to a ``.cleaned`` segment, sync it and walk
   it once more. Batches that do not change are copied as they are. A group is as many neighbours
   as fit into one segment by size, index and offset span (hazard B-64). A single segment in which
   nothing would change is left alone.
4. ``swap``: put the output in place of the group. Back to 3 for the next group, from the oldest to
   the newest: a tombstone never goes before the values that it deletes.
5. ``note``: raise ``cleaned_offset``.

A crash between or inside steps leaves each group old or new. A step that raised may be tried again
unless the log is offline. If the log was cut, trimmed or compacted by others in the meantime, the
pass ends: what it has mapped may be gone. Source: LogCleaner, Cleaner, PROTOCOL A23.

Left out: when to compact (``plan_compaction`` says how much is dirty), several logs, throttling.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from storage.codec import FrameFacts
from storage.config import INT32_MAX, CompactionPolicy, LogConfig
from storage.errors import CorruptBatch, StorageError
from storage.index import TimeIndex
from storage.log_cleaning import CleanableLog
from storage.segment import Segment
from storage.state import SegmentSeal
from storage.survivors import (
    Counts,
    Kept,
    KeyMap,
    Origins,
    Sieve,
    checked_frames,
    map_keys,
    survey_origins,
)

__all__ = [
    "Compaction",
    "CompactionPlan",
    "CompactionResult",
    "compact",
    "count_covered",
    "group_segments",
    "plan_compaction",
]

WRITE_BYTES: Final = 1 << 20


@frozen
class CompactionPlan:
    """What a pass would cover; nothing was read for it.

    Attributes:
        segments: how many of the oldest segments.
        start_offset, end_offset: of these segments.
        dirty_offset: where the pass looks for new keys, ``cleaned_offset`` within the range.
        clean_bytes, dirty_bytes: sizes of the segments that end at or below ``dirty_offset``, and
            of the others. Kafka compacts where half is dirty (``min.cleanable.dirty.ratio``).
    """

    segments: int
    start_offset: int
    dirty_offset: int
    end_offset: int
    clean_bytes: int
    dirty_bytes: int


@frozen(kw_only=True)
class CompactionResult:
    """What a pass has done so far.

    Attributes:
        plan: what it set out to cover.
        end_offset: the records below it were compacted; below ``plan.end_offset`` where the key
            map was full, or where the pass has not got so far.
        cleaned_offset: where the next pass begins to look for new keys.
        is_complete: everything that was planned is done.
        is_abandoned: the log changed under the pass, which ended.
        segments_before, segments_after, bytes_before, bytes_after: of the groups that were swapped.
        counts: of records and batches, in all that was written so far.
    """

    plan: CompactionPlan
    end_offset: int
    cleaned_offset: int
    is_complete: bool = False
    is_abandoned: bool = False
    segments_before: int = 0
    segments_after: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    counts: Counts


def count_covered(segments: Sequence[SegmentSeal], boundary_base: int, limit_offset: int) -> int:
    """How many of the oldest ``segments`` a pass covers; the last one is active. Pure."""
    end = min(boundary_base, limit_offset)
    return sum(1 for segment in segments[:-1] if segment.next_offset <= end)


def group_segments(segments: Sequence[SegmentSeal], config: LogConfig) -> list[int]:
    """How many neighbours become one segment, group by group. Pure.

    A group's sizes sum up to at most ``segment_max_bytes`` and its offsets span at most 2^31, and
    its indexes have room, whatever goes; a single segment is always a group.
    """
    groups: list[int] = []
    size = first = 0
    for segment in segments:
        entries = (size + segment.size_bytes) // config.index_interval_bytes + 2
        if (
            groups
            and size + segment.size_bytes <= config.segment_max_bytes
            and segment.next_offset - 1 - first <= INT32_MAX
            and entries * TimeIndex.entry.size <= config.index_max_bytes
        ):
            groups[-1] += 1
            size += segment.size_bytes
        else:
            groups.append(1)
            size, first = segment.size_bytes, segment.base_offset
    return groups


def plan_compaction(log: CleanableLog, limit_offset: int) -> CompactionPlan:
    """What a pass up to ``limit_offset`` would cover."""
    if limit_offset < 0:
        raise ValueError(f"limit_offset is {limit_offset}, allowed is 0 or more")
    facts = [segment.seal() for segment in log.segments]
    count = count_covered(facts, log.boundary.segment_base, limit_offset)
    covered = facts[:count]
    start = facts[0].base_offset
    end = covered[-1].next_offset if covered else start
    dirty = min(max(log.cleaned_offset, start), end)
    clean_bytes = sum(s.size_bytes for s in covered if s.next_offset <= dirty)
    dirty_bytes = sum(s.size_bytes for s in covered if s.next_offset > dirty)
    return CompactionPlan(count, start, dirty, end, clean_bytes, dirty_bytes)


def compact(
    log: CleanableLog, limit_offset: int, *, now_ms: int, policy: CompactionPolicy | None = None
) -> CompactionResult:
    """One whole pass; arguments and errors as for ``Compaction`` and its ``step``."""
    compaction = Compaction(log, limit_offset, now_ms=now_ms, policy=policy)
    while compaction.step():
        pass
    return compaction.result


class Compaction:
    """One pass over a log, step by step; see the module.

    Attributes:
        next_step: ``survey``, ``map``, ``write``, ``swap`` or ``note``; ``done`` at the end.
        result: what was done so far.
    """

    def __init__(
        self,
        log: CleanableLog,
        limit_offset: int,
        *,
        now_ms: int,
        policy: CompactionPolicy | None = None,
    ) -> None:
        """Plan a pass; nothing is read or written.

        Args:
            limit_offset: the high watermark, or the last stable offset: no segment that ends above
                it is touched, and no record from there on displaces another. 0 or more.
            now_ms: the wall clock, by which tombstones expire.
        """
        self._log = log
        self._policy = policy or CompactionPolicy()
        self._expired_ms = now_ms - self._policy.delete_retention_ms
        plan = plan_compaction(log, limit_offset)
        self._segments = log.segments[: plan.segments]
        self._layout_version = log.layout_version
        self._origins = Origins()
        self._keys = KeyMap(end_offset=plan.dirty_offset)
        self._groups: list[tuple[Segment, ...]] = []
        self._output: Segment | None = None
        self._written = Counts()
        self.next_step = "survey" if plan.segments else "done"
        self.result = CompactionResult(
            plan=plan,
            end_offset=plan.start_offset,
            cleaned_offset=log.cleaned_offset,
            is_complete=not plan.segments,
            counts=Counts(),
        )

    def step(self) -> bool:
        """Perform ``next_step``; False, and nothing done, where there is none.

        Raises:
            CorruptLog: a batch is damaged. Groups that were swapped before stay so.
            CorruptBatch: an output does not read back as it was written; it was dropped.
            DiskError: after ``survey``, ``map``, ``write`` and ``note`` the step may be tried
                again, after ``swap`` the log is offline; ``log.failure`` tells.
            LogOffline, LogClosed: the log takes no writes.
        """
        if self.next_step == "done":
            return False
        self._log.check_writable()
        if self._log.layout_version != self._layout_version:
            self._abandon()
            return False
        {
            "survey": self._survey,
            "map": self._map,
            "write": self._write,
            "swap": self._swap,
            "note": self._note,
        }[self.next_step]()
        return True

    def _abandon(self) -> None:
        """End the pass: keys it has mapped may be gone, segments it has read be others."""
        self._log.remove_outputs()
        self.next_step = "done"
        self.result = evolve(self.result, is_abandoned=True)

    def _survey(self) -> None:
        # An output that an earlier pass left must be gone before a swap counts (storage.swaps).
        self._log.remove_outputs()
        self._origins = survey_origins(self._segments)
        self.next_step = "map"

    def _map(self) -> None:
        start = self.result.plan.dirty_offset
        self._keys = map_keys(self._segments, start, self._origins, self._policy)
        end = self._keys.end_offset
        reached = [segment for segment in self._segments if segment.base_offset < end]
        sizes = group_segments([segment.seal() for segment in reached], self._log.config)
        for size in sizes:
            self._groups.append(tuple(reached[:size]))
            del reached[:size]
        self._choose()

    def _choose(self) -> None:
        self.next_step = "write" if self._groups else "note"

    # Writing -----------------------------------------------------------------------------------

    def _write(self) -> None:
        group = self._groups[0]
        if len(group) == 1 and not self._changes(group[0]):
            return
        end = group[-1].next_offset
        output = self._log.create_output(group[0].base_offset, end)
        sieve = self._sieve()
        try:
            for segment in group:
                _copy(segment, output, sieve, holds_last=segment is group[-1])
            output.finish()
            output.flush()
            _verify(output, end)
        except StorageError:
            output.close()
            self._discard()
            raise
        output.close()
        self._output = output
        self._written = sieve.counts
        self.next_step = "swap"

    def _changes(self, segment: Segment) -> bool:
        """Whether anything in a segment would change; what it has is counted where nothing does."""
        sieve = self._sieve()
        for facts, kept in _sifted(segment, sieve, holds_last=True):
            if kept is None or kept[1] is not facts:
                return True
        self._note_counts(sieve.counts)
        return False

    def _sieve(self) -> Sieve:
        return Sieve(
            self._log.codec,
            self._keys.latest,
            self._keys.end_offset,
            self._origins,
            self._expired_ms,
        )

    def _discard(self) -> None:
        """Give the space back at once: a full disk may be why the step failed."""
        try:
            self._log.remove_outputs()
        except StorageError:
            return

    def _swap(self) -> None:
        group, output = self._groups[0], self._output
        assert output is not None, "a swap follows a write"
        self._log.replace_segments(group, output)
        self._layout_version = self._log.layout_version
        self._output = None
        result = self.result
        self.result = evolve(
            result,
            segments_before=result.segments_before + len(group),
            segments_after=result.segments_after + 1,
            bytes_before=result.bytes_before + sum(segment.size_bytes for segment in group),
            bytes_after=result.bytes_after + output.size_bytes,
        )
        self._note_counts(self._written)

    def _note_counts(self, counts: Counts) -> None:
        """One more group is done."""
        last = self._groups.pop(0)[-1]
        self.result = evolve(
            self.result,
            end_offset=min(last.next_offset, self._keys.end_offset),
            counts=self.result.counts.plus(counts),
        )
        self._choose()

    def _note(self) -> None:
        end = self._keys.end_offset
        # Keys of an unfinished transaction were not mapped: the next pass looks at it again.
        self._log.raise_cleaned_offset(min(end, self._origins.open_from))
        self.next_step = "done"
        self.result = evolve(
            self.result,
            end_offset=end,
            cleaned_offset=self._log.cleaned_offset,
            is_complete=self._keys.is_complete,
        )


def _sifted(
    segment: Segment, sieve: Sieve, *, holds_last: bool
) -> Iterator[tuple[FrameFacts, Kept | None]]:
    """Each frame of a segment with what stays of it."""
    last = segment.last_position if holds_last else -1
    for position, buffer, at, facts, origin in checked_frames(segment, segment.base_offset):
        try:
            kept = sieve.sift(buffer, at, facts, origin, is_last=position == last)
        except CorruptBatch as error:
            raise segment.frame_damage(position, error) from error
        yield facts, kept


def _copy(segment: Segment, output: Segment, sieve: Sieve, *, holds_last: bool) -> None:
    """Append what stays of ``segment`` to ``output``, in writes of about ``WRITE_BYTES``."""
    frames: list[bytes] = []
    facts: list[FrameFacts] = []
    size = 0
    for _, kept in _sifted(segment, sieve, holds_last=holds_last):
        if kept is None:
            continue
        frames.append(kept[0])
        facts.append(kept[1])
        size += len(kept[0])
        if size >= WRITE_BYTES:
            output.append_frames(memoryview(b"".join(frames)), facts)
            frames, facts, size = [], [], 0
    if frames:
        output.append_frames(memoryview(b"".join(frames)), facts)


def _verify(output: Segment, end_offset: int) -> None:
    """Walk an output as opening would: the originals go on its account."""
    scan = output.scan()
    seen = (scan.fault, scan.end_position, scan.next_offset)
    if seen != (None, output.size_bytes, end_offset):
        # No CorruptLog: it is not the log that is damaged.
        detail = f"{output.log_path.name} has {seen}, written were {output.size_bytes} bytes"
        raise CorruptBatch("output", f"{detail} up to offset {end_offset}")
