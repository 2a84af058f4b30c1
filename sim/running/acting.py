"""Carrying out the action of a step: what it does at once, and what it then waits for.

Left out: when a step begins (``sim.running.interpreter``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field

from sim import faults
from sim.failpoints import Failpoint
from sim.faults import Fault
from sim.network_rules import Cut, Slow, isolate_edges, partition_edges
from sim.plans import begin, end
from sim.running.damage import damage
from sim.running.progress import Ended, Holds, Outcome, Progress, Reached, Settled
from sim.running.selection import Chosen
from sim.scenario import actions
from sim.scenario.build import assignments_of
from sim.scenario.kafka_keys import CLUSTER_KEYS, cluster_value
from sim.scenario.model import Step
from sim.scenario.names import PartitionName
from sim.scenario.terms import Environment
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World, WorldError

__all__ = ["Acting", "CannotAct"]


class CannotAct(Exception):
    """A step has nothing to act on when its time has come; says why."""


@define(eq=False)
class Acting:
    """The hands of an interpreter.

    Attributes:
        begun: ids of the world's faults by the id that the scenario knows them by.
        env: what expressions are evaluated in.
        passes_over: whether a step of several nodes, or faults, goes on behind one where it cannot
            act.
        sent: number of the step, and of its record from 0, by client and operation.
    """

    world: World
    cluster: Cluster
    env: Environment = field(factory=dict)
    begun: dict[str, list[str]] = field(factory=dict)
    passes_over: bool = False
    sent: dict[tuple[str, int], tuple[int, int]] = field(factory=dict)
    _passed_over: list[str] = field(factory=list)
    _chosen: Chosen = field(factory=dict)

    def do(self, step: Step, number: int, chosen: Chosen) -> Progress:
        """Begin a step; ``number`` is the event that says so, ``chosen`` whom it means.

        Raises:
            CannotAct, NothingThere, WorldError, VerbFailed: it cannot be done as things are.
        """
        self.cluster.cause = (number,)
        action: Any = step.action
        for name, names in chosen.items():
            _require_somebody(getattr(action, name), names)
        self._chosen = chosen
        return _ACTS[type(action)](self, step, action, (number,))

    def take_passed_over(self) -> list[str]:
        """Why it could not act on some of those that were meant, since this was asked last."""
        found, self._passed_over = self._passed_over, []
        return found

    def _each(self, act: Callable[..., object], *args: Any, **values: Any) -> None:
        """Act on one of several nodes."""
        try:
            act(*args, **values)
        except WorldError as error:
            if not self.passes_over:
                raise
            self._passed_over.append(str(error))

    @property
    def nodes(self) -> list[str]:
        """The nodes of a step that has ``nodes``."""
        found: list[str] = self._chosen["nodes"]
        return found

    # Clients -----------------------------------------------------------------------------------

    def produce(self, step: Step, action: actions.Produce, cause: tuple[int, ...]) -> Progress:
        topic, partition = action.to
        values: Any = action.values
        if values is None:
            values = action.size
        pending = self.cluster.produce(
            topic,
            values,
            keys=action.keys,
            acks=action.acks,
            partition=partition,
            batch=action.batch,
            timeout_us=action.timeout_us,
            idempotence=action.is_idempotent,
            client=action.client,
        )
        for at, operation in enumerate(pending.operations):
            self.sent[operation] = step.number, at
        return Outcome(pending)

    def consume(self, step: Step, action: actions.Consume, cause: tuple[int, ...]) -> Progress:
        pending = self.cluster.consume(
            action.source.topic,
            action.count,
            partition=action.source.partition,
            offset=self._first(action),
            reset=action.reset,
            group=action.group,
            client=action.client,
        )
        return Outcome(pending)

    def _first(self, action: actions.Consume) -> int | None:
        """Where a consumer begins; None where it goes on, or its ``reset`` says the same.

        With ``earliest``, one that has a position goes on from there.
        """
        if isinstance(action.offset, int):
            return action.offset
        if action.offset == "earliest" and (
            action.reset == "earliest" or action.group is not None or self._has_position(action)
        ):
            return None
        place = action.source
        leader = self.world.view().leader(place.topic, place.partition)
        replica = leader and self.world.view().replica(leader, place.topic, place.partition)
        if not replica or replica.log is None:
            raise CannotAct(f"{place} has no leader that could say what its {action.offset} is")
        if action.offset == "latest":
            return replica.high_watermark
        return replica.log.log_start_offset

    def _has_position(self, action: actions.Consume) -> bool:
        place = action.source.topic, action.source.partition
        config = action.reset, action.group
        return any(
            (notes.config.auto_offset_reset, notes.config.group) == config
            and place in notes.assigned
            and notes.incarnation == self.world.host(name).starts - 1
            for name, notes in self.world.consumers.items()
            if name == action.client or name.startswith(f"{action.client}.")
        )

    # Waiting -----------------------------------------------------------------------------------

    def settle(self, step: Step, action: actions.Settle, cause: tuple[int, ...]) -> Progress:
        return Settled(self.world)

    def wait(self, step: Step, action: actions.Wait, cause: tuple[int, ...]) -> Progress:
        return Holds(action.that, self.env)

    # Processes ---------------------------------------------------------------------------------

    def crash(self, step: Step, action: actions.Crash, cause: tuple[int, ...]) -> Progress:
        names, point = self.nodes, action.at_failpoint
        if point is None:
            for name in names:
                self._each(
                    self.world.crash,
                    name,
                    action.how,
                    image=action.image,
                    cause=cause,
                    fault=_key(step),
                )
            return Progress()
        if len(names) != 1:
            raise CannotAct(f"at_failpoint waits for one node, not for {', '.join(names)}")
        host = self.world.host(names[0])
        if host.process is None:
            raise CannotAct(f"{host.name} is {host.status}: no process runs there")
        failpoint = Failpoint(
            id=_key(step),
            point=point,
            hit=action.hit,
            action=action.how,
            image=action.image,
        )
        self.world.add_failpoint(host.name, failpoint, cause)
        return Reached(host, failpoint)

    def start(self, step: Step, action: actions.Start, cause: tuple[int, ...]) -> Progress:
        for name in self.nodes:
            disk = action.disk
            if disk.startswith("image:"):
                disk = f"{disk.removeprefix('image:')}/{name}"
                if disk not in self.world.disk_copies:
                    raise CannotAct(f"{action.disk} was not taken: that step is not done")
            elif disk.startswith("of:"):
                self.world.copy_disk(disk.removeprefix("of:"), disk)
            self._each(self.world.start, name, disk=disk, cause=cause)
        return Progress()

    def shutdown(self, step: Step, action: actions.Shutdown, cause: tuple[int, ...]) -> Progress:
        processes = []
        for name in self.nodes:
            process = self.world.host(name).process
            self._each(self.world.shutdown, name, cause)
            if process is not None:
                processes.append(process)
        return Ended(processes)

    def pause(self, step: Step, action: actions.Pause, cause: tuple[int, ...]) -> Progress:
        for name in self.nodes:
            self._each(self.cluster.pause, name, fault=_key(step))
        return Progress()

    def resume(self, step: Step, action: actions.Resume, cause: tuple[int, ...]) -> Progress:
        for name in self.nodes:
            self._each(self.cluster.resume, name)
        return Progress()

    def flush(self, step: Step, action: actions.Flush, cause: tuple[int, ...]) -> Progress:
        for name in self.nodes:
            if name not in self.world.config.names:
                raise CannotAct(f"{name} is no broker: it has no logs to flush")
            flush = {"step": "flush"}
            self._each(self.world.call, name, Kind.STEP, flush, "flush_logs", cause=cause)
        return Progress()

    # Faults ------------------------------------------------------------------------------------

    def begin(self, known_as: str, fault: Fault, cause: tuple[int, ...]) -> None:
        """A fault of the world begins, which the scenario knows by another id, or by its own."""
        self.world.faults[fault.id] = fault
        begin(self.world, fault.id, cause)
        self.begun.setdefault(known_as, []).append(fault.id)

    def end(self, known_as: str, cause: tuple[int, ...]) -> None:
        """All faults that the scenario knows by this id are over."""
        for fault_id in self.begun.pop(known_as, []):
            if fault_id in self.world.active_faults:
                end(self.world, fault_id, cause)

    def cut(self, step: Step, action: actions.Cut, cause: tuple[int, ...]) -> Progress:
        sources, targets = self._chosen["sources"], self._chosen["targets"]
        edges = [(one, other) for one in sources for other in targets if one != other]
        if action.both:
            edges += [(other, one) for one, other in edges if (other, one) not in edges]
        if not edges:
            raise CannotAct(f"there is no link from {', '.join(sources)} to {', '.join(targets)}")
        rule = Cut(
            id=_key(step),
            edges=tuple(edges),
            only=frozenset(action.only),
            in_flight=action.in_flight,
        )
        self.begin(_key(step), rule, cause)
        return Progress()

    def partition(self, step: Step, action: actions.Partition, cause: tuple[int, ...]) -> Progress:
        try:
            edges = partition_edges(self._chosen["groups"])
        except ValueError as error:
            raise CannotAct(str(error)) from error
        rule = Cut(id=_key(step), edges=edges, in_flight=action.in_flight)
        self.begin(_key(step), rule, cause)
        return Progress()

    def heal(self, step: Step, action: actions.Heal, cause: tuple[int, ...]) -> Progress:
        for known_as in list(self.begun) if action.is_all else action.ids:
            if known_as not in self.begun:
                active = ", ".join(self.begun) or "none"
                text = f"{known_as!r} is not active, active are: {active}"
                if not self.passes_over:
                    raise CannotAct(text)
                self._passed_over.append(text)
            self.end(known_as, cause)
        return Progress()

    def slow(self, step: Step, action: actions.Slow, cause: tuple[int, ...]) -> Progress:
        key = _key(step)
        for name in self.nodes:
            fault: Fault
            if action.disk is not None:
                fault = faults.DiskSlow(
                    id=f"{key}/{name}",
                    node=name,
                    factor_ppm=action.disk.factor_ppm,
                    addend_us=action.disk.addend_us,
                )
            elif action.cpu is not None:
                fault = faults.SlowCpu(
                    id=f"{key}/{name}", node=name, factor_ppm=action.cpu.factor_ppm
                )
            else:
                assert action.link is not None
                fault = Slow(
                    id=f"{key}/{name}",
                    edges=isolate_edges([name]),
                    factor_ppm=action.link.factor_ppm,
                    addend_us=action.link.addend_us,
                )
            self.begin(key, fault, cause)
        return Progress()

    def fill(self, step: Step, action: actions.Fill, cause: tuple[int, ...]) -> Progress:
        key = _key(step)
        for name in self.nodes:
            fault = faults.DiskFill(id=f"{key}/{name}", node=name, free_bytes=action.free)
            self.begin(key, fault, cause)
        return Progress()

    def corrupt(self, step: Step, action: actions.Corrupt, cause: tuple[int, ...]) -> Progress:
        (name,) = self._chosen["node"]
        damage(self.world, name, action, _key(step), cause)
        return Progress()

    # The operator ------------------------------------------------------------------------------

    def elect(self, step: Step, action: actions.Elect, cause: tuple[int, ...]) -> Progress:
        to = self._chosen["to"][0] if action.to is not None else None
        place = action.partition
        if action.force and to is None:
            to = self._another(place)
        pending = self.cluster.elect(place.topic, place.partition, to=to, kind=action.kind)
        return Outcome(pending)

    def _another(self, place: PartitionName) -> str:
        """The first replica that is active and does not lead."""
        view = self.world.view()
        found = view.partition(place.topic, place.partition)
        if found is None:
            raise CannotAct(f"there is no partition {place} now")
        for name in found.replicas:
            if name != found.leader and view.image().is_active(name):
                return name
        raise CannotAct(f"no replica of {place} is active but its leader, {found.leader}")

    def reassign(self, step: Step, action: actions.Reassign, cause: tuple[int, ...]) -> Progress:
        place = action.partition
        return Outcome(
            self.cluster.reassign(place.topic, place.partition, replicas=action.replicas)
        )

    def config(self, step: Step, action: actions.Config, cause: tuple[int, ...]) -> Progress:
        if action.node is not None:
            values = {
                CLUSTER_KEYS[key].broker: cluster_value(key, value)
                for key, value in action.set.items()
            }
            self.world.configure_broker(action.node, values)
            return Progress()
        return Outcome(self.cluster.configure(str(action.topic), action.set))

    def delete_records(
        self, step: Step, action: actions.DeleteRecords, cause: tuple[int, ...]
    ) -> Progress:
        place = action.partition
        return Outcome(
            self.cluster.delete_records(place.topic, place.partition, before=action.before)
        )

    def create_topic(
        self, step: Step, action: actions.CreateTopic, cause: tuple[int, ...]
    ) -> Progress:
        return Outcome(
            self.cluster.create_topic(
                action.name,
                assignments=assignments_of(action, self.world.config.brokers),
                config=action.config,
            )
        )

    def delete_topic(
        self, step: Step, action: actions.DeleteTopic, cause: tuple[int, ...]
    ) -> Progress:
        return Outcome(self.cluster.delete_topic(action.name))


def _require_somebody(selectors: Any, names: list[Any]) -> None:
    """Refuse to act on nobody."""
    if names and isinstance(names[0], list):
        for group, inner in zip(selectors, names, strict=True):
            _require_somebody(group, inner)
    elif not names:
        several = selectors if isinstance(selectors, tuple) else (selectors,)
        words = ", ".join(map(str, several))
        raise CannotAct(f"{words} names nobody now")


def _key(step: Step) -> str:
    """By what the trace and draws know a step."""
    return step.fault_id


_ACTS: dict[type, Callable[..., Progress]] = {
    kind: getattr(Acting, name) for name, kind in actions.ACTIONS.items()
}
