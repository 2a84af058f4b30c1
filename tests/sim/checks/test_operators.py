"""What operators do by right breaks no rule: deletion, creation anew, reassignment, other disks."""

from __future__ import annotations

import pytest

from sim.cluster_config import ClusterConfig
from tests.sim.checks.judged import SECOND_US, Stage


def test_a_topic_that_is_deleted_and_created_anew_is_another_one() -> None:
    stage = Stage()
    stage.cluster.delete_topic("orders").wait()
    stage.world.run_for(3 * SECOND_US)
    assert stage.judge.facts.acked("orders-0") == 5
    stage.cluster.create_topic("orders", assignments=[["b2", "b3", "b1"]]).wait()
    stage.cluster.produce("orders", 2, client="p2").wait()
    stage.world.run_for(3 * SECOND_US)
    facts = stage.judge.facts
    assert (facts.acked("orders-0"), facts.log_end("orders-0", "b1")) == (2, 2)
    assert facts.record("orders-0", "b1", 0) == "p2-0"
    assert facts.same_log("orders-0", "b1", "b2", "b3")
    assert stage.judge.finish() == []


def test_a_replica_that_moves_away_and_back() -> None:
    assert ClusterConfig(brokers=4).names[-1] == "b4"
    stage = Stage(brokers=4)
    for replicas in (["b1", "b2", "b4"], ["b1", "b3", "b4"], ["b1", "b2", "b3"]):
        stage.cluster.reassign("orders", replicas=replicas).wait()
        stage.world.run_for(10 * SECOND_US)
        stage.cluster.produce("orders", 2).wait()
        stage.world.run_for(SECOND_US)
        assert stage.judge.facts.same_log("orders-0", *replicas)
    assert stage.judge.finish() == []


@pytest.mark.parametrize("disk", ["wiped", "old"])
def test_a_broker_that_comes_back_with_another_disk(disk: str) -> None:
    stage = Stage()
    stage.world.copy_disk("b2", "old")
    stage.cluster.produce("orders", 3).wait()
    stage.world.run_for(SECOND_US)
    stage.world.crash("b2")
    stage.world.run_for(12 * SECOND_US)
    stage.world.start("b2", disk=disk)
    facts = stage.judge.facts
    stage.world.run_for(15 * SECOND_US)
    assert facts.same_log("orders-0", "b1", "b2", "b3")
    assert facts.lost_on_disk("orders-0", "b2") == (8 if disk == "wiped" else 3)
    assert [fate.how for fate in facts.fates("orders-0", "b2")] == ["replaced"]
    assert stage.judge.finish() == []


def test_records_that_are_deleted_are_not_lost() -> None:
    stage = Stage(topic={"min.insync.replicas": "2", "segment.bytes": "200"})
    stage.cluster.delete_records("orders", before=3).wait()
    stage.world.run_for(70 * SECOND_US)
    stage.world.crash("b1", "power")
    stage.world.run_for(15 * SECOND_US)
    stage.world.start("b1")
    stage.world.run_for(130 * SECOND_US)
    facts = stage.judge.facts
    assert facts.log_start("orders-0", "b2") == 3
    assert facts.lost("committed") == 0
    assert stage.judge.finish() == []


def test_a_compacted_topic() -> None:
    stage = Stage(
        topic={"cleanup.policy": "compact", "segment.bytes": "300", "min.insync.replicas": "2"},
        records=0,
    )
    for number in range(4):
        values = [f"{key}{number}" for key in "abc"]
        stage.cluster.produce("orders", values, keys=list("abc")).wait()
    stage.world.run_for(200 * SECOND_US)
    stage.world.crash("b1")
    stage.world.run_for(15 * SECOND_US)
    stage.world.start("b1")
    stage.world.run_for(200 * SECOND_US)
    assert stage.judge.finish() == []
