"""The cli bench: whole processes, from the start of Python to its end.

What people wait for is help and the run of a basic scenario, at full trace level with real files.
The reference is a Python that starts and ends, in the same race: what no command can save.

Wall time of the best of some runs, so on a busy machine it says what a quiet one would take. A
budget that is missed while the machine is busy means nothing.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.measure import Scale, Subject, race
from tests.bench.report import Report, below, timed

__all__ = ["facts", "run"]

ROOT = Path(__file__).resolve().parents[2]
SCENARIO = ROOT / "scenarios" / "leader_crash_acks1.toml"
ROUNDS_S = 6.0
"""A turn is a whole process: fewer of them than a scale's turns, so a race is longer."""


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    return {name: version(name) for name in ("attrs", "cattrs", "click", "rich")}


def run(scale: Scale, report: Report) -> None:
    """Each command against a bare Python."""
    with TemporaryDirectory() as folder:
        rows = (
            ("leaderfall --help", ("--help",), below(0.25, "s")),
            ("leaderfall run --help", ("run", "--help"), below(0.25, "s")),
            ("leaderfall check leader_crash_acks1.toml", ("check", str(SCENARIO)), None),
            ("leaderfall run leader_crash_acks1.toml", ("run", str(SCENARIO)), below(1.0, "s")),
        )
        subjects = [_process(folder, "-m", "sim.cli", *words) for _, words, _ in rows]
        seconds = ROUNDS_S * scale.subject_s
        longer = replace(scale, subject_s=seconds)
        bare_s, *took_s = race(longer, _process(folder, "-c", ""), *subjects)
        for (what, _, budget), each_s in zip(rows, took_s, strict=True):
            report.add(
                timed("process", what, each_s, reference_s=bare_s, of="python -c ''", budget=budget)
            )


def _process(folder: str, *words: str) -> Subject:
    def spawn(count: int) -> None:
        for _ in range(count):
            subprocess.run(
                [sys.executable, *words],
                cwd=folder,
                env={"PYTHONPATH": str(ROOT), "PATH": ""},
                stdout=subprocess.DEVNULL,
                check=True,
            )

    return Subject(spawn, operations_max=1)
