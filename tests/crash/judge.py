"""What must hold once a log was opened from what a crash left; see ``tests.crash.harness``.

The content, the indexes, the epochs and the producers are worked out anew from the batches in the
files; how ``storage`` compares them is not looked at.
"""

from __future__ import annotations

from collections.abc import Iterator

from sim.disks import SimDisk
from storage import LogRecord, PartitionLog, Record, RecordBatch
from storage.errors import CorruptLog, StorageError
from storage.recovery import Verify
from tests.crash.case import DIRECTORY, Case
from tests.crash.history import History, batches_of
from tests.storage.naive_producers import NaiveProducers

__all__ = ["judge"]


def judge(disk: SimDisk, case: Case, history: History, verify: Verify) -> str | None:
    """What does not hold after reopening the log, or None."""
    try:
        log = case.open(disk, case.config, verify)
    except CorruptLog as error:
        if not history.refuses:
            return f"does not open: {error}"
        log = PartitionLog.salvage(DIRECTORY, error, case.config, disk=disk)
    except StorageError as error:
        return f"does not open: {type(error).__name__}: {error}"
    problem = (
        _judge_content(log, history)
        or _judge_indexes(log)
        or _judge_producers(log, history)
        or case.check(log, history)
    )
    if problem is not None:
        return problem
    if log.boundary.end_offset > log.leo:
        return f"boundary {log.boundary} is ahead of the log end {log.leo}"
    try:
        log.append(RecordBatch.unassigned([Record(None, b"after", 9_000)]))
        seen = _Seen(log)
    except StorageError as error:
        return f"no append after reopening: {error}"
    disk.kill()
    return _judge_second_open(disk, case, verify, seen)


class _Seen:
    """What a second open must find again."""

    def __init__(self, log: PartitionLog) -> None:
        self.end = log.leo
        self.epochs = log.epochs.entries
        self.producers = dict(log.producers)
        self.indexes = [(s.index.entries, s.time_index.entries) for s in log.segments]


def _judge_second_open(disk: SimDisk, case: Case, verify: Verify, seen: _Seen) -> str | None:
    """Walking everything finds what the first open found."""
    again = case.open(disk, case.config, "all")
    report = again.report
    rebuilt = [name for name in report.rebuilt if not _may_be_rebuilt(name, verify)]
    if report.cuts or rebuilt or report.dropped or report.swapped:
        return f"a second open changes things: {report}"
    if again.leo != seen.end or again.epochs.entries != seen.epochs:
        return f"a second open differs: {again.leo}, {again.epochs.entries}"
    if dict(again.producers) != seen.producers:
        return f"a second open knows producers {dict(again.producers)}, not {seen.producers}"
    for segment, (offsets, times) in zip(again.segments, seen.indexes, strict=True):
        if segment.index.entries != offsets:
            return "offset indexes differ from a rebuild"
        if segment.time_index.entries != times and verify == "all":
            return "time indexes differ from a rebuild"
    disk.kill()
    return None


def _may_be_rebuilt(name: str, verify: Verify) -> bool:
    """Entries of a time index at the segment's first offset say nothing, so a walk from an index
    entry on does not miss or mind one: a size without its data looks like that.
    """
    return verify == "unflushed" and name.endswith(".timeindex")


def _judge_content(log: PartitionLog, history: History) -> str | None:
    if log.log_start_offset not in history.starts:
        return f"log start is {log.log_start_offset}, allowed is one of {sorted(history.starts)}"
    try:
        records = log.fetch(log.log_start_offset, 1_000_000)
    except StorageError as error:
        return f"does not read: {error}"
    problem = _judge_records(records, history) or _judge_epochs(log)
    if problem is not None:
        return problem
    present = {record.offset for record in records}
    for offset in range(log.log_start_offset, history.durable):
        if offset not in present and offset not in history.holes:
            return f"offset {offset} was durable (below {history.durable}) and is gone"
    if log.leo < history.end:
        return f"the log ends at {log.leo}, {history.end} was durable"
    expected = log.log_start_offset
    for batch in log.all_batches():
        assert batch.base_offset is not None
        if batch.base_offset > expected and expected >= log.gaps_end:
            return f"hole from {expected} to {batch.base_offset}"
        expected = batch.next_offset
    for before, after in zip(log.segments, log.segments[1:], strict=False):
        if before.next_offset != after.base_offset:
            return f"segment {before.base_offset} ends at {before.next_offset}, not at the next"
    return _judge_compaction(log, records, history)


