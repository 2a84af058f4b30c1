"""The directory of a partition, and that of a broker, as text.

Left out: files (``storage.inspection.text``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from storage.inspection.escaping import plain, safe, utc
from storage.inspection.rows import batch_lines
from storage.inspection.views import (
    IndexSummary,
    LogDirView,
    PartitionView,
    SegmentSummary,
)
from storage.inspection.words import (
    SHOWN_MAX,
    Cells,
    Line,
    after_blank,
    counted,
    damage_lines,
    epoch_range,
    facts,
    lock_words,
    name_list,
    note_lines,
    offset_range,
    offset_words,
    problem_lines,
    table,
)
from storage.listing import SWAP_SUFFIX

__all__ = ["log_dir_lines", "partition_lines"]

# A partition -----------------------------------------------------------------------------------


def partition_lines(view: PartitionView) -> Iterator[str]:
    segments = view.segments
    size = counted(sum(segment.size_bytes for segment in segments), "byte")
    kind = "partition" if view.format == "MKB1" else f"partition in the format of {view.format}"
    count = counted(len(segments), "segment")
    yield f"{plain(str(view.path))}: {kind}, {count}, {size}"
    yield from facts(_partition_facts(view))
    yield from note_lines(view.notes)
    if segments:
        yield ""
        titles = ("segment", "bytes", "offsets", "batches", "epochs", "newest record")
        rows = map(_segment_cells, segments)
        yield from table((*titles, "index", "time index", ""), "<><><<<<<", rows)
    if view.rows is not None:
        yield ""
        yield from batch_lines(view.rows)
    yield from after_blank(_wrong(view))
    yield ""
    yield from _verdict(view)


def _wrong(view: PartitionView) -> Iterator[str]:
    """Damage and problems; where an unfinished batch is all there is, that is said instead."""
    damaged = [segment.damage for segment in view.segments if segment.damage is not None]
    problems = [*view.problems, *view.late_problems]
    if not damaged and not problems:
        return
    is_quiet = all(damage.is_unfinished for damage in damaged) and not problems
    yield "unfinished:" if is_quiet else "damaged:"
    for damage in damaged[:SHOWN_MAX]:
        yield from damage_lines(damage)
    if len(damaged) > SHOWN_MAX:
        yield f"  and {len(damaged) - SHOWN_MAX} more segments"
    yield from problem_lines(problems)


def _partition_facts(view: PartitionView) -> Iterator[tuple[str, str]]:
    if view.segments and view.format != "Kafka":
        start = view.log_start_offset
        first = max(start or 0, view.segments[0].base_offset)
        yield "offsets", offset_range(first, view.next_offset)
    boundary = view.boundary
    if boundary is not None:
        place = f"byte {boundary.size_bytes} of segment {boundary.segment_base}"
        yield "durable", f"below offset {boundary.end_offset}, {place}"
    if view.gaps_end:
        yield "gaps allowed", f"below offset {view.gaps_end}"
    if view.producers_from is not None:
        yield "producers", f"none below offset {view.producers_from}"
    if view.cleaned_offset:
        yield "compacted", f"below offset {view.cleaned_offset}"
    if view.high_watermark is not None:
        yield "high watermark", str(view.high_watermark)
    if view.epochs is not None:
        yield "epochs", _epoch_list(view)
    if view.topic_id is not None:
        yield "topic id", view.topic_id
    if view.format == "MKB1":
        closed = {"cleanly": "cleanly", "no seal": "not cleanly", "seal differs": "not cleanly"}
        yield "closed", closed[view.closed]
    yield "in use", lock_words(view.lock)
    if view.snapshots:
        used = view.snapshot_used
        begins = f"; an open begins with that of offset {int(used[:20])}" if used else ""
        yield "snapshots", name_list(view.snapshots) + begins
    if view.others:
        yield "other names", name_list(view.others)


def _epoch_list(view: PartitionView) -> str:
    entries = view.epochs or ()
    shown = [f"{epoch} from offset {start}" for epoch, start in entries[:SHOWN_MAX]]
    if view.epoch_count > SHOWN_MAX:
        shown.append(f"and {view.epoch_count - SHOWN_MAX} more")
    return ", ".join(shown) or "none"


def _segment_cells(segment: SegmentSummary) -> Cells:
    is_read = segment.format == "MKB1"
    return (
        segment.file,
        str(segment.size_bytes),
        offset_range(segment.base_offset, segment.next_offset),
        str(segment.batch_count) if is_read else "?",
        epoch_range(segment.first_epoch, segment.last_epoch) if is_read else "?",
        utc(segment.max_timestamp_ms) if is_read else "?",
        _index(segment.index),
        _index(segment.time_index),
        _mark(segment),
    )


def _mark(segment: SegmentSummary) -> str:
    if segment.damage is not None:
        return "<- unfinished" if segment.damage.is_unfinished else "<- damaged"
    if segment.file.endswith(SWAP_SUFFIX):
        return "<- output of compaction"
    return "" if segment.format in ("MKB1", "Kafka") else f"<- {segment.format}"


def _index(index: IndexSummary | None) -> str:
    if index is None:
        return "-"
    if index.entry_count is None:
        return "missing"
    count = counted(index.entry_count, "entry")
    return f"{count}, wrong" if index.problem is not None else count


def _verdict(view: PartitionView) -> Iterator[str]:
    verdict = view.verdict
    who = "An open after a crash now" if view.lock.is_held else "An open"
    if verdict.outcome == "refuses":
        yield from _refusal(view, who)
        return
    if verdict.outcome == "unknown":
        yield f"What an open would do is unknown: {safe(verdict.error or '')}"
        return
    deeds = list(_deeds(view))
    if deeds:
        yield f"{who} succeeds, and"
        yield from (f"  {deed}" for deed in deeds)
    else:
        begins = verdict.outcome == "begins"
        yield f"{who} begins a new log." if begins else f"{who} finds nothing to change."


def _refusal(view: PartitionView, who: str) -> Iterator[str]:
    refusal = view.verdict.refusal
    if view.format == "Kafka":
        yield f"{who} refuses: this package does not read Kafka's format."
    elif refusal is None:
        yield f"{who} refuses: {safe(view.verdict.error or '')}"
    else:
        first = refusal.first_good_offset
        where = f"{refusal.file} at byte {refusal.position}" if refusal.file else "the directory"
        follows = "nothing whole" if first is None else f"whole batches from offset {first} on"
        yield f"{who} refuses, with CorruptLog: {where}: {safe(refusal.reason)};"
        yield f"  good below offset {refusal.last_good_offset}, {follows} behind it."


def _deeds(view: PartitionView) -> Iterator[str]:
    verdict = view.verdict
    for cut in verdict.cuts:
        size = counted(cut.size_bytes, "byte")
        yield f"cuts {size} from byte {cut.position} of {cut.file.name} on ({safe(cut.reason)})"
        for lost in cut.whole_ranges[:SHOWN_MAX]:
            yield f"  with them goes what is whole: {offset_words(lost)}"
    if verdict.cuts:
        yield f"has its log end at offset {view.next_offset} then"
    if verdict.swapped:
        yield f"puts in place what compaction completed: {name_list(verdict.swapped)}"
    if verdict.dropped:
        yield f"removes {name_list(verdict.dropped)}"
    if verdict.rebuilt:
        yield f"writes anew {name_list(verdict.rebuilt)}"
    if verdict.removed:
        yield f"removes what is left over or of no use: {name_list(verdict.removed)}"


# A broker's directory --------------------------------------------------------------------------

DETAILS_MAX: Final = 100
_TITLES: Final = (
    "partition",
    "segments",
    "bytes",
    "offsets",
    "durable",
    "high watermark",
    "verdict",
)


def log_dir_lines(view: LogDirView) -> Iterator[str]:
    """Facts of the directory, a line a partition, then what is wrong with which."""
    count = counted(view.partition_count, "partition")
    yield f"{plain(str(view.path))}: directory of a broker, {count}"
    yield from facts(_log_dir_facts(view))
    details: list[str] = []
    verdicts: dict[str, int] = {}
    rows = _partition_rows(view.partitions, details, verdicts)
    yield from after_blank(table(_TITLES, "<>><>><", rows))
    yield from details
    if view.problems:
        yield ""
        yield "damaged:"
        yield from problem_lines(view.problems)
    yield from after_blank(note_lines(view.notes))
    if verdicts:
        yield ""
        tally = ", ".join(f"{number} {verdict}" for verdict, number in sorted(verdicts.items()))
        yield f"Verdicts: {tally}."


def _log_dir_facts(view: LogDirView) -> Iterator[tuple[str, str]]:
    if view.marker == "there":
        epoch = "" if view.broker_epoch is None else f", in broker epoch {view.broker_epoch}"
        yield "closed", f"cleanly{epoch}"
    else:
        yield "closed", "not cleanly" if view.marker == "none" else "unknown"
    yield "in use", lock_words(view.lock)
    for file, entries in view.checkpoints.items():
        yield file, "unreadable" if entries is None else counted(entries, "entry")
    if view.others:
        yield "other names", name_list(view.others)


def _partition_rows(
    partitions: Iterator[PartitionView], details: list[str], verdicts: dict[str, int]
) -> Iterator[Line]:
    shown = 0
    for view in partitions:
        cells = _partition_cells(view)
        yield cells
        verdicts[cells[-1]] = verdicts.get(cells[-1], 0) + 1
        if not view.is_healthy and view.format != "Kafka" and shown < DETAILS_MAX:
            shown += 1
            details += ["", f"{plain(view.path.name)}:", *_wrong(view), *_verdict(view)]


def _partition_cells(view: PartitionView) -> Cells:
    segments = view.segments
    start = max(view.log_start_offset or 0, segments[0].base_offset if segments else 0)
    return (
        plain(view.path.name),
        str(len(segments)),
        str(sum(segment.size_bytes for segment in segments)),
        "?" if view.next_offset is None else offset_range(start, view.next_offset),
        "?" if view.boundary is None else str(view.boundary.end_offset),
        "?" if view.high_watermark is None else str(view.high_watermark),
        "Kafka's" if view.format == "Kafka" else view.verdict.outcome,
    )
