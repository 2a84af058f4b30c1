"""The property test that README shows: pasted into an empty folder, it does what README says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINES_MAX = 15


def block(name: str) -> str:
    text = (ROOT / "README.md").read_text()
    found = re.search(rf"<!-- {name} -->\n```\w+\n(.*?)```", text, re.DOTALL)
    assert found is not None, name
    return found[1]


@pytest.mark.slow
def test_it_prints_what_readme_shows_and_its_case_can_be_run_again(tmp_path: Path) -> None:
    program = block("property test")
    assert program.count("\n") <= LINES_MAX
    (tmp_path / "test_orders.py").write_text(program)
    env = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "80"}
    env.pop("PYTEST_XDIST_WORKER", None)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no"]
    done = subprocess.run(
        [*command, "--basetemp", str(tmp_path / "base"), "test_orders.py"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    lines = [line.removeprefix("E").strip() for line in done.stdout.splitlines()]
    shown = [line.strip() for line in block("property test output").splitlines()]
    shown[0] = f"sim.testing.failing.ScenarioFailed: {shown[0]}"
    first = lines.index(shown[0])
    assert lines[first : first + len(shown)] == shown
    replay = next(line for line in shown if line.startswith("replay")).split()[2:]
    again = subprocess.run(
        [sys.executable, "-m", "sim.cli", *replay, "-q"],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert again.returncode == 1, again.stdout + again.stderr
    assert "ack-honours-min-isr was violated" in again.stdout
