"""The error of whoever asks a world for what cannot be.

Left out: what a script and the world make of one another (``sim.baton_errors``).
"""

from __future__ import annotations

__all__ = ["WorldError"]


class WorldError(ValueError):
    """What was asked for cannot be done as the world is; says why, and what can."""
