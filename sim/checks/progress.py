"""I12: with all faults over and a stable leader, everything is replicated and acknowledged.

Judged at the end of a run, and only where nothing has disturbed the world for ``QUIET_US``: no
fault is active, every broker and the controller run, nobody is paused. Then every partition has a
leader, every replica is in sync with it, and what was appended some time ago is committed, unless
too few are in sync for that. A log in quarantine is left out where bit rot may have put it there.

No fetch stands still: a replica in state ``failed`` is told of.

While a run lasts, nothing that does not count holds a leader's high watermark back (kind
``held-back``, ``sim.checks.held_back``); whether a cluster recovers is asked with ``[liveness]``
(kind ``stuck``).
"""

from __future__ import annotations

from typing import Final

from cluster.names import CONTROLLER
from cluster.records import PartitionRecord
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["QUIET_US", "check", "is_quiet"]

CHECK = "progress"
QUIET_US: Final = 120_000_000
RECENT_US: Final = 5_000_000


def is_quiet(scene: Scene) -> bool:
    """Whether nothing has disturbed the world for long enough."""
    world = scene.world
    if world.active_faults or world.now_us - scene.disturbed_us < QUIET_US:
        return False
    return all(world.hosts[name].status == "running" for name in (CONTROLLER, *world.config.names))


def check(scene: Scene, event: int) -> None:
    """The run is over."""
    if not is_quiet(scene):
        return
    for partition, record in scene.records.items():
        ledger = scene.ledger(partition)
        wrong = _wrong(scene, ledger, record)
        if wrong:
            scene.report(
                CHECK,
                partition,
                wrong[0],
                event,
                f"{wrong[1]}, {QUIET_US // 1_000_000} s behind the last disturbance",
                leader=record.leader,
                isr=list(record.isr),
                replicas=list(record.replicas),
            )


def _wrong(scene: Scene, ledger: Ledger, record: PartitionRecord) -> tuple[str, str] | None:
    if record.leader is None:
        return None if _is_unelectable(ledger, record) else ("no-leader", "nobody leads")
    leader = scene.legitimate_leader(ledger)
    if leader is None:
        return "no-leader", f"{record.leader} is elected, and does not lead"
    for node in record.replicas:
        place = ledger.places.get(node)
        if place is None or place.replica is None:
            return "no-replica", f"{node} has no replica"
        if place.replica.log is None:
            continue
        broker = scene.broker(node)
        key = f"{ledger.partition}/fetch_state"
        state = None if broker is None or place is leader else broker.fields().get(key)
        if place is not leader and state in (None, "failed"):
            return "failed", f"{node} does not fetch: {state}"
        if node not in record.isr:
            return "not-in-sync", f"{node} is not in sync"
    if scene.world.now_us - ledger.appended_us < RECENT_US:
        return None
    return _lagging(ledger, leader, record)


def _lagging(ledger: Ledger, leader: Place, record: PartitionRecord) -> tuple[str, str] | None:
    for node in record.replicas:
        place = ledger.places[node]
        if place.replica is None or place.replica.log is None:
            continue
        if place.end != leader.end:
            return "behind", f"{node} ends at {place.end}, the leader {leader.node} at {leader.end}"
    replica = leader.replica
    assert replica is not None
    needed = min(replica.config.min_insync_replicas, len(record.replicas))
    if len(record.isr) >= needed and leader.high_watermark != leader.end:
        return (
            "not-committed",
            f"{leader.node} has high watermark {leader.high_watermark} and log end {leader.end}",
        )
    return None


def _is_unelectable(ledger: Ledger, record: PartitionRecord) -> bool:
    """Everybody who may lead has a damaged log."""
    places = [ledger.places.get(node) for node in (*record.isr, *record.elr)]
    return all(p is None or p.replica is None or p.replica.log is None for p in places)
