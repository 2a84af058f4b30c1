"""What is promised of each partition, and what logs looked like: the memory of a history's watch.

``Copy`` is a replica's log as last read, ``Ledger`` what a partition owes: every record below the
highest high watermark of a legitimate leader (``T`` in PROTOCOL C.4), and every record that was
acknowledged under acks=all. An unclean election frees it of what the new leader does not have.

Left out: when these are looked at (``tests.cluster.whole_watch``).
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import NamedTuple

from attrs import define, field

from cluster.replica import Replica


class Broken(AssertionError):
    """An invariant does not hold; ``invariant`` is its id in PROTOCOL C.4."""

    def __init__(self, invariant: str, text: str) -> None:
        super().__init__(f"{invariant}: {text}")
        self.invariant = invariant


class Entry(NamedTuple):
    """A record where it stands; its offset is the key."""

    epoch: int
    key: bytes | None
    value: bytes | None


class Span(NamedTuple):
    """A batch in a log."""

    base: int
    next: int
    epoch: int
    records: int


class Marks(NamedTuple):
    """What of a replica is compared after every handler."""

    start: int
    high_watermark: int
    leo: int
    role: str
    leader_epoch: int


@define
class Copy:
    """A replica's log as last read."""

    marks: Marks
    spans: tuple[Span, ...]
    records: dict[int, Entry]


def marks_of(replica: Replica) -> Marks:
    log = replica.opened
    return Marks(
        log.log_start_offset,
        replica.high_watermark,
        log.leo,
        replica.role.name,
        replica.leader_epoch,
    )


def read_copy(replica: Replica) -> Copy:
    """Read a whole log."""
    spans, records = [], {}
    start = replica.opened.log_start_offset
    for batch in replica.opened.all_batches():
        base = batch.base_offset
        assert base is not None
        spans.append(Span(base, batch.next_offset, batch.leader_epoch, len(batch.records)))
        for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
            if base + delta >= start:
                entry = Entry(batch.leader_epoch, record.key, record.value)
                records[base + delta] = entry
    return Copy(marks_of(replica), tuple(spans), records)


def check_copy(name: str, replica: Replica, copy: Copy) -> None:
    """I9, I10 and I14 of one log."""
    where, log = f"{replica.partition} at {name}", replica.opened
    start, high_watermark, leo = copy.marks[:3]
    if not 0 <= start <= high_watermark <= leo:
        raise Broken("I14", f"{where}: start {start}, hw {high_watermark}, leo {leo}")
    if log.boundary.end_offset > leo:
        raise Broken("I14", f"{where}: boundary {log.boundary.end_offset} behind {leo}")
    entries = log.epochs.entries
    rises = all(one[0] < two[0] and one[1] < two[1] for one, two in pairwise(entries))
    if not rises or (entries and entries[-1][1] > leo):
        raise Broken("I9", f"{where}: epochs {entries}, leo {leo}")
    bases = [segment.base_offset for segment in log.segments]
    end = -1
    for span in copy.spans:
        if span.base < end or span.next <= span.base or span.next > leo:
            raise Broken("I10", f"{where}: {span} behind {end}, leo {leo}")
        if bisect_right(bases, span.base) != bisect_right(bases, span.next - 1):
            raise Broken("I10", f"{where}: {span} is in two of the segments {bases}")
        end = span.next
        if span.records and span.next > start:
            if log.epochs.epoch_for_offset(max(span.base, start)) != span.epoch:
                raise Broken("I9", f"{where}: {span}, epochs {entries}")
            if span.epoch not in dict(entries):
                raise Broken("I9", f"{where}: no entry for {span} in {entries}")


def epoch_prefix_break(one: Copy, other: Copy) -> int | None:
    """I3: below the last batch that both have in one epoch, the lowest offset that differs."""
    theirs = {(span.epoch, span.base) for span in other.spans}
    last = max((span.base for span in one.spans if (span.epoch, span.base) in theirs), default=-1)
    return first_difference(one, other, last + 1)


def first_difference(one: Copy, other: Copy, limit: int) -> int | None:
    """The lowest offset below ``limit`` that both have, and have differently."""
    for offset, entry in one.records.items():
        if offset < limit and other.records.get(offset, entry) != entry:
            return offset
    return None


@define
class Ledger:
    """What one partition owes.

    Attributes:
        promises: by offset.
        top: the highest high watermark of a legitimate leader (``T``).
        start: the highest log start of any replica ever: who begins lower has not heard yet.
        holders: by offset and epoch, who ever had the record.
        appended_by: by epoch.
        led: legitimate leaderships that were judged.
        is_compacted: a record may go if a later one of its key is promised.
        was_unclean: an election outside ISR and ELR, or a loss that is allowed, lies behind.
        unclean_epochs: such elections whose leaders have not served yet.
        uncertain: replicas of which I2 says nothing: not yet agreed with the leader since a start.
        lossy: members that lost power since they entered the ISR.
    """

    promises: dict[int, Entry] = field(factory=dict)
    top: int = 0
    start: int = 0
    holders: dict[tuple[int, int], set[str]] = field(factory=dict)
    appended_by: dict[int, tuple[str, int]] = field(factory=dict)
    led: set[tuple[str, int, int]] = field(factory=set)
    is_compacted: bool = False
    was_unclean: bool = False
    unclean_epochs: set[int] = field(factory=set)
    uncertain: set[str] = field(factory=set)
    lossy: set[str] = field(factory=set)

    def note_held(self, name: str, copy: Copy) -> None:
        self.start = max(self.start, copy.marks.start)
        for offset, entry in copy.records.items():
            self.holders.setdefault((offset, entry.epoch), set()).add(name)

    def commit(self, copy: Copy) -> None:
        """A legitimate leader's high watermark is where ``copy`` says."""
        high_watermark = copy.marks.high_watermark
        if high_watermark > self.top:
            for offset, entry in copy.records.items():
                if self.top <= offset < high_watermark:
                    self.promises.setdefault(offset, entry)
            self.top = high_watermark

    def missing(self, copy: Copy) -> str | None:
        """The first promise that a log does not keep, in words."""
        newest: dict[bytes | None, int] = {}
        if self.is_compacted:
            for offset, entry in self.promises.items():
                newest[entry.key] = max(newest.get(entry.key, -1), offset)
        for offset, entry in self.promises.items():
            if offset < copy.marks.start:
                continue
            found = copy.records.get(offset)
            if found == entry:
                continue
            if found is None and newest.get(entry.key, offset) > offset:
                continue
            return f"{offset} was {entry}, is {found}"
        return None

    def free(self, copy: Copy) -> None:
        """An allowed loss: only what this log has is owed from now on."""
        self.was_unclean = True
        self.top = min(self.top, copy.marks.leo)
        self.promises = {
            offset: entry
            for offset, entry in self.promises.items()
            if offset < copy.marks.start or copy.records.get(offset) == entry
        }
