"""A partition log on plain lists: every rule as it is written, nothing found by a short cut.

Positions, indexes and look-ups are sums and scans over the frames. Frames come from the naive MKB1
encoder, epochs from the naive cache. What a crash may do is left to the test that uses it.
"""

from __future__ import annotations

from attrs import define, evolve, field

from storage import LogConfig, LogRecord, RecordBatch
from tests.storage import naive_epochs, naive_mkb1
from tests.storage.batches import emptied

Entry = tuple[int, int]


class RefusedTruncation(Exception):
    """The target lies inside a batch."""


@define
class Stored:
    """An assigned batch and its frame."""

    batch: RecordBatch
    frame: bytes

    @classmethod
    def of(cls, batch: RecordBatch) -> Stored:
        return cls(batch, naive_mkb1.encode(naive_mkb1.from_batch(batch)))

    @property
    def base(self) -> int:
        assert self.batch.base_offset is not None
        return self.batch.base_offset

    @property
    def end(self) -> int:
        return self.base + self.batch.last_offset_delta + 1

    @property
    def timestamp_ms(self) -> int:
        if self.batch.records:
            return max(record.timestamp_ms for record in self.batch.records)
        return self.batch.marker_timestamp_ms

    def records(self) -> list[LogRecord]:
        pairs = zip(self.batch.offset_deltas, self.batch.records, strict=True)
        epoch = self.batch.leader_epoch
        return [LogRecord(self.base + delta, *record, epoch) for delta, record in pairs]


@define
class NaiveSegment:
    base: int
    stored: list[Stored] = field(factory=list)
    created_ms: int | None = None

    @property
    def content(self) -> bytes:
        return b"".join(stored.frame for stored in self.stored)

    @property
    def end(self) -> int:
        return self.stored[-1].end if self.stored else self.base

    def entries(self, interval: int, *, is_closed: bool) -> tuple[list[Entry], list[Entry]]:
        """Offset index and time index, as (offset, position) and (timestamp, offset)."""
        offsets: list[Entry] = []
        times: list[Entry] = []
        position, largest = 0, -1
        for stored in self.stored:
            if not offsets or position - offsets[-1][1] >= interval:
                offsets.append((stored.base, position))
                if largest > (times[-1][0] if times else -1):
                    times.append((largest, stored.base))
            position += len(stored.frame)
            largest = max(largest, stored.timestamp_ms)
        if is_closed and largest > (times[-1][0] if times else -1):
            times.append((largest, self.end))
        return offsets, times


