"""What a follower appends (PROTOCOL A1), when it is durable, and what it takes from nobody."""

from __future__ import annotations

import pytest

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_data import (
    EpochEndOffset,
    FetchPartitionResult,
    FetchResponse,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochResponse,
    ProducePartition,
    ProduceRequest,
)
from cluster.records import ConfigRecord
from cluster.truncation import TruncationMode
from storage.batch import Record, RecordBatch
from storage.mkb1 import MKB1
from tests.cluster.fake_leader import LEADER, FakeLeader, frame, frames, numbered
from tests.cluster.histories import History, first_difference, raw, violations
from tests.cluster.scripted import ORDERS

BACKOFF_MS = 1_000
COMPACTED = {"cleanup.policy": "compact"}


def content(leader: FakeLeader) -> bytes:
    log = leader.log_of()
    return log.read_range(log.log_start_offset, 1 << 24) if log.leo > log.log_start_offset else b""


# Appending -------------------------------------------------------------------------------------


def test_a1_the_leaders_bytes_offsets_and_epochs_are_kept() -> None:
    leader = FakeLeader(runs=((4, 0),))
    sent = frame(0, 3, 1) + frame(3, 1, 1) + frame(4, 2, 4)
    leader.answer_fetch(sent)
    assert content(leader) == sent
    assert leader.log_of().epochs.entries == ((1, 0), (4, 4))
    assert violations(leader.replica_of()) == []


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(frame(2), id="below-the-end"),
        pytest.param(frame(3) + frame(3), id="twice"),
        pytest.param(frame(3) + frame(5, 1), id="gap"),
        pytest.param(frame(4), id="gap-at-once"),
        pytest.param(frame(3, 1, 2) + frame(4, 1, 1), id="epoch-falls"),
        pytest.param(frame(2**63 - 3), id="far-away"),
    ],
)
def test_a1_what_does_not_follow_the_end_fails_the_partition_and_changes_nothing(
    sent: bytes,
) -> None:
    leader = FakeLeader(runs=((2, 3),), high_watermark=1)
    before = content(leader)
    leader.answer_fetch(sent, high_watermark=3, log_start=1)
    assert leader.state() == "failed"
    assert (content(leader), leader.leo_and_hw()) == (before, (3, 1))
    assert leader.log_of().log_start_offset == 0


@pytest.mark.parametrize("position", [0, 4, 8, 12, 13, 30, -1])
@pytest.mark.parametrize("good", [0, 1])
def test_a3_damaged_frames_are_not_appended_and_asked_for_again(position: int, good: int) -> None:
    leader = FakeLeader(runs=((0, 3),), high_watermark=1)
    damaged = bytearray(frame(3 + good))
    damaged[position] ^= 1
    leader.answer_fetch(frames(3, 3 + good) + bytes(damaged), high_watermark=4)
    assert leader.leo_and_hw() == (3, 1)
    assert leader.state() == "fetching"
    leader.router.run_for(BACKOFF_MS)
    assert leader.fetch().partitions[0].fetch_offset == 3
    leader.answer_fetch(frames(3, 5), high_watermark=4)
    assert leader.leo_and_hw() == (5, 4)


@pytest.mark.parametrize("sent", [b"M", b"MKB1", frame(3)[:-1], b"\0" * 200, frame(3) + b"MK"])
def test_a3_torn_bytes_are_asked_for_again(sent: bytes) -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.answer_fetch(sent)
    assert leader.log_of().leo == 3
    leader.router.run_for(BACKOFF_MS)
    assert leader.fetch().partitions[0].fetch_offset == 3


def test_a1_of_frames_newer_than_the_fetch_only_those_in_front_are_taken() -> None:
    leader = FakeLeader(runs=((2, 3),))
    leader.answer_fetch(frame(3, 1, 2) + frame(4, 1, 3) + frame(5, 1, 2), high_watermark=3)
    assert leader.leo_and_hw() == (4, 3)
    assert leader.fetch().partitions[0].fetch_offset == 4
    leader.answer_fetch(frame(4, 1, 3), high_watermark=4)
    assert leader.leo_and_hw() == (4, 3)
    assert leader.state() == "fetching"


