"""Rows of STORAGE.md E.2 about the bytes of segments: tails, frames, headers, segment files.

DECISIONS 1.1 decides between the two outcomes of a row: below the durable boundary it refuses, at
or above it, on an unclean open, it is cut and every later whole range is reported. ``unflushed``
reads nothing below the boundary but the last index interval of each segment, so what lies deeper is
trusted there until it is read.
"""

from __future__ import annotations

from random import Random

from tests.storage.damage import (
    CLOSED,
    COUNT,
    FLUSHED,
    FRAME,
    FRAMES,
    UNFLUSHED,
    UNKNOWN,
    Damage,
    Place,
    State,
    add,
    batch,
    both,
    epoch_at,
    flip,
    flushed,
    frame,
    log_name,
    position_of,
    put,
    shorten,
    with_byte,
    with_crc,
)
from tests.storage.damage_outcomes import (
    Case,
    CutAt,
    Opens,
    Refuses,
    Trusts,
    variants,
)

ALL = ("all",)
QUICK = ("unflushed",)
NOISE = Random(4).randbytes(4096)
EVERY = (CLOSED, FLUSHED, flushed(60), UNFLUSHED, UNKNOWN)


def tail(row: int, name: str, data: bytes, *ranges: tuple[int, int]) -> list[Case]:
    """Bytes behind the last batch that are not the log's: cut, whatever was durable."""
    cut = CutAt(60, 30, len(data), ranges)
    return variants(row, name, add(60, data), Opens(cuts=(cut,)), *EVERY)


def row_1() -> list[Case]:
    body = frame(COUNT, epoch=6)
    return [
        *tail(1, "partial-header-5", body[:5]),
        *tail(1, "header-only", body[:12]),
        *tail(1, "partial-batch", body[:60]),
        *tail(1, "all-but-one-byte", body[:-1]),
    ]


def row_3() -> list[Case]:
    return [*tail(3, "5-zeros", bytes(5)), *tail(3, "4096-zeros", bytes(4096))]


def row_4() -> list[Case]:
    """With a whole batch behind the noise, the boundary still decides: nothing below it is hurt."""
    hidden = NOISE[:33] + frame(COUNT, epoch=6)
    known = [state for state in EVERY if state.knows_boundary]
    cut = CutAt(60, 30, len(hidden), ((COUNT, COUNT + 1),))
    return [
        *tail(4, "noise", NOISE),
        *tail(4, "noise-with-magic", b"MKB1" + NOISE[:200]),
        *tail(4, "magic-and-huge-length", b"MKB1\xff\xff\xff\xff" + NOISE[:200]),
        *variants(4, "noise-hides-a-batch", add(60, hidden), Opens(cuts=(cut,)), *known),
        *variants(
            4, "noise-hides-a-batch", add(60, hidden), Refuses(60, 2880, COUNT, COUNT), UNKNOWN
        ),
    ]


def row_5() -> list[Case]:
    cut = CutAt(60, 29, FRAME)
    opens = Opens(end=89, cuts=(cut,))
    return [
        *variants(5, "last-flipped", flip(89), Refuses(60, 29 * FRAME, 89, None), CLOSED, FLUSHED),
        *variants(5, "last-flipped", flip(89), opens, flushed(89), flushed(60), UNFLUSHED, UNKNOWN),
    ]


def middle(
    row: int, name: str, damage: Damage, *, bad: int = 70, covers: bool = False
) -> list[Case]:
    """Damage to a batch in the active segment, seen from both sides of the boundary ("as 6").

    Only ``verify="all"`` is asked where it lies below the boundary: see ``row_6`` for the other.
    """
    behind = bad + 1
    cut = CutAt(60, bad - 60, (COUNT - bad) * FRAME, ((behind, COUNT),), covers)
    refuses = Refuses(60, position_of(bad), bad, behind)
    below = (CLOSED, FLUSHED, flushed(bad + 1))
    above = (flushed(bad), flushed(60)) if row == 6 else (flushed(bad), UNFLUSHED)
    return [
        *variants(row, name, damage, refuses, *below, verify=ALL),
        *variants(row, name, damage, refuses, UNKNOWN),
        *variants(row, name, damage, Opens(end=bad, cuts=(cut,)), *above),
    ]


