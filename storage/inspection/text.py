"""A view as text for people: aligned columns, one line a batch, the verdict last.

Lines are made one by one as the streams of a view give them; a table's columns are as wide as its
first 200 rows need, and wider from where a later one does. Whatever comes from a file is escaped
(``storage.inspection.escaping``).

Left out: what the fields mean (``storage.inspection.views``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from storage.inspection.escaping import plain, safe, utc
from storage.inspection.rows import batch_lines
from storage.inspection.text_logs import log_dir_lines, partition_lines
from storage.inspection.views import (
    FileView,
    LogDirView,
    NothingView,
    PartitionView,
    Problem,
    SegmentView,
    View,
)
from storage.inspection.words import (
    Cells,
    after_blank,
    counted,
    damage_lines,
    epoch_range,
    facts,
    lock_words,
    name,
    note_lines,
    offset_range,
    problem_lines,
    table,
)

__all__ = ["lines"]

_TITLES: Final = {
    "boundaries": "durable boundaries of a broker's logs",
    "boundary": "durable boundary",
    "epochs": "leader epochs",
    "kafka-file": "Kafka",
    "kafka-segment": "segment in Kafka's format",
    "lock": "lock",
    "marker": "clean-shutdown marker",
    "metadata": "topic of the partition",
    "offset-index": "offset index",
    "offsets": "offsets of a broker's logs",
    "producer-snapshot": "producer snapshot",
    "seal": "clean-close seal",
    "time-index": "time index",
}
_PRODUCER_TITLES: Final = (
    "producer id",
    "epoch",
    "last time",
    "sequences",
    "offsets",
    "batch timestamp",
    "",
)


def lines(view: View) -> Iterator[str]:
    """The lines of a view, without line ends."""
    match view:
        case NothingView():
            yield f"{plain(str(view.path))}: {safe(view.reason)}"
        case FileView():
            yield from _file(view)
        case SegmentView():
            yield from _segment(view)
        case PartitionView():
            yield from partition_lines(view)
        case LogDirView():
            yield from log_dir_lines(view)


def _file(view: FileView) -> Iterator[str]:
    noun = "producer" if view.kind == "producer-snapshot" else "entry"
    count = f", {counted(view.row_count, noun)}" if view.columns else ""
    size = counted(view.size_bytes, "byte")
    yield f"{plain(str(view.path))}: {_TITLES[view.kind]}{count}, {size}"
    known = [(key, value) for key, value in view.facts.items() if value is not None]
    yield from facts((key.replace("_", " "), name(str(value))) for key, value in known)
    yield from note_lines(view.notes)
    columns = tuple(column for column in view.columns if column != "problem")
    if view.kind == "producer-snapshot":
        yield from after_blank(table(_PRODUCER_TITLES, ">><<<<<", _producer_rows(view.rows)))
    elif columns:
        titles = tuple(column.removesuffix("_ms").replace("_", " ") for column in columns)
        sides = "".join("<" if column in ("topic", "partition") else ">" for column in columns)
        rows = (_cells(row, columns) for row in view.rows)
        yield from after_blank(table((*titles, ""), sides + "<", rows))
    problems = [*view.problems, *view.late_problems]
    if problems:
        yield ""
        yield from _damaged(problems)


def _producer_rows(rows: Iterator[dict[str, Any]]) -> Iterator[Cells]:
    """A line for each batch that is known of a producer; what is the producer's stands once."""
    for row in rows:
        ids = (str(row["producer_id"]), str(row["producer_epoch"]), utc(row["timestamp_ms"]))
        problem = row["problem"]
        mark = f"<- {safe(problem)}" if problem else ""
        if not row["batches"]:
            yield (*ids, "-", "-", "-", mark)
        for number, batch in enumerate(row["batches"]):
            sequences = _inclusive(batch["first_sequence"], batch["last_sequence"])
            offsets = _inclusive(batch["base_offset"], batch["next_offset"] - 1)
            cells = (sequences, offsets, utc(batch["timestamp_ms"]))
            yield (*ids, *cells, mark) if number == 0 else ("", "", "", *cells, "")


def _inclusive(first: int, last: int) -> str:
    """Both ends; sequences may fall between them."""
    return str(first) if first == last else f"{first}..{last}"


def _cells(row: dict[str, object], columns: Cells) -> Cells:
    problem = row.get("problem")
    cells = (_cell(column, row[column]) for column in columns)
    return (*cells, f"<- {safe(str(problem))}" if problem else "")


def _cell(column: str, value: object) -> str:
    if column.endswith("timestamp_ms") and isinstance(value, int):
        return utc(value)
    return "-" if value is None else name(str(value))


def _damaged(problems: list[Problem]) -> Iterator[str]:
    if problems:
        yield "damaged:"
        yield from problem_lines(problems)


def _segment(view: SegmentView) -> Iterator[str]:
    size = counted(view.size_bytes, "byte")
    batches = counted(view.batch_count, "batch")
    yield f"{plain(str(view.path))}: segment, {batches}, {size}"
    yield from facts(
        [
            ("offsets", offset_range(view.base_offset, view.next_offset)),
            ("epochs", epoch_range(view.first_epoch, view.last_epoch)),
            ("newest record", utc(view.max_timestamp_ms)),
            ("in use", lock_words(view.lock)),
        ]
    )
    yield from note_lines(view.notes)
    yield from after_blank(batch_lines(view.rows))
    yield ""
    if view.damage is not None:
        yield "unfinished:" if view.damage.is_unfinished else "damaged:"
        yield from damage_lines(view.damage)
    elif not view.late_problems:
        yield "Every byte belongs to a whole batch."
    yield from _damaged(view.late_problems)
