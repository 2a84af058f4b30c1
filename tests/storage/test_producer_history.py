"""Random histories of a log with several producers, against the naive twin.

Clients send what comes next, retries, gaps, overlaps and new epochs; replicas store anything. After
every step, and after every kind of reopening, what the log knows of its producers must be what the
twin finds in a replay of all batches from the log's first one on. Snapshots get damaged, lost and
renamed between two runs; that may cost time, never state.

One producer, the last, is expired now and then. A log that is opened again may know it again, so
for it alone only this is asked: the batches that are known are the latest ones.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from storage import ControlType, LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import Disk
from storage.errors import CorruptCheckpoint, InvalidProducerEpoch, OutOfOrderSequence
from storage.log_durability import FlushToken, Work
from storage.memdisk import MemDisk
from storage.producer_state import ProducerEntry
from tests.storage.naive_producers import NaiveProducers, facts_of

LAST = 2**31 - 1
EXPIRING = 3
"""The producer whose times are long past; those of the others are not."""
NOW_MS = 1_000_000
ERRORS = {"InvalidProducerEpoch": InvalidProducerEpoch, "OutOfOrderSequence": OutOfOrderSequence}

CONFIGS = st.builds(
    LogConfig,
    segment_max_bytes=st.sampled_from([150, 400, 1 << 20]),
    index_interval_bytes=st.sampled_from([1, 200]),
    open_files_max=st.integers(1, 2),
    producer_expiry_ms=st.just(1_000),
)
SEEDS = st.integers(0, 2**32)
VERIFY = st.sampled_from(["unflushed", "all"])
PRODUCERS = st.integers(0, EXPIRING)


class ProducerHistory(RuleBasedStateMachine):
    """One log and all batches that it has, or had and knows of; see the module."""

    has_retention = True

    def make_disk(self) -> Disk:
        return MemDisk()

    @initialize(config=CONFIGS, runs_pending=st.booleans())
    def begin(self, config: LogConfig, runs_pending: bool) -> None:
        self.disk = self.make_disk()
        self.directory = Path("/t-0")
        self.config = config
        self.runs_pending = runs_pending
        self.batches: list[RecordBatch] = []
        self.expired_at = -1
        self.had_producer = False
        self.damaged: set[str] = set()
        self.has_lost_batches = False
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

    def twin(self) -> NaiveProducers:
        return NaiveProducers.replayed(self.batches)

    def make(
        self, producer: int, epoch: int, first: int, count: int, random: Random
    ) -> RecordBatch:
        """A data batch; sometimes without time, with large records, or in version 1."""
        newest = 10 if producer == EXPIRING else NOW_MS
        time = random.choice([-1, newest, newest - random.randint(0, 9)])
        value = bytes(random.choice([0, 0, 90]))
        return RecordBatch.unassigned(
            [Record(None, value, time)] * count,
            producer_id=producer,
            producer_epoch=epoch,
            base_sequence=first,
            format_version=random.choice([1, 2, 2, 2]),
        )

    def stored(self, batch: RecordBatch) -> None:
        self.batches.append(batch)
        self.had_producer |= batch.producer_id >= 0

    # Appending ---------------------------------------------------------------------------------

    @rule(producer=PRODUCERS, seed=SEEDS)
    def send_the_next_batch(self, producer: int, seed: int) -> None:
        random = Random(seed)
        entry = self.log.producers.get(producer)
        first = random.choice([0, 0, LAST - 1]) if entry is None else entry.next_sequence
        epoch = 0 if entry is None else entry.producer_epoch
        self.send(self.make(producer, epoch, first, random.randint(1, 3), random))

    @rule(producer=PRODUCERS, seed=SEEDS)
    def send_a_batch_again(self, producer: int, seed: int) -> None:
        random = Random(seed)
        own = [b for b in self.batches if b.producer_id == producer and b.control is None]
        if own:
            old = random.choice(own[-7:])
            count, first = old.last_offset_delta + 1, old.base_sequence
            if first >= 0 and old.producer_epoch >= 0:
                self.send(self.make(producer, old.producer_epoch, first, count, random))

    @rule(producer=PRODUCERS, seed=SEEDS)
    def send_something_odd(self, producer: int, seed: int) -> None:
        random = Random(seed)
        entry = self.log.producers.get(producer) or ProducerEntry(0, -1, ())
        epoch = max(0, entry.producer_epoch + random.choice([-1, 0, 0, 1]))
        near = (entry.next_sequence + random.randint(-3, 3)) % 2**31
        first = random.choice([near, near, 0, 1, LAST])
        self.send(self.make(producer, epoch, first, random.randint(1, 4), random))

    def send(self, batch: RecordBatch) -> None:
        """Append as a client does; the outcome is the twin's."""
        facts = facts_of(batch.assign(self.log.leo, 0))
        assert facts is not None
        expected = self.twin().check(facts)
        if batch.producer_id == EXPIRING and self.expired_at >= 0:
            expected = NaiveProducers(self.known_of_expiring()).check(facts)
        before, names = self.log.leo, self.disk.listdir(self.directory)
        if isinstance(expected, str):
            with pytest.raises(ERRORS[expected]):
                self.log.append(batch)
        else:
            appended = self.log.append(batch)
            if expected is None:
                assert appended[:2] == (before, before + batch.last_offset_delta + 1)
                assert not appended.is_duplicate
                self.stored(batch.assign(before, 0))
                return
            assert appended[:2] == expected
            assert appended.is_duplicate
        assert (self.log.leo, self.disk.listdir(self.directory)) == (before, names)

    def known_of_expiring(self) -> list[Any]:
        """The facts of the expiring producer that the log still knows."""
        entry = self.log.producers.get(EXPIRING)
        if entry is None:
            return []
        full = self.twin()
        if not entry.batches:
            return full.of(EXPIRING)[-1:]
        first = entry.batches[0].base_offset
        return [facts for facts in full.of(EXPIRING) if facts.base_offset >= first]

    @rule(producer=PRODUCERS, bump=st.integers(0, 1), seed=SEEDS)
    def mark(self, producer: int, bump: int, seed: int) -> None:
        entry = self.log.producers.get(producer)
        marker = RecordBatch.control_marker(
            Random(seed).choice(list(ControlType)),
            transactional_id="tx",
            producer_id=producer,
            producer_epoch=bump if entry is None else entry.producer_epoch + bump,
            timestamp_ms=-1 if seed % 2 else 10 if producer == EXPIRING else NOW_MS,
        )
        appended = self.log.append(marker)
        self.stored(marker.assign(appended.base_offset, 0))

    @rule(count=st.integers(1, 3))
    def append_without_a_producer(self, count: int) -> None:
        batch = RecordBatch.unassigned([Record(None, b"plain", -1)] * count)
        self.stored(batch.assign(self.log.append(batch).base_offset, 0))

    @rule(length=st.integers(1, 5), seed=SEEDS)
    def replicate_anything(self, length: int, seed: int) -> None:
        random = Random(seed)
        run, offset = [], self.log.leo
        for _ in range(length):
            producer = random.choice([-1, 0, 1, 2, EXPIRING])
            epoch, first = random.choice([0, 0, 1, -1]), random.choice([0, 5, LAST, -1])
            batch = self.make(producer, epoch, first, random.randint(1, 2), random)
            run.append(batch.assign(offset, 0))
            offset = run[-1].next_offset
        encode = self.log._codec.encode
        frames = [encode(one, one.base_offset or 0, 0, 1 << 20)[0] for one in run]
        self.log.append_replica_batch(b"".join(frames))
        for batch in run:
            self.stored(batch)

    # Changing shape ----------------------------------------------------------------------------

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule(seed=SEEDS)
    def truncate(self, seed: int) -> None:
        random = Random(seed)
        borders = [one.base_offset or 0 for one in self.batches] or [self.log.leo]
        self.truncate_at(random.choice([random.choice(borders), random.choice(borders[-4:])]))

    def truncate_at(self, target: int) -> None:
        is_full = target < self.log.segments[0].base_offset
        if self.has_lost_batches and not is_full:
            target = max(target, self.known_from())
        self.log.truncate_to(target)
        self.batches = [one for one in self.batches if one.next_offset <= target and not is_full]
        self.has_lost_batches &= not is_full

    def known_from(self) -> int:
        """From here on a snapshot knows what retention took: where the log begins, undamaged."""
        first = self.log.segments[0].base_offset
        for offset in self.log._snapshots.offsets:
            if offset >= first:
                with suppress(CorruptCheckpoint):
                    self.log._snapshots.load(offset)
                    assert offset == first or self.damaged
                    return offset
        assert self.damaged
        return self.log.leo

    @rule(seed=SEEDS)
    def truncate_fully(self, seed: int) -> None:
        self.log.truncate_fully_and_start_at(self.log.leo + Random(seed).randint(0, 5))
        self.batches = []
        self.has_lost_batches = False
        assert self.log.producers == {}
        assert self.snapshots() == []

    @rule(seed=SEEDS)
    def raise_log_start_offset(self, seed: int) -> None:
        offset = Random(seed).randint(self.log.log_start_offset, self.log.leo)
        self.log.raise_log_start_offset(offset)

    @precondition(lambda self: self.has_retention)
    @rule(kept_bytes=st.sampled_from([0, 300, 1_000]))
    def delete_old_segments(self, kept_bytes: int) -> None:
        """What the batches that go said is known for all that."""
        gone = self.log.delete_old_segments(self.log.leo, retention_bytes=kept_bytes)
        for batch in self.batches if gone else ():
            is_gone = batch.next_offset <= self.log.segments[0].base_offset
            names_one = batch.producer_id >= 0 and batch.producer_epoch >= 0
            self.has_lost_batches |= is_gone and names_one

    @rule()
    def expire(self) -> None:
        known = self.log.producers.get(EXPIRING)
        is_due = known is not None and known.timestamp_ms >= 0
        expected = (EXPIRING,) if is_due else ()
        assert self.log.expire_producers(NOW_MS) == expected
        if is_due:
            self.expired_at = self.log.leo

    # Durability --------------------------------------------------------------------------------

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @rule(up_to=st.none() | st.integers(0, 60))
    def begin_flush(self, up_to: int | None) -> None:
        self.tokens.append(self.log.begin_flush(up_to))

    @precondition(lambda self: self.tokens)
    @rule(seed=SEEDS)
    def complete_flush(self, seed: int) -> None:
        self.log.complete_flush(self.tokens.pop(seed % len(self.tokens)))

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

    # Ending and beginning again ----------------------------------------------------------------

    @rule(verify=VERIFY)
    def close_and_reopen(self, verify: str) -> None:
        self.close()
        names = self.snapshots()
        assert bool(names) == (self.log._state.producers_from is not None)
        self.reopen(verify)
        assert self.log.report.is_clean
        assert self.log.report.removed == self.log.report.warnings == ()
        assert self.snapshots() == names

    def close(self) -> None:
        for work in self.held:
            self.log.run(work)
        self.log.close()

    @rule(verify=VERIFY)
    def kill_and_reopen(self, verify: str) -> None:
        self.log.abandon()
        self.reopen(verify)

    @precondition(lambda self: not self.has_lost_batches)
    @rule(verify=VERIFY, closes=st.booleans(), seed=SEEDS)
    def damage_snapshots_and_reopen(self, verify: str, closes: bool, seed: int) -> None:
        random = Random(seed)
        if closes:
            self.close()
        else:
            self.log.abandon()
        damage = random.choice([self.flip, self.cut, self.lose, self.rename])
        names = self.snapshots()
        for name in random.sample(names, random.randint(0, len(names))):
            self.damaged.add(name)
            damage(self.directory / name, random)
        self.reopen(verify)
        assert self.log.report.is_clean == closes

    def flip(self, path: Path, random: Random) -> None:
        file = self.disk.open(path)
        at = random.randrange(file.size())
        file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1 << random.randrange(8)]))
        file.close()

    def cut(self, path: Path, random: Random) -> None:
        file = self.disk.open(path)
        file.truncate(random.randrange(file.size()))
        file.close()

    def lose(self, path: Path, random: Random) -> None:
        self.disk.unlink(path)

    def rename(self, path: Path, random: Random) -> None:
        other = path.with_name(f"{random.randint(0, self.log.leo + 3):020d}.snapshot")
        self.damaged.add(other.name)
        self.disk.rename(path, other)

    def reopen(self, verify: str) -> None:
        self.held, self.tokens = [], []
        end = self.log.leo
        self.log = self.open(verify)
        assert self.log.leo == end

    # Comparing ---------------------------------------------------------------------------------

    def snapshots(self) -> list[str]:
        return [name for name in self.disk.listdir(self.directory) if "snapshot" in name]

    @invariant()
    def the_log_knows_what_a_replay_finds(self) -> None:
        known, expected = dict(self.log.producers), self.twin().entries()
        if self.expired_at >= 0:
            self.compare_expired(known.pop(EXPIRING, None), expected.pop(EXPIRING, None))
        assert known == expected

    def compare_expired(self, known: ProducerEntry | None, full: ProducerEntry | None) -> None:
        if full is None:
            assert known is None
            return
        if known is None:
            assert self.twin().of(EXPIRING)[-1].base_offset < self.expired_at
            return
        assert known.producer_epoch == full.producer_epoch
        assert full.batches[len(full.batches) - len(known.batches) :] == known.batches

    @invariant()
    def a_log_without_producers_has_no_snapshot(self) -> None:
        if not self.had_producer:
            assert self.snapshots() == []
            assert self.log._state.producers_from is None

    @invariant()
    def every_snapshot_is_the_state_of_its_prefix(self) -> None:
        """Of the producers that do not expire; a bad one may stay while a newer one is good."""
        for offset in self.log._snapshots.offsets:
            assert offset <= self.log.leo
            prefix = [one for one in self.batches if one.next_offset <= offset]
            try:
                found = self.log._snapshots.load(offset)
            except CorruptCheckpoint:
                assert self.log._snapshots.path(offset).name in self.damaged
                continue
            expected = NaiveProducers.replayed(prefix).entries()
            if self.expired_at >= 0:
                found.pop(EXPIRING, None)
                expected.pop(EXPIRING, None)
            assert found == expected

    def teardown(self) -> None:
        if sys.exc_info()[0] is None and hasattr(self, "log"):
            self.close_and_reopen("all")
            self.the_log_knows_what_a_replay_finds()
            self.log.close()


TestProducerHistory = ProducerHistory.TestCase
TestProducerHistory.settings = settings(stateful_step_count=40)
