"""Questions that a story answers about copies of records.

Left out: words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sim.present.history import Cut, Piece, Replica
from sim.present.moments import Span, spans_at
from sim.present.story import Story

__all__ = ["acked_among", "acked_of", "holders", "only_holders"]


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


def acked_among(story: Story, partition: str, spans: Iterable[Span], n: int) -> int:
    """How many records were acknowledged up to event ``n``: of these offsets and epochs."""
    known = story.partitions.get(partition)
    spans = list(spans)
    if known is None or not spans:
        return 0
    base, end = min(each.base for each in spans), max(each.end for each in spans)
    found = set()
    for ack in known.acks:
        if ack.n > n or ack.acks == 0 or not base <= ack.offset < end:
            continue
        if any(
            each.base <= ack.offset < each.end and (ack.epoch is None or ack.epoch == each.epoch)
            for each in spans
        ):
            found.add((ack.offset, ack.epoch))
    return len(found)


def acked_of(story: Story, replica: Replica, cut: Cut) -> int:
    """How many of the records that a cut took were acknowledged up to it."""
    gone = [Span(each.base, each.end, each.epoch) for each in replica.pieces if each.cut is cut]
    return acked_among(story, replica.partition, gone, cut.n)


def only_holders(
    story: Story, partition: str, leader: str, n: int
) -> Iterator[tuple[list[Span], list[str]]]:
    """Ranges that a leader does not have behind event ``n``, and the nodes that do.

    Ranges that lie side by side in one log, of whatever epochs, come together.
    """
    replicas = story.replicas(partition)
    own = next((replica for node, replica in replicas if node == leader), None)
    mine = [] if own is None else spans_at(own, n)
    runs: list[tuple[list[Span], list[str]]] = []
    for node, replica in replicas:
        if node == leader:
            continue
        for spans in _missing(spans_at(replica, n), mine):
            known = next((run for run in runs if run[0] == spans), None)
            if known is None:
                runs.append((spans, [node]))
            else:
                known[1].append(node)
    yield from sorted(runs, key=lambda run: (run[0][0].base, run[0][-1].end))


def _missing(theirs: list[Span], mine: list[Span]) -> list[list[Span]]:
    """What is in some parts and in none of the others, by offset and epoch."""
    found: list[list[Span]] = []
    for piece in sorted(theirs, key=lambda each: each.base):
        at = piece.base
        same = (p for p in mine if p.epoch == piece.epoch and p.end > at and p.base < piece.end)
        for other in sorted(same, key=lambda each: each.base):
            if other.base > at:
                _add(found, Span(at, other.base, piece.epoch))
            at = max(at, other.end)
        if at < piece.end:
            _add(found, Span(at, piece.end, piece.epoch))
    return found


def _add(ranges: list[list[Span]], span: Span) -> None:
    if ranges and ranges[-1][-1].end == span.base:
        ranges[-1].append(span)
    else:
        ranges.append([span])
