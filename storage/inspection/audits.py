"""Comparing derived files with the batches they are derived from, in one pass over the batches.

An audit is fed every batch of a segment or log, in order, with ``see``, and judges when ``finish``
is called. Nothing is held but the next entry of the file, so memory does not depend on its size;
of what is wrong, the first 1,000 entries are kept, and then the comparison ends.

Entries are judged by what they say, not by where this process would have put them: a log may be
written with another index interval than the reader knows.

Left out: reading batches (``storage.inspection.segments``), and what is done about a difference
(``storage.segment_indexes``, ``storage.opening``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final

from attrs import define, field

from storage.epochs import LeaderEpochCache

__all__ = ["COMPLAINTS_MAX", "EpochAudit", "OffsetAudit", "RisingAudit", "TimeAudit"]

COMPLAINTS_MAX: Final = 1_000
_END: Final = (1 << 64, 1 << 64)
"""Behind every entry."""


@define
class RisingAudit:
    """Entries that come one by one and must rise, and what is wrong with them.

    Attributes:
        complaints: number of an entry, from 0, and what is wrong with it.
        lack: what is missing from the file as a whole.
        is_rewritten: open writes the file anew, though no entry need be wrong: some lead behind
            damage in the log, or the index interval is another one.
    """

    entries: Iterator[tuple[int, int]]
    complaints: dict[int, str] = field(factory=dict)
    lack: str | None = None
    is_rewritten: bool = False
    number: int = -1
    entry: tuple[int, int] = (-1, -1)

    def __attrs_post_init__(self) -> None:
        self.advance()

    def advance(self) -> None:
        """Take the next entry that rises; one that does not is noted."""
        before = self.entry
        while before != _END:
            self.entry = next(self.entries, _END)
            self.number += 1
            if self.entry[0] > before[0] and self.entry[1] > before[1]:
                return
            if not self.complain("does not rise"):
                return

    def read_all(self) -> None:
        """Look at every entry that is left, with no batch to compare it with."""
        while self.entry != _END:
            self.advance()

    def reject_rest(self, reason: Callable[[tuple[int, int]], str]) -> None:
        """Complain about every entry that is left."""
        while self.entry != _END:
            self.complain(reason(self.entry))
            self.advance()

    def complain(self, reason: str) -> bool:
        """Note what is wrong with the entry; after too many, the file is read no further."""
        self.complaints[self.number] = reason
        if len(self.complaints) < COMPLAINTS_MAX:
            return True
        self.entry = _END
        self.entries = iter(())
        return False


@define
class OffsetAudit(RisingAudit):
    """The entries of an offset index, ``(relative offset, position)``."""

    base_offset: int = 0
    interval: int = 0
    last_indexed: int = -1
    widest_skip: int = 0
    narrowest_step: int = 1 << 64
    due: int = 0
    is_due: bool = False
    is_exact: bool = True

    def see(self, position: int, base: int) -> bool:
        """Take the batch at ``position``; returns whether an entry leads to it.

        ``is_due`` tells then whether one should, by the index interval expected.
        """
        is_indexed = False
        while self.entry[1] <= position:
            relative, at = self.entry
            if at < position:
                self.complain(f"no batch begins at byte {at}")
            elif self.base_offset + relative != base:
                self.complain(
                    f"byte {at} is where batch {base} begins, not {self.base_offset + relative}"
                )
            else:
                is_indexed = True
            self.advance()
        if is_indexed:
            if self.last_indexed >= 0:
                self.narrowest_step = min(self.narrowest_step, position - self.last_indexed)
            self.last_indexed = position
        elif self.last_indexed < 0:
            self.lack = "the first batch has no entry"
        else:
            self.widest_skip = max(self.widest_skip, position - self.last_indexed)
        self.is_due = position >= self.due
        if self.is_due:
            self.due = position + self.interval
        self.is_exact &= is_indexed == self.is_due
        return is_indexed

    def finish(self, end_position: int, *, is_damaged: bool) -> None:
        """Judge what is left: entries behind the last batch, and whether any are missing.

        Where the log is damaged there, what leads behind it must only rise.
        """
        self.is_rewritten = not self.is_exact or (is_damaged and self.entry != _END)
        if not is_damaged:
            self.reject_rest(
                lambda entry: (
                    f"byte {entry[1]} is behind the last batch, which ends at byte {end_position}"
                )
            )
        self.read_all()
        if self.complaints:
            self.lack = None
        elif self.lack is None and self.widest_skip >= self.narrowest_step:
            self.lack = "entries are missing: no index interval leaves such distances"

    @property
    def other_interval(self) -> str | None:
        """In words, the index interval that right entries keep where it is not the one expected."""
        if self.is_exact or self.lack or self.complaints:
            return None
        most = self.narrowest_step
        return f"{self.widest_skip + 1} {f'to {most}' if most < 1 << 64 else 'or more'} bytes"


@define
class _TimeRule:
    """Which time entries are due, beside given offset entries: counts what differs from that."""

    floor: int = -1
    missing: int = 0
    extra: int = 0

    def see(self, largest: int, *, is_place: bool, is_there: bool) -> None:
        is_due = is_place and largest > self.floor
        self.missing += is_due and not is_there
        self.extra += is_there and not is_due
        if is_place or is_there:
            self.floor = max(self.floor, largest)


@define
class TimeAudit(RisingAudit):
    """The entries of a time index, ``(timestamp ms, relative offset)``.

    One is due beside an offset entry, so two rules are kept: by the offset index as it is, and as
    open would write it. A closed segment has one at its end, too. ``largest`` is
    the largest timestamp so far, -1 for none.
    """

    base_offset: int = 0
    is_closed: bool = False
    largest: int = -1
    by_index: _TimeRule = field(factory=_TimeRule)
    by_interval: _TimeRule = field(factory=_TimeRule)

    def see(self, base: int, timestamp_ms: int, *, is_indexed: bool, is_due: bool) -> None:
        """Take a batch, with whether the offset index has it, and whether it should."""
        is_there = self._match(base)
        self.by_index.see(self.largest, is_place=is_indexed, is_there=is_there)
        self.by_interval.see(self.largest, is_place=is_due, is_there=is_there)
        self.largest = max(self.largest, timestamp_ms)

    def _match(self, offset: int) -> bool:
        """Judge the entries up to ``offset``; returns whether the last is right."""
        relative = offset - self.base_offset
        is_there = False
        while self.entry[1] <= relative:
            timestamp_ms, at = self.entry
            if at < relative:
                self.complain(f"no batch begins at offset {self.base_offset + at}")
            elif timestamp_ms < self.largest:
                self.complain(
                    f"says {timestamp_ms}, but before offset {offset} there is timestamp "
                    f"{self.largest}"
                )
            elif timestamp_ms > self.largest:
                self.complain(f"no record before offset {offset} has timestamp {timestamp_ms}")
            else:
                is_there = True
            self.advance()
        return is_there

    def finish(self, next_offset: int, *, is_damaged: bool, trusts_index: bool) -> None:
        """Judge the entry at the segment's end, what is behind it, and what is missing.

        Where the log is damaged there, what leads behind it must only rise. Whether an entry is
        missing is judged only where the offset index is right.
        """
        is_there = self._match(next_offset)
        for rule in (self.by_index, self.by_interval):
            rule.see(self.largest, is_place=self.is_closed, is_there=is_there)
        is_behind = is_damaged and self.entry != _END
        if not is_damaged:
            self.reject_rest(
                lambda entry: (
                    f"offset {self.base_offset + entry[1]} is behind the "
                    f"segment's end, {next_offset}"
                )
            )
        self.read_all()
        missing = self.by_index.missing
        is_other = bool(self.by_interval.missing or self.by_interval.extra)
        self.is_rewritten = is_behind or is_other
        if trusts_index and missing and not is_damaged and not self.complaints:
            self.lack = f"entries are missing: {missing} of those that the log gives"


@define
class EpochAudit:
    """The entries of an epoch file against the batches: the rules of ``opening.epochs_match``.

    Fed only with the part of the log that counts. ``complaints`` names entries by their place in
    the file, from 0, and -1 for what no entry says.
    """

    lines: list[tuple[int, int]]
    log_start: int
    gaps_end: int
    complaints: dict[int, str] = field(factory=dict)
    starts: list[tuple[int, int]] = field(init=False)
    places: dict[int, int] = field(init=False)
    number: int = field(init=False, default=-1)
    judged: int = field(init=False, default=-1)
    is_first: bool = field(init=False, default=True)

    def __attrs_post_init__(self) -> None:
        self.places = {epoch: number for number, (epoch, _) in enumerate(self.lines)}
        cache = LeaderEpochCache(self.lines)
        self._note_order(cache)
        cache.truncate_from_start(self.log_start)
        self.starts = list(cache.entries)

    def _note_order(self, cache: LeaderEpochCache) -> None:
        if cache.entries == tuple(self.lines):
            return
        pairs = zip(self.lines, self.lines[1:], strict=False)
        for number, (before, after) in enumerate(pairs, 1):
            if after[0] <= before[0] or after[1] <= before[1]:
                self._complain(number, "the entry does not rise")

    def _complain(self, number: int, reason: str) -> None:
        if len(self.complaints) < COMPLAINTS_MAX:
            self.complaints.setdefault(number, reason)

    def see(self, base: int, next_offset: int, epoch: int) -> None:
        """Take the next batch of the log."""
        if next_offset <= self.log_start:
            return
        starts = self.starts
        if self.is_first:
            self.is_first = False
            first = max(base, self.log_start)
            if not starts or starts[0][1] > first:
                self._complain(-1, f"no entry covers offset {first}, where epoch {epoch} stands")
        while self.number + 1 < len(starts) and starts[self.number + 1][1] < next_offset:
            self.number += 1
            start = starts[self.number][1]
            is_split = base < start == self.log_start
            if base != start and not is_split and (start >= self.gaps_end or base < start):
                where = "inside a batch" if base < start else "where no batch begins"
                self._wrong(f"begins at offset {start}, {where}")
        if self.number >= 0 and epoch != starts[self.number][0]:
            self._wrong(f"holds for offset {base}, but the batch there has epoch {epoch}")

    def _wrong(self, reason: str) -> None:
        if self.judged < self.number:
            self.judged = self.number
            epoch, start = self.starts[self.number]
            place = self.places.get(epoch, -1)
            self._complain(place, f"epoch {epoch} from offset {start} {reason}")

    def finish(self, log_end: int) -> list[tuple[int, str]]:
        """The entries behind the log's end, by their place in the file; one at the end is right."""
        behind = ((n, line) for n, line in enumerate(self.lines) if line[1] > log_end)
        return [
            (number, f"epoch {epoch} from offset {start} is behind the log's end, {log_end}")
            for number, (epoch, start) in islice(behind, COMPLAINTS_MAX)
        ]
