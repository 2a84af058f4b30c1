"""Looking at the directory of one partition: its files, what is wrong, and what open would do.

The verdict is recovery's own (``storage.inspection.look``), with ``planned_cuts`` to say what would
go. It is the verdict of ``verify="all"``: an open that trusts a seal, or what lies below the
durable boundary, may see less. Indexes and epochs are compared with the batches here.

A log that changes while something is found wrong with it is looked at again, three times in all;
then the verdict is "unknown".

Left out: the directory of a broker (``storage.inspection.describe``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from attrs import define, evolve, field

from storage.disk import FileKind, LockState
from storage.epochs import EPOCH_FILE
from storage.errors import CorruptBatch, CorruptLog, DiskError, StorageError
from storage.inspection.audits import EpochAudit, OffsetAudit, RisingAudit, TimeAudit
from storage.inspection.indexes import IndexFile, audit_indexes, index_problems
from storage.inspection.known import Known, topic_id_of
from storage.inspection.look import SEGMENT_NAME, Look, has_moved, look_at
from storage.inspection.segments import (
    Measured,
    is_kafka_log,
    limited,
    measure,
    segment_rows,
    with_ranges,
)
from storage.inspection.snapshots import SnapshotsFound, judge_snapshots, snapshot_names
from storage.inspection.views import (
    FileRow,
    IndexSummary,
    Options,
    PartitionView,
    Problem,
    RefusalFacts,
    Row,
    SegmentSummary,
    Verdict,
)
from storage.inspection.words import counted
from storage.listing import SWAP_SUFFIX
from storage.read_only import ReadOnlyDisk
from storage.recovery import Plan, Refusal, Surveyed, planned_cuts, refusal_error
from storage.segment import Segment, segment_stem
from storage.segment_indexes import INDEX_SUFFIX, TIME_INDEX_SUFFIX

__all__ = ["describe_partition"]

ATTEMPTS: Final = 3
EPOCHS_SHOWN: Final = 1_000
PROBLEMS_MAX: Final = 20
"""How many of an index's problems a partition's view lists."""


def describe_partition(
    disk: ReadOnlyDisk, directory: Path, options: Options, known: Known | None = None
) -> PartitionView:
    """The directory of one partition.

    Args:
        known: what its broker's directory keeps for it, where that was read already.

    Raises:
        DiskError: the directory cannot be listed.
    """
    view = None
    for attempt in range(ATTEMPTS):
        look = look_at(disk, directory, options, None if attempt else known)
        view = _view_of(disk, look, options)
        if not look.is_suspicious or not has_moved(disk, look):
            return view
    assert view is not None, "there is at least one attempt"
    # What is wrong may be wrong only because of when it was read.
    view.notes += [f"while the log changed, {one.file}: {one.reason}" for one in view.problems]
    view.problems.clear()
    view.verdict = Verdict(outcome="unknown", error="the log changed each time it was read")
    return view


def _view_of(disk: ReadOnlyDisk, look: Look, options: Options) -> PartitionView:
    facts = _Facts(disk, look, options)
    segments = facts.segments()
    formats = {segment.format for segment in segments} & {"Kafka", "MKB1"}
    facts.note_state(is_kafka="Kafka" in formats)
    topic_id, problem = topic_id_of(disk, look.directory)
    if problem is not None:
        look.problems.append(problem)
    known, state = look.known, look.known.state
    closed = "cleanly" if look.is_clean else "seal differs" if known.has_seal else "no seal"
    is_readable = look.error is None and "Kafka" not in formats
    snapshots = facts.snapshots(is_judged=is_readable)
    view = PartitionView(
        path=look.directory,
        format=" and ".join(sorted(formats)) or "MKB1",
        lock=known.lock,
        state_kept=known.kept,
        boundary=state.boundary,
        log_start_offset=state.log_start_offset,
        gaps_end=state.gaps_end,
        producers_from=state.producers_from,
        cleaned_offset=state.cleaned_offset,
        high_watermark=known.high_watermark,
        closed=closed,
        topic_id=topic_id,
        next_offset=look.log_end if is_readable else None,
        segments=segments,
        epochs=None if look.epochs is None else tuple(look.epochs[:EPOCHS_SHOWN]),
        epoch_count=len(look.epochs or ()),
        snapshots=snapshot_names(look.names, look.listing.ignored),
        snapshot_used=snapshots.used,
        others=tuple(look.listing.ignored),
        problems=look.problems,
        notes=look.notes,
        verdict=facts.verdict(snapshots.removed),
    )
    if options.lists_batches:
        rows = _partition_rows(disk, look, options, view.late_problems)
        view.rows = limited(rows, options.count)
    return view


@define
class _Facts:
    """What a look comes to, once the derived files were compared with the batches."""

    disk: ReadOnlyDisk
    look: Look
    options: Options
    wrong_files: set[str] = field(factory=set)
    other_intervals: list[str] = field(factory=list)

    # Segments ----------------------------------------------------------------------------------

    def segments(self) -> tuple[SegmentSummary, ...]:
        """Every segment, its indexes and the epoch file compared with its batches."""
        look = self.look
        if look.error is not None:
            return tuple(map(self._by_itself, filter(SEGMENT_NAME.match, look.names)))
        audit = self._epoch_audit()
        summaries = []
        latest_epoch = -1
        for number, surveyed in enumerate(look.segments):
            summaries.append(self._segment(number, surveyed, latest_epoch, audit))
            if surveyed.scan is not None:
                latest_epoch = surveyed.scan.last_epoch
        is_kafka = any(summary.format == "Kafka" for summary in summaries)
        if audit is not None and not is_kafka:
            self._judge_epochs(audit)
        kept = {surveyed.segment.log_path.name for surveyed in look.kept}
        if look.epochs is None and any(s.batch_count for s in summaries if s.file in kept):
            self.wrong_files.add(EPOCH_FILE)
            if not look.is_epoch_file_there:
                look.problems.append(Problem(EPOCH_FILE, "missing"))
        return tuple(summaries)

    def _by_itself(self, name: str) -> SegmentSummary:
        """A segment of a log whose survey failed: as much as can be read."""
        look, path = self.look, self.look.directory / name
        stat = self.disk.stat(path)
        unread = SegmentSummary(name, "unreadable", stat.size_bytes, int(name[:20]))
        if stat.kind is not FileKind.FILE:
            return evolve(unread, format=stat.kind.value)
        try:
            if is_kafka_log(self.disk, path):
                return evolve(unread, format="Kafka")
            gaps_end = look.known.state.gaps_end
            config = self.options.config
            found = measure(
                self.disk, path, config, base_offset=unread.base_offset, gaps_end=gaps_end
            )
        except DiskError as error:
            look.problems.append(Problem(name, f"cannot be read: {error}"))
            return unread
        return _summary_of(found, look.known.lock, -1)

    def _segment(
        self, number: int, surveyed: Surveyed, latest_epoch: int, epochs: EpochAudit | None
    ) -> SegmentSummary:
        scan, path = surveyed.scan, surveyed.segment.log_path
        assert scan is not None, "verify='all' walks every segment"
        if scan.end_position == 0 and scan.fault is not None and is_kafka_log(self.disk, path):
            summary = SegmentSummary(path.name, "Kafka", scan.file_size_bytes, scan.base_offset)
            return evolve(
                summary,
                index=self._uncompared(surveyed.segment.index_path),
                time_index=self._uncompared(surveyed.segment.time_index_path),
            )
        found = remeasured(self.disk, surveyed, self.options)
        summary = _summary_of(found, self.look.known.lock, latest_epoch)
        if summary.damage is not None and number < len(self.look.segments) - 1:
            summary = evolve(summary, damage=evolve(summary.damage, is_unfinished=False))
        index, time_index = self._indexes(number, surveyed, found, epochs)
        return evolve(summary, index=index, time_index=time_index)

    # Indexes -----------------------------------------------------------------------------------

    def _index_file(self, path: Path) -> IndexFile | None:
        """The index as it was before the log was read; None where there is no such file."""
        size = self.look.index_sizes.get(path.name)
        if size is None or self.disk.stat(path).kind is not FileKind.FILE:
            return None
        return IndexFile(path, size)

    def _uncompared(self, path: Path) -> IndexSummary | None:
        index = self._index_file(path)
        return IndexSummary(path.name, index.entry_count) if index is not None else None

    def _indexes(
        self, number: int, surveyed: Surveyed, found: Measured, epochs: EpochAudit | None
    ) -> tuple[IndexSummary | None, IndexSummary | None]:
        look, segment = self.look, surveyed.segment
        is_output = segment.base_offset in look.swapped
        offsets = times = None
        if not is_output:
            offsets = self._index_file(segment.index_path)
            times = self._index_file(segment.time_index_path)
        see = epochs.see if epochs is not None and number in look.counted else None
        last = look.kept[-1].segment.base_offset if look.kept else 0
        is_active = segment.base_offset >= last
        by_offset: OffsetAudit | None = None
        by_time: TimeAudit | None = None
        try:
            by_offset, by_time = audit_indexes(
                self.disk, found, self.options, offsets, times, see, is_active=is_active
            )
            if offsets is not None and by_offset.other_interval:
                self.other_intervals.append(f"{offsets.path.name} for {by_offset.other_interval}")
        except (CorruptBatch, DiskError) as error:
            look.is_disturbed = True
            look.notes.append(f"{found.path.name}: indexes not compared: {error}")
        if is_output:
            # Open does not believe the indexes of an output of compaction, it derives them.
            self.wrong_files |= set(_index_names(segment))
            return None, None
        # While a batch is written, or a segment rolls, index entries may not be there yet.
        may_lag = look.is_live and number >= len(look.segments) - 2
        return (
            self._summary(segment.index_path, offsets, by_offset, may_lag=may_lag, found=found),
            self._summary(segment.time_index_path, times, by_time, may_lag=may_lag, found=found),
        )

    def _summary(
        self,
        path: Path,
        index: IndexFile | None,
        audit: RisingAudit | None,
        *,
        may_lag: bool,
        found: Measured,
    ) -> IndexSummary:
        problems: list[Problem] = []
        if index is not None:
            problems = list(index_problems(index, audit, may_lag=may_lag))
        elif found.scan.file_size_bytes:
            # A segment is made before its indexes, so an empty one may be without.
            problems = [Problem(path.name, "missing")]
        self.look.problems += problems[:PROBLEMS_MAX]
        is_other = audit is not None and audit.is_rewritten
        if may_lag and found.scan.fault is None:
            is_other = False
        if problems or is_other or index is None:
            self.wrong_files.add(path.name)
        count = None if index is None else index.entry_count
        return IndexSummary(path.name, count, problems[0] if problems else None, len(problems))

    # Epochs ------------------------------------------------------------------------------------

    def _epoch_audit(self) -> EpochAudit | None:
        if self.look.epochs is None:
            return None
        return EpochAudit(self.look.epochs, self.look.log_start, self.look.known.state.gaps_end)

    def _judge_epochs(self, audit: EpochAudit) -> None:
        look = self.look
        behind: list[tuple[int, str]] = []
        if isinstance(look.answer, Plan) and not look.is_live:
            behind = audit.finish(look.log_end)
            if not look.is_bad:
                # Else they go with the batches that they name, and are no damage of their own.
                look.problems += [Problem(EPOCH_FILE, text, line=n + 3) for n, text in behind]
        for number, reason in sorted(audit.complaints.items()):
            line = number + 3 if number >= 0 else None
            look.problems.append(Problem(EPOCH_FILE, reason, line=line))
        if audit.complaints or behind or audit.starts != look.epochs:
            self.wrong_files.add(EPOCH_FILE)

    # Snapshots ---------------------------------------------------------------------------------

    def snapshots(self, *, is_judged: bool) -> SnapshotsFound:
        """What open would do about producer snapshots; nothing where it never gets that far."""
        look = self.look
        if not is_judged or not isinstance(look.answer, Plan):
            return SnapshotsFound(None, (), (), ())
        found = judge_snapshots(
            self.disk,
            look.directory,
            look.listing.snapshots,
            range(look.first_offset, look.log_end + 1),
            attempts=ATTEMPTS if look.is_live else 1,
        )
        look.problems += found.problems
        look.notes += found.notes
        look.is_disturbed |= look.is_live and bool(found.removed)
        return found

    # State and verdict -------------------------------------------------------------------------

    def note_state(self, *, is_kafka: bool) -> None:
        """What is worth saying of indexes, boundary and seal."""
        look, known = self.look, self.look.known
        if is_kafka:
            look.notes.append("record batches in Kafka's format (magic 2), not decoded")
        elif known.state.boundary is None and look.listing.bases:
            look.notes.append("the durable boundary is unknown: all of the log may be durable")
        if self.other_intervals:
            others = counted(len(self.other_intervals), "offset index")
            interval = self.options.config.index_interval_bytes
            look.notes.append(
                f"{others} spaced for another index interval than {interval} bytes, "
                f"{self.other_intervals[0]}: see --index-interval-bytes"
            )
        if known.has_seal and not look.is_clean and look.error is None:
            look.notes.append("the seal of the last close does not match: it counts as unclean")
        if look.is_trusted:
            look.notes.append(
                'the seal matches: an open with the default verify="unflushed" trusts it, '
                "and may not see the damage"
            )

    def verdict(self, removed_snapshots: tuple[str, ...]) -> Verdict:
        """What open would do."""
        look, answer = self.look, self.look.answer
        error = look.error
        if isinstance(answer, Refusal):
            error = refusal_error(answer, look.directory, look.segments)
        if error is not None:
            text = f"{type(error).__name__}: {error}"
            facts = _refusal_facts(error, look.directory)
            return Verdict(outcome="refuses", error=text, refusal=facts)
        assert isinstance(answer, Plan), "neither error nor refusal"
        outputs = (f"{segment_stem(base)}.log" for base in sorted(look.swapped))
        unused = (f"{segment_stem(base)}.log.swap" for base in sorted(look.dropped_swaps))
        left_over = (path.name for path in look.listing.left_over)
        removed = (*unused, *left_over, *removed_snapshots)
        if not look.segments:
            return Verdict(outcome="begins", removed=removed)
        cuts = planned_cuts(answer, look.segments, look.log_start)
        dropped = [*look.segments[: answer.skip], *look.segments[answer.keep :]]
        kept = [name for surveyed in look.kept for name in _index_names(surveyed.segment)]
        rebuilt = tuple(name for name in (*kept, EPOCH_FILE) if name in self.wrong_files)
        swapped = tuple(outputs)
        is_changed = rebuilt or removed or swapped or dropped
        return Verdict(
            outcome="cuts" if cuts else "repairs" if is_changed else "clean",
            cuts=tuple(evolve(cut, file=_final(cut.file)) for cut in cuts),
            dropped=tuple(_final(surveyed.segment.log_path).name for surveyed in dropped),
            rebuilt=rebuilt,
            removed=removed,
            swapped=swapped,
        )


def _index_names(segment: Segment) -> tuple[str, str]:
    """The names that a segment's indexes have once it is in place."""
    stem = segment_stem(segment.base_offset)
    return f"{stem}{INDEX_SUFFIX}", f"{stem}{TIME_INDEX_SUFFIX}"


