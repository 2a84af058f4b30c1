"""What a consumer asks for, what it makes of the bytes it gets, and what it hands over.

Each test scripts what the brokers answer; ``tests.cluster.consuming`` has the words for it.
"""

from __future__ import annotations

import pytest

from cluster.consumer_events import CorruptRecords, OffsetReset, PolledRecord
from cluster.errors import ErrorCode
from cluster.fetched import parse_frames
from cluster.guards import Guards
from cluster.messages_data import (
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    MetadataRequest,
)
from storage import Header, Record, RecordBatch, encode_batch
from tests.cluster.consuming import Consuming, batch
from tests.cluster.fake_cluster import TOPIC
from tests.storage.batches import commit


def test_records_come_in_order_with_all_that_they_have() -> None:
    k = Consuming()
    headers = (Header("h", None),)
    records = [Record(b"k", b"a", 7, headers), Record(None, None, -1)]
    k.cluster[0].append(RecordBatch.unassigned(records), batch(b"c"))
    k.assign()
    k.run()
    name = k.cluster.name()
    assert k.poll() == [
        PolledRecord(name, 0, 0, b"k", b"a", 7, headers),
        PolledRecord(name, 1, 0, None, None, -1, ()),
        PolledRecord(name, 2, 0, None, b"c", 5, ()),
    ]
    assert k.position() == 3
    assert k.poll() == []
    assert k.events() == [OffsetReset(name, -1, 0)]


def test_fetch_carries_the_leader_epoch_and_no_epoch_of_records() -> None:
    k = Consuming(max_partition_fetch_bytes=321, fetch_max_wait_ms=7)
    k.cluster.elect(0, "b2")
    k.assign()
    to, request = k.until(FetchRequest)
    (asked,) = request.partitions
    assert to == "b2"
    assert (asked.current_leader_epoch, asked.last_fetched_epoch) == (1, -1)
    assert (request.replica_id, request.max_wait_ms) == ("", 7)
    assert asked.partition_max_bytes == 321


def test_one_fetch_is_in_flight_to_each_leader_for_all_its_partitions() -> None:
    k = Consuming(partitions=3)
    k.cluster.elect(2, "b2")
    k.assign(0, 1, 2)
    k.driver.advance(us=0)
    k.serve(MetadataRequest)
    k.serve(ListOffsetsRequest)
    fetches = k.driver.take(FetchRequest)
    asked = {(to, p.partition.partition) for to, request in fetches for p in request.partitions}
    assert len(fetches) == 2
    assert asked == {("b1", 0), ("b1", 1), ("b2", 2)}
    k.driver.advance(ms=500)
    assert k.driver.take(FetchRequest) == []


def test_poll_is_bounded_and_partitions_take_turns() -> None:
    k = Consuming(partitions=2, max_poll_records=2)
    for number in (0, 1):
        k.cluster[number].append(*[batch(b"%d-%d" % (number, n)) for n in range(3)])
    k.assign(0, 1)
    k.run()
    polls = [[record.value for record in k.poll()] for _ in range(4)]
    assert polls == [[b"0-0", b"0-1"], [b"1-0", b"1-1"], [b"0-2", b"1-2"], []]
    assert k.poll(0) == []


def test_buffer_is_bounded_and_fetching_goes_on_after_a_poll() -> None:
    k = Consuming(fetch_buffer_records=4)
    k.cluster[0].append(*[batch(b"%d" % number, b"x") for number in range(10)])
    k.assign()
    k.run()
    assert k.fields()["t-0/buffered"] == 4
    assert k.driver.sent == []
    assert len(k.poll(3)) == 3
    k.run(200)
    assert k.fields()["t-0/buffered"] in (4, 5)
    total = 3
    while records := k.poll():
        total += len(records)
        k.run(200)
    assert total == 20


def test_records_above_the_high_watermark_stay_unseen() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"))
    k.cluster[0].append(batch(b"b"), commit=False)
    k.assign()
    k.run()
    assert k.values() == [b"a"]
    assert k.fields()["t-0/high_watermark"] == 1


