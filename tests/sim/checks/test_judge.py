"""A judge changes nothing, goes with copies of its world, and is silent about healthy ones."""

from __future__ import annotations

import pytest

from sim.checks.judge import Judge
from sim.checks.mirrors import LogMirror
from sim.world import World
from tests.sim.checks.fault_plans import Judged
from tests.sim.checks.judged import SECOND_US, Stage

HEALTHY = (1, 4, 9, 1014, 2028, 2031)


def sums_of(world: World) -> tuple[object, ...]:
    disks = [world.hosts[name].require_disk().files for name in ("c1", *world.config.names)]
    return (
        world.trace.digest(),
        world.trace.count,
        world.state_key(),
        [(disk.call_count, disk.serial, disk.digest()) for disk in disks],
        len(world.timeline),
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [8, 11])
def test_with_and_without_a_judge_a_run_is_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged = Judged(seed)
    judged.run(faults=10, span_s=30)
    judged.judge.finish()
    assert judged.judge.facts.committed() > 20
    # Losses are events, as violations are.
    assert judged.judge.facts.losses() == []
    paranoid = Judged(seed, paranoid=True)
    paranoid.run(faults=10, span_s=30)
    monkeypatch.setattr(Judge, "_look_on", lambda self, world: None)
    alone = Judged(seed)
    assert alone.world.kernel.observer is None
    alone.run(faults=10, span_s=30)
    assert sums_of(judged.world) == sums_of(alone.world) == sums_of(paranoid.world)


@pytest.mark.slow
@pytest.mark.parametrize("seed", HEALTHY)
def test_a_healthy_cluster_under_heavy_faults_breaks_no_rule(seed: int) -> None:
    judged = Judged(seed)
    judged.run()
    judged.settle()
    assert judged.judge.finish() == []
    facts = judged.judge.facts
    for number in range(judged.partitions):
        assert facts.same_log(f"orders-{number}", "b1", "b2", "b3")
    assert facts.one_leader_per_epoch()
    assert facts.acked() > 10


@pytest.mark.slow
def test_paranoid_mirrors_are_the_files_at_every_event() -> None:
    judged = Judged(5, paranoid=True)
    judged.run(faults=10, span_s=20)
    assert judged.judge.finish() == []
    assert judged.judge.mismatches == []


def test_a_mirror_that_misses_a_write_is_found_by_a_paranoid_judge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(paranoid=True, records=0)
    monkeypatch.setattr(LogMirror, "wrote", lambda self, base, position, size: None)
    stage.cluster.produce("orders", 1).wait()
    assert stage.judge.mismatches
    assert "orders-0 at event" in stage.judge.mismatches[0]


def test_a_copied_world_has_a_judge_of_its_own() -> None:
    stage = Stage(records=3)
    twin = stage.world.copy()
    judge = Judge.of(twin)
    assert judge is not stage.judge
    assert judge.scene.world is twin
    stage.rewrite("b2", 1, b"p1-X")
    for world in (stage.world, twin):
        world.run_for(3 * SECOND_US)
    assert stage.found("committed-log-matching")
    assert judge.finish() == []
    stage.world = twin  # type: ignore[assignment]
    stage.rewrite("b3", 1, b"p1-Y")
    twin.run_for(3 * SECOND_US)
    assert [each.check for each in judge.violations]


def test_a_second_judge_is_refused() -> None:
    stage = Stage(records=0)
    with pytest.raises(ValueError, match="has a judge already"):
        Judge(stage.world)
    with pytest.raises(ValueError, match="no judge"):
        Judge.of(World(seed=1))


def test_a_violation_is_told_once_and_counted() -> None:
    stage = Stage()
    stage.rewrite("b2", 2, b"p1-X")
    stage.world.run_for(3 * SECOND_US)
    before = len(stage.judge.violations)
    stage.judge.finish()
    stage.judge.finish()
    keys = [(each.check, each.partition, each.kind) for each in stage.judge.violations]
    assert len(keys) == len(set(keys)) == before
    assert max(stage.judge.scene.repeats.values()) > 1
    assert "I2" in str(stage.found("committed-log-matching"))
