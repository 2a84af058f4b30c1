"""What a step waits for behind its beginning: whether it is done, and if not, why.

Left out: beginning it (``sim.running.acting``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sim.failpoints import Failpoint
from sim.hosts import Host
from sim.pending import Pending
from sim.process import Process
from sim.scenario.expressions import Expression
from sim.scenario.terms import Environment
from sim.world import World

__all__ = ["Ended", "Holds", "Outcome", "Progress", "Reached", "Settled"]


class Progress:
    """Done at once; subclasses wait."""

    def is_done(self) -> bool:
        """Whether the step's last effect is visible."""
        return True

    def why(self) -> str:
        """What is missing, for people."""
        return ""


class Outcome(Progress):
    """Done when a verb is; what it raises ends the run."""

    def __init__(self, pending: Pending[Any]) -> None:
        self.pending = pending

    def is_done(self) -> bool:
        if not self.pending.is_done():
            return False
        self.pending.result()
        return True

    def why(self) -> str:
        state = self.pending.state()
        return f"{self.pending.what} is not done{': ' if state else ''}{state}"


class Ended(Progress):
    """Done when these processes are gone."""

    def __init__(self, processes: list[Process]) -> None:
        self._processes = processes

    def is_done(self) -> bool:
        return not any(each.is_alive for each in self._processes)

    def why(self) -> str:
        left = [each.host.name for each in self._processes if each.is_alive]
        return f"{', '.join(left)} still run{'s' if len(left) == 1 else ''}"


class Reached(Progress):
    """Done when a failpoint has ended the process that reached it."""

    def __init__(self, host: Host, failpoint: Failpoint) -> None:
        self._host = host
        self._failpoint = failpoint
        self._process: Process | None = None

    def is_done(self) -> bool:
        if self._failpoint.is_disk_call:
            return self._host.require_disk().files.fuses.blown == self._failpoint.id
        if self._process is None and self._failpoint not in self._host.failpoints.armed:
            self._process = self._host.process
            return self._process is None
        return self._process is not None and not self._process.is_alive

    def why(self) -> str:
        name, point = self._host.name, self._failpoint.point
        return f"{name} has not reached {point} for the {_nth(self._failpoint.hit)} time"


class Holds(Progress):
    """Done when an expression holds."""

    def __init__(self, expression: Expression, env: Environment) -> None:
        self._expression = expression
        self._env = env

    def is_done(self) -> bool:
        return bool(self._expression.evaluate(self._env))

    def why(self) -> str:
        values = ", ".join(
            f"{call} is {_answer(call.evaluate(self._env))}" for call in self._expression.calls
        )
        return f"{self._expression.text} does not hold{': ' if values else ''}{values}"


class Settled(Progress):
    """Done when every live replica has its leader's log end and high watermark.

    A replica is live while a process runs at its broker, paused or not, and its log is not set
    aside.
    """

    def __init__(self, world: World) -> None:
        self._world = world

    def is_done(self) -> bool:
        return next(self._lagging(), None) is None

    def why(self) -> str:
        return "; ".join(self._lagging())

    def _lagging(self) -> Iterator[str]:
        view = self._world.view()
        for record in view.image().partitions():
            place, leader = record.partition, record.leader
            if leader is None:
                yield f"{place} has no leader"
                continue
            led = view.replica(leader, place.topic, place.partition)
            if led is None or led.leading is None or led.log is None:
                yield f"{leader} does not lead {place} yet"
                continue
            end, mark = led.log.leo, led.high_watermark
            for name in record.replicas:
                if name == leader or not self._world.host(name).is_running:
                    continue
                mine = view.replica(name, place.topic, place.partition)
                if mine is None:
                    yield f"{name} has not opened {place} yet"
                elif mine.log is not None and (mine.log.leo, mine.high_watermark) != (end, mark):
                    yield (
                        f"{name} has {place} to {mine.log.leo} with high watermark "
                        f"{mine.high_watermark}, the leader {leader} to {end} with {mark}"
                    )


def _answer(value: Any) -> Any:
    """A set in order, and the rest as it is."""
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(value)) + "}"
    return value


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10 if number % 100 not in (11, 12, 13) else 0)
    return f"{number}{ending or 'th'}"