def test_control_batches_are_passed_over() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"), commit(), batch(b"b"), commit())
    k.assign()
    k.run()
    assert [(record.offset, record.value) for record in k.poll()] == [(0, b"a"), (2, b"b")]
    assert k.position() == 4


def test_position_moves_over_control_batches_alone() -> None:
    k = Consuming()
    k.cluster[0].append(commit(), commit())
    k.assign()
    k.run()
    assert k.position() == 2


def test_frame_that_begins_below_the_position_is_trimmed() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a", b"b", b"c"))
    k.assign()
    k.seek(1)
    k.run()
    assert k.values() == [b"b", b"c"]


def test_holes_of_compaction_are_passed_over() -> None:
    records = (Record(None, b"x", 0), Record(None, b"y", 0))
    holed = RecordBatch(records, (1, 4), 6, 10, 2)
    found = parse_frames(encode_batch(holed), fetch_offset=12, records_max=9, epoch_max=2)
    assert [(record.offset, record.value) for record in found.records] == [(14, b"y")]
    assert (found.next_offset, found.leader_epoch, found.damage) == (17, 2, None)


def test_damaged_frame_ends_the_run_and_is_fetched_again_behind_a_back_off() -> None:
    k = Consuming()
    good = encode_batch(batch(b"a").assign(0, 0))
    bad = bytearray(encode_batch(batch(b"b").assign(1, 0)))
    bad[-1] ^= 1
    k.assign()
    k.fetch_returns(good + bytes(bad))
    assert k.driver.take(FetchRequest) == []
    assert k.events()[1:] == [CorruptRecords(k.cluster.name(), 1, "crc", 1)]
    k.driver.advance(us=99_999)
    assert k.driver.take(FetchRequest) == []
    k.driver.advance(us=1)
    request = k.fetch_returns(bytes(bad))
    assert request.partitions[0].fetch_offset == 1
    assert k.events() == [CorruptRecords(k.cluster.name(), 1, "crc", 2)]
    k.cluster[0].append(batch(b"a"), batch(b"b"))
    k.run()
    assert k.values() == [b"a", b"b"]


@pytest.mark.parametrize("data", [b"", b"MKB1", b"garbage" * 20, bytes(200)])
def test_bytes_that_are_no_frames_never_raise(data: bytes) -> None:
    found = parse_frames(data, fetch_offset=3, records_max=9, epoch_max=None)
    assert (found.records, found.next_offset) == ([], 3)
    assert (found.damage is None) == (data == b"")


def test_frames_that_go_back_end_the_run() -> None:
    data = encode_batch(batch(b"a", b"b").assign(5, 0)) + encode_batch(batch(b"c").assign(6, 0))
    found = parse_frames(data, fetch_offset=5, records_max=9, epoch_max=0)
    assert (len(found.records), found.next_offset, found.damage) == (2, 7, "offset")


def test_frames_below_the_position_are_left_out() -> None:
    data = encode_batch(batch(b"a").assign(0, 0)) + encode_batch(batch(b"b").assign(1, 0))
    found = parse_frames(data, fetch_offset=1, records_max=9, epoch_max=0)
    assert [record.value for record in found.records] == [b"b"]


def newer_than_the_fetch(guards: Guards) -> Consuming:
    """What was read for the answer is of an epoch that the asker does not know yet (B-20)."""
    k = Consuming(guards=guards)
    k.assign()
    k.fetch_returns(encode_batch(batch(b"uncommitted").assign(0, 1)))
    return k


def test_b20_batch_newer_than_the_fetch_is_dropped() -> None:
    k = newer_than_the_fetch(Guards())
    assert k.values() == []
    k.driver.advance(ms=100)
    assert len(k.driver.take(MetadataRequest)) == 1
    k = newer_than_the_fetch(Guards(batch_epoch_not_above_fetch_epoch=False))
    assert k.values() == [b"uncommitted"]


def test_fetch_without_answer_is_asked_again() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"))
    k.assign()
    to, request = k.until(FetchRequest)
    late = k.cluster.answer(to, request)
    k.driver.advance(ms=1_100)
    k.driver.answer(to, late)
    assert k.values() == []
    k.run()
    assert k.values() == [b"a"]
    k.until(FetchRequest)
    k.driver.disconnect("b1")
    k.cluster[0].append(batch(b"b"))
    k.run()
    assert k.values() == [b"b"]


