"""Traces for the whole screen: one that loses records, a hostile one, one that was cut short.

Left out: everything else.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.trace.kinds import Kind
from sim.trace.lines import Header, Level
from sim.trace.writer import Trace
from tests.sim.cli.tools import LOSING, call

HOSTILE = "[red]x[/red][@click=app.bell]y[/]\x1b[31m\x1b]0;t\x07\u202e\u200b" + "z" * 5_000
KEYS = """id kind text partition topic node role leader type key from to file name form note what
    detail check value fault status""".split()
EXPECT = '\n[[expect]]\nat_end = "lost(\'acked\') == 3"\nbecause = "only the leader had them"\n'


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """No wishes about colours."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM", "TEXTUAL_THEME"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def losing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace in which three acknowledged records are lost."""
    folder = tmp_path_factory.mktemp("losing")
    file = folder / "losing.toml"
    file.write_text(LOSING + EXPECT, encoding="utf-8")
    call("run", str(file), "-q", "--disk", "memory", "--out", str(folder / "runs"))
    (found,) = folder.glob("runs/losing/latest/trace.jsonl")
    return found


@pytest.fixture
def cut_short(losing: Path, tmp_path: Path) -> Path:
    """The first lines of it, and half of another one."""
    lines = losing.read_bytes().splitlines(keepends=True)
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"".join(lines[:400]) + lines[400][: len(lines[400]) // 2])
    return path


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A trace whose every text would like to be markup, or to steer the terminal."""
    path = tmp_path / "trace.jsonl"
    header = Header("0.1.0", HOSTILE, HOSTILE, 7, {}, ("b1", HOSTILE), {})
    trace = Trace(Level.FULL, path=path, header=header)
    text: object = HOSTILE
    last: object = None
    for number, kind in enumerate(Kind, 1):
        args = dict.fromkeys(KEYS, text)
        args |= {"base_offset": number, "next_offset": number + 1, "leader_epoch": 0}
        n = trace.emit(number * 1_000, HOSTILE, kind, (number - 1,) if number > 1 else (), args)
        new = f"{HOSTILE}{number}"
        trace.attach(n, [(f"{HOSTILE}/{HOSTILE}", last, new)])
        last = new
    trace.close(HOSTILE, [], [])
    return path
