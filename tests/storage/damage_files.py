"""Rows of STORAGE.md E.2 about files: missing, foreign and left-over ones, seal and boundary."""

from __future__ import annotations

from pathlib import Path

from storage.checkpoints import write_entries
from storage.epochs import EPOCH_FILE
from storage.errors import ForeignFile, NotRegularFile
from storage.segment import segment_stem
from storage.state import BOUNDARY_FILE, SEAL_FILE, checksum
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
    both,
    drop,
    flip,
    flushed,
    frame,
    index_name,
    log_name,
    nothing,
    overwrite,
    put,
    segment_names,
    shorten,
    time_name,
)
from tests.storage.damage_outcomes import (
    ANY_OFFSET,
    Case,
    CutAt,
    Opens,
    Raises,
    Refuses,
    Trusts,
    variants,
)

ALL = ("all",)
QUICK = ("unflushed",)
LATER = flushed(60)
ANY = (CLOSED, FLUSHED, UNFLUSHED, UNKNOWN)


# Segment files ---------------------------------------------------------------------------------


def row_19() -> list[Case]:
    gone = drop(*segment_names(0))
    at_30 = Opens(start=30, first=30)
    inside = Opens(start=35, first=30)
    refuses = Refuses(30, 0, 0, 30, says=("are missing",))
    cut = CutAt(30, 0, 60 * FRAME, ((30, 60), (60, COUNT)), offset=0)
    anew = Opens(end=0, cuts=(cut,), dropped=(30, 60))
    return [
        *variants(19, "first-missing", gone, refuses, CLOSED, FLUSHED, LATER, flushed(1)),
        *variants(19, "first-missing", gone, anew, UNFLUSHED),
        *variants(19, "first-missing-start-at-30", gone, at_30, State(log_start=30)),
        *variants(19, "first-missing-start-at-35", gone, inside, State(log_start=35)),
        *variants(
            19,
            "first-missing-start-at-29",
            gone,
            Refuses(30, 0, 29, 30, start=29, first=29, epochs=((1, 29),)),
            State(log_start=29),
        ),
    ]


def row_20() -> list[Case]:
    gone = drop(*segment_names(30))
    every = drop(*[name for base in (0, 30, 60) for name in segment_names(base)])
    cut = CutAt(0, 30, 30 * FRAME, ((60, COUNT),))
    refuses = Refuses(0, 30 * FRAME, 30, 60)
    return [
        *variants(20, "middle-missing", gone, refuses, CLOSED, FLUSHED, flushed(31), UNKNOWN),
        *variants(
            20,
            "middle-missing",
            gone,
            Opens(end=30, cuts=(cut,), dropped=(60,)),
            flushed(30),
            UNFLUSHED,
        ),
        *variants(20, "every-segment-missing", every, Refuses(None, 0, 0, None), CLOSED, FLUSHED),
    ]


def row_21() -> list[Case]:
    gone = drop(*segment_names(60))
    refuses = Refuses(30, 30 * FRAME, 60, None, says=("90 was durable",))
    return [
        *variants(21, "last-missing", gone, refuses, CLOSED, FLUSHED),
        *variants(21, "last-missing", gone, Refuses(30, 2880, 60, None), flushed(61)),
        *variants(21, "last-missing", gone, Opens(end=60), LATER, UNFLUSHED, UNKNOWN),
    ]


def row_22() -> list[Case]:
    gone = drop(log_name(30))
    cut = CutAt(0, 30, 30 * FRAME, ((60, COUNT),))
    opens = Opens(end=30, cuts=(cut,), dropped=(60,), removed=(index_name(30), time_name(30)))
    refuses = Refuses(0, 30 * FRAME, 30, 60)
    return [
        *variants(22, "middle-log-missing", gone, refuses, CLOSED, FLUSHED, UNKNOWN),
        *variants(22, "middle-log-missing", gone, opens, flushed(30), UNFLUSHED),
    ]


