"""I5: every member of the controller's ISR has all that is below the leader's high watermark.

The members' files are looked at, those of brokers that are down too. Left out: leaders that are not
legitimate, and members whose disk lost something of this log since they last entered the ISR.
"""

from __future__ import annotations

from cluster.records import PartitionRecord
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "hw-valid"


def check(scene: Scene, ledger: Ledger, record: PartitionRecord, leader: Place, event: int) -> None:
    """Compare a legitimate leader's high watermark with the members' logs."""
    mark = leader.high_watermark
    for node in record.isr:
        member = ledger.places.get(node)
        if member is None or member.is_lossy:
            continue
        end = member.files_end
        if end < mark:
            scene.report(
                CHECK,
                ledger.partition,
                "member-behind",
                event,
                f"{leader.node} has high watermark {mark}, and {node}, a member of the ISR, ends "
                f"at {end}",
                leader=leader.node,
                member=node,
                high_watermark=mark,
                end=end,
            )
