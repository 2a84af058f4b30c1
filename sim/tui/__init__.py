"""The stepper on a whole screen: the only package that knows Textual.

What it shows and what its keys do comes from ``sim.present``, as in the line mode.

Left out: reading traces, and finding out whether Textual is there (``sim.cli.step``).
"""

from __future__ import annotations

from sim.present.stepper import Stepper
from sim.tui.app import StepApp
from sim.tui.screen import Compare

__all__ = ["StepApp", "run"]


def run(stepper: Stepper, compare: Compare | None = None) -> int:
    """Show a trace on the terminal until the user has seen enough.

    Args:
        compare: prints how the trace of a path differs, for ``c``; it may raise
            ``NoSuchCommand``. None where nothing can compare.

    Returns:
        0, or 1 if the screen had to be left because of an error of ours.
    """
    app = StepApp(stepper, compare)
    app.run()
    return app.return_code or 0
