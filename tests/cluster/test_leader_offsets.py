"""ListOffsets, OffsetsForLeaderEpoch, DeleteRecords and Metadata (PROTOCOL A6, A8, A22)."""

from __future__ import annotations

import pytest

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.messages_data import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochPartition,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.names import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, NO_EPOCH
from cluster.records import TopicRecord
from storage.batch import Record, RecordBatch
from storage.mkb1 import MKB1
from tests.cluster.leader_tools import Solo, guards_without
from tests.cluster.scripted import ORDERS

OUT_OF_RANGE = ErrorCode.OFFSET_OUT_OF_RANGE


def timed(*timestamps: int) -> bytes:
    records = [Record(None, b"x", timestamp) for timestamp in timestamps]
    return MKB1.encode(RecordBatch.unassigned(records), 0, 0, 1 << 20)[0]


def delete(solo: Solo, offset: int, *, timeout_ms: int = 1_000, client: str = "k1") -> int:
    number = solo.number()
    part = (DeleteRecordsPartition(ORDERS, offset),)
    solo.send("b1", DeleteRecordsRequest(number, timeout_ms, part), client=client)
    return number


def deleted(solo: Solo, number: int, client: str = "k1") -> tuple[ErrorCode, int] | None:
    for _, message in solo.router.inbox.get(client, []):
        if isinstance(message, DeleteRecordsResponse) and message.correlation_id == number:
            return message.partitions[0].error_code, message.partitions[0].low_watermark
    return None


def epoch_end(solo: Solo, asked: int, *, current: int = NO_EPOCH) -> tuple[ErrorCode, int, int]:
    part = (OffsetsForLeaderEpochPartition(ORDERS, current, asked),)
    answer = solo.ask("b1", OffsetsForLeaderEpochRequest(solo.number(), "b2", part))
    assert isinstance(answer, OffsetsForLeaderEpochResponse)
    return answer.partitions[0][1:]


# ListOffsets -----------------------------------------------------------------------------------


def test_a22_earliest_is_the_log_start_and_latest_depends_on_who_asks() -> None:
    solo = Solo()
    for _ in range(4):
        solo.produce("b1", b"x", acks=1)
    solo.replicate(offset=3)
    solo.replica.opened.raise_log_start_offset(2)
    assert solo.list_offset(EARLIEST_TIMESTAMP)[2:] == (-1, 2, 0)
    assert solo.list_offset(LATEST_TIMESTAMP)[2:] == (-1, 3, 0)
    assert solo.list_offset(LATEST_TIMESTAMP, replica="b2")[2:] == (-1, 4, 0)


def test_a22_the_first_record_late_enough_in_offset_order_is_found() -> None:
    solo = Solo(isr=("b1",))
    for records in (timed(100, 300), timed(200), timed(150, 400)):
        solo.produce_raw(records)
    expected = {0: (100, 0), 100: (100, 0), 101: (300, 1), 250: (300, 1), 301: (400, 4)}
    for asked, (timestamp, offset) in expected.items():
        assert solo.list_offset(asked)[2:4] == (timestamp, offset)
    assert solo.list_offset(401)[1:] == (ErrorCode.NONE, -1, -1, -1)


def test_a22_a_match_at_or_above_the_high_watermark_is_not_a_consumers() -> None:
    solo = Solo()
    solo.produce_raw(timed(100), acks=1)
    solo.produce_raw(timed(200), acks=1)
    solo.replicate(offset=1)
    assert solo.list_offset(150)[1:] == (ErrorCode.NONE, -1, -1, -1)
    assert solo.list_offset(150, replica="b2").offset == 1
    solo.lead("b1")
    assert solo.list_offset(150).error_code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert solo.list_offset(50).offset == 0


@pytest.mark.parametrize("timestamp", [-3, -(2**63), 2**63])
def test_a22_a_timestamp_that_means_nothing_is_an_invalid_request(timestamp: int) -> None:
    assert Solo().list_offset(timestamp).error_code is ErrorCode.INVALID_REQUEST


def test_a22_epochs_are_judged_as_in_a_fetch() -> None:
    solo = Solo()
    solo.lead("b1")
    fenced = solo.list_offset(LATEST_TIMESTAMP, epoch=0)
    unknown = solo.list_offset(LATEST_TIMESTAMP, epoch=2)
    assert fenced.error_code is ErrorCode.FENCED_LEADER_EPOCH
    assert unknown.error_code is ErrorCode.UNKNOWN_LEADER_EPOCH
    solo.lead("b2")
    assert solo.list_offset(EARLIEST_TIMESTAMP).error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


# OffsetsForLeaderEpoch -------------------------------------------------------------------------


def test_a8_where_an_epoch_ends_in_the_leaders_log() -> None:
    solo = Solo()
    for epoch in (0, 3, 5):
        solo.lead("b1", epoch=epoch) if epoch else None
        for _ in range(2):
            solo.produce("b1", b"x", acks=1)
    expected = {-1: (-1, -1), 0: (0, 2), 1: (0, 2), 3: (3, 4), 4: (3, 4), 5: (5, 6), 6: (-1, -1)}
    for asked, end in expected.items():
        assert epoch_end(solo, asked) == (ErrorCode.NONE, *end)
    assert epoch_end(solo, 0, current=4)[0] is ErrorCode.FENCED_LEADER_EPOCH
    assert epoch_end(solo, 0, current=6)[0] is ErrorCode.UNKNOWN_LEADER_EPOCH


# DeleteRecords ---------------------------------------------------------------------------------


