"""Faults of a scenario as faults of the world: selectors become names when the time has come.

What is drawn is drawn here, keyed by the fault's id, so that the trace says what was struck.

Left out: when that is (``sim.running.beside``).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import Any

from sim import faults
from sim.composites import Flap, Swizzle
from sim.disk_faults import DiskFault
from sim.failpoints import Failpoint
from sim.faults import Fault
from sim.network_rules import (
    Clog,
    Corrupt,
    Cut,
    Duplicate,
    Edge,
    Limit,
    Loss,
    Refuse,
    Reorder,
    ResetOn,
    Slow,
    isolate_edges,
    partition_edges,
)
from sim.running.damage import drawn_at_rest
from sim.running.selection import choose, choose_all, choose_groups
from sim.scenario import fault_base as base
from sim.scenario import fault_links as links
from sim.scenario import fault_nodes as nodes
from sim.scenario.selectors import Selector
from sim.world import World

__all__ = ["world_faults"]


def world_faults(world: World, fault: base.Fault) -> list[Fault]:
    """What a fault of a scenario is now; nothing where its selectors name nobody.

    Raises:
        ValueError: it cannot strike those that they name.
    """
    build = _BUILD.get(type(fault))
    if isinstance(fault, links.SwizzleFault):
        names = choose_all(world, fault.target, fault.id)
        swizzle = Swizzle(id=fault.id, nodes=tuple(names), period_us=fault.period_us)
        return [swizzle]
    assert build is not None, f"{fault.KIND} has no builder"
    if isinstance(fault, base.NodeFault):
        names = choose_all(world, fault.target, fault.id)
        is_one = len(names) == 1
        return [
            build(world, fault, fault.id if is_one else f"{fault.id}/{name}", name)
            for name in names
        ]
    if isinstance(fault, links.PartitionFault):
        groups = choose_groups(world, fault.target, fault.id)
        return [Cut(id=fault.id, edges=partition_edges(groups), in_flight=fault.in_flight)]
    assert isinstance(fault, base.LinkFault)
    edges = _edges(world, fault.target, fault.id)
    return [build(world, fault, fault.id, edges)] if edges else []


def _edges(world: World, ends: base.Links, key: str) -> tuple[Edge, ...]:
    sources = _ends(world, ends.sources, f"{key}/from", [])
    targets = _ends(world, ends.targets, f"{key}/to", sources)
    edges = [(one, other) for one in sources for other in targets if one != other or one == "*"]
    if ends.both:
        edges += [(other, one) for one, other in edges if (other, one) not in edges]
    return tuple(edges)


def _ends(
    world: World, selectors: tuple[Selector, ...] | None, key: str, without: list[str]
) -> list[str]:
    return ["*"] if selectors is None else choose_all(world, selectors, key, without)


# Links -------------------------------------------------------------------------------------------


def _rule(kind: type[Any], *names: str) -> Callable[..., Fault]:
    """A rule whose keys have the names of the fault's."""

    def build(world: World, fault: Any, fault_id: str, edges: tuple[Edge, ...]) -> Fault:
        values = {name: getattr(fault, name) for name in names}
        if fault.only:
            values["only"] = frozenset(fault.only)
        rule: Fault = kind(id=fault_id, edges=edges, **values)
        return rule

    return build


def _reset(world: World, fault: links.ResetFault, fault_id: str, edges: tuple[Edge, ...]) -> Fault:
    half_open = None if fault.half_open is None else choose(world, fault.half_open, fault_id)
    if half_open == []:
        raise ValueError(f"half_open is {fault.half_open}, which names nobody now")
    return ResetOn(
        id=fault_id,
        edges=edges,
        only=frozenset(fault.only),
        when=fault.moment,
        ppm=fault.ppm,
        times=fault.times,
        half_open=half_open[0] if half_open else None,
    )


# Nodes -------------------------------------------------------------------------------------------


def _node(kind: type[Any], *names: str) -> Callable[..., Fault]:
    """A fault of a node whose keys have the names of the scenario's."""

    def build(world: World, fault: Any, fault_id: str, node: str) -> Fault:
        built: Fault = kind(
            id=fault_id, node=node, **{name: getattr(fault, name) for name in names}
        )
        return built

    return build


