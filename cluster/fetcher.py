"""A fetcher: what one broker copies from another, with one request under way (PROTOCOL A3).

Each partition is in one of two states: fetching, or truncating (asking where its newest epoch ends,
in the older truncation modes). A response counts only for a partition that is still the fetcher's,
still at the offset and epoch that were asked for, and ready. That makes late answers, and answers
given twice, harmless. What fails for one partition stops no other.

Left out: which partitions follow whom (``cluster.applying``), what a leader answers
(``cluster.serving``).
"""

from __future__ import annotations

from attrs import define, field

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.fetch_state import FetchState, PartitionFetch, Step
from cluster.message import Message
from cluster.messages_data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    IsolationLevel,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochPartition,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.names import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    NO_EPOCH,
    Now,
    TopicIdPartition,
)
from cluster.replica import Replica
from cluster.replicating import Answer, Replicating
from cluster.truncation import TruncationMode

__all__ = ["Fetcher", "Fetchers"]

_ASKED_IN_ORDER = (
    FetchState.TRUNCATING,
    FetchState.LATEST,
    FetchState.EARLIEST,
    FetchState.FETCHING,
)


@define(eq=False)
class Fetcher:
    """The partitions that ``core``'s broker copies from ``leader``."""

    core: BrokerCore
    leader: str
    replicating: Replicating
    partitions: dict[TopicIdPartition, PartitionFetch] = field(factory=dict)
    _sent: Message | None = None
    _is_received: bool = False
    _asked: dict[TopicIdPartition, tuple[int, int]] = field(factory=dict)

    # Partitions --------------------------------------------------------------------------------

    def add(self, replica: Replica, leader_epoch: int, fx: Effects) -> None:
        """Begin to copy a partition under an epoch; one that is there at it goes on.

        Where nothing tells of epochs the log is cut to its high watermark first. The modes that ask
        for the end of an epoch do so with an empty log too: "undefined" is for the leader to say.

        Raises ``StorageError`` as ``Replica.truncate`` does.
        """
        known = self.partitions.get(replica.partition)
        if known is not None and known.leader_epoch == leader_epoch:
            return
        log = replica.opened
        mode = self.core.config.truncation
        begun = PartitionFetch(leader_epoch, log.leo, log.epochs.latest)
        if mode is TruncationMode.HIGH_WATERMARK or (
            mode is TruncationMode.FETCH and log.epochs.latest == NO_EPOCH
        ):
            self.replicating.cut_to_high_watermark(replica, fx)
            begun.fetch_offset, begun.last_fetched_epoch = log.leo, log.epochs.latest
        elif mode is not TruncationMode.FETCH:
            begun.state = FetchState.TRUNCATING
            begun.fetch_offset = replica.high_watermark
        self.partitions[replica.partition] = begun

    def remove(self, partition: TopicIdPartition) -> None:
        """Copy it no longer; an answer under way is not for it any more."""
        self.partitions.pop(partition, None)

    # Asking ------------------------------------------------------------------------------------

    def pump(self, now: Now, fx: Effects) -> None:
        """Send the next request, if none is under way and a partition is ready."""
        if self._sent is not None or not self.partitions or self.core.is_halted:
            return
        due = [
            (partition, fetch)
            for partition, fetch in sorted(self.partitions.items())
            if fetch.not_before_us <= now.timer_us
        ]
        for state in _ASKED_IN_ORDER:
            asking = [each for each in due if each[1].state is state]
            if asking:
                for _, fetch in asking:
                    fetch.not_before_us = 0
                is_fetch = state is FetchState.FETCHING
                message = self._fetch(asking) if is_fetch else self._question(state, asking)
                self._send(now, message, asking, fx)
                return
        rests = [p.not_before_us for p in self.partitions.values() if p.not_before_us > 0]
        if rests:
            fx.arm(("fetch-backoff", self.leader), min(rests), now.timer_clock)

    def _fetch(self, ready: list[tuple[TopicIdPartition, PartitionFetch]]) -> Message:
        config = self.core.config
        truncates_on_fetch = config.truncation is TruncationMode.FETCH
        return FetchRequest(
            self.core.correlations.take(),
            self.core.name,
            self.core.broker_epoch,
            config.replica_fetch_wait_max_ms,
            1,
            config.replica_fetch_response_max_bytes,
            IsolationLevel.READ_UNCOMMITTED,
            tuple(
                FetchPartition(
                    partition,
                    fetch.leader_epoch if self.core.guards.fetch_epoch else NO_EPOCH,
                    fetch.fetch_offset,
                    fetch.last_fetched_epoch if truncates_on_fetch else NO_EPOCH,
                    self.core.replicas[partition].opened.log_start_offset,
                    config.replica_fetch_max_bytes,
                )
                for partition, fetch in ready
            ),
        )

    def _question(
        self, state: FetchState, asking: list[tuple[TopicIdPartition, PartitionFetch]]
    ) -> Message:
        number = self.core.correlations.take()
        if state is FetchState.TRUNCATING:
            return OffsetsForLeaderEpochRequest(
                number,
                self.core.name,
                tuple(
                    OffsetsForLeaderEpochPartition(
                        partition,
                        fetch.leader_epoch,
                        self.core.replicas[partition].opened.epochs.latest,
                    )
                    for partition, fetch in asking
                ),
            )
        wanted = LATEST_TIMESTAMP if state is FetchState.LATEST else EARLIEST_TIMESTAMP
        return ListOffsetsRequest(
            number,
            self.core.name,
            IsolationLevel.READ_UNCOMMITTED,
            tuple(ListOffsetsPartition(p, fetch.leader_epoch, wanted) for p, fetch in asking),
        )

    def _send(
        self,
        now: Now,
        message: Message,
        asking: list[tuple[TopicIdPartition, PartitionFetch]],
        fx: Effects,
    ) -> None:
        self._sent, self._is_received = message, False
        self._asked = {p: (fetch.fetch_offset, fetch.leader_epoch) for p, fetch in asking}
        fx.send(self.leader, message)
        timeout_us = self.core.config.request_timeout_ms * 1_000
        fx.arm(("fetch-timeout", self.leader), now.timer_us + timeout_us, now.timer_clock)

    # Answers -----------------------------------------------------------------------------------

    def awaits(self, message: Message) -> bool:
        """Whether this answers the request under way."""
        return self._sent is not None and self._sent.correlation_id == message.correlation_id

    def on_lost(self, now: Now, fx: Effects) -> None:
        """The connection is gone, or no answer came in time: rest, then ask again."""
        if self._sent is not None and not self._is_received:
            self._sent = None
            for partition in self._asked:
                fetch = self.partitions.get(partition)
                if fetch is not None:
                    self._rest(now, fetch)
            self.pump(now, fx)

    def on_response(self, now: Now, message: Message, fx: Effects) -> None:
        """The leader has answered; a connection that is lost from now on takes nothing back."""
        self._is_received = True
        fx.disarm(("fetch-timeout", self.leader))
        if not fx.stops_at("fetch-received", self.leader, message):
            self.after_receipt(now, message, fx)

    def after_receipt(self, now: Now, message: Message, fx: Effects) -> None:
        """Take in what the leader says of each partition, then ask on.

        A partition of which it says nothing rests, as after an error.
        """
        sent, self._sent = self._sent, None
        results: tuple[Answer, ...] = ()
        match sent, message:
            case FetchRequest(), FetchResponse():
                results = message.partitions
            case OffsetsForLeaderEpochRequest(), OffsetsForLeaderEpochResponse():
                results = message.partitions
            case ListOffsetsRequest(), ListOffsetsResponse():
                results = message.partitions
            case _:
                fx.note("mismatched-response", leader=self.leader, type=type(message).__name__)
        asked, self._asked = self._asked, {}
        for result in results:
            self._take(now, result, asked.pop(result.partition, None), fx)
        for partition, position in asked.items():
            fetch = self.partitions.get(partition)
            if fetch is not None and position == (fetch.fetch_offset, fetch.leader_epoch):
                self._rest(now, fetch)
        self.pump(now, fx)

    def _take(self, now: Now, result: Answer, asked: tuple[int, int] | None, fx: Effects) -> None:
        partition = result.partition
        fetch = self.partitions.get(partition)
        replica = self.core.replicas.get(partition)
        if asked is None or replica is None or replica.log is None or self.core.is_halted:
            return
        if fetch is None:
            if self.core.guards.epoch_answer_is_current:
                return
            fetch = PartitionFetch(asked[1], asked[0], state=FetchState.TRUNCATING)
        step = self.replicating.take(now, replica, fetch, asked, result, fx)
        if step is Step.RETRY_LATER:
            self._rest(now, fetch)
        elif step is Step.FAILED:
            fetch.state = FetchState.FAILED
            fx.note("replica-failed", partition=str(partition), leader=self.leader)

    def _rest(self, now: Now, fetch: PartitionFetch) -> None:
        fetch.not_before_us = now.timer_us + self.core.config.replica_fetch_backoff_ms * 1_000

    def synced(self, now: Now, partition: TopicIdPartition, fx: Effects) -> None:
        """A flush is done: the partition fetches on if no other is under way."""
        fetch = self.partitions.get(partition)
        if fetch is None or fetch.state is not FetchState.SYNCING:
            return
        if not self.core.replicas[partition].flushes:
            fetch.state = FetchState.FETCHING
            self.pump(now, fx)


