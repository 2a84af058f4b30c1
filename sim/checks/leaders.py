"""What is looked at of a partition's legitimate leader: when it begins, and when anything moves.

Left out: what a leader answers (``sim.checks.answers``).
"""

from __future__ import annotations

from sim.checks import early_deletion, hw_valid, leader_completeness, quorum_superset
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["look_at_leader", "look_at_rise"]


def look_at_leader(scene: Scene, ledger: Ledger, event: int) -> None:
    """A replica of the partition has moved, or the controller's word has."""
    record = scene.records.get(ledger.partition)
    place = None if record is None else ledger.places.get(record.leader or "")
    if record is None or place is None or not scene.is_legitimate(place):
        return
    place.is_uncertain = False
    leadership = place.node, scene.incarnation(place.node), record.leader_epoch
    if leadership not in ledger.led:
        ledger.led.add(leadership)
        leader_completeness.serve(scene, ledger, record, place, event)
        early_deletion.serve(scene, ledger, place, event)
    if place.high_watermark > ledger.top:
        ledger.commit(place)
    hw_valid.check(scene, ledger, record, place, event)
    quorum_superset.check(scene, record, place, event)


def look_at_rise(scene: Scene, ledger: Ledger, place: Place, event: int) -> None:
    """Nothing but the high watermark of a leader has changed."""
    record = scene.records.get(ledger.partition)
    if record is None or not scene.is_legitimate(place):
        return
    if (place.node, scene.incarnation(place.node), record.leader_epoch) not in ledger.led:
        look_at_leader(scene, ledger, event)
        return
    if place.high_watermark > ledger.top:
        ledger.commit(place)
    hw_valid.check(scene, ledger, record, place, event)
