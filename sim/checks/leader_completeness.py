"""I6: a leader that was elected cleanly has everything that is committed.

Judged when a live incarnation has applied its leadership and serves. Left out: losses with a
licence (``sim.checks.losses``). What is found missing is owed no more, so it is told of once; a
copy that is damaged where it lies is still owed, since others have it and whoever reads it notices.
"""

from __future__ import annotations

from cluster.records import PartitionRecord
from sim.checks import losses
from sim.checks.cases import NEVER_HELD, explained
from sim.checks.comparing import first_other
from sim.checks.ledger import DISK_LOSSES, Fate, Ledger, Place
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene

__all__ = ["serve"]

CHECK = "leader-completeness"


def serve(scene: Scene, ledger: Ledger, record: PartitionRecord, place: Place, event: int) -> None:
    """A leader serves from now on."""
    epoch = record.leader_epoch
    pending = ledger.unclean_epochs
    is_unclean = any(each <= epoch for each in pending)
    losses.note(scene, ledger, place, epoch, "serving", event, is_unclean=is_unclean)
    ledger.standing.note_serving(record, scene.min_isr(ledger.partition))
    missing = ledger.missing_at(place, ledger.owed)
    ledger.note_begun_below(place, event)
    if is_unclean:
        ledger.unclean_epochs = {each for each in ledger.unclean_epochs if each > epoch}
        ledger.was_unclean = True
        outside = ledger.outside(epoch)
        ledger.part_with(place, epoch if outside is None else outside.epoch)
        ledger.free(place, missing, is_whole=True)
        for other in ledger.places.values():
            other.is_uncertain = other is not place
        return
    is_short = place.end < ledger.top and not ledger.is_compacted
    if missing or is_short:
        take_loss(scene, CHECK, ledger, place, missing, event)
    check_content(scene, CHECK, ledger, place, event)


def check_content(scene: Scene, check: str, ledger: Ledger, place: Place, event: int) -> None:
    """A leader has batches of the right offsets and epochs: are they the right ones?"""
    tip = None if ledger.is_compacted else ledger.tip
    if tip is None or tip.next <= place.start or place.mirror.holds(tip):
        return
    offset = first_other(place, tip, ledger)
    if offset is not None:
        scene.report(
            check,
            ledger.partition,
            "other-content",
            event,
            f"{place.node} leads, and has another record at offset {offset} than was committed",
            leader=place.node,
            offset=offset,
        )
    ledger.tip = place.mirror.last_before(ledger.top)


def take_loss(
    scene: Scene, check: str, ledger: Ledger, place: Place, missing: list[Span], event: int
) -> None:
    """Report what is missing without an excuse; owe none of it any more."""
    told: list[Span] = []
    for fate, found in explained(place, missing):
        spans = losses.unlicensed(ledger, found)
        if fate.how == "damaged" and spans:
            continue
        told += found
        if not spans:
            if fate.how in DISK_LOSSES:
                ledger.was_disk_lost = True
                _doubt(ledger, place, found)
            continue
        first = min(spans, key=lambda span: span.start)
        scene.report(
            check,
            ledger.partition,
            fate.how,
            event,
            f"{place.node} leads without {_offsets(first)} of epoch {first.epoch}, committed: "
            f"{_words(fate)}",
            causes=(fate.event,),
            leader=place.node,
            missing=[list(span) for span in spans],
            how=fate.how,
            top=ledger.top,
        )
    if told or not missing:
        ledger.free(place, told, is_whole=False)


def _doubt(ledger: Ledger, place: Place, spans: list[Span]) -> None:
    """Who still has what the leader's disk has lost does not agree with it yet (I2)."""
    lost = Records(spans)
    for other in ledger.places.values():
        if other is not place and lost.common(other.mirror.spans(0, other.mirror.end)):
            other.is_uncertain = True


def _words(fate: Fate) -> str:
    if fate is NEVER_HELD:
        return "it never had that"
    return f"its copy was {fate.how} at #{fate.event}"


def _offsets(span: Span) -> str:
    if span.end - span.start == 1:
        return f"offset {span.start}"
    return f"offsets {span.start} to {span.end - 1}"
