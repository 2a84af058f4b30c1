"""Host clocks: what a host takes for the time, and when its timers are due.

Every host has a monotonic clock, 0 at virtual time 0, and a wall clock, ``WALL_START_US`` plus an
offset. Both run with virtual time, faster or slower by a drift in parts per million; the wall clock
can be stepped, and both can stand still. A change holds from its moment on. The monotonic clock
never goes back. Arithmetic is in whole millionths of a microsecond, so neither rounding nor the
number of changes makes a difference (FAULTS C.3).

``due`` is the exact inverse of ``now``, under the changes made so far: whoever waits for a time
asks again once ``generation`` has changed.

Left out: when clocks change (``sim.world``), and the draws behind a late timer.
"""

from __future__ import annotations

from typing import Final

from cluster.names import Clock, Now

__all__ = ["JITTER_PPM_MAX", "WALL_START_US", "HostClock"]

WALL_START_US: Final = 1_767_225_600_000_000
"""2026-01-01T00:00:00Z."""

_SCALE = 1_000_000
JITTER_PPM_MAX: Final = 100_000


class HostClock:
    """The clocks of one host. All times are virtual microseconds, and never before a change made.

    Attributes:
        generation: how many changes were made.
        timer_clock: see ``Now``.
        jitter_ppm: by how much of its waiting time a timer may be late, 0 to 100,000.
    """

    __slots__ = (
        "_is_mono_frozen",
        "_is_wall_frozen",
        "_mono",
        "_mono_ppm",
        "_mono_rate",
        "_since_us",
        "_wall",
        "_wall_ppm",
        "_wall_rate",
        "generation",
        "jitter_ppm",
        "timer_clock",
    )

    def __init__(
        self,
        *,
        offset_us: int = 0,
        wall_ppm: int = 0,
        mono_ppm: int = 0,
        jitter_ppm: int = 0,
        timer_clock: Clock = "wall",
    ) -> None:
        """Clocks at virtual time 0.

        Args:
            offset_us: how far the wall clock is ahead.
        """
        if not 0 <= jitter_ppm <= JITTER_PPM_MAX:
            raise ValueError(f"jitter_ppm is {jitter_ppm}, allowed is 0..{JITTER_PPM_MAX}")
        self.jitter_ppm = jitter_ppm
        self.timer_clock = timer_clock
        self.generation = 0
        self._since_us = 0
        self._mono = 0
        self._wall = (WALL_START_US + offset_us) * _SCALE
        self._mono_ppm = _checked("mono_ppm", mono_ppm)
        self._wall_ppm = _checked("wall_ppm", wall_ppm)
        self._is_mono_frozen = self._is_wall_frozen = False
        self._mono_rate = self._wall_rate = 0
        self._set_rates()

    def now(self, t_us: int) -> Now:
        """What both clocks show."""
        passed = t_us - self._since_us
        if passed < 0:
            raise ValueError(f"{t_us} us is before the last change, at {self._since_us} us")
        return Now(
            (self._mono + passed * self._mono_rate) // _SCALE,
            (self._wall + passed * self._wall_rate) // _SCALE,
            self.timer_clock,
        )

    def due(self, clock: Clock, at_us: int, t_us: int) -> int | None:
        """The first moment from ``t_us`` on at which ``clock`` shows ``at_us`` or more.

        None where it never will, because it stands still.
        """
        if t_us < self._since_us:
            raise ValueError(f"{t_us} us is before the last change, at {self._since_us} us")
        if clock == "mono":
            shown, rate = self._mono, self._mono_rate
        else:
            shown, rate = self._wall, self._wall_rate
        missing = at_us * _SCALE - shown
        if rate == 0:
            return t_us if missing <= 0 else None
        return max(t_us, self._since_us - (-missing // rate))

    # Changes ------------------------------------------------------------------------------------

    def step(self, t_us: int, by_us: int) -> None:
        """Set the wall clock forward or back, also while it stands still."""
        self._anchor(t_us)
        self._wall += by_us * _SCALE

    def set_drift(
        self, t_us: int, *, wall_ppm: int | None = None, mono_ppm: int | None = None
    ) -> None:
        """Change how fast the clocks run, for a frozen one from its thawing on; None keeps."""
        wall = self._wall_ppm if wall_ppm is None else _checked("wall_ppm", wall_ppm)
        mono = self._mono_ppm if mono_ppm is None else _checked("mono_ppm", mono_ppm)
        self._anchor(t_us)
        self._wall_ppm, self._mono_ppm = wall, mono
        self._set_rates()

    def freeze(self, t_us: int, *, also_mono: bool = False) -> None:
        """Let the wall clock stand still; a suspended machine's monotonic clock does as well.

        A second freeze adds to the first: it starts no clock that stands.
        """
        self._anchor(t_us)
        self._is_wall_frozen = True
        self._is_mono_frozen = self._is_mono_frozen or also_mono
        self._set_rates()

    def thaw(self, t_us: int) -> None:
        """Let both clocks run on from what they show; a step may then set the wall clock right."""
        self._anchor(t_us)
        self._is_wall_frozen = self._is_mono_frozen = False
        self._set_rates()

    def _anchor(self, t_us: int) -> None:
        passed = t_us - self._since_us
        if passed < 0:
            raise ValueError(f"{t_us} us is before the last change, at {self._since_us} us")
        self._mono += passed * self._mono_rate
        self._wall += passed * self._wall_rate
        self._since_us = t_us
        self.generation += 1

    def _set_rates(self) -> None:
        self._mono_rate = 0 if self._is_mono_frozen else _SCALE + self._mono_ppm
        self._wall_rate = 0 if self._is_wall_frozen else _SCALE + self._wall_ppm


def _checked(name: str, ppm: int) -> int:
    """A drift under which the clock still runs, and runs forward."""
    if not -_SCALE < ppm <= _SCALE:
        raise ValueError(f"{name} is {ppm}, allowed is {1 - _SCALE}..{_SCALE}")
    return ppm
