"""I13: no member of ISR or ELR cuts what is committed, and every cut has a reason.

No leader tells a follower that is below its log's start where their logs diverge.

Cuts by recovery, salvage and a replaced disk count as losses, not as truncation. Left out of the
first rule: partitions with an unclean election behind them whose leader has not served yet, and
members whose disk lost something since they entered the ISR. Left out of the second, that nobody
cuts below its own high watermark: partitions where an unclean election or a loss by a disk is known
of, since it explains the cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.messages_data import FetchPartitionResult
from cluster.names import TopicIdPartition
from sim.checks.ledger import DISK_LOSSES, Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check", "check_told", "check_vanished"]

CHECK = "truncation-floor"


def check(scene: Scene, ledger: Ledger, place: Place, args: Mapping[str, Any], event: int) -> None:
    """A replica has truncated its log, or begun it anew."""
    record = scene.records.get(ledger.partition)
    if record is None or ledger.unclean_epochs:
        # The history is not clean any more, though whom it elected has not heard of it yet.
        return
    offset, before = args["offset"], args["log_end"]
    is_member = place.node in record.isr or place.node in record.elr
    floor = min(before, ledger.top)
    if is_member and not place.is_lossy and place.start <= offset < floor:
        scene.report(
            CHECK,
            ledger.partition,
            "below-committed",
            event,
            f"{place.node}, in sync, cuts its log from {before} to {offset}, and offsets below "
            f"{ledger.top} are committed",
            node=place.node,
            offset=offset,
            log_end=before,
            top=ledger.top,
        )
    own = min(args["high_watermark"], before)
    if place.start <= offset < own and not _is_explained(ledger):
        scene.report(
            CHECK,
            ledger.partition,
            "below-own-high-watermark",
            event,
            f"{place.node} cuts its log from {before} to {offset}, below its high watermark {own}",
            node=place.node,
            offset=offset,
            log_end=before,
            high_watermark=own,
        )


def check_told(
    scene: Scene,
    node: str,
    src: str,
    offsets: Mapping[TopicIdPartition, int],
    result: FetchPartitionResult,
    event: int,
) -> None:
    """A leader tells a follower where their logs diverge; not one that is below its log's start.

    Such a one is out of range: it drops its log as a whole (KAFKA-12996).
    """
    fetch_offset = offsets.get(result.partition, result.log_start_offset)
    if result.diverging_epoch is not None and fetch_offset < result.log_start_offset:
        scene.report(
            CHECK,
            result.partition,
            "diverges-below-start",
            event,
            f"{node} tells {src}, which asks for offset {fetch_offset}, where their logs diverge, "
            f"and its own begins at {result.log_start_offset}",
            node=node,
            src=src,
            offset=fetch_offset,
            log_start=result.log_start_offset,
        )


def _is_explained(ledger: Ledger) -> bool:
    if ledger.was_unclean or ledger.was_disk_lost:
        return True
    return any(fate.how in DISK_LOSSES for place in ledger.places.values() for fate in place.fates)


def check_vanished(scene: Scene, place: Place, offset: int, event: int) -> None:
    """A log is shorter, and nobody said why."""
    scene.report(
        CHECK,
        place.partition,
        "vanished",
        event,
        f"{place.node} has lost its records from offset {offset} on, and no truncation says so",
        node=place.node,
        offset=offset,
    )
