"""Whole clusters, every machine real: what users would see, without faults of the network.

Each test goes through one path of the protocol from client to client. The rules have tests of
their own; here the parts must fit.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.config import BrokerConfig, ControllerConfig, ProducerConfig
from cluster.errors import ErrorCode
from cluster.messages_control import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    MetadataFetchResponse,
    Reassignment,
)
from cluster.messages_data import DeleteRecordsPartition, DeleteRecordsRequest
from cluster.outcomes import OutcomeKind
from tests.cluster.whole import Whole, files_below


def acked(outcomes: list) -> list[int]:
    assert all(outcome.kind is OutcomeKind.ACKED for outcome in outcomes), outcomes
    return [outcome.offset for outcome in outcomes]


def test_records_reach_every_replica_and_a_consumer() -> None:
    whole = Whole()
    whole.create_topic(min_insync_replicas="2")
    producer, consumer = whole.producer(), whole.consumer()
    whole.send(producer, *(b"%d" % number for number in range(20)))
    assert acked(whole.outcomes(producer, 20)) == list(range(20))
    whole.router.run_for(1_000)
    assert [record.value for record in consumer.poll()] == [b"%d" % n for n in range(20)]
    assert {tuple(whole.values(name)) for name in whole.names} == {
        tuple(b"%d" % n for n in range(20))
    }
    assert [whole.replica(name).high_watermark for name in whole.names] == [20, 20, 20]


def test_failover_keeps_what_was_acknowledged_and_the_old_leader_rejoins() -> None:
    whole = Whole()
    whole.create_topic(min_insync_replicas="2")
    producer, consumer = whole.producer(), whole.consumer()
    whole.send(producer, b"before")
    acked(whole.outcomes(producer, 1))
    leader = whole.state().leader
    assert leader is not None
    whole.kill(leader)
    whole.send(producer, b"meanwhile")
    assert acked(whole.outcomes(producer, 1)) == [1]
    state = whole.state()
    assert state.leader != leader
    assert leader not in state.isr
    assert state.leader_epoch == 1
    whole.start(leader)
    whole.router.run_for(10_000)
    assert set(whole.state().isr) == set(whole.names)
    assert {tuple(whole.values(name)) for name in whole.names} == {(b"before", b"meanwhile")}
    assert [record.value for record in consumer.poll()] == [b"before", b"meanwhile"]


def test_too_few_in_sync_refuse_and_accept_again() -> None:
    whole = Whole()
    whole.create_topic(min_insync_replicas="2")
    config = ProducerConfig(request_timeout_ms=1_000, delivery_timeout_ms=15_000)
    producer = whole.producer(config=config)
    leader = whole.state().leader
    others = [name for name in whole.names if name != leader]
    whole.kill(*others)
    whole.router.run_for(20_000)
    assert whole.state().isr == (leader,)
    whole.send(producer, b"refused")
    (outcome,) = whole.outcomes(producer, 1)
    assert outcome.kind is OutcomeKind.REJECTED
    assert outcome.error_code is ErrorCode.NOT_ENOUGH_REPLICAS
    for name in others:
        whole.start(name)
    whole.router.run_for(10_000)
    whole.send(producer, b"taken")
    assert acked(whole.outcomes(producer, 1)) == [0]
    assert whole.values(others[0]) == [b"taken"]


def test_controlled_shutdown_moves_leaders_and_loses_nothing() -> None:
    whole = Whole()
    whole.create_topic(partitions=3, min_insync_replicas="2")
    producer = whole.producer()
    for number in range(3):
        whole.send(producer, b"a", partition=number)
    acked(whole.outcomes(producer, 3))
    whole.stop("b1")
    for number in range(3):
        assert whole.state(number=number).leader != "b1"
        assert "b1" not in whole.state(number=number).isr
        whole.send(producer, b"b", partition=number)
    acked(whole.outcomes(producer, 3))
    whole.start("b1")
    assert whole.broker("b1").core.log_dir.previous_broker_epoch is not None
    whole.router.run_for(10_000)
    for number in range(3):
        assert set(whole.state(number=number).isr) == set(whole.names)
        assert whole.values("b1", number=number) == [b"a", b"b"]


def test_controller_restart_changes_nothing() -> None:
    whole = Whole()
    whole.create_topic()
    producer = whole.producer()
    before = whole.state()
    whole.kill("c1")
    whole.send(producer, b"while it is away")
    whole.router.run_for(2_000)
    whole.start("c1")
    whole.router.run_for(20_000)
    after = whole.state()
    assert (after.leader, after.leader_epoch, after.isr) == (
        before.leader,
        before.leader_epoch,
        before.isr,
    )
    assert acked(whole.outcomes(producer, 1)) == [0]


def test_everybody_restarts_and_everything_is_there() -> None:
    whole = Whole()
    whole.create_topic(min_insync_replicas="2")
    producer = whole.producer()
    whole.send(producer, b"1", b"2")
    acked(whole.outcomes(producer, 2))
    whole.router.run_for(1_000)
    whole.kill(*whole.names, "c1")
    for name in ("c1", *whole.names):
        whole.start(name)
    whole.router.run_for(15_000)
    whole.send(producer, b"3")
    assert acked(whole.outcomes(producer, 1)) == [2]
    assert {tuple(whole.values(name)) for name in whole.names} == {(b"1", b"2", b"3")}


def test_preferred_leader_comes_back_by_election() -> None:
    whole = Whole()
    whole.create_topic()
    first = whole.state().leader
    assert first is not None
    whole.kill(first)
    whole.router.run_for(15_000)
    whole.start(first)
    whole.router.run_for(15_000)
    assert whole.state().leader != first
    request = ElectLeadersRequest(whole.number(), ElectionType.PREFERRED, (whole.partition(),))
    whole.ask("c1", request)
    whole.router.run_for(2_000)
    assert whole.state().leader == first
    producer = whole.producer()
    whole.send(producer, b"after")
    assert acked(whole.outcomes(producer, 1)) == [0]


@pytest.mark.parametrize("with_elr", [False, True])
def test_last_one_standing(with_elr: bool) -> None:
    """With an ELR the clean replica leads; without one, the partition waits for its last member."""
    whole = Whole(
        config=BrokerConfig(eligible_leader_replicas=with_elr),
        controller=ControllerConfig(eligible_leader_replicas=with_elr),
    )
    whole.create_topic(min_insync_replicas="2")
    producer = whole.producer()
    whole.send(producer, b"committed")
    acked(whole.outcomes(producer, 1))
    leader = whole.state().leader
    assert leader is not None
    others = [name for name in whole.names if name != leader]
    whole.kill(others[0])
    whole.router.run_for(12_000)
    whole.stop(others[1])
    whole.router.run_for(12_000)
    assert whole.state().isr == (leader,)
    whole.kill(leader)
    whole.start(others[1])
    whole.router.run_for(20_000)
    state = whole.state()
    if with_elr:
        assert state.leader == others[1]
        assert whole.values(others[1]) == [b"committed"]
    else:
        assert (state.leader, state.isr) == (None, (leader,))
        whole.start(leader)
        whole.router.run_for(20_000)
        assert whole.state().leader == leader


def test_reassignment_moves_a_partition_with_its_records() -> None:
    whole = Whole(4)
    whole.create_topic(min_insync_replicas="2")
    producer = whole.producer()
    whole.send(producer, b"1", b"2")
    acked(whole.outcomes(producer, 2))
    before = whole.state().replicas
    (outsider,) = set(whole.names) - set(before)
    target = (outsider, before[1], before[2])
    change = Reassignment(whole.partition(), target)
    whole.ask("c1", AlterPartitionReassignmentsRequest(whole.number(), (change,)))
    whole.router.run_for(15_000)
    state = whole.state()
    assert state.replicas == target
    assert (state.adding_replicas, state.removing_replicas) == ((), ())
    assert state.leader in target
    assert whole.values(outsider) == [b"1", b"2"]
    assert whole.partition() not in whole.broker(before[0]).core.replicas
    whole.send(producer, b"3")
    assert acked(whole.outcomes(producer, 1)) == [2]


def test_topic_deleted_and_created_anew_is_another_topic() -> None:
    whole = Whole()
    whole.create_topic()
    producer = whole.producer()
    whole.send(producer, b"old")
    acked(whole.outcomes(producer, 1))
    old = whole.partition()
    whole.kill("b3")
    whole.ask("c1", DeleteTopicsRequest(whole.number(), ("orders",)))
    whole.router.run_for(2_000)
    whole.create_topic(copies=2)
    assert whole.partition() != old
    whole.start("b3")
    whole.router.run_for(15_000)
    whole.send(producer, b"new")
    assert acked(whole.outcomes(producer, 1)) == [0]
    for name in whole.names:
        assert old not in whole.broker(name).core.replicas
    for name in whole.state().replicas:
        assert whole.values(name) == [b"new"]


def test_records_are_deleted_everywhere() -> None:
    whole = Whole()
    whole.create_topic()
    producer = whole.producer()
    whole.send(producer, *(b"%d" % number for number in range(5)))
    acked(whole.outcomes(producer, 5))
    whole.router.run_for(1_000)
    leader = whole.state().leader
    assert leader is not None
    asked = DeleteRecordsPartition(whole.partition(), 3)
    request = DeleteRecordsRequest(whole.number(), 30_000, (asked,))
    whole.router.queue.append(("admin", leader, request))
    whole.router.run_for(3_000)
    ((_, answer),) = whole.router.take("admin")
    assert answer.partitions[0][1:] == (ErrorCode.NONE, 3)
    assert {whole.replica(name).opened.log_start_offset for name in whole.names} == {3}


def test_a_topics_minimum_isr_changes_under_way() -> None:
    whole = Whole()
    whole.create_topic()
    producer = whole.producer(
        config=ProducerConfig(request_timeout_ms=1_000, delivery_timeout_ms=5_000)
    )
    leader = whole.state().leader
    whole.kill(*(name for name in whole.names if name != leader))
    whole.router.run_for(20_000)
    whole.send(producer, b"one copy is enough")
    acked(whole.outcomes(producer, 1))
    change = ConfigChange(True, "orders", "min.insync.replicas", "2")
    answer = whole.ask("c1", AlterConfigsRequest(whole.number(), (change,)))
    assert isinstance(answer, AlterConfigsResponse)
    assert answer.error_code is ErrorCode.NONE
    whole.router.run_for(500)
    whole.send(producer, b"not any more")
    (outcome,) = whole.outcomes(producer, 1)
    assert outcome.kind is OutcomeKind.REJECTED


def test_a17_a_leader_that_has_not_heard_of_a_larger_minimum_isr_commits_nothing_alone() -> None:
    """Else whom it leaves behind is eligible by the new minimum, and misses what it committed."""
    whole = Whole(
        config=BrokerConfig(eligible_leader_replicas=True),
        controller=ControllerConfig(eligible_leader_replicas=True),
    )
    whole.create_topic(copies=2)
    producer = whole.producer()
    leader, other = whole.state().replicas
    whole.router.is_held = lambda src, dst, message: (
        {src, dst} == {leader, other}
        or (dst == leader and isinstance(message, MetadataFetchResponse))
    )
    change = ConfigChange(True, "orders", "min.insync.replicas", "2")
    whole.ask("c1", AlterConfigsRequest(whole.number(), (change,)))
    whole.send(producer, b"on one copy")
    whole.router.run_for(60_000)
    answered = {outcome.kind for outcome in producer.take_outcomes()}
    whole.kill(leader)
    whole.router.run_for(20_000)
    assert whole.state().leader == other
    assert OutcomeKind.ACKED not in answered or whole.values(other) == [b"on one copy"]


def test_d210_a_leader_forced_upon_a_damaged_log_leads_with_its_good_prefix() -> None:
    whole = Whole(1)
    whole.create_topic(copies=1)
    producer = whole.producer()
    for value in (b"a", b"b"):
        whole.send(producer, value)
        acked(whole.outcomes(producer, 1))
    whole.replica("b1").opened.flush()
    whole.replica("b1").opened.run_pending()
    whole.kill("b1")
    file = whole.disks["b1"].open(Path("/b1/orders-0/00000000000000000000.log"))
    file.write_at(file.size() - 1, b"?")
    file.close()
    whole.router.run_for(10_000)
    whole.start("b1")
    whole.router.run_for(5_000)
    assert (whole.state().leader, whole.replica("b1").role.name) == (None, "quarantined")
    forced = ElectLeadersRequest(whole.number(), ElectionType.UNCLEAN, (whole.partition(),), "b1")
    whole.ask("c1", forced)
    whole.router.run_for(5_000)
    assert whole.replica("b1").role.name == "leader"
    assert whole.controller.image.brokers["b1"].damaged_partitions == ()
    whole.send(producer, b"c")
    assert acked(whole.outcomes(producer, 1)) == [1]
    assert whole.values("b1") == [b"a", b"c"]


def test_same_history_gives_the_same_bytes_everywhere() -> None:
    """Two runs of one history leave equal files: nothing depends on the process."""

    def run() -> list[tuple[str, bytes]]:
        whole = Whole()
        whole.create_topic(partitions=2)
        producer = whole.producer()
        whole.send(producer, b"1", b"2")
        whole.outcomes(producer, 2)
        whole.kill("b2")
        whole.router.run_for(12_000)
        whole.send(producer, b"3", partition=1)
        whole.outcomes(producer, 1)
        return [
            (str(path), data)
            for name, disk in sorted(whole.disks.items())
            for path, data in files_below(disk, Path("/") / name)
        ]

    first = run()
    assert any(path.endswith(".log") and data for path, data in first)
    assert first == run()
