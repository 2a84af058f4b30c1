"""The producer side of a log: who wrote what lately, kept in step with the log and its snapshots.

``storage.partition_log`` calls in here where it appends, rolls and truncates; the rules are in
``storage.producer_state``. A batch without a producer costs one comparison. A log without producers
has no snapshots, and after a crash replays no more than its durable boundary leaves open:
``LogState.producers_from`` says so.

Left out: flushing snapshots and removing old ones (``storage.log_durability``).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attrs import evolve

from storage.codec import Codec, ProducerFacts
from storage.config import LogConfig
from storage.disk import Disk
from storage.errors import CorruptLog, DiskError
from storage.log_reader import LogReader
from storage.opening import Opened
from storage.producer_replay import producers_before, recover_producers
from storage.producer_state import Duplicate, ProducerEntry, ProducerState

__all__ = ["ProducerLog"]


class ProducerLog(LogReader):
    """What a log knows of its idempotent producers."""

    def __init__(
        self, directory: Path, config: LogConfig, disk: Disk, codec: Codec, opened: Opened
    ) -> None:
        super().__init__(directory, config, disk, codec, opened)
        self._producers = opened.producers.state
        self._snapshots = opened.snapshots

    @property
    def producers(self) -> Mapping[int, ProducerEntry]:
        """Producer id to what the log knows of it; to read, and valid until the log changes."""
        return self._producers.entries

    def expire_producers(self, now_ms: int) -> tuple[int, ...]:
        """Forget producers that were idle for ``producer_expiry_ms``; returns their ids, ascending.

        Nothing is written: a log that is opened again or truncated may know them again, until this
        is called the next time.

        Args:
            now_ms: wall clock, milliseconds since the Unix epoch.
        """
        return self._producers.expire(now_ms, self.config.producer_expiry_ms)

    def _judge(self, frame: bytes) -> tuple[ProducerFacts, Duplicate | None]:
        """The facts of a frame with a producer, and the batch that it repeats, if any.

        Raises as ``ProducerState.check`` does.
        """
        facts = self._codec.producer_facts(frame, 0)
        assert facts is not None, "the batch names a producer"
        return facts, self._producers.check(facts)

    def _judge_run(self, view: memoryview, positions: list[int]) -> None:
        """Judge frames of a leader as if clients sent them; ``LogRules.judge_appends_only`` is off.

        Raises as ``ProducerState.check`` does.
        """
        trial = ProducerState(self._producers.entries, rules=self.config.rules)
        for position in positions:
            facts = self._codec.producer_facts(view, position)
            assert facts is not None, "the frame names a producer"
            trial.check(facts)
            trial.update(facts)

    def _drop_snapshots_above(self, end_offset: int) -> None:
        """Remove the snapshots that a cut at ``end_offset`` makes untrue, durably before it."""
        if self.config.rules.drop_snapshots_above:
            self._snapshots.drop_above(end_offset)

    def _note_producer(self, facts: ProducerFacts) -> None:
        """A batch of a producer is in the log."""
        if self._state.producers_from is None:
            self._state = evolve(self._state, producers_from=facts.base_offset)
        self._producers.update(facts)

    def _note_producers(self, view: memoryview, positions: list[int], end: int) -> list[int]:
        """The frames at ``positions`` below ``end`` are in the log; returns the other positions."""
        for number, position in enumerate(positions):
            if position >= end:
                return positions[number:]
            facts = self._codec.producer_facts(view, position)
            assert facts is not None, "the frame names a producer"
            self._note_producer(facts)
        return []

    def _take_snapshot(self) -> bool:
        """Write the state at the log's end if it may be of use; returns whether a file changed."""
        if self._state.producers_from is None or self._snapshots.is_durable(self._leo):
            return False
        return self._snapshots.write(self._leo, self._producers.entries)

    def _keep_producers_of(self, count: int) -> None:
        """See to a durable snapshot at the end of the first ``count`` segments, before they go.

        The roll wrote one, but a crash may have taken it. It is left out where the batches cannot
        be read or the disk refuses it; a failed sync takes the log offline.
        """
        first, end = self._state.producers_from, self._segments[count].base_offset
        if first is None or first >= end or self._snapshots.is_durable(end):
            return
        doomed = self._segments[:count]
        try:
            state = producers_before(self._snapshots, doomed, first, self.config.rules)
        except (CorruptLog, DiskError):
            return
        if not self._snapshots.write(end, state.entries):
            return
        try:
            self._snapshots.sync(end)
            self._disk.fsync_dir(self.directory)
        except DiskError as error:
            self._failure = error
            raise

    def _reload_producers(self) -> bool:
        """The state of what a truncation left; returns whether finding it was a long replay.

        Raises as ``recover_producers`` does.
        """
        first = self._state.producers_from
        if first is None:
            return False
        if first >= self._segments[-1].next_offset:
            self._forget_producers()
            return False
        found = recover_producers(self._snapshots, self._segments, first, self.config.rules)
        self._producers = found.state
        return found.was_long

    def _forget_producers(self) -> None:
        self._producers = ProducerState(rules=self.config.rules)
        self._state = evolve(self._state, producers_from=None)

    def _superfluous_snapshots(self) -> tuple[int, ...]:
        if not self._snapshots.offsets:
            return ()
        bases = {segment.base_offset for segment in self._segments}
        return self._snapshots.superfluous(bases)
