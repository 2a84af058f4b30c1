"""I19: at an acknowledgement under acks all, enough replicas have held the record.

Enough are ``min.insync.replicas``, but no more than there are replicas. Held counts, also if the
copy is gone by now, and in a compacted log whatever stands before it there. Nothing is left out.
"""

from __future__ import annotations

from sim.checks.history import Batch
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "ack-honours-min-isr"


def check(scene: Scene, ledger: Ledger, place: Place, batch: Batch, event: int) -> None:
    """A broker acknowledges a batch."""
    replica = place.replica
    if replica is None or replica.state is None:
        return
    needed = min(replica.config.min_insync_replicas, len(replica.state.replicas))
    known = {**ledger.retired, **ledger.places}
    holders = [node for node, each in known.items() if _has_held(ledger, each, batch)]
    if len(holders) < needed:
        scene.report(
            CHECK,
            ledger.partition,
            "too-few",
            event,
            f"{place.node} acknowledges offset {batch.base}, which {needed} replicas must have "
            f"held, and {', '.join(holders) or 'nobody'} did",
            node=place.node,
            offset=batch.base,
            needed=needed,
            holders=holders,
        )


def _has_held(ledger: Ledger, place: Place, batch: Batch) -> bool:
    if place.ever_held(batch):
        return True
    return ledger.is_compacted and place.mirror.held.has(batch.epoch, batch.base)
