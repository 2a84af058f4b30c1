"""What a world can be made of: values that are refused, and machines of users."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.broker import Broker
from cluster.config import BrokerConfig, ControllerConfig
from cluster.controller import Controller
from cluster.effects import Effects, TimerKey
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.message import Message
from cluster.messages_data import MetadataRequest, MetadataResponse
from cluster.names import Now
from sim.cluster_config import ClockConfig, ClusterConfig, DiskConfig
from sim.disk_speed import DiskSpeed
from sim.latency import NetworkConfig
from sim.trace.kinds import Kind
from sim.world import World
from storage.disk import Disk
from storage.errors import InvalidConfig
from tests.sim.worlds import SECOND_US, events, led_world, new_world, values_of

BAD: list[tuple[type[Any], dict[str, Any], str]] = [
    (ClusterConfig, {"brokers": 0}, r"brokers is 0, allowed is 1\.\.100"),
    (ClusterConfig, {"brokers": 101}, r"brokers is 101, allowed is 1\.\.100"),
    (ClusterConfig, {"cpu_us": (5, 4)}, r"cpu_us is \(5, 4\), allowed is a range from 0 to an"),
    (ClusterConfig, {"cpu_us": (-1, 4)}, r"cpu_us is \(-1, 4\), allowed is a range from 0"),
    (
        ClusterConfig,
        {"background_us": (0, 3_600_000_001)},
        r"background_us is \(0, 3600000001\), allowed is a range from 0 to an hour",
    ),
    (
        ClusterConfig,
        {"broker": BrokerConfig(broker_session_timeout_ms=20_000)},
        "broker_session_timeout_ms is 20000 for brokers, 9000 for the controller; it must be the",
    ),
    (
        ClusterConfig,
        {"controller": ControllerConfig(broker_heartbeat_interval_ms=1_000)},
        "broker_heartbeat_interval_ms is 2000 for brokers, 1000 for the controller",
    ),
    (
        ClusterConfig,
        {"broker": BrokerConfig(eligible_leader_replicas=True)},
        "eligible_leader_replicas is True for brokers, False for the controller",
    ),
    (
        ClusterConfig,
        {"clocks": {"b4": ClockConfig()}},
        "clocks has 'b4', allowed are c1, b1, b2, b3",
    ),
    (ClockConfig, {"jitter_ppm": -1}, r"jitter_ppm is -1, allowed is 0\.\.100000"),
    (ClockConfig, {"jitter_ppm": 100_001}, r"jitter_ppm is 100001, allowed is 0\.\.100000"),
    (ClockConfig, {"wall_ppm": -1_000_000}, "wall_ppm is -1000000, allowed is -999999"),
    (ClockConfig, {"mono_ppm": 1_000_001}, "mono_ppm is 1000001, allowed is -999999"),
    (DiskConfig, {"names_mode": "ntfs"}, "names_mode is 'ntfs', allowed are posix, ext4"),
    (DiskConfig, {"capacity_bytes": -1}, "capacity_bytes is -1, allowed is 0 or more"),
    (DiskConfig, {"writeback_us": (5, 1)}, r"writeback_us is \(5, 1\), allowed is a range from 0"),
    (DiskSpeed, {"fsync_max_us": 1}, "fsync_max_us is 1, allowed is 500 or more"),
    (DiskSpeed, {"bytes_per_us": 0}, "bytes_per_us is 0, allowed is 1 or more"),
    (NetworkConfig, {"mode": "pigeon"}, "mode is 'pigeon', allowed: stream, datagram"),
    (NetworkConfig, {"clients": "odd"}, "clients is 'odd', allowed: same, immune, zero-latency"),
    (NetworkConfig, {"base_min_us": 601}, r"base_min_us is 601, allowed is 0\.\.600"),
    (NetworkConfig, {"tail_ppm": -1}, r"tail_ppm is -1, allowed is 0\.\.1000000"),
]


@pytest.mark.parametrize(("kind", "values", "text"), BAD)
def test_values_that_are_refused_say_what_is_allowed(
    kind: type[Any], values: dict[str, Any], text: str
) -> None:
    with pytest.raises((InvalidConfig, ValueError), match=text):
        kind(**values)


@pytest.mark.parametrize("brokers", [1, 100])
def test_the_smallest_and_the_largest_cluster(brokers: int) -> None:
    world = new_world(brokers=brokers, level="digest")
    world.run_for(SECOND_US)
    assert world.config.names[-1] == f"b{brokers}"
    assert len(world.view().running()) == brokers


def test_clocks_of_a_node_are_as_configured_and_others_keep_time() -> None:
    clock = ClockConfig(offset_us=-5, wall_ppm=1_000, mono_ppm=-1_000)
    world = new_world(clocks={"c1": clock, "b2": clock})
    world.run_for(SECOND_US)
    shown = {name: host.clock.now(world.now_us) for name, host in world.hosts.items()}
    assert shown["c1"] == shown["b2"]
    assert shown["b1"] == shown["b3"] == shown["admin"]
    assert shown["b1"].wall_us - shown["b2"].wall_us == 5 - 1_000
    assert shown["b1"].mono_us - shown["b2"].mono_us == 1_000


# Machines of users -------------------------------------------------------------------------------


class Counting(Broker):
    """A broker that counts what it is asked."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.asked = 0

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        self.asked += 1
        fx.note("asked", count=self.asked)
        super().on_message(now, src, message, fx)

    def fields(self) -> Mapping[str, Any]:
        return {**super().fields(), "asked": self.asked}


