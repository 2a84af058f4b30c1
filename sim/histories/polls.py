"""Poll skips, nonmonotonic polls, stale reads: a reader goes on record by record.

A reader jumps over a *record* only where somebody saw one in between: gaps are normal.

Left out: readers that were moved and told; rebalances, since groups have no members here.
"""

from __future__ import annotations

from bisect import bisect_left

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Found, Witness
from sim.histories.evidence import Evidence, shown
from sim.histories.passing import moves, witness_of
from sim.histories.values import MOVES, Poll, Signal

__all__ = ["false_truncation", "nonmonotonic_poll", "poll_skip", "stale_read"]


def poll_skip(evidence: Evidence, found: Found) -> None:
    """A reader goes from one offset to another, and somebody saw a record between."""
    known = {place: _Known(evidence, found, place) for place in evidence.sightings}
    for move in moves(evidence):
        poll = move.poll
        if move.position is None or move.position >= poll.offset:
            continue
        offset = known[poll.place].between(move.position, poll.offset)
        if offset is None:
            continue
        seen = evidence.sightings[poll.place][offset][0]
        is_inside = move.before is not None and move.before.poll == poll.poll
        detail = (
            f"{poll.client} goes from position {move.position} to offset {poll.offset}, over "
            f"{shown(seen.content[2])} at offset {offset}"
        )
        found.report(
            "int-poll-skip" if is_inside else "poll-skip",
            str(poll.place),
            (seen.witness, *move.earlier, move.witness),
            detail,
            evidence.reasons(poll.place, offset),
        )


class _Known:
    """The offsets of a place at which somebody saw a record; those first that must be there."""

    def __init__(self, evidence: Evidence, found: Found, place: TopicIdPartition) -> None:
        self._owed: list[int] = []
        self._rest: list[int] = []
        for offset in sorted(evidence.sightings[place]):
            is_legal = found.why("poll-skip", evidence.reasons(place, offset))
            (self._rest if is_legal else self._owed).append(offset)

    def between(self, start: int, end: int) -> int | None:
        for offsets in (self._owed, self._rest):
            at = bisect_left(offsets, start)
            if at < len(offsets) and offsets[at] < end:
                return offsets[at]
        return None


def nonmonotonic_poll(evidence: Evidence, found: Found) -> None:
    """A reader goes back, or to below where it was told that it is."""
    for move in moves(evidence):
        poll = move.poll
        if move.position is None or poll.offset >= move.position:
            continue
        is_inside = move.before is not None and move.before.poll == poll.poll
        name = "int-nonmonotonic-poll" if is_inside else "nonmonotonic-poll"
        detail = f"{poll.client} is at position {move.position}, and reads offset {poll.offset}"
        found.report(name, str(poll.place), (*move.earlier, move.witness), detail)


def stale_read(evidence: Evidence, found: Found) -> None:
    """A reader reads on, and the next record is of an older epoch.

    No loss makes that legal: the next leader says where the epoch that was read ends in its log, so
    the reader is told first (KIP-320).
    """
    for move in moves(evidence):
        poll, before = move.poll, move.before
        if before is None or poll.epoch >= before.epoch or poll.offset <= before.offset:
            continue
        detail = (
            f"{poll.client} reads offset {poll.offset} of epoch {poll.epoch} behind offset "
            f"{before.offset} of epoch {before.epoch}"
        )
        found.report("stale-read", str(poll.place), (*move.earlier, move.witness), detail)


def false_truncation(evidence: Evidence, found: Found) -> None:
    """A reader is told of a truncation below what it read last, which nobody has lost."""
    for stream in evidence.streams.values():
        before: Poll | None = None
        for each in stream:
            if isinstance(each, Poll):
                before = each
            elif each.kind in MOVES:
                if each.kind == "truncated" and before is not None and before.offset >= each.offset:
                    _told(evidence, found, before, each)
                before = None


def _told(evidence: Evidence, found: Found, before: Poll, told: Signal) -> None:
    detail = (
        f"{told.client} is told of a truncation to {told.offset}, behind offset {before.offset} of "
        f"epoch {before.epoch}"
    )
    moved = Witness(told.client, "moved", told.offset, told.kind, told.event, told.t_us)
    reasons = evidence.reasons(before.place, before.offset, before.epoch)
    found.report(
        "false-truncation", str(before.place), (witness_of(before), moved), detail, reasons
    )
