"""Disks that fail, logs that are damaged, checkpoints, retention, compaction (PROTOCOL A5, A6, A23,
DECISIONS 2.5, 2.10).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.effects import Background
from cluster.errors import ErrorCode
from cluster.messages_control import (
    BrokerHeartbeatRequest,
    BrokerRegistrationRequest,
    MetadataFetchResponse,
)
from cluster.messages_data import (
    IsolationLevel,
    ListOffsetsPartition,
    ListOffsetsRequest,
    RangeRef,
)
from cluster.records import METADATA_RECORDS, ConfigRecord, RemoveTopicRecord
from storage.batch import Record, RecordBatch
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from tests.cluster.leader_tools import Solo, batch, guards_without
from tests.cluster.scripted import ORDERS
from tests.storage.faults import FaultDisk

SMALL = {"segment.bytes": "200"}
LOG = Path("/b1/orders-0/00000000000000000000.log")


def faulty(**options: object) -> tuple[Solo, FaultDisk]:
    disk = FaultDisk(MemDisk())
    return Solo(disk=disk, **options), disk  # type: ignore[arg-type]


# A disk that fails -----------------------------------------------------------------------------


@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("partial", [0, 10])
def test_c1_an_append_that_fails_halts_the_broker_and_is_not_acknowledged(
    acks: int, partial: int
) -> None:
    solo, disk = faulty(replicas=("b1",))
    solo.produce("b1", b"x")
    solo.router.take("p1")
    assert solo.consume(1, wait_ms=500) is None
    disk.fail("write_at", suffix=".log", partial_bytes=partial)
    assert solo.produce_raw(batch(), acks=acks) is None
    assert solo.router.stopped == {"b1"}
    assert [n["error"] for n in solo.router.noted("halt")] != []
    solo.router.run_for(60_000)
    assert solo.router.take("p1") == solo.router.take("k1") == []
    assert solo.call("on_message", "p1", solo.fetch_request(0)) == []
    disk.plans.clear()
    solo.restart()
    assert solo.log("b1") == [(0, 0, b"x")]


def test_c1_a_full_disk_halts_the_broker_too() -> None:
    disk = MemDisk()
    solo = Solo(disk=disk)
    disk.capacity_bytes = disk.used_bytes
    assert solo.produce_raw(batch(), acks=1) is None
    assert solo.router.stopped == {"b1"}


@pytest.mark.parametrize(
    ("operation", "suffix", "after_ms"),
    [
        ("rename", "replication-offset-checkpoint", 5_000),
        ("fsync", "replication-offset-checkpoint.tmp", 5_000),
        ("rename", "recovery-point-offset-checkpoint", 60_000),
        ("rename", "log-start-offset-checkpoint", 60_000),
    ],
)
def test_c1_a_checkpoint_that_fails_halts_the_broker(
    operation: str, suffix: str, after_ms: int
) -> None:
    solo, disk = faulty()
    number = solo.produce("b1", b"x", timeout_ms=600_000)
    solo.router.is_held = lambda src, dst, message: dst == "c1"
    plan = disk.fail(operation, suffix=suffix)
    solo.router.run_for(after_ms)
    assert plan.hits == 1
    assert solo.router.stopped == {"b1"}
    solo.router.run_for(600_000)
    assert solo.acked(number) is None


@pytest.mark.parametrize("suffix", ["leader-epoch-checkpoint", "leader-epoch-checkpoint.tmp"])
def test_c1_a_promotion_that_fails_halts_the_broker(suffix: str) -> None:
    solo, disk = faulty()
    solo.produce("b1", b"x", acks=1)
    disk.fail("rename" if suffix.endswith("point") else "fsync", suffix=suffix)
    solo.lead("b1")
    assert solo.router.stopped == {"b1"}
    solo.restart()
    assert solo.replica.opened.epochs.entries == ((0, 0), (1, 1))


def test_c1_background_work_that_fails_halts_the_broker() -> None:
    solo, disk = faulty(topic=SMALL, replicas=("b1",))
    solo.router.holds_background = True
    for _ in range(4):
        solo.produce("b1", b"x" * 50)
    assert [h for h in solo.router.held if isinstance(h[1], Background)]
    disk.fail("fsync", suffix=".log", times=None)
    solo.router.do_held()
    assert solo.router.stopped == {"b1"}


def test_c1_a_partition_that_cannot_be_begun_halts_the_broker() -> None:
    solo, disk = faulty(leads=False)
    disk.fail("mkdir", suffix="orders-0")
    solo.lead("b1", ("b1",), replicas=("b1",))
    assert solo.router.stopped == {"b1"}


def five_records() -> tuple[Solo, FaultDisk]:
    """A sole member whose disk cannot be read from now on."""
    solo, disk = faulty(replicas=("b1",), topic={"index.interval.bytes": "1"})
    for _ in range(5):
        solo.produce("b1", b"x")
    solo.router.take("p1")
    return solo, disk


def test_c1_a_read_that_fails_halts_the_broker_and_is_not_answered() -> None:
    for timestamp in (None, 0):
        solo, disk = five_records()
        disk.fail("read_at", suffix=".log", times=None)
        if timestamp is None:
            assert solo.consume(3) is None
        else:
            part = (ListOffsetsPartition(ORDERS, -1, timestamp),)
            request = ListOffsetsRequest(solo.number(), "", IsolationLevel(0), part)
            assert solo.ask("b1", request) is None
        assert solo.router.stopped == {"b1"}


def test_c1_a_read_that_fails_while_others_are_woken_leaves_nothing_acknowledged() -> None:
    solo, disk = five_records()
    assert solo.consume(5, wait_ms=60_000) is None
    disk.fail("read_at", suffix=".log", times=None)
    number = solo.produce("b1", b"y")
    assert solo.router.stopped == {"b1"}
    assert (solo.acked(number), solo.fetched("k1")) == (None, [])


# Bytes of a response ---------------------------------------------------------------------------


def ref_of(solo: Solo, offset: int) -> RangeRef:
    request = solo.fetch_request(offset, epoch=0, replica="b2", replica_epoch=solo.peers["b2"])
    effects = solo.call("on_message", "b2", request)
    ref = effects[-1].message.partitions[0].range_ref
    assert isinstance(ref, RangeRef)
    return ref


def test_b20_bytes_are_those_of_the_moment_of_transmission() -> None:
    solo = Solo()
    for value in (b"a", b"b"):
        solo.produce("b1", value, acks=1)
    broker, ref = solo.broker("b1"), ref_of(solo, 1)
    before = broker.read_range_ref(ref)
    assert before
    solo.lead("b2")
    solo.replica.truncate(1)
    assert broker.read_range_ref(ref) is None, "cut: the connection is reset"
    solo.lead("b1")
    solo.produce("b1", b"B", acks=1)
    after = broker.read_range_ref(ref)
    assert after is not None
    assert after != before, "overwritten: the receiver gets a batch of a newer epoch"
    assert [r[0] for r in solo.log("b1")] == [0, 1]


def test_b20_a_range_that_is_not_there_or_not_the_brokers_is_none() -> None:
    solo = Solo()
    solo.produce("b1", b"a", acks=1)
    broker, ref = solo.broker("b1"), ref_of(solo, 0)
    for wrong in (
        ref._replace(segment_base=7),
        ref._replace(creation=ref.creation + 1),
        ref._replace(position=10**9),
        ref._replace(size_bytes=10**9),
        ref._replace(partition=ORDERS._replace(partition=5)),
    ):
        assert broker.read_range_ref(wrong) is None
    solo.lead("b2")
    solo.replica.restart_at(0)
    assert broker.read_range_ref(ref) is None, "another segment of the same name"


# Quarantine ------------------------------------------------------------------------------------


def damaged(solo: Solo, at: int = 30) -> None:
    """Flip a byte below the durable boundary of ``b1``'s log while it is down."""
    solo.replica.opened.flush()
    solo.replica.opened.run_pending()
    solo.kill()
    file = solo.disks["b1"].open(LOG)
    file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 0xFF]))
    file.close()


