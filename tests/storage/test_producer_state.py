"""Producer state against a twin that works everything out anew, and against PROTOCOL A18.

The comparison is exhaustive: every sequence of up to four small batches is stored, and after each
of them every small batch is judged; longer sequences come from a smaller set, to fill the five
places. The tests after it quote the sentence that they prove.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from storage.codec import ProducerFacts
from storage.errors import InvalidProducerEpoch, InvalidRecord, OutOfOrderSequence, StorageError
from storage.producer_state import (
    BATCHES_KEPT,
    Duplicate,
    ProducerBatch,
    ProducerEntry,
    ProducerState,
)
from tests.storage.naive_producers import NaiveProducers

LAST = 2**31 - 1
"""The largest sequence."""
DAY_MS = 24 * 3_600_000


def data(
    first: int,
    count: int = 1,
    *,
    epoch: int = 0,
    at: int = 0,
    time: int = -1,
    producer: int = 7,
) -> ProducerFacts:
    return ProducerFacts(producer, epoch, first, at, count - 1, time, False)


def marker(*, epoch: int = 0, at: int = 0, time: int = -1, producer: int = 7) -> ProducerFacts:
    return ProducerFacts(producer, epoch, -1, at, 0, time, True)


def stored(*batches: ProducerFacts) -> ProducerState:
    """The state after these, laid one behind the other from offset 100 on."""
    state, offset = ProducerState(), 100
    for facts in batches:
        state.update(facts._replace(base_offset=offset))
        offset += facts.last_offset_delta + 1
    return state


def outcome(state: ProducerState, facts: ProducerFacts) -> object:
    """What ``check`` says, as the twin says it."""
    try:
        duplicate = state.check(facts)
    except StorageError as error:
        return type(error).__name__
    return None if duplicate is None else (duplicate.base_offset, duplicate.next_offset)


# The twin --------------------------------------------------------------------------------------

SMALL = [
    data(first, count, epoch=epoch, time=time)
    for epoch in (0, 1)
    for first, count, time in ((0, 1, 5), (0, 2, -1), (1, 1, 3), (2, 2, -7), (LAST, 1, 4))
]
SMALL += [data(LAST, 2, time=9), data(LAST - 1, 3, epoch=1), marker(time=8), marker(epoch=1)]
ASKED = [*SMALL, data(3), data(1, 2), data(1, 2, epoch=1), data(0, epoch=2), data(1, epoch=2)]
"""Two epochs with an extra higher one, starts about 0 and about the wrap, one to three records."""


def compare_everything(
    alphabet: list[ProducerFacts],
    length: int,
    asked: list[ProducerFacts],
    accept: Callable[[object], bool] = lambda said: True,
) -> int:
    """Store every sequence of up to ``length`` batches, judge ``asked`` after each; how many."""
    compared = 0
    stack = [(NaiveProducers(), ProducerState(), 0)]
    while stack:
        twin, state, offset = stack.pop()
        assert dict(state.entries) == twin.entries()
        for facts in asked:
            assert outcome(state, facts) == twin.check(facts), (twin.history, facts)
            compared += 1
        if len(twin.history) == length:
            continue
        for facts in alphabet:
            placed = facts._replace(base_offset=offset)
            if not accept(twin.check(placed)):
                continue
            longer, after = NaiveProducers([*twin.history, placed]), ProducerState(state.entries)
            after.update(placed)
            stack.append((longer, after, offset + facts.last_offset_delta + 1))
    return compared


def test_every_short_sequence_of_unjudged_batches_agrees_with_the_twin() -> None:
    """What is stored may be anything, in any order: it is "checked on client appends only"."""
    compared = compare_everything(SMALL, 3, ASKED)
    assert compared == len(ASKED) * sum(len(SMALL) ** length for length in range(4))


def test_every_sequence_of_one_epoch_that_fills_the_five_places_agrees_with_the_twin() -> None:
    alphabet = [data(0, time=1), data(LAST, 2), data(1)]
    compared = compare_everything(alphabet, 7, [*alphabet, data(2), data(0, 2), data(0, epoch=1)])
    assert compared == 6 * sum(3**length for length in range(8))


def test_every_longer_sequence_of_accepted_batches_agrees_with_the_twin() -> None:
    """What clients achieve by themselves, up to the batch that is older than five."""
    alphabet = [data(first) for first in range(7)] + [data(0, epoch=1), marker(), marker(epoch=1)]
    asked = [*alphabet, data(7), data(0, 2), data(1, epoch=1)]
    compared = compare_everything(alphabet, 7, asked, lambda said: said is None)
    assert compared > 30_000


# PROTOCOL A18, sentence by sentence ------------------------------------------------------------


def test_epoch_and_last_five_batches_are_kept_per_producer_id() -> None:
    """Per (partition, producerId): epoch + last 5 batches (firstSeq, lastSeq, lastOffset,
    timestamp)."""
    batches = [data(2 * number, 2, time=1_000 + number) for number in range(7)]
    state = stored(*batches, data(40, epoch=3, producer=8, time=5))
    assert BATCHES_KEPT == 5
    kept = tuple(
        ProducerBatch(2 * n, 2 * n + 1, 100 + 2 * n, 101 + 2 * n, 1_000 + n) for n in range(2, 7)
    )
    assert dict(state.entries) == {
        7: ProducerEntry(0, 1_006, kept),
        8: ProducerEntry(3, 5, (ProducerBatch(40, 40, 114, 114, 5),)),
    }


def test_replicated_and_recovered_batches_are_never_refused() -> None:
    """Checked on client appends only, never on replicated or recovered data (KAFKA-6003)."""
    state = stored(data(500), data(7), data(7), data(3, epoch=2), data(9, epoch=1), marker(epoch=0))
    assert state.entries[7] == ProducerEntry(0, -1, ())


def test_recovery_takes_a_lower_epoch_as_it_comes() -> None:
    """B-53: "recovery later rejects the non-monotone epoch and log load fails"; it must not."""
    state = stored(data(0, epoch=5), data(3, epoch=4), data(4, epoch=4))
    assert state.entries[7].producer_epoch == 4
    assert outcome(state, data(5, epoch=4)) is None


def test_lower_epoch_is_an_invalid_producer_epoch() -> None:
    """Lower epoch => INVALID_PRODUCER_EPOCH."""
    state = stored(data(0, epoch=4))
    for facts in (data(1, epoch=3), data(0, epoch=0), marker(epoch=3)):
        with pytest.raises(InvalidProducerEpoch) as caught:
            state.check(facts)
        seen = (caught.value.producer_id, caught.value.seen, caught.value.current)
        assert seen == (7, facts.producer_epoch, 4)
    assert caught.value.code == "INVALID_PRODUCER_EPOCH"
    assert str(caught.value) == "producer 7: epoch 3, the log knows epoch 4"


def test_higher_epoch_begins_at_sequence_0() -> None:
    """Higher epoch => first sequence 0 (unless no state)."""
    state = stored(data(5))
    assert state.check(data(0, epoch=1)) is None
    for first in (1, 6, LAST):
        with pytest.raises(OutOfOrderSequence) as caught:
            state.check(data(first, epoch=1))
        assert (caught.value.producer_epoch, caught.value.expected) == (1, 0)


def test_a_batch_of_an_older_epoch_is_no_duplicate_of_the_new_one() -> None:
    state = stored(data(0), data(0, epoch=1))
    assert outcome(state, data(0)) == "InvalidProducerEpoch"
    assert outcome(stored(data(0)), data(0, epoch=1)) is None


def test_same_epoch_goes_on_behind_the_last_sequence() -> None:
    """Same epoch: next = last+1, [...] else OUT_OF_ORDER_SEQUENCE."""
    state = stored(data(10, 3))
    assert state.check(data(13, 5)) is None
    with pytest.raises(OutOfOrderSequence) as caught:
        state.check(data(14))
    error = caught.value
    assert (error.producer_id, error.producer_epoch, error.seen, error.expected) == (7, 0, 14, 13)
    assert error.code == "OUT_OF_ORDER_SEQUENCE"
    assert str(error) == "producer 7 epoch 0: sequence 14, expected 13"
    assert outcome(state, data(9)) == outcome(state, data(0)) == "OutOfOrderSequence"


def test_sequence_0_follows_the_largest() -> None:
    """wrap 2^31-1 -> 0"""
    state = stored(data(LAST - 1, 2))
    assert state.entries[7].next_sequence == 0
    assert state.check(data(0)) is None
    assert outcome(state, data(1)) == "OutOfOrderSequence"
    assert outcome(stored(data(LAST - 1)), data(0)) == "OutOfOrderSequence"


def test_a_batch_may_straddle_the_wrap_and_is_known_again() -> None:
    state = stored(data(LAST - 1, 4))
    assert state.entries[7].batches[0][:2] == (LAST - 1, 1)
    assert state.check(data(2)) is None
    assert state.check(data(LAST - 1, 4)) == Duplicate(100, 104, -1)
    assert outcome(state, data(LAST - 1, 3)) == "OutOfOrderSequence"


@pytest.mark.parametrize("first", [0, 1, 77, LAST])
@pytest.mark.parametrize("epoch", [0, 3, LAST])
def test_without_state_any_sequence_is_accepted(first: int, epoch: int) -> None:
    """No state => any sequence accepted."""
    assert ProducerState().check(data(first, epoch=epoch)) is None
    assert stored(data(0, producer=8)).check(data(first, epoch=epoch)) is None


def test_behind_a_marker_alone_the_sequence_is_0() -> None:
    """Only a marker known => must be 0."""
    state = stored(marker(epoch=2))
    assert state.check(data(0, epoch=2)) is None
    assert outcome(state, data(1, epoch=2)) == "OutOfOrderSequence"
    assert state.check(data(0, epoch=3)) is None
    assert outcome(state, data(0, epoch=1)) == "InvalidProducerEpoch"


def test_a_marker_leaves_the_sequences_of_its_epoch_alone() -> None:
    state = stored(data(0), data(1), marker())
    assert state.check(data(2)) is None
    assert state.check(data(1)) == Duplicate(101, 102, -1)


def test_a_marker_with_a_higher_epoch_bumps_the_stored_epoch() -> None:
    """A19: A marker with a higher producer epoch bumps the stored epoch."""
    state = stored(data(0), data(1))
    assert state.check(marker(epoch=1)) is None
    state.update(marker(epoch=1))
    assert state.entries[7] == ProducerEntry(1, -1, ())
    assert outcome(state, data(2)) == "InvalidProducerEpoch"
    assert state.check(data(0, epoch=1)) is None


def test_each_of_the_last_five_is_answered_with_its_own_offsets() -> None:
    """Exact (firstSeq,lastSeq) match with one of five => duplicate: success with stored offsets."""
    batches = [data(3 * number, 3, time=number) for number in range(6)]
    state = stored(*batches)
    for number in range(1, 6):
        at = 100 + 3 * number
        assert state.check(batches[number]) == Duplicate(at, at + 3, number)
    assert state.check(data(18)) is None


@pytest.mark.parametrize(
    "facts",
    [data(0, 3), data(3, 2), data(4, 2), data(3, 4), data(15, 4), data(17, 2), data(3, 6)],
    ids=["older than five", "head", "tail", "longer", "into the new", "out of the last", "two"],
)
def test_partial_overlap_or_older_than_five_is_out_of_order(facts: ProducerFacts) -> None:
    """Partial overlap, or older than five => OUT_OF_ORDER_SEQUENCE."""
    state = stored(*[data(3 * number, 3) for number in range(6)])
    with pytest.raises(OutOfOrderSequence) as caught:
        state.check(facts)
    assert caught.value.expected == 18


def test_duplicates_are_looked_for_before_the_order_is_judged() -> None:
    """B-52: "broker must deduplicate before answering OUT_OF_ORDER"."""
    state = stored(data(0), data(1), data(2))
    assert state.check(data(0)) == Duplicate(100, 101, -1)


def test_a_gap_is_out_of_order_until_it_is_sent_again_in_order() -> None:
    """If truncated, later in-flight batches get OUT_OF_ORDER_SEQUENCE until the gap is resent in
    order."""
    state = stored(data(0))
    assert outcome(state, data(2)) == "OutOfOrderSequence"
    state.update(data(1, at=101))
    assert state.check(data(2)) is None


def test_judging_changes_nothing() -> None:
    state = stored(data(0), data(1))
    before = dict(state.entries)
    for facts in ASKED:
        outcome(state, facts)
    assert dict(state.entries) == before


# Expiry ----------------------------------------------------------------------------------------


def test_expired_producers_are_accepted_as_new() -> None:
    """Expiry 24 h => later retries of old batches are accepted as new."""
    state = stored(data(5, time=1_000), data(9, producer=8, time=1_001))
    assert state.expire(1_000 + DAY_MS - 1, DAY_MS) == ()
    assert state.expire(1_000 + DAY_MS, DAY_MS) == (7,)
    assert set(state.entries) == {8}
    assert state.check(data(5)) is None
    assert state.expire(2**62, DAY_MS) == (8,)


def test_the_last_time_counts_and_not_the_largest() -> None:
    state = stored(data(0, time=9_000), data(1, time=100))
    assert state.entries[7].timestamp_ms == 100
    assert state.expire(1_100, 1_000) == (7,)


def test_the_time_of_a_marker_counts() -> None:
    """KAFKA-9144: "entry's last timestamp ignores markers => expired"; B-53: "marker timestamps
    count"."""
    state = stored(data(0, epoch=1, time=0), marker(epoch=2, time=500))
    assert state.expire(1_400, 1_000) == ()
    assert outcome(state, data(1, epoch=1)) == "InvalidProducerEpoch"
    assert state.expire(1_500, 1_000) == (7,)


