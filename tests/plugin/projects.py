"""Projects of users, small ones, and runs of pytest in them with the plugin.

Runs in this process begin with what a test needs already imported, so that each takes little time.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sim.blame.loss_tests
import sim.failures
import sim.pytest_plugin
import sim.pytest_plugin.awaited
import sim.pytest_plugin.blocking
import sim.pytest_plugin.cases
import sim.pytest_plugin.files
import sim.pytest_plugin.replays
import sim.pytest_plugin.scripted

ROOT = Path(__file__).resolve().parents[2]
INI = """
[tool.pytest.ini_options]
testpaths = ["tests"]
addopts = ["--strict-config", "--strict-markers", "-p", "no:cacheprovider"]
filterwarnings = ["error"]
xfail_strict = true
"""

HAS_PYTEST_TRIO = importlib.util.find_spec("pytest_trio") is not None
needs_pytest_trio = pytest.mark.skipif(
    not HAS_PYTEST_TRIO and not os.environ.get("CI"),
    reason="pytest-trio is not installed; the extra [test] has it",
)

SCENARIO = """
schema = 1
name   = "{name}"
until  = "4s"

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"]]

[[step]]
at      = "1s"
produce = {{ to = "orders-0", count = 3, acks = "all" }}

[[expect]]
at   = "3s"
that = "acked('orders-0') == {acked}"
"""
VARIANTS = """
[[variant]]
name = "three"

[[variant]]
name = "five brokers"
set  = { "cluster.brokers" = 5 }
"""

LOSS = """
    import pytest

    @pytest.mark.leaderfall(
        config={"broker.session.timeout.ms": 2000, "broker.heartbeat.interval.ms": 500}, MARK
    )
    def test_loss(cluster):
        cluster.create_topic("orders", config={"min.insync.replicas": "1"})
        cluster.produce("orders", 2)
        cluster.cut("leader:orders-0", "followers:orders-0", only=["FetchResponse"])
        cluster.produce("orders", 1)
        cluster.crash("leader:orders-0")
        cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")
        cluster.heal()
        cluster.start("b1")
        cluster.sleep(5)
"""
"""What nobody but the leader has is acknowledged, where the guard is off."""


class Project:
    """A folder with tests, and ``pyproject.toml``."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        (self.path / "tests").mkdir()
        self.ini()

    def ini(self, more: str = "") -> None:
        """Write the ini file anew, with more keys."""
        (self.path / "pyproject.toml").write_text(INI + more)

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def run(self, *args: str) -> pytest.RunResult:
        """Run pytest here."""
        return self.pytester.runpytest_inprocess(*args, plugins=[sim.pytest_plugin])

    def run_apart(
        self, *args: str, path: tuple[Path, ...] = ()
    ) -> subprocess.CompletedProcess[str]:
        """Run pytest in a process of its own, in which nothing is imported."""
        return subprocess.run(
            [sys.executable, "-m", "pytest", *args],
            cwd=self.path,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, *path)))},
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def saved(self) -> list[str]:
        """What is in the folder of failures, all of it."""
        root = self.path / ".leaderfall" / "failures"
        if not root.is_dir():
            return []
        return sorted(each.relative_to(root).as_posix() for each in root.rglob("*"))


def failures(result: pytest.RunResult) -> str:
    """The part of the output that tells of failures."""
    text = str(result.stdout)
    return text[text.index("= FAILURES =") :]