def row_6() -> list[Case]:
    return [
        *middle(6, "middle-of-active-flipped", flip(70)),
        *variants(
            6, "middle-of-active-flipped", flip(70), Trusts(70, 71), CLOSED, FLUSHED, verify=QUICK
        ),
        *variants(
            6,
            "behind-a-boundary-inside-the-segment",
            flip(85),
            Opens(end=85, cuts=(CutAt(60, 25, 5 * FRAME, ((86, COUNT),)),)),
            flushed(80),
        ),
        *variants(
            6,
            "two-batches-flipped",
            both(flip(70), flip(80)),
            Opens(end=70, cuts=(CutAt(60, 10, 20 * FRAME, ((71, 80), (81, COUNT))),)),
            flushed(60),
        ),
        *variants(
            6,
            "on-both-sides-of-the-boundary",
            both(flip(70), flip(85)),
            Refuses(60, 10 * FRAME, 70, 71),
            flushed(80),
            verify=ALL,
        ),
    ]


def in_closed(row: int, name: str, damage: Damage, *, bad: int, behind: int) -> list[Case]:
    """Damage inside segment 30 that leaves whole batches of it behind."""
    size = (60 - bad) * FRAME + 30 * FRAME
    cut = CutAt(30, bad - 30, size, ((behind, 60), (60, COUNT)))
    opens = Opens(end=bad, cuts=(cut,), dropped=(60,))
    refuses = Refuses(30, position_of(bad), bad, behind)
    below = (CLOSED, FLUSHED, flushed(60), flushed(bad + 1))
    return [
        *variants(row, name, damage, refuses, *below, verify=ALL),
        *variants(row, name, damage, refuses, UNKNOWN),
        *variants(row, name, damage, opens, flushed(bad), flushed(30), UNFLUSHED),
    ]


def row_7() -> list[Case]:
    """``unflushed`` trusts a closed segment below the boundary; its reader meets the damage."""
    name, damage = "closed-segment-flipped", flip(40)
    return [
        *in_closed(7, name, damage, bad=40, behind=41),
        *variants(7, name, damage, Trusts(40, 41), CLOSED, FLUSHED, verify=QUICK),
    ]


def row_8() -> list[Case]:
    def junk(*bases: int) -> Opens:
        return Opens(cuts=tuple(CutAt(base, 30, 1) for base in bases))

    both_closed = both(add(0, b"x"), add(30, b"\0"))
    return [
        *variants(8, "junk-byte-after-closed", add(30, b"x"), junk(30), *EVERY),
        *variants(8, "zero-byte-after-closed", add(30, b"\0"), junk(30), *EVERY),
        *variants(8, "junk-after-both-closed", both_closed, junk(0, 30), *EVERY),
    ]


def row_9() -> list[Case]:
    size = FRAME - 12
    lengths = {
        "huge": 0x7FFF_FFFF,
        "negative": 0xFFFF_FFFF,
        "below-max-batch": (16 << 20) - 12,
        "zero": 0,
        "plus-one": size + 1,
        "minus-one": size - 1,
        "spans-the-next": size + FRAME,
    }
    cases = []
    for name, length in lengths.items():
        cases += middle(9, f"length-{name}", put(70, length.to_bytes(4, "big"), 4))
    return cases


