"""Topics that come, go and come again under the same name (hazard B-50)."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.messages_control import MetadataFetchResponse
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.records import METADATA_RECORDS, PartitionRecord, RemoveTopicRecord, TopicRecord
from storage.disk import FileKind
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from tests.cluster.leader_tools import Solo
from tests.cluster.scripted import ORDERS, TOPIC_ID

NEW_ID = "NNNNNNNNNNNNNNNNNNNNNQ"
NEW = TopicIdPartition(NEW_ID, "orders", 0)
ROOT = Path("/b1")
REMOVED = RemoveTopicRecord(TOPIC_ID, "orders")
CREATED = (TopicRecord(NEW_ID, "orders"), PartitionRecord(NEW, ("b1",), ("b1",), "b1", 0, 0))


def filled() -> Solo:
    solo = Solo(replicas=("b1",))
    for value in (b"a", b"b"):
        solo.produce("b1", value)
    return solo


@pytest.mark.parametrize("restarts", [False, True])
def test_a18_an_idle_producer_is_forgotten_after_the_brokers_time(restarts: bool) -> None:
    """Looked for with retention, every 5 minutes; one that wrote meanwhile is still known."""
    solo = Solo(config=BrokerConfig(producer_id_expiration_ms=400_000), replicas=("b1",))
    for producer_id in (7, 8):
        solo.produce("b1", b"x", producer=(producer_id, 0, 0))
    if restarts:
        solo.kill("b1")
        solo.start("b1")
    log = solo.broker("b1").core.replicas[ORDERS].opened
    solo.router.run_for(310_000)
    assert sorted(log.producers) == [7, 8]
    solo.produce("b1", b"y", producer=(8, 0, 1))
    solo.router.run_for(300_000)
    assert sorted(log.producers) == [8]
    assert solo.router.noted("expire-producers") == [{"partition": "orders-0", "producers": (7,)}]


def directories(solo: Solo) -> list[str]:
    return [n for n in solo.disks["b1"].listdir(ROOT) if n.startswith("orders")]


def values(solo: Solo, partition: TopicIdPartition) -> list[bytes | None]:
    log = solo.broker("b1").core.replicas[partition].opened
    return [record.value for record in log.fetch(log.log_start_offset, 100)]


def test_b50_a_deleted_topics_files_go_in_the_background() -> None:
    solo = filled()
    solo.router.holds_background = True
    solo.decide(REMOVED)
    assert directories(solo) == ["orders-0-delete"]
    assert solo.broker("b1").core.replicas == {}
    solo.router.do_held()
    assert directories(solo) == []


def test_b50_a_deletion_that_a_kill_interrupted_is_finished_at_the_next_start() -> None:
    solo = filled()
    solo.router.holds_background = True
    solo.decide(REMOVED)
    solo.restart()
    assert directories(solo) == []


def test_b50_a_topic_created_anew_in_the_same_delta_begins_empty() -> None:
    solo = filled()
    solo.router.holds_background = True
    solo.decide(REMOVED, *CREATED)
    assert list(solo.broker("b1").core.replicas) == [NEW]
    assert values(solo, NEW) == []
    solo.router.do_held()
    assert directories(solo) == ["orders-0"]
    assert solo.produce_raw(b"", partition=ORDERS) is ErrorCode.UNKNOWN_TOPIC_ID
    assert solo.produce_raw(b"", partition=NEW) is ErrorCode.CORRUPT_MESSAGE


def test_b50_created_anew_while_the_broker_was_down() -> None:
    solo = filled()
    solo.kill()
    solo.decide(REMOVED, *CREATED)
    solo.start("b1")
    assert list(solo.broker("b1").core.replicas) == [NEW]
    assert values(solo, NEW) == []
    assert solo.broker("b1").core.replicas[NEW].high_watermark == 0
    solo.restart()
    assert list(solo.broker("b1").core.replicas) == [NEW]


def snapshot(solo: Solo, image: MetadataImage) -> None:
    number = solo.controller._parked.pop("b1").correlation_id
    records = tuple(METADATA_RECORDS.encode(r) for r in image.to_records())
    solo.deliver("c1", MetadataFetchResponse(number, 0, image.end_offset, True, records))


def test_b50_a_topic_deleted_while_down_of_which_a_snapshot_tells_nothing_goes() -> None:
    solo = filled()
    solo.kill()
    solo.decide(REMOVED)
    solo.controller.silent_to = {"b1"}
    solo.start("b1")
    assert directories(solo) == ["orders-0"]
    snapshot(solo, solo.controller.image)
    assert (solo.broker("b1").core.replicas, directories(solo)) == ({}, [])


def test_b50_a_snapshot_older_than_the_topic_deletes_nothing() -> None:
    """It ends before the topic came to be; the records behind it create the topic."""
    solo = filled()
    old = MetadataImage.from_records(solo.controller.records[:1], 1)
    old.topic_ids.clear()
    solo.controller.silent_to = {"b1"}
    solo.restart()
    snapshot(solo, old)
    assert values(solo, ORDERS) == [b"a", b"b"]
    solo.controller.silent_to = set()
    solo.router.run_for(31_000)
    assert values(solo, ORDERS) == [b"a", b"b"]
    assert solo.replica.role.name == "leader"


def test_b50_a_replica_that_left_the_assignment_goes_and_may_come_back_empty() -> None:
    solo = filled()
    solo.decide(solo.state(replicas=("b2",), isr=("b2",), leader="b2", leader_epoch=1))
    assert directories(solo) == []
    solo.decide(solo.state(replicas=("b2", "b1")))
    assert values(solo, ORDERS) == []
    assert solo.replica.role.name == "follower"


def test_b50_a_deletion_fails_what_waits() -> None:
    solo = Solo()
    number = solo.produce("b1", b"x")
    solo.decide(REMOVED)
    assert solo.acked(number) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_b50_background_work_of_a_log_that_is_gone_is_forgotten() -> None:
    solo = Solo(replicas=("b1",), topic={"segment.bytes": "200"})
    solo.router.holds_background = True
    for _ in range(4):
        solo.produce("b1", b"x" * 60)
    solo.decide(REMOVED, *CREATED)
    solo.router.do_held()
    assert solo.router.stopped == set()
    assert values(solo, NEW) == []


def test_b50_a_directory_without_an_id_is_left_alone_and_noted() -> None:
    disk = MemDisk()
    log_dir = LogDir.open(ROOT, disk=disk)
    log_dir.open_log("strange", 3)
    log_dir.abandon()
    solo = Solo(disk=disk)
    assert solo.router.noted("stray-directory") == [{"directory": "strange-3"}]
    assert disk.stat(ROOT / "strange-3").kind is FileKind.DIRECTORY


def test_a2_a_partition_of_another_topic_is_not_touched() -> None:
    solo = filled()
    other = TopicIdPartition(NEW_ID, "other", 0)
    solo.decide(TopicRecord(NEW_ID, "other"), evolve(CREATED[1], partition=other))
    solo.decide(REMOVED)
    assert list(solo.broker("b1").core.replicas) == [other]