def test_a1_a_frame_above_todays_max_message_bytes_is_taken_since_the_leader_has_it() -> None:
    leader = FakeLeader(topic={"max.message.bytes": "100"})
    sent = frame(0, 1, value=bytes(10_000))
    leader.answer_fetch(sent, high_watermark=1)
    assert content(leader) == sent
    assert leader.leo_and_hw() == (1, 1)


# Gaps ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [frame(7), frame(3) + frame(9), frame(5) + frame(6) + frame(8)])
def test_a1_gaps_of_a_compacted_leader_are_kept(sent: bytes) -> None:
    leader = FakeLeader(topic=COMPACTED, runs=((0, 3),))
    leader.answer_fetch(sent)
    assert content(leader).endswith(sent)
    assert violations(leader.replica_of()) == []
    assert leader.fetch().partitions[0].fetch_offset == leader.log_of().leo


def test_a1_an_append_without_a_gap_declares_none() -> None:
    leader = FakeLeader(topic=COMPACTED, runs=((0, 3),))
    assert leader.log_of().gaps_end == 0
    leader.answer_fetch(frame(3) + frame(9) + frame(10))
    assert leader.log_of().gaps_end == 9


def test_a1_a_topic_that_is_no_longer_compacted_keeps_the_gaps_it_has() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.answer_fetch(frame(7), high_watermark=7)
    assert (leader.log_of().leo, leader.state()) == (8, "fetching")

    strict = FakeLeader(runs=((0, 3),))
    strict.answer_fetch(frame(7), high_watermark=6)
    assert (strict.log_of().leo, strict.state()) == (3, "failed")


def produce_keyed(history: History, leader: str, key: bytes, value: bytes) -> None:
    batch = RecordBatch.unassigned([Record(key, value, history.router.now.wall_ms)])
    part = ProducePartition(ORDERS, MKB1.encode(batch, 0, 0, 1 << 20)[0])
    history.send(leader, ProduceRequest(history.number(), 1, 30_000, (part,)))


@pytest.mark.parametrize("policy", ["compact", "delete"])
def test_a23_a_new_replica_copies_a_compacted_log_with_its_holes(policy: str) -> None:
    history = History(
        3,
        topic={"cleanup.policy": "compact", "segment.bytes": "300", "flush.messages": "1"},
        config=BrokerConfig(replica_fetch_max_bytes=300),
    )
    history.lead("b1", ["b1"], replicas=["b1", "b3"])
    for number in range(30):
        if number % 10 == 0:
            history.lead("b1", ["b1"])
        produce_keyed(history, "b1", b"k%d" % (number % 7), b"v%d" % number)
    history.router.run_for(20_000)
    log = history.replica("b1").opened
    assert [record[0] for record in history.log("b1")] != list(range(30))
    assert log.gaps_end > 0
    history.decide(ConfigRecord(True, "orders", "cleanup.policy", policy))
    history.lead("b1", ["b1"], replicas=["b1", "b2", "b3"])
    history.router.run_for(5_000)
    assert history.log("b1") == history.log("b2")
    assert raw(history.broker("b1")) == raw(history.broker("b2"))

    # The copy knows only epochs with records, and leads as well as the original.
    history.lead("b2", ["b1", "b2"])
    produce_keyed(history, "b2", b"last", b"last")
    history.router.run_for(5_000)
    # Each compacts on its own: what both still have is equal.
    assert first_difference(history, "b1", "b2") is None
    assert history.leo("b1") == history.leo("b2") == 31
    assert all(to == log_end for log_end, to in history.truncations("b1"))
    for name in history.names:
        assert violations(history.replica(name)) == []


# Log start inside a batch ----------------------------------------------------------------------


def test_a1_b22_an_empty_log_takes_the_batch_that_straddles_its_start() -> None:
    leader = FakeLeader()
    leader.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    leader.answer_offset(10)
    leader.answer_offset(5)
    leader.answer_fetch(frame(3, 4) + frame(7, 3), high_watermark=10, log_start=5)
    assert leader.leo_and_hw() == (10, 10)
    assert leader.log_of().log_start_offset == 5
    assert leader.fetch().partitions[0].log_start_offset == 5
    assert violations(leader.replica_of()) == []