def row_10() -> list[Case]:
    """A gap that compaction declared is none; without that, no frame may skip offsets."""
    gone = shorten_middle(70, 75)
    hole = Opens(frames=(*FRAMES[:70], *FRAMES[75:]), keeps_seal=True, lazy=True)
    return [
        *middle(10, "offset-jumps-ahead", put(70, frame(70, offset=75)), covers=True),
        *middle(10, "offset-jumps-far", put(70, frame(70, offset=10**12)), covers=True),
        *variants(
            10, "batches-cut-out", gone, Refuses(60, 10 * FRAME, 70, 75), FLUSHED, verify=ALL
        ),
        *variants(
            10,
            "batches-cut-out",
            gone,
            Opens(end=70, cuts=(CutAt(60, 10, 15 * FRAME, ((75, COUNT),)),)),
            flushed(60),
        ),
        *variants(10, "declared-gap", gone, hole, State(gaps_end=75)),
        *variants(
            10,
            "gap-declared-too-short",
            gone,
            Refuses(60, 10 * FRAME, 70, 75),
            State(gaps_end=74),
            verify=ALL,
        ),
    ]


def shorten_middle(start: int, end: int) -> Damage:
    """Cut the bytes of batches out of the active segment; what follows moves up."""

    def do(place: Place) -> None:
        def change(data: bytearray) -> None:
            del data[position_of(start) : position_of(end)]

        place.edit(log_name(60), change)

    return do


def row_11() -> list[Case]:
    return [
        *middle(11, "offset-below-the-segment", put(70, frame(70, offset=5))),
        *middle(11, "offset-zero", put(70, frame(70, offset=0))),
    ]


def row_12() -> list[Case]:
    """A batch written twice at the tail goes, and nothing else: it holds nothing new."""
    twice = Opens(cuts=(CutAt(60, 30, FRAME),))
    three = Opens(cuts=(CutAt(60, 30, 3 * FRAME),))
    closed = Opens(cuts=(CutAt(30, 30, FRAME),))
    return [
        *middle(12, "offset-repeats", put(70, frame(70, offset=69))),
        *middle(12, "batch-repeats", put(70, frame(69))),
        *variants(12, "last-written-twice", add(60, FRAMES[89]), twice, *EVERY),
        *variants(12, "last-three-twice", add(60, b"".join(FRAMES[87:])), three, *EVERY),
        *variants(12, "last-of-closed-twice", add(30, FRAMES[59]), closed, *EVERY),
    ]


def row_13() -> list[Case]:
    """An epoch that rises beyond the known one and falls again. One that only rises stays.

    Which epochs exist is the cluster's knowledge; to storage, a newest epoch that the file lacks
    looks like row 45, whose answer is to derive the file anew and say so.
    """
    stays = Opens(
        frames=(*FRAMES[:89], frame(89, epoch=77)),
        warnings=1,
        epochs=((1, 0), (5, 45), (6, 75), (77, 89)),
    )
    return [
        *middle(13, "epoch-77", put(70, frame(70, epoch=77)), covers=True),
        *middle(13, "epoch-max", put(80, frame(80, epoch=2**31 - 1)), bad=80, covers=True),
        *middle(13, "epoch-beyond-31-bits", put(70, forged_epoch(70, 0xFFFF_FFFF))),
        *variants(13, "epoch-77-on-the-last", put(89, frame(89, epoch=77)), stays, flushed(60)),
    ]


def forged_epoch(number: int, epoch: int) -> bytes:
    """A frame with an epoch field that no encoder writes, and the right CRC."""
    body = FRAMES[number]
    return with_crc(body[:21] + epoch.to_bytes(4, "big") + body[25:])


def row_14() -> list[Case]:
    return [
        *middle(14, "epoch-5-after-6", put(80, frame(80, epoch=5)), bad=80, covers=True),
        *middle(14, "epoch-0", put(70, frame(70, epoch=0)), covers=True),
    ]


def row_15() -> list[Case]:
    """Kafka's magic byte is the format version here; ``MKB1`` itself counts as well."""
    cases = []
    for version in (3, 127):
        damage = put(70, with_crc(with_byte(FRAMES[70], 12, version)))
        cases += middle(15, f"version-{version}", damage)
    for last in (b"MKB2", b"MKB\x7f"):
        cases += middle(15, f"magic-{last[3]}", put(70, last))
    return cases


