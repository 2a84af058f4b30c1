"""Random histories of one log against a naive log in memory.

After every step the log must agree with the model in all that can be asked of it, its files must
hold exactly the model's frames and index entries, and what its durable boundary claims must be
durable. A history ends with the indexes deleted and rebuilt, to the same bytes.

Damage is the subject of other tests: here a crash keeps everything that was written, or loses
everything that no fsync covered.
"""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage import ControlType, Header, LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import Disk, OsDisk
from storage.epochs import read_epochs
from storage.errors import (
    CorruptBatch,
    NotTruncatable,
    StaleLeaderEpoch,
    UnexpectedOffset,
)
from storage.log_durability import FlushToken, Work
from storage.memdisk import MemDisk
from tests.storage.log_agreement import (
    check_boundary,
    check_epochs_match_batches,
    check_facts,
    check_files,
    check_reads,
    content,
    visible,
)
from tests.storage.naive_log import NaiveLog, RefusedTruncation, Stored
from tests.storage.sync_disk import SyncDisk

CONFIGS = st.builds(
    LogConfig,
    segment_max_bytes=st.sampled_from([150, 300, 600, 1 << 20]),
    segment_max_age_ms=st.sampled_from([50, 1 << 40]),
    index_interval_bytes=st.sampled_from([1, 100, 250]),
    index_max_bytes=st.sampled_from([24, 48, 1 << 20]),
    open_files_max=st.integers(1, 2),
)
STAMPS = st.integers(-1, 120) | st.sampled_from([-1, -5, 2**40])
VALUES = st.none() | st.binary(max_size=3) | st.just(bytes(90))
RECORDS = st.builds(
    Record,
    key=st.none() | st.binary(max_size=2),
    value=VALUES,
    timestamp_ms=STAMPS,
    headers=st.just(()) | st.just((Header("h", None),)),
)
DATA = st.builds(
    RecordBatch.unassigned,
    st.lists(RECORDS, min_size=1, max_size=4),
    format_version=st.sampled_from([2, 2, 2, 1]),
)
MARKERS = st.builds(
    RecordBatch.control_marker,
    st.sampled_from(ControlType),
    transactional_id=st.just("tx"),
    producer_id=st.just(7),
    producer_epoch=st.just(0),
    timestamp_ms=STAMPS,
)
BATCHES = st.one_of(DATA, DATA, MARKERS)
CLOCK = st.none() | st.integers(0, 200)
SEEDS = st.integers(0, 2**32)
VERIFY = st.sampled_from(["unflushed", "all"])


def with_holes(batch: RecordBatch, random: Random) -> RecordBatch:
    """The batch as compaction may leave it: some records gone, its offsets kept."""
    if batch.control is not None or batch.format_version == 1 or random.random() < 0.5:
        return batch
    kept = [number for number in range(len(batch.records)) if random.random() < 0.6]
    if not kept and batch.base_offset is None:
        return batch
    records = tuple(batch.records[number] for number in kept)
    return RecordBatch(
        records, tuple(kept), batch.last_offset_delta, batch.base_offset, batch.leader_epoch
    )


