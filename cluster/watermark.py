"""How far a leader may raise its high watermark (PROTOCOL A5).

Pure: positions in, an offset out. The ISR counts as ``maximal``: committed members and those whose
joining is under way, so that the leader only ever overestimates what the controller may know (I18).

Left out: how a leader learns a follower's position, and when it asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from cluster.guards import Guards

__all__ = ["Progress", "high_watermark", "is_frozen"]


class Progress(NamedTuple):
    """What a leader knows of one follower.

    Attributes:
        leo: its log end as of its last fetch that was served, -1 if unknown.
        is_caught_up: it was at the leader's end within the lag limit.
        is_eligible: not fenced, not leaving, and with the broker epoch that it registered.
    """

    leo: int
    is_caught_up: bool
    is_eligible: bool


def is_frozen(isr_size: int, min_isr: int, replication_factor: int, guards: Guards) -> bool:
    """Whether too few are in sync, by the committed ISR, for anything to be committed."""
    return guards.hw_freeze and isr_size < min(min_isr, replication_factor)


def high_watermark(
    current: int,
    leader_leo: int,
    *,
    isr: frozenset[str],
    maximal_isr: frozenset[str],
    followers: Mapping[str, Progress],
    min_isr: int,
    replication_factor: int,
    guards: Guards,
) -> int:
    """The new high watermark: ``current``, or more.

    Args:
        isr: the committed in-sync replicas, the leader among them.
        maximal_isr: ``isr`` and pending members.
        followers: every replica but the leader that is assigned or a member; where a member is
            missing, its position is unknown and nothing rises.
    """
    if is_frozen(len(isr), min_isr, replication_factor, guards):
        return current
    members = maximal_isr if guards.maximal_isr else isr
    candidate = leader_leo
    unseen = len(members)
    for broker, (leo, is_caught_up, is_eligible) in followers.items():
        is_member = broker in members
        waits = is_caught_up and (is_eligible or not guards.eligible_outsiders_only)
        if is_member or waits:
            candidate = min(candidate, leo)
        unseen -= is_member
    # Only the leader may be a member without a position.
    return current if unseen > 1 else max(current, candidate)
