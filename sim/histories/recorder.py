"""Takes down what clients ask and are told, and nothing else.

    recorder = Recorder()
    world.kernel.recorder = recorder      # before the world's first step
    ...
    recorder.history()

It belongs to its world: a copied world has a copied one, which goes on with what happens there
(``Recorder.of(world)``). It changes nothing, so a run has the same digest with and without it.

Left out: what is made of it (``sim.histories.checking``).
"""

from __future__ import annotations

from typing import Any

from cluster.config import ProducerConfig
from cluster.consumer_events import (
    CommitFailed,
    ConsumerEvent,
    CorruptRecords,
    OffsetCommitted,
    OffsetReset,
    PolledRecord,
    PositionFailed,
    TopicRecreated,
    TruncationDetected,
)
from cluster.names import NO_OFFSET
from cluster.outcomes import Outcome, OutcomeKind
from sim.histories.values import End, History, Operation, OperationKey, Poll, Signal

__all__ = ["Recorder"]

_ENDS = {OutcomeKind.ACKED: "ok", OutcomeKind.REJECTED: "fail", OutcomeKind.UNKNOWN: "info"}


class Recorder:
    """See the module. Events have their numbers, times are virtual microseconds."""

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._ends: dict[OperationKey, End] = {}
        self._readings: list[Poll | Signal] = []

    @classmethod
    def of(cls, world: Any) -> Recorder:
        """The recorder of a world, of a copied one too.

        Raises:
            ValueError: it has none.
        """
        found = world.kernel.recorder
        if not isinstance(found, cls):
            raise ValueError("this world has no recorder of histories")
        return found

    def copy(self) -> Recorder:
        """One that has the same so far, and goes on by itself."""
        twin = Recorder()
        twin._operations = list(self._operations)
        twin._ends = dict(self._ends)
        twin._readings = list(self._readings)
        return twin

    def __deepcopy__(self, memo: object) -> Recorder:
        return self.copy()

    def history(self) -> History:
        """Everything so far."""
        return History(tuple(self._operations), dict(self._ends), tuple(self._readings))

    # What the world tells ----------------------------------------------------------------------

    def on_invoked(
        self,
        node: str,
        session: int,
        operation: int,
        place: tuple[str, int | None],
        record: Any,
        config: ProducerConfig,
        *,
        event: int,
        t_us: int,
    ) -> None:
        """A record was given to a producer; its end may have been told before."""
        topic, partition = place
        self._operations.append(
            Operation(
                node,
                session,
                operation,
                topic,
                partition,
                record.key,
                record.value,
                config.acks,
                config.enable_idempotence,
                config.max_in_flight_requests_per_connection,
                int(event),
                t_us,
            )
        )

    def on_outcome(
        self, node: str, session: int, outcome: Outcome, *, event: int, t_us: int
    ) -> None:
        """A producer knows what became of a record."""
        kind, error = _ENDS[outcome.kind], outcome.error_code.name
        self._ends[node, session, outcome.operation] = End(
            kind, outcome.partition, outcome.offset, error, event, t_us
        )

    def on_polled(
        self, node: str, session: int, poll: int, record: PolledRecord, *, event: int, t_us: int
    ) -> None:
        """A consumer hands a record over; ``poll`` names the poll."""
        place, offset, epoch, key, value, _, _ = record
        self._readings.append(
            Poll(node, session, poll, place, offset, epoch, key, value, event, t_us)
        )

    def on_told(
        self,
        node: str,
        session: int,
        told: ConsumerEvent,
        group: str | None,
        *,
        event: int,
        t_us: int,
    ) -> None:
        """A consumer tells of anything else."""
        kind, offset = _signal_of(told)
        topic, number = told.partition.topic, told.partition.partition
        self._readings.append(
            Signal(node, session, kind, topic, number, offset, group, event, t_us)
        )

    def on_asked(
        self,
        node: str,
        session: int,
        place: tuple[str, int],
        offset: int | None,
        *,
        event: int,
        t_us: int,
    ) -> None:
        """The user assigns a partition to a consumer, or, with an offset, seeks."""
        topic, number = place
        kind = "assigned" if offset is None else "sought"
        at = NO_OFFSET if offset is None else offset
        self._readings.append(
            Signal(node, session, kind, topic, number, at, None, int(event), t_us)
        )


def _signal_of(told: ConsumerEvent) -> tuple[str, int]:
    match told:
        case TruncationDetected():
            return "truncated", told.diverging_offset
        case OffsetReset():
            return "reset", told.to_offset
        case PositionFailed():
            return "failed", NO_OFFSET
        case TopicRecreated():
            return "recreated", NO_OFFSET
        case CorruptRecords():
            return "corrupt", told.offset
        case OffsetCommitted():
            return "committed", told.offset
        case CommitFailed():
            return "commit-failed", told.offset
