"""Faults of nodes in a live cluster: what each does and says of itself, and how they overlap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from sim import faults
from sim.disk_faults import DiskFault
from sim.failpoints import Failpoint
from sim.plans import begin, end
from sim.trace.kinds import Kind
from tests.sim.worlds import SECOND_US, events, led_world, of_fault, strike, values_of

MILLION = 1_000_000
ERROR = DiskFault(id="f", kind="error", operation="write_at", path=".log")
EXAMPLES: list[faults.HostFault] = [
    faults.Crash(id="f", node="b2"),
    faults.Crash(id="f", node="b2", how="power", image="drawn"),
    faults.CrashLoop(id="f", node="b2", calls=(3, 1)),
    faults.CrashLoop(id="f", node="b2", calls=(3, 1), how="power"),
    faults.HostPause(id="f", node="b2"),
    faults.SlowCpu(id="f", node="b2", factor_ppm=100 * MILLION),
    faults.BackgroundHold(id="f", node="b2"),
    faults.ClockStep(id="f", node="b2", by_us=-5 * SECOND_US),
    faults.ClockDrift(id="f", node="b2", wall_ppm=-100_000, mono_ppm=500_000),
    faults.ClockFreeze(id="f", node="b2", also_mono=True),
    faults.ClockStrobe(id="f", node="b2", by_us=-5 * SECOND_US, period_us=300_000),
    faults.TimerJitter(id="f", node="b2", ppm=100_000),
    faults.MetadataLag(id="f", node="b2", records=2),
    faults.MetadataLag(id="f", node="b2"),
    faults.DiskCallFault(id="f", node="b2", fault=ERROR),
    faults.DiskCallFault(id="f", node="b2", fault=DiskFault(id="f", kind="gone", times=None)),
    faults.DiskCallFault(id="f", node="b2", fault=DiskFault(id="f", kind="read-only", times=None)),
    faults.BadSectors(id="f", node="b2", byte=3, fault=evolve(ERROR, path="/.lock")),
    faults.DiskSlow(id="f", node="b2", addend_us=10_000),
    faults.DiskStall(id="f", node="b2", duration_us=SECOND_US),
    faults.DiskFill(id="f", node="b2", free_bytes=100),
    faults.AtFailpoint(
        id="f", node="b2", failpoint=Failpoint(id="f", point="fetch-received", action="process")
    ),
    faults.AtFailpoint(
        id="f",
        node="b2",
        failpoint=Failpoint(id="f", point="disk:write_at:.log", action="power", hit=2),
    ),
]


# What all have in common -------------------------------------------------------------------------


def test_every_fault_has_an_example() -> None:
    kinds = {type(fault).__name__ for fault in EXAMPLES}
    others = {"Fault", "HostFault", "Composite", "Flap", "Swizzle", "BitRot"}
    assert kinds == set(faults.__all__) - others


@pytest.mark.parametrize("state", ["running", "paused", "down", "off"])
@pytest.mark.parametrize("fault", EXAMPLES, ids=lambda fault: f"{type(fault).__name__}")
def test_a_fault_begins_and_ends_whatever_its_node_does(
    fault: faults.HostFault, state: str
) -> None:
    world, cluster = led_world()
    if state == "paused":
        world.pause("b2")
    elif state != "running":
        world.crash("b2", "process" if state == "down" else "power")
    crashes = len(events(world, Kind.CRASH))
    begun = strike(world, fault, 2 * SECOND_US)
    assert world.active_faults == {"f": begun.n}
    assert begun.node == "b2"
    assert {key: begun.args[key] for key in ("id", "kind", "target")} == {
        "id": "f",
        "kind": type(fault).__name__,
        "target": "b2",
    }
    cluster.produce("orders", 5)
    world.run_for(3 * SECOND_US)
    (healed,) = events(world, Kind.HEAL)
    assert healed.args == {"id": "f", "kind": type(fault).__name__}
    assert (healed.cause, healed.t_us, healed.node) == ((begun.n,), begun.t_us + 2_000_000, "b2")
    assert world.active_faults == {}
    assert not world.host("b2").begun
    if isinstance(fault, faults.Crash | faults.CrashLoop):
        assert world.view().status("b2") == "running"
    if state == "off" and isinstance(fault, faults.Crash):
        # There is nothing left to lose.
        assert len(events(world, Kind.CRASH)) == crashes
    if world.view().status("b2") == "paused":
        world.resume("b2")
    elif world.view().status("b2") in ("down", "off"):
        world.start("b2")
    world.run_for(30 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")


BAD: list[tuple[type[faults.HostFault], dict[str, Any], str]] = [
    (faults.Crash, {"how": "axe"}, "how is 'axe', allowed are process, power"),
    (faults.Crash, {"image": "odd"}, "image is 'odd', allowed are lost, kept, drawn, file-prefix"),
    (faults.CrashLoop, {"calls": ()}, r"calls is \(\), allowed are one or more numbers from 1"),
    (faults.CrashLoop, {"calls": (0,)}, r"calls is \(0,\), allowed are"),
    (faults.CrashLoop, {"calls": (1,), "how": "axe"}, "how is 'axe', allowed are process, power"),
    (faults.CrashLoop, {"calls": (1,), "image": "odd"}, "image is 'odd', allowed are lost"),
    (
        faults.CrashLoop,
        {"calls": (1,), "restart_after_us": -1},
        "restart_after_us is -1, allowed is 0 or more",
    ),
    (faults.ClockStrobe, {"by_us": 1, "period_us": 0}, "period_us is 0, allowed is 1 or more"),
    (faults.TimerJitter, {"ppm": 0}, "ppm is 0, allowed is 1 or more"),
    (faults.TimerJitter, {"ppm": 100_001}, "ppm is 100001, allowed is 1..100000"),
    (faults.MetadataLag, {"records": 0}, "records is 0, allowed is 1 or more, or None"),
    (faults.BitRot, {"path": "x", "byte": -1, "mask": 1}, "byte is -1, allowed is 0 or more"),
    (faults.BitRot, {"path": "x", "byte": 0, "mask": 0}, "mask is 0, allowed is 1 or more"),
    (faults.SlowCpu, {"factor_ppm": -1}, "factor_ppm is -1, allowed is 0 or more"),
    (
        faults.ClockDrift,
        {"mono_ppm": -MILLION},
        "mono_ppm is -1000000, allowed is -999999..1000000",
    ),
    (faults.ClockDrift, {"wall_ppm": MILLION + 1}, "wall_ppm is 1000001, allowed is -999999.."),
    (faults.DiskSlow, {"factor_ppm": -1}, "factor_ppm is -1, allowed is 0 or more"),
    (faults.DiskSlow, {"addend_us": -1}, "addend_us is -1, allowed is 0 or more"),
    (faults.DiskStall, {"duration_us": 0}, "duration_us is 0, allowed is 1 or more"),
    (faults.DiskFill, {"free_bytes": -1}, "free_bytes is -1, allowed is 0 or more"),
    (
        faults.AtFailpoint,
        {"failpoint": Failpoint(id="g", point="registered")},
        "the failpoint's id is 'g', allowed is 'f'",
    ),
    (
        faults.DiskCallFault,
        {"fault": DiskFault(id="g", kind="error")},
        "id of the disk fault is 'g', allowed is 'f'",
    ),
]


@pytest.mark.parametrize(("kind", "values", "text"), BAD)
def test_faults_that_cannot_be_say_why(
    kind: type[faults.HostFault], values: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError, match=text):
        kind(id="f", node="b2", **values)


def test_bits_rot_at_once_for_who_reads_them_and_for_good() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 3).wait()
    disk = world.host("b2").require_disk().files
    path = Path("/orders-0/00000000000000000000.log")
    file = disk.open(path, write=False)
    file.fsync()
    before = file.read_at(0, 40)
    fault = faults.BitRot(id="f", node="b2", path=str(path), byte=30, mask=5, partition="orders-0")
    begun = strike(world, fault, SECOND_US)
    (told,) = [each for each in events(world, Kind.CORRUPT) if each.args["fault"] == "f"]
    assert told.cause == (begun.n,)
    assert {key: told.args[key] for key in ("position", "size", "bits")} == {
        "position": 30,
        "size": 1,
        "bits": 2,
    }
    rotten = before[:30] + bytes([before[30] ^ 5]) + before[31:]
    assert file.read_at(0, 40) == rotten
    world.run_for(2 * SECOND_US)
    assert events(world, Kind.HEAL)
    assert file.read_at(0, 40) == rotten
    world.crash("b2", "power", image="lost")
    assert disk.open(path).read_at(30, 1) == rotten[30:31]


# Processes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["process", "power"])
def test_a_crash_cites_its_fault_and_its_end_starts_the_process(how: str) -> None:
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    begun = strike(world, faults.Crash(id="f", node="b2", how=how), SECOND_US)
    (crash,) = events(world, Kind.CRASH)
    assert (crash.cause, crash.args["fault"], crash.args["how"]) == ((begun.n,), "f", how)
    assert len(values_of(world, "b2")) == (5 if how == "process" else 0)
    world.run_for(SECOND_US)
    (healed,) = events(world, Kind.HEAL)
    assert events(world, Kind.START, node="b2")[-1].cause == (healed.n,)


def test_a_process_that_somebody_else_started_is_not_started_again() -> None:
    world, _ = led_world()
    strike(world, faults.Crash(id="f", node="b2"), 2 * SECOND_US)
    world.run_for(SECOND_US)
    world.start("b2")
    world.run_for(2 * SECOND_US)
    assert len(events(world, Kind.START, node="b2")) == 2


def test_ends_of_a_crash_loop_cite_it() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    loop = faults.CrashLoop(id="loop", node="b2", calls=(3, 20), how="power", image="kept")
    begun = strike(world, loop)
    world.run_for(5 * SECOND_US)
    ends = events(world, Kind.CRASH)
    assert [each.args["fault"] for each in ends] == ["loop"] * 3
    assert [each.args["image"] for each in ends] == ["kept"] * 3
    assert all(begun.n in each.cause for each in ends)
    starts = events(world, Kind.START, node="b2")[1:]
    assert [each.args["fault"] for each in starts] == ["loop"] * 3


def test_a_second_crash_loop_takes_the_place_of_the_first() -> None:
    world, _ = led_world()
    strike(world, faults.CrashLoop(id="one", node="b2", calls=(5,) * 50), 4 * SECOND_US)
    world.run_for(2 * SECOND_US)
    strike(world, faults.CrashLoop(id="two", node="b2", calls=(7,) * 50), 6 * SECOND_US)
    count = world.trace.count
    # The end of the first changes nothing.
    world.run_for(5 * SECOND_US)
    ends = [each for each in events(world, Kind.CRASH) if each.n > count]
    assert {each.args["fault"] for each in ends} == {"two"}
    assert len(ends) == 5
    world.run_for(15 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_the_end_of_a_crash_loop_leaves_other_fuses_alone() -> None:
    world, cluster = led_world()
    point = Failpoint(id="point", point="disk:write_at:.log", action="power", image="kept")
    strike(
        world, faults.CrashLoop(id="loop", node="b2", calls=(5, 10**6), restart_after_us=100_000)
    )
    world.add_failpoint("b2", point)
    world.run_for(SECOND_US // 2)
    end(world, "loop")
    cluster.produce("orders", 5)
    world.run_for(20 * SECOND_US)
    last = events(world, Kind.CRASH)[-1]
    assert (last.args["fault"], last.args["image"], last.args["how"]) == ("point", "kept", "power")


def test_two_failpoints_at_disk_calls_keep_their_own_images() -> None:
    world, cluster = led_world()
    for name, image in (("b1", "kept"), ("b2", "lost")):
        point = "disk:write_at:.log"
        hit = 3 if name == "b1" else 1
        failpoint = Failpoint(id=name, point=point, hit=hit, action="power", image=image)
        world.add_failpoint("b1", failpoint)
    cluster.produce("orders", 5)
    world.run_for(SECOND_US)
    (crash,) = events(world, Kind.CRASH)
    assert (crash.args["fault"], crash.args["image"]) == ("b2", "lost")


def test_two_pauses_overlap_and_the_last_to_end_lets_the_host_go_on() -> None:
    world, _ = led_world()
    first = strike(world, faults.HostPause(id="one", node="b2"), 2 * SECOND_US)
    world.run_for(SECOND_US)
    strike(world, faults.HostPause(id="two", node="b2"), 3 * SECOND_US)
    world.run_for(2 * SECOND_US)
    assert world.view().status("b2") == "paused"
    world.run_for(SECOND_US)
    assert world.view().status("b2") == "running"
    pauses = events(world, Kind.PAUSE)
    assert [each.args["fault"] for each in pauses] == ["one", "two"]
    assert pauses[0].cause == (first.n,)
    (resume,) = events(world, Kind.RESUME)
    assert resume.cause == (events(world, Kind.HEAL)[-1].n,)
    assert resume.t_us == first.t_us + 4 * SECOND_US


def test_a_pause_inside_a_failpoints_pause_and_the_other_way_round() -> None:
    for fault_us, failpoint_us in ((4, 2), (2, 4)):
        world, cluster = led_world()
        failpoint = Failpoint(
            id="p", point="fetch-received", action="pause", duration_us=failpoint_us * SECOND_US
        )
        world.add_failpoint("b2", failpoint)
        cluster.produce("orders", 1)
        world.run_until_true(lambda world=world: world.view().status("b2") == "paused", SECOND_US)
        begun_us = world.now_us
        strike(world, faults.HostPause(id="f", node="b2"), fault_us * SECOND_US)
        world.run_until(begun_us + 3 * SECOND_US)
        assert world.view().status("b2") == "paused"
        world.run_until(begun_us + 5 * SECOND_US)
        assert world.view().status("b2") == "running"


def test_a_step_that_resumes_ends_every_pause() -> None:
    world, _ = led_world()
    strike(world, faults.HostPause(id="one", node="b2"), 2 * SECOND_US)
    world.resume("b2")
    assert world.view().status("b2") == "running"
    world.pause("b2")
    world.run_for(3 * SECOND_US)
    # The end of the fault is not the end of the step's own pause.
    assert world.view().status("b2") == "paused"


def test_slow_cpus_multiply_and_each_ends_for_itself() -> None:
    world, _ = led_world(cpu_us=(10, 10))
    host = world.host("b2")
    costs = [host.cpu_us()]
    for name, factor in (("one", 3), ("two", 5)):
        strike(world, faults.SlowCpu(id=name, node="b2", factor_ppm=factor * MILLION))
        costs.append(host.cpu_us())
    end(world, "one")
    costs.append(host.cpu_us())
    end(world, "two")
    costs.append(host.cpu_us())
    assert costs == [10, 30, 150, 50, 10]


def test_background_work_that_is_held_begins_at_the_end_and_cites_it() -> None:
    topic = {"segment.bytes": "1024", "min.insync.replicas": "2"}
    world, cluster = led_world(topic=topic)
    count = world.trace.count
    kinds = frozenset({"persist"})
    strike(world, faults.BackgroundHold(id="one", node="b2", kinds=kinds), 4 * SECOND_US)
    strike(world, faults.BackgroundHold(id="two", node="b2"), 2 * SECOND_US)
    cluster.produce("orders", 40).wait()
    world.run_for(SECOND_US)

    def done() -> list[str]:
        found = [each for each in events(world, Kind.BACKGROUND, node="b2") if each.n > count]
        return [each.args["work"] for each in found]

    assert done() == []
    assert events(world, Kind.BACKGROUND, node="b1")
    world.run_for(2 * SECOND_US)
    assert set(done()) == {"flush"}
    world.run_for(3 * SECOND_US)
    assert "persist" in done()
    for fault_id, work in (("one", "persist"), ("two", "flush")):
        healed = next(each for each in events(world, Kind.HEAL) if each.args["id"] == fault_id)
        begun = [
            each for each in events(world, Kind.BACKGROUND, node="b2") if healed.n in each.cause
        ]
        assert {each.args["work"] for each in begun} == {work}
        assert all(len(each.cause) == 2 for each in begun)


# Disks -------------------------------------------------------------------------------------------


def test_a_disk_error_names_its_fault() -> None:
    world, cluster = led_world()
    begun = strike(world, faults.DiskCallFault(id="f", node="b1", fault=ERROR))
    produced = cluster.produce("orders", 5)
    world.run_for(20 * SECOND_US)
    (effect,) = of_fault(world, "f")
    assert (effect.kind, effect.node, effect.args["operation"]) == (
        Kind.DISK_ERROR,
        "b1",
        "write_at",
    )
    assert begun.n in effect.cause
    assert world.view().leader("orders") == "b2"
    assert {outcome.kind.value for outcome in produced.wait()} == {"acked"}


@pytest.mark.parametrize("node", ["b1", "b2"])
def test_a_full_disk_halts_a_broker_which_runs_again_when_there_is_room(node: str) -> None:
    world, cluster = led_world()
    begun = strike(world, faults.DiskFill(id="full", node=node, free_bytes=50), 20 * SECOND_US)
    produced = cluster.produce("orders", 5)
    world.run_for(20 * SECOND_US)
    (effect,) = of_fault(world, "full")
    assert effect.kind is Kind.DISK_ERROR
    assert effect.cause[0] == begun.n
    halt = next(each for each in events(world, Kind.ERROR) if each.args["note"] == "halt")
    assert (halt.node, halt.args["error"]) == (node, "DISK_FULL")
    assert world.view().status(node) == "down"
    assert {outcome.kind.value for outcome in produced.wait()} == {"acked"}
    world.start(node)
    world.run_for(20 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    assert values_of(world, node) == [b"p1-%d" % number for number in range(5)]


def test_of_two_full_disks_the_one_with_less_room_is_blamed() -> None:
    world, cluster = led_world()
    strike(world, faults.DiskFill(id="more", node="b2", free_bytes=10_000))
    strike(world, faults.DiskFill(id="less", node="b2", free_bytes=50))
    disk = world.host("b2").require_disk()
    assert disk.full_by() == "less"
    end(world, "less")
    assert disk.full_by() == "more"
    end(world, "more")
    assert disk.full_by() is None
    assert disk.files.capacity_bytes is None
    cluster.produce("orders", 5).wait()


def test_slow_disks_add_up_and_each_ends_for_itself() -> None:
    world, cluster = led_world(topic={"flush.messages": "1", "min.insync.replicas": "3"})
    times = []

    def take_time() -> None:
        world.run_for(5 * SECOND_US)
        begun_us = world.now_us
        cluster.produce("orders", 1).wait()
        times.append(world.now_us - begun_us)

    take_time()
    for name, addend_us in (("one", 50_000), ("two", 200_000)):
        strike(world, faults.DiskSlow(id=name, node="b2", addend_us=addend_us))
        take_time()
    for name in ("one", "two"):
        end(world, name)
        take_time()
    assert times[0] < 40_000
    assert 50_000 <= times[1] < times[3]
    assert times[2] >= 250_000
    assert 200_000 <= times[3] < times[2]
    assert times[4] < 40_000


def test_a_stall_ends_early_for_what_comes_later() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "3"})
    strike(world, faults.DiskStall(id="stall", node="b2", duration_us=60 * SECOND_US), SECOND_US)
    world.run_for(2 * SECOND_US)
    begun_us = world.now_us
    cluster.produce("orders", 1).wait()
    assert world.now_us - begun_us < SECOND_US


def test_a_stall_reaches_the_lanes_that_write_and_not_the_others() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "1"})
    begun = strike(world, faults.DiskStall(id="stall", node="b2", duration_us=10 * SECOND_US))
    produced = cluster.produce("orders", 1)
    world.run_for(9 * SECOND_US)
    assert not produced.is_done()
    beats = [
        each
        for each in events(world, Kind.SEND, node="b2")
        if each.args["type"] == "BrokerHeartbeatRequest" and each.n > begun.n
    ]
    assert len(beats) >= 3
    fetches = [
        each
        for each in events(world, Kind.SEND, node="b2")
        if each.args["type"] == "FetchRequest" and each.t_us > begun.t_us + 100_000
    ]
    assert fetches == []
    produced.wait()
    assert world.now_us >= begun.t_us + 10 * SECOND_US


def test_begin_without_a_plan_and_the_same_node_twice() -> None:
    """Two faults of different kinds on one node neither hide nor end each other."""
    world, cluster = led_world()
    plan: list[faults.Fault] = [
        faults.HostPause(id="pause", node="b2"),
        faults.ClockStep(id="step", node="b2", by_us=-SECOND_US),
        faults.DiskSlow(id="slow", node="b2", addend_us=1_000),
    ]
    for fault in plan:
        world.faults[fault.id] = fault
        begin(world, fault.id)
    assert list(world.active_faults) == ["pause", "step", "slow"]
    cluster.heal("step")
    cluster.heal()
    assert world.active_faults == {}
    assert world.view().status("b2") == "running"
    cluster.produce("orders", 3).wait()


def test_a_disk_error_where_no_handler_runs_is_told_too() -> None:
    """A fetch response reads its bytes as it leaves."""
    unread = 0
    for after in range(6):
        world, cluster = led_world()
        error = DiskFault(id="f", kind="error", operation="read_at", after=after)
        begun = strike(world, faults.DiskCallFault(id="f", node="b1", fault=error))
        cluster.produce("orders", 3).wait()
        for drop in events(world, Kind.DROP):
            if drop.args["why"] == "unread":
                (effect,) = of_fault(world, "f")
                assert (effect.kind, effect.cause) == (Kind.DISK_ERROR, (begun.n,))
                assert (drop.t_us, drop.n) == (effect.t_us, effect.n + 1)
                unread += 1
    assert unread
