"""States of busy worlds: copies that go on alike and apart, and keys that name them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim import faults
from sim.cluster_config import DiskConfig
from sim.failpoints import Failpoint
from sim.network_rules import Clog, Cut, Loss
from sim.plans import Planned, schedule
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World
from tests.sim.worlds import SECOND_US, led_world, new_world, note

ROOT = Path(__file__).resolve().parents[2]

# Busy worlds -------------------------------------------------------------------------------------


def busy_world(seed: int = 7, **config: Any) -> World:
    """Everything under way that there can be: faults of each kind, clients, held work."""
    disk = DiskConfig(writeback_us=(2 * SECOND_US, 4 * SECOND_US))
    topic = {"min.insync.replicas": "2", "segment.bytes": "1024", "flush.messages": "3"}
    world, cluster = led_world(seed, level="events", topic=topic, disk=disk, **config)
    now_us = world.now_us
    plan: list[Planned] = [
        Planned(Clog(id="clog", edges=(("b3", "b1"),)), now_us, now_us + SECOND_US),
        Planned(
            Cut(id="cut", edges=(("b1", "b2"),), in_flight="hold", backoff_cap_us=500_000),
            now_us + 1_300_000,
            now_us + 2 * SECOND_US,
        ),
        Planned(Loss(id="loss", edges=(("*", "*"),), ppm=50_000), now_us),
        Planned(faults.HostPause(id="pause", node="b2"), now_us + 200_000, now_us + 900_000),
        Planned(
            faults.CrashLoop(id="loop", node="b3", calls=(4, 9), how="power"),
            now_us + 2_500_000,
        ),
        Planned(faults.BackgroundHold(id="hold", node="b1"), now_us, now_us + 3 * SECOND_US),
        Planned(faults.ClockDrift(id="drift", node="c1", mono_ppm=50_000), now_us + 100_000, None),
        Planned(faults.ClockFreeze(id="ice", node="b2"), now_us + 400_000, now_us + 5 * SECOND_US),
        Planned(faults.DiskSlow(id="slow", node="b1", addend_us=2_000), now_us),
    ]
    schedule(world, plan)
    for point, action in (("produce-appended", "yield"), ("hw-advanced", "pause")):
        failpoint = Failpoint(id=point, point=point, hit=4, action=action, duration_us=150_000)
        world.add_failpoint("b1", failpoint)
    point = "disk:write_at:.log"
    world.add_failpoint("b2", Failpoint(id="fuse", point=point, hit=30, action="process"))
    cluster.produce("orders", 30, batch=2)
    cluster.produce("orders", 10, acks=1, client="p2")
    cluster.consume("orders", 25)
    return world


STEPS = 600


def test_busy_worlds_are_busy() -> None:
    """Else the tests below show little."""
    world = busy_world()
    seen: set[str] = set()
    for _ in range(STEPS):
        world.step()
        b1, b2 = world.host("b1"), world.host("b2")
        found = {
            "held frames": any(link.held for link in world.network.links()),
            "frames": any(link.under_way for link in world.network.links()),
            "paused": b2.is_paused and b2.process is not None and bool(b2.process.kept),
            "held work": bool(b1.kept_work),
            "waiting tasks": b1.process is not None and any(b1.process.waiting.values()),
            "frozen timers": b2.process is not None
            and any(armed.token is None for armed in b2.process.timers.values()),
            "operations": any(notes.awaited for notes in world.producers.values()),
            "loop": world.host("b3").loop is not None,
        }
        seen |= {name for name, holds in found.items() if holds}
    assert seen == set(found)
    kinds = {each.kind for each in world.trace.events()}
    assert kinds >= {Kind.FAILPOINT, Kind.RESUME, Kind.CRASH, Kind.LOST, Kind.DELAY, Kind.HOLD}


# Copies ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_copy_and_original_go_on_alike_and_apart() -> None:
    world = busy_world()
    expected = []
    twins = []
    for number in range(STEPS):
        if number % 40 == 0:
            twins.append((number, world.copy()))
            assert twins[-1][1].state_key() == world.state_key()
            assert twins[-1][1].trace.digest() == world.trace.digest()
        world.step()
    expected = world.trace.digest(), world.state_key(), world.now_us
    for number, twin in twins:
        # The copy of a copy goes first, with calls of its own; nobody else hears of it.
        wild = twin.copy()
        before = twin.state_key(), twin.trace.digest()
        for name in ("b1", "c1"):
            if wild.host(name).is_running:
                wild.crash(name, "power", image="drawn")
        wild.run_for(200_000)
        Cluster(wild).heal()
        Cluster(wild).produce("orders", 5)
        wild.run_for(200_000)
        assert (twin.state_key(), twin.trace.digest()) == before
        for _ in range(STEPS - number):
            twin.step()
        assert (twin.trace.digest(), twin.state_key(), twin.now_us) == expected, number
    assert (world.trace.digest(), world.state_key(), world.now_us) == expected


def test_a_copy_takes_watchers_with_their_objects_along() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def watch(self, world: World) -> None:
            self.count += 1

    world, counter = new_world(), Counter()
    world.watchers.append(counter.watch)
    world.run_for(SECOND_US)
    count = counter.count
    twin = world.copy()
    twin.run_for(5 * SECOND_US)
    assert counter.count == count > 0
    twin_counter = twin.watchers[0].__self__  # type: ignore[attr-defined]
    assert twin_counter.count > count


def test_verbs_go_on_in_a_copy_with_the_same_clients_and_numbers() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 3).wait()
    cluster.consume("orders", 3).wait()
    twin = Cluster(world.copy())
    for one in (cluster, twin):
        one.produce("orders", 2).wait()
        read = one.consume("orders", 2).wait()
        assert [record.value for record in read] == [b"p1-3", b"p1-4"]
    assert twin.world.trace.digest() == world.trace.digest()
    assert list(twin.world.producers) == ["p1"]


def test_a_copy_writes_no_file(tmp_path: Path) -> None:
    world, _ = led_world()
    path = tmp_path / "trace"
    assert not path.exists()
    twin = world.copy()
    twin.run_for(SECOND_US)
    assert twin.trace.count > world.trace.count


# Names of states ---------------------------------------------------------------------------------


def changed_field(world: World) -> None:
    process = world.host("b1").process
    assert process is not None
    process.machine.core.broker_epoch += 1  # type: ignore[attr-defined]


def changed_nested_field(world: World) -> None:
    replica = world.view().replica("b2", "orders")
    assert replica is not None
    replica.high_watermark += 1  # type: ignore[misc]


def changed_file_byte(world: World) -> None:
    disk = world.host("b3").require_disk().files
    inode = next(
        disk.inodes[number] for path, number in disk.names.paths() if path.suffix == ".log"
    )
    disk.place_bytes(inode, 0, b"\x00\x01")


def changed_undo_record(world: World) -> None:
    disk = world.host("b3").require_disk().files
    state = next(inode.state for inode in disk.inodes.values() if inode.state.ops)
    state.ops.pop()


def changed_timer(world: World) -> None:
    process = world.host("c1").process
    assert process is not None
    next(iter(process.timers.values())).at_us += 1


def changed_entry(world: World) -> None:
    world.timeline.at(world.now_us + 5, EventClass.CHECK, "test", note, world, "x")


def changed_frame(world: World) -> None:
    link = next(link for link in world.network._links.values() if link.flying)
    link.flying[0].due_us += 1


def changed_rule(world: World) -> None:
    Cluster(world).cut("b2", "b3")


def changed_outcome(world: World) -> None:
    notes = world.producers["p1"]
    notes.awaited.popitem()


def changed_disk_fault(world: World) -> None:
    world.host("b1").require_disk().fill("x", 10**6)


CHANGES: list[Callable[[World], Any]] = [
    changed_field,
    changed_nested_field,
    changed_file_byte,
    changed_undo_record,
    changed_timer,
    changed_entry,
    changed_frame,
    changed_rule,
    changed_outcome,
    changed_disk_fault,
    lambda world: world.host("b1").clock.step(world.now_us, 1),
    lambda world: world.host("b1").clock.freeze(world.now_us),
    lambda world: world.timeline.advance(world.now_us + 1),
    lambda world: world.pause("b2"),
    lambda world: world.crash("b2"),
    lambda world: world.shutdown("b2"),
    lambda world: world.copy_disk("b2", "copy"),
    lambda world: world.add_consumer("k9"),
    lambda world: world.host("b1").cpu_us(),
    lambda world: world.host("b1").hold_work("x", frozenset()),
    lambda world: world.host("b1").cpu_factors.update(x=1_000_000),
    lambda world: world.add_failpoint("b1", Failpoint(id="x", point="hw-advanced", hit=99)),
    lambda world: world.host("b1").require_disk().files.arm_fuse(9),
    lambda world: setattr(world.producers["p1"], "generated", 99),
    lambda world: world.step(),
]


def flying_world() -> World:
    """Frames, unsynced bytes and open operations."""
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    cluster.produce("orders", 5)
    assert world.run_until_true(
        lambda: any(link.under_way for link in world.network.links()), SECOND_US
    )
    return world


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_a_state_that_differs_in_one_place_has_another_key(number: int) -> None:
    world = flying_world()
    twin = world.copy()
    assert twin.state_key() == world.state_key()
    CHANGES[number](twin)
    assert twin.state_key() != world.state_key()


def test_a_world_in_which_nothing_is_to_come_has_a_key_too() -> None:
    world = flying_world()
    while len(world.timeline):
        world.timeline.pop()
    twin = world.copy()
    assert twin.state_key() == world.state_key()
    changed_field(twin)
    assert twin.state_key() != world.state_key()


def test_other_seeds_and_configurations_have_other_keys() -> None:
    keys = [
        led_world(seed, **config)[0].state_key()
        for seed, config in ((7, {}), (8, {}), (7, {"background_us": (1_000, 20_001)}))
    ]
    assert len(set(keys)) == 3


def test_a_key_names_no_event_numbers_and_no_trace() -> None:
    plain, chatty = new_world(), new_world()
    quiet = new_world(level="digest")
    for number in range(5):
        note(chatty, str(number))
    worlds = (plain, chatty, quiet)
    for world in worlds:
        cluster = Cluster(world)
        topic = {"min.insync.replicas": "2"}
        cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]], config=topic).wait()
        edges = (("b1", "b2"),)
        plan = [
            Planned(Clog(id="clog", edges=edges), world.now_us, world.now_us + 30_000),
            Planned(faults.BackgroundHold(id="hold", node="b1"), world.now_us),
            Planned(faults.HostPause(id="pause", node="b3"), world.now_us + 40_000),
        ]
        schedule(world, plan)
        cluster.produce("orders", 10)
        cluster.consume("orders", 10)
    for _ in range(30):
        for world in worlds:
            for _ in range(9):
                world.step()
        keys = {world.state_key() for world in worlds}
        assert len(keys) == 1, world.now_us
    assert plain.trace.digest() != chatty.trace.digest()


def test_a_key_does_not_depend_on_who_watches() -> None:
    world = flying_world()
    key = world.state_key()
    world.watchers.append(lambda world: None)
    assert world.state_key() == key


def test_cancelled_entries_are_no_part_of_a_key() -> None:
    """Two ways to the same timers."""
    world = flying_world()
    twin = world.copy()
    token = twin.timeline.at(world.now_us + 50, EventClass.CHECK, "test", note, twin, "x")
    twin.timeline.cancel(token)
    twin.timeline._ordinals.pop("test")
    assert twin.state_key() == world.state_key()


# Looking at it -----------------------------------------------------------------------------------


def look(world: World) -> None:
    """Every method of a view, for every node."""
    view = world.view()
    view.running()
    view.image()
    for name in world.hosts:
        view.status(name)
        view.fields(name)
    for number in (0, 1):
        view.partition("orders", number)
        view.leader("orders", number)
        view.isr("orders", number)
        for name in ("b1", "b2", "b3"):
            view.replica(name, "orders", number)
            view.log_end(name, "orders", number)
            view.high_watermark(name, "orders", number)
            view.records(name, "orders", number)
    view.is_led("orders")
    view.is_led("none")
    world.network.links()
    world.next_us()
    world.state_key()


def test_looking_changes_nothing() -> None:
    seen, unseen = busy_world(), busy_world()
    seen.watchers.append(look)
    for world in (seen, unseen):
        for _ in range(150):
            world.step()
    assert seen.trace.digest() == unseen.trace.digest()
    assert seen.state_key() == unseen.state_key()
