"""Calling the command line: in this process, or in one of its own.

Left out: what is expected of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner, Result

from sim.cli.main import cli

ROOT = Path(__file__).resolve().parents[3]

SMALL = """schema = 1
name   = "small"
title  = "Ten records, and nobody falls"
until  = "3s"

[cluster]
brokers = 2

[[topic]]
name     = "orders"
replicas = [["b1", "b2"]]

[[step]]
at      = "1s"
produce = { to = "orders-0", count = 10 }

[[expect]]
at_end  = "leo('orders-0') == 10"
because = "ten were sent"
"""
VARIANTS = """
[[variant]]
name = "one"
set  = { "topic.orders:min.insync.replicas" = 1 }

[[variant]]
name = "Two of them"
set  = { "topic.orders:min.insync.replicas" = 2 }
"""
LOSING = """schema = 1
name   = "losing"
until  = "20s"

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"]]

[[step]]
id      = "lag"
at      = "1s"
cut     = { from = "b1", to = "followers:orders-0", only = ["FetchResponse"] }

[[step]]
produce = { to = "orders-0", count = 3, acks = "1" }

[[step]]
at      = "2s"
crash   = { node = "b1", how = "process" }

[[step]]
heal    = "lag"

[[step]]
at      = "15s"
start   = "b1"
"""


def call(*words: str, color: bool = False, env: dict[str, str] | None = None) -> Result:
    """In this process."""
    return CliRunner().invoke(cli, list(words), color=color, env=env, catch_exceptions=False)


def spawn(
    *words: str, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """In a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "sim.cli", *words],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )


def write(folder: Path, text: str = SMALL, name: str = "small.toml") -> str:
    """A scenario file; returns its name."""
    (folder / name).write_text(text, encoding="utf-8")
    return name
