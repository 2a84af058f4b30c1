"""I8: the controller's word on a partition makes sense.

The leader is a member or nobody; members are replicas, and none is fenced or leaving, but for the
last one without ELR while there is no leader; somebody is in sync unless there is an ELR; ISR and
ELR do not overlap. Judged when a change is durable. Nothing is left out of it.
"""

from __future__ import annotations

from cluster.records import PartitionRecord
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "isr-well-formed"


def check(scene: Scene, record: PartitionRecord, event: int) -> None:
    """A partition's record has changed."""
    members = set(record.isr)
    is_last = len(members) == 1 and not scene.has_elr and record.leader is None
    kind = ""
    if record.leader is not None and record.leader not in members:
        kind = "leader-no-member"
    elif not members <= set(record.replicas):
        kind = "member-no-replica"
    elif not is_last and not all(scene.image.is_active(name) for name in record.isr):
        kind = "member-not-active"
    elif not members and not scene.has_elr:
        kind = "nobody-in-sync"
    elif members & set(record.elr):
        kind = "isr-and-elr-overlap"
    if kind:
        active = [name for name in record.isr if scene.image.is_active(name)]
        scene.report(
            CHECK,
            record.partition,
            kind,
            event,
            f"leader {record.leader}, ISR {', '.join(record.isr) or 'nobody'} (active: "
            f"{', '.join(active) or 'nobody'}), ELR {', '.join(record.elr) or 'nobody'}, replicas "
            f"{', '.join(record.replicas)}",
            leader=record.leader,
            isr=list(record.isr),
            elr=list(record.elr),
            replicas=list(record.replicas),
            active=active,
        )
