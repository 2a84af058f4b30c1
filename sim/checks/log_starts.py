"""Whether anybody wanted a replica's log start to be where it is.

A log start says that everything below was deleted, and that is no loss. So it is believed only up
to where retention has deleted records, or a request has asked for it, of any replica: followers
take their leader's. What a log start hides beyond that is lost, whether the files still have it or
not.

A process may end in the middle of a deletion, of which nobody is told. Its log start counts as
wanted then, as far as its memory has it; and, where only its disk has it, if it is where a segment
begins and the topic has retention.

Left out: whether what was deleted was old enough (``sim.checks.early_deletion``); compacted topics.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from cluster.answering import HIGH_WATERMARK
from cluster.messages_data import DeleteRecordsRequest
from cluster.names import TopicIdPartition
from sim.checks import recovery_sound
from sim.checks.ledger import Fate, Ledger, Place
from sim.checks.scene import Scene
from storage.partition_log import PartitionLog

__all__ = ["note_opened", "note_raised", "note_request", "note_unfinished"]


def note_request(
    scene: Scene, places: Mapping[TopicIdPartition, Place], request: DeleteRecordsRequest
) -> None:
    """A broker was asked to delete records."""
    for each in request.partitions:
        place = places.get(each.partition)
        if place is not None:
            ledger, offset = scene.ledger(each.partition), each.offset
            if offset == HIGH_WATERMARK:
                offset = place.high_watermark
            ledger.asked = max(ledger.asked, offset)


def note_raised(
    scene: Scene, place: Place, notes: Iterable[tuple[int, str, Mapping[str, Any]]], event: int
) -> None:
    """A handler has raised a log start; ``notes`` are those that it has left."""
    ledger = scene.ledger(place.partition)
    kinds = {kind for _, kind, args in notes if args.get("partition") == str(place.partition)}
    if "retention" in kinds:
        _want(ledger, place.start)
    elif "log-start" in kinds:
        _want(ledger, min(place.start, ledger.asked))
    if place is scene.legitimate_leader(ledger):
        epoch = scene.records[place.partition].leader_epoch
        cleared = min(place.start, ledger.deleted)
        ledger.cleared[epoch] = max(ledger.cleared.get(epoch, 0), cleared)
    _note_hidden(scene, ledger, place, event)


def note_unfinished(scene: Scene, place: Place, log: PartitionLog) -> None:
    """A process is about to end; what its memory has and nobody has seen, a handler was at."""
    if log.log_start_offset > place.start:
        _want(scene.ledger(place.partition), log.log_start_offset)


def note_opened(scene: Scene, place: Place, event: int) -> None:
    """A process has opened its logs."""
    ledger, replica = scene.ledger(place.partition), place.replica
    if replica is not None and place.start > ledger.deleted:
        config, bases = replica.config, [each.base for each in place.mirror.segments]
        has_retention = config.retention_ms >= 0 or config.retention_bytes >= 0
        if config.cleanup_delete and has_retention and place.start in bases:
            _want(ledger, place.start)
    _note_hidden(scene, ledger, place, event)


def _want(ledger: Ledger, offset: int) -> None:
    ledger.deleted = max(ledger.deleted, offset)


def _note_hidden(scene: Scene, ledger: Ledger, place: Place, event: int) -> None:
    """What lies between what was deleted and the log start has its fate."""
    if place.start <= ledger.deleted:
        return
    spans = place.mirror.spans(ledger.deleted, place.start)
    if not spans:
        return
    is_bad = place.node in scene.damages or recovery_sound.has_bad_disk(scene, place.node)
    place.fates.append(Fate("lied" if is_bad else "hidden", event, tuple(spans)))
