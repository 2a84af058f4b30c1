"""A snapshot says what is so in a world: each predicate misses what was done to a real one."""

from __future__ import annotations

from typing import Any

import pytest

from cluster.fetch_state import FetchState
from cluster.names import TopicIdPartition
from sim.liveness.healing import Healing, core_of
from sim.liveness.looking import Looker
from sim.liveness.predicates import missing
from sim.liveness.probes import Probes, final_reads
from sim.liveness.snapshot import Snapshot
from sim.running.damage import damage
from sim.scenario.actions import Corrupt
from sim.scenario.names import PartitionName
from sim.scenario.selectors import Selector
from sim.trace.kinds import Kind
from tests.sim.checks.judged import LOG, SECOND_US, Stage


class Watched(Stage):
    """A judged world, and who looks at it."""

    def __init__(self, **config: Any) -> None:
        super().__init__(**config)
        healing = Healing(self.world, self.judge, core_of(self.world, "all"))
        self.looker = Looker(self.world, self.judge, healing, Probes(self.world))
        self.looker.is_loaded = False
        self.looker.look()

    def go(self, seconds: float = 1) -> Snapshot:
        self.world.run_for(int(seconds * SECOND_US))
        return self.looker.look()

    def misses(self, now: Snapshot | None = None) -> set[str]:
        return {each.predicate for each in missing(now or self.looker.look())}

    def spoil(self, offset: int, how: str) -> None:
        """Damage a batch of b1."""
        node, partition = Selector("node", "b1"), PartitionName("orders", 0)
        action = Corrupt(node=node, partition=partition, offset=offset, how=how)
        damage(self.world, "b1", action, "spoilt", ())

    def partition(self) -> TopicIdPartition:
        found = self.world.view().partition("orders")
        assert found is not None
        return found.partition


def test_a_healthy_world_misses_only_what_nobody_asked_for() -> None:
    stage = Watched()
    stage.go(10)
    assert stage.misses() == {"writes-answered", "readers-drained"}
    stage.looker.probes.ask(frozenset())
    stage.looker.readers = final_reads(stage.world)
    stage.go(2)
    assert stage.misses() == set()
    (each,) = stage.looker.look().partitions
    assert (each.read_end, each.min_isr, each.probe) == (6, 2, "acked")
    assert [log.end for log in each.logs] == [6, 6, 6]


def test_a_read_is_not_done_before_it_is_at_the_end() -> None:
    stage = Watched()
    stage.looker.readers = final_reads(stage.world)
    stage.go(2)
    assert "readers-drained" not in stage.misses()
    stage.world.pause("liveness-reader")
    stage.cluster.produce("orders", 3).wait()
    stage.go(2)
    assert "readers-drained" in stage.misses()
    stage.world.resume("liveness-reader")
    stage.go(2)
    assert "readers-drained" not in stage.misses()


def test_a_topic_that_comes_about_during_the_final_reads_is_read() -> None:
    stage = Watched()
    stage.cluster.delete_topic("orders").wait()
    stage.go(1)
    stage.looker.readers = final_reads(stage.world)
    assert stage.looker.look().partitions == ()
    stage.cluster.create_topic("late", replicas=3).wait()
    stage.cluster.produce("late", 2).wait()
    assert "readers-drained" in stage.misses(stage.go(1))
    stage.looker.readers.begin()
    stage.go(2)
    assert "readers-drained" not in stage.misses()
    assert [each.read_end for each in stage.looker.look().partitions] == [2]


def test_a_consumer_that_stands_behind_is_seen() -> None:
    stage = Watched()
    stage.looker.readers = final_reads(stage.world)
    stage.cluster.follow("orders", client="k1")
    stage.go(2)
    assert "readers-drained" not in stage.misses()
    stage.world.pause("k1")
    stage.cluster.produce("orders", 3).wait()
    now = stage.go(2)
    (found,) = [each for each in missing(now) if each.predicate == "readers-drained"]
    assert found.text == "k1 is at 5 of orders-0, committed is up to 8"


