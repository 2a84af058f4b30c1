"""Who runs worlds, as a hunt sees them: they are given jobs, and answers are taken.

Left out: processes (``tests.hunt.pool``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["Workers"]


class Workers(Protocol):
    """Who does jobs."""

    def room(self, avoid: int | None = None) -> bool:
        """Whether a job can be given now, to another worker than this."""

    def give(self, duty: str, job: Mapping[str, Any], tag: Any, avoid: int | None = None) -> None:
        """Begin a job."""

    def take(self, timeout_s: float | None = None) -> tuple[Any, dict[str, Any], int] | None:
        """Tag and answer of a job that is done, and who did it; None if none was in time.

        An answer may be ``{"died": STATUS}``.
        """
