"""The commands that show a run, for the end of its report.

Left out: the commands (``sim.cli.step``, ``sim.cli.page``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sim.shell_words import command_line

__all__ = ["event_to_open", "views_of"]


def views_of(document: Mapping[str, Any], folder: str) -> list[tuple[str, str]]:
    """Label and command line of each: the page, and the stepper, at what went wrong if it did."""
    event = event_to_open(document)
    step = ["leaderfall", "step", folder]
    return [
        ("page", command_line(["leaderfall", "report", folder, "-o", "run.html"])),
        ("step", command_line(step))
        if event is None
        else ("open", command_line([*step, "--at", str(event)])),
    ]


def event_to_open(document: Mapping[str, Any]) -> int | None:
    """The first event with which something went wrong that fails the run; None where nothing did.

    That is a broken rule or a loss which nothing allows, else an expectation that does not hold.

    Args:
        document: what ``result.json`` says.
    """
    broken = {
        each["name"]
        for each in document.get("broken", ())
        if not each["is_expected"] and not each["is_excused"]
    }
    lost = {each["licence"] for each in document.get("lost", ()) if not each["is_covered"]}
    found = [each["event"] for each in document.get("violations", ()) if each["check"] in broken]
    found += [
        each.get("told") or each["event"]
        for each in document.get("losses", ())
        if each["licence"] in lost
    ]
    if not found:
        found = [
            each["event"]
            for each in document.get("expectations", ())
            if not each["holds"] and each["event"]
        ]
    return min((each for each in found if each), default=None)
