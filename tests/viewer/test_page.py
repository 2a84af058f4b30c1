"""The page in a real browser: ``browser.mjs`` drives it, each of its checks is a test here."""

from __future__ import annotations

import pytest

from tests.viewer.driving import HERE, Answers, checks_of, drive, judge
from tests.viewer.pages import make_pages

DRIVER = HERE / "browser.mjs"
CHECKS = checks_of(DRIVER)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the browser found, by check."""
    folder = tmp_path_factory.mktemp("pages")
    make_pages(folder)
    return drive(DRIVER, folder)


def test_the_checks_are_known() -> None:
    assert len(CHECKS) >= 15


@pytest.mark.parametrize("check", CHECKS)
def test_page(check: str, answers: Answers) -> None:
    judge(answers, check)