def registration(solo: Solo) -> BrokerRegistrationRequest:
    found = [m for _, _, m in solo.router.delivered if isinstance(m, BrokerRegistrationRequest)]
    return found[-1]


def heartbeat(solo: Solo) -> BrokerHeartbeatRequest:
    found = [m for _, _, m in solo.router.delivered if isinstance(m, BrokerHeartbeatRequest)]
    return found[-1]


def quarantined(at: int = 30, **options: object) -> Solo:
    solo = Solo(**options)  # type: ignore[arg-type]
    for value in (b"a", b"b", b"c"):
        solo.produce("b1", value, acks=1)
    damaged(solo, at)
    return solo


def test_d210_a_damaged_log_is_named_and_not_served() -> None:
    solo = quarantined()
    solo.start("b1")
    assert registration(solo).damaged_partitions == (ORDERS,)
    assert heartbeat(solo).damaged_partitions == (ORDERS,)
    assert (solo.replica.role.name, solo.replica.log) == ("quarantined", None)
    assert solo.produce_raw(batch(), acks=1) is ErrorCode.KAFKA_STORAGE_ERROR
    answer = solo.consume(0)
    assert answer is not None
    assert answer.error_code is ErrorCode.KAFKA_STORAGE_ERROR
    assert solo.list_offset(-1).error_code is ErrorCode.KAFKA_STORAGE_ERROR


