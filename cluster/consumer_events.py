"""What a consumer tells its user besides records: everything that moves or stops a position.

Positions only rise, record by record, except where one of these says otherwise, and it is handed
over before any record from behind the change.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.errors import ErrorCode
from cluster.names import TopicIdPartition

__all__ = [
    "CommitFailed",
    "ConsumerEvent",
    "CorruptRecords",
    "OffsetCommitted",
    "OffsetReset",
    "PolledRecord",
    "PositionFailed",
    "TopicRecreated",
    "TruncationDetected",
]


class PolledRecord(NamedTuple):
    """A record, and the epoch of the leader that wrote it."""

    partition: TopicIdPartition
    offset: int
    leader_epoch: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]

    def __deepcopy__(self, memo: object) -> PolledRecord:
        return self


class TruncationDetected(NamedTuple):
    """The leader does not have all that was read below the position (KIP-320, hazard B-66).

    With a reset policy the position is at ``diverging_offset`` now, or, where that is -1, about to
    be reset; with the policy ``none`` the partition stands until a seek.

    Attributes:
        offset, leader_epoch: the position, and the epoch of the record before it.
        diverging_epoch, diverging_offset: the newest epoch that the leader shares with what was
            read, and where both part; -1 where the leader knows of none.
    """

    partition: TopicIdPartition
    offset: int
    leader_epoch: int
    diverging_epoch: int
    diverging_offset: int


class OffsetReset(NamedTuple):
    """The reset policy moved a position; ``from_offset`` is -1 where there was none."""

    partition: TopicIdPartition
    from_offset: int
    to_offset: int


class PositionFailed(NamedTuple):
    """There is no position, or the leader does not have it, and the policy is ``none``.

    The partition stands until a seek. ``offset`` is -1 where there was no position.
    """

    partition: TopicIdPartition
    offset: int
    error_code: ErrorCode


class TopicRecreated(NamedTuple):
    """The topic of that name is another one now; the position of the old one is dropped."""

    partition: TopicIdPartition
    old_topic_id: str


class CorruptRecords(NamedTuple):
    """Frames of a response were damaged, dropped, and are fetched anew.

    ``total`` says how often this was so in this partition; ``reason`` is a short fixed word.
    """

    partition: TopicIdPartition
    offset: int
    reason: str
    total: int


class OffsetCommitted(NamedTuple):
    partition: TopicIdPartition
    offset: int


class CommitFailed(NamedTuple):
    """NETWORK_EXCEPTION: the commit may have happened. Nothing is tried again."""

    partition: TopicIdPartition
    offset: int
    error_code: ErrorCode


ConsumerEvent = (
    TruncationDetected
    | OffsetReset
    | PositionFailed
    | TopicRecreated
    | CorruptRecords
    | OffsetCommitted
    | CommitFailed
)
