"""Opening a log: what lies in its segments, what it means, and the verdict.

Three steps. ``survey`` reads and changes nothing. ``decide`` is a pure function from what was found
to a plan or a refusal. ``storage.opening`` carries a plan out. The rules (the verdict table of
``storage/README.md`` has every case):

* Damage below the durable boundary refuses. At or above it, the log is cut at the first frame that
  cannot follow, and the cut is reported with every whole range behind it.
* Bytes behind a closed segment's last batch are cut where the next segment starts exactly there.
* A boundary behind the log's end, a missing or overlapping file, a file that does not begin with
  the offset in its name: refused, never chosen between.
* Where the boundary is unknown, everything may have been durable, or the log may be of another
  format: only a torn tail, with good batches before it and none behind, is cut.

Left out: names (``storage.listing``), outputs of compaction (``storage.swaps``); indexes and
epochs, which are derived (``storage.segment``, ``storage.partition_log``).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from attrs import define, frozen

from storage.batch import OFFSET_END
from storage.codec import Codec
from storage.config import LogConfig
from storage.disk import Disk
from storage.errors import (
    CorruptBatch,
    CorruptLog,
)
from storage.listing import SWAP_SUFFIX, Listing
from storage.mkb1 import MKB1
from storage.scan import (
    Fault,
    GoodRange,
    Resume,
    SegmentScan,
    look_ahead,
    ranges_behind,
)
from storage.segment import LOG_SUFFIX, Segment, segment_stem
from storage.state import Boundary, LogState, Seal, SegmentSeal
from storage.values import Value

__all__ = [
    "Cut",
    "Found",
    "OpenReport",
    "Plan",
    "Refusal",
    "Verify",
    "decide",
    "recover_active_segment",
    "survey",
]

Verify = Literal["unflushed", "all"]


@frozen
class Cut(Value):
    """Bytes that opening removed, or would remove.

    Attributes:
        file: the segment file.
        position: its new size in bytes.
        size_bytes: how many bytes go, later files included.
        offset: the log's end after the cut.
        reason: what could not follow there.
        whole_ranges: whole batches among the bytes that go: a power cut may leave such a hole.
    """

    file: Path
    position: int
    size_bytes: int
    offset: int
    reason: str
    whole_ranges: tuple[GoodRange, ...]


@frozen
class OpenReport(Value):
    """What opening a log found and did.

    Attributes:
        is_clean: a clean-close seal was there and matched.
        cuts: tails removed, see ``Cut``.
        epochs: ``(epoch, first offset)`` of the records that are there, as their batches say. It
            begins where opening knows: with ``verify_epochs_at_open`` at the log's start, else
            where it began to read.
        dropped: names of whole segment files removed behind a cut.
        rebuilt: names of derived files that were missing or wrong and were written anew.
        removed: names of left-over files that were unlinked.
        swapped: names of segment files that compaction had completed and opening put in place.
        ignored: names in the directory that belong to nobody here.
        warnings: what could not be read, in words.
    """

    is_clean: bool = False
    cuts: tuple[Cut, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    dropped: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


@frozen
class Found:
    """What ``decide`` needs to know of one segment.

    Attributes:
        base_offset, file_size_bytes: from name and file.
        end_position, next_offset: behind the last good batch.
        fault: why the walk stopped, None at the file's end.
        whole_ranges: whole frames from the fault on, the frame at the fault included.
        first_behind: base offset of the first whole frame behind the damage, or None.
        saw_everything: the look-ahead did not end early.
    """

    base_offset: int
    file_size_bytes: int
    end_position: int
    next_offset: int
    fault: Fault | None = None
    whole_ranges: tuple[GoodRange, ...] = ()
    first_behind: int | None = None
    saw_everything: bool = True


@frozen
class Plan:
    """How to open: cut segment files to their good ends, drop those from ``keep`` on.

    ``skip`` leading ones go as well: they lie below the log start, and retention had begun to
    delete them.
    """

    cut: tuple[int, ...]
    keep: int
    skip: int = 0


@frozen
class Refusal:
    """Why not to open. ``number`` is the segment concerned, -1 for a missing file."""

    number: int
    reason: str
    position: int
    last_good_offset: int
    first_good_offset: int | None


@define
class Surveyed:
    """One segment with what was read of it; ``scan`` is None where the seal stood in for it."""

    segment: Segment
    scan: SegmentScan | None
    resume: Resume | None
    seal: SegmentSeal | None
    found: Found


@define
class Survey:
    """Everything that opening a log knows before it changes anything."""

    listing: Listing
    segments: list[Surveyed]
    is_clean: bool

    def outside(self, plan: Plan) -> list[Surveyed]:
        """The segments that ``plan`` drops as a whole."""
        return [*self.segments[: plan.skip], *self.segments[plan.keep :]]


def survey(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    *,
    listing: Listing,
    state: LogState,
    seal: Seal | None,
    verify: Verify,
    known_epoch: int,
    swapped: Collection[int] = (),
) -> Survey:
    """Read as much of every segment as ``verify`` asks for; change nothing.

    With ``all``, every byte is walked. With ``unflushed``, a matching clean-close seal stands in
    for everything; else segments below the durable boundary are walked from their last index entry
    on, and in full where that does not work out. So are the files of the segments in ``swapped``,
    which still bear the suffix.
    """
    segments = [
        Segment(
            disk,
            directory,
            base,
            config,
            codec,
            gaps_end=state.gaps_end,
            suffix=SWAP_SUFFIX if base in swapped else "",
        )
        for base in listing.bases
    ]
    try:
        is_clean = seal is not None and _seal_matches(segments, seal)
        if is_clean and verify == "unflushed":
            assert seal is not None
            return Survey(listing, list(map(_sealed, segments, seal.segments)), is_clean)
        result: list[Surveyed] = []
        latest_epoch = -1
        for segment in segments:
            is_trusted = verify == "unflushed" and segment.base_offset not in swapped
            boundary = state.boundary if is_trusted else None
            resume = _resume(segment, boundary) if boundary is not None else None
            scan = segment.scan(resume, latest_epoch=latest_epoch)
            if resume is not None and scan.fault is not None:
                resume = None
                scan = segment.scan(latest_epoch=latest_epoch)
            if scan.fault is not None and scan.fault.reason == "epoch-back":
                scan = _blame_epoch(segment, scan, latest_epoch, known_epoch)
            latest_epoch = scan.last_epoch
            result.append(Surveyed(segment, scan, resume, None, _found(segment, scan)))
            segment.close()
    except BaseException:
        for segment in segments:
            segment.close()
        raise
    return Survey(listing, result, is_clean)


def _sealed(segment: Segment, seal: SegmentSeal) -> Surveyed:
    found = Found(segment.base_offset, seal.size_bytes, seal.size_bytes, seal.next_offset)
    return Surveyed(segment, None, None, seal, found)


def _found(segment: Segment, scan: SegmentScan) -> Found:
    fault, good_end = scan.fault, scan.next_offset
    ranges: tuple[GoodRange, ...] = ()
    first_behind = None
    is_complete = True
    if fault is not None:
        file, codec, config = segment.file(), segment.codec, segment.config
        ranges, is_complete = look_ahead(
            file, codec, config, position=fault.position, min_offset=good_end
        )
        behind = ranges_behind(file, codec, config, fault, good_end)
        first_behind = behind[0].base_offset if behind else None
    return Found(
        scan.base_offset,
        scan.file_size_bytes,
        scan.end_position,
        good_end,
        fault,
        ranges,
        first_behind,
        is_complete,
    )


def _seal_matches(segments: list[Segment], seal: Seal) -> bool:
    """Whether sizes, names and last frames are what the clean close left."""
    if [s.base_offset for s in segments] != [s.base_offset for s in seal.segments]:
        return False
    return all(map(_segment_matches, segments, seal.segments))


def _segment_matches(segment: Segment, seal: SegmentSeal) -> bool:
    if segment.disk.stat(segment.log_path).size_bytes != seal.size_bytes:
        return False
    if seal.size_bytes == 0:
        return seal.next_offset == seal.base_offset and seal.last_position == -1
    size = seal.size_bytes - seal.last_position
    if not 0 <= seal.last_position < seal.size_bytes or size > segment.config.read_limit_bytes:
        return False
    file = segment.disk.open(segment.log_path, write=False)
    try:
        frame = file.read_at(seal.last_position, size)
        facts = segment.codec.check(
            memoryview(frame), 0, len(frame), segment.config.read_limit_bytes
        )
    except CorruptBatch:
        return False
    finally:
        file.close()
    return facts[0] == size and facts[2] == seal.next_offset


def _resume(segment: Segment, boundary: Boundary) -> Resume | None:
    """Where to begin in a segment at or below the boundary, None to begin at its first byte."""
    if segment.base_offset > boundary.segment_base:
        return None
    is_own = segment.base_offset == boundary.segment_base
    return segment.early_resume_point(boundary.end_offset if is_own else OFFSET_END)


def _blame_epoch(
    segment: Segment, scan: SegmentScan, latest_epoch: int, known_epoch: int
) -> SegmentScan:
    """Where an epoch fell: was the frame before it too high, or is this one too old?

    Epochs are assigned durably before their first batch, so a rise beyond the epoch file's newest
    entry that is taken back later was never written by a leader.
    """
    risen = [start for start in scan.epoch_starts if start[0] > known_epoch >= 0]
    if not risen:
        return scan
    epoch, offset, position = risen[0]
    shorter = segment.scan(latest_epoch=latest_epoch, stop_at=position)
    shorter.file_size_bytes = scan.file_size_bytes
    size = segment.codec.hop(segment.file().read_at(position, segment.codec.hop_bytes), 0)[0]
    detail = f"epoch {epoch} at offset {offset}, but {known_epoch} is the newest known"
    shorter.fault = Fault(position, "epoch-ahead", detail, size)
    return shorter


# The verdict -----------------------------------------------------------------------------------


def decide(found: list[Found], boundary: Boundary | None, log_start: int | None) -> Plan | Refusal:
    """Plan or refusal for what a survey found. Pure; see the module's rules.

    Args:
        found: the segments by rising base offset.
        boundary: the durable boundary, None where it is unknown.
        log_start: the persisted log start offset, None where it is unknown.
    """
    start = log_start or 0
    durable_end = boundary.end_offset if boundary is not None else 0
    if not found:
        if durable_end > start:
            return Refusal(
                -1, f"every segment is missing, {durable_end} was durable", 0, start, None
            )
        return Plan((), 0)
    if log_start is not None and found[0].base_offset > log_start:
        if boundary is not None and durable_end <= log_start:
            return Plan((), 0)
        reason = _first_missing(log_start)
        return Refusal(0, reason, 0, log_start, _first_batch(found, 0))
    skip = _below_start(found, start)
    for number in range(skip, len(found)):
        refusal = _misfit(found, number, skip)
        if refusal is not None:
            return refusal
    cut: list[int] = []
    keep = len(found)
    for number, segment in enumerate(found[skip:], skip):
        after = found[number + 1] if number + 1 < len(found) else None
        if after is not None and after.base_offset == segment.next_offset:
            if segment.fault is not None:
                cut.append(number)
            continue
        if segment.fault is None and after is None:
            continue
        first_good = _first_behind(found, number)
        is_durable = segment.next_offset < durable_end
        if is_durable or (boundary is None and not _is_torn_tail(found, number)):
            reason = _damage(segment, after)
            return Refusal(number, reason, segment.end_position, segment.next_offset, first_good)
        cut.append(number)
        keep = number + 1
        break
    last = found[keep - 1]
    if last.next_offset < durable_end:
        reason = f"the log ends at offset {last.next_offset}, but {durable_end} was durable"
        return Refusal(keep - 1, reason, last.end_position, last.next_offset, None)
    if last.next_offset < start:
        reason = f"the log ends at offset {last.next_offset}, below its start {start}"
        return Refusal(keep - 1, reason, last.end_position, start, None)
    return Plan(tuple(cut), keep, skip)


def _below_start(found: list[Found], start: int) -> int:
    """How many leading segments end before a hole that lies wholly below the log start.

    Retention raises the start durably, then renames files; a power cut may keep any of the names.
    """
    skip = 0
    for number in range(1, len(found)):
        if found[number].base_offset > start:
            break
        if found[number - 1].next_offset < found[number].base_offset:
            skip = number
    return skip


def _first_missing(log_start: int) -> str:
    return f"the log starts at offset {log_start}, the files before this one are missing"


def _is_torn_tail(found: list[Found], number: int) -> bool:
    """Whether damage looks like an unfinished append: good batches before it, none behind.

    A log of another format has neither.
    """
    has_good_before = any(segment.end_position > 0 for segment in found[: number + 1])
    has_bytes_behind = any(segment.file_size_bytes > 0 for segment in found[number + 1 :])
    behind = found[number]
    is_bare = not behind.whole_ranges and behind.saw_everything
    return has_good_before and not has_bytes_behind and is_bare


def _misfit(found: list[Found], number: int, first: int) -> Refusal | None:
    """A file that does not begin with its own offset, or that overlaps the one before it."""
    segment = found[number]
    good_end = found[number - 1].next_offset if number > first else segment.base_offset
    if number > first and segment.base_offset < good_end:
        before = found[number - 1].base_offset
        reason = f"overlaps {before:020d}{LOG_SUFFIX}, which ends at offset {good_end}"
        return Refusal(number, reason, 0, good_end, None)
    fault = segment.fault
    if fault is not None and fault.position == 0 and fault.is_whole and "offset" in fault.reason:
        reason = f"does not begin with the offset in its name: {fault.detail}"
        return Refusal(number, reason, 0, good_end, _first_behind(found, number))
    return None


def _damage(segment: Found, after: Found | None) -> str:
    if segment.fault is not None:
        return f"{segment.fault.reason}: {segment.fault.detail}"
    assert after is not None, "a whole last segment is no damage"
    return f"batches are missing from here to offset {after.base_offset}"


def _first_behind(found: list[Found], number: int) -> int | None:
    """Base offset of the first whole batch behind the end of a segment's good part."""
    behind = found[number].first_behind
    return behind if behind is not None else _first_batch(found, number + 1)


