"""The crash proof finds known faults: each is planted, and a named case must report it.

Without this a proof that judges nothing would pass. Tried and left out, because a correct history
cannot show them:

* Salvage that lowers the boundary after cutting: a crash in between leaves a log that refuses as
  before ("the log ends at ..., but ... was durable"), and salvage is simply done again.
* An epoch file that is never written, or written late: opening compares it with the batches and
  derives it anew ("epoch file believed" is the guard that matters).
* Removal of the clean-close seal without a sync of the directory: whatever could make a log fit the
  seal again lowers the boundary first, and that syncs the directory.
* Segments dropped first to last: the boundary is below them by then, so a hole may be cut.
"""

from __future__ import annotations

import sys
from typing import Any

import pytest
from attrs import evolve

from sim.disks import SimDisk
from storage import opening, partition_log
from storage.errors import StorageError
from storage.log_durability import DurableLog, FlushToken
from storage.partition_log import PartitionLog
from storage.segment import Segment
from storage.segment_indexes import SegmentIndexes
from tests.crash.planting import Planted, check_found, rule_off, without

pytestmark = pytest.mark.slow


# The faults ------------------------------------------------------------------------------------


def flush_skips_the_log_file(patch: pytest.MonkeyPatch) -> None:
    def complete_fsync(self: Segment, tokens: tuple[int, int, int], _: int) -> None:
        self.index.complete_fsync(tokens[1])
        self.time_index.complete_fsync(tokens[2])

    patch.setattr(Segment, "complete_fsync", complete_fsync)


def flush_covers_what_came_later(patch: pytest.MonkeyPatch) -> None:
    """The boundary goes to the log's end at completion, not to where the flush began."""
    real = DurableLog.complete_flush

    def complete_flush(self: DurableLog, token: FlushToken) -> None:
        later = evolve(token, boundary=self._boundary_now())
        self._flushes[token.id] = (later, self._flushes[token.id][1])
        real(self, later)

    patch.setattr(DurableLog, "complete_flush", complete_flush)


def truncation_forgets_outstanding_flushes(patch: pytest.MonkeyPatch) -> None:
    real = DurableLog._lower

    def lower(self: DurableLog, boundary: Any, *, min_start: int) -> None:
        before = dict(self._flushes)
        real(self, boundary, min_start=min_start)
        self._flushes.update(before)

    patch.setattr(DurableLog, "_lower", lower)


def roll_forgets_the_cut(patch: pytest.MonkeyPatch) -> None:
    def sync_cut(self: PartitionLog, segment: Segment) -> None:
        segment.undurable_cut = None

    patch.setattr(PartitionLog, "_sync_cut", sync_cut)


def flush_forgets_a_later_cut(patch: pytest.MonkeyPatch) -> None:
    real = Segment.complete_fsync

    def complete_fsync(self: Segment, tokens: tuple[int, int, int], writes: int) -> None:
        real(self, tokens, max(writes, self.writes))

    patch.setattr(Segment, "complete_fsync", complete_fsync)


def opening_forgets_the_cut(patch: pytest.MonkeyPatch) -> None:
    """What a dead process cut from the active segment need not be durable."""
    real = opening.open_parts

    def open_parts(*args: Any) -> Any:
        opened = real(*args)
        opened.segments[-1].undurable_cut = None
        return opened

    patch.setattr(partition_log, "open_parts", open_parts)


def indexes_stay_as_they_are(patch: pytest.MonkeyPatch) -> None:
    real = SegmentIndexes._matching

    def matching(self: SegmentIndexes, kind: Any, path: Any, keys: Any, values: Any) -> Any:
        try:
            return kind.open(path, self._base_offset, disk=self._disk)
        except StorageError:
            return real(self, kind, path, keys, values)

    patch.setattr(SegmentIndexes, "_matching", matching)


def opening_cuts_nothing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening, "_cut", lambda *_: None)