@pytest.mark.parametrize("sent", [frame(3, 2), frame(0), frame(4) + frame(5)])
def test_a1_b22_a_batch_that_ends_below_the_start_is_refused(sent: bytes) -> None:
    leader = FakeLeader()
    leader.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    leader.answer_offset(10)
    leader.answer_offset(5)
    leader.answer_fetch(sent, high_watermark=10, log_start=5)
    assert leader.state() == "failed"
    assert leader.leo_and_hw() == (5, 5)


def test_a1_b22_a_log_with_records_takes_nothing_below_its_end() -> None:
    leader = FakeLeader(runs=((0, 3),))
    leader.answer_fetch(frame(2, 4))
    assert (leader.state(), leader.log_of().leo) == ("failed", 3)


# flush.messages --------------------------------------------------------------------------------


def test_decisions_2_9_a_follower_fetches_on_when_what_it_appended_is_durable() -> None:
    leader = FakeLeader(topic={"flush.messages": "1"})
    leader.router.holds_fsync = True
    count = leader.requests()
    leader.answer_fetch(frames(0, 2), high_watermark=1)
    assert (leader.state(), leader.requests()) == ("syncing", count)
    assert leader.leo_and_hw() == (2, 1)
    leader.router.do_held()
    leader.router.settle()
    assert leader.fetch().partitions[0].fetch_offset == 2
    assert leader.log_of().boundary.end_offset == 2


def test_decisions_2_9_a_flush_is_begun_after_so_many_records() -> None:
    leader = FakeLeader(topic={"flush.messages": "3"})
    leader.router.holds_fsync = True
    leader.answer_fetch(frames(0, 2))
    assert leader.state() == "fetching"
    leader.answer_fetch(frames(2, 3))
    assert leader.state() == "syncing"


def test_decisions_2_9_a_new_epoch_waits_for_the_flush_of_the_one_before() -> None:
    """Its first fetch would report what a power loss can still take."""
    leader = FakeLeader(topic={"flush.messages": "1"})
    leader.router.holds_fsync = True
    leader.answer_fetch(frames(0, 2))
    count = leader.requests()
    leader.follow(1)
    assert (leader.state(), leader.requests()) == ("syncing", count)
    leader.router.do_held()
    leader.router.settle()
    asked = leader.fetch().partitions[0]
    assert (asked.fetch_offset, asked.current_leader_epoch) == (2, 1)
    leader.answer_fetch(diverging=(0, 1))
    assert leader.leo_and_hw() == (1, 0)
    assert leader.log_of().boundary.end_offset <= 1


# Lies ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "diverging",
    [(-1, -1), (-7, -7), (0, -7), (-7, 2), (9, 9), (2**31, 2**63), (0, 0), (2, 3), (0, 10**30)],
)
def test_a3_a_lying_divergence_cuts_at_most_the_log_and_raises_nothing(
    diverging: tuple[int, int],
) -> None:
    leader = FakeLeader(runs=((0, 3), (2, 5)), high_watermark=2)
    leader.answer_fetch(diverging=diverging)
    leo, high_watermark = leader.leo_and_hw()
    assert 0 <= leo <= 5
    assert high_watermark == min(2, leo)
    assert violations(leader.replica_of()) == []
    assert leader.fetch().partitions[0].fetch_offset == leo


@pytest.mark.parametrize("offset", [-1, -7, 2**63 - 1, 2**63, 10**30])
@pytest.mark.parametrize("rounds", [0, 1])
def test_a12_a_lying_offset_is_asked_for_again(offset: int, rounds: int) -> None:
    leader = FakeLeader(runs=((0, 3),), high_watermark=2)
    leader.answer_fetch(error=ErrorCode.OFFSET_OUT_OF_RANGE)
    for _ in range(rounds):
        leader.answer_offset(9)
    leader.answer_offset(offset)
    assert leader.leo_and_hw() == (3, 2)
    leader.router.run_for(BACKOFF_MS)
    assert leader.asked(ListOffsetsRequest) is not None


