"""Ending all faults inside a core of the cluster, and freezing those outside for ever.

The core is everybody, or drawn by keyed chance (``core_of``): the controller, for each partition
somebody who may lead it, and each other broker with one chance in two. Inside it faults end,
failpoints and fuses are disarmed, clocks run at the right speed, paused hosts go on, and hosts that
are down are started; clients always belong to it. Outside, faults stay as they are; of a fault of
links those parts stay that touch a broker outside. What ends by itself (a stall, a failpoint's
pause) ends there too.

A process of the core that ends by itself is started again, as a supervisor would. It is given up
where its directory cannot be opened, where its disk is full, and behind ``STARTS_MAX`` times.

Left out: whether the cluster recovers by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import define, evolve, field

from cluster.names import CONTROLLER
from cluster.records import PartitionRecord
from sim.checks.judge import Judge
from sim.faults import ClockStep, HostFault
from sim.hosts import Host
from sim.liveness.snapshot import Culprit
from sim.network_rules import Edge, Rule
from sim.plans import begin, end
from sim.world import World

__all__ = ["FULL_BYTES", "RESTART_US", "STARTS_MAX", "Healing", "core_of", "is_full"]

STARTS_MAX: Final = 3
RESTART_US: Final = 1_000_000
FULL_BYTES: Final = 4_096


def core_of(world: World, kind: str) -> frozenset[str]:
    """The nodes that are healed.

    For a partition the first choice is somebody in sync who is running, fenced by nobody, and has
    a sound log; where there is none, all of ISR and ELR belong to the core, since the one that is
    fenced last stays in the ISR.

    Args:
        kind: ``all`` or ``drawn``.
    """
    names = world.config.names
    if kind == "all":
        return frozenset((CONTROLLER, *names))
    core = {CONTROLLER}
    for name in names:
        if world.draws.below(2, "liveness-core", name):
            core.add(name)
    image = world.view().image()
    for record in image.partitions():
        where = str(record.partition)
        fit = [name for name in record.isr if image.is_active(name) and _is_fit(world, name)]
        if fit and not core & set(fit):
            core.add(fit[world.draws.below(len(fit), "liveness-core", where)])
        elif not fit:
            core.update(_candidates(record))
    return frozenset(core)


def is_full(host: Host) -> bool:
    """Whether a disk has no room for another batch, by its own size."""
    files = None if host.disk is None else host.disk.files
    if files is None or files.capacity_bytes is None:
        return False
    return files.capacity_bytes - files.used_bytes() < FULL_BYTES


def _is_fit(world: World, name: str) -> bool:
    return world.host(name).status == "running"


def _candidates(record: PartitionRecord) -> tuple[str, ...]:
    found = (*record.isr, *record.elr)
    return found or record.last_known_elr or record.replicas


@define(eq=False)
class Healing:
    """See the module.

    Attributes:
        core: the nodes that are healed.
        impaired: brokers outside the core that a fault stays with, their own or of a link to
            others than such brokers; and which.
        given_up: nodes of the core that cannot live, and why.
    """

    world: World
    judge: Judge
    core: frozenset[str]
    impaired: dict[str, Culprit] = field(factory=dict)
    given_up: dict[str, Culprit] = field(factory=dict)
    _starts: dict[str, int] = field(factory=dict)
    _down_us: dict[str, int] = field(factory=dict)

    def heal(self) -> None:
        """End the faults of the core; start and resume who belongs to it."""
        world = self.world
        for fault_id in list(world.active_faults):
            fault = world.faults[fault_id]
            if isinstance(fault, HostFault):
                if self._is_core(fault.node):
                    end(world, fault_id)
                else:
                    self._note(fault.node, fault_id)
            elif isinstance(fault, Rule):
                self._heal_links(fault)
            else:
                end(world, fault_id)
        for host in list(world.hosts.values()):
            if self._is_core(host.name):
                self._heal_host(host)
        self.keep_alive()

    def _is_core(self, name: str) -> bool:
        """Clients and the operator are always healed."""
        return name in self.core or name not in (CONTROLLER, *self.world.config.names)

    def _note(self, name: str, fault_id: str) -> None:
        """A fault stays with a broker; one that is over as soon as it has begun does no harm."""
        fault, number = self.world.faults[fault_id], self.world.active_faults[fault_id]
        if isinstance(fault, ClockStep):
            return
        text = f"a fault ({type(fault).__name__}) stays with {name}"
        before = self.impaired.get(name)
        if before is not None:
            text, number = f"faults stay with {name}", before.event
            fault_id = f"{before.fault}, {fault_id}"
        self.impaired[name] = Culprit(text, number, fault_id)

    def _heal_links(self, rule: Rule) -> None:
        """What is left of a fault of links: those that touch a broker outside."""
        world = self.world
        outside = [name for name in world.config.names if not self._is_core(name)]
        edges = list(dict.fromkeys(_narrowed(rule.edges, outside)))
        if not edges:
            end(world, rule.id)
            return
        for name in outside:
            # Links among those outside are nobody else's business.
            if any(name in edge and not set(edge) <= set(outside) for edge in edges):
                self._note(name, rule.id)
        if edges != list(rule.edges):
            number = world.active_faults[rule.id]
            end(world, rule.id)
            left = evolve(rule, id=f"{rule.id}/frozen", edges=tuple(edges))
            world.faults[left.id] = left
            begin(world, left.id, (number,))

    def _heal_host(self, host: Host) -> None:
        host.failpoints.armed.clear()
        host.failpoints.hits.clear()
        host.failpoints.yields = frozenset()
        if host.disk is not None:
            host.disk.files.disarm_fuse()
        self._set_clock(host)
        if host.is_paused:
            self.world.resume(host.name)

    def _set_clock(self, host: Host) -> None:
        now_us = self.world.now_us
        # A wall clock that is off stays so: setting it right would be another step.
        host.drifts.clear()
        host.freezes.clear()
        host.clock.thaw(now_us)
        host.clock.set_drift(now_us, wall_ppm=0, mono_ppm=0)
        host.reclock()

    # Afterwards --------------------------------------------------------------------------------

    def frozen_event(self, name: str) -> int:
        """The event of a fault that stays with a broker, 0 for none."""
        found = self.impaired.get(name)
        return 0 if found is None else found.event

    def keep_alive(self) -> None:
        """Start whoever of the core is down, unless it is given up."""
        world = self.world
        for host in list(world.hosts.values()):
            name = host.name
            if host.is_running or not self._is_core(name) or name in self.given_up:
                continue
            if host.failed_start is not None and name in self._starts:
                self._give_up(name, f"{name} cannot start ({host.failed_start.code})")
                continue
            if name in self._starts and is_full(host):
                self._give_up(name, f"{name} has ended for want of room on its disk")
                continue
            if self._starts.get(name, 0) > STARTS_MAX:
                self._give_up(name, f"{name} has ended by itself {STARTS_MAX} times")
                continue
            down_us = self._down_us.setdefault(name, world.now_us)
            if name in self._starts and world.now_us - down_us < RESTART_US:
                continue
            del self._down_us[name]
            self._starts[name] = self._starts.get(name, 0) + 1
            world.start(name)

    def _give_up(self, name: str, text: str) -> None:
        _, event = self.judge.scene.ends.get(name, ("", 0))
        self.given_up[name] = Culprit(text, event)


def _narrowed(edges: Iterable[Edge], outside: list[str]) -> Iterable[Edge]:
    """The parts of edges that touch a node outside."""
    for src, dst in edges:
        if src in outside or dst in outside:
            yield src, dst
            continue
        if src == "*":
            yield from ((name, dst) for name in outside if name != dst)
        if dst == "*":
            yield from ((src, name) for name in outside if name != src)