def _slow(world: World, fault: nodes.SlowFault, fault_id: str, node: str) -> Fault:
    if fault.disk is not None:
        return faults.DiskSlow(
            id=fault_id,
            node=node,
            factor_ppm=fault.disk.factor_ppm,
            addend_us=fault.disk.addend_us,
        )
    if fault.cpu is not None:
        return faults.SlowCpu(id=fault_id, node=node, factor_ppm=fault.cpu.factor_ppm)
    assert fault.link is not None
    return Slow(
        id=fault_id,
        edges=isolate_edges([node]),
        factor_ppm=fault.link.factor_ppm,
        addend_us=fault.link.addend_us,
    )


def _failpoint(world: World, fault: nodes.FailpointFault, fault_id: str, node: str) -> Fault:
    failpoint = Failpoint(
        id=fault_id,
        point=fault.point,
        hit=fault.hit,
        action=fault.action,
        duration_us=fault.duration_us,
        image=fault.image,
    )
    return faults.AtFailpoint(id=fault_id, node=node, failpoint=failpoint)


def _hold(world: World, fault: nodes.BackgroundHoldFault, fault_id: str, node: str) -> Fault:
    return faults.BackgroundHold(id=fault_id, node=node, kinds=frozenset(fault.work))


def _fill(world: World, fault: nodes.FillFault, fault_id: str, node: str) -> Fault:
    return faults.DiskFill(id=fault_id, node=node, free_bytes=fault.free)


def _disk_call(
    world: World, fault: base.DiskFault, fault_id: str, node: str, **values: Any
) -> Fault:
    call = DiskFault(id=fault_id, path=fault.path, after=fault.skip, times=fault.times, **values)
    return faults.DiskCallFault(id=fault_id, node=node, fault=call)


def _fsync_fail(world: World, fault: nodes.FsyncFailFault, fault_id: str, node: str) -> Fault:
    values = {"kind": "fsync-fail", "content": fault.content, "report": fault.report}
    return _disk_call(world, fault, fault_id, node, **values)


def _same_name(world: World, fault: base.DiskFault, fault_id: str, node: str) -> Fault:
    """``fsync-lie``, ``fsync-read-only``, ``lost-write``."""
    return _disk_call(world, fault, fault_id, node, kind=fault.KIND)


def _enospc(world: World, fault: nodes.EnospcFault, fault_id: str, node: str) -> Fault:
    if fault.late:
        return _disk_call(world, fault, fault_id, node, kind="late-enospc")
    return _disk_call(
        world,
        fault,
        fault_id,
        node,
        kind="error",
        operation="write_at",
        errno=errno.ENOSPC,
        partial_bytes=fault.partial_bytes,
    )


def _eio(world: World, fault: nodes.EioFault, fault_id: str, node: str) -> Fault:
    return _disk_call(
        world,
        fault,
        fault_id,
        node,
        kind="error",
        operation=fault.call,
        errno=errno.EIO,
        partial_bytes=fault.partial_bytes,
    )


def _split_write(world: World, fault: nodes.SplitWriteFault, fault_id: str, node: str) -> Fault:
    return _disk_call(
        world, fault, fault_id, node, kind="split-write", partial_bytes=fault.partial_bytes
    )


def _misdirected(
    world: World, fault: nodes.MisdirectedWriteFault, fault_id: str, node: str
) -> Fault:
    return _disk_call(
        world, fault, fault_id, node, kind="misdirected-write", shift_bytes=fault.shift_bytes
    )


def _clog(world: World, fault: links.ClogFault, fault_id: str, edges: tuple[Edge, ...]) -> Fault:
    return Clog(id=fault_id, edges=edges, only=frozenset(fault.only))


def _metadata_lag(world: World, fault: links.MetadataLagFault, fault_id: str, node: str) -> Fault:
    if node not in world.hosts:
        raise ValueError(f"there is no {node} yet, whom it could strike")
    return faults.MetadataLag(id=fault_id, node=node, records=fault.records)


def _short_read(world: World, fault: nodes.ShortReadFault, fault_id: str, node: str) -> Fault:
    return _disk_call(
        world, fault, fault_id, node, kind="short-read", partial_bytes=fault.partial_bytes
    )


