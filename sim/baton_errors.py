"""What goes wrong between scripts and the world.

All are mistakes of the one who wrote the script, never findings about the system under test.

Left out: what a script itself raises, which leaves ``sim.baton.run_script`` as it is.
"""

from __future__ import annotations

__all__ = ["BatonError", "Deadlock", "Misuse", "RealWait", "StandsStill", "TwoRunnable"]


class BatonError(RuntimeError):
    """A script and the world cannot go on."""


class Misuse(BatonError):
    """A call that is not allowed where it was made."""


class Deadlock(BatonError):
    """Scripts wait, and nothing is to come that could wake one."""


class RealWait(BatonError):
    """A script waits for something outside the world: a thread, a socket, a file, a process."""


class StandsStill(BatonError):
    """Scripts are woken for ever and virtual time does not move."""


class TwoRunnable(BatonError):
    """Two tasks that the baton does not hold wait to run: their order would be trio's choice."""
