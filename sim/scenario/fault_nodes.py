"""Kinds of faults of processes, clocks and disks for ``[[fault]]`` tables (FAULTS C.2, C.3, C.5).

Left out: carrying them out (``sim.faults``).
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from sim.clocks import JITTER_PPM_MAX
from sim.scenario.action_kinds import BYTES_MAX, COUNT_MAX, IMAGES, FailpointKind, is_file_name
from sim.scenario.durations import DURATION_MAX_US, UNITS_US
from sim.scenario.fault_base import (
    DISK_CALLS,
    MILLION,
    WORK_KINDS,
    DiskFault,
    NodeFault,
)
from sim.scenario.kinds import Choice, Duration, Flag, Integer, ListOf, Text, item
from sim.scenario.name_kinds import PartitionKind
from sim.scenario.names import PartitionName
from sim.scenario.problems import Refusal, seen
from sim.scenario.slowness import Slowness, SlownessKind

__all__ = [
    "AtRestFault",
    "BackgroundHoldFault",
    "BadSectorFault",
    "BitRotFault",
    "ClockDriftFault",
    "ClockFreezeFault",
    "ClockStepFault",
    "ClockStrobeFault",
    "CrashFault",
    "CrashLoopFault",
    "DiskGoneFault",
    "EioFault",
    "EnospcFault",
    "FailpointFault",
    "FillFault",
    "FsyncFailFault",
    "FsyncLieFault",
    "FsyncReadOnlyFault",
    "LostWriteFault",
    "MisdirectedWriteFault",
    "PauseFault",
    "ReadOnlyFault",
    "ShortReadFault",
    "SlowFault",
    "SplitWriteFault",
    "StallFault",
    "TimerJitterFault",
    "WriteBackFailFault",
]

# Processes ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class CrashFault(NodeFault):
    """The process ends; at the end it is started again."""

    KIND: ClassVar[str] = "crash"
    how: str = item(Choice(("process", "power")), "what ends", default="process")
    image: str = item(Choice(IMAGES), "what a power loss leaves", default="lost")


@frozen(kw_only=True)
class CrashLoopFault(NodeFault):
    """The process dies again and again while it recovers, in these disk calls of its recovery."""

    KIND: ClassVar[str] = "crash-loop"
    calls: tuple[int, ...] = item(
        ListOf(Integer(1, COUNT_MAX), high=100, what="numbers"), "one number a life"
    )
    how: str = item(Choice(("process", "power")), "what ends", default="process")
    image: str = item(Choice(IMAGES), "what a power loss leaves", default="lost")
    restart_after_us: int = item(Duration(), "until the next life", default=UNITS_US["s"])


@frozen(kw_only=True)
class FailpointFault(NodeFault):
    """Something happens when a named point is reached for the ``hit``-th time."""

    KIND: ClassVar[str] = "failpoint"
    point: str = item(FailpointKind(), "where")
    hit: int = item(Integer(1, COUNT_MAX), "at which time there", default=1)
    action: str = item(Choice(("process", "power", "pause", "yield")), "what happens")
    image: str = item(Choice(IMAGES), "what a power loss leaves", default="lost")
    duration_us: int = item(Duration(), "of a pause or yield", default=0)

    def check(self) -> list[Refusal]:
        found = super().check()
        is_stop = self.action in ("pause", "yield")
        if is_stop and self.point.startswith("disk:"):
            text = f"at a call of the disk {seen(self.action)} is not possible"
            found.append(Refusal(text, at=("action",), allowed=("process", "power")))
        if self.duration_us and not is_stop:
            text = "it is the length of a pause or yield"
            found.append(Refusal(text, at=("duration",), is_key=True))
        return found


@frozen(kw_only=True)
class PauseFault(NodeFault):
    """The host handles nothing."""

    KIND: ClassVar[str] = "pause"


@frozen(kw_only=True)
class SlowFault(NodeFault):
    """A node is slow: its disk, its CPU or its links. Values as in the step ``slow``."""

    KIND: ClassVar[str] = "slow"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("disk", "cpu", "link"),)
    disk: Slowness | None = item(SlownessKind(), "each call of the disk", default=None)
    cpu: Slowness | None = item(SlownessKind(takes_addend=False), "each handler", default=None)
    link: Slowness | None = item(SlownessKind(), "each message from and to it", default=None)


@frozen(kw_only=True)
class BackgroundHoldFault(NodeFault):
    """Background work waits until the end; all kinds, if none is named."""

    KIND: ClassVar[str] = "background-hold"
    work: tuple[str, ...] = item(
        ListOf(Choice(WORK_KINDS), takes_one=True, high=20, what="kinds of work"),
        "which kinds",
        default=(),
    )


# Clocks ------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class ClockStepFault(NodeFault):
    """The wall clock jumps; it stays so."""

    KIND: ClassVar[str] = "clock-step"
    by_us: int = item(Duration(-DURATION_MAX_US), 'how far: "30s", "-2m"')


@frozen(kw_only=True)
class ClockDriftFault(NodeFault):
    """Clocks run fast or slow, in millionths."""

    KIND: ClassVar[str] = "clock-drift"
    wall_ppm: int = item(Integer(-MILLION + 1, MILLION), "of the wall clock", default=0)
    mono_ppm: int = item(Integer(-MILLION + 1, MILLION), "of the monotonic clock", default=0)


@frozen(kw_only=True)
class ClockFreezeFault(NodeFault):
    """The wall clock stands."""

    KIND: ClassVar[str] = "clock-freeze"
    also_mono: bool = item(Flag(), "the monotonic clock too", default=False)


@frozen(kw_only=True)
class ClockStrobeFault(NodeFault):
    """The wall clock jumps and jumps back, by turns; at the end it is right again."""

    KIND: ClassVar[str] = "clock-strobe"
    by_us: int = item(Duration(-DURATION_MAX_US), 'how far: "30s", "-2m"')
    period_us: int = item(Duration(UNITS_US["ms"]), "between two jumps")

    def check(self) -> list[Refusal]:
        found = super().check()
        if not self.by_us:
            found.append(Refusal("it changes nothing", at=("by",)))
        return found


@frozen(kw_only=True)
class TimerJitterFault(NodeFault):
    """Timers that are armed meanwhile fire late, by a drawn part of their wait."""

    KIND: ClassVar[str] = "timer-jitter"
    ppm: int = item(Integer(1, JITTER_PPM_MAX), "at most so many millionths of it")


# Disks -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class StallFault(NodeFault):
    """No call of the disk completes for ``duration``."""

    KIND: ClassVar[str] = "stall"
    duration_us: int = item(Duration(1), "how long")


@frozen(kw_only=True)
class FillFault(NodeFault):
    """So many bytes of room are left."""

    KIND: ClassVar[str] = "fill"
    free: int = item(Integer(0, BYTES_MAX), "bytes that are left")


@frozen(kw_only=True)
class FsyncFailFault(DiskFault):
    """A sync fails, and what it could not write is marked clean."""

    KIND: ClassVar[str] = "fsync-fail"
    content: str = item(
        Choice(("keep", "revert")), "what readers see: the new bytes or the old", default="keep"
    )
    report: str = item(Choice(("now", "next")), "which sync says so", default="now")


@frozen(kw_only=True)
class FsyncLieFault(DiskFault):
    """A sync says that it is done, and nothing was written."""

    KIND: ClassVar[str] = "fsync-lie"


@frozen(kw_only=True)
class FsyncReadOnlyFault(DiskFault):
    """A sync fails, and the file system goes read-only."""

    KIND: ClassVar[str] = "fsync-read-only"


@frozen(kw_only=True)
class EnospcFault(DiskFault):
    """A write finds no room, or with ``late`` its write-back does."""

    KIND: ClassVar[str] = "enospc"
    late: bool = item(Flag(), "at the sync", default=False)
    partial_bytes: int = item(Integer(0, BYTES_MAX), "stored all the same", default=0)


@frozen(kw_only=True)
class EioFault(DiskFault):
    """A call fails with an input or output error."""

    KIND: ClassVar[str] = "eio"
    call: str | None = item(Choice(DISK_CALLS), "which; else each", default=None)
    partial_bytes: int = item(Integer(0, BYTES_MAX), "of a write, stored all the same", default=0)


@frozen(kw_only=True)
class SplitWriteFault(DiskFault):
    """A write takes two calls."""

    KIND: ClassVar[str] = "split-write"
    partial_bytes: int = item(Integer(0, BYTES_MAX), "of the first", default=0)


@frozen(kw_only=True)
class LostWriteFault(DiskFault):
    """A write says that it is done, and nothing was written."""

    KIND: ClassVar[str] = "lost-write"


@frozen(kw_only=True)
class MisdirectedWriteFault(DiskFault):
    """A write lands elsewhere."""

    KIND: ClassVar[str] = "misdirected-write"
    shift_bytes: int = item(Integer(-BYTES_MAX, BYTES_MAX), "how far from its place", default=4_096)


@frozen(kw_only=True)
class ShortReadFault(DiskFault):
    """A read takes two calls."""

    KIND: ClassVar[str] = "short-read"
    partial_bytes: int = item(Integer(1, BYTES_MAX), "of the first", default=1)


@frozen(kw_only=True)
class WriteBackFailFault(DiskFault):
    """The kernel cannot write dirty pages back and marks them clean; the next sync says so.

    It needs a cluster with ``writeback``.
    """

    KIND: ClassVar[str] = "write-back-fail"
    content: str = item(
        Choice(("keep", "revert")), "what readers see: the new bytes or the old", default="keep"
    )


@frozen(kw_only=True)
class ReadOnlyFault(NodeFault):
    """The file system is mounted read-only until the end: changes and syncs fail."""

    KIND: ClassVar[str] = "read-only"


@frozen(kw_only=True)
class DiskGoneFault(NodeFault):
    """The log directory is offline until the end: each call of the disk fails."""

    KIND: ClassVar[str] = "disk-gone"


@frozen(kw_only=True)
class AtRestFault(NodeFault):
    """A fault of bytes at rest: of a file of a partition, in pages that have been written back.

    With neither ``offset`` nor ``file`` it is drawn from all of the partition's log.
    """

    partition: PartitionName = item(PartitionKind(), "of which partition")
    offset: int | None = item(Integer(), "in the batch of this record", default=None)
    file: str | None = item(Text(), "name in the partition's directory", default=None)
    byte: int | None = item(Integer(0, BYTES_MAX), "position in the file; else drawn", default=None)

    def check(self) -> list[Refusal]:
        found = super().check()
        if self.offset is not None and self.file is not None:
            text = '"offset" and "file" exclude each other'
            found.append(Refusal(text, at=("file",), is_key=True))
        if self.byte is not None and self.file is None:
            text = "byte is a position in a file"
            found.append(Refusal(text, at=("byte",), is_key=True, hint="write file"))
        if self.file is not None and not is_file_name(self.file):
            text = f"{seen(self.file)} is no name of a file in the directory"
            found.append(Refusal(text, at=("file",), hint="write it without a path"))
        return found


@frozen(kw_only=True)
class BitRotFault(AtRestFault):
    """Bits of a byte flip that is at rest; who reads it sees that at once, and it stays so.

    With neither ``offset`` nor ``file`` it is drawn from all of the partition's log. What is still
    to be written back cannot rot: a step ``flush`` writes it.
    """

    KIND: ClassVar[str] = "bit-rot"
    bits: int = item(Integer(1, 8), "how many of the byte's bits", default=1)


@frozen(kw_only=True)
class BadSectorFault(AtRestFault):
    """A sector of 512 bytes cannot be read until it is written anew, or the fault ends.

    With neither ``offset`` nor ``file`` it is drawn from all of the partition's log. It strikes
    what has been written back: a step ``flush`` does that.
    """

    KIND: ClassVar[str] = "bad-sector"
