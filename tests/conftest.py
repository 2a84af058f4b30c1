"""Hypothesis profiles and fixtures shared by all tests.

No profile has a deadline or a health check of speed: a test never depends on the wall clock. By
default the same code draws the same examples on every machine (``fixed``); searching for new ones
is what ``--hypothesis-profile`` ``random`` and ``nightly`` are for.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Hypothesis derandomizes its own default where CI is set; a nightly run there must still be random.
_UNTIMED = settings(
    deadline=None,
    derandomize=False,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

settings.register_profile("fixed", _UNTIMED, derandomize=True, database=None)
settings.register_profile("random", _UNTIMED)
settings.register_profile("nightly", _UNTIMED, max_examples=5_000)
settings.load_profile("fixed")

# Who starts the tests in the background, or under nohup, hands down signals that are ignored, and
# programs that the tests start and end would ignore them, too.
for _number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


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
