"""Rows 2 and 17 of STORAGE.md E.2: every length of a torn last write, every bit of a batch.

Goal: no byte count and no bit is special. Each sweep opens the log once per length or bit, in
memory, and compares report or refusal exactly.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.errors import CorruptLog
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1
from tests.storage.damage import (
    CLOSED,
    COUNT,
    FLUSHED,
    FRAME,
    FRAMES,
    UNFLUSHED,
    UNKNOWN,
    Place,
    State,
    base_of,
    both,
    flip,
    flushed,
    image,
    log_name,
    nothing,
    position_of,
    record,
    shorten,
)
from tests.storage.damage_outcomes import (
    VERIFY,
    Case,
    CutAt,
    Opens,
    Refuses,
    check_case,
    check_salvage,
    check_unchanged,
    open_log,
    refusal,
)

DIRECTORY = Path("/log")
LENGTHS_IN_FULL = (0, 1, 11, 12, 60, FRAME - 1)


def place_for(state: State) -> Place:
    return Place.of(MemDisk(), DIRECTORY, image(state))


# Row 2 -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(state, id=f"row02-torn-last-write-{state.label}")
        for state in (flushed(89), flushed(60), UNFLUSHED, UNKNOWN)
    ],
)
def test_a_torn_last_write_is_cut_whatever_its_length(state: State) -> None:
    warnings = 0 if state.knows_boundary else 1
    for length in range(FRAME + 1):
        damage = shorten(log_name(60), 29 * FRAME + length)
        cuts = (CutAt(60, 29, length),) if 0 < length < FRAME else ()
        end = COUNT if length == FRAME else 89
        if length in LENGTHS_IN_FULL:
            opens = Opens(end=end, cuts=cuts)
            check_case(Case(2, "torn", state, "all", damage, opens), place_for(state))
        for verify in VERIFY:
            place = place_for(state)
            damage(place)
            log = open_log(place, verify)
            assert log.leo == end
            assert [(cut.position, cut.size_bytes, cut.offset) for cut in log.report.cuts] == [
                (29 * FRAME, length, 89) for _ in cuts
            ]
            assert [cut.whole_ranges for cut in log.report.cuts] == [() for _ in cuts]
            assert len(log.report.warnings) == warnings
            assert place.read(log_name(60)) == b"".join(FRAMES[60:end])
            log.abandon()


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(state, id=f"row02-durable-last-batch-shortened-{state.label}")
        for state in (FLUSHED, CLOSED)
    ],
)
def test_a_durable_last_batch_that_lost_bytes_refuses(state: State) -> None:
    for length in range(FRAME):
        damage = shorten(log_name(60), 29 * FRAME + length)
        if length in LENGTHS_IN_FULL:
            refuses = Refuses(60, 29 * FRAME, 89, None)
            check_case(Case(2, "shortened", state, "all", damage, refuses), place_for(state))
        for verify in VERIFY:
            place = place_for(state)
            damage(place)
            before = place.files()
            error = refusal(place, verify)
            seen = (error.file.name, error.position, error.last_good_offset)
            assert seen == (log_name(60), 29 * FRAME, 89)
            assert error.first_good_offset is None
            check_unchanged(place, before)


# Row 17 ----------------------------------------------------------------------------------------

BITS = [(byte, 1 << bit) for byte in range(FRAME) for bit in range(8)]
ROTATED = [(byte, 1 << (byte % 8)) for byte in range(FRAME)]


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        pytest.param(bad, state, id=f"row17-every-bit-of-{bad}-{state.label}")
        for bad in (70, 40)
        for state in (FLUSHED, CLOSED, UNKNOWN)
    ],
)
def test_every_flipped_bit_below_the_boundary_refuses(bad: int, state: State) -> None:
    for byte, mask in BITS if state == FLUSHED else ROTATED:
        place = place_for(state)
        flip(bad, byte, mask)(place)
        before = place.files()
        error = refusal(place, "all")
        seen = (error.file.name, error.position, error.last_good_offset, error.first_good_offset)
        wanted = (log_name(base_of(bad)), position_of(bad), bad, bad + 1)
        assert seen == wanted, f"byte {byte}, bits {mask:#x}"
        check_unchanged(place, before)
        if byte % 24 == 0 and mask == 1:
            check_salvage(error, place, FRAMES[:bad])


@pytest.mark.parametrize(
    ("bad", "state", "ranges"),
    [
        pytest.param(bad, state, ranges, id=f"row17-every-bit-of-{bad}-{state.label}")
        for bad, ranges in ((70, [(71, 90)]), (40, [(41, 60), (60, 90)]))
        for state in (flushed(30), UNFLUSHED)
    ],
)
def test_every_flipped_bit_above_the_boundary_is_cut_and_reported(
    bad: int, state: State, ranges: list[tuple[int, int]]
) -> None:
    for byte, mask in BITS if state == UNFLUSHED else ROTATED:
        place = place_for(state)
        flip(bad, byte, mask)(place)
        log = open_log(place, "all" if mask > 8 else "unflushed")
        assert log.leo == bad, f"byte {byte}, bits {mask:#x}"
        (cut,) = log.report.cuts
        assert cut.size_bytes == (COUNT - bad) * FRAME
        assert [(found.base_offset, found.next_offset) for found in cut.whole_ranges] == ranges
        log.abandon()


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        pytest.param(bad, state, id=f"row17-trusted-and-read-{bad}-{state.label}")
        for bad in (70, 40)
        for state in (FLUSHED, CLOSED)
    ],
)
def test_a_trusted_batch_with_a_flipped_bit_is_never_passed_over(bad: int, state: State) -> None:
    """``unflushed`` trusts what was durable; asking for the batch must then raise.

    An answer without it, from a later batch or empty, would be a loss that nobody notices.
    """
    passed_over = []
    for byte, mask in BITS:
        place = place_for(state)
        flip(bad, byte, mask)(place)
        log = open_log(place, "unflushed")
        assert (log.leo, log.report.cuts) == (COUNT, ())
        try:
            answer = [found.offset for found in log.fetch(bad, 1)]
        except CorruptLog as error:
            answer = [error.last_good_offset, error.position]
        if answer != [bad, position_of(bad)]:
            passed_over.append((byte, mask, answer))
        log.abandon()
        logs = {base: place.read(log_name(base)) for base in (0, 30, 60)}
        assert sum(map(len, logs.values())) == COUNT * FRAME
    assert not passed_over, f"{len(passed_over)} of {len(BITS)}: {passed_over[:8]}"


@pytest.mark.parametrize(
    ("bad", "state"),
    [
        pytest.param(bad, state, id=f"row17-trusted-range-end-{bad}-{state.label}")
        for bad in (70, 40)
        for state in (FLUSHED, CLOSED)
    ],
)
def test_a_raw_range_that_ends_at_a_damaged_batch_is_whole(bad: int, state: State) -> None:
    """Look-ups of an end may meet the damage and raise; they may not answer with other bytes."""
    wrong = []
    start = base_of(bad)
    for byte, mask in ROTATED:
        place = place_for(state)
        flip(bad, byte, mask)(place)
        log = open_log(place, "unflushed")
        try:
            data = log.read_range(start, 1 << 20, bad)
        except CorruptLog:
            data = b""
        if data not in (b"", b"".join(FRAMES[start:bad])):
            wrong.append((byte, mask, len(data) // FRAME))
        log.abandon()
    assert not wrong, f"{len(wrong)} of {len(ROTATED)}: {wrong[:8]}"


# What an opening may not do before it refuses --------------------------------------------------


@pytest.mark.parametrize("lost", ["epochs", "nothing"])
def test_a_refusal_found_late_comes_before_any_change(lost: str) -> None:
    """Damage below the boundary that ``unflushed`` meets by chance, and a torn tail to cut.

    ``CorruptLog`` promises that nothing was changed. The first batch of the active segment is
    looked at for its timestamp, every batch where the epoch file is gone.
    """
    state = flushed(70)
    bad = 60 if lost == "nothing" else 50
    place = place_for(state)
    lose = (lambda place: place.remove("leader-epoch-checkpoint")) if lost == "epochs" else nothing
    both(flip(bad), shorten(log_name(60), 29 * FRAME + 40), lose)(place)
    before = place.files()
    with pytest.raises(CorruptLog) as raised:
        open_log(place, "unflushed")
    check_unchanged(place, before)
    assert raised.value.last_good_offset == bad
    check_salvage(raised.value, place, FRAMES[:bad])


# Reading beside damage -------------------------------------------------------------------------


@pytest.mark.parametrize("state", [FLUSHED, CLOSED], ids=["flushed", "closed"])
def test_a_fetch_that_ends_before_the_damage_is_answered(state: State) -> None:
    """Whoever wants to keep what is good must be able to read up to the damage."""
    place = place_for(state)
    flip(70)(place)
    log = open_log(place, "unflushed")
    wanted = [(offset, *record(offset)) for offset in range(60, 70)]
    assert [tuple(found)[:5] for found in log.fetch(60, 100, end_offset=70)] == wanted
    assert [tuple(found)[:5] for found in log.fetch(60, 10)] == wanted
    log.close()


def test_salvage_of_a_frame_far_ahead_needs_no_index_entry_for_it() -> None:
    """The offset index holds offsets relative to its segment in 32 bits."""
    place = place_for(FLUSHED)
    body = FRAMES[70]
    far = MKB1.restamp(body, 10**12, 5)
    place.edit(log_name(60), lambda data: data.__setitem__(slice(960, 1056), far))
    error = refusal(place, "all")
    check_salvage(error, place, FRAMES[:70])
