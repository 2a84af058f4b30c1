"""Checks that fire on bytes of a live world's files, changed through its disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.config import BrokerConfig
from sim.cluster_config import DiskConfig
from sim.disk_faults import DiskFault
from sim.faults import DiskCallFault
from sim.plans import Planned, schedule
from sim.trace.kinds import Kind
from storage.epochs import EPOCH_FILE
from tests.sim.checks.judged import LOG, SECOND_US, Stage


def test_a_record_that_the_leader_has_otherwise_now() -> None:
    stage = Stage()
    stage.rewrite("b1", 2, b"p1-X")
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("committed-durability")
    assert (found.number, found.kind) == ("I1", "other-content")
    assert found.evidence["offset"] == 2


@pytest.mark.parametrize("check", ["committed-log-matching", "epoch-prefix"])
def test_a_record_that_a_follower_has_otherwise_now(check: str) -> None:
    stage = Stage()
    stage.rewrite("b2", 2, b"p1-X")
    stage.world.run_for(3 * SECOND_US)
    found = stage.found(check)
    assert found.kind == "differs"
    assert found.evidence["offset"] == 2
    assert "b2" in found.evidence["nodes"]


def test_a_rewritten_record_of_a_node_that_is_down_is_seen_when_it_starts() -> None:
    stage = Stage()
    stage.world.crash("b2")
    stage.rewrite("b2", 2, b"p1-X")
    stage.world.run_for(SECOND_US)
    assert not stage.judge.violations
    stage.world.start("b2")
    stage.world.run_for(5 * SECOND_US)
    assert stage.found("epoch-prefix").evidence["offset"] == 2


def test_a_batch_that_stands_there_twice() -> None:
    stage = Stage()
    frame = stage.frames("b3")[1]
    file = stage.world.hosts["b3"].require_disk().files.open(LOG)
    file.append(frame)
    file.close()
    stage.world.run_for(3 * SECOND_US)
    assert stage.found("offsets-increase").kind == "disorder"


@pytest.mark.parametrize("shift_records", [4, 2])
def test_a_whole_batch_that_a_disk_puts_in_the_place_of_another_is_damage(
    shift_records: int,
) -> None:
    stage = Stage(topic={})
    frames = stage.frames("b1")
    shift = -sum(map(len, frames[-shift_records:]))
    fault = DiskFault(id="f", kind="misdirected-write", path=".log", times=1, shift_bytes=shift)
    schedule(
        stage.world,
        [Planned(DiskCallFault(id="f", node="b1", fault=fault), stage.world.now_us, None)],
    )
    stage.world.run_for(1)
    stage.cluster.produce("orders", [b"p1-9"]).wait()
    stage.world.run_for(3 * SECOND_US)
    place = next(iter(stage.judge.scene.ledgers.values())).places["b1"]
    assert list(place.mirror.damaged) == [len(frames) - shift_records]
    assert stage.judge.finish() == []


@pytest.mark.parametrize("how", ["kept", "lost"])
def test_a_batch_in_the_place_of_another_stays_damage_when_the_process_ends(how: str) -> None:
    stage = Stage(topic={})
    shift = -sum(map(len, stage.frames("b1")))
    fault = DiskFault(id="f", kind="misdirected-write", path=".log", times=1, shift_bytes=shift)
    schedule(
        stage.world,
        [Planned(DiskCallFault(id="f", node="b1", fault=fault), stage.world.now_us, None)],
    )
    stage.world.run_for(1)
    stage.cluster.produce("orders", [b"p1-9"]).wait()
    stage.world.run_for(3 * SECOND_US)
    stage.world.crash("b1", "power", image=how)
    stage.world.run_for(SECOND_US)
    stage.world.start("b1")
    stage.world.run_for(20 * SECOND_US)
    assert stage.judge.finish() == []


def test_damage_behind_retention_is_that_of_the_batch_that_was_there() -> None:
    topic = {"segment.bytes": "200", "retention.bytes": "400"}
    broker = BrokerConfig(log_retention_check_interval_ms=2_000)
    stage = Stage(topic=topic, records=1, broker=broker)
    for number in range(11):
        stage.cluster.produce("orders", [f"v{number}"]).wait()
    stage.world.run_for(SECOND_US)
    place = next(iter(stage.judge.scene.ledgers.values())).places["b1"]
    segment = place.mirror.segments[-2]
    spoilt = place.mirror.batches[segment.first + 1]
    file = Path(f"/orders-0/{segment.base:020d}.log")
    disk = stage.world.hosts["b1"].require_disk().files
    at = len(place.mirror.batches[segment.first].data) + 30
    disk.flip_bit(file, at)
    stage.world.run_for(6 * SECOND_US)
    assert place.mirror.segments[0].base > 0
    assert list(place.mirror.damaged) == [spoilt.base]
    assert stage.judge.finish() == []


def test_a_batch_that_a_process_has_overwritten_with_rubbish() -> None:
    stage = Stage()
    file = stage.world.hosts["b3"].require_disk().files.open(LOG)
    file.write_at(len(stage.frames("b3")[0]) + 70, b"!!")
    file.close()
    stage.world.run_for(3 * SECOND_US)
    found = stage.found("offsets-increase")
    assert (found.kind, found.evidence["offsets"]) == ("damaged", [1])


def test_bit_rot_is_a_fault_of_the_disk_and_no_violation() -> None:
    stage = Stage()
    stage.world.hosts["b3"].require_disk().files.flip_bit(LOG, 70)
    stage.world.run_for(3 * SECOND_US)
    assert not stage.judge.finish()
    assert stage.judge.facts.record("orders-0", "b3", 0) is None
    assert stage.judge.facts.record("orders-0", "b3", 1) == "p1-1"


def test_a_damaged_batch_that_is_cut_and_written_anew_is_whole() -> None:
    stage = Stage()
    frames = stage.frames("b3")
    kept = len(frames[0])
    files = stage.world.hosts["b3"].require_disk().files
    files.flip_bit(LOG, kept + 70)
    stage.judge.on_damaged("b3")
    assert stage.judge.facts.record("orders-0", "b3", 1) is None
    file = files.open(LOG)
    file.truncate(kept)
    for frame in frames[1:]:
        file.append(frame)
    file.close()
    assert stage.judge.facts.record("orders-0", "b3", 1) == "p1-1"


def test_a_log_that_is_shorter_without_a_truncation() -> None:
    stage = Stage()
    file = stage.world.hosts["b2"].require_disk().files.open(LOG)
    file.truncate(sum(map(len, stage.frames("b2")[:3])))
    file.close()
    stage.world.run_for(3 * SECOND_US)
    assert stage.found("truncation-floor").kind == "vanished"
    assert stage.found("hw-valid").evidence["member"] == "b2"


@pytest.mark.parametrize(
    ("kind", "start_us"),
    [(None, 0), ("short-read", 0), ("error", 0), ("fsync-lie", 60 * SECOND_US)],
    ids=["sound", "reads-in-two", "fails", "not-yet"],
)
def test_a_log_that_lost_whole_batches_while_its_process_was_down(
    kind: str | None, start_us: int
) -> None:
    """A disk that fails now and then, or will lie some day, does not excuse that."""
    stage = Stage()
    if kind is not None:
        call = DiskFault(id="bad", kind=kind, path="no-such-file")
        plan = Planned(DiskCallFault(id="bad", node="b2", fault=call), start_us)
        schedule(stage.world, [plan])
        stage.world.run_for(SECOND_US)
    stage.world.crash("b2")
    file = stage.world.hosts["b2"].require_disk().files.open(LOG)
    file.truncate(sum(map(len, stage.frames("b2")[:3])))
    file.close()
    stage.world.start("b2")
    stage.world.run_for(SECOND_US)
    found = stage.found("recovery-sound")
    assert (found.number, found.kind) == ("I17", "durable-lost")
    assert (found.evidence["end"], found.evidence["durable"]) == (3, 5)
    started = stage.world.trace.events()[found.event - 1]
    assert (started.kind, started.node) == (Kind.START, "b2")


def test_a_batch_that_recovery_finds_and_nobody_wrote() -> None:
    stage = Stage()
    stage.world.crash("b2")
    frames = stage.frames("b2")
    stage.rewrite("b2", 4, b"p1-X")
    assert stage.frames("b2") != frames
    stage.world.start("b2")
    stage.world.run_for(SECOND_US)
    assert stage.found("recovery-sound").kind == "invented"


def test_a_checkpoint_that_a_power_loss_left_empty() -> None:
    stage = Stage(guards={"fsync_before_rename": False}, disk=DiskConfig(names_mode="posix"))
    disk = stage.world.hosts["b2"].require_disk().files
    disk.fsync_dir(Path("/orders-0"))
    stage.world.crash("b2", "power")
    found = stage.found("recovery-sound")
    assert found.kind == "checkpoint-unreadable"
    assert EPOCH_FILE in found.detail


def test_a_checkpoint_that_was_synced_is_whole_behind_a_power_loss() -> None:
    stage = Stage(disk=DiskConfig(names_mode="posix"))
    stage.world.hosts["b2"].require_disk().files.fsync_dir(Path("/orders-0"))
    stage.world.crash("b2", "power")
    assert not stage.judge.violations


def test_a_leader_that_cuts_its_own_log_has_lost_what_it_cut() -> None:
    stage = Stage()
    stage.replica("b1").opened.truncate_to(3)
    stage.cluster.produce("orders", 1, timeout_us=3 * SECOND_US)
    stage.world.run_for(5 * SECOND_US)
    assert stage.found("committed-durability").kind == "vanished"
    (loss,) = stage.judge.facts.losses()
    assert (loss.at, loss.how, loss.is_committed) == ("leading", "vanished", True)
    assert [tuple(span) for span in loss.spans] == [(0, 3, 5)]
    assert stage.judge.facts.lost("committed") == stage.judge.facts.lost("acked") == 2
