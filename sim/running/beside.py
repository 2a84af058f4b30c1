"""What runs beside the steps: the faults and the workloads of a scenario.

A fault begins at its time, or at the first moment at which its condition holds, and ends likewise.
A workload is a client that sends a record every so often, or reads whatever there is.

Left out: what a fault is in the world (``sim.running.fault_building``).
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from sim.pending import VerbFailed
from sim.running.acting import Acting
from sim.running.fault_building import world_faults
from sim.running.without import Without
from sim.scenario.fault_base import Fault, When
from sim.scenario.model import Scenario, Workload
from sim.timeline import EventClass
from sim.world import WorldError

__all__ = ["Beside"]


@define(eq=False)
class Beside:
    """See the module.

    Attributes:
        failed: what could not be done; the interpreter takes it from here. Where it does not pass
            over such things, nothing is begun behind the first.
        begun: ids of the faults that began since the interpreter took them from here last.
        begun_us, ended_us: when faults began and ended, by id, from time 0.
        added: faults that came to those of the scenario while it ran.
        without: what is left out; the rest then waits for its moment (``sim.running.without``).
    """

    acting: Acting
    scenario: Scenario
    without: Without | None = None
    failed: list[str] = field(factory=list)
    begun: list[str] = field(factory=list)
    begun_us: dict[str, int] = field(factory=dict)
    ended_us: dict[str, int] = field(factory=dict)
    added: tuple[Fault, ...] = ()
    _zero_us: int = 0
    _end_us: int = 0
    _to_begin: list[Fault] = field(factory=list)
    _to_end: list[Fault] = field(factory=list)
    _never_begun: dict[str, None] = field(factory=dict)
    _is_over: bool = False
    _resting: list[tuple[Workload, int]] = field(factory=list)

    def begin(self, zero_us: int, end_us: int) -> None:
        """Time 0 has come."""
        self._zero_us, self._end_us = zero_us, end_us
        self._never_begun = dict.fromkeys(fault.id for fault in self.scenario.faults)
        for fault in self.scenario.faults:
            if self.without is not None and fault.id in self.without.faults:
                continue
            self._await(fault, fault.start, self._to_begin, self._begin_fault)
        for workload in self.scenario.workloads:
            at_us = zero_us + workload.start_us
            origin = f"workload:{workload.name}"
            timeline = self.acting.world.timeline
            timeline.at(at_us, EventClass.CLIENT, origin, self._work, workload, 0)

    def add(self, fault: Fault) -> None:
        """One more fault, at a time that is to come (``sim.running.live``)."""
        self.added = (*self.added, fault)
        self._never_begun[fault.id] = None
        self._await(fault, fault.start, self._to_begin, self._begin_fault)

    def never_begun(self) -> list[str]:
        """Ids of the faults whose time or moment has not come so far."""
        return list(self._never_begun)

    def go_on(self, end_us: int) -> None:
        """The run is over: workloads go on up to a time, and no fault begins or ends any more.

        A second call with another time holds from then on.
        """
        self._is_over, self._end_us = True, end_us
        resting, self._resting = self._resting, []
        for workload, ordinal in resting:
            self._work(workload, ordinal)

    @property
    def _is_ended(self) -> bool:
        """Something has failed that ends the run."""
        return bool(self.failed) and not self.acting.passes_over

    # Faults ------------------------------------------------------------------------------------

    def _await(
        self, fault: Fault, when: When, waiting: list[Fault], call: Callable[[Fault], None]
    ) -> None:
        """Call at a time, or let ``after_entry`` look for its moment."""
        if when.at_us is None:
            if self.without is None or self._moment_us(fault, waiting) is not None:
                waiting.append(fault)
            return
        timeline = self.acting.world.timeline
        at_us = max(self._zero_us + when.at_us, timeline.now_us)
        timeline.at(at_us, EventClass.FAULT, f"fault:{fault.id}", call, fault)

    def _moment_us(self, fault: Fault, waiting: list[Fault]) -> int | None:
        """When it began or ended in the run in which nothing was left out, in the world's time."""
        assert self.without is not None
        moments = self.without.moments
        known = moments.faults if waiting is self._to_begin else moments.ends
        return self._zero_us + known[fault.id] if fault.id in known else None

    def moments_us(self) -> list[int]:
        """When what waits for its condition began or ended before; of what is overdue, too."""
        known = [
            self._moment_us(fault, waiting)
            for waiting in (self._to_begin, self._to_end)
            for fault in waiting
        ]
        return [each for each in known if each is not None]

    def begin_overdue(self) -> None:
        """Begin and end what has waited for its condition until its moment, and in vain."""
        for waiting, call in (
            (self._to_begin, self._begin_fault),
            (self._to_end, self._end_fault),
        ):
            for fault in list(waiting):
                if not self._is_early(fault, waiting):
                    waiting.remove(fault)
                    call(fault)

    def _is_early(self, fault: Fault, waiting: list[Fault]) -> bool:
        if self.without is None:
            return False
        moment_us = self._moment_us(fault, waiting)
        return moment_us is not None and self.acting.world.now_us < moment_us

    def after_entry(self) -> None:
        """Something may have changed: conditions of faults may hold."""
        env = self.acting.env
        for fault in list(self._to_begin):
            if self._is_early(fault, self._to_begin):
                continue
            if fault.start.that is not None and fault.start.that.evaluate(env):
                self._to_begin.remove(fault)
                self._begin_fault(fault)
        for fault in list(self._to_end):
            end = fault.end
            if self._is_early(fault, self._to_end):
                continue
            if end is not None and end.that is not None and end.that.evaluate(env):
                self._to_end.remove(fault)
                self._end_fault(fault)

    def _begin_fault(self, fault: Fault) -> None:
        if self._is_ended or self._is_over:
            return
        self._never_begun.pop(fault.id, None)
        try:
            found = world_faults(self.acting.world, fault)
        except ValueError as error:
            self.failed.append(f"fault {fault.id!r}: {error}")
            return
        if not found:
            text = f"fault {fault.id!r} strikes nobody: its target names nobody now"
            self.failed.append(text)
            return
        for each in found:
            self.acting.begin(fault.id, each, ())
        self.begun.append(fault.id)
        self.begun_us[fault.id] = self.acting.world.now_us - self._zero_us
        if fault.end is not None:
            self._await(fault, fault.end, self._to_end, self._end_fault)

    def _end_fault(self, fault: Fault) -> None:
        if self._is_over:
            return
        self.ended_us[fault.id] = self.acting.world.now_us - self._zero_us
        self.acting.end(fault.id, ())

    # Workloads ---------------------------------------------------------------------------------

    def _work(self, workload: Workload, ordinal: int) -> None:
        """One turn of a workload, and its next."""
        world, cluster = self.acting.world, self.acting.cluster
        stop_us = self._end_us if workload.stop_us is None else self._zero_us + workload.stop_us
        if world.now_us >= stop_us or self._is_ended:
            if workload.stop_us is None:
                self._resting.append((workload, ordinal))
            return
        cluster.cause = ()
        topic, partition = workload.topic
        try:
            if workload.kind == "consumer":
                cluster.follow(
                    topic,
                    partition,
                    reset=workload.reset,
                    group=workload.group,
                    client=workload.name,
                )
                if workload.stop_us is not None:
                    origin = f"workload:{workload.name}"
                    world.timeline.at(stop_us, EventClass.CLIENT, origin, self._stop, workload)
                return
            name = f"{workload.name}-{ordinal}"
            value = name.ljust(workload.record_bytes, ".")
            keys = [f"k{ordinal % workload.keys}"] if workload.keys else None
            cluster.produce(
                topic,
                [value],
                keys=keys,
                acks=workload.acks,
                partition=partition,
                batch=workload.batch,
                idempotence=workload.is_idempotent,
                client=workload.name,
            )
        except (VerbFailed, WorldError) as error:
            self.failed.append(f"workload {workload.name!r}: {error}")
            if not self.acting.passes_over or workload.kind == "consumer":
                return
        assert workload.interval_us is not None
        at_us = world.now_us + workload.interval_us
        origin = f"workload:{workload.name}"
        world.timeline.at(at_us, EventClass.CLIENT, origin, self._work, workload, ordinal + 1)

    def _stop(self, workload: Workload) -> None:
        """A consumer hands nothing over any more."""
        for name, notes in self.acting.world.consumers.items():
            if name == workload.name:
                for reading in list(notes.readings):
                    notes.give_up(reading)
