"""The steps of a compaction, what may happen between them, and what happens when one fails.

That every prefix of the disk calls opens is in ``tests.storage.test_compaction_crash``.
"""

from __future__ import annotations

import copy
from errno import EIO, ENOSPC
from pathlib import Path

import pytest
from attrs import define

from storage.compaction import Compaction
from storage.config import CompactionPolicy, LogConfig
from storage.errors import CorruptBatch, DiskFull, FsyncFailed, LogClosed, LogOffline
from storage.memdisk import MemDisk
from storage.survivors import Counts
from tests.storage.cleaning import (
    ONE_EACH,
    SMALL,
    build,
    data,
    files_of,
    open_log,
    rows_of,
    run,
    spans_of,
)
from tests.storage.faults import FaultDisk, Plan
from tests.storage.name_cuts import CutDisk

# Steps -----------------------------------------------------------------------------------------


def steps_of(compaction: Compaction) -> list[str]:
    names = []
    while compaction.next_step != "done":
        names.append(compaction.next_step)
        compaction.step()
    assert not compaction.step()
    return names


def test_steps_are_visible_and_nothing_happens_between_them() -> None:
    disk = FaultDisk(MemDisk())
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=ONE_EACH, disk=disk)
    disk.calls.clear()
    compaction = Compaction(log, log.leo, now_ms=0)
    assert disk.calls == []
    assert compaction.result.counts == Counts()
    # The second segment does not change, so it is only read.
    assert steps_of(compaction) == ["survey", "map", "write", "swap", "write", "note"]
    assert Compaction(build(), 0, now_ms=0).next_step == "done"


def test_gaps_are_declared_and_every_name_is_synced_in_order() -> None:
    disk = FaultDisk(MemDisk())
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=SMALL, disk=disk)
    disk.calls.clear()
    run(log)
    kinds = ("rename", "fsync_dir", "fsync")
    seen = [c for c in disk.calls if c.operation in kinds]
    names = [f"{c.operation} {c.name} {c.args}".replace("0" * 19, "").strip() for c in seen]
    synced = [f"fsync 0.{kind}.cleaned" for kind in ("log", "index", "timeindex")]
    assert names[:3] == synced
    save = ["fsync boundary.tmp", "rename boundary.tmp boundary", "fsync_dir log"]
    to_swap = [f"rename 0.{kind}.cleaned 0.{kind}.swap" for kind in ("timeindex", "index", "log")]
    away = [
        f"rename {base}.{kind} {base}.{kind}.deleted"
        for base in (0, 1)
        for kind in ("log", "index", "timeindex")
    ]
    into_place = [f"rename 0.{kind}.swap 0.{kind}" for kind in ("timeindex", "index", "log")]
    order = [*save, *to_swap, "fsync_dir log", *away, "fsync_dir log", *into_place, "fsync_dir log"]
    assert names[3 : 3 + len(order)] == order
    assert names[3 + len(order) :] == save, "the cleaned offset is noted last"


def test_originals_are_deleted_by_pending_work() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=SMALL)
    log._runs_pending = False
    run(log)
    work = log.take_pending()
    assert [item.kind for item in work] == ["delete", "delete", "persist"]
    names = {name for name in files_of(log._disk) if name.endswith(".deleted")}
    assert names == {*work[0].args, *work[1].args}
    for item in work:
        log.run(item)
    assert not [name for name in files_of(log._disk) if name.endswith(".deleted")]
    assert rows_of(log)[0] == (1, b"a", b"2")


def test_appends_and_reads_go_on_between_the_steps() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=ONE_EACH)
    compaction = Compaction(log, log.leo, now_ms=0)
    added = 0
    while compaction.step():
        log.append(data((b"new%d" % added, b"v")))
        added += 1
        assert len(log.fetch(0, 100)) == len(log.fetch(1, 100)) + (log.fetch(0, 1)[0].offset == 0)
        log.flush()
    assert not compaction.result.is_abandoned
    assert len(rows_of(log)) == 2 + added


