"""More known faults that the crash proof finds: retention, compaction, producers, checkpoints.

As in ``test_planted_faults``. Tried and left out, because a correct history cannot show them:

* Retention that renames the newest file first: the log start is durable by then, and a hole below
  it is no damage.
* An epoch file that is cut to a log start before that is durable: opening compares it with the
  batches, of which none is gone by then, and derives it anew.
* A producer snapshot that is not synced before the boundary passes it: one that cannot be read
  goes, and the replay begins where the log first names a producer.
* Snapshots behind a truncation removed after the cut and not before: until something is appended,
  they lie behind the log's end, or the tail that they know came back with them.
* A cleaned offset lowered behind the boundary and not before: opening lowers it to the boundary.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from attrs import evolve

from sim.disks import SimDisk
from storage import log_dir, state
from storage.compaction import Compaction
from storage.log_cleaning import CleanableLog
from storage.log_dir import LOG_START_FILE, LogDir
from storage.log_durability import DurableLog
from storage.partition_log import PartitionLog
from storage.producer_snapshots import SnapshotFiles
from storage.segment import Segment
from storage.survivors import Sieve
from tests.crash.planting import Plant, Planted, check_found, rule_off, without

pytestmark = pytest.mark.slow


def does_nothing(owner: type, method: str, result: Any = None, *, caller: str = "") -> Plant:
    """A method of the log does nothing, where ``caller`` calls it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = getattr(owner, method)

        def call(self: Any, *args: Any, **more: Any) -> Any:
            if caller in ("", sys._getframe(1).f_code.co_name):
                return result
            return real(self, *args, **more)

        patch.setattr(owner, method, call)

    return plant


# Retention and the log start -------------------------------------------------------------------


def files_go_before_the_log_start(patch: pytest.MonkeyPatch) -> None:
    def raise_log_start(self: CleanableLog, offset: int) -> None:
        start = max(offset, self.log_start_offset)
        self._state = evolve(self._state, log_start_offset=start)
        self._add_work("persist")

    patch.setattr(CleanableLog, "_raise_log_start", raise_log_start)


def retention_forgets_a_start_above_its_own(patch: pytest.MonkeyPatch) -> None:
    def raise_log_start(self: CleanableLog, offset: int) -> None:
        self._save_state(evolve(self._state, log_start_offset=offset))

    patch.setattr(CleanableLog, "_raise_log_start", raise_log_start)


def log_start_is_saved_above_the_durable_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(DurableLog, "_persist", lambda self: self._store.save(self._state))


# Compaction ------------------------------------------------------------------------------------


def holes_are_declared_in_memory(patch: pytest.MonkeyPatch) -> None:
    def declare_gaps(self: CleanableLog, end_offset: int) -> None:
        self._state = evolve(self._state, gaps_end=end_offset)
        for segment in self._segments:
            segment.gaps_end = end_offset

    patch.setattr(CleanableLog, "declare_gaps", declare_gaps)


def output_is_not_synced(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Segment, "flush", lambda self: None)


def groups_are_swapped_newest_first(patch: pytest.MonkeyPatch) -> None:
    real = Compaction._choose

    def choose(self: Compaction) -> None:
        if self.next_step == "map":
            self._groups.reverse()
        real(self)

    patch.setattr(Compaction, "_choose", choose)


def originals_are_not_gone_durably(patch: pytest.MonkeyPatch) -> None:
    """The second of three syncs is left out: the output may get a name that an original has."""
    real = SimDisk.fsync_dir
    calls = 0

    def fsync_dir(self: SimDisk, path: Any) -> None:
        nonlocal calls
        if sys._getframe(1).f_code.co_name == "replace_segments":
            calls += 1
            if calls % 3 == 2:
                return
        real(self, path)

    real_replace = CleanableLog.replace_segments

    def replace_segments(self: CleanableLog, *args: Any) -> None:
        nonlocal calls
        calls = 0
        real_replace(self, *args)

    patch.setattr(SimDisk, "fsync_dir", fsync_dir)
    patch.setattr(CleanableLog, "replace_segments", replace_segments)


def newest_batch_of_a_producer_goes(patch: pytest.MonkeyPatch) -> None:
    real = Sieve.sift

    def sift(self: Sieve, *args: Any, is_last: bool) -> Any:
        self.origins.newest.clear()
        return real(self, *args, is_last=is_last)

    patch.setattr(Sieve, "sift", sift)