def test_a_users_broker_is_a_broker_and_its_notes_are_told() -> None:
    world, cluster = led_world(make_broker=Counting)
    cluster.produce("orders", 5).wait()
    world.run_for(SECOND_US)
    asked = world.view().fields("b1")["asked"]
    notes = [each for each in events(world, Kind.NOTE, node="b1") if each.args["note"] == "asked"]
    assert [each.args["count"] for each in notes] == list(range(1, asked + 1))
    assert len(values_of(world, "b3")) == 5
    twin = world.copy()
    assert twin.state_key() == world.state_key()
    process = twin.host("b1").process
    assert process is not None
    process.machine.asked += 1  # type: ignore[attr-defined]
    assert twin.state_key() != world.state_key()


class Echo(Machine):
    """No broker at all: it answers who asks, ticks, and keeps a file."""

    def __init__(
        self,
        name: str,
        config: BrokerConfig,
        disk: Disk,
        path: Path,
        *,
        guards: Guards,
        incarnation: int,
        controller: str,
    ) -> None:
        self.name = name
        self.incarnation = incarnation
        self.ticks = 0
        self._disk = disk
        self._file = path / "ticks"

    def on_start(self, now: Now, fx: Effects) -> None:
        fx.note("hello", incarnation=self.incarnation)
        fx.arm(("tick",), now.mono_us + SECOND_US)
        if self.name == "b1":
            fx.send("b2", MetadataRequest(7, ()))

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        self.ticks += 1
        fx.arm(("tick",), now.mono_us + SECOND_US)
        file = self._disk.open(self._file, create=True)
        file.append(b"x")
        file.fsync()
        file.close()

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        if isinstance(message, MetadataRequest):
            fx.reply(src, MetadataResponse(message.correlation_id, 0, "c1", (), ()))
        else:
            fx.note("answered", by=src)

    def on_stop(self, now: Now, fx: Effects) -> None:
        fx.stopped()


def test_a_machine_that_is_no_broker_lives_in_the_world(tmp_path: Path) -> None:
    world = new_world(make_broker=Echo, root=tmp_path)
    world.run_for(3 * SECOND_US)
    answered = [each for each in events(world, Kind.NOTE) if each.args["note"] == "answered"]
    assert [(each.node, each.args["by"]) for each in answered] == [("b1", "b2")]
    world.crash("b1", "power")
    world.start("b1")
    world.shutdown("b2")
    world.run_for(SECOND_US)
    hello = [each for each in events(world, Kind.NOTE, node="b1") if "incarnation" in each.args]
    assert [each.args["incarnation"] for each in hello] == [0, 1]
    assert world.view().status("b2") == "down"
    assert (tmp_path / "b1" / "ticks").read_bytes() == b"xxx" + b"x"
    # Views know brokers only.
    view = world.view()
    assert view.running() == []
    assert (view.replica("b1", "orders"), view.records("b1", "orders")) == (None, [])
    assert not view.is_led("orders")


def test_a_machine_that_is_no_broker_is_copied_and_named() -> None:
    world = new_world(make_broker=Echo)
    world.run_for(3 * SECOND_US)
    twin = world.copy()
    assert twin.state_key() == world.state_key()
    twin.run_for(2 * SECOND_US)
    assert twin.state_key() != world.state_key()
    world.run_for(2 * SECOND_US)
    assert twin.state_key() == world.state_key()
    assert twin.trace.digest() == world.trace.digest()


def test_a_users_controller() -> None:
    class Mine(Controller):
        pass

    world, _ = led_world(make_controller=Mine)
    process = world.host("c1").process
    assert process is not None
    assert type(process.machine) is Mine
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_factories_are_told_what_their_node_is() -> None:
    told: list[tuple[str, int, str]] = []

    def make(name: str, *args: Any, **kwargs: Any) -> Machine:
        told.append((name, kwargs["incarnation"], kwargs["controller"]))
        return Broker(name, *args, **kwargs)

    world = World(ClusterConfig(brokers=2, make_broker=make))
    world.run_for(SECOND_US)
    world.crash("b2")
    world.start("b2")
    assert told == [("b1", 0, "c1"), ("b2", 0, "c1"), ("b2", 1, "c1")]


def test_a_clock_that_hosts_do_not_have_is_refused() -> None:
    with pytest.raises(InvalidConfig, match="timer_clock is 'sun', allowed are mono, wall"):
        ClusterConfig(timer_clock="sun")  # type: ignore[arg-type]
