"""What ``storage.dump`` shows, as plain data: one class for each kind of thing that can be shown.

Rules:

* The classes are the JSON document: a field is a key, in this order, under this name. A change that
  a reader must know of raises ``SCHEMA``; ``storage/README.md`` says what is in a document.
* A field that is an ``Iterator`` is a stream: it is read once, in order, and whatever the size of
  the file behind it, memory is bounded. What a stream finds is in the ``late_`` field behind it.
* Offsets, positions and sizes are integers; ranges are half-open, their ends are ``next_offset``.
* File names are as they stand in the directory; nothing here is escaped yet.

Left out: finding the facts (``storage.inspection.describe`` and the modules behind it), and how
they look (``storage.inspection.text``, ``storage.inspection.as_json``).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from attrs import define, field, frozen

from storage.config import LogConfig
from storage.disk import LockState
from storage.recovery import Cut
from storage.scan import GoodRange
from storage.state import Boundary

__all__ = [
    "SCHEMA",
    "BatchRow",
    "ChangedRow",
    "Damage",
    "DamageRow",
    "FileRow",
    "FileView",
    "GapRow",
    "HeaderRow",
    "IndexSummary",
    "LogDirView",
    "NothingView",
    "Options",
    "Outcome",
    "PartitionView",
    "Problem",
    "RecordRow",
    "RefusalFacts",
    "Row",
    "SegmentSummary",
    "SegmentView",
    "Shown",
    "Verdict",
    "View",
]

SCHEMA = 1
SHOWN_BYTES = 64
"""How much of a key or value is shown without ``--full``."""


@frozen
class Options:
    """What the caller wants to see.

    Attributes:
        lists_batches: of a partition, its batches too.
        with_records: the records of each batch too.
        is_full: keys and values whole, however long.
        from_offset: batches that end at or before this offset, or index entries below it, are left
            out.
        count: at most so many batches or entries; None for all.
        config: the limits that the log is read with.
    """

    lists_batches: bool = False
    with_records: bool = False
    is_full: bool = False
    from_offset: int = 0
    count: int | None = None
    config: LogConfig = field(factory=LogConfig)

    @property
    def shown_bytes_max(self) -> int | None:
        """How many bytes of a key or value to show, None for all."""
        return None if self.is_full else SHOWN_BYTES


# What is wrong ---------------------------------------------------------------------------------


@frozen
class Problem:
    """Something in a file that is not as it must be, and that no log is lost by.

    Attributes:
        position: in bytes; None where ``line`` tells, or the whole file is meant.
        line: of a text file, from 1.
    """

    file: str
    reason: str
    position: int | None = None
    line: int | None = None


@frozen
class Damage:
    """Where a segment file stops being a log.

    Attributes:
        position: behind the last good batch; the damage begins here.
        last_good_offset: every batch of the segment below it is whole.
        whole_ranges: runs of whole batches from ``position`` on; a batch that is whole and does not
            belong there is in them.
        has_more_ranges: the list of them was cut short.
        is_unfinished: an incomplete last batch, in a log that a process has open: most likely it is
            being written right now.
    """

    file: str
    position: int
    size_bytes: int
    reason: str
    last_good_offset: int
    whole_ranges: tuple[GoodRange, ...] = ()
    has_more_ranges: bool = False
    is_unfinished: bool = False


@frozen
class RefusalFacts:
    """What a ``CorruptLog`` says; see there. ``file`` is a name, None for the whole directory."""

    file: str | None
    position: int
    reason: str
    last_good_offset: int
    first_good_offset: int | None


Outcome = Literal["clean", "begins", "repairs", "cuts", "refuses", "unknown"]


@frozen(kw_only=True)
class Verdict:
    """What ``PartitionLog.open`` with ``verify="all"`` would do.

    Attributes:
        outcome: ``clean``: nothing would change. ``begins``: there is no segment yet. ``repairs``:
            derived files would be written anew, left-over ones removed. ``cuts``: bytes of the log
            would go. ``refuses``: nothing would change, see ``error``. ``unknown``: the log changed
            each time it was looked at.
        error: class and message of the error that open would raise.
        refusal: the same in parts, where the error is a ``CorruptLog``.
        cuts: see ``storage.recovery.Cut``.
        dropped: segment files behind a cut, or below the log start.
        rebuilt: derived files.
        removed: left-over files, and producer snapshots that are bad or not within the
            log.
        swapped: segment files that compaction completed, and that would be put in place.
    """

    outcome: Outcome
    error: str | None = None
    refusal: RefusalFacts | None = None
    cuts: tuple[Cut, ...] = ()
    dropped: tuple[str, ...] = ()
    rebuilt: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    swapped: tuple[str, ...] = ()


# Rows ------------------------------------------------------------------------------------------


@frozen
class Shown:
    """A key or a value: its first bytes, and how many there are."""

    size_bytes: int
    data: bytes

    @property
    def is_whole(self) -> bool:
        """Whether nothing was left out."""
        return self.size_bytes == len(self.data)


@frozen
class HeaderRow:
    """One header of a record."""

    key: Shown
    value: Shown | None


@frozen
class RecordRow:
    """One record. ``header_count`` counts those, too, that ``headers`` leaves out."""

    offset: int
    timestamp_ms: int
    key: Shown | None
    value: Shown | None
    header_count: int
    headers: tuple[HeaderRow, ...]


@frozen
class BatchRow:
    """One batch.

    Attributes:
        control: ``commit`` or ``abort`` for a transaction marker.
        records: None unless asked for.
    """

    position: int
    size_bytes: int
    base_offset: int
    next_offset: int
    leader_epoch: int
    record_count: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional_id: Shown | None
    control: str | None
    flags: int
    format_version: int
    records: Iterator[RecordRow] | None = None
    row: str = "batch"


@frozen
class GapRow:
    """Offsets that no batch has, between two batches that follow each other."""

    from_offset: int
    next_offset: int
    row: str = "gap"


@frozen
class DamageRow:
    """Bytes that are no batch of this log; ``is_unfinished`` as in ``Damage``."""

    position: int
    size_bytes: int
    reason: str
    is_unfinished: bool = False
    row: str = "damage"


@frozen
class ChangedRow:
    """The listing ends here for this file: it changed while it was read."""

    file: str
    reason: str
    row: str = "changed"


@frozen
class FileRow:
    """In a listing of several segments: the rows that follow are from this file."""

    file: str
    row: str = "file"


Row = BatchRow | GapRow | DamageRow | ChangedRow | FileRow


# Views -----------------------------------------------------------------------------------------


@frozen
class NothingView:
    """There is nothing to show, and why."""

    path: Path
    reason: str
    kind: str = "nothing"

    @property
    def is_healthy(self) -> bool:
        """Never asked for an exit status: ``storage.dump`` ends with 2."""
        return False


@define
class FileView:
    """A small or a flat file: a checkpoint, an index, a seal, ...

    Attributes:
        facts: what holds for the whole file.
        columns: the keys of each row.
        row_count: how many rows there are, shown or not.
    """

    path: Path
    kind: str
    size_bytes: int
    facts: dict[str, int | str | None] = field(factory=dict)
    problems: list[Problem] = field(factory=list)
    notes: list[str] = field(factory=list)
    columns: tuple[str, ...] = ()
    row_count: int = 0
    rows: Iterator[dict[str, Any]] = field(factory=lambda: iter(()))
    late_problems: list[Problem] = field(factory=list)

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found; true of the rows once they were read."""
        return not (self.problems or self.late_problems)


