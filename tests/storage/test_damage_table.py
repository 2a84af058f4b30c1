"""The 75 cases of STORAGE.md E.2, one test or more for each: the specification of recovery.

A row that is a matter of bytes and files is data (``damage_rows``, ``damage_files``,
``damage_derived``): build the log, damage it, open it, compare. Sweeps, interrupted operations,
disk errors, the broker's directory and logs with producers have modules of their own; every test
there carries the row in its id or name. ``ELSEWHERE`` lists what cannot be said of one log by
itself; the last tests here prove that no row is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType

import pytest

from storage.disk import OsDisk
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.state import SEAL_FILE
from tests.storage import (
    test_damage_disk_errors,
    test_damage_interrupted,
    test_damage_log_dir,
    test_damage_sweeps,
    test_producer_recovery,
)
from tests.storage.damage import (
    CLOSED,
    CONFIG,
    COUNT,
    EPOCHS,
    FLUSHED,
    FRAMES,
    UNFLUSHED,
    Place,
    build,
    decoded,
    flushed,
    frame,
    frames_of,
    image,
    log_name,
    make_place,
    record,
)
from tests.storage.damage_derived import derived_cases
from tests.storage.damage_files import file_cases
from tests.storage.damage_outcomes import VERIFY, Case, check_case, check_sound, open_log
from tests.storage.damage_rows import byte_cases
from tests.storage.faults import FaultDisk

DIRECTORY = Path("/log")
CASES = [*byte_cases(), *file_cases(), *derived_cases()]
ON_FILES = (FLUSHED, flushed(60))

ELSEWHERE: Mapping[int, tuple[str, str]] = {
    15: ("the Kafka v2 codec", "the magic byte itself; here the version byte stands for it"),
    16: ("the Kafka v2 codec", "message formats 0 and 1 of Kafka"),
    49: ("compaction", "a complete swap is finished only if it verifies"),
    50: ("compaction", "a swap beside output that was not complete"),
    51: ("compaction", "a torn swap is dropped, the originals stay"),
    52: ("compaction", "a damaged swap is dropped, the originals stay"),
    53: ("compaction", "an index swap without its log is dropped"),
    61: ("transactions", "an index with another version is derived anew once there are indexes"),
    62: ("transactions", "a ragged or missing index is derived anew once there are indexes"),
    68: ("the simulator's crash images", "names that no fsync of the directory covered"),
    70: ("the simulator's crash images", "unsynced bytes; stops between the calls are tested here"),
    71: ("the simulator's crash images", "unsynced bytes; stops between the calls are tested here"),
    72: ("the simulator's crash images", "a rename whose directory was never synced"),
}
"""Row: where the rest of it goes, and what that is."""


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in CASES])
def test_damage_in_memory(case: Case) -> None:
    check_case(case, Place.of(MemDisk(), DIRECTORY, image(case.state)))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.id)
        for case in CASES
        if case.verify == "all" and case.state in ON_FILES
    ],
)
def test_damage_on_real_files(case: Case, tmp_path: Path) -> None:
    check_case(case, make_place("os", tmp_path, image(case.state)))


@pytest.mark.parametrize("state", [CLOSED, FLUSHED, UNFLUSHED], ids=lambda state: state.label)
def test_the_log_that_is_damaged_is_the_same_on_real_files(state: object, tmp_path: Path) -> None:
    """The cases copy files that were written in memory; these are the files of a real log."""
    assert state in (CLOSED, FLUSHED, UNFLUSHED)
    place = Place(OsDisk(), tmp_path / "log")
    log = build(place.disk, place.directory, state)  # type: ignore[arg-type]
    if state == CLOSED:
        log.close()
    else:
        log.abandon()
    assert place.files() == image(state)  # type: ignore[arg-type]
    again = open_log(place)
    assert again.report.is_clean == (state == CLOSED)
    check_sound(again, place, FRAMES)


# Rows that need more than one opening ----------------------------------------------------------


def test_row55_the_seal_is_gone_durably_before_the_log_is_read() -> None:
    disk = FaultDisk(MemDisk())
    place = Place.of(disk, DIRECTORY, image(CLOSED))
    disk.calls.clear()
    log = open_log(place, "unflushed")
    operations = [(call.operation, call.name) for call in disk.calls]
    gone = operations.index(("unlink", SEAL_FILE))
    synced = operations.index(("fsync_dir", DIRECTORY.name))
    reads = [at for at, call in enumerate(operations) if call[0] == "open" and ".log" in call[1]]
    assert gone < synced < min(reads)
    assert SEAL_FILE not in place.names()
    log.append_replica_batch(frame(COUNT, epoch=6))
    log.abandon()
    again = open_log(place, "unflushed")
    assert not again.report.is_clean
    check_sound(again, place, (*FRAMES, frame(COUNT, epoch=6)))


def test_row09_a_huge_length_allocates_nothing_like_it() -> None:
    """A length is bounded by the file and by max_batch_bytes before it is believed."""
    asked: list[int] = []

    class Watching(FaultDisk):
        def record(self, operation: str, path: Path, args: str = "", *others: Path) -> None:
            if "size_bytes=" in args:
                asked.append(int(args.rpartition("size_bytes=")[2]))

    place = Place.of(Watching(MemDisk()), DIRECTORY, image(UNFLUSHED))
    for length in (0x7FFF_FFFF, (16 << 20) - 12):
        place.edit(
            log_name(60),
            lambda data, n=length: data.__setitem__(slice(964, 968), n.to_bytes(4, "big")),
        )
        asked.clear()
        log = open_log(place)
        assert log.leo == 70
        log.abandon()
        assert max(asked) <= 4 * CONFIG.segment_max_bytes


HOLES = (*range(10), *range(20, 28), *range(40, 45), *range(64, 90))
"""Offsets that are left of a compacted log; its leader declared the rest gone."""


def compacted() -> tuple[Place, PartitionLog]:
    place = Place(MemDisk(), DIRECTORY)
    log = PartitionLog.open(DIRECTORY, CONFIG, disk=place.disk)
    log.declare_gaps(64)
    for number in HOLES:
        log.append_replica_batch(FRAMES[number])
    log.flush()
    return place, log


@pytest.mark.parametrize(
    "target",
    [
        pytest.param(n, id=f"row74-truncate-to-{n}")
        for n in (0, 5, 10, 15, 19, 20, 28, 40, 50, 64, 70)
    ],
)
def test_a_compacted_log_is_truncated_at_any_offset(target: int) -> None:
    """The log ends at the target even where no batch did, and loses no batch below it."""
    place, log = compacted()
    log.truncate_to(target)
    assert log.leo == target
    log.abandon()
    for verify in VERIFY:
        again = open_log(place, verify)
        assert again.leo == target
        assert again.report.cuts == ()
        kept = [record.offset for record in again.fetch(0, 1_000)]
        assert kept == [number for number in HOLES if number < target]
        again.abandon()
    last = open_log(place)
    frames = [body for s in last.segments for body in frames_of(place.read(s.log_path.name))]
    assert [body for body in frames if decoded(body).records] == [
        FRAMES[number] for number in HOLES if number < target
    ]
    entries = tuple(entry for entry in last.epochs.entries)
    assert entries[: 1 if target else 0] == (EPOCHS[:1] if target else ())
    last.append(decoded(FRAMES[target]))
    last.close()
    for verify in VERIFY:
        again = open_log(place, verify)
        assert (again.leo, again.report.is_clean, again.report.rebuilt) == (target + 1, True, ())
        assert [found.offset for found in again.fetch(target, 1)] == [target]
        again.close()


def test_row75_the_time_index_rises_whatever_the_clock_did() -> None:
    times = [1_000, 900, 1_100, 500, 1_100, 1_050, 1_200, 10, 1_201, 1_199] * 9
    frames = []
    place = Place(MemDisk(), DIRECTORY)
    log = PartitionLog.open(DIRECTORY, CONFIG, disk=place.disk)
    for number, time in enumerate(times):
        found = record(number)._replace(timestamp_ms=time)
        log.append(decoded(FRAMES[0]).unassigned((found,)))
        frames.append(log.read_range(number, 1_000))
    for wanted in (0, 10, 500, 901, 1_000, 1_100, 1_101, 1_200, 1_201, 1_202):
        first = next((number for number, time in enumerate(times) if time >= wanted), None)
        found_at = log.offset_for_timestamp(wanted)
        assert (found_at.offset if found_at else None) == first
    log.abandon()
    again = open_log(place)
    assert again.report.rebuilt == ()
    check_sound(again, place, frames)


# No row is missing -----------------------------------------------------------------------------

ROWS = range(1, 76)
_ROW = re.compile(r"(?:test_)?row(\d+)[-_]")


def ids_of_tests(modules: Iterable[ModuleType | Mapping[str, object]]) -> list[str]:
    """Names and parameter ids of the test functions, as pytest collects them."""
    ids = []
    for module in modules:
        names = module if isinstance(module, Mapping) else vars(module)
        for name, function in names.items():
            if not name.startswith("test_") or not callable(function):
                continue
            ids.append(name)
            for mark in getattr(function, "pytestmark", []):
                if mark.name == "parametrize":
                    ids += [value.id for value in mark.args[1] if getattr(value, "id", None)]
    return ids


def rows_of(ids: Iterable[str]) -> set[int]:
    """The rows that ids and names claim."""
    return {int(match[1]) for name in ids if (match := _ROW.match(name))}


def untested_rows(ids: Iterable[str], elsewhere: Mapping[int, tuple[str, str]]) -> list[int]:
    """Rows that are neither tested nor listed."""
    return sorted(set(ROWS) - rows_of(ids) - set(elsewhere))


def all_ids() -> list[str]:
    others = (
        test_damage_disk_errors,
        test_damage_interrupted,
        test_damage_log_dir,
        test_damage_sweeps,
        test_producer_recovery,
    )
    return ids_of_tests([globals(), *others])


def test_every_row_is_tested_or_listed() -> None:
    ids = all_ids()
    assert untested_rows(ids, ELSEWHERE) == []
    assert rows_of(ids) | set(ELSEWHERE) == set(ROWS)
    assert all(where and what for where, what in ELSEWHERE.values())


def test_a_row_that_is_dropped_is_noticed() -> None:
    ids = all_ids()
    for row in rows_of(ids) - set(ELSEWHERE):
        without = [name for name in ids if rows_of([name]) != {row}]
        assert untested_rows(without, ELSEWHERE) == [row]
    for row in set(ELSEWHERE) - rows_of(ids):
        listed = {number: text for number, text in ELSEWHERE.items() if number != row}
        assert untested_rows(ids, listed) == [row]


def test_case_ids_are_unique_and_both_sides_of_the_boundary_are_there() -> None:
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))
    outcomes: dict[int, set[str]] = {}
    for case in CASES:
        outcomes.setdefault(case.row, set()).add(type(case.outcome).__name__)
    two_sided = (5, 6, 7, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 22, 23, 24, 25, 26, 73)
    for row in two_sided:
        assert {"Opens", "Refuses"} <= outcomes[row], f"row {row}"
    for row in (6, 7, 18):
        assert "Trusts" in outcomes[row], f"row {row}"
