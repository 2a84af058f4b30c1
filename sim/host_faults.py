"""What all faults of nodes have in common, and checks of their values.

Left out: the faults (``sim.faults``, ``sim.clock_faults``), those of links (``sim.network_rules``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from attrs import frozen

if TYPE_CHECKING:
    from sim.hosts import Host

__all__ = ["HostFault", "at_least", "one_of"]


@frozen(kw_only=True)
class HostFault:
    """What strikes one node.

    Attributes:
        id: names it in traces; no other fault of the world has it.
        node: name of the node.
    """

    id: str
    node: str

    def check(self, host: Host) -> None:
        """Look whether it can strike this host at all.

        Raises:
            ValueError: it cannot; says why.
        """

    def begin(self, host: Host, number: int) -> None:
        """Strike; ``number`` is the event that says so."""
        raise NotImplementedError

    def end(self, host: Host, number: int) -> None:
        """Be over."""


def at_least(least: int) -> Any:
    """A validator: this number or more."""

    def check(fault: object, attribute: Any, value: int) -> None:
        if value < least:
            raise ValueError(f"{attribute.name} is {value}, allowed is {least} or more")

    return check


def one_of(allowed: Sequence[str]) -> Any:
    """A validator: one of these words."""

    def check(fault: object, attribute: Any, value: str) -> None:
        if value not in allowed:
            raise ValueError(f"{attribute.name} is {value!r}, allowed are {', '.join(allowed)}")

    return check
