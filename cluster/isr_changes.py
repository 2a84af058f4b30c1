"""How a leader's proposals reach the controller: one request under way, the rest wait (KIP-497).

A partition has one proposal at a time; its ISR counts as the larger set until the answer is there
(PROTOCOL A13). An answer that never comes is asked for again; the controller refuses what is stale
by then, and the metadata says what holds.

Left out: what is proposed (``cluster.leading``).
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.isr import IsrState
from cluster.messages_control import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerState,
)
from cluster.names import NO_BROKER_EPOCH, Now, TopicIdPartition
from cluster.records import LeaderRecoveryState
from cluster.replica import Leader, Replica

__all__ = ["IsrChanges"]

_WAIT_FOR_METADATA = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)
_GIVE_UP = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.OPERATION_NOT_ATTEMPTED})

TIMEOUT = "alter-partition"
RETRY_US = 50_000


class IsrChanges:
    """The proposals of one broker."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._waiting: dict[TopicIdPartition, AlterPartition] = {}
        self._sent: AlterPartitionRequest | None = None
        self.on_settled: Callable[[Now, Replica, Effects], None] = _nothing

    def propose(self, now: Now, replica: Replica, isr: tuple[str, ...], fx: Effects) -> None:
        """Ask for another ISR; the leader counts with the larger set from now on."""
        leader = replica.leading
        assert leader is not None
        assert not leader.isr.is_pending, "one proposal at a time"
        leader.isr = evolve(leader.isr, proposed=isr)
        self._waiting[replica.partition] = AlterPartition(
            replica.partition,
            leader.leader_epoch,
            leader.isr.partition_epoch,
            tuple(BrokerState(name, self._epoch_of(leader, name)) for name in isr),
        )
        fx.note("isr-proposed", partition=str(replica.partition), isr=isr)
        self._send(now, fx)

    def _epoch_of(self, leader: Leader, name: str) -> int:
        """The broker epoch with which a member last fetched; the leader's own is registered."""
        if name == self._core.name:
            return self._core.broker_epoch
        if not self._core.guards.member_broker_epoch:
            return NO_BROKER_EPOCH
        remote = leader.followers.get(name)
        if remote is None or remote.broker_epoch == NO_BROKER_EPOCH:
            return self._core.image.broker_epoch(name)
        return remote.broker_epoch

    def _send(self, now: Now, fx: Effects) -> None:
        if self._sent is not None or not self._waiting:
            return
        request = AlterPartitionRequest(
            self._core.correlations.take(),
            self._core.name,
            self._core.broker_epoch,
            tuple(self._waiting[partition] for partition in sorted(self._waiting)),
        )
        self._waiting.clear()
        self._sent = request
        fx.send(self._core.controller, request)
        fx.arm(
            (TIMEOUT,), now.timer_us + self._core.config.request_timeout_ms * 1_000, now.timer_clock
        )

    def on_disconnected(self, now: Now, fx: Effects) -> None:
        """The connection to the controller is gone: ask again in a moment."""
        if self._sent is not None:
            self._take_back()
            fx.arm((TIMEOUT,), now.timer_us + RETRY_US, now.timer_clock)

    def on_timer(self, now: Now, fx: Effects) -> None:
        """No answer came, or it is time to try again: ask for what is still proposed."""
        self._take_back()
        for partition in [p for p, change in self._waiting.items() if not self._is_current(change)]:
            del self._waiting[partition]
        self._send(now, fx)

    def _take_back(self) -> None:
        sent, self._sent = self._sent, None
        for change in sent.partitions if sent is not None else ():
            self._waiting.setdefault(change.partition, change)

    def on_response(self, now: Now, response: AlterPartitionResponse, fx: Effects) -> None:
        """Take in what the controller says of each partition."""
        sent = self._sent
        if sent is None or response.correlation_id != sent.correlation_id:
            return
        self._sent = None
        fx.disarm((TIMEOUT,))
        answers = {result.partition: result for result in response.partitions}
        is_retried = False
        for change in sent.partitions:
            if not self._is_current(change):
                continue
            answer = answers.get(change.partition)
            error = response.error_code
            if answer is not None and error is ErrorCode.NONE:
                error = answer.error_code
            elif error is ErrorCode.NONE:
                error = ErrorCode.UNKNOWN_SERVER_ERROR
            is_retried |= self._take(now, change, answer, error, fx)
        if is_retried:
            fx.arm((TIMEOUT,), now.timer_us + RETRY_US, now.timer_clock)
        else:
            self._send(now, fx)

    def _take(
        self,
        now: Now,
        change: AlterPartition,
        answer: AlterPartitionResult | None,
        error: ErrorCode,
        fx: Effects,
    ) -> bool:
        """Take in one answer; returns whether the proposal is to be made again."""
        replica = self._core.replicas[change.partition]
        leader = replica.leading
        assert leader is not None
        if error is ErrorCode.NONE and answer is not None:
            if (
                answer.leader_epoch != leader.leader_epoch
                or answer.partition_epoch < leader.isr.partition_epoch
            ):
                return False
            leader.isr = IsrState(answer.isr, answer.partition_epoch)
            if answer.leader_recovery_state is LeaderRecoveryState.RECOVERED:
                leader.is_recovering = False
            fx.note("isr", partition=str(change.partition), isr=answer.isr)
            self.on_settled(now, replica, fx)
        elif error in _GIVE_UP:
            leader.isr = evolve(leader.isr, proposed=None)
            self.on_settled(now, replica, fx)
        elif error not in _WAIT_FOR_METADATA:
            self._waiting.setdefault(change.partition, change)
            return True
        # What waits for metadata stays pending: it is under way and says what holds.
        return False

    def _is_current(self, change: AlterPartition) -> bool:
        """Whether a proposal is still this leader's, and not overtaken by metadata."""
        replica = self._core.replicas.get(change.partition)
        leader = None if replica is None else replica.leading
        return (
            leader is not None
            and leader.leader_epoch == change.leader_epoch
            and leader.isr.partition_epoch == change.partition_epoch
            and leader.isr.is_pending
        )


def _nothing(now: Now, replica: Replica, fx: Effects) -> None:
    return
