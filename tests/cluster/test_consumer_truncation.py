"""How a consumer finds out that what it read is gone, and from where on.

KIP-320; hazards B-66 and B-H3, the guard off and on. The pure rule is compared with logs laid side
by side.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

from cluster.consumer_events import OffsetReset, TruncationDetected
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.messages_control import OffsetCommitRequest
from cluster.messages_data import (
    EpochEndOffset,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.positions import EpochsRead, Position, validate
from storage import PartitionLog
from storage.memdisk import MemDisk
from tests.cluster.consuming import Consuming, batch, filled
from tests.storage.batches import commit

NO_GUARD = Guards(one_epoch_per_position=False)


def truncated(**config: object) -> Consuming:
    """Of five records that the consumer read, an unclean election left three and wrote one."""
    k = filled(**config)
    k.cluster.elect(0, "b2", end=3)
    k.cluster[0].append(*[batch(b"new%d" % number) for number in range(4)])
    k.run()
    return k


def test_b66_truncation_below_the_position_is_an_event_and_reading_goes_on_there() -> None:
    k = truncated()
    assert k.events() == [TruncationDetected(k.cluster.name(), 5, 0, 0, 3)]
    assert k.values() == [b"new0", b"new1", b"new2", b"new3"]


def test_b66_truncation_without_policy_stands_until_a_seek() -> None:
    k = truncated(auto_offset_reset="none")
    assert k.events() == [TruncationDetected(k.cluster.name(), 5, 0, 0, 3)]
    assert k.values() == []
    assert (k.position(), k.driver.sent) == (5, [])
    k.seek(3, 0)
    k.run()
    assert len(k.values()) == 4


def test_truncation_to_an_unknown_point_is_an_event_before_the_reset() -> None:
    k = filled()
    k.cluster.elect(0, "b2")
    k.fetch_fails(ErrorCode.FENCED_LEADER_EPOCH)
    to, request = k.until(OffsetsForLeaderEpochRequest)
    nothing = OffsetsForLeaderEpochPartitionResult(k.cluster.name(), ErrorCode.NONE)
    k.driver.answer(to, OffsetsForLeaderEpochResponse(request.correlation_id, (nothing,)))
    k.run()
    name = k.cluster.name()
    assert k.events() == [TruncationDetected(name, 5, 0, -1, -1), OffsetReset(name, 5, 0)]
    assert len(k.values()) == 5


def bh3(guards: Guards) -> Consuming:
    """The steps of hazard B-H3: what was read of epoch 1 is gone, but epoch 0 reaches further."""
    k = filled(8, guards=guards)
    other = PartitionLog.open(Path("/other"), disk=MemDisk())
    for number in range(12):
        other.append(batch(b"a%d" % number if number >= 8 else b"%d" % number))
    k.cluster.elect(0, "b2")
    k.cluster[0].append(batch(b"b8"), batch(b"b9"))
    k.run()
    assert k.values() == [b"b8", b"b9"]
    k.cluster[0].log = other
    k.cluster.elect(0, "b1")
    k.cluster[0].append(batch(b"a12"))
    k.run()
    return k


def test_bh3_with_the_guard_an_epoch_that_the_leader_lacks_is_a_truncation() -> None:
    k = bh3(Guards())
    assert k.events() == [TruncationDetected(k.cluster.name(), 10, 1, 0, 8)]
    assert k.values() == [b"a8", b"a9", b"a10", b"a11", b"a12"]


def test_bh3_without_the_guard_the_consumer_has_read_what_was_truncated_unawares() -> None:
    k = bh3(NO_GUARD)
    assert k.events() == []
    assert k.values() == [b"a10", b"a11", b"a12"]


def test_bh3_after_a_restart_the_truncation_is_found_though_not_its_place() -> None:
    cluster = bh3(Guards()).cluster
    cluster.committed["g", cluster.name()] = (10, 1)
    k = Consuming(cluster=cluster, group="g")
    k.assign()
    k.run()
    assert k.events() == [TruncationDetected(cluster.name(), 10, 1, 0, 10)]


def test_bh3_no_false_alarm_where_an_epoch_without_records_was_only_named() -> None:
    k = Consuming(auto_offset_reset="latest")
    k.cluster[0].append(batch(b"a"))
    k.cluster.elect(0, "b2")
    k.assign()
    k.run()
    assert k.fields()["t-0/position_epoch"] == 1
    k.cluster[0].log.become_follower()
    k.cluster.elect(0, "b3")
    k.cluster[0].append(batch(b"b"))
    k.run()
    assert k.values() == [b"b"]
    assert k.events() == [OffsetReset(k.cluster.name(), -1, 1)]


def read_of_two_epochs() -> Consuming:
    """Five records of epoch 0 and two of epoch 2; the next leader is asked about epoch 2."""
    k = filled(5, group="g")
    k.cluster.elect(0, None)
    k.cluster.elect(0, "b2")
    k.cluster[0].append(batch(b"x"), batch(b"y"))
    k.run()
    assert k.values() == [b"x", b"y"]
    k.cluster.elect(0, "b1")
    k.fetch_fails(ErrorCode.FENCED_LEADER_EPOCH)
    return k


def answer_epoch(k: Consuming, asked_epoch: int, epoch: int, end: int) -> None:
    to, request = k.until(OffsetsForLeaderEpochRequest)
    assert request.partitions[0].leader_epoch == asked_epoch
    result = OffsetsForLeaderEpochPartitionResult(k.cluster.name(), ErrorCode.NONE, epoch, end)
    k.driver.answer(to, OffsetsForLeaderEpochResponse(request.correlation_id, (result,)))


def test_truncation_is_measured_by_epochs_that_both_sides_know() -> None:
    k = read_of_two_epochs()
    answer_epoch(k, 2, 1, 9)
    assert k.events() == []
    k.driver.call(k.consumer.commit)
    assert k.driver.take(OffsetCommitRequest) == []
    answer_epoch(k, 0, 0, 4)
    assert k.events() == [TruncationDetected(k.cluster.name(), 7, 2, 0, 4)]
    assert k.position() == 4


def test_truncation_whose_measured_place_is_shared_is_an_event_too() -> None:
    k = read_of_two_epochs()
    answer_epoch(k, 2, 1, 9)
    answer_epoch(k, 0, 0, 6)
    assert k.events() == [TruncationDetected(k.cluster.name(), 7, 2, 0, 5)]
    assert k.position() == 5


def test_truncation_is_told_once() -> None:
    k = truncated()
    assert len(k.events()) == 1
    assert len(k.values()) == 4
    k.cluster.elect(0, "b3")
    k.run()
    assert k.events() == []


def test_epoch_of_a_marker_counts_as_read() -> None:
    k = filled(5)
    k.cluster.elect(0, "b2")
    k.cluster[0].append(commit())
    k.run()
    assert k.position() == 6
    k.cluster.elect(0, "b1")
    k.fetch_fails(ErrorCode.FENCED_LEADER_EPOCH)
    answer_epoch(k, 1, 0, 9)
    assert k.events() == [TruncationDetected(k.cluster.name(), 6, 1, 0, 5)]


# The pure rule ---------------------------------------------------------------------------------


def families(epochs: int, size: int) -> Iterator[list[list[int]]]:
    """Logs, as epochs of their records, of which each continues a prefix of an earlier one."""
    if epochs == 0:
        yield [[]]
        return
    for logs in families(epochs - 1, size):
        prefixes = {tuple(log[:end]) for log in logs for end in range(len(log) + 1)}
        for prefix, count in product(sorted(prefixes), range(size + 1)):
            yield [*logs, [*prefix, *[epochs - 1] * count]]


def ask(leader: list[int], epoch: int) -> EpochEndOffset:
    """PROTOCOL A8 over the leader's records, with an epoch of its own that has none yet."""
    starts = {each: leader.index(each) for each in sorted(set(leader))} | {99: len(leader)}
    end = min(start for each, start in starts.items() if each > epoch)
    known = [each for each in starts if each <= epoch]
    return EpochEndOffset(known[-1] if known else epoch, end)