class LogHistory(RuleBasedStateMachine):
    """One log and its model; see the module."""

    def make_disk(self) -> tuple[Disk, Path]:
        disk = SyncDisk(MemDisk())
        return disk, Path("/t-0")

    @initialize(config=CONFIGS, runs_pending=st.booleans(), seed=SEEDS)
    def begin(self, config: LogConfig, runs_pending: bool, seed: int) -> None:
        self.disk, self.directory = self.make_disk()
        self.config = config
        self.runs_pending = runs_pending
        self.random = Random(seed)
        self.model = NaiveLog(config)
        self.held: list[Work] = []
        self.tokens: list[FlushToken] = []
        self.log = self.open("unflushed")

    def open(self, verify: Any) -> PartitionLog:
        return PartitionLog.open(
            self.directory,
            self.config,
            verify=verify,
            disk=self.disk,
            runs_pending=self.runs_pending,
        )

    # Appending ---------------------------------------------------------------------------------

    @property
    def last_epoch(self) -> int:
        """Of the last batch, which may be hidden below the log start and have no entry."""
        return max([0, *(stored.batch.leader_epoch for stored in self.model.stored()[-1:])])

    @precondition(lambda self: self.model.leader_epoch >= self.last_epoch)
    @rule(batch=BATCHES, now_ms=CLOCK)
    def append(self, batch: RecordBatch, now_ms: int | None) -> None:
        latest = self.model.epochs[-1][0] if self.model.epochs else -1
        if self.model.leader_epoch < latest:
            with pytest.raises(StaleLeaderEpoch):
                self.log.append(batch, now_ms=now_ms)
            return
        base = self.model.end
        stored = batch.assign(base, self.model.leader_epoch)
        appended = self.log.append(batch, now_ms=now_ms)
        self.model.store(stored, now_ms)
        size = len(Stored.of(stored).frame)
        assert appended == (base, stored.next_offset, self.model.leader_epoch, size)

    @rule(
        batches=st.lists(BATCHES, min_size=1, max_size=6),
        seed=SEEDS,
        form=st.sampled_from(["batch", "frame", "run", "one by one", "as a run or one by one"]),
        now_ms=CLOCK,
    )
    def replicate(
        self, batches: list[RecordBatch], seed: int, form: str, now_ms: int | None
    ) -> None:
        random = Random(seed)
        stored = self.assigned(batches if "run" in form or "one" in form else batches[:1], random)
        frames = [Stored.of(batch).frame for batch in stored]
        if form == "batch":
            self.log.append_replica_batch(stored[0], now_ms=now_ms)
        elif form == "frame":
            self.log.append_replica_batch(bytearray(frames[0]), now_ms=now_ms)
        elif form == "run":
            appended = self.log.append_replica_batch(b"".join(frames), now_ms=now_ms)
            assert appended.next_offset == stored[-1].next_offset
            assert appended.size_bytes == sum(map(len, frames))
        else:
            for frame in frames:
                self.log.append_replica_batch(frame, now_ms=now_ms)
        for batch in stored:
            self.model.store(batch, now_ms)

    def assigned(self, batches: list[RecordBatch], random: Random) -> list[RecordBatch]:
        """The batches at the offsets and epochs that a leader could have given them."""
        base = self.model.end
        epoch = max([self.model.leader_epoch, self.last_epoch, *dict(self.model.epochs)])
        stored = []
        for batch in batches:
            epoch += random.choice([0, 0, 0, 0, 1, 2])
            if base < self.model.gaps_end and random.random() < 0.5:
                base = random.randint(base, self.model.gaps_end)
            stored.append(with_holes(batch.assign(base, epoch), random))
            base = stored[-1].next_offset
        return stored

    @rule(batch=DATA, seed=SEEDS)
    def refuse_what_does_not_follow(self, batch: RecordBatch, seed: int) -> None:
        random = Random(seed)
        (good,) = self.assigned([batch], random)
        frame = Stored.of(good).frame
        end, latest = self.model.end, self.model.epochs[-1][0] if self.model.epochs else 0
        ahead = max(end, self.model.gaps_end) + 1
        refused: list[tuple[type[Exception], RecordBatch | bytes]] = [
            (UnexpectedOffset, batch.assign(ahead, latest)),
            (CorruptBatch, frame[:-1]),
            (CorruptBatch, frame + frame[: random.randrange(1, len(frame))]),
            (CorruptBatch, frame[:-1] + bytes([frame[-1] ^ 1])),
            (CorruptBatch, b""),
        ]
        if end:
            refused.append((UnexpectedOffset, batch.assign(end - 1, latest)))
        if latest:
            refused.append((StaleLeaderEpoch, batch.assign(end, latest - 1)))
        kind, data = random.choice(refused)
        with pytest.raises(kind):
            self.log.append_replica_batch(data)

    # Changing shape ----------------------------------------------------------------------------

    @rule(rise=st.integers(0, 2))
    def become_leader(self, rise: int) -> None:
        latest = max([self.model.leader_epoch, self.last_epoch, *dict(self.model.epochs)]) + rise
        self.log.become_leader(latest)
        self.model.become_leader(latest)

    @rule()
    def become_follower(self) -> None:
        self.log.become_follower()
        self.model.become_follower()

    @rule(seed=SEEDS)
    def truncate(self, seed: int) -> None:
        random = Random(seed)
        borders = self.model.borders()
        target = random.choice([random.choice(borders), random.choice(borders[-4:])])
        self.log.truncate_to(target)
        self.model.truncate_to(target)

    @rule(seed=SEEDS)
    def truncate_anywhere(self, seed: int) -> None:
        target = Random(seed).randint(0, self.model.end + 3)
        expected = self.model.copy()
        try:
            expected.truncate_to(target)
        except RefusedTruncation:
            with pytest.raises(NotTruncatable) as caught:
                self.log.truncate_to(target)
            assert caught.value.target == target
            return
        self.log.truncate_to(target)
        self.model = expected

    @rule(seed=SEEDS)
    def truncate_fully(self, seed: int) -> None:
        offset = Random(seed).randint(0, self.model.end + 5)
        self.log.truncate_fully_and_start_at(offset)
        self.model.restart_at(offset)

    @rule(seed=SEEDS)
    def raise_log_start_offset(self, seed: int) -> None:
        offset = Random(seed).randint(self.model.start, self.model.end)
        self.log.raise_log_start_offset(offset)
        self.model.raise_start(offset)

    @rule(ahead=st.integers(0, 6))
    def declare_gaps(self, ahead: int) -> None:
        self.log.declare_gaps(self.model.end + ahead)
        self.model.gaps_end = max(self.model.gaps_end, self.model.end + ahead)

    @rule(now_ms=CLOCK)
    def roll(self, now_ms: int | None) -> None:
        self.log.roll(now_ms=now_ms)
        self.model.roll(now_ms)

    # Durability --------------------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        self.log.flush()
        assert self.log.boundary.end_offset == self.model.end

    @rule(up_to=st.none() | st.integers(0, 40))
    def begin_flush(self, up_to: int | None) -> None:
        self.tokens.append(self.log.begin_flush(up_to))

    @precondition(lambda self: self.tokens)
    @rule(seed=SEEDS)
    def complete_flush(self, seed: int) -> None:
        token = self.tokens.pop(seed % len(self.tokens))
        self.log.complete_flush(token)
        with pytest.raises(ValueError, match="not outstanding"):
            self.log.complete_flush(token)

    @rule()
    def take_pending(self) -> None:
        self.held += self.log.take_pending()

    @precondition(lambda self: self.held)
    @rule(seed=SEEDS)
    def run_one(self, seed: int) -> None:
        self.log.run(self.held.pop(seed % len(self.held)))

    @rule()
    def run_pending(self) -> None:
        self.log.run_pending()
        assert self.log.take_pending() == ()

    # Ending and beginning again ----------------------------------------------------------------

    @rule(verify=VERIFY)
    def close_and_reopen(self, verify: str) -> None:
        self.finish_held()
        self.log.close()
        # An entry that begins below the log start is written anew, at the log start.
        is_plain = self.model.epochs == visible(self.model.epochs, self.model)
        self.reopen_closed(verify)
        assert self.log.report.is_clean
        assert self.log.report.rebuilt == (() if is_plain else ("leader-epoch-checkpoint",))
        assert self.log.report.removed == ()

    def reopen_closed(self, verify: str) -> None:
        self.reopen(verify)
        assert self.log.boundary.end_offset == self.model.end
        assert self.log.log_start_offset == self.model.start
        entries = list(self.log.epochs.entries)
        assert entries == visible(self.model.epochs, self.model)
        self.model.epochs = entries

    def finish_held(self) -> None:
        self.random.shuffle(self.held)
        for work in self.held:
            self.log.run(work)
        self.log.run_pending()

    @rule(verify=VERIFY)
    def kill_and_reopen(self, verify: str) -> None:
        """The process ends: what was written stays, what was only due is forgotten."""
        saved = read_epochs(self.disk, self.directory) or []
        known = {epoch for epoch, _ in [*self.model.epochs, *saved]}
        _, saved_start = self.saved_end_and_start()
        self.log.abandon()
        self.reopen(verify)
        report = self.log.report
        assert not report.is_clean
        assert set(report.rebuilt) <= {"leader-epoch-checkpoint"}
        assert saved_start <= self.log.log_start_offset <= self.model.start
        self.model.start = self.log.log_start_offset
        entries = list(self.log.epochs.entries)
        assert {epoch for epoch, start in entries if start == self.model.end} <= known
        check_epochs_match_batches(self.model, entries)
        self.model.epochs = entries

    def saved_end_and_start(self) -> tuple[int, int]:
        fields = self.content("boundary").decode().splitlines()[2].split()
        return int(fields[2]), int(fields[3])

    @rule(verify=VERIFY, seed=SEEDS)
    def lose_derived_files(self, verify: str, seed: int) -> None:
        """Indexes that are missing after a clean close come back as they were."""
        random = Random(seed)
        self.finish_held()
        self.log.close()
        names = [name for name in self.disk.listdir(self.directory) if "index" in name]
        for name in names:
            if random.random() < 0.5:
                self.disk.unlink(self.directory / name)
        self.reopen_closed(verify)

    def reopen(self, verify: str) -> None:
        self.held, self.tokens = [], []
        self.log = self.open(verify)
        self.model.reopened()
        self.model.leader_epoch = max([self.last_epoch, *dict(self.log.epochs.entries)])
        assert self.log.leader_epoch == self.model.leader_epoch
        assert self.log.report.cuts == ()
        assert self.log.report.dropped == ()
        assert self.log.gaps_end == self.model.gaps_end

    @rule(verify=VERIFY)
    def open_what_a_power_cut_leaves(self, verify: Any) -> None:
        """Of what no fsync covered everything is lost: the log opens, at its boundary or behind."""
        if not isinstance(self.disk, SyncDisk):
            return
        saved_end, saved_start = self.saved_end_and_start()
        if saved_start > saved_end:
            # A log start behind what is durable is the subject of a test of its own.
            return
        image = self.disk.image()
        log = PartitionLog.open(self.directory, self.config, verify=verify, disk=image)
        boundary = log.boundary.end_offset
        assert log.leo >= boundary
        kept = [stored.batch for stored in self.model.stored() if stored.end <= boundary]
        start = log.log_start_offset
        assert start <= self.model.start
        found = [batch for batch in log.all_batches() if batch.next_offset <= boundary]
        assert found == [batch for batch in kept if batch.next_offset > start]
        log.abandon()

    def content(self, name: str) -> bytes:
        return content(self.disk, self.directory / name)

    @invariant()
    def log_and_model_agree(self) -> None:
        check_facts(self.log, self.model)
        check_epochs_match_batches(self.model, self.model.epochs)
        check_files(self.log, self.model, self.disk)
        check_reads(self.log, self.model, self.random)
        check_boundary(self.log, self.model, self.disk)

    def teardown(self) -> None:
        if sys.exc_info()[0] is not None or not hasattr(self, "log"):
            return
        self.finish_held()
        self.log.close()
        names = [name for name in self.disk.listdir(self.directory) if "index" in name]
        before = {name: self.content(name) for name in names}
        for name in names:
            self.disk.unlink(self.directory / name)
        self.reopen_closed("all")
        assert {name: self.content(name) for name in names} == before
        self.log_and_model_agree()
        self.log.close()


class RealLogHistory(LogHistory):
    """The same on the operating system's files, whose durability nobody can see."""

    def make_disk(self) -> tuple[Disk, Path]:
        self.folder = TemporaryDirectory()
        return OsDisk(), Path(self.folder.name) / "t-0"

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestLogHistory = LogHistory.TestCase
TestLogHistory.settings = settings(stateful_step_count=40)
TestRealLogHistory = RealLogHistory.TestCase
TestRealLogHistory.settings = settings(max_examples=15, stateful_step_count=25)
