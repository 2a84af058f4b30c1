"""Eligible leader replicas (KIP-966, PROTOCOL A17): who left the ISR and still has everything.

Below the minimum ISR nothing new is committed, so a replica that leaves the ISR from then on keeps
all that is. It stays eligible until the ISR is large enough again, or until it restarts uncleanly.

Left out: electing them (``cluster.elections``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

__all__ = ["Eligible", "next_eligible"]


class Eligible(NamedTuple):
    """The new ELR in the order of the replicas, and the last leader known.

    The latter is noted when the ISR empties, whatever the ELR is then: the ELR may follow later,
    when nobody leads any more. It counts in an election only where both are empty (PROTOCOL A17).
    """

    elr: tuple[str, ...]
    last_known_elr: tuple[str, ...]


def next_eligible(
    *,
    replicas: tuple[str, ...],
    old_isr: tuple[str, ...],
    new_isr: tuple[str, ...],
    elr: tuple[str, ...],
    last_known_elr: tuple[str, ...],
    leader_before: str | None,
    unclean: Collection[str],
    min_isr: int,
) -> Eligible:
    """The ELR after an ISR changed from ``old_isr`` to ``new_isr``.

    Args:
        leader_before: who leads up to now, None where nobody does.
        unclean: brokers that may have lost records: they leave the ELR.
        min_isr: the effective one, at most the number of replicas.
    """
    if len(new_isr) >= min_isr:
        return Eligible((), ())
    members = (set(elr) | set(old_isr)) - set(new_isr) - set(unclean)
    eligible = tuple(broker for broker in replicas if broker in members)
    if new_isr:
        return Eligible(eligible, ())
    known = last_known_elr if leader_before is None else (leader_before,)
    return Eligible(eligible, tuple(broker for broker in known if broker in replicas))
