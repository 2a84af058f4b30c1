"""The import contracts of ``pyproject.toml`` can fail: each finds the import planted for it.

Method: a tree with the three packages and this project's contracts gets one forbidden import, and
``lint-imports`` must refuse it for the contract that is meant. Needs the extra ``dev``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("importlinter", reason="import-linter is in the extra 'dev'")

ROOT = Path(__file__).resolve().parent.parent

LAYERS = "sim -> cluster -> storage, never the other way"
STORAGE = "storage knows no clock, no chance, no task and no network"
SYSTEM = "only storage.disk calls the operating system"
CLUSTER = "cluster knows no clock, no chance, no task, no network and no operating system"
SIM = "sim's core knows no clock, no chance, no thread and no network"
RIM = "trio is imported only where scripts meet the world"
CATTRS = "cattrs is imported only where scenario files become data"
DATA = "scenario files know nothing of a running world"
HISTORIES = "histories know clients only: no broker, no controller, no log, no world"
TERMINALS = "click is imported only by the command line, rich there and where stories are printed"
FLOORS = (
    "cli -> shrinking and tui -> blame -> running and present -> checks and scenario "
    "-> the world -> trace"
)
TOOLS = "hypothesis, pytest and textual are imported only where they are the subject"

REFUSED = [
    ("storage/a.py", "import cluster", LAYERS),
    ("storage/a.py", "from sim import x", LAYERS),
    ("cluster/a.py", "import sim.b", LAYERS),
    *[
        ("storage/a.py", f"import {name}", STORAGE)
        for name in "random time datetime trio asyncio socket threading secrets uuid locale".split()
    ],
    ("storage/a.py", "from random import choice", STORAGE),
    ("storage/disk.py", "import time", STORAGE),
    ("storage/deep/a.py", "def f():\n    import random", STORAGE),
    *[
        ("storage/a.py", f"import {name}", SYSTEM)
        for name in "os os.path fcntl io shutil tempfile".split()
    ],
    ("storage/experiment.py", "import os", SYSTEM),
    *[
        ("cluster/a.py", f"import {name}", CLUSTER)
        for name in "trio random os socket time datetime asyncio threading secrets uuid".split()
    ],
    *[
        ("sim/a.py", f"import {name}", SIM)
        for name in "random time datetime asyncio threading socket tempfile weakref".split()
    ],
    ("sim/trace/a.py", "def f():\n    from time import monotonic", SIM),
    ("sim/baton.py", "import random", SIM),
    ("sim/scripts.py", "import threading", SIM),
    ("cluster/a.py", "import pytest", TOOLS),
    ("storage/a.py", "import hypothesis", TOOLS),
    ("sim/a.py", "import hypothesis", TOOLS),
    ("sim/a.py", "import textual", TOOLS),
    ("sim/strategies.py", "import pytest", TOOLS),
    ("sim/a.py", "import cattrs", CATTRS),
    ("sim/scenario/a.py", "import cattrs.gen", CATTRS),
    ("sim/scenario/a.py", "import sim.world", DATA),
    ("sim/scenario/a.py", "from sim.hosts import Host", DATA),
    ("sim/histories/a.py", "import cluster.broker", HISTORIES),
    ("sim/histories/a.py", "from cluster.controller import Controller", HISTORIES),
    ("sim/histories/a.py", "def f():\n    import storage.partition_log", HISTORIES),
    ("sim/histories/a.py", "from sim import world", HISTORIES),
    ("sim/a.py", "import click", TERMINALS),
    ("sim/present/a.py", "from rich.text import Text", TERMINALS),
    ("sim/present/text.py", "import click", TERMINALS),
    ("storage/a.py", "import rich", TERMINALS),
    ("sim/running/a.py", "import sim.cli", FLOORS),
    ("sim/running/a.py", "import sim.blame", FLOORS),
    ("sim/blame/a.py", "import sim.shrinking", FLOORS),
    ("sim/present/a.py", "from sim import cli", FLOORS),
    ("sim/present/a.py", "import sim.tui", FLOORS),
    ("sim/tui/a.py", "import sim.cli", FLOORS),
    ("sim/histories/a.py", "import sim.checks", FLOORS),
    ("sim/checks/a.py", "import sim.histories", FLOORS),
    ("sim/trace/a.py", "import sim.world", FLOORS),
    ("sim/a.py", "import trio", RIM),
    ("sim/baton_errors.py", "import trio.lowlevel", RIM),
]

KNOWN = ("sim/hosts.py", "sim/world.py")
FORBIDDEN = (
    *(f"cluster/broker{each}.py" for each in ("", "_control", "_core", "_life")),
    *(f"cluster/{each}.py" for each in ("controller", "controller_state", "replica")),
    "cluster/replicating.py",
    "storage/partition_log.py",
)

ALLOWED = {
    "storage/disk.py": "import os, fcntl, io, shutil, tempfile",
    "storage/experiment.py": "import tempfile, pathlib",
    "storage/a.py": "import attrs, pathlib, struct\nimport storage.disk",
    "cluster/a.py": "import attrs\nimport storage.disk",
    "sim/a.py": "import os, json\nimport cluster.a, storage.disk",
    "sim/baton.py": "import trio",
    "sim/baton_frames.py": "import trio.testing",
    "sim/cli/run.py": "import time, secrets, os\nimport click, rich.text",
    "sim/histories/a.py": "import attrs\nimport cluster.a, storage.a",
    "sim/present/text.py": "import rich.console",
    "sim/scenario/structuring.py": "import cattrs.gen\nfrom cattrs import Converter",
    "sim/scripts.py": "from trio import sleep",
    "sim/strategies.py": "import hypothesis",
    "sim/testing.py": "import hypothesis",
    "sim/pytest_plugin.py": "import pytest",
    "sim/tui/__init__.py": "import textual",
    "sim/tui/app.py": "import asyncio, textual.app, rich.text",
}


def _plant(root: Path, files: dict[str, str]) -> None:
    shutil.copy(ROOT / "pyproject.toml", root)
    for package in ("cluster", "sim", "storage"):
        (root / package).mkdir()
        (root / package / "__init__.py").touch()
    # Contracts name them, so they must be there.
    for package in ("blame", "checks", "cli", "histories", "scenario", "shrinking", "tui"):
        (root / "sim" / package).mkdir()
        (root / "sim" / package / "__init__.py").touch()
    for name in (*KNOWN, *FORBIDDEN):
        (root / name).touch()
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text + "\n")


def _lint(root: Path) -> subprocess.CompletedProcess[str]:
    command = "from importlinter.cli import lint_imports_command as lint; lint()"
    return subprocess.run(
        [sys.executable, "-c", command, "--no-cache"],
        cwd=root,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_allowed_imports_pass(tmp_path: Path) -> None:
    _plant(tmp_path, ALLOWED)
    result = _lint(tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "0 broken" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(("file", "text", "contract"), REFUSED)
def test_a_planted_import_is_refused(file: str, text: str, contract: str, tmp_path: Path) -> None:
    _plant(tmp_path, {file: text})
    result = _lint(tmp_path)
    assert result.returncode == 1, result.stdout + result.stderr
    assert f"{contract} BROKEN" in result.stdout
    assert "1 broken" in result.stdout
