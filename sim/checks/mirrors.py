"""What the files of one replica's log hold, followed from the calls of its disk.

A mirror reads each byte once: what a call appends is read back from the disk, outside its counting,
and cut into batches. Anything but an append at the end or a cut between two batches makes it read
the directory's files anew.

Left out: what the replica believes, and what any of this means.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Container
from itertools import pairwise
from typing import NamedTuple

from sim.checks.history import Batch, History, base_at
from sim.checks.ranges import Records, Span
from sim.disks import SimDisk
from storage.errors import CorruptBatch
from storage.mkb1 import MKB1
from storage.partition_log import PartitionLog
from storage.values import Copied

__all__ = ["Change", "LogMirror", "Segment"]

LOG_SUFFIX = ".log"
_NO_LIMIT = 1 << 63


class Segment(Copied):
    """One ``.log`` file.

    Attributes:
        base: offset, from its name.
        size: bytes that are whole batches.
        first: place of its first batch in the log's.
        inode: of the file.
    """

    __slots__ = ("base", "first", "inode", "size")

    def __init__(self, base: int, first: int, inode: int | None) -> None:
        self.base = base
        self.inode = inode
        self.size = 0
        self.first = first


class Change(NamedTuple):
    """What happened to a log since anybody looked.

    Attributes:
        cut: batches that are gone, in order.
        added: batches that have come, in order.
        begun: those of them that no log had before.
        overwritten: first offsets of batches whose bytes are damaged now.
    """

    cut: tuple[Batch, ...]
    added: tuple[Batch, ...]
    begun: tuple[Batch, ...]
    overwritten: tuple[int, ...]


class LogMirror:
    """See the module.

    Attributes:
        batches, bases: of the log, in order.
        segments: in order.
        runs: first batch of each epoch that has batches here, as (epoch, first offset).
        is_stale: the files must be read anew.
        damaged: first offsets of batches that cannot be read any more.
        disorder: what is wrong with the order of its batches, in words.
        cut_unsynced: batches that were cut since the files were last synced: a power loss may bring
            them back.
        held: every record that was ever here.
        dropped: base offsets of segments that were there when the files were read before, and were
            not when they were read last.
        cut_behind: first offsets of batches that were cut off behind the back of a process. They
            count as damaged, not as gone: it has them in its log, and writes on behind them.
    """

    def __init__(self, disk: SimDisk, directory: str, history: History) -> None:
        self.disk = disk
        self.directory = directory
        self.history = history
        self.batches: list[Batch] = []
        self.bases: list[int] = []
        self.segments: list[Segment] = []
        self.runs: list[tuple[int, int]] = []
        self.is_stale = True
        self.damaged: dict[int, None] = {}
        self.disorder: list[str] = []
        self.cut_unsynced: list[Batch] = []
        self._cut: list[Batch] = []
        self._added: list[Batch] = []
        self._begun: list[Batch] = []
        self._overwritten: list[int] = []
        self.has_changed = False
        self.held = Records()
        self.dropped: list[int] = []
        self.cut_behind: dict[int, None] = {}

    # Asking it ---------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        """The offset behind the last batch; 0 where there is none."""
        return self.batches[-1].next if self.batches else 0

    @property
    def log_end(self) -> int:
        """Where the log ends by its files: of an empty one, where its last segment begins."""
        if self.batches or not self.segments:
            return self.end
        return self.segments[-1].base

    def at(self, offset: int) -> Batch | None:
        """The batch that covers an offset."""
        place = bisect_right(self.bases, offset) - 1
        if place < 0:
            return None
        batch = self.batches[place]
        return batch if offset < batch.next else None

    def last_before(self, offset: int) -> Batch | None:
        """The last batch that begins below an offset."""
        place = bisect_left(self.bases, offset) - 1
        return self.batches[place] if place >= 0 else None

    def holds(self, batch: Batch) -> bool:
        """Whether the log has just this batch."""
        place = bisect_left(self.bases, batch.base)
        return place < len(self.batches) and self.batches[place] is batch

    def between(self, start: int, end: int) -> list[Batch]:
        """The batches with offsets from ``start`` to before ``end``."""
        low = max(bisect_right(self.bases, start) - 1, 0)
        high = bisect_left(self.bases, end)
        return [batch for batch in self.batches[low:high] if batch.next > start]

    def spans(self, start: int, end: int) -> list[Span]:
        """The records from ``start`` to before ``end``, by epoch."""
        found = []
        last = min(end, self.end)
        for place, (epoch, first) in enumerate(self.runs):
            behind = self.runs[place + 1][1] if place + 1 < len(self.runs) else last
            low, high = max(first, start), min(behind, last)
            if low < high:
                found.append(Span(epoch, low, high))
        return found

    def surely(self, start: int, end: int) -> list[Span]:
        """The same, without offsets between two epochs that compaction has emptied.

        Of which of both they were is not known any more.
        """
        found = []
        for span in self.spans(start, end):
            last = self.last_before(span.end)
            if last is not None and last.epoch == span.epoch and span.start < last.next:
                found.append(span._replace(end=min(span.end, last.next)))
        return found

    def unnoted(self) -> tuple[Batch, ...]:
        """What is gone since anybody looked."""
        return tuple(self._cut)

    def take_change(self) -> Change:
        """What happened since this was asked."""
        change = Change(
            tuple(self._cut), tuple(self._added), tuple(self._begun), tuple(self._overwritten)
        )
        self._cut, self._added, self._begun, self._overwritten = [], [], [], []
        self.has_changed = False
        return change

    # Following the disk ------------------------------------------------------------------------

    def wrote(self, segment_base: int, position: int, size_bytes: int) -> None:
        """Bytes were written to a segment's file."""
        if self.is_stale:
            return
        last = self.segments[-1] if self.segments else None
        if last is None or segment_base != last.base:
            if position or (last is not None and segment_base <= last.base):
                self.is_stale = True
                return
            inode = self._inode(f"{segment_base:020d}{LOG_SUFFIX}")
            last = Segment(segment_base, len(self.batches), inode)
            self.segments.append(last)
        data = self._read(last.inode, position, size_bytes) if position == last.size else b""
        if len(data) != size_bytes:
            self.is_stale = True
            return
        at = 0
        while at < size_bytes:
            parent = self.batches[-1] if self.batches else None
            batch, size = self.history.take(parent, data, at, self._begun)
            if batch is None:
                self.is_stale = True
                return
            self._push(batch)
            last.size += size
            at += size

    def cut(self, segment_base: int, size_bytes: int) -> None:
        """A segment's file was cut to a size."""
        if self.is_stale:
            return
        last = self.segments[-1] if self.segments else None
        if last is None or segment_base != last.base or size_bytes > last.size:
            self.is_stale = True
            return
        gone = []
        while last.size > size_bytes and len(self.batches) > last.first:
            batch = self._pop()
            gone.append(batch)
            last.size -= len(batch.data)
        gone.reverse()
        self._note_cut(gone)
        if last.size != size_bytes:
            self.is_stale = True

    def _push(self, batch: Batch) -> None:
        if batch.base < self.end or batch.next <= batch.base:
            self.disorder.append(f"{batch} stands behind the end {self.end}")
        self.batches.append(batch)
        self.bases.append(batch.base)
        if not self.runs or self.runs[-1][0] != batch.epoch:
            self.runs.append((batch.epoch, batch.base))
        self._added.append(batch)
        self.held.add((Span(batch.epoch, batch.base, batch.next),))
        self.has_changed = True

    def _pop(self) -> Batch:
        self.bases.pop()
        batch = self.batches.pop()
        self.damaged.pop(batch.base, None)
        if self.runs[-1][1] == batch.base:
            self.runs.pop()
        self.has_changed = True
        return batch

    def _note_cut(self, gone: list[Batch]) -> None:
        self._cut += gone
        self.cut_unsynced += gone

    # Reading the files -------------------------------------------------------------------------

    def _inode(self, name: str) -> int | None:
        return self.disk.names.find((self.directory, name))

    def _read(self, number: int | None, position: int, size_bytes: int) -> bytes:
        inode = None if number is None else self.disk.inodes.get(number)
        if inode is None:
            return b""
        data = self.disk.handle_of(inode).read_at(position, size_bytes)
        if not inode.opens:
            self.disk.let_go(inode)
        return data

    def names(self) -> list[str]:
        """The names of its segment files, in order."""
        number = self.disk.names.find((self.directory,))
        found = {} if number is None else self.disk.names.visible.get(number, {})
        return sorted(name for name in found if _is_segment(name))

    def refresh(self) -> None:
        """Read the files anew, if they may differ from what is known."""
        if self.is_stale:
            self.is_stale = False
            self.read_all()

    def look_at_rot(self) -> None:
        """Read the files anew, which may have changed behind the back of a process."""
        self.cut_behind = dict.fromkeys(self.bases)
        self.read_all(is_rot=not self.is_stale)
        self.cut_behind = {
            batch.base: None
            for segment, behind in pairwise([*self.segments, None])
            if segment is not None
            for batch in self._lacking(segment, behind)
        }

    def torn(self) -> tuple[tuple[int, int], ...]:
        """Where batches begin and end that a process has and whose file ends before they do.

        A file that is written on behind such a gap has zeros there, and can be read.
        """
        if not self.cut_behind:
            return ()
        return tuple(
            (batch.base, batch.next)
            for segment, behind in pairwise([*self.segments, None])
            if segment is not None
            for batch in self._lacking(segment, behind)
        )

    def hidden(self, log: PartitionLog) -> tuple[tuple[int, int], ...]:
        """From which offset to below which one nobody finds anything.

        Who looks an offset up goes from frame to frame, from the last entry of the index on, and
        gets no further than to a header that is another one now.

        Args:
            log: as its process has it, with its indexes.
        """
        if not self.damaged:
            return ()
        found = []
        indexes = {each.base_offset: each.index.entries for each in log.segments}
        for segment, behind in pairwise([*self.segments, None]):
            assert segment is not None, "only the last one has nothing behind it"
            content = self._content(segment)
            entries = indexes.get(segment.base, ())
            at, limit = 0, _NO_LIMIT if behind is None else behind.base
            for batch in self.batches[segment.first : None if behind is None else behind.first]:
                if batch.base in self.damaged and _hop(content, at) != _hop(batch.data, 0):
                    known = (offset for offset, position in entries if position > at)
                    found.append((batch.next, min(known, default=limit)))
                at += len(batch.data)
        return tuple(each for each in found if each[0] < each[1])

    def forget_process(self) -> None:
        """The process is gone: only the files count."""
        if self.cut_behind:
            self.cut_behind = {}
            self.is_stale = True

    def _content(self, segment: Segment) -> bytes:
        number = segment.inode
        is_there = number is not None and number in self.disk.inodes
        return self.disk.content_of(number) if is_there and number is not None else b""

    def _lacking(self, segment: Segment, behind: Segment | None) -> list[Batch]:
        """The batches of a segment that stand behind the end of its file."""
        size = len(self._content(segment))
        at, found = 0, []
        for batch in self.batches[segment.first : None if behind is None else behind.first]:
            at += len(batch.data)
            if at > size:
                found.append(batch)
        return found

    def read_all(self, *, is_rot: bool = False) -> None:
        """Read the files anew.

        Args:
            is_rot: the process has written nothing that is not known: where one of its batches was,
                a whole batch of another offset is damage, too.
        """
        before, places = self.batches, self._places()
        spoilt_before = self.damaged
        segments_before = [segment.base for segment in self.segments]
        self.batches, self.bases, self.runs, self.segments = [], [], [], []
        self.damaged, self.disorder = {}, []
        pushed = len(self._added)
        names = self.names()
        bases = [int(name[: -len(LOG_SUFFIX)]) for name in names]
        self.dropped = [base for base in segments_before if base not in bases]
        for at, name in enumerate(names):
            limit = bases[at + 1] if at + 1 < len(bases) else _NO_LIMIT
            self._read_segment(bases[at], name, places, limit, spoilt_before, is_rot=is_rot)
        del self._added[pushed:]
        same = 0
        for old, new in zip(before, self.batches, strict=False):
            if old is not new:
                break
            same += 1
        self._overwritten += [base for base in self.damaged if base not in spoilt_before]
        old_ones = {batch.base: batch for batch in before[same:]}
        new_ones = {batch.base: batch for batch in self.batches[same:]}
        self._note_cut([b for b in before[same:] if new_ones.get(b.base) is not b])
        self._added += [b for b in self.batches[same:] if old_ones.get(b.base) is not b]
        self.has_changed = True

    def _places(self) -> dict[tuple[int | None, int], Batch]:
        """The batches by file and byte."""
        found: dict[tuple[int | None, int], Batch] = {}
        for segment, behind in pairwise([*self.segments, None]):
            assert segment is not None, "only the last one has nothing behind it"
            at = 0
            for batch in self.batches[segment.first : None if behind is None else behind.first]:
                found[segment.inode, at] = batch
                at += len(batch.data)
        return found

    def _read_segment(
        self,
        base: int,
        name: str,
        places: dict[tuple[int | None, int], Batch],
        limit: int,
        spoilt_before: Container[int],
        *,
        is_rot: bool,
    ) -> None:
        """Read one file; in the place of a batch that is a suspect stands none of another offset.

        Args:
            spoilt_before: first offsets of the batches that were damaged before.
            is_rot: whether all are suspects, and not only those.
        """
        number = self._inode(name)
        if number is None or number not in self.disk.inodes:
            return
        data = self.disk.content_of(number)
        segment = Segment(base, len(self.batches), number)
        self.segments.append(segment)
        if self.end > base:
            self.disorder.append(f"segment {base} begins below the end {self.end}")
        while segment.size < len(data) or self.cut_behind:
            parent = self.batches[-1] if self.batches else None
            old = places.get((number, segment.size))
            batch, size = None, 0
            was_spoilt = old is not None and old.base in spoilt_before
            is_suspect = was_spoilt or (old is not None and is_rot)
            if old is None or not is_suspect or base_at(data, segment.size) == old.base:
                batch, size = self.history.take(parent, data, segment.size, self._begun)
            if batch is None:
                batch = old
                if was_spoilt and batch is not None and batch.parent is not parent:
                    # Something in front of it was compacted.
                    batch, _ = self.history.take(parent, batch.data, 0, self._begun)
                if batch is None or not self._is_spoilt(batch, segment.size, len(data), limit):
                    break
                size = len(batch.data)
                self.damaged[batch.base] = None
            self._push(batch)
            segment.size += size

    def _is_spoilt(self, batch: Batch, position: int, size_bytes: int, limit: int) -> bool:
        """Whether a batch is still there, and only some of its bytes are others now."""
        if self.batches and batch.parent is not self.batches[-1]:
            return False
        is_there = position + len(batch.data) <= size_bytes
        return is_there or (batch.base in self.cut_behind and batch.base < limit)


def _is_segment(name: str) -> bool:
    return len(name) == 24 and name.endswith(LOG_SUFFIX) and name[:20].isdigit()


def _hop(data: bytes, position: int) -> tuple[int, ...] | None:
    """What a look-up reads of a frame: its size and its offsets."""
    if position + MKB1.hop_bytes > len(data):
        return None
    try:
        return MKB1.hop(data, position)[:3]
    except CorruptBatch:
        return None
