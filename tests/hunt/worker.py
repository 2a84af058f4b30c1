"""A process that runs worlds: jobs in, one line of JSON each, and answers out.

    python -m tests.hunt.worker

It ends when its input does. What worlds print goes to the standard error.

Left out: which job is next (``tests.hunt.pool``).
"""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from tests.hunt import guarding, small, worlds

__all__ = ["DUTIES", "collect_seldom", "do", "main"]

_COLLECT_EVERY: Final = 50_000


def _world(job: Mapping[str, Any]) -> dict[str, Any]:
    return worlds.run(worlds.Job(**job))


def _again(job: Mapping[str, Any]) -> dict[str, Any]:
    return worlds.run_again(worlds.Job(**job))


DUTIES: Final[dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    "again": _again,
    "guard": guarding.tried,
    "shrink": small.shrunk,
    "world": _world,
}
"""What can be asked for, and how it is done."""


def do(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Do one job.

    Raises:
        KeyError: there is no such duty.
    """
    return DUTIES[duty](job)


def collect_seldom() -> None:
    """Worlds leave little that is not freed at once, and what is imported is never freed."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECT_EVERY, 20, 50)


def main() -> None:
    """Answer job by job."""
    collect_seldom()
    answers = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(2, 1)
    for line in sys.stdin:
        duty, job = json.loads(line)
        answers.write(json.dumps(do(duty, job)) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