class Fetchers:
    """The fetchers of one broker, one a leader."""

    def __init__(self, core: BrokerCore, replicating: Replicating) -> None:
        self._core = core
        self._replicating = replicating
        self._by_leader: dict[str, Fetcher] = {}

    def get(self, leader: str) -> Fetcher | None:
        """The fetcher from ``leader``, None where nothing was ever copied from it."""
        return self._by_leader.get(leader)

    def add(self, replica: Replica, leader: str, leader_epoch: int, fx: Effects) -> None:
        """Copy a partition from ``leader``, and from nobody else."""
        self.remove(replica.partition, but=leader)
        if leader not in self._by_leader:
            self._by_leader[leader] = Fetcher(self._core, leader, self._replicating)
        self._by_leader[leader].add(replica, leader_epoch, fx)

    def remove(self, partition: TopicIdPartition, *, but: str | None = None) -> None:
        """Copy a partition from no broker (``but`` one)."""
        for leader, fetcher in self._by_leader.items():
            if leader != but:
                fetcher.remove(partition)

    def fetch_of(self, partition: TopicIdPartition) -> PartitionFetch | None:
        """Where the copy of a partition stands, None where it is not copied."""
        for fetcher in self._by_leader.values():
            if partition in fetcher.partitions:
                return fetcher.partitions[partition]
        return None

    def synced(self, now: Now, partition: TopicIdPartition, fx: Effects) -> None:
        """A partition's flush is done."""
        for leader in sorted(self._by_leader):
            self._by_leader[leader].synced(now, partition, fx)

    def pump(self, now: Now, fx: Effects) -> None:
        """Send what is due, leader by leader."""
        for leader in sorted(self._by_leader):
            self._by_leader[leader].pump(now, fx)
