"""Virtual time as trio's clock: floats of seconds out here, integer microseconds in the world.

Left out: moving time (``sim.baton_run``).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import trio

from sim.baton_turns import World

__all__ = ["VirtualClock", "deadline_us"]


def deadline_us(deadline: float) -> int | None:
    """The first microsecond at or after a deadline of trio, in seconds; None for none.

    A deadline is a sum of floats. What is off a whole microsecond by no more than the error of that
    sum is meant to be that microsecond.
    """
    us = deadline * 1e6
    if us == math.inf:
        return None
    if us <= 0:
        return 0
    nearest = round(us)
    return nearest if abs(us - nearest) <= 8 * math.ulp(us) else math.ceil(us)


class VirtualClock(trio.abc.Clock):
    """Shows the world's time to trio, and never lets it sleep.

    Attributes:
        floor: at least so many seconds are shown. While a deadline fires it is that deadline, since
            in floats the world's time may lie just before it.
    """

    def __init__(self, world: World, on_idle: Callable[[float], float]) -> None:
        """``on_idle`` is called with trio's next deadline when no task can run; how long trio is
        to sleep then, in seconds of real time.
        """
        self._world = world
        self._on_idle = on_idle
        self.floor = 0.0

    def start_clock(self) -> None:
        pass

    def current_time(self) -> float:
        return max(self._world.now_us / 1e6, self.floor)

    def deadline_to_sleep_time(self, deadline: float) -> float:
        return self._on_idle(deadline)
