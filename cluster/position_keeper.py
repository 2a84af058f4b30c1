"""What happens to a consumer's position: rules for metadata, answers and records.

One method for each thing that a partition learns. Each that takes an answer returns an error code:
NONE, or why the partition has to ask again behind a back-off. What moves or stops a position is
added to ``events``; rules and policy are in ``cluster.consumer``.

Left out: requests, times, and which answers still count.
"""

from __future__ import annotations

from cluster.client_metadata import LeaderAndEpoch
from cluster.config import ConsumerConfig
from cluster.consumer_events import (
    ConsumerEvent,
    CorruptRecords,
    OffsetReset,
    PolledRecord,
    PositionFailed,
    TopicRecreated,
    TruncationDetected,
)
from cluster.errors import ErrorCode
from cluster.fetched import EPOCH_TOO_NEW, parse_frames
from cluster.guards import Guards
from cluster.messages_control import OffsetFetchPartitionResult
from cluster.messages_data import (
    EpochEndOffset,
    FetchPartitionResult,
    ListOffsetsPartitionResult,
    OffsetsForLeaderEpochPartitionResult,
)
from cluster.names import NO_EPOCH, NO_OFFSET
from cluster.positions import AssignedPartition, Phase, Position, validate
from storage.batch import OFFSET_END

__all__ = ["PositionKeeper"]