def opening_ends_the_log_at_its_index(patch: pytest.MonkeyPatch) -> None:
    real = Segment.adopt

    def adopt(self: Segment, scan: Any, resume: Any, *, is_active: bool) -> None:
        real(self, scan, resume, is_active=is_active)
        entries = self.index.entries
        if is_active and entries:
            offset, position = entries[-1]
            self.truncate_to(position, offset, self.measure(position, offset))

    patch.setattr(Segment, "adopt", adopt)


def left_overs_go_last(patch: pytest.MonkeyPatch) -> None:
    """They may bear the names of indexes that opening has just created."""
    real_remove, real_open = opening.remove_if_there, opening.open_parts
    late: list[tuple[Any, Any]] = []

    def remove(disk: Any, path: Any) -> None:
        if sys._getframe(1).f_code.co_name == "_open_found":
            late.append((disk, path))
        else:
            real_remove(disk, path)

    def open_parts(*args: Any) -> Any:
        late.clear()
        opened = real_open(*args)
        for disk, path in late:
            real_remove(disk, path)
        return opened

    patch.setattr(opening, "remove_if_there", remove)
    patch.setattr(partition_log, "open_parts", open_parts)


PLANTED = (
    Planted(
        "boundary lowered after the cut",
        rule_off("lower_boundary_first"),
        "truncate durable records",
        "was durable",
    ),
    Planted(
        "boundary raised without a sync",
        rule_off("boundary_after_fsync"),
        "open after a kill",
        "does not open",
    ),
    Planted(
        "checkpoint renamed before its sync",
        rule_off("fsync_before_rename"),
        "raise the log start",
        "does not open",
    ),
    Planted(
        "epoch file believed",
        rule_off("verify_epochs_at_open"),
        "truncate an epoch away, work pending",
        "leader-epoch-checkpoint",
    ),
    Planted(
        "clean-close seal left in place",
        rule_off("remove_marker_before_load"),
        "open after a close, rewrite",
        "index of segment",
        "unflushed",
    ),
    Planted(
        "flush without the log's sync", flush_skips_the_log_file, "flush", "batches are missing"
    ),
    Planted(
        "flush without the directory's sync",
        without(SimDisk, "fsync_dir", caller="_complete"),
        "roll and flush, work pending",
        "was durable",
    ),
    Planted(
        "checkpoint without the directory's sync",
        without(SimDisk, "fsync_dir", caller="replace_file"),
        "truncate durable records",
        "was durable",
    ),
    Planted(
        "flush that claims what came later",
        flush_covers_what_came_later,
        "flush in two calls",
        "was durable",
    ),
    Planted(
        "truncation that forgets outstanding flushes",
        truncation_forgets_outstanding_flushes,
        "truncate during a flush",
        "does not open",
    ),
    Planted(
        "dropped segments' names not synced",
        without(SimDisk, "fsync_dir", caller="truncate_to"),
        "truncate and overrun a border",
        "overlaps",
    ),
    Planted(
        "roll over a cut that is not durable", roll_forgets_the_cut, "truncate and roll", "overlaps"
    ),
    Planted(
        "roll over a cut that an earlier flush does not cover",
        flush_forgets_a_later_cut,
        "roll behind a cut in a flush",
        "overlaps",
    ),
    Planted(
        "roll over a dead process's cut",
        opening_forgets_the_cut,
        "truncate, killed, then roll",
        "overlaps",
    ),
    Planted(
        "indexes not rebuilt", indexes_stay_as_they_are, "append with rolls", "index of segment"
    ),
    Planted(
        "recovery that cuts nothing",
        opening_cuts_nothing,
        "open with a torn tail",
        "a second open changes things",
    ),
    Planted(
        "log end taken from the index",
        opening_ends_the_log_at_its_index,
        "append",
        "offset 4 was durable",
    ),
    Planted("left-over files removed last", left_overs_go_last, "truncate fully", "rebuilt="),
)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_the_crash_proof_finds_it(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    check_found(planted, monkeypatch)
