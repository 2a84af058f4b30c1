"""Running node for tests: drivers of pages in a browser, and modules of the viewer by themselves.

Drivers need node, the packages of ``sim/viewer`` (``npm ci --ignore-scripts`` there) and Chromium;
modules need node alone. Without them a test is left out, and says why.

Left out: what is driven (``driving.mjs`` has what the drivers share).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

__all__ = ["HERE", "VIEWER", "Answers", "checks_of", "drive", "judge", "run_module"]

HERE = Path(__file__).resolve().parent
VIEWER = HERE.parents[1] / "sim" / "viewer"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 300
MODULE_TIMEOUT_S = 120
Answers = dict[str, dict[str, Any]]


def checks_of(driver: Path) -> list[str]:
    """The names of a driver's checks."""
    return re.findall(r"^  async (\w+)\(context\)", driver.read_text("utf-8"), re.MULTILINE)


def drive(driver: Path, folder: Path) -> Answers:
    """What a browser finds in the pages of a folder, by check."""
    modules = VIEWER / "node_modules"
    node = _node()
    if not (modules / "playwright-core").is_dir() or not (modules / "axe-core").is_dir():
        pytest.skip("sim/viewer has no node_modules: npm ci --ignore-scripts installs them")
    browser = next((found for each in BROWSERS if (found := shutil.which(each))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    done = subprocess.run(
        [node, str(driver), str(folder), str(modules), browser],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, done.stderr
    return {each["check"]: each for each in found}


def judge(answers: Answers, check: str) -> None:
    """A check has to be there and to be met; its figures are shown."""
    assert check in answers, "the browser ended before this check"
    answer = answers[check]
    assert answer["is_ok"], answer["why"]
    if answer.get("figures"):
        print(answer["figures"])


def run_module(script: str, module: Path, given: Any) -> Any:
    """What a script answers in JSON: the module's address is ``process.argv[1]``."""
    done = subprocess.run(
        [_node(), "--input-type=module", "-e", script, module.as_uri()],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
        timeout=MODULE_TIMEOUT_S,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _node() -> str:
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    return node
