"""What the world takes down of its clients: outcomes of producers, events of consumers.

A client is a host without a disk. What it tells its user goes into the trace as it becomes known,
and waits here for whoever asked.

Left out: what users ask of clients (``sim.verbs``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define, field

from cluster.config import ConsumerConfig, ProducerConfig
from cluster.consumer import Consumer
from cluster.consumer_events import ConsumerEvent, PolledRecord
from cluster.machine import Machine
from cluster.names import CONTROLLER
from cluster.outcomes import Outcome, OutcomeKind
from cluster.producer import Producer
from sim.cluster_config import ClusterConfig
from sim.hosts import Host
from sim.plain import plain, shown
from sim.process import Process
from sim.trace.kinds import Kind

__all__ = ["ClientFactory", "ConsumerNotes", "ProducerNotes"]


class ClientFactory:
    """Makes the machine of a client's next process."""

    def __init__(
        self,
        cluster: ClusterConfig,
        kind: type[Producer | Consumer],
        config: ProducerConfig | ConsumerConfig,
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._config = config

    def build(self, host: Host) -> Machine:
        """The machine of a client that knows all brokers."""
        kind: Any = self._kind
        machine: Machine = kind(
            host.name,
            self._config,
            brokers=self._cluster.names,
            controller=CONTROLLER,
            guards=self._cluster.guards,
            incarnation=host.starts,
        )
        return machine


OperationKey = tuple[int, int]
"""Incarnation of a producer, and number of its operation."""

_KINDS = {
    OutcomeKind.ACKED: Kind.ACK,
    OutcomeKind.REJECTED: Kind.REJECT,
    OutcomeKind.UNKNOWN: Kind.UNKNOWN,
}


@define(eq=False)
class ProducerNotes:
    """The outcomes of one producer host, over restarts too.

    Attributes:
        acks: as its configuration has it.
        unclaimed: outcomes, by incarnation and operation, for which nobody waits.
        produced: the event with which each open operation began.
        awaited: whoever waits for an outcome, and keeps it then.
    """

    acks: int
    unclaimed: dict[OperationKey, Outcome] = field(factory=dict)
    produced: dict[OperationKey, int] = field(factory=dict)
    awaited: dict[OperationKey, dict[OperationKey, Outcome]] = field(factory=dict)

    def begin(self, host: Host, operation: int, number: int) -> None:
        """An operation began with event ``number``; unless its outcome is known by now."""
        assert host.process is not None
        key = host.process.incarnation, operation
        if key not in self.unclaimed:
            self.produced[key] = number

    def claim(self, keys: Iterable[OperationKey]) -> dict[OperationKey, Outcome]:
        """A mapping into which the outcomes of these operations come as they become known."""
        found: dict[OperationKey, Outcome] = {}
        for key in keys:
            if key in self.unclaimed:
                found[key] = self.unclaimed.pop(key)
            else:
                self.awaited[key] = found
        return found

    def take(self, process: Process, number: int) -> None:
        """Take down what became known in a handler, whose event is ``number``."""
        machine = process.machine
        assert isinstance(machine, Producer)
        host, kernel = process.host, process.host.kernel
        for outcome in machine.take_outcomes():
            key = process.incarnation, outcome.operation
            self.awaited.pop(key, self.unclaimed)[key] = outcome
            args: dict[str, Any] = {"operation": outcome.operation, "acks": self.acks}
            if outcome.partition is not None:
                args["partition"] = str(outcome.partition)
            if outcome.kind is OutcomeKind.ACKED:
                args["offset"] = outcome.offset
            if outcome.error_code.number:
                args["error"] = outcome.error_code.name
            kind = _KINDS[outcome.kind]
            begun = self.produced.pop(key, number)
            cause = (number,) if begun == number else (number, begun)
            kernel.trace.emit(kernel.timeline.now_us, host.name, kind, cause, args)


@define(eq=False)
class ConsumerNotes:
    """The events and records of one consumer host, in order.

    Attributes:
        assigned: the partitions that it reads.
        wanted: how many records were asked for so far; no more are polled.
    """

    events: list[ConsumerEvent] = field(factory=list)
    records: list[PolledRecord] = field(factory=list)
    assigned: tuple[tuple[str, int], ...] = ()
    wanted: int = 0

    def take(self, process: Process, number: int) -> None:
        """Take down what became known in a handler, whose event is ``number``."""
        machine = process.machine
        assert isinstance(machine, Consumer)
        kernel = process.host.kernel
        args: dict[str, Any]
        for event in machine.take_events():
            self.events.append(event)
            args = {"event": type(event).__name__}
            args |= {key: plain(value) for key, value in event._asdict().items()}
            now_us, name = kernel.timeline.now_us, process.host.name
            kernel.trace.emit(now_us, name, Kind.POSITION, (number,), args)
        if self.wanted > len(self.records):
            for record in machine.poll(self.wanted - len(self.records)):
                self.records.append(record)
                args = {
                    "partition": str(record.partition),
                    "offset": record.offset,
                    "leader_epoch": record.leader_epoch,
                    "value": shown(record.value),
                }
                now_us, name = kernel.timeline.now_us, process.host.name
                kernel.trace.emit(now_us, name, Kind.POLL, (number,), args)