def test_answer_for_an_earlier_position_is_dropped() -> None:
    k = Consuming()
    k.cluster[0].append(*[batch(b"%d" % number) for number in range(5)])
    k.assign()
    to, request = k.until(FetchRequest)
    k.seek(3)
    k.driver.answer(to, k.cluster.answer(to, request))
    assert k.values() == []
    k.run()
    assert k.values() == [b"3", b"4"]


def test_a22_answer_to_a_fetch_of_an_older_epoch_is_dropped() -> None:
    k = Consuming(metadata_max_age_ms=500)
    k.cluster[0].append(batch(b"old"))
    k.assign()
    to, request = k.until(FetchRequest)
    late = k.cluster.answer(to, request)
    k.cluster.elect(0, "b2", end=0)
    k.driver.advance(ms=500)
    k.until(FetchRequest)
    assert k.fields()["t-0/leader_epoch"] == 1
    k.driver.answer(to, late)
    assert k.values() == []


def test_seek_drops_what_was_fetched() -> None:
    k = Consuming()
    k.cluster[0].append(*[batch(b"%d" % number) for number in range(5)])
    k.assign()
    k.run()
    assert len(k.poll(1)) == 1
    k.seek(4)
    k.run()
    assert k.values() == [b"4"]


def test_assign_keeps_positions_and_drops_the_rest() -> None:
    k = Consuming(partitions=2)
    for number in (0, 1):
        k.cluster[number].append(batch(b"a"), batch(b"b"))
    k.assign(0)
    k.run()
    assert len(k.poll(1)) == 1
    k.assign(0, 1)
    k.run()
    assert len(k.values()) == 3
    k.assign(1)
    assert k.position(1) == 2
    with pytest.raises(ValueError, match="t-0 is not assigned"):
        k.position(0)


def test_mistakes_of_the_user_are_errors() -> None:
    k = Consuming()
    k.assign()
    with pytest.raises(ValueError, match="not assigned"):
        k.seek(1, partition=4)
    with pytest.raises(ValueError, match="offset is -1"):
        k.seek(-1)
    with pytest.raises(ValueError, match="each one once"):
        k.driver.call(k.consumer.assign, ((TOPIC, 0), (TOPIC, 0)))
    with pytest.raises(ValueError, match="partition is -1"):
        k.driver.call(k.consumer.assign, ((TOPIC, -1),))
    with pytest.raises(ValueError, match="group is None"):
        k.driver.call(k.consumer.commit)


def test_stop_ends_everything() -> None:
    k = Consuming()
    k.assign()
    k.run()
    to, request = k.until(FetchRequest)
    k.driver.call(k.consumer.on_stop)
    assert k.driver.is_stopped
    assert k.driver.timers == {}
    k.driver.answer(to, k.cluster.answer(to, request))
    assert k.driver.sent == []


@pytest.mark.parametrize("error", list(ErrorCode), ids=lambda error: error.name)
def test_any_error_of_a_fetch_is_overcome(error: ErrorCode) -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"))
    k.assign()
    k.fetch_fails(error)
    k.run()
    assert k.values() == [b"a"]


def test_response_without_the_partition_is_asked_again() -> None:
    k = Consuming()
    k.cluster[0].append(batch(b"a"))
    k.assign()
    to, request = k.until(FetchRequest)
    k.driver.answer(to, FetchResponse(request.correlation_id, ()))
    assert k.driver.take(FetchRequest) == []
    k.run()
    assert k.values() == [b"a"]


def test_fields_show_phase_and_position() -> None:
    k = Consuming()
    k.assign()
    assert k.fields()["t-0/phase"] == "reset"
    k.cluster[0].append(batch(b"a"))
    k.run()
    assert len(k.poll()) == 1
    fields = k.fields()
    assert (fields["t-0/phase"], fields["t-0/position"]) == ("fetch", 1)
    assert (fields["t-0/leader"], fields["t-0/leader_epoch"]) == ("b1", 0)
