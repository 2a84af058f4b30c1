"""Questions that a story answers about copies of records.

Left out: words.
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.present.history import Piece
from sim.present.moments import Span, spans_at
from sim.present.story import Story

__all__ = ["acked_among", "holders", "only_holders"]


def holders(
    story: Story, partition: str, offset: int, epoch: int | None, n: int
) -> list[tuple[str, Piece]]:
    """Who had a copy of a record behind event ``n``, and the part of the log that it is in."""
    found = []
    for node, replica in story.replicas(partition):
        piece = replica.had(offset, epoch, n)
        if piece is not None:
            found.append((node, piece))
    return found


def acked_among(story: Story, partition: str, base: int, end: int, n: int) -> int:
    """How many records of a range were acknowledged up to event ``n``."""
    if partition not in story.partitions:
        return 0
    acks = story.partitions[partition].acks
    return len({ack.offset for ack in acks if base <= ack.offset < end and ack.n <= n})


def only_holders(
    story: Story, partition: str, leader: str, n: int
) -> Iterator[tuple[int, int, list[str]]]:
    """Ranges that a leader does not have behind event ``n``, and the nodes that do."""
    replicas = story.replicas(partition)
    own = next((replica for node, replica in replicas if node == leader), None)
    mine = [] if own is None else spans_at(own, n)
    runs: list[tuple[int, int, list[str]]] = []
    for node, replica in replicas:
        if node == leader:
            continue
        for base, end in _missing(spans_at(replica, n), mine):
            known = next((run for run in runs if run[0] == base and run[1] == end), None)
            if known is None:
                runs.append((base, end, [node]))
            else:
                known[2].append(node)
    yield from sorted(runs, key=lambda run: run[:2])


def _missing(theirs: list[Span], mine: list[Span]) -> list[tuple[int, int]]:
    """What is in some parts and in none of the others, by offset and epoch."""
    found: list[tuple[int, int]] = []
    for piece in sorted(theirs, key=lambda each: each.base):
        at = piece.base
        same = (p for p in mine if p.epoch == piece.epoch and p.end > at and p.base < piece.end)
        for other in sorted(same, key=lambda each: each.base):
            if other.base > at:
                _add(found, at, other.base)
            at = max(at, other.end)
        if at < piece.end:
            _add(found, at, piece.end)
    return found


def _add(ranges: list[tuple[int, int]], base: int, end: int) -> None:
    if ranges and ranges[-1][1] == base:
        ranges[-1] = ranges[-1][0], end
    else:
        ranges.append((base, end))
