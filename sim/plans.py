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

from sim.faults import Composite, Fault, HostFault
from sim.network_rules import Duplicate, Reorder, Rule
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

    A rule may name clients that are not there yet. Nothing is entered of a plan with an error.

    Raises:
        ValueError: two faults have one id, a node is unknown, or a fault cannot strike there.
    """
    plan = list(plan)
    taken = set(world.faults)
    for planned in plan:
        if planned.fault.id in taken:
            raise ValueError(f"fault id {planned.fault.id!r} is taken")
        taken.add(planned.fault.id)
        _check(world, planned.fault)
    for planned in plan:
        fault_id = planned.fault.id
        world.faults[fault_id] = planned.fault
        world.timeline.at(
            planned.start_us, EventClass.FAULT, f"fault:{fault_id}", _begin, world, planned
        )


def _check(world: World, fault: Fault) -> None:
    if isinstance(fault, HostFault):
        fault.check(world.host(fault.node))
    elif isinstance(fault, Duplicate | Reorder) and world.config.network.mode != "datagram":
        mode = world.config.network.mode
        raise fault.refuse("mode of the network", repr(mode), "datagram")


def _begin(world: World, planned: Planned) -> None:
    begin(world, planned.fault.id)
    if planned.end_us is not None:
        origin = f"fault:{planned.fault.id}"
        world.timeline.at(planned.end_us, EventClass.FAULT, origin, _end, world, planned.fault.id)


def _end(world: World, fault_id: str) -> None:
    """The end of its window; it may have been healed before."""
    if fault_id in world.active_faults:
        end(world, fault_id)


def begin(world: World, fault_id: str, cause: tuple[int, ...] = ()) -> int:
    """A fault of ``world.faults`` strikes now. Returns the event."""
    fault = world.faults[fault_id]
    node = fault.node if isinstance(fault, HostFault) else "world"
    shown = {
        key: plain(value)
        for key, value in asdict(fault).items()
        if key not in ("id", "node", "edges", "nodes")
    }
    args = {
        "id": fault_id,
        "kind": type(fault).__name__,
        "target": plain(_target(fault)),
        "args": shown,
    }
    number = world.trace.emit(world.now_us, node, Kind.FAULT, cause, args)
    if isinstance(fault, Rule):
        world.network.add(fault, cause=(number,))
    elif isinstance(fault, Composite):
        fault.begin(world, number)
    else:
        host = world.host(fault.node)
        host.begun[fault_id] = number
        fault.begin(host, number)
    world.active_faults[fault_id] = number
    if world.kernel.observer is not None:
        world.kernel.observer.on_struck(fault_id, _struck(fault), number)
    _tell_onlooker(world, node)
    return number


def _struck(fault: Fault) -> tuple[str, ...]:
    """The nodes that a fault is about, those at the ends of its links."""
    if isinstance(fault, Rule):
        return tuple(dict.fromkeys(node for edge in fault.edges for node in edge))
    target = _target(fault)
    if isinstance(target, str):
        return tuple(target.split(", "))
    return tuple(dict.fromkeys(node for each in target for node in _flat(each)))


def _flat(target: Any) -> tuple[str, ...]:
    return (target,) if isinstance(target, str) else tuple(target)


def _target(fault: Fault) -> Any:
    """Whom it strikes."""
    if isinstance(fault, Rule):
        return fault.edges
    return fault.node if isinstance(fault, HostFault) else fault.target


def end(world: World, fault_id: str, cause: tuple[int, ...] = ()) -> int:
    """A fault of ``world.active_faults`` is over now. Returns the event."""
    fault = world.faults[fault_id]
    cause = (*cause, world.active_faults.pop(fault_id))
    args = {"id": fault_id, "kind": type(fault).__name__}
    node = fault.node if isinstance(fault, HostFault) else "world"
    number = world.trace.emit(world.now_us, node, Kind.HEAL, cause, args)
    if isinstance(fault, Rule):
        world.network.remove(fault_id)
    elif isinstance(fault, Composite):
        fault.end(world, number)
    else:
        host = world.host(fault.node)
        del host.begun[fault_id]
        fault.end(host, number)
    _tell_onlooker(world, node)
    return number


def _tell_onlooker(world: World, node: str) -> None:
    """Whoever judges the world must give it time to recover from now on."""
    if world.kernel.observer is not None:
        world.kernel.observer.on_disturbed(node)
