"""The scenario files that come with Leaderfall: where they are, and what their folders are about.

A wheel carries them as ``sim/scenarios``; a checkout and an editable install keep them in the
folder ``scenarios`` beside the packages. Left out: reading them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

__all__ = ["FOLDERS", "REGRESSIONS", "SUFFIX", "scenario_files", "scenarios_dir"]

SUFFIX: Final = ".toml"
FOLDERS: Final[dict[str, str]] = {
    "elr": "The last replica standing, with and without eligible leader replicas",
    "power": "Power losses: what no disk has synced is gone",
    "disks": "Disks that lie, fill up, fail and are exchanged",
    "isr": "In-sync replicas: who counts, and for how long",
    "failover": "Leaders that die, hang and come back",
    "truncation": "Logs that part, and how they become one again",
    "clients": "What producers and consumers get to see",
    "operators": "What people do to a cluster",
    "licences": "What may be lost, and under which licence: each case in each configuration",
}
"""What the files of each folder are about, in the order of the index."""
REGRESSIONS: Final = "regressions"
"""The folder of worlds that were once judged wrongly, made small."""


def scenarios_dir() -> Path:
    """The folder with the shipped scenario files: the installed one first, else the checkout's.

    Raises:
        FileNotFoundError: neither place is a folder; the message names both.
    """
    package = Path(__file__).resolve().parent
    installed = package / "scenarios"
    checkout = package.parent / "scenarios"
    for folder in (installed, checkout):
        if folder.is_dir():
            return folder
    raise FileNotFoundError(f"no scenario files: neither {installed} nor {checkout} is a folder")


def scenario_files() -> dict[str, Path]:
    """The shipped files by name (``disks/lying_fsync``): those at the top, then folder by folder.

    Regressions are no stories, and left out.

    Raises:
        FileNotFoundError: they are not there.
    """
    root = scenarios_dir()
    paths = sorted(root.rglob(f"*{SUFFIX}"))
    names = {
        path.relative_to(root).with_suffix("").as_posix(): path
        for path in paths
        if path.parent != root / REGRESSIONS
    }
    order = {folder: at for at, folder in enumerate(("", *FOLDERS))}

    def place(name: str) -> tuple[int, str]:
        return order.get(name.rpartition("/")[0], len(order)), name

    return {name: names[name] for name in sorted(names, key=place)}
