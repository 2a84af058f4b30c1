"""What becomes of a partition: a record and a target in, the next record out (PROTOCOL A14-A17).

Every decision about a partition goes through ``next_record``: an ISR that a leader proposes, a
broker that is fenced or comes back, an election, a step of a reassignment. The order is that of
Kafka's PartitionChangeBuilder: complete a reassignment, find the ELR, elect, count the epochs.

Rules:

* Every change raises the partition epoch by one. The leader epoch rises by one where a leader is
  named, None included, and where a replica leaves the assignment; a change of the ISR alone leaves
  it (KAFKA-15021).
* Without ELR the ISR never becomes empty: one member stays listed, and nobody leads.
* An election outside ISR and ELR, and that of the last known leader, makes the ISR the leader
  alone, RECOVERING (KIP-704).

Left out: which partitions a change concerns, and who may ask for it (``cluster.partition_control``,
``cluster.topic_admin``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from attrs import evolve, frozen

from cluster.elections import Choice, Election, choose_leader
from cluster.eligible import Eligible, next_eligible
from cluster.errors import ProtocolBug
from cluster.guards import Guards
from cluster.records import LeaderRecoveryState, PartitionRecord

__all__ = [
    "Assignment",
    "Circumstances",
    "cancelled",
    "in_order",
    "next_record",
    "reassigned",
    "strands",
]


@frozen
class Circumstances:
    """What a change depends on besides the record and the target.

    Attributes:
        is_acceptable: the broker is active and its log of this partition not damaged.
        min_isr: as configured; at most the number of replicas is asked for.
        eligible_leader_replicas: whether an ELR is kept.
    """

    is_acceptable: Callable[[str], bool]
    min_isr: int
    eligible_leader_replicas: bool
    guards: Guards


class Assignment(NamedTuple):
    """The replicas, and which of them a reassignment adds and takes away."""

    replicas: tuple[str, ...]
    adding: tuple[str, ...] = ()
    removing: tuple[str, ...] = ()


class _Target(NamedTuple):
    """A record under way: its members before and after the election."""

    assignment: Assignment
    isr: tuple[str, ...]
    elr: tuple[str, ...]
    last_known_elr: tuple[str, ...]


def next_record(
    record: PartitionRecord,
    circumstances: Circumstances,
    *,
    isr: Collection[str] | None = None,
    election: Election = Election.ONLINE,
    unclean: Collection[str] = (),
    assignment: Assignment | None = None,
    recovery_state: LeaderRecoveryState | None = None,
    to: str | None = None,
) -> PartitionRecord:
    """The state after a change; ``record`` itself where nothing changes.

    Args:
        isr: the wanted in-sync replicas, as they are by default.
        election: what kind of choice follows.
        unclean: brokers that may miss records here: they leave ISR and ELR.
        assignment: the wanted one, as it is by default.
        recovery_state: what a leader reports.
        to: the leader that an operator forces, a replica; nothing else is asked of it.

    Raises:
        ProtocolBug: ``to`` is no replica.
    """
    wanted = record.isr if isr is None else isr
    target = _target(record, circumstances, wanted, unclean, assignment or _assignment(record))
    choice = _choose(record, circumstances, target, election, to)
    target, listed = _elected(record, circumstances, target, choice)
    state = record.leader_recovery_state if recovery_state is None else recovery_state
    changed = evolve(
        record,
        replicas=target.assignment.replicas,
        isr=listed,
        leader=choice.leader,
        leader_recovery_state=LeaderRecoveryState.RECOVERING if choice.is_unclean else state,
        elr=target.elr,
        last_known_elr=target.last_known_elr,
        adding_replicas=target.assignment.adding,
        removing_replicas=target.assignment.removing,
    )
    leaves = not set(record.replicas) <= set(changed.replicas)
    bumps = changed.leader != record.leader or choice.is_unclean or leaves
    if changed == record and not bumps:
        return record
    return evolve(
        changed,
        leader_epoch=record.leader_epoch + int(bumps),
        partition_epoch=record.partition_epoch + 1,
    )


def in_order(members: Collection[str], replicas: tuple[str, ...]) -> tuple[str, ...]:
    """``members`` in the order of the replicas; what is no replica comes last, by name."""
    first = [broker for broker in replicas if broker in members]
    return (*first, *sorted(set(members) - set(replicas)))


def _assignment(record: PartitionRecord) -> Assignment:
    return Assignment(record.replicas, record.adding_replicas, record.removing_replicas)


def _target(
    record: PartitionRecord,
    circumstances: Circumstances,
    isr: Collection[str],
    unclean: Collection[str],
    assignment: Assignment,
) -> _Target:
    """Members before the election: those who left are out, and a finished reassignment ended."""
    dropped = set(record.replicas) - set(assignment.replicas)
    members = set(isr) - set(unclean) - dropped
    goal = tuple(each for each in assignment.replicas if each not in assignment.removing)
    if (assignment.adding or assignment.removing) and set(goal) <= members:
        members -= set(assignment.removing)
        assignment = Assignment(goal)
    found = Eligible((), ())
    ordered = in_order(members, assignment.replicas)
    if circumstances.eligible_leader_replicas:
        found = next_eligible(
            replicas=assignment.replicas,
            old_isr=record.isr,
            new_isr=ordered,
            elr=record.elr,
            last_known_elr=record.last_known_elr,
            leader_before=record.leader,
            unclean=unclean,
            min_isr=_min_isr(circumstances, assignment),
        )
    return _Target(assignment, ordered, found.elr, found.last_known_elr)


def _min_isr(circumstances: Circumstances, assignment: Assignment) -> int:
    return min(circumstances.min_isr, len(assignment.replicas))


def _choose(
    record: PartitionRecord,
    circumstances: Circumstances,
    target: _Target,
    election: Election,
    to: str | None,
) -> Choice:
    if to is not None:
        if to not in target.assignment.replicas:
            raise ProtocolBug(f"{to} is forced to lead {record.partition}, and is no replica of it")
        is_clean = to in target.isr or (not target.isr and to in target.elr)
        return Choice(to, is_unclean=not is_clean)
    return choose_leader(
        election,
        replicas=target.assignment.replicas,
        isr=target.isr,
        elr=target.elr,
        last_known_elr=target.last_known_elr,
        leader=record.leader,
        is_active=circumstances.is_acceptable,
        guards=circumstances.guards,
    )


def _elected(
    record: PartitionRecord, circumstances: Circumstances, target: _Target, choice: Choice
) -> tuple[_Target, tuple[str, ...]]:
    """Members after the election, and the ISR as it is written down."""
    leader = choice.leader
    if leader is None:
        listed = target.isr
        if not listed and not circumstances.eligible_leader_replicas:
            listed = _last_member(record, target.assignment.replicas)
        return target, listed
    if choice.is_unclean:
        return target._replace(isr=(leader,), elr=(), last_known_elr=()), (leader,)
    if target.isr:
        return target, target.isr
    rest = tuple(broker for broker in target.elr if broker != leader)
    if _min_isr(circumstances, target.assignment) <= 1:
        rest = ()
    return target._replace(isr=(leader,), elr=rest, last_known_elr=()), (leader,)


def _last_member(record: PartitionRecord, replicas: tuple[str, ...]) -> tuple[str, ...]:
    """Who stays listed: the leader if it was a member, else the first one."""
    members = [broker for broker in record.isr if broker in replicas]
    return tuple([broker for broker in members if broker == record.leader] or members[:1])


# Reassignment ----------------------------------------------------------------------------------


def reassigned(record: PartitionRecord, wanted: tuple[str, ...]) -> Assignment:
    """The first step towards ``wanted``: all of them, then those that leave when it is done.

    Replicas that an earlier reassignment was adding, and that are not wanted now, go at once.
    """
    original = [each for each in record.replicas if each not in record.adding_replicas]
    adding = tuple(each for each in wanted if each not in original)
    removing = tuple(each for each in original if each not in wanted)
    return Assignment((*wanted, *removing), adding, removing)


def cancelled(record: PartitionRecord) -> Assignment:
    """Back to the replicas before the reassignment under way."""
    kept = tuple(each for each in record.replicas if each not in record.adding_replicas)
    return Assignment(kept)


def strands(record: PartitionRecord, assignment: Assignment) -> bool:
    """Whether everyone who may lead cleanly would leave at once with that assignment."""
    candidates = record.isr or record.elr
    return bool(candidates) and not set(candidates) & set(assignment.replicas)