def test_d210_it_is_salvaged_only_outside_isr_and_elr() -> None:
    solo = quarantined(at=130)
    solo.start("b1")
    solo.lead("b2")
    assert solo.replica.role.name == "quarantined", "still a member of the ISR"
    solo.decide(solo.state(isr=("b2",), elr=("b1",)))
    assert solo.replica.role.name == "quarantined", "still eligible"
    solo.lead(None, ("b1",))
    assert solo.replica.role.name == "quarantined", "the last member"
    solo.lead("b2", ("b2",))
    assert solo.replica.role.name == "follower"
    assert solo.log("b1") == [(0, 0, b"a")], "the good prefix"
    solo.router.run_for(2_500)
    assert heartbeat(solo).damaged_partitions == ()


def test_d210_what_history_says_of_the_isr_is_no_reason_to_salvage() -> None:
    """Pulled in pieces, an old record would have it outside; it is inside."""
    solo = quarantined()
    solo.decide(solo.state(isr=("b2", "b3"), leader="b2", leader_epoch=1))
    solo.decide(solo.state(isr=("b1", "b2", "b3")))
    solo.controller.silent_to = {"b1"}
    solo.start("b1")
    request = solo.controller._parked.pop("b1")
    number = request.correlation_id
    for base, record in enumerate(solo.controller.records):
        data = (METADATA_RECORDS.encode(record),)
        solo.deliver("c1", MetadataFetchResponse(number, base, base + 1, False, data))
        assert solo.replica.role.name == "quarantined"
        number = solo.controller._parked.pop("b1").correlation_id
    assert heartbeat(solo).damaged_partitions == (ORDERS,)


def test_d210_a_damaged_log_of_a_deleted_topic_goes() -> None:
    solo = quarantined()
    solo.decide(RemoveTopicRecord(ORDERS.topic_id, "orders"))
    solo.start("b1")
    assert ORDERS not in solo.broker("b1").core.replicas
    solo.router.run_for(2_500)
    assert heartbeat(solo).damaged_partitions == ()


def test_d210_what_cannot_be_salvaged_stays_in_quarantine() -> None:
    """A thing that is no segment stands in the way of one."""
    solo = Solo()
    solo.produce("b1", b"a", acks=1)
    solo.kill()
    solo.disks["b1"].open(LOG.with_name("mine.log"), create=True).close()
    solo.start("b1")
    assert solo.replica.role.name == "quarantined"
    for leader in ("b2", None, "b3"):
        solo.lead(leader, ("b2", "b3"))
        assert solo.replica.role.name == "quarantined"
    solo.router.run_for(2_500)
    assert heartbeat(solo).damaged_partitions == (ORDERS,)
    solo.lead("b1", ("b2", "b3"))
    assert solo.produce_raw(batch(), acks=1) is ErrorCode.KAFKA_STORAGE_ERROR


def test_d210_the_high_watermark_of_a_damaged_log_is_kept_in_the_checkpoint() -> None:
    solo = Solo()
    for value in (b"a", b"b", b"c"):
        solo.produce("b1", value, acks=1)
    solo.replicate()
    solo.router.run_for(5_000)
    damaged(solo, 130)
    solo.start("b1")
    solo.router.run_for(6_000)
    assert list(solo.broker("b1").core.log_dir.high_watermarks.values()) == [3]


# Retention and compaction ----------------------------------------------------------------------


def timed_batch(timestamp: int, key: bytes | None = None, value: bytes = b"x" * 60) -> bytes:
    records = RecordBatch.unassigned([Record(key, value, timestamp)])
    return MKB1.encode(records, 0, 0, 1 << 20)[0]


def test_a23_the_default_configuration_survives_the_retention_check() -> None:
    solo = Solo(replicas=("b1",))
    solo.produce("b1", b"x")
    solo.router.run_for(900_000)
    assert solo.log("b1") == [(0, 0, b"x")]
    assert solo.router.noted("upkeep-error") == []


