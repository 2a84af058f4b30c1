"""Inside the core faults end and nodes come back; outside they stay for ever."""

from __future__ import annotations

from typing import Any

import pytest

from sim.disk_faults import DiskFault
from sim.failpoints import Failpoint
from sim.faults import (
    BackgroundHold,
    ClockDrift,
    ClockFreeze,
    ClockStep,
    DiskCallFault,
    DiskFill,
    DiskSlow,
    HostPause,
    SlowCpu,
)
from sim.liveness.healing import STARTS_MAX, Healing, core_of
from sim.network_rules import Cut, Slow
from sim.plans import begin
from sim.world import World
from tests.sim.checks.judged import SECOND_US, Stage

OF_B2: list[Any] = [
    HostPause(id="f", node="b2"),
    SlowCpu(id="f", node="b2", factor_ppm=9_000_000),
    BackgroundHold(id="f", node="b2"),
    ClockDrift(id="f", node="b2", wall_ppm=50_000, mono_ppm=50_000),
    ClockFreeze(id="f", node="b2", also_mono=True),
    DiskSlow(id="f", node="b2", addend_us=90_000),
    DiskFill(id="f", node="b2", free_bytes=10),
    DiskCallFault(id="f", node="b2", fault=DiskFault(id="f", kind="fsync-fail")),
    Cut(id="f", edges=(("b2", "b1"), ("b1", "b2"))),
    Slow(id="f", edges=(("*", "b2"),), addend_us=9_000),
]


def start(world: World, fault: Any) -> None:
    world.faults[fault.id] = fault
    begin(world, fault.id)


def healed(stage: Stage, *core: str) -> Healing:
    found = Healing(stage.world, stage.judge, frozenset(core or ("c1", "b1", "b2", "b3")))
    found.heal()
    return found


@pytest.mark.parametrize("fault", OF_B2, ids=lambda each: type(each).__name__)
def test_a_fault_of_the_core_ends(fault: Any) -> None:
    stage = Stage()
    start(stage.world, fault)
    stage.world.run_for(3 * SECOND_US)
    found = healed(stage)
    assert not stage.world.active_faults
    assert not found.impaired
    assert stage.world.view().status("b2") == "running"
    stage.world.run_for(40 * SECOND_US)
    assert stage.world.view().isr("orders") == ("b1", "b2", "b3")


@pytest.mark.parametrize("fault", OF_B2, ids=lambda each: type(each).__name__)
def test_a_fault_outside_stays_with_its_event(fault: Any) -> None:
    stage = Stage()
    start(stage.world, fault)
    number = stage.world.active_faults["f"]
    found = healed(stage, "c1", "b1", "b3")
    assert list(stage.world.active_faults) in (["f"], ["f/frozen"])
    assert (found.impaired["b2"].event, found.impaired["b2"].fault) == (number, "f")


def test_all_faults_that_stay_are_named_but_those_that_are_over() -> None:
    stage = Stage()
    start(stage.world, ClockStep(id="s", node="b2", by_us=SECOND_US))
    start(stage.world, SlowCpu(id="f", node="b2", factor_ppm=2_000_000))
    number = stage.world.active_faults["f"]
    start(stage.world, Cut(id="g", edges=(("b2", "b1"),)))
    found = healed(stage, "c1", "b1", "b3")
    assert str(found.impaired["b2"]) == f"faults stay with b2, by 'f, g' (#{number})"


def test_of_a_fault_of_links_only_what_touches_those_outside_stays() -> None:
    stage = Stage()
    edges = (("b1", "b2"), ("b2", "b3"), ("b1", "c1"))
    start(stage.world, Cut(id="f", edges=edges))
    found = healed(stage, "c1", "b1", "b2")
    assert list(stage.world.active_faults) == ["f/frozen"]
    left = stage.world.faults["f/frozen"]
    assert isinstance(left, Cut)
    assert left.edges == (("b2", "b3"),)
    assert list(found.impaired) == ["b3"]


def test_a_fault_of_everybody_stays_for_those_outside() -> None:
    stage = Stage()
    start(stage.world, Slow(id="f", edges=(("*", "*"),), addend_us=9_000))
    healed(stage, "c1", "b1", "b2")
    left = stage.world.faults["f/frozen"]
    assert isinstance(left, Slow)
    assert left.edges == (("b3", "*"), ("*", "b3"))


def test_links_among_those_outside_impair_nobody() -> None:
    stage = Stage()
    start(stage.world, Cut(id="f", edges=(("b2", "b3"),)))
    found = healed(stage, "c1", "b1")
    assert list(stage.world.active_faults) == ["f"]
    assert not found.impaired


def test_who_is_down_is_started_in_the_core_only() -> None:
    stage = Stage()
    for name in ("c1", "b1", "b2"):
        stage.world.crash(name, "power")
    healed(stage, "c1", "b1", "b3")
    view = stage.world.view()
    assert [view.status(each) for each in ("c1", "b1", "b2", "b3")] == [
        "running",
        "running",
        "off",
        "running",
    ]


def test_who_is_paused_goes_on_clients_too() -> None:
    stage = Stage()
    for name in ("b1", "b2", "p1"):
        stage.world.pause(name)
    healed(stage, "c1", "b1", "b3")
    view = stage.world.view()
    assert [view.status(each) for each in ("b1", "b2", "p1")] == ["running", "paused", "running"]


def test_failpoints_are_disarmed() -> None:
    stage = Stage()
    stage.world.add_failpoint("b1", Failpoint(id="x", point="fetch-read", action="process"))
    healed(stage)
    stage.world.run_for(5 * SECOND_US)
    assert stage.world.view().status("b1") == "running"


def test_who_ends_again_and_again_is_given_up() -> None:
    stage = Stage()
    found = healed(stage)
    starts = stage.world.host("b3").starts
    for _ in range(200):
        if stage.world.host("b3").is_running:
            stage.world.crash("b3")
        stage.world.run_for(SECOND_US // 10)
        found.keep_alive()
    assert stage.world.host("b3").starts - starts == STARTS_MAX + 1
    assert found.given_up["b3"].text == f"b3 has ended by itself {STARTS_MAX} times"
    assert found.given_up["b3"].event > 0


# The core --------------------------------------------------------------------------------------


def test_everybody_is_the_core_by_default() -> None:
    assert core_of(Stage().world, "all") == {"c1", "b1", "b2", "b3"}


def test_a_drawn_core_has_the_controller_and_somebody_who_may_lead() -> None:
    sizes = set()
    for seed in range(20):
        stage = Stage(seed=seed)
        stage.world.crash("b1")
        core = core_of(stage.world, "drawn")
        assert "c1" in core
        assert core & {"b2", "b3"}
        assert core_of(stage.world, "drawn") == core
        sizes.add(len(core))
    assert sizes == {2, 3, 4}


def test_where_nobody_in_sync_runs_all_of_them_are_of_the_core() -> None:
    for seed in range(8):
        stage = Stage(seed=seed)
        for name in ("b1", "b2", "b3"):
            stage.world.crash(name)
        assert core_of(stage.world, "drawn") == {"c1", "b1", "b2", "b3"}


def test_drawing_a_core_moves_no_other_draw() -> None:
    digests = []
    for draws in (False, True):
        stage = Stage()
        if draws:
            core_of(stage.world, "drawn")
        stage.world.run_for(5 * SECOND_US)
        digests.append(stage.world.trace.digest())
    assert digests[0] == digests[1]
