"""Follows one broker: behind each of its handlers, what of its replicas has changed is checked.

Only partitions that a handler can have touched are looked at: those of its message or work, those
whose files changed, all of them behind what concerns a broker as a whole.

Left out: the controller (``sim.checks.controllers``) and clients (``sim.checks.clients``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from cluster.broker import Broker
from cluster.effects import Note, Reply, Yield
from cluster.messages_data import (
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import NO_EPOCH, TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Leader, Quarantined, Replica
from sim.checks import (
    committed_durability,
    committed_log_matching,
    epoch_cache_matches_log,
    epoch_fencing,
    epoch_prefix,
    held_back,
    idempotence,
    leader_hw_monotonic,
    livelock,
    log_starts,
    offset_order,
    offsets_increase,
    one_leader_per_epoch,
    recovery_sound,
    truncation_floor,
)
from sim.checks.answers import Answers
from sim.checks.copies import CUTS, CopyWatch, Noted, finished, first_spoilt, spoilt
from sim.checks.files import FileWatch
from sim.checks.leaders import look_at_leader, look_at_rise
from sim.checks.ledger import Place
from sim.checks.mirrors import Change, LogMirror
from sim.checks.scene import Scene
from sim.disks import SimDisk
from sim.meter import DiskCall, Strike
from sim.process import Process, Task
from sim.trace.kinds import Kind
from storage.partition_log import PartitionLog

__all__ = ["BrokerWatch"]

_BY_PARTITION: Final = (
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    DeleteRecordsRequest,
)
_REQUESTS: Final = frozenset(
    {
        FetchRequest,
        FetchResponse,
        ProduceRequest,
        OffsetsForLeaderEpochRequest,
        ListOffsetsRequest,
    }
)
_ANSWERS: Final = frozenset(
    {FetchResponse, OffsetsForLeaderEpochResponse, ProduceResponse, ListOffsetsResponse}
)
_WAITING_TIMERS: Final = frozenset({"fetch", "produce", "fetch-timeout", "fetch-backoff"})

_NOTES: Final = frozenset(
    {*CUTS, "append", "compaction", "expire-producers", "replica-failed", "role-error"}
)


class BrokerWatch(CopyWatch):
    """See the module.

    Attributes:
        places: its replicas, by partition.
        rewrites: as last seen of its disk.
        was_open: whether it served when last seen.
    """

    def __init__(self, scene: Scene, node: str, disk: SimDisk) -> None:
        super().__init__(scene, node, disk)
        self.places: dict[TopicIdPartition, Place] = {}
        self.rewrites = disk.rewrites
        self.was_open = False
        self.answers = Answers(scene, node)
        self.files = FileWatch(disk)
        self._epochs: dict[TopicIdPartition, int] = {}
        # Whether the newest handler was stopped at a failpoint.
        self._has_stopped = False

    # Life --------------------------------------------------------------------------------------

    def look_at_rot(self, event: int) -> None:
        """Bytes may have changed behind the process's back."""
        if self.disk.rewrites == self.rewrites:
            return
        self.rewrites = self.disk.rewrites
        for place in self.places.values():
            if place.replica is not None and place.replica.log is not None:
                place.mirror.look_at_rot()
            else:
                place.mirror.read_all()
            change = place.mirror.take_change()
            if change.cut:
                place.is_lossy = place.is_damaged = True
                self._note_fate(place, change.cut, "damaged", event)
            place.is_lossy |= bool(change.overwritten)
            self._note_fate(place, spoilt(place, change), "damaged", event)
            if place.durable_end is not None:
                sound = recovery_sound.sound_end(place, place.durable_end)
                place.durable_end = min([sound, *(batch.base for batch in change.cut)])
            if change.cut or change.added or change.overwritten:
                self._deep(place, event)

    def before_end(self, event: int, *, is_power: bool) -> None:
        """The process is about to end, or the power to go; ``event`` is the last before that."""
        for place in self.places.values():
            recovery_sound.note_before(place, is_power=is_power)
            if place.replica is not None and place.replica.log is not None:
                log_starts.note_unfinished(self.scene, place, place.replica.log)
                self._note_unfinished(place, event)

    def ended(self, how: str, event: int) -> None:
        """The process has ended, and the files are what is left."""
        for place in self.places.values():
            place.replica = place.role = place.isr = place.state = None
            place.mirror.forget_process()
            if how == "power":
                self._lose(place, "power", event)
                recovery_sound.check_files(self.scene, place, event)
            else:
                place.mirror.refresh()
        self.was_open = False
        self.answers.forget_all()

    def replaced(self, event: int) -> None:
        """The host has other files."""
        for place in self.places.values():
            place.durable_end = place.had = None
            self._lose(place, "replaced", event)
            place.is_lossy = True

    def _begin(self, broker: Broker, event: int) -> None:
        """A process has opened its logs."""
        self._meet(broker)
        for partition, replica in broker.core.replicas.items():
            place = self.places[partition]
            place.is_uncertain, place.is_damaged = True, False
            mirror = place.mirror
            mirror.refresh()
            change = mirror.take_change()
            end = mirror.log_end
            place.fates = [finished(fate, end) for fate in place.fates]
            if change.cut and replica.log is not None:
                place.is_lossy = True
                # A hole that a power loss has left lies before what is cut.
                place.shown = min(place.shown, change.cut[0].base)
                at = first_spoilt(place, change.cut)
                self._note_disk_fate(place, change.cut[:at], "recovery-cut", event)
                self._note_fate(place, change.cut[at:], "salvaged", event)
            place.replica = replica
            self._see(place, replica)
            log_starts.note_opened(self.scene, place, event)
            if replica.log is not None:
                recovery_sound.check(self.scene, place, replica.log, event)
                self._check_log(place, replica.log, event)
            elif isinstance(replica.role, Quarantined):
                recovery_sound.check_refused(self.scene, place, replica.role.error, event)

    def _meet(self, broker: Broker) -> None:
        """Know the replicas that there are now, and no others."""
        replicas = broker.core.replicas
        for partition in [each for each in self.places if each not in replicas]:
            place = self.places.pop(partition)
            self._note_fate(place, place.mirror.batches, "removed", self.scene.world.trace.count)
            ledger = self.scene.ledger(partition)
            ledger.places.pop(self.node, None)
            ledger.retired[self.node] = place
            if self.files.by_directory.get(str(partition)) is place:
                del self.files.by_directory[str(partition)]
        for partition, replica in replicas.items():
            found = self.places.get(partition)
            if found is None:
                found = self._new_place(partition)
            found.replica = replica

    def _new_place(self, partition: TopicIdPartition) -> Place:
        ledger = self.scene.ledger(partition)
        mirror = LogMirror(self.disk, str(partition), ledger.history)
        known = ledger.retired.pop(self.node, None)
        place = known or Place(self.node, partition, mirror)
        if known is not None:
            mirror.held = known.mirror.held
        place.mirror = mirror
        place.is_uncertain = True
        mirror.refresh()
        # A node that has its first and empty log of a partition has lost nothing of it yet: it may
        # be in the ISR since the partition exists, and enter it never again.
        place.is_lossy = known is not None or bool(mirror.batches)
        mirror.take_change()
        self.places[partition] = ledger.places[self.node] = place
        self.files.by_directory[str(partition)] = place
        return place

    # Handlers ----------------------------------------------------------------------------------

    def handled(
        self, process: Process, broker: Broker, number: int, task: Task, effects: Any
    ) -> None:
        """A handler has run."""
        core = broker.core
        notes: list[Noted] | None = None
        replies: list[tuple[str, Any]] | None = None
        event = number
        self._has_stopped = False
        for effect in effects:
            kind = effect.__class__
            if kind is Note:
                event += 1
                if effect.kind in _NOTES:
                    if notes is None:
                        notes = []
                    notes.append((event, effect.kind, dict(effect.args)))
            elif kind is Strike or (kind is DiskCall and effect.is_told):
                event += 1
            elif kind is Yield:
                self._has_stopped = True
            elif kind is Reply and effect.message.__class__ in _ANSWERS:
                if replies is None:
                    replies = []
                replies.append((effect.to, effect.message))
        if self.disk.rewrites != self.rewrites:
            self.look_at_rot(number)
        if task.kind is Kind.START:
            self._begin(broker, number)
        message: Any = task.values[1] if task.handler == "on_message" else None
        asked = None
        if message is not None and message.__class__ in _REQUESTS:
            asked = self.answers.note_request(task.values[0], message)
        if message.__class__ is DeleteRecordsRequest:
            log_starts.note_request(self.scene, self.places, message)
        if not core.is_halted:
            for partition in self._touched(broker, task, message):
                place = self.places.get(partition)
                if place is not None:
                    self._look(place, number, notes, asked)
                    self.files.dirty.pop(partition, None)
        if self.files.dirty and not core.is_halted:
            for partition in list(self.files.dirty):
                place = self.places.get(partition)
                if place is not None:
                    self._look(place, number, notes, asked)
            self.files.dirty.clear()
        if core.is_open is not self.was_open:
            self.was_open = core.is_open
            for place in self.places.values():
                look_at_leader(self.scene, self.scene.ledger(place.partition), number)
        if notes is not None:
            self._read_notes(notes, task)
        if replies is not None:
            for to, answer in replies:
                self.answers.check(broker, self.places, to, answer, self._epochs, number)
        if self._epochs:
            self._epochs.clear()
        if message.__class__ is FetchResponse:
            livelock.note_answer(
                self.scene, self.node, broker, task.values[0], message, self.places, number
            )
        if asked is not None:
            self.answers.agree(self.places, asked, message, number)
        if task.handler == "on_disconnected":
            self.answers.forget(task.values[0])

    def _touched(self, broker: Broker, task: Task, message: Any) -> Iterable[TopicIdPartition]:
        if message is not None:
            if message.__class__ in _BY_PARTITION:
                return [each.partition for each in message.partitions]
            if message.__class__ is MetadataRequest:
                return ()
        elif task.handler == "on_background":
            partition = task.values[0]
            return () if partition is None else (partition,)
        elif task.handler == "on_timer" and task.values[0][0] in _WAITING_TIMERS:
            return ()
        if broker.core.replicas.keys() != self.places.keys():
            self._meet(broker)
        return list(broker.core.replicas)

    def _read_notes(self, notes: list[Noted], task: Task) -> None:
        scene = self.scene
        for event, kind, args in notes:
            place = self.files.by_directory.get(args["partition"])
            if place is None:
                continue
            ledger = scene.ledger(place.partition)
            if kind == "append":
                one_leader_per_epoch.check_append(scene, ledger, place, args["leader_epoch"], event)
            elif kind == "expire-producers":
                ledger.has_expired = True
            elif kind == "compaction":
                committed_durability.check_compaction(
                    scene, ledger, place, args["cleaned_offset"], event
                )
            elif kind in ("truncate", "restart-at"):
                truncation_floor.check(scene, ledger, place, args, event)
                livelock.note_truncation(scene, ledger, place, args, event)
            elif kind == "replica-failed":
                key = str(place.partition), self.node
                scene.failures[key] = event
                scene.misled[key] = max(
                    scene.world.network.garbled.intersection(task.cause), default=0
                )
            elif kind == "role-error":
                scene.refusals[str(place.partition), self.node] = event

    # One replica -------------------------------------------------------------------------------

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