# Producers -------------------------------------------------------------------------------------


def snapshot_of_a_roll_before_the_cut_is_synced(patch: pytest.MonkeyPatch) -> None:
    sync_cut, take = PartitionLog._sync_cut, PartitionLog._take_snapshot

    def take_first(self: PartitionLog, segment: Segment) -> None:
        if sys._getframe(1).f_code.co_name == "_roll":
            take(self)
        sync_cut(self, segment)

    patch.setattr(PartitionLog, "_sync_cut", take_first)


def snapshot_lacks_the_last_batch(patch: pytest.MonkeyPatch) -> None:
    """The state is taken before the batch in front of the roll is noted."""
    real = SnapshotFiles.write

    def write(self: SnapshotFiles, offset: int, producers: Any) -> bool:
        early = {
            producer_id: entry._replace(
                batches=tuple(one for one in entry.batches if one.last_offset < offset - 1)
            )
            for producer_id, entry in producers.items()
        }
        return real(self, offset, early)

    patch.setattr(SnapshotFiles, "write", write)


def state_forgets_where_producers_begin(patch: pytest.MonkeyPatch) -> None:
    real = state.state_fields
    patch.setattr(state, "state_fields", lambda s: real(evolve(s, producers_from=None)))


# A broker's directory --------------------------------------------------------------------------


def checkpoint_knows_only_what_it_was_given(patch: pytest.MonkeyPatch) -> None:
    def write_high_watermarks(self: LogDir, offsets: Any) -> None:
        self._write_offsets(log_dir.HIGH_WATERMARK_FILE, offsets)
        self._high_watermarks = dict(offsets)

    patch.setattr(LogDir, "write_high_watermarks", write_high_watermarks)


def recovery_point_is_the_log_end(patch: pytest.MonkeyPatch) -> None:
    def write_recovery_points(self: LogDir) -> None:
        ends = {name: log.leo for name, log in self._logs.items()}
        self._write_offsets(log_dir.RECOVERY_POINT_FILE, ends)

    patch.setattr(LogDir, "write_recovery_points", write_recovery_points)


def log_start_checkpoint_stays_above_a_truncation(patch: pytest.MonkeyPatch) -> None:
    real = LogDir._write_offsets

    def write_offsets(self: LogDir, name: str, offsets: Any) -> None:
        if name != LOG_START_FILE or sys._getframe(1).f_code.co_name != "_save_state":
            real(self, name, offsets)

    patch.setattr(LogDir, "_write_offsets", write_offsets)


def cleaned_offset_stays_above_a_truncation(patch: pytest.MonkeyPatch) -> None:
    real = LogDir._save_state

    def save_state(self: LogDir, name: Any, state: Any) -> None:
        cleaned = max(self._cleaned.get(name, 0), state.cleaned_offset)
        real(self, name, evolve(state, cleaned_offset=cleaned))

    patch.setattr(LogDir, "_save_state", save_state)


def marker_goes_first(patch: pytest.MonkeyPatch) -> None:
    """It is written before the checkpoints that it follows."""
    real = LogDir.write_log_starts

    def write_log_starts(self: LogDir) -> None:
        if sys._getframe(1).f_code.co_name == "close":
            self._write_marker(7)
        real(self)

    patch.setattr(LogDir, "write_log_starts", write_log_starts)


