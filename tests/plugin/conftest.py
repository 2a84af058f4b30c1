"""A project of a user, in a folder of its own."""

from __future__ import annotations

import pytest

from tests.plugin.projects import Project


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    return Project(pytester)
