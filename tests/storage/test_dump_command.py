"""The command itself: arguments, exit statuses, streams that break, errors of its own."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.dump import main
from storage.errors import DiskError
from storage.memdisk import MemDisk
from tests.storage.dumping import BROKER, FLAGS, LOG, as_json, dump, healthy_broker, healthy_log
from tests.storage.test_dump_text import FIRST

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "the following arguments are required: PATH"),
        (("a", "b"), "unrecognized arguments: b"),
        (("a", "--count", "-1"), "argument --count: '-1', allowed is 0 to 2^63-1"),
        (("a", "--from", "x"), "argument --from: 'x', allowed is 0 to 2^63-1"),
        (("a", "--from", "9223372036854775808"), "allowed is 0 to 2^63-1"),
        (("a", "--from", "٣"), "allowed is 0 to 2^63-1"),
        (("a", "--from", "9" * 5_000), "allowed is 0 to 2^63-1"),
        (("a", "--max-batch-bytes", "3"), "max_batch_bytes is 3, allowed is 60..2147483647"),
        (("a", "--index-interval-bytes", "0"), "index_interval_bytes is 0, allowed is 1.."),
        (("a", "--rec"), "unrecognized arguments: --rec"),
        (("a", "\x1b[31m"), "unrecognized arguments: \\x1b[31m"),
        (("",), "argument PATH: '' cannot be a path"),
        (("a\0b",), "argument PATH: 'a\\x00b' cannot be a path"),
    ],
)
def test_bad_usage_is_2(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert all(line.isprintable() for line in printed.err.split("\n"))


def test_help_says_what_it_does_and_the_exit_statuses(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Shows what is in a log's files, without changing them." in text
    assert "Exit status: 0 shown, and nothing is wrong; 1 shown, and damaged" in text
    for option in ("--json", "--records", "--full", "--from OFFSET", "--count N"):
        assert option in text


def test_batches_of_a_whole_broker_are_bad_usage() -> None:
    ran = dump(healthy_broker(), BROKER, "--records")
    assert ran == (2, "", "storage.dump: batches are listed of one partition at a time\n")


@pytest.mark.parametrize(
    ("arguments", "offsets"),
    [
        ((), [0, 1, 3]),
        (("--from", "0"), [0, 1, 3]),
        (("--from", "2"), [1, 3]),
        (("--from", "3"), [3]),
        (("--from", "4"), []),
        (("--count", "0"), []),
        (("--count", "2"), [0, 1]),
        (("--from", "1", "--count", "1"), [1]),
        (("--count", "99"), [0, 1, 3]),
    ],
)
def test_from_and_count_choose_batches(arguments: tuple[str, ...], offsets: list[int]) -> None:
    rows = as_json(healthy_log(), FIRST, *arguments)["rows"]
    assert [row["base_offset"] for row in rows] == offsets


def test_from_and_count_choose_index_entries_and_text_rows() -> None:
    disk = healthy_log()
    index = FIRST.with_suffix(".index")
    assert [row["offset"] for row in as_json(disk, index, *FLAGS, "--from", "1")["rows"]] == [3]
    assert [row["offset"] for row in as_json(disk, index, *FLAGS, "--count", "1")["rows"]] == [0]
    epochs = as_json(disk, LOG / "leader-epoch-checkpoint", "--count", "1")
    assert (epochs["row_count"], len(epochs["rows"])) == (2, 1)


def test_larger_batches_need_the_limit_that_they_were_written_with() -> None:
    disk = MemDisk()
    disk.mkdir(Path("/data"))
    config = LogConfig(max_batch_bytes=20 << 20)
    log = PartitionLog.open(LOG, config, disk=disk)
    log.append(RecordBatch.unassigned([Record(None, bytes(17 << 20), 1)]))
    log.close()
    small = as_json(disk, FIRST)
    assert small["damage"]["reason"] == "length: 17825874 bytes, max_batch_bytes is 16777216"
    assert as_json(disk, FIRST, "--max-batch-bytes", str(20 << 20))["damage"] is None


def test_own_error_is_70_and_says_what_to_report(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("\x1b[31m")

    monkeypatch.setattr("storage.dump.describe", broken)
    ran = dump(MemDisk(), LOG)
    assert (ran.status, ran.out) == (70, "")
    assert ran.err.startswith("storage.dump: an error of this program; please report it with:\n")
    assert ran.err.endswith("ZeroDivisionError: \\x1b[31m\n")


def test_interrupt_is_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("storage.dump.describe", interrupted)
    assert dump(MemDisk(), LOG) == (130, "", "")


class Pipe(io.StringIO):
    """A pipe whose reader leaves after ``lines`` lines."""

    def __init__(self, lines: int) -> None:
        super().__init__()
        self._lines = lines

    def write(self, text: str) -> int:
        self._lines -= text.count("\n")
        if self._lines < 0:
            raise BrokenPipeError
        return super().write(text)


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_reader_that_leaves_is_no_error(form: tuple[str, ...]) -> None:
    for lines in range(6):
        out, err = Pipe(lines), io.StringIO()
        arguments = [str(LOG), *FLAGS, *form]
        assert main(arguments, disk=healthy_log(), out=out, err=err) == 0
        assert err.getvalue() == ""
        assert out.closed


# As a process ----------------------------------------------------------------------------------


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    log = PartitionLog.open(tmp_path / "orders-0")
    log.become_leader(1)
    for number in range(2_000):
        log.append(RecordBatch.unassigned([Record("ключ".encode(), b"v", number)]))
    log.close()
    return tmp_path / "orders-0"


def command(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "storage.dump", *map(str, arguments)]


@pytest.mark.slow
def test_reader_that_leaves_leaves_no_traceback(directory: Path) -> None:
    log = directory / f"{0:020d}.log"
    for form in ("--records", "--json"):
        with subprocess.Popen(
            command(log, form),
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.readline()
            process.stdout.close()
            assert process.stderr.read() == ""
            assert process.wait() == 0


@pytest.mark.slow
def test_terminal_that_knows_ascii_only(directory: Path) -> None:
    ran = subprocess.run(
        command(directory / f"{0:020d}.log", "--records", "--count", "1"),
        cwd=ROOT,
        env={**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 0
    assert rb'"\u043a\u043b\u044e\u0447" = "v"' in ran.stdout
    assert ran.stderr == b""


@pytest.mark.slow
def test_relative_paths(directory: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    outputs = []
    for cwd, path in ((directory, "."), (directory.parent, "orders-0"), (directory, "./")):
        ran = subprocess.run(
            command(path), cwd=cwd, env=env, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        outputs.append(ran.stdout.partition(":")[2])
    assert outputs[0] == outputs[1] == outputs[2]
    assert ": partition, 1 segment" in ran.stdout


def test_error_of_the_disk_is_no_error_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    disk = healthy_log()

    def fails(*_: object, **__: object) -> None:
        raise DiskError("stat", LOG, "EIO")

    monkeypatch.setattr(type(disk), "stat", fails)
    assert dump(disk, LOG) == (2, "", "/data/orders-0: stat /data/orders-0: EIO\n")
