"""Files that lie, that are not files, or that are not a log's: shown or refused, within bounds.

No test looks at the clock. What is bounded is the work: bytes read and calls made, as multiples of
what is there, and the peak of memory, measured by ``tracemalloc``.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from struct import Struct
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import LogConfig, PartitionLog, Record, RecordBatch, encode_batch
from storage.batch import OFFSET_END
from storage.checkpoints import write_entries
from storage.memdisk import MemDisk
from storage.state import checksum
from tests.storage.dumping import (
    BROKER,
    FLAGS,
    LOG,
    Ran,
    WatchedDisk,
    as_json,
    dump,
    healthy_broker,
    healthy_log,
)
from tests.storage.trees import content, put, tree

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
FIRST = LOG / f"{0:020d}.log"
FORMS = ((), ("--json",), ("--records", "--full", "--json"))


def bounded(
    disk: MemDisk, path: Path, *arguments: str, memory_mib: int = 24, reads: int = 12
) -> Ran:
    """Dump, within ``memory_mib`` beyond the output, and reading what is there ``reads`` times."""
    watched = WatchedDisk(disk)
    there = disk.used_bytes
    tracemalloc.start()
    try:
        ran = dump(watched, path, *arguments)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # What is printed is kept here, up to four bytes a character, and twice while it grows.
    assert peak < memory_mib * MIB + 8 * len(ran.out)
    assert watched.bytes_read <= reads * there + MIB
    assert watched.largest_read <= 16 * MIB
    assert watched.open_files == 0
    assert ran.status in (0, 1, 2), ran.err
    return ran


@pytest.fixture
def disk() -> MemDisk:
    return healthy_log()


# Lengths and counts that lie -------------------------------------------------------------------

_HEADER = Struct(">BqIqiiBiHIq")


def frame(
    *,
    version: int = 2,
    base: int = 0,
    epoch: int = 3,
    flags: int = 0,
    last_delta: int = 0,
    id_bytes: int = 0,
    count: int = 1,
    body: bytes = b"",
    length: int | None = None,
) -> bytes:
    """A frame with a CRC that is right, whatever else is not."""
    header = (version, base, epoch, -1, -1, -1, flags, last_delta, id_bytes, count, -1)
    payload = _HEADER.pack(*header) + body
    size = len(payload) if length is None else length
    return b"MKB1" + size.to_bytes(4, "big") + crc32(payload).to_bytes(4, "big") + payload


LIES = {
    "records": frame(count=2**32 - 1),
    "record lengths": frame(body=Struct(">iqiiH").pack(0, 0, 2**31 - 1, 2**31 - 1, 65_535)),
    "negative lengths": frame(body=Struct(">iqiiH").pack(0, 0, -5, -(2**31), 0)),
    "header count": frame(body=Struct(">iqiiH").pack(0, 0, -1, -1, 65_535)),
    "transactional id": frame(flags=1, id_bytes=65_535),
    "transactional id that is no text": frame(flags=1, id_bytes=4, count=0, body=b"\x1b[m\xff"),
    "flags": frame(flags=255, count=0),
    "payload": frame(length=2**32 - 1),
    "payload below the header": frame(length=3),
    "epoch": frame(epoch=2**32 - 1),
    "offset": frame(base=2**63 - 1),
    "negative offset": frame(base=-1),
    "last offset": frame(last_delta=2**31 - 1, count=0),
    "version": frame(version=9),
    "records of version 1": frame(version=1, count=2**32 - 1),
}


@pytest.mark.parametrize("name", LIES)
@pytest.mark.parametrize("form", FORMS, ids=" ".join)
def test_frames_that_lie_cost_nothing(name: str, form: tuple[str, ...], disk: MemDisk) -> None:
    put(disk, FIRST, LIES[name] + content(disk, FIRST))
    for path in (FIRST, LOG):
        bounded(disk, path, *FLAGS, *form)


def test_records_that_do_not_decode_are_damage_where_records_are_shown(disk: MemDisk) -> None:
    put(disk, FIRST, LIES["records"])
    ran = bounded(disk, FIRST, "--records")
    assert ran.status == 1
    assert "at byte 0: records do not decode: count: 4294967295 records in 0 bytes" in ran.out
    document = as_json(disk, FIRST, "--records")
    assert document["rows"][0]["records"] == []
    assert document["late_problems"][0]["position"] == 0
    assert not document["is_healthy"]
    assert bounded(disk, FIRST).status == 0


def test_gaps_that_a_hostile_boundary_allows(disk: MemDisk) -> None:
    numbers = [0, 0, 0, 0, OFFSET_END - 1]
    write_entries(disk, LOG / "boundary", [[*numbers, checksum(numbers)]])
    put(disk, FIRST, frame(count=0) + frame(base=2**62, count=0))
    for path in (FIRST, LOG, FIRST.with_suffix(".index")):
        bounded(disk, path, *FLAGS)


@given(st.binary(max_size=300), st.sampled_from(["", ".index", ".timeindex", ".snapshot"]))
def test_noise_in_any_file_is_shown(noise: bytes, suffix: str) -> None:
    disk = healthy_log()
    path = FIRST.with_suffix(suffix) if suffix else FIRST
    put(disk, path, noise)
    for target in (path, LOG):
        for form in FORMS:
            assert dump(disk, target, *form).status in (0, 1, 2)


TEXTS = (
    "leader-epoch-checkpoint boundary seal partition.metadata boundaries .kafka_cleanshutdown "
    "replication-offset-checkpoint log-start-offset-checkpoint"
).split()


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode), st.sampled_from(TEXTS))
def test_noise_in_any_text_is_shown(noise: bytes, name: str) -> None:
    disk = healthy_broker()
    for directory in (BROKER, BROKER / "orders-1"):
        put(disk, directory / name, noise)
        for target in (directory / name, directory, BROKER):
            assert dump(disk, target).status in (0, 1, 2)


# Large files -----------------------------------------------------------------------------------


def test_memory_for_a_large_segment_is_that_for_a_small_one() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    log = PartitionLog.open(LOG, disk=disk)
    log.become_leader(1)
    one = RecordBatch.unassigned([Record(b"k", b"v" * 1_000, 1)] * 20)
    for _ in range(1_600):
        log.append(one)
    log.close()
    assert disk.used_bytes > 30 * MIB
    for path in (LOG, FIRST, FIRST.with_suffix(".index")):
        for form in FORMS[:2]:
            bounded(disk, path, *form, memory_mib=6, reads=4)
    few = bounded(disk, FIRST, "--records", "--from", "31990", "--count", "1", memory_mib=6)
    assert few.out.count('"k" = ') == 20


def test_damage_everywhere_is_listed_within_bounds(disk: MemDisk) -> None:
    """2,500 whole batches, each behind a byte of junk: more ranges than a report holds."""
    body = b"".join(
        encode_batch(RecordBatch.unassigned([Record(None, None, 1)]).assign(n, 1)) + b"!"
        for n in range(2_500)
    )
    put(disk, FIRST, body)
    document = as_json(WatchedDisk(disk), FIRST)
    assert len(document["damage"]["whole_ranges"]) == 1_000
    assert document["damage"]["has_more_ranges"]
    assert sum(row["row"] == "batch" for row in document["rows"]) == 1_001
    ran = bounded(disk, FIRST, reads=600)
    assert "and 980 more ranges" in ran.out
    assert "and more behind these" in ran.out


def test_magic_everywhere_costs_a_bounded_search(disk: MemDisk) -> None:
    put(disk, FIRST, b"MKB1" * (MIB // 2))
    bounded(disk, FIRST, reads=60)
    bounded(disk, LOG, reads=120)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("fill", [b"\x00", b"\xff"])
def test_large_indexes_of_nonsense_are_given_up(suffix: str, fill: bytes, disk: MemDisk) -> None:
    path = FIRST.with_suffix(suffix)
    put(disk, path, fill * (12 * MIB))
    ran = bounded(disk, path, reads=3)
    assert ran.status == 1
    assert "more entries not looked at" in ran.out
    assert len(ran.out) < 200_000
    assert bounded(disk, LOG, *FLAGS, reads=3).status == 1


def test_files_that_claim_gigabytes_are_not_loaded(tmp_path: Path) -> None:
    """Files with a hole: the indexes of 3 GiB, the log, which is searched, of 64 MiB."""
    directory = tmp_path / "orders-0"
    PartitionLog.open(directory).close()
    for suffix, size_mib in ((".index", 3072), (".timeindex", 3072), (".log", 64)):
        with (directory / f"{0:020d}{suffix}").open("r+b") as file:
            file.truncate(size_mib * MIB)
    tracemalloc.start()
    try:
        for suffix in (".index", ".timeindex"):
            ran = dump(None, directory / f"{0:020d}{suffix}")
            assert ran.status == 1
            assert "at most 2147483647 are read" in ran.out
        assert dump(None, directory, "--json").status == 1
        assert dump(None, directory / f"{0:020d}.log").status == 1
        assert tracemalloc.get_traced_memory()[1] < 24 * MIB
    finally:
        tracemalloc.stop()


BIG_TEXTS = {
    "a line without end": b"0" * (2 * MIB),
    "blank lines": b"0\n1\n" + b"\n" * (4 * MIB),
    "entries": b"0\n2000000\n" + b"1 1\n" * 300_000,
    "wide entries": b"0\n1\n" + b"a " * (4 * MIB),
    "no text": b"\xff" * (4 * MIB),
}


@pytest.mark.parametrize("name", BIG_TEXTS)
@pytest.mark.parametrize("file", ["leader-epoch-checkpoint", "boundary", "seal"])
def test_large_texts_are_read_line_by_line(name: str, file: str, disk: MemDisk) -> None:
    put(disk, LOG / file, BIG_TEXTS[name])
    bounded(disk, LOG, *FLAGS, reads=4)
    if name != "entries":
        bounded(disk, LOG / file, reads=4)


def test_checkpoint_above_the_limit_is_not_read(disk: MemDisk) -> None:
    put(disk, LOG / "leader-epoch-checkpoint", bytes(64 * MIB + 1))
    ran = bounded(disk, LOG / "leader-epoch-checkpoint", reads=0)
    assert (ran.status, "67108865 bytes, at most 67108864 are read" in ran.out) == (1, True)


@pytest.mark.parametrize("name", [LOG / "seal", BROKER / ".kafka_cleanshutdown"])
@pytest.mark.parametrize(
    "data", [b"[" * (1 << 18), b"[" + b"[]," * (1 << 18) + b"0]", b"9" * (1 << 18), b'{"a":' * 999]
)
def test_json_that_is_deep_or_wide(name: Path, data: bytes) -> None:
    disk = healthy_log() if name.parent == LOG else healthy_broker()
    put(disk, name, data)
    for path in (name, name.parent):
        bounded(disk, path, *FLAGS, memory_mib=48)


def test_epochs_beyond_the_limit_are_not_compared(disk: MemDisk) -> None:
    entries = b"".join(b"%d %d\n" % (n, n) for n in range(100_001))
    put(disk, LOG / "leader-epoch-checkpoint", b"0\n100001\n" + entries)
    ran = bounded(disk, LOG, *FLAGS, memory_mib=32)
    assert "more than 100000 entries, not compared" in ran.out


# Names -----------------------------------------------------------------------------------------

STRANGE = "\x1b[2J\x07\n\r\u202e\u2028 \udcff"


def test_names_that_steer_a_terminal_are_escaped() -> None:
    disk = healthy_broker()
    put(disk, BROKER / STRANGE, b"")
    put(disk, BROKER / "orders-1" / STRANGE, b"")
    put(disk, BROKER / "replication-offset-checkpoint", b"0\n1\n\x1b[2J\x7f\xc2\x9b 0 1\n")
    put(disk, BROKER / "orders-1" / "partition.metadata", b"\x1b]0;title\x07")
    for path in (BROKER, BROKER / "orders-1", BROKER / "replication-offset-checkpoint"):
        for form in ((), ("--json",)):
            ran = dump(disk, path, *form)
            assert all(line.isprintable() for line in ran.out.split("\n"))
    text = dump(disk, BROKER).out
    assert "other names" in text
    assert r"\x1b[2J\x07\n\r\u202e\u2028 \xff" in text


def test_path_that_steers_a_terminal_is_escaped(disk: MemDisk) -> None:
    for path in (Path("/data") / STRANGE, Path("/") / STRANGE / "x"):
        ran = dump(disk, path)
        assert ran.status == 2
        assert all(line.isprintable() for line in ran.err.split("\n"))


# What is no file of a log ----------------------------------------------------------------------


def test_path_that_does_not_exist(disk: MemDisk) -> None:
    assert dump(disk, LOG / "none") == (
        2,
        "",
        "/data/orders-0/none: there is no such file or directory\n",
    )
    assert as_json(disk, LOG / "none")["kind"] == "nothing"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a file of a log: an empty file"),
        (b"hello", "not a file of a log: 5 bytes that begin with 68 65 6c 6c"),
    ],
)
def test_foreign_file(data: bytes, reason: str, disk: MemDisk) -> None:
    put(disk, LOG / "notes.txt", data)
    ran = dump(disk, LOG / "notes.txt")
    assert (ran.status, ran.err) == (2, f"/data/orders-0/notes.txt: {reason}\n")


def test_foreign_and_empty_directories(disk: MemDisk) -> None:
    disk.mkdir(Path("/data/empty"))
    disk.mkdir(Path("/data/foreign"))
    put(disk, Path("/data/foreign/x"), b"")
    assert dump(disk, Path("/data/empty")).err == "/data/empty: an empty directory\n"
    assert "none of its 1 names belongs to one" in dump(disk, Path("/data/foreign")).err
    assert dump(disk, Path("/data/foreign")).status == 2


def test_batches_under_another_name_are_shown(disk: MemDisk) -> None:
    for name in ("saved", "7.log", f"{4:020d}.log.deleted", f"{'9' * 20}.log"):
        put(disk, LOG / name, content(disk, LOG / f"{4:020d}.log"))
        ran = dump(disk, LOG / name)
        assert ran.status == 0
        assert "offsets        4..8\n" in ran.out
    put(disk, LOG / "noise.log", b"hello")
    assert "DAMAGED: 5 bytes: magic: b'hell'" in dump(disk, LOG / "noise.log").out


def test_links_are_not_followed(disk: MemDisk) -> None:
    for name, target in (("link", FIRST), ("linked-0", LOG), ("loop", LOG / "loop")):
        disk.symlink(LOG / name, target)
        ran = dump(disk, LOG / name)
        assert ran.status == 2
        assert "a symbolic link, which is not followed: name what it points to" in ran.err
    disk.symlink(Path("/data/more-0"), LOG)
    ran = dump(disk, Path("/data"))
    assert ran.out.startswith("/data: directory of a broker, 1 partition\n")
    assert "other names  more-0\n" in ran.out


@pytest.mark.parametrize("name", [*TEXTS, f"{0:020d}.log", f"{0:020d}.index", ".lock"])
def test_link_in_the_place_of_a_file_is_not_followed(name: str) -> None:
    disk = healthy_broker()
    secret = Path("/data/secret")
    put(disk, secret, b"0\n1\nsecret 0 5\n")
    for directory in (BROKER, BROKER / "orders-1"):
        if name in disk.listdir(directory):
            disk.unlink(directory / name)
        disk.symlink(directory / name, secret)
    before = tree(disk, Path("/"))
    for path in (BROKER, BROKER / "orders-1"):
        for form in ((), ("--json",)):
            assert "secret" not in dump(disk, path, *form).out
    assert tree(disk, Path("/")) == before


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since it might hang: killed after a minute, which fails the test."""
    return subprocess.run(
        [sys.executable, "-m", "storage.dump", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.slow
def test_pipes_and_sockets_do_not_hang(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    PartitionLog.open(directory).close()
    for name in ("boundary", "seal", "leader-epoch-checkpoint", "partition.metadata"):
        (directory / name).unlink(missing_ok=True)
        os.mkfifo(directory / name)
    for suffix in (".index", ".timeindex"):
        (directory / f"{0:020d}{suffix}").unlink()
        os.mkfifo(directory / f"{0:020d}{suffix}")
    ran = run(directory, "--json")
    assert ran.returncode == 1, ran.stderr
    assert {problem["file"] for problem in json.loads(ran.stdout)["problems"]} >= {"boundary"}
    os.mkfifo(directory / f"{5:020d}.log")
    with socket.socket(socket.AF_UNIX) as listener:
        monkey = directory / "s"
        listener.bind(os.path.relpath(monkey))
        assert run(directory).returncode == 1
        for name in (f"{5:020d}.log", "seal", "s"):
            ran = run(directory / name)
            assert ran.returncode == 2
            assert "neither a file nor a directory: a pipe, a socket or a device" in ran.stderr
    assert run("/dev/null").returncode == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_file_without_permission(tmp_path: Path) -> None:
    log = PartitionLog.open(tmp_path / "orders-0", LogConfig())
    log.close()
    path = tmp_path / "orders-0" / f"{0:020d}.log"
    path.chmod(0)
    assert dump(None, path).status == 2
    assert "EACCES" in dump(None, tmp_path / "orders-0").out


MAKERS: tuple[Callable[[], MemDisk], ...] = (healthy_log, healthy_broker)


@pytest.mark.parametrize("make", MAKERS)
def test_name_too_long_for_the_system_is_nothing_to_show(
    make: Callable[[], MemDisk], tmp_path: Path
) -> None:
    assert dump(make(), Path("/data") / ("x" * 300)).status == 2
    ran = dump(None, tmp_path / ("x" * 300))
    assert (ran.status, "ENAMETOOLONG" in ran.err) == (2, True)
