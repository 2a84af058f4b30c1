"""What a follower does with one partition of a response: truncate, append, follow the offsets.

The order is PROTOCOL A3's: a diverging epoch first, and nothing else of that response; else the
records; then the high watermark, at most the own log end; then the leader's log start.

Left out: asking (``cluster.fetcher``).
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.fetch_state import FetchState, PartitionFetch, Step
from cluster.fetching import is_expected
from cluster.flushing import Flushing
from cluster.messages_data import (
    EpochEndOffset,
    FetchPartitionResult,
    ListOffsetsPartitionResult,
    OffsetsForLeaderEpochPartitionResult,
)
from cluster.names import NO_EPOCH, NO_OFFSET, Now
from cluster.replica import Follower, Replica
from cluster.truncation import out_of_range, resolve
from storage.batch import OFFSET_END
from storage.errors import CorruptBatch, DiskError, LogOffline, StaleLeaderEpoch, StorageError
from storage.mkb1 import MKB1
from storage.partition_log import PartitionLog

__all__ = ["Answer", "Replicating"]

Answer = FetchPartitionResult | OffsetsForLeaderEpochPartitionResult | ListOffsetsPartitionResult


class _Frames(NamedTuple):
    """Whole frames of a response that a follower may take.

    Attributes:
        first, first_end: offsets of the first frame.
        last_epoch: of the last frame.
        gap_end: the base of the last frame that does not follow the one before it, -1 for none.
    """

    data: memoryview
    first: int
    first_end: int
    last_epoch: int
    gap_end: int


class Replicating:
    """The follower's side of replication, for all partitions of a broker."""

    def __init__(self, core: BrokerCore, flushing: Flushing) -> None:
        self._core = core
        self._flushing = flushing

    def take(
        self,
        now: Now,
        replica: Replica,
        fetch: PartitionFetch,
        asked: tuple[int, int],
        answer: Answer,
        fx: Effects,
    ) -> Step:
        """Take in one partition's answer to what was ``asked`` (offset, epoch).

        A disk that fails halts the broker; other errors of the log fail the partition, and a fetch
        goes on under the next epoch only.
        """
        try:
            if isinstance(answer, FetchPartitionResult):
                step = self._fetched(now, replica, fetch, asked, answer, fx)
            elif isinstance(answer, OffsetsForLeaderEpochPartitionResult):
                step = self._epoch_end(replica, fetch, asked, answer, fx)
            else:
                step = self._listed(replica, fetch, asked, answer, fx)
        except (DiskError, LogOffline) as error:
            self._core.halt(error, fx)
            return Step.FAILED
        except StorageError as error:
            fx.note("replication-error", partition=str(replica.partition), error=error.code)
            return Step.FAILED
        self._core.give_out_work(replica, fx)
        return step

    # Fetched -----------------------------------------------------------------------------------

    def _fetched(
        self,
        now: Now,
        replica: Replica,
        fetch: PartitionFetch,
        asked: tuple[int, int],
        answer: FetchPartitionResult,
        fx: Effects,
    ) -> Step:
        guards = self._core.guards
        if fetch.state is not FetchState.FETCHING or fetch.not_before_us > now.timer_us:
            return Step.DROPPED
        if not is_expected(
            requested_offset=asked[0],
            requested_epoch=asked[1],
            fetch_offset=fetch.fetch_offset,
            current_epoch=fetch.leader_epoch,
            guards=guards,
        ):
            return Step.DROPPED
        if answer.error_code is not ErrorCode.NONE:
            return self._refused(fetch, asked, answer.error_code)
        if answer.diverging_epoch is not None:
            if not guards.truncate_before_append:
                self._follow(replica, answer)
            self._truncate(replica, fetch, answer.diverging_epoch, fx)
            return Step.DONE
        if answer.records:
            step = self._append(now, replica, fetch, answer, fx)
            if step is not Step.DONE:
                return step
        elif not guards.keep_last_fetched_epoch:
            fetch.last_fetched_epoch = NO_EPOCH
        self._follow(replica, answer)
        if answer.records:
            self._flushing.after_append(replica, fx)
            fetch.state = _next_state(replica)
        return Step.DONE

    def _append(
        self,
        now: Now,
        replica: Replica,
        fetch: PartitionFetch,
        answer: FetchPartitionResult,
        fx: Effects,
    ) -> Step:
        """Append whole frames as they are; retry from the same offset where they are damaged."""
        log = replica.opened
        try:
            frames = self._acceptable(replica, answer.records, fetch.leader_epoch)
        except CorruptBatch as error:
            fx.note(
                "corrupt-response",
                partition=str(replica.partition),
                offset=fetch.fetch_offset,
                error=error.reason,
            )
            return Step.RETRY_LATER
        if not frames.data:
            return Step.RETRY_LATER
        if self._begins_inside(log, frames, answer.log_start_offset):
            start, high_watermark = log.leo, replica.high_watermark
            replica.restart_at(frames.first)
            fx.note(
                "restart-at",
                partition=str(replica.partition),
                offset=frames.first,
                log_end=start,
                high_watermark=high_watermark,
            )
        gap_end = max(frames.gap_end, frames.first if frames.first > log.leo else NO_OFFSET)
        if replica.config.cleanup_compact or gap_end <= answer.high_watermark:
            # Compaction leaves gaps, and only below the high watermark. A topic that is no longer
            # compacted still has those that were made.
            log.declare_gaps(gap_end)
        before = log.leo
        try:
            log.append_replica_batch(frames.data, now_ms=now.wall_ms)
        except StaleLeaderEpoch:
            if log.leo != log.log_start_offset:
                raise
            # What truncation left is below the log start, and of epochs that the leader never had.
            replica.restart_at(before)
            log.append_replica_batch(frames.data, now_ms=now.wall_ms)
        fx.note(
            "replicate",
            partition=str(replica.partition),
            base_offset=before,
            next_offset=log.leo,
            leader_epoch=frames.last_epoch,
        )
        fetch.fetch_offset = log.leo
        fetch.last_fetched_epoch = frames.last_epoch
        return Step.DONE

    def _begins_inside(self, log: PartitionLog, frames: _Frames, leader_start: int) -> bool:
        """Whether the leader's log starts inside the first frame, and the own log has nothing of
        what the leader has: it is empty (KAFKA-6975), or ends where the leader's starts.

        The second comes about where the log start hides that the logs differ. Kafka fails such a
        partition.
        """
        return (
            self._core.guards.empty_log_takes_batch_base
            and frames.first < log.leo < frames.first_end
            and (log.leo == log.log_start_offset or log.leo <= leader_start)
        )

    def _acceptable(self, replica: Replica, records: bytes, epoch: int) -> _Frames:
        """Whole frames up to the first of a newer epoch.

        Bytes may change under a response in flight: what is newer than the fetch is not the
        follower's to take (KAFKA-18723, hazard B-20). A frame is as large as its leader let it be:
        ``max.message.bytes`` may have been lowered since.

        Raises:
            CorruptBatch: a frame in front of that is damaged or cut short.
        """
        view = memoryview(records)
        limit = replica.opened.config.read_limit_bytes
        takes_newer = not self._core.guards.batch_epoch_not_above_fetch_epoch
        first = first_end = last_epoch = gap_end = end = NO_OFFSET
        at = 0
        while at < len(view):
            size, base, next_offset, frame_epoch, _ = MKB1.check(view, at, len(view), limit)
            if frame_epoch > epoch and not takes_newer:
                break
            if at == 0:
                first, first_end = base, next_offset
            elif base != end:
                gap_end = base
            last_epoch, end = frame_epoch, next_offset
            at += size
        return _Frames(view[:at], first, first_end, last_epoch, gap_end)

    def _follow(self, replica: Replica, answer: FetchPartitionResult) -> None:
        """High watermark and log start of the leader.

        Raises:
            OffsetOutOfRange: the leader's log starts behind the own log's end, so the response
                mixes two moments (hazard B-31).
        """
        log = replica.opened
        if answer.log_start_offset > log.log_start_offset:
            log.raise_log_start_offset(answer.log_start_offset)
        replica.high_watermark = max(log.log_start_offset, min(answer.high_watermark, log.leo))

    def _refused(self, fetch: PartitionFetch, asked: tuple[int, int], error: ErrorCode) -> Step:
        if error is ErrorCode.OFFSET_OUT_OF_RANGE:
            fetch.state = FetchState.LATEST
            return Step.DONE
        if error is ErrorCode.FENCED_LEADER_EPOCH:
            # Ours is still the newest we know: the metadata under way adds the partition anew.
            return Step.FAILED if asked[1] == fetch.leader_epoch else Step.RETRY_LATER
        return Step.RETRY_LATER

    # Truncating --------------------------------------------------------------------------------

    def cut_to_high_watermark(self, replica: Replica, fx: Effects) -> None:
        """Before there were epochs, and still where a log knows of none (PROTOCOL A11).

        Raises ``StorageError`` as ``Replica.truncate`` does.
        """
        leo, high_watermark = replica.opened.leo, replica.high_watermark
        end = replica.truncate(high_watermark)
        if end != leo:
            fx.note(
                "truncate",
                partition=str(replica.partition),
                offset=end,
                log_end=leo,
                high_watermark=high_watermark,
                leader_epoch=NO_EPOCH,
                end_offset=NO_OFFSET,
            )

    def _truncate(
        self, replica: Replica, fetch: PartitionFetch, leader: EpochEndOffset, fx: Effects
    ) -> bool:
        """Cut as the table of PROTOCOL A10 says; returns whether that was the last round."""
        log = replica.opened
        leo = log.leo
        found = resolve(
            leader,
            fetch_offset=fetch.fetch_offset,
            leo=leo,
            own_end=lambda epoch: log.epochs.end_offset_for(epoch, leo),
            mode=self._core.config.truncation,
        )
        before = replica.high_watermark
        end = replica.truncate(found.offset)
        fx.note(
            "truncate",
            partition=str(replica.partition),
            offset=end,
            log_end=leo,
            high_watermark=before,
            leader_epoch=leader.leader_epoch,
            end_offset=leader.end_offset,
        )
        fetch.fetch_offset = end
        fetch.last_fetched_epoch = log.epochs.latest
        return found.is_complete

    def _epoch_end(
        self,
        replica: Replica,
        fetch: PartitionFetch,
        asked: tuple[int, int],
        answer: OffsetsForLeaderEpochPartitionResult,
        fx: Effects,
    ) -> Step:
        is_current = (
            fetch.state is FetchState.TRUNCATING
            and asked[1] == fetch.leader_epoch
            and isinstance(replica.role, Follower)
        )
        if self._core.guards.epoch_answer_is_current and not is_current:
            return Step.DROPPED
        if answer.error_code is not ErrorCode.NONE:
            return self._refused(fetch, asked, answer.error_code)
        end = EpochEndOffset(answer.leader_epoch, answer.end_offset)
        if self._truncate(replica, fetch, end, fx):
            fetch.state = _next_state(replica)
        return Step.DONE

    # Out of range ------------------------------------------------------------------------------

    def _listed(
        self,
        replica: Replica,
        fetch: PartitionFetch,
        asked: tuple[int, int],
        answer: ListOffsetsPartitionResult,
        fx: Effects,
    ) -> Step:
        """Latest, then earliest offset of the leader (PROTOCOL A12)."""
        if fetch.state not in (FetchState.LATEST, FetchState.EARLIEST):
            return Step.DROPPED
        if asked[1] != fetch.leader_epoch:
            return Step.DROPPED
        if answer.error_code is not ErrorCode.NONE or not 0 <= answer.offset < OFFSET_END:
            return self._refused(fetch, asked, answer.error_code)
        log = replica.opened
        if fetch.state is FetchState.LATEST:
            fetch.leader_end = answer.offset
            if answer.offset >= log.leo:
                fetch.state = FetchState.EARLIEST
                return Step.DONE
            found = out_of_range(log.leo, answer.offset, 0, full_truncation_only_below_start=True)
        elif answer.offset > fetch.leader_end:
            # A start behind the end: the two answers are of moments too far apart.
            fetch.state = FetchState.LATEST
            return Step.RETRY_LATER
        else:
            found = out_of_range(
                log.leo,
                max(fetch.leader_end, log.leo),
                answer.offset,
                full_truncation_only_below_start=(
                    self._core.guards.full_truncation_only_below_start
                ),
            )
        leo, high_watermark = log.leo, replica.high_watermark
        if found.truncate_to is not None:
            replica.truncate(found.truncate_to)
        elif found.start_at is not None:
            replica.restart_at(found.start_at)
        if log.leo != leo or found.start_at is not None:
            fx.note(
                "truncate" if found.start_at is None else "restart-at",
                partition=str(replica.partition),
                offset=log.leo,
                log_end=leo,
                high_watermark=high_watermark,
            )
        fetch.fetch_offset = log.leo
        fetch.last_fetched_epoch = log.epochs.latest
        fetch.state = _next_state(replica)
        return Step.DONE


def _next_state(replica: Replica) -> FetchState:
    """A fetch tells the leader what is stored here, so it waits for the flushes under way."""
    return FetchState.SYNCING if replica.flushes else FetchState.FETCHING
