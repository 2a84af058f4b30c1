"""Faults that are made of rules of the network, which come and go by turns (FAULTS C.1).

A composite is a fault like any other: it begins and ends once. Each turn in between is an event
``note`` that names it, and its rules cite the event at which it began. Who is struck, and in which
order, is drawn by its id alone.

Left out: rules that stay (``sim.network_rules``).
"""

from __future__ import annotations

from typing import Any, Protocol

from attrs import field, frozen

from sim.host_faults import at_least, one_of
from sim.kernel import Kernel
from sim.network_rules import IN_FLIGHT, Clog, Cut, Edge, Rule, isolate_edges
from sim.timeline import EventClass
from sim.trace.kinds import Kind

__all__ = ["Composite", "Flap", "FlappingWorld", "Swizzle"]

_MILLION = 1_000_000


class FlappingWorld(Protocol):
    """What a composite asks of its world.

    Attributes:
        active_faults: by id, the events with which they began.
    """

    kernel: Kernel
    active_faults: dict[str, int]


@frozen(kw_only=True)
class Composite:
    """What all composites have.

    Attributes:
        id: names it in traces; no other fault of the world has it.
    """

    id: str

    @property
    def target(self) -> Any:
        """Whom it strikes, for the trace."""
        raise NotImplementedError

    def begin(self, world: FlappingWorld, number: int) -> None:
        """Strike; ``number`` is the event that says so."""
        raise NotImplementedError

    def end(self, world: FlappingWorld, number: int) -> None:
        """Be over: its rules are gone."""
        prefix = f"{self.id}/"
        for rule_id in world.kernel.network.active_rules():
            if rule_id == self.id or rule_id.startswith(prefix):
                world.kernel.network.remove(rule_id)

    def _is_over(self, world: FlappingWorld, number: int) -> bool:
        """Whether what began with an event has ended, so that a turn of it is none any more."""
        return world.active_faults.get(self.id) != number

    def _turn(self, world: FlappingWorld, number: int, rule: Rule, *, is_on: bool) -> None:
        """A rule begins or ends."""
        args = {"note": "turn", "fault": self.id, "rule": rule.id, "is_on": is_on}
        world.kernel.trace.emit(world.kernel.timeline.now_us, "world", Kind.NOTE, (number,), args)
        if is_on:
            world.kernel.network.add(rule, cause=(number,))
        else:
            world.kernel.network.remove(rule.id)
        if world.kernel.observer is not None:
            world.kernel.observer.on_disturbed("world")


@frozen(kw_only=True)
class Flap(Composite):
    """Links are cut and whole by turns: cut for ``duty_ppm`` millionths of each ``period_us``.

    Attributes:
        edges, only: as rules have them.
        in_flight: as cuts have it.
    """

    edges: tuple[Edge, ...]
    only: frozenset[str] = frozenset()
    in_flight: str = field(default="drop", validator=one_of(IN_FLIGHT))
    period_us: int = field(validator=at_least(2))
    duty_ppm: int = field(default=500_000, validator=at_least(1))

    def __attrs_post_init__(self) -> None:
        if self.duty_ppm >= _MILLION:
            raise ValueError(f"duty_ppm is {self.duty_ppm}, allowed is 1..{_MILLION - 1}")
        self._rule()

    @property
    def target(self) -> Any:
        return self.edges

    @property
    def cut_us(self) -> int:
        """How long the links are cut in each period."""
        return min(max(1, self.period_us * self.duty_ppm // _MILLION), self.period_us - 1)

    def _rule(self) -> Rule:
        return Cut(id=self.id, edges=self.edges, only=self.only, in_flight=self.in_flight)

    def begin(self, world: FlappingWorld, number: int) -> None:
        self._go(world, number, is_on=True)

    def _next(self, world: FlappingWorld, number: int, is_on: bool) -> None:
        if not self._is_over(world, number):
            self._go(world, number, is_on=is_on)

    def _go(self, world: FlappingWorld, number: int, *, is_on: bool) -> None:
        self._turn(world, number, self._rule(), is_on=is_on)
        length_us = self.cut_us if is_on else self.period_us - self.cut_us
        at_us, origin = world.kernel.timeline.now_us + length_us, f"fault:{self.id}"
        world.kernel.timeline.at(
            at_us, EventClass.FAULT, origin, self._next, world, number, not is_on
        )


@frozen(kw_only=True)
class Swizzle(Composite):
    """Half of the nodes, drawn, are clogged one by one and then released in another order.

    One of them each ``period_us``, all its links. Of an odd number the larger half is struck; when
    the last is released nothing more happens.

    Attributes:
        nodes: two or more.
    """

    nodes: tuple[str, ...]
    period_us: int = field(validator=at_least(1))

    def __attrs_post_init__(self) -> None:
        if len(set(self.nodes)) != len(self.nodes) or len(self.nodes) < 2:
            raise ValueError(
                f"nodes are {', '.join(self.nodes)}, allowed are two or more, each once"
            )

    @property
    def target(self) -> Any:
        return ", ".join(self.nodes)

    def orders(self, world: FlappingWorld) -> tuple[list[str], list[str]]:
        """In which order nodes are clogged, and released."""
        struck = _shuffled(world, self.nodes, self.id, "clog")[: (len(self.nodes) + 1) // 2]
        released = _shuffled(world, struck, self.id, "release")
        if released == struck:
            released.reverse()
        return struck, released

    def begin(self, world: FlappingWorld, number: int) -> None:
        self._go(world, number, 0)

    def _next(self, world: FlappingWorld, number: int, at: int) -> None:
        if not self._is_over(world, number):
            self._go(world, number, at)

    def _go(self, world: FlappingWorld, number: int, at: int) -> None:
        struck, released = self.orders(world)
        node = (struck + released)[at]
        rule = Clog(id=f"{self.id}/{node}", edges=isolate_edges([node]))
        self._turn(world, number, rule, is_on=at < len(struck))
        if at + 1 < len(struck) + len(released):
            at_us, origin = world.kernel.timeline.now_us + self.period_us, f"fault:{self.id}"
            world.kernel.timeline.at(
                at_us, EventClass.FAULT, origin, self._next, world, number, at + 1
            )


def _shuffled(
    world: FlappingWorld, names: tuple[str, ...] | list[str], key: str, what: str
) -> list[str]:
    left = list(names)
    return [
        left.pop(world.kernel.draws.below(len(left), "swizzle", key, what, at))
        for at in range(len(names))
    ]
