"""I14: 0 <= log start <= high watermark <= log end, and nothing is called durable behind it.

The end is that of the files; a replica that believes in another end than its files have is told of
too. Left out: what a log that has failed believes, and the end that a process believes in whose
files were cut behind its back.
"""

from __future__ import annotations

from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene
from storage.partition_log import PartitionLog

__all__ = ["check"]

CHECK = "offset-order"


def check(scene: Scene, ledger: Ledger, place: Place, log: PartitionLog, event: int) -> None:
    """The marks of a replica have changed."""
    start, mark, end = place.start, place.high_watermark, place.end
    kind = ""
    if not 0 <= start <= mark <= end:
        kind = "disorder"
    elif log.boundary.end_offset > end:
        kind = "boundary-behind-end"
    elif place.mirror.batches and place.mirror.end != end:
        kind = "" if ledger.is_compacted or place.is_damaged else "end-differs"
    if kind and log.failure is None:
        scene.report(
            CHECK,
            place.partition,
            kind,
            event,
            f"{place.node}: log start {start}, high watermark {mark}, log end {end}, durable up to "
            f"{log.boundary.end_offset}, its files end at {place.mirror.end}",
            node=place.node,
            start=start,
            high_watermark=mark,
            end=end,
            durable=log.boundary.end_offset,
            files_end=place.mirror.end,
        )
