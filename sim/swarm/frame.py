"""What a drawn scenario keeps to: its envelope and its ground.

Two envelopes (FAULTS C.0). In ``recoverable`` a correct cluster loses nothing that it promised with
acks=all, and is whole again once the faults are over. Each such case has one ground for that:

* ``calm``: nobody dies; links, clocks and time trouble everybody;
* ``kills``: processes die, and nothing that they have written is lost;
* ``flush``: every replica syncs before it answers, so power may go anywhere;
* ``elr``: with eligible leader replicas, and so few brokers may die, lose their memory or their
  disk that no more unclean shutdowns than ``min.insync.replicas`` less one come together.

In ``unrestricted`` anything may happen.

Left out: what is drawn in it.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import frozen

__all__ = ["ANYTHING", "ENVELOPES", "GROUNDS", "RECOVERABLE", "UNRESTRICTED", "Cluster"]

RECOVERABLE: Final = "recoverable"
UNRESTRICTED: Final = "unrestricted"
ENVELOPES: Final = (RECOVERABLE, UNRESTRICTED)
GROUNDS: Final = ("calm", "kills", "flush", "elr")
"""Why a recoverable case is one."""
ANYTHING: Final = "anything"
"""What stands for a ground in ``unrestricted``."""


@frozen
class Cluster:
    """A cluster while it is drawn.

    Attributes:
        ground: of ``GROUNDS``, or ``ANYTHING``.
        brokers: how many.
        keys: the table ``[cluster]``.
    """

    ground: str
    brokers: int
    keys: dict[str, Any]

    @property
    def names(self) -> list[str]:
        return [f"b{number}" for number in range(1, self.brokers + 1)]

    @property
    def is_recoverable(self) -> bool:
        return self.ground != ANYTHING
