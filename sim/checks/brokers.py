"""Follows one broker: behind each of its handlers, what of its replicas has changed is checked.

Only partitions that a handler can have touched are looked at: those of its message or work, those
whose files changed, all of them behind what concerns a broker as a whole.

Left out: what is checked of one replica (``sim.checks.replicas``), the controller
(``sim.checks.controllers``) and clients (``sim.checks.clients``).
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
from cluster.names import TopicIdPartition
from cluster.replica import Quarantined
from sim.checks import (
    committed_durability,
    idempotence,
    livelock,
    log_starts,
    one_leader_per_epoch,
    recovery_sound,
    truncation_floor,
)
from sim.checks.answers import Answers
from sim.checks.copies import CUTS, Noted, finished, first_spoilt, spoilt
from sim.checks.files import FileWatch
from sim.checks.leaders import look_at_leader
from sim.checks.ledger import Place
from sim.checks.mirrors import LogMirror
from sim.checks.replicas import ReplicaWatch
from sim.checks.scene import Scene
from sim.disks import SimDisk
from sim.meter import DiskCall, Strike
from sim.process import Process, Task
from sim.trace.kinds import Kind
from storage.log_dir import HIGH_WATERMARK_FILE, TopicPartition

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
_ASKED: Final = frozenset({FetchRequest, OffsetsForLeaderEpochRequest, ListOffsetsRequest})
_ANSWERS: Final = frozenset(
    {FetchResponse, OffsetsForLeaderEpochResponse, ProduceResponse, ListOffsetsResponse}
)
_WAITING_TIMERS: Final = frozenset({"fetch", "produce", "fetch-timeout", "fetch-backoff"})

_NOTES: Final = frozenset(
    {
        *CUTS,
        "append",
        "checkpoint",
        "compaction",
        "expire-producers",
        "replica-failed",
        "role-error",
    }
)


class BrokerWatch(ReplicaWatch):
    """See the module.

    Attributes:
        rewrites: as last seen of its disk.
        was_open: whether it served when last seen.
    """

    def __init__(self, scene: Scene, node: str, disk: SimDisk) -> None:
        super().__init__(scene, node, disk)
        self.rewrites = disk.rewrites
        self.was_open = False
        # Since its logs were last opened.
        self._has_other_files = False
        self.answers = Answers(scene, node)
        self.files = FileWatch(disk)
        # Partitions whose high watermark is on record in the newest checkpoint.
        self._marked: frozenset[TopicPartition] = frozenset()
        # Where handlers of garbled messages have stopped, and at which event those were garbled.
        self._stopped: dict[str, int] = {}

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
        self._stopped.clear()

    def replaced(self, event: int) -> None:
        """The host has other files."""
        self._has_other_files = True
        for place in self.places.values():
            place.durable_end = place.had = None
            place.was_closed = True  # By a marker that may be among them.
            self._lose(place, "replaced", event)
            place.is_lossy = True

    def _begin(self, broker: Broker, event: int) -> None:
        """A process has opened its logs."""
        self._meet(broker)
        self._marked = frozenset(broker.core.log_dir.high_watermarks)
        for partition, replica in broker.core.replicas.items():
            place = self.places[partition]
            place.is_uncertain, place.is_damaged = True, False
            mirror = place.mirror
            mirror.refresh()
            if self._has_other_files:
                idempotence.note_replaced(place)
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
        self._has_other_files = False

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
        garbled = self._garbled(task)
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
                if garbled:
                    self._stopped[effect.point] = garbled
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
            self._read_notes(notes, garbled)
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

    def _garbled(self, task: Task) -> int:
        """At which event what a task is about, or what that answers, was garbled; 0 if it was not.

        A request counts when its answer comes, and a message behind the failpoint at which its
        handler has stopped.
        """
        if task.kind is Kind.RESUME:
            return self._stopped.pop(task.values[0], 0)
        garbled, asked = self.scene.world.network.garbled, self.scene.garbled
        if not garbled:
            return 0
        found = max((each for each in task.cause if each in garbled), default=0)
        if task.handler == "on_message":
            src: str = task.values[0]
            message: Any = task.values[1]
            kind, number = message.__class__, message.correlation_id
            if found and kind in _ASKED:
                asked[src, self.node, number] = found
            elif kind in _ANSWERS:
                found = max(found, asked.pop((self.node, src, number), 0))
        return found

    def _read_notes(self, notes: list[Noted], garbled: int) -> None:
        scene = self.scene
        for event, kind, args in notes:
            if kind == "checkpoint":
                if args["file"] == HIGH_WATERMARK_FILE:
                    self._note_marks(event)
                continue
            place = self.files.by_directory.get(args["partition"])
            if place is None:
                continue
            ledger = scene.ledger(place.partition)
            if kind == "append":
                ledger.appended[args["leader_epoch"]] = event, self.node
                one_leader_per_epoch.check_append(scene, ledger, place, args["leader_epoch"], event)
            elif kind == "expire-producers":
                idempotence.note_forgotten(scene, ledger, place, args["producers"], event)
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
                scene.misled[key] = garbled
            elif kind == "role-error":
                scene.refusals[str(place.partition), self.node] = event

    def _note_marks(self, event: int) -> None:
        """The high watermarks are in their file: of every log, open or not, that was in it."""
        broker = self.scene.broker(self.node)
        if broker is None:
            return
        kept = frozenset(broker.core.log_dir.high_watermarks)
        lost = self._marked - kept
        for each in self.places if lost else ():
            if TopicPartition(each.topic, each.partition) in lost:
                recovery_sound.report_mark(self.scene, each, self.node, event)
        self._marked = kept
