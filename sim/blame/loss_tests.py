"""What a run asks of each of its losses: would the run without its culprits have lost it?

Left out: the runs (``sim.blame.necessity``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from attrs import evolve

from sim.blame.necessity import necessity
from sim.checks.ledger import Loss
from sim.running.coverage import Tested
from sim.scenario.model import Scenario

__all__ = ["LOSSES_MAX", "tested"]

LOSSES_MAX: Final = 40
"""So many losses of a run are tested, the first ones: each may take runs of its own."""


def tested(
    scenario: Scenario, seed: int, losses: Sequence[Loss], digest: str
) -> Mapping[int, Tested]:
    """The outcome of the test by the number of the event that tells of each loss.

    Raises:
        NotTheSame: the run gives another digest when it is made again.
    """
    alone = evolve(scenario, liveness=None)
    found = necessity(alone, seed, losses[:LOSSES_MAX], digest=digest)
    return {each.loss.told: Tested(each.outcome, each.parts, each.others) for each in found.tested}
