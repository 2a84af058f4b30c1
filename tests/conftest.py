"""Hypothesis profiles and fixtures shared by all tests.

No profile has a deadline or a health check of speed: a test never depends on the wall clock. The
profile is ``ci`` where the variable CI is set, else ``dev``; ``--hypothesis-profile`` overrides.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Hypothesis derandomizes its own default where CI is set; a nightly run there must still be random.
_UNTIMED = settings(deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow])

settings.register_profile("dev", _UNTIMED, max_examples=100)
settings.register_profile("ci", _UNTIMED, max_examples=100, derandomize=True, print_blob=True)
settings.register_profile("nightly", _UNTIMED, max_examples=5_000, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture(scope="session")
def kafka_dirs() -> Path:
    """The folder with data that Kafka wrote (LEADERFALL_KAFKA_DIRS, else ../shared/kafka-dirs).

    Skips where it is absent: the data is not part of this repository.
    """
    named = os.environ.get("LEADERFALL_KAFKA_DIRS")
    folder = Path(named) if named else ROOT.parent / "shared" / "kafka-dirs"
    if not (folder / "expected.json").is_file():
        pytest.skip(f"no Kafka data: {folder} has no expected.json (set LEADERFALL_KAFKA_DIRS)")
    return folder.resolve()
