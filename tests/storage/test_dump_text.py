"""The text of a dump, word for word: ``golden/dump.txt`` holds each case as it would be typed.

Run with LEADERFALL_REWRITE_GOLDEN=1 to write that file anew, then read the difference: every line
of it must be explained. What the words claim is the subject of ``test_dump_verdict.py``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from storage import LogConfig, PartitionLog, Record, RecordBatch, encode_batch
from storage.inspection.escaping import plain, quoted, safe, utc
from storage.inspection.words import counted, table
from storage.memdisk import MemDisk
from tests.storage.dumping import (
    BROKER,
    FLAGS,
    LOG,
    T0,
    crashed_log,
    dump,
    flip,
    healthy_broker,
    healthy_log,
    producing_log,
)
from tests.storage.test_dump_snapshots import SNAPSHOT_DAMAGES, SNAPSHOTS
from tests.storage.test_dump_verdict import BROKER_DAMAGES, DAMAGES, FIRST, LAST, MIDDLE
from tests.storage.trees import content, put

GOLDEN = Path(__file__).parent / "golden" / "dump.txt"


class Case(NamedTuple):
    """A disk, and the arguments behind the program's name."""

    make: Callable[[], MemDisk]
    arguments: tuple[str | Path, ...]


def damaged(name: str) -> Callable[[], MemDisk]:
    def make() -> MemDisk:
        disk = healthy_log()
        DAMAGES[name](disk)
        return disk

    return make


def damaged_broker(name: str) -> Callable[[], MemDisk]:
    def make() -> MemDisk:
        disk = healthy_broker()
        BROKER_DAMAGES[name](disk)
        return disk

    return make


def in_use() -> MemDisk:
    """A log that a process has open, in the middle of a write."""
    disk = crashed_log()
    disk.lock(LOG / ".lock")
    put(disk, LAST, content(disk, LAST)[:150])
    return disk


def odd_batches() -> MemDisk:
    """Version 1, an emptied batch, a gap, long and strange keys and values, many headers."""
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    disk.mkdir(LOG)
    strange = b'\x1b[2J\x07\xc2\x9b31m \xe2\x80\xae\xf0\x9f\x90\x8d \\ "'
    frames = [
        encode_batch(batch)
        for batch in (
            RecordBatch.unassigned([Record(b"old", None, 5)], format_version=1).assign(0, 1),
            RecordBatch((), (), 4, 1, 1, producer_id=7, producer_epoch=2, base_sequence=3),
            RecordBatch.unassigned([Record(strange, b"\xff\x00", -1)]).assign(8, 1),
            RecordBatch.unassigned(
                [Record(b"k" * 65, b"v" * 64, T0, tuple((f"h{n}", b"") for n in range(18)))],
                transactional_id="t" * 70,
            ).assign(9, 2),
        )
    ]
    put(disk, FIRST, b"".join(frames))
    return disk


def pieces() -> MemDisk:
    """Damage in two places of one segment."""
    disk = healthy_log(LogConfig(index_interval_bytes=100))
    flip(disk, FIRST, 120)
    flip(disk, FIRST, 500)
    return disk


def epochs_that_fall() -> MemDisk:
    """A whole batch of an older epoch behind one of a newer: it does not belong there."""
    disk = healthy_log()
    batches = [RecordBatch.unassigned([Record(None, b"v", T0)])] * 3
    frames = [encode_batch(one.assign(n, (5, 3, 3)[n])) for n, one in enumerate(batches)]
    put(disk, FIRST, b"".join(frames))
    return disk


def snapshots_damaged(name: str) -> Callable[[], MemDisk]:
    def make() -> MemDisk:
        disk = producing_log()
        SNAPSHOT_DAMAGES[name](disk)
        return disk

    return make


def empty_log() -> MemDisk:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    PartitionLog.open(LOG, disk=disk).close()
    return disk


