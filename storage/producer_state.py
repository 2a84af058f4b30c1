"""Which batches a log has of which idempotent producer: what tells a retry from a new batch.

Per producer id: its epoch, the time of its last batch or marker, and its last five batches. The
rules are those of Kafka's ProducerAppendInfo and ProducerStateEntry (PROTOCOL A18):

* ``check`` judges a batch that a client or a transaction coordinator appends. Nothing else is
  judged: the leader did that already, and a follower's log may begin in the middle of a producer's
  sequences (KAFKA-6003, hazard B-51).
* ``update`` takes in every batch that the log stores, whatever it says. The last one stored wins,
  also with a lower epoch: a leader that had forgotten the producer accepted it, and a follower has
  to end up with the leader's state.
* A retry is looked for before a sequence is called out of order (hazard B-52).
* A marker's time counts for expiry as a batch's does (KAFKA-9144, hazard B-53). What carries no
  time does not change it, and a producer without any time is not forgotten.

Sequences go from 0 to 2^31-1 and on to 0; a batch may straddle the wrap.

Left out: files (``storage.producer_snapshots``), and transactions: which are open, and that a
producer with an open one is not forgotten.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from storage.codec import ProducerFacts
from storage.config import INT32_MAX, LogRules
from storage.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence

__all__ = ["BATCHES_KEPT", "Duplicate", "ProducerBatch", "ProducerEntry", "ProducerState"]

BATCHES_KEPT: Final = 5
"""Kafka's NUM_BATCHES_TO_RETAIN: as many as a client may have in flight."""


class ProducerBatch(NamedTuple):
    """One batch of a producer, as it stands in the log.

    Attributes:
        first_sequence, last_sequence: inclusive; the last is the smaller one behind a wrap.
        base_offset, last_offset: inclusive.
        timestamp_ms: the batch's largest, -1 if unknown.
    """

    first_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    timestamp_ms: int


class ProducerEntry(NamedTuple):
    """What is known of one producer. A value: every batch makes a new one.

    Attributes:
        producer_epoch: 0 to 2^31-1.
        timestamp_ms: of the last batch or marker that had one, -1 if none did.
        batches: the last five of this epoch, oldest first; empty where only a marker is known.
    """

    producer_epoch: int
    timestamp_ms: int
    batches: tuple[ProducerBatch, ...]

    def __deepcopy__(self, memo: object) -> ProducerEntry:
        return self

    @property
    def next_sequence(self) -> int:
        """The sequence with which the producer's next batch begins."""
        if not self.batches:
            return 0
        return (self.batches[-1].last_sequence + 1) & INT32_MAX


class Duplicate(NamedTuple):
    """Where the log has the batch that a client sent again: ``next_offset`` is exclusive."""

    base_offset: int
    next_offset: int
    timestamp_ms: int


class ProducerState:
    """The producers of one log, in memory."""

    __slots__ = ("_entries", "_rules")

    def __init__(
        self,
        entries: Mapping[int, ProducerEntry] | None = None,
        *,
        rules: LogRules | None = None,
    ) -> None:
        self._entries: dict[int, ProducerEntry] = dict(entries or {})
        self._rules = rules or LogRules()

    @property
    def entries(self) -> Mapping[int, ProducerEntry]:
        """Producer id to entry; a view that cannot be written through."""
        return MappingProxyType(self._entries)

    def check(self, facts: ProducerFacts) -> Duplicate | None:
        """Judge a batch that is about to be appended, by what is known of its producer.

        Returns:
            None if it is to be stored, or where one of the producer's last five batches, of the
            same epoch and exactly these sequences, is stored.

        Raises:
            InvalidRecord: it has a producer id but no epoch, or data without a sequence.
            InvalidProducerEpoch: its epoch is below the producer's.
            OutOfOrderSequence: it is not the next batch, and none of the last five.
        """
        first, epoch = facts.base_sequence, facts.producer_epoch
        if epoch < 0 or (first < 0 and not facts.is_control):
            raise InvalidRecord(
                f"producer {facts.producer_id} has producer_epoch {epoch} and base_sequence "
                f"{first}, allowed is 0..{INT32_MAX}"
            )
        entry = self._entries.get(facts.producer_id)
        if entry is None:
            return None
        if epoch < entry.producer_epoch:
            raise InvalidProducerEpoch(facts.producer_id, epoch, entry.producer_epoch)
        if facts.is_control:
            return None
        expected = 0
        if epoch == entry.producer_epoch:
            last = (first + facts.last_offset_delta) & INT32_MAX
            known = entry.batches if self._rules.duplicates_before_order else ()
            for batch in known:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return Duplicate(batch.base_offset, batch.last_offset + 1, batch.timestamp_ms)
            expected = entry.next_sequence
        if first != expected:
            raise OutOfOrderSequence(facts.producer_id, epoch, first, expected)
        return None

    def update(self, facts: ProducerFacts) -> None:
        """Take in a batch that the log has stored: appended, replicated or recovered, unjudged.

        A batch without a producer epoch names no producer; one without a sequence counts as a
        marker does, for epoch and time alone.
        """
        producer_id, epoch, first, base_offset, delta, timestamp_ms, is_control = facts
        if epoch < 0:
            return
        entry = self._entries.get(producer_id)
        batches: tuple[ProducerBatch, ...] = ()
        known_ms = -1
        if entry is not None:
            known_ms = entry.timestamp_ms
            if entry.producer_epoch == epoch:
                batches = entry.batches
        if timestamp_ms < 0:
            timestamp_ms = -1
        elif not is_control or self._rules.marker_times_count:
            known_ms = timestamp_ms
        if first >= 0:
            last = (first + delta) & INT32_MAX
            batch = ProducerBatch(first, last, base_offset, base_offset + delta, timestamp_ms)
            batches = (*batches[1 - BATCHES_KEPT :], batch)
        self._entries[producer_id] = ProducerEntry(epoch, known_ms, batches)

    def expire(self, now_ms: int, expiry_ms: int) -> tuple[int, ...]:
        """Forget the producers whose last time is ``expiry_ms`` or more before ``now_ms``.

        A forgotten producer's next batch is accepted with any sequence, so a late retry is stored
        a second time. Returns the ids, ascending.
        """
        latest_ms = now_ms - expiry_ms
        gone = [
            producer_id
            for producer_id, entry in self._entries.items()
            if 0 <= entry.timestamp_ms <= latest_ms
        ]
        for producer_id in gone:
            del self._entries[producer_id]
        return tuple(sorted(gone))
