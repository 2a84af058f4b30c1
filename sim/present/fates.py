"""What became of acknowledged records: which copies there were, and how each one went.

Records that lie side by side and shared one fate are one range.

Left out: sentences (``sim.present.chains``).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from attrs import frozen

from sim.present.history import FOREVER, Ack, Partition, Piece
from sim.present.story import Story

__all__ = ["Copy", "Records", "copies", "epochs_at", "records_of"]


@frozen
class Records:
    """Records of one partition and one epoch; ``acks`` are those of them that are known."""

    partition: str
    base: int
    end: int
    epoch: int | None
    acks: tuple[Ack, ...]

    @property
    def is_one(self) -> bool:
        return self.end - self.base == 1


@frozen
class Copy:
    """A part of one node's log in which the first of some records was."""

    node: str
    piece: Piece


def copies(story: Story, records: Records) -> list[Copy]:
    """Every copy that there ever was of the first of some records, oldest first."""
    found = [
        Copy(node, piece)
        for node, replica in story.replicas(records.partition)
        for piece in replica.held(records.base, records.base + 1, records.epoch)
    ]
    return sorted(found, key=lambda each: each.piece.n)


def records_of(
    story: Story, partition: str, base: int, end: int, epoch: int | None
) -> list[Records]:
    """A range, in parts of one fate each."""
    known = story.partitions.get(partition)
    if known is None:
        return []
    by_offset: dict[int, Ack] = {}
    for ack in known.acks:
        if base <= ack.offset < end and (epoch is None or ack.epoch in (None, epoch)):
            by_offset[ack.offset] = ack
    found: list[Records] = []
    fates: list[object] = []
    acked = sorted(by_offset)
    for start, stop in _borders(known, base, end, acked):
        inside = acked[bisect_left(acked, start) : bisect_left(acked, stop)]
        acks = tuple(by_offset[offset] for offset in inside)
        own = epoch if epoch is not None else acks[0].epoch if acks else _epoch(known, start)
        fate = own, _fate(known, start, own), bool(acks)
        last = found[-1] if found else None
        if last is not None and last.end == start and fates[-1] == fate:
            found[-1] = Records(partition, last.base, stop, own, (*last.acks, *acks))
        else:
            found.append(Records(partition, start, stop, own, acks))
            fates.append(fate)
    return found


def epochs_at(
    story: Story, partition: str, offset: int, *, gone_by: int = 0, known_by: int | None = None
) -> list[int]:
    """The epochs of all records that were ever at an offset, oldest first.

    Args:
        gone_by: if not 0, only those of which no copy is left behind this event, if there are any.
        known_by: only those of which there was a copy by this event.
    """
    first: dict[int, int] = {}
    left: set[int] = set()
    for _, replica in story.replicas(partition):
        for piece in replica.held(offset, offset + 1, None):
            if piece.epoch is not None and (known_by is None or piece.n <= known_by):
                first[piece.epoch] = min(piece.n, first.get(piece.epoch, piece.n))
                if piece.until > gone_by >= piece.n:
                    left.add(piece.epoch)
    ordered = sorted(first, key=lambda epoch: first[epoch])
    gone = [epoch for epoch in ordered if epoch not in left and first[epoch] <= gone_by]
    return gone if gone_by and gone else ordered


def _borders(partition: Partition, base: int, end: int, acked: list[int]) -> list[tuple[int, int]]:
    """The range in parts at every offset where the fate may change."""
    borders = {base, end}
    for replica in partition.replicas.values():
        for piece in replica.held(base, end, None):
            borders |= {max(base, piece.base), min(end, piece.end)}
    for offset in acked:
        borders |= {offset, offset + 1}
    ordered = sorted(borders)
    return list(pairwise(ordered))


def _fate(partition: Partition, offset: int, epoch: int | None) -> tuple[tuple[str, int], ...]:
    """Who ever had it, and with which event it went."""
    return tuple(
        (node, FOREVER if piece.cut is None else piece.cut.n)
        for node, replica in partition.replicas.items()
        for piece in replica.held(offset, offset + 1, epoch)
    )


def _epoch(partition: Partition, offset: int) -> int | None:
    for replica in partition.replicas.values():
        for piece in replica.held(offset, offset + 1, None):
            return piece.epoch
    return None