def test_brokers_that_go_are_seen_by_and_by() -> None:
    stage = Watched()
    stage.world.crash("b1")
    now = stage.looker.look()
    assert {"brokers-run", "partitions-led"} <= stage.misses(now)
    node = now.node("b1")
    assert node.culprit is not None
    assert (node.status, node.culprit.text) == ("down", "b1 ended (process)")
    assert node.culprit.event == stage.world.trace.count
    now = stage.go(12)
    assert now.node("b1").is_fenced
    assert {"brokers-run", "isr-complete", "epochs-stable"} <= stage.misses(now)
    assert "partitions-led" not in stage.misses(now)
    stage.world.crash("c1", "power")
    assert "controller-leads" in stage.misses()


def test_a_broker_that_comes_back_is_fenced_and_behind_at_first() -> None:
    stage = Watched()
    stage.world.crash("b3")
    stage.go(12)
    stage.world.start("b3")
    assert {"brokers-unfenced", "metadata-applied"} <= stage.misses()
    stage.go(12)
    assert not {"brokers-unfenced", "metadata-applied", "isr-complete"} & stage.misses()


def test_logs_that_differ_are_seen() -> None:
    stage = Watched()
    fault = stage.cluster.cut("b1", "b3", only=["FetchResponse"])
    stage.cluster.produce("orders", 4, acks=1, client="p2").wait()
    now = stage.go(0.1)
    found = [each.text for each in missing(now) if each.predicate == "logs-equal"]
    assert found[-1] == "b3 ends at 5, the leader b1 at 9 in orders-0"
    stage.cluster.heal(fault)
    # The response that was lost is asked for again when its request has timed out.
    stage.go(31)
    assert "logs-equal" not in stage.misses()


def test_a_failed_fetcher_is_seen() -> None:
    stage = Watched()
    fetch = stage.broker("b3")._fetchers.fetch_of(stage.partition())
    assert fetch is not None
    fetch.state = FetchState.FAILED
    assert "replicas-sound" in stage.misses()


def test_a_reassignment_under_way_is_seen_and_its_end() -> None:
    stage = Watched(brokers=4)
    stage.world.crash("b4")
    stage.cluster.reassign("orders", replicas=["b1", "b2", "b4"]).wait()
    now = stage.go()
    assert "no-reassignment" in stage.misses(now)
    assert (now.partitions[0].adding, now.partitions[0].removing) == (("b4",), ("b3",))
    stage.world.start("b4")
    now = stage.go(15)
    assert now.partitions[0].replicas == ("b1", "b2", "b4")
    assert "no-reassignment" not in stage.misses(now)


def test_an_elr_that_is_left_over_is_seen() -> None:
    stage = Watched()
    record = stage.world.view().partition("orders")
    assert record is not None
    object.__setattr__(record, "elr", ("b3",))
    assert "elr-empty" in stage.misses()


def test_operations_without_an_outcome_are_seen_with_whom_they_wait_for() -> None:
    stage = Watched()
    for name in ("b2", "b3"):
        stage.cluster.cut("b1", name, only=["FetchResponse"])
    pending = stage.cluster.produce("orders", 2, client="p3")
    now = stage.go(0.5)
    assert not pending.is_done()
    (wait,) = now.waits
    assert (wait.client, wait.what, wait.partition) == ("p3", "produce", "orders-0")
    assert (wait.at, wait.offset) == ("b1", 6)
    assert "operations-ended" in stage.misses(now)


def test_an_operator_who_has_no_answer_is_seen() -> None:
    stage = Watched()
    stage.world.crash("c1")
    stage.cluster.elect("orders")
    now = stage.go()
    assert [each.text for each in now.waits] == ["ElectLeadersRequest"]
    assert "operations-ended" in stage.misses(now)


def test_a_log_in_quarantine_is_seen_with_who_did_it() -> None:
    stage = Watched()
    stage.world.call("b3", Kind.STEP, {"step": "flush"}, "flush_logs")
    stage.go()
    stage.world.crash("b3")
    files = stage.world.host("b3").require_disk().files
    files.flip_bit(LOG, 70)
    stage.judge.on_damaged("b3")
    damaged = stage.world.trace.count
    stage.world.start("b3")
    stage.world.run_for(1_000)
    now = stage.looker.look()
    log = now.partitions[0].log("b3")
    assert log is not None
    assert log.culprit is not None
    assert (log.role, log.is_salvageable, log.culprit.event) == ("quarantined", True, damaged)
    assert "replicas-sound" in stage.misses(now)


