"""Run folders: ``OUT/NAME/SEED[/VARIANT]``, where nothing is ever overwritten.

A run writes into a folder of its own, ``OUT/NAME/.running-*``. When it is over the folder gets its
name: the seed, or ``SEED.2``, ``SEED.3`` where another trace of that seed is already. The same
result again needs no second folder: the first one is used, and the new one removed.
``OUT/NAME/latest`` points to the newest. A run that broke off goes to ``SEED.interrupted`` or
``SEED.error``.

Left out: what is in them (``sim.cli.documents``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final

from attrs import frozen

from sim.cli.console import shown
from sim.cli.exits import UserError

__all__ = ["LATEST", "RESULT", "SCENARIO", "TRACE", "RunFolder", "begin"]

LATEST: Final = "latest"
TRACE: Final = "trace.jsonl"
RESULT: Final = "result.json"
SCENARIO: Final = "scenario.toml"
"""The scenario file as it was read."""
_NODES: Final = ".nodes"
_INODES: Final = ".inodes"
"""What the simulated disk calls its second names of files."""
_TRIES_MAX: Final = 100_000
_RESULT_BYTES_MAX: Final = 64 << 20
_LEVELS: Final = ("digest", "events", "full")
# What may differ between two results of one run: where it is, and how much of it was kept.
_WHERE: Final = ("brokers", "replay", "level", "disk", "file")


@frozen
class RunFolder:
    """Where one run goes.

    Attributes:
        home: ``OUT/NAME``.
        path: where it is written while it runs.
        seed: of the run.
        variant: the name of its folder; empty for none.
    """

    home: Path
    path: Path
    seed: int
    variant: str

    @property
    def trace(self) -> Path:
        return self.path / TRACE

    @property
    def nodes(self) -> Path:
        """An empty folder for the nodes' directories while it runs."""
        return self.path / _NODES

    def gather(self) -> None:
        """Put the nodes' directories at the top, without what only power cuts needed."""
        if not self.nodes.is_dir():
            return
        for each in sorted(self.nodes.iterdir()):
            if each.name.endswith(_INODES):
                shutil.rmtree(each, ignore_errors=True)
            else:
                os.rename(each, self.path / each.name)
        shutil.rmtree(self.nodes, ignore_errors=True)

    def publish(self, document: Mapping[str, Any], *, ending: str = "") -> Path:
        """Give it its name, or find that the same is there already; returns the folder.

        Args:
            document: what its ``result.json`` says.
            ending: ``.interrupted`` or ``.error`` for a run without a verdict.

        Raises:
            UserError: the file system refuses.
        """
        try:
            self.gather()
            for place in self._places(ending):
                if not ending and _covers(place, document):
                    shutil.rmtree(self.path)
                    self._point(place)
                    return place
                if _claim(self.path, place):
                    self._point(place)
                    return place
        except OSError as error:
            raise refused(self.home, error) from None
        raise UserError(f"{shown(self.home)} has {_TRIES_MAX} runs of this seed.")

    def _places(self, ending: str) -> Iterator[Path]:
        for number in count(1):
            if number > _TRIES_MAX:
                return
            name = f"{self.seed}{ending}" + (f".{number}" if number > 1 else "")
            yield self.home / name / self.variant if self.variant else self.home / name

    def _point(self, place: Path) -> None:
        """Let ``latest`` point to a folder, at once; something else of that name stays."""
        link = self.home / LATEST
        if os.path.lexists(link) and not link.is_symlink():
            return
        temporary = self.home / f".{LATEST}-{os.getpid()}"
        try:
            temporary.unlink(missing_ok=True)
            temporary.symlink_to(place.relative_to(self.home), target_is_directory=True)
            os.replace(temporary, link)
        except OSError:
            # A file system without links: the run is where its report says.
            pass


def begin(out: str, name: str, seed: int, variant: str) -> RunFolder:
    """A folder for a run that is about to begin.

    Args:
        name, variant: slugs.

    Raises:
        UserError: it cannot be made.
    """
    home = Path(out) / name
    try:
        home.mkdir(parents=True, exist_ok=True)
        path = Path(mkdtemp(prefix=".running-", dir=home))
        path.chmod(0o755)
    except (OSError, ValueError, RecursionError) as error:
        raise refused(home, error) from None
    return RunFolder(home, path, seed, variant)


def refused(path: Path, error: Exception) -> UserError:
    said = getattr(error, "strerror", None) or str(error)
    return UserError(
        f'"{shown(path)}" cannot be written: {shown(said)}', "--out names another folder."
    )


def _claim(path: Path, place: Path) -> bool:
    """Rename a folder to a name that is free; False where it is not."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(place):
        return False
    try:
        # Onto a folder that another process made in between this fails, unless that is empty.
        os.rename(path, place)
    except OSError:
        if os.path.lexists(place):
            return False
        raise
    return True


def _covers(place: Path, document: Mapping[str, Any]) -> bool:
    """Whether a folder has the same result, with as much of it as the new one would keep."""
    try:
        file = place / RESULT
        # Whatever stands there: a pipe is waited for, and a device has no end.
        names = (TRACE, RESULT, SCENARIO)
        if not all((place / each).is_file() for each in names):
            return False
        if file.stat().st_size > _RESULT_BYTES_MAX:
            return False
        known = json.loads(file.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    if not isinstance(known, dict) or known.get("level") not in _LEVELS:
        return False
    if _kept(known) < _kept(document):
        return False
    if document["disk"] == "real" and known.get("disk") != "real":
        return False
    return _what(known) == _what(json.loads(json.dumps(document)))


def _kept(document: Mapping[str, Any]) -> int:
    return _LEVELS.index(document["level"])


def _what(document: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in document.items() if key not in _WHERE}
