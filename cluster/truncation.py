"""Where a follower cuts its log to agree with its leader (PROTOCOL A10, A11, A12).

Pure: the leader's answer and the follower's own epochs in, a truncation out. The same table serves
an answer to OffsetsForLeaderEpoch and the diverging epoch in a fetch response.

Left out: asking the leader, and cutting (``storage``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from cluster.messages_data import EpochEndOffset
from cluster.names import NO_EPOCH, NO_OFFSET

__all__ = ["OutOfRange", "Truncation", "TruncationMode", "out_of_range", "resolve"]


class TruncationMode(Enum):
    """How a follower finds where to cut.

    FETCH: by the diverging epoch in fetch responses (today's rule).
    KIP_279: asks for the end of its last epoch when it becomes a follower, and again until both
        sides name the same epoch.
    KIP_101: asks once.
    HIGH_WATERMARK: asks nobody and cuts to its own high watermark.
    """

    FETCH = "fetch"
    KIP_279 = "kip-279"
    KIP_101 = "kip-101"
    HIGH_WATERMARK = "high-watermark"


class Truncation(NamedTuple):
    """Cut to ``offset``; unless ``is_complete``, ask again with the newest epoch that is left."""

    offset: int
    is_complete: bool


def resolve(
    leader: EpochEndOffset,
    *,
    fetch_offset: int,
    leo: int,
    own_end: Callable[[int], tuple[int, int]],
    mode: TruncationMode = TruncationMode.FETCH,
) -> Truncation:
    """What to make of the leader's answer to a follower's newest epoch.

    Args:
        leader: the epoch that the leader found, and its end there; -1 (or less) if undefined.
        fetch_offset: from where the follower fetches; at first its high watermark.
        leo: the follower's log end.
        own_end: ``LeaderEpochCache.end_offset_for`` of the follower, for its own log end.
    """
    epoch, end = leader
    if end <= NO_OFFSET:
        return Truncation(min(fetch_offset, leo), True)
    if epoch <= NO_EPOCH or mode is TruncationMode.KIP_101:
        return Truncation(min(end, leo), True)
    own_epoch, own = own_end(epoch)
    if own == NO_OFFSET:
        return Truncation(min(end, leo), True)
    if own_epoch != epoch:
        return Truncation(min(own, leo), False)
    return Truncation(min(own, end, leo), True)


class OutOfRange(NamedTuple):
    """What a follower does whose offset the leader does not have.

    Attributes:
        truncate_to: cut to here and fetch from here; None where nothing is cut.
        start_at: drop everything and begin here; None otherwise.
        fetch_offset: from where to go on.
    """

    truncate_to: int | None
    start_at: int | None
    fetch_offset: int


def out_of_range(
    leo: int, leader_end: int, leader_start: int, *, full_truncation_only_below_start: bool
) -> OutOfRange:
    """By the leader's latest and earliest offset, asked for in this order.

    A leader with less is followed down to its end. Only a log that ends below the leader's start
    is dropped (hazard B-24: it once was whenever the leader had more).
    """
    if leader_end < leo:
        return OutOfRange(leader_end, None, leader_end)
    if leader_start > leo or not full_truncation_only_below_start:
        return OutOfRange(None, leader_start, leader_start)
    return OutOfRange(None, None, leo)
