"""The page in a real browser: ``browser.mjs`` drives it, each of its checks is a test here.

It needs node, the packages of ``sim/viewer`` (``npm ci --ignore-scripts`` there) and Chromium;
without them the tests are left out, and say why.
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

from tests.viewer.pages import make_pages

HERE = Path(__file__).resolve().parent
VIEWER = HERE.parents[1] / "sim" / "viewer"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
CHECKS = re.findall(r"^  async (\w+)\(context\)", (HERE / "browser.mjs").read_text("utf-8"), re.M)
TIMEOUT_S = 300

pytestmark = pytest.mark.slow


def find_tools() -> tuple[str, Path, str]:
    """Node, the folder of the packages and the browser; the test is left out without them."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    modules = VIEWER / "node_modules"
    if not (modules / "playwright-core").is_dir() or not (modules / "axe-core").is_dir():
        pytest.skip("sim/viewer has no node_modules: npm ci --ignore-scripts installs them")
    browser = next((found for each in BROWSERS if (found := shutil.which(each))), None)
    if browser is None:
        pytest.skip("no Chromium is installed")
    return node, modules, browser


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the browser found, by check."""
    node, modules, browser = find_tools()
    folder = tmp_path_factory.mktemp("pages")
    make_pages(folder)
    done = subprocess.run(
        [node, str(HERE / "browser.mjs"), str(folder), str(modules), browser],
        env={**os.environ, "HOME": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    found = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert found, done.stderr
    return {each["check"]: each for each in found}


def test_the_checks_are_known() -> None:
    assert len(CHECKS) >= 15


@pytest.mark.parametrize("check", CHECKS)
def test_page(check: str, answers: dict[str, dict[str, Any]]) -> None:
    assert check in answers, "the browser ended before this check"
    answer = answers[check]
    assert answer["is_ok"], answer["why"]
    if answer.get("figures"):
        print(answer["figures"])
