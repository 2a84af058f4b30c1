"""Follows the replicas of one broker: what is checked when one of them has changed, or is opened.

Left out: which ones a handler may have changed (``sim.checks.brokers``).
"""

from __future__ import annotations

from typing import Any

from cluster.names import NO_EPOCH, TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Leader, Replica
from sim.checks import (
    committed_durability,
    committed_log_matching,
    epoch_cache_matches_log,
    epoch_fencing,
    epoch_prefix,
    held_back,
    idempotence,
    leader_hw_monotonic,
    log_starts,
    offset_order,
    offsets_increase,
    recovery_sound,
)
from sim.checks.copies import CopyWatch, Noted
from sim.checks.leaders import look_at_leader, look_at_rise
from sim.checks.ledger import Place
from sim.checks.mirrors import Change
from sim.checks.scene import Scene
from sim.disks import SimDisk
from storage.partition_log import PartitionLog

__all__ = ["ReplicaWatch"]


class ReplicaWatch(CopyWatch):
    """See the module; the part of a broker's watch that looks at one replica at a time.

    Attributes:
        places: the broker's replicas, by partition.
    """

    def __init__(self, scene: Scene, node: str, disk: SimDisk) -> None:
        super().__init__(scene, node, disk)
        self.places: dict[TopicIdPartition, Place] = {}
        # Leader epochs that the newest handler has changed, as they were.
        self._epochs: dict[TopicIdPartition, int] = {}
        # Whether it was stopped at a failpoint.
        self._has_stopped = False

    def _look(self, place: Place, event: int, notes: list[Noted] | None, asked: Any) -> None:
        replica = place.replica
        if replica is None:
            return
        log, mirror, role = replica.log, place.mirror, replica.role
        if log is None:
            self._see(place, replica)
            return
        was = place.high_watermark, place.start, place.role, place.state, place.isr
        start, end, was_end = log.log_start_offset, log.leo, place.end
        if (
            not mirror.has_changed
            and not mirror.is_stale
            and replica.high_watermark == was[0]
            and end == was_end
            and start == was[1]
            and role is was[2]
            and replica.state is was[3]
            and (role.isr if isinstance(role, Leader) else None) is was[4]
        ):
            return
        mirror.refresh()
        change = mirror.take_change() if mirror.has_changed else None
        self._see(place, replica)
        scene, ledger = self.scene, self.scene.ledger(place.partition)
        # The configuration may have changed while the partition's state has not.
        ledger.is_compacted |= replica.config.cleanup_compact
        if start > was[1]:
            log_starts.note_raised(scene, place, notes or [], event)
        if start != was[1] or replica.state is not was[3]:
            ledger.start = max(ledger.start, min(start, ledger.deleted))
            if replica.state is not was[3]:
                self._epochs[place.partition] = _epoch_of(was[3])
            epoch_cache_matches_log.check(scene, ledger, place, log, event)
            is_hiding = start > max(was[1], ledger.deleted)
            if is_hiding and place is scene.legitimate_leader(ledger):
                committed_durability.check(scene, ledger, place, event)
        offset_order.check(scene, ledger, place, log, event)
        has_risen = place.high_watermark != was[0]
        if has_risen and role is was[2] and isinstance(role, Leader):
            if _epoch_of(place.state) == _epoch_of(was[3]):
                leader_hw_monotonic.check(scene, place, was[0], event)
        if change is not None:
            self._check_change(place, log, change, event, notes or [], was[1])
        if asked is not None and (change is not None or has_risen) and place.partition in asked:
            added = () if change is None else change.added
            epoch_fencing.check_response(scene, place, asked[place.partition], added, event)
        if ledger.history.suspects:
            epoch_prefix.check(scene, ledger, event)
        is_cut = change is not None and bool(change.cut)
        is_told = place.isr is not was[4] or place.state is not was[3] or role is not was[2]
        if is_cut or is_told:
            look_at_leader(scene, ledger, event)
        elif has_risen and place.isr is not None:
            look_at_rise(scene, ledger, place, event)
        isr = place.isr
        if isr is not None and not self._has_stopped:
            if end > was_end or (isr is not was[4] and not isr.is_pending):
                held_back.check(scene, place, event)
        if has_risen or is_cut:
            # Behind that: whom an unclean election has left behind may differ.
            committed_log_matching.check(scene, ledger, place, event)

    def _see(self, place: Place, replica: Replica) -> None:
        role, log = replica.role, replica.log
        place.role, place.state = role, replica.state
        place.isr = role.isr if isinstance(role, Leader) else None
        if log is not None:
            place.start, place.end = log.log_start_offset, log.leo
            # What was known to be damaged is not cut a second time, and new records take its place.
            place.shown = min(place.shown, log.leo)
            place.high_watermark = replica.high_watermark

    def _check_change(
        self,
        place: Place,
        log: PartitionLog,
        change: Change,
        event: int,
        notes: list[Noted],
        start: int,
    ) -> None:
        """What has come and gone; ``start`` is the log's before that."""
        scene, ledger = self.scene, self.scene.ledger(place.partition)
        mirror = place.mirror
        if mirror.disorder:
            offsets_increase.check(scene, place, event)
        if change.overwritten:
            offsets_increase.check_damage(scene, place, change.overwritten, event)
        added, cut = change.added, change.cut
        if added and cut:
            # What was appended and taken back in one handler was never there.
            cut = tuple(batch for batch in cut if not any(batch is each for each in added))
            added = tuple(batch for batch in added if mirror.holds(batch))
        if cut:
            twins = {batch.base: batch.epoch for batch in added}
            rewritten = [batch for batch in cut if twins.get(batch.base) == batch.epoch]
            if rewritten:
                self._note_fate(place, rewritten, "overwritten", event)
            gone = [batch for batch in cut if twins.get(batch.base) != batch.epoch]
            if gone:
                self._note_cut(place, gone, notes, event, start)
            # What was damaged before that lies lower, and is not cut a second time.
            low = min(cut[0].base, log.leo, *(batch.base for batch in added))
            place.shown = min(place.shown, low)
            ledger.settled = {
                pair: min(end, low) if place.node in pair else end
                for pair, end in ledger.settled.items()
            }
            epoch_cache_matches_log.check(scene, ledger, place, log, event)
            idempotence.check_memory(scene, ledger, place, log, event)
            if place is scene.legitimate_leader(ledger):
                committed_durability.check(scene, ledger, place, event)
        if added:
            ledger.appended_us = scene.world.now_us
            if len(added) > 1 or added[0].base == mirror.runs[-1][1]:
                epoch_cache_matches_log.check(scene, ledger, place, log, event)
            else:
                epoch_cache_matches_log.check_last(scene, place, log, added[-1], event)
            for batch in change.begun:
                idempotence.check(scene, ledger, place, batch, event)

    def _check_log(self, place: Place, log: PartitionLog, event: int) -> None:
        """A log as a whole, when it is opened."""
        scene, ledger = self.scene, self.scene.ledger(place.partition)
        offset_order.check(scene, ledger, place, log, event)
        epoch_cache_matches_log.check(scene, ledger, place, log, event)
        recovery_sound.check_claim(scene, place, log, event)
        idempotence.check_memory(scene, ledger, place, log, event)
        self._deep(place, event)

    def _deep(self, place: Place, event: int) -> None:
        scene, ledger = self.scene, self.scene.ledger(place.partition)
        offsets_increase.check_deep(scene, place, event)
        committed_log_matching.check(scene, ledger, place, event, is_deep=True)
        epoch_prefix.check(scene, ledger, event)
        leader = scene.legitimate_leader(ledger)
        if leader is not None:
            committed_durability.check(scene, ledger, leader, event)

    def deep(self, event: int) -> None:
        """Everything that is checked of whole logs."""
        for place in self.places.values():
            replica = place.replica
            self._deep(place, event)
            if replica is not None and replica.log is not None and replica.log.failure is None:
                log, ledger = replica.log, self.scene.ledger(place.partition)
                offset_order.check(self.scene, ledger, place, log, event)
                epoch_cache_matches_log.check(self.scene, ledger, place, log, event)
                recovery_sound.check_claim(self.scene, place, log, event)
                recovery_sound.check_index(self.scene, place, log, event)


def _epoch_of(state: PartitionRecord | None) -> int:
    return NO_EPOCH if state is None else state.leader_epoch
