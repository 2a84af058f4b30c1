"""Rows of STORAGE.md E.2 about derived files: indexes, the epoch file, producer snapshots.

They are rebuilt whenever in doubt, whatever was durable, and the log's end never comes from them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from storage.epochs import EPOCH_FILE
from storage.producer_snapshots import encode_snapshot
from storage.producer_state import ProducerEntry
from tests.storage.damage import (
    CLOSED,
    COUNT,
    EPOCHS,
    FLUSHED,
    FRAME,
    UNFLUSHED,
    UNKNOWN,
    Damage,
    drop,
    epoch_text,
    index_name,
    log_name,
    overwrite,
    shorten,
    time_name,
)
from tests.storage.damage_outcomes import Case, Opens, Refuses, variants

ALL = ("all",)
QUICK = ("unflushed",)
ANY = (CLOSED, FLUSHED, UNFLUSHED, UNKNOWN)
NO_PRODUCERS = encode_snapshot(COUNT, {})

# Indexes ---------------------------------------------------------------------------------------


def rebuilt(row: int, name: str, damage: Damage) -> list[Case]:
    """The log is whole and an index is derived anew, at the latest when it is used."""
    return [
        *variants(row, name, damage, Opens(keeps_seal=True), *ANY, verify=ALL),
        *variants(row, name, damage, Opens(keeps_seal=True, lazy=True), *ANY, verify=QUICK),
    ]


def row_33() -> list[Case]:
    cases = []
    for base in (0, 30, 60):
        cases += rebuilt(33, f"index-missing-{base}", drop(index_name(base)))
    every = drop(*[index_name(base) for base in (0, 30, 60)])
    return [*cases, *rebuilt(33, "every-index-missing", every)]


def row_34() -> list[Case]:
    cases = []
    for base in (0, 30, 60):
        cases += rebuilt(34, f"time-index-missing-{base}", drop(time_name(base)))
    return cases


def row_35() -> list[Case]:
    cases = []
    for base in (30, 60):
        cases += rebuilt(35, f"index-ragged-{base}", grown(index_name(base), b"abc"))
        cases += rebuilt(35, f"index-empty-{base}", shorten(index_name(base), 0))
    return cases


def grown(name: str, data: bytes) -> Damage:
    """Bytes added to any file."""
    return lambda place: place.edit(name, lambda content: content.extend(data))


def entry(relative: int, position: int) -> bytes:
    return struct.pack(">II", relative, position)


def row_36() -> list[Case]:
    return [
        *rebuilt(36, "closed-index-beyond-the-end", grown(index_name(30), entry(29, 99_999))),
        *rebuilt(36, "closed-index-beyond-offsets", grown(index_name(30), entry(500, 29 * FRAME))),
    ]


def row_37() -> list[Case]:
    return [
        *rebuilt(37, "active-index-beyond-the-end", grown(index_name(60), entry(29, 99_999))),
        *rebuilt(37, "active-index-beyond-offsets", grown(index_name(60), entry(500, 29 * FRAME))),
        *variants(37, "active-index-too-short", shorten(index_name(60), 8), Opens(), *ANY[1:]),
    ]


def index_put(base: int, number: int, relative: int, position: int) -> Damage:
    """Replace one entry of an offset index; entry ``n`` of a good one is (4 n, 4 n frames)."""

    def change(data: bytearray) -> None:
        data[8 * number : 8 * number + 8] = entry(relative, position)

    return lambda place: place.edit(index_name(base), change)


def row_38() -> list[Case]:
    cases = []
    for base in (30, 60):
        middle = index_put(base, 3, 12, 12 * FRAME + 5)
        last = index_put(base, 7, 28, 28 * FRAME - 7)
        other = index_put(base, 3, 12, 13 * FRAME)
        cases += rebuilt(38, f"index-mid-batch-{base}", middle)
        cases += rebuilt(38, f"index-last-mid-batch-{base}", last)
        cases += rebuilt(38, f"index-at-another-batch-{base}", other)
    return cases


def row_39() -> list[Case]:
    cases = []
    for base in (30, 60):
        falls = index_put(base, 3, 6, 6 * FRAME)
        cases += rebuilt(39, f"index-descending-{base}", falls)
        cases += rebuilt(39, f"index-all-zero-{base}", overwrite(index_name(base), bytes(64)))
        cases += rebuilt(39, f"index-zero-padded-{base}", grown(index_name(base), bytes(1_200)))
    return cases


def row_40() -> list[Case]:
    cases = []
    for base in (30, 60):
        name = time_name(base)

        def fall(data: bytearray) -> None:
            data[12:24], data[24:36] = data[24:36], data[12:24]

        cases += rebuilt(40, f"time-index-descending-{base}", edited(name, fall))
        cases += rebuilt(40, f"time-index-ragged-{base}", grown(name, b"abc"))
        late = struct.pack(">QI", 10**15, 30)
        cases += rebuilt(40, f"time-index-beyond-the-log-{base}", grown(name, late))
    return cases


def edited(name: str, change: Callable[[bytearray], object]) -> Damage:
    return lambda place: place.edit(name, change)


# Epochs ----------------------------------------------------------------------------------------


def epochs(row: int, name: str, data: bytes | None, *, warnings: int = 1) -> list[Case]:
    """The epoch file is derived from the batches again."""
    damage = drop(EPOCH_FILE) if data is None else overwrite(EPOCH_FILE, data)
    return variants(row, name, damage, Opens(keeps_seal=True, warnings=warnings), *ANY)


def row_41() -> list[Case]:
    return [
        *epochs(41, "epochs-missing", None, warnings=0),
        *epochs(41, "epochs-empty", b""),
    ]


def row_42() -> list[Case]:
    whole = epoch_text(EPOCHS)
    contents = {
        "torn": whole[: len(whole) - 4],
        "torn-line": whole[:7],
        "count-wrong": b"0\n5\n1 0\n5 45\n6 75\n",
        "garbage": b"\xff\xfe\x00garbage",
        "version-1": b"1" + whole[1:],
        "negative-epoch": b"0\n1\n-5 0\n",
        "negative-offset": b"0\n1\n5 -1\n",
        "no-numbers": b"0\n1\nfive zero\n",
        "huge": b"0\n1\n99999999999999999999 0\n",
    }
    return [case for name in contents for case in epochs(42, f"epochs-{name}", contents[name])]


def row_43() -> list[Case]:
    """A leader was elected and wrote nothing: its entry at the log's end stays."""
    kept = (*EPOCHS, (7, COUNT))
    opens = Opens(keeps_seal=True, epochs=kept)
    return variants(43, "epoch-at-the-end", overwrite(EPOCH_FILE, epoch_text(kept)), opens, *ANY)


