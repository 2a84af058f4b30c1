"""What is no file, has no end or takes no more: commands end, with their exit codes and a line.

Left out: wrong scenario files (``tests.sim.scenario``), damaged traces (``test_trace_reader``).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sim.cli.exits import Exit
from sim.cli.run_folders import RESULT
from tests.sim.cli.tools import ROOT, SMALL, VARIANTS, call, write

WORKLOAD = '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders"\nrate = 9\n'
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="there is no /dev/full")


def _shell(line: str, before: str = "") -> tuple[int, str]:
    """Exit code and standard error of ``leaderfall``, with what a shell does to its streams."""
    command = f"{before}{sys.executable} -m sim.cli {line}"
    done = subprocess.run(
        ["sh", "-c", command],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return done.returncode, done.stderr


# Streams -----------------------------------------------------------------------------------------


@needs_full
@pytest.mark.parametrize(
    "line", ["explain", "explain I1", "--help", "run --help", "check --schema"]
)
def test_a_full_standard_output_is_told_and_no_defect(line: str) -> None:
    code, said = _shell(f"{line} >/dev/full")
    assert (code, said) == (
        Exit.USAGE,
        "Error: Standard output cannot be written: No space left on device.\n",
    )


@needs_full
def test_a_run_whose_report_finds_no_room_is_kept(folder: Path) -> None:
    write(folder)
    code, said = _shell("run small.toml >/dev/full")
    assert code == Exit.USAGE
    assert said.startswith("Error: Standard output cannot be written")
    assert (folder / "runs/small/0" / RESULT).is_file()


@needs_full
def test_a_full_standard_error_changes_no_exit_code(folder: Path) -> None:
    write(folder, SMALL.replace("produce", "produze"), "wrong.toml")
    assert _shell("run wrong.toml 2>/dev/full")[0] == Exit.USAGE
    assert _shell("run >/dev/full 2>/dev/full")[0] == Exit.USAGE


@pytest.mark.parametrize("streams", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_change_no_exit_code(folder: Path, streams: str) -> None:
    write(folder)
    write(folder, SMALL.replace("== 10", "== 11"), "failing.toml")
    assert _shell(f"run small.toml {streams}") == (Exit.OK, "")
    assert _shell(f"run failing.toml --json {streams}")[0] == Exit.FAILED
    assert _shell(f"run missing.toml {streams}")[0] == Exit.USAGE
    assert _shell(f"run --help {streams}") == (Exit.OK, "")


# Files -------------------------------------------------------------------------------------------


def test_a_folder_nested_too_deeply_is_refused(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "--out", "a/" * 1_900)
    assert done.exit_code == Exit.USAGE
    assert "cannot be written" in done.stderr


@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_result_that_is_no_file_is_not_read(folder: Path, kind: str) -> None:
    write(folder)
    place = folder / "runs/small/0"
    place.mkdir(parents=True)
    (place / "trace.jsonl").touch()
    if kind == "device":
        (place / RESULT).symlink_to("/dev/zero")
    else:
        os.mkfifo(place / RESULT)
    assert _shell("run -q small.toml")[0] == Exit.OK
    assert (folder / "runs/small/0.2" / RESULT).is_file()


@pytest.mark.parametrize(
    ("limit", "options", "said"),
    [
        ("-f 20", "", "File too large"),
        ("-f 1", "--trace-level digest", "File too large"),
        ("-n 12", "", "Too many open files"),
    ],
)
def test_a_machine_that_refuses_is_no_defect(
    folder: Path, limit: str, options: str, said: str
) -> None:
    write(folder, SMALL.replace("count = 10", "count = 100"))
    code, text = _shell(f"run {options} small.toml", before=f"ulimit {limit}; ")
    assert code == Exit.USAGE
    assert text.startswith('Error: "runs/small/.running-')
    assert f"cannot be written: {said}" in text


def test_a_trace_that_is_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    code, said = _shell("show pipe")
    assert (code, said) == (Exit.USAGE, "Error: pipe:1: it is no regular file\n")


@pytest.mark.parametrize("kind", ["pipe", "large", "odd", "deep"])
def test_completion_waits_for_no_file(folder: Path, kind: str) -> None:
    path = folder / "a.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "large":
        path.write_bytes(b"#" * 2_000_000)
    elif kind == "deep":
        path.write_text(f"variant = {'[' * 100_000}", encoding="utf-8")
    else:
        path.write_text("variant = ['x']", encoding="utf-8")
    write(folder, SMALL + VARIANTS)
    env = "_LEADERFALL_COMPLETE=bash_complete COMP_CWORD=5"
    words = "COMP_WORDS='leaderfall run small.toml a.toml --variant '"
    done = subprocess.run(
        ["sh", "-c", f"{env} {words} {sys.executable} -m sim.cli"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("plain,one\n")


# Signals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_is_ended_in_order_is_kept(folder: Path, number: int) -> None:
    write(folder, SMALL.replace('"3s"', '"20h"') + WORKLOAD, "long.toml")
    with subprocess.Popen(
        [sys.executable, "-m", "sim.cli", "run", "long.toml"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        deadline = time.monotonic() + 60
        while not [each for each in folder.glob("runs/*/.*/trace.jsonl") if each.stat().st_size]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == Exit.INTERRUPTED
    assert sorted(os.listdir(folder / "runs/small")) == ["0.interrupted", "latest"]
    assert call("show", "runs/small/latest").exit_code == 0
