"""Faults of nodes as data: processes, clocks and disks. Sources: FAULTS C.2, C.3 and C.5.

Rules of links stand in ``sim.network_rules``, faults of disk calls in ``sim.disk_faults``. Left
out: when they strike (``sim.plans``).
"""

from __future__ import annotations

from pathlib import Path

from attrs import field, frozen

from cluster.names import ADMIN, CONTROLLER
from sim.clock_faults import ClockDrift, ClockFreeze, ClockStep, ClockStrobe, TimerJitter
from sim.composites import Composite, Flap, Swizzle
from sim.disk_faults import DiskFault
from sim.disk_speed import SlowDisk, StalledDisk
from sim.failpoints import ENDS, IMAGES, CrashLoopPlan, Failpoint
from sim.host_faults import HostFault, at_least, one_of
from sim.hosts import Host
from sim.network_rules import Rule
from sim.trace.kinds import Kind

__all__ = [
    "AtFailpoint",
    "BackgroundHold",
    "BadSectors",
    "BitRot",
    "ClockDrift",
    "ClockFreeze",
    "ClockStep",
    "ClockStrobe",
    "Composite",
    "Crash",
    "CrashLoop",
    "DiskCallFault",
    "DiskFill",
    "DiskSlow",
    "DiskStall",
    "Fault",
    "Flap",
    "HostFault",
    "HostPause",
    "MetadataLag",
    "SlowCpu",
    "Swizzle",
    "TimerJitter",
]


Fault = HostFault | Rule | Composite


# Processes ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Crash(HostFault):
    """The process ends (``how`` is ``process`` or ``power``); at the end it is started again.

    A host that is down loses its power all the same, one that is off loses nothing more.
    """

    how: str = field(default="process", validator=one_of(ENDS))
    image: str = field(default="lost", validator=one_of(IMAGES))

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
    how: str = field(default="process", validator=one_of(ENDS))
    image: str = field(default="lost", validator=one_of(IMAGES))
    restart_after_us: int = field(default=1_000_000, validator=at_least(0))

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

    factor_ppm: int = field(validator=at_least(0))

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


@frozen(kw_only=True)
class MetadataLag(HostFault):
    """A broker or client hears of metadata ``records`` records late.

    None: of nothing, and at the end a broker hears of the newest state as one change.
    """

    records: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.records is not None and self.records < 1:
            raise ValueError(f"records is {self.records}, allowed is 1 or more, or None")

    def check(self, host: Host) -> None:
        if host.name in (CONTROLLER, ADMIN):
            raise ValueError(f"{host.name} asks for no metadata, allowed are brokers and clients")

    def begin(self, host: Host, number: int) -> None:
        host.kernel.metadata.begin(host.name, self.id, self.records)

    def end(self, host: Host, number: int) -> None:
        host.kernel.metadata.end(host.name, self.id, number)


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

    factor_ppm: int = field(default=1_000_000, validator=at_least(0))
    addend_us: int = field(default=0, validator=at_least(0))

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

    duration_us: int = field(validator=at_least(1))

    def begin(self, host: Host, number: int) -> None:
        now_us = host.kernel.timeline.now_us
        stall = StalledDisk(id=self.id, start_us=now_us, end_us=now_us + self.duration_us)
        host.require_disk().queue.add(stall)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().queue.remove(self.id)


@frozen(kw_only=True)
class DiskFill(_OfDisk):
    """``free_bytes`` of room are left; at the end there is as much as before."""

    free_bytes: int = field(validator=at_least(0))

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().fill(self.id, self.free_bytes)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().empty(self.id)


@frozen(kw_only=True)
class BadSectors(DiskCallFault):
    """Reads of sectors of a file fail until these are written anew, or the fault ends.

    Attributes:
        fault: reads that fail; it names the file by its whole path.
        byte, size_bytes: where they are.
    """

    byte: int = field(validator=at_least(0))
    size_bytes: int = field(default=1, validator=at_least(1))

    def begin(self, host: Host, number: int) -> None:
        disk = host.require_disk().files
        disk.spoil_sectors(Path(self.fault.path), self.byte, self.size_bytes, by=self.fault)

    def end(self, host: Host, number: int) -> None:
        host.require_disk().files.mend_sectors(self.id)


@frozen(kw_only=True)
class BitRot(_OfDisk):
    """Bits of a file at rest flip, on the platter and for who reads it; they stay so.

    Attributes:
        path: of the file, from the root of the disk.
        byte: where.
        mask: the bits of it that flip, 1 to 255.
        partition: whose file it is, for the trace.
    """

    path: str
    byte: int = field(validator=at_least(0))
    mask: int = field(validator=at_least(1))
    partition: str = ""

    def begin(self, host: Host, number: int) -> None:
        host.require_disk().files.flip_bits(Path(self.path), self.byte, self.mask)
        args = {
            "fault": self.id,
            "partition": self.partition,
            "file": self.path,
            "position": self.byte,
            "size": 1,
            "bits": self.mask.bit_count(),
            "how": "flip",
        }
        host.tell(Kind.CORRUPT, (number,), args)
        if host.kernel.observer is not None:
            host.kernel.observer.on_damaged(host.name)
