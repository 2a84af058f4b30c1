"""How often a hunt says how it goes: each second on a terminal, each half minute elsewhere.

Left out: what it says.
"""

from __future__ import annotations

import sys
from time import monotonic
from typing import Final

__all__ = ["Pace"]

_EVERY_S: Final = 30.0
_TERMINAL_EVERY_S: Final = 1.0


class Pace:
    """See the module.

    Attributes:
        every_s: the time from one line to the next.
    """

    def __init__(self) -> None:
        self.every_s = _TERMINAL_EVERY_S if sys.stderr.isatty() else _EVERY_S
        self._began_s = self._told_s = monotonic()

    def since_s(self) -> float:
        """How long it goes on."""
        return monotonic() - self._began_s

    def is_due(self) -> bool:
        """Whether it is time for a line, which is told then."""
        now_s = monotonic()
        if now_s - self._told_s < self.every_s:
            return False
        self._told_s = now_s
        return True
