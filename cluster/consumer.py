"""The consumer: fetches its partitions and hands over records in order (PROTOCOL A22, KIP-320).

Each partition goes through the phases of ``cluster.positions.Phase``: the group's committed
offset, or one by the reset policy; validation, where the position has an epoch; fetching. There is
one fetch in flight for each leader, for all partitions that it leads and that have room for more.

* A new leader or epoch drops what was not polled, and the position is validated before anything
  else is fetched. So is one that ``seek`` or a commit gave an epoch.
* An answer counts if the partition still waits for just that one; a fetched one if position and
  epoch are still those of the request.
* NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH and their like ask for new metadata, behind a
  back-off. Only newer metadata moves a partition (``cluster.client_metadata``), so a fetch never
  follows an old leader.
* OFFSET_OUT_OF_RANGE is for the reset policy, once everything before it is polled.
* A topic created anew is another topic: its partitions begin by the reset policy (KAFKA-12257).

What moves or stops a position is an event, which is there before any record behind the change. The
leader bounds what it returns by its high watermark; the consumer believes it.

The node ``controller`` keeps the groups' offsets, where Kafka has brokers that coordinate.

Left out: group membership, automatic commits, read_committed, fetching from followers (KIP-392).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from cluster.client_metadata import METADATA_TIMER, ClientMetadata, LeaderAndEpoch
from cluster.client_requests import REQUEST_TIMER, ClientRequests
from cluster.config import ConsumerConfig
from cluster.consumer_events import (
    CommitFailed,
    ConsumerEvent,
    OffsetCommitted,
    PolledRecord,
)
from cluster.consumer_requests import build
from cluster.effects import Effects, TimerKey
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.message import Message
from cluster.messages_control import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from cluster.messages_data import (
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetsForLeaderEpochPartitionResult,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.names import (
    NO_EPOCH,
    Now,
    TopicIdPartition,
)
from cluster.position_keeper import PositionKeeper
from cluster.positions import AssignedPartition, Phase, Position
from storage.batch import OFFSET_END

__all__ = ["Consumer"]

_WAKE_TIMER: Final = ("wake",)
_ALL_GUARDS: Final = Guards()
_SAME_LEADER: Final = frozenset({ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.CORRUPT_MESSAGE})
"""Errors that new metadata cannot cure."""

_Result = (
    ListOffsetsPartitionResult | OffsetsForLeaderEpochPartitionResult | OffsetFetchPartitionResult
)


class Consumer(Machine):
    """See the module.

    Attributes:
        config, guards: as given.
    """

    def __init__(
        self,
        name: str,
        config: ConsumerConfig,
        *,
        brokers: tuple[str, ...],
        controller: str,
        guards: Guards = _ALL_GUARDS,
        incarnation: int = 0,
    ) -> None:
        """``brokers`` are asked for metadata in turn; ``incarnation`` counts earlier starts."""
        self.name = name
        self.config = config
        self.guards = guards
        self._controller = controller
        self._backoff_us = config.retry_backoff_ms * 1_000
        self._requests = ClientRequests(incarnation, config.request_timeout_ms * 1_000)
        self._metadata = ClientMetadata(
            self._requests,
            brokers,
            guards,
            backoff_us=self._backoff_us,
            max_age_us=config.metadata_max_age_ms * 1_000,
        )
        self._partitions: dict[tuple[str, int], AssignedPartition] = {}
        self._fetching: dict[str, int] = {}
        self._keeper = PositionKeeper(config, guards)
        self._next_poll = 0
        self._wake_us: int | None = None
        self._is_stopped = False

    # What the user does ------------------------------------------------------------------------

    def assign(self, now: Now, fx: Effects, topic_partitions: tuple[tuple[str, int], ...]) -> None:
        """Read these partitions and no others; those that are kept keep their positions.

        Raises:
            ValueError: a partition is named twice, or is none.
        """
        wanted = dict.fromkeys(topic_partitions)
        if len(wanted) != len(topic_partitions):
            raise ValueError(f"partitions are {topic_partitions!r}, allowed is each one once")
        for topic, number in wanted:
            if not topic or number < 0:
                raise ValueError(f"partition is {number} of topic {topic!r}, allowed is 0 or more")
        before, self._partitions = self._partitions, {}
        phase = self._keeper.first_phase
        for topic, number in wanted:
            kept = before.get((topic, number))
            self._partitions[topic, number] = kept or AssignedPartition(topic, number, phase)
            self._metadata.want(now, fx, topic)
        self._advance(now, fx)

    def seek(
        self,
        now: Now,
        fx: Effects,
        topic: str,
        partition: int,
        offset: int,
        leader_epoch: int = NO_EPOCH,
    ) -> None:
        """Read on from ``offset`` (0 to 2^63-1); with the epoch of the record before it, if it is
        known, so that the position is validated first.

        Raises:
            ValueError: the partition is not assigned, or a number is out of range.
        """
        if not 0 <= offset < OFFSET_END or leader_epoch < NO_EPOCH:
            raise ValueError(f"offset is {offset}, epoch {leader_epoch}: allowed is 0 or more")
        found = self._assigned(topic, partition)
        found.epochs.clear()
        found.truncated_from = None
        self._keeper.begin_at(found, Position(offset, leader_epoch, leader_epoch >= 0))
        self._advance(now, fx)

    def poll(
        self, max_records: int | None = None, *, only: tuple[str, int] | None = None
    ) -> list[PolledRecord]:
        """Records that were fetched, at most ``max_records`` or the configured number.

        ``only`` names a partition: records of others wait.

        Offsets of a partition only rise, unless an event said otherwise: take those first.
        Partitions take turns.
        """
        limit = self.config.max_poll_records if max_records is None else max_records
        records: list[PolledRecord] = []
        partitions = list(self._partitions.values())
        for turn in range(len(partitions)):
            found = partitions[(self._next_poll + turn) % len(partitions)]
            if only is not None and only != (found.topic, found.number):
                continue
            while found.buffer and len(records) < limit:
                records.append(found.take())
        if partitions:
            self._next_poll = (self._next_poll + 1) % len(partitions)
        return records

    def position(self, topic: str, partition: int) -> int:
        """The offset of the next record to be polled, -1 while that is not known.

        Raises:
            ValueError: the partition is not assigned.
        """
        return self._assigned(topic, partition).position.offset

    def commit(self, now: Now, fx: Effects) -> None:
        """Store the positions for the group: one ``OffsetCommitted`` or ``CommitFailed`` for each.

        Partitions without a position, or with one that is lost, are left out. An epoch goes with an
        offset if it is that of a record that was read (hazard B-68).

        Raises:
            ValueError: there is no group.
        """
        if self.config.group is None:
            raise ValueError("group is None, a commit needs one")
        places = []
        for found in self._partitions.values():
            offset, epoch, is_read = found.position
            is_good = found.phase is Phase.FETCH or found.phase is Phase.VALIDATE
            if found.place is not None and is_good and found.truncated_from is None:
                epoch = epoch if is_read else NO_EPOCH
                places.append(OffsetCommitPartition(found.place.partition, offset, epoch))
        if places and not self._is_stopped:
            correlation_id = self._requests.correlations.take()
            request = OffsetCommitRequest(correlation_id, self.config.group, tuple(places))
            self._requests.send(now, fx, self._controller, request)

    def take_events(self) -> list[ConsumerEvent]:
        """The events since the last call, in order."""
        events, self._keeper.events = self._keeper.events, []
        return events

    def _assigned(self, topic: str, partition: int) -> AssignedPartition:
        found = self._partitions.get((topic, partition))
        if found is None:
            raise ValueError(f"{topic}-{partition} is not assigned")
        return found

    # Handlers ----------------------------------------------------------------------------------

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        request = self._requests.answered(fx, src, message)
        match request, message:
            case None, _:
                return
            case MetadataRequest(), MetadataResponse():
                self._metadata.on_response(now, fx, message)
            case FetchRequest(), FetchResponse():
                self._on_fetched(now, fx, src, request, message.partitions)
            case ListOffsetsRequest(), ListOffsetsResponse():
                self._on_answer(now, fx, request, message.partitions)
            case OffsetsForLeaderEpochRequest(), OffsetsForLeaderEpochResponse():
                self._on_answer(now, fx, request, message.partitions)
            case OffsetFetchRequest(), OffsetFetchResponse():
                self._on_answer(now, fx, request, message.partitions)
            case OffsetCommitRequest(), OffsetCommitResponse():
                self._on_commit_answer(request, dict(reversed(message.partitions)))
        self._advance(now, fx)

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        if key == METADATA_TIMER:
            self._metadata.on_timer(now, fx)
        elif key == _WAKE_TIMER:
            self._wake_us = None
        elif key[0] == REQUEST_TIMER:
            expired = self._requests.timed_out(key)
            if expired is not None:
                self._on_no_answer(now, fx, *expired)
        self._advance(now, fx)

    def on_disconnected(self, now: Now, peer: str, fx: Effects) -> None:
        for lost in self._requests.lost(fx, peer):
            self._on_no_answer(now, fx, *lost)
        self._advance(now, fx)

    def on_stop(self, now: Now, fx: Effects) -> None:
        """Stopped at once; nothing is committed."""
        self._is_stopped = True
        self._partitions.clear()
        self._requests.give_up_all(fx)
        self._metadata.stop(fx)
        fx.disarm(_WAKE_TIMER)
        fx.stopped()

    def _on_no_answer(self, now: Now, fx: Effects, peer: str, request: Message) -> None:
        match request:
            case MetadataRequest():
                self._metadata.on_failure(now, fx, request)
            case OffsetCommitRequest():
                self._on_commit_answer(request, {})
            case FetchRequest():
                self._on_fetched(now, fx, peer, request, ())
            case ListOffsetsRequest() | OffsetsForLeaderEpochRequest() | OffsetFetchRequest():
                self._on_answer(now, fx, request, ())

    # Requests ----------------------------------------------------------------------------------

    def _advance(self, now: Now, fx: Effects) -> None:
        """What may follow from any event: every request that is due, and the timer for the next."""
        if self._is_stopped:
            return
        for found in self._partitions.values():
            known = self._metadata.leader(found.topic, found.number)
            if known is not None and known != found.place:
                self._keeper.follow(found, known)
        due: dict[tuple[str, Phase], list[tuple[AssignedPartition, LeaderAndEpoch]]] = {}
        for found in self._partitions.values():
            place = found.place
            if place is None or not self._wants(found) or found.not_before_us > now.timer_us:
                continue
            if found.phase is Phase.RESET and self.config.auto_offset_reset == "none":
                self._keeper.lose(found, place, ErrorCode.OFFSET_OUT_OF_RANGE)
            elif found.phase is Phase.COMMITTED:
                due.setdefault((self._controller, found.phase), []).append((found, place))
            elif place.leader is None:
                self._metadata.request_update(now, fx)
            elif found.phase is not Phase.FETCH or place.leader not in self._fetching:
                due.setdefault((place.leader, found.phase), []).append((found, place))
        for peer, phase in sorted(due, key=lambda each: (each[0], each[1].value)):
            self._send(now, fx, peer, phase, due[peer, phase])
        self._arm(now, fx)

    def _wants(self, found: AssignedPartition) -> bool:
        """Whether something is to be asked for the partition, sooner or later."""
        if found.phase is Phase.FETCH:
            is_held = found.is_out_of_range and found.buffer
            return not is_held and len(found.buffer) < self.config.fetch_buffer_records
        return found.phase is not Phase.FAILED and found.waiting_id is None

    def _send(
        self,
        now: Now,
        fx: Effects,
        peer: str,
        phase: Phase,
        due: list[tuple[AssignedPartition, LeaderAndEpoch]],
    ) -> None:
        correlation_id = self._requests.correlations.take()
        if phase is Phase.FETCH:
            self._fetching[peer] = correlation_id
            for found, _ in due:
                found.is_out_of_range = False
        else:
            for found, _ in due:
                found.waiting_id = correlation_id
        self._requests.send(now, fx, peer, build(correlation_id, phase, due, self.config))

    def _arm(self, now: Now, fx: Effects) -> None:
        """Wake when a back-off ends; and soon, where a fetch waits for a poll to make room."""
        times = []
        for found in self._partitions.values():
            if found.phase is Phase.FETCH and not self._wants(found):
                times.append(now.timer_us + self._backoff_us)
            elif self._wants(found) and found.not_before_us > now.timer_us:
                times.append(found.not_before_us)
        at_us = min(times, default=None)
        if at_us is not None and (self._wake_us is None or at_us < self._wake_us):
            self._wake_us = at_us
            fx.arm(_WAKE_TIMER, at_us, now.timer_clock)

    # Answers -----------------------------------------------------------------------------------

    def _on_answer(
        self,
        now: Now,
        fx: Effects,
        request: ListOffsetsRequest | OffsetsForLeaderEpochRequest | OffsetFetchRequest,
        results: tuple[_Result, ...],
    ) -> None:
        """The answer came, or none: for the partitions that still wait for just this one."""
        by_partition: dict[TopicIdPartition, _Result] = {
            each.partition: each for each in reversed(results)
        }
        for each in request.partitions:
            name = each if isinstance(each, TopicIdPartition) else each.partition
            found = self._partitions.get((name.topic, name.partition))
            if found is None or found.place is None:
                continue
            if found.waiting_id != request.correlation_id:
                continue
            found.waiting_id = None
            error = ErrorCode.NETWORK_EXCEPTION
            match by_partition.get(name):
                case ListOffsetsPartitionResult() as listed:
                    error = self._keeper.on_listed(found, found.place, listed)
                case OffsetsForLeaderEpochPartitionResult() as end:
                    error = self._keeper.on_epoch_end(found, found.place, end)
                case OffsetFetchPartitionResult() as committed:
                    error = self._keeper.on_committed(found, committed)
            self._retry(now, fx, found, error)

    def _retry(self, now: Now, fx: Effects, found: AssignedPartition, error: ErrorCode) -> None:
        """Unless all is well, ask again behind the back-off, with new metadata if that may help."""
        if error is ErrorCode.NONE:
            return
        found.not_before_us = now.timer_us + self._backoff_us
        if error not in _SAME_LEADER:
            self._metadata.request_update(now, fx)

    def _on_commit_answer(
        self, request: OffsetCommitRequest, errors: Mapping[TopicIdPartition, ErrorCode]
    ) -> None:
        for partition, offset, _ in request.partitions:
            error = errors.get(partition, ErrorCode.NETWORK_EXCEPTION)
            if error is ErrorCode.NONE:
                self._keeper.events.append(OffsetCommitted(partition, offset))
            else:
                self._keeper.events.append(CommitFailed(partition, offset, error))

    # Fetched records ---------------------------------------------------------------------------

    def _on_fetched(
        self,
        now: Now,
        fx: Effects,
        src: str,
        request: FetchRequest,
        results: tuple[FetchPartitionResult, ...],
    ) -> None:
        """The answer came, or none."""
        if self._fetching.get(src) == request.correlation_id:
            del self._fetching[src]
        by_partition = {each.partition: each for each in reversed(results)}
        for asked in request.partitions:
            name = asked.partition
            found = self._partitions.get((name.topic, name.partition))
            if found is None or found.place is None or found.phase is not Phase.FETCH:
                continue
            place = (found.place.partition, found.place.leader_epoch, found.fetched.offset)
            if place != (name, asked.current_leader_epoch, asked.fetch_offset):
                continue
            result = by_partition.get(name)
            error = ErrorCode.NETWORK_EXCEPTION
            if result is not None:
                error = self._keeper.on_fetched(found, found.place, result)
            self._retry(now, fx, found, error)

    # Viewers -----------------------------------------------------------------------------------

    def fields(self) -> Mapping[str, Any]:
        return dict(self._fields())

    def _fields(self) -> Iterator[tuple[str, Any]]:
        yield "group", self.config.group
        yield "in_flight", len(self._requests)
        for topic, number in sorted(self._partitions):
            found = self._partitions[topic, number]
            name = f"{topic}-{number}"
            yield f"{name}/phase", found.phase.value
            yield f"{name}/position", found.position.offset
            yield f"{name}/position_epoch", found.position.leader_epoch
            yield f"{name}/buffered", len(found.buffer)
            yield f"{name}/high_watermark", found.high_watermark
            yield f"{name}/leader", found.leader
            yield f"{name}/leader_epoch", -1 if found.place is None else found.place.leader_epoch
