"""I15: of one producer and epoch no sequence is in a log twice, and none is skipped.

Every batch is judged once, when the first log takes it, against the batch of its producer before
it. Where one is called out of order, it must not be the last that the log has of its producer: that
is asked again, and has its place. When a log is opened or cut, it has what it remembers of a
producer, and remembers whom it has, unless it has forgotten them before. A log that has forgotten a
producer takes any sequence, and a late retry once more: so it may until it has the next batch of
that producer, and it may forget none but those that were idle for ``producer.id.expiration.ms``.
Left out: compacted topics.
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.checks import recovery_sound
from sim.checks.history import Batch
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene
from storage.errors import CorruptBatch
from storage.mkb1_header import peek_header
from storage.partition_log import PartitionLog

__all__ = ["check", "check_memory", "check_refused", "note_forgotten", "note_replaced"]

CHECK = "idempotence"
SEQUENCES = 1 << 31


def check(scene: Scene, ledger: Ledger, place: Place, batch: Batch, event: int) -> None:
    """A batch that nobody had before."""
    producer, epoch, sequence = batch.producer
    if producer < 0 or sequence < 0 or batch.is_control:
        return
    before = _previous(batch, place.start)
    if ledger.is_compacted:
        _note_in_compacted(ledger, place, before, batch)
        return
    if before is None:
        return
    if before.producer[1] > epoch:
        expected, kind = -1, "old-epoch"
    else:
        is_same = before.producer[1] == epoch
        expected = (before.producer[2] + before.count) % SEQUENCES if is_same else 0
        kind = "twice" if sequence < expected else "skipped"
    behind, here = (before.base, before.next), (batch.base, batch.next)
    if sequence == expected:
        if behind in ledger.taken_again and _is_late(batch, place.start):
            ledger.taken_again.append(here)
        if behind in ledger.taken_ahead and before.producer[1] == epoch:
            ledger.taken_ahead.append(here)
        return
    if before.base < place.forgotten.get(producer, 0):
        if kind != "skipped" or _is_late(batch, place.start):
            ledger.taken_again.append(here)
        if kind == "skipped":
            ledger.taken_ahead.append(here)
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


def _note_in_compacted(ledger: Ledger, place: Place, before: Batch | None, batch: Batch) -> None:
    """Whether it was there before is not known: behind a forgotten producer it may have been."""
    base = -1 if before is None else before.base
    is_next = before is not None and (before.base, before.next) in ledger.taken_again
    if is_next or base < place.forgotten.get(batch.producer[0], -1):
        ledger.taken_again.append((batch.base, batch.next))


def note_forgotten(
    scene: Scene, ledger: Ledger, place: Place, producers: Sequence[int], event: int
) -> None:
    """A log has forgotten producers: their last batches must be as old as is configured."""
    for producer in producers:
        place.forgotten[producer] = place.ever_forgotten[producer] = place.mirror.log_end
    if (
        ledger.is_compacted
        or place.replica is None
        or place.replica.opened.failure is not None
        or recovery_sound.has_bad_disk(scene, place.node)
    ):
        return
    _check_missing(scene, ledger, place, place.replica.opened, event)
    now_ms = scene.world.hosts[place.node].clock.now(scene.world.now_us).wall_ms
    expiry_ms = place.replica.opened.config.producer_expiry_ms
    for producer in producers:
        last = _last(place, producer)
        if last is None or last.base in place.mirror.damaged or last.next <= place.start:
            continue
        at_ms = peek_header(last.data).max_timestamp_ms
        if at_ms is not None and at_ms >= 0 and now_ms - at_ms < expiry_ms:
            scene.report(
                CHECK,
                ledger.partition,
                "forgotten-early",
                event,
                f"{place.node} forgets producer {producer} {now_ms - at_ms} ms behind its last "
                f"batch, {last}, and not {expiry_ms} ms",
                node=place.node,
                offset=last.base,
                sequence=last.producer[2],
            )


def note_replaced(place: Place) -> None:
    """A log comes from another disk: whom it has forgotten there nobody knows."""
    for batch in place.mirror.batches:
        producer = batch.producer[0]
        if producer >= 0:
            place.forgotten[producer] = place.ever_forgotten[producer] = place.mirror.log_end


def _last(place: Place, producer: int) -> Batch | None:
    """The last batch of a producer, or its marker, that a log has."""
    batches = reversed(place.mirror.batches)
    return next((each for each in batches if each.producer[0] == producer), None)


def check_refused(scene: Scene, ledger: Ledger, place: Place, frame: bytes, event: int) -> None:
    """A leader answers that a batch is out of order."""
    if ledger.is_compacted:
        return
    try:
        asked = peek_header(frame)
    except CorruptBatch:
        return
    producer = asked.producer_id, asked.producer_epoch, asked.base_sequence
    last = _last(place, asked.producer_id)
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

    And whose batches are there is remembered, but for who was forgotten before: those may be known
    again, or be missing in the snapshot that the log was rebuilt from. A log that has failed goes
    offline with what it knew before.
    """
    if log.failure is not None:
        return
    for producer in place.forgotten:
        place.forgotten[producer] = -1 if producer in log.producers else place.mirror.log_end
    if ledger.is_compacted or recovery_sound.has_bad_disk(scene, place.node):
        # A snapshot that was removed may be there again.
        return
    _check_remembered(scene, ledger, place, log, event)
    _check_missing(scene, ledger, place, log, event)


def _check_remembered(
    scene: Scene, ledger: Ledger, place: Place, log: PartitionLog, event: int
) -> None:
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


def _check_missing(
    scene: Scene, ledger: Ledger, place: Place, log: PartitionLog, event: int
) -> None:
    """Of who was forgotten once, an older snapshot may have nothing, whatever came behind."""
    mirror = place.mirror
    last = {
        batch.producer[0]: batch
        for batch in mirror.batches
        if batch.producer[0] >= 0 and batch.next > place.start
    }
    for producer, batch in last.items():
        if producer in log.producers or batch.base < place.ever_forgotten.get(producer, -1):
            continue
        if batch.base not in mirror.damaged:
            scene.report(
                CHECK,
                ledger.partition,
                "lost-memory",
                event,
                f"{place.node} knows nothing of producer {producer}, and has {batch} of it",
                node=place.node,
                offset=batch.base,
                sequence=batch.producer[2],
            )


def _is_late(batch: Batch, start: int) -> bool:
    """Whether the log has before it what its producer sent at the same time or later."""
    _, epoch, sequence = batch.producer
    each = _previous(batch, start)
    while each is not None:
        if (each.producer[1], each.producer[2] + each.count) > (epoch, sequence):
            return True
        each = _previous(each, start)
    return False


def _previous(batch: Batch, start: int) -> Batch | None:
    """The batch of the same producer before this one, of those that are retained."""
    each = batch.parent
    while each is not None and each.next > start:
        if each.producer[0] == batch.producer[0] and not each.is_control:
            return each
        each = each.parent
    return None