WHOLE = (LOG, *FLAGS)
PARTITION_DAMAGES = (
    "torn batch at the tail",
    "first batch flipped",
    "last batch flipped",
    "junk behind a closed segment",
    "middle segment missing",
    "every segment missing",
    "undurable damage, later segments",
    "undurable, first file missing",
    "segment under another name",
    "foreign log",
    "link named like a segment",
    "swap of one segment",
    "swap that is torn",
    "retention cut short",
    "index missing",
    "index ragged",
    "index entry inside a batch",
    "index of zeros",
    "time index too early",
    "time index empty",
    "epoch file missing",
    "epoch file torn",
    "epoch that begins too early",
    "epoch beyond the log end",
    "boundary missing",
    "boundary with a wrong checksum",
    "boundary behind the log's end",
    "seal of nothing",
    "other files",
    "left-over files",
)
CASES: dict[str, Case] = {
    "a healthy log": Case(healthy_log, WHOLE),
    "a log that was not closed": Case(crashed_log, WHOLE),
    "a log in use": Case(in_use, WHOLE),
    "an empty log": Case(empty_log, (LOG,)),
    "spaced for another index interval": Case(healthy_log, (LOG,)),
    "batches of a partition": Case(
        healthy_log, (*WHOLE, "--records", "--from", "8", "--count", "2")
    ),
    **{name: Case(damaged(name), WHOLE) for name in PARTITION_DAMAGES},
    "a segment": Case(healthy_log, (MIDDLE,)),
    "a segment with records": Case(healthy_log, (LAST, "--records")),
    "odd batches": Case(odd_batches, (FIRST, "--records")),
    "odd batches in full": Case(odd_batches, (FIRST, "--records", "--full", "--from", "9")),
    "a segment damaged in two places": Case(pieces, (FIRST,)),
    "a segment with its last batch twice": Case(damaged("last batch twice"), (LAST,)),
    "a segment whose epochs fall": Case(epochs_that_fall, (FIRST,)),
    "a segment in use": Case(in_use, (LAST,)),
    "an offset index": Case(healthy_log, (FIRST.with_suffix(".index"), *FLAGS)),
    "a wrong offset index": Case(
        damaged("index entry inside a batch"), (FIRST.with_suffix(".index"), *FLAGS)
    ),
    "a time index": Case(healthy_log, (FIRST.with_suffix(".timeindex"), *FLAGS)),
    "a wrong time index": Case(
        damaged("time index too early"), (FIRST.with_suffix(".timeindex"), *FLAGS)
    ),
    "leader epochs": Case(healthy_log, (LOG / "leader-epoch-checkpoint",)),
    "torn leader epochs": Case(damaged("epoch file torn"), (LOG / "leader-epoch-checkpoint",)),
    "a boundary": Case(healthy_log, (LOG / "boundary",)),
    "a wrong boundary": Case(damaged("boundary with a wrong checksum"), (LOG / "boundary",)),
    "a seal": Case(healthy_log, (LOG / "seal",)),
    "no seal": Case(damaged("seal that is no JSON"), (LOG / "seal",)),
    "a producer snapshot": Case(producing_log, (SNAPSHOTS[-1],)),
    "one producer of a snapshot": Case(producing_log, (SNAPSHOTS[-1], "--count", "1")),
    "a producer snapshot with a wrong bit": Case(
        snapshots_damaged("newest flipped in a sequence"), (SNAPSHOTS[-1],)
    ),
    "a producer snapshot with a field that cannot be": Case(
        snapshots_damaged("newest with a negative epoch"), (SNAPSHOTS[-1],)
    ),
    "a producer snapshot cut short": Case(snapshots_damaged("newest cut short"), (SNAPSHOTS[-1],)),
    "a producer snapshot under another name": Case(
        snapshots_damaged("newest under another name"), (SNAPSHOTS[-1].with_stem(f"{11:020d}"),)
    ),
    "a log with producer snapshots": Case(producing_log, WHOLE),
    "a log with bad producer snapshots": Case(snapshots_damaged("every one flipped"), WHOLE),
    "a log with producer snapshots behind its end": Case(
        snapshots_damaged("last segment cut, newest behind the end"), WHOLE
    ),
    "a lock": Case(in_use, (LOG / ".lock",)),
    "a broker's directory": Case(healthy_broker, (BROKER, *FLAGS)),
    "a broker's directory with damage": Case(damaged_broker("segment flipped"), (BROKER, *FLAGS)),
    "a broker's directory with unreadable boundaries": Case(
        damaged_broker("boundaries unreadable"), (BROKER, *FLAGS)
    ),
    "a broker's partition": Case(healthy_broker, (BROKER / "orders-1", *FLAGS)),
    "boundaries": Case(healthy_broker, (BROKER / "boundaries",)),
    "high watermarks": Case(healthy_broker, (BROKER / "replication-offset-checkpoint",)),
    "a marker": Case(healthy_broker, (BROKER / ".kafka_cleanshutdown",)),
    "topic of a partition": Case(healthy_broker, (BROKER / "orders-1" / "partition.metadata",)),
    "nothing there": Case(healthy_log, (LOG / "nothing",)),
}


