"""The world itself: how time goes on, copies, names of states, real files, looking at it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sim.cluster_config import DiskConfig
from sim.failpoints import IMAGES
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World, WorldError
from tests.sim.worlds import SECOND_US, events, led_world, new_world, note, values_of

ROOT = Path(__file__).resolve().parents[2]

# Time --------------------------------------------------------------------------------------------


def noted(world: World) -> list[str]:
    return [each.args["text"] for each in events(world, Kind.NOTE) if "text" in each.args]


def enter(world: World, at_us: int, text: str) -> None:
    world.timeline.at(at_us, EventClass.CHECK, "test", note, world, text)


def test_nothing_happens_before_the_first_step() -> None:
    world = new_world()
    assert (world.now_us, world.trace.count, world.next_us()) == (0, 0, 0)
    assert world.view().status("b1") == "down"
    assert world.view().running() == []
    assert world.step()
    assert next(each.kind for each in world.trace.events()) is Kind.START


def test_a_step_does_one_entry_and_tells_the_watchers() -> None:
    world = new_world()
    told: list[tuple[int, int]] = []
    world.watchers.append(lambda world: told.append((world.now_us, len(world.timeline))))
    due_us = []
    for _ in range(30):
        next_us = world.next_us()
        assert next_us is not None
        due_us.append(next_us)
        assert world.step()
        assert world.now_us == due_us[-1]
    assert [at_us for at_us, _ in told] == due_us
    assert due_us == sorted(due_us)


def test_a_step_without_entries_does_nothing() -> None:
    world = new_world()
    while len(world.timeline):
        world.timeline.pop()
    told: list[World] = []
    world.watchers.append(told.append)
    assert not world.step()
    assert (told, world.next_us()) == ([], None)
    assert not world.run_until_true(lambda: False, 500)
    assert world.now_us == 500
    world.run_for(500)
    assert world.now_us == 1_000


def test_run_until_does_what_is_due_at_that_time_and_goes_there() -> None:
    world, _ = led_world()
    now_us = world.now_us
    for after_us in (0, 9, 10, 11):
        enter(world, now_us + after_us, str(after_us))
    world.run_until(now_us + 10)
    assert (world.now_us, noted(world)) == (now_us + 10, ["0", "9", "10"])
    world.run_for(1)
    assert (world.now_us, noted(world)) == (now_us + 11, ["0", "9", "10", "11"])


def test_a_time_that_has_passed_changes_nothing() -> None:
    world, _ = led_world()
    world.run_for(0)
    count, now_us = world.trace.count, world.now_us
    world.run_until(now_us - 1)
    world.run_for(-500)
    assert world.run_until_true(lambda: True, -5)
    assert not world.run_until_true(lambda: False, -5)
    assert (world.trace.count, world.now_us) == (count, now_us)


def test_run_until_true_stops_behind_the_entry_that_makes_it_true() -> None:
    world, _ = led_world()
    now_us = world.now_us
    enter(world, now_us + 100, "one")
    enter(world, now_us + 100, "two")
    assert world.run_until_true(lambda: noted(world) == ["one"], 100)
    assert (world.now_us, noted(world)) == (now_us + 100, ["one"])
    # It holds already.
    assert world.run_until_true(lambda: noted(world) == ["one"], 100)
    # At the very end of the time.
    enter(world, now_us + 200, "three")
    assert world.run_until_true(lambda: "three" in noted(world), 100)
    # And never.
    assert not world.run_until_true(lambda: False, 333)
    assert world.now_us == now_us + 533


def test_an_error_in_an_entry_reaches_whoever_drives_the_world() -> None:
    def fail(world: World) -> None:
        raise ZeroDivisionError

    world, _ = led_world()
    world.watchers.append(fail)
    with pytest.raises(ZeroDivisionError):
        world.run_for(SECOND_US)


def test_an_error_of_a_machine_says_where_it_was() -> None:
    world, _ = led_world(seed=11)
    process = world.host("b1").process
    assert process is not None

    def fail(*values: object) -> None:
        raise KeyError("gone")

    process.machine.on_timer = fail  # type: ignore[method-assign]
    with pytest.raises(KeyError) as caught:
        world.run_for(10 * SECOND_US)
    number = world.trace.count
    expected = f"in on_timer of b1 at event {number}, {world.now_us} us, seed 11"
    assert caught.value.__notes__ == [expected]


@pytest.mark.parametrize("seed", [-1, 1 << 64])
def test_seeds_have_64_bits(seed: int) -> None:
    with pytest.raises(ValueError, match=r"seed is .*, allowed is 0\.\.2\^64-1"):
        World(seed=seed)


def test_impossible_steps_of_disks_and_clients() -> None:
    world, _ = led_world()
    for call, text in (
        (lambda: world.copy_disk("admin", "a"), "admin has no disk"),
        (lambda: world.copy_disk("b1", "wiped"), "copy is 'wiped', allowed is a name other than"),
        (lambda: world.copy_disk("b9", "a"), "node is 'b9', there are c1, b1, b2, b3, admin"),
        (lambda: world.add_producer(""), "client is '', allowed is a name other than c1, b1, "),
        (lambda: world.add_producer("b1"), "client is 'b1', allowed is a name other than c1, "),
        (lambda: world.add_consumer("admin"), "client is 'admin', allowed is a name other"),
    ):
        with pytest.raises(WorldError, match=text):
            call()
    world.add_consumer("k1")
    world.crash("k1")
    with pytest.raises(WorldError, match="k1 has no disk, so it cannot be 'wiped'"):
        world.start("k1", disk="wiped")
    with pytest.raises(WorldError, match="k1 is down: no process runs there"):
        world.shutdown("k1")
    with pytest.raises(WorldError, match="k1 is down: no process runs there"):
        world.pause("k1")


# Looking at it -----------------------------------------------------------------------------------


def test_views_know_what_is_not_there() -> None:
    world, _ = led_world()
    view = world.view()
    assert view.partition("none") is None
    assert view.leader("none") is None
    assert view.isr("none") == ()
    assert not view.is_led("none")
    assert view.replica("b1", "none") is None
    assert view.replica("c1", "orders") is None
    assert (view.log_end("b1", "none"), view.high_watermark("b1", "none")) == (-1, -1)
    assert view.records("b1", "none") == []
    with pytest.raises(ValueError, match="admin has no disk"):
        view.records("admin", "orders")
    assert view.running() == ["b1", "b2", "b3"]
    for name in ("c1", "b1", "b2", "b3"):
        world.crash(name)
    assert world.view().running() == []
    assert world.view().fields("b1") == {}
    assert world.view().image().end_offset == 0


def test_while_the_controller_is_down_the_newest_broker_is_asked() -> None:
    world, _ = led_world()
    world.crash("c1")
    assert world.view().leader("orders") == "b1"


# Real files --------------------------------------------------------------------------------------


def rough_life(world: World) -> None:
    """Kills, power cuts with every image, wiped and older disks."""
    cluster = Cluster(world)
    topic = {"min.insync.replicas": "1", "segment.bytes": "2048", "flush.messages": "4"}
    cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]], config=topic).wait()
    world.copy_disk("b3", "young")
    for number, image in enumerate(IMAGES):
        cluster.produce("orders", 6, acks=1)
        world.run_for(4_000 + 1_000 * number)
        name = ("b2", "b3", "b1", "c1")[number % 4]
        world.crash(name, "power", image=image)
        world.run_for(100_000)
        world.start(name)
        world.run_for(2 * SECOND_US)
    world.crash("b2")
    world.start("b2", disk="wiped")
    world.run_for(2 * SECOND_US)
    world.crash("b3")
    world.start("b3", disk="young")
    world.shutdown("b1")
    world.run_for(10 * SECOND_US)
    if not world.host("b1").is_running:
        world.start("b1")
    world.run_for(20 * SECOND_US)


@pytest.mark.parametrize("names_mode", ["ext4", "posix"])
def test_real_files_give_the_same_digest_and_key(tmp_path: Path, names_mode: Any) -> None:
    worlds = [
        new_world(9, root=root, disk=DiskConfig(names_mode=names_mode)) for root in (None, tmp_path)
    ]
    for world in worlds:
        rough_life(world)
    memory, real = worlds
    assert memory.trace.digest() == real.trace.digest()
    assert memory.state_key() == real.state_key()
    for name in ("b1", "b2", "b3"):
        assert values_of(memory, name) == values_of(real, name)
    assert values_of(real, "b1")
    for kind in (Kind.LOST, Kind.CRASH, Kind.RECOVER):
        assert events(real, kind)
    with pytest.raises(WorldError, match="the files of this world are real"):
        real.copy()


def test_directories_are_those_of_brokers(tmp_path: Path) -> None:
    world = new_world(9, root=tmp_path)
    cluster = Cluster(world)
    cluster.create_topic("orders").wait()
    cluster.produce("orders", 10).wait()
    world.run_for(SECOND_US)
    for name in ("b1", "b2", "b3"):
        done = subprocess.run(
            [sys.executable, "-m", "storage.dump", str(tmp_path / name)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), done.stdout
        assert "orders-0" in done.stdout
    assert {path.name for path in tmp_path.iterdir() if path.suffix != ".inodes"} == {
        "c1",
        "b1",
        "b2",
        "b3",
    }


def test_a_root_is_an_empty_folder(tmp_path: Path) -> None:
    file, full = tmp_path / "file", tmp_path / "full"
    file.write_text("x")
    full.mkdir()
    (full / "b1").mkdir()
    for root, text in (
        (tmp_path / "none", "root is .*none, allowed is a folder that is there"),
        (file, "root is .*file, allowed is a folder that is there"),
        (full, "root is .*full, which has 'b1'; allowed is an empty folder"),
    ):
        with pytest.raises(WorldError, match=text):
            World(root=root)
    assert [path.name for path in full.iterdir()] == ["b1"]


def test_every_level_of_a_trace_gives_the_same_digest() -> None:
    digests = set()
    for level in ("digest", "events", "full"):
        world = World(seed=4, trace=Trace(level))
        Cluster(world).create_topic("orders").wait()
        Cluster(world).produce("orders", 5).wait()
        digests.add(world.trace.digest())
    assert len(digests) == 1


@pytest.mark.parametrize("wrong", [1.5, 1.0, "1", None])
def test_time_goes_on_by_whole_microseconds(wrong: Any) -> None:
    world = World(seed=4)
    world.run_for(5)
    with pytest.raises((WorldError, TypeError)):
        world.run_for(wrong)
    with pytest.raises(WorldError, match="allowed is an integer"):
        world.run_until(wrong)
    with pytest.raises(WorldError, match="allowed is an integer"):
        world.run_until_true(lambda: True, wrong)
    assert world.now_us == 5
