"""I1: what is committed, or was acknowledged under acks all, stays on the current leader.

Judged where a legitimate leader's log loses or changes something, where anybody acknowledges or
compacts, and at the end; a leader that begins is ``leader-completeness``. Left out: what lies below
the leader's log start, and losses with a licence (``sim.checks.losses``). Of compacted topics only
offsets that are there are compared.
"""

from __future__ import annotations

from sim.checks import losses
from sim.checks.history import Batch
from sim.checks.leader_completeness import check_content, take_loss
from sim.checks.ledger import Ledger, Place
from sim.checks.ranges import Span
from sim.checks.scene import Scene

__all__ = ["acknowledge", "check", "check_compaction"]

CHECK = "committed-durability"


def check(scene: Scene, ledger: Ledger, place: Place, event: int) -> None:
    """A legitimate leader's log was cut or rewritten, or is looked at anyhow."""
    if place.state is not None:
        epoch = place.state.leader_epoch
        losses.note(scene, ledger, place, epoch, "leading", event, is_unclean=False)
    missing = ledger.missing_at(place, ledger.owed)
    if missing:
        take_loss(scene, CHECK, ledger, place, missing, event)
    check_content(scene, CHECK, ledger, place, event)


def check_compaction(
    scene: Scene, ledger: Ledger, place: Place, cleaned_offset: int, event: int
) -> None:
    """A log was compacted up to an offset; behind the high watermark nothing supersedes anything.

    What is not committed may be cut off, and then what it superseded is gone as well (KAFKA-13194).
    A broker that has come back, or follows, may know a lower high watermark than when it compacted;
    what any legitimate leader has committed stays.
    """
    mark = 0 if place.replica is None else place.replica.high_watermark
    if cleaned_offset > max(mark, ledger.top_ever):
        scene.report(
            CHECK,
            ledger.partition,
            "compacted-uncommitted",
            event,
            f"{place.node} compacts up to {cleaned_offset}, and has high watermark {mark}",
            node=place.node,
            cleaned_offset=cleaned_offset,
            high_watermark=mark,
        )


def acknowledge(
    scene: Scene, ledger: Ledger, place: Place, offset: int, batch: Batch | None, event: int
) -> None:
    """A broker answers that records from ``offset`` on are stored, under acks all."""
    if batch is None:
        if offset >= min(place.start, ledger.deleted) and not ledger.is_compacted:
            scene.report(
                CHECK,
                ledger.partition,
                "acknowledged-and-absent",
                event,
                f"{place.node} acknowledges offset {offset}, and has it not",
                node=place.node,
                offset=offset,
            )
        return
    leader = scene.legitimate_leader(ledger)
    spans = [Span(batch.epoch, batch.base, batch.next)]
    if leader is None or leader is place:
        ledger.owed.add(spans)
        return
    is_below = batch.next <= leader.start
    is_deleted = is_below and batch.next <= ledger.deleted
    if is_deleted or ledger.is_compacted or (leader.mirror.holds(batch) and not is_below):
        return
    record = scene.records[ledger.partition]
    if record.leader_epoch <= batch.epoch:
        return
    ledger.owed.add(spans)
    epoch = record.leader_epoch
    losses.note(scene, ledger, leader, epoch, "acknowledging", event, is_unclean=False)
    ledger.owed.discard(spans)
    if losses.unlicensed(ledger, spans):
        scene.report(
            CHECK,
            ledger.partition,
            "acknowledged-by-deposed",
            event,
            f"{place.node} acknowledges offset {offset} of epoch {batch.epoch}, and {leader.node}, "
            f"the leader of epoch {record.leader_epoch}, has it not",
            node=place.node,
            leader=leader.node,
            offset=offset,
        )
