"""Checks that fire on what brokers say of their lives and of their past, with a rule off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from attrs import evolve

from cluster.fetching import FetchVerdict, check_position
from cluster.message import Message
from cluster.messages_control import BrokerHeartbeatRequest
from cluster.messages_data import EpochEndOffset, FetchRequest
from cluster.replica import Quarantined
from storage.log_producers import ProducerLog
from storage.producer_state import ProducerEntry
from tests.sim.checks.judged import LOG, SECOND_US, Stage


def _back(stage: Stage) -> None:
    """A broker is killed, and comes back once its session is over."""
    stage.world.crash("b3")
    stage.world.run_for(15 * SECOND_US)
    stage.world.start("b3")
    stage.world.run_for(20 * SECOND_US)


@pytest.mark.parametrize("is_on", [True, False])
def test_another_life_that_is_registered_while_the_session_lasts(is_on: bool) -> None:
    stage = Stage(guards={"registration_incarnation": is_on})
    stage.world.crash("b3")
    stage.world.run_for(SECOND_US)
    stage.world.start("b3")
    stage.world.run_for(20 * SECOND_US)
    if is_on:
        assert not stage.judge.violations
        return
    found = stage.found("one-leader-per-epoch")
    assert (found.number, found.kind) == ("I7", "registered-twice")
    assert found.evidence["broker"] == "b3"
    assert 0 < found.evidence["left_us"] < 9 * SECOND_US


@pytest.mark.parametrize("is_on", [True, False])
def test_a_heartbeat_of_an_earlier_life_that_counts(is_on: bool) -> None:
    stage = Stage(guards={"broker_epoch": is_on})
    _back(stage)
    assert not stage.judge.violations

    def tamper(node: str, src: str, message: Message) -> Message:
        if src == "b3" and isinstance(message, BrokerHeartbeatRequest):
            return evolve(message, broker_epoch=0)
        return message

    stage.world.tamper = tamper
    stage.world.run_for(3 * SECOND_US)
    if is_on:
        assert not stage.judge.violations
        return
    found = stage.found("epoch-fencing")
    assert (found.number, found.kind) == ("I20", "old-heartbeat")
    assert (found.evidence["broker"], found.evidence["epoch"]) == ("b3", 0)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_follower_that_forgets_its_last_epoch(is_on: bool) -> None:
    stage = Stage(guards={"keep_last_fetched_epoch": is_on}, records=0)
    stage.cluster.produce("orders", 5).wait()
    stage.world.run_for(3 * SECOND_US)
    if is_on:
        assert not stage.judge.violations
        return
    found = stage.found("epoch-fencing")
    assert (found.number, found.kind) == ("I20", "asks-without-epoch")
    assert (found.evidence["offset"], found.evidence["epoch"]) == (5, 0)


def test_a_follower_of_which_all_is_deleted_has_no_epoch_to_tell() -> None:
    stage = Stage()
    stage.cluster.delete_records("orders", before=5).wait()
    stage.world.run_for(2 * SECOND_US)
    stage.world.crash("b1")
    stage.world.run_for(20 * SECOND_US)
    assert not stage.judge.violations


def test_a_divergence_that_lies_below_the_log_start(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    stage.cluster.delete_records("orders", before=3).wait()
    stage.world.run_for(2 * SECOND_US)

    def verdict(**given: Any) -> FetchVerdict:
        if given["fetch_offset"] < given["log_start"]:
            return FetchVerdict(diverging_epoch=EpochEndOffset(0, given["fetch_offset"]))
        return check_position(**given)

    def tamper(node: str, src: str, message: Message) -> Message:
        if src != "b2" or not isinstance(message, FetchRequest):
            return message
        (asked,) = message.partitions
        return evolve(message, partitions=(asked._replace(fetch_offset=2),))

    monkeypatch.setattr("cluster.serving.check_position", verdict)
    stage.world.tamper = tamper
    stage.world.run_for(2 * SECOND_US)
    found = stage.found("truncation-floor")
    assert (found.number, found.kind) == ("I13", "diverges-below-start")
    assert (found.evidence["offset"], found.evidence["log_start"]) == (2, 3)


@pytest.mark.parametrize("is_on", [True, False])
def test_a_checkpoint_that_forgets_a_log_in_quarantine(is_on: bool) -> None:
    stage = Stage(guards={"merge_hw_checkpoint": is_on}, topic={"min.insync.replicas": "1"})
    stage.world.run_for(5 * SECOND_US)
    for node in ("b3", "b2", "b1"):
        stage.world.shutdown(node)
        stage.world.run_for(3 * SECOND_US)
    disk = stage.world.hosts["b1"].require_disk().files
    file = disk.open(LOG)
    file.write_at(20, b"not a frame")
    file.close()
    stage.world.start("b1")
    stage.world.run_for(20 * SECOND_US)
    assert isinstance(stage.replica("b1").role, Quarantined)
    mine = [each for each in stage.judge.violations if each.kind == "mark-forgotten"]
    assert [(each.number, each.partition) for each in mine] == [("I17", "orders-0")] * (not is_on)


def _shifted(self: ProducerLog) -> Mapping[int, ProducerEntry]:
    entries = {}
    for producer, entry in self._producers.entries.items():
        last = entry.batches[-1]._replace(base_offset=1)
        entries[producer] = entry._replace(batches=(last,))
    return entries


@pytest.mark.parametrize("is_true", [True, False])
def test_a_log_that_remembers_what_it_does_not_have(
    is_true: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    assert stage.replica("b3").opened.producers
    if not is_true:
        monkeypatch.setattr(ProducerLog, "producers", property(_shifted))
    _back(stage)
    if is_true:
        assert not stage.judge.violations
        return
    found = stage.found("idempotence")
    assert (found.number, found.kind) == ("I15", "false-memory")
    assert found.evidence["offset"] == 1


@pytest.mark.parametrize("was_forgotten", [False, True])
def test_a_log_that_does_not_remember_what_it_has(
    was_forgotten: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    (ledger,) = stage.judge.scene.ledgers.values()
    place = ledger.places["b3"]
    (producer,) = stage.replica("b3").opened.producers
    # Behind its last batch, or in front of it: of one that came again the log has to know.
    place.ever_forgotten[producer] = place.mirror.batches[-1].base + was_forgotten
    monkeypatch.setattr(ProducerLog, "producers", property(lambda self: {}))
    _back(stage)
    if was_forgotten:
        assert not stage.judge.violations
        return
    found = stage.found("idempotence")
    assert (found.number, found.kind) == ("I15", "lost-memory")
    assert found.evidence["offset"] == place.mirror.batches[-1].base


def _forgets_everybody(self: ProducerLog, now_ms: int) -> tuple[int, ...]:
    return self._producers.expire(now_ms, 1)


@pytest.mark.parametrize("is_true", [True, False])
def test_a_log_that_forgets_producers_too_early(
    is_true: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage()
    if not is_true:
        monkeypatch.setattr(ProducerLog, "expire_producers", _forgets_everybody)
    stage.world.run_for(310 * SECOND_US)
    if is_true:
        assert stage.replica("b3").opened.producers
        assert not stage.judge.violations
        return
    assert not stage.replica("b3").opened.producers
    found = stage.found("idempotence")
    assert (found.number, found.kind) == ("I15", "forgotten-early")


def _forgets_others(self: ProducerLog, now_ms: int) -> tuple[int, ...]:
    self._producers.expire(now_ms, 1)
    return (77,)


def test_a_log_that_forgets_others_than_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    monkeypatch.setattr(ProducerLog, "expire_producers", _forgets_others)
    stage.world.run_for(310 * SECOND_US)
    found = stage.found("idempotence")
    assert (found.number, found.kind) == ("I15", "lost-memory")


def test_a_log_that_is_opened_knows_again_whom_it_finds() -> None:
    stage = Stage()
    (ledger,) = stage.judge.scene.ledgers.values()
    place = ledger.places["b3"]
    (producer,) = stage.replica("b3").opened.producers
    place.forgotten.update({producer: 5, 77: 3})
    place.ever_forgotten.update(place.forgotten)
    stage.world.crash("b3")
    assert place.forgotten == {producer: 5, 77: 3}
    stage.world.start("b3")
    stage.world.run_for(2 * SECOND_US)
    assert place.forgotten == {producer: -1, 77: 5}
    # A snapshot from before may have nothing of them, whenever the log is cut back to it.
    assert place.ever_forgotten == {producer: 5, 77: 3}


@pytest.mark.parametrize("is_on", [True, False])
def test_a_marker_that_is_left_while_logs_are_opened(is_on: bool) -> None:
    stage = Stage(guards={"remove_marker_before_load": is_on})
    stage.world.shutdown("b3")
    stage.world.run_for(15 * SECOND_US)
    stage.world.start("b3")
    assert stage.replica("b3").opened.report.is_clean
    stage.world.crash("b3")
    stage.world.run_for(15 * SECOND_US)
    assert not stage.judge.violations
    stage.world.start("b3")
    assert stage.replica("b3").opened.report.is_clean != is_on
    if is_on:
        stage.world.run_for(20 * SECOND_US)
        assert not stage.judge.violations
        return
    found = stage.found("recovery-sound")
    assert (found.number, found.kind, found.evidence["node"]) == ("I17", "false-clean", "b3")