def _judge_records(records: list[LogRecord], history: History) -> str | None:
    for record in records:
        known = history.written.get(record.offset, set())
        if (record.value, record.leader_epoch) not in known:
            return f"record {record} was never written"
        if (record.offset, record.value) in history.gone:
            return f"record {record} was taken by compaction and came back"
    return None


def _judge_compaction(log: PartitionLog, records: list[LogRecord], history: History) -> str | None:
    present = {record.offset for record in records}
    for record in records:
        if record.key is None:
            continue
        tombstone = history.tombstones.get(record.key, -1)
        if record.offset < tombstone < history.durable and tombstone not in present:
            return f"record {record} was deleted at {tombstone} and came back"
    if log.cleaned_offset > history.cleaned:
        return f"cleaned offset is {log.cleaned_offset}, above {history.cleaned}"
    return None


def _judge_indexes(log: PartitionLog) -> str | None:
    """The indexes against a walk over each segment."""
    for segment in log.segments:
        scan = segment.scan()
        keys = [segment.base_offset + key for key in scan.offsets]
        expected = list(zip(keys, scan.positions, strict=True))
        if list(segment.index.entries) != expected:
            found = segment.index.entries
            return f"index of segment {segment.base_offset} is {found}, the log says {expected}"
    return None


def _judge_epochs(log: PartitionLog) -> str | None:
    """The epoch cache against the batch headers."""
    starts: list[tuple[int, int]] = []
    for batch in log.all_batches():
        assert batch.base_offset is not None
        if not starts or batch.leader_epoch != starts[-1][0]:
            starts.append((batch.leader_epoch, max(batch.base_offset, log.log_start_offset)))
    entries = [entry for entry in log.epochs.entries if entry[1] < log.leo]
    if log.gaps_end == 0 and entries != starts:
        return f"epoch entries {entries}, batches say {starts}"
    for epoch, start in starts:
        if log.epochs.epoch_for_offset(start) != epoch:
            return f"epoch of offset {start} is {epoch}, the cache {entries} differs"
    return None


def _judge_producers(log: PartitionLog, history: History) -> str | None:
    """The producers against a replay of the batches.

    A snapshot may know what retention or compaction took: then the replay has the batches below
    some border as they were. Without such batches there is one right answer. The newest batch of a
    producer stays known whatever compaction took.
    """
    known = dict(log.producers)
    if not any(entry == known for entry in _replays(log, history)):
        expected = NaiveProducers.replayed(batches_of(log)).entries()
        return f"producers are {known}, the batches say {expected}"
    if not history.holes:
        return None
    for producer_id, before in NaiveProducers.replayed(history.taken).entries().items():
        newest = before.batches[-1]
        if newest.last_offset < history.durable and (
            producer_id not in known
            or known[producer_id].batches[-1].base_offset < newest.base_offset
        ):
            return f"producer {producer_id} wrote {newest}, known is {known.get(producer_id)}"
    return None


def _replays(log: PartitionLog, history: History) -> Iterator[object]:
    there = {batch.base_offset or 0: batch for batch in batches_of(log)}
    yield NaiveProducers.replayed(there[base] for base in sorted(there)).entries()
    taken = {batch.base_offset or 0: batch for batch in history.taken}
    for border in sorted(batch.next_offset for batch in history.taken):
        merged = {**there, **{base: taken[base] for base in taken if base < border}}
        if border <= log.leo:
            yield NaiveProducers.replayed(merged[base] for base in sorted(merged)).entries()
