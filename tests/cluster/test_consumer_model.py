"""Random histories of a consumer over a cluster that loses, delays, damages and forgets.

Leaders change cleanly and uncleanly, logs lose their start, frames are damaged under way. The model
keeps a view, offset by offset, of what the consumer handed over and has not called gone since:

* offsets rise strictly, except behind an event that moved the position;
* what is handed over was written by the leader of that epoch at that offset, and under the high
  watermark;
* when all is healed, the whole view, as far as the log reaches back, is what the log holds: of a
  truncation below the position an event has told before anything else was handed over.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
)

from cluster.config import ConsumerConfig
from cluster.consumer import Consumer
from cluster.consumer_events import OffsetReset, PolledRecord, PositionFailed, TruncationDetected
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import FetchRequest, FetchResponse, MetadataRequest
from storage import RecordBatch
from tests.cluster.consuming import batch
from tests.cluster.driver import Driver
from tests.cluster.fake_cluster import BROKERS, CONTROLLER, TOPIC, FakeCluster
from tests.storage.batches import commit

PARTITIONS = 2
PICKS = st.integers(0, 5)
NUMBERS = st.integers(0, PARTITIONS - 1)
ERRORS = st.sampled_from(
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ]
)
View = dict[int, tuple[int, bytes | None]]


class ConsumerHistory(RuleBasedStateMachine):
    """See the module."""

    guards = Guards()

    @initialize(
        reset=st.sampled_from(["earliest", "latest", "none"]),
        buffered=st.sampled_from([1, 3, 1_000]),
        fetch_bytes=st.sampled_from([1, 200, 1 << 20]),
    )
    def begin(self, reset: str, buffered: int, fetch_bytes: int) -> None:
        config = ConsumerConfig(
            auto_offset_reset=reset,
            group="g",
            fetch_buffer_records=buffered,
            max_partition_fetch_bytes=fetch_bytes,
            request_timeout_ms=200,
            fetch_max_wait_ms=20,
            retry_backoff_ms=20,
        )
        self.reset = reset
        self.cluster = FakeCluster(PARTITIONS)
        self.old_metadata = [self.cluster.metadata(0)]
        self.consumer = Consumer(
            "k1", config, brokers=BROKERS, controller=CONTROLLER, guards=self.guards
        )
        self.driver = Driver(self.consumer)
        self.answers: list[tuple[str, Message]] = []
        self.written: dict[tuple[int, int, int], bytes | None] = {}
        self.exposed: dict[tuple[int, int], int] = {}
        self.views: list[View] = [{} for _ in range(PARTITIONS)]
        self.next_offset = [0] * PARTITIONS
        self.away: list[list[list[RecordBatch]]] = [[] for _ in range(PARTITIONS)]
        self.count = 0
        self.driver.call(self.consumer.assign, tuple((TOPIC, n) for n in range(PARTITIONS)))

    # The cluster -------------------------------------------------------------------------------

    @rule(number=NUMBERS, size=st.integers(1, 3), commits=st.booleans(), is_marker=st.booleans())
    def append(self, number: int, size: int, commits: bool, is_marker: bool) -> None:
        found = self.cluster[number]
        if found.leader is None:
            return
        values = [b"%d" % (self.count + each) for each in range(size)]
        self.count += size
        new = commit() if is_marker else batch(*values)
        base = found.log.leo
        found.append(new, commit=commits)
        for each, record in enumerate(new.records):
            self.written[number, base + each, found.leader_epoch] = record.value
        self.note_exposed(number)

    def note_exposed(self, number: int) -> None:
        found = self.cluster[number]
        place = (number, found.leader_epoch)
        self.exposed[place] = max(self.exposed.get(place, 0), found.high_watermark)

    @rule(
        number=NUMBERS,
        leader=st.sampled_from([*BROKERS, None]),
        cut=st.integers(0, 4),
        is_clean=st.booleans(),
    )
    def leader_changes(self, number: int, leader: str | None, cut: int, is_clean: bool) -> None:
        found = self.cluster[number]
        self.away[number].append(list(found.log.all_batches()))
        floor = found.high_watermark if is_clean else 0
        ends = [end for end in found.boundaries() if end >= floor]
        self.cluster.elect(number, leader, end=ends[-1 - min(cut, len(ends) - 1)])
        self.note_exposed(number)
        self.old_metadata.append(self.cluster.metadata(0))

    @rule(number=NUMBERS, age=st.integers(0, 3), leader=st.sampled_from(BROKERS))
    def old_replica_leads(self, number: int, age: int, leader: str) -> None:
        away = self.away[number]
        if away and away[-1 - age % len(away)]:
            batches = away[-1 - age % len(away)]
            away.append(list(self.cluster[number].log.all_batches()))
            self.cluster[number].revive(batches, leader)
            self.note_exposed(number)
            self.old_metadata.append(self.cluster.metadata(0))

    @rule(number=NUMBERS, share=st.integers(0, 4))
    def log_start_rises(self, number: int, share: int) -> None:
        found = self.cluster[number]
        start = found.log.log_start_offset
        target = start + (found.high_watermark - start) * share // 4
        if target > start:
            found.log.raise_log_start_offset(target)

    # The network -------------------------------------------------------------------------------

    def pick(self, number: int) -> tuple[str, Message]:
        return self.driver.sent.pop(number % len(self.driver.sent))

    @precondition(lambda self: self.driver.sent)
    @rule(number=PICKS)
    def request_arrives(self, number: int) -> None:
        to, request = self.pick(number)
        self.answers.append((to, self.cluster.answer(to, request)))

    @rule(count=st.integers(1, 8))
    def all_arrives(self, count: int) -> None:
        for _ in range(count):
            for to, request in self.driver.take(Message):
                self.driver.answer(to, self.cluster.answer(to, request))
            self.driver.advance(ms=1)

    @precondition(lambda self: self.driver.sent or self.answers)
    @rule(number=PICKS)
    def message_is_lost(self, number: int) -> None:
        if self.driver.sent:
            self.pick(number)
        else:
            self.answers.pop(number % len(self.answers))

    @precondition(lambda self: self.answers)
    @rule(number=PICKS, repeat=st.booleans())
    def answer_arrives(self, number: int, repeat: bool) -> None:
        to, answer = self.answers.pop(number % len(self.answers))
        self.driver.answer(to, answer)
        if repeat:
            self.driver.answer(to, answer)

    @precondition(lambda self: any(isinstance(m, FetchRequest) for _, m in self.driver.sent))
    @rule(error=st.none() | ERRORS, position=st.integers(0, 200), bits=st.integers(1, 255))
    def fetch_is_damaged(self, error: ErrorCode | None, position: int, bits: int) -> None:
        found = self.driver.take(FetchRequest)
        for to, request in found:
            answer = self.cluster.answer(to, request)
            assert isinstance(answer, FetchResponse)
            results = []
            for result in answer.partitions:
                records = bytearray(result.records)
                if records:
                    records[position % len(records)] ^= bits
                if error is not None and result.error_code is ErrorCode.NONE:
                    result = result._replace(error_code=error)
                results.append(result._replace(records=bytes(records)))
            self.driver.answer(to, FetchResponse(request.correlation_id, tuple(results)))

    @precondition(lambda self: any(isinstance(m, MetadataRequest) for _, m in self.driver.sent))
    @rule(age=st.integers(0, 3))
    def old_metadata_arrives(self, age: int) -> None:
        (to, request), *_ = self.driver.take(MetadataRequest)
        old = self.old_metadata[-1 - age % len(self.old_metadata)]
        answer = type(old)(request.correlation_id, old.metadata_offset, "c1", (), old.topics)
        self.driver.answer(to, answer)

    @rule(broker=st.sampled_from(BROKERS))
    def connection_breaks(self, broker: str) -> None:
        self.driver.disconnect(broker)

    # The user ----------------------------------------------------------------------------------

    @rule(ms=st.sampled_from([0, 5, 30, 120, 300]))
    def wait(self, ms: int) -> None:
        self.driver.advance(ms=ms)

    @rule()
    def commit_positions(self) -> None:
        self.driver.call(self.consumer.commit)

    @rule(number=NUMBERS, share=st.integers(0, 4))
    def seek(self, number: int, share: int) -> None:
        offset = self.cluster[number].log.leo * share // 4
        self.driver.call(self.consumer.seek, TOPIC, number, offset)
        self.note_events()
        self.views[number].clear()
        self.next_offset[number] = offset

    @rule(limit=st.integers(1, 5))
    def poll(self, limit: int) -> None:
        self.note_events()
        records = self.consumer.poll(limit)
        assert len(records) <= limit
        for record in records:
            self.take(record)

    # Judgement ---------------------------------------------------------------------------------

    def note_events(self) -> None:
        for event in self.consumer.take_events():
            number = event.partition.partition
            match event:
                case TruncationDetected(diverging_offset=offset) if offset >= 0:
                    self.forget(number, offset)
                    if self.reset != "none":
                        self.next_offset[number] = offset
                case TruncationDetected():
                    self.forget(number, 0)
                case OffsetReset(to_offset=offset):
                    self.forget(number, 0)
                    self.next_offset[number] = offset
                case PositionFailed():
                    assert self.reset == "none"

    def forget(self, number: int, offset: int) -> None:
        self.views[number] = {o: seen for o, seen in self.views[number].items() if o < offset}

    def take(self, record: PolledRecord) -> None:
        number = record.partition.partition
        assert record.offset >= self.next_offset[number], record
        self.next_offset[number] = record.offset + 1
        assert self.written[number, record.offset, record.leader_epoch] == record.value
        assert any(
            end > record.offset and epoch >= record.leader_epoch
            for (at, epoch), end in self.exposed.items()
            if at == number
        ), record
        self.views[number][record.offset] = (record.leader_epoch, record.value)

    def compare(self, stored: tuple[int, bytes | None] | None, seen: object) -> None:
        assert stored == seen

    def drain(self) -> None:
        for _ in range(150):
            self.all_arrives(1)
            self.poll(100)
            self.driver.advance(ms=10)

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        for number in range(PARTITIONS):
            self.cluster.elect(number, "b1")
            self.cluster[number].append(batch(b"last"))
            found = self.cluster[number]
            self.written[number, found.log.leo - 1, found.leader_epoch] = b"last"
            self.note_exposed(number)
        for to, answer in self.answers:
            self.driver.answer(to, answer)
        self.driver.advance(ms=500)
        self.drain()
        for number in range(PARTITIONS):
            log = self.cluster[number].log
            stored = {
                record.offset: (record.leader_epoch, record.value)
                for record in log.fetch(log.log_start_offset, 10**6)
            }
            for offset, seen in self.views[number].items():
                if offset >= log.log_start_offset:
                    self.compare(stored.get(offset), seen)
            if self.consumer.fields()[f"{TOPIC}-{number}/phase"] != "failed":
                assert self.consumer.position(TOPIC, number) == log.leo


TestConsumerHistory = ConsumerHistory.TestCase
TestConsumerHistory.settings = settings(max_examples=150, stateful_step_count=60)


class _ReadAndGone(Exception):
    pass


class UnguardedHistory(ConsumerHistory):
    guards = Guards(one_epoch_per_position=False)

    def compare(self, stored: tuple[int, bytes | None] | None, seen: object) -> None:
        if stored != seen:
            raise _ReadAndGone


def read_an_epoch_that_goes(history: ConsumerHistory) -> None:
    """The steps of hazard B-H3, as rules."""
    history.begin(reset="earliest", buffered=1_000, fetch_bytes=1 << 20)
    for _ in range(12):
        history.append(number=0, size=1, commits=True, is_marker=False)
    history.leader_changes(number=0, leader="b2", cut=4, is_clean=False)
    for _ in range(2):
        history.append(number=0, size=1, commits=True, is_marker=False)
    history.drain()
    assert history.consumer.position(TOPIC, 0) == 10
    history.old_replica_leads(number=0, age=0, leader="b1")
    history.teardown()


def test_bh3_model_sees_what_was_read_and_is_gone() -> None:
    read_an_epoch_that_goes(ConsumerHistory())
    with pytest.raises(_ReadAndGone):
        read_an_epoch_that_goes(UnguardedHistory())
