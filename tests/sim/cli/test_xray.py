"""``leaderfall xray``: places, sections, widths, hostile names, and the two ways of a transfer."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.cli import transfer
from sim.cli.exits import Exit
from sim.cli.transfer import TransferError, measure, send_copying, send_file
from sim.cli.xray_steps import counted
from sim.xray.lookup import lookup, lookup_time
from storage.batch import Record, RecordBatch
from storage.config import LogConfig
from storage.partition_log import PartitionLog
from tests.sim.cli.tools import SMALL, call, write
from tests.storage.test_dump_read_only import snapshot

T0 = 1_700_000_000_000
CONFIG = LogConfig(segment_max_bytes=2_000, index_interval_bytes=300)
SPECIAL = (
    ("--offset", "17"),
    ("--time", str(T0 + 170)),
    ("--segment", "0"),
    ("--hex", "17"),
    ("--pages",),
    ("--explain",),
    ("--json",),
)


@pytest.fixture
def log(folder: Path) -> Path:
    """The directory of a log with several segments."""
    path = folder / "orders-0"
    opened = PartitionLog.open(path, CONFIG)
    opened.become_leader(2)
    for number in range(60):
        opened.append(RecordBatch.unassigned([Record(b"k", b"v", T0 + 10 * number)]))
    opened.close()
    return path


@pytest.fixture
def run(folder: Path) -> Path:
    """The folder of a run that leaves pages dirty."""
    write(folder, SMALL)
    call("run", "small.toml", "-q")
    return folder / "runs" / "small" / "latest"


def text_of(*words: str, width: int = 100) -> str:
    done = call("xray", *words, env={"COLUMNS": str(width)})
    assert done.exit_code == Exit.OK, done.output
    return done.stdout


def test_everything_in_brief_has_each_section_and_writes_nothing(log: Path) -> None:
    before = snapshot(log)
    text = text_of(str(log))
    for section in ("marks", "segments", "look-up of offset 30", "pages of 4 KiB", "directory"):
        assert f"\n{section}" in text
    assert "there is no trace of a run beside this directory" in text
    assert text.isascii()
    for words in SPECIAL:
        text_of(str(log), *words)
    assert snapshot(log) == before


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("words", [(), *SPECIAL[:-1], ("--transfer",)])
def test_lines_fit_the_width(
    width: int, words: tuple[str, ...], log: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "SIZES", (4_096,))
    for path in (log, run / "b1" / "orders-0"):
        asked = [each.replace("17", "7") if path != log else each for each in words]
        text = text_of(str(path), *asked, width=width)
        assert [line for line in text.split("\n") if len(line) > width] == []


def test_colour_adds_nothing_but_colour(log: Path) -> None:
    import re

    plain = text_of(str(log))
    coloured = call("xray", str(log), "--color", "always", color=True, env={"COLUMNS": "100"})
    assert "\x1b[" in coloured.stdout
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured.stdout) == plain


def test_a_look_up_tells_probes_seek_scan_and_what_was_found(log: Path) -> None:
    data = json.loads(text_of(str(log), "--json"))
    text = text_of(str(log), "--offset", "17")
    told = lookup(data, 17)
    assert text.count("\n  probe ") == len(told["probes"]) > 1
    assert f"seek       byte {told['seek']}, from entry {told['anchor']['number']}" in text
    assert f"scan       {counted(told['records_scanned'], 'record')} passed" in text
    assert "found      offset 17, 2023-11-14T22:13:20.170Z" in text
    by_time = text_of(str(log), "--time", str(T0 + 165))
    assert lookup_time(data, T0 + 165)["result"]["offset"] == 17
    assert "found      offset 17, 2023-11-14T22:13:20.170Z" in by_time
    assert "No record has a timestamp" in text_of(str(log), "--time", str(T0 + 10**6))
    assert "behind the log end" in text_of(str(log), "--offset", "61")


def test_json_has_the_look_ups_that_were_asked_for(log: Path) -> None:
    data = json.loads(text_of(str(log), "--json", "--offset", "3", "--time", str(T0)))
    assert data["lookup"]["verdict"] == data["lookup_time"]["verdict"] == "found"
    one = json.loads(text_of(str(log), "--json", "--segment", data["segments"][1]["file"]))
    assert one["segments"] == data["segments"][1:2]


def test_hex_marks_every_field(log: Path) -> None:
    text = text_of(str(log), "--hex", "17")
    assert "|4d 4b 42 31|" in text
    for field in ("magic", "CRC-32", "base offset", "leader epoch", "max timestamp ms", "record 0"):
        assert f"  {field} " in text
    done = call("xray", str(log), "--hex", "99")
    assert done.exit_code == Exit.USAGE
    assert "No batch that is listed holds offset 99." in done.stderr


def test_a_run_tells_what_was_dirty(run: Path) -> None:
    text = text_of(str(run / "b2" / "orders-0"))
    assert text.startswith("b2/orders-0  MKB1")
    assert "A power cut may take up to" in text
    assert "bytes 0 to " in text_of(str(run / "b2" / "orders-0"), "--pages")


def test_a_run_whose_trace_is_damaged_or_gone_says_that_pages_are_unknown(run: Path) -> None:
    trace = run / "trace.jsonl"
    data = trace.read_bytes()
    for content, reason in (
        (data[:5_000], "the run's trace was cut short"),
        (b"nonsense\n", "the run's trace does not tell what was synced"),
    ):
        trace.write_bytes(content)
        text = text_of(str(run / "b2" / "orders-0"), width=200)
        assert reason in text
        assert "#" not in text.replace("# dirty", "")
    trace.unlink()
    assert "there is no trace of a run" in text_of(str(run / "b2" / "orders-0"))


def test_a_folder_with_several_logs_lists_them_and_one_with_one_is_taken(
    run: Path, log: Path, folder: Path
) -> None:
    done = call("xray", str(run))
    assert done.exit_code == Exit.USAGE
    names = [line.strip() for line in done.stderr.split("\n") if line.startswith("  ")]
    assert names == [str(run / each) for each in ("b1/orders-0", "b2/orders-0", "c1")]
    for name in names:
        text_of(name)
    assert text_of(str(run / "b1")).startswith("b1/orders-0  MKB1")
    assert text_of(str(folder)).startswith("orders-0  MKB1")


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nothing", 'There is no directory "nothing"'),
        ("loop", '"loop" cannot be read'),
        ("empty", "it is empty"),
        ("plain.txt", "it is no directory"),
        ("null\0", "cannot be read"),
        ("other", "none of its names belongs to a log"),
        ("x" * 5_000, "cannot be read"),
    ],
)
def test_what_is_no_log_is_an_error_of_usage(path: str, said: str, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "empty").mkdir()
    (folder / "plain.txt").write_text("x")
    (folder / "other" / "stuff").mkdir(parents=True)
    done = call("xray", path)
    assert done.exit_code == Exit.USAGE
    assert said in done.stderr


def test_an_unknown_segment_is_named_with_those_there_are(log: Path) -> None:
    done = call("xray", str(log), "--segment", "99")
    assert done.exit_code == Exit.USAGE
    assert 'no segment "99". There are 00000000000000000000.log' in done.stderr


def test_names_that_steer_a_terminal_are_escaped(log: Path) -> None:
    bad = "\x1b]0;owned\x07\u202e\n.txt"
    (log / bad).write_bytes(b"x")
    (log / ("\x1b[2J" * 40)).write_bytes(b"x")
    odd = log.with_name("odd\x1b[31m")
    log.rename(odd)
    for words in ((), *SPECIAL):
        text = text_of(str(odd), *words)
        assert all(line.isprintable() for line in text.split("\n"))
    done = call("xray", str(odd), "--segment", bad)
    assert all(line.isprintable() for line in done.stderr.split("\n"))


def test_a_corrupt_index_is_told_and_the_rest_is_shown(log: Path) -> None:
    path = log / f"{0:020d}.index"
    path.write_bytes(path.read_bytes()[::-1])
    text = text_of(str(log), "--offset", "3")
    assert "reading begins at byte 0" in text
    assert "found      offset 3," in text
    assert f"{path.name}: not searched" in text


def test_an_empty_log_is_shown(folder: Path) -> None:
    PartitionLog.open(folder / "new-0", LogConfig()).close()
    text = text_of(str(folder / "new-0"))
    assert text.startswith("new-0  empty, 1 segment, 0 batches")
    assert "look-up of" not in text


def test_a_log_with_more_batches_than_are_listed_still_has_its_example(folder: Path) -> None:
    opened = PartitionLog.open(folder / "long-0", LogConfig(segment_max_bytes=200_000))
    for number in range(5_200):
        opened.append(RecordBatch.unassigned([Record(None, b"v", T0 + number)]))
    opened.close()
    brief = text_of(str(folder / "long-0"))
    assert "found      offset 2600" in brief
    for words in (("--offset", "5199"), ("--time", str(T0 + 5_199))):
        text = text_of(str(folder / "long-0"), *words)
        assert "found      offset 5199" in text
        assert "of 5200 batches are listed, from offset 5" in text
    segments = sorted((folder / "long-0").glob("*.log"))
    assert "\nbatches\n" in text_of(str(folder / "long-0"), "--segment", segments[-1].name)
    assert f"{int(segments[-1].stem)}..{int(segments[-1].stem)}" in text_of(
        str(folder / "long-0"), "--segment", str(int(segments[-1].stem))
    )


# Transfer --------------------------------------------------------------------------------------


@pytest.mark.parametrize("send", [send_file, send_copying])
@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 300_000])
def test_both_ways_deliver_the_file(
    send: Callable[[socket.socket, int, int], int], size: int, folder: Path
) -> None:
    data = os.urandom(size)
    (folder / "data").write_bytes(data)
    ours, theirs = socket.socketpair()
    got = bytearray()

    def read() -> None:
        while chunk := theirs.recv(70_000):
            got.extend(chunk)

    reader = threading.Thread(target=read)
    with ours, theirs, open(folder / "data", "rb") as file:
        reader.start()
        calls = send(ours, file.fileno(), size)
        ours.shutdown(socket.SHUT_WR)
        reader.join(30)
    assert bytes(got) == data
    assert (calls > 0) == (size > 0)


@pytest.mark.parametrize("send", [send_file, send_copying])
def test_a_file_that_is_too_short_is_an_error(
    send: Callable[[socket.socket, int, int], int], folder: Path
) -> None:
    (folder / "data").write_bytes(b"short")
    ours, theirs = socket.socketpair()
    with ours, theirs, open(folder / "data", "rb") as file, pytest.raises(TransferError):
        send(ours, file.fileno(), 6)


def test_a_measurement_says_whether_the_bytes_were_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The clocks are counted here: nothing is said of how fast this machine is."""
    ticks = iter(range(0, 10**9, 1_000))
    found = measure((1_000, 200_000), 2, clock=lambda: next(ticks), cpu_clock=lambda: next(ticks))
    assert [row["is_same"] for row in found["sizes"]] == [True, True]
    assert [row["ratio"] for row in found["sizes"]] == [1.0, 1.0]
    assert "TLS forces the copying path" in " ".join(found["meaning"])

    def wrong(target: socket.socket, fd: int, size: int) -> int:
        target.sendall(bytes(size))
        return 1

    monkeypatch.setattr(transfer, "send_copying", wrong)
    assert not measure((1_000,), 1)["sizes"][0]["is_same"]


