"""What the expressions of a scenario ask of a running world, by name.

The closed list of names, with what each takes and gives, is ``sim.scenario.observables``; here is
where the answers come from. Nothing here changes the world.

Left out: facts that need the history; the judge has them (``sim.checks``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cluster.consumer import Consumer
from cluster.consumer_events import TruncationDetected
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from sim.checks.judge import Judge
from sim.clients import ConsumerNotes
from sim.scenario.names import PartitionName
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["Observables"]


class Observables:
    """The answers, at the moment of asking."""

    def __init__(self, world: World, judge: Judge) -> None:
        self._world = world
        self._judge = judge

    def names(self) -> Mapping[str, Callable[..., Any]]:
        """Every observable by the name that expressions use."""
        own = (
            self.leader,
            self.isr,
            self.elr,
            self.epoch,
            self.fenced,
            self.quarantined,
            self.hw,
            self.leo,
            self.log_start,
            self.rejected,
            self.unknown,
            self.position,
            self.read,
            self.truncation_detected,
            self.alive,
            self.elections,
            self.lost,
            self.errors,
        )
        facts = self._judge.facts
        of_partition = (
            facts.record,
            facts.same_log,
            facts.diverged,
            facts.truncated,
            facts.unflushed,
            facts.acked,
            facts.committed,
            facts.one_leader_per_epoch,
        )
        names: dict[str, Callable[..., Any]] = {each.__name__: each for each in own}
        names |= {each.__name__: _by_text(each) for each in of_partition}
        return names

    def _record(self, place: PartitionName) -> PartitionRecord | None:
        return self._world.view().partition(place.topic, place.partition)

    # What the controller says ------------------------------------------------------------------

    def leader(self, place: PartitionName) -> str | None:
        found = self._record(place)
        return None if found is None else found.leader

    def isr(self, place: PartitionName) -> frozenset[str]:
        found = self._record(place)
        return frozenset() if found is None else frozenset(found.isr)

    def elr(self, place: PartitionName) -> frozenset[str]:
        found = self._record(place)
        return frozenset() if found is None else frozenset(found.elr)

    def epoch(self, place: PartitionName) -> int:
        found = self._record(place)
        return -1 if found is None else found.leader_epoch

    def fenced(self, node: str) -> bool:
        found = self._world.view().image().brokers.get(node)
        return found is None or found.is_fenced

    def quarantined(self, place: PartitionName) -> frozenset[str]:
        found = set()
        for name in self._world.config.names:
            replica = self._world.view().replica(name, place.topic, place.partition)
            if replica is not None and replica.log is None:
                found.add(name)
        return frozenset(found)

    def elections(self, kind: str, place: PartitionName | None = None) -> int:
        where, facts = None if place is None else str(place), self._judge.facts
        if kind == "any":
            return facts.elections(None, where) - facts.elections("none", where)
        return facts.elections(kind, where)

    # What the logs have ------------------------------------------------------------------------

    def hw(self, place: PartitionName, node: str | None = None) -> int:
        name = node or self.leader(place)
        if name is None:
            return -1
        return self._world.view().high_watermark(name, place.topic, place.partition)

    def leo(self, place: PartitionName, node: str | None = None) -> int:
        name = node or self.leader(place)
        return -1 if name is None else self._judge.facts.log_end(str(place), name)

    def log_start(self, place: PartitionName, node: str | None = None) -> int:
        name = node or self.leader(place)
        if name is None or self._judge.facts.log_end(str(place), name) < 0:
            return -1
        return self._judge.facts.log_start(str(place), name)

    # What clients know -------------------------------------------------------------------------

    def lost(self, promise: str, place: PartitionName | None = None) -> int:
        return self._judge.facts.lost(promise, None if place is None else str(place))

    def errors(self, code: str | None = None) -> int:
        return self._judge.facts.errors(code)

    def rejected(self, place: PartitionName) -> int:
        return self._outcomes(Kind.REJECT, place)

    def unknown(self, place: PartitionName) -> int:
        return self._outcomes(Kind.UNKNOWN, place)

    def _outcomes(self, kind: Kind, place: PartitionName) -> int:
        told = kind, str(place)
        return sum(notes.told.get(told, 0) for notes in self._world.producers.values())

    def position(self, place: PartitionName, client: str | None = None) -> int:
        for name, _ in self._consumers(client):
            process = self._world.host(name).process
            if process is not None and isinstance(process.machine, Consumer):
                try:
                    return process.machine.position(place.topic, place.partition)
                except ValueError:
                    continue
        return -1

    def read(self, place: PartitionName, client: str | None = None) -> int:
        return sum(
            _is(record.partition, place)
            for _, notes in self._consumers(client)
            for record in notes.records
        )

    def truncation_detected(self, place: PartitionName, client: str | None = None) -> int:
        return sum(
            isinstance(event, TruncationDetected) and _is(event.partition, place)
            for _, notes in self._consumers(client)
            for event in notes.events
        )

    def _consumers(self, client: str | None) -> list[tuple[str, ConsumerNotes]]:
        """Those of a name, with and without a number behind it; all by default."""
        return [
            (name, notes)
            for name, notes in self._world.consumers.items()
            if client is None or name == client or name.startswith(f"{client}.")
        ]

    # The world ---------------------------------------------------------------------------------

    def alive(self, node: str) -> bool:
        return self._world.host(node).is_running


def _is(partition: TopicIdPartition, place: PartitionName) -> bool:
    return partition.partition == place.partition and partition.topic == place.topic


class _ByText:
    """Calls a fact with the text of a partition."""

    def __init__(self, fact: Callable[..., Any]) -> None:
        self._fact = fact

    def __call__(self, place: PartitionName, *rest: Any) -> Any:
        return self._fact(str(place), *rest)


def _by_text(fact: Callable[..., Any]) -> Callable[..., Any]:
    return _ByText(fact)
