"""Commands write where they are called: each test has a folder of its own.

Left out: everything else.
"""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, and no wishes about colour or width."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "COLORTERM", "PYTHONHASHSEED"):
        monkeypatch.delenv(name, raising=False)
    return place
