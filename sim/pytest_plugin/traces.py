"""Where traces of tests go, and which are kept: what ``--leaderfall-traces`` says.

    FOLDER/NAME/trace.jsonl, test.json    of a test with a cluster
    FOLDER/NAME/trace.jsonl, scenario.toml    of a scenario file

Each test has a folder of its own, named for its id, so workers of xdist meet nowhere. While a test
runs its trace is ``FOLDER/.running-PID-NUMBER.jsonl``.

Left out: when a test has failed (``sim.pytest_plugin``).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

__all__ = ["FOLDER", "WORDS", "Traces", "traces_of"]

WORDS: Final = ("failed", "all", "none")
FOLDER: Final = Path(".leaderfall") / "failures"


class Traces:
    """See the module. No attrs: each run of pytest makes one, and attrs is not there yet.

    Attributes:
        keep: one of ``WORDS``.
        folder: absolute.
    """

    def __init__(self, keep: str, folder: Path) -> None:
        self.keep = keep
        self.folder = folder
        self._count = 0

    @property
    def is_written(self) -> bool:
        return self.keep != "none"

    def running(self) -> Path | None:
        """A path for the trace of a test that begins, where nothing is; None for no trace."""
        if not self.is_written:
            return None
        self._count += 1
        path = self.folder / f".running-{os.getpid()}-{self._count}.jsonl"
        self.folder.mkdir(parents=True, exist_ok=True)
        # What a process of the same number left that was killed.
        path.unlink(missing_ok=True)
        return path

    def wants(self, *, is_failed: bool) -> bool:
        """Whether the trace of a test is kept."""
        return self.keep == "all" or (self.keep == "failed" and is_failed)

    def tidy(self) -> None:
        """Take away the folders that this run made and left empty."""
        if self._count:
            with suppress(OSError):
                self.folder.rmdir()
                if (
                    self.folder.name == FOLDER.name
                    and self.folder.parent.name == FOLDER.parent.name
                ):
                    self.folder.parent.rmdir()


def traces_of(words: Sequence[str], root: Path) -> Traces:
    """What the options say, of which the last of each kind counts.

    Args:
        words: ``failed``, ``all``, ``none``, or a folder, from ``root``.
    """
    keep = [each for each in words if each in WORDS]
    folders = [each for each in words if each not in WORDS]
    return Traces(keep[-1] if keep else WORDS[0], root / (folders[-1] if folders else FOLDER))
