"""Faults of clocks and timers as data. Source: FAULTS C.3.

Left out: how a clock runs (``sim.clocks``), when faults strike (``sim.plans``).
"""

from __future__ import annotations

from attrs import field, frozen

from sim.clocks import JITTER_PPM_MAX, HostClock
from sim.host_faults import HostFault, at_least
from sim.hosts import Host
from sim.timeline import EventClass
from sim.trace.kinds import Kind

__all__ = ["ClockDrift", "ClockFreeze", "ClockStep", "ClockStrobe", "TimerJitter"]


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


@frozen(kw_only=True)
class ClockStrobe(HostFault):
    """The wall clock jumps by ``by_us`` and back by turns, one jump each ``period_us``.

    At the end it shows what it would without the fault.
    """

    by_us: int
    period_us: int = field(validator=at_least(1))

    def begin(self, host: Host, number: int) -> None:
        self._jump(host, number, is_off=True)

    def _jump(self, host: Host, number: int, *, is_off: bool) -> None:
        if host.begun.get(self.id) != number:
            return
        now_us = host.kernel.timeline.now_us
        by_us = self.by_us if is_off else -self.by_us
        host.tell(Kind.NOTE, (number,), {"note": "clock-jump", "fault": self.id, "by_us": by_us})
        host.strobes[self.id] = is_off
        host.clock.step(now_us, by_us)
        host.reclock()
        at_us, origin = now_us + self.period_us, f"fault:{self.id}"
        host.kernel.timeline.at(at_us, EventClass.FAULT, origin, self._turn, host, number)

    def _turn(self, host: Host, number: int) -> None:
        self._jump(host, number, is_off=not host.strobes.get(self.id, False))

    def end(self, host: Host, number: int) -> None:
        if host.strobes.pop(self.id, False):
            host.clock.step(host.kernel.timeline.now_us, -self.by_us)
            host.reclock()


@frozen(kw_only=True)
class TimerJitter(HostFault):
    """Timers that are armed meanwhile fire late, by up to ``ppm`` millionths of their wait."""

    ppm: int = field(validator=at_least(1))

    def __attrs_post_init__(self) -> None:
        if self.ppm > JITTER_PPM_MAX:
            raise ValueError(f"ppm is {self.ppm}, allowed is 1..{JITTER_PPM_MAX}")

    def begin(self, host: Host, number: int) -> None:
        host.begin_jitter(self.id, self.ppm)

    def end(self, host: Host, number: int) -> None:
        host.jitters.pop(self.id, None)