def row_26() -> list[Case]:
    empty = shorten(log_name(60), 0)
    return [
        *variants(26, "active-empty", empty, Refuses(60, 0, 60, None), CLOSED, FLUSHED),
        *variants(26, "active-empty", empty, Refuses(60, 0, 60, None), flushed(61)),
        *variants(26, "active-empty", empty, Opens(end=60), LATER, flushed(45), UNFLUSHED),
    ]


def row_27() -> list[Case]:
    """Both files are named and none is chosen, whatever was durable."""

    def copy(source: int, name: int) -> Damage:
        return lambda place: place.write(log_name(name), place.read(log_name(source)))

    cases = []
    for name, good, base in ((40, 60, 30), (45, 60, 30), (29, 30, 0), (70, COUNT, 60)):
        refuses = Refuses(name, 0, good, ANY_OFFSET, says=(log_name(base), log_name(name)))
        states = (CLOSED, FLUSHED, LATER, UNFLUSHED, UNKNOWN)
        cases += variants(27, f"copy-of-30-named-{name}", copy(30, name), refuses, *states)
    return cases


def row_28() -> list[Case]:
    """A file that does not begin with the offset in its name is refused and left as it is.

    Where its name leaves a gap as well, that is as good a reason.
    """

    def renamed(place: Place) -> None:
        for old, new in zip(segment_names(60), segment_names(70), strict=True):
            place.rename(old, new)

    states = (CLOSED, FLUSHED, LATER, UNFLUSHED, UNKNOWN)
    below = overwrite(log_name(60), b"".join(FRAMES[50:]))
    above = overwrite(log_name(60), b"".join(FRAMES[65:]))
    closed = overwrite(log_name(30), b"".join(FRAMES[20:60]))
    moved = Refuses(70, 0, 60, ANY_OFFSET, or_at=(30, 30 * FRAME))
    return [
        *variants(28, "active-begins-below-its-name", below, Refuses(60, 0, 60, 60), *states),
        *variants(28, "active-begins-above-its-name", above, Refuses(60, 0, 60, 65), *states),
        *variants(28, "closed-begins-below-its-name", closed, Refuses(30, 0, 30, 30), *states),
        *variants(28, "active-renamed", renamed, moved, *states),
    ]


def row_29() -> list[Case]:
    names = (
        "abc.log",
        ".log",
        "7.log",
        "9" * 20 + ".log",
        f"{2**63:020d}.log",
        "0" * 21 + ".log",
        "-0000000000000000030.log",
        "\u0661" * 20 + ".log",
    )
    cases = []
    for number, name in enumerate(names):
        raises = Raises(ForeignFile, name, drop(name))
        cases += variants(29, f"name-{number}", overwrite(name, b""), raises, CLOSED, FLUSHED)
    ignored = Opens(ignored=("abc.index",), keeps_seal=True)
    return [*cases, *variants(29, "foreign-index", overwrite("abc.index", b""), ignored, CLOSED)]


def row_30() -> list[Case]:
    def make(place: Place) -> None:
        place.write("notes.txt", b"mine")
        place.write(segment_stem(30) + ".txnindex", b"")
        place.disk.mkdir(place.directory / log_name(500))
        place.disk.mkdir(place.directory / "folder")

    names = (segment_stem(30) + ".txnindex", log_name(500), "folder", "notes.txt")
    opens = Opens(ignored=names, keeps_seal=True)
    return variants(30, "unknown-files", make, opens, CLOSED, FLUSHED, UNFLUSHED)


def row_31() -> list[Case]:
    """A link to the very content that belongs there is refused all the same."""
    return [
        *link(31, "log-is-a-link", log_name(30), Path("kept")),
        *link(31, "active-log-is-a-link", log_name(60), Path("kept")),
    ]


def link(row: int, name: str, target: str, way: Path) -> list[Case]:
    def make(place: Place) -> None:
        place.rename(target, way.name)
        place.symlink(target, place.directory / way)

    def undo(place: Place) -> None:
        place.remove(target)
        place.rename(way.name, target)

    return variants(row, name, make, Raises(NotRegularFile, target, undo), CLOSED, FLUSHED)


def row_32() -> list[Case]:
    name = log_name(90)

    def make(place: Place) -> None:
        place.symlink(name, place.directory / "nowhere")

    raises = Raises(NotRegularFile, name, drop(name))
    return variants(32, "dangling-link", make, raises, CLOSED, FLUSHED)


