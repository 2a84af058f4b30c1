"""Where the scenario files that come with Leaderfall are.

A wheel carries them as ``sim/scenarios``; a checkout and an editable install keep them in the
folder ``scenarios`` beside the packages. Left out: reading them.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["scenarios_dir"]


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
