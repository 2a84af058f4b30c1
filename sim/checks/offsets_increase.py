"""I10: batches stand in order, do not overlap, and each lies in the segment it belongs to.

Left out: batches that a disk fault behind the process's back has damaged.
"""

from __future__ import annotations

from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["check", "check_damage", "check_deep"]

CHECK = "offsets-increase"


def check(scene: Scene, place: Place, event: int) -> None:
    """Batches have come to a log: the mirror has noted what is wrong with their order."""
    mirror = place.mirror
    for wrong in mirror.disorder:
        scene.report(
            CHECK, place.partition, "disorder", event, f"{place.node}: {wrong}", node=place.node
        )
    mirror.disorder.clear()


def check_deep(scene: Scene, place: Place, event: int) -> None:
    """Every batch once more, with its segment."""
    mirror, end = place.mirror, -1
    for number, segment in enumerate(mirror.segments):
        last = number + 1 == len(mirror.segments)
        behind = len(mirror.batches) if last else mirror.segments[number + 1].first
        limit = None if last else mirror.segments[number + 1].base
        for batch in mirror.batches[segment.first : behind]:
            is_wrong = batch.base < max(end, segment.base) or batch.next <= batch.base
            if is_wrong or (limit is not None and batch.next > limit):
                scene.report(
                    CHECK,
                    place.partition,
                    "disorder",
                    event,
                    f"{place.node}: {batch} behind {end} in segment {segment.base}",
                    node=place.node,
                )
            end = batch.next


def check_damage(scene: Scene, place: Place, bases: tuple[int, ...], event: int) -> None:
    """A process has overwritten batches that were there."""
    scene.report(
        CHECK,
        place.partition,
        "damaged",
        event,
        f"{place.node}: the batch at offset {bases[0]} was overwritten and is no batch any more",
        node=place.node,
        offsets=list(bases),
    )
