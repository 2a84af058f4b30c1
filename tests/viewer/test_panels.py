"""The X-ray and the compare panel in a real browser: ``panels.mjs`` drives it."""

from __future__ import annotations

import pytest

from tests.viewer.driving import HERE, Answers, checks_of, drive, judge
from tests.viewer.panel_pages import make_panel_pages

DRIVER = HERE / "panels.mjs"
CHECKS = checks_of(DRIVER)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the browser found, by check."""
    folder = tmp_path_factory.mktemp("panels")
    make_panel_pages(folder)
    return drive(DRIVER, folder)


def test_the_checks_are_known() -> None:
    assert len(CHECKS) >= 15


@pytest.mark.parametrize("check", CHECKS)
def test_panels(check: str, answers: Answers) -> None:
    judge(answers, check)
