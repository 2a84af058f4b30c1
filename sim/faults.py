"""Faults of nodes as data: processes, clocks and disks. Sources: FAULTS C.2, C.3 and C.5.

Rules of links stand in ``sim.network_rules``, faults of disk calls in ``sim.disk_faults``. Left
out: when they strike (``sim.plans``).
"""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from sim.disk_faults import DiskFault
from sim.disk_speed import SlowDisk, StalledDisk
from sim.failpoints import CrashLoopPlan
from sim.hosts import Host
from sim.network_rules import Rule

__all__ = [
    "BackgroundHold",
    "ClockDrift",
    "ClockFreeze",
    "ClockStep",
    "Crash",
    "CrashLoop",
    "DiskCallFault",
    "DiskFill",
    "DiskSlow",
    "DiskStall",
    "Fault",
    "HostFault",
    "HostPause",
    "SlowCpu",
]


@frozen(kw_only=True)
class HostFault:
    """What strikes one node.

    Attributes:
        id: names it in traces; no other fault of the world has it.
        node: name of the node.
    """

    id: str
    node: str

    def begin(self, host: Host, number: int) -> None:
        """Strike; ``number`` is the event that says so."""
        raise NotImplementedError

    def end(self, host: Host, number: int) -> None:
        """Be over."""


Fault = HostFault | Rule


def _at_least(least: int) -> Any:
    def check(fault: object, attribute: Any, value: int) -> None:
        if value < least:
            raise ValueError(f"{attribute.name} is {value}, allowed is {least} or more")

    return check


# Processes ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Crash(HostFault):
    """The process ends (``how`` is ``process`` or ``power``); at the end it is started again."""

    how: str = "process"
    image: str = "lost"

    def begin(self, host: Host, number: int) -> None:
        if self.how == "power":
            host.cut_power((number,), self.image, fault=self.id)
        elif host.is_running:
            host.kill((number,), fault=self.id)

    def end(self, host: Host, number: int) -> None:
        if not host.is_running:
            host.start((number,))


@frozen(kw_only=True)
class CrashLoop(HostFault):
    """The process dies again and again while it recovers.

    The process that runs is ended. It is started ``restart_after_us`` later and ends in disk call
    ``calls[0]`` from then on, is started again and ends in ``calls[1]``, and so on; the start after
    the last one is left alone. So 3 stands for the third call of recovery.
    """

    calls: tuple[int, ...] = field(validator=lambda *a: _check_calls(a[2]))
    how: str = "process"
    image: str = "lost"
    restart_after_us: int = field(default=1_000_000, validator=_at_least(0))

    def begin(self, host: Host, number: int) -> None:
        loop = CrashLoopPlan(self.id, self.calls, self.how, self.image, self.restart_after_us)
        host.begin_loop(loop, number)

    def end(self, host: Host, number: int) -> None:
        host.end_loop()


def _check_calls(calls: tuple[int, ...]) -> None:
    if not calls or min(calls) < 1:
        raise ValueError(f"calls is {calls}, allowed are one or more numbers from 1")


@frozen(kw_only=True)
class HostPause(HostFault):
    """The host handles nothing: a long garbage collection, a stopped virtual machine."""

    def begin(self, host: Host, number: int) -> None:
        if host.is_running and not host.is_paused:
            host.pause((number,), fault=self.id)

    def end(self, host: Host, number: int) -> None:
        if host.is_paused:
            host.resume((number,))


@frozen(kw_only=True)
class SlowCpu(HostFault):
    """Handlers take ``factor_ppm`` millionths of their time."""

    factor_ppm: int = field(validator=_at_least(0))

    def begin(self, host: Host, number: int) -> None:
        host.cpu_factors[self.id] = self.factor_ppm

    def end(self, host: Host, number: int) -> None:
        host.cpu_factors.pop(self.id, None)


@frozen(kw_only=True)
class BackgroundHold(HostFault):
    """Background work of these kinds waits; all kinds, if none is named."""

    kinds: frozenset[str] = frozenset()

    def begin(self, host: Host, number: int) -> None:
        host.hold_work(self.id, self.kinds)

    def end(self, host: Host, number: int) -> None:
        host.let_work_go(self.id)


# Clocks ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ClockStep(HostFault):
    """The wall clock jumps by ``by_us``, which may be negative; it stays so."""

    by_us: int

    def begin(self, host: Host, number: int) -> None:
        host.clock.step(host.kernel.timeline.now_us, self.by_us)
        host.reclock()


@frozen(kw_only=True)
class ClockDrift(HostFault):
    """Clocks run fast or slow, in millionths; at the end they keep time again from where they are.

    One that was drifting from the beginning (``ClockConfig``) drifts no more behind this fault.
    """

    wall_ppm: int = 0
    mono_ppm: int = 0

    def begin(self, host: Host, number: int) -> None:
        now_us = host.kernel.timeline.now_us
        host.clock.set_drift(now_us, wall_ppm=self.wall_ppm, mono_ppm=self.mono_ppm)
        host.reclock()

    def end(self, host: Host, number: int) -> None:
        host.clock.set_drift(host.kernel.timeline.now_us, wall_ppm=0, mono_ppm=0)
        host.reclock()


@frozen(kw_only=True)
class ClockFreeze(HostFault):
    """The wall clock stands, with ``also_mono`` the monotonic one too."""

    also_mono: bool = False

    def begin(self, host: Host, number: int) -> None:
        host.clock.freeze(host.kernel.timeline.now_us, also_mono=self.also_mono)
        host.reclock()

    def end(self, host: Host, number: int) -> None:
        host.clock.thaw(host.kernel.timeline.now_us)
        host.reclock()


# Disks -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class DiskCallFault(HostFault):
    """Calls of the disk fail or lie, as ``fault`` says; its id is this one's."""

    fault: DiskFault

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().files.faults.add(self.fault)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().files.faults.remove(self.fault.id)


@frozen(kw_only=True)
class DiskSlow(HostFault):
    """Calls take ``factor_ppm`` millionths of their time, and ``addend_us`` more."""

    factor_ppm: int = field(default=1_000_000, validator=_at_least(0))
    addend_us: int = field(default=0, validator=_at_least(0))

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().queue.add(
            SlowDisk(
                id=self.id,
                factor_ppm=self.factor_ppm,
                addend_us=self.addend_us,
                start_us=host.kernel.timeline.now_us,
            )
        )

    def end(self, host: Host, number: int) -> None:
        host.require_disk().queue.remove(self.id)


@frozen(kw_only=True)
class DiskStall(HostFault):
    """No call of the disk completes for ``duration_us``; the length is known when it begins."""

    duration_us: int = field(validator=_at_least(1))

    def begin(self, host: Host, number: int) -> None:
        now_us = host.kernel.timeline.now_us
        stall = StalledDisk(id=self.id, start_us=now_us, end_us=now_us + self.duration_us)
        host.require_disk().queue.add(stall)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().queue.remove(self.id)


@frozen(kw_only=True)
class DiskFill(HostFault):
    """``free_bytes`` of room are left; at the end there is as much as before."""

    free_bytes: int = field(validator=_at_least(0))

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().fill(self.id, self.free_bytes)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().empty(self.id)
