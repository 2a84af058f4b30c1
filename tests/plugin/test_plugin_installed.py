"""The plugin from a wheel, in an environment and a project that know nothing of this repository."""

from __future__ import annotations

import os
import re
import subprocess
import venv
from pathlib import Path

import pytest

from tests.plugin.projects import LOSS, ROOT, SCENARIO, VARIANTS, Project
from tests.plugin.test_plugin_examples import write_examples

pytest_plugins = ["pytester"]

# What pip says where no package index can be reached.
_OFFLINE = re.compile("No matching distribution found|Could not connect|ConnectionError|dns error")


def run(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command without what this process knows of the repository."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return subprocess.run(
        [str(each) for each in command],
        cwd=cwd,
        env=kept,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def installed(folder: Path) -> Path:
    """The program of a fresh environment with the wheel and what users have beside it."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    steps = (
        ("wheel", "--quiet", "--no-deps", "-w", str(folder / "wheel"), str(ROOT)),
        ("install", "--quiet", "leaderfall[test] @ file://{}"),
    )
    for step in steps:
        words = [each.format(next((folder / "wheel").glob("*.whl"), "")) for each in step]
        result = run(python, "-m", "pip", *words, cwd=folder)
        output = result.stdout + result.stderr
        if result.returncode != 0 and _OFFLINE.search(output) and not os.environ.get("CI"):
            pytest.skip("a fresh environment needs packages, and no package index answers")
        assert result.returncode == 0, output
    return python


@pytest.mark.slow
def test_a_project_of_a_user_with_the_wheel(project: Project, tmp_path: Path) -> None:
    python = installed(tmp_path)
    write_examples(project)
    strict = ("-m", "pytest", "--strict-markers", "--strict-config")
    result = run(python, *strict, "-v", cwd=project.path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "plugins: " in result.stdout
    assert re.search(r"^plugins: .*leaderfall-", result.stdout, re.MULTILINE)
    assert "scenarios/crash.toml::five brokers PASSED" in result.stdout
    assert "8 passed" in result.stdout
    project.write("scenarios/bad.toml", SCENARIO.format(name="bad", acked=4) + VARIANTS)
    project.write("tests/test_loss.py", LOSS.replace("MARK", 'guards={"ack-waits-for-hw": False}'))
    result = run(python, *strict, "-n", "2", "--leaderfall-seeds", "2", cwd=project.path)
    assert result.returncode == pytest.ExitCode.TESTS_FAILED, result.stdout + result.stderr
    assert "6 failed, 11 passed" in result.stdout, result.stdout
    assert result.stdout.count("= leaderfall: saved traces =") == 1
    replays = re.findall(r"^  replay  (leaderfall run|pytest) (.*)$", result.stdout, re.MULTILINE)
    assert len(replays) == 6
    command, rest = next(each for each in replays if each[0] == "leaderfall run")
    leaderfall = python.with_name("leaderfall")
    found = run("sh", "-c", f"{leaderfall} run {rest}", cwd=project.path)
    assert found.returncode == 1, found.stdout + found.stderr
    command, rest = next(each for each in replays if each[0] == "pytest")
    found = run("sh", "-c", f"{python} -m {command} {rest}", cwd=project.path)
    assert found.returncode == pytest.ExitCode.TESTS_FAILED, found.stdout + found.stderr
    assert "ILLEGAL" in found.stdout
