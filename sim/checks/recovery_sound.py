"""I17: recovery keeps what was durable, invents nothing, and what it leaves can be used.

A process that starts has, of each log that opens: every batch that could not be lost (all whole
ones behind a kill, the durable ones behind a power loss), and none that this log did not have since
its files were last synced. Its epoch checkpoint can be read, its index points at batches, and what
it calls durable is. It takes for cleanly closed what was not opened since the marker was written
(KAFKA-10471). A checkpoint of high watermarks keeps what the one before had.

Left out: logs in quarantine, disks that were replaced or have lied about what they stored, batches
damaged by bit rot, and what recovery adds to a compacted log, since it finishes a compaction under
way. Crash mode ``garbage`` is not left out: this project's disk never spoils what was durable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cluster.names import TopicIdPartition
from sim.checks.history import Batch
from sim.checks.ledger import Place
from sim.checks.scene import Scene
from sim.disk_files import PAGE_BYTES, FileState
from sim.faults import DiskCallFault
from storage.checkpoints import parse_entries
from storage.epochs import EPOCH_FILE
from storage.errors import CorruptCheckpoint, CorruptLog, StorageError
from storage.partition_log import PartitionLog

__all__ = [
    "check",
    "check_files",
    "check_refused",
    "durable_end",
    "note_before",
    "report_mark",
    "sound_end",
]

CHECK = "recovery-sound"

_LIARS: Final = frozenset(
    {
        "lost-write",
        "misdirected-write",
        "fsync-fail",
        "fsync-lie",
        "fsync-read-only",
        "late-enospc",
        "write-back-fail",
    }
)
"""Kinds of faults behind which a call, this one or a later one, claims what is not so."""


def note_before(place: Place, *, is_power: bool) -> None:
    """A process is about to end, or a host to lose its power: what must be there afterwards?"""
    mirror = place.mirror
    mirror.refresh()
    if place.replica is not None and place.replica.log is not None:
        place.claimed_end = place.replica.log.boundary.end_offset
    if is_power:
        place.durable_end = sound_end(place, durable_end(place))
    else:
        place.durable_end = sound_end(place, mirror.end)
    had = place.had if place.had is not None else {}
    for batch in (*mirror.batches, *mirror.cut_unsynced):
        had[batch.epoch, batch.base] = batch
    place.had = had


def sound_end(place: Place, end: int) -> int:
    """An end, or where the files are damaged or cut short below it: recovery need not go on."""
    mirror = place.mirror
    return min(end, mirror.end, *mirror.damaged)


def durable_end(place: Place) -> int:
    """The offset up to which a power loss can take nothing of a log."""
    mirror = place.mirror
    disk = mirror.disk
    directory = disk.names.find((mirror.directory,))
    if directory is None:
        return 0
    visible = disk.names.visible.get(directory, {})
    durable = disk.names.durable.get(directory, {})
    end = 0
    for number, segment in enumerate(mirror.segments):
        name = f"{segment.base:020d}.log"
        inode = visible.get(name)
        if inode is None or durable.get(name) != inode or inode not in disk.inodes:
            return end
        prefix = _durable_bytes(disk.inodes[inode].state)
        is_last = number + 1 == len(mirror.segments)
        behind = len(mirror.batches) if is_last else mirror.segments[number + 1].first
        at = 0
        for batch in mirror.batches[segment.first : behind]:
            at += len(batch.data)
            if at > prefix:
                return end
            end = batch.next
    return end


def _durable_bytes(state: FileState) -> int:
    prefix = min((op.position for op in state.ops), default=state.size)
    if state.phantoms:
        prefix = min(prefix, PAGE_BYTES * min(state.phantoms))
    return prefix


def check(scene: Scene, place: Place, log: PartitionLog, event: int) -> None:
    """A process has opened a log."""
    expected, had, was_closed = place.durable_end, place.had, place.was_closed
    place.durable_end = place.had = None
    place.was_closed = False
    mirror = place.mirror
    if expected is None or has_bad_disk(scene, place.node):
        return
    if log.report.is_clean and not was_closed:
        scene.report(
            CHECK,
            place.partition,
            "false-clean",
            event,
            f"{place.node} takes its log for cleanly closed, by a marker from before it was opened "
            f"the last time",
            node=place.node,
        )
    if mirror.damaged:
        return
    if mirror.end < expected and place.end < expected:
        scene.report(
            CHECK,
            place.partition,
            "durable-lost",
            event,
            f"{place.node} opens its log with end {place.end}, and could not lose anything below "
            f"{expected}",
            node=place.node,
            end=place.end,
            durable=expected,
        )
    if had is not None and not scene.ledger(place.partition).is_compacted:
        for batch in mirror.batches:
            if had.get((batch.epoch, batch.base)) is not batch and not _has(had, batch.data):
                scene.report(
                    CHECK,
                    place.partition,
                    "invented",
                    event,
                    f"{place.node} opens its log with {batch}, which it did not have",
                    node=place.node,
                    offset=batch.base,
                )
                break
    check_index(scene, place, log, event)


def check_refused(scene: Scene, place: Place, error: StorageError, event: int) -> None:
    """A process has found damage in a log: something must have spoilt its files."""
    expected = place.durable_end
    is_spoilt = place.mirror.damaged or place.node in scene.damages
    if expected is None or is_spoilt or has_bad_disk(scene, place.node):
        return
    if isinstance(error, CorruptLog):
        scene.report(
            CHECK,
            place.partition,
            "refused",
            event,
            f"{place.node} finds its log damaged, which only a crash has touched: {error}",
            node=place.node,
        )


def _has(had: dict[tuple[int, int], Batch], data: bytes) -> bool:
    return any(batch.data == data for batch in had.values())


def has_bad_disk(scene: Scene, node: str) -> bool:
    """Whether its disk may have said that something is stored that is not.

    Calls that fail, and say so, or stop in the middle prove nothing against the rest.
    """
    return any(
        isinstance(fault, DiskCallFault)
        and fault.node == node
        and fault.fault.kind in _LIARS
        and fault_id in scene.begun
        for fault_id, fault in scene.world.faults.items()
    )


def check_index(scene: Scene, place: Place, log: PartitionLog, event: int) -> None:
    """Every entry of the active segment's index is the place of its batch."""
    if not place.mirror.segments or place.mirror.damaged:
        return
    segment = place.mirror.segments[-1]
    if segment.base != log.active.base_offset:
        return
    at, places = 0, {}
    for batch in place.mirror.batches[segment.first :]:
        places[batch.base] = at
        at += len(batch.data)
    for offset, position in log.active.index.entries:
        if places.get(offset) != position:
            scene.report(
                CHECK,
                place.partition,
                "index-wrong",
                event,
                f"{place.node}: the index has offset {offset} at byte {position}, the file at "
                f"{places.get(offset)}",
                node=place.node,
                offset=offset,
                position=position,
            )
            return


