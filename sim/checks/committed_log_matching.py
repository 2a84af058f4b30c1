"""I2: two logs agree below both their high watermarks.

Left out of it: a replica from its restart until its first fetch in the current epoch that does not
diverge; behind an unclean election all replicas until then, and behind a leader whose disk lost
records, those that still have them; batches that bit rot has damaged. With
compaction batches differ by right: records that both have are compared, at deep checks only.
"""

from __future__ import annotations

from sim.checks.comparing import difference
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "committed-log-matching"


def check(scene: Scene, ledger: Ledger, place: Place, event: int, *, is_deep: bool = False) -> None:
    """A high watermark or a log has changed: compare it with all others."""
    if place.is_uncertain or (ledger.is_compacted and not is_deep):
        return
    for node, other in ledger.places.items():
        if other is place or other.is_uncertain:
            continue
        limit = min(place.high_watermark, other.high_watermark)
        pair = (place.node, node) if place.node < node else (node, place.node)
        low = 0 if is_deep else ledger.settled.get(pair, 0)
        if limit <= low:
            continue
        differs = difference(place, other, low, limit)
        if differs is None:
            ledger.settled[pair] = limit
            continue
        scene.report(
            CHECK,
            ledger.partition,
            "differs",
            event,
            f"{pair[0]} and {pair[1]} have different records at offset {differs}, "
            f"below both high watermarks ({place.node} {place.high_watermark}, "
            f"{node} {other.high_watermark})",
            offset=differs,
            nodes=list(pair),
        )