def row_16() -> list[Case]:
    """Version 1 is legal, so its byte on a version 2 body passes the CRC; only its reader sees."""
    damage = put(70, with_crc(with_byte(FRAMES[70], 12, 0)))
    stale = put(70, with_byte(FRAMES[70], 12, 1))
    old = batch(70).assign(70, epoch_at(70))
    assert old.format_version == 2
    return [*middle(16, "version-0", damage), *middle(16, "version-1-crc-stale", stale)]


def row_18() -> list[Case]:
    """A sector of 512 bytes: batches 65 (35) to 70 (40) are hit in part or whole."""
    first, behind = 512 // FRAME, -(-1024 // FRAME)

    def zeroed(base: int) -> Damage:
        def do(place: Place) -> None:
            def change(data: bytearray) -> None:
                data[512:1024] = bytes(512)

            place.edit(log_name(base), change)

        return do

    bad, size = 60 + first, (30 - first) * FRAME
    cut = CutAt(60, first, size, ((60 + behind, COUNT),))
    refuses = Refuses(60, first * FRAME, bad, 60 + behind)
    return [
        *variants(18, "sector-zeroed-active", zeroed(60), refuses, FLUSHED, CLOSED, verify=ALL),
        *variants(18, "sector-zeroed-active", zeroed(60), refuses, UNKNOWN),
        *variants(
            18,
            "sector-zeroed-active",
            zeroed(60),
            Opens(end=bad, cuts=(cut,)),
            flushed(bad),
            flushed(60),
            UNFLUSHED,
        ),
        *variants(
            18,
            "sector-zeroed-active",
            zeroed(60),
            Trusts(bad, 60 + behind),
            CLOSED,
            FLUSHED,
            verify=QUICK,
        ),
        *in_closed(18, "sector-zeroed-closed", zeroed(30), bad=30 + first, behind=30 + behind),
        *variants(
            18,
            "sector-zeroed-closed",
            zeroed(30),
            Trusts(30 + first, 30 + behind),
            CLOSED,
            FLUSHED,
            verify=QUICK,
        ),
    ]


def row_23() -> list[Case]:
    return missing_tail(23, "closed-shorter-at-a-batch", shorten(log_name(30), 20 * FRAME), 50, 0)


def row_24() -> list[Case]:
    damage = shorten(log_name(30), 20 * FRAME + 40)
    return missing_tail(24, "closed-torn-mid-batch", damage, 50, 40)


def row_25() -> list[Case]:
    return [
        *missing_tail(25, "closed-empty", shorten(log_name(30), 0), 30, 0),
        *variants(25, "first-empty", shorten(log_name(0), 0), Refuses(0, 0, 0, 30), FLUSHED),
        *variants(
            25,
            "first-empty",
            shorten(log_name(0), 0),
            Opens(
                end=0,
                cuts=(CutAt(0, 0, 60 * FRAME, ((30, 60), (60, COUNT))),),
                dropped=(30, 60),
            ),
            UNFLUSHED,
        ),
    ]


def missing_tail(row: int, name: str, damage: Damage, end: int, torn: int) -> list[Case]:
    """Segment 30 ends at ``end``, with ``torn`` bytes of a batch behind that."""
    cut = CutAt(30, end - 30, torn + 30 * FRAME, ((60, COUNT),))
    opens = Opens(end=end, cuts=(cut,), dropped=(60,))
    refuses = Refuses(30, position_of(end), end, 60)
    return [
        *variants(row, name, damage, refuses, CLOSED, FLUSHED, flushed(end + 1), UNKNOWN),
        *variants(row, name, damage, opens, flushed(end), UNFLUSHED),
    ]


def byte_cases() -> list[Case]:
    """All rows of this module."""
    rows = (row_1, row_3, row_4, row_5, row_6, row_7, row_8, row_9, row_10, row_11, row_12, row_13)
    more = (row_14, row_15, row_16, row_18, row_23, row_24, row_25)
    return [case for row in (*rows, *more) for case in row()]