# Left-overs, seal, boundary --------------------------------------------------------------------


def row_47() -> list[Case]:
    names = tuple(f"{name}.tmp" for name in (BOUNDARY_FILE, EPOCH_FILE, "partition.metadata"))
    more = (*names, f"{SEAL_FILE}.tmp")
    damage = both(*[overwrite(name, b"half") for name in more])
    return variants(47, "tmp-left", damage, Opens(keeps_seal=True, removed=more), *ANY)


def row_48() -> list[Case]:
    """They go only once the log itself opens: what the log lacks may be in them."""
    names = (
        index_name(30) + ".deleted",
        log_name(30) + ".cleaned",
        log_name(30) + ".deleted",
        time_name(30) + ".deleted",
        log_name(200) + ".deleted",
    )
    damage = both(*[overwrite(name, FRAMES[0]) for name in names])

    def doomed(place: Place) -> None:
        for name in segment_names(60):
            place.rename(name, name + ".deleted")

    return [
        *variants(48, "deleted-left", damage, Opens(keeps_seal=True, removed=names), *ANY),
        *variants(48, "deleted-below-boundary", doomed, Refuses(30, 30 * FRAME, 60, None), FLUSHED),
        *variants(
            48,
            "deleted-above-boundary",
            doomed,
            Opens(end=60, removed=tuple(f"{name}.deleted" for name in sorted(segment_names(60)))),
            UNFLUSHED,
        ),
    ]


def row_54() -> list[Case]:
    """A seal that does not match makes the close unclean; nothing else follows from it."""
    longer = add(60, frame(COUNT, epoch=6))
    more = Opens(end=COUNT + 1, frames=(*FRAMES, frame(COUNT, epoch=6)))
    shorter = shorten(log_name(60), 29 * FRAME)
    moved = put(89, frame(89, offset=95))
    elsewhere = Refuses(60, 29 * FRAME, 89, ANY_OFFSET)
    cases = [
        *variants(54, "live-copy-is-longer", longer, more, CLOSED),
        *variants(54, "copy-is-shorter", shorter, Refuses(60, 29 * FRAME, 89, None), CLOSED),
        *variants(54, "copy-lost-its-first", drop(*segment_names(0)), FIRST_GONE, CLOSED),
        *variants(54, "last-frame-changed", flip(59), Refuses(30, 29 * FRAME, 59, 60), CLOSED),
        *variants(54, "last-frame-of-elsewhere", moved, elsewhere, CLOSED),
        *variants(54, "middle-changed", flip(70), Trusts(70, 71), CLOSED, verify=QUICK),
        *variants(54, "middle-changed", flip(70), Refuses(60, 960, 70, 71), CLOSED, verify=ALL),
    ]
    contents = {
        "missing": None,
        "empty": b"",
        "garbage": b"\xff\x00{",
        "other-version": b'{"version":2,"segments":[]}',
        "no-segments": b'{"version":1}',
        "deep": b"[" * 100_000,
        "not-rows": b'{"version":1,"segments":[[0,0,0,0]]}',
        "not-integers": b'{"version":1,"segments":[[0,0,0,0,"0"]]}',
        "of-nothing": b'{"version":1,"segments":[]}',
    }
    for name, data in contents.items():
        damage = drop(SEAL_FILE) if data is None else overwrite(SEAL_FILE, data)
        cases += variants(54, f"seal-{name}", damage, Opens(), CLOSED)
    return cases


FIRST_GONE = Refuses(30, 0, 0, 30)


def boundary(
    segment_base: int, size_bytes: int, end_offset: int, log_start: int = 0, gaps_end: int = 0
) -> Damage:
    """Write another boundary, with the right checksum."""
    numbers = [segment_base, size_bytes, end_offset, log_start, gaps_end]

    def do(place: Place) -> None:
        path = place.directory / BOUNDARY_FILE
        write_entries(place.disk, path, [[*numbers, checksum(numbers)]])

    return do