@define
class NaiveLog:
    """``leader_epoch``, ``start``, ``gaps_end`` and ``epochs`` are the log's own of that name."""

    config: LogConfig
    segments: list[NaiveSegment] = field(factory=lambda: [NaiveSegment(0)])
    start: int = 0
    end: int = 0
    gaps_end: int = 0
    leader_epoch: int = 0
    epochs: naive_epochs.Entries = field(factory=list)

    # Changing it -------------------------------------------------------------------------------

    def store(self, batch: RecordBatch, now_ms: int | None) -> None:
        """Add an assigned batch, which begins at the end or behind a declared gap."""
        stored = Stored.of(batch)
        active = self.segments[-1]
        first = active.stored[0].timestamp_ms if active.stored else -1
        if now_ms is not None and active.created_ms is None and first < 0:
            active.created_ms = now_ms
        if self.must_roll(stored, now_ms):
            self.roll(now_ms)
            active = self.segments[-1]
        self.epochs = naive_epochs.assign(self.epochs, batch.leader_epoch, stored.base)
        active.stored.append(stored)
        if active.stored[0].timestamp_ms >= 0:
            active.created_ms = None
        self.end = stored.end

    def must_roll(self, stored: Stored, now_ms: int | None) -> bool:
        """Size, age by timestamps or by the clock, room in the indexes, span of offsets."""
        active, config = self.segments[-1], self.config
        if not active.stored:
            return False
        if len(active.content) + len(stored.frame) > config.segment_max_bytes:
            return True
        offsets, times = active.entries(config.index_interval_bytes, is_closed=False)
        # The time index keeps room for the entry that closes it.
        fullest = max(8 * (len(offsets) + 1), 12 * (len(times) + 2))
        if fullest > config.index_max_bytes or stored.end - 1 - active.base > 2**31 - 1:
            return True
        first = active.stored[0].timestamp_ms
        if first >= 0:
            return stored.timestamp_ms - first > config.segment_max_age_ms
        if now_ms is None or active.created_ms is None:
            return False
        return now_ms - active.created_ms > config.segment_max_age_ms

    def roll(self, now_ms: int | None) -> None:
        if self.segments[-1].stored:
            self.segments.append(NaiveSegment(self.end, created_ms=now_ms))

    def become_leader(self, epoch: int) -> None:
        self.epochs = naive_epochs.assign(self.epochs, epoch, self.end)
        self.leader_epoch = epoch

    def become_follower(self) -> None:
        self.epochs = naive_epochs.truncate_from_end(self.epochs, self.end)

    def truncate_to(self, target: int) -> None:
        if target < self.end and target < self.segments[0].base:
            self.restart_at(target)
            return
        if any(stored.base < target < stored.end for stored in self.stored()):
            raise RefusedTruncation
        target = min(target, self.end)
        self.start = min(self.start, target)
        self.epochs = naive_epochs.truncate_from_end(self.epochs, target)
        if target == self.end:
            return
        self.segments = [segment for segment in self.segments if segment.base <= target]
        last = self.segments[-1]
        last.stored = [stored for stored in last.stored if stored.base < target]
        if last.end < target:
            self._fill_hole(last, target)
        self.end = target

    def _fill_hole(self, last: NaiveSegment, target: int) -> None:
        """Empty batches, one an epoch: nothing else says where the log and its epochs end."""
        epoch = max([0, *(s.batch.leader_epoch for s in self.stored())])
        first = max(last.end, self.start)
        if first < target and naive_epochs.epoch_for_offset(self.epochs, first) < 0:
            self.epochs = [(epoch, first), *(e for e in self.epochs if e[0] > epoch)]
        starts = [start for _, start in self.epochs if last.end < start < target]
        for end in [*starts, target]:
            epoch = max(epoch, naive_epochs.epoch_for_offset(self.epochs, last.end))
            last.stored.append(Stored.of(emptied(last.end, end - last.end, epoch)))

    def restart_at(self, offset: int) -> None:
        self.segments = [NaiveSegment(offset)]
        self.start = self.end = offset
        self.epochs = []

    def raise_start(self, offset: int) -> None:
        if offset != self.start:
            self.start = offset
            self.epochs = naive_epochs.truncate_from_start(self.epochs, offset)

    def reopened(self) -> None:
        """What memory alone knew is gone."""
        for segment in self.segments:
            segment.created_ms = None

    def copy(self) -> NaiveLog:
        segments = [evolve(segment, stored=list(segment.stored)) for segment in self.segments]
        return evolve(self, segments=segments, epochs=list(self.epochs))

    # Asking it ---------------------------------------------------------------------------------

    def stored(self) -> list[Stored]:
        return [stored for segment in self.segments for stored in segment.stored]

    def borders(self) -> list[int]:
        """Offsets at which the log may be cut: ends of batches, and everything in holes."""
        inside = {
            offset for stored in self.stored() for offset in range(stored.base + 1, stored.end)
        }
        return [o for o in range(self.segments[0].base, self.end + 1) if o not in inside]

    def fetch(self, offset: int, max_records: int, end_offset: int | None) -> list[LogRecord]:
        end = self.end if end_offset is None else min(end_offset, self.end)
        records = [record for stored in self.stored() for record in stored.records()]
        return [record for record in records if offset <= record.offset < end][:max_records]

    def read_batches(
        self, offset: int, max_bytes: int, end_offset: int | None
    ) -> list[RecordBatch]:
        found = self._range(self.stored(), offset, max_bytes, end_offset)
        return [stored.batch for stored in found]

    def read_range(
        self, offset: int, max_bytes: int, end_offset: int | None, *, at_least_one: bool
    ) -> bytes:
        """Frames of the one segment that holds ``offset``."""
        holder = [segment for segment in self.segments if segment.base <= offset][-1]
        found = self._range(holder.stored, offset, max_bytes, end_offset)
        data = b"".join(stored.frame for stored in found)
        return data if at_least_one or len(data) <= max_bytes else b""

    def _range(
        self, stored: list[Stored], offset: int, max_bytes: int, end_offset: int | None
    ) -> list[Stored]:
        end = self.end if end_offset is None else min(end_offset, self.end)
        found: list[Stored] = []
        size = 0
        for candidate in stored:
            if candidate.end <= offset:
                continue
            size += len(candidate.frame)
            if candidate.end > end or (found and size > max_bytes):
                break
            found.append(candidate)
        return found

    def offset_for_timestamp(self, timestamp_ms: int) -> LogRecord | None:
        for record in self.fetch(self.start, 1 << 30, None):
            if record.timestamp_ms >= timestamp_ms:
                return record
        return None
