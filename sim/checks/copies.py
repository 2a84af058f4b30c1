"""What becomes of the copies of one broker: every record that a log has no more gets its fate.

A copy goes with the power, in recovery, with another disk, by damage, or because its process cuts,
deletes or drops it; which of them decides whether its loss may be legal (``sim.checks.licences``).

Left out: when a log has changed (``sim.checks.replicas``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sim.checks import early_deletion, recovery_sound, truncation_floor
from sim.checks.history import Batch
from sim.checks.ledger import Fate, Place
from sim.checks.mirrors import Change
from sim.checks.ranges import Records, Span
from sim.checks.scene import Scene
from sim.disks import SimDisk

__all__ = ["CUTS", "CopyWatch", "Noted", "finished", "first_spoilt", "spoilt"]

CUTS: Final = {
    "truncate": "truncated",
    "restart-at": "restarted",
    "salvage": "salvaged",
    "retention": "deleted",
    "log-start": "deleted",
    "compaction": "deleted",
    "delete-replica": "removed",
}
"""Notes of handlers that shorten a log, and the fate of what is gone."""

Noted = tuple[int, str, Mapping[str, Any]]
"""A note of a handler: its event, kind and arguments."""


class CopyWatch:
    """See the module; the part of a broker's watch that keeps account of copies."""

    def __init__(self, scene: Scene, node: str, disk: SimDisk) -> None:
        self.scene = scene
        self.node = node
        self.disk = disk

    def _note_unfinished(self, place: Place, event: int) -> None:
        """What a handler had cut that never came to its end, and so has told nobody."""
        mirror, ledger = place.mirror, self.scene.ledger(place.partition)
        cut = mirror.take_change().cut
        if not cut:
            return
        if not mirror.segments or cut[0].base < mirror.segments[0].base:
            self._note_fate(place, cut, "deleted", event)
            return
        if ledger.is_compacted:
            self._note_fate(place, cut, "unfinished", event)
            return
        self._note_fate(place, cut, "truncated", event)
        self._check_untold(place, cut, event)

    def _check_untold(self, place: Place, cut: Sequence[Batch], event: int) -> None:
        """A truncation that its handler has not come to tell of."""
        args = {
            "offset": cut[0].base,
            "log_end": max(place.end, cut[-1].next),
            "high_watermark": place.high_watermark,
        }
        truncation_floor.check(self.scene, self.scene.ledger(place.partition), place, args, event)

    def _lose(self, place: Place, how: str, event: int) -> None:
        mirror = place.mirror
        before = {} if how == "replaced" else dict(mirror.damaged)
        mirror.forget_process()
        mirror.read_all()
        change = mirror.take_change()
        mirror.cut_unsynced.clear()
        place.is_uncertain = True
        gone = [*change.cut, *spoilt(place, change)]
        # What was damaged before is not taken a second time.
        gone = [batch for batch in gone if batch.base not in before]
        if gone:
            place.is_lossy = True
            self._note_disk_fate(place, gone, how, event)
        place.end = mirror.log_end
        place.high_watermark = min(place.high_watermark, place.end)
        place.shown = min(place.shown, place.end)

    def _note_cut(self, place: Place, cut: Any, notes: list[Noted], event: int, start: int) -> None:
        how, at, by = "vanished", event, ""
        for number, kind, args in notes:
            if kind in CUTS and args.get("partition") == str(place.partition):
                how, at, by = CUTS[kind], number, kind
        if all(batch.next <= place.start for batch in cut):
            is_hidden = cut[-1].next > self.scene.ledger(place.partition).deleted
            how = "hidden" if is_hidden else "deleted"
        elif how == "salvaged":
            place.is_lossy = True
        log = None if place.replica is None else place.replica.log
        if how == "vanished" and log is not None and log.failure is not None:
            # The log failed behind the cut, and is offline: who asked for it has told nobody.
            how = "truncated"
            self._check_untold(place, cut, event)
        self._note_fate(place, cut, how, at)
        if by == "retention":
            # What lay below the log's start had been deleted before, whatever the clock says.
            cut = [batch for batch in cut if batch.next > start]
            early_deletion.check(self.scene, self.scene.ledger(place.partition), place, cut, at)
        if how == "vanished":
            truncation_floor.check_vanished(self.scene, place, cut[0].base, event)

    def _note_fate(
        self, place: Place, batches: Any, how: str, event: int, *, was_durable: bool = False
    ) -> None:
        spans = Records(Span(batch.epoch, batch.base, batch.next) for batch in batches)
        if spans:
            place.fates.append(Fate(how, event, tuple(spans), was_durable))

    def _note_disk_fate(self, place: Place, batches: Any, how: str, event: int) -> None:
        """Copies that went with the power, in recovery, or with another disk.

        What the process called durable, or what could not be lost, went because its disk had lied,
        or against the rules.
        """
        sure = place.claimed_end if how == "power" else place.durable_end or 0
        if how == "replaced":
            sure = 0
        is_bad = recovery_sound.has_bad_disk(self.scene, self.node)
        below = [batch for batch in batches if batch.next <= sure]
        self._note_fate(place, [batch for batch in batches if batch.next > sure], how, event)
        self._note_fate(place, below, "lied" if is_bad else how, event, was_durable=not is_bad)


def spoilt(place: Place, change: Change) -> list[Batch]:
    """Batches that are damaged where they lie."""
    found = (place.mirror.at(base) for base in change.overwritten)
    return [batch for batch in found if batch is not None]


def first_spoilt(place: Place, cut: Sequence[Batch]) -> int:
    """Which of the batches that were cut is the first that had been damaged; how many, if none.

    What is cut behind a hole that damage has made is cut for that damage.
    """
    end = place.mirror.end
    if cut and end < cut[0].base:
        hole = next((f for f in reversed(place.fates) if f.covers_any(end)), None)
        if hole is not None and hole.how == "damaged":
            return 0
    for number, batch in enumerate(cut):
        last = next((f for f in reversed(place.fates) if f.covers(batch.epoch, batch.base)), None)
        if last is not None and last.how == "damaged":
            return number
    return len(cut)


def finished(fate: Fate, end: int) -> Fate:
    """A compaction that a crash interrupted is done, or undone, where the log is opened."""
    if fate.how == "unfinished" and all(span.end <= end for span in fate.spans):
        return fate._replace(how="deleted")
    return fate
