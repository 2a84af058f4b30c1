"""Topics, configuration, producer ids and group offsets at the controller."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cluster import messages_control as control
from cluster.client_services import PRODUCER_ID_BLOCK
from cluster.config import ControllerConfig, TopicConfig
from cluster.errors import ErrorCode
from cluster.names import TopicIdPartition
from cluster.topic_admin import PARTITIONS_MAX, topic_id_of
from tests.cluster.controllers import Rig, shape


def made(rig: Rig, *topics: control.CreateTopicsTopic) -> list[ErrorCode]:
    answer = rig.ask("admin", control.CreateTopicsRequest, topics=topics)
    return [each.error_code for each in answer.topics]


def joined(*brokers: str, **kwargs: Any) -> Rig:
    rig = Rig(**kwargs)
    rig.join(*brokers)
    return rig


Topic = control.CreateTopicsTopic


# Topics ----------------------------------------------------------------------------------------


def test_2_13_partitions_go_round_the_active_brokers_and_topics_begin_one_further() -> None:
    rig = joined("b1", "b2", "b3")
    assert made(rig, Topic("a", 2, 2), Topic("b", 1, 2)) == [ErrorCode.NONE] * 2
    assert [record.replicas for record in rig.machine.image.partitions_of(_id(rig, "a"))] == [
        ("b1", "b2"),
        ("b2", "b3"),
    ]
    record = next(rig.machine.image.partitions_of(_id(rig, "b")))
    assert (record.replicas, record.leader, record.isr) == (("b2", "b3"), "b2", ("b2", "b3"))
    assert (record.leader_epoch, record.partition_epoch) == (0, 0)


def _id(rig: Rig, topic: str) -> str:
    return rig.machine.image.topic_ids[topic]


def test_2_13_a_topic_id_has_22_characters_and_tells_namesakes_apart() -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{22}", topic_id_of("orders", 7))
    assert topic_id_of("orders", 7) != topic_id_of("orders", 8)
    rig = joined("b1")
    first = rig.create("orders", ("b1",))[0]
    rig.ask("admin", control.DeleteTopicsRequest, topics=("orders",))
    assert rig.create("orders", ("b1",))[0].topic_id != first.topic_id


def test_2_13_the_first_leader_is_the_first_active_replica_and_the_isr_all_active() -> None:
    rig = joined("b1", "b2", "b3")
    rig.silence("b1")
    partition = rig.create("orders", ("b1", "b3", "b2"))[0]
    assert shape(rig.partition(partition)) == ("b3", ("b3", "b2"), ())


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "x" * 250, "naïve", "a b"])
def test_2_13_a_name_that_storage_refuses_is_no_topic(name: str) -> None:
    assert made(joined("b1"), Topic(name, 1, 1)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_2_14_creating_again_says_that_the_topic_is_there_and_its_id() -> None:
    rig = joined("b1")
    topic_id = rig.create("orders", ("b1",))[0].topic_id
    answer = rig.ask("admin", control.CreateTopicsRequest, topics=(Topic("orders", 1, 1),))
    assert answer.topics == (
        control.TopicError("orders", ErrorCode.TOPIC_ALREADY_EXISTS, topic_id),
    )


def test_2_13_numbers_that_cannot_be_are_refused() -> None:
    rig = joined("b1", "b2")
    assert made(rig, Topic("a", 0, 1)) == [ErrorCode.INVALID_PARTITIONS]
    assert made(rig, Topic("a", -1, 1)) == [ErrorCode.INVALID_PARTITIONS]
    assert made(rig, Topic("a", PARTITIONS_MAX + 1, 1)) == [ErrorCode.INVALID_PARTITIONS]
    assert made(rig, Topic("a", 1, 3)) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert made(rig, Topic("a", 1, 0)) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    rig.silence("b2")
    assert made(rig, Topic("a", 1, 2)) == [ErrorCode.INVALID_REPLICATION_FACTOR]
    assert made(rig, Topic("a", 1, 1), Topic("b", PARTITIONS_MAX, 1)) == [
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
    ]


@pytest.mark.parametrize(
    "assignments",
    [((),), (("b1", "b1"),), (("b1", "b9"),), (("b1", "b2"), ("b1",)), (("b3",),)],
)
def test_2_13_assignments_that_cannot_be_are_refused(
    assignments: tuple[tuple[str, ...], ...],
) -> None:
    rig = joined("b1", "b2")
    rig.register("b3")
    wanted = Topic("orders", assignments=assignments)
    assert made(rig, wanted) == [ErrorCode.INVALID_REPLICA_ASSIGNMENT]


@pytest.mark.parametrize(
    "configs",
    [
        (("nonsense", "1"),),
        (("min.insync.replicas", "many"),),
        (("min.insync.replicas", "0"),),
        (("min.insync.replicas", "1"), ("min.insync.replicas", "2")),
        (("min.insync.replicas",),),
        (("min.insync.replicas", "1" * 5_000),),
    ],
)
def test_2_13_a_topic_with_a_wrong_config_is_refused(configs: tuple[tuple[str, ...], ...]) -> None:
    wanted = Topic("orders", 1, 1, configs=configs)
    assert made(joined("b1"), wanted) == [ErrorCode.INVALID_CONFIG]


def test_2_13_deleting_takes_partitions_configs_and_offsets_along() -> None:
    rig = joined("b1")
    partition = rig.create("orders", ("b1",), min_insync_replicas="1")[0]
    answer = rig.ask("admin", control.DeleteTopicsRequest, topics=("orders", "orders"))
    assert [each.error_code for each in answer.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert rig.machine.image.partition(partition) is None
    assert not rig.machine.image.config(is_topic=True, resource="orders")


def test_i20_late_copies_of_operators_requests_do_nothing() -> None:
    rig = joined("b1")
    request = control.DeleteTopicsRequest(rig.take_id("admin"), ("orders",))
    rig.run("on_message", "admin", request)
    partition = rig.create("orders", ("b1",))[0]
    assert rig.run("on_message", "admin", request) == []
    assert rig.machine.image.partition(partition) is not None


# Configuration ---------------------------------------------------------------------------------


def test_2_13_all_config_changes_are_made_or_none() -> None:
    rig = joined("b1")
    rig.create("orders", ("b1",))
    changes = (
        control.ConfigChange(True, "orders", "retention.ms", "1000"),
        control.ConfigChange(True, "orders", "nonsense", "1"),
    )
    answer = rig.ask("admin", control.AlterConfigsRequest, changes=changes)
    assert answer.error_code is ErrorCode.INVALID_CONFIG
    assert "nonsense" in answer.error_message
    assert not rig.machine.image.config(is_topic=True, resource="orders")
    assert rig.configure("orders", "retention.ms", "1000") is ErrorCode.NONE
    assert rig.configure("orders", "retention.ms", None) is ErrorCode.NONE
    assert rig.configure("orders", "nonsense", None) is ErrorCode.INVALID_CONFIG
    assert rig.configure("nothing", "retention.ms", "1") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not rig.machine.image.config(is_topic=True, resource="orders")


def test_2_13_a_config_that_is_set_already_leaves_no_record() -> None:
    rig = joined("b1")
    rig.create("orders", ("b1",), retention_ms="1000")
    end = rig.machine.image.end_offset
    assert rig.configure("orders", "retention.ms", "1000") is ErrorCode.NONE
    assert rig.machine.image.end_offset == end


def test_a17_no_config_of_brokers_is_known() -> None:
    change = control.ConfigChange(False, "b1", "min.insync.replicas", "2")
    answer = joined("b1").ask("admin", control.AlterConfigsRequest, changes=(change,))
    assert answer.error_code is ErrorCode.INVALID_CONFIG


def test_a17_another_min_isr_clears_the_elr_of_the_topic() -> None:
    rig = joined(
        "b1",
        "b2",
        config=ControllerConfig(eligible_leader_replicas=True),
        defaults=TopicConfig(min_insync_replicas=2),
    )
    partition = rig.create("orders", ("b1", "b2"))[0]
    other = rig.create("other", ("b1", "b2"))[0]
    rig.silence("b2")
    assert shape(rig.partition(partition)) == ("b1", ("b1",), ("b2",))
    assert rig.configure("orders", "min.insync.replicas", "2") is ErrorCode.NONE
    assert rig.partition(partition).elr == ("b2",)
    before = rig.partition(partition)
    assert rig.configure("orders", "min.insync.replicas", "1") is ErrorCode.NONE
    after = rig.partition(partition)
    assert shape(after) == ("b1", ("b1",), ())
    assert (after.leader_epoch, after.partition_epoch) == (
        before.leader_epoch,
        before.partition_epoch + 1,
    )
    assert rig.partition(other).elr == ("b2",)


def test_a17_i8_another_min_isr_leaves_those_who_may_lead_where_the_isr_is_empty() -> None:
    rig = joined(
        "b1",
        "b2",
        config=ControllerConfig(eligible_leader_replicas=True),
        defaults=TopicConfig(min_insync_replicas=2),
    )
    partition = rig.create("orders", ("b1", "b2"))[0]
    rig.silence("b1", "b2")
    assert shape(rig.partition(partition)) == (None, (), ("b1", "b2"))
    for value in ("1", "2"):
        assert rig.configure("orders", "min.insync.replicas", value) is ErrorCode.NONE
    rig.heartbeat("b2")
    assert shape(rig.partition(partition)) == ("b2", ("b2",), ("b1",))


# Producer ids ----------------------------------------------------------------------------------


def ids(rig: Rig, producer_id: int = -1, epoch: int = -1) -> tuple[ErrorCode, int, int]:
    answer = rig.ask(
        "p", control.InitProducerIdRequest, producer_id=producer_id, producer_epoch=epoch
    )
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_a18_producer_ids_come_from_blocks_and_are_never_given_twice() -> None:
    rig = Rig()
    assert [ids(rig) for _ in range(2)] == [(ErrorCode.NONE, 0, 0), (ErrorCode.NONE, 1, 0)]
    assert rig.machine.image.next_producer_id == PRODUCER_ID_BLOCK
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    assert ids(again) == (ErrorCode.NONE, PRODUCER_ID_BLOCK, 0)


def test_a18_a_known_id_gets_the_next_epoch_and_a_new_id_behind_the_last() -> None:
    rig = Rig()
    ids(rig)
    assert ids(rig, 0, 0) == (ErrorCode.NONE, 0, 1)
    assert ids(rig, 0, 2**31 - 1) == (ErrorCode.NONE, 1, 0)
    assert ids(rig, 5_000, 0)[0] is ErrorCode.INVALID_PRODUCER_EPOCH
    assert ids(rig, 0, -1)[0] is ErrorCode.INVALID_PRODUCER_EPOCH


# Group offsets ---------------------------------------------------------------------------------


def commit(rig: Rig, partition: TopicIdPartition, offset: int, epoch: int = 3) -> ErrorCode:
    wanted = control.OffsetCommitPartition(partition, offset, epoch)
    answer = rig.ask("c", control.OffsetCommitRequest, group="g", partitions=(wanted,))
    code: ErrorCode = answer.partitions[0].error_code
    return code


def test_a22_a_group_finds_what_it_committed_last_over_a_restart() -> None:
    rig = joined("b1")
    partition = rig.create("orders", ("b1",))[0]
    fetch = {"group": "g", "partitions": (partition,)}
    nothing = rig.ask("c", control.OffsetFetchRequest, **fetch).partitions[0]
    assert (nothing.error_code, nothing.offset) == (ErrorCode.NONE, -1)
    assert commit(rig, partition, 4) is ErrorCode.NONE
    assert commit(rig, partition, 9) is ErrorCode.NONE
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    found = again.ask("c", control.OffsetFetchRequest, **fetch).partitions[0]
    assert (found.offset, found.leader_epoch) == (9, 3)


def test_a22_offsets_that_no_record_can_hold_are_refused() -> None:
    rig = joined("b1")
    partition = rig.create("orders", ("b1",))[0]
    assert commit(rig, partition, -1) is ErrorCode.INVALID_REQUEST
    assert commit(rig, partition, 2**63) is ErrorCode.INVALID_REQUEST
    assert commit(rig, partition, 1, -2) is ErrorCode.INVALID_REQUEST
    unknown = partition._replace(topic_id="x" * 22)
    assert commit(rig, unknown, 1) is ErrorCode.UNKNOWN_TOPIC_ID
    answer = rig.ask("c", control.OffsetFetchRequest, group="g", partitions=(unknown,))
    assert answer.partitions[0].error_code is ErrorCode.UNKNOWN_TOPIC_ID
    nameless = rig.ask("c", control.OffsetFetchRequest, group="", partitions=(partition,))
    assert nameless.partitions[0].error_code is ErrorCode.INVALID_REQUEST


def test_a22_a_late_copy_of_a_commit_does_not_move_the_group_back() -> None:
    rig = joined("b1")
    partition = rig.create("orders", ("b1",))[0]
    wanted = control.OffsetCommitPartition(partition, 4)
    request = control.OffsetCommitRequest(rig.take_id("c"), "g", (wanted,))
    rig.run("on_message", "c", request)
    commit(rig, partition, 9)
    assert rig.run("on_message", "c", request) == []
    found = rig.machine.image.committed_offset("g", partition)
    assert found is not None
    assert found.offset == 9
