"""What a compacted log lacks for sure, against a twin that asks each batch about each record."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from cluster.names import TopicIdPartition
from sim.checks.ledger import Ledger
from sim.checks.mirrors import LogMirror
from sim.checks.ranges import Records, Span

OFFSETS_MAX = 12
EPOCHS_MAX = 4

Row = tuple[int, int, int]
"""Epoch, first offset, and the offset behind the last one, of a batch."""


def rows_of(steps: list[tuple[int, int, int]]) -> list[Row]:
    """Batches in order: each with a gap before it, a size, and a step up of the epoch."""
    rows, at, epoch = [], 0, 0
    for gap, size, rise in steps:
        at, epoch = at + gap, epoch + rise
        rows.append((epoch, at, at + size))
        at += size
    return rows


def place_of(rows: list[Row], start: int, end: int) -> Any:
    mirror = object.__new__(LogMirror)
    batches: Any = [SimpleNamespace(epoch=e, base=low, next=high) for e, low, high in rows]
    mirror.batches, mirror.bases = batches, [low for _, low, _ in rows]
    mirror.runs = []
    for epoch, low, _ in rows:
        if not mirror.runs or mirror.runs[-1][0] != epoch:
            mirror.runs.append((epoch, low))
    return SimpleNamespace(mirror=mirror, start=start, files_end=end)


def is_missing(rows: list[Row], start: int, end: int, epoch: int, offset: int) -> bool:
    if offset < start:
        return False
    return offset >= end or any(
        (other > epoch and low <= offset) or (other < epoch and high > offset)
        for other, low, high in rows
    )


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.integers(0, 2)), max_size=5),
    st.integers(0, 6),
    st.integers(0, 2),
)
@example([(0, 2, 0), (0, 2, 2)], 0, 0)
@example([(1, 2, 2)], 2, 1)
def test_what_no_compaction_can_have_dropped_is_missing(
    steps: list[tuple[int, int, int]], start: int, more: int
) -> None:
    rows = rows_of(steps)
    live = [row for row in rows if row[2] > start]
    end = max((high for _, _, high in rows), default=0) + more
    ledger = Ledger(TopicIdPartition("t", "id", 0), is_compacted=True)
    everything = Records(Span(epoch, 0, OFFSETS_MAX) for epoch in range(EPOCHS_MAX))
    missing = Records(ledger.missing_at(place_of(rows, start, end), everything))
    for epoch in range(EPOCHS_MAX):
        for offset in range(OFFSETS_MAX):
            found = missing.has(epoch, offset)
            # What lies below the log start need not be believed, and proves as much if it is.
            assert found or not is_missing(live, start, end, epoch, offset), (epoch, offset)
            assert not found or is_missing(rows, start, end, epoch, offset), (epoch, offset)
