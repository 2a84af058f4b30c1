"""Random histories of a producer over a cluster that loses, delays, repeats and refuses.

Requests and answers may be lost, delayed beyond every time-out, or overtake each other; answers may
come twice; leaders change, and take with them what was appended and not committed. At the end
everything heals, and then:

* every operation has ended exactly once;
* what is acknowledged under acks -1 stands in the log at the offset that was said;
* what is rejected stands nowhere, in no log that any leader ever had;
* with idempotence no value stands twice in a partition, and values stand in the order of sends.

A request is never repeated by the network: a stream does not do that, and a copy that arrives
behind a refusal would make every refusal a lie.
"""

from __future__ import annotations

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cluster.config import ProducerConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import MetadataRequest, ProduceRequest
from cluster.outcomes import Outcome, OutcomeKind
from cluster.producer import Producer
from storage import Record
from tests.cluster.driver import Driver
from tests.cluster.fake_cluster import AFTER_APPEND, BROKERS, CONTROLLER, TOPIC, FakeCluster

PARTITIONS = 2
ERRORS = [
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
    *sorted(AFTER_APPEND, key=lambda error: error.number),
]
PICKS = st.integers(0, 5)


class ProducerHistory(RuleBasedStateMachine):
    """See the module. A value is its operation's number."""

    guards = Guards()

    @initialize(
        is_idempotent=st.booleans(),
        acks=st.sampled_from([-1, 1]),
        batch=st.integers(1, 3),
        in_flight=st.integers(1, 5),
        linger_ms=st.sampled_from([0, 20]),
    )
    def begin(
        self, is_idempotent: bool, acks: int, batch: int, in_flight: int, linger_ms: int
    ) -> None:
        self.config = ProducerConfig(
            acks=-1 if is_idempotent else acks,
            enable_idempotence=is_idempotent,
            max_in_flight_requests_per_connection=in_flight,
            batch_max_records=batch,
            linger_ms=linger_ms,
            request_timeout_ms=200,
            delivery_timeout_ms=1_000,
            retry_backoff_ms=20,
            retry_backoff_max_ms=100,
        )
        self.cluster = FakeCluster(PARTITIONS)
        self.old_metadata = [self.cluster.metadata(0)]
        self.producer = Producer(
            "p1", self.config, brokers=BROKERS, controller=CONTROLLER, guards=self.guards
        )
        self.driver = Driver(self.producer)
        self.answers: list[tuple[str, Message]] = []
        self.seen: list[Message] = []
        self.sent: list[int] = []
        self.ended: dict[int, Outcome] = {}
        self.appended: set[bytes | None] = set()

    # The user ----------------------------------------------------------------------------------

    @rule(partition=st.none() | st.integers(0, PARTITIONS - 1), count=st.integers(1, 4))
    def send(self, partition: int | None, count: int) -> None:
        for _ in range(count):
            record = Record(None, b"%d" % len(self.sent), 0)
            operation = self.driver.call(self.producer.send, TOPIC, record, partition=partition)
            assert operation == len(self.sent)
            self.sent.append(operation)

    @rule(ms=st.sampled_from([0, 5, 30, 120, 250, 600]))
    def wait(self, ms: int) -> None:
        self.driver.advance(ms=ms)
        self.note_outcomes()

    # The network -------------------------------------------------------------------------------

    def pick(self, number: int) -> tuple[str, Message]:
        return self.driver.sent.pop(number % len(self.driver.sent))

    @precondition(lambda self: self.driver.sent)
    @rule(number=PICKS, error=st.none() | st.sampled_from(ERRORS))
    def request_arrives(self, number: int, error: ErrorCode | None) -> None:
        to, request = self.pick(number)
        if isinstance(request, ProduceRequest) and error is not None:
            answer: Message = self.cluster.produce(to, request, error)
        else:
            answer = self.cluster.answer(to, request)
        self.note_logs()
        self.answers.append((to, answer))

    @precondition(lambda self: self.driver.sent)
    @rule(number=PICKS)
    def request_is_lost(self, number: int) -> None:
        self.pick(number)

    @precondition(lambda self: self.driver.sent)
    @rule(number=PICKS)
    def request_and_answer_arrive(self, number: int) -> None:
        to, request = self.pick(number)
        self.driver.answer(to, self.cluster.answer(to, request))
        self.note_logs()
        self.note_outcomes()

    @precondition(lambda self: self.answers)
    @rule(number=PICKS, repeat=st.booleans())
    def answer_arrives(self, number: int, repeat: bool) -> None:
        to, answer = self.answers.pop(number % len(self.answers))
        self.driver.answer(to, answer)
        if repeat:
            self.driver.answer(to, answer)
        self.note_outcomes()

    @precondition(lambda self: self.answers)
    @rule(number=PICKS)
    def answer_is_lost(self, number: int) -> None:
        self.answers.pop(number % len(self.answers))

    @rule(broker=st.sampled_from(BROKERS), takes_requests=st.booleans())
    def connection_breaks(self, broker: str, takes_requests: bool) -> None:
        """Requests under way may be lost with it, or arrive much later."""
        if takes_requests:
            self.driver.sent = [each for each in self.driver.sent if each[0] != broker]
        self.driver.disconnect(broker)
        self.note_outcomes()

    @precondition(lambda self: any(isinstance(m, MetadataRequest) for _, m in self.driver.sent))
    @rule(age=st.integers(0, 3))
    def old_metadata_arrives(self, age: int) -> None:
        (to, request), *_ = self.driver.take(MetadataRequest)
        old = self.old_metadata[-1 - age % len(self.old_metadata)]
        answer = type(old)(request.correlation_id, old.metadata_offset, "c1", (), old.topics)
        self.driver.answer(to, answer)

    # Leaders -----------------------------------------------------------------------------------

    @rule(
        partition=st.integers(0, PARTITIONS - 1),
        leader=st.sampled_from([*BROKERS, None]),
        cut=st.integers(0, 3),
    )
    def leader_changes(self, partition: int, leader: str | None, cut: int) -> None:
        found = self.cluster[partition]
        ends = [end for end in found.boundaries() if end >= found.high_watermark]
        self.cluster.elect(partition, leader, end=ends[-1 - min(cut, len(ends) - 1)])
        self.old_metadata.append(self.cluster.metadata(0))

    # Judgement ---------------------------------------------------------------------------------

    def note_logs(self) -> None:
        for number in range(PARTITIONS):
            self.appended.update(self.cluster[number].values())

    def note_outcomes(self) -> None:
        for outcome in self.producer.take_outcomes():
            assert outcome.operation not in self.ended, outcome
            self.ended[outcome.operation] = outcome

    def heal(self) -> None:
        for number in range(PARTITIONS):
            if self.cluster[number].leader is None:
                self.cluster.elect(number, "b1")
        for to, answer in self.answers:
            self.driver.answer(to, answer)
        self.note_outcomes()
        for _ in range(400):
            for to, request in self.driver.take(Message):
                self.driver.answer(to, self.cluster.answer(to, request))
            self.driver.advance(ms=10)
            self.note_logs()
            self.note_outcomes()

    def teardown(self) -> None:
        if not hasattr(self, "driver"):
            return
        self.heal()
        assert sorted(self.ended) == self.sent
        fields = self.producer.fields()
        assert (fields["buffered"], fields["in_flight"], self.driver.sent) == (0, 0, [])
        for outcome in self.ended.values():
            value = b"%d" % outcome.operation
            if outcome.kind is OutcomeKind.REJECTED:
                assert value not in self.appended, outcome
            elif outcome.kind is OutcomeKind.ACKED and self.config.acks == -1:
                assert outcome.partition is not None
                log = self.cluster[outcome.partition.partition].log
                (record,) = log.fetch(outcome.offset, 1)
                assert (record.offset, record.value) == (outcome.offset, value), outcome
        if self.config.enable_idempotence:
            self.check_idempotence()

    def check_idempotence(self) -> None:
        for number in range(PARTITIONS):
            values = [int(value or b"-1") for value in self.cluster[number].values()]
            assert values == sorted(set(values)), values


TestProducerHistory = ProducerHistory.TestCase
TestProducerHistory.settings = settings(max_examples=150, stateful_step_count=60)


class _Duplicate(Exception):
    pass


class UnguardedHistory(ProducerHistory):
    guards = Guards(bump_epoch_only_when_idle=False)

    def check_idempotence(self) -> None:
        for number in range(PARTITIONS):
            values = self.cluster[number].values()
            if len(values) != len(set(values)):
                raise _Duplicate


@pytest.mark.slow
def test_b52_random_histories_find_the_duplicate_without_the_guard() -> None:
    budget = settings(max_examples=1_000, stateful_step_count=60, phases=[Phase.generate])
    with pytest.raises(_Duplicate):
        run_state_machine_as_test(UnguardedHistory, settings=budget)
