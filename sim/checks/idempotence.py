"""I15: of one producer and epoch no sequence is in a log twice, and none is skipped.

Every batch is judged once, when the first log takes it, against the batch of its producer before
it. Where one is called out of order, it must not be the last that the log has of its producer: that
is asked again, and has its place. And what a log remembers of a producer, when it is opened or cut,
it has. Left out: compacted topics, and producers that were silent once a broker has forgotten any.
"""

from __future__ import annotations

from sim.checks import recovery_sound
from sim.checks.history import Batch
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene
from storage.errors import CorruptBatch
from storage.mkb1_header import peek_header
from storage.partition_log import PartitionLog

__all__ = ["check", "check_memory", "check_refused"]

CHECK = "idempotence"
SEQUENCES = 1 << 31


def check(scene: Scene, ledger: Ledger, place: Place, batch: Batch, event: int) -> None:
    """A batch that nobody had before."""
    producer, epoch, sequence = batch.producer
    if producer < 0 or sequence < 0 or batch.is_control or ledger.is_compacted:
        return
    before = _previous(batch, place.start)
    if before is None:
        return
    if before.producer[1] == epoch:
        expected = (before.producer[2] + before.count) % SEQUENCES
        if sequence == expected:
            return
        kind = "twice" if sequence < expected else "skipped"
    elif before.producer[1] < epoch:
        if sequence == 0:
            return
        expected, kind = 0, "skipped"
    else:
        expected, kind = -1, "old-epoch"
    if kind == "skipped" and ledger.has_expired:
        return
    scene.report(
        CHECK,
        ledger.partition,
        kind,
        event,
        f"{place.node}: {batch} has sequence {sequence} of producer {producer}, epoch {epoch}, "
        f"where {expected} was due behind {before}",
        node=place.node,
        offset=batch.base,
        sequence=sequence,
        expected=expected,
    )


def check_refused(scene: Scene, ledger: Ledger, place: Place, frame: bytes, event: int) -> None:
    """A leader answers that a batch is out of order."""
    if ledger.is_compacted or ledger.has_expired:
        return
    try:
        asked = peek_header(frame)
    except CorruptBatch:
        return
    producer = asked.producer_id, asked.producer_epoch, asked.base_sequence
    batches = reversed(place.mirror.batches)
    last = next((each for each in batches if each.producer[0] == asked.producer_id), None)
    if last is None or (last.producer, last.count) != (producer, asked.record_count):
        return
    if last.next > place.start and last.base not in place.mirror.damaged:
        scene.report(
            CHECK,
            ledger.partition,
            "retry-refused",
            event,
            f"{place.node} calls sequence {asked.base_sequence} of producer {asked.producer_id}, "
            f"epoch {asked.producer_epoch}, out of order, and has it: {last}",
            node=place.node,
            offset=last.base,
            sequence=asked.base_sequence,
        )


def check_memory(scene: Scene, ledger: Ledger, place: Place, log: PartitionLog, event: int) -> None:
    """A log knows its producers anew: of each, the last batch that it remembers is there.

    One that has failed goes offline with what it knew before.
    """
    if ledger.is_compacted or not log.producers or log.failure is not None:
        return
    if recovery_sound.has_bad_disk(scene, place.node):
        # A snapshot that was removed may be there again.
        return
    mirror = place.mirror
    for producer, entry in log.producers.items():
        known = entry.batches[-1] if entry.batches else None
        if known is None or known.base_offset < place.start:
            continue
        batch = mirror.at(known.base_offset)
        if batch is not None and batch.base in mirror.damaged:
            continue
        wanted = known.base_offset, (producer, entry.producer_epoch, known.first_sequence)
        if batch is None or (batch.base, batch.producer) != wanted:
            scene.report(
                CHECK,
                ledger.partition,
                "false-memory",
                event,
                f"{place.node} remembers sequence {known.first_sequence} of producer {producer}, "
                f"epoch {entry.producer_epoch}, at offset {known.base_offset}, where it has "
                f"{batch or 'nothing'}",
                node=place.node,
                offset=known.base_offset,
                sequence=known.first_sequence,
            )


def _previous(batch: Batch, start: int) -> Batch | None:
    """The batch of the same producer before this one, of those that are retained."""
    each = batch.parent
    while each is not None and each.next > start:
        if each.producer[0] == batch.producer[0] and not each.is_control:
            return each
        each = each.parent
    return None
