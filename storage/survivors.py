"""What survives a compaction: three passes over batches, and the decision for each record.

``survey_origins`` reads headers: which batch is a producer's newest, and which transactions were
aborted or are still open. ``map_keys`` reads keys from the first dirty offset on: the offset of the
latest record of each. ``Sieve`` then decides batch by batch, from the log's first byte on.

Rules:

* A record goes where a later settled one of its key was mapped. Settled is what is outside
  transactions or in a committed one: an aborted value must not displace a committed one.
* A tombstone (value None) that is the latest of its key goes once ``timestamp + delete retention``
  has passed; all older records of its key go in the same pass, or went before.
* Records without a key stay; Kafka does not take them into a compacted topic.
* Control markers stay. So do aborted records, until a settled record of their key follows.
* Base offset, last offset, epoch and producer fields of a batch stay as they are. A batch that
  loses all its records becomes an empty one of format version 2 where it is the last of its file
  (so that no file ends early), or the newest of its producer (so that its sequence is known: by
  offset, not by sequence, hazard B-65). Otherwise it goes, and leaves a hole.

Memory: the key map, within its limits; besides it, some hundred bytes for each producer id and for
each transaction that did not commit. Source: Cleaner, CleanerConfig, PROTOCOL A23. Left out: files
(``storage.compaction``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from storage.batch import OFFSET_END, ControlType
from storage.codec import Codec, FrameFacts, OriginFacts, RecordFacts
from storage.config import CompactionPolicy
from storage.errors import CorruptBatch
from storage.reading import locate
from storage.segment import Segment

__all__ = [
    "Counts",
    "Kept",
    "KeyMap",
    "Origins",
    "Sieve",
    "checked_frames",
    "map_keys",
    "survey_origins",
]

READ_BYTES = 1 << 20
CheckedFrame = tuple[int, bytes, int, FrameFacts, OriginFacts]
"""Position in the file; a buffer and the position there; facts; origin."""

Kept = tuple[bytes, FrameFacts]
"""A frame that stays, and its facts."""


# Pass 1: headers -------------------------------------------------------------------------------


@define
class Origins:
    """What batch headers say about producers and transactions.

    Attributes:
        newest: base offset of the newest data batch of each producer id.
        unsettled: for each producer id, ``(first offset, end)`` of its transactions that were
            aborted or have no marker yet, rising.
        open_from: the lowest offset that an unfinished transaction has, 2^63 if there is none.
    """

    newest: dict[int, int] = field(factory=dict)
    unsettled: dict[int, list[tuple[int, int]]] = field(factory=dict)
    open_from: int = OFFSET_END

    def is_settled(self, producer_id: int, base_offset: int) -> bool:
        """Whether a transactional batch was committed."""
        ranges = self.unsettled.get(producer_id)
        if ranges is None:
            return True
        found = bisect_right(ranges, (base_offset, OFFSET_END)) - 1
        return found < 0 or base_offset >= ranges[found][1]


def survey_origins(segments: Sequence[Segment]) -> Origins:
    """Read the headers of all batches, CRC included.

    Raises:
        CorruptLog: a batch is damaged.
        DiskError: a file cannot be read.
    """
    origins = Origins()
    newest, unsettled = origins.newest, origins.unsettled
    begun: dict[int, int] = {}
    for segment in segments:
        for _, _, _, facts, origin in checked_frames(segment, segment.base_offset):
            producer_id, in_transaction, control = origin
            if control is not None:
                first = begun.pop(producer_id, None)
                if first is not None and control is ControlType.ABORT:
                    unsettled.setdefault(producer_id, []).append((first, facts[1]))
                continue
            if producer_id != -1:
                newest[producer_id] = facts[1]
            if in_transaction:
                begun.setdefault(producer_id, facts[1])
    for producer_id, first in begun.items():
        unsettled.setdefault(producer_id, []).append((first, OFFSET_END))
        origins.open_from = min(origins.open_from, first)
    return origins


def checked_frames(segment: Segment, offset: int) -> Iterator[CheckedFrame]:
    """The frames from the one that holds ``offset`` on.

    Raises:
        CorruptLog: a frame is damaged.
        DiskError: the file cannot be read.
    """
    check, origin = segment.codec.check, segment.codec.origin
    limit = segment.config.read_limit_bytes
    position, end, ahead = locate(segment, offset), segment.size_bytes, READ_BYTES
    while position < end:
        wanted = min(ahead, end - position)
        buffer = segment.file().read_at(position, wanted)
        at, count, view = 0, len(buffer), memoryview(buffer)
        try:
            while at < count:
                facts = check(view, at, count, limit)
                yield position + at, buffer, at, facts, origin(buffer, at)
                at += facts[0]
            if count < wanted:
                raise CorruptBatch("torn", f"{count} of {wanted} bytes at byte {position}")
        except CorruptBatch as error:
            if error.reason != "torn" or count < wanted or position + count >= end:
                raise segment.frame_damage(position + at, error) from error
        ahead = READ_BYTES if at else 4 * ahead
        position += at


# Pass 2: keys ----------------------------------------------------------------------------------


@define
class KeyMap:
    """Key to the offset of its latest settled record.

    Attributes:
        latest: the map.
        end_offset: records at or above it were not looked at.
        is_complete: otherwise the map was full before the end.
    """

    latest: dict[bytes, int] = field(factory=dict)
    end_offset: int = 0
    is_complete: bool = True
    _key_bytes: int = 0

    def add(self, facts: FrameFacts, records: list[RecordFacts], policy: CompactionPolicy) -> bool:
        """Map a batch; False, and nothing mapped, where it does not fit (the first always does)."""
        size_bytes, base, *_ = facts
        latest, key_bytes = self.latest, self._key_bytes
        may_fill = (
            len(latest) + len(records) > policy.keys_max
            or key_bytes + size_bytes > policy.key_bytes_max
        )
        if may_fill and latest and not self._fits(records, policy):
            return False
        for delta, key, _, _, _, _ in records:
            if key is not None:
                if key not in latest:
                    key_bytes += len(key)
                latest[key] = base + delta
        self._key_bytes = key_bytes
        return True

    def _fits(self, records: list[RecordFacts], policy: CompactionPolicy) -> bool:
        fresh = {key for _, key, *_ in records if key is not None and key not in self.latest}
        key_bytes = self._key_bytes + sum(map(len, fresh))
        return (
            len(self.latest) + len(fresh) <= policy.keys_max and key_bytes <= policy.key_bytes_max
        )


def map_keys(
    segments: Sequence[Segment], start_offset: int, origins: Origins, policy: CompactionPolicy
) -> KeyMap:
    """Map the keys of all settled records from ``start_offset`` on, as far as the limits allow.

    A batch is mapped whole or not at all, and at least one is, so that every pass gets somewhere.
    Raises as ``survey_origins`` does.
    """
    found = KeyMap(end_offset=start_offset)
    for segment in segments:
        if segment.next_offset <= start_offset:
            continue
        codec = segment.codec
        for position, buffer, at, facts, origin in checked_frames(segment, start_offset):
            base = facts[1]
            producer_id, in_transaction, control = origin
            is_settled = not in_transaction or origins.is_settled(producer_id, base)
            if control is None and is_settled:
                try:
                    records = codec.records(buffer, at)
                except CorruptBatch as error:
                    raise segment.frame_damage(position, error) from error
                if not found.add(facts, records, policy):
                    found.end_offset, found.is_complete = base, False
                    return found
            found.end_offset = facts[2]
    return found


# Pass 3: the decision --------------------------------------------------------------------------


@define
class Counts:
    """What a pass met. ``keyless`` records stay, the others are gone."""

    keyless: int = 0
    superseded: int = 0
    tombstones: int = 0
    batches_emptied: int = 0
    batches_dropped: int = 0

    def plus(self, other: Counts) -> Counts:
        """The sum of both."""
        return Counts(
            self.keyless + other.keyless,
            self.superseded + other.superseded,
            self.tombstones + other.tombstones,
            self.batches_emptied + other.batches_emptied,
            self.batches_dropped + other.batches_dropped,
        )


@define
class Sieve:
    """Decides what stays of each batch.

    Attributes:
        latest: from ``KeyMap``.
        end_offset: batches from here on stay as they are.
        expired_ms: a tombstone with this timestamp or an earlier one goes.
        counts: what it has met so far.
    """

    codec: Codec
    latest: Mapping[bytes, int]
    end_offset: int
    origins: Origins
    expired_ms: int
    counts: Counts = field(factory=Counts)

    def sift(
        self, buffer: bytes, at: int, facts: FrameFacts, origin: OriginFacts, *, is_last: bool
    ) -> Kept | None:
        """What stays of the frame at ``at``; ``facts`` itself is in it if nothing changes.

        Raises:
            CorruptBatch: the records do not fill the frame.
        """
        size, base, next_offset, epoch, _ = facts
        if base >= self.end_offset:
            return buffer[at : at + size], facts
        producer_id, in_transaction, control = origin
        if control is not None:
            return buffer[at : at + size], facts
        records = self.codec.records(buffer, at)
        may_expire = not in_transaction or self.origins.is_settled(producer_id, base)
        stay = self._staying(base, records, may_expire=may_expire)
        if not stay and not is_last and self.origins.newest.get(producer_id) != base:
            self.counts.batches_dropped += 1
            return None
        if len(stay) == len(records):
            return buffer[at : at + size], facts
        if not stay:
            self.counts.batches_emptied += 1
        frame, timestamp_ms = self.codec.retain(buffer, at, stay)
        return frame, (len(frame), base, next_offset, epoch, timestamp_ms)

    def _staying(
        self, base: int, records: list[RecordFacts], *, may_expire: bool
    ) -> list[RecordFacts]:
        newest_of, counts = self.latest.get, self.counts
        expired_ms = self.expired_ms if may_expire else -OFFSET_END - 1
        stay = []
        for record in records:
            delta, key, is_tombstone, timestamp_ms, _, _ = record
            if key is None:
                counts.keyless += 1
            elif base + delta < newest_of(key, -1):
                counts.superseded += 1
                continue
            elif is_tombstone and timestamp_ms <= expired_ms:
                counts.tombstones += 1
                continue
            stay.append(record)
        return stay
