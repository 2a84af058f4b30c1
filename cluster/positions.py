"""Where a consumer is in a partition, and whether the leader still has what it read (KIP-320).

A position is an offset and the epoch of the record before it. The leader says where that epoch ends
in its log: an end below the position means that the consumer read what is gone. Kafka compares only
the offset; but a leader that never had the epoch answers with an older one, which may well end
above the position (hazard B-H3). Under ``one_epoch_per_position`` the epoch has to be the same too,
and where both logs part is found as a follower finds it (KIP-279): by the epochs that were read.

Pure, apart from ``AssignedPartition``, which is state without rules.

Left out: asking, and what the reset policy makes of it (``cluster.consumer``).
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final, NamedTuple

from attrs import define, field

from cluster.client_metadata import LeaderAndEpoch
from cluster.consumer_events import PolledRecord
from cluster.guards import Guards
from cluster.messages_data import EpochEndOffset
from cluster.names import NO_EPOCH, NO_OFFSET

__all__ = ["AssignedPartition", "EpochsRead", "Phase", "Position", "Validation", "validate"]

_EPOCHS_KEPT: Final = 100


class Position(NamedTuple):
    """The next offset to be read.

    Attributes:
        leader_epoch: -1 where it is not known.
        is_read: the epoch is that of the record before ``offset``, which was read. An epoch that
            ListOffsets gave is not: the log need not hold any record of it.
    """

    offset: int = NO_OFFSET
    leader_epoch: int = NO_EPOCH
    is_read: bool = False


class EpochsRead:
    """Epochs of the records that were read, each with its first offset; both strictly rise.

    Only the newest hundred are kept.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[EpochEndOffset] = []

    def note(self, leader_epoch: int, offset: int) -> None:
        """A record was read; what contradicts it goes, as in a log's own epochs."""
        entries = self._entries
        if entries and entries[-1].leader_epoch == leader_epoch:
            return
        while entries and (entries[-1][0] >= leader_epoch or entries[-1][1] >= offset):
            entries.pop()
        entries.append(EpochEndOffset(leader_epoch, offset))
        del entries[:-_EPOCHS_KEPT]

    def clear(self) -> None:
        self._entries.clear()

    def end_of(self, leader_epoch: int, position: int) -> EpochEndOffset:
        """The newest epoch read at or below this one, and where it ended.

        Where there is none the epoch is -1 and the end is where reading began, as far as is known:
        ``position`` at the latest.
        """
        end = position
        for epoch, start in reversed(self._entries):
            if start >= position:
                # Of records that were given up since; the next one read will displace it.
                continue
            if epoch <= leader_epoch:
                return EpochEndOffset(epoch, end)
            end = start
        return EpochEndOffset(NO_EPOCH, end)


class Validation(NamedTuple):
    """What the leader's answer says of a position.

    Attributes:
        diverging: the newest epoch shared and where the logs part; (-1, -1) where the leader knows
            nothing; None where the position is good.
        is_complete: False to ask again with ``diverging`` as position.
    """

    diverging: EpochEndOffset | None
    is_complete: bool = True


def validate(
    position: Position, answer: EpochEndOffset, epochs: EpochsRead, guards: Guards
) -> Validation:
    """Judge the leader's end of ``position.leader_epoch``; the answer's epoch is not above it."""
    epoch, end = answer
    if epoch < 0 or end < 0:
        return Validation(EpochEndOffset(NO_EPOCH, NO_OFFSET))
    if not guards.one_epoch_per_position:
        return Validation(answer if end < position.offset else None)
    is_same = epoch == position.leader_epoch or not position.is_read
    if is_same and end >= position.offset:
        return Validation(None)
    own_epoch, own_end = epochs.end_of(epoch, position.offset)
    if own_epoch in (NO_EPOCH, epoch):
        return Validation(EpochEndOffset(epoch, min(own_end, end)))
    return Validation(EpochEndOffset(own_epoch, min(own_end, end)), is_complete=False)


class Phase(Enum):
    """What a partition waits for.

    COMMITTED: the group's committed offset. RESET: an offset by the reset policy. VALIDATE: the
    leader's word that it has what was read. FETCH: nothing; it is fetched. FAILED: a seek.
    """

    COMMITTED = "committed"
    RESET = "reset"
    VALIDATE = "validate"
    FETCH = "fetch"
    FAILED = "failed"


@define(eq=False)
class AssignedPartition:
    """One partition of a consumer.

    Attributes:
        place: partition, leader and epoch that the rest is about; None until they are known.
        position: behind the last record polled.
        fetched: from where the next fetch goes on; ``buffer`` lies between the two.
        truncated_from: the position at which a truncation was found that is still being measured.
        waiting_id: the request, other than a fetch, whose answer counts; None for none.
        not_before_us: the earliest next request.
        is_out_of_range: the leader refused ``fetched``; it is asked again when all is polled.
        high_watermark, log_start_offset: as the leader said last, -1 before.
        corrupt_records: how many responses had damage.
    """

    topic: str
    number: int
    phase: Phase
    place: LeaderAndEpoch | None = None
    position: Position = field(factory=Position)
    fetched: Position = field(factory=Position)
    buffer: deque[PolledRecord] = field(factory=deque)
    epochs: EpochsRead = field(factory=EpochsRead)
    truncated_from: Position | None = None
    waiting_id: int | None = None
    not_before_us: int = 0
    is_out_of_range: bool = False
    high_watermark: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    corrupt_records: int = 0

    @property
    def leader(self) -> str | None:
        return None if self.place is None else self.place.leader

    def enter(self, phase: Phase) -> None:
        """Wait for something else; answers under way for the old phase do not count."""
        self.phase = phase
        self.waiting_id = None
        self.is_out_of_range = False
        self.not_before_us = 0

    def move_to(self, position: Position) -> None:
        """Read on from here; what was fetched and not polled is dropped."""
        self.position = self.fetched = position
        self.buffer.clear()

    def take(self) -> PolledRecord:
        """The next record of the buffer; the position is behind it then."""
        record = self.buffer.popleft()
        self.epochs.note(record.leader_epoch, record.offset)
        self.position = Position(record.offset + 1, record.leader_epoch, True)
        self.catch_up()
        return record

    def catch_up(self) -> None:
        """With nothing left to poll, pass what has no records: markers and holes."""
        if not self.buffer and self.fetched.offset > self.position.offset:
            self.epochs.note(self.fetched.leader_epoch, self.position.offset)
            self.position = self.fetched
