"""I7: one broker appends under an epoch, and the controller's epochs only grow.

No life of a broker is registered while the session of the one before lasts.

A broker that was started anew is another one. Nothing is left out of it.
"""

from __future__ import annotations

from cluster.metadata import MetadataImage
from cluster.records import PartitionRecord
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = ["check_append", "check_memory", "check_record", "report_registration"]

CHECK = "one-leader-per-epoch"


def check_append(scene: Scene, ledger: Ledger, place: Place, epoch: int, event: int) -> None:
    """A leader has appended a batch of its own."""
    who = place.node, scene.incarnation(place.node)
    first = ledger.appended_by.setdefault(epoch, who)
    if first != who:
        scene.report(
            CHECK,
            ledger.partition,
            "two-appenders",
            event,
            f"{first[0]} (process {first[1]}) and {who[0]} (process {who[1]}) append in epoch "
            f"{epoch}",
            epoch=epoch,
            appenders=[list(first), list(who)],
        )


def check_record(
    scene: Scene, before: PartitionRecord, record: PartitionRecord, event: int
) -> None:
    """The controller's word has changed."""
    old, new = ((each.leader_epoch, each.partition_epoch) for each in (before, record))
    if new[0] < old[0] or new[1] < old[1]:
        kind, what = "epochs-go-back", "goes back"
    elif new == old and record != before:
        kind, what = "same-epochs", "stays the same for another state"
    else:
        return
    scene.report(
        CHECK,
        record.partition,
        kind,
        event,
        f"the controller's (leader epoch, partition epoch) {what}: {old}, then {new}",
        before=list(old),
        after=list(new),
    )


def check_memory(scene: Scene, image: MetadataImage, told_end: int, event: int) -> None:
    """A controller that starts knows everything that it has told."""
    for partition, told in scene.records.items():
        known = image.partition(partition)
        if known is None and image.end_offset > told_end:
            continue
        epoch = -1 if known is None else known.partition_epoch
        if epoch < told.partition_epoch:
            scene.report(
                CHECK,
                partition,
                "forgotten",
                event,
                f"the controller has told partition epoch {told.partition_epoch}, and knows "
                f"{epoch} now",
                told=told.partition_epoch,
                known=epoch,
            )


def report_registration(scene: Scene, node: str, left_us: int, event: int) -> None:
    """Another life of a broker was registered ``left_us`` before the session of one has ended."""
    scene.report(
        CHECK,
        None,
        "registered-twice",
        event,
        f"another life of {node} is registered while the one before has {left_us} us of its "
        f"session left",
        broker=node,
        left_us=left_us,
    )