def test_a6_a_deletion_is_done_when_every_live_replica_has_followed() -> None:
    solo = Solo()
    for _ in range(4):
        solo.produce("b1", b"x", acks=1)
    solo.replicate()
    number = delete(solo, 3)
    assert (solo.replica.opened.log_start_offset, deleted(solo, number)) == (3, None)
    solo.fetch_as("b2", 4, log_start=3)
    assert deleted(solo, number) is None
    solo.fetch_as("b3", 4, log_start=2)
    assert deleted(solo, number) is None
    solo.fetch_as("b3", 4, log_start=3)
    assert deleted(solo, number) == (ErrorCode.NONE, 3)
    assert ("b1", ("delete", "k1", number)) not in solo.router.timers


def test_a6_a_replica_that_is_not_alive_is_not_waited_for() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    number = delete(solo, 1)
    solo.fetch_as("b2", 1, log_start=1)
    solo.change_broker("b3", fenced=True)
    assert deleted(solo, number) == (ErrorCode.NONE, 1)


def test_a6_minus_one_deletes_up_to_the_high_watermark() -> None:
    solo = Solo()
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.replicate(offset=2)
    delete(solo, -1)
    assert solo.replica.opened.log_start_offset == 2


@pytest.mark.parametrize("is_on", [True, False])
def test_a6_a_deletion_above_the_high_watermark_is_out_of_range(is_on: bool) -> None:
    solo = Solo(guards=None if is_on else guards_without("log_start_below_hw"))
    for _ in range(3):
        solo.produce("b1", b"x", acks=1)
    solo.replicate(offset=2)
    number = delete(solo, 3)
    if is_on:
        assert deleted(solo, number) == (OUT_OF_RANGE, -1)
        assert solo.replica.opened.log_start_offset == 0
    else:
        assert solo.replica.opened.log_start_offset > solo.hw, "I14"


@pytest.mark.parametrize("offset", [-2, 4, 2**70])
def test_a6_an_offset_outside_the_log_is_out_of_range(offset: int) -> None:
    solo = Solo(isr=("b1",))
    solo.produce("b1", b"x")
    assert deleted(solo, delete(solo, offset)) == (OUT_OF_RANGE, -1)


def test_a6_a_deletion_below_the_start_is_done_already() -> None:
    solo = Solo(replicas=("b1",))
    for _ in range(3):
        solo.produce("b1", b"x")
    assert deleted(solo, delete(solo, 2)) == (ErrorCode.NONE, 2)
    assert deleted(solo, delete(solo, 1)) == (ErrorCode.NONE, 2)
    assert solo.replica.opened.epochs.entries == ((0, 2),)


def test_a6_a_deletion_that_waits_too_long_stands_all_the_same() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    number = delete(solo, 1)
    solo.router.run_for(1_000)
    assert deleted(solo, number) == (ErrorCode.REQUEST_TIMED_OUT, 0)
    assert solo.replica.opened.log_start_offset == 1
    assert (solo.leader.deletes, solo.broker("b1").core.parked_deletes) == ([], {})


def test_a6_a_deletion_is_answered_when_leadership_is_lost() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    number = delete(solo, 1)
    solo.lead("b2")
    assert deleted(solo, number) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    solo.router.run_for(2_000)
    assert len(solo.router.take("k1")) == 1


def test_a6_more_deletions_than_may_wait_are_answered_at_once() -> None:
    solo = Solo(config=BrokerConfig(parked_requests_max=1))
    solo.produce("b1", b"x", acks=1)
    solo.replicate()
    first, second = delete(solo, 1), delete(solo, 1)
    assert deleted(solo, first) is None
    assert deleted(solo, second) == (ErrorCode.REQUEST_TIMED_OUT, 0)


def test_a6_a_deletion_of_nothing_is_answered() -> None:
    solo = Solo()
    solo.send("b1", DeleteRecordsRequest(solo.number(), 1_000, ()), client="k1")
    assert len(solo.router.take("k1")) == 1


# Metadata --------------------------------------------------------------------------------------


def metadata(solo: Solo, topics: tuple[str, ...] | None) -> MetadataResponse:
    answer = solo.ask("b1", MetadataRequest(solo.number(), topics))
    assert isinstance(answer, MetadataResponse)
    return answer


def test_a22_metadata_is_what_the_broker_has_applied() -> None:
    solo = Solo(isr=("b1", "b2"))
    solo.change_broker("b3", fenced=True)
    answer = metadata(solo, None)
    assert answer.metadata_offset == len(solo.controller.records)
    assert [broker.broker_id for broker in answer.brokers] == ["b1", "b2"]
    (partition,) = answer.topics[0].partitions
    assert (partition.leader, partition.leader_epoch) == ("b1", 0)
    assert (partition.isr, partition.offline_replicas) == (("b1", "b2"), ("b3",))
    solo.controller.silent_to = {"b1"}
    solo.lead("b2")
    lagging = metadata(solo, ("orders", "nothing"))
    assert lagging.topics[0].partitions[0].leader == "b1"
    assert lagging.topics[1].error_code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a22_a_partition_without_a_leader_says_so() -> None:
    solo = Solo()
    solo.lead(None)
    (partition,) = metadata(solo, ("orders",)).topics[0].partitions
    assert (partition.leader, partition.error_code) == (None, ErrorCode.LEADER_NOT_AVAILABLE)


def test_a22_a_topic_without_partitions_has_none() -> None:
    solo = Solo()
    solo.decide(TopicRecord("CCCCCCCCCCCCCCCCCCCCCQ", "empty"))
    assert metadata(solo, ("empty",)).topics[0].partitions == ()
