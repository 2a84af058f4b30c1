"""What ``shrink`` says: how far it is, on a terminal; and what came of it.

Left out: JSON (``sim.cli.shrink``).
"""

from __future__ import annotations

import os
import textwrap
from typing import TYPE_CHECKING, Final

from sim.cli.console import make_console, outlet, shown, width_of
from sim.cli.shrunk_cases import sizes
from sim.scenario.durations import show_duration

if TYPE_CHECKING:
    from rich.console import Console

    from sim.cli.blamed_runs import BlamedRun
    from sim.cli.shrunk_cases import Case
    from sim.shrinking.shrinker import Shrunk
    from sim.shrinking.trials import Trials

__all__ = ["Progress", "print_shrunk"]

_CLEAR: Final = "\r\x1b[K"


class Progress:
    """One line on a terminal's standard error that is written over; nothing elsewhere."""

    def __init__(self) -> None:
        self._stream = outlet(is_error=True)
        is_dumb = os.environ.get("TERM", "") in ("dumb", "unknown")
        self._is_shown = self._stream.isatty() and not is_dumb

    def tell(self, trials: Trials) -> None:
        """One run more."""
        if not self._is_shown:
            return
        scenario = trials.scenario
        until = show_duration(scenario.until_us)
        text = (
            f"{trials.runs}/{trials.runs_max} runs, {trials.stage}: {len(scenario.faults)} faults, "
            f"{len(scenario.steps)} steps, {scenario.cluster.brokers} brokers, {until}"
        )
        self._stream.write(_CLEAR + shown(text)[: width_of(self._stream) - 1])
        self._stream.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._is_shown:
            self._stream.write(_CLEAR)
            self._stream.flush()


def print_shrunk(color: str, run: BlamedRun, found: Shrunk, case: Case, seconds: float) -> None:
    """What is left, what it took, where it is, what else was found."""
    from rich.text import Text

    console = make_console(color)
    scenario, finding = run.scenario, found.finding
    variant = "" if scenario.variant is None else f" ({scenario.variant})"
    name = f"{scenario.name}{variant}, seed {scenario.seed}"
    _put(console, f"{name}: {finding.kind} {finding.name}", "bold")
    _put(console, finding.text)
    console.print()
    table = list(sizes(found))
    width = max(len(what) for what, _, _ in table)
    for what, before, after in table:
        line = f"  {what.removeprefix('of '):<{width}}  {before:>8} -> {after}"
        console.print(Text(line, "" if before != after else "dim"), soft_wrap=True)
    console.print()
    rate = f"{found.runs / seconds:.0f} a second" if seconds > 0 else "at once"
    runs = f"{found.runs} runs ({rate}), {found.rounds} rounds"
    _put(console, f"{runs}, {found.accepted} steps down. {_ENDED[found.ended]}")
    if case.verified:
        _put(console, f"Run again {', '.join(case.verified)}: the same.")
    for problem in case.problems:
        _put(console, f"Run again, it differs: {problem}.", "red")
    if found.goal.is_strict:
        _put(console, "The file excuses or expects this: without --strict its run may pass.")
    for each, path in zip(found.finds, case.finds, strict=True):
        _put(console, f"Also found: {each.finding.kind} {each.finding.name}: {path}")
    console.print()
    console.print(Text("file    ", "dim").append(shown(case.file), ""), soft_wrap=True)
    if case.trace is not None:
        console.print(Text("trace   ", "dim").append(shown(case.trace), ""), soft_wrap=True)
    console.print(Text("replay  ", "dim").append(shown(case.replay), ""), soft_wrap=True)


_ENDED: Final = {
    "minimal": "Nothing more can be left out.",
    "budget": "The budget of runs ended first (--runs): there may be a smaller one.",
    "interrupted": "Interrupted: there may be a smaller one.",
}


def _put(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    for line in textwrap.wrap(shown(text), max(20, console.width)):
        console.print(Text(line, style), soft_wrap=True)
