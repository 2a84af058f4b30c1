"""What the facts say of runs whose course is known."""

from __future__ import annotations

import pytest

from sim.failpoints import Failpoint
from sim.trace.kinds import Kind
from tests.sim.checks.judged import SECOND_US, Stage


def test_a_quiet_run() -> None:
    stage = Stage()
    facts = stage.judge.facts
    assert (facts.acked("orders-0"), facts.committed("orders-0"), facts.exposed()) == (5, 5, 5)
    assert facts.exposed_high_watermark("orders-0") == 5
    assert facts.same_log("orders-0", "b1", "b2", "b3")
    assert not facts.diverged("orders-0")
    assert facts.record("orders-0", "b3", 4) == "p1-4"
    assert facts.record("orders-0", "b3", 5) is None
    assert facts.unflushed("orders-0", "b2") == 5
    assert facts.copies("orders-0", 2) == dict.fromkeys(("b1", "b2", "b3"), (0, "cached", 0))
    assert facts.promises() == {
        "acked-records-survive": True,
        "committed-records-survive": True,
        "exposed-records-survive": True,
    }
    assert facts.acked("bills-0") == facts.acked("orders-1") == 0
    with pytest.raises(ValueError, match="allowed are acked, committed, exposed"):
        facts.lost("all")


def test_a_flush_makes_records_durable() -> None:
    stage = Stage()
    stage.world.crash("b2", "process")
    stage.world.start("b2")
    stage.world.run_for(8 * SECOND_US)
    stage.world.shutdown("b2")
    stage.world.run_for(8 * SECOND_US)
    facts = stage.judge.facts
    assert stage.world.hosts["b2"].status == "down"
    assert facts.unflushed("orders-0", "b2") == 0
    assert facts.copies("orders-0", 2)["b2"] == (0, "durable", 0)
    stage.world.crash("b2", "power")
    assert facts.lost_on_disk("orders-0", "b2") == 0


def test_records_with_acks_1_that_the_leader_alone_had() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"}, records=0)
    stage.cluster.produce("orders", 10, acks=1).wait()
    stage.world.run_for(2 * SECOND_US)
    for follower in ("b2", "b3"):
        stage.cluster.cut("b1", follower, only=["FetchResponse"])
    stage.cluster.produce("orders", 5, acks=1).wait()
    facts = stage.judge.facts
    assert (facts.acked("orders-0"), facts.committed("orders-0")) == (15, 10)
    assert facts.diverged("orders-0") is False
    stage.world.crash("b1")
    assert facts.lost("acked") == 0
    stage.world.run_for(20 * SECOND_US)
    assert facts.lost("acked") == facts.lost("acked", "orders-0") == 5
    assert facts.lost("committed") == facts.lost("exposed") == 0
    (loss,) = facts.losses()
    assert (loss.at, loss.how, loss.is_committed) == ("serving", "never-held", False)
    assert [tuple(span) for span in loss.spans] == [(0, 10, 15)]
    stage.cluster.heal()
    stage.world.start("b1")
    stage.world.run_for(20 * SECOND_US)
    assert facts.truncated("orders-0", "b1") == 5
    assert facts.same_log("orders-0", "b1", "b2", "b3")
    assert facts.copies("orders-0", 12)["b1"][:2] == (0, "truncated")
    assert facts.lost("acked") == 5
    assert facts.elections("clean") == facts.elections() == 1
    assert stage.judge.finish() == []


@pytest.mark.parametrize(("action", "image"), [("process", "lost"), ("power", "kept")])
def test_a_broker_that_dies_in_a_truncation_has_truncated(action: str, image: str) -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    for follower in ("b2", "b3"):
        stage.cluster.cut("b1", follower, only=["FetchResponse"])
    stage.cluster.produce("orders", 3, acks=1).wait()
    stage.world.crash("b1")
    stage.world.run_for(20 * SECOND_US)
    stage.cluster.heal()
    stage.world.start("b1")
    failpoint = Failpoint(id="f", point="disk:truncate:.timeindex", action=action, image=image)
    stage.world.add_failpoint("b1", failpoint)
    assert stage.world.run_until_true(
        lambda: not stage.world.hosts["b1"].is_running, 20 * SECOND_US
    )
    facts = stage.judge.facts
    end = next(e.n for e in reversed(stage.world.trace.events()) if e.kind is Kind.CRASH)
    how, event = facts.copies("orders-0", 6)["b1"][1:]
    assert (how, stage.planted_at < event < end) == ("truncated", True)
    stage.world.start("b1")
    stage.world.run_for(20 * SECOND_US)
    assert (facts.truncated("orders-0", "b1"), facts.lost_on_disk("orders-0", "b1")) == (3, 0)
    assert stage.judge.finish() == []


