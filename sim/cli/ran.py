"""What came of an order, and of its second run.

Left out: how it came to be (``sim.cli.runs``, ``sim.cli.twice``).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen

from sim.cli.exits import Exit
from sim.cli.orders import Order

if TYPE_CHECKING:
    from sim.running.scenario_run import Result

__all__ = ["Ran", "Second"]


@frozen
class Second:
    """What the second run gave.

    Attributes:
        is_same: whether it was the same in everything.
        digest: None where it broke off.
        folder: where its trace is.
        lines: for people: the first event that differs, or how it broke off.
    """

    is_same: bool
    hash_seed: str
    digest: str | None
    folder: str | None
    lines: tuple[str, ...] = ()

    def plain(self) -> dict[str, Any]:
        return {
            "is_same": self.is_same,
            "hash_seed": self.hash_seed,
            "digest": self.digest,
            "folder": self.folder,
            "difference": list(self.lines),
        }


@define
class Ran:
    """What came of an order.

    Attributes:
        folder: where trace and brokers are; None if there is none.
        document: what ``result.json`` says.
        result: of the run; None where it broke off.
        error: lines for people, where it broke off.
        second: of ``--twice``.
        seconds: of real time.
    """

    order: Order
    code: Exit
    folder: Path | None = None
    document: dict[str, Any] = field(factory=dict)
    result: Result | None = None
    error: tuple[str, ...] = ()
    second: Second | None = None
    seconds: float = 0.0