def test_a3_b31_a_log_start_behind_the_own_end_fails_the_partition() -> None:
    leader = FakeLeader(runs=((0, 3),), high_watermark=1)
    leader.answer_fetch(frame(3), high_watermark=9, log_start=8)
    assert leader.state() == "failed"
    assert leader.leo_and_hw() == (4, 1)
    assert violations(leader.replica_of()) == []


def wrong_answers(number: int) -> list[Message]:
    fetched = FetchPartitionResult(ORDERS, ErrorCode.NONE, 9, 9, 0, EpochEndOffset(0, 0))
    stranger = fetched._replace(partition=numbered(7))
    listed = ListOffsetsPartitionResult(ORDERS, ErrorCode.NONE, -1, 0, 0)
    return [
        FetchResponse(number, ()),
        FetchResponse(number, (stranger,)),
        ListOffsetsResponse(number, (listed,)),
        OffsetsForLeaderEpochResponse(number, ()),
    ]


@pytest.mark.parametrize("which", range(4))
def test_a3_an_answer_to_something_else_changes_nothing_and_is_no_hurry(which: int) -> None:
    leader = FakeLeader(runs=((0, 3),), high_watermark=2)
    count = leader.requests()
    leader.answer(wrong_answers(leader.fetch().correlation_id)[which])
    assert leader.leo_and_hw() == (3, 2)
    assert leader.requests() == count
    leader.router.run_for(BACKOFF_MS)
    assert leader.fetch().partitions[0].fetch_offset == 3


def test_a3_a_partition_that_is_answered_twice_counts_once() -> None:
    leader = FakeLeader(runs=((0, 3),))
    number = leader.fetch().correlation_id
    first = leader.result(frame(3), high_watermark=1)
    second = leader.result(frame(4), high_watermark=2)
    leader.answer(FetchResponse(number, (first, second)))
    assert leader.leo_and_hw() == (4, 1)


# Between receipt and append --------------------------------------------------------------------


def stopped_at_receipt() -> FakeLeader:
    leader = FakeLeader(runs=((0, 3),))
    leader.router.yields = {"b1": ("fetch-received",)}
    leader.answer_fetch(frame(3), high_watermark=4)
    leader.router.yields = {}
    assert leader.leo_and_hw() == (3, 0)
    return leader


def test_a3_a_response_that_was_received_counts_though_the_connection_is_lost() -> None:
    leader = stopped_at_receipt()
    leader.router.call("b1", "on_disconnected", LEADER)
    leader.router.run_for(60_000)
    leader.router.resume()
    assert leader.leo_and_hw() == (4, 4)


def test_a3_a_response_that_was_received_is_dropped_after_a_new_epoch() -> None:
    leader = stopped_at_receipt()
    leader.follow(1)
    leader.router.resume()
    leader.router.settle()
    assert leader.leo_and_hw() == (3, 0)
    assert leader.fetch().partitions[0].current_leader_epoch == 1


def test_a3_b09_a_response_that_was_received_is_dropped_by_a_leader() -> None:
    leader = stopped_at_receipt()
    leader.follow(1, leader="b1")
    leader.router.resume()
    assert leader.log_of().leo == 3


# Storage ---------------------------------------------------------------------------------------


def test_a3_a_disk_that_is_full_halts_the_broker() -> None:
    leader = FakeLeader(runs=((0, 3),))
    disk = leader.disks["b1"]
    disk.capacity_bytes = 1
    leader.answer_fetch(frames(3, 100))
    assert leader.broker("b1").core.is_halted
    assert "b1" in leader.router.stopped
    assert [args["error"] for args in leader.router.noted("halt")] != []


@pytest.mark.parametrize("mode", list(TruncationMode), ids=lambda mode: mode.value)
def test_a3_a_disk_that_fails_in_a_truncation_halts_the_broker(mode: TruncationMode) -> None:
    leader = FakeLeader(mode=mode, runs=((0, 3), (2, 5)), high_watermark=2)
    leader.disks["b1"].read_only = True
    leader.follow(3)
    if mode is not TruncationMode.HIGH_WATERMARK:
        leader.answer_fetch()
        if mode is TruncationMode.FETCH:
            leader.answer_fetch(diverging=(0, 1))
        else:
            leader.answer_epoch(0, 1)
    assert leader.broker("b1").core.is_halted