def typed(name: str, case: Case) -> str:
    ran = dump(case.make(), *case.arguments)
    command = " ".join(map(str, case.arguments)).replace("/data/", "")
    shown = (ran.out + ran.err).replace("/data/", "")
    return f"# {name}\n$ dump {command}\n{shown}exit status {ran.status}\n"


def golden() -> dict[str, str]:
    sections = GOLDEN.read_text(encoding="utf-8").split("\n\n\n")
    return {section.partition("\n")[0][2:]: section.rstrip("\n") + "\n" for section in sections}


def test_golden_file_has_every_case_and_no_other() -> None:
    if os.environ.get("LEADERFALL_REWRITE_GOLDEN"):
        text = "\n\n".join(typed(name, case) for name, case in CASES.items())
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert list(golden()) == list(CASES)


@pytest.mark.parametrize("name", CASES)
def test_text_is_the_golden_one(name: str) -> None:
    assert typed(name, CASES[name]) == golden()[name]


@pytest.mark.parametrize("name", CASES)
def test_text_is_short_lines_without_control_characters(name: str) -> None:
    ran = dump(CASES[name].make(), *CASES[name].arguments)
    for line in (ran.out + ran.err).split("\n"):
        assert line.isprintable()
        assert line == line.rstrip()


# Words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"", '""'),
        (b"plain text", '"plain text"'),
        (b'say "hi" \\ bye', '"say \\"hi\\" \\\\ bye"'),
        (b"\n\r\t\x00\x1b\x7f", '"\\n\\r\\t\\x00\\x1b\\x7f"'),
        ("schlüssel 日本 🐍".encode(), '"schlüssel 日本 🐍"'),
        (b"\xff\xfe A", '"\\xff\\xfe A"'),
        (b"\xc3\xa9 and \xff", '"\\xc3\\xa9 and \\xff"'),
        (
            "\x85\u2028\u202e\ufeff\ue000\U000e0001".encode(),
            '"\\u0085\\u2028\\u202e\\ufeff\\ue000\\U000e0001"',
        ),
    ],
)
def test_bytes_are_shown_so_that_they_can_be_told(data: bytes, shown: str) -> None:
    assert quoted(data) == shown


def test_names_keep_their_backslashes_apart_from_escapes() -> None:
    assert plain("a\x1bb\\x1b") == "a\\x1bb\\\\x1b"
    assert safe("'\\x1b' \x1b") == "'\\x1b' \\x1b"
    assert plain("caf\udce9") == "caf\\xe9"


@pytest.mark.parametrize(
    ("timestamp_ms", "shown"),
    [
        (-1, "-"),
        (-2, "-2"),
        (0, "1970-01-01T00:00:00.000Z"),
        (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        (1_077_926_399_999, "2004-02-27T23:59:59.999Z"),
        (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        (253_402_300_800_000, "253402300800000"),
        (2**63 - 1, "9223372036854775807"),
    ],
)
def test_timestamps_are_dates_where_there_are_such_dates(timestamp_ms: int, shown: str) -> None:
    assert utc(timestamp_ms) == shown


def test_numbers_and_their_nouns_agree() -> None:
    words = [counted(n, noun) for n in (0, 1, 2) for noun in ("byte", "entry", "batch")]
    assert words == [
        *("0 bytes", "0 entries", "0 batches"),
        *("1 byte", "1 entry", "1 batch"),
        *("2 bytes", "2 entries", "2 batches"),
    ]


def test_table_widens_where_a_late_row_needs_it() -> None:
    rows = [("1", "a")] * 200 + [("12345", "b"), ("6", "c")]
    lines = list(table(("n", "x"), "><", rows))
    assert lines[0] == "n  x"
    assert lines[200:] == ["1  a", "12345  b", "    6  c"]
    assert list(table(("n",), "<", ())) == []
