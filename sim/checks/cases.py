"""What is known of lost records, as the licence table asks for it (``sim.checks.licences``).

Records are handled as ranges that share a fate. Where other replicas have only some of a range,
what is known of those is not what is known of the others: they are judged apart.

Left out: when records are lost, and what is told of it (``sim.checks.losses``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import evolve

from sim.checks.ledger import Fate, Ledger, Place
from sim.checks.licences import DISK_TAKES, Case
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene
from sim.checks.standing import Elected

__all__ = ["NEVER_HELD", "UNACCOUNTED", "cases", "explained", "groups"]

NEVER_HELD: Final = Fate("never-held", 0, ())
UNACCOUNTED: Final = Fate("unaccounted", 0, ())
"""It had them, it has them no more, and no fate says why: the ledger forgot something."""


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
    for fate, known in ((UNACCOUNTED, place.mirror.held.common(left)), (NEVER_HELD, left)):
        spans = list(known)
        if spans:
            found.append((fate, spans))
            left.discard(spans)
    return found


def cases(
    scene: Scene, ledger: Ledger, place: Place, fate: Fate, elected: Elected, spans: list[Span]
) -> Iterator[tuple[Case, list[Span]]]:
    """What is known of the records, and of which of them; where others have only some, of those
    apart from the rest.
    """
    for is_committed, has_elr, group in groups(scene, ledger, spans):
        found: dict[Case, Records] = {}
        for part in _alike(ledger, group):
            case = _case(scene, ledger, place, fate, elected, part)
            case = evolve(case, is_committed=is_committed, has_elr=has_elr)
            found.setdefault(case, Records()).add(part)
        yield from ((case, list(records)) for case, records in found.items())


def _alike(ledger: Ledger, spans: list[Span]) -> list[list[Span]]:
    """The records in parts: of each, a replica has all or none, and what it lost shares a fate."""
    parts = [spans]
    for node, place in sorted({**ledger.retired, **ledger.places}.items()):
        finer: list[list[Span]] = []
        for part in parts:
            gone = Records(part)
            if node in ledger.places:
                gone = Records(ledger.missing_at(place, gone))
            kept = Records(part)
            kept.discard(list(gone))
            finer += [list(kept)] if kept else []
            finer += [group for _, group in explained(place, list(gone))]
        parts = finer
    return parts


def _case(
    scene: Scene, ledger: Ledger, place: Place, fate: Fate, elected: Elected, group: list[Span]
) -> Case:
    return Case(
        is_committed=True,
        how=fate.how,
        was_durable=fate.was_durable,
        election=elected.kind,
        was_last=ledger.standing.last.get(place.node, False),
        members_lost=_members_lost(ledger, place, group),
        unclean_shutdowns=len(ledger.standing.run),
        min_isr=ledger.standing.enough or scene.min_isr(ledger.partition),
        has_other=_has_other(scene, ledger, place, group),
        all_replaced=fate.how == "replaced" and _all_replaced(ledger, group),
    )


def groups(
    scene: Scene, ledger: Ledger, spans: list[Span]
) -> Iterator[tuple[bool, bool, list[Span]]]:
    """Ranges by whether they are committed, and whether the ELR counts for them."""
    committed = Records(ledger.owed.common(spans))
    for each in (ledger.committed, ledger.exposed):
        committed.add(each.common(spans))
    rest = Records(spans)
    rest.discard(list(committed))
    for is_committed, part in ((True, committed), (False, rest)):
        old = Records(ledger.without_elr.common(part))
        new = Records(part)
        new.discard(list(old))
        for has_elr, group in ((False, old), (scene.has_elr, new)):
            if group:
                yield is_committed, has_elr, list(group)


def _has_other(scene: Scene, ledger: Ledger, place: Place, spans: list[Span]) -> bool:
    """Whether another member of ISR or ELR has all of them."""
    record = scene.records.get(ledger.partition)
    members = () if record is None else (*record.isr, *record.elr)
    others = [ledger.places.get(node) for node in members if node != place.node]
    return any(
        other is not None and not ledger.missing_at(other, Records(spans)) for other in others
    )


def _members_lost(ledger: Ledger, leader: Place, spans: list[Span]) -> bool:
    """Whether every member of the ISR has lost them as power and disks are lost, and has not
    entered it since.

    The ISR is that of when the controller last judged the leader: by now those may have left it
    who have the records, as the leader before this one does when it dies.
    """
    members = ledger.standing.isr_then.get(leader.node, ())
    for node in members:
        place = ledger.places.get(node)
        missing = [] if place is None else ledger.missing_at(place, Records(spans))
        if place is None or not place.is_lossy or len(Records(missing)) < len(Records(spans)):
            return False
        if not all(fate.how in DISK_TAKES for fate, _ in explained(place, missing)):
            return False
    return leader.node in members


def _all_replaced(ledger: Ledger, spans: list[Span]) -> bool:
    places = [*ledger.retired.values(), *ledger.places.values()]
    for place in places:
        for fate, _ in explained(place, spans):
            if fate.how not in ("replaced", "never-held"):
                return False
    return True
