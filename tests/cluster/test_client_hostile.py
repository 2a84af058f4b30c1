"""Answers of any content: a client never raises, and changes nothing that it may not.

Answers are built for what the client asked, so that their ids are known, with fields that are
good, borrowed from elsewhere, or anything at all.
"""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_control import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    PartitionError,
)
from cluster.messages_data import (
    EpochEndOffset,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    PartitionMetadata,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    TopicMetadata,
)
from cluster.names import TopicIdPartition
from cluster.outcomes import OutcomeKind
from storage import encode_batch
from tests.cluster.consuming import Consuming, batch
from tests.cluster.fake_cluster import BROKERS, TOPIC, TOPIC_ID
from tests.cluster.producing import Producing
from tests.storage.batches import batches

INTS = st.integers(-2, 6) | st.integers(-(2**63), 2**63 - 1)
NAMES = st.sampled_from(["", "b1", "b2", "b9", "c1"])
TOPICS = st.sampled_from([TOPIC, TOPIC, "", "other"])
IDS = st.sampled_from([TOPIC_ID, TOPIC_ID, "B" * 22, ""])
PLACES = st.builds(TopicIdPartition, IDS, TOPICS, st.integers(-1, 2))
ERRORS = st.sampled_from([ErrorCode.NONE, ErrorCode.NONE, *ErrorCode])
FRAMES = st.one_of(
    st.binary(max_size=80),
    batches().map(encode_batch),
    st.integers(0, 9).map(lambda offset: encode_batch(batch(b"x").assign(offset, 0))),
)
RECORDS = st.lists(FRAMES, max_size=3).map(b"".join)
LEADERS = st.none() | NAMES
NODES = st.lists(NAMES, max_size=2).map(tuple)


def some(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(strategy, max_size=3).map(tuple)


PARTITIONS = st.builds(PartitionMetadata, PLACES, ERRORS, LEADERS, INTS, NODES, NODES, NODES, NODES)
ANSWERS: dict[type[Message], st.SearchStrategy[object]] = {
    ProduceRequest: st.builds(
        ProduceResponse, st.just(0), some(st.builds(ProducePartitionResult, PLACES, ERRORS, INTS))
    ),
    InitProducerIdRequest: st.builds(InitProducerIdResponse, st.just(0), ERRORS, INTS, INTS),
    MetadataRequest: st.builds(
        MetadataResponse,
        st.just(0),
        INTS,
        NAMES,
        st.just(()),
        some(st.builds(TopicMetadata, ERRORS, TOPICS, IDS, some(PARTITIONS))),
    ),
    FetchRequest: st.builds(
        FetchResponse,
        st.just(0),
        some(
            st.builds(
                FetchPartitionResult,
                PLACES,
                ERRORS,
                INTS,
                INTS,
                INTS,
                st.none() | st.builds(EpochEndOffset, INTS, INTS),
                RECORDS,
            )
        ),
    ),
    ListOffsetsRequest: st.builds(
        ListOffsetsResponse,
        st.just(0),
        some(st.builds(ListOffsetsPartitionResult, PLACES, ERRORS, INTS, INTS, INTS)),
    ),
    OffsetsForLeaderEpochRequest: st.builds(
        OffsetsForLeaderEpochResponse,
        st.just(0),
        some(st.builds(OffsetsForLeaderEpochPartitionResult, PLACES, ERRORS, INTS, INTS)),
    ),
    OffsetFetchRequest: st.builds(
        OffsetFetchResponse,
        st.just(0),
        some(st.builds(OffsetFetchPartitionResult, PLACES, ERRORS, INTS, INTS)),
    ),
    OffsetCommitRequest: st.builds(
        OffsetCommitResponse, st.just(0), some(st.builds(PartitionError, PLACES, ERRORS))
    ),
}


def with_id(message: Message, correlation_id: int) -> Message:
    return evolve(message, correlation_id=correlation_id)


@given(st.data())
@settings(max_examples=100)
def test_producer_survives_any_answers(data: st.DataObject) -> None:
    p = Producing(partitions=2, batch_max_records=2)
    sent = [p.send(b"%d" % number, partition=number % 2) for number in range(4)]
    ended = []
    for _ in range(data.draw(st.integers(1, 25))):
        p.driver.advance(ms=data.draw(st.sampled_from([0, 10, 200, 1_500])))
        for to, request in p.driver.take(Message):
            if data.draw(st.booleans()):
                answer = data.draw(ANSWERS[type(request)])
                assert isinstance(answer, Message)
                src = data.draw(st.sampled_from([to, to, "b9"]))
                p.driver.answer(src, with_id(answer, request.correlation_id))
        ended += p.outcomes()
        assert p.producer.fields()["buffered"] == len(sent) - len(ended)
    ended += p.settle(20_000)
    assert sorted(outcome.operation for outcome in ended) == sent
    for outcome in ended:
        assert (outcome.offset >= 0) == (outcome.kind is OutcomeKind.ACKED)


@given(st.data())
@settings(max_examples=100)
def test_consumer_survives_any_answers(data: st.DataObject) -> None:
    k = Consuming(partitions=2, group=data.draw(st.none() | st.just("g")))
    k.assign(0, 1)
    ends = {0: -1, 1: -1}
    for _ in range(data.draw(st.integers(1, 25))):
        k.driver.advance(ms=data.draw(st.sampled_from([0, 10, 100, 1_500])))
        if k.consumer.config.group is not None and data.draw(st.booleans()):
            k.driver.call(k.consumer.commit)
        for to, request in k.driver.take(Message):
            answer: object = k.cluster.answer(to, request) if to in (*BROKERS, "c1") else None
            if answer is None or data.draw(st.booleans()):
                answer = data.draw(ANSWERS[type(request)])
            assert isinstance(answer, Message)
            src = data.draw(st.sampled_from([to, to, "b9"]))
            k.driver.answer(src, with_id(answer, request.correlation_id))
        if k.events():
            ends = {0: -1, 1: -1}
        for record in k.poll():
            number = record.partition.partition
            assert record.offset > ends[number]
            ends[number] = record.offset


@given(st.data())
def test_answers_that_nobody_waits_for_change_nothing(data: st.DataObject) -> None:
    p, k = Producing().start(), Consuming()
    p.send(b"v")
    k.assign()
    k.run(100)
    for driver, machine in ((p.driver, p.producer), (k.driver, k.consumer)):
        before = dict(machine.fields())
        timers = dict(driver.timers)
        sent = list(driver.sent)
        answer = data.draw(data.draw(st.sampled_from(list(ANSWERS.values()))))
        assert isinstance(answer, Message)
        for correlation_id in (-1, 0, 2**62):
            driver.answer(data.draw(NAMES), with_id(answer, correlation_id))
        for _, request in sent:
            driver.answer("b9", with_id(answer, request.correlation_id))
            driver.answer("b1", request)
        assert (dict(machine.fields()), driver.timers, driver.sent) == (before, timers, sent)
