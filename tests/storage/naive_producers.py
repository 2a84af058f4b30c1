"""Producer state by the letter: everything is worked out anew from the list of all batches.

Sequences are counted one by one, the last five are the end of a list, and the epoch is that of the
last batch. The sentences quoted are those of PROTOCOL A18.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from storage import RecordBatch
from storage.codec import ProducerFacts
from storage.producer_state import ProducerBatch, ProducerEntry

SEQUENCES = 2**31


def facts_of(batch: RecordBatch) -> ProducerFacts | None:
    """What a stored batch says of its producer; None without one."""
    if batch.producer_id < 0:
        return None
    assert batch.base_offset is not None
    is_control = batch.control is not None
    return ProducerFacts(
        batch.producer_id,
        batch.producer_epoch,
        -1 if is_control else batch.base_sequence,
        batch.base_offset,
        batch.last_offset_delta,
        -1 if batch.format_version == 1 else batch.max_timestamp_ms,
        is_control,
    )


def sequences(facts: ProducerFacts) -> list[int]:
    """Every sequence of a batch, in order."""
    counted = [facts.base_sequence]
    for _ in range(facts.last_offset_delta):
        counted.append(0 if counted[-1] == SEQUENCES - 1 else counted[-1] + 1)
    return counted


@define
class NaiveProducers:
    """All batches with a producer id, in the log's order."""

    history: list[ProducerFacts] = field(factory=list)

    @classmethod
    def replayed(cls, batches: Iterable[RecordBatch]) -> NaiveProducers:
        found = [facts_of(batch) for batch in batches]
        return cls([facts for facts in found if facts is not None])

    def store(self, facts: ProducerFacts) -> None:
        self.history.append(facts)

    def of(self, producer_id: int) -> list[ProducerFacts]:
        """The producer's batches and markers; what has no epoch names no producer."""
        return [f for f in self.history if f.producer_id == producer_id and f.producer_epoch >= 0]

    def known(self, producer_id: int) -> list[ProducerFacts]:
        """Those since its epoch last changed."""
        own = self.of(producer_id)
        since = len(own)
        while since and own[since - 1].producer_epoch == own[-1].producer_epoch:
            since -= 1
        return own[since:]

    def last_five(self, producer_id: int) -> list[ProducerFacts]:
        return [f for f in self.known(producer_id) if f.base_sequence >= 0][-5:]

    def check(self, facts: ProducerFacts) -> object:
        """None for "store it", the stored (base, end) of a duplicate, or the error's name."""
        if not self.of(facts.producer_id):
            return None  # "No state => any sequence accepted."
        epoch = self.of(facts.producer_id)[-1].producer_epoch
        if facts.producer_epoch < epoch:
            return "InvalidProducerEpoch"  # "Lower epoch => INVALID_PRODUCER_EPOCH."
        if facts.is_control:
            return None
        first = facts.base_sequence
        if facts.producer_epoch > epoch:
            # "Higher epoch => first sequence 0 (unless no state)."
            return None if first == 0 else "OutOfOrderSequence"
        five = self.last_five(facts.producer_id)
        for stored in five:
            # "Exact (firstSeq,lastSeq) match with one of five => duplicate: success with stored
            # offsets."
            ends = [(f.base_sequence, sequences(f)[-1]) for f in (stored, facts)]
            if ends[0] == ends[1]:
                return stored.base_offset, stored.base_offset + stored.last_offset_delta + 1
        if not five:
            return (
                None if first == 0 else "OutOfOrderSequence"
            )  # "Only a marker known => must be 0"
        # "Same epoch: next = last+1, wrap 2^31-1 -> 0, else OUT_OF_ORDER_SEQUENCE."
        last = sequences(five[-1])[-1]
        follows = first == 0 if last == SEQUENCES - 1 else first == last + 1
        return None if follows else "OutOfOrderSequence"

    def entry(self, producer_id: int) -> ProducerEntry:
        own = self.of(producer_id)
        times = [facts.timestamp_ms for facts in own if facts.timestamp_ms >= 0]
        batches = tuple(
            ProducerBatch(
                f.base_sequence,
                sequences(f)[-1],
                f.base_offset,
                f.base_offset + f.last_offset_delta,
                max(f.timestamp_ms, -1),
            )
            for f in self.last_five(producer_id)
        )
        return ProducerEntry(own[-1].producer_epoch, times[-1] if times else -1, batches)

    def entries(self) -> dict[int, ProducerEntry]:
        """What the log must know."""
        ids = {facts.producer_id for facts in self.history if facts.producer_epoch >= 0}
        return {producer_id: self.entry(producer_id) for producer_id in ids}

    def expire(self, now_ms: int, expiry_ms: int) -> tuple[int, ...]:
        """Forget everything about producers that were idle for so long."""
        gone = tuple(
            sorted(
                producer_id
                for producer_id, entry in self.entries().items()
                if entry.timestamp_ms != -1 and now_ms - entry.timestamp_ms >= expiry_ms
            )
        )
        self.history = [facts for facts in self.history if facts.producer_id not in gone]
        return gone
