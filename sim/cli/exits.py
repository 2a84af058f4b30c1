"""Exit codes, and errors of users that have one.

Left out: how they are printed (``sim.cli.main``).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

__all__ = ["EXIT_DOCS", "Exit", "UserError", "worst"]


class Exit(IntEnum):
    """What a process ends with."""

    OK = 0
    FAILED = 1
    USAGE = 2
    INCONCLUSIVE = 3
    NOT_DETERMINISTIC = 4
    INTERNAL = 70
    INTERRUPTED = 130


EXIT_DOCS: Final[dict[Exit, str]] = {
    Exit.OK: "all expectations and invariants hold",
    Exit.FAILED: "an expectation or an invariant failed",
    Exit.USAGE: "bad usage, or a scenario file that is wrong; nothing was run",
    Exit.INCONCLUSIVE: "the run could not end within its budget",
    Exit.NOT_DETERMINISTIC: "a run that was made again differed (--twice, blame, shrink)",
    Exit.INTERNAL: "a defect of Leaderfall",
    Exit.INTERRUPTED: "interrupted",
}
_WORST_FIRST: Final = (
    Exit.INTERRUPTED,
    Exit.INTERNAL,
    Exit.NOT_DETERMINISTIC,
    Exit.FAILED,
    Exit.INCONCLUSIVE,
    Exit.USAGE,
    Exit.OK,
)


def worst(codes: Iterable[int]) -> Exit:
    """What several runs end with (DECISIONS 3); 0 for none."""
    found = {Exit(code) for code in codes}
    return next((each for each in _WORST_FIRST if each in found), Exit.OK)


class UserError(Exception):
    """What was asked for cannot be done.

    Attributes:
        lines: for people, the first one after ``Error:``; already without control characters.
        code: of the process.
    """

    def __init__(self, *lines: str, code: Exit = Exit.USAGE) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines
        self.code = code
