"""Partitions as brokers come, go and propose: fencing, damage, elections, AlterPartition.

Every function decides on a ``ControllerState``; ``cluster.partition_changes`` says what a change
makes of one record. Partitions are gone through by topic id and number, so that every process
decides in the same order.

Left out: when a broker is fenced (``cluster.broker_control``), and what operators ask for
(``cluster.topic_admin``).
"""

from __future__ import annotations

from collections.abc import Collection

from cluster.controller_state import ControllerState
from cluster.elections import Election
from cluster.errors import ErrorCode
from cluster.messages_control import (
    AlterPartition,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
    BrokerState,
)
from cluster.names import NO_BROKER_EPOCH, TopicIdPartition
from cluster.partition_changes import next_record
from cluster.records import LeaderRecoveryState, PartitionRecord

__all__ = [
    "alter_partitions",
    "balance_leaders",
    "check_alter_partition",
    "elect_leaderless",
    "leads_something",
    "leave_isrs",
    "quarantine",
    "repair",
]


# Brokers that come and go ----------------------------------------------------------------------


def leads_something(state: ControllerState, broker_id: str) -> bool:
    """Whether any partition names it as leader."""
    return any(record.leader == broker_id for record in state.image.partitions())


def leave_isrs(state: ControllerState, broker_id: str, *, is_unclean: bool = False) -> None:
    """A broker that is active no more leaves every ISR and leads nothing (PROTOCOL A16).

    The last member without ELR stays listed. With ``is_unclean`` it may have lost records and
    leaves every ELR too (KIP-966).
    """
    unclean = (broker_id,) if is_unclean else ()
    for record in list(state.image.partitions()):
        is_eligible = is_unclean and broker_id in record.elr
        if broker_id in record.isr or record.leader == broker_id or is_eligible:
            _exclude(state, record, broker_id, unclean)


def quarantine(
    state: ControllerState, broker_id: str, partitions: Collection[TopicIdPartition]
) -> None:
    """Its logs of these partitions refused to open: out of ISR and ELR (DECISIONS 2.10)."""
    for partition in sorted(partitions):
        record = state.image.partition(partition)
        if record is not None and broker_id in (*record.isr, *record.elr, record.leader):
            _exclude(state, record, broker_id, (broker_id,))


def _exclude(
    state: ControllerState, record: PartitionRecord, broker_id: str, unclean: tuple[str, ...]
) -> None:
    after = next_record(
        record,
        state.circumstances(record, deposes=broker_id),
        isr=[member for member in record.isr if member != broker_id],
        unclean=unclean,
        election=state.election(record.partition.topic),
    )
    state.decide_change(record, after)


def repair(state: ControllerState) -> None:
    """Take out of the ISRs whoever is not active: decisions that a crash split."""
    for broker_id in sorted(state.image.brokers):
        if not state.image.is_active(broker_id):
            leave_isrs(state, broker_id)


# Elections -------------------------------------------------------------------------------------


def elect_leaderless(
    state: ControllerState, *, broker_id: str | None = None, only_unclean: bool = False
) -> None:
    """Look for leaders of partitions without one.

    Args:
        broker_id: only of partitions that it is a replica of: it may lead from now on.
        only_unclean: only where an unclean election is allowed: the periodic look.
    """
    for record in list(state.image.partitions()):
        if record.leader is not None or (
            broker_id is not None and broker_id not in record.replicas
        ):
            continue
        election = state.election(record.partition.topic)
        if only_unclean and election is not Election.UNCLEAN:
            continue
        after = next_record(record, state.circumstances(record), election=election)
        state.decide_change(record, after)


def balance_leaders(state: ControllerState) -> None:
    """Give partitions back to their preferred leaders, where these may lead (PROTOCOL A15).

    Kafka waits until a tenth of a broker's partitions are led elsewhere; here one is enough.
    """
    for record in list(state.image.partitions()):
        preferred = record.replicas[0]
        if record.leader == preferred:
            continue
        circumstances = state.circumstances(record)
        after = next_record(record, circumstances, election=Election.PREFERRED)
        if after.leader == preferred:
            state.decide_change(record, after)


# AlterPartition --------------------------------------------------------------------------------


def alter_partitions(
    state: ControllerState, request: AlterPartitionRequest
) -> AlterPartitionResponse:
    """Leaders propose ISRs; one partition's refusal does not touch the others."""
    results = tuple(_alter(state, request.broker_id, each) for each in request.partitions)
    return AlterPartitionResponse(request.correlation_id, ErrorCode.NONE, results)


def _alter(state: ControllerState, sender: str, proposal: AlterPartition) -> AlterPartitionResult:
    partition = proposal.partition
    record, error = state.find(partition)
    if record is not None:
        error = check_alter_partition(state, sender, proposal, record)
    if record is None or error is not ErrorCode.NONE:
        return AlterPartitionResult(partition, error)
    after = next_record(
        record,
        state.circumstances(record),
        isr=[member.broker_id for member in proposal.new_isr],
        election=state.election(partition.topic),
        recovery_state=proposal.leader_recovery_state,
    )
    state.decide_change(record, after)
    if after.leader != sender:
        # The change completed a reassignment that takes the sender out.
        return AlterPartitionResult(partition, ErrorCode.NEW_LEADER_ELECTED)
    return AlterPartitionResult(
        partition,
        ErrorCode.NONE,
        after.leader,
        after.leader_epoch,
        after.isr,
        after.leader_recovery_state,
        after.partition_epoch,
    )


def check_alter_partition(
    state: ControllerState, sender: str, proposal: AlterPartition, record: PartitionRecord
) -> ErrorCode:
    """What is wrong with a proposal, in the order of PROTOCOL A14 (validateAlterPartitionData)."""
    guards = state.guards
    leader_epoch, partition_epoch = proposal.leader_epoch, proposal.partition_epoch
    if leader_epoch > record.leader_epoch or partition_epoch > record.partition_epoch:
        return ErrorCode.NOT_CONTROLLER
    if leader_epoch < record.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if sender != record.leader:
        return ErrorCode.INVALID_REQUEST
    if guards.partition_epoch and partition_epoch < record.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    members = [member.broker_id for member in proposal.new_isr]
    if sender not in members or len(set(members)) < len(members):
        return ErrorCode.INVALID_REQUEST
    if guards.isr_is_assigned and not set(members) <= set(record.replicas):
        return ErrorCode.INVALID_REQUEST
    if proposal.leader_recovery_state is LeaderRecoveryState.RECOVERING:
        was_recovered = record.leader_recovery_state is LeaderRecoveryState.RECOVERED
        if len(members) > 1 or was_recovered:
            return ErrorCode.INVALID_REQUEST
    if all(_may_be_member(state, record, member) for member in proposal.new_isr):
        return ErrorCode.NONE
    return ErrorCode.INELIGIBLE_REPLICA


def _may_be_member(state: ControllerState, record: PartitionRecord, member: BrokerState) -> bool:
    """Registered, active, not damaged here, and still in the life that its leader saw."""
    broker = state.image.brokers.get(member.broker_id)
    if broker is None:
        return False
    is_acceptable = state.circumstances(record).is_acceptable(member.broker_id)
    if state.guards.fenced_stays_out and not is_acceptable:
        return False
    is_current = member.broker_epoch in (NO_BROKER_EPOCH, broker.broker_epoch)
    return is_current or not state.guards.member_broker_epoch
