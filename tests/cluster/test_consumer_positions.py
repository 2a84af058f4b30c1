"""Where a consumer begins, how it follows leaders, and what it makes of metadata.

PROTOCOL A22, KIP-320; hazards B-67 and B-68, each guard off and on.
"""

from __future__ import annotations

import pytest

from cluster.consumer_events import (
    CommitFailed,
    OffsetCommitted,
    OffsetReset,
    PositionFailed,
    TopicRecreated,
)
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_control import (
    OffsetCommitRequest,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from cluster.messages_data import (
    FetchRequest,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.names import TopicIdPartition
from tests.cluster.consuming import Consuming, batch, filled
from tests.cluster.fake_cluster import TOPIC, FakeCluster

# Where it begins -------------------------------------------------------------------------------


def test_without_position_the_policy_says_where_to_begin() -> None:
    for policy, offset in (("earliest", 2), ("latest", 5)):
        k = Consuming(auto_offset_reset=policy)
        k.cluster[0].append(*[batch(b"%d" % number) for number in range(5)])
        k.cluster[0].log.raise_log_start_offset(2)
        k.assign()
        k.run()
        assert k.events() == [OffsetReset(k.cluster.name(), -1, offset)]
        assert k.position() + len(k.values()) in (5, offset)


def test_without_position_and_policy_the_partition_stands_until_a_seek() -> None:
    k = Consuming(auto_offset_reset="none")
    k.cluster[0].append(batch(b"a"))
    k.assign()
    k.run()
    lost = PositionFailed(k.cluster.name(), -1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert k.events() == [lost]
    assert k.driver.sent == []
    k.seek(0)
    k.run()
    assert k.values() == [b"a"]


def test_committed_offset_comes_first_and_is_validated() -> None:
    k = Consuming(group="g")
    k.cluster[0].append(*[batch(b"%d" % number) for number in range(5)])
    k.cluster.committed["g", k.cluster.name()] = (3, 0)
    k.assign()
    to, request = k.until(OffsetFetchRequest)
    assert (to, request.partitions) == ("c1", (k.cluster.name(),))
    k.driver.answer(to, k.cluster.answer(to, request))
    _, asked = k.until(OffsetsForLeaderEpochRequest)
    assert asked.partitions[0].leader_epoch == 0
    k.driver.answer("b1", k.cluster.answer("b1", asked))
    k.run()
    assert k.values() == [b"3", b"4"]


def test_group_without_offset_begins_by_the_policy() -> None:
    k = Consuming(group="g")
    k.cluster[0].append(batch(b"a"))
    k.assign()
    k.run()
    assert k.values() == [b"a"]


def test_offset_fetch_is_repeated_until_it_works() -> None:
    k = Consuming(group="g")
    k.cluster[0].append(batch(b"a"))
    k.assign()
    to, request = k.until(OffsetFetchRequest)
    result = OffsetFetchPartitionResult(k.cluster.name(), ErrorCode.NOT_CONTROLLER)
    k.driver.answer(to, OffsetFetchResponse(request.correlation_id, (result,)))
    assert k.driver.take(OffsetFetchRequest) == []
    k.until(OffsetFetchRequest)
    k.driver.disconnect("c1")
    k.run()
    assert k.values() == [b"a"]


def test_a22_offset_not_available_is_asked_again_behind_a_back_off() -> None:
    k = Consuming()
    k.assign()
    to, request = k.until(ListOffsetsRequest)
    k.driver.advance(ms=500)
    result = ListOffsetsPartitionResult(k.cluster.name(), ErrorCode.OFFSET_NOT_AVAILABLE)
    k.driver.answer(to, ListOffsetsResponse(request.correlation_id, (result,)))
    k.driver.advance(us=99_999)
    assert k.driver.sent == []
    k.driver.advance(us=1)
    k.run()
    assert k.position() == 0


def test_commit_stores_positions_with_the_epoch_of_what_was_read() -> None:
    k = filled(group="g")
    k.driver.call(k.consumer.commit)
    k.run(20)
    assert k.events() == [OffsetCommitted(k.cluster.name(), 5)]
    assert k.cluster.committed == {("g", k.cluster.name()): (5, 0)}
    k.driver.call(k.consumer.commit)
    k.until(OffsetCommitRequest)
    k.driver.disconnect("c1")
    assert k.events() == [CommitFailed(k.cluster.name(), 5, ErrorCode.NETWORK_EXCEPTION)]


def test_b68_commit_of_a_position_that_nothing_was_read_for_has_no_epoch() -> None:
    k = Consuming(group="g", auto_offset_reset="latest")
    k.cluster[0].append(batch(b"a"))
    k.cluster.elect(0, "b1")
    k.assign()
    k.run()
    k.driver.call(k.consumer.commit)
    k.run(20)
    assert k.cluster.committed == {("g", k.cluster.name()): (1, -1)}


def test_nothing_is_committed_without_a_position() -> None:
    k = Consuming(group="g")
    k.assign()
    k.driver.call(k.consumer.commit)
    assert k.driver.take(OffsetCommitRequest) == []


# Out of range ----------------------------------------------------------------------------------


def test_offset_out_of_range_is_for_the_policy() -> None:
    k = filled()
    k.cluster[0].append(*[batch(b"x")] * 5)
    k.cluster[0].log.raise_log_start_offset(8)
    k.run()
    assert k.values() == [b"x", b"x"]
    assert k.events() == [OffsetReset(k.cluster.name(), 5, 8)]


def test_offset_out_of_range_waits_until_what_was_fetched_is_polled() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"), batch(b"b"))
    k.assign()
    k.run()
    k.cluster[0].append(*[batch(b"x")] * 3)
    k.cluster[0].log.raise_log_start_offset(4)
    k.fetch_fails(ErrorCode.OFFSET_OUT_OF_RANGE)
    k.run()
    assert len(k.events()) == 1
    assert k.values() == [b"a", b"b"]
    k.run()
    assert k.events() == [OffsetReset(k.cluster.name(), 2, 4)]
    assert k.values() == [b"x"]


def test_offset_out_of_range_without_policy_is_an_event() -> None:
    k = filled(auto_offset_reset="none")
    k.cluster[0].append(*[batch(b"x")] * 5)
    k.cluster[0].log.raise_log_start_offset(8)
    k.run()
    assert k.values() == []
    assert k.events() == [PositionFailed(k.cluster.name(), 5, ErrorCode.OFFSET_OUT_OF_RANGE)]


# New leaders -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.UNKNOWN_TOPIC_ID,
    ],
    ids=lambda error: error.name,
)
def test_errors_of_leadership_ask_for_metadata_behind_a_back_off(error: ErrorCode) -> None:
    k = filled()
    k.until(FetchRequest)
    k.driver.advance(ms=500)
    k.run(100)
    k.fetch_fails(error)
    assert k.driver.take(FetchRequest) == []
    k.driver.advance(us=0)
    assert len(k.driver.take(MetadataRequest)) == 1
    k.driver.advance(ms=100)
    assert len(k.driver.take(FetchRequest)) == 1


def test_a22_new_epoch_drops_what_is_not_polled_and_validates_first() -> None:
    k = filled()
    k.cluster[0].append(batch(b"x"), batch(b"y"))
    k.run(100)
    k.cluster.elect(0, "b2")
    k.fetch_fails(ErrorCode.FENCED_LEADER_EPOCH)
    to, request = k.until(OffsetsForLeaderEpochRequest)
    assert to == "b2"
    assert request.partitions[0].leader_epoch == 0
    assert request.partitions[0].current_leader_epoch == 1
    assert k.poll() == []
    assert k.driver.take(FetchRequest) == []
    k.driver.answer(to, k.cluster.answer(to, request))
    k.run()
    assert k.values() == [b"x", b"y"]
    assert k.events() == []


def test_a22_answer_to_a_validation_of_an_older_epoch_is_dropped() -> None:
    k = filled(metadata_max_age_ms=500)
    k.cluster.elect(0, "b2")
    k.fetch_fails(ErrorCode.FENCED_LEADER_EPOCH)
    to, request = k.until(OffsetsForLeaderEpochRequest)
    k.cluster.elect(0, "b3")
    k.driver.advance(ms=500)
    for src, asked in k.driver.take(MetadataRequest):
        k.driver.answer(src, k.cluster.answer(src, asked))
    late = OffsetsForLeaderEpochPartitionResult(k.cluster.name(), ErrorCode.NONE, 0, 1)
    k.driver.answer(to, OffsetsForLeaderEpochResponse(request.correlation_id, (late,)))
    k.run()
    assert k.events() == []
    assert k.position() == 5


def test_a22_seek_with_an_epoch_is_validated_and_without_is_not() -> None:
    k = filled()
    k.seek(2, 0)
    assert k.fields()["t-0/phase"] == "validate"
    k.run()
    assert k.values() == [b"2", b"3", b"4"]
    k.seek(2)
    assert k.fields()["t-0/phase"] == "fetch"


def test_epoch_end_above_the_epoch_that_was_asked_for_is_no_answer() -> None:
    k = filled()
    k.seek(2, 0)
    to, request = k.until(OffsetsForLeaderEpochRequest)
    lie = OffsetsForLeaderEpochPartitionResult(k.cluster.name(), ErrorCode.NONE, 5, 1)
    k.driver.answer(to, OffsetsForLeaderEpochResponse(request.correlation_id, (lie,)))
    assert k.fields()["t-0/phase"] == "validate"
    k.run()
    assert k.events() == []
    assert k.values() == [b"2", b"3", b"4"]


def test_broker_that_lags_for_ever_does_not_keep_the_consumer_from_the_new_leader() -> None:
    k = filled()
    old = k.cluster.metadata(0)
    k.cluster.elect(0, "b2")
    k.cluster[0].append(batch(b"x"))
    for _ in range(100):
        for to, request in k.driver.take(MetadataRequest):
            answer = k.cluster.metadata(request.correlation_id)
            if to == "b1":
                answer = type(old)(request.correlation_id, 10, "c1", (), old.topics)
            k.driver.answer(to, answer)
        k.serve(Message)
        k.driver.advance(ms=10)
    assert k.values() == [b"x"]


def test_without_leader_metadata_is_asked_until_there_is_one() -> None:
    k = filled()
    k.cluster.elect(0, None)
    k.fetch_fails(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    k.run()
    assert k.fields()["t-0/leader"] is None
    k.cluster.elect(0, "b3")
    k.cluster[0].append(batch(b"x"))
    k.run()
    assert k.values() == [b"x"]


# Metadata --------------------------------------------------------------------------------------


def moved_back(guards: Guards) -> Consuming:
    """A broker that lags says that the old leader leads still."""
    k = filled(guards=guards)
    old = k.cluster.metadata(0)
    k.cluster.elect(0, "b2")
    k.run(1_000)
    k.fetch_fails(ErrorCode.KAFKA_STORAGE_ERROR)
    _, request = k.until(MetadataRequest)
    answer = type(old)(request.correlation_id, old.metadata_offset, "c1", (), old.topics)
    k.driver.answer(_, answer)
    return k


def test_a22_metadata_of_an_older_epoch_is_ignored() -> None:
    k = moved_back(Guards())
    assert (k.fields()["t-0/leader"], k.fields()["t-0/leader_epoch"]) == ("b2", 1)


def test_a22_without_the_guard_old_metadata_moves_the_consumer_to_the_old_leader() -> None:
    k = moved_back(Guards(newer_metadata_only=False))
    assert k.fields()["t-0/leader_epoch"] == 0
    to, _ = k.until(OffsetsForLeaderEpochRequest)
    assert to == "b1"


def recreated(guards: Guards, **config: object) -> Consuming:
    """Hazard B-67: the topic was at epoch 3, is deleted and made anew at epoch 0, led by b3."""
    k = Consuming(guards=guards, **config)  # type: ignore[arg-type]
    for _ in range(3):
        k.cluster.elect(0, "b1")
    k.cluster[0].append(batch(b"old0"), batch(b"old1"))
    k.assign()
    k.run()
    if k.fields()["t-0/phase"] == "failed":
        k.seek(0)
        k.run()
    assert k.values() == [b"old0", b"old1"]
    k.events()
    made = FakeCluster(topic_id="B" * 22)
    made.metadata_offset = k.cluster.metadata_offset + 5
    made[0].leader = "b3"
    made[0].append(batch(b"new0"))
    k.cluster = made
    k.run(3_000)
    return k


def test_b67_topic_created_anew_is_read_from_its_start() -> None:
    k = recreated(Guards())
    name = k.cluster.name()
    assert k.events() == [TopicRecreated(name, "A" * 22), OffsetReset(name, -1, 0)]
    assert k.values() == [b"new0"]


def test_b67_topic_created_anew_without_policy_waits_for_a_seek() -> None:
    k = recreated(Guards(), auto_offset_reset="none")
    name = k.cluster.name()
    failed = PositionFailed(name, -1, ErrorCode.OFFSET_OUT_OF_RANGE)
    assert k.events() == [TopicRecreated(name, "A" * 22), failed]


def test_b67_without_the_guard_the_consumer_is_stuck_at_the_old_leader() -> None:
    k = recreated(Guards(topic_id_tells_topics=False))
    assert k.values() == []
    assert k.fields()["t-0/leader"] == "b1"
    assert k.fields()["t-0/leader_epoch"] == 3


def test_b67_broker_that_lags_does_not_bring_the_old_topic_back() -> None:
    k = recreated(Guards())
    k.events()
    k.fetch_fails(ErrorCode.KAFKA_STORAGE_ERROR)
    to, request = k.until(MetadataRequest)
    old = FakeCluster()
    k.driver.answer(to, old.metadata(request.correlation_id))
    assert k.events() == []
    assert k.fields()["t-0/leader"] == "b3"


def test_metadata_that_contradicts_itself_is_passed_over() -> None:
    k = Consuming()
    k.assign()
    k.driver.advance(us=0)
    to, request = k.driver.take_one(MetadataRequest)
    good = k.cluster.metadata(request.correlation_id)
    topic = good.topics[0]
    entry = topic.partitions[0]
    stranger = TopicIdPartition("B" * 22, TOPIC, 0)
    bad = (
        entry._replace(partition=stranger),
        entry._replace(partition=TopicIdPartition(topic.topic_id, TOPIC, -1)),
        entry._replace(leader_epoch=-1),
    )
    other = topic._replace(topic="other")
    answer = type(good)(
        request.correlation_id, 1, "c1", (), (other, topic._replace(partitions=bad))
    )
    k.driver.answer(to, answer)
    assert k.driver.sent == []
    assert k.fields()["t-0/leader"] is None
    k.run()
    assert k.position() == 0
