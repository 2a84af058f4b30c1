"""Rows 70 and 71 of STORAGE.md E.2: an operation that stops behind any of its disk calls.

Method: run the operation once for each of its disk calls, let that call fail, or that call and all
behind it as at the end of the process, and open what is left. The log must open at an end that the
order of the operation allows, with every batch below it. What a power cut does to unsynced bytes
and names is the simulator's to try (rows 68 and 72).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from attrs import define, frozen

from storage.errors import CorruptLog, StorageError
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.storage.damage import (
    CLOSED,
    CONFIG,
    COUNT,
    EPOCHS,
    FLUSHED,
    FRAME,
    FRAMES,
    UNFLUSHED,
    Damage,
    Place,
    State,
    batch,
    both,
    drop,
    flip,
    flushed,
    frame,
    image,
    log_name,
    nothing,
    segment_names,
    shorten,
)
from tests.storage.damage_outcomes import (
    VERIFY,
    check_files,
    check_read_back,
    check_sound,
    open_log,
    refusal,
)
from tests.storage.faults import FaultDisk, Plan

DIRECTORY = Path("/log")
EIO = 5


@define
class StopDisk(FaultDisk):
    """Fails its call number ``stop_at``, counted from 1, and with ``dies`` all behind it.

    A failing write stores half of its bytes where ``tears`` is set, else none.
    """

    stop_at: int = 0
    dies: bool = False
    tears: bool = False

    def record(self, operation: str, path: Path, args: str = "", *others: Path) -> Plan | None:
        super().record(operation, path, args, *others)
        number = len(self.calls)
        if not self.stop_at or number < self.stop_at or (number > self.stop_at and not self.dies):
            return None
        size = int(args.rpartition("size_bytes=")[2]) if self.tears and "size_bytes=" in args else 0
        return Plan(operation, "", 1, EIO, size // 2 if number == self.stop_at else 0, None)


@frozen
class Operation:
    """What is stopped.

    Attributes:
        ends: allowed (log start, log end) pairs behind it.
        run: on a log that is open, or None where opening is itself the operation.
        log_after: the frames that a log with first batch and end must have.
        salvages: the opening is a salvage.
        sees_every_end: each allowed end is left behind by some call, else the sweep is too weak.
    """

    row: int
    name: str
    state: State
    ends: frozenset[tuple[int, int]]
    run: Callable[[PartitionLog], object] | None = None
    damage: Damage = nothing
    log_after: Callable[[int, int], tuple[bytes, ...]] = lambda start, end: FRAMES[start:end]
    salvages: bool = False
    sees_every_end: bool = True

    @property
    def id(self) -> str:
        return f"row{self.row}-{self.name}-{self.state.label}"


def ends(*pairs: tuple[int, int]) -> frozenset[tuple[int, int]]:
    return frozenset(pairs)


def to(*log_ends: int) -> frozenset[tuple[int, int]]:
    return frozenset((0, end) for end in log_ends)


def appended(start: int, end: int) -> tuple[bytes, ...]:
    return (*FRAMES, frame(COUNT, epoch=6), frame(COUNT + 1, epoch=7))[start:end]


def roll_and_append(log: PartitionLog) -> None:
    log.append(batch(COUNT))
    log.roll()
    log.become_leader(7)
    log.append(batch(COUNT + 1))


OPERATIONS = [
    *[
        Operation(
            70, f"truncate-to-{target}", state, allowed, lambda log, t=target: log.truncate_to(t)
        )
        for state in (FLUSHED, flushed(60), UNFLUSHED)
        for target, allowed in (
            (89, to(89, 90)),
            (75, to(75, 90)),
            (60, to(60, 90)),
            (45, to(45, 60, 90)),
            (30, to(30, 60, 90)),
            (0, to(0, 30, 60, 90)),
        )
    ],
    *[
        Operation(
            70,
            f"start-anew-at-{offset}",
            state,
            ends((0, 0), (0, 30), (0, 60), (0, 90), (offset, offset)),
            lambda log, o=offset: log.truncate_fully_and_start_at(o),
        )
        for state in (FLUSHED, UNFLUSHED)
        for offset in (0, 20, 200)
    ],
    Operation(
        70,
        "start-anew-below-the-start",
        State(log_start=50),
        ends((50, 90), (0, 90), (0, 60), (0, 30), (0, 0), (10, 10)),
        lambda log: log.truncate_fully_and_start_at(10),
    ),
    Operation(
        70,
        "truncate-below-the-start",
        State(log_start=50),
        ends((50, 90), (45, 90), (45, 60), (45, 45)),
        lambda log: log.truncate_to(45),
    ),
    Operation(70, "open-with-cut", UNFLUSHED, to(40), None, flip(40)),
    Operation(
        70,
        "open-with-cut-and-seal",
        CLOSED,
        to(90),
        None,
        both(
            shorten(log_name(30), 30 * FRAME),
            lambda place: place.edit(log_name(60), lambda data: data.extend(b"xyz")),
        ),
    ),
    Operation(
        70,
        "open-with-junk",
        FLUSHED,
        to(90),
        None,
        lambda place: place.edit(log_name(30), lambda data: data.extend(b"x")),
    ),
    Operation(70, "open-clean", CLOSED, to(90)),
    Operation(70, "salvage-middle", FLUSHED, to(40), None, flip(40), salvages=True),
    Operation(
        70,
        "salvage-missing-segment",
        FLUSHED,
        to(30),
        None,
        drop(*segment_names(30)),
        salvages=True,
    ),
    # A boundary that cannot be read in that moment is unknown, and the log start with it (row 57).
    Operation(
        70,
        "salvage-nothing-good",
        FLUSHED,
        ends((0, 0)),
        None,
        drop(*segment_names(0)),
        salvages=True,
    ),
    Operation(71, "roll", FLUSHED, to(90), lambda log: log.roll()),
    Operation(71, "roll", UNFLUSHED, to(90), lambda log: log.roll()),
    Operation(
        71, "append-roll-append", FLUSHED, to(90, 91, 92), roll_and_append, log_after=appended
    ),
    Operation(
        71, "append-roll-append", UNFLUSHED, to(90, 91, 92), roll_and_append, log_after=appended
    ),
    Operation(71, "flush", UNFLUSHED, to(90), lambda log: log.flush()),
    Operation(71, "close", UNFLUSHED, to(90), lambda log: log.close()),
    Operation(71, "close", FLUSHED, to(90), lambda log: log.close()),
    Operation(
        71,
        "log-start",
        FLUSHED,
        ends((0, 90), (50, 90)),
        lambda log: log.raise_log_start_offset(50),
    ),
]


@pytest.mark.parametrize("operation", [pytest.param(one, id=one.id) for one in OPERATIONS])
def test_an_operation_may_stop_behind_any_disk_call(operation: Operation) -> None:
    left: set[frozenset[tuple[str, bytes]]] = set()
    seen = set()
    for dies, tears in ((True, False), (True, True), (False, False)):
        for number in range(1, 500):
            disk = StopDisk(MemDisk(), dies=dies, tears=tears)
            place = Place.of(disk, DIRECTORY, image(operation.state))
            operation.damage(place)
            is_over = stop_at(operation, disk, place, number)
            files = frozenset(place.files().items())
            if files not in left:
                left.add(files)
                where = f"call {number}, {dies=}, {tears=}"
                seen.add(check_left(operation, Place(disk.inner, DIRECTORY), where))
            if is_over:
                break
        else:
            pytest.fail("more than 500 disk calls")
    if operation.sees_every_end:
        assert seen == operation.ends


def stop_at(operation: Operation, disk: StopDisk, place: Place, number: int) -> bool:
    """Run the operation so that disk call ``number`` fails; whether it made fewer calls."""
    log = None
    error = refusal(place, "all") if operation.salvages else None
    if operation.run is not None:
        log = open_log(place)
    disk.calls.clear()
    disk.stop_at = number
    try:
        if log is not None:
            assert operation.run is not None
            operation.run(log)
        elif error is not None:
            log = PartitionLog.salvage(DIRECTORY, error, CONFIG, disk=disk)
        else:
            log = open_log(place, "unflushed")
    except StorageError:
        pass
    is_over = len(disk.calls) < number
    disk.stop_at = 0
    if log is not None:
        if log.failure is None and not log._is_closed:
            check_read_back(log, operation.log_after(first_of(log), log.leo))
        log.abandon()
    return is_over


def first_of(log: PartitionLog) -> int:
    """The first batch in the files: the log start may hide some."""
    return log.segments[0].base_offset


def check_left(operation: Operation, place: Place, where: str) -> tuple[int, int]:
    """Open what is left, in both modes; start and end of the log found."""
    found = set()
    for verify in VERIFY if not operation.salvages else ("all",):
        copy = Place(place.disk.copy(), DIRECTORY)  # type: ignore[attr-defined]
        try:
            log = open_log(copy, verify)
        except CorruptLog as error:
            if not operation.salvages:
                raise
            log = PartitionLog.salvage(DIRECTORY, error, CONFIG, disk=copy.disk)
        start, end = log.log_start_offset, log.leo
        frames = operation.log_after(first_of(log), end)
        check_read_back(log, frames)
        check_files(log, copy, frames)
        found.add((start, end))
        if verify == "all":
            entries = log.epochs.entries
            check_sound(log, copy, frames, start=start, epochs=entries)
            wanted = {entry for entry in entries if entry[1] < end}
            assert wanted <= {*EPOCHS, (7, 91), (1, start), (5, start)}, where
        log.abandon()
    assert len(found) == 1, f"{where}: {found}"
    assert found <= operation.ends, where
    return found.pop()
