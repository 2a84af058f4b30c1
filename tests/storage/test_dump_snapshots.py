"""Producer snapshots in a dump: every field, damage where it is, and what open does about them.

A file is called good exactly where ``decode_snapshot`` takes it. The verdict on a partition is
compared with an open of a copy, as in ``test_dump_verdict.py``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import LogConfig, PartitionLog
from storage.errors import CorruptCheckpoint
from storage.memdisk import MemDisk
from storage.producer_snapshots import decode_snapshot, encode_snapshot
from storage.producer_state import ProducerBatch, ProducerEntry
from tests.storage.dumping import CONFIG, FLAGS, LOG, as_json, dump, flip, producing_log
from tests.storage.faults import FaultDisk
from tests.storage.test_dump_hostile import FORMS, MIB, bounded
from tests.storage.test_dump_verdict import (
    Damage,
    add,
    all_of,
    boundary,
    cut_short,
    remove,
    rename,
    said,
    what_open_does,
    write,
)
from tests.storage.trees import content, put

SNAPSHOTS = tuple(LOG / f"{offset:020d}.snapshot" for offset in (5, 9, 12))
OLDEST, MIDDLE, NEWEST = SNAPSHOTS
LAST = LOG / f"{9:020d}.log"
FIELD_AT = 18
"""Where the first producer begins: id 8 bytes, epoch 4, time 8, count 1, then its batches."""


def patch(path: Path, at: int, data: bytes) -> Damage:
    """Other bytes, under a checksum that matches them."""

    def damage(disk: MemDisk) -> None:
        changed = bytearray(content(disk, path))
        changed[at : at + len(data)] = data
        changed[2:6] = struct.pack(">I", crc32(changed[6:]))
        put(disk, path, bytes(changed))

    return damage


def flipped(*paths: Path, at: int = -1) -> Damage:
    return all_of(*(lambda disk, path=path: flip(disk, path, at) for path in paths))  # type: ignore[misc]


SNAPSHOT_DAMAGES: dict[str, Damage] = {
    "nothing": lambda disk: None,
    "newest flipped in a sequence": flipped(NEWEST, at=FIELD_AT + 21 + 3),
    "newest with a negative epoch": patch(NEWEST, FIELD_AT + 8, b"\xff\xff\xff\xff"),
    "newest with six batches": patch(NEWEST, FIELD_AT + 20, b"\x06"),
    "newest with batches that fall": patch(NEWEST, FIELD_AT + 21 + 4, (8).to_bytes(8, "big")),
    "newest of version 2": write(NEWEST, b"\0\2" + bytes(40)),
    "newest of version 2, checksum right": patch(NEWEST, 0, b"\0\2"),
    "newest with more than it has room for": patch(NEWEST, 14, b"\xff\xff\xff\xff"),
    "newest with a tail": all_of(add(NEWEST, b"xyz"), patch(NEWEST, 0, b"\0\1")),
    "newest of another offset": patch(NEWEST, 6, (11).to_bytes(8, "big")),
    "newest cut short": cut_short(NEWEST, FIELD_AT + 21 + 50),
    "newest cut in its header": cut_short(NEWEST, 17),
    "newest empty": write(NEWEST, b""),
    "newest of Kafka's": write(NEWEST, struct.pack(">HII", 1, 0x48674BC7, 0)),
    "newest under another name": rename(NEWEST, NEWEST.with_stem(f"{11:020d}")),
    "newest behind the end": rename(NEWEST, NEWEST.with_stem(f"{13:020d}")),
    "newest far behind the end": rename(NEWEST, NEWEST.with_stem(f"{2**63 - 1:020d}")),
    "older under a newer name": rename(OLDEST, OLDEST.with_stem(f"{10:020d}")),
    "newest missing": remove(NEWEST),
    "all missing": all_of(*map(remove, SNAPSHOTS)),
    "older flipped": flipped(OLDEST, MIDDLE),
    "newest two flipped": flipped(MIDDLE, NEWEST),
    "every one flipped": flipped(*SNAPSHOTS),
    "names that are none": all_of(
        write(LOG / "17.snapshot", b"x"),
        write(LOG / f"{2**63:020d}.snapshot", b"x"),
        write(LOG / f"{12:020d}.snapshot.deleted", b"x"),
        lambda disk: disk.mkdir(LOG / f"{11:020d}.snapshot"),
        lambda disk: disk.symlink(LOG / f"{10:020d}.snapshot", OLDEST),
    ),
    "last segment cut, newest behind the end": all_of(
        boundary(9, 0, 9, 0, 0, 1), cut_short(LAST, 100)
    ),
    "log of nothing": all_of(
        boundary(0, 0, 0, 0, 0), *(remove(LOG / f"{base:020d}.log") for base in (0, 5, 9))
    ),
    "log that begins anew above a snapshot": all_of(
        boundary(0, 0, 0, 10, 0), *(remove(LOG / f"{base:020d}.log") for base in (0, 5, 9))
    ),
    "log that refuses": all_of(lambda disk: flip(disk, LAST, 40), flipped(NEWEST)),
    "boundary without the first producer": boundary(9, 235, 12, 0, 0),
    "boundary with eight fields": boundary(9, 235, 12, 0, 0, 1, 1),
}


@pytest.mark.parametrize("is_sealed", [True, False], ids=["closed", "killed"])
@pytest.mark.parametrize("name", SNAPSHOT_DAMAGES)
def test_verdict_is_what_open_does(name: str, is_sealed: bool) -> None:
    disk = producing_log()
    SNAPSHOT_DAMAGES[name](disk)
    if not is_sealed:
        disk.unlink(LOG / "seal")
    assert said(disk) == what_open_does(disk)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["flip", "cut", "add", "remove", "rename"]),
        st.integers(0, 2),
        st.integers(0, 2_000),
    ),
    min_size=1,
    max_size=4,
)


@given(STEPS, st.integers(0, 235))
def test_verdict_on_drawn_snapshots_is_what_open_does(
    steps: list[tuple[str, int, int]], kept_bytes: int
) -> None:
    """The log is cut as well, so that its end is anywhere about the newest ones."""
    disk = producing_log()
    boundary(9, 0, 9, 0, 0, 1)(disk)
    cut_short(LAST, kept_bytes)(disk)
    for kind, which, number in steps:
        names = [name for name in disk.listdir(LOG) if name.endswith(".snapshot")]
        if not names:
            break
        path = LOG / names[which % len(names)]
        data = content(disk, path)
        if kind == "flip" and data:
            flip(disk, path, number % len(data), 1 << number % 8)
        elif kind == "cut":
            put(disk, path, data[: number % (len(data) + 1)])
        elif kind == "add":
            put(disk, path, data + bytes(number % 30))
        elif kind == "remove":
            disk.unlink(path)
        elif kind == "rename":
            disk.rename(path, path.with_stem(f"{number % 15:020d}"))
    assert said(disk) == what_open_does(disk)


@pytest.mark.parametrize("name", SNAPSHOT_DAMAGES)
def test_the_snapshot_that_open_would_begin_with_is_named(name: str) -> None:
    disk = producing_log()
    SNAPSHOT_DAMAGES[name](disk)
    document = as_json(disk, LOG, *FLAGS)
    good = []
    bases = [segment["base_offset"] for segment in document["segments"]]
    first = min(bases, default=document["log_start_offset"])
    for file in document["snapshots"]:
        try:
            decode_snapshot(LOG / file, content(disk, LOG / file), int(file[:20]))
        except CorruptCheckpoint:
            continue
        end = document["next_offset"]
        if end is not None and first <= int(file[:20]) <= end:
            good.append(file)
    is_refused = document["verdict"]["outcome"] == "refuses"
    assert document["snapshot_used"] == (good[-1] if good and not is_refused else None)


# What is shown of one file ---------------------------------------------------------------------


def shown(name: str, path: Path = NEWEST) -> Any:
    disk = producing_log()
    SNAPSHOT_DAMAGES[name](disk)
    return as_json(disk, path)


def rows_as_entries(document: Any) -> dict[int, ProducerEntry]:
    """The rows, put together again."""
    return {
        row["producer_id"]: ProducerEntry(
            row["producer_epoch"],
            row["timestamp_ms"],
            tuple(
                ProducerBatch(
                    one["first_sequence"],
                    one["last_sequence"],
                    one["base_offset"],
                    one["next_offset"] - 1,
                    one["timestamp_ms"],
                )
                for one in row["batches"]
            ),
        )
        for row in document["rows"]
    }


@pytest.mark.parametrize("path", SNAPSHOTS)
def test_every_field_of_a_snapshot_is_in_the_document(path: Path) -> None:
    disk = producing_log()
    document = as_json(disk, path)
    offset = int(path.stem)
    assert rows_as_entries(document) == decode_snapshot(path, content(disk, path), offset)
    facts = {"version": 1, "offset": offset, "producer_count": document["row_count"]}
    assert document["facts"] == {**facts, "checksum": "matches"}
    assert document["is_healthy"]


@pytest.mark.parametrize(
    ("name", "problems", "ids"),
    [
        ("newest flipped in a sequence", [(2, "checksum .* does not match")], [7, 9, 42]),
        ("newest with a negative epoch", [(18, "producer 7 after -1: epoch -1")], [7, 9, 42]),
        ("newest with six batches", [(18, "producer 7 after -1: .* 6 batches")], [7]),
        ("newest with batches that fall", [(18, "batch at byte 63: ")], [7, 9, 42]),
        ("newest of version 2", [(0, "version 2, allowed is 1")], []),
        ("newest of version 2, checksum right", [(0, "version 2, allowed is 1")], [7, 9, 42]),
        ("newest with more than it has room for", [(225, "4294967295 producers in")], [7, 9, 42]),
        ("newest with a tail", [(225, "3 bytes behind the last producer")], [7, 9, 42]),
        ("newest cut in its header", [(0, "17 bytes are no whole header")], []),
        ("newest empty", [(0, "0 bytes are no whole header")], []),
        ("newest cut short", [(2, "checksum"), (18, "5 batches pass the end at byte 39")], [7]),
    ],
)
def test_damage_is_shown_where_it_is_and_the_rest_as_it_stands(
    name: str, problems: list[tuple[int, str]], ids: list[int]
) -> None:
    document = shown(name)
    assert [found["position"] for found in document["problems"]][: len(problems)] == [
        position for position, _ in problems
    ]
    for found, (_, reason) in zip(document["problems"], problems, strict=False):
        assert re.search(reason, found["reason"])
    assert [row["producer_id"] for row in document["rows"]] == ids
    assert document["row_count"] == len(ids)
    assert document["exit_status"] == 1


def test_of_a_producer_that_is_cut_short_the_whole_batches_are_shown() -> None:
    (row,) = shown("newest cut short")["rows"]
    assert [batch["first_sequence"] for batch in row["batches"]] == [2, 3]
    assert row["problem"] == "5 batches pass the end at byte 39"


def test_a_snapshot_under_another_name_is_judged_by_its_own_offset() -> None:
    document = shown("newest under another name", NEWEST.with_stem(f"{11:020d}"))
    assert document["problems"] == [
        {
            "file": f"{11:020d}.snapshot",
            "reason": "made at offset 12",
            "position": 6,
            "line": None,
        }
    ]
    assert [row["problem"] for row in document["rows"]] == [None] * 3


def test_a_snapshot_of_kafkas_is_not_decoded_and_not_blamed() -> None:
    document = shown("newest of Kafka's")
    assert (document["columns"], document["rows"], document["problems"]) == ([], [], [])
    assert document["notes"] == ["a producer snapshot of Kafka's own, not decoded"]
    assert document["exit_status"] == 0


EXAMPLE = encode_snapshot(
    102,
    {
        7: ProducerEntry(
            0, 1_001, (ProducerBatch(5, 8, 96, 99, 1_000), ProducerBatch(9, 10, 100, 101, -1))
        ),
        42: ProducerEntry(1, -1, ()),
        43: ProducerEntry(0, 3, (ProducerBatch(2**31 - 1, 0, 20, 21, 3),)),
    },
)


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(st.tuples(st.integers(6, len(EXAMPLE) - 1), st.integers(0, 255)), max_size=4),
        st.integers(0, len(EXAMPLE)).map(lambda size: EXAMPLE[6:size]),
    ),
    st.booleans(),
)
def test_a_file_is_good_exactly_where_open_takes_it(
    change: bytes | list[tuple[int, int]], is_sealed: bool
) -> None:
    data = bytearray(EXAMPLE)
    if isinstance(change, bytes):
        data[6:] = change
    else:
        for at, value in change:
            data[at] = value
    if is_sealed:
        data[2:6] = struct.pack(">I", crc32(data[6:]))
    disk, path = MemDisk(), LOG / f"{102:020d}.snapshot"
    disk.mkdir(Path("/data"))
    disk.mkdir(LOG)
    put(disk, path, bytes(data))
    document = as_json(disk, path)
    entries, refusal = None, None
    try:
        entries = decode_snapshot(path, bytes(data), 102)
    except CorruptCheckpoint as error:
        refusal = error.reason
    if refusal is None:
        assert document["is_healthy"]
        assert rows_as_entries(document) == entries
    else:
        reasons = [found["reason"] for found in document["problems"]]
        assert document["notes"] or refusal in reasons


# Hostile and moving files ----------------------------------------------------------------------


def large(count: int) -> bytes:
    return encode_snapshot(
        10**9,
        {
            number: ProducerEntry(
                0,
                5,
                tuple(ProducerBatch(n, n, number * 5 + n, number * 5 + n, 5) for n in range(5)),
            )
            for number in range(count)
        },
    )


@pytest.mark.parametrize("form", FORMS[:2])
def test_memory_for_a_large_snapshot_is_that_for_a_small_one(form: tuple[str, ...]) -> None:
    disk = producing_log()
    path = LOG / f"{10**9:020d}.snapshot"
    put(disk, path, large(40_000))
    ran = bounded(disk, path, *form, "--count", "2", memory_mib=4, reads=4)
    assert ran.status == 0
    assert "40000 producers" in ran.out or '"row_count":40000' in ran.out


@pytest.mark.parametrize("fill", [b"\x00", b"\xff"])
def test_large_snapshots_of_nonsense_are_given_up(fill: bytes) -> None:
    disk = producing_log()
    data = b"\0\1" + bytes(4) + struct.pack(">qI", 12, 2**32 - 1) + fill * (8 * MIB)
    put(disk, NEWEST, data)
    ran = bounded(disk, NEWEST, reads=5)
    assert ran.status == 1
    assert len(ran.out) < 400_000
    bounded(disk, LOG, *FLAGS, reads=5)


def test_a_snapshot_above_the_limit_is_not_read() -> None:
    disk = producing_log()
    put(disk, NEWEST, bytes((64 << 20) + 1))
    ran = bounded(disk, NEWEST, reads=1)
    assert "67108865 bytes, at most 67108864 are read" in ran.out


def test_a_snapshot_that_cannot_be_read_is_named_and_would_be_replaced() -> None:
    disk = FaultDisk(producing_log())
    disk.fail("open", suffix=NEWEST.name, times=None, errno=13)
    document = as_json(disk, LOG, *FLAGS)
    (problem,) = document["problems"]
    assert (problem["file"], problem["reason"][:14]) == (NEWEST.name, "cannot be read")
    assert document["verdict"]["removed"] == [NEWEST.name]
    assert document["snapshot_used"] == MIDDLE.name


def test_a_snapshot_that_is_just_being_written_is_no_damage() -> None:
    """Empty when it is read first, whole when it is read again, by the size both times whole."""
    disk = producing_log()
    log = PartitionLog.open(LOG, CONFIG, disk=disk)
    whole = content(disk, NEWEST)
    reads: list[Callable[[], None]] = [lambda: put(disk, NEWEST, whole[:30])]

    class Writing(FaultDisk):
        def record(self, operation: str, path: Path, args: str = "", *others: Path) -> None:
            if operation == "open" and path == NEWEST:
                if reads:
                    reads.pop()()
                    return
            if operation in ("open", "listdir"):
                put(disk, NEWEST, whole)

        def lock_state(self, path: Path) -> Any:
            return disk.lock_state(path)

    document = as_json(Writing(disk), LOG, *FLAGS)
    assert document["lock"]["is_held"]
    assert document["problems"] == []
    assert document["snapshot_used"] == NEWEST.name
    log.abandon()


def test_a_log_without_producers_says_nothing_of_them() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    PartitionLog.open(LOG, LogConfig(), disk=disk).close()
    document = as_json(disk, LOG)
    assert (document["producers_from"], document["snapshots"]) == (None, [])
    text = dump(disk, LOG).out
    assert "producers" not in text
    assert "snapshots" not in text