def test_a_machine_without_sendfile_or_sockets_is_told(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise OSError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refused)
    done = call("xray", str(log), "--transfer")
    assert done.exit_code == Exit.USAGE
    assert "cannot be measured here: Permission denied" in done.stderr
    monkeypatch.delattr(os, "sendfile")
    assert "has no sendfile" in call("xray", str(log), "--transfer").stderr


def test_a_run_in_memory_has_no_directories(folder: Path) -> None:
    write(folder, SMALL)
    call("run", "small.toml", "-q", "--disk", "memory")
    done = call("xray", "runs/small/latest")
    assert done.exit_code == Exit.USAGE
    assert "no log is in it" in done.stderr


def test_a_time_of_the_run_is_one_of_its_clocks(run: Path, log: Path) -> None:
    directory = str(run / "b1" / "orders-0")
    by_run_time, by_ms = (
        text_of(directory, "--time", time).split("look-up")[1] for time in ("1s", "1767225611000")
    )
    assert by_run_time == by_ms
    assert "found      offset 0, 2026-01-01T00:00:11.000Z" in by_run_time
    assert "found      offset 0" in text_of(directory, "--time", "-9.5s")
    assert "No record has a timestamp" in text_of(directory, "--time", "2.9s")
    for time, words in (
        ("1m", "--time needs ms since 1970, or a time as 3.5s, not"),
        ("1e3", "not"),
        ("9" * 30, "not"),
        ("-5", "not"),
    ):
        done = call("xray", directory, f"--time={time}")
        assert done.exit_code == Exit.USAGE
        assert words in done.stderr
    done = call("xray", str(log), "--time", "1s")
    assert done.exit_code == Exit.USAGE
    assert "is a time of a run, and" in done.stderr


def test_a_very_long_trace_is_not_looked_through(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sim.xray.pending.TRACE_BYTES_MAX", 1_000)
    text = text_of(str(run / "b1" / "orders-0"))
    assert "the run's trace has 0 MiB, and at most 0 are looked through" in " ".join(text.split())