class PositionKeeper:
    """See the module.

    Attributes:
        events: not yet handed over, in order.
        first_phase: of a partition that has no position.
    """

    __slots__ = ("_config", "_guards", "events", "first_phase")

    def __init__(self, config: ConsumerConfig, guards: Guards) -> None:
        self._config = config
        self._guards = guards
        self.events: list[ConsumerEvent] = []
        self.first_phase = Phase.RESET if config.group is None else Phase.COMMITTED

    # Moves -------------------------------------------------------------------------------------

    def begin_at(self, found: AssignedPartition, position: Position) -> None:
        """Read on from here, once the leader has said that it has what is below."""
        found.move_to(position)
        found.enter(Phase.VALIDATE if position.leader_epoch >= 0 else Phase.FETCH)

    def follow(self, found: AssignedPartition, place: LeaderAndEpoch) -> None:
        """Metadata names another leader, epoch or topic id than before, or the first."""
        before, found.place = found.place, place
        if before is None:
            return
        if before.partition != place.partition:
            self.events.append(TopicRecreated(place.partition, before.partition.topic_id))
            found.epochs.clear()
            found.truncated_from = None
            found.move_to(Position())
            found.enter(self.first_phase)
        elif found.phase in (Phase.FETCH, Phase.VALIDATE):
            self.begin_at(found, found.position)
        else:
            found.enter(found.phase)

    def lose(self, found: AssignedPartition, place: LeaderAndEpoch, error: ErrorCode) -> None:
        """There is no position that the leader has: the policy decides."""
        if self._config.auto_offset_reset != "none":
            found.enter(Phase.RESET)
            return
        self.events.append(PositionFailed(place.partition, found.position.offset, error))
        found.enter(Phase.FAILED)

    # Answers -----------------------------------------------------------------------------------

    def on_committed(
        self, found: AssignedPartition, result: OffsetFetchPartitionResult
    ) -> ErrorCode:
        """The group's offset, or that it has none."""
        if result.error_code is not ErrorCode.NONE:
            return result.error_code
        if 0 <= result.offset < OFFSET_END:
            epoch = max(result.leader_epoch, NO_EPOCH)
            self.begin_at(found, Position(result.offset, epoch, epoch >= 0))
        else:
            found.enter(Phase.RESET)
        return ErrorCode.NONE

    def on_listed(
        self,
        found: AssignedPartition,
        place: LeaderAndEpoch,
        result: ListOffsetsPartitionResult,
    ) -> ErrorCode:
        """The offset that the reset policy asked for."""
        if result.error_code is not ErrorCode.NONE:
            return result.error_code
        if not 0 <= result.offset < OFFSET_END:
            return ErrorCode.OFFSET_NOT_AVAILABLE
        self.events.append(OffsetReset(place.partition, found.position.offset, result.offset))
        is_known = 0 <= result.leader_epoch <= place.leader_epoch
        epoch = result.leader_epoch if is_known else NO_EPOCH
        found.move_to(Position(result.offset, epoch))
        found.enter(Phase.FETCH)
        return ErrorCode.NONE

    def on_epoch_end(
        self,
        found: AssignedPartition,
        place: LeaderAndEpoch,
        result: OffsetsForLeaderEpochPartitionResult,
    ) -> ErrorCode:
        """Where the position's epoch ends in the leader's log."""
        if result.error_code is not ErrorCode.NONE:
            return result.error_code
        if result.leader_epoch > found.position.leader_epoch:
            # No leader answers with an epoch above the one that was asked for.
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        answer = EpochEndOffset(result.leader_epoch, result.end_offset)
        diverging, is_complete = validate(found.position, answer, found.epochs, self._guards)
        if diverging is None and found.truncated_from is None:
            found.enter(Phase.FETCH)
            return ErrorCode.NONE
        if diverging is None:
            # The place to which an earlier answer led is shared.
            diverging = EpochEndOffset(found.position.leader_epoch, found.position.offset)
        if found.truncated_from is None:
            found.truncated_from = found.position
        if is_complete:
            self._truncate(found, place, found.truncated_from, diverging)
        else:
            found.move_to(Position(diverging.end_offset, diverging.leader_epoch, True))
            found.enter(Phase.VALIDATE)
        return ErrorCode.NONE

    def _truncate(
        self,
        found: AssignedPartition,
        place: LeaderAndEpoch,
        before: Position,
        diverging: EpochEndOffset,
    ) -> None:
        """What was read below ``before`` is not what the leader has."""
        epoch, offset = diverging
        found.truncated_from = None
        self.events.append(
            TruncationDetected(place.partition, before.offset, before.leader_epoch, epoch, offset)
        )
        if self._config.auto_offset_reset == "none":
            found.move_to(before)
            found.enter(Phase.FAILED)
        elif offset == NO_OFFSET:
            found.move_to(before)
            found.enter(Phase.RESET)
        else:
            found.move_to(Position(offset, epoch, True))
            found.enter(Phase.FETCH)

    # Records -----------------------------------------------------------------------------------

    def on_fetched(
        self, found: AssignedPartition, place: LeaderAndEpoch, result: FetchPartitionResult
    ) -> ErrorCode:
        """Records from ``found.fetched`` on, or why there are none."""
        if result.error_code is ErrorCode.OFFSET_OUT_OF_RANGE:
            if found.buffer:
                found.is_out_of_range = True
            else:
                self.lose(found, place, result.error_code)
            return ErrorCode.NONE
        if result.error_code is not ErrorCode.NONE:
            return result.error_code
        found.high_watermark = result.high_watermark
        found.log_start_offset = result.log_start_offset
        is_bounded = self._guards.batch_epoch_not_above_fetch_epoch
        fetched = parse_frames(
            result.records,
            fetch_offset=found.fetched.offset,
            records_max=self._config.fetch_buffer_records - len(found.buffer),
            epoch_max=place.leader_epoch if is_bounded else None,
        )
        for offset, key, value, timestamp_ms, headers, epoch in fetched.records:
            found.buffer.append(
                PolledRecord(place.partition, offset, epoch, key, value, timestamp_ms, headers)
            )
        if fetched.next_offset > found.fetched.offset:
            found.fetched = Position(fetched.next_offset, fetched.leader_epoch, True)
            found.catch_up()
        if fetched.damage is None:
            return ErrorCode.NONE
        if fetched.damage == EPOCH_TOO_NEW:
            return ErrorCode.FENCED_LEADER_EPOCH
        found.corrupt_records += 1
        self.events.append(
            CorruptRecords(
                place.partition, fetched.next_offset, fetched.damage, found.corrupt_records
            )
        )
        return ErrorCode.CORRUPT_MESSAGE
