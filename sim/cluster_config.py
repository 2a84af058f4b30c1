"""What a world is made of: how many brokers, how they are configured, what their hosts are like.

A user's own replica is a factory: ``ClusterConfig(make_broker=MyBroker)``; it is called as
``cluster.broker.Broker`` is, and what it returns keeps to ``cluster.machine.Machine``.

Left out: faults, and what happens in the world.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol, get_args

from attrs import field, frozen

from cluster.broker import Broker
from cluster.config import BrokerConfig, ControllerConfig, TopicConfig
from cluster.controller import Controller
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.names import CONTROLLER, Clock
from sim.clocks import HostClock
from sim.disk_names import NamesMode
from sim.disk_speed import DiskSpeed
from sim.latency import NetworkConfig
from storage.disk import Disk
from storage.errors import InvalidConfig

__all__ = [
    "BrokerFactory",
    "ClockConfig",
    "ClusterConfig",
    "ControllerFactory",
    "DiskConfig",
]

_BROKERS_MAX = 100
_PPM = 1_000_000


class BrokerFactory(Protocol):
    """Makes a broker's machine."""

    def __call__(
        self,
        name: str,
        config: BrokerConfig,
        disk: Disk,
        path: Path,
        *,
        guards: Guards,
        incarnation: int,
        controller: str,
    ) -> Machine: ...


class ControllerFactory(Protocol):
    """Makes the controller's machine."""

    def __call__(
        self,
        name: str,
        config: ControllerConfig,
        disk: Disk,
        path: Path,
        *,
        guards: Guards,
        incarnation: int,
        default_topic_config: TopicConfig,
    ) -> Machine: ...


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise InvalidConfig(text)


def _require_range(name: str, value: tuple[int, int]) -> None:
    _require(
        0 <= value[0] <= value[1] <= 3_600 * _PPM,
        f"{name} is {value}, allowed is a range from 0 to an hour",
    )


@frozen(kw_only=True)
class ClockConfig:
    """A host's clocks at the beginning.

    Attributes:
        offset_us: of the wall clock.
        wall_ppm, mono_ppm: drift, in millionths.
        jitter_ppm: a timer is late by up to so many millionths of its wait, 0 to 100000.
    """

    offset_us: int = 0
    wall_ppm: int = 0
    mono_ppm: int = 0
    jitter_ppm: int = 0

    def __attrs_post_init__(self) -> None:
        try:
            HostClock(wall_ppm=self.wall_ppm, mono_ppm=self.mono_ppm, jitter_ppm=self.jitter_ppm)
        except ValueError as error:
            raise InvalidConfig(str(error)) from error


@frozen(kw_only=True)
class DiskConfig:
    """The disks of all hosts.

    Attributes:
        names_mode: ``ext4`` makes names durable by any sync, ``posix`` by one of their directory.
        capacity_bytes: None for no limit.
        writeback_us: a range from which the delay of the kernel's write-back is drawn; None for
            never, so that a power loss can take everything that no process has synced.
    """

    names_mode: NamesMode = "ext4"
    auto_da_alloc: bool = False
    capacity_bytes: int | None = None
    writeback_us: tuple[int, int] | None = None
    speed: DiskSpeed = field(factory=DiskSpeed)

    def __attrs_post_init__(self) -> None:
        modes = get_args(NamesMode)
        _require(
            self.names_mode in modes,
            f"names_mode is {self.names_mode!r}, allowed are {', '.join(modes)}",
        )
        size = self.capacity_bytes
        _require(size is None or size >= 0, f"capacity_bytes is {size}, allowed is 0 or more")
        if self.writeback_us is not None:
            _require_range("writeback_us", self.writeback_us)


@frozen(kw_only=True)
class ClusterConfig:
    """See the module.

    Attributes:
        brokers: 1 to 100; they are named ``b1``, ``b2``, ...
        topic: what topics have that set nothing themselves.
        cpu_us: range of the CPU time of one handler, from which it is drawn.
        background_us: range of the delay of background work.
        timer_clock: see ``cluster.names.Now``.
        clocks: by node; nodes that are not named keep perfect time.
    """

    brokers: int = 3
    broker: BrokerConfig = field(factory=BrokerConfig)
    controller: ControllerConfig = field(factory=ControllerConfig)
    topic: TopicConfig = field(factory=TopicConfig)
    guards: Guards = field(factory=Guards)
    network: NetworkConfig = field(factory=NetworkConfig)
    disk: DiskConfig = field(factory=DiskConfig)
    cpu_us: tuple[int, int] = (5, 50)
    background_us: tuple[int, int] = (1_000, 20_000)
    timer_clock: Clock = "wall"
    clocks: Mapping[str, ClockConfig] = field(factory=dict)
    make_broker: BrokerFactory = Broker
    make_controller: ControllerFactory = Controller

    def __attrs_post_init__(self) -> None:
        _require(
            1 <= self.brokers <= _BROKERS_MAX,
            f"brokers is {self.brokers}, allowed is 1..{_BROKERS_MAX}",
        )
        clocks = get_args(Clock)
        _require(
            self.timer_clock in clocks,
            f"timer_clock is {self.timer_clock!r}, allowed are {', '.join(clocks)}",
        )
        for name in ("cpu_us", "background_us"):
            _require_range(name, getattr(self, name))
        for name in (
            "eligible_leader_replicas",
            "broker_session_timeout_ms",
            "broker_heartbeat_interval_ms",
        ):
            ours, theirs = getattr(self.broker, name), getattr(self.controller, name)
            _require(
                ours == theirs,
                f"{name} is {ours} for brokers, {theirs} for the controller; it must be the same",
            )
        known = (CONTROLLER, *self.names)
        for name in self.clocks:
            _require(name in known, f"clocks has {name!r}, allowed are {', '.join(known)}")

    @property
    def names(self) -> tuple[str, ...]:
        """The brokers' names, in order."""
        return tuple(f"b{number}" for number in range(1, self.brokers + 1))