@define(kw_only=True)
class SegmentView:
    """One segment file, batch by batch."""

    path: Path
    size_bytes: int
    base_offset: int
    next_offset: int
    batch_count: int
    good_bytes: int
    first_epoch: int
    last_epoch: int
    max_timestamp_ms: int
    lock: LockState
    damage: Damage | None
    rows: Iterator[Row]
    notes: list[str] = field(factory=list)
    late_problems: list[Problem] = field(factory=list)
    kind: str = "segment"

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found; true of the rows once they were read."""
        return not self.late_problems and (self.damage is None or self.damage.is_unfinished)


@frozen
class IndexSummary:
    """An index beside its log. ``problem`` is the first thing that is wrong with it."""

    file: str
    entry_count: int | None
    problem: Problem | None = None
    problem_count: int = 0


@frozen
class SegmentSummary:
    """One segment of a partition.

    Attributes:
        format: ``MKB1``, or ``Kafka`` for record batches of Kafka's own, which are not decoded: all
            but names and sizes is unknown then.
        next_offset, batch_count, ...: of its good part.
    """

    file: str
    format: str
    size_bytes: int
    base_offset: int
    next_offset: int | None = None
    batch_count: int | None = None
    first_epoch: int = -1
    last_epoch: int = -1
    max_timestamp_ms: int = -1
    index: IndexSummary | None = None
    time_index: IndexSummary | None = None
    damage: Damage | None = None


@define(kw_only=True)
class PartitionView:
    """The directory of one partition.

    Attributes:
        lock: whether a process has the log open.
        state_kept: ``here`` for a log on its own, ``log directory`` for one of a broker's,
            ``nowhere`` where neither is found.
        boundary: the durable boundary, None where it is unknown.
        cleaned_offset: where compaction has not been yet, 0 where that is unknown.
        closed: ``cleanly``: a seal is there and matches. ``seal differs``, ``no seal``.
        epochs: leader epochs and where they begin, as the file says; None where it is missing or
            cannot be read. At most 1,000.
        producers_from: no batch below it names a producer; None if none below the boundary does.
        snapshots: names of producer snapshots.
        snapshot_used: the one that open would begin with, None where it would use none.
        others: names that mean nothing here.
        rows: batches, where they were asked for.
    """

    path: Path
    format: str
    lock: LockState
    state_kept: str
    boundary: Boundary | None
    log_start_offset: int | None
    gaps_end: int
    producers_from: int | None
    cleaned_offset: int
    high_watermark: int | None
    closed: str
    topic_id: str | None
    next_offset: int | None
    segments: tuple[SegmentSummary, ...]
    epochs: tuple[tuple[int, int], ...] | None
    epoch_count: int
    snapshots: tuple[str, ...]
    snapshot_used: str | None
    others: tuple[str, ...]
    problems: list[Problem]
    notes: list[str]
    verdict: Verdict
    rows: Iterator[Row] | None = None
    late_problems: list[Problem] = field(factory=list)
    kind: str = "partition"

    @property
    def is_healthy(self) -> bool:
        """Whether open would take the log as it is; true of the rows once they were read."""
        damaged = [segment.damage for segment in self.segments if segment.damage is not None]
        outcome = self.verdict.outcome
        is_bad = any(not damage.is_unfinished for damage in damaged) and outcome != "unknown"
        # A hole between two segments shows in no file.
        is_bad |= outcome == "refuses" or (outcome == "cuts" and not damaged)
        return not (is_bad or self.problems or self.late_problems)


@define(kw_only=True)
class LogDirView:
    """The directory of a broker.

    Attributes:
        broker_epoch: from the clean-shutdown marker, None where it names none.
        marker: ``there``, ``none`` or ``unreadable``.
        checkpoints: entries of each text file; None where it cannot be read.
        late_damaged: the partitions that are not healthy.
    """

    path: Path
    lock: LockState
    marker: str
    broker_epoch: int | None
    checkpoints: dict[str, int | None]
    partition_count: int
    others: tuple[str, ...]
    problems: list[Problem]
    notes: list[str]
    partitions: Iterator[PartitionView]
    late_damaged: list[str] = field(factory=list)
    kind: str = "log-directory"

    @property
    def is_healthy(self) -> bool:
        """Whether nothing was found; true of the partitions once they were read."""
        return not (self.problems or self.late_damaged)


View = NothingView | FileView | SegmentView | PartitionView | LogDirView
