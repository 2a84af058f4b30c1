"""Which offsets readers went over: from one record to the next, or from a position they were told.

Behind a signal that moves a reader it may be anywhere; where the signal names the new position, the
reader is there.

Left out: whether anything was there (``sim.histories.polls``, ``sim.histories.writes``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Witness
from sim.histories.evidence import Evidence, shown
from sim.histories.values import MOVES, Poll, Signal

__all__ = ["Move", "Passes", "moves", "witness_of"]


class Move(NamedTuple):
    """A reader is at a record.

    Attributes:
        before: the record that it read just before; None where it was moved in between, or the
            topic is another one.
        position: the lowest offset at which it was allowed to be; None for any.
        signal: the one that moved it, if it was moved since the last record.
    """

    poll: Poll
    before: Poll | None
    position: int | None
    signal: Signal | None

    @property
    def witness(self) -> Witness:
        """Of the record."""
        return witness_of(self.poll)

    @property
    def earlier(self) -> tuple[Witness, ...]:
        """Of where the reader was before."""
        if self.before is not None:
            return (witness_of(self.before),)
        if self.signal is not None:
            told = self.signal
            moved = Witness(told.client, "moved", told.offset, told.kind, told.event, told.t_us)
            return (moved,)
        return ()


def witness_of(poll: Poll, how: str = "read") -> Witness:
    """One record that was handed over."""
    return Witness(poll.client, how, poll.offset, shown(poll.value), poll.event, poll.t_us)


def moves(evidence: Evidence) -> Iterator[Move]:
    """Every record that was handed over, with where its reader was before."""
    for stream in evidence.streams.values():
        before: Poll | None = None
        position: int | None = None
        signal: Signal | None = None
        for each in stream:
            if isinstance(each, Signal):
                if each.kind in MOVES:
                    before, signal = None, each
                    position = each.offset if each.offset >= 0 else None
                continue
            if before is not None and before.place != each.place:
                before = position = None
            yield Move(each, before, position, signal)
            before, position, signal = each, each.offset + 1, None


class Passes:
    """The offsets that readers went over, by place, with one witness each."""

    def __init__(self, evidence: Evidence) -> None:
        found: dict[TopicIdPartition, list[tuple[int, int, Witness]]] = {}
        for move in moves(evidence):
            if move.position is not None and move.position < move.poll.offset:
                witness = witness_of(move.poll, "passed to")
                span = move.position, move.poll.offset, witness
                found.setdefault(move.poll.place, []).append(span)
        self._spans = {place: _merged(spans) for place, spans in found.items()}

    def over(self, place: TopicIdPartition, offset: int) -> Witness | None:
        """Who went over an offset; None for nobody."""
        starts, ends, witnesses = self._spans.get(place, ([], [], []))
        at = bisect_right(starts, offset) - 1
        return witnesses[at] if at >= 0 and offset < ends[at] else None


def _merged(
    spans: list[tuple[int, int, Witness]],
) -> tuple[list[int], list[int], list[Witness]]:
    """Disjoint spans, each with the witness that covers all of it."""
    starts: list[int] = []
    ends: list[int] = []
    witnesses: list[Witness] = []
    for start, end, witness in sorted(spans):
        start = max(start, ends[-1]) if ends else start
        if start < end:
            starts.append(start)
            ends.append(end)
            witnesses.append(witness)
    return starts, ends, witnesses
