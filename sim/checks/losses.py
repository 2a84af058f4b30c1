"""Which records a leader does not have, and how it came to lack each (FAULTS D.4).

A loss whose copies a disk took is not judged here: whether it was licensed (L2, L4) is later work.
Until then such records are outside clean history, one by one: only those of which the leader's own
copy was lost by a fault of disk or power, and only from then on.

Left out: licences, and who is to blame.
"""

from __future__ import annotations

from sim.checks.ledger import DISK_LOSSES, Fate, Ledger, Loss, Place
from sim.checks.ranges import Records, Span

__all__ = ["NEVER_HELD", "explained", "is_excused", "note"]

NEVER_HELD = Fate("never-held", 0, ())


def explained(place: Place, spans: list[Span]) -> list[tuple[Fate, list[Span]]]:
    """The records by the fate of this replica's copies; the last fate of each counts."""
    found: list[tuple[Fate, list[Span]]] = []
    left = Records(spans)
    for fate in reversed(place.fates):
        if not left:
            break
        hit = left.common(fate.spans)
        if hit:
            found.append((fate, hit))
            left.discard(hit)
    if left:
        found.append((NEVER_HELD, list(left)))
    return found


def is_excused(fate: Fate) -> bool:
    """Whether it takes the records out of clean history."""
    return fate.how in DISK_LOSSES


def note(
    ledger: Ledger, place: Place, epoch: int, at: str, event: int, *, is_unclean: bool
) -> None:
    """Loss events: what anybody counts on, and a leader does not have.

    With ``at`` ``leading`` it has led already, and does not know of what a disk took behind its
    back: it cannot serve without that.
    """
    lost = Records()
    for each in (ledger.owed, ledger.acked, ledger.committed, ledger.exposed):
        lost.add(ledger.missing_at(place, each))
    known = Records(ledger.gone)
    known.discard(list(ledger.back))
    lost.discard(list(known))
    if not lost:
        return
    fates = explained(place, list(lost))
    if at == "leading":
        fates = [(fate, spans) for fate, spans in fates if not is_excused(fate)]
        lost = Records(span for _, spans in fates for span in spans)
    ledger.back.discard(list(lost))
    for fate, spans in fates:
        owed = Records(ledger.owed.common(spans))
        owed.add(ledger.committed.common(spans))
        rest = Records(spans)
        rest.discard(list(owed))
        for is_committed, part in ((True, owed), (False, rest)):
            if part:
                loss = Loss(
                    at,
                    event,
                    str(ledger.partition),
                    place.node,
                    epoch,
                    tuple(part),
                    fate.how,
                    fate.event,
                    is_committed,
                    is_unclean,
                )
                ledger.losses.append(loss)
    ledger.gone.add(list(lost))
