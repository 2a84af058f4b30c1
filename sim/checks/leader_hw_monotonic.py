"""I4: a leader's high watermark never falls within its epoch. Nothing is left out of it."""

from __future__ import annotations

from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "leader-hw-monotonic"


def check(scene: Scene, place: Place, before: int, event: int) -> None:
    """The same leadership had another high watermark before."""
    if place.high_watermark < before:
        scene.report(
            CHECK,
            place.partition,
            "falls",
            event,
            f"{place.node} leads, and its high watermark falls from {before} to "
            f"{place.high_watermark}",
            node=place.node,
            before=before,
            after=place.high_watermark,
        )
