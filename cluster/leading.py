"""What a leader does with followers' positions: high watermark, acknowledgements, ISR.

The steps follow PROTOCOL A4.5, A5, A7 and A13. Every change of a position, of the ISR or of the
log's end ends in ``advance``.

Left out: reading and appending (``cluster.serving``), how a proposal reaches the controller
(``cluster.isr_changes``).
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.isr import CaughtUp, caught_up, is_out_of_sync, may_join
from cluster.isr_changes import IsrChanges
from cluster.messages_data import (
    DeleteRecordsPartitionResult,
    DeleteRecordsResponse,
    FetchPartition,
    ProducePartitionResult,
    ProduceResponse,
)
from cluster.names import NO_BROKER_EPOCH, Now
from cluster.parked import Waiter
from cluster.records import PartitionRecord
from cluster.replica import Leader, RemoteReplica, Replica
from cluster.watermark import Progress, high_watermark

__all__ = ["Leading"]


class Leading:
    """The leader's side of replication, for all partitions that a broker leads."""

    def __init__(self, core: BrokerCore, changes: IsrChanges) -> None:
        self._core = core
        self._changes = changes
        self.on_risen: Callable[[Now, Replica, Effects], None] = _nothing

    # Positions ---------------------------------------------------------------------------------

    def note_fetch(
        self, now: Now, replica: Replica, follower: str, broker_epoch: int, asked: FetchPartition
    ) -> None:
        """A fetch of a follower was served: what it asks for, it has (PROTOCOL A4.5)."""
        leader = replica.leading
        assert leader is not None
        remote = leader.followers[follower]
        leo = replica.opened.leo
        remote.caught_up = caught_up(remote.caught_up, now.timer_us, asked.fetch_offset, leo)
        remote.leo = asked.fetch_offset
        remote.log_start_offset = asked.log_start_offset
        remote.broker_epoch = broker_epoch

    def has_current_epoch(self, follower: str, broker_epoch: int) -> bool:
        """Whether a follower's fetches are of its registered life; -1 skips the check."""
        if broker_epoch == NO_BROKER_EPOCH:
            return True
        return broker_epoch == self._core.image.broker_epoch(follower)

    # High watermark ----------------------------------------------------------------------------

    def min_isr(self, replica: Replica) -> int:
        """The effective minimum ISR: no more than there are replicas (DECISIONS 2.8)."""
        assert replica.state is not None
        return min(replica.config.min_insync_replicas, len(replica.state.replicas))

    def advance(self, now: Now, replica: Replica, fx: Effects) -> None:
        """Raise the high watermark if it may, then answer who waited for it."""
        leader = replica.leading
        if leader is None or replica.state is None:
            return
        # The leader's own copy counts once it is synced, where the topic asks for that.
        end = replica.synced_end
        if end <= replica.high_watermark:
            return
        since_us = now.timer_us - self._core.config.replica_lag_time_max_ms * 1_000
        risen = high_watermark(
            replica.high_watermark,
            end,
            isr=frozenset(leader.isr.isr),
            maximal_isr=leader.isr.maximal,
            followers={
                name: self._progress(name, remote, since_us)
                for name, remote in leader.followers.items()
            },
            min_isr=replica.config.min_insync_replicas,
            replication_factor=len(replica.state.replicas),
            guards=self._core.guards,
        )
        if risen <= replica.high_watermark:
            return
        fx.note("hw", partition=str(replica.partition), high_watermark=risen)
        replica.high_watermark = risen
        if not fx.stops_at("hw-advanced", replica.partition):
            self.after_rise(now, replica, fx)

    def after_rise(self, now: Now, replica: Replica, fx: Effects) -> None:
        """Produces that the high watermark covers are done, and consumers may read on."""
        leader = replica.leading
        if leader is None:
            return
        error = ErrorCode.NONE
        if len(leader.isr.maximal) < self.min_isr(replica):
            error = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        for waiter in leader.produces.take_up_to(replica.high_watermark):
            self.settle(replica, waiter, error, fx)
        self.on_risen(now, replica, fx)

    def settle(self, replica: Replica, waiter: Waiter, error: ErrorCode, fx: Effects) -> None:
        """Note one partition's outcome; the last one of a request answers it."""
        result = ProducePartitionResult(replica.partition, error)
        if error is ErrorCode.NONE:
            start = replica.opened.log_start_offset
            result = ProducePartitionResult(replica.partition, error, waiter.base_offset, start)
        request = waiter.request
        if request.settle(waiter.place, result):
            self._core.parked_produces.pop((request.src, request.correlation_id), None)
            results = tuple(each for each in request.results if each is not None)
            fx.disarm(("produce", request.src, request.correlation_id))
            fx.reply(request.src, ProduceResponse(request.correlation_id, results))

    def fail_waiting(self, replica: Replica, error: ErrorCode, fx: Effects) -> None:
        """Leadership is lost: the outcome of what waits is not known (PROTOCOL A7)."""
        leader = replica.leading
        if leader is not None:
            for waiters in (leader.produces, leader.synced_produces):
                for waiter in waiters.take_all():
                    self.settle(replica, waiter, error, fx)

    def _progress(self, follower: str, remote: RemoteReplica, since_us: int) -> Progress:
        """``since_us``: who has been caught up since then does not lag."""
        broker = self._core.image.brokers.get(follower)
        return Progress(
            remote.leo,
            0 < remote.caught_up.caught_up_us >= since_us,
            broker is not None
            and broker.is_active
            and remote.broker_epoch in (NO_BROKER_EPOCH, broker.broker_epoch),
        )

    # ISR ---------------------------------------------------------------------------------------

    def expand(self, now: Now, replica: Replica, follower: str, fx: Effects) -> bool:
        """Propose a follower for the ISR, if it may join; returns whether that was done."""
        leader = replica.leading
        assert leader is not None
        if follower in leader.isr.isr or leader.isr.is_pending or leader.is_recovering:
            return False
        remote = leader.followers[follower]
        if not may_join(
            follower_leo=remote.leo,
            high_watermark=replica.high_watermark,
            leader_epoch_start=leader.leader_epoch_start,
            is_active=self._core.image.is_active(follower),
            has_current_broker_epoch=self.has_current_epoch(follower, remote.broker_epoch),
            guards=self._core.guards,
        ):
            return False
        assert replica.state is not None
        members = {*leader.isr.isr, follower}
        isr = tuple(name for name in replica.state.replicas if name in members)
        self._changes.propose(now, replica, isr, fx)
        return True

    def after_credit(self, now: Now, replica: Replica, fx: Effects) -> None:
        """What a follower's position may lead to, behind a proposal of it for the ISR."""
        self.advance(now, replica, fx)
        self.settle_deletes(replica, fx)

    def shrink(self, now: Now, replica: Replica, fx: Effects) -> None:
        """Propose the ISR without those that have lagged for too long.

        A leader that was elected uncleanly first reports that it has recovered.
        """
        leader = replica.leading
        if leader is None or leader.isr.is_pending:
            return
        if leader.is_recovering:
            self._changes.propose(now, replica, leader.isr.isr, fx)
            return
        leo = replica.opened.leo
        lag_us = self._core.config.replica_lag_time_max_ms * 1_000
        stays = []
        for name in leader.isr.isr:
            remote = leader.followers.get(name)
            if remote is None or not is_out_of_sync(
                remote.leo, leo, remote.caught_up.caught_up_us, now.timer_us, lag_us
            ):
                stays.append(name)
        if tuple(stays) != leader.isr.isr:
            self._changes.propose(now, replica, tuple(stays), fx)

    # Promotion ---------------------------------------------------------------------------------

    def followers_of(
        self, now: Now, replica: Replica, names: tuple[str, ...], isr: tuple[str, ...], epoch: int
    ) -> dict[str, RemoteReplica]:
        """What is known of the followers at the start of an epoch (PROTOCOL A2).

        Positions outlive a re-election only where no epoch lay in between (hazard B-H9). A member
        of the ISR counts as caught up now, everyone else as never.
        """
        before: dict[str, RemoteReplica] = {}
        leader = replica.leading
        if leader is not None:
            if epoch == leader.leader_epoch + 1 or (
                not self._core.guards.keep_leo_only_if_no_epoch_missed
            ):
                before = leader.followers
        return {
            name: RemoteReplica(
                before[name].leo if name in before else -1,
                before[name].log_start_offset if name in before else -1,
                before[name].broker_epoch if name in before else NO_BROKER_EPOCH,
                CaughtUp(now.timer_us if name in isr else 0),
            )
            for name in names
            if name != self._core.name
        }

    def adopt(self, leader: Leader, names: tuple[str, ...]) -> None:
        """Follow a change of the assignment inside an epoch."""
        others = [name for name in names if name != self._core.name]
        leader.followers = {name: leader.followers.get(name) or RemoteReplica() for name in others}

    def take_isr(
        self, replica: Replica, leader: Leader, state: PartitionRecord, fx: Effects
    ) -> None:
        """The controller's word on the ISR; a proposal that it overtakes is gone."""
        isr, partition_epoch = state.isr, state.partition_epoch
        if partition_epoch > leader.isr.partition_epoch:
            if isr != leader.isr.isr:
                fx.note("isr", partition=str(replica.partition), isr=isr)
            leader.isr = evolve(leader.isr, isr=isr, partition_epoch=partition_epoch, proposed=None)

    def settle_deletes(self, replica: Replica, fx: Effects) -> None:
        """Deletions are done once no live replica's log starts below them (PROTOCOL A6)."""
        leader = replica.leading
        if leader is None or not leader.deletes:
            return
        low = self.low_watermark(replica)
        waiters, leader.deletes = leader.deletes, []
        for waiter in waiters:
            if waiter.offset > low:
                leader.deletes.append(waiter)
                continue
            request = waiter.request
            result = DeleteRecordsPartitionResult(replica.partition, ErrorCode.NONE, low)
            if request.settle(waiter.place, result):
                results = tuple(each for each in request.results if each is not None)
                self._core.parked_deletes.pop((request.src, request.correlation_id), None)
                fx.disarm(("delete", request.src, request.correlation_id))
                fx.reply(request.src, DeleteRecordsResponse(request.correlation_id, results))

    def low_watermark(self, replica: Replica) -> int:
        """The lowest log start of the replicas that are alive."""
        leader = replica.leading
        assert leader is not None
        starts = [replica.opened.log_start_offset]
        for name, remote in leader.followers.items():
            if self._core.image.is_active(name):
                starts.append(remote.log_start_offset)
        return min(starts)


def _nothing(now: Now, replica: Replica, fx: Effects) -> None:
    return
