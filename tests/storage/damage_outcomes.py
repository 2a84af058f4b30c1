"""What opening a damaged log must come to, and the check of everything that follows from it.

``Opens``, ``Refuses``, ``Trusts`` and ``Raises`` are the outcomes of a case. Their checks go on
until the log is sound again: whatever survived is read back and compared with what was written,
derived files with the oracles, an append works, and the next opening finds nothing to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from attrs import field, frozen

from storage.config import LogConfig
from storage.epochs import EPOCH_FILE
from storage.errors import CorruptLog, StorageError
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.recovery import Cut, Verify
from storage.state import SEAL_FILE
from tests.storage.damage import (
    BASES,
    CONFIG,
    COUNT,
    EPOCHS,
    FRAME,
    FRAMES,
    Damage,
    Place,
    State,
    batch,
    decoded,
    derived_of,
    epochs_of,
    frames_of,
    log_name,
    position_of,
)

DERIVED = (".index", ".timeindex")
ANY_OFFSET = -1
"""For ``Refuses.behind`` where the table leaves it open."""


@frozen
class CutAt:
    """One cut that the report must have.

    Attributes:
        base: the segment.
        batches: whole batches that stay in it.
        size_bytes: all bytes that go, dropped files included.
        ranges: whole batches among them as (base offset, next offset), exactly; with ``covers``,
            every one of these offsets must lie in some reported range.
        offset: the log's end after it, where that is not the segment's.
    """

    base: int
    batches: int
    size_bytes: int
    ranges: tuple[tuple[int, int], ...] = ()
    covers: bool = False
    offset: int | None = None

    def check_place(self, cut: Cut) -> None:
        assert cut.file.name == log_name(self.base)
        assert cut.position == self.batches * FRAME
        assert cut.size_bytes == self.size_bytes
        assert cut.offset == (self.base + self.batches if self.offset is None else self.offset)
        assert cut.reason

    def check_ranges(self, cut: Cut) -> None:
        seen = [(found.base_offset, found.next_offset) for found in cut.whole_ranges]
        if self.covers:
            wanted = {offset for start, end in self.ranges for offset in range(start, end)}
            missed = wanted - {offset for start, end in seen for offset in range(start, end)}
            assert not missed, f"whole batches {sorted(missed)} go and are not reported: {seen}"
        else:
            assert seen == list(self.ranges)


@frozen
class Opens:
    """The log opens.

    Attributes:
        end: log end offset.
        start: log start offset.
        frames: what survives; by default the batches from ``first`` to ``end``.
        cuts, dropped (segment bases), removed, ignored: of the report, exactly.
        warnings: how many.
        keeps_seal: whether a clean close still counts as clean.
        epochs: entries, where they are not just what the batches say.
        lazy: a wrong index may be found on first use instead of on opening.
    """

    end: int = COUNT
    start: int = 0
    first: int = 0
    frames: tuple[bytes, ...] | None = None
    cuts: tuple[CutAt, ...] = ()
    dropped: tuple[int, ...] = ()
    removed: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    warnings: int = 0
    keeps_seal: bool = False
    epochs: tuple[tuple[int, int], ...] | None = None
    lazy: bool = False


@frozen
class Refuses:
    """``CorruptLog``; nothing but the seal changes, and salvage keeps exactly the good prefix.

    Attributes:
        base: the segment that is named, None for the directory.
        position: in bytes.
        good: end of the good prefix.
        behind: first whole batch behind the damage.
        says: words that the message must contain.
        or_at: another segment and position that say the same.
        first: the first batch that salvage keeps.
        start: log start offset.
        epochs: after salvage, where they are not just what the batches say.
    """

    base: int | None
    position: int
    good: int
    behind: int | None
    says: tuple[str, ...] = ()
    or_at: tuple[int, int] | None = None
    first: int = 0
    start: int = 0
    epochs: tuple[tuple[int, int], ...] | None = None


@frozen
class Trusts:
    """Damage below what ``unflushed`` walks: the log opens whole, reading meets the damage.

    Nothing is cut, and ``verify="all"`` refuses. ``bad`` is the damaged batch.
    """

    bad: int
    behind: int
    reads_raise: bool = True


@frozen
class Raises:
    """Another error, before anything was touched; ``undo`` takes the offending file away."""

    kind: type[StorageError]
    name: str
    undo: Damage


@frozen
class Case:
    """One row of the table, one variant, one state, one ``verify`` mode."""

    row: int
    name: str
    state: State
    verify: Verify
    damage: Damage
    outcome: Opens | Refuses | Trusts | Raises
    config: LogConfig = field(default=CONFIG)

    @property
    def id(self) -> str:
        """Such as ``row06-middle-of-active-flipped-flushed90-all``."""
        return f"row{self.row:02d}-{self.name}-{self.state.label}-{self.verify}"


VERIFY: tuple[Verify, ...] = ("all", "unflushed")


def variants(
    row: int,
    name: str,
    damage: Damage,
    outcome: Opens | Refuses | Trusts | Raises,
    *states: State,
    verify: Sequence[Verify] = VERIFY,
) -> list[Case]:
    """The same damage and outcome in each state and mode."""
    return [Case(row, name, state, mode, damage, outcome) for state in states for mode in verify]


# Checks ----------------------------------------------------------------------------------------


def open_log(place: Place, verify: Verify = "all") -> PartitionLog:
    return PartitionLog.open(place.directory, CONFIG, disk=place.disk, verify=verify)


def check_case(case: Case, place: Place) -> None:
    """Damage, open, and check all that the outcome says."""
    case.damage(place)
    before = place.files()
    match case.outcome:
        case Opens():
            check_opens(case.outcome, place, case, before)
        case Refuses():
            check_refuses(case.outcome, place, case.verify, before)
        case Trusts():
            check_trusts(case.outcome, place, before)
        case Raises():
            with pytest.raises(case.outcome.kind) as raised:
                open_log(place, case.verify)
            assert isinstance(raised.value, case.outcome.kind)
            assert getattr(raised.value, "path").name == case.outcome.name  # noqa: B009
            assert place.files() == before
            case.outcome.undo(place)
            log = open_log(place, case.verify)
            check_sound(log, place, FRAMES)


def check_opens(outcome: Opens, place: Place, case: Case, before: Mapping[str, bytes]) -> None:
    check_append_first(place, case.verify, outcome.end)
    log = open_log(place, case.verify)
    report = log.report
    frames = outcome.frames
    if frames is None:
        frames = FRAMES[outcome.first : outcome.end]
    assert log.leo == outcome.end
    assert log.log_start_offset == outcome.start
    assert report.is_clean == (case.state.closed and outcome.keeps_seal)
    assert len(report.cuts) == len(outcome.cuts), report.cuts
    for cut, wanted in zip(report.cuts, outcome.cuts, strict=True):
        wanted.check_place(cut)
    assert report.dropped == tuple(log_name(base) for base in outcome.dropped)
    assert report.removed == outcome.removed
    assert report.ignored == outcome.ignored
    warnings = outcome.warnings + (not case.state.knows_boundary)
    assert len(report.warnings) == warnings, report.warnings
    check_read_back(log, frames, by_offset=True)
    check_rebuilt(log, place, before, is_lazy=outcome.lazy)
    check_sound(
        log, place, frames, start=outcome.start, epochs=outcome.epochs, ignored=outcome.ignored
    )
    for cut, wanted in zip(report.cuts, outcome.cuts, strict=True):
        wanted.check_ranges(cut)


def check_append_first(place: Place, verify: Verify, end: int) -> None:
    """On a copy: the very first call may be an append, before any read opened a file."""
    if isinstance(place.disk, MemDisk):
        log = open_log(Place(place.disk.copy(), place.directory), verify)
        assert log.append(batch(end)).base_offset == end
        assert [found.offset for found in log.fetch(end, 1)] == [end]
        log.abandon()


def check_rebuilt(
    log: PartitionLog, place: Place, before: Mapping[str, bytes], *, is_lazy: bool
) -> None:
    """The report names the derived files that differed, all of them and no other.

    A segment that opening began has files of its own, and none to rebuild.
    """
    wrong = {
        name
        for name, data in derived_of(place).items()
        if before.get(name) != data and name.partition(".")[0] + ".log" in before
    }
    noted = {name for name in log.report.rebuilt if name != EPOCH_FILE}
    if is_lazy:
        noted |= {name for segment in log.segments for name in segment.rebuilt}
    assert noted == wrong
    changed = before.get(EPOCH_FILE) != place.files().get(EPOCH_FILE)
    assert (EPOCH_FILE in log.report.rebuilt) == changed


def check_read_back(log: PartitionLog, frames: Sequence[bytes], *, by_offset: bool = False) -> None:
    """Every surviving record is there, by a scan and, if asked, by a look-up of its offset."""
    start = log.log_start_offset
    batches = [decoded(body) for body in frames]
    records = [
        (found.base_offset + delta, *record, found.leader_epoch)
        for found in batches
        for delta, record in zip(found.offset_deltas, found.records, strict=True)
        if found.base_offset + delta >= start
    ]
    assert [tuple(found) for found in log.fetch(start, 10_000)] == records
    for wanted in records if by_offset else ():
        assert [tuple(found) for found in log.fetch(wanted[0], 1)] == [wanted]
    assert log.fetch(log.leo, 10) == []
    raw, offset = b"", start
    while data := log.read_range(offset, 1_000):
        raw += data
        offset = decoded(frames_of(data)[-1]).next_offset
    held = [body for body, found in zip(frames, batches, strict=True) if found.next_offset > start]
    assert raw == b"".join(held)


def check_files(log: PartitionLog, place: Place, frames: Sequence[bytes]) -> None:
    """Log files hold the surviving frames and no other byte; indexes are what these demand."""
    logs = {name: data for name, data in place.files().items() if name.endswith(".log")}
    assert b"".join(logs[name] for name in sorted(logs)) == b"".join(frames)
    assert sorted(logs) == [segment.log_path.name for segment in log.segments]
    for name, data in logs.items():
        if data:
            assert decoded(frames_of(data)[0]).base_offset == int(name[:-4])
    derived = {name: data for name, data in place.files().items() if name.endswith(DERIVED)}
    wanted = derived_of(place)
    assert {name: data for name, data in derived.items() if name in wanted} == wanted
    assert sum(len(data) for data in logs.values()) == log.size_bytes
    for segment in log.segments:
        offsets, times = wanted[segment.index_path.name], wanted[segment.time_index_path.name]
        assert segment.index.to_bytes() == offsets
        assert segment.time_index.to_bytes() == times


def check_sound(
    log: PartitionLog,
    place: Place,
    frames: Sequence[bytes],
    *,
    start: int = 0,
    epochs: tuple[tuple[int, int], ...] | None = None,
    ignored: tuple[str, ...] = (),
) -> None:
    """An open log is as it must be, takes an append, and closes and reopens without a word."""
    check_read_back(log, frames)
    check_files(log, place, frames)
    end = log.leo
    at_end = tuple(entry for entry in EPOCHS if entry[1] == end)
    wanted = (*epochs_of(frames, start), *at_end) if epochs is None else epochs
    assert log.epochs.entries == wanted
    appended = log.append(batch(end))
    assert (appended.base_offset, appended.next_offset) == (end, end + 1)
    assert appended.leader_epoch == log.leader_epoch >= max((e for e, _ in wanted), default=0)
    after = [*frames, log.read_range(end, 1_000)]
    assert decoded(after[-1]).records == batch(end).records
    check_read_back(log, after)
    log.close()
    for verify in VERIFY:
        again = open_log(place, verify)
        report = again.report
        assert report.is_clean
        assert (report.cuts, report.dropped, report.rebuilt, report.removed) == ((), (), (), ())
        assert (report.warnings, report.ignored) == ((), ignored)
        assert (again.leo, again.log_start_offset) == (end + 1, start)
        assert again.boundary.end_offset == end + 1
        check_read_back(again, after)
        check_files(again, place, after)
        again.close()


def check_refuses(
    outcome: Refuses, place: Place, verify: Verify, before: Mapping[str, bytes]
) -> CorruptLog:
    """Refused, twice in the same words, with nothing changed; then salvage."""
    error = refusal(place, verify)
    check_unchanged(place, before)
    name = place.directory.name if outcome.base is None else log_name(outcome.base)
    places = [(name, outcome.position)]
    if outcome.or_at is not None:
        places.append((log_name(outcome.or_at[0]), outcome.or_at[1]))
    assert (error.file.name, error.position) in places
    assert error.last_good_offset == outcome.good
    for words in outcome.says:
        assert words in str(error)
    assert str(refusal(place, verify)) == str(error)
    check_unchanged(place, before)
    kept = FRAMES[outcome.first : outcome.good]
    check_salvage(error, place, kept, start=outcome.start, epochs=outcome.epochs)
    if outcome.behind != ANY_OFFSET:
        assert error.first_good_offset == outcome.behind
    return error


def refusal(place: Place, verify: Verify) -> CorruptLog:
    with pytest.raises(CorruptLog) as raised:
        open_log(place, verify)
    return raised.value


def check_unchanged(place: Place, before: Mapping[str, bytes]) -> None:
    """Not one byte differs; a refusal may only have taken the seal."""
    after = place.files()
    assert {**before, SEAL_FILE: b""} == {**after, SEAL_FILE: b""}


def check_salvage(
    error: CorruptLog,
    place: Place,
    frames: Sequence[bytes],
    *,
    start: int = 0,
    epochs: tuple[tuple[int, int], ...] | None = None,
) -> None:
    log = PartitionLog.salvage(place.directory, error, CONFIG, disk=place.disk)
    end = decoded(frames[-1]).next_offset if frames else start
    assert log.leo == end
    assert log.report.cuts == ()
    check_sound(log, place, frames, start=start, epochs=epochs)


def check_trusts(outcome: Trusts, place: Place, before: Mapping[str, bytes]) -> None:
    log = open_log(place, "unflushed")
    assert log.leo == COUNT
    assert log.report.cuts == ()
    assert log.report.dropped == ()
    if outcome.reads_raise:
        with pytest.raises(CorruptLog) as raised:
            log.fetch(outcome.bad, 1)
        error = raised.value
        base = max(base for base in BASES if base <= outcome.bad)
        seen = (error.file.name, error.position, error.last_good_offset, error.first_good_offset)
        assert seen == (log_name(base), position_of(outcome.bad), outcome.bad, outcome.behind)
    before_it = log.read_batches(outcome.bad - 1, FRAME)
    assert [found.base_offset for found in before_it] == [outcome.bad - 1]
    log.abandon()
    logs = {name: data for name, data in place.files().items() if name.endswith(".log")}
    assert logs == {name: data for name, data in before.items() if name.endswith(".log")}
    error = refusal(place, "all")
    assert error.last_good_offset == outcome.bad
    check_salvage(error, place, FRAMES[: outcome.bad])


__all__ = [
    "VERIFY",
    "Case",
    "CutAt",
    "Opens",
    "Raises",
    "Refuses",
    "Trusts",
    "check_case",
    "check_salvage",
    "check_sound",
    "open_log",
    "refusal",
    "variants",
]
