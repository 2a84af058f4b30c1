"""I15: of one producer and epoch no sequence is in a log twice, and none is skipped.

Every batch is judged once, when the first log takes it, against the batch of its producer before
it. Left out: compacted topics, and gaps once a broker has forgotten producers that were silent.
"""

from __future__ import annotations

from sim.checks.history import Batch
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check"]

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


def _previous(batch: Batch, start: int) -> Batch | None:
    """The batch of the same producer before this one, of those that are retained."""
    each = batch.parent
    while each is not None and each.next > start:
        if each.producer[0] == batch.producer[0] and not each.is_control:
            return each
        each = each.parent
    return None
