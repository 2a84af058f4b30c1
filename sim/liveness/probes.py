"""Asking the cluster: a write with acks=all to every partition, and reads from start to end.

A write that does not end as it should is asked for again; so its outcome is always of now.

Left out: how the outcomes are judged (``sim.liveness.predicates``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import define, field

from cluster.consumer import Consumer
from cluster.names import TopicIdPartition
from cluster.outcomes import OutcomeKind
from sim.pending import Produced, VerbFailed
from sim.verbs import Cluster
from sim.world import World

__all__ = ["PROBER", "READER", "FinalReads", "Probes", "final_reads"]

PROBER: Final = "liveness-writer"
READER: Final = "liveness-reader"
TIMEOUT_US: Final = 5_000_000
TIMEOUT_MAX_US: Final = 30_000_000
"""Of the first write, and of those behind it, each twice as patient: slow links may be for ever."""
_WITHOUT_END: Final = 1 << 62
_WORDS: Final = {
    OutcomeKind.ACKED: "acked",
    OutcomeKind.REJECTED: "rejected",
    OutcomeKind.UNKNOWN: "unknown",
}


def _partitions(world: World) -> Iterator[TopicIdPartition]:
    return (each.partition for each in world.view().image().partitions())


@define(eq=False)
class Probes:
    """Writes with acks=all, one a partition at a time."""

    world: World
    _asked: dict[tuple[str, int], Produced] = field(factory=dict)
    _patience_us: dict[tuple[str, int], int] = field(factory=dict)

    def ask(self, wrong: frozenset[str]) -> None:
        """Write to each partition that has not been asked; those of ``wrong`` once more."""
        for where in _partitions(self.world):
            place = where.topic, where.partition
            asked = self._asked.get(place)
            if asked is not None and not (asked.is_done() and str(where) in wrong):
                continue
            patience_us = self._patience_us.get(place, TIMEOUT_US)
            self._patience_us[place] = min(2 * patience_us, TIMEOUT_MAX_US)
            try:
                self._asked[place] = Cluster(self.world).produce(
                    where.topic,
                    [f"probe {self.world.now_us}"],
                    partition=where.partition,
                    timeout_us=patience_us,
                    # A sequence in doubt at one partition would hold up the writes to others.
                    idempotence=False,
                    client=PROBER,
                )
            except VerbFailed:
                continue

    def outcome(self, topic: str, partition: int) -> tuple[str, str]:
        """What came of the newest write, and its error (``Partition.probe``)."""
        asked = self._asked.get((topic, partition))
        if asked is None:
            return "", ""
        if not asked.is_done():
            return "waiting", ""
        (outcome,) = asked.result()
        error = outcome.error_code.name if outcome.error_code.number else ""
        return _WORDS[outcome.kind], error


@define(eq=False)
class FinalReads:
    """A consumer that reads every partition from its start.

    A topic may come about while it reads: one whose creation was under way when the run ended.
    """

    world: World
    _asked: dict[tuple[str, int], None] = field(factory=dict)

    def begin(self) -> None:
        """Read every partition that there is and that is not read yet."""
        for where in _partitions(self.world):
            place = where.topic, where.partition
            if place in self._asked:
                continue
            self._asked[place] = None
            try:
                Cluster(self.world).consume(
                    where.topic,
                    _WITHOUT_END,
                    partition=where.partition,
                    reset="earliest",
                    client=READER,
                )
            except VerbFailed:
                continue

    def position(self, where: TopicIdPartition) -> int | None:
        """The offset that it reads next, -1 while that is not known."""
        if READER not in self.world.hosts:
            return None
        process = self.world.host(READER).process
        if process is None or not isinstance(process.machine, Consumer):
            return None
        try:
            return process.machine.position(where.topic, where.partition)
        except ValueError:
            return None


def final_reads(world: World) -> FinalReads:
    """Begin the final reads: a real consumer, of every partition, from start to end.

    Whoever keeps a history of what clients saw finds these records in it, read by ``READER``.
    ``sim.liveness.judging.judge_clients`` is called once it has reached the end everywhere.
    """
    found = FinalReads(world)
    found.begin()
    return found
