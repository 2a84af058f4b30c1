"""The profiles: none has a deadline, and ``ci`` is the same everywhere and aims at nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import Phase, settings

from sim.testing import register_profiles
from sim.testing.profiles import PROFILES

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("name", PROFILES)
def test_no_profile_depends_on_the_wall_clock(name: str) -> None:
    register_profiles()
    found = settings.get_profile(name)
    assert found.deadline is None
    assert Phase.explain not in found.phases
    assert {Phase.generate, Phase.shrink} <= set(found.phases)


def test_only_ci_is_derandomized_and_aims_at_nothing() -> None:
    register_profiles()
    ci, dev, nightly = (settings.get_profile(each) for each in ("ci", "dev", "nightly"))
    assert ci.derandomize
    assert ci.database is None
    assert Phase.target not in ci.phases
    for other in (dev, nightly):
        assert not other.derandomize
        assert Phase.target in other.phases
    assert nightly.max_examples > dev.max_examples


def test_an_unknown_profile_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(ValueError, match="load is 'night', allowed are dev, ci, nightly"):
        register_profiles("night")


def test_profiles_cost_no_simulation() -> None:
    """A ``conftest.py`` makes them, and each run of each test pays for that."""
    program = (
        "import sys, sim.testing as testing\n"
        "testing.register_profiles('ci')\n"
        "assert 'sim.world' not in sys.modules, sorted(sys.modules)\n"
        "assert all(hasattr(testing, name) for name in testing.__all__)\n"
        "assert 'sim.world' in sys.modules\n"
        "assert set(testing.__all__) <= set(dir(testing))\n"
        "assert not hasattr(testing, 'Check')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
