"""Who leads next (PROTOCOL A15): a pure choice from a partition's state and who is active.

Left out: when there is an election, and what else changes with it (``cluster.partition_changes``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from cluster.guards import Guards

__all__ = ["Choice", "Election", "choose_leader"]


class Election(Enum):
    """What kind of choice is asked for.

    ONLINE: keep the leader if it is valid, else any valid one.
    PREFERRED: the first replica if it is valid, else as ONLINE.
    UNCLEAN: as ONLINE, and failing that a replica that may miss records.
    """

    ONLINE = "online"
    PREFERRED = "preferred"
    UNCLEAN = "unclean"


class Choice(NamedTuple):
    """The leader chosen, None where nobody may lead.

    Attributes:
        is_unclean: it was outside ISR and ELR.
        is_last_known: chosen as the last leader known, with ISR and ELR empty (KIP-966).
    """

    leader: str | None
    is_unclean: bool = False
    is_last_known: bool = False


def choose_leader(
    kind: Election,
    *,
    replicas: tuple[str, ...],
    isr: tuple[str, ...],
    elr: tuple[str, ...],
    last_known_elr: tuple[str, ...],
    leader: str | None,
    is_active: Callable[[str], bool],
    guards: Guards,
) -> Choice:
    """The next leader.

    Args:
        replicas: in the order of preference.
        isr: as it will be after the change; the ELR counts only where it is empty.
        leader: the present one, None if there is none.
        is_active: registered, not fenced, not leaving, and its log not damaged.
    """
    may_lead = is_active if guards.elect_only_active else _everyone

    def is_valid(broker: str) -> bool:
        return may_lead(broker) and (broker in isr or (not isr and broker in elr))

    if kind is Election.PREFERRED and replicas and is_valid(replicas[0]):
        return Choice(replicas[0])
    if leader is not None and is_valid(leader):
        return Choice(leader)
    for broker in replicas:
        if is_valid(broker):
            return Choice(broker)
    if not isr and not elr and len(last_known_elr) == 1:
        last_leader = last_known_elr[0]
        if last_leader in replicas and may_lead(last_leader):
            return Choice(last_leader, is_unclean=True, is_last_known=True)
    if kind is Election.UNCLEAN:
        for broker in replicas:
            if may_lead(broker):
                return Choice(broker, is_unclean=True)
    return Choice(None)


def _everyone(broker: str) -> bool:
    return True
