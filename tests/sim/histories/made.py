"""Histories made by hand, operation by operation."""

from __future__ import annotations

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Anomaly, Conditions
from sim.histories.checking import check
from sim.histories.values import End, Excuse, History, Operation, OperationKey, Poll, Signal

PLACE = TopicIdPartition("A" * 22, "orders", 0)


class Made:
    """A history of the partition ``orders-0``; every entry has the next event and millisecond."""

    def __init__(self) -> None:
        self.event = 0
        self.operations: list[Operation] = []
        self.ends: dict[OperationKey, End] = {}
        self.readings: list[Poll | Signal] = []
        self._poll = 0

    def _next(self) -> tuple[int, int]:
        self.event += 1
        return self.event, self.event * 1_000

    def send(
        self,
        *values: str,
        client: str = "p1",
        session: int = 0,
        acks: int = -1,
        idempotent: bool = True,
        flights: int = 5,
    ) -> list[Operation]:
        """Records sent at one moment."""
        found = []
        t_us = (self.event + 1) * 1_000
        for value in values:
            event, _ = self._next()
            number = len(self.operations) + len(found)
            who = client, session, number
            what = "orders", 0, None, value.encode()
            found.append(Operation(*who, *what, acks, idempotent, flights, event, t_us))
        self.operations += found
        return found

    def end(self, operation: Operation, kind: str, offset: int = -1) -> int:
        event, t_us = self._next()
        error = "NONE" if kind == "ok" else "NOT_ENOUGH_REPLICAS"
        self.ends[operation.id] = End(kind, PLACE, offset, error, event, t_us)
        return event

    def acked(self, value: str, offset: int, **named: object) -> Operation:
        """Sent and acknowledged."""
        (operation,) = self.send(value, **named)  # type: ignore[arg-type]
        self.end(operation, "ok", offset)
        return operation

    def read(
        self,
        *records: tuple[int, str],
        client: str = "k1",
        epoch: int = 0,
        place: TopicIdPartition = PLACE,
    ) -> None:
        """One poll."""
        self._poll += 1
        for offset, value in records:
            at = self._next()
            who = client, 0, self._poll
            self.readings.append(Poll(*who, place, offset, epoch, None, value.encode(), *at))

    def told(self, kind: str, offset: int = -1, client: str = "k1") -> int:
        event, t_us = self._next()
        told = Signal(client, 0, kind, "orders", 0, offset, "g", event, t_us)
        self.readings.append(told)
        return event

    def history(self) -> History:
        return History(tuple(self.operations), self.ends, tuple(self.readings))

    def found(
        self, *excused: Excuse, is_drained: bool = False, **conditions: object
    ) -> dict[str, Anomaly]:
        """The first anomaly of each name; illegal ones are first."""
        found: dict[str, Anomaly] = {}
        for each in check(
            self.history(),
            is_drained=is_drained,
            excused=excused,
            conditions=Conditions(**conditions),  # type: ignore[arg-type]
        ):
            found.setdefault(each.name, each)
        return found

    def illegal(self, *excused: Excuse, is_drained: bool = False, **conditions: object) -> set[str]:
        """The names of those that nothing makes legal."""
        found = self.found(*excused, is_drained=is_drained, **conditions)
        return {name for name, each in found.items() if not each.legal}


def lost(start: int, end: int, event: int = 0, *, epoch: int = -1) -> Excuse:
    """An excuse for records of ``orders-0``."""
    return Excuse(PLACE, epoch, start, end, event)