def report_mark(scene: Scene, partition: TopicIdPartition, node: str, event: int) -> None:
    """A checkpoint of high watermarks has lost one that it had: that log begins at 0 again."""
    scene.report(
        CHECK,
        partition,
        "mark-forgotten",
        event,
        f"{node} writes a checkpoint of high watermarks without that of {partition}, which was in "
        f"the one before",
        node=node,
    )


def check_files(scene: Scene, place: Place, event: int) -> None:
    """A power loss has left these files: a checkpoint that has its name has its content."""
    mirror = place.mirror
    number = mirror.disk.names.find((mirror.directory, EPOCH_FILE))
    if number is None or number not in mirror.disk.inodes or has_bad_disk(scene, place.node):
        return
    data = mirror.disk.content_of(number)
    wrong = "" if data else "it is empty"
    try:
        list(parse_entries(Path(EPOCH_FILE), data.decode().removesuffix("\n").split("\n"), 2))
    except (CorruptCheckpoint, UnicodeDecodeError) as error:
        wrong = wrong or str(error)
    if wrong:
        scene.report(
            CHECK,
            place.partition,
            "checkpoint-unreadable",
            event,
            f"{place.node}: {mirror.directory}/{EPOCH_FILE} cannot be read: {wrong}",
            node=place.node,
        )


def check_claim(scene: Scene, place: Place, log: PartitionLog, event: int) -> None:
    """What a log calls durable is durable on its disk."""
    claimed = min(log.boundary.end_offset, place.end)
    if claimed <= place.start or log.failure is not None or place.mirror.damaged:
        return
    if has_bad_disk(scene, place.node):
        return
    durable = durable_end(place)
    last = place.mirror.last_before(claimed)
    if last is not None and last.next <= claimed and durable < last.next:
        scene.report(
            CHECK,
            place.partition,
            "claims-durable",
            event,
            f"{place.node} calls its log durable up to {claimed}, and it is up to {durable}",
            node=place.node,
            claimed=claimed,
            durable=durable,
        )
