"""What disk calls cost in virtual time.

A host has one device and a page cache. Reads, writes and changes of names go to the page cache and
cost next to nothing; a sync goes to the device, where one waits for the other, and takes a drawn
time. ``SimDisk.on_call`` tells which calls there were; ``DiskQueue`` says what they cost.

Two faults, as data with a window of time (half-open): ``SlowDisk`` multiplies and adds to what a
call costs that begins in the window, ``StalledDisk`` lets nothing complete in it. Neither draws, so
a run without it has the same draws in all other places. Costs are fixed when they are asked for,
under the faults active then; for a stall that begins later, whoever waits for a sync asks
``stalled_until_us`` when its time has come.

Left out: reads that miss the page cache, and how much a sync has to write.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from sim.draws import Draws
from storage.values import Value

__all__ = ["LOOKS", "SYNCS", "DiskQueue", "DiskSpeed", "SlowDisk", "StalledDisk"]

SYNCS: Final = frozenset({"fsync", "fsync_dir"})
"""Calls that wait for the device."""
LOOKS: Final = frozenset({"begin_fsync", "complete_fsync", "listdir", "size", "stat"})
"""Calls that never wait: ``complete_fsync`` has done so before it is called."""
_BYTES: Final = frozenset({"read_at", "read_into", "write_at", "append"})
_PPM: Final = 1_000_000


@frozen(kw_only=True)
class DiskSpeed(Value):
    """How fast a disk is.

    Attributes:
        fsync_min_us, fsync_max_us: how long a sync takes, drawn evenly; both included.
        tail_ppm: so many of a million syncs take longer than that,
        tail_max_us: by 0 to so much.
        call_us: what each read and write costs before its bytes do.
        bytes_per_us: how many bytes are read or written in a microsecond.
        names_us: cost of opening, locking, truncating and of each change of names.
    """

    fsync_min_us: int = 500
    fsync_max_us: int = 3_000
    tail_ppm: int = 0
    tail_max_us: int = 0
    call_us: int = 0
    bytes_per_us: int = 2_000
    names_us: int = 5

    def __attrs_post_init__(self) -> None:
        _check(self, "fsync_min_us", "tail_ppm", "tail_max_us", "call_us", "names_us")
        _check(self, "bytes_per_us", least=1)
        _check(self, "fsync_max_us", least=self.fsync_min_us)


@frozen(kw_only=True)
class SlowDisk(Value):
    """Calls that begin in the window cost ``factor_ppm`` millionths of their cost and an addend.

    Attributes:
        id: names it.
        addend_us: for each call but those in ``LOOKS``.
        only: the operations that are slow; empty for all.
    """

    id: str
    factor_ppm: int = _PPM
    addend_us: int = 0
    start_us: int = 0
    end_us: int | None = None
    only: frozenset[str] = frozenset()

    def __attrs_post_init__(self) -> None:
        _check(self, "factor_ppm", "addend_us", "start_us")
        _check(self, "end_us", least=self.start_us)


@frozen(kw_only=True)
class StalledDisk(Value):
    """No call completes in the window, reads and writes neither; ``LOOKS`` are answered.

    Attributes:
        id: names it.
        end_us: known from the start, as what a call costs depends on it.
    """

    id: str
    start_us: int = 0
    end_us: int

    def __attrs_post_init__(self) -> None:
        _check(self, "start_us")
        _check(self, "end_us", least=self.start_us)


class DiskQueue:
    """The device of one host: what its calls cost, and when its syncs are done.

    Attributes:
        speed: of the disk, which may be changed.
        fsync_count: syncs so far, for the draws.
        free_us: when the device is done with all syncs that it was given.
    """

    __slots__ = ("_slow", "_stalls", "_syncs", "_tails", "free_us", "fsync_count", "speed")

    def __init__(self, speed: DiskSpeed, draws: Draws, name: str) -> None:
        self.speed = speed
        self.fsync_count = 0
        self.free_us = 0
        self._syncs = draws.stream("fsync", name)
        self._tails = draws.stream("fsync tail", name)
        self._slow: dict[str, SlowDisk] = {}
        self._stalls: dict[str, StalledDisk] = {}

    def add(self, fault: SlowDisk | StalledDisk) -> None:
        """Activate a fault; one with the same id goes."""
        self.remove(fault.id)
        if isinstance(fault, SlowDisk):
            self._slow[fault.id] = fault
        else:
            self._stalls[fault.id] = fault

    def remove(self, fault_id: str) -> None:
        """Deactivate a fault; unknown ids are fine. What was promised before stays."""
        self._slow.pop(fault_id, None)
        self._stalls.pop(fault_id, None)

    def cost_us(self, operation: str, size_bytes: int, start_us: int) -> int:
        """How long a call takes that begins at ``start_us``, as ``SimDisk.on_call`` names it."""
        if operation in LOOKS:
            return 0
        if operation in SYNCS:
            return self.fsync_done_us(start_us, operation) - start_us
        speed = self.speed
        if operation in _BYTES:
            cost_us = speed.call_us + size_bytes // speed.bytes_per_us
        else:
            cost_us = speed.names_us
        if self._slow:
            cost_us = self._slowed_us(cost_us, operation, start_us)
        if self._stalls:
            return self.stalled_until_us(start_us + cost_us) - start_us
        return cost_us

    def fsync_done_us(self, start_us: int, operation: str = "fsync") -> int:
        """When a sync is done that is given to the device at ``start_us``, behind all earlier."""
        speed, ordinal = self.speed, self.fsync_count
        self.fsync_count += 1
        width_us = speed.fsync_max_us - speed.fsync_min_us + 1
        cost_us = speed.fsync_min_us + self._syncs.below(width_us, ordinal)
        if speed.tail_ppm and self._tails.chance(speed.tail_ppm, 2 * ordinal):
            cost_us += self._tails.below(speed.tail_max_us + 1, 2 * ordinal + 1)
        cost_us = self._slowed_us(cost_us, operation, start_us)
        self.free_us = self.stalled_until_us(max(start_us, self.free_us) + cost_us)
        return self.free_us

    def stalled_until_us(self, at_us: int) -> int:
        """``at_us``, or the end of the stalls in which it lies."""
        is_moved = True
        while is_moved:
            is_moved = False
            for stall in self._stalls.values():
                if stall.start_us <= at_us < stall.end_us:
                    at_us = stall.end_us
                    is_moved = True
        return at_us

    def _slowed_us(self, cost_us: int, operation: str, start_us: int) -> int:
        addend_us = 0
        for slow in self._slow.values():
            is_over = slow.end_us is not None and start_us >= slow.end_us
            if start_us < slow.start_us or is_over or (slow.only and operation not in slow.only):
                continue
            cost_us = cost_us * slow.factor_ppm // _PPM
            addend_us += slow.addend_us
        return cost_us + addend_us


def _check(data: object, *names: str, least: int = 0) -> None:
    for name in names:
        value = getattr(data, name)
        if value is not None and value < least:
            raise ValueError(f"{name} is {value}, allowed is {least} or more")
