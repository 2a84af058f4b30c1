"""I3: two logs that have the same batch of an epoch agree on everything before it.

It is looked for where the history of a partition has two batches of one epoch and offset, or one
with two pasts, and at deep checks. Unclean elections do not excuse it. Offsets that only one of the
logs retains, and damaged batches, are left out.
"""

from __future__ import annotations

from itertools import combinations

from sim.checks.comparing import difference, shared_end
from sim.checks.ledger import Ledger
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "epoch-prefix"


def check(scene: Scene, ledger: Ledger, event: int) -> None:
    """Compare all logs of a partition."""
    ledger.history.suspects.clear()
    for one, other in combinations(ledger.places, 2):
        left, right = ledger.places[one], ledger.places[other]
        differs = difference(left, right, 0, shared_end(left, right))
        if differs is not None:
            scene.report(
                CHECK,
                ledger.partition,
                "differs",
                event,
                f"{one} and {other} share a batch of one epoch behind offset {differs}, "
                "where their records differ",
                offset=differs,
                nodes=[one, other],
            )