@pytest.mark.parametrize("name", ["b1", "b2", "b3"])
def test_looking_changes_nothing(name: str) -> None:
    digests = []
    for looks in (False, True):
        stage = Watched()
        stage.world.crash(name)
        for _ in range(40):
            stage.world.run_for(SECOND_US // 4)
            if looks:
                missing(stage.looker.look())
        digests.append(stage.world.trace.digest())
    assert digests[0] == digests[1]


def test_epochs_are_watched_by_partition_and_a_topic_that_goes_is_a_change_of_the_whole() -> None:
    stage = Watched()
    stage.cluster.create_topic("other", assignments=[["b2"]]).wait()
    now = stage.go(0)
    assert {each.name: each.changed_us for each in now.partitions}["orders-0"] == 0
    begun_us = now.changed_us
    stage.world.crash("b1")
    now = stage.go(12)
    changed = {each.name: each.changed_us for each in now.partitions}
    assert begun_us == now.changed_us < changed["other-0"] < changed["orders-0"] == now.t_us
    stage.cluster.delete_topic("other").wait()
    now = stage.go(0)
    assert now.changed_us == now.t_us
    assert [each.changed_us for each in now.partitions] == [changed["orders-0"]]


def test_a_topic_that_is_asked_for_needs_brokers() -> None:
    stage = Watched()
    for node in ("b2", "b3"):
        stage.world.crash(node)
    stage.go(15)
    stage.cluster.create_topic("spread", replicas=2)
    stage.cluster.create_topic("placed", assignments=[["b2", "b3"], ["b3", "b2"]])
    stage.cluster.create_topic("possible", assignments=[["b1", "b2"]])
    now = stage.go(2)
    assert [each.needs for each in now.waits] == [
        ((2, ("b1", "b2", "b3")),),
        ((1, ("b2", "b3")), (1, ("b3", "b2"))),
    ]


def test_a_file_that_is_cut_short_is_torn_until_it_is_written_on() -> None:
    stage = Watched()
    stage.world.run_for(40 * SECOND_US)
    stage.spoil(4, "truncate")
    (each,) = stage.go(0.01).partitions
    led, follower = each.log("b1"), each.log("b2")
    assert led is not None
    assert follower is not None
    assert (led.damages, led.torn) == (((4, 5),), ((4, 5),))
    assert (follower.damages, follower.torn) == ((), ())
    stage.cluster.produce("orders", 1, acks=1, client="p2").wait()
    (each,) = stage.go(0.01).partitions
    led = each.log("b1")
    assert led is not None
    assert (led.damages, led.torn) == (((4, 5),), ())


@pytest.mark.parametrize(
    ("how", "hidden"), [("zero", ((5, 1 << 63),)), ("flip", ()), ("truncate", ((5, 1 << 63),))]
)
def test_nobody_finds_what_is_behind_a_damaged_header(
    how: str, hidden: tuple[tuple[int, int], ...]
) -> None:
    stage = Watched()
    stage.cluster.produce("orders", 1, client="p2").wait()
    stage.world.run_for(40 * SECOND_US)
    stage.spoil(4, how)
    (each,) = stage.go(0.01).partitions
    led = each.log("b1")
    assert led is not None
    assert led.damages[0] == (4, 5)
    assert led.hidden[:1] == hidden


def test_an_index_leads_past_a_damaged_header() -> None:
    stage = Watched()
    for _ in range(16):
        stage.cluster.produce("orders", [bytes(1_000)], client="p2").wait()
    stage.world.run_for(40 * SECOND_US)
    replica = stage.replica("b1")
    assert replica.log is not None
    _, (spoilt, position), (behind, _), *_ = replica.log.active.index.entries
    assert position > 0
    stage.spoil(spoilt, "zero")
    (each,) = stage.go(0.01).partitions
    led = each.log("b1")
    assert led is not None
    assert led.hidden == ((spoilt + 1, behind),)
