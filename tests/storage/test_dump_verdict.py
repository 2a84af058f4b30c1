"""What a dump says that an open would do is what an open does: each log is dumped, then opened.

The cases are the rows of the verdict table in ``storage/README.md`` and of STORAGE.md E.2, on a log
of its own and on a broker's; then drawn damage of every kind. The open is ``verify="all"``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import LogConfig, PartitionLog, encode_batch
from storage.checkpoints import write_entries
from storage.errors import CorruptLog, StorageError
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from storage.state import checksum
from tests.storage.dumping import (
    BROKER,
    CONFIG,
    FLAGS,
    LOG,
    T0,
    as_json,
    batch,
    crashed_log,
    flip,
    healthy_broker,
    healthy_log,
    segments,
)
from tests.storage.trees import content, put, tree

FIRST, MIDDLE, LAST = (LOG / f"{base:020d}.log" for base in (0, 4, 9))
EPOCHS = LOG / "leader-epoch-checkpoint"


def what_open_does(disk: MemDisk, directory: Path = LOG) -> dict[str, Any]:
    """Outcome and changes of an open that verifies everything, on a copy of the disk."""
    twin = disk.copy()
    try:
        if directory.parent == BROKER:
            topic, _, partition = directory.name.rpartition("-")
            log_dir = LogDir.open(BROKER, disk=twin)
            log = log_dir.open_log(topic, int(partition), CONFIG, verify="all")
        else:
            log = PartitionLog.open(directory, CONFIG, disk=twin, verify="all")
    except StorageError as error:
        refusal = None
        if isinstance(error, CorruptLog):
            refusal = {
                "file": None if error.file == directory else error.file.name,
                "position": error.position,
                "reason": error.reason,
                "last_good_offset": error.last_good_offset,
                "first_good_offset": error.first_good_offset,
            }
        return {"error": f"{type(error).__name__}: {error}", "refusal": refusal}
    report = log.report
    cuts = [
        {
            "file": str(cut.file),
            "position": cut.position,
            "size_bytes": cut.size_bytes,
            "offset": cut.offset,
            "reason": cut.reason,
            "whole_ranges": [
                {
                    "position": found.position,
                    "size_bytes": found.size_bytes,
                    "base_offset": found.base_offset,
                    "next_offset": found.next_offset,
                }
                for found in cut.whole_ranges
            ],
        }
        for cut in report.cuts
    ]
    return {
        "error": None,
        "refusal": None,
        "cuts": cuts,
        "dropped": list(report.dropped),
        "rebuilt": sorted(report.rebuilt),
        "removed": list(report.removed),
        "swapped": list(report.swapped),
    }


def said(disk: MemDisk, directory: Path = LOG) -> dict[str, Any]:
    """The same from the dump, which must not have changed anything."""
    before = tree(disk, Path("/data"))
    document = as_json(disk, directory, *FLAGS)
    assert tree(disk, Path("/data")) == before
    verdict = dict(document["verdict"])
    outcome = verdict.pop("outcome")
    lists = ("cuts", "dropped", "rebuilt", "removed", "swapped")
    changes = [change for name in lists for change in verdict[name]]
    assert (outcome == "refuses") == (verdict["error"] is not None)
    assert (outcome == "cuts") == bool(verdict["cuts"])
    assert (
        (outcome in ("clean", "refuses")) <= (not changes) <= (outcome not in ("cuts", "repairs"))
    )
    assert document["is_healthy"] or outcome not in ("clean", "begins") or document["problems"]
    if verdict["error"] is not None:
        return {"error": verdict["error"], "refusal": verdict["refusal"]}
    return {**verdict, "rebuilt": sorted(verdict["rebuilt"])}


Damage = Callable[[MemDisk], None]


def cut_short(path: Path, size_bytes: int) -> Damage:
    return lambda disk: put(disk, path, content(disk, path)[:size_bytes])


def add(path: Path, data: bytes) -> Damage:
    return lambda disk: put(disk, path, content(disk, path) + data)


def remove(path: Path) -> Damage:
    return lambda disk: disk.unlink(path)


def write(path: Path, data: bytes) -> Damage:
    return lambda disk: put(disk, path, data)


def epochs(*entries: tuple[int, int]) -> Damage:
    return lambda disk: write_entries(disk, EPOCHS, entries)


def boundary(*numbers: int) -> Damage:
    def damage(disk: MemDisk) -> None:
        write_entries(disk, LOG / "boundary", [[*numbers, checksum(list(numbers))]])

    return damage


def all_of(*damages: Damage) -> Damage:
    def damage(disk: MemDisk) -> None:
        for one in damages:
            one(disk)

    return damage


def rename(old: Path, new: Path) -> Damage:
    return lambda disk: disk.rename(old, new)


def twice(disk: MemDisk) -> None:
    put(disk, MIDDLE.with_name(f"{6:020d}.log"), content(disk, MIDDLE))


UNSEALED = remove(LOG / "seal")
INDEX, TIME_INDEX = FIRST.with_suffix(".index"), FIRST.with_suffix(".timeindex")


def swap(*sources: Path, keep: int | None = None) -> Damage:
    """An output of compaction, complete unless ``keep`` says how many bytes of it are there."""

    def damage(disk: MemDisk) -> None:
        data = b"".join(content(disk, source) for source in sources)
        put(disk, sources[0].with_name(sources[0].name + ".swap"), data[:keep])
        index = sources[0].with_suffix(".index")
        put(disk, index.with_name(index.name + ".swap"), b"")

    return damage


DAMAGES: dict[str, Damage] = {
    "nothing": lambda disk: None,
    "no seal": UNSEALED,
    "seal of nothing": write(LOG / "seal", b"{}"),
    "seal that is no JSON": write(LOG / "seal", b"\xff{"),
    "torn header at the tail": add(LAST, b"MKB1\x00\x00"),
    "torn batch at the tail": add(LAST, b"MKB1\x00\x00\x00\x50partial"),
    "zeros at the tail": add(LAST, bytes(100)),
    "noise at the tail": add(LAST, bytes(range(100, 200))),
    "last batch cut short": cut_short(LAST, 150),
    "last segment emptied": cut_short(LAST, 0),
    "first segment emptied": cut_short(FIRST, 0),
    "middle segment shorter by a batch": cut_short(MIDDLE, 216),
    "middle segment shorter by a byte": cut_short(MIDDLE, 349),
    "junk behind a closed segment": add(FIRST, b"\x00"),
    "first batch flipped": lambda disk: flip(disk, FIRST, 20),
    "middle batch flipped": lambda disk: flip(disk, MIDDLE, 150),
    "last batch flipped": lambda disk: flip(disk, LAST, 170),
    "length huge": lambda disk: flip(disk, MIDDLE, 4, 0x7F),
    "magic of another": lambda disk: flip(disk, FIRST, 0),
    "last batch twice": lambda disk: add(LAST, content(disk, LAST)[-64:])(disk),
    "first segment missing": remove(FIRST),
    "middle segment missing": remove(MIDDLE),
    "last segment missing": remove(LAST),
    "every segment missing": all_of(remove(FIRST), remove(MIDDLE), remove(LAST)),
    "segment under another name": rename(LAST, LAST.with_name(f"{8:020d}.log")),
    "segment copied under another name": twice,
    "foreign log": write(LOG / "abc.log", b""),
    "name of twenty nines": write(LOG / f"{'9' * 20}.log", b""),
    "link named like a segment": lambda disk: disk.symlink(LOG / f"{99:020d}.log", FIRST),
    "directory named like a segment": lambda disk: disk.mkdir(LOG / f"{99:020d}.log"),
    "other files": all_of(write(LOG / "notes.txt", b"x"), write(LOG / "x.index", b"x")),
    "left-over files": all_of(
        write(LOG / f"{0:020d}.log.deleted", b"x"),
        write(LOG / f"{7:020d}.index", b"x"),
        write(LOG / "boundary.tmp", b"x"),
    ),
    "swap of one segment": swap(FIRST),
    "swap of two segments": swap(FIRST, MIDDLE),
    "swap whose original is gone": all_of(swap(MIDDLE), remove(MIDDLE)),
    "swap of the last segment": swap(LAST),
    "swap that is torn": swap(FIRST, keep=100),
    "swap that is empty": swap(FIRST, keep=0),
    "swap behind an incomplete one": all_of(
        swap(MIDDLE), write(LOG / f"{0:020d}.log.cleaned", b"")
    ),
    "swap in a log with damage": all_of(swap(FIRST), lambda disk: flip(disk, MIDDLE, 150)),
    "swap alone": all_of(swap(FIRST), remove(FIRST), remove(MIDDLE), remove(LAST)),
    "retention cut short": all_of(boundary(9, 176, 11, 9, 0), remove(MIDDLE)),
    "retention cut short, boundary unknown": all_of(boundary(9, 176, 11, 4, 0), remove(FIRST)),
    "index missing": remove(INDEX),
    "time index missing": remove(TIME_INDEX),
    "index ragged": add(INDEX, b"\x00\x00\x00"),
    "index entry behind the end": add(INDEX, b"\x00\x00\x00\x03\x00\x00\x10\x00"),
    "index entry inside a batch": write(INDEX, bytes(8) + b"\x00\x00\x00\x01\x00\x00\x00\x60"),
    "index entry of another offset": write(INDEX, bytes(8) + b"\x00\x00\x00\x02\x00\x00\x00\xbc"),
    "index falling": add(INDEX, bytes(8)),
    "index without its first entry": lambda disk: put(disk, INDEX, content(disk, INDEX)[8:]),
    "index of zeros": write(INDEX, bytes(80)),
    "index empty": write(INDEX, b""),
    "time index ragged": add(TIME_INDEX, b"\x00"),
    "time index falling": add(TIME_INDEX, bytes(12)),
    "time index too early": lambda disk: flip(disk, TIME_INDEX, 7, 0x80),
    "time index empty": write(TIME_INDEX, b""),
    "time index behind the end": lambda disk: flip(disk, TIME_INDEX, 23, 0x40),
    "index is a link": all_of(remove(INDEX), lambda disk: disk.symlink(INDEX, MIDDLE)),
    "epoch file missing": remove(EPOCHS),
    "epoch file empty": write(EPOCHS, b""),
    "epoch file torn": write(EPOCHS, b"0\n2\n3 0\n"),
    "epoch file of version 1": write(EPOCHS, b"1\n0\n"),
    "epoch file with text": write(EPOCHS, b"0\n1\nthree 0\n"),
    "epoch file with a negative number": write(EPOCHS, b"0\n1\n-3 0\n"),
    "epoch file behind the log": epochs((3, 0)),
    "epoch file ahead of the log": epochs((3, 0), (4, 7), (5, 8)),
    "epoch at the log end": epochs((3, 0), (4, 7), (9, 11)),
    "epoch beyond the log end": epochs((3, 0), (4, 7), (9, 12)),
    "epoch of another number": epochs((2, 0), (4, 7)),
    "epoch that begins too late": epochs((3, 0), (4, 8)),
    "epoch that begins too early": epochs((3, 0), (4, 3)),
    "epoch that begins inside a batch": epochs((3, 0), (4, 6)),
    "epochs that fall": epochs((4, 7), (3, 0)),
    "first epoch begins behind the first batch": epochs((3, 1), (4, 7)),
    "boundary missing": remove(LOG / "boundary"),
    "boundary with a wrong checksum": write(LOG / "boundary", b"0\n1\n0 1 2 0 0 5\n"),
    "boundary empty": write(LOG / "boundary", b""),
    "boundary behind the log's end": boundary(9, 999, 50, 0, 0),
    "boundary lowered": boundary(0, 100, 1, 0, 0),
    "log start inside the log": boundary(9, 176, 11, 5, 0),
    "log start inside a batch": boundary(9, 176, 11, 2, 0),
    "log start at the log end": boundary(9, 176, 11, 11, 0),
    "log start behind the log's end": boundary(0, 0, 0, 12, 0),
    "gaps declared and made": all_of(boundary(9, 176, 11, 0, 9), cut_short(FIRST, 188)),
    "undurable hole": all_of(boundary(0, 94, 1, 0, 0), remove(MIDDLE)),
    "undurable, first file missing": all_of(boundary(0, 0, 0, 0, 0), remove(FIRST)),
    "undurable damage, later segments": all_of(
        boundary(0, 94, 1, 0, 0), lambda disk: flip(disk, MIDDLE, 150)
    ),
    "undurable damage in the last": all_of(
        boundary(0, 94, 1, 0, 0), lambda disk: flip(disk, LAST, 20)
    ),
    "boundary unknown, torn tail": all_of(remove(LOG / "boundary"), cut_short(LAST, 150)),
    "boundary unknown, damage before whole batches": all_of(
        remove(LOG / "boundary"), lambda disk: flip(disk, FIRST, 20)
    ),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_verdict_is_what_open_does(name: str) -> None:
    disk = healthy_log()
    DAMAGES[name](disk)
    assert said(disk) == what_open_does(disk)


@pytest.mark.parametrize("name", DAMAGES)
def test_verdict_is_what_open_does_without_a_seal_and_with_a_low_boundary(name: str) -> None:
    disk = crashed_log()
    put(disk, LOG / "seal", b"{}")
    DAMAGES[name](disk)
    assert said(disk) == what_open_does(disk)


@pytest.mark.parametrize("name", [*DAMAGES, "value flipped"])
def test_seal_that_hides_damage_from_a_default_open_is_said_to(name: str) -> None:
    disk = healthy_log()
    DAMAGES.get(name, lambda disk: flip(disk, MIDDLE, 215))(disk)
    document = as_json(disk, LOG, *FLAGS)
    is_said = any("may not see the damage" in note for note in document["notes"])
    is_bad = document["verdict"]["outcome"] in ("cuts", "refuses")
    assert not is_said or (is_bad and document["closed"] == "cleanly")
    try:
        log = PartitionLog.open(LOG, CONFIG, disk=disk.copy())
    except StorageError:
        return
    hides = is_bad and not log.report.cuts
    assert is_said or not hides
    assert hides or name != "value flipped"


BROKER_DAMAGES: dict[str, Damage] = {
    "nothing": lambda disk: None,
    "boundaries missing": remove(BROKER / "boundaries"),
    "boundaries unreadable": write(BROKER / "boundaries", b"0\n9\n"),
    "boundaries with a wrong checksum": lambda disk: flip(disk, BROKER / "boundaries", 20),
    "log starts missing": remove(BROKER / "log-start-offset-checkpoint"),
    "log starts unreadable": write(BROKER / "log-start-offset-checkpoint", b"x"),
    "log start raised": write(BROKER / "log-start-offset-checkpoint", b"0\n1\norders 2 4\n"),
    "log start too high": write(BROKER / "log-start-offset-checkpoint", b"0\n1\norders 2 40\n"),
    "marker missing": remove(BROKER / ".kafka_cleanshutdown"),
    "marker empty": write(BROKER / ".kafka_cleanshutdown", b""),
    "marker of another": write(BROKER / ".kafka_cleanshutdown", b"[1]"),
    "segment torn": cut_short(BROKER / "orders-2" / f"{4:020d}.log", 60),
    "segment flipped": lambda disk: flip(disk, BROKER / "orders-2" / f"{0:020d}.log", 60),
    "segments missing": lambda disk: (
        [disk.unlink(path) for path in segments(disk, BROKER / "orders-2")] and None
    ),
    "all of the partition missing": lambda disk: (
        [disk.unlink(path) for path in segments(disk, BROKER / "orders-2", "")] and None
    ),
}


@pytest.mark.parametrize("name", BROKER_DAMAGES)
def test_verdict_on_a_brokers_log_is_what_its_open_does(name: str) -> None:
    disk = healthy_broker()
    BROKER_DAMAGES[name](disk)
    directory = BROKER / "orders-2"
    expected = what_open_does(disk, directory)
    assert said(disk, directory) == expected
    whole = as_json(disk, BROKER, *FLAGS)
    (same,) = [found for found in whole["partitions"] if found["path"].endswith("orders-2")]
    alone = as_json(disk, directory, *FLAGS)
    assert {**same, "is_healthy": alone["is_healthy"]} == {
        key: value for key, value in alone.items() if key not in ("schema", "exit_status")
    }


@st.composite
def damage(draw: st.DrawFn) -> list[tuple[str, int, int]]:
    kinds = st.sampled_from(["flip", "cut", "add", "zero", "remove"])
    return draw(
        st.lists(
            st.tuples(kinds, st.integers(0, 11), st.integers(0, 2**16)), min_size=1, max_size=3
        )
    )


@given(damage(), st.booleans())
def test_verdict_on_drawn_damage_is_what_open_does(
    steps: list[tuple[str, int, int]], is_crashed: bool
) -> None:
    disk = crashed_log() if is_crashed else healthy_log()
    for kind, which, number in steps:
        paths = segments(disk, suffix="")
        path = paths[which % len(paths)]
        data = content(disk, path)
        at = number % (len(data) + 1)
        if kind == "remove":
            disk.unlink(path)
        elif kind == "flip" and at < len(data):
            flip(disk, path, at, 1 << number % 8)
        elif kind == "zero":
            put(disk, path, data[:at] + bytes(len(data[at : at + 40])) + data[at + 40 :])
        elif kind == "cut":
            put(disk, path, data[:at])
        elif kind == "add":
            put(disk, path, data + number.to_bytes(4, "big") * (1 + number % 30))
    assert said(disk) == what_open_does(disk)


# Derived files that are drawn -------------------------------------------------------------------


def log_with_holes() -> MemDisk:
    """Epochs 3, 5 and 6, with offsets missing below 20, as a follower of a compacted leader has."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, CONFIG, disk=disk)
    log.declare_gaps(20)
    places = [(0, 3), (2, 3), (3, 5), (9, 5), (10, 5), (14, 6), (20, 6), (21, 6), (22, 6)]
    for number, (offset, epoch) in enumerate(places):
        log.append_replica_batch(encode_batch(batch(number).assign(offset, epoch)))
    log.flush()
    log.abandon()
    return disk