def row_56() -> list[Case]:
    refuses = Refuses(60, 30 * FRAME, COUNT, None, says=("95 was durable",))
    other = Refuses(60, 30 * FRAME, COUNT, None, says=("120 was durable",))
    return [
        *variants(56, "boundary-past-the-end", boundary(60, 3360, 95), refuses, CLOSED, FLUSHED),
        *variants(56, "boundary-in-a-segment-gone", boundary(90, 2880, 120), other, FLUSHED),
    ]


def row_57() -> list[Case]:
    """Everything is walked; a torn tail is cut, damage with whole batches behind it refuses."""
    whole = "0\n1\n60 2880 90 0 0"
    contents = {
        "missing": None,
        "empty": b"",
        "garbage": b"\xff\xfe",
        "torn": whole.encode()[:9],
        "checksum-wrong": f"{whole} 12345\n".encode(),
        "version-1": f"1{whole[1:]} {checksum([60, 2880, 90, 0, 0])}\n".encode(),
        "two-entries": b"0\n2\n" + b"60 2880 90 0 0 0\n" * 2,
        "fields-missing": f"{whole}\n".encode(),
    }
    cases = []
    for name, data in contents.items():
        damage = drop(BOUNDARY_FILE) if data is None else overwrite(BOUNDARY_FILE, data)
        opens = Opens(keeps_seal=True, warnings=1)
        cases += variants(57, f"boundary-{name}", damage, opens, CLOSED, FLUSHED, UNFLUSHED)
        torn = both(damage, shorten(log_name(60), 29 * FRAME + 50))
        cut = Opens(end=89, cuts=(CutAt(60, 29, 50),), warnings=1)
        cases += variants(57, f"boundary-{name}-and-torn-tail", torn, cut, FLUSHED)
        bad = both(damage, flip(40))
        refuses = Refuses(30, 960, 40, 41)
        cases += variants(57, f"boundary-{name}-and-damage", bad, refuses, FLUSHED, UNFLUSHED)
    gone = drop(*segment_names(0), BOUNDARY_FILE)
    from_30 = Opens(start=30, first=30, warnings=1)
    return [*cases, *variants(57, "log-start-unknown", gone, from_30, FLUSHED)]


def row_58() -> list[Case]:
    """No batch may be read there: only an order to begin anew would make it an empty log."""
    refuses = Refuses(60, 30 * FRAME, 500, None, start=500, first=COUNT, epochs=((6, 500),))
    late = boundary(60, 2880, 90, log_start=500)
    return variants(58, "log-start-past-the-end", late, refuses, CLOSED, FLUSHED)


def row_59() -> list[Case]:
    opens = Opens(start=50, first=0, epochs=((5, 50), (6, 75)), keeps_seal=True)
    damage = drop(*segment_names(0))
    moved = Opens(start=50, first=30, epochs=((5, 50), (6, 75)))
    states = (State(log_start=50), State(log_start=50, closed=True))
    return [
        *variants(59, "log-start-mid-segment", nothing, opens, *states),
        *variants(59, "log-start-mid-segment-first-gone", damage, moved, *states),
    ]


def row_73() -> list[Case]:
    """A lost truncation: batches of an older epoch stand behind a newer one."""
    old = b"".join(frame(number, epoch=5) for number in range(80, COUNT))
    damage = put(80, old)
    cut = CutAt(60, 20, 10 * FRAME, ((80, COUNT),))
    refuses = Refuses(60, 20 * FRAME, 80, ANY_OFFSET)
    return [
        *variants(73, "older-epoch-behind", damage, refuses, FLUSHED, verify=ALL),
        *variants(73, "older-epoch-behind", damage, Opens(end=80, cuts=(cut,)), flushed(80)),
        *variants(73, "older-epoch-behind", damage, Opens(end=80, cuts=(cut,)), UNFLUSHED),
    ]


def file_cases() -> list[Case]:
    """All rows of this module."""
    segments = (row_19, row_20, row_21, row_22, row_26, row_27, row_28, row_29, row_30)
    others = (row_31, row_32, row_47, row_48, row_54, row_56, row_57, row_58, row_59, row_73)
    return [case for row in (*segments, *others) for case in row()]
