"""``leaderfall check``: read scenario files, and say all that is wrong with them.

Left out: running them.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.files import complete_files, read_all, scenario_paths

if TYPE_CHECKING:
    from rich.console import Console

    from sim.scenario.model import Scenario
    from sim.scenario.problems import Problem

__all__ = ["command", "print_problems"]


@click.command("check")
@click.argument("files", nargs=-1, shell_complete=complete_files)
@click.option("--schema", "is_schema", is_flag=True, help="Print the JSON Schema of the files.")
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Only what is wrong.")
@color_option
def command(files: tuple[str, ...], *, is_schema: bool, is_quiet: bool, color: str) -> int:
    """Check scenario files without running them.

    FILES are files, folders, or names of scenarios that come with Leaderfall. Every variant is
    tried. Exit code 0: all are right. 2: something is wrong; all of it is told.
    """
    if is_schema:
        return _print_schema()
    if not files:
        raise UserError("Which files? leaderfall check FILES, or --schema.")
    scenarios, problems = read_all(scenario_paths(files))
    if problems:
        print_problems(make_console(color, is_error=True), problems)
        return Exit.USAGE
    if not is_quiet:
        _tell(scenarios.values())
    return Exit.OK


def print_problems(console: Console, problems: list[Problem]) -> None:
    """All problems, with the summary; places and carets stand out where there is colour."""
    from rich.text import Text

    from sim.scenario.problems import ScenarioError

    for line in ScenarioError(problems).lines():
        text = Text(line)
        if not line.startswith(" "):
            text.stylize("bold")
        text.highlight_regex(r"\^+.*$", "red")
        console.print(text, soft_wrap=True)


def _tell(scenarios: Iterable[Scenario]) -> None:
    from sim.scenario.wiring import notes_of, unwired

    for scenario in scenarios:
        counts = [
            f"{len(found)} {what if len(found) == 1 else what + 's'}"
            for found, what in (
                (scenario.variants, "variant"),
                (scenario.steps, "step"),
                (scenario.faults, "fault"),
                (scenario.workloads, "workload"),
                (scenario.expects, "expectation"),
            )
            if found
        ]
        say(f"{shown(scenario.file)}: right ({', '.join(counts) or 'empty'})")
        for problem in unwired(scenario):
            say(f"  cannot be run: {problem.where}: {problem.text}")
        for note in notes_of(scenario):
            say(f"  {note}")


def _print_schema() -> int:
    import json

    from sim.scenario.schema import schema

    say(json.dumps(schema(), indent=2))
    return Exit.OK
