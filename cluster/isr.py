"""The in-sync replicas as their leader sees them: who falls out, who may join, what is pending.

One proposal per partition is under way at a time. Until the controller has answered, the leader
counts with the larger set: a member that joins counts at once, one that leaves still counts
(PROTOCOL A13, KIP-497).

Left out: what the controller makes of a proposal (``cluster.controller``).
"""

from __future__ import annotations

from typing import NamedTuple

from attrs import field, frozen

from cluster.guards import Guards
from cluster.names import NO_OFFSET

__all__ = ["CaughtUp", "IsrState", "caught_up", "is_out_of_sync", "may_join"]


@frozen
class IsrState:
    """The committed ISR and what is proposed.

    Attributes:
        isr: as last acknowledged by the controller or told by its metadata.
        proposed: what a request under way asks for, None while there is none.
        partition_epoch: of ``isr``.
        maximal: everyone who may be in the controller's ISR.
    """

    isr: tuple[str, ...]
    partition_epoch: int
    proposed: tuple[str, ...] | None = None
    maximal: frozenset[str] = field(init=False, eq=False, repr=False)

    @maximal.default
    def _members_of_both(self) -> frozenset[str]:
        return frozenset(self.isr) | frozenset(self.proposed or ())

    @property
    def is_pending(self) -> bool:
        """Whether a proposal is under way."""
        return self.proposed is not None


class CaughtUp(NamedTuple):
    """When a follower last had all that its leader had, and its last fetch before now.

    Attributes:
        caught_up_us: wall clock, 0 for never.
        last_fetch_us: wall clock of the last fetch.
        last_fetch_leader_leo: the leader's end at that fetch.
    """

    caught_up_us: int = 0
    last_fetch_us: int = 0
    last_fetch_leader_leo: int = 0


def caught_up(before: CaughtUp, now_us: int, fetch_offset: int, leader_leo: int) -> CaughtUp:
    """After a fetch at ``fetch_offset``: at the leader's end it is caught up now, at the end that
    the leader had at the fetch before, as of that fetch.
    """
    if fetch_offset >= leader_leo:
        when = max(before.caught_up_us, now_us)
    elif fetch_offset >= before.last_fetch_leader_leo:
        when = max(before.caught_up_us, before.last_fetch_us)
    else:
        when = before.caught_up_us
    return CaughtUp(when, now_us, leader_leo)


def is_out_of_sync(
    follower_leo: int, leader_leo: int, caught_up_us: int, now_us: int, lag_max_us: int
) -> bool:
    """Whether a member has to leave: behind, and not caught up for longer than the limit."""
    return follower_leo != leader_leo and now_us - caught_up_us > lag_max_us


def may_join(
    *,
    follower_leo: int,
    high_watermark: int,
    leader_epoch_start: int,
    is_active: bool,
    has_current_broker_epoch: bool,
    guards: Guards,
) -> bool:
    """Whether a replica outside the ISR may be proposed for it.

    Args:
        leader_epoch_start: the leader's end when its epoch began: below it the follower may still
            have to truncate (KAFKA-7128).
        is_active: not fenced and not in controlled shutdown.
        has_current_broker_epoch: its fetches carry the epoch of its registration, or none.
    """
    if follower_leo == NO_OFFSET:
        return False
    if guards.join_at_high_watermark and follower_leo < high_watermark:
        return False
    if guards.epoch_start_rule and follower_leo < leader_epoch_start:
        return False
    if guards.fenced_stays_out and not is_active:
        return False
    return has_current_broker_epoch or not guards.member_broker_epoch
