"""Records that a leader's retention deletes too early, because a fault has moved its wall clock.

Retention is no loss: the topic is configured so. Where the leader's wall clock is ahead of the true
one, and by the true one the records were young enough to stay, the clock's fault has taken them: a
loss under licence L3 (FAULTS C.3, D.4). What a follower deletes so is lost when it leads, if others
have it still: its log start becomes theirs.

No clock has a part in retention by size. So what goes for the size of what is left behind it, as
a log's oldest segments do, has not gone early.

Left out: clocks of producers, whose timestamps count.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.checks import losses
from sim.checks.history import Batch
from sim.checks.ledger import Early, Ledger, Place
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene
from sim.clocks import WALL_START_US
from sim.faults import ClockDrift, ClockFreeze, ClockStep
from storage.mkb1 import decode_batch

__all__ = ["check", "serve"]


def check(scene: Scene, ledger: Ledger, place: Place, batches: Sequence[Batch], event: int) -> None:
    """A replica's retention has deleted some batches that lay at or above the log's start."""
    replica = place.replica
    if replica is None or not batches or not replica.config.cleanup_delete:
        return
    retention_ms = replica.config.retention_ms
    if retention_ms < 0:
        return
    batches = _not_for_size(place, batches, replica.config.retention_bytes)
    world = scene.world
    wall_us = world.hosts[place.node].clock.now(world.now_us).wall_us
    if wall_us <= WALL_START_US + world.now_us:
        return
    culprits = tuple(
        scene.begun[fault_id]
        for fault_id, fault in world.faults.items()
        if isinstance(fault, ClockStep | ClockDrift | ClockFreeze)
        and fault.node == place.node
        and fault_id in scene.begun
    )
    early = Early(tuple(batches), retention_ms, (*culprits, event))
    if place is scene.legitimate_leader(ledger):
        losses.note_early(scene, ledger, place, _young(scene, early), early.culprits, event)
    else:
        place.early.append(early)


def _not_for_size(place: Place, batches: Sequence[Batch], retention_bytes: int) -> list[Batch]:
    """Without those of segments that had ``retention_bytes`` or more behind them."""
    if retention_bytes < 0:
        return list(batches)
    left_bytes = sum(len(batch.data) for batch in (*batches, *place.mirror.batches))
    segments: list[list[Batch]] = []
    for batch in batches:
        if not segments or batch.base in place.mirror.dropped:
            segments.append([])
        segments[-1].append(batch)
    found: list[Batch] = []
    for segment in segments:
        left_bytes -= sum(len(batch.data) for batch in segment)
        if left_bytes < retention_bytes:
            found += segment
    return found


def serve(scene: Scene, ledger: Ledger, place: Place, event: int) -> None:
    """A leader serves from now on."""
    for early in place.early:
        young = _young(scene, early)
        others = [each for each in ledger.places.values() if each is not place]
        kept = [span for each in others for span in each.mirror.spans(each.start, each.mirror.end)]
        lost = Records(young.common(kept))
        lost.discard(place.mirror.spans(place.start, place.mirror.end))
        if lost:
            losses.note_early(scene, ledger, place, lost, early.culprits, event)
    place.early.clear()


def _young(scene: Scene, early: Early) -> Records:
    """The records that by the true time are not old enough."""
    now_ms = (WALL_START_US + scene.world.now_us) // 1_000
    return Records(
        Span(batch.epoch, batch.base, batch.next)
        for batch in early.batches
        if now_ms - _timestamp_ms(batch) <= early.retention_ms
    )


def _timestamp_ms(batch: Batch) -> int:
    """The largest timestamp of its records, 0 for a batch without any."""
    return max((record.timestamp_ms for record in decode_batch(batch.data).records), default=0)
