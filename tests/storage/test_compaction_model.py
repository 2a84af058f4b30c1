"""Histories of a log that is compacted, trimmed, cut and reopened, against plain lists.

Method: Hypothesis draws appends of every kind of batch, rolls, flushes, truncations (into holes
too), retention runs, crashes, and compaction passes with any limit, clock and size of key map.
After each pass the log must hold exactly what the naive twin says, on a log of its own and in a
``LogDir``, where the cleaned offset outlives the process.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from storage.batch import ControlType, RecordBatch
from storage.compaction import Compaction, compact
from storage.config import CompactionPolicy, LogConfig
from storage.errors import NotTruncatable
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.storage.cleaning import (
    DIRECTORY,
    batches_of,
    data,
    files_of,
    marker,
    open_log,
    store,
)
from tests.storage.naive_compaction import base_of, compacted, deletable, unsettled, view_of

KEYS = st.sampled_from([None, b"", b"a", b"b", b"c"])
VALUES = st.none() | st.sampled_from([b"", b"v", b"12345678"])
PAIRS = st.tuples(KEYS, VALUES, st.integers(-1, 40))
PRODUCERS = st.sampled_from([-1, 7, 8])
BROKER = Path("/broker")


class CleaningHistory(RuleBasedStateMachine):
    """The log under test and the batches that it must hold."""

    @initialize(
        segment_bytes=st.integers(150, 700),
        interval=st.integers(1, 300),
        in_directory=st.booleans(),
    )
    def begin(self, segment_bytes: int, interval: int, in_directory: bool) -> None:
        self.config = LogConfig(segment_max_bytes=segment_bytes, index_interval_bytes=interval)
        self.disk = MemDisk()
        self.in_directory = in_directory
        self.log_dir: LogDir | None = None
        self.batches: list[RecordBatch] = []
        self.start = self.cleaned = self.epoch = 0
        self.log = self.open("all")

    def open(self, verify: str) -> PartitionLog:
        if not self.in_directory:
            return open_log(self.disk, self.config, verify=verify)
        self.log_dir = LogDir.open(BROKER, disk=self.disk)
        return self.log_dir.open_log("t", 0, self.config, verify=verify)

    # What is done to the log ---------------------------------------------------------------------

    def append(self, batch: RecordBatch) -> None:
        self.batches.append(store(self.log, batch))

    @rule(
        pairs=st.lists(PAIRS, min_size=1, max_size=4),
        pid=PRODUCERS,
        in_transaction=st.booleans(),
        version=st.sampled_from([1, 2]),
    )
    def append_data(self, pairs: list[tuple], pid: int, in_transaction: bool, version: int) -> None:
        in_transaction = in_transaction and pid != -1
        self.append(data(*pairs, pid=pid, in_transaction=in_transaction, version=version))

    @rule(
        keys=st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=3, max_size=8),
        value=VALUES,
        time=st.integers(-1, 40),
    )
    def append_singles(self, keys: list[bytes], value: bytes | None, time: int) -> None:
        for key in keys:
            self.append(data((key, value, time)))

    @rule(pid=st.sampled_from([7, 8]), control=st.sampled_from(ControlType))
    def append_marker(self, pid: int, control: ControlType) -> None:
        self.append(marker(control, pid))

    @rule()
    def elect(self) -> None:
        self.epoch += 1
        self.log.become_leader(self.epoch)

    @rule()
    def roll_and_flush(self) -> None:
        self.log.roll()
        self.log.flush()

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(data_=st.data())
    def truncate(self, data_: st.DataObject) -> None:
        target = data_.draw(st.integers(self.log.segments[0].base_offset, self.log.leo))
        inside = [b for b in self.batches if base_of(b) < target < b.next_offset]
        if inside:
            try:
                self.log.truncate_to(target)
            except NotTruncatable:
                return
            raise AssertionError("a batch was cut in two")
        epochs = self.log.epochs.entries
        self.log.truncate_to(target)
        self.batches = [b for b in self.batches if b.next_offset <= target]
        end = self.batches[-1].next_offset if self.batches else self.log.segments[0].base_offset
        self.start = min(self.start, target)
        self.cleaned = min(self.cleaned, end)
        self.batches += self.fillers(end, target, epochs)

    def fillers(
        self, end: int, target: int, epochs: tuple[tuple[int, int], ...]
    ) -> list[RecordBatch]:
        """The empty batches that a truncation into a hole leaves, one an epoch.

        What lies below a raised log start has no entry: any epoch does there that keeps the order.
        """
        found = [batch for batch in batches_of(self.log) if base_of(batch) >= end]
        latest = self.batches[-1].leader_epoch if self.batches else 0
        for batch in found:
            assert (base_of(batch), batch.records, batch.control) == (end, (), None)
            known = [epoch for epoch, start in epochs if start <= end]
            borders = [start for _, start in epochs if end < start < target]
            assert batch.next_offset == min([target, *borders])
            assert batch.leader_epoch == (known[-1] if known else batch.leader_epoch)
            assert batch.leader_epoch >= latest
            latest, end = batch.leader_epoch, batch.next_offset
        assert end == target
        return found

    @rule(data_=st.data())
    def delete_records(self, data_: st.DataObject) -> None:
        self.start = data_.draw(st.integers(self.log.log_start_offset, self.log.leo))
        self.log.raise_log_start_offset(self.start)

    @rule(
        data_=st.data(),
        bytes_=st.none() | st.integers(0, 1_500),
        age=st.none() | st.integers(0, 40),
    )
    def retain(self, data_: st.DataObject, bytes_: int | None, age: int | None) -> None:
        limit = data_.draw(st.integers(0, self.log.leo))
        facts = [segment.seal() for segment in self.log.segments]
        count = deletable(
            facts,
            limit_offset=limit,
            boundary_base=self.log.boundary.segment_base,
            log_start_offset=self.log.log_start_offset,
            retention_bytes=bytes_,
            retention_ms=age,
            now_ms=40,
        )
        gone = self.log.delete_old_segments(
            limit, retention_bytes=bytes_, retention_ms=age, now_ms=40
        )
        assert list(gone) == facts[:count]
        first = facts[count].base_offset
        self.batches = [batch for batch in self.batches if base_of(batch) >= first]
        self.start = max(self.start, first) if count else self.start

    @rule(clean=st.booleans(), verify=st.sampled_from(["all", "unflushed"]))
    def reopen(self, clean: bool, verify: str) -> None:
        """Close, or end the process: a copy of the disk has all bytes and no locks."""
        if clean:
            (self.log_dir or self.log).close()
        self.disk = self.disk.copy()
        self.log = self.open(verify)
        report = self.log.report
        assert (report.cuts, report.dropped, report.rebuilt, report.warnings) == ((), (), (), ())
        assert (report.removed, report.swapped, report.ignored) == ((), (), ())
        if not self.in_directory:
            self.cleaned = 0

    @rule(
        data_=st.data(),
        now=st.integers(0, 60),
        delete_retention_ms=st.sampled_from([0, 10, 1_000]),
        keys_max=st.sampled_from([1_000, 2, 1]),
        all_of_it=st.sampled_from([True, True, False]),
    )
    def compact(
        self,
        data_: st.DataObject,
        now: int,
        delete_retention_ms: int,
        keys_max: int,
        all_of_it: bool,
    ) -> None:
        limit = self.log.leo
        if all_of_it:
            self.roll_and_flush()
        else:
            limit = data_.draw(st.integers(0, limit))
        policy = CompactionPolicy(delete_retention_ms=delete_retention_ms, keys_max=keys_max)
        before, spans = self.batches, [s.seal() for s in self.log.segments]
        boundary, bytes_before = self.log.boundary, self.bytes_of_segments()
        result = compact(self.log, limit, now_ms=now, policy=policy)
        plan = result.plan
        covered = [s for s in spans[:-1] if s.next_offset <= min(limit, boundary.segment_base)]
        assert plan.end_offset == (covered[-1].next_offset if covered else plan.start_offset)
        assert plan.segments == len(covered)
        assert not result.is_abandoned
        assert result.is_complete == (not covered or result.end_offset == plan.end_offset)
        self.batches = compacted(
            before,
            end=result.end_offset,
            range_end=plan.end_offset,
            file_ends={segment.next_offset for segment in self.log.segments},
            expired_ms=now - delete_retention_ms,
        )
        assert self.log.boundary == boundary
        self.check_layout(spans, bytes_before, plan.end_offset)
        for committed_only in (True, False):
            views = [view_of(b, committed_only=committed_only) for b in (before, self.batches)]
            assert views[0] == views[1]
        if covered:
            open_from = min(
                unsettled(self.open_ended(before, plan.end_offset), 2**63), default=2**63
            )
            self.cleaned = max(self.cleaned, min(result.end_offset, open_from))
        assert result.cleaned_offset == self.log.cleaned_offset

    @staticmethod
    def open_ended(batches: list[RecordBatch], end: int) -> list[RecordBatch]:
        """The batches below ``end`` without those whose transaction has a marker there."""
        below = [batch for batch in batches if base_of(batch) < end]
        return [
            batch
            for number, batch in enumerate(below)
            if batch.control is None
            and not any(
                later.control is not None and later.producer_id == batch.producer_id
                for later in below[number:]
            )
        ]

    def bytes_of_segments(self) -> dict[str, bytes]:
        directory = BROKER / "t-0" if self.in_directory else DIRECTORY
        files = files_of(self.disk, directory)
        return {name: content for name, content in files.items() if name.endswith(".log")}

    def check_layout(self, before: list, bytes_before: dict[str, bytes], end: int) -> None:
        """Segments are old ones or unions of neighbours; those behind ``end`` are untouched."""
        ends = [segment.next_offset for segment in before]
        after = self.log.segments
        assert after[0].base_offset == before[0].base_offset
        for number, segment in enumerate(after):
            assert segment.next_offset in ends
            if number:
                assert segment.base_offset == after[number - 1].next_offset
        now = self.bytes_of_segments()
        for segment in before:
            if segment.base_offset >= end:
                name = f"{segment.base_offset:020d}.log"
                assert now[name] == bytes_before[name]

    @rule(now=st.integers(0, 60))
    def compact_until_nothing_changes(self, now: int) -> None:
        """A pass that has nothing left to do does nothing, and it does not take many to get there.

        Every pass merges what fits, so the number of segments bounds the number of passes.
        """
        self.roll_and_flush()
        policy = CompactionPolicy(delete_retention_ms=10)
        for _ in range(len(self.log.segments) + 2):
            spans = [segment.seal() for segment in self.log.segments]
            before = self.batches
            result = compact(self.log, self.log.leo, now_ms=now, policy=policy)
            self.batches = compacted(
                before,
                end=result.end_offset,
                range_end=result.plan.end_offset,
                file_ends={segment.next_offset for segment in self.log.segments},
                expired_ms=now - 10,
            )
            self.cleaned = self.log.cleaned_offset
            if spans == [segment.seal() for segment in self.log.segments]:
                assert self.batches == before
                assert result.segments_before == 0
                return
        raise AssertionError("compaction does not come to rest")

    @rule(steps=st.integers(0, 3), pair=PAIRS)
    def compact_a_few_steps(self, steps: int, pair: tuple) -> None:
        """A pass that is given up after an append leaves nothing that a later one trips over."""
        compaction = Compaction(self.log, self.log.leo, now_ms=0)
        while steps and compaction.next_step in ("survey", "map"):
            compaction.step()
            steps -= 1
        self.append(data(pair))
        if compaction.next_step == "write":
            # Written, never swapped in.
            compaction.step()
            self.log.remove_outputs()

    # What must hold ------------------------------------------------------------------------------

    @invariant()
    def log_holds_the_batches(self) -> None:
        if not hasattr(self, "log"):
            return
        assert batches_of(self.log) == self.batches
        assert self.log.log_start_offset == self.start
        assert self.log.cleaned_offset == self.cleaned
        assert self.log.cleaned_offset <= self.log.leo

    @invariant()
    def every_record_is_found(self) -> None:
        """By offset, by range and by time, from every offset on, in holes too."""
        if not hasattr(self, "log"):
            return
        records = [
            (base_of(b) + delta, *record, b.leader_epoch)
            for b in self.batches
            for delta, record in zip(b.offset_deltas, b.records, strict=True)
        ]
        for offset in range(self.start, self.log.leo + 1):
            wanted = [record for record in records if record[0] >= offset]
            assert [tuple(found) for found in self.log.fetch(offset, 3)] == wanted[:3]
        readable = [record for record in records if record[0] >= self.start]
        for time in (0, 1, 13, 40):
            later = [record for record in readable if record[3] >= time]
            found = self.log.offset_for_timestamp(time)
            assert (found and tuple(found)) == (later[0] if later else None)


TestCleaningHistory = CleaningHistory.TestCase
TestCleaningHistory.settings = settings(stateful_step_count=25)
