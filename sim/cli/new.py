"""``leaderfall new``: a commented scenario file to begin with.

Left out: its text (``sim.scenario.template``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from sim.cli.console import say, shown
from sim.cli.exits import Exit, UserError
from sim.scenario_files import SUFFIX
from sim.shell_words import shell_word

__all__ = ["command", "write_new"]

_DEFAULT: Final = "first-scenario"


@click.command("new")
@click.argument("name", default=_DEFAULT, metavar="[NAME]")
def command(name: str) -> int:
    """Write a commented scenario file to begin with.

    NAME is the scenario's name, or the file to write (mine.toml, folder/mine.toml); by default
    first-scenario. Nothing is overwritten.
    """
    from sim.scenario.problems import ScenarioError
    from sim.scenario.template import template

    path = _path_of(name)
    title = path.stem if _is_path(name) else name
    try:
        text = template(title)
    except ScenarioError as error:
        raise UserError(*error.problems[0].lines()) from None
    write_new(path, text.encode("utf-8"))
    word = shell_word(str(path))
    say(f"{shown(path)} is written. Next:")
    for what, why in (
        (f"check {word}", "says what is wrong with it"),
        (f"run {word}", "runs it"),
        ("explain", "lists everything that it may say"),
    ):
        say(f"  leaderfall {what.ljust(len(word) + 6)}    {why}")
    return Exit.OK


def _is_path(name: str) -> bool:
    return "/" in name or name.endswith(SUFFIX)


def _path_of(name: str) -> Path:
    if _is_path(name):
        return Path(name)
    from sim.scenario.names import slug

    return Path(slug(name) + SUFFIX)


def write_new(path: Path, data: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        UserError: it is there, or cannot be written.
    """
    try:
        with path.open("xb") as file:
            file.write(data)
    except FileExistsError:
        raise UserError(f'"{shown(path)}" is there already; nothing is overwritten.') from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(path)}" cannot be written: {shown(said)}') from None
