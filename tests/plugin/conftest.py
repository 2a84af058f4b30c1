"""A project of a user, in a folder of its own."""

from __future__ import annotations

import pytest

from tests.plugin.projects import Project


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Under CI pytest prints every failure a second time, whole, in its summary.
    for name in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(name, raising=False)
    return Project(pytester)
