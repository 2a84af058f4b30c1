"""Loss events: which promised records a leader does not have, why, and under which licence.

Noted when a leader begins to serve, when its log loses something, when a client is told of a record
that a newer leader lacks, and at the end for what no log has any more. Each loss is an event of
kind ``loss`` with the licence (``sim.checks.licences``), what is behind it, and what became of
every copy. Records are handled as ranges that share a fate.

A copy that is damaged where it lies is no loss while somebody else has the records: whoever reads
it notices, and it is fetched anew. One that its process does not know of any more, since the disk
is another or the log was opened without it, is like any other that is gone.

Left out: whether the run without the culprit would have kept the records (``sim.blame``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve

from sim.checks.cases import UNACCOUNTED, cases, explained, groups
from sim.checks.ledger import DISK_LOSSES, Fate, Ledger, Loss, Place
from sim.checks.licences import DISK_TAKES, LEGAL, MEDIA, Case, judge
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene
from sim.checks.standing import OUTSIDE, Elected

__all__ = ["note", "note_early", "note_nowhere", "nowhere", "unlicensed"]


def note(
    scene: Scene,
    ledger: Ledger,
    place: Place,
    epoch: int,
    at: str,
    event: int,
    *,
    is_unclean: bool,
) -> None:
    """What anybody counts on, and the leader of an epoch does not have."""
    lost = _unknown(ledger, ledger.missing_at(place, ledger.promised()))
    if not lost:
        return
    for elected, missed in _by_election(scene, ledger, epoch, lost, event, is_unclean=is_unclean):
        for fate, part in explained(place, missed):
            spans = part
            if fate.how == "damaged":
                behind = _not_believed(place, part)
                there = Records(part)
                there.discard(behind)
                spans = [*_held_by_nobody(ledger, place, list(there)), *behind]
            for case, group in cases(scene, ledger, place, fate, elected, spans):
                loss = Loss(
                    at,
                    event,
                    str(ledger.partition),
                    place.node,
                    epoch,
                    tuple(group),
                    fate.how,
                    fate.event,
                    case.is_committed,
                    elected.kind in OUTSIDE,
                )
                _tell(scene, ledger, loss, case, fate, place.node, elected)


def note_nowhere(scene: Scene, ledger: Ledger, event: int) -> None:
    """The run is over: what no log has any more is lost, whether anybody leads or not."""
    if ledger.partition not in scene.records:
        return
    lost = _unknown(ledger, nowhere(ledger, ledger.promised()))
    for copies, part in _by_copies(ledger, list(lost)):
        node, fate = _deciding(copies)
        for is_committed, has_elr, group in groups(scene, ledger, part):
            case = Case(
                is_committed=is_committed,
                how=fate.how,
                is_nowhere=True,
                was_durable=fate.was_durable,
                has_elr=has_elr,
                all_replaced=all(each.how == "replaced" for _, each in copies),
            )
            loss = Loss(
                "nowhere",
                event,
                str(ledger.partition),
                "",
                -1,
                tuple(group),
                fate.how,
                fate.event,
                is_committed,
                False,
            )
            elected = Elected(-1, "none", 0, tuple(each.event for _, each in copies))
            _tell(scene, ledger, loss, case, fate, node, elected)


def note_early(
    scene: Scene,
    ledger: Ledger,
    place: Place,
    records: Records,
    culprits: tuple[int, ...],
    event: int,
) -> None:
    """A leader has deleted records by a clock that a fault had moved (``early_deletion``)."""
    lost = Records(ledger.promised().common(list(records)))
    epoch = -1 if place.state is None else place.state.leader_epoch
    for is_committed, _, group in groups(scene, ledger, list(lost)):
        loss = Loss(
            "deleting",
            event,
            str(ledger.partition),
            place.node,
            epoch,
            tuple(group),
            "deleted",
            event,
            is_committed,
            False,
            licence="L3",
            rule="retention deleted them by a wall clock that a fault had put ahead",
            culprits=tuple(sorted({*culprits, event})),
            copies=_fates_of(ledger, group[0]),
        )
        _record(scene, ledger, loss)


def nowhere(ledger: Ledger, records: Records) -> list[Span]:
    """Which of some records no log has, though no leader may have shown it yet.

    Deletion by retention or of the topic is no loss; a loss takes a fault of disk or power.
    """
    taken = Records()
    for place in ledger.places.values():
        for fate in place.fates:
            if fate.how in DISK_LOSSES:
                taken.add(records.common(fate.spans))
    found = taken.missing_in((), ledger.start) if taken else []
    for place in ledger.places.values():
        if not found:
            break
        found = ledger.missing_at(place, Records(found))
    return found


def unlicensed(ledger: Ledger, spans: Iterable[Span]) -> list[Span]:
    """Those whose loss no licence covers."""
    left = Records(spans)
    left.discard(list(ledger.licensed))
    return list(left)


# What is lost ----------------------------------------------------------------------------------


def _unknown(ledger: Ledger, missing: list[Span]) -> Records:
    """Without what a loss has been noted of, unless a later leader had it back."""
    lost = Records(missing)
    if lost:
        known = Records(ledger.gone)
        known.discard(list(ledger.back))
        lost.discard(list(known))
    return lost


def _not_believed(place: Place, spans: list[Span]) -> list[Span]:
    """Those that its process does not take itself to have: the log ends before, or has others."""
    found = []
    for span in spans:
        found.append(Span(span.epoch, max(span.start, place.end), span.end))
        for batch in place.mirror.between(span.start, span.end):
            if batch.base not in place.mirror.damaged:
                low, high = max(batch.base, span.start), min(batch.next, span.end)
                found.append(Span(span.epoch, low, high))
    return [span for span in found if span.start < span.end]


def _held_by_nobody(ledger: Ledger, place: Place, spans: list[Span]) -> list[Span]:
    left = spans
    for other in ledger.places.values():
        if other is not place and left:
            left = ledger.missing_at(other, Records(left))
    return left


# Copies ----------------------------------------------------------------------------------------


def _by_copies(
    ledger: Ledger, spans: list[Span]
) -> list[tuple[list[tuple[str, Fate]], list[Span]]]:
    """Ranges whose copies all share their fates; copies that never were are left out."""
    parts: list[tuple[list[tuple[str, Fate]], list[Span]]] = [([], spans)] if spans else []
    for node, place in sorted({**ledger.retired, **ledger.places}.items()):
        finer = []
        for copies, part in parts:
            for fate, group in explained(place, part):
                is_there = fate.how != "never-held"
                finer.append(([*copies, (node, fate)] if is_there else copies, group))
        parts = finer
    return parts


def _deciding(copies: list[tuple[str, Fate]]) -> tuple[str, Fate]:
    """The copy whose fate decides where no log has the records: the least excusable one."""

    def weight(copy: tuple[str, Fate]) -> tuple[int, int]:
        _, fate = copy
        if fate.was_durable:
            return 0, fate.event
        if fate.how in ("truncated", "restarted"):
            return 1, fate.event
        if fate.how in MEDIA:
            return 2, fate.event
        return (3 if fate.how in DISK_TAKES else 4), fate.event

    return min(copies, key=weight) if copies else ("", UNACCOUNTED)


def _fates_of(ledger: Ledger, span: Span) -> tuple[tuple[str, str, int], ...]:
    found = []
    for node, place in sorted({**ledger.retired, **ledger.places}.items()):
        first = Span(span.epoch, span.start, span.start + 1)
        if node in ledger.places and not ledger.missing_at(place, Records((first,))):
            is_below = span.start < place.start
            found.append((node, "deleted" if is_below else "held", 0))
            continue
        fate, _ = explained(place, [first])[0]
        found.append((node, fate.how, fate.event))
    return tuple(found)


# Culprits --------------------------------------------------------------------------------------


def _by_election(
    scene: Scene, ledger: Ledger, epoch: int, lost: Records, event: int, *, is_unclean: bool
) -> Iterator[tuple[Elected, list[Span]]]:
    """Lost records by the election that has to do with it.

    One from outside ISR and ELR explains only what is older than it, and what its leader did not
    have when it began to serve. ``is_unclean`` is for that very moment.
    """
    standing, left = ledger.standing, Records(lost)
    elected = ledger.outside(epoch) if is_unclean else None
    if elected is not None:
        old = [span for span in left if span.epoch < elected.epoch]
        if old:
            yield elected, old
        left.discard(old)
    for behind, old in ledger.parted_by(left):
        yield standing.elected.get(behind) or Elected(behind, "unclean", 0), old
        left.discard(old)
    elected = standing.election(epoch) or Elected(epoch, "clean", 0)
    if elected.kind in OUTSIDE:
        elected = evolve(elected, kind="clean")
    for written in dict.fromkeys(span.epoch for span in left):
        reasons = _unheard(scene, ledger, written, elected, event)
        if reasons:
            spans = [span for span in left if span.epoch == written]
            yield evolve(elected, reasons=(*elected.reasons, *reasons)), spans
            left.discard(spans)
    if left:
        yield elected, list(left)


def _unheard(
    scene: Scene, ledger: Ledger, epoch: int, elected: Elected, event: int
) -> tuple[int, ...]:
    """What deposed a leader that went on writing, and kept it from hearing of that."""
    standing, (last, node) = ledger.standing, ledger.appended.get(epoch, (0, ""))
    behind = [each for each in standing.elected.values() if epoch < each.epoch < elected.epoch]
    first = min(behind, key=lambda each: each.epoch, default=None)
    if first is None or last < first.event:
        return ()
    return *first.reasons, first.event, *scene.blows_to([node], standing.last_of([epoch]), event)


def _damages(ledger: Ledger, node: str, fate: Fate) -> list[int]:
    """What had damaged a log that was cut to its good prefix."""
    place = ledger.places.get(node) or ledger.retired.get(node)
    fates = [] if place is None else place.fates
    return [each.event for each in fates if each.how == "damaged" and each.event <= fate.event]


def _tell(
    scene: Scene,
    ledger: Ledger,
    loss: Loss,
    case: Case,
    fate: Fate,
    node: str,
    elected: Elected,
) -> None:
    """Judge a loss, and put it on record."""
    ruling = judge(case)
    cited: list[int] = []
    if "election" in ruling.cites:
        cited += [*elected.reasons, elected.event]
    if "fate" in ruling.cites:
        cited.append(fate.event)
        if fate.how == "recovery-cut":
            cited.append(scene.ends.get(node, ("", 0))[1])
        if fate.how == "salvaged":
            cited += _damages(ledger, node, fate)
        if case.is_nowhere:
            cited += elected.reasons
    if "shutdowns" in ruling.cites:
        cited += [event for _, event in ledger.standing.run]
    if "disk" in ruling.cites:
        cited += scene.disk_faults(node, loss.event)
    culprits = tuple(sorted({each for each in cited if each > 0}))
    loss = evolve(
        loss,
        licence=ruling.licence,
        rule=ruling.rule,
        culprits=culprits,
        copies=_fates_of(ledger, loss.spans[0]),
    )
    _record(scene, ledger, loss)


def _record(scene: Scene, ledger: Ledger, loss: Loss) -> None:
    """Put a judged loss on record, and into the trace."""
    ledger.losses.append(evolve(loss, told=scene.tell_loss(loss)))
    spans = list(loss.spans)
    ledger.gone.add(spans)
    ledger.back.discard(spans)
    if loss.licence in LEGAL:
        ledger.licensed.add(spans)
    else:
        ledger.licensed.discard(spans)
