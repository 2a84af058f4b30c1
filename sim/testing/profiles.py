"""Hypothesis profiles: ``dev``, ``ci`` and ``nightly``.

None has a deadline or a health check of speed, so no test depends on the wall clock. All print the
blob with which Hypothesis does a failing case again; the scenario file does that too, and longer.
None explains which lines only failing cases run: that traces every line of the simulation, and
takes ten times as long. None makes a second bug small once there is one, which takes as long again.
``ci`` does not aim at the targets that ``check`` sets: Hypothesis goes on around the example that
scores highest, which is among the largest. ``dev`` aims too, and may take several times as long.

Left out: other settings; a test's own ``@settings`` are stronger than any profile.
"""

from __future__ import annotations

from typing import Final

from hypothesis import HealthCheck, Phase, settings

__all__ = ["PROFILES", "register_profiles"]

PROFILES: Final[dict[str, str]] = {
    "dev": "other examples every time, failing ones first again, from the example database",
    "ci": "the same examples on every machine, no example database",
    "nightly": "as dev, with 50 times as many examples",
}
"""Name, and what is drawn."""

_EXAMPLES: Final = 100
_NIGHTLY_EXAMPLES: Final = 5_000


def register_profiles(load: str | None = None) -> None:
    """Make the profiles known, in ``conftest.py`` or at the top of a test file.

    It takes the place of Hypothesis' own ``ci``, which prints no blob.

    Args:
        load: the one that is to hold from here on; ``--hypothesis-profile`` is stronger if this is
            called in ``conftest.py``.

    Raises:
        ValueError: there is no profile of that name.
    """
    if load is not None and load not in PROFILES:
        raise ValueError(f"load is {load!r}, allowed are {', '.join(PROFILES)}")
    # Hypothesis derandomizes its own default where CI is set; what runs at night must be random.
    base = settings(
        deadline=None,
        derandomize=False,
        max_examples=_EXAMPLES,
        print_blob=True,
        phases=[each for each in Phase if each is not Phase.explain],
        report_multiple_bugs=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile("dev", base)
    aimless = [each for each in base.phases if each is not Phase.target]
    settings.register_profile("ci", base, derandomize=True, database=None, phases=aimless)
    settings.register_profile("nightly", base, max_examples=_NIGHTLY_EXAMPLES)
    if load is not None:
        settings.load_profile(load)
