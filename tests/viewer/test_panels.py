"""The X-ray and the compare panel in a real browser: ``panels.mjs`` drives it.

It needs what ``test_page`` needs; without that the tests are left out, and say why.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from typing import Any

import pytest

from tests.viewer.panel_pages import make_panel_pages
from tests.viewer.test_page import HERE, TIMEOUT_S, find_tools

CHECKS = re.findall(r"^  async (\w+)\(context\)", (HERE / "panels.mjs").read_text("utf-8"), re.M)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What the browser found, by check."""
    node, modules, browser = find_tools()
    folder = tmp_path_factory.mktemp("panels")
    make_panel_pages(folder)
    done = subprocess.run(
        [node, str(HERE / "panels.mjs"), str(folder), str(modules), browser],
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
def test_panels(check: str, answers: dict[str, dict[str, Any]]) -> None:
    assert check in answers, "the browser ended before this check"
    assert answers[check]["is_ok"], answers[check]["why"]
