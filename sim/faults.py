"""Faults of nodes as data: processes, clocks and disks. Sources: FAULTS C.2, C.3 and C.5.

Rules of links stand in ``sim.network_rules``, faults of disk calls in ``sim.disk_faults``. Left
out: when they strike (``sim.plans``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import field, frozen

from sim.clocks import HostClock
from sim.disk_faults import DiskFault
from sim.disk_speed import SlowDisk, StalledDisk
from sim.failpoints import ENDS, IMAGES, CrashLoopPlan, Failpoint
from sim.hosts import Host
from sim.network_rules import Rule

__all__ = [
    "AtFailpoint",
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

    def check(self, host: Host) -> None:
        """Look whether it can strike this host at all.

        Raises:
            ValueError: it cannot; says why.
        """

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


def _one_of(allowed: Sequence[str]) -> Any:
    def check(fault: object, attribute: Any, value: str) -> None:
        if value not in allowed:
            raise ValueError(f"{attribute.name} is {value!r}, allowed are {', '.join(allowed)}")

    return check


# Processes ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Crash(HostFault):
    """The process ends (``how`` is ``process`` or ``power``); at the end it is started again.

    A host that is down loses its power all the same, one that is off loses nothing more.
    """

    how: str = field(default="process", validator=_one_of(ENDS))
    image: str = field(default="lost", validator=_one_of(IMAGES))

    def begin(self, host: Host, number: int) -> None:
        if self.how == "power":
            if host.is_on:
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
    the last one is left alone. So 3 stands for the third call of recovery. At the end, a process
    that waits for its next start is started. A host has one loop: a second takes its place.
    """

    calls: tuple[int, ...] = field(validator=lambda *a: _check_calls(a[2]))
    how: str = field(default="process", validator=_one_of(ENDS))
    image: str = field(default="lost", validator=_one_of(IMAGES))
    restart_after_us: int = field(default=1_000_000, validator=_at_least(0))

    def check(self, host: Host) -> None:
        host.require_disk()

    def begin(self, host: Host, number: int) -> None:
        loop = CrashLoopPlan(self.id, self.calls, self.how, self.image, self.restart_after_us)
        host.begin_loop(loop, number)

    def end(self, host: Host, number: int) -> None:
        host.end_loop(self.id, number)


@frozen(kw_only=True)
class AtFailpoint(HostFault):
    """Something happens when a named point is reached; what was not reached by the end never does.

    Attributes:
        failpoint: its id is this one's.
    """

    failpoint: Failpoint

    def __attrs_post_init__(self) -> None:
        if self.failpoint.id != self.id:
            raise ValueError(f"the failpoint's id is {self.failpoint.id!r}, allowed is {self.id!r}")

    def check(self, host: Host) -> None:
        if self.failpoint.is_disk_call:
            host.require_disk()

    def begin(self, host: Host, number: int) -> None:
        host.add_failpoint(self.failpoint)

    def end(self, host: Host, number: int) -> None:
        host.remove_failpoint(self.failpoint)


def _check_calls(calls: tuple[int, ...]) -> None:
    if not calls or min(calls) < 1:
        raise ValueError(f"calls is {calls}, allowed are one or more numbers from 1")


@frozen(kw_only=True)
class HostPause(HostFault):
    """The host handles nothing: a long garbage collection, a stopped virtual machine.

    Of several at a time the last ends the pause. A process that is started meanwhile runs.
    """

    def begin(self, host: Host, number: int) -> None:
        if host.is_running:
            host.pause((number,), by=self.id, fault=self.id)

    def end(self, host: Host, number: int) -> None:
        host.end_pause(self.id, (number,))


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
        host.let_work_go(self.id, number)


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
    """Clocks run fast or slow, in millionths; at the end they run on from where they are.

    They run then as they did at the beginning of the world (``ClockConfig``). Of several at a time
    the newest counts.
    """

    wall_ppm: int = 0
    mono_ppm: int = 0

    def __attrs_post_init__(self) -> None:
        HostClock(wall_ppm=self.wall_ppm, mono_ppm=self.mono_ppm)

    def begin(self, host: Host, number: int) -> None:
        host.drifts[self.id] = (self.wall_ppm, self.mono_ppm)
        host.set_drift()

    def end(self, host: Host, number: int) -> None:
        del host.drifts[self.id]
        host.set_drift()


@frozen(kw_only=True)
class ClockFreeze(HostFault):
    """The wall clock stands, with ``also_mono`` the monotonic one too.

    Of several at a time, each clock stands until the last that holds it ends.
    """

    also_mono: bool = False

    def begin(self, host: Host, number: int) -> None:
        host.freezes[self.id] = self.also_mono
        host.set_frozen()

    def end(self, host: Host, number: int) -> None:
        del host.freezes[self.id]
        host.set_frozen()


# Disks -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class _OfDisk(HostFault):
    """What strikes a disk, so that the node has to have one."""

    def check(self, host: Host) -> None:
        host.require_disk()


@frozen(kw_only=True)
class DiskCallFault(_OfDisk):
    """Calls of the disk fail or lie, as ``fault`` says; its id is this one's."""

    fault: DiskFault

    def __attrs_post_init__(self) -> None:
        if self.fault.id != self.id:
            raise ValueError(f"id of the disk fault is {self.fault.id!r}, allowed is {self.id!r}")

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().files.faults.add(self.fault)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().files.faults.remove(self.fault.id)


@frozen(kw_only=True)
class DiskSlow(_OfDisk):
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
class DiskStall(_OfDisk):
    """No call of the disk completes for ``duration_us``; the length is known when it begins."""

    duration_us: int = field(validator=_at_least(1))

    def begin(self, host: Host, number: int) -> None:
        now_us = host.kernel.timeline.now_us
        stall = StalledDisk(id=self.id, start_us=now_us, end_us=now_us + self.duration_us)
        host.require_disk().queue.add(stall)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().queue.remove(self.id)


@frozen(kw_only=True)
class DiskFill(_OfDisk):
    """``free_bytes`` of room are left; at the end there is as much as before."""

    free_bytes: int = field(validator=_at_least(0))

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().fill(self.id, self.free_bytes)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().empty(self.id)
