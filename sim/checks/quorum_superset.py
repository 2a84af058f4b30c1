"""I18: a leader that may raise its high watermark counts with every member the controller has.

That is every member of ISR and ELR. Left out: leaders that are not legitimate, and those with fewer
in sync than ``min.insync.replicas``, whose high watermark is frozen.
"""

from __future__ import annotations

from cluster.records import PartitionRecord
from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "quorum-superset"


def check(scene: Scene, record: PartitionRecord, leader: Place, event: int) -> None:
    """Compare a legitimate leader's maximal ISR with the controller's word."""
    replica = leader.replica
    leading = None if replica is None else replica.leading
    if replica is None or leading is None or replica.state is None:
        return
    min_isr = min(replica.config.min_insync_replicas, len(replica.state.replicas))
    is_frozen = len(leading.isr.isr) < min_isr and scene.world.config.guards.hw_freeze
    if is_frozen:
        return
    missing = sorted({*record.isr, *record.elr} - leading.isr.maximal)
    if missing:
        scene.report(
            CHECK,
            record.partition,
            "member-missing",
            event,
            f"{leader.node} counts with {', '.join(sorted(leading.isr.maximal))}, and not with "
            f"{', '.join(missing)}",
            leader=leader.node,
            counted=sorted(leading.isr.maximal),
            missing=missing,
        )
