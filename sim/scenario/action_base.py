"""What all actions of steps have.

Left out: the actions.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from sim.scenario.problems import Refusal

__all__ = ["Action"]


@frozen(kw_only=True)
class Action:
    """What a step does.

    Attributes:
        NAME: its key in a step.
    """

    NAME: ClassVar[str] = ""

    def check(self) -> list[Refusal]:
        """What is wrong between its keys."""
        return []