def _write_back_fail(
    world: World, fault: nodes.WriteBackFailFault, fault_id: str, node: str
) -> Fault:
    return _disk_call(world, fault, fault_id, node, kind="write-back-fail", content=fault.content)


def _whole_disk(kind: str) -> Callable[..., Fault]:
    """A fault of all calls, until its end."""

    def build(world: World, fault: base.NodeFault, fault_id: str, node: str) -> Fault:
        call = DiskFault(id=fault_id, kind=kind, times=None)
        return faults.DiskCallFault(id=fault_id, node=node, fault=call)

    return build


def _bad_sector(world: World, fault: nodes.BadSectorFault, fault_id: str, node: str) -> Fault:
    path, byte = drawn_at_rest(world, node, fault, fault_id)
    call = DiskFault(id=fault_id, kind="error", operation="read_at", path=str(path), times=None)
    return faults.BadSectors(id=fault_id, node=node, fault=call, byte=byte)


def _bit_rot(world: World, fault: nodes.BitRotFault, fault_id: str, node: str) -> Fault:
    path, byte = drawn_at_rest(world, node, fault, fault_id)
    left, mask = list(range(8)), 0
    for at in range(fault.bits):
        mask |= 1 << left.pop(world.draws.below(len(left), "bit-rot", fault_id, at))
    place = str(fault.partition)
    return faults.BitRot(
        id=fault_id, node=node, path=str(path), byte=byte, mask=mask, partition=place
    )


_BUILD: dict[type[base.Fault], Callable[..., Fault]] = {
    links.CutFault: _rule(Cut, "in_flight", "backoff_cap_us"),
    links.PartitionFault: _rule(Cut, "in_flight"),
    links.ClogFault: _clog,
    links.LossFault: _rule(Loss, "ppm"),
    links.ResetFault: _reset,
    links.RefuseFault: _rule(Refuse, "hangs_us"),
    links.LimitFault: _rule(Limit, "bytes_per_s", "buffer_bytes"),
    links.CorruptFault: _rule(Corrupt, "bits", "ppm", "times"),
    links.DuplicateFault: _rule(Duplicate, "ppm"),
    links.ReorderFault: _rule(Reorder, "ppm", "up_to_us"),
    links.FlapFault: _rule(Flap, "in_flight", "period_us", "duty_ppm"),
    links.MetadataLagFault: _metadata_lag,
    nodes.CrashFault: _node(faults.Crash, "how", "image"),
    nodes.CrashLoopFault: _node(faults.CrashLoop, "calls", "how", "image", "restart_after_us"),
    nodes.FailpointFault: _failpoint,
    nodes.PauseFault: _node(faults.HostPause),
    nodes.SlowFault: _slow,
    nodes.BackgroundHoldFault: _hold,
    nodes.ClockStepFault: _node(faults.ClockStep, "by_us"),
    nodes.ClockDriftFault: _node(faults.ClockDrift, "wall_ppm", "mono_ppm"),
    nodes.ClockFreezeFault: _node(faults.ClockFreeze, "also_mono"),
    nodes.ClockStrobeFault: _node(faults.ClockStrobe, "by_us", "period_us"),
    nodes.TimerJitterFault: _node(faults.TimerJitter, "ppm"),
    nodes.StallFault: _node(faults.DiskStall, "duration_us"),
    nodes.FillFault: _fill,
    nodes.FsyncFailFault: _fsync_fail,
    nodes.FsyncLieFault: _same_name,
    nodes.FsyncReadOnlyFault: _same_name,
    nodes.EnospcFault: _enospc,
    nodes.EioFault: _eio,
    nodes.SplitWriteFault: _split_write,
    nodes.LostWriteFault: _same_name,
    nodes.MisdirectedWriteFault: _misdirected,
    nodes.ShortReadFault: _short_read,
    nodes.WriteBackFailFault: _write_back_fail,
    nodes.ReadOnlyFault: _whole_disk("read-only"),
    nodes.DiskGoneFault: _whole_disk("gone"),
    nodes.BadSectorFault: _bad_sector,
    nodes.BitRotFault: _bit_rot,
}
