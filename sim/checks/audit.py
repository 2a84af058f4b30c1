"""What the ledger says against the files, once, when a run is over.

Two accounts, over all that was promised, by other ways than the ledger goes:

* Every copy that a replica ever had is there, or has a fate. A copy that is just gone is an entry
  that the ledger has forgotten.
* What no loss is noted of is in the files of the legitimate leader, which are read anew.

A doubt is a fault of the oracle, and no finding about the cluster: such a run has no verdict
(``sim.running.agreement``).

Left out: compacted topics, topics that are gone, and leaders whose log is damaged where it lies.
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.checks.ledger import Ledger, Place
from sim.checks.mirrors import LogMirror
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene

__all__ = ["doubts"]


def doubts(scene: Scene) -> list[str]:
    """What does not add up, in words; nothing in a right ledger."""
    found: list[str] = []
    for ledger in scene.live():
        if not ledger.is_compacted:
            found += _unaccounted(ledger)
            found += _unnoted(scene, ledger)
    return found


def _unaccounted(ledger: Ledger) -> Iterator[str]:
    promised = ledger.promised()
    for node, place in sorted({**ledger.retired, **ledger.places}.items()):
        left = Records(place.mirror.held.common(promised))
        for fate in place.fates:
            left.discard(fate.spans)
        for batch in place.mirror.unnoted():
            left.discard((Span(batch.epoch, batch.base, batch.next),))
        if node in ledger.places:
            left.discard(place.mirror.spans(0, place.mirror.end))
        for span in left:
            yield _text(ledger, span, f"{node} had them, and nothing says what became of them")


def _unnoted(scene: Scene, ledger: Ledger) -> Iterator[str]:
    place = scene.legitimate_leader(ledger)
    if place is None or place.mirror.damaged:
        return
    left = ledger.promised()
    gone = Records(ledger.gone)
    gone.discard(list(ledger.back))
    left.discard(list(gone))
    for span in ledger.uncleared(left.missing_in(_in_files(ledger, place), place.start)):
        yield _text(ledger, span, f"{place.node} leads without them, and no loss says so")


def _in_files(ledger: Ledger, place: Place) -> list[Span]:
    files = LogMirror(place.mirror.disk, place.mirror.directory, ledger.history)
    files.read_all()
    return files.spans(0, files.end)


def _text(ledger: Ledger, span: Span, what: str) -> str:
    records = f"offsets {span.start} to {span.end - 1} of epoch {span.epoch}"
    return f"{ledger.partition}, {records}: {what}"