@pytest.mark.parametrize("is_on", [True, False])
def test_a23_b33_retention_goes_no_further_than_the_high_watermark(is_on: bool) -> None:
    topic = SMALL | {"retention.ms": "1000"}
    guards = None if is_on else guards_without("retention_below_hw")
    solo = Solo(topic=topic, guards=guards)
    for _ in range(8):
        solo.produce_raw(timed_batch(0), acks=1)
    solo.replicate(offset=3)
    solo.router.is_held = lambda src, dst, message: dst == "c1"
    solo.router.run_for(301_000)
    start = solo.replica.opened.log_start_offset
    assert start > 0
    assert start <= 3 if is_on else start > 3
    if not is_on:
        answer = solo.consume(3)
        assert answer is not None
        assert answer.error_code is ErrorCode.OFFSET_OUT_OF_RANGE, "uncommitted, and gone"


def test_a23_retention_by_bytes_and_none_without_the_policy() -> None:
    for policy, goes in (("delete", True), ("compact", False)):
        topic = SMALL | {"retention.bytes": "300", "cleanup.policy": policy}
        solo = Solo(topic=topic, replicas=("b1",))
        for number in range(8):
            solo.produce_raw(timed_batch(10**6, key=b"%d" % number))
        solo.router.run_for(301_000)
        assert (solo.replica.opened.log_start_offset > 0) is goes


@pytest.mark.parametrize("is_on", [True, False])
def test_a23_b34_compaction_goes_no_further_than_the_high_watermark(is_on: bool) -> None:
    """Hazard B-34: a committed value gives way to one that a fail-over takes back."""
    topic = SMALL | {"cleanup.policy": "compact"}
    guards = None if is_on else guards_without("compaction_below_hw")
    solo = Solo(topic=topic, guards=guards)
    for number in range(6):
        key = b"k" if number in (0, 4) else b"%d" % number
        solo.produce_raw(timed_batch(10**6, key=key, value=b"v%d" % number + b"." * 60), acks=1)
    solo.replicate(offset=3)
    solo.router.is_held = lambda src, dst, message: dst == "c1"
    solo.replica.opened.flush()
    solo.router.run_for(16_000)
    offsets = [offset for offset, _, _ in solo.log("b1")]
    assert (0 in offsets) is is_on, "k's committed value"


def test_a23_a_replica_without_log_is_left_out_of_all_upkeep() -> None:
    solo = quarantined()
    solo.start("b1")
    solo.router.run_for(900_000)
    assert solo.replica.role.name == "quarantined"


# Configuration of a live log -------------------------------------------------------------------


def test_a20_a_topics_limits_change_on_a_live_log() -> None:
    solo = Solo(replicas=("b1",))
    for _ in range(3):
        solo.produce("b1", b"x" * 50)
    assert len(solo.replica.opened.segments) == 1
    solo.decide(ConfigRecord(True, "orders", "segment.bytes", "200"))
    for _ in range(3):
        solo.produce("b1", b"x" * 50)
    assert len(solo.replica.opened.segments) > 1
    solo.decide(ConfigRecord(True, "orders", "max.message.bytes", "100"))
    assert solo.produce_raw(batch(b"y" * 200)) is not ErrorCode.NONE
    solo.decide(ConfigRecord(True, "orders", "max.message.bytes", None))
    assert solo.produce_raw(batch(b"y" * 200)) is ErrorCode.NONE


def test_a20_a_segment_rolls_by_age_and_its_flush_is_background_work() -> None:
    solo = Solo(replicas=("b1",), topic={"segment.ms": "1000"})
    solo.produce("b1", b"x")
    solo.router.run_for(2_000)
    assert len(solo.replica.opened.segments) == 1, "by the next append, not by the clock"
    solo.router.holds_background = True
    solo.produce("b1", b"y")
    assert len(solo.replica.opened.segments) == 2
    kinds = [h[1].work.kind for h in solo.router.held if isinstance(h[1], Background)]
    assert "flush" in kinds
    assert solo.replica.opened.boundary.end_offset == 0
    solo.router.do_held()
    assert solo.replica.opened.boundary.end_offset == 1


def test_a20_a_value_that_does_not_hold_changes_nothing() -> None:
    solo = Solo(topic={"min.insync.replicas": "2"}, isr=("b1",))
    solo.decide(ConfigRecord(True, "orders", "no.such.name", "1"))
    assert solo.router.noted("config-ignored")
    assert solo.produce_raw(batch()) is ErrorCode.NOT_ENOUGH_REPLICAS, "min ISR 2 still holds"
