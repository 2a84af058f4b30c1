"""Hypothesis profiles and fixtures shared by all tests.

The profiles are those of ``sim.testing``. By default the same code draws the same examples on
every machine (``ci``); searching for new ones is what ``--hypothesis-profile`` ``dev`` and
``nightly`` are for.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from sim.testing import register_profiles

ROOT = Path(__file__).resolve().parent.parent

register_profiles()
settings.load_profile("ci")

# Who starts the tests in the background, or under nohup, hands down signals that are ignored, and
# programs that the tests start and end would ignore them, too.
for _number in (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGINT)):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, signal.SIG_DFL)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """A test that ends its process hangs (``faulthandler_timeout``), and would in the next one."""
    if hasattr(config.option, "maxworkerrestart"):
        config.option.maxworkerrestart = "0"


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
