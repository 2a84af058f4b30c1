"""The life of brokers at the controller: registration, heartbeats, sessions (PROTOCOL A16).

A broker is FENCED, UNFENCED or in CONTROLLED_SHUTDOWN; its record says which. What the records do
not say is kept here, in memory, and begins anew with the controller: when each was last heard of,
what it has applied, and what must be applied before it may leave.

Rules:

* A session ends ``broker_session_timeout_ms`` after the last contact, on the monotonic clock. All
  that are overdue are fenced at once, the oldest contact first.
* A controller that comes back gives every broker that is not fenced a whole session.
* A broker is unfenced once it has applied its own registration: its applied end is above its
  broker epoch.

Left out: what its going means for partitions (``cluster.partition_control``).
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from cluster.controller_state import ControllerState
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.messages_control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from cluster.names import Now, TopicIdPartition
from cluster.partition_control import (
    elect_leaderless,
    leads_something,
    leave_isrs,
    quarantine,
)
from cluster.records import BrokerRecord

__all__ = ["BrokerControl"]

_INCARNATION_ID_CHARS_MAX = 255


class BrokerControl:
    """Sessions and states of all brokers."""

    def __init__(self, state: ControllerState) -> None:
        self._state = state
        self._contact_us: dict[str, int] = {}
        self._applied: dict[str, int] = {}
        self._leave_at: dict[str, int] = {}

    # Sessions ----------------------------------------------------------------------------------

    def start(self, now: Now, fx: Effects) -> None:
        """After a start: all who are not fenced have just been heard of."""
        for broker_id in sorted(self._state.image.brokers):
            if not self._state.image.brokers[broker_id].is_fenced:
                self._touch(now, broker_id, fx)

    def has_session(self, now: Now, broker_id: str) -> bool:
        """Whether it was heard of lately."""
        contact_us = self._contact_us.get(broker_id)
        return contact_us is not None and now.mono_us < contact_us + self._session_us

    @property
    def _session_us(self) -> int:
        return self._state.config.broker_session_timeout_ms * 1_000

    def _touch(self, now: Now, broker_id: str, fx: Effects) -> None:
        self._contact_us[broker_id] = now.mono_us
        fx.arm(("session", broker_id), now.mono_us + self._session_us)

    def _end_session(self, broker_id: str, fx: Effects) -> None:
        if self._contact_us.pop(broker_id, None) is not None:
            fx.disarm(("session", broker_id))
        self._applied.pop(broker_id, None)
        self._leave_at.pop(broker_id, None)

    def expire(self, now: Now, fx: Effects) -> None:
        """Fence whoever was not heard of for a session."""
        overdue = [
            (contact_us, broker_id)
            for broker_id, contact_us in self._contact_us.items()
            if now.mono_us >= contact_us + self._session_us
        ]
        for _, broker_id in sorted(overdue):
            self._end_session(broker_id, fx)
            self._fence(broker_id, fx)

    # Registration ------------------------------------------------------------------------------

    def register(
        self, now: Now, request: BrokerRegistrationRequest, fx: Effects
    ) -> BrokerRegistrationResponse:
        """A broker has started, or asks again because it did not hear the answer.

        The same incarnation keeps its epoch and its state (KAFKA-16952). Another one is refused
        while the session of the one before lasts; then it begins fenced, with a new epoch, and
        leaves the ISRs. Unless it shut down cleanly, it leaves the ELRs too (KIP-966).
        """
        state, broker_id = self._state, request.broker_id
        identity = request.incarnation_id
        if not 0 < len(identity) <= _INCARNATION_ID_CHARS_MAX or not identity.isprintable():
            return BrokerRegistrationResponse(request.correlation_id, ErrorCode.INVALID_REQUEST)
        before = state.image.brokers.get(broker_id)
        if before is not None:
            if before.incarnation_id == identity:
                self._touch(now, broker_id, fx)
                return BrokerRegistrationResponse(
                    request.correlation_id, ErrorCode.NONE, before.broker_epoch
                )
            if state.guards.registration_incarnation and self.has_session(now, broker_id):
                return BrokerRegistrationResponse(
                    request.correlation_id, ErrorCode.DUPLICATE_BROKER_REGISTRATION
                )
        damaged = self._damaged(broker_id, request.damaged_partitions)
        epoch = state.image.end_offset
        state.decide(BrokerRecord(broker_id, identity, epoch, True, False, damaged))
        is_clean = before is None or before.broker_epoch == request.previous_broker_epoch
        if is_clean or state.guards.unclean_restart_leaves_isr:
            leave_isrs(state, broker_id, is_unclean=not is_clean)
        quarantine(state, broker_id, damaged)
        self._touch(now, broker_id, fx)
        fx.note("broker-registered", broker=broker_id, epoch=epoch, clean=is_clean)
        return BrokerRegistrationResponse(request.correlation_id, ErrorCode.NONE, epoch)

    def _damaged(
        self, broker_id: str, partitions: Iterable[TopicIdPartition]
    ) -> tuple[TopicIdPartition, ...]:
        """Those that exist, and that it is a replica of."""
        image = self._state.image
        found = []
        for partition in sorted(set(partitions)):
            record = image.partition(partition)
            if record is not None and broker_id in record.replicas:
                found.append(partition)
        return tuple(found)

    # Heartbeats --------------------------------------------------------------------------------

    def check_epoch(self, broker_id: str, broker_epoch: int) -> ErrorCode:
        """Whether a broker speaks for its latest registration."""
        registered = self._state.image.broker_epoch(broker_id)
        if registered < 0:
            return ErrorCode.BROKER_ID_NOT_REGISTERED
        if self._state.guards.broker_epoch and broker_epoch != registered:
            return ErrorCode.STALE_BROKER_EPOCH
        return ErrorCode.NONE

    def heartbeat(
        self, now: Now, request: BrokerHeartbeatRequest, fx: Effects
    ) -> BrokerHeartbeatResponse:
        """A broker is alive, and may want something (BrokerHeartbeatManager)."""
        broker_id = request.broker_id
        error = self.check_epoch(broker_id, request.broker_epoch)
        if error is not ErrorCode.NONE:
            return BrokerHeartbeatResponse(request.correlation_id, error)
        self._touch(now, broker_id, fx)
        self._applied[broker_id] = request.current_metadata_offset
        self._note_damage(request)
        broker = self._state.image.brokers[broker_id]
        is_caught_up = request.current_metadata_offset > broker.broker_epoch
        if broker.is_fenced:
            leaves = request.want_shut_down
            if is_caught_up and not request.want_fence and not leaves:
                self._unfence(broker_id, fx)
        elif broker.in_controlled_shutdown:
            leaves = self._may_leave(broker_id)
        else:
            leaves = self._wishes(request, fx)
        if leaves:
            self._fence(broker_id, fx)
            self._end_session(broker_id, fx)
        return BrokerHeartbeatResponse(
            request.correlation_id,
            ErrorCode.NONE,
            is_caught_up,
            self._state.image.brokers[broker_id].is_fenced,
            leaves,
        )

    def _wishes(self, request: BrokerHeartbeatRequest, fx: Effects) -> bool:
        """What an unfenced broker wants; whether it may leave at once."""
        state, broker_id = self._state, request.broker_id
        if request.want_fence:
            self._fence(broker_id, fx)
            return request.want_shut_down
        if not request.want_shut_down:
            return False
        if not leads_something(state, broker_id):
            return True
        broker = state.image.brokers[broker_id]
        state.decide(evolve(broker, in_controlled_shutdown=True))
        leave_isrs(state, broker_id)
        self._leave_at[broker_id] = state.image.end_offset
        fx.note("broker-leaving", broker=broker_id)
        return False

    def _may_leave(self, broker_id: str) -> bool:
        """It leads nothing, and all active brokers have applied that."""
        state = self._state
        if leads_something(state, broker_id):
            return False
        needed = self._leave_at.setdefault(broker_id, state.image.end_offset)
        active = [name for name in state.image.brokers if state.image.is_active(name)]
        return all(self._applied.get(name, -1) >= needed for name in active)

    def _note_damage(self, request: BrokerHeartbeatRequest) -> None:
        """All of its damaged partitions are named each time; what is not is whole again."""
        state, broker_id = self._state, request.broker_id
        broker = state.image.brokers[broker_id]
        damaged = self._damaged(broker_id, request.damaged_partitions)
        if damaged == broker.damaged_partitions:
            return
        state.decide(evolve(broker, damaged_partitions=damaged))
        quarantine(state, broker_id, set(damaged) - set(broker.damaged_partitions))
        if set(broker.damaged_partitions) - set(damaged) and state.image.is_active(broker_id):
            elect_leaderless(state, broker_id=broker_id)

    # Changes -----------------------------------------------------------------------------------

    def _fence(self, broker_id: str, fx: Effects) -> None:
        state = self._state
        broker = state.image.brokers[broker_id]
        if broker.is_fenced:
            return
        state.decide(evolve(broker, is_fenced=True, in_controlled_shutdown=False))
        leave_isrs(state, broker_id)
        fx.note("broker-fenced", broker=broker_id)

    def _unfence(self, broker_id: str, fx: Effects) -> None:
        state = self._state
        state.decide(evolve(state.image.brokers[broker_id], is_fenced=False))
        elect_leaderless(state, broker_id=broker_id)
        fx.note("broker-unfenced", broker=broker_id)
