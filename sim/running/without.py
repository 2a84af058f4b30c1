"""A run in which some of a scenario is left out, and the rest happens when it happened before.

Every other step and fault keeps its number, its key and its time: it begins in its usual way, but
not before the moment of the first run, and at that moment at the latest. So a wait for what never
comes about holds nothing up, and a step does not come early because one in front of it is gone.
What cannot act then is passed over, and noted.

Up to the first event of what is left out, both runs have the same events.

Left out: which steps and faults may be left out (``sim.blame.parts``).
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

__all__ = ["Moments", "Without"]


@frozen
class Moments:
    """When everything happened in a run, in microseconds from its time 0.

    Attributes:
        steps: when each step began, by its number.
        faults: when each fault began, by its id; ``ends`` when it ended.
        end_us: of the run.
    """

    steps: Mapping[int, int]
    faults: Mapping[str, int]
    ends: Mapping[str, int]
    end_us: int


@frozen
class Without:
    """What is left out.

    Attributes:
        moments: of a run of the same scenario and seed in which it was not.
        steps: numbers. A ``start`` among them starts on the same disk instead.
        faults: ids.
    """

    moments: Moments
    steps: frozenset[int] = frozenset()
    faults: frozenset[str] = frozenset()
