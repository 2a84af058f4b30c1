"""The state of the cluster behind any event: who runs, who leads, what the logs have.

Left out: how it came to be (``sim.present.timeline``, ``chains``).
"""

from __future__ import annotations

from operator import attrgetter

from attrs import frozen

from sim.present.history import Replica
from sim.present.story import Story

__all__ = ["Moment", "PartitionAt", "ReplicaAt", "Span", "moment", "replica_at", "spans_at"]


@frozen
class Span:
    """Offsets of one epoch that lie side by side in a log; the epoch is None where nobody said."""

    base: int
    end: int
    epoch: int | None


@frozen
class ReplicaAt:
    """One copy.

    Attributes:
        status: of its node.
        high_watermark: None where the trace does not say.
    """

    node: str
    status: str
    role: str
    leader_epoch: int
    spans: tuple[Span, ...]
    log_start: int
    log_end: int
    high_watermark: int | None


@frozen
class PartitionAt:
    """One partition; ``isr`` is None before the trace says."""

    name: str
    leader: str | None
    leader_epoch: int
    isr: tuple[str, ...] | None
    replicas: tuple[ReplicaAt, ...]


@frozen
class Moment:
    """Everything behind event ``n``; ``faults`` are the ids of those that are active."""

    n: int
    t_us: int
    statuses: dict[str, str]
    partitions: tuple[PartitionAt, ...]
    faults: tuple[str, ...]


def moment(story: Story, n: int | None = None) -> Moment:
    """The state behind event ``n``; behind the last one by default."""
    last = story.last_n if n is None else max(0, min(n, story.last_n))
    partitions = []
    for partition in story.partitions.values():
        if not any(replica.since <= last for replica in partition.replicas.values()):
            continue
        leader, epoch = partition.leaders.at(last) or (None, -1)
        replicas = [
            replica_at(story, replica, last)
            for _, replica in story.replicas(partition.name)
            if replica.since <= last
        ]
        isr = partition.isrs.at(last)
        partitions.append(PartitionAt(partition.name, leader, epoch, isr, tuple(replicas)))
    faults = tuple(
        fault.id
        for fault in story.faults.values()
        if fault.begin <= last and (fault.end is None or fault.end > last)
    )
    statuses = {node: story.status(node, last) for node in story.nodes}
    return Moment(last, story.time_us(last), statuses, tuple(partitions), faults)


def replica_at(story: Story, replica: Replica, n: int) -> ReplicaAt:
    """One copy behind event ``n``."""
    role = replica.roles.at(n)
    spans = spans_at(replica, n)
    log_end = spans[-1].end if spans else replica.log_ends.at(n) or 0
    return ReplicaAt(
        replica.node,
        story.status(replica.node, n),
        "none" if role is None else role.name,
        -1 if role is None else role.leader_epoch,
        tuple(spans),
        replica.log_starts.at(n) or (spans[0].base if spans else 0),
        log_end,
        replica.high_watermarks.at(n),
    )


def spans_at(replica: Replica, n: int) -> list[Span]:
    """What a log has behind event ``n``, by offset."""
    pieces = sorted(
        (piece for piece in replica.pieces if piece.n <= n < piece.until),
        key=attrgetter("base"),
    )
    if not pieces:
        return []
    # Tens of thousands of pieces are joined to a few spans: only those are made.
    spans: list[Span] = []
    base, end, epoch = pieces[0].base, pieces[0].end, pieces[0].epoch
    for piece in pieces[1:]:
        if piece.base != end or piece.epoch != epoch:
            spans.append(Span(base, end, epoch))
            base, epoch = piece.base, piece.epoch
        end = piece.end
    spans.append(Span(base, end, epoch))
    return spans
