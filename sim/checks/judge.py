"""Looks on at a world, and says what rules were broken, where, and at which event.

    judge = Judge(world)
    ...                       # let the world go on
    judge.finish()
    judge.violations          # the first of each identity, in order
    judge.facts.lost("acked")

A judge changes nothing: without violations a run has the same events and the same digest with and
without it. A violation is an event of kind ``check``. A copied world has a copied judge:
``Judge.of(world)``.

The work behind an event depends on what the event changed, not on the length of logs. Logs are
compared as a whole at power losses, starts and at ``finish``; with ``is_paranoid`` behind every
event, with all files read anew.

Left out: verdicts, histories of clients.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.broker import Broker
from cluster.controller import Controller
from cluster.names import CONTROLLER
from sim.checks import audit, losses, progress
from sim.checks.brokers import BrokerWatch
from sim.checks.clients import ClientWatch
from sim.checks.controllers import ControllerWatch
from sim.checks.facts import Facts
from sim.checks.scene import Scene
from sim.checks.violations import Violation
from sim.process import Process, Task
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["Judge"]


class Judge:
    """See the module.

    Attributes:
        facts: for expectations.
        doubts: what does not add up in the ledger itself, when the run is over; it never should.
        mismatches: with ``is_paranoid``, where a mirror differed from the files; it never should.
    """

    def __init__(self, world: World, *, is_paranoid: bool = False) -> None:
        """Look on from now on; best before the world's first step.

        Raises:
            ValueError: somebody looks on already.
        """
        if world.kernel.observer is not None:
            raise ValueError("this world has a judge already: Judge.of(world)")
        self.scene = Scene(world)
        self.facts = Facts(self.scene)
        self.is_paranoid = is_paranoid
        self.doubts: list[str] = []
        self.mismatches: list[str] = []
        self._controller = ControllerWatch(self.scene)
        self._clients = ClientWatch(self.scene)
        self._brokers = {
            name: BrokerWatch(self.scene, name, world.hosts[name].require_disk().files)
            for name in world.config.names
        }
        self._look_on(world)

    def _look_on(self, world: World) -> None:
        world.kernel.observer = self
        if self.is_paranoid:
            world.watchers.append(self._look_at_everything)

    @classmethod
    def of(cls, world: World) -> Judge:
        """The judge of a world, of a copied one too.

        Raises:
            ValueError: it has none.
        """
        if not isinstance(world.kernel.observer, cls):
            raise ValueError("this world has no judge")
        return world.kernel.observer

    @property
    def violations(self) -> list[Violation]:
        """The first of each identity (check, partition, kind), in order."""
        return self.scene.violations

    def finish(self) -> list[Violation]:
        """The run is over: compare everything once more, and judge progress. Returns all."""
        event = self.scene.world.trace.count
        for watch in self._brokers.values():
            watch.look_at_rot(event)
            watch.deep(event)
        for ledger in list(self.scene.ledgers.values()):
            losses.note_nowhere(self.scene, ledger, event)
        progress.check(self.scene, event)
        self.doubts = audit.doubts(self.scene)
        return self.violations

    # What the world tells ----------------------------------------------------------------------

    def on_handled(self, process: Process, number: int, task: Task, effects: Sequence[Any]) -> None:
        """A handler has run."""
        machine, node = process.machine, process.host.name
        watch = self._brokers.get(node)
        if watch is not None:
            if isinstance(machine, Broker):
                watch.handled(process, machine, number, task, effects)
        elif node == CONTROLLER and isinstance(machine, Controller):
            self._controller.handled(machine, number, task, effects)
        if task.kind is Kind.SHUTDOWN:
            # A heartbeat that is under way does not say so yet; no cause leads back from the next.
            self.scene.note_blow((node,), number)
        if task.kind is Kind.START or task.kind is Kind.STEP or task.kind is Kind.SHUTDOWN:
            self.on_disturbed(node)

    def on_disk_call(
        self, node: str, operation: str, path: Path, position: int, size_bytes: int
    ) -> None:
        """A call of a disk took effect."""
        watch = self._brokers.get(node)
        if watch is not None:
            watch.files.on_disk_call(operation, path, position, size_bytes)

    def before_power_cut(self, node: str) -> None:
        """The power is about to go."""
        if node in self._brokers:
            self._brokers[node].before_end(self.scene.world.trace.count, is_power=True)

    def on_end(self, node: str, how: str, number: int) -> None:
        """A process has ended."""
        self.scene.note_blow((node,), number)
        self.on_disturbed(node)
        self.scene.ends[node] = how, number
        watch = self._brokers.get(node)
        if watch is not None:
            if how != "power":
                watch.before_end(number - 1, is_power=False)
            watch.ended(how, number)

    def on_disk_replaced(self, node: str) -> None:
        """A host has other files."""
        if node in self._brokers:
            self._brokers[node].replaced(self.scene.world.trace.count)

    def on_damaged(self, node: str) -> None:
        """Bytes of a disk were changed behind everybody's back."""
        if node in self._brokers:
            self.scene.damages[node] = self.scene.world.trace.count
            self._brokers[node].look_at_rot(self.scene.world.trace.count)

    def on_disturbed(self, node: str) -> None:
        """Something has happened that is no part of a quiet world."""
        self.scene.disturbed_us = self.scene.world.now_us

    def on_struck(self, fault_id: str, nodes: Sequence[str], number: int) -> None:
        """A fault begins."""
        self.scene.begun[fault_id] = number
        self.scene.note_blow(tuple(nodes), number)

    def on_outcome(self, node: str, outcome: Any, acks: int, number: int) -> None:
        """A producer knows what became of a record."""
        self._clients.on_outcome(node, outcome, number)

    def on_polled(self, node: str, record: Any, number: int) -> None:
        """A consumer hands a record over."""
        self._clients.on_polled(node, record, number)

    def on_position(self, node: str, event: Any, number: int) -> None:
        """A consumer tells of anything else."""
        self._clients.on_position(node, event, number)

    # Paranoid ----------------------------------------------------------------------------------

    def _look_at_everything(self, world: World) -> None:
        """Every mirror against its files, and every check of whole logs."""
        event = world.trace.count
        for name, watch in self._brokers.items():
            watch.look_at_rot(event)
            for place in watch.places.values():
                mirror = place.mirror
                mirror.refresh()
                before, changed = list(mirror.batches), mirror.has_changed
                mirror.read_all()
                mirror.has_changed = changed
                if before != mirror.batches:
                    where = f"{name}/{mirror.directory} at event {event}"
                    self.mismatches.append(f"{where}: {before} followed, {mirror.batches} read")
            watch.deep(event)
