"""I9: the epochs that a log knows rise, end at its end, and are those of its batches.

Entries without records are legal (PROTOCOL A8). Left out: batches without records, which compaction
leaves, and what lies below the log start.
"""

from __future__ import annotations

from itertools import pairwise

from sim.checks.history import Batch
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene
from storage.partition_log import PartitionLog

__all__ = ["check", "check_last"]

CHECK = "epoch-cache-matches-log"


def check_last(scene: Scene, place: Place, log: PartitionLog, batch: Batch, event: int) -> None:
    """Batches of the epoch of the ones before were appended; ``batch`` is the last.

    Compaction makes also batches anew that lie below the log start, of which no epoch is known.
    """
    if (
        batch.next > place.start
        and log.epochs.epoch_for_offset(max(batch.base, place.start)) != batch.epoch
    ):
        _report(scene, place, log, f"{batch}", event)


def check(scene: Scene, ledger: Ledger, place: Place, log: PartitionLog, event: int) -> None:
    """Compare all entries with all epochs of the batches."""
    entries = log.epochs.entries
    rises = all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(entries))
    if not rises or (entries and entries[-1][1] > place.end):
        _report(scene, place, log, f"log end {place.end}", event)
        return
    if ledger.is_compacted:
        return
    mirror, known = place.mirror, dict(entries)
    for number, (epoch, first) in enumerate(mirror.runs):
        behind = mirror.runs[number + 1][1] if number + 1 < len(mirror.runs) else mirror.end
        if behind <= place.start:
            continue
        last = mirror.last_before(behind)
        start = max(first, place.start)
        found = log.epochs.epoch_for_offset(start)
        if epoch not in known or found != epoch:
            _report(scene, place, log, f"batches of epoch {epoch} from offset {start} on", event)
        elif last is not None and last.next > place.start:
            check_last(scene, place, log, last, event)


def _report(scene: Scene, place: Place, log: PartitionLog, what: str, event: int) -> None:
    entries = log.epochs.entries
    scene.report(
        CHECK,
        place.partition,
        "differs",
        event,
        f"{place.node} knows epochs {list(entries)}, its files have {what}",
        node=place.node,
        entries=[list(entry) for entry in entries],
        runs=[list(run) for run in place.mirror.runs],
    )