def _first_batch(found: list[Found], number: int) -> int | None:
    for segment in found[number:]:
        if segment.end_position > 0:
            return segment.base_offset
        if segment.whole_ranges:
            return segment.whole_ranges[0].base_offset
    return None


def refusal_error(refusal: Refusal, directory: Path, segments: list[Surveyed]) -> CorruptLog:
    """The error that a refusal is raised as. A file goes by the name that it has in the log."""
    file = directory
    if refusal.number >= 0:
        base = segments[refusal.number].segment.base_offset
        file = directory / (segment_stem(base) + LOG_SUFFIX)
    return CorruptLog(
        file,
        refusal.reason,
        position=refusal.position,
        last_good_offset=refusal.last_good_offset,
        first_good_offset=refusal.first_good_offset,
    )


def planned_cuts(plan: Plan, segments: list[Surveyed], log_start: int) -> tuple[Cut, ...]:
    """What carrying out ``plan`` removes."""
    if plan.keep == 0 and segments:
        first = segments[0]
        size, ranges = _whole_files(segments)
        reason = _first_missing(log_start)
        return (Cut(first.segment.log_path, 0, size, log_start, reason, ranges),)
    cuts = []
    for number in plan.cut:
        found = segments[number].found
        size = found.file_size_bytes - found.end_position
        ranges = found.whole_ranges
        if number == plan.keep - 1:
            later_size, later_ranges = _whole_files(segments[plan.keep :])
            size += later_size
            ranges += later_ranges
        after = segments[number + 1].found if number + 1 < len(segments) else None
        path = segments[number].segment.log_path
        reason = _damage(found, after)
        cuts.append(Cut(path, found.end_position, size, found.next_offset, reason, ranges))
    return tuple(cuts)


def _whole_files(segments: list[Surveyed]) -> tuple[int, tuple[GoodRange, ...]]:
    """Bytes and whole ranges of files that are dropped."""
    size = 0
    ranges: tuple[GoodRange, ...] = ()
    for surveyed in segments:
        found = surveyed.found
        size += found.file_size_bytes
        if found.end_position:
            good = GoodRange(0, found.end_position, found.base_offset, found.next_offset)
            ranges += (good,)
        ranges += found.whole_ranges
    return size, ranges


def recover_active_segment(
    directory: Path,
    base_offset: int,
    config: LogConfig | None = None,
    *,
    disk: Disk | None = None,
    codec: Codec = MKB1,
) -> Segment:
    """Open one segment as the active one: cut its torn tail, rebuild its indexes.

    Thin on purpose: ``Segment.open`` does the work. A whole log is opened with
    ``PartitionLog.open``, which knows what was durable.
    """
    return Segment.open(directory, base_offset, config, active=True, disk=disk, codec=codec)
