"""I11: what a consumer reads was committed, is what the log has, and is the same for everybody.

Nor does the end that consumers are told step back in a newer epoch (KIP-207).

Judged where a consumer hands a record over, and where a leader says what is the latest offset.
Committed is here what lies below a high watermark that its leader has shown: one that has been
deposed, and has not heard of it, may be right too. That it never changes later follows from what is
committed staying (I1). Left out: another value than somebody read before, and an end that steps
back, behind an unclean election or a loss by a disk; the word of who does not lead.
"""

from __future__ import annotations

from cluster.consumer_events import PolledRecord
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check", "check_latest"]

CHECK = "consistent-read"


def check(scene: Scene, ledger: Ledger, node: str, record: PolledRecord, event: int) -> None:
    """A consumer hands a record over."""
    offset, epoch, value = record.offset, record.leader_epoch, (record.key, record.value)
    kind = what = ""
    if not ledger.exposed.has(epoch, offset):
        kind, what = "not-committed", f"{ledger.exposed_top} is the highest high watermark shown"
    elif not _was_written(ledger, epoch, offset, value):
        kind, what = "other-value", "no log ever had that there"
    read = ledger.reads.setdefault(offset, (epoch, value))
    if not kind and read != (epoch, value):
        if ledger.was_unclean or ledger.was_disk_lost:
            ledger.reads[offset] = (epoch, value)
        else:
            kind, what = "changed", f"it was read before in epoch {read[0]} with another value"
    if kind:
        scene.report(
            CHECK,
            ledger.partition,
            kind,
            event,
            f"{node} reads offset {offset} of epoch {epoch}: {what}",
            node=node,
            offset=offset,
            epoch=epoch,
        )


def check_latest(
    scene: Scene, ledger: Ledger, place: Place, client: str, offset: int, event: int
) -> None:
    """A leader tells a client that a partition ends at ``offset``, where consumers read up to."""
    is_excused = ledger.was_unclean or ledger.unclean_epochs or ledger.was_disk_lost
    if offset >= ledger.exposed_top or is_excused or not scene.is_legitimate(place):
        return
    scene.report(
        CHECK,
        ledger.partition,
        "end-steps-back",
        event,
        f"{place.node} tells {client} that the log ends at {offset}, and consumers were shown "
        f"{ledger.exposed_top} before",
        node=place.node,
        client=client,
        offset=offset,
        shown=ledger.exposed_top,
    )


def _was_written(
    ledger: Ledger, epoch: int, offset: int, value: tuple[bytes | None, bytes | None]
) -> bool:
    for place in ledger.places.values():
        batch = place.mirror.at(offset)
        if batch is not None and batch.epoch == epoch:
            if batch.values().get(offset) == value:
                return True
    # A consumer may hand over what it fetched before everybody lost it, or compacted it away.
    return any(batch.values().get(offset) == value for batch in ledger.history.at(epoch, offset))