@pytest.mark.parametrize("step", ["map", "write", "swap", "note"])
def test_pass_ends_where_the_log_was_cut_under_it(step: str) -> None:
    """The value that displaces another is cut off: the older one must stay."""
    log = build([data((b"a", b"1"))], [data((b"b", b"1"))], [data((b"a", b"2"))], config=ONE_EACH)
    compaction = Compaction(log, 3, now_ms=0)
    while compaction.next_step != step:
        compaction.step()
    swapped = compaction.result.segments_before
    log.truncate_to(2)
    for _ in range(3):
        log.append(data((b"c", b"1")))
    log.flush()
    assert not compaction.step()
    assert (compaction.next_step, compaction.result.is_abandoned) == ("done", True)
    assert compaction.result.segments_before == swapped
    assert log.cleaned_offset <= 2
    assert not [name for name in files_of(log._disk) if name.endswith(".cleaned")]
    if step != "note":
        assert rows_of(log)[0] == (0, b"a", b"1")


def test_pass_ends_where_retention_took_its_segments() -> None:
    log = build([data((b"a", b"1"))], [data((b"b", b"1"))], [data((b"a", b"2"))])
    compaction = Compaction(log, log.leo, now_ms=0)
    compaction.step()
    log.delete_old_segments(log.leo, retention_bytes=log.size_bytes - log.segments[0].size_bytes)
    assert not compaction.step()
    assert compaction.result.is_abandoned
    assert run(log).is_complete


def test_two_passes_at_once_do_not_mix() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))])
    first, second = (Compaction(log, log.leo, now_ms=0) for _ in range(2))
    while second.next_step != "swap":
        second.step()
    while first.step():
        pass
    assert not second.step()
    assert second.result.is_abandoned
    assert rows_of(log)[0] == (1, b"a", b"2")


def test_pass_can_be_copied_with_its_log_between_any_two_steps() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=ONE_EACH)
    state = (log, Compaction(log, log.leo, now_ms=0))
    while state[1].next_step != "done":
        log, compaction = copy.deepcopy(state)
        while compaction.step():
            pass
        assert [row[2] for row in rows_of(log)] == [b"2", b"active"]
        assert len(rows_of(state[0])) in (2, 3)
        state[1].step()


def test_outputs_that_an_earlier_pass_left_go_before_anything_else() -> None:
    """Such a file at or below the base of a swap would have the swap dropped."""
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))])
    compaction = Compaction(log, log.leo, now_ms=0)
    while compaction.next_step != "swap":
        compaction.step()
    assert f"{0:020d}.log.cleaned" in files_of(log._disk)
    Compaction(log, log.leo, now_ms=0).step()
    assert not [name for name in files_of(log._disk) if name.endswith(".cleaned")]


# Failures --------------------------------------------------------------------------------------


def test_full_disk_while_writing_gives_the_space_back_and_can_be_tried_again() -> None:
    disk = FaultDisk(MemDisk())
    log = build([data((b"a", b"1" * 50))], [data((b"a", b"2" * 50))], disk=disk)
    before = files_of(disk.inner)
    disk.fail("write_at", suffix=".log.cleaned", errno=ENOSPC, partial_bytes=10)
    compaction = Compaction(log, log.leo, now_ms=0)
    with pytest.raises(DiskFull):
        steps_of(compaction)
    assert files_of(disk.inner) == before
    assert (log.failure, compaction.next_step) == (None, "write")
    assert steps_of(compaction) == ["write", "swap", "note"]
    assert rows_of(log)[0][2] == b"2" * 50


def test_failed_fsync_of_an_output_is_no_failure_of_the_log() -> None:
    disk = FaultDisk(MemDisk())
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], disk=disk)
    disk.fail("fsync", suffix=".index.cleaned", errno=EIO)
    with pytest.raises(FsyncFailed):
        run(log)
    assert log.failure is None
    log.append(data((b"b", b"1")))
    assert run(log).is_complete


@define
class RottingDisk(FaultDisk):
    """Changes one byte of every ``.log.cleaned`` while it is synced, and says nothing."""

    def record(self, operation: str, path: Path, args: str = "", *others: Path) -> Plan | None:
        if operation == "fsync" and path.name.endswith(".log.cleaned"):
            self.inner.open(path).write_at(40, b"\x55")
        return super().record(operation, path, args, *others)


