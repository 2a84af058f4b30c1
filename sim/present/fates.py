"""What became of acknowledged records: which copies there were, and how each one went.

Records that lie side by side and shared one fate are one range.

Left out: sentences (``sim.present.chains``).
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

from attrs import frozen

from sim.present.history import FOREVER, Ack, Partition, Piece, Replica
from sim.present.story import Story

__all__ = ["Copy", "Records", "copies", "epochs_at", "lost", "records_of"]


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


def lost(story: Story) -> list[Records]:
    """Acknowledged records that are lost, in parts of one fate each.

    No copy of them is left at the end, or the footer has them as lost and the last leader does not
    have them either: a copy on a broker that may not lead any more is of no use to anybody.
    """
    found: list[Records] = []
    for partition in story.partitions.values():
        told = _told(story, partition.name)
        gone = sorted(
            {
                (ack.offset, -1 if ack.epoch is None else ack.epoch)
                for ack in partition.acks
                if ack.offset >= 0
                and (not _is_left(partition, ack) or _is_told(partition, ack, told))
            }
        )
        for base, end, epoch in _joined(gone):
            found += records_of(story, partition.name, base, end, None if epoch < 0 else epoch)
    return [each for each in found if each.acks]


def _told(story: Story, partition: str) -> list[tuple[int, int, int]]:
    """What the footer says is lost of a partition: epoch, first offset, end."""
    losses = () if story.footer is None else story.footer.losses
    spans = [
        span
        for loss in losses
        if isinstance(loss, dict) and loss.get("partition") == partition
        for span in loss.get("spans") or ()
    ]
    return [
        (span[0], span[1], span[2])
        for span in spans
        if isinstance(span, list | tuple) and [type(each) for each in span] == [int] * 3
    ]


def _is_told(partition: Partition, ack: Ack, told: list[tuple[int, int, int]]) -> bool:
    if not any(a <= ack.offset < b and ack.epoch in (None, epoch) for epoch, a, b in told):
        return False
    led = [each.leader for each in partition.elections if each.leader is not None]
    replica = partition.replicas.get(led[-1]) if led else None
    return replica is None or not _has(replica, ack)


def _is_left(partition: Partition, ack: Ack) -> bool:
    """Whether a copy is left, or the record was deleted as old ones are."""
    for replica in partition.replicas.values():
        start = replica.log_starts.last
        if start is not None and ack.offset < start:
            return True
        if _has(replica, ack):
            return True
    return False


def _has(replica: Replica, ack: Ack) -> bool:
    return any(
        piece.base <= ack.offset < piece.end and ack.epoch in (None, piece.epoch)
        for piece in replica.alive
    )


def _joined(offsets: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for offset, epoch in sorted(offsets, key=lambda each: (each[1], each[0])):
        if found and found[-1][1] == offset and found[-1][2] == epoch:
            found[-1] = found[-1][0], offset + 1, epoch
        else:
            found.append((offset, offset + 1, epoch))
    return found


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
