"""Rows 48 to 53 of STORAGE.md E.2: what opening makes of outputs that compaction left behind.

Method: one pass over a real log gives the files before and after. Each test puts a directory
together from both, damages it as the row says, and opens it in both modes: it must hold the old
content or the new, to the byte, and nothing else. A refusal must change nothing on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from storage.batch import RecordBatch
from storage.compaction import compact
from storage.errors import CorruptLog, DiskError
from storage.memdisk import MemDisk
from storage.mkb1 import encode_batch
from storage.partition_log import PartitionLog
from storage.recovery import Verify
from storage.state import BOUNDARY_FILE, SEAL_FILE
from tests.storage.cleaning import (
    DIRECTORY,
    SMALL,
    batches_of,
    build,
    data,
    files_of,
    open_log,
    rows_of,
    spans_of,
    write_file,
)
from tests.storage.faults import FaultDisk
from tests.storage.name_cuts import CutDisk

Files = Mapping[str, bytes]
VERIFY: tuple[Verify, ...] = ("all", "unflushed")
FIRST, SECOND, THIRD, ACTIVE = (f"{base:020d}" for base in (0, 3, 5, 8))


def make(disk: MemDisk) -> PartitionLog:
    """Closed segments 0 to 3, 3 to 5, 5 to 8, and the active one at 8; the pass merges all three.

    Left are 1 of the first, 4 of the second, 5 and 7 of the third.
    """
    return build(
        [data((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))],
        [data((b"c", b"2")), data((b"d", b"1"))],
        [data((b"a", b"2")), data((b"c", None)), data((b"c", b"3"))],
        disk=disk,
    )


@cache
def before() -> Files:
    disk = MemDisk()
    make(disk).abandon()
    return files_of(disk)


@cache
def after() -> Files:
    disk = MemDisk()
    log = make(disk)
    compact(log, 8, now_ms=0)
    assert spans_of(log) == [(0, 8), (8, 9)]
    log.abandon()
    return files_of(disk)


@cache
def old_batches() -> tuple[RecordBatch, ...]:
    return tuple(batches_of(open_log(disk_of(before()))))


@cache
def new_batches() -> tuple[RecordBatch, ...]:
    return tuple(batches_of(open_log(disk_of(after()))))


def disk_of(files: Files) -> MemDisk:
    disk = MemDisk()
    disk.mkdir(DIRECTORY)
    for name, content in files.items():
        write_file(disk, name, content)
    return disk


def swap_of(log: bytes | None = None, base: str = FIRST) -> dict[str, bytes]:
    """The output of the pass under the names it has until its originals are gone."""
    content = after()[f"{FIRST}.log"] if log is None else log
    indexes = {f"{base}.{kind}.swap": after()[f"{FIRST}.{kind}"] for kind in ("index", "timeindex")}
    return {f"{base}.log.swap": content, **indexes}


def declared(files: Files) -> dict[str, bytes]:
    """With the boundary file of the log after the pass, which declares the holes."""
    return {**files, BOUNDARY_FILE: after()[BOUNDARY_FILE]}


def without(
    files: Files, *stems: str, kinds: tuple[str, ...] = ("log", "index", "timeindex")
) -> dict[str, bytes]:
    gone = {f"{stem}.{kind}" for stem in stems for kind in kinds}
    return {name: content for name, content in files.items() if name not in gone}


def check_new(files: Files) -> None:
    """The swap is finished: the new content in one segment, nothing left over, and it stays so."""
    for verify in VERIFY:
        disk = disk_of(files)
        log = open_log(disk, verify=verify)
        assert log.report.swapped == (f"{FIRST}.log",)
        assert log.report.cuts == ()
        assert tuple(batches_of(log)) == new_batches()
        check_sound(log, disk, [(0, 8), (8, 9)])


def check_old(files: Files, *removed: str) -> None:
    """The swap is dropped and the originals are as they were."""
    for verify in VERIFY:
        disk = disk_of(files)
        log = open_log(disk, verify=verify)
        assert log.report.swapped == ()
        assert log.report.cuts == ()
        assert set(log.report.removed) >= set(removed)
        assert tuple(batches_of(log)) == old_batches()
        kept = {name: content for name, content in before().items() if name.startswith("0")}
        assert {n: c for n, c in files_of(disk).items() if n.startswith("0")} == kept
        check_sound(log, disk, [(0, 3), (3, 5), (5, 8), (8, 9)])


def check_sound(log: PartitionLog, disk: MemDisk, spans: list[tuple[int, int]]) -> None:
    assert spans_of(log) == spans
    stems = {f"{base:020d}" for base, _ in spans}
    names = {name for name in files_of(disk) if name.startswith("0")}
    assert names == {f"{stem}.{kind}" for stem in stems for kind in ("log", "index", "timeindex")}
    log.append(data((b"new", b"v")))
    batches = batches_of(log)
    log.close()
    again = open_log(disk)
    report = again.report
    assert report.is_clean
    assert (report.cuts, report.rebuilt, report.removed, report.swapped) == ((), (), (), ())
    assert batches_of(again) == batches


# Row 49: a complete swap -----------------------------------------------------------------------


def test_complete_swap_beside_its_originals_is_finished() -> None:
    check_new(declared({**before(), **swap_of()}))


@pytest.mark.parametrize(
    "gone",
    [(FIRST,), (SECOND,), (THIRD,), (FIRST, THIRD), (SECOND, THIRD), (FIRST, SECOND, THIRD)],
    ids=lambda stems: "+".join(stem[-1] for stem in stems),
)
def test_complete_swap_without_some_originals_is_finished(gone: tuple[str, ...]) -> None:
    check_new(declared({**without(before(), *gone), **swap_of()}))


@pytest.mark.parametrize("kind", ["log", "index", "timeindex"])
def test_complete_swap_with_originals_half_renamed_is_finished(kind: str) -> None:
    files = without(before(), FIRST, THIRD, kinds=(kind,))
    deleted = {f"{FIRST}.{kind}.deleted": before()[f"{FIRST}.{kind}"]}
    check_new(declared({**files, **deleted, **swap_of()}))


def test_complete_swap_needs_no_indexes() -> None:
    check_new(declared({**before(), f"{FIRST}.log.swap": after()[f"{FIRST}.log"]}))


def test_index_of_a_complete_swap_is_not_believed() -> None:
    wrong = {f"{FIRST}.index.swap": b"\0" * 16, f"{FIRST}.timeindex.swap": b"junk"}
    check_new(declared({**before(), **swap_of(), **wrong}))


def test_output_in_place_before_its_indexes_is_the_log() -> None:
    """The last step of a swap, of which a power cut kept only the name of the log file."""
    files = without(before(), FIRST, SECOND, THIRD)
    indexes = {name: content for name, content in swap_of().items() if "index" in name}
    disk = disk_of(declared({**files, f"{FIRST}.log": after()[f"{FIRST}.log"], **indexes}))
    log = open_log(disk)
    assert set(log.report.removed) == set(indexes)
    assert tuple(batches_of(log)) == new_batches()
    check_sound(log, disk, [(0, 8), (8, 9)])


def test_swap_of_the_first_segments_only_leaves_the_others() -> None:
    part = b"".join(encode_batch(b) for b in old_batches()[:2]) + encode_batch(
        RecordBatch((), (), 0, 4, 0)
    )
    disk = disk_of(declared({**before(), f"{FIRST}.log.swap": part}))
    log = open_log(disk)
    assert spans_of(log) == [(0, 5), (5, 8), (8, 9)]
    assert [b.base_offset for b in batches_of(log)] == [0, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("of", [before, after], ids=["originals", "output"])
def test_seal_does_not_vouch_for_a_swap(of: Callable[[], Files]) -> None:
    """Whoever closed the log had finished its swap."""
    disk = disk_of(of())
    open_log(disk).close()
    files = declared({**before(), **swap_of(), SEAL_FILE: files_of(disk)[SEAL_FILE]})
    for verify in VERIFY:
        assert not open_log(disk_of(files), verify=verify).report.is_clean
    check_new(files)


@pytest.mark.parametrize("kinds_gone", [(), ("log",)], ids=["all-there", "log-gone"])
def test_originals_and_their_indexes_are_gone_durably_before_the_output_takes_their_name(
    kinds_gone: tuple[str, ...],
) -> None:
    files = without(declared({**before(), **swap_of()}), FIRST, kinds=kinds_gone)
    disk = FaultDisk(disk_of(files))
    open_log(disk)
    kinds = ("unlink", "rename", "fsync_dir")
    calls = [f"{c.operation} {c.name} {c.args}".strip() for c in disk.calls if c.operation in kinds]
    gone = [
        f"unlink {stem}.{kind}"
        for stem in (FIRST, SECOND, THIRD)
        for kind in ("log", "index", "timeindex")
    ]
    placed = f"rename {FIRST}.log.swap {FIRST}.log"
    synced = "fsync_dir log"
    assert calls[: len(gone) + 4] == [synced, *gone, synced, placed, synced]


# Row 50: part of an incomplete set -------------------------------------------------------------


@pytest.mark.parametrize("kind", ["log", "index", "timeindex"])
def test_swap_with_a_cleaned_file_at_its_base_is_dropped(kind: str) -> None:
    cleaned = {f"{FIRST}.{kind}.cleaned": b"half"}
    check_old(declared({**before(), **swap_of(), **cleaned}), f"{FIRST}.log.swap", *cleaned)


def test_swap_with_a_cleaned_file_below_its_base_is_dropped() -> None:
    third = after()[f"{FIRST}.log"]
    whole = b"".join(encode_batch(b) for b in old_batches() if 5 <= (b.base_offset or 0) < 8)
    assert third != whole
    cleaned = {f"{FIRST}.log.cleaned": b""}
    swap = {f"{THIRD}.log.swap": whole}
    check_old(declared({**before(), **swap, **cleaned}), f"{THIRD}.log.swap", *cleaned)


def test_swap_with_a_cleaned_file_above_its_base_is_finished() -> None:
    check_new(declared({**before(), **swap_of(), f"{SECOND}.log.cleaned": b"half"}))


def test_cleaned_files_alone_are_dropped() -> None:
    """Row 48: whatever they hold, they were not complete."""
    cleaned = {name.replace(".swap", ".cleaned"): content for name, content in swap_of().items()}
    check_old(declared({**before(), **cleaned}), *cleaned)


# Rows 51 and 52: a torn or corrupt swap --------------------------------------------------------


def test_swap_torn_at_any_length_is_dropped() -> None:
    """Whole frames that happen to end where an original begins are a compaction up to there."""
    whole = after()[f"{FIRST}.log"]
    partial = {}
    for number, batch in enumerate(new_batches()[:-2], 1):
        if batch.next_offset in (3, 5):
            size_bytes = sum(len(encode_batch(found)) for found in new_batches()[:number])
            rest = [
                found for found in old_batches() if (found.base_offset or 0) >= batch.next_offset
            ]
            partial[size_bytes] = [*new_batches()[:number], *rest]
    assert len(partial) == 2
    for size_bytes in range(len(whole)):
        files = declared({**before(), **swap_of(whole[:size_bytes])})
        if size_bytes in partial:
            assert batches_of(open_log(disk_of(files))) == partial[size_bytes]
        else:
            check_old(files, f"{FIRST}.log.swap")


def test_swap_with_any_byte_flipped_is_dropped() -> None:
    whole = after()[f"{FIRST}.log"]
    for position in range(len(whole)):
        content = bytearray(whole)
        content[position] ^= 0x10
        check_old(declared({**before(), **swap_of(bytes(content))}), f"{FIRST}.log.swap")


def test_swap_with_bytes_behind_its_last_batch_is_dropped() -> None:
    check_old(declared({**before(), **swap_of(after()[f"{FIRST}.log"] + b"\0")}))


@pytest.mark.parametrize("damage", ["torn", "corrupt"])
@pytest.mark.parametrize("gone", [(FIRST,), (SECOND,), (FIRST, SECOND, THIRD)])
@pytest.mark.parametrize("verify", VERIFY)
def test_damaged_swap_without_its_originals_refuses_and_changes_nothing(
    damage: str, gone: tuple[str, ...], verify: Verify
) -> None:
    content = bytearray(after()[f"{FIRST}.log"])
    content[-1] ^= 1
    swap = swap_of(bytes(content if damage == "corrupt" else content[:-1]))
    files = declared({**without(before(), *gone), **swap})
    disk = disk_of(files)
    for _ in range(2):
        with pytest.raises(CorruptLog):
            open_log(disk, verify=verify)
        assert files_of(disk) == files


# A swap that does not fit ----------------------------------------------------------------------


def test_swap_with_holes_that_were_not_declared_is_dropped() -> None:
    check_old({**before(), **swap_of()}, f"{FIRST}.log.swap")


def test_swap_that_ends_inside_an_original_is_dropped() -> None:
    frames = b"".join(encode_batch(b) for b in old_batches()[:2])
    check_old(declared({**before(), **swap_of(frames)}), f"{FIRST}.log.swap")


def test_swap_that_begins_inside_an_original_is_dropped() -> None:
    inside = b"".join(encode_batch(b) for b in old_batches() if 4 <= (b.base_offset or 0) < 8)
    name = f"{4:020d}.log.swap"
    check_old(declared({**before(), name: inside}), name)


def test_swap_below_its_own_name_is_dropped() -> None:
    check_old(declared({**before(), **swap_of(base=SECOND)}), f"{SECOND}.log.swap")


def test_swap_with_an_epoch_that_falls_is_dropped() -> None:
    batches = [b.assign(b.base_offset or 0, 9 - (b.base_offset or 0)) for b in old_batches()]
    frames = b"".join(encode_batch(b) for b in batches if (b.base_offset or 0) < 8)
    check_old(declared({**before(), **swap_of(frames)}), f"{FIRST}.log.swap")


def test_swap_behind_everything_else_must_end_where_its_originals_end() -> None:
    """The boundary is unknown and the active segment gone: nothing says where the log ends."""
    files = without(before(), ACTIVE)
    del files[BOUNDARY_FILE]
    whole = b"".join(encode_batch(b) for b in old_batches()[:6])
    for content, is_finished in ((whole, True), (whole[: len(whole) - 1], False)):
        log = open_log(disk_of({**files, f"{FIRST}.log.swap": content}))
        assert bool(log.report.swapped) == is_finished
        assert log.leo == 8
        assert tuple(batches_of(log)) == old_batches()[:6]


def test_swap_that_is_all_there_is_is_the_log() -> None:
    whole = b"".join(encode_batch(b) for b in old_batches()[:6])
    log = open_log(disk_of({f"{FIRST}.log.swap": whole}))
    assert tuple(batches_of(log)) == old_batches()[:6]


def test_link_named_like_a_swap_is_left_alone() -> None:
    disk = disk_of(before())
    disk.symlink(DIRECTORY / f"{FIRST}.log.swap", Path("/elsewhere"))
    log = open_log(disk)
    assert log.report.ignored == (f"{FIRST}.log.swap",)
    assert tuple(batches_of(log)) == old_batches()


# Row 53: an index without its log --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_index_swap_without_log_swap_is_dropped(kind: str) -> None:
    """Kafka renames it over the good one."""
    name = f"{FIRST}.{kind}.swap"
    check_old(declared({**before(), name: b"\0" * 24}), name)


# The verdict on the rest -----------------------------------------------------------------------


def test_refusal_for_other_damage_leaves_the_swap_as_it_was() -> None:
    active = bytearray(before()[f"{ACTIVE}.log"])
    active[-1] ^= 1
    files = declared({**before(), **swap_of(), f"{ACTIVE}.log": bytes(active)})
    disk = disk_of(files)
    with pytest.raises(CorruptLog) as raised:
        open_log(disk)
    assert raised.value.last_good_offset == 8
    assert files_of(disk) == files
    log = PartitionLog.salvage(DIRECTORY, raised.value, SMALL, disk=disk)
    assert (log.leo, tuple(batches_of(log))) == (8, new_batches()[:-1])
    assert not [name for name in files_of(disk) if name.endswith(".swap")]


def test_refusal_for_a_swap_names_the_file_that_it_would_become() -> None:
    """So that salvage finds it: its epoch is below that of the segment before it."""
    first = encode_batch(data((b"x", b"1")).assign(0, 7))
    moved = [b.assign((b.base_offset or 0) + 1, 0) for b in old_batches()[:6]]
    files = {
        **without(declared(before()), FIRST, SECOND, THIRD, ACTIVE),
        f"{0:020d}.log": first,
        f"{1:020d}.log.swap": b"".join(map(encode_batch, moved)),
        f"{9:020d}.log": encode_batch(data((b"y", b"1")).assign(9, 7)),
    }
    disk = disk_of(files)
    with pytest.raises(CorruptLog, match="epoch") as raised:
        open_log(disk)
    assert raised.value.file.name == f"{1:020d}.log"
    assert files_of(disk) == files
    log = PartitionLog.salvage(DIRECTORY, raised.value, SMALL, disk=disk)
    assert rows_of(log) == [(0, b"x", b"1")]


def test_damage_in_an_original_does_not_matter_once_the_swap_is_complete() -> None:
    broken = before()[f"{SECOND}.log"][:-1] + b"\xff"
    check_new(declared({**before(), f"{SECOND}.log": broken, **swap_of()}))


# Finishing is interrupted ----------------------------------------------------------------------


@pytest.mark.parametrize("is_good", [True, False], ids=["finished", "dropped"])
def test_opening_stopped_at_any_disk_call_comes_to_the_same(is_good: bool) -> None:
    swap = swap_of() if is_good else swap_of(after()[f"{FIRST}.log"][:-1])
    files = declared({**before(), **swap})
    operations = [
        call.operation for call in recorded_opening(files) if call.operation not in ("lock", "stat")
    ]
    for operation in sorted(set(operations)):
        for at in range(1, operations.count(operation) + 1):
            inner = disk_of(files)
            disk = FaultDisk(inner)
            disk.fail(operation, at=at, times=None)
            with suppress(DiskError, CorruptLog):
                open_log(disk).abandon()
            disk.plans.clear()
            left = {n: c for n, c in files_of(inner).items() if not n.endswith(".tmp")}
            wanted = new_batches() if is_good else old_batches()
            assert tuple(batches_of(open_log(disk_of(left)))) == wanted


def recorded_opening(files: Files) -> list:
    disk = FaultDisk(disk_of(files))
    open_log(disk).abandon()
    return disk.calls


@pytest.mark.parametrize("is_good", [True, False], ids=["finished", "dropped"])
def test_power_cut_during_opening_comes_to_the_same(is_good: bool) -> None:
    swap = swap_of() if is_good else swap_of(after()[f"{FIRST}.log"][:-1])
    disk = CutDisk()
    disk.mkdir(DIRECTORY)
    for name, content in declared({**before(), **swap}).items():
        file = disk.open(DIRECTORY / name, create=True)
        file.write_at(0, content)
        file.fsync()
    disk.fsync_dir(DIRECTORY)
    wanted = new_batches() if is_good else old_batches()
    seen = set()

    def check() -> None:
        for image in disk.images():
            files = frozenset(files_of(image).items())
            if files not in seen:
                seen.add(files)
                assert tuple(batches_of(open_log(image))) == wanted

    disk.watch = check
    log = open_log(disk)
    check()
    for image in disk.images():
        assert not [name for name in files_of(image) if name.endswith(".log.swap")]
    log.abandon()


def test_power_cut_while_opening_finishes_what_a_dead_process_had_just_named_swap() -> None:
    """It had not synced the directory: the cut may take the name, but then not the originals."""
    disk = CutDisk()
    disk.mkdir(DIRECTORY)
    cleaned = {name.replace(".swap", ".cleaned"): data for name, data in swap_of().items()}
    for name, content in declared({**before(), **cleaned}).items():
        file = disk.open(DIRECTORY / name, create=True)
        file.write_at(0, content)
        file.fsync()
    disk.fsync_dir(DIRECTORY)
    for name in reversed(cleaned):
        disk.rename(DIRECTORY / name, DIRECTORY / name.replace(".cleaned", ".swap"))
    seen = set()

    def check() -> None:
        for image in disk.images():
            files = frozenset(files_of(image).items())
            if files not in seen:
                seen.add(files)
                assert tuple(batches_of(open_log(image))) in (old_batches(), new_batches())

    disk.watch = check
    log = open_log(disk)
    check()
    assert tuple(batches_of(log)) == new_batches()
    log.abandon()
