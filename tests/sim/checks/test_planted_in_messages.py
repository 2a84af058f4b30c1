"""Checks that fire on messages changed on their way, or handed over twice."""

from __future__ import annotations

import pytest
from attrs import evolve

from cluster.message import Message
from cluster.messages_control import MetadataFetchResponse
from cluster.messages_data import (
    EpochEndOffset,
    FetchRequest,
    FetchResponse,
    ProducePartition,
    ProduceRequest,
)
from cluster.records import METADATA_RECORDS, PartitionRecord
from sim.cluster_config import DiskConfig
from sim.disk_speed import DiskSpeed
from storage.batch import Record, RecordBatch
from storage.mkb1 import encode_batch
from tests.sim.checks.judged import SECOND_US, Stage, with_value


def test_a_consumer_that_gets_another_value() -> None:
    stage = Stage()

    def tamper(node: str, src: str, message: Message) -> Message:
        if node != "k1" or not isinstance(message, FetchResponse):
            return message
        found = []
        for result in message.partitions:
            if result.records:
                size = 12 + int.from_bytes(result.records[4:8], "big")
                frame = with_value(result.records[:size], b"p1-X")
                result = result._replace(records=frame + result.records[size:])
            found.append(result)
        return evolve(message, partitions=tuple(found))

    stage.world.tamper = tamper
    stage.cluster.consume("orders", 3).wait()
    found = stage.found("consistent-read")
    assert (found.number, found.kind) == ("I11", "other-value")
    assert found.evidence["offset"] == 0


@pytest.mark.parametrize("call_us", [0, 3])
def test_a_follower_that_is_told_to_cut_what_is_committed(call_us: int) -> None:
    # Where each call of the disk takes time, reads are among what a handler puts, without events.
    stage = Stage(disk=DiskConfig(speed=DiskSpeed(call_us=call_us)))
    told: list[str] = []

    def tamper(node: str, src: str, message: Message) -> Message:
        if node != "b2" or not isinstance(message, FetchResponse) or told:
            return message
        told.append(node)
        (result,) = message.partitions
        wrong = result._replace(diverging_epoch=EpochEndOffset(0, 2), records=b"")
        return evolve(message, partitions=(wrong,))

    stage.world.tamper = tamper
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("truncation-floor")
    assert (found.number, found.kind) == ("I13", "below-committed")
    assert (found.evidence["offset"], found.evidence["top"]) == (2, 5)
    assert stage.world.trace.events()[found.event - 1].kind == "truncate"


def test_a_fetch_of_an_older_epoch_that_is_served() -> None:
    stage = Stage(guards={"fetch_epoch": False})
    stage.world.crash("b1")
    stage.world.run_until_true(lambda: stage.world.view().leader("orders") == "b2", 20 * SECOND_US)
    stage.world.run_for(3 * SECOND_US)
    assert not stage.judge.violations

    def tamper(node: str, src: str, message: Message) -> Message:
        if node != "b2" or not isinstance(message, FetchRequest) or src != "b3":
            return message
        (asked,) = message.partitions
        return evolve(message, partitions=(asked._replace(current_leader_epoch=0),))

    stage.world.tamper = tamper
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("epoch-fencing")
    assert (found.number, found.kind) == ("I20", "old-leader-epoch")


def test_two_brokers_that_are_told_to_lead_one_epoch() -> None:
    stage = Stage(records=0, topic={"min.insync.replicas": "1"})

    def tamper(node: str, src: str, message: Message) -> Message:
        if node != "b2" or not isinstance(message, MetadataFetchResponse):
            return message
        records = [METADATA_RECORDS.decode(each) for each in message.records]
        changed = tuple(
            METADATA_RECORDS.encode(
                evolve(each, leader="b2")
                if isinstance(each, PartitionRecord) and each.partition.topic == "bills"
                else each
            )
            for each in records
        )
        return evolve(message, records=changed)

    stage.world.tamper = tamper
    stage.cluster.create_topic("bills", assignments=[["b1", "b2", "b3"]]).wait()
    stage.world.run_for(SECOND_US)
    record = stage.world.view().partition("bills")
    assert record is not None
    for node in ("b1", "b2"):
        batch = RecordBatch.unassigned([Record(None, node.encode(), 0)])
        frame = encode_batch(batch.assign(0, 0))
        request = ProduceRequest(0, 1, 1_000, (ProducePartition(record.partition, frame),))
        stage.cluster.ask(f"produce to {node}", node, request).wait()
    stage.world.run_for(SECOND_US)
    mine = [each for each in stage.judge.violations if each.check == "one-leader-per-epoch"]
    assert mine
    assert (mine[0].number, mine[0].kind) == ("I7", "two-appenders")
    assert mine[0].partition == "bills-0"
    assert not stage.judge.facts.one_leader_per_epoch("bills-0")
    assert stage.judge.facts.one_leader_per_epoch("orders-0")


def test_a_produce_request_that_comes_twice_to_a_leader_that_has_forgotten() -> None:
    stage = Stage()
    copies: list[ProduceRequest] = []

    def tamper(node: str, src: str, message: Message) -> Message:
        if isinstance(message, ProduceRequest):
            copies.append(message)
        return message

    stage.world.tamper = tamper
    stage.cluster.produce("orders", 1).wait()
    log = stage.replica("b1").opened
    for producer in list(log.producers):
        del log._producers._entries[producer]
    again = evolve(copies[0], correlation_id=1_000_000)
    stage.world.receive("b1", "p1", again, stage.world.trace.count)
    stage.world.run_for(SECOND_US)
    found = stage.found("idempotence")
    assert (found.number, found.kind) == ("I15", "twice")