def row_44() -> list[Case]:
    data = epoch_text((*EPOCHS, (7, COUNT + 5)))
    opens = Opens(keeps_seal=True)
    return [
        *variants(44, "epoch-beyond-the-end", overwrite(EPOCH_FILE, data), opens, *ANY),
        *variants(
            44,
            "epoch-beyond-the-end-below-the-boundary",
            shorten(log_name(60), 10 * FRAME),
            Refuses(60, 10 * FRAME, 70, None),
            FLUSHED,
        ),
    ]


def row_45() -> list[Case]:
    return [
        *epochs(45, "epochs-two-missing", epoch_text(EPOCHS[:1])),
        *epochs(45, "epochs-last-missing", epoch_text(EPOCHS[:2])),
        *epochs(45, "epochs-middle-missing", epoch_text((EPOCHS[0], EPOCHS[2]))),
        *epochs(45, "epochs-first-missing", epoch_text(EPOCHS[1:])),
    ]


def row_46() -> list[Case]:
    entries = {
        "not-rising": ((5, 45), (1, 0), (6, 75)),
        "offsets-not-rising": ((1, 0), (5, 75), (6, 45)),
        "starts-early": ((1, 0), (5, 44), (6, 75)),
        "starts-late": ((1, 0), (5, 46), (6, 75)),
        "first-starts-late": ((1, 3), (5, 45), (6, 75)),
        "extra": ((1, 0), (2, 20), (5, 45), (6, 75)),
        "extra-behind": ((1, 0), (5, 45), (6, 75), (7, 80)),
        "other-epoch": ((1, 0), (4, 45), (6, 75)),
        "twice": ((1, 0), (5, 45), (5, 50), (6, 75)),
    }
    return [
        case for name in entries for case in epochs(46, f"epochs-{name}", epoch_text(entries[name]))
    ]


# Producers and transactions --------------------------------------------------------------------


def row_60() -> list[Case]:
    """Beside a log without producers; ``test_producer_recovery`` has one with producers."""
    cases = []
    for name, data in {
        "empty": b"",
        "torn": NO_PRODUCERS[:17],
        "crc": NO_PRODUCERS[:-1] + b"x",
    }.items():
        file = f"{COUNT:020d}.snapshot"
        opens = Opens(keeps_seal=True, removed=(file,), warnings=1)
        cases += variants(60, f"snapshot-{name}", overwrite(file, data), opens, *ANY)
    file = f"{COUNT + 1:020d}.snapshot"
    stray = encode_snapshot(COUNT + 1, {7: ProducerEntry(0, 1, ())})
    opens = Opens(keeps_seal=True, removed=(file,))
    return [*cases, *variants(60, "snapshot-stray", overwrite(file, stray), opens, *ANY)]


def transaction_index(row: int, name: str, data: bytes, base: int = 0) -> list[Case]:
    """Nothing here reads an index of aborted transactions, so nothing can be wrong with one."""
    file = f"{base:020d}.txnindex"
    opens = Opens(keeps_seal=True, ignored=(file,))
    return variants(row, f"transaction-index-{name}", overwrite(file, data), opens, *ANY)


def row_61() -> list[Case]:
    return transaction_index(61, "version-9", struct.pack(">hqqqq", 9, 7, 0, 5, 5))


def row_62() -> list[Case]:
    entry = struct.pack(">hqqqq", 0, 7, 20, 25, 25)
    return [
        *transaction_index(62, "ragged", entry[:-3]),
        *transaction_index(62, "below-its-base", entry, base=30),
    ]


def derived_cases() -> list[Case]:
    """All rows of this module."""
    rows = (row_33, row_34, row_35, row_36, row_37, row_38, row_39, row_40)
    more = (row_41, row_42, row_43, row_44, row_45, row_46, row_60, row_61, row_62)
    return [case for row in (*rows, *more) for case in row()]
