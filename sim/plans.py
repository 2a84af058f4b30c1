"""Fault plans: which faults strike a world, from when to when.

A plan is a list of ``Planned`` faults; each begins and ends as an entry of the timeline, and both
are events that name its id. Faults draw from streams keyed by their ids, so one fault less leaves
every other draw as it was.

Left out: faults that wait for a condition, and selectors (scenario files).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import asdict, frozen

from sim.faults import Fault, HostFault
from sim.network_rules import Rule
from sim.plain import plain
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["Planned", "begin", "end", "schedule"]


@frozen
class Planned:
    """A fault and its window: from ``start_us`` on, up to ``end_us`` or for good."""

    fault: Fault
    start_us: int
    end_us: int | None = None

    def __attrs_post_init__(self) -> None:
        if self.start_us < 0 or (self.end_us is not None and self.end_us < self.start_us):
            raise ValueError(
                f"fault {self.fault.id!r} is from {self.start_us} to {self.end_us}, allowed is a "
                "window that begins at 0 or later and does not end before it begins"
            )


def schedule(world: World, plan: Iterable[Planned]) -> None:
    """Enter a plan into a world's timeline.

    Raises:
        ValueError: two faults have one id, or a node is unknown.
    """
    for planned in plan:
        fault = planned.fault
        if fault.id in world.faults:
            raise ValueError(f"fault id {fault.id!r} is taken")
        if isinstance(fault, HostFault):
            world.host(fault.node)
        world.faults[fault.id] = fault
        origin = f"fault:{fault.id}"
        timeline = world.timeline
        timeline.at(planned.start_us, EventClass.FAULT, origin, begin, world, fault.id)
        if planned.end_us is not None:
            timeline.at(planned.end_us, EventClass.FAULT, origin, end, world, fault.id)


def begin(world: World, fault_id: str, cause: tuple[int, ...] = ()) -> int:
    """A fault of ``world.faults`` strikes now. Returns the event."""
    fault = world.faults[fault_id]
    target: Any = fault.edges if isinstance(fault, Rule) else fault.node
    shown = {
        key: plain(value)
        for key, value in asdict(fault).items()
        if key not in ("id", "node", "edges")
    }
    args = {
        "id": fault_id,
        "kind": type(fault).__name__,
        "target": plain(target),
        "args": shown,
    }
    node = "world" if isinstance(fault, Rule) else fault.node
    number = world.trace.emit(world.now_us, node, Kind.FAULT, cause, args)
    if isinstance(fault, Rule):
        world.network.add(fault, cause=(number,))
    else:
        fault.begin(world.host(fault.node), number)
    world.active_faults[fault_id] = number
    return number


def end(world: World, fault_id: str, cause: tuple[int, ...] = ()) -> int:
    """A fault is over now. Returns the event."""
    fault = world.faults[fault_id]
    begun = world.active_faults.pop(fault_id, None)
    if begun is not None:
        cause = (*cause, begun)
    args = {"id": fault_id, "kind": type(fault).__name__}
    node = "world" if isinstance(fault, Rule) else fault.node
    number = world.trace.emit(world.now_us, node, Kind.HEAL, cause, args)
    if isinstance(fault, Rule):
        world.network.remove(fault_id)
    else:
        fault.end(world.host(fault.node), number)
    return number