def test_output_that_does_not_read_back_is_dropped_and_the_log_is_as_it_was() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], disk=RottingDisk(MemDisk()))
    before = files_of(log._disk)
    with pytest.raises(CorruptBatch, match="output"):
        run(log)
    assert files_of(log._disk) == before
    assert log.failure is None


@pytest.mark.parametrize("suffix", [".log.swap", ".log.deleted"])
def test_failed_swap_takes_the_log_offline_and_opening_settles_it(suffix: str) -> None:
    disk = FaultDisk(MemDisk())
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], disk=disk)
    disk.fail("rename", suffix=suffix, errno=EIO)
    with pytest.raises(Exception, match="rename"):
        run(log)
    with pytest.raises(LogOffline):
        log.append(data((b"b", b"1")))
    log.abandon()
    again = open_log(disk.inner)
    is_old = suffix == ".log.swap"
    assert [row[2] for row in rows_of(again)][:1] == ([b"1"] if is_old else [b"2"])
    assert again.report.swapped == (() if is_old else (f"{0:020d}.log",))


def test_closed_log_is_not_compacted() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))])
    compaction = Compaction(log, log.leo, now_ms=0)
    log.close()
    with pytest.raises(LogClosed):
        compaction.step()


def test_negative_limit_is_the_callers_mistake() -> None:
    with pytest.raises(ValueError, match="limit_offset"):
        run(build(), limit=-1)


@pytest.mark.parametrize(
    "limits",
    [{"delete_retention_ms": -1}, {"keys_max": 0}, {"key_bytes_max": 0}, {"keys_max": True}],
)
def test_policy_out_of_range_is_the_callers_mistake(limits: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(limits))):
        CompactionPolicy(**limits)


def test_only_what_lies_before_the_boundary_can_be_replaced() -> None:
    """The check stands at the swap too, whatever a caller brings along."""
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))])
    output = log.create_output(0, 1)
    output.append(data((b"a", b"1")).assign(0, 0))
    for sources in (log.segments[1:2], log.segments[:2], log.segments[1:]):
        with pytest.raises(ValueError, match=r"output|sources"):
            log.replace_segments(sources, output)
    log.truncate_to(1)
    with pytest.raises(ValueError, match="sources"):
        log.replace_segments(log.segments, output)


# What else holds on to a segment ---------------------------------------------------------------


def test_slice_of_a_segment_that_was_compacted_is_gone() -> None:
    """Its place may hold other frames by now, whole ones even."""
    log = build([data((b"a", b"1"))], [data((b"a", b"2")), data((b"b", b"1"))])
    place = log.slice_range(0, 1_000)
    assert len(log.read_slice(place)) == place.size_bytes
    run(log)
    with pytest.raises(CorruptBatch, match="gone"):
        log.read_slice(place)
    assert log.read_slice(log.slice_range(0, 1_000))


def test_flush_that_was_begun_before_a_swap_completes_after_it() -> None:
    """Its tokens are of the files that had the names then."""
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=SMALL, disk=CutDisk())
    for segment in log.segments:
        segment.writes += 1
    token = log.begin_flush()
    run(log)
    assert spans_of(log)[0] == (0, 2)
    log.complete_flush(token)
    log.append(data((b"b", b"1")))
    log.flush()
    assert log.boundary.end_offset == log.leo


def test_many_closed_segments_share_few_open_files() -> None:
    config = LogConfig(segment_max_bytes=100, open_files_max=2)
    log = build(*([data((b"a", b"%d" % n))] for n in range(9)), config=config)
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"8", b"active"]


def test_new_file_under_an_old_name_is_synced_though_the_old_one_was() -> None:
    """Both had as many writes, and the notes of what is synced go by the segment's base."""
    disk = CutDisk()
    disk.mkdir(Path("/log"))
    log = open_log(disk)
    log.append(data((b"old", b"1")))
    log.flush()
    log.truncate_fully_and_start_at(0)
    log.append(data((b"new", b"1")))
    log.flush()
    assert log.boundary.end_offset == 1
    for image in disk.images():
        assert rows_of(open_log(image)) == [(0, b"new", b"1")]