@pytest.mark.parametrize("facts", [data(1), data(1, time=-9), marker(), marker(epoch=1)])
def test_what_has_no_time_does_not_change_it(facts: ProducerFacts) -> None:
    state = stored(data(0, time=500), facts)
    assert state.entries[7].timestamp_ms == 500
    assert all(batch.timestamp_ms >= -1 for batch in state.entries[7].batches)


def test_a_producer_without_any_time_is_not_forgotten() -> None:
    state = stored(data(0), marker())
    assert state.expire(2**62, 1) == ()
    assert state.entries[7].timestamp_ms == -1


def test_forgotten_ids_come_in_order() -> None:
    state = stored(*[data(0, producer=number, time=1) for number in (5, 2, 9)])
    assert state.expire(100, 50) == (2, 5, 9)


# Odd input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [data(-1), data(0, epoch=-1), data(-(2**31)), marker(epoch=-1)],
    ids=["no sequence", "no epoch", "least sequence", "marker without epoch"],
)
def test_a_client_batch_without_epoch_or_sequence_is_refused(facts: ProducerFacts) -> None:
    with pytest.raises(InvalidRecord, match=r"producer 7 has .*, allowed is 0\.\.2147483647"):
        stored(data(0)).check(facts)


def test_a_stored_batch_without_a_sequence_counts_as_a_marker() -> None:
    state = stored(data(0), data(-5, epoch=1, time=8))
    assert state.entries[7] == ProducerEntry(1, 8, ())


def test_a_stored_batch_without_an_epoch_names_no_producer() -> None:
    assert dict(stored(data(0, epoch=-1), marker(epoch=-2)).entries) == {}


def test_entries_cannot_be_written_through_the_view() -> None:
    state = stored(data(0))
    with pytest.raises(TypeError):
        state.entries[7] = ProducerEntry(0, 0, ())  # type: ignore[index]