def test_validation_finds_where_two_logs_part() -> None:
    """All that can come of three epochs with up to two records each, asked until all is known."""
    cases = 0
    for logs in families(3, 2):
        for log, leader in product(logs, logs):
            for end in range(1, len(log) + 1):
                check_parting(log[:end], leader)
                cases += 1
    assert cases > 1_000


def test_epochs_read_displace_those_that_were_given_up() -> None:
    epochs = EpochsRead()
    epochs.note(0, 0)
    epochs.note(1, 4)
    assert epochs.end_of(1, 6) == (1, 6)
    assert epochs.end_of(0, 6) == (0, 4)
    assert epochs.end_of(1, 3) == (0, 3)
    epochs.note(2, 3)
    assert epochs.end_of(1, 6) == (0, 3)
    assert EpochsRead().end_of(3, 6) == (-1, 6)


def check_parting(own: list[int], leader: list[int]) -> None:
    epochs = EpochsRead()
    for offset, epoch in enumerate(own):
        epochs.note(epoch, offset)
    position = Position(len(own), own[-1], True)
    parted = len(own)
    for _ in range(4):
        answer = ask(leader, position.leader_epoch)
        diverging, is_complete = validate(position, answer, epochs, Guards())
        if diverging is not None:
            parted = diverging.end_offset
            position = Position(parted, diverging.leader_epoch, True)
        if is_complete:
            break
    else:
        raise AssertionError("never complete")
    shared = 0
    while shared < min(len(own), len(leader)) and own[shared] == leader[shared]:
        shared += 1
    assert parted == shared, (own, leader)