small = st.integers(0, 30)
pairs = st.lists(st.tuples(small, small), max_size=5)
positions = st.sampled_from([0, 94, 128, 188, 222, 282, 316, 376, 500])
index_entries = st.lists(st.tuples(st.integers(0, 10), positions), max_size=5)
times = st.sampled_from([T0, T0 + 1_000, T0 + 1_001, T0 + 2_000, T0 + 3_000, T0 + 5_000])
time_entries = st.lists(st.tuples(times, st.integers(0, 12)), max_size=5)


@given(
    st.sampled_from([healthy_log, crashed_log, log_with_holes]),
    st.none() | pairs | pairs.map(lambda found: sorted(set(found))),
    st.none() | index_entries | index_entries.map(sorted),
    st.none() | time_entries | time_entries.map(sorted),
    st.none() | st.tuples(st.sampled_from([0, 4, 9]), st.integers(0, 400), small, small, small),
    st.integers(0, 2),
)
def test_verdict_on_drawn_derived_files_is_what_open_does(
    make: Callable[[], MemDisk],
    epoch_lines: list[tuple[int, int]] | None,
    offsets: list[tuple[int, int]] | None,
    timestamps: list[tuple[int, int]] | None,
    state: tuple[int, ...] | None,
    which: int,
) -> None:
    disk = make()
    log = segments(disk)[which % len(segments(disk))]
    if epoch_lines is not None:
        epochs(*epoch_lines)(disk)
    if offsets is not None:
        data = b"".join(struct.pack(">II", *entry) for entry in offsets)
        put(disk, log.with_suffix(".index"), data)
    if timestamps is not None:
        data = b"".join(struct.pack(">QI", *entry) for entry in timestamps)
        put(disk, log.with_suffix(".timeindex"), data)
    if state is not None:
        boundary(*state)(disk)
    assert said(disk) == what_open_does(disk)


@pytest.mark.parametrize("interval", [1, 50, 150, 4_096])
def test_verdict_is_that_of_the_index_interval_given(interval: int) -> None:
    disk = healthy_log()
    document = as_json(disk, LOG, "--index-interval-bytes", str(interval))
    config = LogConfig(segment_max_bytes=400, index_interval_bytes=interval)
    log = PartitionLog.open(LOG, config, disk=disk.copy(), verify="all")
    assert document["verdict"]["rebuilt"] == list(log.report.rebuilt)
    assert document["is_healthy"]