def _final(path: Path) -> Path:
    """The path that a segment file has once it is in place."""
    return path.with_name(path.name.removesuffix(SWAP_SUFFIX))


def _refusal_facts(error: StorageError, directory: Path) -> RefusalFacts | None:
    if not isinstance(error, CorruptLog):
        return None
    return RefusalFacts(
        None if error.file == directory else error.file.name,
        error.position,
        error.reason,
        error.last_good_offset,
        error.first_good_offset,
    )


def _summary_of(found: Measured, lock: LockState, latest_epoch: int) -> SegmentSummary:
    """A measured segment without its indexes; ``latest_epoch`` is that of the batch before it."""
    scan = found.scan
    starts = scan.epoch_starts
    first_epoch = starts[0][0] if starts and starts[0][2] == 0 else latest_epoch
    return SegmentSummary(
        found.path.name,
        "MKB1",
        scan.file_size_bytes,
        scan.base_offset,
        scan.next_offset,
        scan.batches,
        first_epoch if scan.batches else -1,
        scan.last_epoch if scan.batches else -1,
        scan.max_timestamp_ms,
        damage=found.damage(lock),
    )


def remeasured(disk: ReadOnlyDisk, surveyed: Surveyed, options: Options) -> Measured:
    """A surveyed segment with every whole range from its damage on: a survey stops at 16."""
    scan, path = surveyed.scan, surveyed.segment.log_path
    assert scan is not None, "verify='all' walks every segment"
    if surveyed.found.saw_everything:
        return Measured(path, scan, surveyed.found.whole_ranges)
    return with_ranges(disk, path, scan, options.config)


def _partition_rows(
    disk: ReadOnlyDisk, look: Look, options: Options, problems: list[Problem]
) -> Iterator[Row]:
    for surveyed in look.segments:
        end = surveyed.found.next_offset
        if surveyed.found.fault is None and end <= options.from_offset:
            continue
        yield FileRow(surveyed.segment.log_path.name)
        found = remeasured(disk, surveyed, options)
        yield from segment_rows(disk, found, options, look.known.lock, problems)