def test_a_deposed_leader_acknowledges_what_the_new_one_lacks() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    for node in ("b2", "b3", "c1"):
        stage.cluster.cut("b1", node, both=True)
    stage.world.run_until_true(
        lambda: (
            stage.world.view().leader("orders") == "b2" and stage.replica("b2").leading is not None
        ),
        20 * SECOND_US,
    )
    produced = stage.cluster.produce("orders", 2, acks=1)
    assert stage.world.run_until_true(produced.is_done, 20 * SECOND_US)
    facts = stage.judge.facts
    assert (stage.replica("b1").opened.leo, stage.replica("b2").opened.leo) == (7, 5)
    assert facts.lost("acked") == 2
    (place,) = facts.places_of("orders-0")
    assert [loss.at for loss in facts.losses_of(place)] == ["acknowledging", "acknowledging"]
    (loss,) = facts.losses()
    assert (loss.at, loss.leader, loss.records) == ("acknowledging", "b2", 2)
    assert stage.judge.violations == []


def test_what_no_log_has_any_more_is_lost_though_nobody_leads() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    facts = stage.judge.facts
    for node in ("b3", "b2"):
        stage.world.crash(node, "power")
        assert facts.lost("acked") == 0
        stage.world.run_until_true(
            lambda node=node: node not in stage.world.view().isr("orders"), 20 * SECOND_US
        )
    stage.world.crash("b1", "power")
    assert facts.lost("acked") == facts.lost("committed", "orders-0") == facts.lost("exposed") == 5
    assert not facts.promises()["acked-records-survive"]
    stage.world.run_for(15 * SECOND_US)
    assert stage.world.view().leader("orders") is None
    assert (facts.lost("acked"), facts.losses()) == (5, [])
    stage.world.start("b1")
    stage.world.run_for(15 * SECOND_US)
    assert facts.lost("acked") == 5
    (loss,) = facts.losses()
    assert (loss.partition, loss.how) == ("orders-0", "power")


def test_what_a_copy_is_left_of_is_not_lost_while_nobody_leads() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    stage.world.crash("b2")
    for node in ("b3", "b1"):
        stage.world.crash(node, "power")
    stage.world.run_for(15 * SECOND_US)
    facts = stage.judge.facts
    assert stage.world.view().leader("orders") is None
    assert facts.lost("acked") == facts.lost("committed") == 0


def test_a_power_loss_of_the_last_member_is_a_loss_and_not_judged_yet() -> None:
    stage = Stage(topic={"min.insync.replicas": "1"})
    facts = stage.judge.facts
    for node in ("b3", "b2"):
        stage.world.crash(node)
        stage.world.run_until_true(
            lambda node=node: node not in stage.world.view().isr("orders"), 20 * SECOND_US
        )
    stage.world.crash("b1", "power")
    stage.world.run_for(15 * SECOND_US)
    stage.world.start("b1")
    stage.world.run_for(15 * SECOND_US)
    assert stage.world.view().leader("orders") == "b1"
    assert facts.lost("acked") == facts.lost("committed") == facts.lost("exposed") == 5
    (loss,) = facts.losses()
    assert (loss.how, loss.is_committed, loss.is_unclean) == ("power", True, False)
    crash = stage.world.trace.events()[loss.cause - 1]
    assert (crash.kind, crash.node) == ("crash", "b1")
    assert not facts.promises()["acked-records-survive"]
    for node in ("b2", "b3"):
        stage.world.start(node)
    stage.world.run_for(20 * SECOND_US)
    assert facts.truncated("orders-0", "b2") == 5
    assert stage.judge.finish() == []


def test_fates_name_the_events_that_tell_of_them() -> None:
    topic = {"cleanup.policy": "compact", "segment.bytes": "200", "min.insync.replicas": "2"}
    stage = Stage(topic=topic, records=0)
    stage.cluster.produce("orders", 20, keys=["a", "b"] * 10).wait()
    stage.world.run_for(40 * SECOND_US)
    events = stage.world.trace.events()
    fates = [f for f in stage.judge.facts.fates("orders-0", "b1") if f.how == "deleted"]
    told = [(events[each.event - 1].kind, events[each.event - 1].node) for each in fates]
    assert set(told) == {(Kind.COMPACT, "b1")}