PLANTED = (
    Planted(
        "files gone before the log start is durable",
        files_go_before_the_log_start,
        "retention by bytes",
        "files before this one are missing",
    ),
    Planted(
        "files gone before the log start is durable, work pending",
        files_go_before_the_log_start,
        "retention by time, work pending",
        "files before this one are missing",
    ),
    Planted(
        "retention takes a raised log start back",
        retention_forgets_a_start_above_its_own,
        "retention below a raised log start",
        "log start is 4",
    ),
    Planted(
        "log start saved above the durable end",
        log_start_is_saved_above_the_durable_end,
        "raise the log start above the durable end",
        "does not open",
    ),
    Planted(
        "log start saved without the flush up to it",
        does_nothing(DurableLog, "_complete", caller="_persist"),
        "raise the log start, lead anew, work pending",
        "log start is 5",
    ),
    Planted(
        "swap without declaring holes",
        holes_are_declared_in_memory,
        "compact",
        "does not open",
    ),
    Planted(
        "swap without syncs of the directory",
        without(SimDisk, "fsync_dir", caller="replace_segments"),
        "compact, work pending",
        "does not open",
    ),
    Planted(
        "originals not gone durably before the output has their name",
        originals_are_not_gone_durably,
        "compact",
        "overlaps",
    ),
    Planted("output of compaction not synced", output_is_not_synced, "compact", "does not open"),
    Planted(
        "groups swapped newest first",
        groups_are_swapped_newest_first,
        "compact",
        "was deleted at 5 and came back",
    ),
    Planted(
        "hole not bridged after a truncation",
        does_nothing(PartitionLog, "_bridge_hole"),
        "compact, truncate into a hole",
        "was never written",
    ),
    Planted(
        "swap believed before its name is durable",
        without(SimDisk, "fsync_dir", caller="finish_swaps"),
        "open after a kill in a swap at call 10",
        "files before this one are missing",
    ),
    Planted(
        "newest batch of a producer compacted away",
        newest_batch_of_a_producer_goes,
        "producers, compact, lose snapshots",
        "known is",
    ),
    Planted(
        "snapshot kept above a truncation",
        does_nothing(SnapshotFiles, "drop", ()),
        "producers, truncate below a snapshot",
        "knows producers",
    ),
    Planted(
        "snapshot kept above a truncation, no replay due",
        does_nothing(PartitionLog, "_drop_snapshots_above", caller="truncate_to"),
        "producers, truncate below the first of them",
        "producers are",
    ),
    Planted(
        "snapshots kept over a full truncation",
        does_nothing(PartitionLog, "_drop_snapshots_above", caller="truncate_fully_and_start_at"),
        "producers, truncate fully",
        "producers are",
    ),
    Planted(
        "snapshot removed without the directory's sync",
        without(SimDisk, "fsync_dir", caller="drop"),
        "producers, truncate behind a clean close",
        "producers are",
    ),
    Planted(
        "snapshot over a cut that is not durable",
        snapshot_of_a_roll_before_the_cut_is_synced,
        "producers, truncate and roll",
        "producers are",
    ),
    Planted(
        "snapshot taken too early",
        snapshot_lacks_the_last_batch,
        "producers append and roll",
        "producers are",
    ),
    Planted(
        "snapshot taken too early, found by a clean open",
        snapshot_lacks_the_last_batch,
        "producers close",
        "producers are",
    ),
    Planted(
        "boundary that forgets where producers begin",
        state_forgets_where_producers_begin,
        "producers open without snapshots",
        "producers are",
    ),
    Planted(
        "broker's checkpoint renamed before its sync",
        rule_off("fsync_before_rename"),
        "write a broker's checkpoints",
        "cannot be read",
    ),
    Planted(
        "broker's checkpoint without the directory's sync",
        without(SimDisk, "fsync_dir", caller="replace_file"),
        "write a broker's checkpoints",
        "high watermarks",
    ),
    Planted(
        "checkpoint that forgets other partitions",
        checkpoint_knows_only_what_it_was_given,
        "write a broker's checkpoints",
        "high watermarks",
    ),
    Planted(
        "recovery point ahead of the durable end",
        recovery_point_is_the_log_end,
        "write a broker's checkpoints",
        "recovery points",
    ),
    Planted(
        "marker before the checkpoints", marker_goes_first, "close a broker's directory", "a marker"
    ),
    Planted(
        "marker over logs that were not flushed",
        does_nothing(DurableLog, "_complete", caller="close"),
        "close a broker's directory",
        "a marker",
    ),
    Planted(
        "marker left in place",
        rule_off("remove_marker_before_load"),
        "open a broker's directory, rewrite",
        "broker epoch of the marker",
    ),
    Planted(
        "log start checkpoint above a truncation",
        log_start_checkpoint_stays_above_a_truncation,
        "truncate below a checkpointed log start",
        "does not open",
    ),
    Planted(
        "cleaned offset above a truncation",
        cleaned_offset_stays_above_a_truncation,
        "truncate below the cleaned offset",
        "cleaned offset is",
    ),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_crash_proof_finds_it(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    check_found(planted, monkeypatch)
