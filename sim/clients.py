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

__all__ = ["ClientFactory", "ConsumerNotes", "ProducerNotes", "Reading"]


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
        config: as given.
        generated: how many values a verb has made up for it.
        produced: the event with which each open operation began, and the partition that it named.
        told: how many operations ended how, by kind of event and partition.
        unclaimed: outcomes, by incarnation and operation, for which nobody waits.
        awaited: whoever waits for an outcome, and keeps it then.
    """

    config: ProducerConfig
    generated: int = 0
    produced: dict[OperationKey, tuple[int, str]] = field(factory=dict)
    told: dict[tuple[Kind, str], int] = field(factory=dict)
    unclaimed: dict[OperationKey, Outcome] = field(factory=dict)
    awaited: dict[OperationKey, dict[OperationKey, Outcome]] = field(factory=dict)

    def begin(self, host: Host, operation: int, number: int, place: str) -> None:
        """An operation began with event ``number``; unless its outcome is known by now.

        Args:
            place: the partition, empty where its choice is left to the producer.
        """
        assert host.process is not None
        key = host.process.incarnation, operation
        if key not in self.unclaimed:
            self.produced[key] = number, place

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
            args: dict[str, Any] = {"operation": outcome.operation, "acks": self.config.acks}
            if outcome.partition is not None:
                args["partition"] = str(outcome.partition)
            if outcome.kind is OutcomeKind.ACKED:
                args["offset"] = outcome.offset
            if outcome.error_code.number:
                args["error"] = outcome.error_code.name
            kind = _KINDS[outcome.kind]
            begun, place = self.produced.pop(key, (number, ""))
            told = kind, args.get("partition", place)
            self.told[told] = self.told.get(told, 0) + 1
            cause = (number,) if begun == number else (number, begun)
            event = kernel.trace.emit(kernel.timeline.now_us, host.name, kind, cause, args)
            if kernel.observer is not None:
                kernel.observer.on_outcome(host.name, outcome, self.config.acks, event)
            if kernel.recorder is not None:
                now_us = kernel.timeline.now_us
                kernel.recorder.on_outcome(
                    host.name, process.incarnation, outcome, event=event, t_us=now_us
                )


@define(eq=False)
class Reading:
    """So many records of one partition (topic and number) that somebody waits for."""

    place: tuple[str, int]
    count: int
    records: list[PolledRecord] = field(factory=list)

    @property
    def missing(self) -> int:
        return self.count - len(self.records)


@define(eq=False)
class ConsumerNotes:
    """The events and records of one consumer host, in order.

    No more is polled than somebody waits for.

    Attributes:
        config: as given.
        records: all that were polled.
        assigned: the partitions that the process of ``incarnation`` reads.
        readings: those that miss records, oldest first; records go to the first of a partition.
        returned: records of readings that were given up, for the next ones.
    """

    config: ConsumerConfig
    events: list[ConsumerEvent] = field(factory=list)
    records: list[PolledRecord] = field(factory=list)
    assigned: tuple[tuple[str, int], ...] = ()
    incarnation: int = -1
    readings: list[Reading] = field(factory=list)
    returned: dict[tuple[str, int], list[PolledRecord]] = field(factory=dict)

    def begin(self, place: tuple[str, int], count: int) -> Reading:
        """Wait for records."""
        reading = Reading(place, count)
        self.readings.append(reading)
        self._hand_out(place, self.returned.pop(place, []))
        return reading

    def give_up(self, reading: Reading) -> None:
        """Nobody waits for these any more; what has come goes to whoever waits next."""
        if reading in self.readings:
            self.readings.remove(reading)
            self._hand_out(reading.place, reading.records)

    def _hand_out(self, place: tuple[str, int], records: list[PolledRecord]) -> None:
        for reading in [each for each in self.readings if each.place == place]:
            taken = reading.missing
            reading.records += records[:taken]
            records = records[taken:]
            if not reading.missing:
                self.readings.remove(reading)
        if records:
            self.returned[place] = records

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
            told = kernel.trace.emit(now_us, name, Kind.POSITION, (number,), args)
            if kernel.observer is not None:
                kernel.observer.on_position(name, event, told)
            if kernel.recorder is not None:
                session, group = process.incarnation, self.config.group
                kernel.recorder.on_told(name, session, event, group, event=told, t_us=now_us)
        for place in dict.fromkeys(reading.place for reading in self.readings):
            missing = sum(each.missing for each in self.readings if each.place == place)
            polled = machine.poll(missing, only=place)
            for record in polled:
                self.records.append(record)
                args = {
                    "partition": str(record.partition),
                    "offset": record.offset,
                    "leader_epoch": record.leader_epoch,
                    "value": shown(record.value),
                }
                now_us, name = kernel.timeline.now_us, process.host.name
                told = kernel.trace.emit(now_us, name, Kind.POLL, (number,), args)
                if kernel.observer is not None:
                    kernel.observer.on_polled(name, record, told)
                if kernel.recorder is not None:
                    session = process.incarnation
                    kernel.recorder.on_polled(
                        name, session, number, record, event=told, t_us=now_us
                    )
            self._hand_out(place, polled)
